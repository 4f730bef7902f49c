/* SPDX-License-Identifier: BSD-3-Clause */
/* An arena (arena/arena.h) made from a file instead of by a running program: the records of one process, which the
 * collector then turns into profiles like any other. Ordinary code. */
#ifndef LOCUS_ANALYSIS_PERF_ARENA_H
#define LOCUS_ANALYSIS_PERF_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "arena/arena.h"
#include "base/error.h"

/* A thread under construction. */
struct perf_arena_thread {
    uint32_t tid, ref, n_open[ARENA_KINDS]; /* n_open: chunk + 1 that is being filled, by kind */
};

struct perf_arena_child {
    uint64_t ip;
    uint32_t parent, module, node; /* node 0: empty */
};

/* All zero is empty. */
struct perf_arena {
    char *base; /* mapped, size_bytes; the header comes first */
    uint64_t size_bytes;
    struct perf_arena_thread *threads; /* [n_threads] in order of their ids */
    size_t n_threads, cap_threads;
    uint32_t n_open_shared[ARENA_KINDS];
    struct perf_arena_child *children; /* [n_slots] hash of the call-path nodes */
    size_t n_children, n_slots;
    bool is_full; /* something could not be recorded: out of memory or of numbers */
};

/* Begins the arena of a process.  err: ERR_MEMORY */
int perf_arena_init(struct perf_arena *arena, uint32_t pid, struct error *err);
void perf_arena_fini(struct perf_arena *arena);

/* Its header, for what the caller knows of the process. */
struct arena_header *perf_arena_header(const struct perf_arena *arena);

/* The thread with this kernel id, added when new; index into arena->threads. Thread 0 is the first one added. */
size_t perf_arena_thread(struct perf_arena *arena, uint32_t tid);
struct arena_thread *perf_arena_thread_record(const struct perf_arena *arena, size_t thread);

/* References of a new load module and a new string; 0 when full. *id: the module's number. */
uint32_t perf_arena_module(struct perf_arena *arena, const char *path, uint64_t bias, uint64_t table_id, uint32_t *id);
uint32_t perf_arena_string(struct perf_arena *arena, const char *text);

/* The child of a node with this address; parent 0: of the thread's root. 0 when full. */
uint32_t perf_arena_node(struct perf_arena *arena, size_t thread, uint32_t parent, uint32_t module, uint64_t ip);

/* The thread's root of partial call paths. */
uint32_t perf_arena_partial(const struct perf_arena *arena, size_t thread);

/* Adds a sample of weight to the hit like this one at a node; with a latency (core cycles), also to its histogram.
 * Where like has an offset, so has the sample. */
void perf_arena_hit(struct perf_arena *arena, size_t thread, uint32_t node, const struct arena_hit *like,
                    uint64_t weight, uint64_t lat_cycles);

/* Adds a sample of an event on a variable to those of a CPU. */
void perf_arena_place(struct perf_arena *arena, size_t thread, uint8_t event, uint64_t var, uint16_t cpu);

#endif
