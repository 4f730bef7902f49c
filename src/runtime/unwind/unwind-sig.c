/* SPDX-License-Identifier: BSD-3-Clause */
/* The walk over the frames of a thread, where calls push the return address: a single step by any rule, and the whole
 * walk, which reuses the last path. Signal context. */
#include "runtime/unwind/unwind.h"

#include "base/sigsafe.h"

/* --- one step --- */

/* One step of the unwinder by any rule: computed frame addresses, signal frames, and two guesses for code without a
 * rule: a validated frame pointer, and a leaf that has pushed nothing. Signal context. */

/* The kernel's struct ucontext on x86-64: offsets of uc_mcontext.gregs[] by DWARF register number; rip comes last. */
static const uint8_t context_offset[17] = {144, 136, 152, 128, 112, 104, 120, 160, 40, 48, 56, 64, 72, 80, 88, 96, 168};
enum { CONTEXT_RIP = 16, RED_ZONE_BYTES = 128, FRAME_POINTERS_MAX = 64 };
#define PROLOGUE_BYTES_MAX 256 /* of a function without a rule; it makes its frame within them */

/* Sets floor and ceiling for the stack that holds c->sp; false when no known one does.  ctx: signal handler */
static bool unwind_enter_stack_sig(struct unwind_cursor *c)
{
    const struct unwind_bounds *b = c->bounds;
    uintptr_t low = b->low, high = b->high;
    if (c->sp < low || c->sp >= high) {
        low = b->alt_low;
        high = b->alt_high;
    }
    if (c->sp < low || c->sp >= high || high - low < 16)
        return false;
    c->floor = c->sp - low > RED_ZONE_BYTES ? c->sp - RED_ZONE_BYTES : low;
    c->ceiling = high - 8;
    return c->floor <= c->ceiling;
}

/* Value of a DWARF register in the frame at *c; false when it is no longer known. */
static bool register_value(const struct unwind_cursor *c, unsigned reg, uint64_t *value)
{
    if (reg == UNWIND_RSP)
        *value = c->sp;
    else if (reg == UNWIND_RBP)
        *value = c->rbp;
    else if (reg == UNWIND_RBX)
        *value = c->rbx;
    else if (c->live == UNWIND_LIVE_CONTEXT && reg < 16)
        *value = *(const unwind_word *)(c->context + context_offset[reg]);
    else if (c->live == UNWIND_LIVE_START && reg < 16 && c->start->known >> reg & 1)
        *value = c->start->gpr[reg];
    else
        return false;
    return reg == UNWIND_RBP ? c->has_rbp : reg == UNWIND_RBX ? c->has_rbx : true;
}

static uint32_t need_flag(unsigned reg)
{
    return reg == UNWIND_RBP   ? UNWIND_FRAME_NEEDS_RBP
           : reg == UNWIND_RBX ? UNWIND_FRAME_NEEDS_RBX
           : reg == UNWIND_RSP ? 0
                               : UNWIND_FRAME_NEEDS_LIVE;
}

static unsigned base_register(const struct unwind_rule *rule)
{
    switch (rule->kind) {
    case MODTAB_CFA_RBP:
        return UNWIND_RBP;
    case MODTAB_CFA_RBX:
        return UNWIND_RBX;
    case MODTAB_CFA_REG:
    case MODTAB_CFA_DEREF:
        return rule->reg;
    default:
        return UNWIND_RSP;
    }
}

static enum unwind_stop find_cfa(const struct unwind_cursor *c, const struct unwind_rule *rule,
                                 struct unwind_frame *frame, struct unwind_regs *regs)
{
    unsigned reg = base_register(rule);
    uint64_t cfa;
    if (!register_value(c, reg, &cfa))
        return UNWIND_LOST_REGISTER;
    frame->flags |= need_flag(reg);
    if (rule->kind == MODTAB_CFA_PLT) {
        cfa += 8u + ((int32_t)(c->pc & 15) >= rule->cfa_offset ? 8u : 0u);
    } else {
        cfa += (uint64_t)(int64_t)rule->cfa_offset;
    }
    if (rule->kind == MODTAB_CFA_DEREF) {
        uint64_t slot = cfa;
        if (!unwind_read(c, slot, &cfa))
            return UNWIND_BAD_STACK;
        cfa += (uint64_t)(int64_t)rule->extra;
        frame->flags |= UNWIND_FRAME_LOADS_CFA;
        regs->cfa_slot = (int32_t)(slot - cfa);
        regs->cfa_extra = rule->extra;
    }
    frame->cfa = cfa;
    bool has_slot = !(rule->flags & MODTAB_RA_REG);
    return cfa < c->sp + (has_slot ? 8u : 0u) || cfa - 8 > c->ceiling ? UNWIND_BAD_STACK : UNWIND_COMPLETE;
}

/* Reads the caller's rbp and rbx into *c (both addresses are computed with the old rbp). */
static bool restore_registers(struct unwind_cursor *c, const struct unwind_rule *rule, struct unwind_frame *frame,
                              struct unwind_regs *regs)
{
    uint64_t old_rbp = c->rbp;
    bool had_rbp = c->has_rbp;
    if (rule->flags & (MODTAB_RBP_SAVED | MODTAB_RBP_EXPR)) {
        bool is_expr = rule->flags & MODTAB_RBP_EXPR;
        uintptr_t slot = (is_expr ? old_rbp : frame->cfa) + (uintptr_t)(intptr_t)rule->rbp_offset;
        if ((is_expr && !had_rbp) || !unwind_read(c, slot, &c->rbp))
            return false;
        regs->rbp_slot = (int32_t)(slot - frame->cfa);
        frame->flags |= UNWIND_FRAME_LOADS_RBP | (is_expr ? UNWIND_FRAME_NEEDS_RBP : 0);
        c->has_rbp = true;
    }
    if (rule->flags & (MODTAB_RBX_SAVED | MODTAB_RBX_EXPR)) {
        bool is_expr = rule->flags & MODTAB_RBX_EXPR;
        uintptr_t slot = (is_expr ? old_rbp : frame->cfa) + (uintptr_t)(intptr_t)rule->rbx_offset;
        if ((is_expr && !had_rbp) || !unwind_read(c, slot, &c->rbx))
            return false;
        regs->rbx_slot = (int32_t)(slot - frame->cfa);
        frame->flags |= UNWIND_FRAME_LOADS_RBX | (is_expr ? UNWIND_FRAME_NEEDS_RBP : 0);
        c->has_rbx = true;
    }
    if (rule->flags & MODTAB_RBP_REG) {
        frame->flags |= UNWIND_FRAME_NEEDS_LIVE;
        c->has_rbp = register_value(c, (unsigned)rule->rbp_offset, &c->rbp);
    }
    c->has_rbp = c->has_rbp && !(rule->flags & MODTAB_RBP_LOST);
    c->has_rbx = c->has_rbx && !(rule->flags & MODTAB_RBX_LOST);
    return true;
}

static enum unwind_stop step_by_row(struct unwind_cursor *c, const struct unwind_rule *rule, struct unwind_frame *frame,
                                    struct unwind_regs *regs)
{
    uint64_t caller;
    enum unwind_stop stop = find_cfa(c, rule, frame, regs);
    if (stop != UNWIND_COMPLETE) {
        frame->cfa = 0;
        return stop;
    }
    if (rule->flags & MODTAB_RA_REG) {
        frame->flags |= UNWIND_FRAME_NEEDS_LIVE;
        if (!register_value(c, (uint8_t)rule->extra, &caller))
            return UNWIND_LOST_REGISTER;
    } else if (!unwind_read(c, frame->cfa - 8, &caller)) {
        return UNWIND_BAD_STACK;
    }
    if (!restore_registers(c, rule, frame, regs))
        return UNWIND_BAD_STACK;
    c->pc = caller;
    c->sp = frame->cfa;
    c->is_interrupted = false;
    c->live = UNWIND_LIVE_NONE;
    return UNWIND_COMPLETE;
}

static enum unwind_stop step_over_signal(struct unwind_cursor *c, struct unwind_frame *frame)
{
    uintptr_t context = c->sp;
    uint64_t rip, rsp;
    if (!unwind_read(c, context, &rip) || !unwind_read(c, context + context_offset[CONTEXT_RIP], &rip) ||
        !unwind_read(c, context + context_offset[UNWIND_RSP], &rsp) ||
        !unwind_read(c, context + context_offset[UNWIND_RBP], &c->rbp) ||
        !unwind_read(c, context + context_offset[UNWIND_RBX], &c->rbx))
        return UNWIND_BAD_STACK;
    frame->flags |= UNWIND_FRAME_SIGNAL;
    frame->cfa = rsp;
    c->pc = rip;
    c->sp = rsp;
    c->has_rbp = c->has_rbx = c->is_interrupted = true;
    c->live = UNWIND_LIVE_CONTEXT;
    c->context = context;
    return unwind_enter_stack_sig(c) ? UNWIND_COMPLETE : UNWIND_BAD_STACK;
}

/* Whether a call in known code returns to address. *is_known: a module holds the address, whether or not a call
 * precedes it. */
static bool is_call_site(const struct unwind_cursor *c, uintptr_t address, bool *is_known)
{
    struct unwind_rule rule;
    unwind_rule_of(c, address - 1, &rule);
    *is_known = rule.kind != UNWIND_KIND_NO_MODULE;
    return *is_known && rule.follows_call;
}

/* Follows the chain of frame pointers from rbp through generated code until it reaches a call in known code; true when
 * it does. Frames of the same chain are not checked again.  ctx: signal handler */
static bool unwind_validate_fp_sig(struct unwind_cursor *c)
{
    uint64_t fp = c->rbp, caller, outer;
    bool is_known;
    if (!c->has_rbp || fp < c->sp)
        return false;
    if (fp <= c->fp_valid)
        return true;
    for (int i = 0; i < FRAME_POINTERS_MAX; i++) {
        if (fp & 7 || !unwind_read(c, fp + 8, &caller) || !unwind_read(c, fp, &outer))
            return false;
        if (is_call_site(c, caller, &is_known)) {
            c->fp_valid = fp;
            return true;
        }
        if (is_known || outer <= fp)
            return false;
        fp = outer;
    }
    return false;
}

static bool leaf_returns(const struct unwind_cursor *c)
{
    uint64_t caller;
    bool is_known;
    return c->is_interrupted && unwind_read(c, c->sp, &caller) && is_call_site(c, caller, &is_known);
}

/* Whether the function without a rule that holds pc has already made its frame: push rbp; mov rbp, rsp before pc. Its
 * bytes are mapped. */
static bool has_made_frame(const struct unwind_module *module, uintptr_t pc)
{
    static const uint8_t forms[2][4] = {{0x55, 0x48, 0x89, 0xe5}, {0x55, 0x48, 0x8b, 0xec}};
    const struct modtab_header *table = module ? module->table : NULL;
    int64_t func = table ? modtab_find_func(table, pc - module->bias) : -1;
    if (func < 0)
        return false;
    const uint8_t *p = (const uint8_t *)(module->bias + table->base_vaddr + modtab_funcs(table)[func].start);
    for (unsigned i = 0; i < PROLOGUE_BYTES_MAX && (uintptr_t)p + 4 <= pc; i++, p++)
        if (memcmp(p, forms[0], 4) == 0 || memcmp(p, forms[1], 4) == 0)
            return true;
    return false;
}

/* A step in code without a rule. The guess depends only on stack words that the check of the last path reads again. */
static enum unwind_stop step_by_guess(struct unwind_cursor *c, enum unwind_stop reason, struct unwind_frame *frame,
                                      struct unwind_regs *regs)
{
    static const struct unwind_rule leaf = {.kind = MODTAB_CFA_RSP, .cfa_offset = 8};
    static const struct unwind_rule framed = {
        .kind = MODTAB_CFA_RBP, .cfa_offset = 16, .rbp_offset = -16, .flags = MODTAB_RBP_SAVED | MODTAB_RBX_LOST};
    if (reason != UNWIND_GAP && unwind_validate_fp_sig(c))
        return step_by_row(c, &framed, frame, regs);
    if (leaf_returns(c))
        return step_by_row(c, &leaf, frame, regs);
    if (reason == UNWIND_GAP && has_made_frame(frame->module, c->is_interrupted ? c->pc : c->pc - 1) &&
        unwind_validate_fp_sig(c))
        return step_by_row(c, &framed, frame, regs);
    return reason;
}

/* One step from the frame at *c to its caller by any rule. Fills frame->cfa, the unwinder's flags and *regs. Returns
 * true when *c is now the caller, else false with *stop set.  ctx: signal handler */
static bool unwind_step_sig(struct unwind_cursor *c, const struct unwind_rule *rule, struct unwind_frame *frame,
                            struct unwind_regs *regs, enum unwind_stop *stop)
{
    uintptr_t fp_valid = c->fp_valid;
    c->fp_valid = 0;
    switch (rule->kind) {
    case MODTAB_END:
        *stop = UNWIND_COMPLETE;
        return false;
    case MODTAB_GAP:
        *stop = step_by_guess(c, UNWIND_GAP, frame, regs);
        break;
    case UNWIND_KIND_NO_TABLE:
    case UNWIND_KIND_NO_MODULE:
        c->fp_valid = fp_valid;
        *stop = step_by_guess(c, rule->kind == UNWIND_KIND_NO_TABLE ? UNWIND_NO_TABLE : UNWIND_NO_MODULE, frame, regs);
        break;
    case MODTAB_SIGNAL:
        *stop = step_over_signal(c, frame);
        break;
    case MODTAB_BAD:
        *stop = UNWIND_BAD_ROW;
        break;
    default:
        *stop = rule->kind < MODTAB_BAD ? step_by_row(c, rule, frame, regs) : UNWIND_BAD_ROW;
    }
    return *stop == UNWIND_COMPLETE;
}

bool unwind_hop_sig(uintptr_t pc, unwind_find_module find, uint32_t generation, struct unwind_hop *hop)
{
    struct unwind_cursor c = {.find = find, .generation = generation, .slots = unwind_slots_sig()};
    struct unwind_rule rule;
    unwind_rule_of(&c, pc - 1, &rule);
    if ((rule.kind != MODTAB_CFA_RSP && rule.kind != MODTAB_CFA_RBP) ||
        rule.flags & (uint8_t) ~(MODTAB_RBP_SAVED | MODTAB_RBX_SAVED))
        return false;
    *hop = (struct unwind_hop){.cfa_offset = rule.cfa_offset,
                               .fp_offset = rule.rbp_offset,
                               .is_from_fp = rule.kind == MODTAB_CFA_RBP,
                               .has_fp = rule.flags & MODTAB_RBP_SAVED};
    return true;
}

/* --- the walk --- */

/* The walk over the frames of a thread, which remembers the last path. A walk depends only on pc, stack pointer, at
 * most rbp and rbx, and the stack words that it reads. So where a frame equals a frame of the last path, in the same
 * state, and no word that was read from there outwards has changed, the rest of the path is the same and is reused.
 * Signal context. */

#define HANDLER_BYTES 4096 /* of stack: the kernel gives a handler little more than its own frame */

/* A walk in progress: the old path is store[old_base .. + n_old), the new frames are store[base .. + n_new). */
struct unwind_state {
    struct unwind_cursor at;
    struct unwind_path *path;
    uint32_t base, n_new, n_room;
    uint32_t old_base, n_old, old; /* old: index of the first old frame that may still be met */
    uintptr_t old_sp;              /* its stack pointer, the highest address when there is none */
    uint32_t first_plain;
    bool is_met;
    enum unwind_stop stop;
};

/* A step by the two rules that nearly all frames have, without the bookkeeping of registers that other rules need. */
static inline bool step(struct unwind_state *w, const struct unwind_rule *rule, struct unwind_frame *frame,
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

/* Whether the stack words that an old frame depends on, apart from the return address, are unchanged. The caller's
 * registers are in regs[1]. */
static bool loads_hold(const struct unwind_state *w, const struct unwind_frame *frame, const struct unwind_regs *regs)
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

/* Whether the outermost old frame is still the end of the path, as far as the stack shows it. */
static bool end_holds(const struct unwind_state *w, const struct unwind_frame *last, const struct unwind_regs *regs)
{
    uint64_t value;
    return !(last->flags & UNWIND_FRAME_ENDS_IN_ZERO) ||
           (unwind_read(&w->at, last->cfa - 8, &value) && value == 0 && loads_hold(w, last, regs));
}

/* Compares the return addresses of four frames with the old path: 0 when all are the same and no frame has loaded
 * registers of its caller. */
static inline uint64_t four_differ(const struct unwind_frame *f)
{
    uint64_t differ = (word_at(f[0].cfa - 8) ^ f[1].pc) | (word_at(f[1].cfa - 8) ^ f[2].pc) |
                      (word_at(f[2].cfa - 8) ^ f[3].pc) | (word_at(f[3].cfa - 8) ^ f[4].pc);
    return differ | ((f[0].flags | f[1].flags | f[2].flags | f[3].flags) & LOADS);
}

/* Whether the old path is unchanged from frame first outwards. If not, *resume is the first frame that can still match:
 * the one after the word that has changed. */
static bool old_holds(const struct unwind_state *w, uint32_t first, uint32_t *resume)
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

/* Whether the frame at the cursor is this old frame, with the same state in all that its callers depend on. */
static bool is_same_frame(const struct unwind_cursor *c, const struct unwind_frame *frame,
                          const struct unwind_regs *regs)
{
    return frame->pc == c->pc && !(frame->flags & UNWIND_FRAME_NEEDS_LIVE) &&
           !!(frame->flags & UNWIND_FRAME_INTERRUPTED) == c->is_interrupted &&
           (!(frame->flags & UNWIND_FRAME_NEEDS_RBP) || (c->has_rbp && c->rbp == regs->rbp)) &&
           (!(frame->flags & UNWIND_FRAME_NEEDS_RBX) || (c->has_rbx && c->rbx == regs->rbx));
}

/* Makes old frame i the next candidate, or none. */
static inline void set_old(struct unwind_state *w, uint32_t i)
{
    w->old = i;
    w->old_sp = i >= w->n_old ? UINTPTR_MAX : i ? w->path->store[w->old_base + i - 1].cfa : w->path->start_sp;
}

/* Whether the old frames from w->old on and the new frames can be brought together: by copying the new ones in front of
 * the old, or the old ones after the new. */
static inline bool can_join(const struct unwind_state *w)
{
    return w->old_base + w->old >= w->n_new || w->base + w->n_new + w->n_old - w->old <= UNWIND_FRAMES_MAX;
}

/* Looks for the frame at the cursor in the old path; true when the rest can be reused from w->old on. */
static bool meets_old(struct unwind_state *w)
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

/* The new path gets the larger free part of the store, before or after the old path. */
static void find_room(struct unwind_state *w)
{
    uint32_t behind = UNWIND_FRAMES_MAX - w->old_base - w->n_old;
    w->base = behind >= w->old_base ? w->old_base + w->n_old : 0;
    w->n_room = behind >= w->old_base ? behind : w->old_base;
    set_old(w, w->path->first_plain);
}

/* Makes room for one more new frame and gives up the old path if it is in the way; false when the path is too deep. */
static bool make_room(struct unwind_state *w)
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

/* Whether the return address at the cursor is plausible: it follows a call, or starts a trampoline, or lies in
 * generated code whose frame pointers lead back to known code. */
static inline bool is_caller(struct unwind_state *w, const struct unwind_rule *rule)
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
static inline bool add_frame(struct unwind_state *w)
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

/* Walks until the end, or until a frame of the old path is reached. */
static void walk_new(struct unwind_state *w)
{
    do {
        if (w->old_sp <= w->at.sp && meets_old(w)) {
            w->is_met = true;
            return;
        }
        w->stop = UNWIND_TOO_DEEP;
    } while (make_room(w) && add_frame(w));
}

/* Notes for each new frame, from the outermost inwards, what its callers depend on. */
static void settle_needs(struct unwind_state *w)
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

/* Joins the new frames and the reused part of the old path; the reused part mostly stays in place. */
static void join(struct unwind_state *w)
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
static void walk_start_only(struct unwind_state *w)
{
    struct unwind_rule rule;
    unwind_rule_of(&w->at, w->at.is_interrupted ? w->at.pc : w->at.pc - 1, &rule);
    w->base = 0;
    w->n_new = 1;
    w->path->store[0] = (struct unwind_frame){
        .pc = w->at.pc, .module = rule.module, .flags = w->at.is_interrupted ? UNWIND_FRAME_INTERRUPTED : 0};
}

/* Sets each member by itself: clearing the whole struct first would cost as much as twenty frames of an unchanged path.
 */
static inline void begin(struct unwind_state *w, const struct unwind_start *start, uint32_t generation)
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

bool unwind_is_same_sig(uintptr_t pc, uintptr_t sp, uintptr_t fp, const struct unwind_bounds *bounds,
                        uint32_t generation, struct unwind_path *path)
{
    if (!path->n_frames || path->stop != UNWIND_COMPLETE || path->generation != generation || path->start_sp != sp ||
        path->first_plain || sp < bounds->low || sp >= bounds->high || bounds->high - bounds->low < 16)
        return false;
    struct unwind_state w;
    w.path = path;
    w.old_base = (uint32_t)(path->frames - path->store);
    w.n_old = path->n_frames;
    const struct unwind_frame *frame = path->frames;
    if (frame->pc != pc ||
        frame->flags & (UNWIND_FRAME_INTERRUPTED | UNWIND_FRAME_NEEDS_LIVE | UNWIND_FRAME_NEEDS_RBX) ||
        (frame->flags & UNWIND_FRAME_NEEDS_RBP && path->regs[w.old_base].rbp != fp))
        return false;
    w.at.floor = sp;
    w.at.ceiling = bounds->high - 8;
    uint32_t resume;
    if (!old_holds(&w, 0, &resume))
        return false;
    path->n_reused = path->n_frames;
    return true;
}

size_t unwind_handler_bytes_sig(void)
{
    return HANDLER_BYTES;
}

enum unwind_stop unwind_walk_sig(const struct unwind_start *start, const struct unwind_bounds *bounds,
                                 unwind_find_module find, uint32_t generation, struct unwind_path *path)
{
    struct unwind_state w;
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
