/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings that the reader empties: many records at a time, each with its pc alone. Runs in the signal handler, and in
 * ordinary code before a block disappears. */
#include "runtime/events-internal.h"

#include <stddef.h>

#include "runtime/sample.h"
#include "base/sigsafe.h"

#define RELEASE_PART 4 /* the kernel gets its ring back when a quarter of it has been read */

static void add_sig(_Atomic uint64_t *counter, uint64_t n)
{
    if (n)
        atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static void take_sample_sig(struct thread_state *self, unsigned index, const struct ring_record *record,
                            uint64_t position)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    struct sample_event event = {.index = (uint8_t)index, .has_access = true};
    if (!access_of_record_sig(plan, record, &event.access)) {
        sample_drop_sig(self, index, FATE_DROP_BAD_RECORD);
        return;
    }
    if (plan->flags & EVENT_WEIGHTED)
        event.weight = event.access.period;
    if (event.access.has_address)
        event.moved_var = moves_find_sig(self, index, position, (uintptr_t)event.access.address);
    sample_take_plain_sig(self, &event);
}

static void take_record_sig(struct thread_state *self, unsigned index, const struct ring_record *record,
                            uint64_t position)
{
    struct arena_thread *counts = self->record;
    bool is_swapped = access_is_swapped_sig(&arena_header_sig()->events[index]);
    switch (record->header.type) {
    case PERF_RECORD_SAMPLE:
        take_sample_sig(self, index, record, position);
        break;
    case PERF_RECORD_LOST:
        add_sig(&counts->fates[index][FATE_NOT_DELIVERED], ring_word_sig(record, 1, is_swapped));
        break;
    case PERF_RECORD_LOST_SAMPLES:
        add_sig(&counts->fates[index][FATE_NOT_DELIVERED], ring_word_sig(record, 0, is_swapped));
        break;
    case PERF_RECORD_THROTTLE:
        add_sig(&counts->n_throttles[index], 1);
        break;
    case PERF_RECORD_AUX:
        add_sig(&counts->n_truncated[index], ring_word_sig(record, 2, is_swapped) & PERF_AUX_FLAG_TRUNCATED ? 1 : 0);
        add_sig(&counts->n_collisions[index], ring_word_sig(record, 2, is_swapped) & PERF_AUX_FLAG_COLLISION ? 1 : 0);
        aux_drain_sig(self, index, ring_word_sig(record, 0, is_swapped), ring_word_sig(record, 1, is_swapped));
        break;
    default:
        break;
    }
}

void events_drain_sig(struct thread_state *self, unsigned index)
{
    bool is_swapped = access_is_swapped_sig(&arena_header_sig()->events[index]);
    struct perf_event_mmap_page *ring = self->events[index].ring;
    struct ring_record record;
    uint64_t position = ring->data_tail, released = position;
    uint32_t n_moves = moves_count_sig(self);
    for (;;) {
        enum ring_status status =
            ring_next_sig(ring, is_swapped, &position, self->wrapped, sizeof self->wrapped, &record);
        if (status == RING_EMPTY)
            break;
        if (status == RING_GARBAGE)
            sample_drop_sig(self, index, FATE_DROP_BAD_RECORD);
        else
            take_record_sig(self, index, &record, position - record.header.size);
        if (position - released > ring->data_size / RELEASE_PART)
            ring_release_sig(ring, released = position);
    }
    ring_release_sig(ring, position);
    moves_done_sig(self, index, position, n_moves);
}
