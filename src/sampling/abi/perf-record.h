/* SPDX-License-Identifier: BSD-3-Clause */
/* Parser of the records that the kernel writes into a ring or a perf.data file, for the signal handler and for readers
 * of files, in either byte order. It trusts nothing: a field that does not fit into the record ends the parse. src:
 * perf_event_open(2), include/uapi/linux/perf_event.h (order of the fields of PERF_RECORD_SAMPLE). */
#ifndef LOCUS_SAMPLING_ABI_PERF_RECORD_H
#define LOCUS_SAMPLING_ABI_PERF_RECORD_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The attributes that decide the layout of an event's samples. */
struct abi_layout {
    uint64_t sample_type;
    uint64_t read_format;
    uint64_t branch_sample_type;
    uint64_t regs_user, regs_intr; /* attr.sample_regs_user, sample_regs_intr */
    bool is_swapped;               /* records come from a machine of the other byte order */
    bool has_sample_id_all;        /* other records end with the sample_id fields */
};

/* Whether the event is a clock: it counts nanoseconds of CPU time.  ctx: any */
bool abi_is_clock_sig(const struct perf_event_attr *attr);

/* Whether the kernel itself counts the event down to its next sample. With PERF_SAMPLE_PERIOD it then makes a record of
 * each event, whatever the period.  ctx: any; src: Linux kernel/events/core.c perf_swevent_event */
bool abi_is_counted_sig(const struct perf_event_attr *attr);

/* The layout that attr asks for.  ctx: any */
struct abi_layout abi_layout_of_sig(const struct perf_event_attr *attr);

/* Bytes inside the record, borrowed from it; NULL and 0 when absent. Words in them are still in the record's byte
 * order. */
struct abi_bytes {
    const unsigned char *data;
    size_t n_bytes;
};

/* A sample. Fields whose bit is missing in present are 0. */
struct abi_sample {
    uint64_t present; /* bits of sample_type that were found */
    uint64_t ip, time_ns, addr, id, stream_id, period, data_src, transaction, phys_addr, cgroup;
    uint64_t data_page_bytes, code_page_bytes;
    uint64_t weight;           /* PERF_SAMPLE_WEIGHT, or var1 of WEIGHT_STRUCT: latency in core cycles */
    uint16_t weight2, weight3; /* var2 (latency of the instruction, or retire latency) and var3 of WEIGHT_STRUCT */
    uint32_t pid, tid, cpu;
    struct abi_bytes callchain; /* [n] 8-byte words, PERF_CONTEXT_* markers included */
    struct abi_bytes raw, stack, regs_user, regs_intr, branches, read, aux;
    uint64_t regs_user_abi, regs_intr_abi, stack_used_bytes;
};

/* Parses a PERF_RECORD_SAMPLE of n_bytes (contiguous, including its header). False when the size in its header is not
 * n_bytes or a field does not fit: present then has the fields before that one. Bytes after the last field are ignored.
 * ctx: any */
bool abi_sample_parse_sig(const void *record, size_t n_bytes, const struct abi_layout *layout, struct abi_sample *out);

/* Parses the fields that end every other record of an event with has_sample_id_all (those of TID, TIME, ID, STREAM_ID,
 * CPU and IDENTIFIER that are in sample_type). False when the record has no room for them.  ctx: any */
bool abi_sample_id_parse_sig(const void *record, size_t n_bytes, const struct abi_layout *layout,
                             struct abi_sample *out);

/* Word i of a span of 8-byte words, in native order; i must be inside.  ctx: any */
uint64_t abi_word_sig(const struct abi_bytes *words, size_t i, bool is_swapped);

/* The memory of a ring's records: n_bytes (a power of two) at data; positions are modulo n_bytes. */
struct abi_ring {
    const unsigned char *data;
    uint64_t n_bytes;
    bool is_swapped; /* written by a machine of the other byte order */
};

/* The header of a record, in this machine's byte order.  ctx: any */
struct perf_event_header abi_header_sig(const void *record, bool is_swapped);

enum abi_status { ABI_RECORD = 0, ABI_EMPTY, ABI_GARBAGE };

/* Gets the record at position (head: bytes written so far); *record points to it, in the ring's byte order, in the ring
 * or, if it wraps, in buffer (8-byte aligned; 64 KiB hold any record). Lengths are multiples of 8. ABI_EMPTY at head;
 * ABI_GARBAGE when its length is impossible, it wraps and is larger than n_buffer, or head is further away than the
 * ring's length: the rest up to head cannot be trusted.  ctx: any */
enum abi_status abi_ring_record_sig(const struct abi_ring *ring, uint64_t position, uint64_t head, void *buffer,
                                    size_t n_buffer, const struct perf_event_header **record);

#endif
