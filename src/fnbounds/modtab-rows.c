/* SPDX-License-Identifier: BSD-3-Clause */
/* The unwind rows of a module: register rules as libdw expresses them, processors with a link register, and rows made
 * from code without frame descriptions. Ordinary code, untrusted input. */
#include "fnbounds/modtab-make.h"
#include "fnbounds/recipe-make.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"

/* The rule of a DWARF register. Without one it keeps its value: libdw calls some of the callee-saved ones undefined. */
static struct modtab_rule modtab_rule_of(Dwarf_Frame *frame, int reg)
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

/* Whether the information says that the register has no value in the caller: for the return address, that there is no
 * caller. */
static bool modtab_rule_is_undefined(Dwarf_Frame *frame, int reg)
{
    Dwarf_Op mem[3], *ops;
    size_t n;
    return dwarf_frame_register(frame, reg, mem, &ops, &n) == 0 && n == 0 && ops != NULL;
}

/* --- processors with a link register --- */

/* Unwind rows of machines with a link register: 64-bit Arm and POWER. A row says where the caller's stack pointer is,
 * and where the return address and the frame pointer have gone. Ordinary code, untrusted input.
 * src: DWARF for the Arm 64-bit Architecture, 64-bit ELF V2 ABI (register numbers) */

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

/* The word of a slot at CFA + value; false when a row cannot express it. */
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

static struct modtab_row modtab_row_of_aarch64(Dwarf_Frame *frame, bool is_signal)
{
    static const struct link_machine machine = {.sp = 31, .fp = 29, .link = MODTAB_LINK_AARCH64, .n_registers = 32};
    return row_of(frame, is_signal, &machine);
}

/* One row of such a machine, pc not set. is_signal: of a signal trampoline. */
static struct modtab_row modtab_row_of_ppc64(Dwarf_Frame *frame, bool is_signal)
{
    static const struct link_machine machine = {.sp = 1, .fp = 31, .link = MODTAB_LINK_PPC64, .n_registers = 32};
    return row_of(frame, is_signal, &machine);
}

/* --- rows from code --- */

/* Unwind rows of x86-64 code that has no unwind information, or has some that cannot be true (assembly with a frame
 * description that never mentions its pushes): the frame is followed through all paths of the code. What is not
 * reached, or reached with different frames, gets the row that the caller gives. Ordinary code, untrusted input. */

#define REGION_BYTES_MAX (4u << 20)
#define STEPS_PER_BYTE_MAX 8 /* a fixed point takes fewer; hostile code must not take more */

/* The code of one region and what is known before each of its instructions. */
struct code_region {
    uint8_t *code;
    size_t n;
    uint8_t *length_of;       /* [n] of the instructions that have been decoded, else 0 */
    uint32_t *state_of;       /* [n] index + 1 into states, 0: no instruction starts here as far as is known */
    struct modtab_vec states; /* struct height */
    struct modtab_vec work;   /* uint32_t offsets */
    size_t low, high;         /* control that leaves [low, high) is not followed */
    struct height jump;       /* before the targets of the last indirect jump */
    bool has_jump;
    size_t n_steps_left;
};

static void arrive(struct code_region *r, int64_t at, const struct height *h)
{
    if (at < (int64_t)r->low || at >= (int64_t)r->high || r->states.failed)
        return;
    uint32_t offset = (uint32_t)at;
    if (!r->state_of[offset]) {
        modtab_vec_push(&r->states, h, sizeof *h);
        r->state_of[offset] = (uint32_t)r->states.n;
    } else if (!height_meet((struct height *)r->states.items + r->state_of[offset] - 1, h)) {
        return;
    }
    modtab_vec_push(&r->work, &offset, sizeof offset);
}

static void run(struct code_region *r)
{
    for (; r->work.n && r->n_steps_left && !r->work.failed && !r->states.failed; r->n_steps_left--) {
        uint32_t at = ((uint32_t *)r->work.items)[--r->work.n];
        struct height h = ((struct height *)r->states.items)[r->state_of[at] - 1];
        struct height_flow flow = height_step(r->code + at, r->n - at, &h);
        r->length_of[at] = (uint8_t)flow.n_bytes;
        if (!flow.n_bytes)
            continue;
        if (flow.is_table_jump) {
            r->jump = h;
            r->has_jump = true;
        }
        if (flow.has_target)
            arrive(r, at + flow.target, &h);
        if (flow.falls_through)
            arrive(r, (int64_t)at + flow.n_bytes, &h);
    }
}

static size_t length_at(const struct code_region *r, size_t at)
{
    struct height ignored = height_at_entry();
    if (!r->length_of[at])
        r->length_of[at] = (uint8_t)height_step(r->code + at, r->n - at, &ignored).n_bytes;
    return r->length_of[at] ? r->length_of[at] : 1;
}

/* Where an indirect jump has been met, the blocks of [low, high) that nothing else leads to are its targets. They do
 * not lead out of the function: what is taken for code here may be a table. */
static void run_jump_targets(struct code_region *r, size_t low, size_t high)
{
    struct height h = r->jump;
    r->low = low;
    r->high = high;
    for (size_t at = low; at < high; at += length_at(r, at))
        if (!r->state_of[at]) {
            arrive(r, (int64_t)at, &h);
            run(r);
        }
    r->low = 0;
    r->high = r->n;
}

static void run_function(struct code_region *r, size_t low, size_t high)
{
    struct height h = height_at_entry();
    r->has_jump = false;
    arrive(r, (int64_t)low, &h);
    run(r);
    if (r->has_jump)
        run_jump_targets(r, low, high < r->n ? high : r->n);
}

/* Follows the code from each function's start that no other function has led to. */
static void run_from(struct code_region *r, uint64_t start, const struct modtab_vec *entries)
{
    const struct modtab_range *e = entries->items;
    size_t low = search_below(e, entries->n, SEARCH_KEY(struct modtab_range, start), start);
    for (; low < entries->n && e[low].start - start < r->n; low++)
        if (!r->state_of[e[low].start - start])
            run_function(r, e[low].start - start, e[low].end - start);
}

static bool is_padding(uint8_t byte)
{
    return byte == 0x90 || byte == 0xcc || byte == 0;
}

/* Stripped assembly: what nothing has led to is taken for another function where it starts at a multiple of 16. (A
 * block that only a jump table leads to would be taken for one too: then the caller does not validate.) */
static void run_from_rest(struct code_region *r, uint64_t start)
{
    size_t at = 0, end;
    while (at < r->n && !r->states.failed) {
        if (r->state_of[at]) {
            at += length_at(r, at);
            continue;
        }
        end = at + 1;
        while (end < r->n && !r->state_of[end])
            end++;
        while (at < end && ((start + at) % 16 || is_padding(r->code[at])))
            at++;
        if (at < end)
            run_function(r, at, end);
    }
}

static bool same_rule(const struct modtab_row *a, const struct modtab_row *b)
{
    return memcmp(&a->cfa_offset, &b->cfa_offset, sizeof *a - sizeof a->pc) == 0;
}

/* Appends a row for pc (relative to the base) unless it says the same as the one before. */
static void modtab_add_row(struct modtab_vec *rows, struct modtab_row row, uint64_t pc)
{
    const struct modtab_row *last = rows->n ? (struct modtab_row *)rows->items + rows->n - 1 : NULL;
    row.pc = (uint32_t)pc;
    if (!last || !same_rule(last, &row))
        modtab_vec_push(rows, &row, sizeof row);
}

/* Turns states into rows; an instruction without state, or without a known frame, gets the filler. */
static void put_rows(const struct code_region *r, uint64_t pc, struct modtab_row filler, struct modtab_vec *rows)
{
    for (size_t at = 0; at < r->n; at++) {
        const struct height *h = r->states.items;
        struct modtab_row row = r->state_of[at] ? height_row(h + r->state_of[at] - 1) : filler;
        modtab_add_row(rows, row.kind == MODTAB_BAD ? filler : row, pc + at);
        at += r->state_of[at] ? length_at(r, at) - 1 : 0;
    }
}

#define MARK_START 1u
#define MARK_TARGET 2u

/* Steps over the instruction at code [n]; 0 when it moves the frame or is none. */
static size_t step_plain(const uint8_t *code, size_t n, uint32_t *target)
{
    const struct height entry = height_at_entry();
    struct height h = entry;
    struct insn insn;
    *target = INSN_NONE;
    if (insn_skim(code, n, 0, &insn)) {
        *target = insn.kind == INSN_CALL ? INSN_NONE : insn.target;
        return insn_may_move_frame(code, insn.len_bytes) ? 0 : insn.len_bytes;
    }
    struct height_flow flow = height_step(code, n, &h);
    if (flow.has_target)
        *target = (uint32_t)flow.target;
    return memcmp(&h, &entry, sizeof h) == 0 ? flow.n_bytes : 0;
}

/* Whether the code read from its first to its last byte never moves the frame: then its rows need not be worked out.
 * It holds only if control that jumps within the code, or enters a function, meets the same instructions. marks
 * [n_bytes]: zeros, for its own use. */
static bool is_plain_code(const uint8_t *code, size_t n_bytes, uint64_t start, const struct modtab_vec *entries,
                          uint8_t *marks)
{
    const struct modtab_range *e = entries->items;
    bool is_plain = true;
    size_t low = search_below(e, entries->n, SEARCH_KEY(struct modtab_range, start), start);
    for (; is_plain && low < entries->n && e[low].start - start < n_bytes; low++)
        marks[e[low].start - start] = MARK_TARGET;
    for (size_t at = 0, n; is_plain && at < n_bytes; at += n) {
        uint32_t distance;
        n = step_plain(code + at, n_bytes - at, &distance);
        uint64_t target = at + (uint64_t)(int64_t)(int32_t)distance;
        if (distance != INSN_NONE && target < n_bytes)
            marks[target] |= MARK_TARGET;
        marks[at] |= MARK_START;
        is_plain = n > 0;
    }
    for (size_t at = 0; is_plain && at < n_bytes; at++)
        is_plain = marks[at] != MARK_TARGET;
    return is_plain;
}

/* Appends the rows of the code in [start, end) vaddr that follow from its instructions, beginning at the starts of
 * entries (struct modtab_range, sorted). filler: the row where the instructions are not enough. */
static void modtab_make_code_rows(const struct modtab_elf *m, uint64_t start, uint64_t end,
                                  const struct modtab_vec *entries, struct modtab_row filler, struct modtab_vec *rows)
{
    struct code_region r = {.n = end - start <= REGION_BYTES_MAX ? end - start : 0};
    r.code = malloc(r.n + 1);
    r.state_of = calloc(r.n + 1, sizeof *r.state_of);
    r.length_of = calloc(r.n + 1, sizeof *r.length_of);
    r.high = r.n;
    r.n_steps_left = r.n * STEPS_PER_BYTE_MAX;
    if (r.code && r.state_of && r.length_of) {
        r.n = r.high = modtab_elf_read(m, start, r.code, r.n);
        run_from(&r, start, entries);
        if (filler.kind == MODTAB_GAP)
            run_from_rest(&r, start);
        put_rows(&r, start - m->header.base_vaddr, filler, rows);
    }
    if (r.n < end - start)
        modtab_add_row(rows, filler, start + r.n - m->header.base_vaddr);
    rows->failed |= !r.code || !r.state_of || !r.length_of || r.states.failed || r.work.failed;
    free(r.code);
    free(r.state_of);
    free(r.length_of);
    free(r.states.items);
    free(r.work.items);
}

/* The same for code whose frame description says that nothing is pushed: it mostly tells the truth, which a look at the
 * instructions in their order shows sooner. */
static void make_plain_rows(const struct modtab_elf *m, uint64_t start, uint64_t end, const struct modtab_vec *entries,
                            struct modtab_row plain, struct modtab_vec *rows)
{
    size_t n_bytes = end - start <= REGION_BYTES_MAX ? end - start : 0;
    uint8_t *code = calloc(2, n_bytes + 1), *marks = code ? code + n_bytes + 1 : NULL;
    if (!code)
        rows->failed = true;
    else if (n_bytes && modtab_elf_read(m, start, code, n_bytes) == n_bytes &&
             is_plain_code(code, n_bytes, start, entries, marks))
        modtab_add_row(rows, plain, start - m->header.base_vaddr);
    else
        modtab_make_code_rows(m, start, end, entries, plain, rows);
    free(code);
}

/* --- all rows --- */

/* Unwind rows: every row of every FDE as libdw computes it, translated into the 16 bytes that the unwinder interprets;
 * here with the translation of x86-64 (others: above). What a row cannot express is MODTAB_BAD: the
 * walk stops there and is counted, it never guesses. Ordinary code, untrusted input. */

enum { REG_RBX = 3, REG_RBP = 6, REG_RSP = 7, REG_RA = 16 };

/* libdw runs an FDE's program from its start for each row: a hostile FDE with very many rows would take hours. */
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
static bool make_plt_row(const Dwarf_Op *ops, size_t n, struct modtab_row *row)
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

static void set_cfa_x86_64(struct modtab_row *row, Dwarf_Frame *frame)
{
    Dwarf_Op *ops;
    size_t n;
    row->kind = MODTAB_BAD;
    if (dwarf_frame_cfa(frame, &ops, &n) != 0 || n == 0 || make_plt_row(ops, n, row) || !base_register(&ops[0], row))
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
    set_cfa_x86_64(&row, frame);
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

/* Makes the rows of one file. */
struct row_maker {
    const struct modtab_elf *m;
    const struct machine *machine;
    Dwarf_CFI *cfi;
    const struct modtab_vec *funcs;
    struct modtab_frames *frames; /* NULL: all rows come from libdw */
};

/* Whether the FDE [start, end) says from its first to its last instruction that nothing has been pushed. That is
 * checked against the code: much hand-written assembly says so and pushes. */
static bool is_all_plain(const struct row_maker *maker, const struct modtab_row *first, bool is_only)
{
    return is_only && maker->machine->reads_code && same_rule(first, &plain);
}

/* The rows of an FDE in its common form; false when libdw must read it. */
static bool add_common_rows(const struct row_maker *maker, const struct modtab_fde *fde, struct modtab_vec *rows)
{
    struct modtab_frame_row found[MODTAB_FRAME_ROWS_MAX];
    unsigned n = maker->frames ? modtab_frame_rows(maker->frames, fde, found) : 0;
    if (!n)
        return false;
    if (is_all_plain(maker, &found[0].row, n == 1))
        make_plain_rows(maker->m, fde->range.start, fde->range.end, maker->funcs, plain, rows);
    else
        for (unsigned i = 0; i < n; i++)
            modtab_add_row(rows, found[i].row, found[i].start - maker->m->header.base_vaddr);
    return true;
}

/* The rows of the FDE [start, end), as libdw reads it. */
static void add_fde_rows(const struct row_maker *maker, uint64_t start, uint64_t end, struct modtab_vec *rows)
{
    uint64_t at = start, base = maker->m->header.base_vaddr;
    struct modtab_row row = {.kind = MODTAB_BAD};
    for (int i = 0; at < end; i++) {
        Dwarf_Frame *frame = NULL;
        Dwarf_Addr row_start, row_end;
        bool is_signal;
        if (i == ROWS_PER_FDE_MAX || dwarf_cfi_addrframe(maker->cfi, at, &frame) != 0) {
            modtab_add_row(rows, (struct modtab_row){.kind = MODTAB_BAD}, at - base);
            return;
        }
        int ra = dwarf_frame_info(frame, &row_start, &row_end, &is_signal);
        row = (struct modtab_row){.kind = MODTAB_BAD};
        if (ra == maker->machine->return_column)
            row = maker->machine->row_of(frame, is_signal);
        free(frame);
        if (is_all_plain(maker, &row, i == 0 && row_end >= end)) {
            make_plain_rows(maker->m, start, end, maker->funcs, plain, rows);
            return;
        }
        modtab_add_row(rows, row, at - base);
        if (row_end <= at)
            return;
        at = row_end;
    }
}

/* The function that holds the file's entry point, when it starts in [start, end); NULL otherwise. */
static const struct modtab_range *entry_in(const struct row_maker *maker, uint64_t start, uint64_t end)
{
    const struct modtab_range *f = maker->funcs->items;
    uint64_t entry = maker->m->ehdr.e_entry;
    for (size_t i = 0; entry >= start && entry < end && i < maker->funcs->n; i++)
        if (f[i].start >= start && f[i].start <= entry && entry < f[i].end && f[i].end <= end)
            return &f[i];
    return NULL;
}

/* [start, end) has no FDE. Where the process begins there is no caller (the loader's own start has no FDE). */
static void add_gap(const struct row_maker *maker, uint64_t start, uint64_t end, struct modtab_vec *rows)
{
    const struct modtab_row *last = rows->n ? (struct modtab_row *)rows->items + rows->n - 1 : NULL;
    const struct modtab_row gap = {.kind = MODTAB_GAP};
    const struct modtab_range *entry = entry_in(maker, start, end);
    if (entry) {
        add_gap(maker, start, entry->start, rows);
        modtab_add_row(rows, (struct modtab_row){.kind = MODTAB_END}, entry->start - maker->m->header.base_vaddr);
        start = entry->end;
    }
    if (end - start >= PADDING_MAX && maker->machine->reads_code)
        modtab_make_code_rows(maker->m, start, end, maker->funcs, gap, rows);
    else if (end > start && !maker->machine->reads_code)
        modtab_add_row(rows, gap, start - maker->m->header.base_vaddr);
    else if (end > start && (entry || (last && !same_rule(last, &plain))))
        modtab_add_row(rows, gap, start - maker->m->header.base_vaddr);
}

/* The gap up to end, from one section of code to the next. */
static void add_gaps(const struct row_maker *maker, uint64_t start, uint64_t end, struct modtab_vec *rows)
{
    const struct modtab_elf *m = maker->m;
    while (start < end) {
        const struct modtab_segment *code = modtab_elf_code(m, start);
        uint64_t stop = code && code->end < end ? code->end : end;
        for (size_t i = 0; !code && i < m->n_code; i++)
            if (m->code[i].start > start && m->code[i].start < stop)
                stop = m->code[i].start;
        if (code)
            add_gap(maker, start, stop, rows);
        else
            modtab_add_row(rows, (struct modtab_row){.kind = MODTAB_GAP}, start - m->header.base_vaddr);
        start = stop;
    }
}

void modtab_make_rows(const struct modtab_elf *m, const struct modtab_vec *fdes, const struct modtab_vec *funcs,
                      struct modtab_vec *rows)
{
    const struct modtab_fde *fde = fdes->items;
    uint64_t base = m->header.base_vaddr, done = base, end = m->header.end_vaddr;
    struct row_maker maker = {.m = m, .machine = machine_of(&m->ehdr), .funcs = funcs};
    if (!maker.machine)
        return;
    if (end - base > UINT32_MAX)
        end = base + UINT32_MAX;
    maker.cfi = fdes->n ? dwarf_getcfi_elf(m->elf) : NULL;
    maker.frames = maker.cfi ? modtab_frames_open(m, &rows->failed) : NULL;
    for (size_t i = 0; maker.cfi && i < fdes->n && !rows->failed; i++) {
        const struct modtab_range *range = &fde[i].range;
        bool is_apart = range->start >= done && (i + 1 == fdes->n || fde[i + 1].range.start >= range->end);
        uint64_t start = range->start > done ? range->start : done;
        if (range->end <= start || range->end > end)
            continue;
        add_gaps(&maker, done, start, rows);
        if (!is_apart || !add_common_rows(&maker, &fde[i], rows))
            add_fde_rows(&maker, start, range->end, rows);
        done = range->end;
    }
    add_gaps(&maker, done, end, rows);
    modtab_frames_close(maker.frames);
    dwarf_cfi_end(maker.cfi);
}
