/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of sampling/abi/ibs.h: registers put together by the bit numbers of AMD's manuals (24593 volume 2; PPR
 * 55898 for the five-bit data source), and the metrics that come of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "sampling/abi/data-src.h"
#include "sampling/abi/ibs.h"

#define BIT(n) (1ull << (n))
#define METRIC(metric) (1u << (metric))

/* Bits of IBS_OP_DATA3. */
#define LOAD BIT(0)
#define STORE BIT(1)
#define TLB1_MISS BIT(2)
#define TLB2_MISS BIT(3)
#define DC_MISS BIT(7)
#define MISALIGNED BIT(8)
#define WRITE_COMBINED BIT(13)
#define UNCACHED BIT(14)
#define LOCKED BIT(15)
#define NO_MAB_ALLOC BIT(16)
#define LINEAR BIT(17)
#define PHYSICAL BIT(18)
#define L2_MISS BIT(20)
#define PREFETCH BIT(21)
#define WIDTH(n) ((uint64_t)(n) << 22)
#define LATENCY(n) ((uint64_t)(n) << 32)
/* IBS_OP_DATA2: data source in bits 2:0 and 7:6, remote node in bit 4. */
#define SOURCE(n) (((n)&7u) | ((n) >> 3 & 3u) << 6)
#define REMOTE_NODE BIT(4)

enum { N_RAW_BYTES = 4 + 7 * 8 };

struct regs {
    uint64_t ctl, rip, data, data2, data3, linear, physical;
};

static void put(unsigned char *at, uint64_t value, unsigned n_bytes)
{
    for (unsigned i = 0; i < n_bytes; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

static struct ibs_op parse(struct regs regs, uint32_t caps, bool is_zen4)
{
    unsigned char *raw = malloc(N_RAW_BYTES);
    uint64_t words[] = {regs.ctl, regs.rip, regs.data, regs.data2, regs.data3, regs.linear, regs.physical};
    struct ibs_op op;
    put(raw, caps, 4);
    for (unsigned i = 0; i < 7; i++)
        put(raw + 4 + 8 * i, words[i], 8);
    assert_true(ibs_op_parse_sig(raw, N_RAW_BYTES, is_zen4, &op));
    free(raw);
    return op;
}

static uint32_t metrics(uint64_t data2, uint64_t data3, bool is_zen4)
{
    return mem_metrics_sig(parse((struct regs){.data2 = data2, .data3 = data3}, 0, is_zen4).data_src);
}

static void test_fields(void **state)
{
    (void)state;
    struct ibs_op op = parse((struct regs){.rip = 0x401234,
                                           .data = 0x00210007,
                                           .data2 = REMOTE_NODE | SOURCE(3),
                                           .data3 = LOAD | TLB1_MISS | DC_MISS | MISALIGNED | LOCKED | LINEAR |
                                                    PHYSICAL | L2_MISS | WIDTH(4) | LATENCY(0x1f4) | 0xabcdull << 48,
                                           .linear = 0x7f1234567890,
                                           .physical = 0x123456890},
                             0, true);
    assert_true(op.is_load && !op.is_store && op.has_address && op.has_phys_address && op.is_rip_valid);
    assert_true(op.rip == 0x401234 && op.address == 0x7f1234567890 && op.phys_address == 0x123456890);
    assert_true(op.width_bytes == 8 && op.lat_cycles == 500);
    assert_true(op.comp_to_retire_cycles == 7 && op.tag_to_retire_cycles == 33);
    assert_true(op.is_l1_miss && op.is_l2_miss && op.is_dtlb_l1_miss && !op.is_dtlb_l2_miss && op.is_locked);
    assert_true(op.is_misaligned && !op.is_uncached && !op.is_write_combined && !op.is_swpf);
    assert_true(op.data_source == 3 && op.is_remote);
    op = parse((struct regs){.data = BIT(38),
                             .data3 = STORE | UNCACHED | WRITE_COMBINED | PREFETCH | LATENCY(99) | DC_MISS | TLB2_MISS,
                             .linear = 5,
                             .physical = 6},
               0, false);
    assert_true(!op.is_rip_valid && op.is_store && op.is_uncached && op.is_write_combined && op.is_swpf);
    assert_true(op.is_dtlb_l2_miss && !op.lat_cycles && !op.address && !op.phys_address && !op.has_address);
}

static void test_widths(void **state)
{
    (void)state;
    static const unsigned widths[16] = {0, 1, 2, 4, 8, 16, 32, 64};
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(parse((struct regs){.data3 = LOAD | WIDTH(i)}, 0, false).width_bytes, widths[i]);
}

/* Bits 7:6 of DATA2 belong to the data source only where the processor says so. */
static void test_source_width(void **state)
{
    (void)state;
    struct regs regs = {.data2 = SOURCE(8 + 3)};
    assert_int_equal(parse(regs, 0, false).data_source, 3);
    assert_int_equal(parse(regs, 0, true).data_source, 11);
    assert_int_equal(parse(regs, 1u << 11, false).data_source, 11);
}

static void test_levels(void **state)
{
    (void)state;
    const uint64_t beyond = LOAD | DC_MISS | L2_MISS;
    const uint32_t load = METRIC(MEM_LOAD), alone = METRIC(MEM_LOAD_EXCLUSIVE);
    assert_int_equal(metrics(0, LOAD, true), load | METRIC(MEM_LOAD_L1));
    assert_int_equal(metrics(SOURCE(3), LOAD | DC_MISS, true), load | METRIC(MEM_LOAD_L2));
    assert_int_equal(metrics(SOURCE(1), beyond, true), load | METRIC(MEM_LLC_HIT));
    assert_int_equal(metrics(SOURCE(2), beyond, true), load | METRIC(MEM_HITM_LOCAL));
    assert_int_equal(metrics(SOURCE(3), beyond, true), load | METRIC(MEM_DRAM_LOCAL) | alone);
    assert_int_equal(metrics(SOURCE(3) | REMOTE_NODE, beyond, true), load | METRIC(MEM_DRAM_REMOTE) | alone);
    assert_int_equal(metrics(SOURCE(5) | REMOTE_NODE, beyond, true), load | METRIC(MEM_HITM_REMOTE));
    assert_int_equal(metrics(SOURCE(6), beyond, true), load | METRIC(MEM_DRAM_LOCAL) | alone | METRIC(MEM_PMEM));
    assert_int_equal(metrics(SOURCE(7), beyond, true), load | METRIC(MEM_LOAD_IO));
    assert_int_equal(metrics(SOURCE(7), beyond | UNCACHED, true), load | METRIC(MEM_LOAD_IO));
    assert_int_equal(metrics(SOURCE(8), beyond, true), load | METRIC(MEM_DRAM_LOCAL) | alone | METRIC(MEM_CXL));
    assert_int_equal(metrics(SOURCE(8) | REMOTE_NODE, beyond, true),
                     load | METRIC(MEM_DRAM_REMOTE) | alone | METRIC(MEM_CXL));
    assert_int_equal(metrics(SOURCE(0), beyond, true), load);
    assert_int_equal(metrics(SOURCE(12), beyond, true), load);
    assert_int_equal(metrics(SOURCE(0), beyond | NO_MAB_ALLOC, true), load | METRIC(MEM_LOAD_LFB));
    assert_int_equal(metrics(SOURCE(3), LOAD | UNCACHED, true), load | METRIC(MEM_LOAD_UNCACHED));
}

static void test_levels_before_zen4(void **state)
{
    (void)state;
    const uint64_t beyond = LOAD | DC_MISS | L2_MISS;
    const uint32_t load = METRIC(MEM_LOAD), alone = METRIC(MEM_LOAD_EXCLUSIVE);
    assert_int_equal(metrics(SOURCE(2), beyond, false), load | METRIC(MEM_LLC_HIT));
    assert_int_equal(metrics(SOURCE(3), beyond, false), load | METRIC(MEM_DRAM_LOCAL) | alone);
    assert_int_equal(metrics(SOURCE(3) | REMOTE_NODE, beyond, false), load | METRIC(MEM_DRAM_REMOTE) | alone);
    assert_int_equal(metrics(SOURCE(4), beyond, false), load | METRIC(MEM_HITM_REMOTE));
    assert_int_equal(metrics(SOURCE(7), beyond, false), load | METRIC(MEM_LOAD_IO));
    assert_int_equal(metrics(SOURCE(1), beyond, false), load);
}

static void test_stores_and_others(void **state)
{
    (void)state;
    assert_int_equal(metrics(0, STORE, true), METRIC(MEM_STORE) | METRIC(MEM_STORE_L1_HIT));
    assert_int_equal(metrics(SOURCE(3), STORE | DC_MISS, true), METRIC(MEM_STORE) | METRIC(MEM_STORE_L1_MISS));
    assert_int_equal(metrics(SOURCE(3), STORE | DC_MISS | L2_MISS, true), METRIC(MEM_STORE));
    assert_int_equal(metrics(0, STORE | UNCACHED, true), METRIC(MEM_STORE) | METRIC(MEM_STORE_UNCACHED));
    assert_int_equal(metrics(0, LOAD | STORE | LOCKED, true),
                     METRIC(MEM_LOAD) | METRIC(MEM_LOAD_L1) | METRIC(MEM_LOCKED));
    assert_int_equal(metrics(SOURCE(3), DC_MISS | L2_MISS | LOCKED, true), 0);
    assert_int_equal(metrics(0, LOAD | LINEAR | TLB1_MISS | TLB2_MISS, true),
                     METRIC(MEM_LOAD) | METRIC(MEM_LOAD_L1) | METRIC(MEM_DTLB_WALK));
    assert_int_equal(metrics(0, LOAD | LINEAR | TLB1_MISS, true), METRIC(MEM_LOAD) | METRIC(MEM_LOAD_L1));
}

/* The whole word, field by field, for one far access. */
static void test_word(void **state)
{
    (void)state;
    struct ibs_op op = parse((struct regs){.data2 = SOURCE(3) | REMOTE_NODE,
                                           .data3 = LOAD | DC_MISS | L2_MISS | LINEAR | TLB1_MISS | LOCKED},
                             0, true);
    uint64_t expected = 2 | (2ull | 0x100) << 5 | 1ull << 19 | 2ull << 24 | (2ull | 0x10) << 26 | 0xdull << 33 |
                        1ull << 37 | 1ull << 40 | 2ull << 43;
    assert_int_equal(op.data_src, expected);
}

/* At most one level whatever the registers hold; nothing behind the end is read. */
static void test_any_registers(void **state)
{
    (void)state;
    uint64_t random = 7;
    for (unsigned i = 0; i < 300000; i++) {
        uint64_t words[3];
        for (unsigned w = 0; w < 3; w++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            words[w] = random;
        }
        struct ibs_op op = parse((struct regs){.data = words[0], .data2 = words[1], .data3 = words[2]}, 0, i & 1);
        uint32_t found = mem_metrics_sig(op.data_src);
        bool is_memory = op.is_load || op.is_store;
        assert_int_equal(!!(found & (METRIC(MEM_LOAD) | METRIC(MEM_STORE))), is_memory);
        assert_true(__builtin_popcount(found & MEM_LEVEL_METRICS) <= is_memory);
        assert_false(found & METRIC(MEM_OTHER_OP));
    }
    for (size_t n_bytes = 0; n_bytes < N_RAW_BYTES; n_bytes++) {
        unsigned char *raw = calloc(1, n_bytes + 1);
        struct ibs_op op = {.is_load = true};
        assert_false(ibs_op_parse_sig(raw, n_bytes, false, &op));
        assert_false(op.is_load);
        free(raw);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_widths),
        cmocka_unit_test(test_source_width),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_levels_before_zen4),
        cmocka_unit_test(test_stores_and_others),
        cmocka_unit_test(test_word),
        cmocka_unit_test(test_any_registers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
