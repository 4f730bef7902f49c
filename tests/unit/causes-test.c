/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of analysis/build/causes.h: samples drawn from walks whose truth is known, with a fixed seed, and the
 * errors that the formulas have. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "analysis/build/causes.h"

#define TRIALS 200
#define BIN_WORDS ((1u << PATTERN_HASH_BITS) / 64)
#define LINES_L2 8192

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* n samples, of which a part waits at the first of n_slots slots of 8 bytes and the rest lies anywhere. */
static void draw_slots(uint64_t *state, unsigned n, unsigned n_slots, double part, uint64_t slots[PATTERN_SLOTS])
{
    memset(slots, 0, PATTERN_SLOTS * sizeof *slots);
    for (unsigned i = 0; i < n; i++) {
        bool waits = (double)next_random(state) < part * 0x1p31;
        slots[waits ? 0 : next_random(state) % n_slots * 2]++;
    }
}

/* n samples of as many lines, anywhere in memory; the bins that they hit. */
static uint64_t draw_bins(uint64_t *state, unsigned n, uint64_t n_lines)
{
    uint64_t bits[BIN_WORDS] = {0}, n_bins = 0;
    for (unsigned i = 0; i < n; i++) {
        uint64_t line = next_random(state) % n_lines;
        unsigned bin = pattern_place_hash(pattern_place(0x7f0000000000 + line * 64, 0));
        bits[bin / 64] |= UINT64_C(1) << bin % 64;
    }
    for (unsigned i = 0; i < BIN_WORDS; i++)
        n_bins += (uint64_t)__builtin_popcountll(bits[i]);
    return n_bins;
}

static void test_contrast_has_the_errors_it_states(void **state)
{
    static const struct {
        unsigned n;
        double points; /* deviation of the memory part, in points */
    } sizes[] = {{100, 8}, {300, 4.5}, {1000, 2.5}};
    static const double parts[] = {0.3, 0.5, 0.9};
    uint64_t random = 1;
    (void)state;
    for (size_t s = 0; s < 3; s++)
        for (size_t p = 0; p < 3; p++) {
            double squares = 0;
            unsigned n_inside = 0;
            for (unsigned t = 0; t < TRIALS; t++) {
                uint64_t slots[PATTERN_SLOTS];
                draw_slots(&random, sizes[s].n, 8, parts[p], slots);
                struct cause_sum sum = causes_of_contrast(slots, 8, 1);
                double error = 100 * (sum.memory / sizes[s].n - parts[p]), truth = parts[p] * sizes[s].n;
                squares += error * error;
                n_inside += sum.memory_low <= truth && truth <= sum.memory_high;
                assert_true(fabs(sum.memory + sum.execution - sizes[s].n) < 1e-6 && sum.unverified == 0);
            }
            assert_true(sqrt(squares / TRIALS) < sizes[s].points);
            assert_in_range(n_inside, TRIALS * 95 / 100, TRIALS);
        }
}

/* Four sums at a time, in an unrolled loop: the first of four instructions takes as long as the chains do, the others
 * retire with it. It visits two slots of a line, of which one waits for the line; the other shows how long it takes. */
static void test_contrast_of_an_unrolled_loop(void **state)
{
    static const uint64_t slots[PATTERN_SLOTS] = {[2] = 30, [4] = 79, [6] = 266, [10] = 24, [12] = 84, [14] = 726};
    static const uint64_t resident[PATTERN_SLOTS] = {[2] = 30, [4] = 79, [6] = 490, [10] = 24, [12] = 84, [14] = 502};
    (void)state;
    struct cause_sum sum = causes_of_contrast(slots, 6, 1);
    assert_true(sum.memory == 460 && sum.memory_low > 330 && sum.memory_low < 400 && sum.execution == 749);
    struct cause_sum nothing = causes_of_contrast(resident, 6, 1);
    assert_true(nothing.memory == 0 && nothing.execution == 1209 && nothing.memory_high < 100);
}

/* Where nothing waits, chance must not look like memory: and where there are few samples, nothing is said. */
static void test_contrast_of_blocks_side_by_side(void **state)
{
    /* half of the blocks begin 16 bytes behind the others */
    const uint64_t both[PATTERN_SLOTS] = {[0] = 400, [4] = 100, [8] = 100, [12] = 400};
    const uint64_t stray[PATTERN_SLOTS] = {[0] = 800, [4] = 10, [8] = 200, [12] = 10};
    struct cause_sum sum = causes_of_contrast(both, 2, 1);
    (void)state;
    assert_true(sum.memory == 600 && sum.memory_low > 400 && sum.memory_high < 1000);
    sum = causes_of_contrast(stray, 2, 1);
    assert_true(sum.memory > 500 && sum.unverified == 0);
}

static void test_contrast_of_nothing(void **state)
{
    uint64_t random = 2, slots[PATTERN_SLOTS];
    unsigned n_wrong = 0;
    (void)state;
    for (unsigned t = 0; t < TRIALS; t++) {
        draw_slots(&random, 400, 8, 0, slots);
        struct cause_sum sum = causes_of_contrast(slots, 8, 1);
        n_wrong += sum.memory > 0;
        assert_true(sum.memory_low <= 0 && sum.memory < 100);
    }
    assert_in_range(n_wrong, 0, TRIALS / 10);
    /* nor where the clearest of several contrasts is taken: bit i of visited is slot i */
    static const unsigned visited[] = {0x7f7f, 0x1f1f, 0x0303, 0x7777, 0x3333, 0x0101};
    for (size_t v = 0; v < sizeof visited / sizeof *visited; v++) {
        unsigned n_slots = (unsigned)__builtin_popcount(visited[v]), n_low = 0;
        n_wrong = 0;
        for (unsigned t = 0; t < TRIALS; t++) {
            memset(slots, 0, sizeof slots);
            for (unsigned n = 0; n < 400;) {
                unsigned slot = next_random(&random) % PATTERN_SLOTS;
                if (visited[v] >> slot & 1)
                    slots[slot]++, n++;
            }
            struct cause_sum sum = causes_of_contrast(slots, n_slots, 1);
            n_wrong += sum.memory > 0;
            n_low += sum.memory_low > 0;
        }
        assert_in_range(n_wrong, 0, TRIALS / 10);
        assert_in_range(n_low, 0, TRIALS / 100);
    }
    draw_slots(&random, CAUSES_SAMPLES_MIN - 1, 8, 0.9, slots);
    struct cause_sum few = causes_of_contrast(slots, 8, 1);
    assert_true(few.unverified == CAUSES_SAMPLES_MIN - 1 && few.memory_low == 0 && few.memory_high == few.unverified);
}

static void test_lines_are_counted(void **state)
{
    static const uint64_t n_lines[] = {200, 2000, 8192, 30000};
    uint64_t random = 3;
    (void)state;
    for (size_t i = 0; i < 4; i++)
        for (unsigned t = 0; t < 20; t++) {
            uint64_t n_bins = draw_bins(&random, 20000, n_lines[i]);
            double found = causes_lines(20000, n_bins);
            assert_true(fabs(found / (double)n_lines[i] - 1) < 0.15);
        }
    assert_true(causes_lines(0, 0) == HUGE_VAL);
}

/* How often samples of n_lines lines count as memory. */
static unsigned n_called_memory(uint64_t *random, unsigned n, uint64_t n_lines, unsigned *n_wide)
{
    unsigned n_memory = 0;
    for (unsigned t = 0; t < TRIALS; t++) {
        struct cause_footprint sum = {.l1_lines = CAUSES_L1_LINES, .lines = (double)n_lines};
        causes_add_footprint(&sum, n, draw_bins(random, n, n_lines), LINES_L2);
        struct cause_sum found = causes_of_footprint(&sum, pattern_make(PATTERN_IRREGULAR, 64, 0, 8));
        n_memory += found.memory > 0.5 * n;
        *n_wide += found.memory_high - found.memory_low > 0.5 * n;
    }
    return n_memory;
}

static void test_footprints(void **state)
{
    uint64_t random = 4;
    unsigned n_wide = 0;
    (void)state;
    assert_in_range(n_called_memory(&random, 1000, 4u << 20, &n_wide), TRIALS * 98 / 100, TRIALS);
    assert_in_range(n_called_memory(&random, 1000, 400, &n_wide), 0, 0);
    assert_in_range(n_called_memory(&random, 1000, 2000, &n_wide), 0, TRIALS * 2 / 100);
    assert_in_range(n_wide, 0, 3 * TRIALS / 10);
    /* just as large as the cache: anything may come out, but not with confidence */
    n_wide = 0;
    (void)n_called_memory(&random, 1000, LINES_L2, &n_wide);
    assert_in_range(n_wide, TRIALS * 8 / 10, TRIALS);
    /* few samples of a large array look the same as those of a small one */
    n_wide = 0;
    (void)n_called_memory(&random, 120, 4u << 20, &n_wide);
    assert_in_range(n_wide, TRIALS * 9 / 10, TRIALS);
}

/* A search in a sorted array of 4 million lines: 3 of 10 samples are at the 500 lines where each search begins, which
 * come back as often as those of an array that fits, or more often where the cache is large. It must not be called one.
 */
static void test_search_in_a_large_array(void **state)
{
    uint64_t random = 11;
    (void)state;
    for (uint64_t n_lines = LINES_L2; n_lines <= 4 * LINES_L2; n_lines *= 2) {
        unsigned n_resident = 0;
        for (unsigned t = 0; t < TRIALS; t++) {
            struct cause_footprint sum = {.n_large = 1000};
            /* the bins of both parts hardly overlap: about 225 and 690 of 16384 */
            uint64_t n_bins = draw_bins(&random, 300, 500) + draw_bins(&random, 700, 4u << 20);
            causes_add_footprint(&sum, 1000, n_bins, n_lines);
            n_resident += causes_of_footprint(&sum, pattern_make(PATTERN_IRREGULAR, 64, 0, 8)).resident > 0;
        }
        assert_in_range(n_resident, 0, TRIALS / 50);
    }
}

/* Of many threads with two samples each in a large array, one may meet a line twice by chance. */
static void test_one_chance_of_many(void **state)
{
    struct cause_footprint sum = {.n = 0};
    (void)state;
    for (unsigned i = 0; i < 100; i++)
        causes_add_footprint(&sum, 2, i == 50 ? 1 : 2, LINES_L2);
    assert_true(causes_of_footprint(&sum, pattern_make(PATTERN_IRREGULAR, 64, 0, 8)).unverified == 200);
}

/* Threads and instructions of one variable: counts of one walk are put together, verdicts are added up. */
static void test_sums_of_a_variable(void **state)
{
    static const struct cause_caches caches = {CAUSES_L1_LINES, LINES_L2, CAUSES_L3_LINES};
    static const uint32_t node_to_variable[] = {0, 0, UINT32_MAX}, index_of[] = {1, 0, 2};
    struct variable variable = {0};
    struct event_sum events[2] = {{0}, {.has_data_source = true}};
    struct model model = {.variables = &variable, .n_variables = 1, .events = events, .n_events = 2};
    struct cause_table table = {0};
    uint64_t random = 5, slots[PATTERN_SLOTS];
    uint64_t strided = pattern_with_slots(pattern_make(PATTERN_STRIDED, 64, 8, 8), 8, 1);
    (void)state;
    for (uint32_t i = 0; i < 20; i++) { /* 1000 samples of a strided walk: 50 a thread, by two instructions */
        draw_slots(&random, 50, 8, 0.5, slots);
        struct cause_access access = {
            .node = i % 2, .vaddr = 100 + i % 4, .pattern = strided, .n_samples = 50, .slots = slots};
        access.pattern |= i % 4 == 3 ? PATTERN_MIXED : 0;
        assert_true(causes_add(&table, &access, &caches));
    }
    for (uint32_t i = 0; i < 20; i++) { /* 1000 of a small table: each thread has its own, of 200 lines */
        draw_slots(&random, 50, 8, 0, slots);
        struct cause_access access = {.node = 0,
                                      .vaddr = 200,
                                      .pattern = pattern_make(PATTERN_IRREGULAR, 80, 0, 8),
                                      .n_samples = 50,
                                      .pool_id = i + 1,
                                      .slots = slots,
                                      .n_bins = draw_bins(&random, 50, 200)};
        assert_true(causes_add(&table, &access, &caches));
    }
    struct cause_access other = {.vaddr = 300, .pattern = pattern_make(PATTERN_FED, 90, 0, 8), .n_samples = 70};
    assert_true(causes_add(&table, &other, &caches));
    other = (struct cause_access){.vaddr = 301, .n_samples = 30};
    assert_true(causes_add(&table, &other, &caches));
    other = (struct cause_access){.event = 1, .vaddr = 301, .pattern = strided, .n_samples = 30};
    assert_true(causes_add(&table, &other, &caches));
    causes_renumber(&table, index_of);
    assert_true(causes_apply(&table, &model, node_to_variable, 3));
    const struct cause_sum *sum = causes_of(&variable, 0);
    assert_non_null(sum);
    assert_null(causes_of(&variable, 1)); /* the hardware's word stands */
    /* 500 of the strided walk, and 150, half of what may wait for the second-level cache */
    assert_true(fabs(sum->memory - 650) < 50 && fabs(sum->execution - 1420) < 50 && sum->unverified == 30);
    assert_true(fabs(sum->memory + sum->execution + sum->unverified - 2100) < 1e-6 && sum->resident == 850);
    causes_fini(&table);
    free(variable.causes);
    free(variable.walks);
}

/* The samples of a variable by how they walk through it, and how many have no room of their own. */
static double walked(const struct variable *variable, uint8_t kind, uint32_t stride_bytes)
{
    double samples = 0;
    for (size_t i = 0; i < variable->n_walks; i++)
        if (variable->walks[i].kind == kind && variable->walks[i].stride_bytes == stride_bytes)
            samples += variable->walks[i].samples;
    return samples;
}

/* Only a stride that one access takes alone says how far apart the elements are that are read. */
static void test_walks_of_a_variable(void **state)
{
    static const struct cause_caches caches = {CAUSES_L1_LINES, LINES_L2, CAUSES_L3_LINES};
    static const uint32_t first[] = {0};
    const uint64_t patterns[] = {pattern_make(PATTERN_STRIDED, 0, 4096, 8),
                                 pattern_make(PATTERN_DERIVED, 100, -4096, 8),
                                 pattern_make(PATTERN_STRIDED, 200, -1000000, 8),
                                 pattern_make(PATTERN_STRIDED, 300, 4096, 32),
                                 pattern_with_slots(pattern_make(PATTERN_STRIDED, 400, 4096, 8), 8, 1),
                                 pattern_make(PATTERN_IRREGULAR, 500, 4096, 8)};
    struct variable variable = {0};
    struct event_sum event = {0};
    struct model model = {.variables = &variable, .n_variables = 1, .events = &event, .n_events = 1};
    struct cause_table table = {0};
    (void)state;
    for (unsigned i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        struct cause_access access = {.vaddr = 1000 + i, .pattern = patterns[i], .n_samples = 1u << i};
        assert_true(causes_add(&table, &access, &caches));
    }
    for (unsigned i = 0; i < 3; i++) { /* of one walk the stride is that of most samples */
        const int strides[] = {511, 2047, 0};
        struct cause_access access = {
            .vaddr = 2000, .pattern = pattern_make(PATTERN_STRIDED, 600, strides[i], 8), .n_samples = 64u + i % 2};
        assert_true(causes_add(&table, &access, &caches));
    }
    causes_renumber(&table, first);
    assert_true(causes_apply(&table, &model, first, 1));
    assert_true(walked(&variable, PATTERN_STRIDED, 4096) == 1 + 2);
    assert_true(walked(&variable, PATTERN_STRIDED, 2047) == 64 + 65 + 64);
    assert_true(walked(&variable, PATTERN_STRIDED, WALK_STRIDE_MOST) == 4);
    assert_true(walked(&variable, PATTERN_STRIDED, 0) == 8 + 16 && walked(&variable, PATTERN_IRREGULAR, 0) == 32);
    for (uint32_t i = 0; i < 2 * WALKS_MAX; i++) {
        const struct variable_walk walk = {.kind = PATTERN_STRIDED, .stride_bytes = 5000 + i, .samples = 1};
        assert_true(causes_add_walk(&variable, &walk));
    }
    assert_true(variable.n_walks == WALKS_MAX + 1);
    assert_true(walked(&variable, PATTERN_UNKNOWN, 0) == WALKS_MAX + 5 &&
                walked(&variable, PATTERN_STRIDED, 4096) == 3);
    causes_fini(&table);
    free(variable.causes);
    free(variable.walks);
}

/* The sum of a variable that one thread walked: accesses [n], and nothing else. */
static struct cause_sum judged_alone(const struct cause_access *accesses, unsigned n)
{
    static const struct cause_caches caches = {CAUSES_L1_LINES, LINES_L2, CAUSES_L3_LINES};
    static const uint32_t first[] = {0};
    struct variable variable = {0};
    struct event_sum event = {0};
    struct model model = {.variables = &variable, .n_variables = 1, .events = &event, .n_events = 1};
    struct cause_table table = {0};
    for (unsigned i = 0; i < n; i++)
        assert_true(causes_add(&table, &accesses[i], &caches));
    causes_renumber(&table, first);
    assert_true(causes_apply(&table, &model, first, 1));
    struct cause_sum sum = *causes_of(&variable, 0);
    causes_fini(&table);
    free(variable.causes);
    free(variable.walks);
    return sum;
}

/* The copies that unrolling makes of an instruction have too few samples each, and enough together. */
static void test_copies_are_judged_together(void **state)
{
    static const uint64_t n_lines[] = {4u << 20, 400};
    uint64_t random = 6, slots[PATTERN_SLOTS];
    (void)state;
    draw_slots(&random, 120, 8, 0, slots);
    for (unsigned t = 0; t < 2 * TRIALS; t++) {
        struct cause_access copies[8];
        uint64_t n_bins = draw_bins(&random, 960, n_lines[t % 2]);
        for (uint32_t i = 0; i < 8; i++)
            copies[i] = (struct cause_access){.vaddr = 100 + i,
                                              .pattern = pattern_make(PATTERN_IRREGULAR, 90, 0, 8),
                                              .pool_id = 1,
                                              .n_samples = 120,
                                              .slots = slots,
                                              .n_bins = n_bins / 8 + (i < n_bins % 8)};
        struct cause_sum sum = judged_alone(copies, 8);
        assert_true(t % 2 ? sum.execution == 960 : sum.memory_low > 0.7 * 960);
    }
}

/* What chance may have made is not verified; nor all of what lies behind a store. */
static void test_what_is_not_verified(void **state)
{
    struct cause_footprint few = {.n = 0}, many = {.n = 0};
    uint64_t random = 7;
    (void)state;
    causes_add_footprint(&few, 120, draw_bins(&random, 120, 4u << 20), LINES_L2);
    causes_add_footprint(&many, 2000, draw_bins(&random, 2000, 4u << 20), LINES_L2);
    struct cause_sum unsure = causes_of_footprint(&few, pattern_make(PATTERN_IRREGULAR, 64, 0, 8));
    assert_true(unsure.unverified == 120 && unsure.memory == 0 && unsure.memory_high == 120);
    struct cause_sum loads = causes_of_footprint(&many, pattern_make(PATTERN_IRREGULAR, 64, 0, 8));
    assert_true(loads.memory == 1900 && loads.execution == 100 && loads.unverified == 0 && loads.memory_low < 1800);
    struct cause_sum stores = causes_of_footprint(&many, pattern_make(PATTERN_STORED, 64, 0, 8));
    assert_true(stores.memory == stores.memory_low && stores.memory + stores.unverified == 2000);
    assert_true(stores.memory_low == 1500 && stores.memory_high == 2000);
}

/* A link of a chain computes as long as a near line takes; only lines from beyond all caches must be waited for. */
static void test_links_of_chains(void **state)
{
    struct cause_footprint near = {.n = 0};
    uint64_t random = 10;
    (void)state;
    causes_add_footprint(&near, 2000, draw_bins(&random, 2000, 4u << 20), LINES_L2);
    struct cause_footprint far = near;
    far.n_far = 1500;
    struct cause_sum linked = causes_of_footprint(&far, pattern_make(PATTERN_IRREGULAR, 64, 0, 8) | PATTERN_MIXED);
    assert_true(linked.memory == 1900 && linked.memory_low == 1300 && linked.unverified == 0);
    linked = causes_of_footprint(&near, pattern_make(PATTERN_IRREGULAR, 64, 0, 8) | PATTERN_MIXED);
    assert_true(linked.unverified == 2000 && linked.memory_low == 0 && linked.memory_high == 2000);
    linked = causes_of_footprint(&far, pattern_make(PATTERN_STRIDED, 64, 0, 8) | PATTERN_MIXED);
    assert_true(linked.unverified == 2000 && linked.memory_low == 0);
    linked = causes_of_footprint(&near, pattern_make(PATTERN_CHAINED, 64, 0, 8) | PATTERN_MIXED);
    assert_true(linked.memory == 1900 && linked.memory_low == 1600);
}

/* What a resident access may have waited: least where its line comes while the chain computes, most where the line's
 * page is beyond the first-level TLB, too. */
static void test_resident_links(void **state)
{
    static const struct {
        uint64_t n_lines, flags;
        double most;
    } cases[] = {{CAUSES_L1_LINES, 0, 0},
                 {CAUSES_L1_LINES, PATTERN_MIXED | PATTERN_SERIAL, 0},
                 {2000, PATTERN_MIXED | PATTERN_SERIAL, 0.2},
                 {2000, PATTERN_SERIAL, 0.5}, /* of no chain */
                 {2000, PATTERN_MIXED, 0.5},
                 {2000, 0, 0.5},
                 {6000, 0, 0.65},
                 {0, 0, 0.65}}; /* not known */
    struct cause_footprint sparse = {.l1_lines = CAUSES_L1_LINES, .lines = 65536, .is_sparse = true};
    uint64_t random = 17;
    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cause_footprint sum = {.l1_lines = CAUSES_L1_LINES, .lines = (double)cases[i].n_lines};
        causes_add_footprint(&sum, 4000, draw_bins(&random, 4000, 400), LINES_L2);
        struct cause_sum found = causes_of_footprint(&sum, pattern_make(PATTERN_IRREGULAR, 64, 0, 8) | cases[i].flags);
        assert_true(fabs(found.memory_high - 4000 * cases[i].most) < 1e-6 && found.memory_low == 0);
        assert_true(found.memory <= found.memory_high && found.memory + found.execution == 4000);
    }
    causes_add_footprint(&sparse, 4000, draw_bins(&random, 4000, 400), LINES_L2);
    struct cause_sum found = causes_of_footprint(&sparse, pattern_make(PATTERN_IRREGULAR, 64, 0, 8));
    assert_true(found.memory == 2000 && found.memory_low == 0 && found.memory_high == 3400 && found.resident == 0);
}

/* What was found does not depend on which of the instructions of a walk, or of its threads, was read first. */
static void test_order_of_files(void **state)
{
    static const struct cause_caches caches = {CAUSES_L1_LINES, LINES_L2, CAUSES_L3_LINES};
    static const uint32_t first[] = {0};
    uint64_t random = 21, slots[PATTERN_SLOTS];
    struct cause_sum found[3];
    (void)state;
    draw_slots(&random, 1000, 8, 0, slots);
    uint64_t n_bins = draw_bins(&random, 1000, 4u << 20);
    for (unsigned mixed = 0; mixed < 3; mixed++) {
        struct variable variable = {0};
        struct event_sum event = {0};
        struct model model = {.variables = &variable, .n_variables = 1, .events = &event, .n_events = 1};
        struct cause_table table = {0};
        for (unsigned i = 0; i < 3; i++) {
            const struct cause_access access = {.vaddr = 100,
                                                .pattern = pattern_make(PATTERN_IRREGULAR, 64, 0, 8) |
                                                           (i == mixed ? PATTERN_MIXED : 0),
                                                .pool_id = i + 1,
                                                .n_samples = 1000,
                                                .slots = slots,
                                                .n_bins = n_bins};
            assert_true(causes_add(&table, &access, &caches));
        }
        causes_renumber(&table, first);
        assert_true(causes_apply(&table, &model, first, 1));
        found[mixed] = *causes_of(&variable, 0);
        causes_fini(&table);
        free(variable.causes);
        free(variable.walks);
    }
    assert_true(found[0].memory == found[1].memory && found[1].memory == found[2].memory);
    assert_true(found[0].unverified == 1000 && found[1].unverified == 1000 && found[2].unverified == 1000);
}

/* Where there was no room to note lines, the few that were noted say nothing of all samples. */
static void test_lines_without_room(void **state)
{
    uint64_t random = 22, slots[PATTERN_SLOTS];
    (void)state;
    draw_slots(&random, 64, 8, 0, slots);
    const struct cause_access access = {.vaddr = 100,
                                        .pattern = pattern_make(PATTERN_IRREGULAR, 64, 0, 8),
                                        .pool_id = 1,
                                        .n_samples = 5000,
                                        .slots = slots,
                                        .n_bins = draw_bins(&random, 64, 4u << 20)};
    struct cause_sum sum = judged_alone(&access, 1);
    assert_true(sum.unverified == 5000);
}

/* Samples of a window that moves over 2 MiB meet as many lines as samples from anywhere in it. */
static void test_what_fits_the_last_cache(void **state)
{
    uint64_t random = 13, slots[PATTERN_SLOTS];
    const enum pattern_kind kinds[] = {PATTERN_IRREGULAR, PATTERN_STRIDED, PATTERN_STORED, PATTERN_CHAINED};
    (void)state;
    draw_slots(&random, 3000, 8, 0, slots);
    for (unsigned i = 0; i < 4; i++)
        for (uint64_t n_lines = CAUSES_L3_LINES / 2; n_lines <= CAUSES_L3_LINES * 2; n_lines *= 4) {
            const struct cause_access access = {.vaddr = 100,
                                                .pattern = pattern_make(kinds[i], 90, 4096, 8),
                                                .pool_id = 1,
                                                .n_samples = 3000,
                                                .most_lines = n_lines,
                                                .all_lines = n_lines,
                                                .slots = slots,
                                                .n_bins = draw_bins(&random, 3000, n_lines)};
            struct cause_sum sum = judged_alone(&access, 1);
            if (n_lines < CAUSES_L3_LINES && kinds[i] != PATTERN_CHAINED)
                assert_true(sum.unverified == 3000 && sum.memory_low == 0 && sum.memory_high == 3000);
            else
                assert_true(sum.memory > 2000 && sum.memory_low > 1400);
        }
}

/* A list whose nodes lie in its order, or a tile that moves, sweeps over the data at one speed. */
static void test_sweeps(void **state)
{
    const enum pattern_kind kinds[] = {PATTERN_IRREGULAR, PATTERN_STORED, PATTERN_CHAINED};
    uint64_t random = 15;
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        for (unsigned is_sweep = 0; is_sweep < 2; is_sweep++) {
            struct cause_footprint sum = {.n_followed = 1900, .n_paced = is_sweep ? 1800 : 500};
            causes_add_footprint(&sum, 2000, draw_bins(&random, 2000, 4u << 20), LINES_L2);
            struct cause_sum found = causes_of_footprint(&sum, pattern_make(kinds[i], 64, 0, 8));
            assert_true(is_sweep ? found.unverified == 2000 && found.memory_low == 0 : found.memory_low >= 1500);
        }
}

/* The sums [4] of variables that accesses [n] of one thread fell on, by node; those of no access are 0. */
static void judge_all(const struct cause_access *accesses, unsigned n, struct cause_sum sums[4])
{
    static const struct cause_caches caches = {CAUSES_L1_LINES, LINES_L2, CAUSES_L3_LINES};
    static const uint32_t nodes[] = {0, 1, 2, 3};
    struct variable variables[4] = {{0}};
    struct event_sum event = {0};
    struct model model = {.variables = variables, .n_variables = 4, .events = &event, .n_events = 1};
    struct cause_table table = {0};
    for (unsigned i = 0; i < n; i++)
        assert_true(causes_add(&table, &accesses[i], &caches));
    causes_renumber(&table, nodes);
    assert_true(causes_apply(&table, &model, nodes, 4));
    for (unsigned v = 0; v < 4; v++) {
        const struct cause_sum *sum = causes_of(&variables[v], 0);
        sums[v] = sum ? *sum : (struct cause_sum){0};
        free(variables[v].causes);
        free(variables[v].walks);
    }
    causes_fini(&table);
}

/* Two variables that one loop waits for may hide each other's waits, a third one in another loop may not. */
static void test_waits_hide_each_other(void **state)
{
    static const uint64_t n_samples[] = {2000, 1000, 1000}, heads[] = {0x100, 0x100, 0x200};
    uint64_t random = 11, slots[3][PATTERN_SLOTS];
    struct cause_access accesses[3];
    struct cause_sum sums[4];
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        draw_slots(&random, (unsigned)n_samples[i], 8, 0, slots[i]);
        accesses[i] = (struct cause_access){.node = i,
                                            .vaddr = 0x400000 + heads[i] + 8 * i,
                                            .pattern = pattern_make(PATTERN_IRREGULAR, (uint32_t)heads[i], 0, 8),
                                            .pool_id = i + 1,
                                            .n_samples = n_samples[i],
                                            .slots = slots[i],
                                            .n_bins = draw_bins(&random, (unsigned)n_samples[i], 4u << 20)};
    }
    judge_all(accesses, 3, sums);
    assert_true(fabs(sums[0].memory - 1900) < 1 && fabs(sums[1].memory - 950) < 1);
    assert_true(fabs(sums[0].memory_least - 800) < 1 && fabs(sums[0].memory_most - 2500) < 1);
    assert_true(fabs(sums[1].memory_least - 400) < 1 && fabs(sums[1].memory_most - 2000) < 1);
    for (unsigned v = 0; v < 3; v++) /* what adds up stays */
        assert_true(fabs(sums[v].memory_low - 0.8 * (double)n_samples[v]) < 1 &&
                    fabs(sums[v].memory_high - (double)n_samples[v]) < 1);
    assert_true(sums[2].memory_least == sums[2].memory_low && sums[2].memory_most == sums[2].memory_high);
}

/* Arithmetic may be late because of other data of its loop than those that it is fed by. */
static void test_arithmetic_is_late(void **state)
{
    uint64_t random = 12, slots[PATTERN_SLOTS];
    struct cause_sum sums[4];
    (void)state;
    draw_slots(&random, 1000, 8, 0, slots);
    for (uint32_t place = 0x110; place <= 0x1110; place += 0x1000) {
        struct cause_access accesses[] = {{.node = 0,
                                           .vaddr = 0x400108,
                                           .pattern = pattern_make(PATTERN_IRREGULAR, 0x100, 0, 8),
                                           .n_samples = 1000,
                                           .slots = slots,
                                           .n_bins = draw_bins(&random, 1000, 4u << 20)},
                                          {.node = 1,
                                           .vaddr = 0x400000 + place,
                                           .pattern = pattern_make(PATTERN_FED, place, 0, 8),
                                           .n_samples = 500}};
        judge_all(accesses, 2, sums);
        assert_true(sums[1].execution == 500 && sums[1].memory_low == 0);
        assert_true(sums[1].memory_high == (place < 0x1000 ? 250 : 0)); /* half, in the same loop */
        accesses[0].most_lines = CAUSES_L3_LINES; /* not verified: half of it is thought to wait */
        judge_all(accesses, 2, sums);
        double late = 250 * 2 * 500 / 1500.0;
        assert_true(sums[0].unverified == 1000);
        assert_true(fabs(sums[1].memory_high - (place < 0x1000 ? late : 0)) < 1e-6);
        accesses[1].node = 0;
        judge_all(accesses, 2, sums);
        assert_true(fabs(sums[0].memory_high - 1000 - late) < 1e-6); /* of one variable, wherever it is */
    }
}

/* A chain of computations over data in the second-level cache waits for a stream of its loop; others have their part.
 */
static void test_chain_beside_a_stream(void **state)
{
    uint64_t random = 18, slots[2][PATTERN_SLOTS];
    struct cause_sum sums[4];
    (void)state;
    draw_slots(&random, 1000, 8, 0.9, slots[0]);
    draw_slots(&random, 1000, 8, 0, slots[1]);
    for (unsigned is_serial = 0; is_serial < 2; is_serial++) {
        uint64_t flags = is_serial ? PATTERN_MIXED | PATTERN_SERIAL : PATTERN_MIXED;
        const struct cause_access accesses[] = {
            {.node = 0,
             .vaddr = 0x400108,
             .pattern = pattern_with_slots(pattern_make(PATTERN_STRIDED, 0x108, 8, 8), 8, 1),
             .n_samples = 1000,
             .slots = slots[0]},
            {.node = 1,
             .vaddr = 0x400110,
             .pattern = pattern_make(PATTERN_IRREGULAR, 0x100, 0, 8) | flags,
             .n_samples = 1000,
             .slots = slots[1],
             .pool_id = 1,
             .most_lines = 2000,
             .n_bins = draw_bins(&random, 1000, 2000)}};
        judge_all(accesses, 2, sums);
        double late = is_serial ? 0.25 * sums[1].execution * fmin(1, 2 * sums[0].memory / 2000) : 0;
        assert_true(sums[0].memory > 800 && sums[1].memory > 0 && sums[1].memory_low == 0);
        assert_true(fabs(sums[1].memory_high - (is_serial ? 200 : 500) - late) < 1e-6);
    }
}

/* Work that runs beside the short waits for a near cache may take as long without them. */
static void test_near_streams(void **state)
{
    uint64_t random = 19, slots[PATTERN_SLOTS];
    (void)state;
    draw_slots(&random, 2000, 8, 0.4, slots);
    for (uint64_t n_lines = CAUSES_L3_LINES; n_lines <= 2 * CAUSES_L3_LINES; n_lines *= 2) {
        const struct cause_access access = {.vaddr = 100,
                                            .pattern =
                                                pattern_with_slots(pattern_make(PATTERN_STRIDED, 64, 8, 8), 8, 1),
                                            .n_samples = 2000,
                                            .most_lines = n_lines,
                                            .slots = slots};
        struct cause_sum sum = judged_alone(&access, 1);
        assert_true(fabs(sum.memory - 800) < 100 && sum.memory_high > 1000);
        assert_true(n_lines == CAUSES_L3_LINES ? sum.memory_low == 0 : sum.memory_low > 600);
    }
}

/* A list of few lines that lie on many pages waits for translations, not for lines. */
static void test_list_on_many_pages(void **state)
{
    uint64_t random = 20, slots[PATTERN_SLOTS];
    (void)state;
    draw_slots(&random, 2000, 8, 0, slots);
    for (uint64_t n_lines = 4096; n_lines <= 65536; n_lines *= 16) {
        const struct cause_access access = {.vaddr = 100,
                                            .pattern = pattern_make(PATTERN_CHAINED, 64, 0, 8),
                                            .pool_id = 1,
                                            .n_samples = 2000,
                                            .most_lines = n_lines,
                                            .slots = slots,
                                            .n_bins = draw_bins(&random, 2000, 400)};
        struct cause_sum sum = judged_alone(&access, 1);
        assert_true(n_lines == 4096 ? sum.memory_high == 0 : sum.memory_high == 1600);
    }
}

/* Data in the first-level cache, at places that a stream tells, are used late because of the stream, or meanwhile. */
static void test_work_beside_a_stream(void **state)
{
    uint64_t random = 14, waits[PATTERN_SLOTS], slots[PATTERN_SLOTS];
    struct cause_sum sums[4], alone = {0};
    (void)state;
    draw_slots(&random, 1000, 8, 0.2, waits);
    draw_slots(&random, 2000, 8, 0, slots);
    for (unsigned is_beside = 0; is_beside < 2; is_beside++) {
        const uint32_t place = is_beside ? 0x110 : 0x1100;
        const struct cause_access accesses[] = {
            {.node = 0,
             .vaddr = 0x400000 + place,
             .pattern = pattern_with_slots(pattern_make(PATTERN_STRIDED, place, 8, 8), 8, 1),
             .n_samples = 1000,
             .slots = waits},
            {.node = 1,
             .vaddr = 0x400108,
             .pattern = pattern_make(PATTERN_IRREGULAR, 0x100, 0, 8),
             .pool_id = 1,
             .n_samples = 2000,
             .most_lines = 128,
             .all_lines = 128,
             .slots = slots,
             .n_bins = draw_bins(&random, 2000, 128)}};
        judge_all(accesses, 2, sums);
        assert_true(sums[1].resident == 2000 && sums[1].memory_high == 0);
        if (!is_beside) {
            alone = sums[0];
            assert_true(alone.memory > 150 && alone.memory < 250 && alone.memory_low > 50);
        }
    }
    double late = 500 * fmin(1, 2 * alone.memory_high / 1000); /* a quarter of the work */
    assert_true(sums[0].memory == alone.memory && sums[0].memory_low == fmax(0, alone.memory_low - late));
    assert_true(fabs(sums[0].memory_high - alone.memory_high - late) < 1e-6);
}

/* The lines of a chain in the second-level cache are waited for, those in the first are not. */
static void test_chain_in_the_caches(void **state)
{
    uint64_t random = 9, slots[PATTERN_SLOTS];
    (void)state;
    draw_slots(&random, 2000, 8, 0, slots);
    for (unsigned n_lines = 256; n_lines <= 4096; n_lines *= 16) {
        const struct cause_access access = {.vaddr = 100,
                                            .pattern = pattern_make(PATTERN_CHAINED, 90, 0, 8),
                                            .pool_id = 1,
                                            .n_samples = 2000,
                                            .most_lines = n_lines,
                                            .all_lines = n_lines,
                                            .slots = slots,
                                            .n_bins = draw_bins(&random, 2000, n_lines)};
        struct cause_sum sum = judged_alone(&access, 1);
        if (n_lines == 256)
            assert_true(sum.memory == 0 && sum.resident == 2000);
        else
            assert_true(sum.memory > 0.6 * 2000 && sum.memory < 0.75 * 2000 && sum.memory_high == 0.8 * 2000);
        assert_true(fabs(sum.memory + sum.execution - 2000) < 1e-6 && sum.unverified == 0);
    }
}

/* Threads that alone say too little say something together. */
static void test_threads_are_judged_together(void **state)
{
    uint64_t random = 8, slots[PATTERN_SLOTS];
    struct cause_access threads[8];
    (void)state;
    draw_slots(&random, 150, 8, 0, slots);
    for (uint32_t i = 0; i < 8; i++)
        threads[i] = (struct cause_access){.vaddr = 100,
                                           .pattern = pattern_make(PATTERN_IRREGULAR, 90, 0, 8),
                                           .pool_id = i + 1,
                                           .n_samples = 150,
                                           .slots = slots,
                                           .n_bins = draw_bins(&random, 150, 4u << 20)};
    struct cause_sum sum = judged_alone(threads, 8);
    assert_true(sum.memory > 1139 && sum.memory < 1141 && sum.memory_low > 0.7 * 1200);
}

/* Accesses of several sizes that walk one array: the line is waited for at one of them. */
static void test_sizes_share_contrast(void **state)
{
    uint64_t first[PATTERN_SLOTS] = {[14] = 500}, others[PATTERN_SLOTS] = {[0] = 60, [4] = 60, [8] = 60};
    uint64_t pattern = pattern_with_slots(pattern_make(PATTERN_STRIDED, 64, 64, 8), 4, 1);
    struct cause_access accesses[] = {{.vaddr = 70,
                                       .pattern = pattern_with_slots(pattern_make(PATTERN_DERIVED, 64, 64, 16), 4, 1),
                                       .n_samples = 500,
                                       .slots = first},
                                      {.vaddr = 80, .pattern = pattern, .n_samples = 180, .slots = others}};
    (void)state;
    struct cause_sum sum = judged_alone(accesses, 2);
    assert_true(fabs(sum.memory - 440) < 1 && fabs(sum.execution - 240) < 1);
}

static void test_self_test_decides(void **state)
{
    (void)state;
    assert_true(causes_retire_in_order(NULL) && causes_retire_in_order("{\"rule\": \"unknown\"}"));
    assert_true(causes_retire_in_order("{\"kernels\": [{\"name\": \"k1\", \"samples\": 80, \"percent_next\": 10.0},"
                                       "{\"name\": \"k2\", \"samples\": 80, \"percent_next\": 97.0}]}"));
    assert_false(
        causes_retire_in_order("{\"kernels\": [{\"name\": \"k2\", \"samples\": 80, \"percent_next\": 70.0}]}"));
}

/* A level counts as it was measured, and never as more than the machine claims. */
static void test_measured_caches(void **state)
{
    const struct cause_caches claimed = {512, 16384, 8 << 20};
    struct cause_caches caches = claimed;
    (void)state;
    causes_caches_measured(&caches, "{\"hypervisor\": \"KVM\", \"caches\": {\"effective_kib\": [48, 512, 16384],"
                                    "\"all_kib\": 8192}}");
    assert_true(caches.l1_lines == 512 && caches.l2_lines == 8192 && caches.l3_lines == 131072);
    caches = claimed;
    causes_caches_measured(&caches,
                           "{\"hypervisor\": \"KVM\", \"caches\": {\"effective_kib\": [0, 0, 0], \"all_kib\": 0}}");
    assert_memory_equal(&caches, &claimed, sizeof caches);
    causes_caches_measured(&caches, "{\"hypervisor\": \"none\"}");
    assert_memory_equal(&caches, &claimed, sizeof caches);
    causes_caches_measured(&caches, NULL);
    assert_memory_equal(&caches, &claimed, sizeof caches);
    causes_caches_measured(&caches, "{\"hypervisor\": \"KVM\"}"); /* from before */
    assert_true(caches.l2_lines == 16384 && caches.l3_lines == 32768 * 1024 / 64);
}

/* Events without any pattern are not split: files from before, page faults. */
static void test_nothing_known(void **state)
{
    const struct cause_access access = {.n_samples = 500};
    struct cause_sum sums[4];
    (void)state;
    judge_all(&access, 1, sums);
    assert_true(sums[0].unverified == 0 && sums[0].memory_high == 0 && sums[0].execution == 0);
}

#define WALKS 24

/* One of several walks of a thread at variable 0, each in a loop of its own. */
struct small_walk {
    struct cause_access access;
    uint64_t slots[PATTERN_SLOTS];
    uint32_t hashes[64];
};

/* n samples of as many lines from first_line on, by one instruction. */
static void draw_walk(uint64_t *random, struct small_walk *walk, unsigned number, unsigned n, uint64_t first_line,
                      uint64_t n_lines)
{
    *walk = (struct small_walk){.slots = {[0] = n}};
    walk->access = (struct cause_access){.vaddr = number,
                                         .pattern = pattern_make(PATTERN_IRREGULAR, 0x1000 + 256 * number, 0, 8),
                                         .n_samples = n,
                                         .pool_id = 1,
                                         .slots = walk->slots,
                                         .hash_bits = PATTERN_FINE_BITS,
                                         .hashes = walk->hashes,
                                         .n_steps = 500,
                                         .n_forward = 240};
    for (unsigned i = 0; i < n; i++) {
        uint64_t line = first_line + next_random(random) % n_lines, k = 0;
        walk->hashes[walk->access.n_hashes] = pattern_place_fine(pattern_place(0x7f0000000000 + line * 64, 0));
        while (walk->hashes[k] != walk->hashes[walk->access.n_hashes])
            k++;
        walk->access.n_hashes += k == walk->access.n_hashes;
    }
    walk->access.n_bins = walk->access.n_hashes;
}

static struct cause_sum judge_small(const struct small_walk walks[WALKS])
{
    struct cause_access accesses[WALKS];
    for (unsigned i = 0; i < WALKS; i++)
        accesses[i] = walks[i].access;
    struct cause_sum sum = judged_alone(accesses, WALKS);
    assert_true(fabs(sum.memory + sum.execution + sum.unverified - (double)(WALKS * accesses[0].n_samples)) < 1e-6);
    return sum;
}

/* Many instructions with few samples each: together they show what no line that comes back says, and what part of them
 * may be near all the same is within the interval. */
static void test_walks_are_judged_together(void **state)
{
    static const unsigned n_near[] = {0, 4, 12, WALKS};
    struct small_walk walks[WALKS];
    uint64_t random = 31;
    (void)state;
    for (unsigned c = 0; c < 4; c++) {
        unsigned n_wrong = 0, n_verified = 0;
        for (unsigned t = 0; t < TRIALS; t++) {
            for (unsigned i = 0; i < WALKS; i++)
                draw_walk(&random, &walks[i], i, 40, i < n_near[c] ? 1u << 30 : 0, i < n_near[c] ? LINES_L2 : 4u << 20);
            struct cause_sum sum = judge_small(walks);
            n_wrong += sum.memory_low > 40 * (WALKS - n_near[c]);
            n_verified += sum.memory_low > 0.4 * 40 * WALKS && sum.unverified < 0.4 * 40 * WALKS;
            assert_true(sum.memory_low <= sum.memory + 1e-6 && sum.memory_high > 40 * WALKS - 1e-6);
        }
        assert_in_range(n_wrong, 0, TRIALS * 7 / 100);
        assert_in_range(n_verified, c == 0 ? TRIALS * 9 / 10 : 0, c == 0 ? TRIALS : c > 1 ? 0 : TRIALS);
    }
}

/* What moves through a variable in one direction, or nobody knows how, does not come back either. */
static void test_walks_that_move_on(void **state)
{
    static const uint64_t steps[][2] = {{500, 480}, {500, 20}, {500, 375}, {500, 313}, {0, 0}, {500, 260}};
    struct small_walk walks[WALKS];
    uint64_t random = 32;
    (void)state;
    for (unsigned c = 0; c < 6; c++) {
        for (unsigned i = 0; i < WALKS; i++) {
            draw_walk(&random, &walks[i], i, 40, 0, 4u << 20);
            walks[i].access.n_steps = steps[c][0];
            walks[i].access.n_forward = steps[c][1];
        }
        assert_true((judge_small(walks).memory_low > 0) == (c == 5));
    }
    for (unsigned i = 0; i < WALKS; i++) /* so many of LINES_L2 meet no line again, with as many beside them */
        draw_walk(&random, &walks[i], i, 8, 0, 4u << 20);
    assert_true(fabs(judge_small(walks).longer * 8 * WALKS - 2 * sqrt(2 * LINES_L2 * log(20))) < 10);
}

/* The walks of one loop say something, though those of another loop meet each other's lines. */
static void test_walks_of_a_loop(void **state)
{
    struct small_walk walks[WALKS];
    uint64_t random = 33;
    (void)state;
    for (unsigned i = 0; i < WALKS; i++) {
        bool is_near = i >= WALKS / 2;
        draw_walk(&random, &walks[i], i, 40, is_near ? 1u << 30 : 0, is_near ? 1500 : 4u << 20);
        walks[i].access.pattern =
            pattern_make(i % 2 ? PATTERN_IRREGULAR : PATTERN_CHAINED, is_near ? 0x5000 + i : 0x1000, 0, 8);
    }
    struct cause_sum sum = judge_small(walks);
    assert_true(sum.memory > 0 && sum.memory_low > 0 && sum.memory < 480 && sum.unverified < 960);
}

/* Lines that come back often say so at several instructions with few samples each. */
static void test_few_lines_together(void **state)
{
    struct small_walk walks[WALKS];
    uint64_t random = 34;
    (void)state;
    for (unsigned n = 2; n <= 60; n += 58) { /* 2 samples of one line each may be chance */
        for (unsigned i = 0; i < WALKS; i++)
            draw_walk(&random, &walks[i], i, n, 1000 * i, n == 2 ? 1 : 60);
        struct cause_sum sum = judge_small(walks);
        assert_true(n == 2 ? sum.unverified == 2 * WALKS : sum.unverified == 0 && sum.resident > 0.8 * 60 * WALKS);
    }
}

/* How many samples may be near, of n that met as many lines as those of n_near among n_lines do: seldom fewer. */
static void test_samples_that_may_be_near(void **state)
{
    uint64_t random = 35;
    (void)state;
    for (unsigned n_near = 0; n_near <= 600; n_near += 200)
        for (uint32_t n_threads = 1; n_threads <= 4; n_threads *= 4) {
            unsigned n_wrong = 0;
            for (unsigned t = 0; t < TRIALS; t++) {
                struct cause_meetings met = {.n = 1000, .n_threads = n_threads, .lines = LINES_L2};
                for (unsigned k = 0; k < n_threads; k++)
                    met.n_met += n_near / n_threads - (double)draw_bins(&random, n_near / n_threads, LINES_L2);
                met.n_chance = n_threads * causes_repeated(n_near / n_threads, 1u << PATTERN_HASH_BITS);
                n_wrong += causes_near_most(&met) < n_near;
            }
            assert_in_range(n_wrong, 0, TRIALS * 8 / 100);
        }
    const struct cause_meetings none = {.n = 947, .lines = 16384}, few = {.n = 300, .lines = 16384};
    assert_true(causes_near_most(&none) > 310 && causes_near_most(&none) < 320 && causes_near_most(&few) == 300);
}

/* Strided walks of one shape, up or down, show together where they wait. */
static void test_contrast_of_several_walks(void **state)
{
    uint64_t random = 36, slots[8][PATTERN_SLOTS];
    struct cause_access accesses[8];
    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        uint64_t up[PATTERN_SLOTS], pattern = pattern_make(PATTERN_STRIDED, 0x1000 + 256 * i, i % 2 ? -8 : 8, 8);
        draw_slots(&random, 80, 8, 0.5, up);
        for (unsigned k = 0; k < PATTERN_SLOTS; k++)
            slots[i][k] = up[i % 2 && k % 2 == 0 ? 14 - k : k];
        accesses[i] = (struct cause_access){
            .vaddr = 100 + i, .pattern = pattern_with_slots(pattern, 8, 1), .n_samples = 80, .slots = slots[i]};
    }
    struct cause_sum sum = judged_alone(accesses, 8);
    assert_true(fabs(sum.memory - 320) < 60 && sum.unverified == 0 && sum.memory_low > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contrast_has_the_errors_it_states),
        cmocka_unit_test(test_contrast_of_an_unrolled_loop),
        cmocka_unit_test(test_contrast_of_nothing),
        cmocka_unit_test(test_lines_are_counted),
        cmocka_unit_test(test_footprints),
        cmocka_unit_test(test_search_in_a_large_array),
        cmocka_unit_test(test_sums_of_a_variable),
        cmocka_unit_test(test_walks_of_a_variable),
        cmocka_unit_test(test_copies_are_judged_together),
        cmocka_unit_test(test_sizes_share_contrast),
        cmocka_unit_test(test_what_is_not_verified),
        cmocka_unit_test(test_links_of_chains),
        cmocka_unit_test(test_resident_links),
        cmocka_unit_test(test_what_fits_the_last_cache),
        cmocka_unit_test(test_sweeps),
        cmocka_unit_test(test_waits_hide_each_other),
        cmocka_unit_test(test_arithmetic_is_late),
        cmocka_unit_test(test_chain_beside_a_stream),
        cmocka_unit_test(test_near_streams),
        cmocka_unit_test(test_one_chance_of_many),
        cmocka_unit_test(test_contrast_of_blocks_side_by_side),
        cmocka_unit_test(test_order_of_files),
        cmocka_unit_test(test_lines_without_room),
        cmocka_unit_test(test_list_on_many_pages),
        cmocka_unit_test(test_work_beside_a_stream),
        cmocka_unit_test(test_threads_are_judged_together),
        cmocka_unit_test(test_chain_in_the_caches),
        cmocka_unit_test(test_self_test_decides),
        cmocka_unit_test(test_measured_caches),
        cmocka_unit_test(test_nothing_known),
        cmocka_unit_test(test_walks_are_judged_together),
        cmocka_unit_test(test_walks_that_move_on),
        cmocka_unit_test(test_walks_of_a_loop),
        cmocka_unit_test(test_few_lines_together),
        cmocka_unit_test(test_samples_that_may_be_near),
        cmocka_unit_test(test_contrast_of_several_walks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
