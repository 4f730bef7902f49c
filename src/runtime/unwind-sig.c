/* SPDX-License-Identifier: BSD-3-Clause */
/* The walk over the frames of a thread and its memory of the last path. A walk is a function of pc, stack pointer, at
 * most rbp and rbx, and the stack words that it reads; so where a frame meets one of the last path in the same state,
 * and every word read from there outwards still holds what it held, the rest is the same and is taken over.
 * Signal context. */
#include "runtime/unwind-internal.h"

#include "base/sigsafe.h"

#define HANDLER_BYTES 4096 /* of stack: the kernel gives a handler little more than its own frame */

/* A walk in progress: the old path is store[old_base .. + n_old), the new frames are store[base .. + n_new). */
struct walk {
    struct unwind_cursor at;
    struct unwind_path *path;
    uint32_t base, n_new, n_room;
    uint32_t old_base, n_old, old; /* old: index of the first old frame that may still be met */
    uintptr_t old_sp;              /* its stack pointer, the highest address when there is none */
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

/* Whether the words beyond the return address on which an old frame rests still hold. The caller's registers are in
 * regs[1]. */
static bool loads_hold(const struct walk *w, const struct unwind_frame *frame, const struct unwind_regs *regs)
{
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

#define LOADS (UNWIND_FRAME_LOADS_RBP | UNWIND_FRAME_LOADS_RBX | UNWIND_FRAME_LOADS_CFA)

/* Whether the outermost old frame is still the end, as far as that is read from the stack. */
static bool end_holds(const struct walk *w, const struct unwind_frame *last, const struct unwind_regs *regs)
{
    uint64_t value;
    return !(last->flags & UNWIND_FRAME_ENDS_IN_ZERO) ||
           (unwind_read(&w->at, last->cfa - 8, &value) && value == 0 && loads_hold(w, last, regs));
}

/* Difference between the return addresses of four frames and the old path; the callers' loads count as one. */
static inline uint64_t four_differ(const struct unwind_frame *f)
{
    uint64_t differ = (word_at(f[0].cfa - 8) ^ f[1].pc) | (word_at(f[1].cfa - 8) ^ f[2].pc) |
                      (word_at(f[2].cfa - 8) ^ f[3].pc) | (word_at(f[3].cfa - 8) ^ f[4].pc);
    return differ | ((f[0].flags | f[1].flags | f[2].flags | f[3].flags) & LOADS);
}

/* Whether the old path holds from frame first outwards. If not, *resume is the first frame that can still be met: the
 * one beyond the word that has changed. */
static bool old_holds(const struct walk *w, uint32_t first, uint32_t *resume)
{
    const struct unwind_frame *frames = w->path->store + w->old_base;
    const struct unwind_regs *regs = w->path->regs + w->old_base;
    uint32_t last = w->n_old - 1;
    *resume = w->n_old;
    if (!end_holds(w, &frames[last], &regs[last]) ||
        (first < last && (frames[first].cfa - 8 < w->at.floor || frames[last - 1].cfa - 8 > w->at.ceiling)))
        return false;
    for (uint32_t i = first; i < last; i++) {
        while (i + 4 <= last && !four_differ(&frames[i]))
            i += 4;
        if (i < last && (word_at(frames[i].cfa - 8) != frames[i + 1].pc ||
                         (frames[i].flags & LOADS && !loads_hold(w, &frames[i], &regs[i])))) {
            *resume = i + 2;
            return false;
        }
    }
    return true;
}

/* Whether the frame at the cursor is this old frame, in the same state as far as its callers rest on it. */
static bool is_same_frame(const struct unwind_cursor *c, const struct unwind_frame *frame,
                          const struct unwind_regs *regs)
{
    return frame->pc == c->pc && !(frame->flags & UNWIND_FRAME_NEEDS_LIVE) &&
           !!(frame->flags & UNWIND_FRAME_INTERRUPTED) == c->is_interrupted &&
           (!(frame->flags & UNWIND_FRAME_NEEDS_RBP) || (c->has_rbp && c->rbp == regs->rbp)) &&
           (!(frame->flags & UNWIND_FRAME_NEEDS_RBX) || (c->has_rbx && c->rbx == regs->rbx));
}

/* Goes on to old frame i, or to none. */
static inline void set_old(struct walk *w, uint32_t i)
{
    w->old = i;
    w->old_sp = i >= w->n_old ? UINTPTR_MAX : i ? w->path->store[w->old_base + i - 1].cfa : w->path->start_sp;
}

/* Whether the old frames from w->old on can be joined to the new ones: before them, or else behind the new ones. */
static inline bool can_join(const struct walk *w)
{
    return w->old_base + w->old >= w->n_new || w->base + w->n_new + w->n_old - w->old <= UNWIND_FRAMES_MAX;
}

/* Looks for the frame at the cursor in the old path; true when the rest of it can be taken over from w->old. */
static bool meets_old(struct walk *w)
{
    const struct unwind_path *path = w->path;
    uint32_t resume;
    while (w->old_sp < w->at.sp)
        set_old(w, w->old + 1);
    uint32_t i = w->old_base + w->old;
    if (w->old_sp != w->at.sp || !can_join(w) || !is_same_frame(&w->at, &path->store[i], &path->regs[i]))
        return false;
    if (old_holds(w, w->old, &resume))
        return true;
    set_old(w, resume);
    return false;
}

static void move(struct unwind_path *path, uint32_t to, uint32_t from, uint32_t n)
{
    if (to == from || n == 0)
        return;
    memmove(path->store + to, path->store + from, n * sizeof *path->store);
    memmove(path->regs + to, path->regs + from, n * sizeof *path->regs);
}

/* The larger part of the store beside the old path is for the new one. */
static void find_room(struct walk *w)
{
    uint32_t behind = UNWIND_FRAMES_MAX - w->old_base - w->n_old;
    w->base = behind >= w->old_base ? w->old_base + w->n_old : 0;
    w->n_room = behind >= w->old_base ? behind : w->old_base;
    set_old(w, w->path->first_plain);
}

/* Makes room for one more new frame, giving up the old path when it stands in the way; false when the path is too
 * deep. */
static bool make_room(struct walk *w)
{
    if (w->n_new < w->n_room)
        return true;
    if (w->n_new == UNWIND_FRAMES_MAX)
        return false;
    move(w->path, 0, w->base, w->n_new);
    w->base = w->n_old = 0;
    w->n_room = UNWIND_FRAMES_MAX;
    set_old(w, 0);
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

/* Adds the frame at the cursor and goes on to its caller; false at the end. */
static inline bool add_frame(struct walk *w)
{
    struct unwind_rule rule;
    unwind_rule_of(&w->at, w->at.is_interrupted ? w->at.pc : w->at.pc - 1, &rule);
    if (!is_caller(w, &rule))
        return false;
    struct unwind_frame *frame = &w->path->store[w->base + w->n_new];
    struct unwind_regs *regs = &w->path->regs[w->base + w->n_new++];
    *frame = (struct unwind_frame){
        .pc = w->at.pc, .module = rule.module, .flags = w->at.is_interrupted ? UNWIND_FRAME_INTERRUPTED : 0};
    if (!step(w, &rule, frame, regs))
        return false;
    if (frame->flags & UNWIND_FRAME_SIGNAL) {
        w->first_plain = w->n_new;
        set_old(w, w->path->first_plain);
    }
    if (w->at.pc != 0)
        return true;
    frame->flags |= UNWIND_FRAME_ENDS_IN_ZERO;
    w->stop = UNWIND_COMPLETE;
    return false;
}

/* Walks until the end or until the old path is met. */
static void walk_new(struct walk *w)
{
    do {
        if (w->old_sp <= w->at.sp && meets_old(w)) {
            w->is_met = true;
            return;
        }
        w->stop = UNWIND_TOO_DEEP;
    } while (make_room(w) && add_frame(w));
}

/* Says of each new frame what its callers rest on, from the outermost inwards. */
static void settle_needs(struct walk *w)
{
    struct unwind_frame *frames = w->path->store + w->base;
    uint32_t outer = w->is_met ? w->path->store[w->old_base + w->old].flags : 0;
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

/* Brings the new frames and what is taken over of the old path together; what is taken over mostly stays in place. */
static void join(struct walk *w)
{
    uint32_t n_reused = w->is_met ? w->n_old - w->old : 0, first = w->base;
    if (w->is_met) {
        uint32_t rest = w->old_base + w->old;
        if (rest >= w->n_new)
            move(w->path, first = rest - w->n_new, w->base, w->n_new);
        else
            move(w->path, w->base + w->n_new, rest, n_reused);
        w->stop = UNWIND_COMPLETE;
    }
    w->path->frames = w->path->store + first;
    w->path->n_frames = w->n_new + n_reused;
    w->path->n_reused = n_reused;
}

/* The path of a thread whose stack is not known: one frame. */
static void walk_start_only(struct walk *w)
{
    struct unwind_rule rule;
    unwind_rule_of(&w->at, w->at.is_interrupted ? w->at.pc : w->at.pc - 1, &rule);
    w->base = 0;
    w->n_new = 1;
    w->path->store[0] = (struct unwind_frame){
        .pc = w->at.pc, .module = rule.module, .flags = w->at.is_interrupted ? UNWIND_FRAME_INTERRUPTED : 0};
}

/* Each member by itself: clearing the whole first would cost as much as twenty frames of an unchanged path. */
static inline void begin(struct walk *w, const struct unwind_start *start, uint32_t generation)
{
    struct unwind_path *path = w->path;
    bool has_memory = path->n_frames && path->stop == UNWIND_COMPLETE && path->generation == generation;
    w->at.pc = start->pc;
    w->at.sp = start->gpr[UNWIND_RSP];
    w->at.rbp = start->gpr[UNWIND_RBP];
    w->at.rbx = start->gpr[UNWIND_RBX];
    w->at.has_rbp = start->known >> UNWIND_RBP & 1;
    w->at.has_rbx = start->known >> UNWIND_RBX & 1;
    w->at.is_interrupted = start->is_interrupted;
    w->at.live = UNWIND_LIVE_START;
    w->at.start = start;
    w->at.context = w->at.fp_valid = 0;
    w->at.slots = unwind_slots_sig();
    w->at.generation = generation;
    w->n_new = w->first_plain = 0;
    w->old_base = has_memory ? (uint32_t)(path->frames - path->store) : 0;
    w->n_old = has_memory ? path->n_frames : 0;
    w->is_met = false;
    w->stop = UNWIND_BAD_STACK;
    find_room(w);
}

size_t unwind_handler_bytes_sig(void)
{
    return HANDLER_BYTES;
}

enum unwind_stop unwind_walk_sig(const struct unwind_start *start, const struct unwind_bounds *bounds,
                                 unwind_find_module find, uint32_t generation, struct unwind_path *path)
{
    struct walk w;
    w.path = path;
    w.at.bounds = bounds;
    w.at.find = find;
    begin(&w, start, generation);
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
