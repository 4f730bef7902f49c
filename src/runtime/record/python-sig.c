/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of Python in call paths: which of them each native frame of the evaluation function executes, and their nodes
 * in the trees. The interpreter may have been interrupted at any instruction, so what it says has to fit the native
 * stack: each of its records of a running evaluation lies in the stack frame of that evaluation, and the frames of one
 * end where those of the next one begin. See python.h. Runs in the signal handler. */
#include <stdbool.h>
#include <stddef.h>

#include "runtime/record/loadmap.h"
#include "runtime/record/python.h"
#include "runtime/record/thread.h"

#include "base/sigsafe.h"

#define UNFIT_MAX 64 /* so many paths do not fit before one does: the interpreter is not as expected */

/* How the search for the frames of a sample ends. */
enum finding {
    FOUND, /* none is one answer */
    UNFIT, /* they do not fit the stack */
    FULL,  /* no room to describe them */
};

/* The search for the frames of a sample. */
struct search {
    const struct python_api *api;
    const struct unwind_path *path;
    struct python_text *text;
    const struct python_frame *last; /* those of the last sample */
    struct python_frame *frames;     /* [PYTHON_FRAMES_MAX] */
    uint32_t n_last, n;
    uint32_t native;   /* the next native frame, from the innermost on */
    uint32_t n_native; /* native frames up to the outermost evaluation that was found */
    uintptr_t thread;
    uintptr_t outer; /* until 3.11: state of the interpreter that called thread's; 0: it is the same */
};

/* --- which native frame --- */

static bool is_evaluation(const struct python_api *api, const struct unwind_frame *frame)
{
    uintptr_t pc = frame->flags & UNWIND_FRAME_INTERRUPTED ? frame->pc : frame->pc - 1;
    return pc >= api->evaluation && pc < api->evaluation_end;
}

static bool is_in_interpreter(const struct python_api *api, const struct unwind_frame *frame)
{
    return frame->module && api->evaluation >= frame->module->start && api->evaluation < frame->module->end;
}

/* Goes on to the native frame whose part of the stack holds address. UNFIT when none does, or when an evaluation comes
 * before that the interpreter has no record of: only the innermost one may just begin or end. *is_over: the path ends
 * before it, as it is not known to the end. */
static enum finding go_to(struct search *s, uintptr_t address, bool *is_over)
{
    for (; s->native < s->path->n_frames; s->native++) {
        const struct unwind_frame *frame = &s->path->frames[s->native];
        uintptr_t low = s->native ? frame[-1].cfa : s->path->start_sp;
        if (address >= low && address < frame->cfa)
            return is_in_interpreter(s->api, frame) ? FOUND : UNFIT;
        if (s->native && is_evaluation(s->api, frame))
            return UNFIT;
    }
    *is_over = true;
    return s->path->stop == UNWIND_COMPLETE ? UNFIT : FOUND;
}

static uint32_t count_evaluations(const struct search *s, uint32_t first)
{
    uint32_t n = 0;
    for (uint32_t i = first; i < s->path->n_frames; i++)
        n += is_evaluation(s->api, &s->path->frames[i]);
    return n;
}

/* --- frames --- */

static uint8_t byte_at(const struct search *s, uintptr_t at)
{
    uint8_t byte = 0;
    return python_fetch_sig(s->text->guarded, at, &byte, 1) ? byte : 0;
}

/* Whether the innermost frame is one indeed. The interrupted evaluation may not have filled its record yet: then the
 * record names a frame of an earlier one. That frame may have gone with its memory, unless it lies in the thread's own
 * stack of frames, of which what is above the top has gone, or on its native stack; and a generator that is not running
 * is none.  src: CPython Include/cpython/pystate.h (datastack_top behind the chunk) */
static bool is_frame(const struct search *s, uintptr_t frame)
{
    const struct python_layout *layout = &s->api->layout;
    uint64_t head[9];
    uintptr_t at = s->thread + layout->thread_chunk, chunk = python_pointer_sig(s->text->guarded, at);
    uintptr_t n_bytes = chunk ? python_pointer_sig(s->text->guarded, chunk + 8) : 0;
    if (!is_evaluation(s->api, &s->path->frames[0]) || (frame >= s->path->start_sp && frame < s->path->frames[0].cfa))
        return true;
    if (frame >= chunk && frame - chunk < n_bytes)
        return frame < python_pointer_sig(s->text->guarded, at + 8);
    return !(frame & 7) && python_fetch_sig(true, frame, head, sizeof head) &&
           byte_at(s, frame + (uintptr_t)(intptr_t)layout->generator_state) == 0;
}

/* Adds a frame that the native frame number s->native executes. */
static enum finding add_frame(struct search *s, uintptr_t frame)
{
    bool is_bad = false;
    uint64_t hash = frame & 7 ? 0 : python_place_sig(s->text, frame);
    uint32_t ref = hash && s->n < s->n_last && s->last[s->n].hash == hash
                       ? s->last[s->n].ref
                       : python_string_sig(s->text, frame, hash, &is_bad);
    if (!ref)
        return is_bad ? UNFIT : FULL;
    s->frames[s->n++] = (struct python_frame){.hash = hash, .ref = ref, .native = s->native};
    s->n_native = s->native + 1;
    return FOUND;
}

/* 3.11: each evaluation has a _PyCFrame in its stack frame, which names its innermost frame. Its outermost one is an
 * entry; it was called by the innermost one of the evaluation before. */
static enum finding find_by_c_frames(struct search *s, uintptr_t thread, bool *is_over)
{
    const struct python_layout *layout = &s->api->layout;
    bool is_guarded = s->text->guarded, is_inner = thread == s->thread;
    uintptr_t record = python_pointer_sig(is_guarded, thread + layout->thread_top), expected = 0;
    while (record - thread >= 4096) { /* that of the thread's state has no evaluation */
        enum finding found = go_to(s, record, is_over);
        if (found != FOUND || *is_over)
            return found;
        uintptr_t frame = python_pointer_sig(is_guarded, record + layout->cframe_current);
        if (expected ? frame != expected : is_inner && !is_frame(s, frame))
            return UNFIT;
        for (bool is_entry = false; !is_entry; frame = python_pointer_sig(is_guarded, frame + layout->frame_previous)) {
            found = !frame ? UNFIT : s->n == PYTHON_FRAMES_MAX ? FOUND : add_frame(s, frame);
            *is_over = s->n == PYTHON_FRAMES_MAX;
            if (found != FOUND || *is_over)
                return found;
            is_entry = byte_at(s, frame + layout->frame_owner);
        }
        record = python_pointer_sig(is_guarded, record + layout->cframe_previous);
        if (python_pointer_sig(is_guarded, record + layout->cframe_current) != frame)
            return UNFIT;
        expected = frame;
        s->native++;
        if (!frame)
            return FOUND;
    }
    return expected ? UNFIT : FOUND;
}

/* Those of an interpreter, and outside of them those of the one that called it. */
static enum finding find_by_both(struct search *s)
{
    bool is_over = false;
    enum finding found = find_by_c_frames(s, s->thread, &is_over);
    return found == FOUND && s->outer && !is_over ? find_by_c_frames(s, s->outer, &is_over) : found;
}

/* 3.12 and later: the frames of an evaluation are followed by one that lies in its stack frame. */
static enum finding find_by_trampolines(struct search *s)
{
    const struct python_layout *layout = &s->api->layout;
    bool is_guarded = s->text->guarded, is_over = false;
    uintptr_t frame = python_pointer_sig(is_guarded, s->thread + layout->thread_top);
    if (layout->cframe_previous)
        frame = python_pointer_sig(is_guarded, frame + layout->cframe_current);
    if (frame && !is_frame(s, frame))
        return UNFIT;
    for (uint32_t n_beyond = 0; frame && n_beyond < UINT16_MAX;) {
        uint32_t first = s->n;
        for (; frame && byte_at(s, frame + layout->frame_owner) != PYTHON_C_STACK && n_beyond < UINT16_MAX;
             frame = python_pointer_sig(is_guarded, frame + layout->frame_previous)) {
            enum finding found = s->n < PYTHON_FRAMES_MAX ? add_frame(s, frame) : FOUND;
            if (found != FOUND)
                return found;
            n_beyond += s->n == PYTHON_FRAMES_MAX;
        }
        enum finding found = frame ? go_to(s, frame, &is_over) : UNFIT;
        if (is_over)
            s->n = first;
        if (found != FOUND || is_over)
            return found;
        for (uint32_t i = first; i < s->n; i++)
            s->frames[i].native = s->native;
        s->n_native = s->n > first ? s->native + 1 : s->n_native;
        if (n_beyond)
            return FOUND;
        s->native++;
        frame = python_pointer_sig(is_guarded, frame + layout->frame_previous);
    }
    return frame ? UNFIT : FOUND;
}

/* The frame outside of frame, 0: the state's innermost one. Outside of all of an interpreter that another one called
 * are that one's; *outer: its state, until then. */
static uintptr_t outer_frame(const struct search *s, uintptr_t frame, uintptr_t *outer)
{
    const struct python_layout *layout = &s->api->layout;
    bool is_guarded = s->text->guarded;
    uintptr_t at = frame ? frame + layout->frame_previous : s->thread + layout->thread_top;
    uintptr_t found = python_pointer_sig(is_guarded, at), next = *outer;
    *outer = found ? next : 0;
    return found || !next ? found : python_pointer_sig(is_guarded, next + layout->thread_top);
}

/* 3.9, 3.10: as many evaluations as frames, but that the innermost evaluation may just begin or end. */
static enum finding find_each(struct search *s)
{
    uintptr_t outer = s->outer, frame = outer_frame(s, 0, &outer);
    uint32_t n_evaluations = count_evaluations(s, 0), n_frames = 0;
    bool is_leaf = is_evaluation(s->api, &s->path->frames[0]), is_whole = s->path->stop == UNWIND_COMPLETE;
    for (uintptr_t at = frame; at && n_frames <= n_evaluations; n_frames++)
        at = outer_frame(s, at, &outer);
    bool is_between = is_leaf && n_frames + 1 == n_evaluations;
    if (is_whole ? n_frames != n_evaluations && !is_between : is_leaf || n_frames < n_evaluations)
        return UNFIT;
    outer = s->outer;
    frame = outer_frame(s, 0, &outer);
    for (s->native = is_between; s->native < s->path->n_frames && s->n < PYTHON_FRAMES_MAX; s->native++) {
        if (!is_evaluation(s->api, &s->path->frames[s->native]))
            continue;
        enum finding found = frame ? add_frame(s, frame) : UNFIT;
        if (found != FOUND)
            return found;
        frame = outer_frame(s, frame, &outer);
    }
    return FOUND;
}

static enum finding find_frames(struct search *s)
{
    switch (s->api->layout.linkage) {
    case PYTHON_ONE_EACH:
        return find_each(s);
    case PYTHON_C_FRAMES:
        return find_by_both(s);
    default:
        return find_by_trampolines(s);
    }
}

/* --- samples --- */

/* Finds the frames of the sample's path and makes them the last ones of the thread. */
static enum finding find_for_sample(struct thread_state *self)
{
    struct python_path *mine = &self->python;
    const struct unwind_path *path = &self->sample_path;
    uint32_t next = !mine->which;
    bool is_guarded = python_is_guarded_sig(path->n_frames ? path->frames[0].pc : 0);
    struct search s = {.api = python_api_sig(),
                       .path = path,
                       .text = &mine->text,
                       .last = mine->frames[mine->which],
                       .n_last = mine->n[mine->which],
                       .frames = mine->frames[next]};
    python_text_begin_sig(s.text, &mine->cursor, is_guarded);
    s.thread = path->n_frames ? python_state_sig(mine, is_guarded) : 0;
    s.outer = s.thread != mine->state ? mine->state : 0;
    enum finding found = s.thread ? find_frames(&s) : FOUND;
    if (found != FOUND)
        s.n = 0;
    for (uint32_t i = 0; i < s.n; i++)
        s.frames[i].native = path->n_frames - 1 - s.frames[i].native;
    mine->which = next;
    mine->n[next] = s.n;
    mine->n_cut[next] = 0;
    if (s.n && (s.n == PYTHON_FRAMES_MAX || count_evaluations(&s, s.n_native)))
        mine->n_cut[next] = path->n_frames - s.n_native;
    if (s.n && python_trust_sig() == PYTHON_TRYING)
        python_set_trust_sig(PYTHON_READ);
    return found;
}

/* Notes that a path has no frames of Python although the thread may run some. */
static void count_lost(struct thread_state *self, enum finding found)
{
    struct python_path *mine = &self->python;
    mine->n_unfit = found == UNFIT ? mine->n_unfit + 1 : 0;
    if (found != FOUND)
        atomic_fetch_add_explicit(&arena_header_sig()->n_python_unfit, 1, memory_order_relaxed);
    if (mine->n_unfit == UNFIT_MAX && python_trust_sig() == PYTHON_TRYING)
        python_set_trust_sig(PYTHON_NONE);
}

/* From which native frame on, counted from the outermost, the paths of the last two samples differ; *same: so many
 * frames of Python, from the outermost on, are the same and get their nodes. */
static uint32_t compare(struct python_path *mine, uint32_t *same)
{
    uint32_t now = mine->which, n = mine->n[now], n_last = mine->n[!now], i = 0;
    struct python_frame *frames = mine->frames[now];
    const struct python_frame *last = mine->frames[!now];
    for (; i < n && i < n_last; i++) {
        struct python_frame *frame = &frames[n - 1 - i];
        const struct python_frame *before = &last[n_last - 1 - i];
        if (frame->ref != before->ref || frame->native != before->native || !before->node)
            break;
        frame->node = before->node;
    }
    *same = i;
    uint32_t here = i < n ? frames[n - 1 - i].native : UINT32_MAX;
    uint32_t there = i < n_last ? last[n_last - 1 - i].native : UINT32_MAX;
    return here < there ? here : there;
}

/* Finds the frames of the sample's path. Returns from which native frame on, counted from the outermost, nodes have to
 * be found; *done: so many frames of Python, from the outermost on, belong to native frames before. */
static uint32_t begin_insert(struct thread_state *self, uint32_t *done)
{
    struct unwind_path *path = &self->sample_path;
    struct python_path *mine = &self->python;
    count_lost(self, find_for_sample(self));
    uint32_t now = mine->which, cut = mine->n_cut[now], n_reused = path->n_reused;
    if (cut != mine->n_cut[!now])
        n_reused = 0;
    if (!n_reused)
        mine->n[!now] = 0;
    uint32_t start = compare(mine, done);
    start = start < n_reused ? start : n_reused;
    while (start > cut && !path->frames[path->n_frames - start].node)
        start--;
    start = start < cut ? cut : start;
    for (uint32_t i = 0; i + start < path->n_frames; i++)
        path->frames[i].node = 0;
    while (*done > 0 && mine->frames[now][mine->n[now] - *done].native >= start)
        --*done;
    return start;
}

uint32_t python_insert_sig(struct thread_state *self, uint32_t first, bool is_above)
{
    struct cct_tree *tree = &self->samples;
    struct unwind_path *path = &self->sample_path;
    struct python_path *mine = &self->python;
    uint32_t n_frames = path->n_frames, done, start = begin_insert(self, &done);
    uint32_t now = mine->which, n = mine->n[now], cut = mine->n_cut[now];
    uint32_t node = cut || path->stop != UNWIND_COMPLETE ? tree->below_partial : tree->below;
    if (start > cut)
        node = path->frames[n_frames - start].node;
    for (uint32_t i = start; i + first < n_frames + is_above; i++) {
        struct unwind_frame *frame = &path->frames[n_frames - 1 - i];
        for (; node && done < n && mine->frames[now][n - 1 - done].native == i; done++) {
            struct python_frame *above = &mine->frames[now][n - 1 - done];
            node = above->node = cct_child_sig(tree, node, above->ref, python_module_sig());
        }
        if (i + first == n_frames)
            return node;
        node = node ? cct_child_sig(tree, node, frame->pc, frame->module ? frame->module->ref : 0) : 0;
        frame->node = node;
    }
    return node;
}
