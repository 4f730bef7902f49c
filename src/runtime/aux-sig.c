/* SPDX-License-Identifier: BSD-3-Clause */
/* The AUX area beside a ring: what the hardware itself has written there (Arm's statistical profiling extension). Runs
 * where rings are drained. */
#include "runtime/events-internal.h"

#include <string.h>

#include "runtime/sample.h"
#include "sampling/abi/spe.h"
#include "base/sigsafe.h"

#define SPE_RECORD_MAX 256 /* generously: a record and padding up to its alignment */

/* A part of the area in the order in which it was written. */
struct aux_span {
    const unsigned char *area;
    uint64_t n_area, position, end;
};

/* At most n_buffer of the bytes that follow, contiguous: in place, or where the area's end is near in buffer. */
static const unsigned char *span_window_sig(const struct aux_span *span, unsigned char *buffer, size_t n_buffer,
                                            size_t *n_bytes)
{
    uint64_t offset = span->position % span->n_area;
    uint64_t left = span->end - span->position, before_wrap = span->n_area - offset;
    if (left <= before_wrap || before_wrap >= n_buffer) {
        *n_bytes = (size_t)(left < before_wrap ? left : before_wrap);
        return span->area + offset;
    }
    *n_bytes = (size_t)(left < n_buffer ? left : n_buffer);
    memcpy(buffer, span->area + offset, (size_t)before_wrap);
    memcpy(buffer + before_wrap, span->area, *n_bytes - (size_t)before_wrap);
    return buffer;
}

static void take_spe_sig(struct thread_state *self, unsigned index, const struct spe_record *record)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    struct sample_event event = {.index = (uint8_t)index, .has_access = true};
    access_of_spe_sig(plan, record, &event.access);
    if (event.access.has_address)
        event.moved_var = moves_find_sig(self, index, UINT64_MAX, (uintptr_t)event.access.address);
    sample_take_plain_sig(self, &event);
}

void aux_drain_sig(struct thread_state *self, unsigned index, uint64_t offset, uint64_t n_bytes)
{
    struct thread_event *event = &self->events[index];
    struct perf_event_mmap_page *ring = event->ring;
    unsigned char buffer[SPE_RECORD_MAX];
    struct aux_span span = {.area = event->aux, .n_area = event->aux_bytes, .position = offset,
                            .end = offset + n_bytes};
    uint64_t n_garbage = 0;
    if (!event->aux || n_bytes > event->aux_bytes) {
        sample_drop_sig(self, index, FATE_DROP_BAD_RECORD);
        return;
    }
    while (span.position < span.end) {
        struct spe_record record;
        size_t n_window;
        const unsigned char *window = span_window_sig(&span, buffer, sizeof buffer, &n_window);
        size_t n_used = spe_record_parse_sig(window, n_window, &record, &n_garbage);
        if (n_used)
            take_spe_sig(self, index, &record);
        else
            n_used = window == buffer || n_window < SPE_RECORD_MAX ? n_window : n_window - SPE_RECORD_MAX + 1;
        span.position += n_used;
    }
    if (n_garbage)
        sample_drop_sig(self, index, FATE_DROP_BAD_RECORD);
    __atomic_store_n(&ring->aux_tail, span.end, __ATOMIC_RELEASE);
}
