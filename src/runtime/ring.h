/* SPDX-License-Identifier: BSD-3-Clause */
/* Records in the ring of a perf event. src: perf_event_open(2), struct perf_event_mmap_page and PERF_RECORD_SAMPLE. */
#ifndef LOCUS_RUNTIME_RING_H
#define LOCUS_RUNTIME_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

/* What a sample record told; fields that its sample_type lacks are 0. */
struct ring_sample {
    uint64_t ip, address, period;
    uint64_t n_lost; /* samples lost before it, by the kernel's count */
};

/* The newest sample of an overwritten ring that grows backwards (attr.write_backward, mapped read-only). False when
 * there is none.  ctx: any */
bool ring_newest_sig(const struct perf_event_mmap_page *ring, uint64_t sample_type, struct ring_sample *sample);

/* Takes the oldest sample out of a ring that is mapped writable. False when it is empty; is_last tells whether it
 * was the newest.  ctx: one reader at a time */
bool ring_take_sig(struct perf_event_mmap_page *ring, uint64_t sample_type, struct ring_sample *sample, bool *is_last);

/* Records written to an overwritten backward ring so far, all of n_record_bytes.  ctx: any */
uint64_t ring_count_sig(const struct perf_event_mmap_page *ring, unsigned n_record_bytes);

/* Size of a sample record with this sample_type (IP, TID, TIME, ADDR, CPU, PERIOD only).  ctx: any */
unsigned ring_record_bytes_sig(uint64_t sample_type);

#endif
