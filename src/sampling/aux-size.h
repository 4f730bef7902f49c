/* SPDX-License-Identifier: BSD-3-Clause */
/* How large the AUX area of each thread may be. The kernel counts rings and AUX areas of one user against
 * kernel.perf_event_mlock_kb, for each CPU, and what lies above against the limit of locked memory.
 * src: Documentation/admin-guide/perf-security.rst, "Memory allocation". Ordinary code of the launcher. */
#ifndef LOCUS_SAMPLING_AUX_SIZE_H
#define LOCUS_SAMPLING_AUX_SIZE_H

#include <stdbool.h>
#include <stdint.h>

struct aux_limits {
    uint64_t page_bytes;
    unsigned n_cpus;
    unsigned n_areas;       /* of each thread */
    uint64_t mlock_kb;      /* kernel.perf_event_mlock_kb, per CPU */
    uint64_t memlock_bytes; /* RLIMIT_MEMLOCK; UINT64_MAX: none */
    uint64_t hardware_bytes; /* largest area that the hardware takes; 0: not told */
    bool is_unlimited;      /* CAP_IPC_LOCK, or perf_event_paranoid -1 */
};

struct aux_size {
    uint32_t aux_bytes;     /* of one area, a power of two pages; 0: not even one thread's fit */
    uint32_t ring_bytes;    /* data part of the ring beside it: one page */
    uint64_t needed_bytes;  /* what one thread locks at least, rings included */
    uint64_t allowed_bytes; /* what all threads together may lock; UINT64_MAX: any number */
    uint64_t n_threads;     /* how many threads that is enough for; UINT64_MAX: any number */
};

/* The limits of this machine (of the fixture that stands in for it). */
void aux_limits_read(struct aux_limits *limits);

/* 32 pages but at most 1 MiB, less when there must be enough for a thread on each CPU, at least 4 pages. */
void aux_size_choose(const struct aux_limits *limits, struct aux_size *size);

#endif
