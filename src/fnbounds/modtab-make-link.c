/* SPDX-License-Identifier: BSD-3-Clause */
/* Unwind rows of machines with a link register: 64-bit Arm and POWER. A row says where the caller's stack pointer is,
 * and where the return address and the frame pointer have gone. Ordinary code, untrusted input.
 * src: DWARF for the Arm 64-bit Architecture, 64-bit ELF V2 ABI (register numbers) */
#include "fnbounds/modtab-rule.h"

#include <dwarf.h>

/* DWARF numbers of the registers that matter. */
struct link_machine {
    uint8_t sp, fp, link, n_registers;
};

static void set_cfa(struct modtab_row *row, Dwarf_Frame *frame, const struct link_machine *machine)
{
    Dwarf_Op *ops;
    size_t n;
    uint64_t reg;
    int64_t offset;
    if (dwarf_frame_cfa(frame, &ops, &n) != 0 || n != 1)
        return;
    if (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31) {
        reg = ops[0].atom - DW_OP_breg0;
        offset = (int64_t)ops[0].number;
    } else if (ops[0].atom == DW_OP_bregx) {
        reg = ops[0].number;
        offset = (int64_t)ops[0].number2;
    } else {
        return;
    }
    if (reg >= machine->n_registers || offset != (int32_t)offset)
        return;
    row->reg = (uint8_t)reg;
    row->cfa_offset = (int32_t)offset;
    row->kind = reg == machine->sp ? MODTAB_CFA_RSP : reg == machine->fp ? MODTAB_CFA_RBP : MODTAB_CFA_REG;
}

/* The word of a slot at CFA + value; false when a row cannot say it. */
static bool slot_word(const struct modtab_rule *rule, int16_t *word)
{
    if (rule->kind != MODTAB_RULE_CFA || rule->value % 8 != 0 || rule->value / 8 != (int16_t)(rule->value / 8))
        return false;
    *word = (int16_t)(rule->value / 8);
    return true;
}

static struct modtab_row row_of(Dwarf_Frame *frame, bool is_signal, const struct link_machine *machine)
{
    struct modtab_row row = {.kind = MODTAB_BAD};
    if (is_signal)
        return (struct modtab_row){.kind = MODTAB_SIGNAL};
    if (modtab_rule_is_undefined(frame, machine->link))
        return (struct modtab_row){.kind = MODTAB_END};
    set_cfa(&row, frame, machine);
    struct modtab_rule link = modtab_rule_of(frame, machine->link), fp = modtab_rule_of(frame, machine->fp);
    if (slot_word(&link, &row.rbx_offset)) {
        row.flags |= MODTAB_LINK_SAVED;
    } else if (link.kind == MODTAB_RULE_IN_REG && link.value < machine->n_registers) {
        row.flags |= MODTAB_RA_REG;
        row.extra = (int8_t)link.value;
    } else if (link.kind != MODTAB_RULE_SAME && (link.kind != MODTAB_RULE_IN_REG || link.value != machine->link)) {
        row.kind = MODTAB_BAD;
    }
    if (slot_word(&fp, &row.rbp_offset))
        row.flags |= MODTAB_RBP_SAVED;
    else if (fp.kind != MODTAB_RULE_SAME)
        row.flags |= MODTAB_RBP_LOST;
    return row.kind == MODTAB_BAD ? (struct modtab_row){.kind = MODTAB_BAD} : row;
}

struct modtab_row modtab_row_of_aarch64(Dwarf_Frame *frame, bool is_signal)
{
    static const struct link_machine machine = {.sp = 31, .fp = 29, .link = MODTAB_LINK_AARCH64, .n_registers = 32};
    return row_of(frame, is_signal, &machine);
}

struct modtab_row modtab_row_of_ppc64(Dwarf_Frame *frame, bool is_signal)
{
    static const struct link_machine machine = {.sp = 1, .fp = 31, .link = MODTAB_LINK_PPC64, .n_registers = 32};
    return row_of(frame, is_signal, &machine);
}
