/* SPDX-License-Identifier: BSD-3-Clause */
/* How a record of the reach of a thread's samples in a variable (struct arena_reach) takes a sample. It has a fixed
 * size: a histogram of offsets with bins of a power of two bytes, how many samples read and wrote, how many were
 * further on than the one before, and two short tables of what is used most, by the space-saving rule (a new key takes
 * the place of the least used one and its count, so that what has more than one part in n of all samples is in a table
 * of n): blocks, and cache lines with the places in them. Only the thread that owns it writes, so that plain loads and
 * stores of single words will do; readers see some state of each word. Any context. */
#ifndef LOCUS_ARENA_REACH_H
#define LOCUS_ARENA_REACH_H

#include <stdbool.h>

#include "arena/arena.h"

#define REACH_READS 1u
#define REACH_WRITES 2u

/* A sample in a variable. */
struct reach_sample {
    uint64_t address;
    uint64_t offset;   /* bytes from the start of its block or symbol */
    unsigned accesses; /* REACH_*, 0: not known */
};

/* The smallest shift whose bins hold all offsets of a block of this size.  ctx: any */
static inline unsigned reach_shift(uint64_t n_bytes)
{
    unsigned bits = n_bytes > ARENA_REACH_BINS ? 64 - (unsigned)__builtin_clzll(n_bytes - 1) : 6;
    return bits - 6;
}

/* Adds 1 to a word that nobody else writes.  ctx: owner */
static inline uint32_t reach_count(_Atomic uint32_t *word)
{
    uint32_t count = atomic_load_explicit(word, memory_order_relaxed) + 1;
    atomic_store_explicit(word, count, memory_order_relaxed);
    return count;
}

/* The place of key in a table of n, whose count goes up by 1; *is_new: the place held another key, or none, and the
 * caller puts the key there.  ctx: owner */
static inline unsigned reach_find(_Atomic uint64_t *keys, _Atomic uint32_t *counts, unsigned n, uint64_t key,
                                  bool *is_new)
{
    unsigned least = 0;
    *is_new = false;
    for (unsigned i = 0; i < n; i++)
        if (atomic_load_explicit(&keys[i], memory_order_relaxed) == key) {
            (void)reach_count(&counts[i]);
            return i;
        }
    for (unsigned i = 1; i < n; i++)
        if (atomic_load_explicit(&counts[i], memory_order_relaxed) <
            atomic_load_explicit(&counts[least], memory_order_relaxed))
            least = i;
    *is_new = true;
    (void)reach_count(&counts[least]);
    return least;
}

/* Counts the sample for its block.  ctx: owner */
static inline void reach_note_block(struct arena_reach *reach, const struct reach_sample *sample)
{
    bool is_new;
    uint64_t block = sample->address - sample->offset;
    unsigned at = reach_find(reach->blocks, reach->n_in_blocks, ARENA_REACH_BLOCKS, block, &is_new);
    if (is_new)
        atomic_store_explicit(&reach->blocks[at], block, memory_order_relaxed);
}

/* Makes room in a slot that is full: all lose half.  ctx: owner */
static inline void reach_halve_line(struct arena_reach_line *line)
{
    for (unsigned i = 0; i < PATTERN_SLOTS; i++)
        atomic_store_explicit(&line->slots[i], atomic_load_explicit(&line->slots[i], memory_order_relaxed) / 2,
                              memory_order_relaxed);
    atomic_store_explicit(&line->n_stores, atomic_load_explicit(&line->n_stores, memory_order_relaxed) / 2,
                          memory_order_relaxed);
}

/* The entry of a line, emptied first when another line had it.  ctx: owner */
static inline struct arena_reach_line *reach_line(struct arena_reach *reach, uint64_t line)
{
    bool is_new;
    unsigned at = reach_find(reach->lines, reach->n_in_lines, ARENA_REACH_LINES, line, &is_new);
    struct arena_reach_line *entry = &reach->places[at];
    if (is_new) {
        for (unsigned i = 0; i < PATTERN_SLOTS; i++)
            atomic_store_explicit(&entry->slots[i], 0, memory_order_relaxed);
        atomic_store_explicit(&entry->read_at, 0, memory_order_relaxed);
        atomic_store_explicit(&entry->written_at, 0, memory_order_relaxed);
        atomic_store_explicit(&entry->n_stores, 0, memory_order_relaxed);
        atomic_store_explicit(&reach->lines[at], line, memory_order_release);
    }
    return entry;
}

/* Sets a bit of a word that nobody else writes.  ctx: owner */
static inline void reach_set_bit(_Atomic uint64_t *word, unsigned bit)
{
    atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed) | UINT64_C(1) << bit,
                          memory_order_relaxed);
}

/* Counts the sample at its place in its line.  ctx: owner */
static inline void reach_note_line(struct arena_reach *reach, const struct reach_sample *sample)
{
    struct arena_reach_line *entry = reach_line(reach, sample->address / PATTERN_LINE_BYTES);
    unsigned at = (unsigned)(sample->address % PATTERN_LINE_BYTES);
    _Atomic uint16_t *slot = &entry->slots[at / 4];
    if (atomic_load_explicit(slot, memory_order_relaxed) == UINT16_MAX)
        reach_halve_line(entry);
    uint16_t count = atomic_load_explicit(slot, memory_order_relaxed);
    atomic_store_explicit(slot, (uint16_t)(count + 1), memory_order_relaxed);
    if (sample->accesses != REACH_WRITES)
        reach_set_bit(&entry->read_at, at);
    if (sample->accesses & REACH_WRITES) {
        reach_set_bit(&entry->written_at, at);
        (void)reach_count(&entry->n_stores);
    }
}

/* Adds a sample to a record whose bins are wide enough for its offset (reach_shift).  ctx: owner */
static inline void reach_add(struct arena_reach *reach, const struct reach_sample *sample)
{
    if (sample->offset < atomic_load_explicit(&reach->first_offset, memory_order_relaxed))
        atomic_store_explicit(&reach->first_offset, sample->offset, memory_order_relaxed);
    if (sample->offset > atomic_load_explicit(&reach->last_offset, memory_order_relaxed))
        atomic_store_explicit(&reach->last_offset, sample->offset, memory_order_relaxed);
    if (reach->before && sample->address != reach->before)
        (void)reach_count(&reach->n_steps);
    if (reach->before && sample->address > reach->before)
        (void)reach_count(&reach->n_forward);
    reach->before = sample->address;
    if (sample->accesses)
        (void)reach_count(sample->accesses & REACH_WRITES ? &reach->n_stores : &reach->n_loads);
    (void)reach_count(&reach->bins[sample->offset >> reach->shift & (ARENA_REACH_BINS - 1)]);
    reach_note_block(reach, sample);
    reach_note_line(reach, sample);
}

#endif
