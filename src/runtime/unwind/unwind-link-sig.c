/* SPDX-License-Identifier: BSD-3-Clause */
/* The walk over the frames of a thread where calls leave the return address in a link register (Arm, POWER): by the
 * rows of the module tables, by the back chain where the architecture has one, and, for code without a rule, by frame
 * records that lead back to known code. Every path is walked from the start; nothing is reused. Signal context.
 * In the cursor, rbp is the frame pointer; other registers are known in an interrupted frame only. */
#include "runtime/own/arch.h"
#include "runtime/unwind/unwind.h"

#include "base/sigsafe.h"

#define HANDLER_BYTES 4096 /* of stack: the kernel gives a handler little more than its own frame */

enum {
    RECORDS_MAX = 64,
    LINK_SAVED = 16,      /* in the caller's frame, where there is a back chain */
    RED_ZONE_BYTES = 512, /* leaf functions of POWER save registers in the 288 bytes below the stack pointer */
};

struct link_unwind_state {
    struct unwind_cursor at;
    struct unwind_path *path;
    uint32_t n;
    bool has_sp; /* false once a frame record was followed: only its address is known, the stack pointer is above it */
};

/* The caller's frame, which a step leads to. */
struct caller {
    uintptr_t cfa;
    uint64_t pc;
};

static bool enter_stack(struct unwind_cursor *c)
{
    const struct unwind_bounds *b = c->bounds;
    bool is_own = c->sp >= b->low && c->sp < b->high;
    uintptr_t low = is_own ? b->low : b->alt_low, high = is_own ? b->high : b->alt_high;
    if (!is_own && (c->sp < b->alt_low || c->sp >= b->alt_high))
        return false;
    c->floor = c->sp - low > RED_ZONE_BYTES ? c->sp - RED_ZONE_BYTES : low;
    c->ceiling = high - 8;
    return c->floor <= c->ceiling;
}

/* Value of a register of the interrupted frame. */
static bool live_register(const struct unwind_cursor *c, unsigned reg, uint64_t *value)
{
    if (c->live == UNWIND_LIVE_START && reg < UNWIND_REGISTERS && c->start->known >> reg & 1) {
        *value = c->start->gpr[reg];
        return true;
    }
    if (c->live != UNWIND_LIVE_CONTEXT || reg >= UNWIND_REGISTERS)
        return false;
    const struct arch_signal_frame *frame = arch_signal_frame_sig();
    *value = *(const unwind_word *)(c->context + frame->registers_offset + 8 * (reg == UNWIND_LR ? frame->lr : reg));
    return true;
}

static bool base_value(const struct link_unwind_state *w, const struct unwind_rule *rule, uint64_t *value)
{
    const struct unwind_cursor *c = &w->at;
    *value = rule->kind == MODTAB_CFA_RSP ? c->sp : c->rbp;
    if (rule->kind == MODTAB_CFA_RSP)
        return w->has_sp;
    if (rule->kind == MODTAB_CFA_RBP)
        return c->has_rbp;
    return live_register(c, rule->reg, value);
}

/* Finds the return address: in memory, in another register, or still in the link register. */
static enum unwind_stop find_return(const struct unwind_cursor *c, const struct unwind_rule *rule, uintptr_t cfa,
                                    uint64_t *pc)
{
    if (rule->flags & MODTAB_LINK_SAVED)
        return unwind_read(c, cfa + 8 * (uintptr_t)(intptr_t)rule->rbx_offset, pc) ? UNWIND_COMPLETE : UNWIND_BAD_STACK;
    unsigned reg = rule->flags & MODTAB_RA_REG ? (uint8_t)rule->extra : UNWIND_LR;
    return live_register(c, reg, pc) ? UNWIND_COMPLETE : UNWIND_LOST_REGISTER;
}

static bool restore_frame_pointer(struct unwind_cursor *c, const struct unwind_rule *rule, uintptr_t cfa)
{
    if (rule->flags & MODTAB_RBP_SAVED) {
        c->has_rbp = true;
        return unwind_read(c, cfa + 8 * (uintptr_t)(intptr_t)rule->rbp_offset, &c->rbp);
    }
    c->has_rbp = c->has_rbp && !(rule->flags & MODTAB_RBP_LOST);
    return true;
}

static enum unwind_stop step_by_row(struct link_unwind_state *w, const struct unwind_rule *rule, struct caller *caller)
{
    uint64_t cfa;
    if (!base_value(w, rule, &cfa))
        return UNWIND_LOST_REGISTER;
    cfa += (uint64_t)(int64_t)rule->cfa_offset;
    if (cfa < w->at.sp + (w->at.is_interrupted ? 0u : 8u) || cfa > w->at.ceiling + 8)
        return UNWIND_BAD_STACK;
    caller->cfa = cfa;
    enum unwind_stop stop = find_return(&w->at, rule, cfa, &caller->pc);
    if (stop == UNWIND_COMPLETE && !restore_frame_pointer(&w->at, rule, cfa))
        stop = UNWIND_BAD_STACK;
    return stop;
}

static enum unwind_stop step_by_chain(struct link_unwind_state *w, struct caller *caller)
{
    uint64_t above;
    if (!unwind_read(&w->at, w->at.sp, &above))
        return UNWIND_BAD_STACK;
    caller->cfa = above;
    caller->pc = 0;
    if (above == 0)
        return UNWIND_COMPLETE;
    w->at.has_rbp = false;
    return above > w->at.sp && unwind_read(&w->at, above + LINK_SAVED, &caller->pc) ? UNWIND_COMPLETE
                                                                                    : UNWIND_BAD_STACK;
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

/* A frame record is the caller's frame pointer and the return address. It holds when the records that it leads to reach
 * a call in known code. */
static bool validate_records(const struct unwind_cursor *c)
{
    uint64_t fp = c->rbp, pc, outer;
    bool is_known;
    if (!c->has_rbp || fp < c->sp)
        return false;
    for (int i = 0; i < RECORDS_MAX; i++) {
        if (fp & 7 || !unwind_read(c, fp + 8, &pc) || !unwind_read(c, fp, &outer))
            return false;
        if (is_call_site(c, arch_return_address_sig(pc), &is_known))
            return true;
        if (is_known || outer <= fp)
            return false;
        fp = outer;
    }
    return false;
}

static enum unwind_stop step_by_record(struct link_unwind_state *w, enum unwind_stop reason, struct caller *caller)
{
    uint64_t fp = w->at.rbp;
    if (w->at.has_rbp && fp == 0)
        return UNWIND_COMPLETE; /* caller->pc is 0: the outermost frame has no record */
    if (!validate_records(&w->at))
        return reason;
    if (!unwind_read(&w->at, fp + 8, &caller->pc) || !unwind_read(&w->at, fp, &w->at.rbp))
        return UNWIND_BAD_STACK;
    caller->cfa = fp + 16;
    w->has_sp = false;
    return UNWIND_COMPLETE;
}

/* Whether link, the address in the link register, belongs to the caller and is not left over from a call that the
 * function at pc has made. A left-over one lies in the function itself; without a table we only know its module. */
static bool is_of_caller(const struct unwind_module *module, uintptr_t pc, uintptr_t link)
{
    if (!module || link < module->start || link >= module->end)
        return true;
    const struct modtab_header *table = atomic_load_explicit(&module->table, memory_order_acquire);
    return table && modtab_find_func(table, pc - module->bias) != modtab_find_func(table, link - 1 - module->bias);
}

/* A step in code without a rule. An interrupted leaf still has its return address in the link register. */
static enum unwind_stop step_by_guess(struct link_unwind_state *w, const struct unwind_rule *rule,
                                      struct caller *caller)
{
    struct unwind_cursor *c = &w->at;
    bool is_known;
    enum unwind_stop reason = rule->kind == MODTAB_GAP             ? UNWIND_GAP
                              : rule->kind == UNWIND_KIND_NO_TABLE ? UNWIND_NO_TABLE
                                                                   : UNWIND_NO_MODULE;
    if (c->is_interrupted && live_register(c, UNWIND_LR, &caller->pc)) {
        uintptr_t link = arch_return_address_sig(caller->pc);
        if (is_call_site(c, link, &is_known) && is_of_caller(rule->module, c->pc, link)) {
            caller->cfa = c->sp;
            return UNWIND_COMPLETE;
        }
    }
    return arch_has_back_chain_sig() ? step_by_chain(w, caller) : step_by_record(w, reason, caller);
}

/* Whether the registers of the interrupted code lie at this address of the stack; where there is a back chain, it must
 * agree. */
static bool is_context(const struct unwind_cursor *c, const struct arch_signal_frame *layout, uintptr_t context)
{
    uintptr_t registers = context + layout->registers_offset;
    uint64_t pc, sp, above;
    return unwind_read(c, context, &pc) && unwind_read(c, registers + 8u * layout->pc, &pc) &&
           unwind_read(c, registers + 8u * layout->lr, &pc) && unwind_read(c, registers + 8u * layout->sp, &sp) &&
           (!arch_has_back_chain_sig() || (unwind_read(c, c->sp, &above) && sp == above));
}

static enum unwind_stop step_over_signal(struct link_unwind_state *w, struct unwind_frame *frame)
{
    struct unwind_cursor *c = &w->at;
    const struct arch_signal_frame *layout = arch_signal_frame_sig();
    uintptr_t context = c->sp + layout->context_offset;
    if (!w->has_sp)
        return UNWIND_LOST_REGISTER;
    if (!is_context(c, layout, context) && !is_context(c, layout, context += layout->other_offset))
        return UNWIND_BAD_STACK;
    const unwind_word *registers = (const unwind_word *)(context + layout->registers_offset);
    frame->flags |= UNWIND_FRAME_SIGNAL;
    frame->cfa = c->sp = registers[layout->sp];
    c->pc = registers[layout->pc];
    c->rbp = registers[layout->fp];
    c->has_rbp = c->is_interrupted = true;
    c->live = UNWIND_LIVE_CONTEXT;
    c->context = context;
    return enter_stack(c) ? UNWIND_COMPLETE : UNWIND_BAD_STACK;
}

static enum unwind_stop find_caller(struct link_unwind_state *w, const struct unwind_rule *rule, struct caller *caller)
{
    if (rule->kind == MODTAB_BAD)
        return UNWIND_BAD_ROW;
    if (arch_has_back_chain_sig() && !w->at.is_interrupted)
        return step_by_chain(w, caller);
    if (rule->kind == MODTAB_GAP || rule->kind >= UNWIND_KIND_NO_TABLE)
        return step_by_guess(w, rule, caller);
    if (!w->has_sp && rule->kind == MODTAB_CFA_RSP)
        return step_by_record(w, UNWIND_LOST_REGISTER, caller);
    return rule->kind < MODTAB_CFA_DEREF ? step_by_row(w, rule, caller) : UNWIND_BAD_ROW;
}

/* Goes from the frame at the cursor to its caller. */
static enum unwind_stop step(struct link_unwind_state *w, const struct unwind_rule *rule, struct unwind_frame *frame)
{
    struct unwind_cursor *c = &w->at;
    struct caller caller = {0, 0};
    if (rule->kind == MODTAB_SIGNAL)
        return step_over_signal(w, frame);
    enum unwind_stop stop = find_caller(w, rule, &caller);
    if (stop != UNWIND_COMPLETE)
        return stop;
    frame->cfa = caller.cfa;
    c->pc = arch_return_address_sig(caller.pc);
    c->sp = caller.cfa;
    c->is_interrupted = false;
    c->live = UNWIND_LIVE_NONE;
    return UNWIND_COMPLETE;
}

/* Whether the code at the cursor can be a caller: it follows a call, or is where a signal handler returns to, or lies
 * in generated code that leads back to known code. */
static bool is_caller(const struct link_unwind_state *w, const struct unwind_rule *rule)
{
    return rule->follows_call || w->n == 0 || w->at.is_interrupted || rule->kind == MODTAB_SIGNAL ||
           rule->kind == MODTAB_END ||
           (rule->kind == UNWIND_KIND_NO_MODULE && (arch_has_back_chain_sig() || validate_records(&w->at)));
}

/* Adds the frame at the cursor and goes on to its caller; false at the end. */
static bool add_frame(struct link_unwind_state *w)
{
    struct unwind_cursor *c = &w->at;
    struct unwind_rule rule;
    unwind_rule_of(c, c->is_interrupted ? c->pc : c->pc - 1, &rule);
    if (!is_caller(w, &rule)) {
        w->path->stop = rule.kind == UNWIND_KIND_NO_MODULE ? UNWIND_NO_MODULE : UNWIND_BAD_CALLER;
        return false;
    }
    struct unwind_frame *frame = &w->path->store[w->n++];
    *frame = (struct unwind_frame){
        .pc = c->pc, .module = rule.module, .flags = c->is_interrupted ? UNWIND_FRAME_INTERRUPTED : 0};
    if (rule.kind == MODTAB_END) {
        w->path->stop = UNWIND_COMPLETE;
        return false;
    }
    w->path->stop = step(w, &rule, frame);
    return w->path->stop == UNWIND_COMPLETE && c->pc != 0;
}

static void begin(struct link_unwind_state *w, const struct unwind_start *start, uint32_t generation)
{
    w->at.pc = start->pc;
    w->at.sp = start->gpr[UNWIND_SP];
    w->at.rbp = start->gpr[UNWIND_FP];
    w->at.has_rbp = start->known >> UNWIND_FP & 1;
    w->at.is_interrupted = start->is_interrupted;
    w->at.live = UNWIND_LIVE_START;
    w->at.start = start;
    w->at.slots = unwind_slots_sig();
    w->at.generation = generation;
    w->n = 0;
    w->has_sp = true;
}

size_t unwind_handler_bytes_sig(void)
{
    return HANDLER_BYTES;
}

enum unwind_stop unwind_walk_sig(const struct unwind_start *start, const struct unwind_bounds *bounds,
                                 unwind_find_module find, uint32_t generation, struct unwind_path *path)
{
    struct link_unwind_state w = {.path = path, .at = {.bounds = bounds, .find = find}};
    begin(&w, start, generation);
    if (enter_stack(&w.at)) {
        while (add_frame(&w)) {
            path->stop = UNWIND_TOO_DEEP;
            if (w.n == UNWIND_FRAMES_MAX)
                break;
        }
    } else {
        struct unwind_rule rule;
        unwind_rule_of(&w.at, start->is_interrupted ? start->pc : start->pc - 1, &rule);
        path->store[w.n++] = (struct unwind_frame){
            .pc = start->pc, .module = rule.module, .flags = start->is_interrupted ? UNWIND_FRAME_INTERRUPTED : 0};
        path->stop = UNWIND_BAD_STACK;
    }
    path->frames = path->store;
    path->n_frames = w.n;
    path->n_reused = path->first_plain = 0;
    path->start_sp = start->gpr[UNWIND_SP];
    path->generation = generation;
    return (enum unwind_stop)path->stop;
}

/* Not available here: callers do a walk instead. */
bool unwind_is_same_sig(uintptr_t pc, uintptr_t sp, uintptr_t fp, const struct unwind_bounds *bounds,
                        uint32_t generation, struct unwind_path *path)
{
    (void)pc;
    (void)sp;
    (void)fp;
    (void)bounds;
    (void)generation;
    (void)path;
    return false;
}

bool unwind_hop_sig(uintptr_t pc, unwind_find_module find, uint32_t generation, struct unwind_hop *hop)
{
    (void)pc;
    (void)find;
    (void)generation;
    (void)hop;
    return false;
}
