/* SPDX-License-Identifier: BSD-3-Clause */
/* Metrics of hardware samples beside the table in sampling/abi/data-src.h: their names in profiles and databases, and
 * which data sources count as remote. Shared by who writes them and who reads them. Any context. */
#ifndef LOCUS_FMT_COLUMNS_H
#define LOCUS_FMT_COLUMNS_H

#include "sampling/abi/data-src.h"

/* Cycles from issue to data, summed over the samples and multiplied by the event's period like every count. */
#define MEM_LATENCY_NAME "LATENCY (cycles)"

/* The part of it that belongs to accesses served by another NUMA node. */
#define MEM_REMOTE_LATENCY_NAME "LATENCY-REMOTE (cycles)"

/* Served by another node: its memory, or a cache there. */
#define MEM_REMOTE_METRICS (1u << MEM_HITM_REMOTE | 1u << MEM_REMOTE_HIT | 1u << MEM_DRAM_REMOTE)

/* --- leak-columns --- */

/* Names of the metrics of allocations, the first three as in the original. Shared by who writes them and who reads
 * them. Any context. */

#define LEAK_ALLOCATED_NAME "Bytes Allocated"
#define LEAK_FREED_NAME "Bytes Freed"
#define LEAK_LEAKED_NAME "Bytes Leaked"
#define LEAK_MARKED_NAME "Bytes Live at Mark"
#define LEAK_NAMES_PREFIX "Bytes " /* of all of them, and of no other metric of ours */

#endif
