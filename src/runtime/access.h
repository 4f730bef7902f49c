/* SPDX-License-Identifier: BSD-3-Clause */
/* What one record of the hardware or the kernel says of one memory access. All kinds of records (samples with a data
 * source, IBS registers, SPE packets) end up as this. */
#ifndef LOCUS_RUNTIME_ACCESS_H
#define LOCUS_RUNTIME_ACCESS_H

#include "arena/arena.h"
#include "runtime/ring.h"
#include "sampling/abi/data-src.h"
#include "sampling/abi/perf-record.h"
#include "sampling/abi/spe.h"

struct access {
    bool has_address;
    bool is_no_access;   /* the sampled instruction touches no memory */
    bool is_exact;       /* ip is the sampled instruction itself */
    bool is_in_kernel;   /* the event happened in the kernel */
    bool has_cpu;
    uint32_t cpu;
    uint32_t metrics;    /* bits of enum mem_metric; 0 for events without EVENT_DATA_SRC */
    uint64_t address, ip, period;
    uint64_t lat_cycles; /* 0: not told */
    struct abi_bytes callchain;
};

/* Takes a sample record of an event apart. False when it makes no sense.  ctx: any */
bool access_of_record_sig(const struct arena_event *plan, const struct ring_record *record, struct access *access);

/* The same of a record that Arm's profiling extension wrote.  ctx: any */
void access_of_spe_sig(const struct arena_event *plan, const struct spe_record *record, struct access *access);

/* Bytes from a machine of the other byte order: replays only.  ctx: any */
bool access_is_swapped_sig(const struct arena_event *plan);

#endif
