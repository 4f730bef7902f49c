/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring of a perf event. The runtime reads two kinds: one that the kernel overwrites backwards, where the newest
 * sample belongs to the signal, and one that the reader drains. What the records mean is known to sampling/abi.
 * src: perf_event_open(2), struct perf_event_mmap_page. */
#ifndef LOCUS_RUNTIME_RECORD_RING_H
#define LOCUS_RUNTIME_RECORD_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena/arena.h"
#include "sampling/abi/data-src.h"
#include "sampling/abi/perf-record.h"
#include "sampling/abi/spe.h"

/* A record: header is in native order, bytes points to all of it (in the ring or in the caller's buffer). */
struct ring_record {
    struct perf_event_header header;
    const void *bytes;
};

/* What was written to a ring since it was last read. */
struct ring_news {
    uint64_t n_samples;   /* sample records, delivered or not */
    uint64_t n_own;       /* those of them in the reader's own code */
    uint64_t n_lost;      /* samples that the kernel says it could not write */
    uint64_t n_throttles; /* times that the kernel stopped the event for the rest of a tick */
    bool is_estimate;     /* n_samples is estimated: part was overwritten, and records may differ in size */
    bool has_newest;
    struct ring_record newest; /* the newest sample, when has_newest */
};

enum ring_status { RING_RECORD = 0, RING_EMPTY, RING_GARBAGE };

/* How to read an overwritten ring that grows backwards (attr.write_backward, mapped read-only). */
struct ring_view {
    const struct perf_event_mmap_page *ring;
    bool is_swapped;
    unsigned n_sample_bytes; /* size of a sample if all have the same size, else 0 */
    void *buffer;            /* for records that wrap, the newest in its first half; 8-byte aligned */
    size_t n_buffer;
    unsigned ip_word;               /* the word of a sample that is its pc, for ring_word_sig */
    uint64_t own_low, own_high, pc; /* samples with a pc in [own_low, own_high) but not at pc are the reader's own; they
                                     * are counted and never the newest. 0, 0: none is its own */
};

/* Reads what was written to the ring since *seen, and advances *seen.  ctx: any, one reader at a time */
void ring_news_sig(const struct ring_view *view, uint64_t *seen, struct ring_news *news);

/* Reads the oldest record of a ring that is mapped writable, at *position (start with data_tail), and moves *position
 * past it. RING_GARBAGE when the lengths make no sense: *position is then where the kernel will write next. The record
 * stays valid until ring_release_sig.  ctx: any, one reader at a time */
enum ring_status ring_next_sig(const struct perf_event_mmap_page *ring, bool is_swapped, uint64_t *position,
                               void *buffer, size_t n_buffer, struct ring_record *record);

/* Gives everything before position back to the kernel.  ctx: the reader */
void ring_release_sig(struct perf_event_mmap_page *ring, uint64_t position);

/* The kernel's position in a ring that is mapped writable.  ctx: any */
uint64_t ring_head_sig(const struct perf_event_mmap_page *ring);

/* 8-byte word i after a record's header, in native order; 0 when the record is shorter.  ctx: any */
uint64_t ring_word_sig(const struct ring_record *record, size_t i, bool is_swapped);

/* Size of a sample record with this sample_type; 0 when it varies from sample to sample.  ctx: any */
unsigned ring_sample_bytes_sig(uint64_t sample_type);

/* --- one record as a memory access --- */

/* What a record of the hardware or the kernel says about a memory access. All kinds of records (samples with a data
 * source, IBS registers, SPE packets) are converted to this. */

struct access {
    bool has_address;
    bool is_no_access; /* the sampled instruction touches no memory */
    bool is_exact;     /* ip is the sampled instruction itself */
    bool is_in_kernel; /* the event happened in the kernel */
    bool has_cpu;
    uint32_t cpu;
    uint32_t metrics; /* bits of enum mem_metric; 0 for events without EVENT_DATA_SRC */
    uint64_t address, ip, period;
    uint64_t lat_cycles; /* 0: not known */
    struct abi_bytes callchain;
};

/* Decodes a sample record of an event. False when it makes no sense.  ctx: any */
bool access_of_record_sig(const struct arena_event *plan, const struct ring_record *record, struct access *access);

/* The same for a record of Arm's profiling extension.  ctx: any */
void access_of_spe_sig(const struct arena_event *plan, const struct spe_record *record, struct access *access);

/* Whether records come from a machine of the other byte order: replays only.  ctx: any */
bool access_is_swapped_sig(const struct arena_event *plan);

#endif
