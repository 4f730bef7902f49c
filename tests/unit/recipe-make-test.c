/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of fnbounds/recipe-make.h: every rule on assembled code with a known answer. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "fnbounds/recipe-eval-sig.h"
#include "recipe-lib.h"

enum { AX, CX, DX, BX, SP, BP, SI, DI, R8, R9, R10, R11, NO = RECIPE_NO_REG };
#define READ RECIPE_OP_READ
#define WRITE RECIPE_OP_WRITE
#define NEGATIVE RECIPE_SCALE_NEGATIVE

/* recipe_at(snippet, label): the recipe of pc snippet_label. */
#define recipe_at(name, label)                                                                                         \
    ({                                                                                                                 \
        extern const char name[], name##_end[], name##_##label[];                                                      \
        recipe_lib_at(name, name##_end, name##_##label);                                                               \
    })

static void expect_operand(const struct recipe_operand *operand, unsigned base, unsigned index, unsigned scale,
                           int disp, unsigned flags)
{
    assert_int_equal(operand->base, base);
    assert_int_equal(operand->scale, scale);
    if (scale)
        assert_int_equal(operand->index, index);
    assert_int_equal(operand->disp, disp);
    assert_int_equal(operand->flags, flags);
}

static void expect(struct recipe recipe, unsigned class, unsigned base, unsigned index, unsigned scale, int disp,
                   unsigned flags)
{
    assert_int_equal(recipe.class, class);
    assert_int_equal(recipe.n_operands, 1);
    expect_operand(&recipe.operands[0], base, index, scale, disp, flags);
}

static void expect_none(struct recipe recipe, unsigned class)
{
    assert_int_equal(recipe.class, class);
    assert_int_equal(recipe.n_operands, 0);
}

static void test_direct(void **state)
{
    (void)state;
    expect(recipe_at(rc_direct, load), RECIPE_MEMORY, DI, SI, 8, 16, READ);
    expect(recipe_at(rc_direct, store), RECIPE_MEMORY, DX, NO, 0, -4, WRITE);
    expect(recipe_at(rc_direct, rmw), RECIPE_MEMORY, CX, NO, 0, 0, READ | WRITE);
    expect(recipe_at(rc_direct, addr32), RECIPE_MEMORY, DI, NO, 0, 0, READ | RECIPE_OP_ADDR32);
    expect(recipe_at(rc_direct, tls), RECIPE_MEMORY, NO, NO, 0, 0x28, READ | RECIPE_OP_FS);
    expect(recipe_at(rc_direct, fused), RECIPE_MEMORY, BX, NO, 0, 24, READ);
    /* A nop is no wait; the join of two ways that end in a load each is marked. */
    expect(recipe_at(rc_direct, nop), RECIPE_MEMORY, SI, NO, 0, 0, READ | RECIPE_OP_INEXACT);
    assert_int_equal(recipe_at(rc_direct, load).operands[0].size_bytes, 8);
    assert_int_equal(recipe_at(rc_direct, store).operands[0].size_bytes, 4);
}

static void test_direct_rip(void **state)
{
    extern const char rc_direct[], rc_direct_rip[];
    (void)state;
    expect(recipe_at(rc_direct, rip), RECIPE_MEMORY, RECIPE_RIP, NO, 0, (int)(rc_direct - rc_direct_rip), READ);
}

static void test_no_access(void **state)
{
    (void)state;
    expect_none(recipe_at(rc_direct, lea), RECIPE_COMPUTE);
    expect_none(recipe_at(rc_direct, prefetch), RECIPE_COMPUTE);
    expect_none(recipe_at(rc_syscall, constant), RECIPE_COMPUTE);
    expect_none(recipe_at(rc_syscall, after), RECIPE_SYSCALL);
}

static void test_undo(void **state)
{
    (void)state;
    expect_none(recipe_at(rc_undo, add), RECIPE_COMPUTE);
    expect_none(recipe_at(rc_undo, lost), RECIPE_LOST);
    expect(recipe_at(rc_undo, copy), RECIPE_MEMORY, R9, NO, 0, 8, READ);
    expect(recipe_at(rc_undo, chain), RECIPE_DEPENDENT, R10, NO, 0, -11, READ);
    expect(recipe_at(rc_undo, lea), RECIPE_DEPENDENT, CX, NO, 0, 32, READ);
    expect(recipe_at(rc_undo, stride), RECIPE_DEPENDENT, R11, R8, 1 | NEGATIVE, 8, READ);
    expect(recipe_at(rc_undo, index), RECIPE_DEPENDENT, BX, DI, 4, -4, READ);
    /* Three registers are more than an operand holds: the pointer after the stride stands for the one before. */
    expect(recipe_at(rc_undo, moved), RECIPE_DEPENDENT, R10, AX, 1, 8, READ | RECIPE_OP_INEXACT);
}

static void test_index(void **state)
{
    (void)state;
    expect(recipe_at(rc_index, shift), RECIPE_MEMORY, R10, BX, 16, 8, READ);
    expect(recipe_at(rc_index, extended), RECIPE_MEMORY, SI, DX, 4, 0, READ | RECIPE_OP_INDEX32);
    expect(recipe_at(rc_index, product), RECIPE_MEMORY, R11, R8, 24, 3, READ);
    expect(recipe_at(rc_index, lea), RECIPE_MEMORY, R11, R8, 40, 16, READ);
    expect(recipe_at(rc_index, dropped), RECIPE_MEMORY, DI, NO, 0, 0, READ | RECIPE_OP_INEXACT);
    expect(recipe_at(rc_index, left), RECIPE_MEMORY, DI, NO, 0, 0, READ | RECIPE_OP_INEXACT);
    expect(recipe_at(rc_index, masked), RECIPE_MEMORY, DI, DX | RECIPE_INDEX_MASKED, 8, 8, READ);
    assert_int_equal(recipe_at(rc_index, masked).operands[0].offset, SI);
}

static void expect_field(struct recipe recipe, unsigned base, unsigned reg, struct recipe_field field)
{
    struct recipe_field found = recipe_field_unpack(recipe.operands[0].offset);
    assert_int_equal(recipe.operands[0].base, base);
    assert_int_equal(recipe.operands[0].index, reg | RECIPE_INDEX_MASKED);
    assert_true(recipe.operands[0].offset < 0);
    assert_int_equal(found.first, field.first);
    assert_int_equal(found.n_bits, field.n_bits);
    assert_int_equal(found.is_shifted, field.is_shifted);
    assert_false(recipe.operands[0].flags & RECIPE_OP_INEXACT);
}

static void test_field(void **state)
{
    (void)state;
    expect_field(recipe_at(rc_field, mask), DI, DX, (struct recipe_field){4, 8, false});
    expect_field(recipe_at(rc_field, shift), SI, AX, (struct recipe_field){20, 12, true});
    expect_field(recipe_at(rc_field, sum), SI, AX, (struct recipe_field){0, 8, false});
    expect_field(recipe_at(rc_field, within), SI, AX, (struct recipe_field){4, 8, true});
    expect(recipe_at(rc_field, start), RECIPE_MEMORY, BX, NO, 0, 5, READ | RECIPE_OP_INEXACT);
}

static void test_stack(void **state)
{
    (void)state;
    expect(recipe_at(rc_stack, push), RECIPE_MEMORY, SP, NO, 0, 0, WRITE | RECIPE_OP_STACK);
    expect(recipe_at(rc_stack, pop), RECIPE_MEMORY, SP, NO, 0, -8, READ | RECIPE_OP_STACK);
    expect(recipe_at(rc_stack, call), RECIPE_MEMORY, SP, NO, 0, -8, READ | RECIPE_OP_STACK);
    expect(recipe_at(rc_stack, push_memory), RECIPE_MEMORY, DI, NO, 0, 8, READ);
    expect(recipe_at(rc_stack, leave), RECIPE_MEMORY, SP, NO, 0, -8, READ | RECIPE_OP_STACK);
    expect(recipe_at(rc_syscall, entry), RECIPE_MEMORY, SP, NO, 0, 0, WRITE | RECIPE_OP_STACK | RECIPE_OP_INEXACT);
}

static void test_string(void **state)
{
    extern const char rc_string[], rc_string_end[];
    (void)state;
    struct recipe at = recipe_lib_at(rc_string, rc_string_end, rc_string);
    assert_int_equal(at.class, RECIPE_MEMORY);
    assert_int_equal(at.n_operands, 2);
    expect_operand(&at.operands[0], DI, NO, 0, 0, WRITE);
    expect_operand(&at.operands[1], SI, NO, 0, 0, READ);
    struct recipe after = recipe_at(rc_string, after_stos);
    assert_int_equal(after.n_operands, 1);
    expect_operand(&after.operands[0], DI, NO, 0, -1, WRITE);
    struct recipe single = recipe_at(rc_string, single);
    assert_int_equal(single.n_operands, 2);
    expect_operand(&single.operands[0], DI, NO, 0, -1, WRITE);
    expect_operand(&single.operands[1], SI, NO, 0, -1, READ);
}

static void test_chase(void **state)
{
    (void)state;
    expect(recipe_at(rc_chase, next), RECIPE_MEMORY, DI, NO, 0, 8, READ | RECIPE_OP_INEXACT);
    expect(recipe_at(rc_unrolled, first), RECIPE_MEMORY, DI, NO, 0, 8, READ | RECIPE_OP_INEXACT);
    expect(recipe_at(rc_unrolled, second), RECIPE_MEMORY, DI, NO, 0, 8, READ | RECIPE_OP_INEXACT);
    expect(recipe_at(rc_unrolled, last), RECIPE_MEMORY, DI, NO, 0, 8, READ | RECIPE_OP_INEXACT);
    expect(recipe_at(rc_tree, right), RECIPE_MEMORY, DI, NO, 0, 24, READ | RECIPE_OP_INEXACT);
    expect(recipe_at(rc_tree, left), RECIPE_MEMORY, DI, NO, 0, 16, READ | RECIPE_OP_INEXACT);
    expect_none(recipe_at(rc_other_object, after), RECIPE_LOST);
    expect(recipe_at(rc_other_object, index), RECIPE_MEMORY, DI, NO, 0, 0, READ | RECIPE_OP_INEXACT);
}

static void test_loop(void **state)
{
    (void)state;
    expect(recipe_at(rc_loop, head), RECIPE_MEMORY, DX, NO, 0, 0, READ);
    expect_none(recipe_at(rc_loop, compute), RECIPE_COMPUTE);
    expect(recipe_at(rc_depend, add), RECIPE_DEPENDENT, DI, AX, 8, -8, READ);
}

/* Control comes to a compare and exchange from the load before it: a second try is rare. */
static void test_retry(void **state)
{
    (void)state;
    expect(recipe_at(rc_retry, try), RECIPE_MEMORY, SI, NO, 0, 0, READ);
    expect(recipe_at(rc_retry, done), RECIPE_MEMORY, SI, NO, 0, 0, READ | WRITE);
    expect(recipe_at(rc_retry, compare), RECIPE_MEMORY, DI, NO, 0, 0, READ);
}

static void test_gather(void **state)
{
    (void)state;
    expect(recipe_at(rc_gather, dps), RECIPE_MEMORY, AX, RECIPE_VEC + 1, 4, 4, READ | RECIPE_OP_INDEX32);
    expect(recipe_at(rc_gather, qpd), RECIPE_MEMORY, AX, RECIPE_VEC + 3, 8, 0, READ);
}

static void test_switch(void **state)
{
    (void)state;
    expect(recipe_at(rc_switch, case), RECIPE_DEPENDENT, DX, DI, 4, 0, READ);
}

static void test_frame(void **state)
{
    (void)state;
    struct recipe pointer = recipe_at(rc_frame, pointer);
    expect(pointer, RECIPE_MEMORY, BP | RECIPE_BASE_DEREF, NO, 0, -8, READ);
    assert_int_equal(pointer.operands[0].offset, 4);
    struct recipe element = recipe_at(rc_frame, element);
    expect(element, RECIPE_MEMORY, BP | RECIPE_BASE_DEREF, CX, 1, -24, READ);
    assert_int_equal(element.operands[0].offset, 0);
}

static void test_garbage(void **state)
{
    (void)state;
    expect(recipe_at(rc_garbage, after), RECIPE_MEMORY, DI, NO, 0, 0, READ);
    expect_none(recipe_at(rc_garbage, dead), RECIPE_LOST);
    extern const char rc_garbage[], rc_garbage_end[];
    assert_int_equal(recipe_lib_at(rc_garbage, rc_garbage_end, rc_garbage + 1).class, 255);
}

static void test_store_limits(void **state)
{
    extern const char rc_direct[], rc_direct_end[];
    (void)state;
    _Alignas(64) static char memory[4096];
    struct recipe_store *store = (struct recipe_store *)memory;
    struct recipe_lib_table table;
    struct recipe_maker *maker;
    struct error err;
    assert_int_equal(recipe_store_init(memory, sizeof memory, 3), ERR_RANGE);
    assert_int_equal(recipe_store_init(memory, sizeof memory, 256), ERR_RANGE);
    assert_int_equal(recipe_store_init(memory, sizeof memory, 2), 0);
    recipe_lib_table(&table, rc_direct, rc_direct_end);
    assert_int_equal(recipe_maker_open(&table.header, "/proc/self/exe", &maker, &err), 0);
    assert_int_equal(recipe_maker_place(maker, store, table.func.end, &err), ERR_RANGE);
    assert_int_equal(recipe_maker_place(maker, store, table.func.start, &err), 0);
    uint64_t used = store->next_offset;
    assert_int_equal(recipe_maker_place(maker, store, table.func.start, &err), 0);
    assert_int_equal(store->next_offset, used);
    table.header.id = 78;
    assert_int_equal(recipe_maker_place(maker, store, table.func.start, &err), ERR_RANGE);
    assert_non_null(strstr(err.text, "full"));
    recipe_maker_close(maker);
    table.func.end = table.func.start + 0x10000000;
    assert_int_equal(recipe_maker_open(&table.header, "/proc/self/exe", &maker, &err), 0);
    table.header.id = 79;
    assert_int_equal(recipe_maker_place(maker, store, table.func.start, &err), ERR_NOT_FOUND);
    recipe_maker_close(maker);
}

/* An ELF file of one segment of code, all zeros (add %al,(%rax)). */
static int code_file(uint32_t n_bytes)
{
    struct {
        Elf64_Ehdr head;
        Elf64_Phdr segment;
    } elf = {.head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                      .e_type = ET_DYN,
                      .e_machine = EM_X86_64,
                      .e_version = EV_CURRENT,
                      .e_phoff = sizeof(Elf64_Ehdr),
                      .e_ehsize = sizeof(Elf64_Ehdr),
                      .e_phentsize = sizeof(Elf64_Phdr),
                      .e_phnum = 1},
             .segment = {.p_type = PT_LOAD,
                         .p_flags = PF_R | PF_X,
                         .p_offset = 4096,
                         .p_vaddr = 4096,
                         .p_filesz = n_bytes,
                         .p_memsz = n_bytes}};
    int fd = memfd_create("code", 0);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 4096 + (off_t)n_bytes), 0);
    assert_int_equal(pwrite(fd, &elf, sizeof elf, 0), sizeof elf);
    return fd;
}

/* Behind the last function that has an unwind table may lie the text of a whole browser. */
static void test_no_recipes_for_a_whole_program(void **state)
{
    (void)state;
    _Alignas(64) static char memory[4096];
    const uint32_t sizes[] = {RECIPE_FUNC_BYTES_MAX, RECIPE_FUNC_BYTES_MAX + 1};
    struct recipe_store *store = (struct recipe_store *)memory;
    struct recipe_lib_table table;
    struct error err;
    char path[32];
    int fd = code_file(sizes[1]);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_int_equal(recipe_store_init(memory, sizeof memory, 8), 0);
    for (size_t i = 0; i < 2; i++) {
        struct recipe_maker *maker;
        recipe_lib_table(&table, path, path + 1);
        table.header.base_vaddr = 4096;
        table.header.end_vaddr = 4096 + sizes[1];
        table.header.id = i;
        table.func.start = 0;
        table.func.end = sizes[i];
        assert_int_equal(recipe_maker_open(&table.header, path, &maker, &err), 0);
        assert_int_equal(recipe_maker_place(maker, store, 64, &err), i == 0 ? 0 : ERR_RANGE);
        recipe_maker_close(maker);
    }
    assert_non_null(strstr(err.text, "bytes"));
    (void)close(fd);
}

/* Most places of a large program are never sampled: each costs only when it is asked for. */
static void test_only_the_place_is_made(void **state)
{
    extern const char rc_direct[], rc_direct_end[], rc_direct_load[], rc_direct_store[];
    (void)state;
    _Alignas(64) static char memory[4096];
    struct recipe_store *store = (struct recipe_store *)memory;
    struct recipe_lib_table table;
    struct recipe_maker *maker;
    struct error err;
    assert_int_equal(recipe_store_init(memory, sizeof memory, 16), 0);
    uint64_t bias = recipe_lib_table(&table, rc_direct, rc_direct_end), used = store->next_offset;
    uint32_t load = (uint32_t)((uintptr_t)rc_direct_load - bias - table.header.base_vaddr);
    uint32_t behind = (uint32_t)((uintptr_t)rc_direct_store - bias - table.header.base_vaddr);
    assert_int_equal(recipe_maker_open(&table.header, "/proc/self/exe", &maker, &err), 0);
    assert_int_equal(recipe_maker_place(maker, store, load, &err), 0);
    assert_int_equal(store->n_used, 1);
    assert_int_equal(store->next_offset - used, sizeof(struct recipe_block) + sizeof(struct recipe));
    assert_non_null(recipe_find_block(store, table.header.id, load));
    assert_null(recipe_find_block(store, table.header.id, behind));
    assert_int_equal(recipe_maker_place(maker, store, behind, &err), 0);
    assert_int_equal(store->n_used, 2);
    assert_int_equal(recipe_find_block(store, table.header.id, behind)->recipes[0].pc, behind);
    recipe_maker_close(maker);
}

static void test_open_refuses(void **state)
{
    (void)state;
    struct recipe_lib_table table;
    struct recipe_maker *maker = NULL;
    struct error err;
    recipe_lib_table(&table, test_open_refuses, test_open_refuses);
    assert_int_equal(recipe_maker_open(&table.header, "/nonexistent", &maker, &err), ERR_IO);
    assert_null(maker);
    assert_int_equal(recipe_maker_open(&table.header, "/proc/self/cmdline", &maker, &err), ERR_IO);
    assert_int_equal(recipe_maker_open(&table.header, "/etc/passwd", &maker, &err), ERR_FORMAT);
    assert_int_equal(recipe_maker_open(&table.header, RECIPE_VDSO, &maker, &err), 0);
    recipe_maker_close(maker);
}

/* The entry of a loop and its repetition wait for different things; a counted register tells them apart. */
static void test_loop_entry(void **state)
{
    (void)state;
    extern const char rc_entry[], rc_entry_end[], rc_entry_constant[], rc_entry_copy[], rc_entry_unguarded[];
    struct recipe entry;
    expect_none(recipe_lib_pair(rc_entry, rc_entry_end, rc_entry_constant, &entry), RECIPE_COMPUTE);
    expect(entry, RECIPE_MEMORY, BX, NO, 0, 8, READ);
    assert_int_equal(entry.guard_reg, DX);
    assert_int_equal(entry.guard_other, NO);
    assert_int_equal(entry.guard_value, 4);
    expect_none(recipe_lib_pair(rc_entry, rc_entry_end, rc_entry_copy, &entry), RECIPE_COMPUTE);
    expect(entry, RECIPE_MEMORY, BX, NO, 0, 24, READ);
    assert_int_equal(entry.guard_reg, R10);
    assert_int_equal(entry.guard_other, R9);
    (void)recipe_lib_pair(rc_entry, rc_entry_end, rc_entry_unguarded, &entry);
    assert_int_equal(entry.class, 255);
}

static void test_loop_entry_is_chosen(void **state)
{
    (void)state;
    struct recipe pair[2] = {{.entry = 1}, {.guard_reg = DX, .guard_other = NO, .guard_value = 4}};
    struct recipe_regs regs = {0};
    regs.gpr[DX] = 4;
    assert_ptr_equal(recipe_choose_sig(pair, &regs), pair + 1);
    regs.gpr[DX] = 3;
    assert_ptr_equal(recipe_choose_sig(pair, &regs), pair);
    pair[1].guard_other = R9;
    assert_ptr_equal(recipe_choose_sig(pair, &regs), pair);
    regs.gpr[R9] = 3;
    assert_ptr_equal(recipe_choose_sig(pair, &regs), pair + 1);
    pair[0].entry = 0;
    assert_ptr_equal(recipe_choose_sig(pair, &regs), pair);
}

/* The quick look at instructions must say what the disassembler says wherever it says anything: here for opcodes and
 * prefixes in every combination, with operands of all kinds. */
static void test_skim(void **state)
{
    (void)state;
    static const uint8_t prefixes[] = {0, 0x66, 0xf2, 0xf3, 0x64, 0x65, 0x67, 0x2e, 0xf0};
    struct insn_decoder *decoder = insn_decoder_open();
    uint64_t random = 1;
    unsigned n_skimmed = 0;
    for (unsigned k = 0; k < 2 * 256 * sizeof prefixes * 17 * 24; k++) {
        unsigned rest = k, n = 0, variant = rest % 24, rex = (rest /= 24) % 17, prefix = (rest /= 17) % sizeof prefixes;
        uint8_t code[32];
        struct insn quick, full;
        for (unsigned i = 0; i < sizeof code; i += 8) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            memcpy(code + i, &random, 8);
        }
        if (prefixes[prefix])
            code[n++] = prefixes[prefix];
        if (rex < 16)
            code[n++] = (uint8_t)(0x40 + rex);
        rest /= sizeof prefixes;
        if (rest & 1)
            code[n++] = 0x0f;
        code[n] = (uint8_t)(rest >> 1);
        size_t n_bytes = variant < 22 ? sizeof code : 1 + variant % 3 + n;
        if (!insn_skim(code, n_bytes, 0x1000, &quick))
            continue;
        insn_decode(decoder, code, n_bytes, 0x1000, &full);
        assert_true(quick.is_skimmed && !full.is_skimmed);
        assert_int_equal(quick.pc, full.pc);
        assert_int_equal(quick.len_bytes, full.len_bytes);
        assert_int_equal(quick.kind, full.kind);
        assert_int_equal(quick.target, full.target);
        assert_int_equal(quick.table, full.table);
        n_skimmed++;
    }
    assert_true(n_skimmed > 100000);
    insn_decoder_close(decoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_direct),
        cmocka_unit_test(test_direct_rip),
        cmocka_unit_test(test_no_access),
        cmocka_unit_test(test_undo),
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_field),
        cmocka_unit_test(test_stack),
        cmocka_unit_test(test_string),
        cmocka_unit_test(test_chase),
        cmocka_unit_test(test_loop),
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_switch),
        cmocka_unit_test(test_frame),
        cmocka_unit_test(test_loop_entry),
        cmocka_unit_test(test_loop_entry_is_chosen),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_store_limits),
        cmocka_unit_test(test_no_recipes_for_a_whole_program),
        cmocka_unit_test(test_only_the_place_is_made),
        cmocka_unit_test(test_open_refuses),
        cmocka_unit_test(test_skim),
        cmocka_unit_test(test_retry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
