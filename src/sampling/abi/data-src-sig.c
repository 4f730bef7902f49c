/* SPDX-License-Identifier: BSD-3-Clause */
/* Decodes the word that the hardware's data source is packed into: see data-src.h. Runs in the signal handler. */
#include "sampling/abi/data-src.h"

#include <stddef.h>

#include "base/sigsafe.h"

#define BIT(metric) (1u << (metric))
#define ELSEWHERE (DATA_SRC_LVL_CCE1 | DATA_SRC_LVL_CCE2)
#define REMOTE_RAM (DATA_SRC_LVL_REM_RAM1 | DATA_SRC_LVL_REM_RAM2)
#define ANY_RAM (DATA_SRC_LVL_LOC_RAM | REMOTE_RAM)
#define LOCAL_CACHES (DATA_SRC_LVL_LFB | DATA_SRC_LVL_L1 | DATA_SRC_LVL_L2 | DATA_SRC_LVL_L3)

/* Where the data came from. */
enum place {
    PLACE_NONE = 0,
    PLACE_BUFFER,
    PLACE_L1,
    PLACE_L2,
    PLACE_CACHE, /* beyond the core's own */
    PLACE_RAM,
    PLACE_PMEM,
    PLACE_CXL,
    PLACE_IO,
    PLACE_UNCACHED
};

static const uint8_t place_of_number[16] = {
    [DATA_SRC_NUM_L1] = PLACE_L1,    [DATA_SRC_NUM_L2] = PLACE_L2,        [DATA_SRC_NUM_L3] = PLACE_CACHE,
    [DATA_SRC_NUM_L4] = PLACE_CACHE, [DATA_SRC_NUM_MHB] = PLACE_BUFFER,   [DATA_SRC_NUM_MSC] = PLACE_CACHE,
    [DATA_SRC_NUM_L0] = PLACE_L1,    [DATA_SRC_NUM_UNC] = PLACE_UNCACHED, [DATA_SRC_NUM_CXL] = PLACE_CXL,
    [DATA_SRC_NUM_IO] = PLACE_IO,    [DATA_SRC_NUM_ANY] = PLACE_CACHE,    [DATA_SRC_NUM_LFB] = PLACE_BUFFER,
    [DATA_SRC_NUM_RAM] = PLACE_RAM,  [DATA_SRC_NUM_PMEM] = PLACE_PMEM,
};

/* Bits of mem_lvl, those that decide first. */
static const struct {
    uint16_t bits;
    uint8_t place;
    bool is_remote;
} place_of_bits[] = {
    {DATA_SRC_LVL_LFB, PLACE_BUFFER, false},
    {DATA_SRC_LVL_L1, PLACE_L1, false},
    {DATA_SRC_LVL_L2, PLACE_L2, false},
    {DATA_SRC_LVL_L3, PLACE_CACHE, false},
    {ELSEWHERE, PLACE_CACHE, true},
    {DATA_SRC_LVL_LOC_RAM, PLACE_RAM, false},
    {REMOTE_RAM, PLACE_RAM, true},
    {DATA_SRC_LVL_IO, PLACE_IO, false},
    {DATA_SRC_LVL_UNC, PLACE_UNCACHED, false},
};

/* The fields of a data source that give the level. */
struct data_source_fields {
    unsigned lvl, snoop, snoopx, number;
    bool is_remote, is_other_core;
};

static unsigned field_sig(uint64_t data_src, unsigned shift, unsigned bits)
{
    return (unsigned)(data_src >> shift) & ((1u << bits) - 1);
}

static struct data_source_fields source_of_sig(uint64_t data_src)
{
    struct data_source_fields source = {
        .lvl = field_sig(data_src, DATA_SRC_LVL_SHIFT, 14),
        .snoop = field_sig(data_src, DATA_SRC_SNOOP_SHIFT, 5),
        .snoopx = field_sig(data_src, DATA_SRC_SNOOPX_SHIFT, 2),
        .number = field_sig(data_src, DATA_SRC_NUM_SHIFT, 4),
    };
    unsigned hops = field_sig(data_src, DATA_SRC_HOPS_SHIFT, 3);
    bool is_elsewhere = field_sig(data_src, DATA_SRC_REMOTE_SHIFT, 1);
    source.is_remote =
        (hops >= DATA_SRC_HOPS_1 && hops <= DATA_SRC_HOPS_3) || (is_elsewhere && hops != DATA_SRC_HOPS_0);
    source.is_other_core = hops == DATA_SRC_HOPS_0 || source.snoopx & DATA_SRC_SNOOPX_PEER;
    return source;
}

static bool is_newer_sig(const struct data_source_fields *source)
{
    bool is_ram_after_all = source->number == DATA_SRC_NUM_L3 && source->lvl & DATA_SRC_LVL_HIT &&
                            source->lvl & ANY_RAM && !(source->lvl & (LOCAL_CACHES | ELSEWHERE));
    return place_of_number[source->number] != PLACE_NONE && !is_ram_after_all;
}

/* The place according to mem_lvl; sets is_remote if its bits say so. */
static enum place place_by_bits_sig(struct data_source_fields *source)
{
    bool is_answered = source->snoop & (DATA_SRC_SNOOP_HIT | DATA_SRC_SNOOP_HITM) || source->snoopx;
    for (size_t i = 0; i < sizeof place_of_bits / sizeof place_of_bits[0]; i++) {
        unsigned bits = place_of_bits[i].bits;
        bool is_certain = bits == ELSEWHERE ? is_answered : source->lvl & DATA_SRC_LVL_HIT;
        if (!(source->lvl & bits) || !is_certain)
            continue;
        source->is_remote |= place_of_bits[i].is_remote && !(bits == ELSEWHERE && source->is_other_core);
        return place_of_bits[i].place;
    }
    return PLACE_NONE;
}

static bool is_miss_only_sig(const struct data_source_fields *source)
{
    return (source->lvl & (DATA_SRC_LVL_HIT | DATA_SRC_LVL_MISS)) == DATA_SRC_LVL_MISS;
}

static enum place load_place_sig(struct data_source_fields *source)
{
    if (!is_newer_sig(source))
        return place_by_bits_sig(source);
    return is_miss_only_sig(source) ? PLACE_NONE : place_of_number[source->number];
}

static uint32_t cache_metric_sig(const struct data_source_fields *source)
{
    bool is_hit = source->snoop & DATA_SRC_SNOOP_HIT, is_modified = source->snoop & DATA_SRC_SNOOP_HITM;
    if (source->is_remote)
        return is_modified && !is_hit ? BIT(MEM_HITM_REMOTE) : BIT(MEM_REMOTE_HIT);
    return is_modified ? BIT(MEM_HITM_LOCAL) : BIT(MEM_LLC_HIT);
}

static uint32_t ram_metrics_sig(const struct data_source_fields *source)
{
    return (source->is_remote ? BIT(MEM_DRAM_REMOTE) : BIT(MEM_DRAM_LOCAL)) |
           (source->snoop & DATA_SRC_SNOOP_HIT ? BIT(MEM_LOAD_SHARED) : BIT(MEM_LOAD_EXCLUSIVE));
}

static uint32_t load_metrics_sig(struct data_source_fields *source)
{
    uint32_t miss = source->lvl & DATA_SRC_LVL_MISS ? BIT(MEM_LOAD_MISS) : 0;
    enum place place = load_place_sig(source);
    bool is_own = !source->is_remote && !source->is_other_core;
    switch (place) {
    case PLACE_NONE:
        return miss;
    case PLACE_BUFFER:
        return miss | BIT(MEM_LOAD_LFB);
    case PLACE_L1:
        return miss | (is_own ? BIT(MEM_LOAD_L1) : cache_metric_sig(source));
    case PLACE_L2:
        return miss | (is_own ? BIT(MEM_LOAD_L2) : cache_metric_sig(source));
    case PLACE_CACHE:
        return miss | cache_metric_sig(source);
    case PLACE_RAM:
    case PLACE_PMEM:
    case PLACE_CXL:
        return miss | ram_metrics_sig(source);
    case PLACE_IO:
        return miss | BIT(MEM_LOAD_IO);
    case PLACE_UNCACHED:
        return miss | BIT(MEM_LOAD_UNCACHED);
    }
    return miss;
}

static uint32_t store_by_bits_sig(unsigned lvl)
{
    bool is_l1 = lvl & DATA_SRC_LVL_L1;
    if (is_l1 && lvl & DATA_SRC_LVL_HIT)
        return BIT(MEM_STORE_L1_HIT);
    if (is_l1 && lvl & DATA_SRC_LVL_MISS)
        return BIT(MEM_STORE_L1_MISS);
    return lvl & DATA_SRC_LVL_UNC && lvl & DATA_SRC_LVL_HIT ? BIT(MEM_STORE_UNCACHED) : 0;
}

static uint32_t store_metrics_sig(const struct data_source_fields *source)
{
    enum place place = place_of_number[source->number];
    if (!is_newer_sig(source))
        return store_by_bits_sig(source->lvl);
    if (place == PLACE_IO || place == PLACE_UNCACHED)
        return place == PLACE_UNCACHED && !is_miss_only_sig(source) ? BIT(MEM_STORE_UNCACHED) : 0;
    return place == PLACE_L1 && !is_miss_only_sig(source) ? BIT(MEM_STORE_L1_HIT) : BIT(MEM_STORE_L1_MISS);
}

/* Metrics other than operation and level. */
static uint32_t side_metrics_sig(uint64_t data_src, const struct data_source_fields *source)
{
    unsigned tlb = field_sig(data_src, DATA_SRC_TLB_SHIFT, 7);
    bool is_behind = tlb & (DATA_SRC_TLB_L2 | DATA_SRC_TLB_WALKER | DATA_SRC_TLB_OS);
    uint32_t metrics = tlb & DATA_SRC_TLB_MISS && is_behind ? BIT(MEM_DTLB_WALK) : 0;
    if (field_sig(data_src, DATA_SRC_LOCK_SHIFT, 2) & DATA_SRC_LOCKED)
        metrics |= BIT(MEM_LOCKED);
    if (is_miss_only_sig(source))
        return metrics;
    if (source->number == DATA_SRC_NUM_PMEM)
        metrics |= BIT(MEM_PMEM);
    return source->number == DATA_SRC_NUM_CXL ? metrics | BIT(MEM_CXL) : metrics;
}

static uint32_t blocked_metrics_sig(uint64_t data_src)
{
    unsigned blocked = field_sig(data_src, DATA_SRC_BLK_SHIFT, 3);
    return (blocked & DATA_SRC_BLK_DATA ? BIT(MEM_BLOCKED_DATA) : 0) |
           (blocked & DATA_SRC_BLK_ADDR ? BIT(MEM_BLOCKED_ADDR) : 0);
}

/* True when every field says "not available". */
static bool is_silent_sig(uint64_t data_src)
{
    uint64_t nothing = 1ull << DATA_SRC_OP_SHIFT | 1ull << DATA_SRC_LVL_SHIFT | 1ull << DATA_SRC_SNOOP_SHIFT |
                       1ull << DATA_SRC_LOCK_SHIFT | 1ull << DATA_SRC_TLB_SHIFT | 1ull << DATA_SRC_BLK_SHIFT;
    uint64_t number = (uint64_t)DATA_SRC_NUM_NA << DATA_SRC_NUM_SHIFT;
    uint64_t told = data_src & DATA_SRC_KNOWN & ~nothing;
    return (told & number) == number ? !(told & ~number) : !told;
}

uint32_t mem_metrics_sig(uint64_t data_src)
{
    if (is_silent_sig(data_src))
        return 0;
    struct data_source_fields source = source_of_sig(data_src);
    unsigned op = field_sig(data_src, DATA_SRC_OP_SHIFT, 5);
    uint32_t metrics = side_metrics_sig(data_src, &source);
    if (op & DATA_SRC_OP_LOAD)
        return metrics | BIT(MEM_LOAD) | load_metrics_sig(&source) | blocked_metrics_sig(data_src);
    if (op & DATA_SRC_OP_STORE)
        return metrics | BIT(MEM_STORE) | store_metrics_sig(&source);
    return metrics | BIT(MEM_OTHER_OP);
}

unsigned mem_latency_bin_sig(uint64_t lat_cycles)
{
    if (lat_cycles < 8)
        return (unsigned)lat_cycles;
    unsigned octave = 63 - (unsigned)__builtin_clzll(lat_cycles);
    unsigned bin = 4 * (octave - 1) + ((unsigned)(lat_cycles >> (octave - 2)) & 3);
    return bin < 63 ? bin : 63;
}

uint64_t mem_latency_of_bin_sig(unsigned bin)
{
    if (bin < 8)
        return bin;
    unsigned octave = bin / 4 + 1;
    return (1ull << octave) + ((uint64_t)(bin % 4) << (octave - 2));
}
