/* SPDX-License-Identifier: BSD-3-Clause */
/* Records in the ring of a perf event: see ring.h. Runs in the signal handler. */
#include "runtime/ring.h"

#include <stddef.h>
#include <string.h>

#include "base/sigsafe.h"

/* The fields in the order in which the kernel writes them, each one 8 bytes wide. */
static const uint64_t fields[] = {PERF_SAMPLE_IP,   PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
                                  PERF_SAMPLE_ADDR, PERF_SAMPLE_CPU, PERF_SAMPLE_PERIOD};

static const char *ring_data_sig(const struct perf_event_mmap_page *ring)
{
    return (const char *)ring + (ring->data_offset ? ring->data_offset : 4096);
}

static uint64_t ring_word_sig(const struct perf_event_mmap_page *ring, uint64_t position)
{
    uint64_t word;
    memcpy(&word, ring_data_sig(ring) + (position & (ring->data_size - 1)), sizeof word);
    return word;
}

static struct perf_event_header ring_header_sig(const struct perf_event_mmap_page *ring, uint64_t position)
{
    struct perf_event_header header;
    uint64_t word = ring_word_sig(ring, position);
    memcpy(&header, &word, sizeof header);
    return header;
}

static void ring_parse_sig(const struct perf_event_mmap_page *ring, uint64_t position, uint64_t sample_type,
                           struct ring_sample *sample)
{
    position += sizeof(struct perf_event_header);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (!(sample_type & fields[i]))
            continue;
        uint64_t word = ring_word_sig(ring, position);
        position += sizeof word;
        if (fields[i] == PERF_SAMPLE_IP)
            sample->ip = word;
        else if (fields[i] == PERF_SAMPLE_ADDR)
            sample->address = word;
        else if (fields[i] == PERF_SAMPLE_PERIOD)
            sample->period = word;
    }
}

bool ring_newest_sig(const struct perf_event_mmap_page *ring, uint64_t sample_type, struct ring_sample *sample)
{
    uint64_t head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
    if (!head || !ring->data_size || ring_header_sig(ring, head).type != PERF_RECORD_SAMPLE)
        return false;
    *sample = (struct ring_sample){0};
    ring_parse_sig(ring, head, sample_type, sample);
    return true;
}

bool ring_take_sig(struct perf_event_mmap_page *ring, uint64_t sample_type, struct ring_sample *sample, bool *is_last)
{
    uint64_t head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
    *sample = (struct ring_sample){0};
    while (ring->data_tail < head) {
        uint64_t position = ring->data_tail;
        struct perf_event_header header = ring_header_sig(ring, position);
        if (header.size < sizeof header)
            header.size = (uint16_t)(head - position > UINT16_MAX ? UINT16_MAX : head - position);
        if (header.type == PERF_RECORD_SAMPLE)
            ring_parse_sig(ring, position, sample_type, sample);
        else if (header.type == PERF_RECORD_LOST)
            sample->n_lost += ring_word_sig(ring, position + 2 * sizeof(uint64_t));
        __atomic_store_n(&ring->data_tail, position + header.size, __ATOMIC_RELEASE);
        *is_last = position + header.size >= head;
        if (header.type == PERF_RECORD_SAMPLE)
            return true;
    }
    return false;
}

uint64_t ring_count_sig(const struct perf_event_mmap_page *ring, unsigned n_record_bytes)
{
    uint64_t head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
    return (0 - head) / n_record_bytes;
}

unsigned ring_record_bytes_sig(uint64_t sample_type)
{
    unsigned n_bytes = sizeof(struct perf_event_header);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        n_bytes += sample_type & fields[i] ? 8 : 0;
    return n_bytes;
}
