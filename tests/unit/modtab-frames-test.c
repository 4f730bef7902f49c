/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of the short ways to unwind rows, on the C library that the test runs with: frame descriptions read
 * without libdw say what libdw says, and instructions that are said to leave the frame alone do so by the disassembler.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdio.h>
#include <string.h>

#include "fnbounds/modtab-make.h"
#include "fnbounds/recipe-make.h"

static struct {
    struct modtab_elf elf;
    struct modtab_vec fdes;
    bool is_failed;
} libc;

static int set_up(void **state)
{
    Dl_info info;
    struct error err;
    (void)state;
    if (!dladdr((void *)(uintptr_t)qsort, &info) || modtab_elf_open(&libc.elf, info.dli_fname, &err) != 0)
        return 1;
    modtab_make_fdes(&libc.elf, &libc.fdes);
    return libc.fdes.n < 1000;
}

static int tear_down(void **state)
{
    (void)state;
    free(libc.fdes.items);
    modtab_elf_close(&libc.elf);
    return 0;
}

/* Where libdw says that a register of the caller is: its offset from the CFA, 0 for unchanged. */
static int64_t offset_of(Dwarf_Frame *frame, int reg)
{
    Dwarf_Op mem[3], *ops;
    size_t n;
    assert_int_equal(dwarf_frame_register(frame, reg, mem, &ops, &n), 0);
    if (n == 0)
        return 0;
    assert_int_equal(n, 2);
    assert_int_equal(ops[0].atom, DW_OP_call_frame_cfa);
    assert_int_equal(ops[1].atom, DW_OP_plus_uconst);
    return (int64_t)ops[1].number;
}

static void check_row(Dwarf_CFI *cfi, const struct modtab_frame_row *found, uint64_t end)
{
    Dwarf_Frame *frame = NULL;
    Dwarf_Addr row_start, row_end;
    Dwarf_Op *ops;
    size_t n;
    bool is_signal;
    assert_int_equal(dwarf_cfi_addrframe(cfi, found->start, &frame), 0);
    assert_int_equal(dwarf_frame_info(frame, &row_start, &row_end, &is_signal), 16);
    assert_false(is_signal);
    assert_true(row_start <= found->start && row_end >= end);
    assert_int_equal(dwarf_frame_cfa(frame, &ops, &n), 0);
    assert_int_equal(n, 1);
    bool is_long = ops[0].atom == DW_OP_bregx; /* register number, then offset */
    assert_int_equal(is_long ? ops[0].number : ops[0].atom - (uint64_t)DW_OP_breg0, found->row.reg);
    assert_int_equal((int64_t)(is_long ? ops[0].number2 : ops[0].number), found->row.cfa_offset);
    assert_int_equal(offset_of(frame, 16), -8);
    assert_int_equal(offset_of(frame, 6), found->row.rbp_offset);
    assert_int_equal(offset_of(frame, 3), found->row.rbx_offset);
    free(frame);
}

/* libdw is the oracle; and it is needed for a few entries only, which is what the short way is for. */
static void test_entries_say_what_libdw_says(void **state)
{
    struct modtab_frame_row rows[MODTAB_FRAME_ROWS_MAX];
    struct modtab_frames *frames = modtab_frames_open(&libc.elf, &libc.is_failed);
    Dwarf_CFI *cfi = dwarf_getcfi_elf(libc.elf.elf);
    const struct modtab_fde *fdes = libc.fdes.items;
    size_t n_common = 0, n_rows = 0;
    (void)state;
    assert_non_null(frames);
    assert_non_null(cfi);
    for (size_t i = 0; i < libc.fdes.n; i++) {
        unsigned n = modtab_frame_rows(frames, &fdes[i], rows);
        n_common += n > 0;
        n_rows += n;
        for (unsigned k = 0; k < n; k++)
            check_row(cfi, &rows[k], k + 1 < n ? rows[k + 1].start : fdes[i].range.end);
    }
    printf("%zu of %zu entries, %zu rows\n", n_common, libc.fdes.n, n_rows);
    assert_true(n_common >= libc.fdes.n / 100 * 95);
    assert_true(n_rows > 2 * n_common);
    dwarf_cfi_end(cfi);
    modtab_frames_close(frames);
}

static void test_damaged_entries(void **state)
{
    struct modtab_frame_row rows[MODTAB_FRAME_ROWS_MAX];
    struct modtab_frames *frames = modtab_frames_open(&libc.elf, &libc.is_failed);
    const struct modtab_fde *fdes = libc.fdes.items;
    uint8_t program[64];
    unsigned seed = 1;
    (void)state;
    assert_non_null(frames);
    for (unsigned i = 0; i < 200000; i++) {
        struct modtab_fde fde = fdes[i % libc.fdes.n];
        size_t n = sizeof program - i % sizeof program;
        for (size_t k = 0; k < n; k++) {
            seed = seed * 1103515245u + 12345;
            program[k] = (uint8_t)(seed >> 16);
        }
        program[0] = 0; /* augmentation data */
        fde.program = program;
        fde.program_end = program + n;
        unsigned n_rows = modtab_frame_rows(frames, &fde, rows);
        assert_true(n_rows <= MODTAB_FRAME_ROWS_MAX);
        for (unsigned k = 0; k < n_rows; k++)
            assert_true(rows[k].start >= fde.range.start && rows[k].start < fde.range.end);
    }
    modtab_frames_close(frames);
}

/* A copy of the stack pointer in another register is no frame yet. */
static bool is_as_at_entry(const struct height *h)
{
    const struct height entry = height_at_entry();
    return h->rsp == entry.rsp && h->rbp == entry.rbp && h->rbx == entry.rbx && h->rbp_slot == entry.rbp_slot &&
           h->rbx_slot == entry.rbx_slot;
}

static void test_instructions_leave_the_frame_alone(void **state)
{
    const struct height entry = height_at_entry();
    const struct modtab_fde *fdes = libc.fdes.items;
    static uint8_t code[1 << 16];
    size_t n_alone = 0, n_insns = 0;
    (void)state;
    for (size_t i = 0; i < libc.fdes.n; i++) {
        uint64_t n_bytes = fdes[i].range.end - fdes[i].range.start;
        if (n_bytes > sizeof code || modtab_elf_read(&libc.elf, fdes[i].range.start, code, n_bytes) != n_bytes)
            continue;
        for (size_t at = 0; at < n_bytes;) {
            struct height h = entry;
            struct insn insn;
            struct height_flow flow = height_step(code + at, n_bytes - at, &h);
            bool is_alone = insn_skim(code + at, n_bytes - at, 0, &insn) &&
                            !insn_may_move_frame(code + at, insn.len_bytes) && insn.kind != INSN_RET;
            if (is_alone && !is_as_at_entry(&h))
                fail_msg("the instruction at %#llx moves the frame", (unsigned long long)(fdes[i].range.start + at));
            n_alone += is_alone;
            n_insns++;
            at += flow.n_bytes ? flow.n_bytes : 1;
        }
    }
    printf("%zu of %zu instructions\n", n_alone, n_insns);
    assert_true(n_alone > n_insns / 3);
}

/* Every register in every encoding that names it, by itself: the oracle is the disassembler. */
static void test_all_registers(void **state)
{
    static const uint8_t opcodes[] = {0x00, 0x01, 0x02, 0x03, 0x28, 0x29, 0x63, 0x6b, 0x80, 0x81, 0x83, 0x86, 0x87,
                                      0x88, 0x89, 0x8a, 0x8b, 0xb0, 0xb7, 0xb8, 0xbb, 0xbd, 0xc0, 0xc1, 0xc6, 0xc7,
                                      0xd0, 0xd3, 0xf6, 0xf7, 0xfe, 0xff, 0x50, 0x55, 0x5b, 0x68, 0x6a, 0xc9};
    const struct height entry = height_at_entry();
    size_t n_alone = 0;
    (void)state;
    for (unsigned rex = 0x3f; rex < 0x50; rex++)
        for (unsigned is_two = 0; is_two < 2; is_two++)
            for (unsigned op = 0; op < (is_two ? 256 : sizeof opcodes); op++)
                for (unsigned modrm = 0; modrm < 256; modrm++) {
                    uint8_t code[16] = {0};
                    struct insn insn;
                    struct height h = entry;
                    unsigned at = 0;
                    if (rex >= 0x40)
                        code[at++] = (uint8_t)rex;
                    if (is_two)
                        code[at++] = 0x0f;
                    code[at++] = is_two ? (uint8_t)op : opcodes[op];
                    code[at] = (uint8_t)modrm;
                    if (!insn_skim(code, sizeof code, 0, &insn) || insn_may_move_frame(code, insn.len_bytes) ||
                        insn.kind == INSN_RET)
                        continue;
                    (void)height_step(code, sizeof code, &h);
                    if (!is_as_at_entry(&h))
                        fail_msg("%02x %02x %02x %02x moves the frame", code[0], code[1], code[2], code[3]);
                    n_alone++;
                }
    assert_true(n_alone > 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries_say_what_libdw_says),
        cmocka_unit_test(test_damaged_entries),
        cmocka_unit_test(test_instructions_leave_the_frame_alone),
        cmocka_unit_test(test_all_registers),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
