/* SPDX-License-Identifier: BSD-3-Clause */
/* Arm statistical profiling extension: packets of the AUX area, put together to records.
 * src: Arm Architecture Reference Manual (DDI 0487), chapter D17 "Statistical Profiling Extension Sample Record". */
#ifndef LOCUS_SAMPLING_ABI_SPE_H
#define LOCUS_SAMPLING_ABI_SPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One record: what lies between two End or Timestamp packets. */
struct spe_record {
    uint64_t pc, address, phys_address, timestamp, context;
    bool has_pc, has_address, has_phys_address, has_context, has_source, has_timestamp;
    bool is_load, is_store, is_atomic, is_branch, is_simd, is_exclusive;
    uint32_t events; /* bits of the Events packet */
    uint16_t source; /* Data source packet, meaning depends on the CPU */
    uint16_t total_cycles, issue_cycles, translation_cycles;
};

/* Reads the next record from n_bytes at data. Returns the bytes used, 0 when there is no complete record. Padding is
 * skipped; a byte that begins no packet is skipped and counted in *n_garbage.  ctx: any */
size_t spe_record_parse_sig(const void *data, size_t n_bytes, struct spe_record *record, uint64_t *n_garbage);

/* Which CPU's data source encoding. */
enum spe_sources { SPE_SOURCES_COMMON = 0, SPE_SOURCES_NEOVERSE, SPE_SOURCES_AMPERE };

/* The record as a union perf_mem_data_src.  ctx: any */
uint64_t spe_data_src_sig(const struct spe_record *record, enum spe_sources sources);

#endif
