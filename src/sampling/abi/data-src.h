/* SPDX-License-Identifier: BSD-3-Clause */
/* What the hardware says about one memory access, and the metrics counted from it. The handler turns a data source
 * into a set of metrics (one bit each); everything later works on these sets.
 * The fields are taken by shifts and masks of our own: what newer kernels tell is decoded whatever kernel headers this
 * was compiled with. src: union perf_mem_data_src of include/uapi/linux/perf_event.h. */
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
    MEM_DTLB_WALK, /* from here on not in the original */
    MEM_LOCKED,
    MEM_PMEM,
    MEM_CXL,
    MEM_BLOCKED_DATA, /* a load that waited because store data could not be forwarded */
    MEM_BLOCKED_ADDR, /* a load blocked by an address conflict */
    MEM_OTHER_OP,     /* prefetch, execute or no operation named */
    MEM_METRICS
};

/* How the record tells about the access. */
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
 * Level, by the newer fields where mem_lvl_num names one:
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
 * MEM_STORE_L1_MISS. One contradiction is known of kernels and decided for mem_lvl: L3 beside a mem_lvl that names DRAM
 * and no cache (shared remote DRAM of Intel's server processors).
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

#endif
