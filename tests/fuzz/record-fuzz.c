/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for perf records: any bytes are a layout and a record of it, and a ring full of records.
 * Whatever is found must lie inside what was given, and a ring must come to its end. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampling/abi/data-src.h"
#include "sampling/abi/perf-record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

enum { LAYOUT_BYTES = 26, HEADER_BYTES = 8 };

static void check(int holds, const char *sentence)
{
    if (holds)
        return;
    (void)fprintf(stderr, "%s\n", sentence);
    abort();
}

static uint64_t word(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static struct abi_layout layout_of(const uint8_t *data)
{
    struct abi_layout layout = {.sample_type = word(data) & 0xffffffff,
                                .read_format = data[4],
                                .branch_sample_type = word(data + 4) & 0xffffff00,
                                .regs_user = word(data + 8),
                                .regs_intr = word(data + 16),
                                .is_swapped = data[24] & 1,
                                .has_sample_id_all = data[24] & 2};
    return layout;
}

static void check_span(const struct abi_bytes *bytes, const uint8_t *record, size_t n_bytes)
{
    uint64_t sum = 0;
    check(bytes->data || !bytes->n_bytes, "a span has bytes but no place");
    if (!bytes->data)
        return;
    check(bytes->data >= record && bytes->data <= record + n_bytes &&
              bytes->n_bytes <= (size_t)(record + n_bytes - bytes->data),
          "a span lies outside the record");
    for (size_t i = 0; i < bytes->n_bytes; i++)
        sum += bytes->data[i];
    for (size_t i = 0; i < bytes->n_bytes / 8; i++)
        sum += abi_word_sig(bytes, i, true);
    check(sum != UINT64_MAX, "the compiler may not drop the reads");
}

static void check_sample(const uint8_t *record, size_t n_bytes, const struct abi_layout *layout)
{
    struct abi_sample s;
    bool is_whole = abi_sample_parse_sig(record, n_bytes, layout, &s);
    const struct abi_bytes spans[] = {s.callchain, s.raw, s.stack, s.regs_user, s.regs_intr, s.branches, s.read, s.aux};
    check(!(s.present & ~layout->sample_type), "a field was found that the layout lacks");
    check(!is_whole || s.present == (layout->sample_type & ((1u << 25) - 1)), "a whole record lacks a field");
    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++)
        check_span(&spans[i], record, n_bytes);
    check(s.callchain.n_bytes % 8 == 0 && s.branches.n_bytes % 24 == 0, "a list holds half an item");
    check(__builtin_popcount(mem_metrics_sig(s.data_src) & MEM_LEVEL_METRICS) <= 1, "two levels are counted");
    (void)abi_sample_id_parse_sig(record, n_bytes, layout, &s);
}

/* The record with a header whose size is true, or as it is. */
static void check_record(const uint8_t *bytes, size_t n_bytes, const struct abi_layout *layout, int keeps_size)
{
    uint8_t *record = malloc(n_bytes);
    if (!record)
        return;
    memcpy(record, bytes, n_bytes);
    if (!keeps_size && n_bytes >= HEADER_BYTES) {
        record[layout->is_swapped ? 7 : 6] = (uint8_t)n_bytes;
        record[layout->is_swapped ? 6 : 7] = (uint8_t)(n_bytes >> 8);
    }
    check_sample(record, n_bytes, layout);
    free(record);
}

static void check_ring(const uint8_t *bytes, size_t n_bytes, const struct abi_layout *layout, uint8_t shift)
{
    uint64_t n_ring = 8, buffer[64], position = (uint64_t)shift * 0x0101010101010108, steps = 0;
    const struct perf_event_header *record;
    while (2 * n_ring <= n_bytes)
        n_ring *= 2;
    if (n_ring > n_bytes)
        return;
    uint8_t *copy = malloc(n_ring);
    if (!copy)
        return;
    memcpy(copy, bytes, n_ring);
    struct abi_ring ring = {copy, n_ring, layout->is_swapped};
    uint64_t head = position + n_ring - (n_bytes > n_ring ? bytes[n_ring] % n_ring : 0);
    enum abi_status status;
    while ((status = abi_ring_record_sig(&ring, position, head, buffer, sizeof buffer, &record)) == ABI_RECORD) {
        const uint8_t *at = (const uint8_t *)record;
        uint16_t size = abi_header_sig(record, layout->is_swapped).size;
        bool is_copy = at == (const uint8_t *)buffer;
        check(is_copy || (at >= copy && at + size <= copy + n_ring), "a record lies outside the ring");
        check(!is_copy || size <= sizeof buffer, "a record is larger than the buffer");
        check(size >= HEADER_BYTES && size <= head - position, "a record is longer than what is written");
        check_sample(at, size, layout);
        position += size;
        check(++steps <= n_ring / HEADER_BYTES, "the ring does not end");
    }
    check((status == ABI_EMPTY) == (position == head) && !record, "the end of a ring is not told from garbage");
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    if (len_bytes <= LAYOUT_BYTES)
        return 0;
    struct abi_layout layout = layout_of(data);
    const uint8_t *rest = data + LAYOUT_BYTES;
    size_t n_rest = len_bytes - LAYOUT_BYTES;
    check_record(rest, n_rest, &layout, data[24] & 4);
    layout.is_swapped = data[24] & 8;
    check_ring(rest, n_rest, &layout, data[25]);
    return 0;
}
