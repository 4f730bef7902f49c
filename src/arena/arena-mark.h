/* SPDX-License-Identifier: BSD-3-Clause */
/* The mark: what of the allocations is live at a moment that the user or the program names, noted in the arena itself,
 * so that the measurement of a killed process has it, too. Apart from arena.h because only the companion and the
 * program's API need it. Any context: plain loads and stores. */
#ifndef LOCUS_ARENA_ARENA_MARK_H
#define LOCUS_ARENA_ARENA_MARK_H

#include "arena/arena.h"

/* A hit of allocations or of frees keeps what it had counted when the mark was made: bytes in latency, blocks in
 * metrics (low half) and offsets, none of which it has another use for.  ctx: any */
static inline void arena_mark_hit(struct arena_hit *hit)
{
    uint64_t n_blocks = atomic_load_explicit(&hit->count, memory_order_relaxed);
    uint64_t n_bytes = atomic_load_explicit(&hit->weight, memory_order_relaxed);
    __atomic_store_n(&hit->metrics, (uint32_t)n_blocks, __ATOMIC_RELAXED);
    __atomic_store_n(&hit->offsets, (uint32_t)(n_blocks >> 32), __ATOMIC_RELAXED);
    atomic_store_explicit(&hit->latency, n_bytes, memory_order_relaxed);
}

/* Blocks that a hit had counted at the mark.  ctx: any */
static inline uint64_t arena_marked_blocks(const struct arena_hit *hit)
{
    return (uint64_t)__atomic_load_n(&hit->offsets, __ATOMIC_RELAXED) << 32 |
           __atomic_load_n(&hit->metrics, __ATOMIC_RELAXED);
}

/* Marks all hits in n_chunks chunks, whose table and data the caller knows to lie there.  ctx: any */
static inline void arena_mark_chunks(const struct arena_chunk *chunks, char *data, uint32_t n_chunks)
{
    for (uint32_t i = 0; i < n_chunks; i++) {
        uint32_t used_bytes = arena_run_used(&chunks[i], n_chunks - i);
        struct arena_hit *hits = (struct arena_hit *)(void *)(data + (uint64_t)i * ARENA_CHUNK_BYTES);
        if (chunks[i].kind != ARENA_HITS)
            continue;
        for (uint32_t k = 0; k < used_bytes / sizeof *hits; k++)
            if (hits[k].event == HIT_EVENT_ALLOC || hits[k].event == HIT_EVENT_FREE)
                arena_mark_hit(&hits[k]);
    }
}

/* Marks all hits of the arena that starts at header; t_ns: now, CLOCK_REALTIME. A later mark replaces an earlier one.
 * Threads that allocate meanwhile are counted at the moment their path is looked at.  ctx: any */
static inline void arena_mark_live(struct arena_header *header, uint64_t t_ns)
{
    struct arena_chunk *chunks = (struct arena_chunk *)(void *)((char *)header + header->chunk_table_offset);
    uint32_t n_chunks = atomic_load_explicit(&header->n_chunks, memory_order_acquire);
    n_chunks = n_chunks < header->chunk_limit ? n_chunks : header->chunk_limit;
    arena_mark_chunks(chunks, (char *)header + header->chunk_data_offset, n_chunks);
    atomic_store_explicit(&header->mark_ns, t_ns, memory_order_release);
}

#endif
