/* SPDX-License-Identifier: BSD-3-Clause */
/* Register rules as libdw expresses them: see modtab-rule.h. Ordinary code, untrusted input. */
#include "fnbounds/modtab-rule.h"

#include <dwarf.h>

struct modtab_rule modtab_rule_of(Dwarf_Frame *frame, int reg)
{
    Dwarf_Op mem[3], *ops;
    size_t n;
    if (dwarf_frame_register(frame, reg, mem, &ops, &n) != 0)
        return (struct modtab_rule){MODTAB_RULE_LOST, 0};
    if (n == 0)
        return (struct modtab_rule){MODTAB_RULE_SAME, 0};
    if (n == 1 && ops[0].atom == DW_OP_call_frame_cfa)
        return (struct modtab_rule){MODTAB_RULE_CFA, 0};
    if (n == 1 && ops[0].atom == DW_OP_regx)
        return (struct modtab_rule){MODTAB_RULE_IN_REG, (int64_t)ops[0].number};
    if (n == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)
        return (struct modtab_rule){MODTAB_RULE_IN_REG, ops[0].atom - DW_OP_reg0};
    if (n == 2 && ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_plus_uconst)
        return (struct modtab_rule){MODTAB_RULE_CFA, (int64_t)ops[1].number};
    if (n == 2 && ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_breg6)
        return (struct modtab_rule){MODTAB_RULE_RBP_EXPR, (int64_t)ops[1].number};
    return (struct modtab_rule){MODTAB_RULE_LOST, 0};
}

bool modtab_rule_is_undefined(Dwarf_Frame *frame, int reg)
{
    Dwarf_Op mem[3], *ops;
    size_t n;
    return dwarf_frame_register(frame, reg, mem, &ops, &n) == 0 && n == 0 && ops != NULL;
}
