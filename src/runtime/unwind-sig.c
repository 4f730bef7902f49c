/* SPDX-License-Identifier: BSD-3-Clause */
/* The walk over the frames of a thread and its memory of the last path. A walk is a function of pc, stack pointer, at
 * most rbp and rbx, and the stack words that it reads; so where a frame meets one of the last path in the same state,
 * and every word read from there outwards still holds what it held, the rest is the same and is taken over.
 * Signal context. */
#include "runtime/unwind-internal.h"

#include "base/sigsafe.h"

/* A walk in progress: the old path is frames[0, n_old), the new frames are written behind it at base. */
struct walk {
    struct unwind_cursor at;
    struct unwind_path *path;
    uint32_t base, n_new;
    uint32_t n_old, old; /* old: index of the first old frame that may still be met */
    uint32_t first_plain;
    bool is_met;
    enum unwind_stop stop;
};

/* Step by the two rules that make up nearly all frames, without the registers' bookkeeping of the others. */
static inline bool step(struct walk *w, const struct unwind_rule *rule, struct unwind_frame *frame,
                        struct unwind_regs *regs)
{
    struct unwind_cursor *c = &w->at;
    uint64_t caller, rbp = c->rbp, rbx = c->rbx;
    uint32_t flags = 0;
    uintptr_t cfa;
    regs->rbp = rbp;
    regs->rbx = rbx;
    if (rule->flags & (uint8_t) ~(MODTAB_RBP_SAVED | MODTAB_RBX_SAVED))
        return unwind_step_sig(c, rule, frame, regs, &w->stop);
    if (rule->kind == MODTAB_CFA_RSP) {
        cfa = c->sp + (uintptr_t)(intptr_t)rule->cfa_offset;
    } else if (rule->kind == MODTAB_CFA_RBP && c->has_rbp) {
        cfa = rbp + (uintptr_t)(intptr_t)rule->cfa_offset;
        flags = UNWIND_FRAME_NEEDS_RBP;
    } else {
        return unwind_step_sig(c, rule, frame, regs, &w->stop);
    }
    w->stop = UNWIND_BAD_STACK;
    if (cfa < c->sp + 8 || !unwind_read(c, cfa - 8, &caller))
        return false;
    frame->cfa = cfa;
    if (rule->flags & MODTAB_RBP_SAVED) {
        if (!unwind_read(c, cfa + (uintptr_t)(intptr_t)rule->rbp_offset, &rbp))
            return false;
        regs->rbp_slot = rule->rbp_offset;
        flags |= UNWIND_FRAME_LOADS_RBP;
        c->rbp = rbp;
        c->has_rbp = true;
    }
    if (rule->flags & MODTAB_RBX_SAVED) {
        if (!unwind_read(c, cfa + (uintptr_t)(intptr_t)rule->rbx_offset, &rbx))
            return false;
        regs->rbx_slot = rule->rbx_offset;
        flags |= UNWIND_FRAME_LOADS_RBX;
        c->rbx = rbx;
        c->has_rbx = true;
    }
    frame->flags |= flags;
    c->pc = caller;
    c->sp = cfa;
    c->is_interrupted = false;
    c->live = UNWIND_LIVE_NONE;
    c->fp_valid = 0;
    return true;
}

__attribute__((no_sanitize("address", "undefined"))) static inline uint64_t word_at(uintptr_t address)
{
    return *(const unwind_word *)address;
}

/* Whether the words beyond the return address on which old frame i rests still hold. The caller's registers are in
 * regs[i + 1]. */
static bool loads_hold(const struct walk *w, uint32_t i)
{
    const struct unwind_frame *frame = &w->path->frames[i];
    const struct unwind_regs *regs = &w->path->regs[i];
    uint64_t value;
    if (frame->flags & UNWIND_FRAME_LOADS_CFA &&
        (!unwind_read(&w->at, frame->cfa + (uintptr_t)(intptr_t)regs->cfa_slot, &value) ||
         value + (uint64_t)(int64_t)regs->cfa_extra != frame->cfa))
        return false;
    if (frame->flags & UNWIND_FRAME_LOADS_RBP &&
        (!unwind_read(&w->at, frame->cfa + (uintptr_t)(intptr_t)regs->rbp_slot, &value) || value != regs[1].rbp))
        return false;
    if (frame->flags & UNWIND_FRAME_LOADS_RBX &&
        (!unwind_read(&w->at, frame->cfa + (uintptr_t)(intptr_t)regs->rbx_slot, &value) || value != regs[1].rbx))
        return false;
    return true;
}

/* Whether the old path holds from frame first outwards. If not, *resume is the first frame that can still be met: the
 * one beyond the word that has changed. */
static bool old_holds(const struct walk *w, uint32_t first, uint32_t *resume)
{
    const uint32_t loads = UNWIND_FRAME_LOADS_RBP | UNWIND_FRAME_LOADS_RBX | UNWIND_FRAME_LOADS_CFA;
    const struct unwind_frame *frames = w->path->frames;
    uint32_t last = w->n_old - 1;
    *resume = w->n_old;
    if (frames[last].flags & UNWIND_FRAME_ENDS_IN_ZERO &&
        (frames[last].cfa - 8 - w->at.floor > w->at.ceiling - w->at.floor || word_at(frames[last].cfa - 8) != 0 ||
         (frames[last].flags & loads && !loads_hold(w, last))))
        return false;
    if (first < last && (frames[first].cfa - 8 < w->at.floor || frames[last - 1].cfa - 8 > w->at.ceiling))
        return false;
    for (uint32_t i = first; i < last; i++)
        if (word_at(frames[i].cfa - 8) != frames[i + 1].pc || (frames[i].flags & loads && !loads_hold(w, i))) {
            *resume = i + 2;
            return false;
        }
    return true;
}

/* Whether the frame at the cursor is old frame i, in the same state as far as its callers rest on it. */
static bool is_same_frame(const struct unwind_cursor *c, const struct unwind_frame *frame,
                          const struct unwind_regs *regs)
{
    return frame->pc == c->pc && !(frame->flags & UNWIND_FRAME_NEEDS_LIVE) &&
           !!(frame->flags & UNWIND_FRAME_INTERRUPTED) == c->is_interrupted &&
           (!(frame->flags & UNWIND_FRAME_NEEDS_RBP) || (c->has_rbp && c->rbp == regs->rbp)) &&
           (!(frame->flags & UNWIND_FRAME_NEEDS_RBX) || (c->has_rbx && c->rbx == regs->rbx));
}

/* Looks for the frame at the cursor in the old path; true when the rest of it can be taken over from w->old. */
static inline bool meets_old(struct walk *w)
{
    struct unwind_path *path = w->path;
    while (w->old < w->n_old && (w->old ? path->frames[w->old - 1].cfa : path->start_sp) < w->at.sp)
        w->old++;
    if (w->old >= w->n_old || (w->old ? path->frames[w->old - 1].cfa : path->start_sp) != w->at.sp ||
        w->base + 2 * w->n_new > UNWIND_FRAMES_MAX ||
        !is_same_frame(&w->at, &path->frames[w->old], &path->regs[w->old]))
        return false;
    uint32_t resume;
    if (old_holds(w, w->old, &resume))
        return true;
    w->old = resume;
    return false;
}

/* Makes room for one more new frame; false when the path is too deep. Gives up the old path when it stands in the
 * way. */
static bool make_room(struct walk *w)
{
    struct unwind_path *path = w->path;
    if (w->base + w->n_new < UNWIND_FRAMES_MAX)
        return true;
    if (w->base == 0)
        return false;
    memmove(path->frames, path->frames + w->base, w->n_new * sizeof *path->frames);
    memmove(path->regs, path->regs + w->base, w->n_new * sizeof *path->regs);
    w->base = w->n_old = w->old = 0;
    return true;
}

/* Whether the return address at the cursor can be one: it follows a call, or starts a trampoline, or lies in generated
 * code whose frame pointers lead back to known code. */
static inline bool is_caller(struct walk *w, const struct unwind_rule *rule)
{
    if (rule->follows_call || w->n_new == 0 || w->at.is_interrupted || rule->kind == MODTAB_SIGNAL ||
        rule->kind == MODTAB_END)
        return true;
    if (rule->kind == UNWIND_KIND_NO_MODULE && unwind_validate_fp_sig(&w->at))
        return true;
    w->stop = rule->kind == UNWIND_KIND_NO_MODULE ? UNWIND_NO_MODULE : UNWIND_BAD_CALLER;
    return false;
}

/* Walks until the end or until the old path is met. */
static void walk_new(struct walk *w)
{
    struct unwind_rule rule;
    struct unwind_path *path = w->path;
    for (;;) {
        if (meets_old(w)) {
            w->is_met = true;
            return;
        }
        w->stop = UNWIND_TOO_DEEP;
        if (!make_room(w))
            return;
        unwind_rule_of(&w->at, w->at.is_interrupted ? w->at.pc : w->at.pc - 1, &rule);
        if (!is_caller(w, &rule))
            return;
        struct unwind_frame *frame = &path->frames[w->base + w->n_new];
        *frame = (struct unwind_frame){
            .pc = w->at.pc, .module = rule.module, .flags = w->at.is_interrupted ? UNWIND_FRAME_INTERRUPTED : 0};
        struct unwind_regs *regs = &path->regs[w->base + w->n_new++];
        if (!step(w, &rule, frame, regs))
            return;
        if (frame->flags & UNWIND_FRAME_SIGNAL) {
            w->first_plain = w->n_new;
            w->old = path->first_plain;
        }
        if (w->at.pc == 0) {
            frame->flags |= UNWIND_FRAME_ENDS_IN_ZERO;
            w->stop = UNWIND_COMPLETE;
            return;
        }
    }
}

/* Says of each new frame what its callers rest on, from the outermost inwards. */
static void settle_needs(struct walk *w)
{
    struct unwind_frame *frames = w->path->frames + w->base;
    uint32_t outer = w->is_met ? w->path->frames[w->old].flags : 0;
    for (uint32_t i = w->n_new; i-- > 0;) {
        uint32_t flags = frames[i].flags;
        if (!(flags & UNWIND_FRAME_LOADS_RBP))
            flags |= outer & UNWIND_FRAME_NEEDS_RBP;
        else if (!(outer & UNWIND_FRAME_NEEDS_RBP))
            flags &= ~UNWIND_FRAME_LOADS_RBP;
        if (!(flags & UNWIND_FRAME_LOADS_RBX))
            flags |= outer & UNWIND_FRAME_NEEDS_RBX;
        else if (!(outer & UNWIND_FRAME_NEEDS_RBX))
            flags &= ~UNWIND_FRAME_LOADS_RBX;
        frames[i].flags = outer = flags;
    }
}

static void move(struct unwind_path *path, uint32_t to, uint32_t from, uint32_t n)
{
    if (to == from || n == 0)
        return;
    memmove(path->frames + to, path->frames + from, n * sizeof *path->frames);
    memmove(path->regs + to, path->regs + from, n * sizeof *path->regs);
}

/* Puts the new frames before what is taken over of the old path. Where they are more than those that they replace, they
 * step aside first; meets_old has seen to it that there is room. */
static void join(struct walk *w)
{
    uint32_t n_reused = w->is_met ? w->n_old - w->old : 0;
    if (n_reused && w->n_new > w->old) {
        move(w->path, w->base + w->n_new - w->old, w->base, w->n_new);
        w->base += w->n_new - w->old;
    }
    move(w->path, w->n_new, w->old, n_reused);
    move(w->path, 0, w->base, w->n_new);
    w->path->n_frames = w->n_new + n_reused;
    w->path->n_reused = n_reused;
    if (w->is_met)
        w->stop = UNWIND_COMPLETE;
}

/* The path of a thread whose stack is not known: one frame. */
static void walk_start_only(struct walk *w)
{
    struct unwind_rule rule;
    unwind_rule_of(&w->at, w->at.is_interrupted ? w->at.pc : w->at.pc - 1, &rule);
    w->base = 0;
    w->n_new = 1;
    w->path->frames[0] = (struct unwind_frame){
        .pc = w->at.pc, .module = rule.module, .flags = w->at.is_interrupted ? UNWIND_FRAME_INTERRUPTED : 0};
}

enum unwind_stop unwind_walk_sig(const struct unwind_start *start, const struct unwind_bounds *bounds,
                                 unwind_find_module find, uint32_t generation, struct unwind_path *path)
{
    struct walk w = {.path = path, .stop = UNWIND_BAD_STACK};
    w.at = (struct unwind_cursor){.pc = start->pc,
                                  .sp = start->gpr[UNWIND_RSP],
                                  .rbp = start->gpr[UNWIND_RBP],
                                  .rbx = start->gpr[UNWIND_RBX],
                                  .has_rbp = start->known >> UNWIND_RBP & 1,
                                  .has_rbx = start->known >> UNWIND_RBX & 1,
                                  .is_interrupted = start->is_interrupted,
                                  .live = UNWIND_LIVE_START,
                                  .start = start,
                                  .bounds = bounds,
                                  .slots = unwind_slots_sig(),
                                  .find = find,
                                  .generation = generation};
    bool has_memory = path->stop == UNWIND_COMPLETE && path->generation == generation;
    w.n_old = w.base = has_memory ? path->n_frames : 0;
    w.old = path->first_plain;
    if (unwind_enter_stack_sig(&w.at))
        walk_new(&w);
    else
        walk_start_only(&w);
    settle_needs(&w);
    join(&w);
    path->first_plain = w.first_plain;
    path->start_sp = start->gpr[UNWIND_RSP];
    path->generation = generation;
    path->stop = w.stop;
    return w.stop;
}
