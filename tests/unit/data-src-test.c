/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of sampling/abi/data-src.h: every word that the fields can form in some part, the table of the original
 * stated again in another way, and the words that kernels are known to write. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <linux/perf_event.h>
#include <string.h>

#include "sampling/abi/data-src.h"

#define BIT(metric) (1u << (metric))
#define OP_METRICS (BIT(MEM_LOAD) | BIT(MEM_STORE) | BIT(MEM_OTHER_OP))
#define SHARED_METRICS (BIT(MEM_LOAD_SHARED) | BIT(MEM_LOAD_EXCLUSIVE))

/* The fields as numbers, packed by the places of the kernel's header. */
struct word {
    uint64_t op, lvl, snoop, lock, tlb, num, remote, snoopx, blk, hops;
};

static uint64_t pack(struct word w)
{
    return w.op | w.lvl << 5 | w.snoop << 19 | w.lock << 24 | w.tlb << 26 | w.num << 33 | w.remote << 37 |
           w.snoopx << 38 | w.blk << 40 | w.hops << 43;
}

static unsigned count(uint32_t metrics)
{
    return (unsigned)__builtin_popcount(metrics);
}

static int is_told(struct word w)
{
    return (w.op | w.lvl | w.snoop | w.lock | w.tlb | w.blk) > 1 || (w.num && w.num != 15) || w.remote || w.snoopx ||
           w.hops;
}

static struct word unpack(uint64_t word)
{
    return (struct word){word & 31,       word >> 5 & 0x3fff, word >> 19 & 31, word >> 24 & 3, word >> 26 & 127,
                         word >> 33 & 15, word >> 37 & 1,     word >> 38 & 3,  word >> 40 & 7, word >> 43 & 7};
}

/* What must hold for any word whatever. */
static int is_consistent(uint64_t word)
{
    uint32_t metrics = mem_metrics_sig(word);
    struct word w = unpack(word);
    if (!is_told(w))
        return !metrics;
    unsigned n_dram = count(metrics & (BIT(MEM_DRAM_LOCAL) | BIT(MEM_DRAM_REMOTE)));
    uint32_t of_loads = (BIT(MEM_STORE) - 1) | BIT(MEM_BLOCKED_DATA) | BIT(MEM_BLOCKED_ADDR);
    uint32_t of_stores = BIT(MEM_STORE) | BIT(MEM_STORE_L1_HIT) | BIT(MEM_STORE_L1_MISS) | BIT(MEM_STORE_UNCACHED);
    uint32_t op = w.op & 2 ? MEM_LOAD : w.op & 4 ? MEM_STORE : MEM_OTHER_OP;
    return (metrics & OP_METRICS) == BIT(op) && count(metrics & MEM_LEVEL_METRICS) <= 1 &&
           count(metrics & SHARED_METRICS) == n_dram && !(op != MEM_LOAD && metrics & of_loads) &&
           !(op != MEM_STORE && metrics & of_stores) && metrics < BIT(MEM_METRICS);
}

/* The table of the original code, row by row and counting everything that it counts. */
static uint32_t original(struct word w)
{
    int load = w.op >> 1 & 1, store = w.op >> 2 & 1, hit = w.lvl >> 1 & 1, miss = w.lvl >> 2 & 1;
    int snoop_hit = w.snoop >> 2 & 1, hitm = w.snoop >> 4 & 1;
    int l1 = hit && w.lvl & 0x8, lfb = hit && w.lvl & 0x10, l2 = hit && w.lvl & 0x20, l3 = hit && w.lvl & 0x40;
    int local = hit && w.lvl & 0x80, remote = hit && w.lvl & 0x300, elsewhere = !!(w.lvl & 0xc00);
    int rows[19] = {load,
                    load && lfb,
                    load && l1,
                    load && l2,
                    load && l3 && !hitm,
                    load && l3 && hitm,
                    load && elsewhere && hitm && !snoop_hit,
                    load && elsewhere && snoop_hit,
                    load && local,
                    load && remote,
                    load && miss,
                    load && hit && w.lvl & 0x1000,
                    load && (local || remote) && snoop_hit,
                    load && hit && w.lvl & 0x2000,
                    load && (local || remote) && !snoop_hit,
                    store,
                    store && l1,
                    store && miss && w.lvl & 0x8,
                    store && hit && w.lvl & 0x2000};
    uint32_t metrics = 0;
    for (unsigned i = 0; i < 19; i++)
        metrics |= rows[i] ? BIT(i) : 0;
    return metrics;
}

/* Words of the years before mem_lvl_num, all of them: 5 bits of op, 14 of lvl, 5 of snoop. */
static void test_original(void **state)
{
    (void)state;
    uint32_t n_compared = 0, n_several = 0;
    for (uint64_t low = 0; low < 1u << 24; low += 1) {
        struct word w = unpack(low | (low & 1 ? 15ull << 33 : 0));
        if ((w.op & 6) == 6)
            continue;
        uint32_t expected = original(w), found = mem_metrics_sig(pack(w)) & (BIT(MEM_STORE_UNCACHED + 1) - 1);
        if (count(expected & MEM_LEVEL_METRICS) > 1) {
            uint32_t level = found & MEM_LEVEL_METRICS;
            n_several++;
            if (count(level) != 1 || !(level & expected))
                fail_msg("%#llx: %#x is not one of %#x", (unsigned long long)pack(w), found, expected);
        } else if (found != expected) {
            fail_msg("%#llx counts %#x, in the original %#x", (unsigned long long)pack(w), found, expected);
        }
        n_compared++;
    }
    assert_true(n_compared > 12000000 && n_several > 1000000);
}

/* All tuples of operation, mem_lvl_num, snoop, snoopx, remote and hops, with the common forms of mem_lvl; then every
 * value of each other field beside a few of those. */
static void test_tuples(void **state)
{
    (void)state;
    static const uint16_t lvls[] = {0, 1, 2, 4, 6, 0xa, 0xc, 0x42, 0x402, 0x82, 0x102, 0x3fff};
    for (uint64_t i = 0; i < 1u << 21; i++)
        for (unsigned l = 0; l < sizeof lvls / sizeof lvls[0]; l++) {
            uint64_t word = pack((struct word){.op = i & 31,
                                               .lvl = lvls[l],
                                               .snoop = i >> 5 & 31,
                                               .num = i >> 10 & 15,
                                               .remote = i >> 14 & 1,
                                               .snoopx = i >> 15 & 3,
                                               .hops = i >> 17 & 7,
                                               .blk = i >> 20});
            if (!is_consistent(word))
                fail_msg("%#llx counts %#x", (unsigned long long)word, mem_metrics_sig(word));
        }
    for (uint64_t i = 0; i < 1u << 12; i++)
        for (unsigned op = 0; op < 32; op++)
            assert_true(is_consistent(
                pack((struct word){.op = op, .lock = i & 3, .tlb = i >> 2 & 127, .blk = i >> 9, .num = 1})));
    for (uint64_t lvl = 0; lvl < 1u << 14; lvl++)
        for (unsigned num = 0; num < 16; num++)
            assert_true(is_consistent(pack((struct word){.op = 2, .lvl = lvl, .num = num, .snoop = 4})) &&
                        is_consistent(pack((struct word){.op = 4, .lvl = lvl, .num = num, .snoop = 4})));
}

static void test_random_words(void **state)
{
    (void)state;
    uint64_t random = 0x9e3779b97f4a7c15;
    for (unsigned i = 0; i < 10000000; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        if (!is_consistent(random))
            fail_msg("%#llx counts %#x", (unsigned long long)random, mem_metrics_sig(random));
    }
}

static void test_nothing_told(void **state)
{
    (void)state;
    struct word na = {1, 1, 1, 1, 1, 15, 0, 0, 1, 0};
    assert_int_equal(mem_metrics_sig(0), 0);
    assert_int_equal(mem_metrics_sig(pack(na)), 0);
    assert_int_equal(mem_metrics_sig(~0ull << 46), 0);
    na.op = 8;
    assert_int_equal(mem_metrics_sig(pack(na)), BIT(MEM_OTHER_OP));
    na.op = 1;
    na.tlb = 0x16;
    assert_int_equal(mem_metrics_sig(pack(na)), BIT(MEM_OTHER_OP) | BIT(MEM_DTLB_WALK));
}

struct known {
    const char *what;
    struct word word;
    uint32_t metrics;
};

/* Words as kernels make them of what Intel's, AMD's, IBM's and Arm's hardware says. */
static const struct known known[] = {
    {"L1", {.op = 2, .lvl = 0xa, .snoop = 2, .num = 1}, BIT(MEM_LOAD_L1)},
    {"L0", {.op = 2, .lvl = 2, .snoop = 2, .num = 7}, BIT(MEM_LOAD_L1)},
    {"L2", {.op = 2, .lvl = 0x22, .snoop = 2, .num = 2}, BIT(MEM_LOAD_L2)},
    {"fill buffer", {.op = 2, .lvl = 0x12, .snoop = 2, .num = 0xc}, BIT(MEM_LOAD_LFB)},
    {"L2 miss buffer", {.op = 2, .lvl = 2, .snoop = 2, .num = 5}, BIT(MEM_LOAD_LFB)},
    {"L3, other core clean", {.op = 2, .lvl = 0x42, .snoop = 4, .num = 3}, BIT(MEM_LLC_HIT)},
    {"L3, other core modified", {.op = 2, .lvl = 0x42, .snoop = 0x10, .num = 3}, BIT(MEM_HITM_LOCAL)},
    {"L3, forwarded", {.op = 2, .lvl = 0x42, .num = 3, .snoopx = 1}, BIT(MEM_LLC_HIT)},
    {"unknown L3 miss", {.op = 2, .lvl = 0x44, .snoop = 1, .num = 3}, BIT(MEM_LOAD_MISS)},
    {"L4", {.op = 2, .lvl = 2, .snoop = 4, .num = 4}, BIT(MEM_LLC_HIT)},
    {"memory-side cache", {.op = 2, .lvl = 2, .snoop = 2, .num = 6}, BIT(MEM_LLC_HIT)},
    {"other socket's cache", {.op = 2, .lvl = 0x402, .snoop = 4, .num = 3, .remote = 1}, BIT(MEM_REMOTE_HIT)},
    {"other socket, modified", {.op = 2, .lvl = 0x402, .snoop = 0x10, .num = 3, .remote = 1}, BIT(MEM_HITM_REMOTE)},
    {"other socket, forwarded", {.op = 2, .lvl = 2, .num = 0xb, .remote = 1, .snoopx = 1}, BIT(MEM_REMOTE_HIT)},
    {"any cache, modified there", {.op = 2, .lvl = 2, .snoop = 0x10, .num = 0xb, .remote = 1}, BIT(MEM_HITM_REMOTE)},
    {"DRAM shared", {.op = 2, .lvl = 0x82, .snoop = 4, .num = 0xd}, BIT(MEM_DRAM_LOCAL) | BIT(MEM_LOAD_SHARED)},
    {"DRAM", {.op = 2, .lvl = 0x82, .snoop = 0xa, .num = 0xd}, BIT(MEM_DRAM_LOCAL) | BIT(MEM_LOAD_EXCLUSIVE)},
    {"remote DRAM",
     {.op = 2, .lvl = 0x102, .snoop = 0xa, .num = 0xd, .remote = 1},
     BIT(MEM_DRAM_REMOTE) | BIT(MEM_LOAD_EXCLUSIVE)},
    {"remote DRAM, said to be L3",
     {.op = 2, .lvl = 0x102, .snoop = 4, .num = 3, .remote = 1},
     BIT(MEM_DRAM_REMOTE) | BIT(MEM_LOAD_SHARED)},
    {"persistent memory",
     {.op = 2, .lvl = 2, .snoop = 4, .num = 0xe},
     BIT(MEM_DRAM_LOCAL) | BIT(MEM_LOAD_SHARED) | BIT(MEM_PMEM)},
    {"remote persistent memory",
     {.op = 2, .lvl = 2, .snoop = 4, .num = 0xe, .remote = 1},
     BIT(MEM_DRAM_REMOTE) | BIT(MEM_LOAD_SHARED) | BIT(MEM_PMEM)},
    {"CXL", {.op = 2, .lvl = 1, .num = 9}, BIT(MEM_DRAM_LOCAL) | BIT(MEM_LOAD_EXCLUSIVE) | BIT(MEM_CXL)},
    {"device", {.op = 2, .lvl = 0x1002, .snoop = 2, .num = 0xf}, BIT(MEM_LOAD_IO)},
    {"device by number", {.op = 2, .lvl = 0x1002, .snoop = 1, .num = 0xa}, BIT(MEM_LOAD_IO)},
    {"uncached", {.op = 2, .lvl = 0x2002, .snoop = 2, .num = 0xf}, BIT(MEM_LOAD_UNCACHED)},
    {"uncached by number", {.op = 2, .lvl = 0x2002, .num = 8}, BIT(MEM_LOAD_UNCACHED)},
    {"near CCX", {.op = 2, .lvl = 0x402, .num = 0xb, .remote = 1, .hops = 1}, BIT(MEM_LLC_HIT)},
    {"near CCX, modified",
     {.op = 2, .lvl = 0x402, .snoop = 0x10, .num = 0xb, .remote = 1, .hops = 1},
     BIT(MEM_HITM_LOCAL)},
    {"far CCX", {.op = 2, .lvl = 0x802, .snoop = 0x10, .num = 0xb, .remote = 1, .hops = 2}, BIT(MEM_HITM_REMOTE)},
    {"far DRAM",
     {.op = 2, .lvl = 0x102, .num = 0xd, .remote = 1, .hops = 2},
     BIT(MEM_DRAM_REMOTE) | BIT(MEM_LOAD_EXCLUSIVE)},
    {"other core's L2", {.op = 2, .lvl = 0x22, .snoop = 4, .num = 2, .remote = 1, .hops = 1}, BIT(MEM_LLC_HIT)},
    {"other core's L2, modified",
     {.op = 2, .lvl = 0x22, .snoop = 0x10, .num = 2, .remote = 1, .hops = 1},
     BIT(MEM_HITM_LOCAL)},
    {"other socket's L3", {.op = 2, .lvl = 0x802, .snoop = 4, .num = 3, .remote = 1, .hops = 3}, BIT(MEM_REMOTE_HIT)},
    {"peer core", {.op = 2, .lvl = 0x22, .num = 2, .snoopx = 2}, BIT(MEM_LLC_HIT)},
    {"peer of another node", {.op = 2, .num = 0xb, .remote = 1, .snoopx = 2}, BIT(MEM_REMOTE_HIT)},
    {"cache of another board", {.op = 2, .num = 3, .hops = 4}, BIT(MEM_REMOTE_HIT)},
    {"store in L1", {.op = 4, .lvl = 0xa, .num = 0xf}, BIT(MEM_STORE_L1_HIT)},
    {"store not in L1", {.op = 4, .lvl = 0xc, .num = 0xf}, BIT(MEM_STORE_L1_MISS)},
    {"store of 2012", {.op = 4, .lvl = 8, .snoop = 1}, 0},
    {"store in L1 by number", {.op = 4, .lvl = 0xa, .num = 1}, BIT(MEM_STORE_L1_HIT)},
    {"store missed by number", {.op = 4, .lvl = 0xc, .num = 1}, BIT(MEM_STORE_L1_MISS)},
    {"store in L2", {.op = 4, .lvl = 0x22, .num = 2}, BIT(MEM_STORE_L1_MISS)},
    {"store to memory", {.op = 4, .lvl = 0x82, .num = 0xd}, BIT(MEM_STORE_L1_MISS)},
    {"store uncached", {.op = 4, .lvl = 0x2002, .num = 8}, BIT(MEM_STORE_UNCACHED)},
    {"store to a device", {.op = 4, .lvl = 0x1002, .num = 0xa}, 0},
    {"atomic", {.op = 6, .lvl = 0xa, .num = 1, .lock = 2}, BIT(MEM_LOAD_L1) | BIT(MEM_LOCKED)},
    {"first TLB missed", {.op = 2, .lvl = 0xa, .num = 1, .tlb = 0x12}, BIT(MEM_LOAD_L1)},
    {"last TLB missed", {.op = 2, .lvl = 0xa, .num = 1, .tlb = 0x14}, BIT(MEM_LOAD_L1) | BIT(MEM_DTLB_WALK)},
    {"walker", {.op = 2, .lvl = 0xa, .num = 1, .tlb = 0x24}, BIT(MEM_LOAD_L1) | BIT(MEM_DTLB_WALK)},
    {"both TLBs hit", {.op = 2, .lvl = 0xa, .num = 1, .tlb = 0x1a}, BIT(MEM_LOAD_L1)},
    {"blocked",
     {.op = 2, .lvl = 0xa, .num = 1, .blk = 6},
     BIT(MEM_LOAD_L1) | BIT(MEM_BLOCKED_DATA) | BIT(MEM_BLOCKED_ADDR)},
    {"not blocked", {.op = 2, .lvl = 0xa, .num = 1, .blk = 1}, BIT(MEM_LOAD_L1)},
};

static void test_known_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        uint32_t op = known[i].word.op & 2 ? BIT(MEM_LOAD) : BIT(MEM_STORE);
        uint32_t found = mem_metrics_sig(pack(known[i].word));
        if (found != (known[i].metrics | op))
            fail_msg("%s: counts %#x instead of %#x", known[i].what, found, known[i].metrics | op);
    }
}

/* The shifts against the kernel's own union, as far as the installed header knows its fields. */
static void test_kernel_union(void **state)
{
    (void)state;
#ifdef HAVE_UNION_PERF_MEM_DATA_SRC
    union perf_mem_data_src kernel = {.val = 0};
    kernel.mem_op = 2;
    kernel.mem_lvl = 0x82;
    kernel.mem_snoop = 4;
    kernel.mem_lock = 2;
    kernel.mem_dtlb = 0x14;
    struct word own = {.op = 2, .lvl = 0x82, .snoop = 4, .lock = 2, .tlb = 0x14};
    assert_int_equal(kernel.val, pack(own));
#ifdef HAVE_UNION_PERF_MEM_DATA_SRC_MEM_LVL_NUM
    kernel.mem_lvl_num = 9;
    own.num = 9;
    kernel.mem_remote = 1;
    own.remote = 1;
    kernel.mem_snoopx = 1;
    own.snoopx = 1;
    assert_int_equal(kernel.val, pack(own));
#endif
#ifdef HAVE_UNION_PERF_MEM_DATA_SRC_MEM_BLK
    kernel.mem_blk = 5;
    own.blk = 5;
    assert_int_equal(kernel.val, pack(own));
#endif
#ifdef HAVE_UNION_PERF_MEM_DATA_SRC_MEM_HOPS
    kernel.mem_hops = 6;
    own.hops = 6;
    assert_int_equal(kernel.val, pack(own));
#endif
#else
    skip();
#endif
}

static void test_names(void **state)
{
    (void)state;
    unsigned n_original = 0, n_aliases = 0;
    for (unsigned i = 0; i < MEM_METRICS; i++) {
        const struct mem_metric_row *row = mem_metric_row(i);
        assert_true(row && row->name && strlen(row->name) < 64 && row->description && strlen(row->description) < 160);
        for (unsigned j = 0; j < i; j++)
            assert_string_not_equal(row->name, mem_metric_row(j)->name);
        n_original += row->is_original;
        n_aliases += row->alias != NULL;
    }
    assert_int_equal(n_original, 19);
    assert_int_equal(n_aliases, 6);
    assert_string_equal(mem_metric_row(MEM_DRAM_REMOTE)->name, "DRAM-miss-to-rmt");
    assert_string_equal(mem_metric_row(MEM_DRAM_REMOTE)->alias, "Load-miss-to-rmt-DRAM");
    assert_null(mem_metric_row(MEM_METRICS));
}

static void test_latency_bins(void **state)
{
    (void)state;
    for (unsigned bin = 0; bin < 64; bin++) {
        assert_int_equal(mem_latency_bin_sig(mem_latency_of_bin_sig(bin)), bin);
        if (bin)
            assert_int_equal(mem_latency_bin_sig(mem_latency_of_bin_sig(bin) - 1), bin - 1);
    }
    assert_int_equal(mem_latency_of_bin_sig(8), 8);
    assert_int_equal(mem_latency_of_bin_sig(9), 10);
    assert_int_equal(mem_latency_of_bin_sig(4 * (10 - 1) + 3), 1024 + 768);
    assert_int_equal(mem_latency_bin_sig(UINT64_MAX), 63);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_original),     cmocka_unit_test(test_tuples),       cmocka_unit_test(test_random_words),
        cmocka_unit_test(test_nothing_told), cmocka_unit_test(test_known_words),  cmocka_unit_test(test_kernel_union),
        cmocka_unit_test(test_names),        cmocka_unit_test(test_latency_bins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
