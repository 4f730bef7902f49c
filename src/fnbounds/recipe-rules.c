/* SPDX-License-Identifier: BSD-3-Clause */
/* From a sampled pc to the stalled instruction X (the dynamic predecessor), and from X to an operand: its own, or that
 * of the load which produced its inputs. Anything else stays without an address. */
#include "fnbounds/recipe-make.h"

#include <string.h>

#include "base/access-pattern.h"

#define FOLLOW_MAX 16
#define NOPS_MAX 4
#define ENTRY_SCORE_MIN 4 /* only what may wait long is worth telling apart */

static void put_pattern(struct recipe *out, uint64_t pattern)
{
    out->pattern_low = (uint32_t)pattern;
    out->pattern_high = (uint32_t)(pattern >> 32);
}

/* Gives the recipe the pattern of instruction x. A link that stands for the node it was read from is in some line of
 * its own, which is good enough; the start of an array stands for no line. */
static void set_pattern(const struct flow *flow, uint32_t x, struct recipe *out)
{
    const struct insn *insn = flow_insn(flow, x);
    uint64_t pattern = out->class == RECIPE_MEMORY ? stride_pattern(flow, x) : 0;
    bool is_inexact = out->operands[0].flags & RECIPE_OP_INEXACT, lost_index = false;
    for (unsigned o = 0; o < insn->n_operands && insn->kind != INSN_REP; o++)
        lost_index = lost_index || (insn->operands[o].scale && !out->operands[0].scale);
    if (out->class == RECIPE_DEPENDENT)
        put_pattern(out, pattern_make(PATTERN_FED, out->pc, 0, 8));
    if (out->class != RECIPE_MEMORY || !pattern || insn->n_operands != out->n_operands)
        return;
    if (is_inexact)
        pattern |= lost_index ? PATTERN_NO_LINE : PATTERN_PROXY;
    put_pattern(out, pattern);
    struct stride_step step = stride_step(flow, x);
    out->step = step.step;
    out->step_scale = step.scale;
}

static void set_operands(const struct flow *flow, const struct value_path *path, uint32_t pc, enum recipe_class class,
                         struct recipe *out)
{
    const struct insn *insn = flow_insn(flow, path->insns[0]);
    out->class = (uint8_t) class;
    for (unsigned o = 0; o < insn->n_operands; o++)
        if (value_solve(flow, path, o, pc, &out->operands[out->n_operands]))
            out->n_operands++;
    if (!out->n_operands) {
        out->class = RECIPE_LOST;
        memset(out->operands, 0, sizeof out->operands);
    }
}

/* An access to the stack made by a call or the return from it, relative to the stack pointer at the sampled pc. */
static void set_stack_word(struct recipe *out, int32_t disp, uint8_t flags)
{
    out->class = RECIPE_MEMORY;
    out->n_operands = 1;
    out->operands[0] = (struct recipe_operand){
        .base = RECIPE_RSP, .index = RECIPE_NO_REG, .flags = flags | RECIPE_OP_STACK, .disp = disp, .size_bytes = 8};
    put_pattern(out, pattern_make(PATTERN_FIXED, out->pc, 0, 8));
}

/* Operands of a repeated string operation: where it stands now, or, once it has ended, its last elements. */
static void set_string_operands(const struct insn *insn, bool has_ended, struct recipe *out)
{
    out->class = RECIPE_MEMORY;
    out->n_operands = insn->n_operands;
    memcpy(out->operands, insn->operands, sizeof out->operands);
    for (unsigned o = 0; o < insn->n_operands; o++) {
        out->operands[o].disp = has_ended ? -insn->operands[o].size_bytes : 0;
        out->operands[o].size_bytes = 0;
    }
}

static void path_prepend(struct value_path *path, uint32_t i)
{
    memmove(path->insns + 1, path->insns, path->n * sizeof path->insns[0]);
    path->insns[0] = i;
    path->n++;
}

static bool is_producer(const struct insn *insn, uint64_t wanted)
{
    if (!(insn->writes & wanted) || !insn->n_operands || insn->kind == INSN_CALL)
        return false;
    return insn->operands[0].flags & RECIPE_OP_READ;
}

/* Follows the inputs of the first instruction of the path back to the load that made them. */
static void follow_inputs(const struct flow *flow, struct value_path *path, uint32_t pc, struct recipe *out)
{
    const uint64_t no_data = INSN_BIT(RECIPE_RSP);
    uint64_t wanted = flow_insn(flow, path->insns[0])->reads & ~no_data;
    out->class = RECIPE_COMPUTE;
    for (unsigned step = 0; step < FOLLOW_MAX && wanted; step++) {
        uint32_t i = flow_pred(flow, path->insns[0]);
        if (i == INSN_NONE)
            return;
        const struct insn *insn = flow_insn(flow, i);
        path_prepend(path, i);
        if (is_producer(insn, wanted)) {
            set_operands(flow, path, pc, RECIPE_DEPENDENT, out);
            return;
        }
        if (insn->writes & wanted)
            wanted = (wanted & ~insn->writes) | (insn->reads & ~no_data);
    }
}

/* The instruction that retires together with the conditional jump i, or i itself. */
static uint32_t fused_with(const struct flow *flow, uint32_t i)
{
    if (flow->insns[i].kind == INSN_JCC && i && !flow_is_target(flow, i) && flow_insn(flow, i - 1)->is_fusible)
        return i - 1;
    return i;
}

/* Recipe under the assumption that instruction x ran right before the sampled pc. */
static void apply_pred(const struct flow *flow, uint32_t x, uint32_t pc, struct recipe *out)
{
    struct value_path path = {.n = 1, .insns = {x}};
    for (unsigned n = 0; n < NOPS_MAX && flow->insns[x].kind == INSN_NOP; n++) {
        uint32_t pred = flow_pred(flow, x);
        if (pred == INSN_NONE) {
            if (x == 0)
                set_stack_word(out, 0, RECIPE_OP_WRITE | RECIPE_OP_INEXACT);
            return;
        }
        x = pred;
        path_prepend(&path, x);
    }
    uint32_t fused = fused_with(flow, x);
    if (fused != x)
        path_prepend(&path, fused);
    const struct insn *insn = flow_insn(flow, fused);
    if (insn->kind == INSN_SYSCALL)
        out->class = RECIPE_SYSCALL;
    else if (insn->kind == INSN_CALL)
        set_stack_word(out, -8, RECIPE_OP_READ);
    else if (insn->kind == INSN_REP)
        set_string_operands(insn, true, out);
    else if (insn->n_operands)
        set_operands(flow, &path, pc, RECIPE_MEMORY, out);
    else
        follow_inputs(flow, &path, pc, out);
    set_pattern(flow, fused, out);
}

/* How likely it is that control which came this way waited here: a load more than its dependents, those more than
 * stores, stack words and plain computation. */
static int score(const struct recipe *recipe)
{
    switch (recipe->class) {
    case RECIPE_MEMORY:
        if (recipe->operands[0].flags & RECIPE_OP_STACK)
            return 1;
        return recipe->operands[0].flags & RECIPE_OP_READ ? 5 : 2;
    case RECIPE_DEPENDENT:
        return 4;
    case RECIPE_LOST:
        return 3;
    case RECIPE_SYSCALL:
        return 6;
    default:
        return 0;
    }
}

static bool same_operands(const struct recipe *a, const struct recipe *b)
{
    return a->n_operands == b->n_operands && !memcmp(a->operands, b->operands, sizeof a->operands);
}

/* Joins the patterns where control may have come from either: lines of the one stand for those of the other only when
 * both walk irregularly. */
static void join_patterns(struct recipe *best, const struct recipe *other)
{
    uint64_t a = (uint64_t)best->pattern_high << 32 | best->pattern_low;
    uint64_t b = (uint64_t)other->pattern_high << 32 | other->pattern_low;
    bool is_same = pattern_kind(a) == pattern_kind(b) && pattern_kind(a) != PATTERN_STRIDED;
    if (a != b || best->step != other->step || best->step_scale != other->step_scale)
        best->step_scale = 0;
    if (a != b)
        put_pattern(best, is_same && pattern_kind(a) != PATTERN_DERIVED ? a | PATTERN_PROXY : 0);
}

/* Best of several possible predecessors; where equally good ones disagree, the first one, marked inexact. */
static void apply_preds(const struct flow *flow, const uint32_t *preds, unsigned n, struct recipe *out)
{
    bool is_ambiguous = false;
    struct recipe best = {.pc = out->pc, .class = RECIPE_LOST};
    for (unsigned p = 0; p < n; p++) {
        struct recipe candidate = {.pc = out->pc, .class = RECIPE_COMPUTE};
        apply_pred(flow, preds[p], out->pc, &candidate);
        if (p && score(&candidate) == score(&best) && !same_operands(&candidate, &best)) {
            is_ambiguous = true;
            join_patterns(&best, &candidate);
        }
        if (!p || score(&candidate) > score(&best)) {
            best = candidate;
            is_ambiguous = false;
        }
    }
    for (unsigned o = 0; is_ambiguous && o < best.n_operands; o++)
        best.operands[o].flags |= RECIPE_OP_INEXACT;
    *out = best;
}

void recipe_rules_apply(const struct flow *flow, uint32_t i, struct recipe *out)
{
    const struct insn *insn = flow_insn(flow, i);
    uint32_t preds[FLOW_PREDS_MAX];
    *out = (struct recipe){.pc = insn->pc, .class = RECIPE_LOST};
    if (flow_is_waiting(flow, i)) {
        out->class = RECIPE_WAITING;
        return;
    }
    if (insn->kind == INSN_REP) {
        set_string_operands(insn, false, out);
        set_pattern(flow, i, out);
        return;
    }
    unsigned n = flow_preds(flow, i, preds);
    if (n)
        apply_preds(flow, preds, n, out);
    else if (i == 0)
        set_stack_word(out, 0, RECIPE_OP_WRITE | RECIPE_OP_INEXACT);
}

bool recipe_rules_entry(const struct flow *flow, uint32_t i, struct recipe *out)
{
    struct recipe_guard guard;
    struct recipe repeated;
    uint32_t back_edge, entry = flow_loop_entry(flow, i, &back_edge);
    if (entry == INSN_NONE || flow->insns[i].kind == INSN_REP || flow_is_waiting(flow, i))
        return false;
    *out = (struct recipe){.pc = flow->insns[i].pc, .class = RECIPE_COMPUTE};
    apply_pred(flow, entry, out->pc, out);
    recipe_rules_apply(flow, i, &repeated);
    if (score(out) < ENTRY_SCORE_MIN || same_operands(out, &repeated) ||
        !recipe_guard_find(flow, i, back_edge, entry, &guard))
        return false;
    out->guard_reg = guard.reg;
    out->guard_other = guard.other;
    out->guard_value = guard.value;
    return true;
}
