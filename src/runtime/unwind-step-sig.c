/* SPDX-License-Identifier: BSD-3-Clause */
/* One step of the unwinder by any rule: computed frame addresses, signal frames, and the guesses for code without
 * rule, a validated frame pointer and a leaf that has pushed nothing. Signal context. */
#include "runtime/unwind-internal.h"

#include "base/sigsafe.h"

/* The kernel's struct ucontext on x86-64: offset of uc_mcontext.gregs[] by DWARF register number; rip behind. */
static const uint8_t context_offset[17] = {144, 136, 152, 128, 112, 104, 120, 160, 40, 48, 56, 64, 72, 80, 88, 96, 168};
enum { CONTEXT_RIP = 16, RED_ZONE_BYTES = 128, FRAME_POINTERS_MAX = 64 };
#define PROLOGUE_BYTES_MAX 256 /* of a function without rule, in which it makes its frame */

bool unwind_enter_stack_sig(struct unwind_cursor *c)
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

/* Value of a DWARF register in the frame at *c; false when it is not known any more. */
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

/* Whether a call in known code returns to address. *is_known: a module holds it, call or not. */
static bool is_call_site(const struct unwind_cursor *c, uintptr_t address, bool *is_known)
{
    struct unwind_rule rule;
    unwind_rule_of(c, address - 1, &rule);
    *is_known = rule.kind != UNWIND_KIND_NO_MODULE;
    return *is_known && rule.follows_call;
}

bool unwind_validate_fp_sig(struct unwind_cursor *c)
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

/* Whether the function without rule that holds pc has made its frame by then: push rbp; mov rbp, rsp before pc. Its
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

/* Code without rule. What the guess rests on are words of the stack that the path's check reads again. */
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

bool unwind_step_sig(struct unwind_cursor *c, const struct unwind_rule *rule, struct unwind_frame *frame,
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
