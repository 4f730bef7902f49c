/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of samples: one record for each, in bounded room. How it is kept bounded: struct arena_trace. */
#ifndef LOCUS_RUNTIME_RECORD_TRACE_H
#define LOCUS_RUNTIME_RECORD_TRACE_H

#include "runtime/record/arena-writer.h"

/* Where a thread writes. All zero: nowhere yet. */
struct trace_writer {
    struct arena_cursor cursor;
    bool is_reused; /* the run was full before: only some of its records are free */
};

/* A sample. t_ns: CLOCK_MONOTONIC when it was taken. hit: what it was counted in. offset: in bytes, as the hit has
 * them, UINT64_MAX when it is not known. */
struct trace_sample {
    uint64_t t_ns, offset, lat_cycles;
    const struct arena_hit *hit;
    uint16_t cpu;
};

/* Puts a sample into the log, or counts it only, as its turn is. thread: the record with the reference ref, which owns
 * the hit. At most a few runs are searched for room.  ctx: signal handler of the thread, or its ordinary code with
 * tree_busy set */
void trace_put_sig(struct trace_writer *writer, struct arena_thread *thread, uint32_t ref,
                   const struct trace_sample *sample);

/* Gives up the run, so that other threads can use what is free in it; the writer is as new.  ctx: as trace_put_sig, or
 * another thread when the one that wrote has ended */
void trace_leave_sig(struct trace_writer *writer);

#endif
