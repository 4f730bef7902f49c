/* SPDX-License-Identifier: BSD-3-Clause */
/* What the hardware says about one memory access, and the metrics counted from it. The handler turns a data source
 * into a set of metrics (one bit each); everything later works on these sets.
 * src: union perf_mem_data_src of include/uapi/linux/perf_event.h. */
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
    MEM_DTLB_WALK,   /* from here on not in the original */
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
 * data_src 0 or PERF_MEM_NA everywhere: "no metric"); at most one level metric.  ctx: any */
uint32_t mem_metrics_sig(uint64_t data_src);

/* The level metrics: at most one bit of this set in any result of mem_metrics_sig. */
#define MEM_LEVEL_METRICS                                                                                              \
    (1u << MEM_LOAD_LFB | 1u << MEM_LOAD_L1 | 1u << MEM_LOAD_L2 | 1u << MEM_LLC_HIT | 1u << MEM_HITM_LOCAL |           \
     1u << MEM_HITM_REMOTE | 1u << MEM_REMOTE_HIT | 1u << MEM_DRAM_LOCAL | 1u << MEM_DRAM_REMOTE |                     \
     1u << MEM_LOAD_IO | 1u << MEM_LOAD_UNCACHED | 1u << MEM_STORE_L1_HIT | 1u << MEM_STORE_L1_MISS |                  \
     1u << MEM_STORE_UNCACHED)

/* Histogram bin of a latency: see struct arena_sketch in fmt/arena.h, whose 64 bins these are.  ctx: any */
unsigned mem_latency_bin_sig(uint64_t lat_cycles);

/* Lowest latency of a bin, core cycles.  ctx: any */
uint64_t mem_latency_of_bin_sig(unsigned bin);

#endif
