/* SPDX-License-Identifier: BSD-3-Clause */
/* What the hardware says about one memory access, and the metrics counted from it. The handler turns a data source
 * into a set of metrics (one bit each); everything later works on these sets.
 * The fields are read with our own shifts and masks, so that fields of newer kernels are decoded whatever kernel
 * headers this was compiled with. src: union perf_mem_data_src of include/uapi/linux/perf_event.h. */
#ifndef LOCUS_SAMPLING_ABI_DATA_SRC_H
#define LOCUS_SAMPLING_ABI_DATA_SRC_H

#include <stdbool.h>
#include <stdint.h>

/* Bits of a set of metrics, in the order of the original's metric table, then ours. At most 32. */
enum mem_metric {
    MEM_LOAD = 0, /* MEM-Load */
    MEM_LOAD_LFB,
    MEM_LOAD_L1,
    MEM_LOAD_L2,
    MEM_LLC_HIT,
    MEM_HITM_LOCAL,
    MEM_HITM_REMOTE,
    MEM_REMOTE_HIT,
    MEM_DRAM_LOCAL,
    MEM_DRAM_REMOTE,
    MEM_LOAD_MISS,
    MEM_LOAD_IO,
    MEM_LOAD_SHARED,
    MEM_LOAD_UNCACHED,
    MEM_LOAD_EXCLUSIVE,
    MEM_STORE,
    MEM_STORE_L1_HIT,
    MEM_STORE_L1_MISS,
    MEM_STORE_UNCACHED,
    MEM_DTLB_WALK, /* from here on: not in the original */
    MEM_LOCKED,
    MEM_PMEM,
    MEM_CXL,
    MEM_BLOCKED_DATA, /* a load that waited because store data could not be forwarded */
    MEM_BLOCKED_ADDR, /* a load blocked by an address conflict */
    MEM_OTHER_OP,     /* prefetch, execute, or no operation given */
    MEM_METRICS
};

/* The form in which a record describes the access. */
enum mem_decode {
    MEM_DECODE_NONE = 0,
    MEM_DECODE_DATA_SRC, /* PERF_SAMPLE_DATA_SRC */
    MEM_DECODE_IBS_RAW,  /* PERF_SAMPLE_DATA_SRC where the kernel fills it, else the IBS registers in PERF_SAMPLE_RAW */
    MEM_DECODE_SPE       /* Arm SPE packets of the AUX area */
};

/* Name, the name's alias in the original's documentation (NULL when the same) and one sentence. */
struct mem_metric_row {
    const char *name, *alias, *description;
    bool is_original; /* one of the 19 of the original */
};

/* The row of a metric, static storage; NULL outside the table.  ctx: any */
const struct mem_metric_row *mem_metric_row(enum mem_metric metric);

/* Metrics counted for one sample with this data source. Exactly one of MEM_LOAD, MEM_STORE, MEM_OTHER_OP is set (0 for
 * data_src 0 or PERF_MEM_NA everywhere: "no metric"); at most one level metric.  ctx: any
 *
 * Operation: LOAD before STORE (a read-modify-write is a load: its level and latency are the load's), else
 * MEM_OTHER_OP, which has no level. MEM_DTLB_WALK, MEM_LOCKED, MEM_PMEM and MEM_CXL go with every operation,
 * MEM_LOAD_MISS and MEM_BLOCKED_* with loads only; MEM_LOAD_SHARED (snoop HIT) or MEM_LOAD_EXCLUSIVE (any other) with
 * each DRAM metric.
 *
 * Level, by the newer fields if mem_lvl_num names one:
 *   mem_lvl_num                  load                                                   store
 *   L0 L1                        MEM_LOAD_L1; another core's: as L3                     MEM_STORE_L1_HIT
 *   L2                           MEM_LOAD_L2; another core's: as L3                     MEM_STORE_L1_MISS
 *   LFB L2_MHB                   MEM_LOAD_LFB                                           MEM_STORE_L1_MISS
 *   L3 L4 MSC ANY_CACHE, near    MEM_HITM_LOCAL with snoop HITM, else MEM_LLC_HIT       MEM_STORE_L1_MISS
 *   any cache, remote            MEM_HITM_REMOTE with snoop HITM, without HIT,          MEM_STORE_L1_MISS
 *                                else MEM_REMOTE_HIT
 *   RAM PMEM CXL                 MEM_DRAM_REMOTE if remote, else MEM_DRAM_LOCAL;        MEM_STORE_L1_MISS
 *                                PMEM and CXL also set MEM_PMEM and MEM_CXL
 *   IO                           MEM_LOAD_IO                                            none
 *   UNC                          MEM_LOAD_UNCACHED                                      MEM_STORE_UNCACHED
 * Remote means another NUMA node: mem_hops 1 to 3, or mem_remote without hops 0. Hops 0 and snoopx PEER mean a cache of
 * another core; it is near unless it is remote. With mem_lvl MISS and not HIT there is no level, for stores
 * MEM_STORE_L1_MISS. Kernels are known to produce one contradiction, where mem_lvl decides: L3 with a mem_lvl that
 * names DRAM and no cache (shared remote DRAM of Intel's server processors).
 *
 * Without mem_lvl_num the bits of mem_lvl count as in the original: the first of LFB, L1, L2, L3 (near), REM_CCE1/2
 * (only with snoop HIT or HITM or snoopx; HIT not required), LOC_RAM, REM_RAM1/2, IO, UNC, each with HIT; stores: L1
 * with HIT, L1 with MISS, UNC with HIT. */
uint32_t mem_metrics_sig(uint64_t data_src);

/* The level metrics: at most one bit of this set in any result of mem_metrics_sig. */
#define MEM_LEVEL_METRICS                                                                                              \
    (1u << MEM_LOAD_LFB | 1u << MEM_LOAD_L1 | 1u << MEM_LOAD_L2 | 1u << MEM_LLC_HIT | 1u << MEM_HITM_LOCAL |           \
     1u << MEM_HITM_REMOTE | 1u << MEM_REMOTE_HIT | 1u << MEM_DRAM_LOCAL | 1u << MEM_DRAM_REMOTE | 1u << MEM_LOAD_IO | \
     1u << MEM_LOAD_UNCACHED | 1u << MEM_STORE_L1_HIT | 1u << MEM_STORE_L1_MISS | 1u << MEM_STORE_UNCACHED)

/* Histogram bin of a latency: see struct arena_sketch in arena/arena.h, whose 64 bins these are.  ctx: any */
unsigned mem_latency_bin_sig(uint64_t lat_cycles);

/* Lowest latency of a bin, core cycles.  ctx: any */
uint64_t mem_latency_of_bin_sig(unsigned bin);

/* --- bits --- */

/* The fields of union perf_mem_data_src as shifts and values, for decoding such a word and for making one. Our own
 * names, so that fields of newer kernels are known with any kernel headers.
 * src: include/uapi/linux/perf_event.h of Linux 6.18. */

enum data_src_shift {
    DATA_SRC_OP_SHIFT = 0,
    DATA_SRC_LVL_SHIFT = 5,
    DATA_SRC_SNOOP_SHIFT = 19,
    DATA_SRC_LOCK_SHIFT = 24,
    DATA_SRC_TLB_SHIFT = 26,
    DATA_SRC_NUM_SHIFT = 33, /* mem_lvl_num */
    DATA_SRC_REMOTE_SHIFT = 37,
    DATA_SRC_SNOOPX_SHIFT = 38,
    DATA_SRC_BLK_SHIFT = 40,
    DATA_SRC_HOPS_SHIFT = 43
};
#define DATA_SRC_KNOWN ((1ull << 46) - 1) /* the bits above are reserved */

/* A value of a field at its place in the word: DATA_SRC(OP, OP_LOAD) | DATA_SRC(NUM, NUM_L1). */
#define DATA_SRC(field, value) ((uint64_t)DATA_SRC_##value << DATA_SRC_##field##_SHIFT)

/* Bit 0 of the fields op, lvl, snoop, lock, tlb and blk: the hardware does not say. */
enum data_src_op {
    DATA_SRC_OP_NA = 1,
    DATA_SRC_OP_LOAD = 2,
    DATA_SRC_OP_STORE = 4,
    DATA_SRC_OP_PREFETCH = 8,
    DATA_SRC_OP_EXEC = 0x10
};
enum data_src_lvl {
    DATA_SRC_LVL_NA = 1,
    DATA_SRC_LVL_HIT = 2,
    DATA_SRC_LVL_MISS = 4,
    DATA_SRC_LVL_L1 = 8,
    DATA_SRC_LVL_LFB = 0x10,
    DATA_SRC_LVL_L2 = 0x20,
    DATA_SRC_LVL_L3 = 0x40,
    DATA_SRC_LVL_LOC_RAM = 0x80,
    DATA_SRC_LVL_REM_RAM1 = 0x100,
    DATA_SRC_LVL_REM_RAM2 = 0x200,
    DATA_SRC_LVL_CCE1 = 0x400, /* cache of another chip or node, 1 hop */
    DATA_SRC_LVL_CCE2 = 0x800,
    DATA_SRC_LVL_IO = 0x1000,
    DATA_SRC_LVL_UNC = 0x2000
};
enum data_src_snoop {
    DATA_SRC_SNOOP_NA = 1,
    DATA_SRC_SNOOP_NONE = 2,
    DATA_SRC_SNOOP_HIT = 4,
    DATA_SRC_SNOOP_MISS = 8,
    DATA_SRC_SNOOP_HITM = 0x10
};
enum data_src_lock { DATA_SRC_LOCK_NA = 1, DATA_SRC_LOCKED = 2 };
enum data_src_tlb {
    DATA_SRC_TLB_NA = 1,
    DATA_SRC_TLB_HIT = 2,
    DATA_SRC_TLB_MISS = 4,
    DATA_SRC_TLB_L1 = 8,
    DATA_SRC_TLB_L2 = 0x10,
    DATA_SRC_TLB_WALKER = 0x20,
    DATA_SRC_TLB_OS = 0x40
};
enum data_src_num {
    DATA_SRC_NUM_L1 = 1,
    DATA_SRC_NUM_L2 = 2,
    DATA_SRC_NUM_L3 = 3,
    DATA_SRC_NUM_L4 = 4,
    DATA_SRC_NUM_MHB = 5, /* L2 miss handling buffer */
    DATA_SRC_NUM_MSC = 6, /* memory-side cache */
    DATA_SRC_NUM_L0 = 7,
    DATA_SRC_NUM_UNC = 8,
    DATA_SRC_NUM_CXL = 9,
    DATA_SRC_NUM_IO = 0xa,
    DATA_SRC_NUM_ANY = 0xb, /* some cache */
    DATA_SRC_NUM_LFB = 0xc,
    DATA_SRC_NUM_RAM = 0xd,
    DATA_SRC_NUM_PMEM = 0xe,
    DATA_SRC_NUM_NA = 0xf
};
enum data_src_snoopx { DATA_SRC_SNOOPX_FWD = 1, DATA_SRC_SNOOPX_PEER = 2 };
enum data_src_blk { DATA_SRC_BLK_NA = 1, DATA_SRC_BLK_DATA = 2, DATA_SRC_BLK_ADDR = 4 };
enum data_src_hops {
    DATA_SRC_HOPS_0 = 1, /* another core of the node */
    DATA_SRC_HOPS_1 = 2, /* another node of the socket */
    DATA_SRC_HOPS_2 = 3, /* another socket */
    DATA_SRC_HOPS_3 = 4  /* another board */
};

#endif
