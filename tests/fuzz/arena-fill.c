/* SPDX-License-Identifier: BSD-3-Clause */
/* From the steps of arena-input.h to an arena. Shared by the targets that read one. */
#include <stdatomic.h>
#include <stdlib.h>

#include "arena-input.h"

struct filling {
    char *base;
    size_t size_bytes;
    struct arena_header *header;
    struct arena_chunk *table;
    uint32_t n_chunks;
};

static uint32_t count_chunks(const uint8_t *data, size_t len_bytes)
{
    struct step step;
    uint32_t n = 0;
    while (step_next(&data, &len_bytes, &step))
        n += step.kind % ARENA_STEPS == ARENA_STEP_CHUNK;
    return n < ARENA_INPUT_CHUNKS ? n : ARENA_INPUT_CHUNKS;
}

static void begin(struct filling *filling, uint32_t n_chunks)
{
    filling->size_bytes = arena_input_data() + (size_t)n_chunks * ARENA_CHUNK_BYTES;
    filling->base = calloc(1, filling->size_bytes);
    if (!filling->base)
        return;
    filling->header = (void *)filling->base;
    filling->table = (void *)(filling->base + arena_input_table());
    memcpy(filling->header->magic, ARENA_MAGIC, 8);
    filling->header->version = ARENA_VERSION;
    filling->header->header_bytes = sizeof *filling->header;
    filling->header->size_bytes = filling->size_bytes;
    filling->header->chunk_table_offset = arena_input_table();
    filling->header->chunk_data_offset = arena_input_data();
    filling->header->chunk_limit = n_chunks;
    atomic_store(&filling->header->n_chunks, n_chunks);
}

static void add_chunk(struct filling *filling, const struct step *step, const uint8_t *bytes)
{
    struct arena_chunk *chunk = &filling->table[filling->n_chunks++];
    atomic_store(&chunk->used_bytes, step->b ? step->b : ARENA_CHUNK_BYTES);
    chunk->kind = step->a;
    memcpy(&chunk->thread, bytes, step->n_bytes < 4 ? step->n_bytes : 4);
}

static void put(char *to, size_t limit_bytes, const struct step *step, const uint8_t *bytes)
{
    size_t at = (size_t)step->b * 8 % limit_bytes;
    memcpy(to + at, bytes, step->n_bytes < limit_bytes - at ? step->n_bytes : limit_bytes - at);
}

char *arena_input_fill(const uint8_t *data, size_t len_bytes, size_t *size_bytes)
{
    struct filling filling = {0};
    struct step step;
    const uint8_t *bytes;
    begin(&filling, count_chunks(data, len_bytes));
    while (filling.base && (bytes = step_next(&data, &len_bytes, &step))) {
        enum arena_step kind = step.kind % ARENA_STEPS;
        if (kind == ARENA_STEP_HEADER)
            put(filling.base, sizeof *filling.header, &step, bytes);
        else if (kind == ARENA_STEP_CHUNK && filling.n_chunks < ARENA_INPUT_CHUNKS)
            add_chunk(&filling, &step, bytes);
        else if (kind == ARENA_STEP_BYTES && filling.n_chunks)
            put(filling.base + arena_input_data() + (size_t)(filling.n_chunks - 1) * ARENA_CHUNK_BYTES,
                ARENA_CHUNK_BYTES, &step, bytes);
    }
    *size_bytes = filling.size_bytes;
    return filling.base;
}
