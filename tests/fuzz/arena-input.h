/* SPDX-License-Identifier: BSD-3-Clause */
/* Arenas as inputs of a fuzzer: an arena is mostly zeros, so an input is a list of steps (steps.h) that fill one.
 *
 *   ARENA_STEP_HEADER  the bytes go to offset b * 8 of the header, which begins as that of an empty arena
 *   ARENA_STEP_CHUNK   one more chunk of kind a, b bytes used (0: all), owned by the thread that the bytes name
 *   ARENA_STEP_BYTES   the bytes go to offset b * 8 of the last chunk
 *
 * Chunks lie where arena_input_data says, so that references in real arenas of that layout stay true. */
#ifndef LOCUS_FUZZ_ARENA_INPUT_H
#define LOCUS_FUZZ_ARENA_INPUT_H

#include "arena/arena.h"

#include "steps.h"

#define ARENA_INPUT_CHUNKS 24 /* more are left out */

enum arena_step { ARENA_STEP_HEADER, ARENA_STEP_CHUNK, ARENA_STEP_BYTES, ARENA_STEPS };

/* Where the table of chunks and the first chunk are. */
static inline uint64_t arena_input_table(void)
{
    return (sizeof(struct arena_header) + 4095) & ~(uint64_t)4095;
}
static inline uint64_t arena_input_data(void)
{
    return arena_input_table() + 4096;
}

/* The arena that an input describes, malloc'ed; NULL when out of memory. */
char *arena_input_fill(const uint8_t *data, size_t len_bytes, size_t *size_bytes);

#endif
