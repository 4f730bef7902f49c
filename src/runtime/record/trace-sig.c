/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of samples: see trace.h. Runs in the signal handler. */
#include "runtime/record/trace.h"

#include "base/sigsafe.h"

#define RUNS_TRIED 256  /* at one sample: most are skipped at a glance, as a thread writes to them */
#define RUNS_SEARCHED 4 /* record by record */

static struct arena_chunk *chunk_sig(const struct arena_header *header, uint32_t run)
{
    return (struct arena_chunk *)(void *)((char *)(uintptr_t)header + header->chunk_table_offset) + (run - 1);
}

/* --- runs --- */

void trace_leave_sig(struct trace_writer *writer)
{
    struct arena_cursor *cursor = &writer->cursor;
    if (cursor->chunk) {
        /* Records that were never written are empty, and free for whoever takes the run. */
        size_t n = (size_t)(cursor->end - cursor->start) / sizeof(struct arena_trace);
        if (!writer->is_reused)
            atomic_store_explicit(&cursor->chunk->used_bytes, (uint32_t)(n * sizeof(struct arena_trace)),
                                  memory_order_release);
        atomic_store_explicit(&cursor->chunk->thread, 0, memory_order_release);
    }
    *writer = (struct trace_writer){0};
}

/* Enters a new run into the list. */
static void list_run_sig(struct arena_header *header, struct arena_chunk *chunk)
{
    uint32_t run = 1 + (uint32_t)(chunk - chunk_sig(header, 1));
    uint32_t next = atomic_load_explicit(&header->newest_trace_run, memory_order_relaxed);
    do
        atomic_store_explicit(&chunk->next, next, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&header->newest_trace_run, &next, run, memory_order_release,
                                                  memory_order_relaxed));
}

/* The sweep has been through all runs: the next one begins, a level higher unless all runs are in use. False: there is
 * no room now. */
static bool sweep_again_sig(struct arena_header *header, uint64_t sweep)
{
    uint64_t level = sweep >> ARENA_SWEEP_LEVEL_SHIFT;
    uint32_t newest = atomic_load_explicit(&header->newest_trace_run, memory_order_acquire);
    bool rises = !sweep || sweep & ARENA_SWEEP_CLAIMED;
    if (!newest || level + rises >= ARENA_TRACE_LEVELS)
        return false;
    (void)atomic_compare_exchange_strong(&header->trace_sweep, &sweep,
                                         (level + rises) << ARENA_SWEEP_LEVEL_SHIFT | newest);
    return rises;
}

/* Takes the next run of the sweep that nobody writes to. False: there is none now. */
static bool claim_run_sig(struct trace_writer *writer, struct arena_header *header, uint32_t ref)
{
    for (unsigned tries = 0; tries < RUNS_TRIED; tries++) {
        uint64_t sweep = atomic_load_explicit(&header->trace_sweep, memory_order_acquire);
        uint32_t run = (uint32_t)sweep, nobody = 0;
        if (!run && !sweep_again_sig(header, sweep))
            return false;
        if (!run)
            continue;
        struct arena_chunk *chunk = chunk_sig(header, run);
        uint64_t next = (sweep & ~(uint64_t)UINT32_MAX) | atomic_load_explicit(&chunk->next, memory_order_relaxed);
        if (!atomic_compare_exchange_strong(&header->trace_sweep, &sweep, next) ||
            !atomic_compare_exchange_strong(&chunk->thread, &nobody, ref))
            continue;
        atomic_fetch_or_explicit(&header->trace_sweep, ARENA_SWEEP_CLAIMED, memory_order_relaxed);
        char *start = (char *)header + header->chunk_data_offset + (uint64_t)(run - 1) * ARENA_CHUNK_BYTES;
        writer->cursor = (struct arena_cursor){
            .start = start, .position = start, .end = start + atomic_load(&chunk->used_bytes), .chunk = chunk};
        writer->is_reused = true;
        return true;
    }
    return false;
}

/* --- records --- */

/* The next record of a run that was full before, and is free by now. */
static struct arena_trace *free_record_sig(struct arena_cursor *cursor, unsigned level)
{
    while (cursor->position + sizeof(struct arena_trace) <= cursor->end) {
        struct arena_trace *record = (struct arena_trace *)(void *)cursor->position;
        uint64_t stamp = atomic_load_explicit(&record->stamp, memory_order_relaxed);
        cursor->position += sizeof *record;
        if (!stamp || arena_trace_stamp_level(stamp) < level)
            return record;
    }
    return NULL;
}

/* A record of a new run, or of the one at hand while it is new. */
static struct arena_trace *new_record_sig(struct trace_writer *writer, struct arena_header *header, uint32_t ref)
{
    struct arena_cursor *cursor = &writer->cursor;
    struct arena_chunk *old = cursor->chunk;
    char *start = cursor->start, *end = cursor->end;
    struct arena_trace *record = arena_reserve_sig(cursor, ARENA_TRACE, ref, sizeof *record);
    if (!record || cursor->chunk == old)
        return record;
    struct trace_writer left = {.cursor = {.start = start, .end = end, .chunk = old}, .is_reused = writer->is_reused};
    trace_leave_sig(&left);
    writer->is_reused = false;
    list_run_sig(header, cursor->chunk);
    return record;
}

/* Whether the log has all the room that it will get. Otherwise more is on its way from the companion. */
static bool is_full_sig(const struct arena_header *header)
{
    return atomic_load_explicit(&header->n_trace_chunks, memory_order_relaxed) >= header->trace_chunk_limit ||
           atomic_load_explicit(&header->n_chunks, memory_order_relaxed) >= header->chunk_limit;
}

static struct arena_trace *record_sig(struct trace_writer *writer, struct arena_header *header, uint32_t ref)
{
    struct arena_trace *record = NULL;
    if (!writer->is_reused)
        record = new_record_sig(writer, header, ref);
    else
        record = free_record_sig(&writer->cursor, arena_trace_min_level(header));
    if (!record && writer->is_reused)
        record = new_record_sig(writer, header, ref);
    for (unsigned n = 0; n < RUNS_SEARCHED && !record && is_full_sig(header); n++) {
        trace_leave_sig(writer);
        if (!claim_run_sig(writer, header, ref))
            return NULL;
        record = free_record_sig(&writer->cursor, arena_trace_min_level(header));
    }
    return record;
}

void trace_put_sig(struct trace_writer *writer, struct arena_thread *thread, uint32_t ref,
                   const struct trace_sample *sample)
{
    struct arena_header *header = arena_header_sig();
    uint64_t number = atomic_load_explicit(&thread->n_traced, memory_order_relaxed);
    unsigned level = arena_trace_level(thread->id, number);
    atomic_store_explicit(&thread->n_traced, number + 1, memory_order_relaxed);
    if (level < arena_trace_min_level(header))
        return;
    struct arena_trace *record = record_sig(writer, header, ref);
    if (!record) {
        atomic_fetch_add_explicit(&thread->n_untraced, 1, memory_order_relaxed);
        return;
    }
    uint64_t latency = sample->lat_cycles < UINT32_MAX ? sample->lat_cycles : UINT32_MAX;
    uint64_t offset = sample->offset < ARENA_TRACE_NO_OFFSET ? sample->offset : ARENA_TRACE_NO_OFFSET;
    atomic_store_explicit(&record->stamp, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&record->hit_and_latency, latency << 32 | arena_ref_sig(sample->hit), memory_order_relaxed);
    atomic_store_explicit(&record->place, (uint64_t)sample->cpu << 48 | offset, memory_order_relaxed);
    atomic_store_explicit(&record->stamp, arena_trace_stamp(sample->t_ns - header->start_mono_ns, level),
                          memory_order_release);
    if (!writer->is_reused)
        arena_publish_sig(&writer->cursor);
}
