/* SPDX-License-Identifier: BSD-3-Clause */
/* Telling the first pass of a loop from the later ones: see recipe-guard.h. Ordinary code. */
#include "fnbounds/recipe-guard.h"

#define ENTRY_STEPS_MAX 16

/* True when every write of reg between head and back_edge adds a constant of one sign, and there is one. */
static bool is_counted(const struct flow *flow, uint32_t head, uint32_t back_edge, uint8_t reg)
{
    int sign = 0;
    for (uint32_t i = head; i <= back_edge; i++) {
        const struct insn *insn = &flow->insns[i];
        if (!(insn->writes & INSN_BIT(reg)))
            continue;
        const struct insn_effect *effect = NULL;
        for (unsigned e = 0; e < insn->n_effects; e++)
            if (insn->effects[e].kind == EFFECT_ADD && insn->effects[e].reg == reg)
                effect = &insn->effects[e];
        if (!effect || effect->source != RECIPE_NO_REG || !effect->value)
            return false;
        int step = effect->value > 0 ? 1 : -1;
        if (sign && step != sign)
            return false;
        sign = step;
    }
    return sign != 0;
}

static bool is_written(const struct flow *flow, uint32_t head, uint32_t back_edge, uint8_t reg)
{
    for (uint32_t i = head; i <= back_edge; i++)
        if (flow->insns[i].writes & INSN_BIT(reg))
            return true;
    return false;
}

bool recipe_guard_find(const struct flow *flow, uint32_t head, uint32_t back_edge, uint32_t entry,
                       struct recipe_guard *guard)
{
    uint64_t written = 0; /* between the instruction looked at and the head */
    uint32_t i = entry;
    for (unsigned step = 0; step < ENTRY_STEPS_MAX && i != INSN_NONE && i < head; step++) {
        const struct insn *insn = &flow->insns[i];
        for (unsigned e = 0; e < insn->n_effects; e++) {
            const struct insn_effect *effect = &insn->effects[e];
            bool is_copy = effect->kind == EFFECT_COPY && !effect->value && effect->source < 16 &&
                           !(written & INSN_BIT(effect->source)) && effect->source != effect->reg &&
                           !is_written(flow, head, back_edge, effect->source);
            if ((effect->kind != EFFECT_CONSTANT && !is_copy) || written & INSN_BIT(effect->reg) ||
                !is_counted(flow, head, back_edge, effect->reg))
                continue;
            *guard = (struct recipe_guard){.reg = effect->reg,
                                           .other = is_copy ? effect->source : RECIPE_NO_REG,
                                           .value = (uint32_t)effect->value};
            return true;
        }
        written |= insn->writes;
        if (insn->kind != INSN_PLAIN && insn->kind != INSN_NOP)
            written |= insn->kind == INSN_JCC || insn->kind == INSN_JMP ? 0 : UINT64_MAX;
        i = flow_is_target(flow, i) ? INSN_NONE : insn->pred;
    }
    return false;
}
