/* SPDX-License-Identifier: BSD-3-Clause */
/* The shadow of small blocks: what is noted by the wrappers' inline half and by the slow one is found from every
 * address of a block, whatever lay there before, and from no other address of a live block. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "runtime/small-internal.h"

#define MIB ((uintptr_t)1 << 20)
#define AREA ((uintptr_t)0x5555 << 28) /* addresses are all that counts: nothing needs to be mapped there */

/* As a wrapper does it. */
static void note(uintptr_t start, size_t n_bytes, unsigned id)
{
    if (!small_sites_note(small_sites_sig()->regions, (const void *)start, n_bytes, small_four(id)))
        small_note_hook((void *)start, n_bytes, id);
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
    assert_false(small_sites_note(small_sites_sig()->regions, NULL, 64, small_four(3)));
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
    uint64_t four;
    return small_sites_find(small_sites_sig(), pc, 0, &none, n_bytes, &four) == SMALL_NOTE ? four : 0;
}

static void test_sites_by_caller_and_size(void **state)
{
    (void)state;
    struct small_slot *slot = &small_state_sig()->slots[small_slot_at(0x401234, 0)];
    assert_int_equal(find(0x401234, 24), 0);
    atomic_store(&slot->min_bytes, 24);
    atomic_store(&slot->n_sizes, 9);
    atomic_store(&slot->four, small_four(77));
    atomic_store(&slot->key, 0x401234);
    assert_int_equal(find(0x401234, 24), small_four(77));
    assert_int_equal(find(0x401234, 32), small_four(77));
    assert_int_equal(find(0x401234, 33), 0);
    assert_int_equal(find(0x401234, 23), 0);
    assert_int_equal(find(0x401235, 24), 0);
    small_recheck_sig(); /* who comes next has to ask */
    assert_int_equal(find(0x401234, 24), 0);
    atomic_store(&small_state_sig()->sites.slots, small_state_sig()->slots);
    assert_int_equal(find(0x401234, 24), small_four(77));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_address_of_a_block), cmocka_unit_test(test_null_and_empty),
        cmocka_unit_test(test_block_over_two_pieces),    cmocka_unit_test(test_pieces_that_collide),
        cmocka_unit_test(test_new_memory_knows_nothing), cmocka_unit_test(test_rest_of_an_old_block),
        cmocka_unit_test(test_reuse_against_a_model),    cmocka_unit_test(test_sites_by_caller_and_size),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
