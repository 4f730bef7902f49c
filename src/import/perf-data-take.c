/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers and strings of a perf.data file in either byte order, and the messages about it. */
#include <inttypes.h>
#include <string.h>

#include "import/perf-data-internal.h"

const unsigned char *perf_take_bytes(struct perf_take *take, uint64_t n_bytes)
{
    if (take->failed || n_bytes > take->n_bytes - take->at) {
        take->failed = true;
        return NULL;
    }
    const unsigned char *bytes = take->bytes + take->at;
    take->at += n_bytes;
    return bytes;
}

uint64_t perf_take_number(struct perf_take *take, unsigned n_bytes)
{
    const unsigned char *bytes = perf_take_bytes(take, n_bytes);
    uint16_t half;
    uint32_t word;
    uint64_t two_words;
    if (!bytes)
        return 0;
    switch (n_bytes) {
    case 8:
        memcpy(&two_words, bytes, 8);
        return take->is_swapped ? __builtin_bswap64(two_words) : two_words;
    case 4:
        memcpy(&word, bytes, 4);
        return take->is_swapped ? __builtin_bswap32(word) : word;
    case 2:
        memcpy(&half, bytes, 2);
        return take->is_swapped ? __builtin_bswap16(half) : half;
    default:
        return bytes[0];
    }
}

const char *perf_take_string(struct perf_take *take)
{
    const unsigned char *begin = take->bytes + take->at;
    const unsigned char *end = take->failed ? NULL : memchr(begin, 0, take->n_bytes - take->at);
    if (!end) {
        take->failed = true;
        return NULL;
    }
    take->at += (size_t)(end - begin) + 1;
    return (const char *)begin;
}

int perf_data_fail(const struct perf_data *data, uint64_t offset, const char *reason, struct error *err)
{
    return error_set(err, ERR_FORMAT, "%.600s: offset %" PRIu64 ": %s", data->name, offset, reason);
}

int perf_data_fail_record(const struct perf_data *data, const struct perf_data_record *record, const char *reason,
                          struct error *err)
{
    return error_set(err, ERR_FORMAT, "%.600s: %s %" PRIu64 ": %s", data->name,
                     record->is_inflated ? "offset in the decompressed records" : "offset", record->offset, reason);
}

int perf_data_no_memory(const struct perf_data *data, struct error *err)
{
    return error_set(err, ERR_MEMORY, "%.600s: out of memory", data->name);
}
