/* SPDX-License-Identifier: BSD-3-Clause */
/* The shadow of small blocks: what is noted by the wrappers' inline half and by the slow one is found from every
 * address of a block, whatever lay there before, and from no other address of a live block. And their callers' callers,
 * which are looked for on known stack only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/objmap/small.h"

#define MIB ((uintptr_t)1 << 20)
#define AREA ((uintptr_t)0x5555 << 28) /* addresses are all that counts: nothing needs to be mapped there */

/* As a wrapper does it. Some sites have codes, of the others the second shadow has the numbers. */
static void note(uintptr_t start, size_t n_bytes, unsigned id)
{
    if (id % 3)
        small_code_hook(id, SMALL_OTHER);
    uint64_t cells = small_cells_sig(id);
    if (!small_sites_note(small_sites_sig()->regions, (const void *)start, n_bytes, cells))
        small_note_cells_hook((void *)start, n_bytes, cells);
}

static void expect_block(uintptr_t address, uintptr_t start, unsigned id)
{
    uintptr_t found_start = 0;
    unsigned found_id = 0;
    assert_true(small_find_sig(address, &found_start, &found_id));
    assert_int_equal(found_start, start);
    assert_int_equal(found_id, id);
}

static void expect_none(uintptr_t address)
{
    uintptr_t start;
    unsigned id;
    assert_false(small_find_sig(address, &start, &id));
}

static int begin(void **state)
{
    (void)state;
    return small_shadow_init_hook() ? 0 : -1;
}

static void test_every_address_of_a_block(void **state)
{
    (void)state;
    expect_none(AREA + 64);
    for (size_t n_bytes = 1; n_bytes < 1100; n_bytes++) {
        /* two neighbours of one site: only the mark of the start keeps them apart */
        uintptr_t first = AREA + 64, second = (first + n_bytes + 15) & ~(uintptr_t)15;
        note(second, n_bytes, 7);
        note(first, n_bytes, 7);
        for (size_t i = 0; i < n_bytes; i++) {
            expect_block(first + i, first, 7);
            expect_block(second + i, second, 7);
        }
        expect_none(first - 1);
        expect_none(second + n_bytes + 15);
        note(first, second + n_bytes - first, 0);
        expect_none(first);
        expect_none(second + n_bytes - 1);
    }
}

static void test_null_and_empty(void **state)
{
    (void)state;
    assert_false(small_sites_note(small_sites_sig()->regions, NULL, 64, small_cells_sig(3)));
    for (uintptr_t low = 0; low < 3 * MIB; low += 152008) { /* a sample's address is any number */
        expect_none(low);
        expect_none(UINTPTR_MAX - low);
    }
    small_note_hook((void *)152008, 64, 9);
    expect_none(152008);
    small_note_hook((void *)(AREA + 32 * MIB), 0, 9);
    expect_block(AREA + 32 * MIB, AREA + 32 * MIB, 9);
}

/* What lies over the end of a piece of the shadow has cells in both. */
static void test_block_over_two_pieces(void **state)
{
    (void)state;
    uintptr_t start = AREA + 5 * MIB - 48;
    note(start - 64, 32, 1); /* the first piece is there, the second is not */
    note(start, 200, 2);
    for (size_t i = 0; i < 200; i++)
        expect_block(start + i, start, 2);
    note(start, 200, 3); /* now both are there */
    for (size_t i = 0; i < 200; i++)
        expect_block(start + i, start, 3);
    expect_none(start + 208);
}

/* Pieces that want one slot are found all the same. */
static void test_pieces_that_collide(void **state)
{
    (void)state;
    for (uintptr_t i = 0; i < 8; i++)
        note(AREA + (i + 1) * SMALL_REGIONS * MIB, 100, 20 + (unsigned)i);
    for (uintptr_t i = 0; i < 8; i++)
        expect_block(AREA + (i + 1) * SMALL_REGIONS * MIB + 99, AREA + (i + 1) * SMALL_REGIONS * MIB, 20 + (unsigned)i);
}

/* In a large heap several pieces of the shadow lie in a large page: each has its own part of it. */
static void test_large_heap(void **state)
{
    (void)state;
    const uintptr_t area = AREA + 1000 * MIB;
    const unsigned n_pieces = 40;
    for (unsigned i = 0; i < n_pieces; i++) {
        note(area + i * MIB, 64, 100 + i);
        note(area + (i + 1) * MIB - 64, 64, 200 + i);
    }
    for (unsigned i = 0; i < n_pieces; i++) {
        expect_block(area + i * MIB + 63, area + i * MIB, 100 + i);
        expect_block(area + (i + 1) * MIB - 1, area + (i + 1) * MIB - 64, 200 + i);
        expect_none(area + i * MIB + 64);
        expect_none(area + (i + 1) * MIB - 65);
    }
}

/* There are fewer codes than sites: those that come too late have none, and are found as well. A code stays. */
static void test_codes_run_out(void **state)
{
    (void)state;
    const uintptr_t area = AREA + 400 * MIB;
    unsigned n_coded = 0;
    small_code_hook(5000, 0); /* none may be given */
    assert_true(small_cells_sig(5000) & SMALL_UNCODED);
    for (unsigned id = 6000; id < 6200; id++) {
        uint64_t before = small_cells_sig(id);
        assert_int_equal(small_id_sig(before), id);
        note(area + id * 128, 100, id);
        small_code_hook(id, SMALL_OTHER);
        uint64_t after = small_cells_sig(id);
        assert_int_equal(small_id_sig(after), id);
        n_coded += !(after & SMALL_UNCODED);
    }
    assert_true(n_coded > 0 && n_coded < SMALL_OTHER);
    for (unsigned id = 6000; id < 6200; id++) {
        expect_block(area + id * 128 + 99, area + id * 128, id); /* noted before it had a code, or without */
        note(area + id * 128, 100, id);
        expect_block(area + id * 128 + 99, area + id * 128, id);
    }
}

static void test_new_memory_knows_nothing(void **state)
{
    (void)state;
    uintptr_t area = AREA + 100 * MIB;
    for (uintptr_t at = area; at < area + 3 * MIB; at += 1024)
        note(at, 64, 5);
    small_forget_hook(area + MIB / 2, 2 * MIB);
    expect_block(area + MIB / 2 - 1024, area + MIB / 2 - 1024, 5);
    for (uintptr_t at = area + MIB / 2; at < area + MIB / 2 + 2 * MIB; at += 1024)
        expect_none(at);
    expect_block(area + MIB / 2 + 2 * MIB, area + MIB / 2 + 2 * MIB, 5);
}

/* The rest of a block whose front has been used anew is no block any more. */
static void test_rest_of_an_old_block(void **state)
{
    (void)state;
    uintptr_t start = AREA + 200 * MIB;
    note(start, 256, 11);
    note(start, 100, 12);
    expect_block(start + 99, start, 12);
    expect_none(start + 128);
    note(start + 16, 32, 11); /* inside the new one: its rest ends where another block starts */
    expect_none(start + 64);
}

#define GRANULES 4096
#define LIVE_MAX 200

struct live {
    uintptr_t start;
    size_t n_bytes;
    unsigned id;
};

/* An allocator that hands out any free place, in any size, again and again: all live blocks are found, always. */
static void test_reuse_against_a_model(void **state)
{
    (void)state;
    static unsigned owner[GRANULES]; /* 1 + index of the live block */
    static struct live live[LIVE_MAX];
    const uintptr_t area = AREA + 300 * MIB - GRANULES * 8; /* over a border */
    uint64_t random = 1;
    unsigned n_checked = 0;
    for (int step = 0; step < 200000; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        unsigned index = random >> 33 & 0xffff, which = index % LIVE_MAX;
        struct live *block = &live[which];
        for (size_t g = 0; g < GRANULES && block->n_bytes; g++)
            if (owner[g] == which + 1)
                owner[g] = 0;
        size_t first = (random >> 20) % GRANULES, n_bytes = 1 + (random >> 40) % 1000, n = (n_bytes + 15) / 16;
        bool is_free = first + n <= GRANULES;
        for (size_t g = first; is_free && g < first + n; g++)
            is_free = !owner[g];
        *block = (struct live){0};
        if (!is_free)
            continue;
        *block = (struct live){area + first * 16, n_bytes, 1 + index % 50};
        for (size_t g = first; g < first + n; g++)
            owner[g] = which + 1;
        note(block->start, n_bytes, block->id);
        const struct live *other = &live[(random >> 10) % LIVE_MAX];
        if (other->n_bytes) {
            expect_block(other->start + (random >> 3) % other->n_bytes, other->start, other->id);
            n_checked++;
        }
    }
    assert_true(n_checked > 10000);
}

/* What a wrapper finds for its caller; 0: nothing. */
static uint64_t find(uintptr_t pc, size_t n_bytes)
{
    const struct small_stack none = {0, 0};
    uint64_t cells;
    return small_sites_find(small_sites_sig(), pc, 0, &none, n_bytes, &cells) == SMALL_NOTE ? cells : 0;
}

static void test_sites_by_caller_and_size(void **state)
{
    (void)state;
    struct small_slot *slot = &small_state_sig()->slots[small_slot_at(0x401234, 0)];
    assert_int_equal(find(0x401234, 24), 0);
    atomic_store(&slot->min_bytes, 24);
    atomic_store(&slot->n_sizes, 9);
    atomic_store(&slot->cells, small_cells_sig(77));
    atomic_store(&slot->key, 0x401234);
    assert_int_equal(find(0x401234, 24), small_cells_sig(77));
    assert_int_equal(find(0x401234, 32), small_cells_sig(77));
    assert_int_equal(find(0x401234, 33), 0);
    assert_int_equal(find(0x401234, 23), 0);
    assert_int_equal(find(0x401235, 24), 0);
    small_recheck_sig(); /* who comes next has to ask */
    assert_int_equal(find(0x401234, 24), 0);
    atomic_store(&small_state_sig()->sites.slots, small_state_sig()->slots);
    assert_int_equal(find(0x401234, 24), small_cells_sig(77));
}

#define PAGE 4096
#define WORDS (PAGE / sizeof(uintptr_t))
#define PC ((uintptr_t)0x405678)

/* A slot for the key; with hop it is an inner one, else it may allocate 1 to 64 bytes. */
static void add_slot(uint64_t key, unsigned id, uint64_t hop)
{
    struct small_slot *slot = &small_state_sig()->slots[small_slot_at(key, 0)];
    assert_int_equal(atomic_load(&slot->key), 0);
    atomic_store(&slot->cells, small_cells_sig(id));
    atomic_store(&slot->hop, hop);
    atomic_store(&slot->min_bytes, !hop ? 1 : hop & SMALL_HOP_IS_FROM_FP ? 0 : (uint32_t)(hop >> SMALL_HOP_CFA_SHIFT));
    atomic_store(&slot->n_sizes, hop ? 0 : 64);
    atomic_store(&slot->key, key);
}

static uint64_t hop_of(int32_t cfa_offset, int16_t fp_offset, unsigned bits)
{
    return SMALL_HOP | bits | (uint64_t)(uint16_t)fp_offset << SMALL_HOP_FP_SHIFT |
           (uint64_t)(uint32_t)cfa_offset << SMALL_HOP_CFA_SHIFT;
}

/* What both ways find for a call that returns to pc: the id, 0 for SMALL_ASK. They agree where frame pointers play no
 * part. */
static unsigned walk(uintptr_t pc, const uintptr_t *sp, const uintptr_t *fp, const struct small_stack *stack)
{
    struct small_caller at = {.pc = pc, .sp = (uintptr_t)sp, .fp = (uintptr_t)fp};
    uint64_t cells = 0;
    enum small_next next = small_sites_walk(small_sites_sig(), at, stack, 64, &cells);
    unsigned id = next == SMALL_NOTE ? small_id_sig(cells) : 0;
    if (small_sites_find(small_sites_sig(), pc, (uintptr_t)sp, stack, 64, &cells) == SMALL_NOTE)
        assert_int_equal(small_id_sig(cells), id);
    else
        assert_true(!id || fp);
    return id;
}

/* A stack between two pages that cannot be read. */
static uintptr_t *make_stack(struct small_stack *stack)
{
    char *pages = mmap(NULL, (size_t)3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
    *stack = (struct small_stack){(uintptr_t)pages + PAGE, (uintptr_t)pages + (size_t)2 * PAGE};
    return (uintptr_t *)stack->low;
}

static void test_callers_by_stack_pointer(void **state)
{
    (void)state;
    struct small_stack stack, none = {0, 0};
    uintptr_t *words = make_stack(&stack);
    const uintptr_t first = 0x500010, second = 0x500020, third = 0x600030;
    add_slot(PC, 30, hop_of(32, 0, 0));
    add_slot(small_key_deeper(PC, first), 31, 0);
    add_slot(small_key_deeper(PC, second), 32, hop_of(16, -16, SMALL_HOP_HAS_FP));
    add_slot(small_key_deeper(small_key_deeper(PC, second), third), 33, 0);
    words[13] = first;
    assert_int_equal(walk(PC, &words[10], NULL, &stack), 31);
    words[13] = second;
    words[15] = third;
    assert_int_equal(walk(PC, &words[10], NULL, &stack), 33);
    words[15] = first; /* nobody has come from there */
    assert_int_equal(walk(PC, &words[10], NULL, &stack), 0);
    assert_int_equal(walk(PC, &words[10], NULL, &none), 0);
    /* nothing outside of the stack is read: that would be a fault */
    assert_int_equal(walk(PC, &words[WORDS - 3], NULL, &stack), 0);
    words[WORDS - 1] = second;
    assert_int_equal(walk(PC, &words[WORDS - 4], NULL, &stack), 0);
    assert_int_equal(walk(PC, words - 4, NULL, &stack), 0);
    assert_int_equal(walk(PC, words + WORDS, NULL, &stack), 0);
    assert_int_equal(walk(PC, NULL, NULL, &stack), 0);
    assert_int_equal(munmap(words - WORDS, (size_t)3 * PAGE), 0);
}

static void test_callers_by_frame_pointer(void **state)
{
    (void)state;
    struct small_stack stack;
    uintptr_t *words = make_stack(&stack);
    const uintptr_t pc = PC + 1, first = 0x500011, second = 0x500021;
    add_slot(pc, 40, hop_of(16, -16, SMALL_HOP_HAS_FP | SMALL_HOP_IS_FROM_FP));
    add_slot(small_key_deeper(pc, first), 41, hop_of(16, -16, SMALL_HOP_HAS_FP | SMALL_HOP_IS_FROM_FP));
    add_slot(small_key_deeper(small_key_deeper(pc, first), second), 42, 0);
    words[20] = (uintptr_t)&words[30];
    words[21] = first;
    words[31] = second;
    assert_int_equal(walk(pc, &words[10], &words[20], &stack), 42);
    /* whatever the registers and the saved ones are: nothing outside of the stack is read, and nothing inwards */
    const uintptr_t strange[] = {0,
                                 1,
                                 UINTPTR_MAX,
                                 UINTPTR_MAX - 15,
                                 stack.low - 16,
                                 stack.high - 8,
                                 stack.high,
                                 (uintptr_t)&words[30] + 1,
                                 (uintptr_t)&words[8],
                                 (uintptr_t)&words[20]};
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        words[20] = strange[i];
        assert_int_equal(walk(pc, &words[10], &words[20], &stack), 0);
        if (strange[i] != (uintptr_t)&words[20])
            assert_int_equal(walk(pc, &words[10], (const uintptr_t *)strange[i], &stack), 0);
    }
    assert_int_equal(munmap(words - WORDS, (size_t)3 * PAGE), 0);
}

/* One whose own place was taken is found in the next one; in others it is the sink that finds it. */
static void test_slot_that_was_taken(void **state)
{
    (void)state;
    const struct small_stack none = {0, 0};
    const uintptr_t pc = 0x777000;
    struct small_slot *slots = small_state_sig()->slots;
    atomic_store(&slots[small_slot_at(pc, 0)].key, 1);
    assert_int_equal(walk(pc, NULL, NULL, &none), 0);
    struct small_slot *slot = &slots[small_slot_at(pc, 1)];
    atomic_store(&slot->cells, small_cells_sig(50));
    atomic_store(&slot->min_bytes, 1);
    atomic_store(&slot->n_sizes, 64);
    atomic_store(&slot->key, pc);
    assert_int_equal(walk(pc, NULL, NULL, &none), 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_address_of_a_block),
        cmocka_unit_test(test_null_and_empty),
        cmocka_unit_test(test_block_over_two_pieces),
        cmocka_unit_test(test_pieces_that_collide),
        cmocka_unit_test(test_large_heap),
        cmocka_unit_test(test_codes_run_out),
        cmocka_unit_test(test_new_memory_knows_nothing),
        cmocka_unit_test(test_rest_of_an_old_block),
        cmocka_unit_test(test_reuse_against_a_model),
        cmocka_unit_test(test_sites_by_caller_and_size),
        cmocka_unit_test(test_callers_by_stack_pointer),
        cmocka_unit_test(test_callers_by_frame_pointer),
        cmocka_unit_test(test_slot_that_was_taken),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
