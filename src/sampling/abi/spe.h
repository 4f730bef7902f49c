/* SPDX-License-Identifier: BSD-3-Clause */
/* Arm statistical profiling extension: packets of the AUX area, assembled into records.
 * src: Arm Architecture Reference Manual (DDI 0487), chapter D17 "Statistical Profiling Extension Sample Record". */
#ifndef LOCUS_SAMPLING_ABI_SPE_H
#define LOCUS_SAMPLING_ABI_SPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bits of the Events packet. */
enum spe_event {
    SPE_EVENT_RETIRED = 1 << 1,
    SPE_EVENT_L1_ACCESS = 1 << 2,
    SPE_EVENT_L1_REFILL = 1 << 3,
    SPE_EVENT_TLB_ACCESS = 1 << 4,
    SPE_EVENT_TLB_WALK = 1 << 5,
    SPE_EVENT_LLC_ACCESS = 1 << 8,
    SPE_EVENT_LLC_MISS = 1 << 9,
    SPE_EVENT_REMOTE = 1 << 10, /* another socket */
    SPE_EVENT_MISALIGNED = 1 << 11,
    SPE_EVENT_L2_ACCESS = 1 << 19,
    SPE_EVENT_L2_MISS = 1 << 20,
    SPE_EVENT_MODIFIED = 1 << 21, /* in another cache */
    SPE_EVENT_SNOOPED = 1 << 23
};

/* One record: the packets between two End or Timestamp packets. */
struct spe_record {
    uint64_t pc, address, phys_address, timestamp, context;
    bool has_pc, has_address, has_phys_address, has_context, has_source, has_timestamp;
    bool is_load, is_store, is_atomic, is_branch, is_simd, is_exclusive;
    uint32_t events; /* bits of the Events packet, enum spe_event */
    uint16_t source; /* Data source packet; its meaning depends on the CPU */
    uint16_t total_cycles, issue_cycles, translation_cycles;
};

/* Reads the next record from n_bytes at data. Returns the number of bytes used, 0 when there is no complete record: the
 * rest is the beginning of one, or lost. Skips padding. A byte that begins no packet means that the stream is torn: the
 * record around it, up to its End or Timestamp, is dropped, and its bytes are counted in *n_garbage (only if bytes are
 * used). Addresses are sign-extended from bit 55, so tags and the exception level of the top byte are gone; a physical
 * address has its lower 56 bits.  ctx: any */
size_t spe_record_parse_sig(const void *data, size_t n_bytes, struct spe_record *record, uint64_t *n_garbage);

/* Encodings of the data source. COMMON: not known, so only the architecture's events give the level; NEOVERSE: Arm's
 * own cores (Neoverse N1, N2, V1, V2 and Cortex of that time); AMPERE: AmpereOne. */
enum spe_sources { SPE_SOURCES_COMMON = 0, SPE_SOURCES_NEOVERSE, SPE_SOURCES_AMPERE };

/* The record as a union perf_mem_data_src. The level of a load comes from its data source packet if that has a known
 * value; else it is the last level whose access or miss event is set. If the record is not of a memory operation, every
 * field says "not available".  ctx: any */
uint64_t spe_data_src_sig(const struct spe_record *record, enum spe_sources sources);

#endif
