/* SPDX-License-Identifier: BSD-3-Clause */
/* AMD instruction-based sampling, op form: the registers as the kernel puts them into PERF_SAMPLE_RAW.
 * src: AMD64 Architecture Programmer's Manual, volume 2 (24593), "Instruction-Based Sampling", and the Processor
 * Programming References of families 17h to 1Ah: MSRC001_1033 IBS_OP_CTL, _1034 IBS_OP_RIP, _1035 IBS_OP_DATA, _1036
 * IBS_OP_DATA2, _1037 IBS_OP_DATA3, _1038 IBS_DC_LINADDR, _1039 IBS_DC_PHYSADDR, in this order in the record. */
#ifndef LOCUS_SAMPLING_ABI_IBS_H
#define LOCUS_SAMPLING_ABI_IBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ibs_op {
    bool is_load, is_store; /* both for read-modify-write; neither: not a memory operation */
    bool has_address, has_phys_address;
    bool is_rip_valid;
    uint64_t rip, address, phys_address;
    unsigned width_bytes; /* 0 when not known */
    uint64_t lat_cycles;  /* of a load that missed the data cache, else 0 */
    uint64_t tag_to_retire_cycles, comp_to_retire_cycles;
    bool is_l1_miss, is_l2_miss, is_dtlb_l1_miss, is_dtlb_l2_miss, is_locked, is_uncached, is_write_combined;
    bool is_swpf, is_misaligned;
    unsigned data_source; /* op_data2: 3 bits, or 5 bits with the extended field */
    bool is_remote;       /* op_data2: the node's other socket */
    uint64_t data_src;    /* the same as a union perf_mem_data_src */
};

/* Decodes the raw area of one sample (n_bytes at raw, as PERF_SAMPLE_RAW delivers it: a 4-byte capability word and
 * 8-byte registers, little-endian). is_zen4: the data source field has five bits; the capability word (bit 11) may also
 * say so. False when it is too short.  ctx: any
 *
 * data_src is the word that newer kernels give as PERF_SAMPLE_DATA_SRC. In the manual's order of validity: an uncached
 * access has no other level; a data cache hit is L1; a miss without L2 miss is L2; then, for loads, the data source;
 * then the miss address buffer (LFB) when the miss joined one under way. Caches of other core complexes hold the line
 * modified or owned (CacheHitSt), hence HITM. If the operation does not access memory, every field says "not
 * available". */
bool ibs_op_parse_sig(const void *raw, size_t n_bytes, bool is_zen4, struct ibs_op *op);

#endif
