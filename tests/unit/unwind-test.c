/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of the unwinder on stacks and code made by hand: rules, guesses, stop reasons, and what of an old path is
 * taken over. Comparison with real programs: unwind-oracle-test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>

#include "runtime/unwind/unwind.h"

#include "../lib/unwind-stops.h"

#define CODE_BYTES 4096
#define N_FUNCS 16
#define FUNC_BYTES 256

/* A module of 16 functions of 256 bytes; each has a call that ends 16 bytes after its start (and after 32, 48 ...). */
static struct {
    struct {
        struct modtab_header header;
        struct modtab_func funcs[N_FUNCS];
        struct modtab_row rows[N_FUNCS];
    } table;
    uint8_t code[CODE_BYTES];
    struct unwind_module module;
    uint64_t stack[512];
    struct unwind_path path, last;
    uint32_t generation;
    unsigned n_finds, n_same;
} fake;

static const struct unwind_module *find(uintptr_t pc)
{
    fake.n_finds++;
    return pc >= fake.module.start && pc < fake.module.end ? &fake.module : NULL;
}

/* Return address behind call k (1-15) of function f. */
static uintptr_t call_in(int f, int k)
{
    return (uintptr_t)fake.code + (uintptr_t)(f * FUNC_BYTES + k * 16);
}

static void set_row(int f, struct modtab_row row)
{
    row.pc = (uint32_t)(f * FUNC_BYTES);
    fake.table.rows[f] = row;
    fake.generation++;
}

/* Function f: CFA = rsp + cfa. */
static void set_plain(int f, int32_t cfa)
{
    set_row(f, (struct modtab_row){.kind = MODTAB_CFA_RSP, .reg = 7, .cfa_offset = cfa});
}

static int set_up(void **state)
{
    (void)state;
    uint32_t generation = fake.generation;
    memset(&fake, 0, sizeof fake);
    fake.generation = generation + 1;
    for (size_t i = 16; i < CODE_BYTES; i += 16)
        fake.code[i - 5] = 0xe8;
    struct modtab_header *h = &fake.table.header;
    h->end_vaddr = CODE_BYTES;
    h->n_funcs = h->n_rows = N_FUNCS;
    h->funcs_offset = (uint64_t)((char *)fake.table.funcs - (char *)h);
    h->rows_offset = (uint64_t)((char *)fake.table.rows - (char *)h);
    fake.module =
        (struct unwind_module){(uintptr_t)fake.code, (uintptr_t)fake.code + CODE_BYTES, (uintptr_t)fake.code, h, 1};
    for (int f = 0; f < N_FUNCS; f++) {
        fake.table.funcs[f] = (struct modtab_func){(uint32_t)(f * FUNC_BYTES), (uint32_t)((f + 1) * FUNC_BYTES)};
        set_plain(f, 32);
    }
    set_row(0, (struct modtab_row){.kind = MODTAB_END});
    return 0;
}

static struct unwind_start start_at(uintptr_t pc, unsigned slot)
{
    struct unwind_start start = {.pc = pc, .known = 0xffff, .is_interrupted = true};
    start.gpr[7] = (uintptr_t)&fake.stack[slot];
    return start;
}

/* Asks whether the last path is still right; what is said then must be what a walk finds. */
static bool is_same_as_last(const struct unwind_start *start, const struct unwind_bounds *bounds)
{
    fake.last = fake.path;
    return unwind_is_same_sig(start->pc, start->gpr[7], start->gpr[6], bounds, fake.generation, &fake.path);
}

static enum unwind_stop walk(const struct unwind_start *start)
{
    struct unwind_bounds bounds = {.low = (uintptr_t)fake.stack, .high = (uintptr_t)(fake.stack + 512)};
    bool is_same = !start->is_interrupted && is_same_as_last(start, &bounds);
    enum unwind_stop stop = unwind_walk_sig(start, &bounds, find, fake.generation, &fake.path);
    if (is_same) {
        assert_int_equal(stop, UNWIND_COMPLETE);
        assert_int_equal(fake.path.n_frames, fake.last.n_frames);
        assert_int_equal(fake.path.n_reused, fake.last.n_frames);
        for (uint32_t i = 0; i < fake.path.n_frames; i++)
            assert_memory_equal(&fake.path.frames[i], &fake.last.store[fake.last.frames - fake.path.store + i],
                                sizeof fake.path.frames[i]);
        fake.n_same++;
    }
    return stop;
}

/* Lays frames of functions first, first - 1 ... 1, 0 of 32 bytes each from slot on; returns the start in first. */
static struct unwind_start lay_stack(int first, unsigned slot)
{
    for (int f = first; f > 0; f--)
        fake.stack[slot + 3 + (unsigned)(first - f) * 4] = call_in(f - 1, 1 + f % 3);
    return start_at(call_in(first, 1) + 3, slot);
}

static void check_chain(int first)
{
    assert_int_equal(fake.path.stop, UNWIND_COMPLETE);
    assert_int_equal(fake.path.n_frames, first + 1);
    for (int i = 1; i <= first; i++)
        assert_int_equal(fake.path.frames[i].pc, call_in(first - i, 1 + (first - i + 1) % 3));
}

static void test_plain_chain(void **state)
{
    (void)state;
    struct unwind_start start = lay_stack(6, 100);
    assert_int_equal(walk(&start), UNWIND_COMPLETE);
    check_chain(6);
    assert_int_equal(fake.path.n_reused, 0);
    assert_int_equal(fake.path.frames[0].flags & UNWIND_FRAME_INTERRUPTED, UNWIND_FRAME_INTERRUPTED);
    assert_int_equal(fake.path.frames[0].cfa, (uintptr_t)&fake.stack[104]);
    assert_ptr_equal(fake.path.frames[3].module, &fake.module);
    assert_int_equal(fake.path.frames[6].cfa, 0);
}

static void test_cache_saves_lookups(void **state)
{
    (void)state;
    struct unwind_start start = lay_stack(6, 100);
    (void)walk(&start);
    assert_int_equal(fake.n_finds, 7);
    fake.path.n_frames = 0;
    (void)walk(&start);
    assert_int_equal(fake.n_finds, 7);
    fake.generation++;
    (void)walk(&start);
    assert_int_equal(fake.n_finds, 14);
}

static void test_unchanged_path_is_taken_over(void **state)
{
    (void)state;
    struct unwind_start start = lay_stack(6, 100);
    (void)walk(&start);
    for (uint32_t i = 0; i < 7; i++)
        fake.path.frames[i].node = 100 + i;
    start.pc += 1; /* the leaf has moved on */
    (void)walk(&start);
    check_chain(6);
    assert_int_equal(fake.path.n_reused, 6);
    assert_int_equal(fake.path.frames[0].node, 0);
    for (uint32_t i = 1; i < 7; i++)
        assert_int_equal(fake.path.frames[i].node, 100 + i);
    (void)walk(&start); /* exactly the same */
    check_chain(6);
    assert_int_equal(fake.path.n_reused, 7);
}

/* The path of a call is known to be the same without a walk, until a word or register changes that it depends on. */
static void test_same_path_is_seen(void **state)
{
    (void)state;
    struct unwind_start start = lay_stack(6, 100);
    set_row(
        5, (struct modtab_row){.kind = MODTAB_CFA_RSP, .cfa_offset = 32, .rbp_offset = -16, .flags = MODTAB_RBP_SAVED});
    set_row(3, (struct modtab_row){.kind = MODTAB_CFA_RBP, .reg = 6, .cfa_offset = 16});
    fake.stack[104 + 2] = (uintptr_t)&fake.stack[114];
    start.pc = call_in(6, 1);
    start.is_interrupted = false;
    start.known = 1 << 6 | 1 << 7;
    (void)walk(&start);
    assert_int_equal(fake.n_same, 0);
    start.gpr[6] = 12345; /* frame 1 loads its own */
    (void)walk(&start);
    assert_int_equal(fake.n_same, 1);
    struct unwind_start other = start;
    other.pc = call_in(6, 2);
    (void)walk(&other);
    (void)walk(&start);
    assert_int_equal(fake.n_same, 1);
    (void)walk(&start);
    assert_int_equal(fake.n_same, 2);
    fake.stack[100 + 3 + 4 * 4] = call_in(1, 9); /* another caller, far out */
    (void)walk(&start);
    assert_int_equal(fake.n_same, 2);
    assert_int_equal(fake.path.frames[5].pc, call_in(1, 9));
    fake.stack[104 + 2] = (uintptr_t)&fake.stack[118]; /* the saved rbp */
    (void)walk(&start);
    assert_int_equal(fake.n_same, 2);
    assert_int_equal(fake.path.n_frames, 6);
    (void)walk(&start);
    assert_int_equal(fake.n_same, 3);
    set_plain(9, 32); /* another generation */
    (void)walk(&start);
    assert_int_equal(fake.n_same, 3);
    set_row(6, (struct modtab_row){.kind = MODTAB_CFA_RBP, .reg = 6, .cfa_offset = 16});
    start.gpr[6] = (uintptr_t)&fake.stack[102];
    (void)walk(&start);
    (void)walk(&start);
    assert_int_equal(fake.n_same, 4);
    start.gpr[6] += 8; /* the frame pointer itself */
    (void)walk(&start);
    assert_int_equal(fake.n_same, 4);
}

static void test_deeper_and_shallower(void **state)
{
    (void)state;
    struct unwind_start start = lay_stack(4, 100);
    (void)walk(&start);
    fake.path.frames[2].node = 7;
    for (int f = 12; f > 4; f--) /* eight more frames below the same outer ones */
        fake.stack[100 - 32 + 3 + (12 - f) * 4] = call_in(f - 1, 1 + f % 3);
    struct unwind_start deep = start_at(call_in(12, 1) + 3, 68);
    (void)walk(&deep);
    check_chain(12);
    assert_int_equal(fake.path.n_reused, 4);
    assert_int_equal(fake.path.frames[10].node, 7);
    (void)walk(&start);
    check_chain(4);
    assert_int_equal(fake.path.n_reused, 4);
    assert_int_equal(fake.path.frames[2].node, 7);
}

/* A changed return address somewhere outside: nothing inside of it may be taken over, the rest may. */
static void test_changed_slot(void **state)
{
    (void)state;
    struct unwind_start start = lay_stack(8, 100);
    (void)walk(&start);
    for (uint32_t i = 0; i < 9; i++)
        fake.path.frames[i].node = 100 + i;
    fake.stack[100 + 3 + 4 * 4] = call_in(3, 9); /* return address of frame 4: pc of frame 5 */
    (void)walk(&start);
    assert_int_equal(fake.path.stop, UNWIND_COMPLETE);
    assert_int_equal(fake.path.n_frames, 9);
    assert_int_equal(fake.path.frames[5].pc, call_in(3, 9));
    assert_int_equal(fake.path.n_reused, 3);
    assert_int_equal(fake.path.frames[6].node, 106);
    assert_int_equal(fake.path.frames[5].node, 0);
}

/* Frame 3 finds its CFA by rbp, which frame 1 has saved: path reuse must notice when that slot changes. */
static void test_register_dependence(void **state)
{
    (void)state;
    struct unwind_start start = lay_stack(6, 100);
    set_row(
        5, (struct modtab_row){.kind = MODTAB_CFA_RSP, .cfa_offset = 32, .rbp_offset = -16, .flags = MODTAB_RBP_SAVED});
    set_row(3, (struct modtab_row){.kind = MODTAB_CFA_RBP, .reg = 6, .cfa_offset = 16});
    fake.stack[104 + 2] = (uintptr_t)&fake.stack[114]; /* frame 3 (function 3): slots 112-115, cfa 116 */
    assert_int_equal(walk(&start), UNWIND_COMPLETE);
    check_chain(6);
    start.gpr[6] = 12345; /* not needed: frame 1 loads its own */
    start.pc++;
    (void)walk(&start);
    assert_int_equal(fake.path.n_reused, 6);
    fake.stack[104 + 2] = (uintptr_t)&fake.stack[118]; /* now one frame is skipped */
    (void)walk(&start);
    assert_int_equal(fake.path.stop, UNWIND_COMPLETE);
    assert_int_equal(fake.path.n_frames, 6);
    assert_int_equal(fake.path.frames[4].pc, call_in(1, 3));
}

static void test_generation_ends_reuse(void **state)
{
    (void)state;
    struct unwind_start start = lay_stack(5, 100);
    (void)walk(&start);
    fake.generation++;
    (void)walk(&start);
    check_chain(5);
    assert_int_equal(fake.path.n_reused, 0);
}

static enum unwind_stop stop_with(struct modtab_row row)
{
    struct unwind_start start = lay_stack(5, 100);
    set_row(3, row);
    return walk(&start);
}

static void test_stop_reasons(void **state)
{
    (void)state;
    assert_int_equal(stop_with((struct modtab_row){.kind = MODTAB_BAD}), UNWIND_BAD_ROW);
    assert_int_equal(fake.path.n_frames, 3);
    assert_int_equal(stop_with((struct modtab_row){.kind = MODTAB_GAP}), UNWIND_GAP);
    assert_int_equal(stop_with((struct modtab_row){.kind = MODTAB_CFA_REG, .reg = 10}), UNWIND_LOST_REGISTER);
    assert_int_equal(stop_with((struct modtab_row){.kind = MODTAB_CFA_RSP, .cfa_offset = 100000}), UNWIND_BAD_STACK);
    assert_int_equal(stop_with((struct modtab_row){.kind = MODTAB_CFA_RSP, .cfa_offset = -64}), UNWIND_BAD_STACK);
    assert_int_equal(stop_with((struct modtab_row){.kind = MODTAB_CFA_RBP, .cfa_offset = 16}), UNWIND_BAD_STACK);
    assert_int_equal(stop_with((struct modtab_row){.kind = MODTAB_CFA_RSP, .cfa_offset = 24}), UNWIND_COMPLETE);
    assert_int_equal(stop_with((struct modtab_row){.kind = 200}), UNWIND_BAD_ROW);
    set_plain(3, 32);
    struct unwind_start start = lay_stack(5, 100);
    fake.stack[107] += 5; /* does not follow a call */
    assert_int_equal(walk(&start), UNWIND_BAD_CALLER);
    assert_int_equal(fake.path.n_frames, 2);
    fake.stack[107] = 0x1234;
    assert_int_equal(walk(&start), UNWIND_NO_MODULE);
    assert_int_equal(fake.path.n_frames, 2);
    fake.stack[107] = 0; /* a return address of 0 is the end */
    assert_int_equal(walk(&start), UNWIND_COMPLETE);
    assert_int_equal(fake.path.n_frames, 2);
    start.gpr[7] = 64;
    assert_int_equal(walk(&start), UNWIND_BAD_STACK);
    assert_int_equal(fake.path.n_frames, 1);
    for (int i = 0; i < UNWIND_STOPS; i++)
        assert_string_not_equal(unwind_stop_name((enum unwind_stop)i), "unknown");
    assert_string_equal(unwind_stop_name(UNWIND_STOPS), "unknown");
}

static void test_zero_return_address_is_checked(void **state)
{
    (void)state;
    struct unwind_start start = lay_stack(5, 100);
    fake.stack[107] = 0;
    (void)walk(&start);
    assert_int_equal(fake.path.n_frames, 2);
    fake.stack[107] = call_in(3, 1);
    (void)walk(&start);
    assert_int_equal(fake.path.n_frames, 6);
}

static void test_leaf_guess(void **state)
{
    (void)state;
    struct unwind_start start = lay_stack(5, 100);
    set_row(5, (struct modtab_row){.kind = MODTAB_GAP});
    assert_int_equal(walk(&start), UNWIND_GAP); /* what rsp points to is no return address */
    fake.stack[100] = call_in(4, 2);
    fake.stack[100 + 4] = call_in(3, 2);
    for (int f = 3; f > 0; f--)
        fake.stack[104 + (unsigned)(4 - f) * 4] = call_in(f - 1, 1);
    assert_int_equal(walk(&start), UNWIND_COMPLETE);
    assert_int_equal(fake.path.n_frames, 6);
    assert_int_equal(fake.path.frames[1].pc, call_in(4, 2));
}

/* Generated code in no module, with frame pointers, below known code. */
static void test_generated_code(void **state)
{
    (void)state;
    struct unwind_start start = lay_stack(3, 100);
    start.pc = 0x1000; /* three generated frames, then function 2 */
    start.gpr[6] = (uintptr_t)&fake.stack[200];
    start.gpr[7] = (uintptr_t)&fake.stack[190];
    fake.stack[200] = (uintptr_t)&fake.stack[210];
    fake.stack[201] = 0x1100;
    fake.stack[210] = (uintptr_t)&fake.stack[220];
    fake.stack[211] = 0x1200;
    fake.stack[220] = 7;
    fake.stack[221] = call_in(2, 1);
    fake.stack[225] = call_in(1, 1);
    fake.stack[229] = call_in(0, 1);
    assert_int_equal(walk(&start), UNWIND_COMPLETE);
    assert_int_equal(fake.path.n_frames, 6);
    assert_int_equal(fake.path.frames[2].pc, 0x1200);
    assert_null(fake.path.frames[2].module);
    (void)walk(&start);
    assert_int_equal(fake.path.n_reused, 6);
    fake.stack[210] = (uintptr_t)&fake.stack[205]; /* the chain goes down: not one */
    assert_int_equal(walk(&start), UNWIND_NO_MODULE);
    assert_int_equal(fake.path.n_frames, 1);
}

static void test_module_without_table(void **state)
{
    (void)state;
    struct unwind_start start = lay_stack(3, 100);
    fake.module.table = NULL;
    fake.generation++;
    assert_int_equal(walk(&start), UNWIND_NO_TABLE);
    assert_int_equal(fake.path.n_frames, 1);
}

static void test_too_deep(void **state)
{
    (void)state;
    static uint64_t stack[5000];
    struct unwind_bounds bounds = {.low = (uintptr_t)stack, .high = (uintptr_t)(stack + 5000)};
    set_plain(1, 16);
    for (int i = 1; i < 5000; i += 2)
        stack[i] = call_in(1, 1);
    struct unwind_start start = start_at(call_in(1, 1), 0);
    for (unsigned depth = 400; depth < 1400; depth += 250) { /* also with an old path that is in the way */
        memset(stack + 2 * depth, 0, sizeof stack - 2 * depth * sizeof *stack);
        stack[2 * depth + 1] = call_in(0, 1);
        start.gpr[7] = (uintptr_t)stack;
        bool fits = depth + 2 <= UNWIND_FRAMES_MAX;
        assert_int_equal(unwind_walk_sig(&start, &bounds, find, fake.generation, &fake.path),
                         fits ? UNWIND_COMPLETE : UNWIND_TOO_DEEP);
        assert_int_equal(fake.path.n_frames, fits ? depth + 2 : UNWIND_FRAMES_MAX);
        for (uint32_t i = 1; i <= depth && i < fake.path.n_frames; i++)
            assert_int_equal(fake.path.frames[i].cfa ? fake.path.frames[i].pc : call_in(1, 1), call_in(1, 1));
        for (int i = 1; i < 5000; i += 2)
            stack[i] = call_in(1, 1);
    }
}

/* A mixture of all rules that a frame in the middle can have. */
static struct modtab_row random_row(int f)
{
    static const uint8_t flags[] = {
        MODTAB_RBP_SAVED, MODTAB_RBX_SAVED, 0, MODTAB_RBP_SAVED | MODTAB_RBX_SAVED, MODTAB_RBP_EXPR,
        MODTAB_RBX_EXPR,  MODTAB_RBX_LOST};
    struct modtab_row row = {.rbp_offset = -16, .rbx_offset = -24, .flags = flags[f % 7], .cfa_offset = 32};
    row.kind = f == 9 || f == 6 ? MODTAB_CFA_RBP
               : f == 2         ? MODTAB_CFA_RBX
               : f == 10        ? MODTAB_CFA_DEREF
                                : MODTAB_CFA_RSP;
    row.reg = 6;
    if (row.kind == MODTAB_CFA_DEREF)
        row.cfa_offset = -8;
    else if (row.kind == MODTAB_CFA_RBP)
        row.cfa_offset = 16;
    return row;
}

/* Lays a stack on which the rules of random_row find their way. */
static struct unwind_start lay_random_stack(unsigned slot)
{
    struct unwind_start start = lay_stack(12, slot);
    for (unsigned cfa = slot + 4; cfa <= slot + 48; cfa += 4) {
        fake.stack[cfa - 4] = fake.stack[cfa - 2] = (uintptr_t)&fake.stack[cfa + 2];
        fake.stack[cfa - 3] = (uintptr_t)&fake.stack[cfa];
    }
    start.gpr[6] = (uintptr_t)&fake.stack[slot + 6];
    return start;
}

/* Random stacks and rules: a path with memory always equals a path walked afresh. */
static void test_random_paths(void **state)
{
    (void)state;
    static struct unwind_path fresh;
    unsigned random = 7;
    struct unwind_start start = lay_random_stack(100);
    uint64_t n_reused = 0, n_complete = 0;
    for (int f = 1; f < N_FUNCS; f++)
        set_row(f, random_row(f));
    for (int i = 0; i < 200000; i++) {
        random = random * 1103515245u + 12345u;
        unsigned slot = 80 + (random >> 8) % 100, what = (random >> 20) % 16;
        if (i % 8 == 0)
            start = lay_random_stack(100 - (random >> 16) % 8);
        else if (what < 2)
            fake.stack[slot] = (uintptr_t)&fake.stack[(random >> 10) % 256];
        else if (what < 8)
            fake.stack[slot] = call_in((int)what, 1 + (int)(random >> 26) % 3);
        else if (what == 8)
            start.gpr[6] = (uintptr_t)&fake.stack[(random >> 12) % 16 + 110];
        start.pc += what & 1;
        fresh.n_frames = 0;
        struct unwind_bounds bounds = {.low = (uintptr_t)fake.stack, .high = (uintptr_t)(fake.stack + 256)};
        enum unwind_stop stop = unwind_walk_sig(&start, &bounds, find, fake.generation, &fresh);
        assert_int_equal(unwind_walk_sig(&start, &bounds, find, fake.generation, &fake.path), stop);
        assert_int_equal(fresh.n_frames, fake.path.n_frames);
        for (uint32_t j = 0; j < fresh.n_frames; j++) {
            assert_int_equal(fresh.frames[j].pc, fake.path.frames[j].pc);
            assert_int_equal(fresh.frames[j].cfa, fake.path.frames[j].cfa);
        }
        n_reused += fake.path.n_reused;
        n_complete += stop == UNWIND_COMPLETE;
    }
    assert_true(n_reused > 100000);
    assert_true(n_complete > 50000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_plain_chain, set_up),
        cmocka_unit_test_setup(test_cache_saves_lookups, set_up),
        cmocka_unit_test_setup(test_unchanged_path_is_taken_over, set_up),
        cmocka_unit_test_setup(test_same_path_is_seen, set_up),
        cmocka_unit_test_setup(test_deeper_and_shallower, set_up),
        cmocka_unit_test_setup(test_changed_slot, set_up),
        cmocka_unit_test_setup(test_register_dependence, set_up),
        cmocka_unit_test_setup(test_generation_ends_reuse, set_up),
        cmocka_unit_test_setup(test_stop_reasons, set_up),
        cmocka_unit_test_setup(test_zero_return_address_is_checked, set_up),
        cmocka_unit_test_setup(test_leaf_guess, set_up),
        cmocka_unit_test_setup(test_generated_code, set_up),
        cmocka_unit_test_setup(test_module_without_table, set_up),
        cmocka_unit_test_setup(test_too_deep, set_up),
        cmocka_unit_test_setup(test_random_paths, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
