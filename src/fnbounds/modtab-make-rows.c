/* SPDX-License-Identifier: BSD-3-Clause */
/* Unwind rows: every row of every FDE as libdw computes it, translated into the 16 bytes that the unwinder interprets;
 * here with the translation of x86-64 (others: modtab-make-link.c). What cannot be said in a row is MODTAB_BAD: the
 * walk stops there and is counted, it never guesses. Ordinary code, untrusted input. */
#include "fnbounds/modtab-make.h"
#include "fnbounds/modtab-rule.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

enum { REG_RBX = 3, REG_RBP = 6, REG_RSP = 7, REG_RA = 16 };

/* libdw runs an FDE's program from its start for each row: a hostile one with very many would take hours. */
#define ROWS_PER_FDE_MAX 20000
/* Alignment between functions; not worth two rows when the row before it is the plain one. */
#define PADDING_MAX 16

/* Where rbp or rbx of the caller is; the flags are those of rbp or rbx. */
static int16_t saved_register(struct modtab_row *row, struct modtab_rule rule, int reg, uint8_t saved, uint8_t expr,
                              uint8_t lost)
{
    if (rule.kind == MODTAB_RULE_SAME || (rule.kind == MODTAB_RULE_IN_REG && rule.value == reg))
        return 0;
    if (rule.value < INT16_MIN || rule.value > INT16_MAX ||
        (rule.kind != MODTAB_RULE_CFA && rule.kind != MODTAB_RULE_RBP_EXPR)) {
        row->flags |= lost;
        return 0;
    }
    row->flags |= rule.kind == MODTAB_RULE_CFA ? saved : expr;
    return (int16_t)rule.value;
}

/* The expression that the linker writes for PLT entries: rsp + 8 + ((rip & 15) >= N ? 8 : 0). */
static bool is_plt(const Dwarf_Op *ops, size_t n, struct modtab_row *row)
{
    static const uint8_t atoms[] = {DW_OP_breg7, DW_OP_breg16, DW_OP_lit15, DW_OP_and, 0,
                                    DW_OP_ge,    DW_OP_lit3,   DW_OP_shl,   DW_OP_plus};
    if (n != sizeof atoms || ops[0].number != 8 || ops[1].number != 0 || ops[4].atom < DW_OP_lit0 ||
        ops[4].atom > DW_OP_lit31)
        return false;
    for (size_t i = 0; i < n; i++)
        if (i != 4 && ops[i].atom != atoms[i])
            return false;
    row->kind = MODTAB_CFA_PLT;
    row->cfa_offset = ops[4].atom - DW_OP_lit0;
    return true;
}

/* Splits "register + offset"; false when op is something else or out of range. */
static bool base_register(const Dwarf_Op *op, struct modtab_row *row)
{
    int64_t offset;
    if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg15) {
        row->reg = (uint8_t)(op->atom - DW_OP_breg0);
        offset = (int64_t)op->number;
    } else if (op->atom == DW_OP_bregx && op->number < 16) {
        row->reg = (uint8_t)op->number;
        offset = (int64_t)op->number2;
    } else {
        return false;
    }
    row->cfa_offset = (int32_t)offset;
    return offset == (int32_t)offset;
}

static void set_cfa(struct modtab_row *row, Dwarf_Frame *frame)
{
    Dwarf_Op *ops;
    size_t n;
    row->kind = MODTAB_BAD;
    if (dwarf_frame_cfa(frame, &ops, &n) != 0 || n == 0 || is_plt(ops, n, row) || !base_register(&ops[0], row))
        return;
    if (n == 1)
        row->kind = row->reg == REG_RSP   ? MODTAB_CFA_RSP
                    : row->reg == REG_RBP ? MODTAB_CFA_RBP
                    : row->reg == REG_RBX ? MODTAB_CFA_RBX
                                          : MODTAB_CFA_REG;
    else if (ops[1].atom != DW_OP_deref)
        return;
    else if (n == 2)
        row->kind = MODTAB_CFA_DEREF;
    else if (n == 3 && ops[2].atom == DW_OP_plus_uconst && ops[2].number <= INT8_MAX) {
        row->kind = MODTAB_CFA_DEREF;
        row->extra = (int8_t)ops[2].number;
    }
}

/* glibc's trampoline: the saved rsp is 160 bytes into the ucontext, to which rsp points. */
static bool is_sigreturn(const struct modtab_row *row)
{
    return row->kind == MODTAB_CFA_DEREF && row->reg == REG_RSP && row->cfa_offset == 160 && row->extra == 0;
}

static void set_return_address(struct modtab_row *row, struct modtab_rule rule)
{
    if (rule.kind == MODTAB_RULE_CFA && rule.value == -8)
        return;
    if (rule.kind == MODTAB_RULE_IN_REG && rule.value < 16 && row->kind != MODTAB_CFA_DEREF) {
        row->flags |= MODTAB_RA_REG;
        row->extra = (int8_t)rule.value;
        return;
    }
    row->kind = MODTAB_BAD;
}

/* longjmp: the caller's stack pointer is in a register, and the CFA only a name for the jmp_buf. */
static bool is_stack_switch(Dwarf_Frame *frame, struct modtab_row *row)
{
    struct modtab_rule rsp = modtab_rule_of(frame, REG_RSP), ra = modtab_rule_of(frame, REG_RA),
                       rbp = modtab_rule_of(frame, REG_RBP);
    bool has_rbp = rbp.kind == MODTAB_RULE_IN_REG && rbp.value < 16;
    if (rsp.kind != MODTAB_RULE_IN_REG || rsp.value >= 16 || ra.kind != MODTAB_RULE_IN_REG || ra.value >= 16)
        return false;
    *row = (struct modtab_row){.kind = MODTAB_CFA_REG,
                               .reg = (uint8_t)rsp.value,
                               .rbp_offset = (int16_t)(has_rbp ? rbp.value : 0),
                               .flags = MODTAB_RA_REG | MODTAB_RBX_LOST | (has_rbp ? MODTAB_RBP_REG : MODTAB_RBP_LOST),
                               .extra = (int8_t)ra.value};
    return true;
}

static struct modtab_row x86_row(Dwarf_Frame *frame, bool is_signal)
{
    struct modtab_row row = {.kind = MODTAB_BAD};
    if (modtab_rule_is_undefined(frame, REG_RA))
        return (struct modtab_row){.kind = MODTAB_END};
    if (is_stack_switch(frame, &row))
        return row;
    set_cfa(&row, frame);
    if (is_signal && is_sigreturn(&row))
        return (struct modtab_row){.kind = MODTAB_SIGNAL};
    set_return_address(&row, modtab_rule_of(frame, REG_RA));
    if (row.kind == MODTAB_BAD)
        return (struct modtab_row){.kind = MODTAB_BAD};
    row.rbp_offset = saved_register(&row, modtab_rule_of(frame, REG_RBP), REG_RBP, MODTAB_RBP_SAVED, MODTAB_RBP_EXPR,
                                    MODTAB_RBP_LOST);
    row.rbx_offset = saved_register(&row, modtab_rule_of(frame, REG_RBX), REG_RBX, MODTAB_RBX_SAVED, MODTAB_RBX_EXPR,
                                    MODTAB_RBX_LOST);
    return row;
}

static bool same_rule(const struct modtab_row *a, const struct modtab_row *b)
{
    return memcmp(&a->cfa_offset, &b->cfa_offset, sizeof *a - sizeof a->pc) == 0;
}

void modtab_add_row(struct modtab_vec *rows, struct modtab_row row, uint64_t pc)
{
    const struct modtab_row *last = rows->n ? (struct modtab_row *)rows->items + rows->n - 1 : NULL;
    row.pc = (uint32_t)pc;
    if (!last || !same_rule(last, &row))
        modtab_vec_push(rows, &row, sizeof row);
}

static const struct modtab_row plain = {.kind = MODTAB_CFA_RSP, .reg = REG_RSP, .cfa_offset = 8};

/* How rows are made for a machine. */
struct machine {
    uint16_t number; /* e_machine */
    uint8_t return_column;
    bool reads_code; /* rows also come from the instructions */
    struct modtab_row (*row_of)(Dwarf_Frame *frame, bool is_signal);
};

static const struct machine *machine_of(const GElf_Ehdr *ehdr)
{
    static const struct machine machines[] = {
        {EM_X86_64, REG_RA, true, x86_row},
        {EM_AARCH64, MODTAB_LINK_AARCH64, false, modtab_row_of_aarch64},
        {EM_PPC64, MODTAB_LINK_PPC64, false, modtab_row_of_ppc64},
    };
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        if (ehdr->e_machine == machines[i].number && ehdr->e_ident[EI_CLASS] == ELFCLASS64)
            return &machines[i];
    return NULL;
}

/* What the rows of one file are made from. */
struct source {
    const struct modtab_elf *m;
    const struct machine *machine;
    Dwarf_CFI *cfi;
    const struct modtab_vec *funcs;
};

/* The rows of the FDE [start, end). One that says from its first to its last instruction that nothing has been pushed
 * is checked against the code: much hand-written assembly says so and pushes. */
static void add_fde_rows(const struct source *s, uint64_t start, uint64_t end, struct modtab_vec *rows)
{
    uint64_t at = start, base = s->m->header.base_vaddr;
    struct modtab_row row = {.kind = MODTAB_BAD};
    for (int i = 0; at < end; i++) {
        Dwarf_Frame *frame = NULL;
        Dwarf_Addr row_start, row_end;
        bool is_signal;
        if (i == ROWS_PER_FDE_MAX || dwarf_cfi_addrframe(s->cfi, at, &frame) != 0) {
            modtab_add_row(rows, (struct modtab_row){.kind = MODTAB_BAD}, at - base);
            return;
        }
        int ra = dwarf_frame_info(frame, &row_start, &row_end, &is_signal);
        row = (struct modtab_row){.kind = MODTAB_BAD};
        if (ra == s->machine->return_column)
            row = s->machine->row_of(frame, is_signal);
        free(frame);
        if (i == 0 && row_end >= end && s->machine->reads_code && same_rule(&row, &plain)) {
            modtab_make_code_rows(s->m, start, end, s->funcs, plain, rows);
            return;
        }
        modtab_add_row(rows, row, at - base);
        if (row_end <= at)
            return;
        at = row_end;
    }
}

/* The function that holds the file's entry point, when it starts in [start, end); NULL otherwise. */
static const struct modtab_range *entry_in(const struct source *s, uint64_t start, uint64_t end)
{
    const struct modtab_range *f = s->funcs->items;
    uint64_t entry = s->m->ehdr.e_entry;
    for (size_t i = 0; entry >= start && entry < end && i < s->funcs->n; i++)
        if (f[i].start >= start && f[i].start <= entry && entry < f[i].end && f[i].end <= end)
            return &f[i];
    return NULL;
}

/* [start, end) has no FDE. Where the process begins there is no caller (the loader's own start has no FDE). */
static void add_gap(const struct source *s, uint64_t start, uint64_t end, struct modtab_vec *rows)
{
    const struct modtab_row *last = rows->n ? (struct modtab_row *)rows->items + rows->n - 1 : NULL;
    const struct modtab_row gap = {.kind = MODTAB_GAP};
    const struct modtab_range *entry = entry_in(s, start, end);
    if (entry) {
        add_gap(s, start, entry->start, rows);
        modtab_add_row(rows, (struct modtab_row){.kind = MODTAB_END}, entry->start - s->m->header.base_vaddr);
        start = entry->end;
    }
    if (end - start >= PADDING_MAX && s->machine->reads_code)
        modtab_make_code_rows(s->m, start, end, s->funcs, gap, rows);
    else if (end > start && !s->machine->reads_code)
        modtab_add_row(rows, gap, start - s->m->header.base_vaddr);
    else if (end > start && (entry || (last && !same_rule(last, &plain))))
        modtab_add_row(rows, gap, start - s->m->header.base_vaddr);
}

/* The gap up to end, from one section of code to the next. */
static void add_gaps(const struct source *s, uint64_t start, uint64_t end, struct modtab_vec *rows)
{
    const struct modtab_elf *m = s->m;
    while (start < end) {
        const struct modtab_segment *code = modtab_elf_code(m, start);
        uint64_t stop = code && code->end < end ? code->end : end;
        for (size_t i = 0; !code && i < m->n_code; i++)
            if (m->code[i].start > start && m->code[i].start < stop)
                stop = m->code[i].start;
        if (code)
            add_gap(s, start, stop, rows);
        else
            modtab_add_row(rows, (struct modtab_row){.kind = MODTAB_GAP}, start - m->header.base_vaddr);
        start = stop;
    }
}

void modtab_make_rows(const struct modtab_elf *m, const struct modtab_vec *fdes, const struct modtab_vec *funcs,
                      struct modtab_vec *rows)
{
    const struct modtab_range *fde = fdes->items;
    uint64_t base = m->header.base_vaddr, done = base, end = m->header.end_vaddr;
    struct source source = {.m = m, .machine = machine_of(&m->ehdr), .funcs = funcs};
    if (!source.machine)
        return;
    if (end - base > UINT32_MAX)
        end = base + UINT32_MAX;
    source.cfi = fdes->n ? dwarf_getcfi_elf(m->elf) : NULL;
    for (size_t i = 0; source.cfi && i < fdes->n && !rows->failed; i++) {
        uint64_t start = fde[i].start > done ? fde[i].start : done;
        if (fde[i].end <= start || fde[i].end > end)
            continue;
        add_gaps(&source, done, start, rows);
        add_fde_rows(&source, start, fde[i].end, rows);
        done = fde[i].end;
    }
    add_gaps(&source, done, end, rows);
    dwarf_cfi_end(source.cfi);
}
