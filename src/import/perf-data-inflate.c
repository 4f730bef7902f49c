/* SPDX-License-Identifier: BSD-3-Clause */
/* Compressed records of perf.data files (perf record -z): one zstd stream over all of them, in which records may lie
 * across the borders of those that carry them. Without libzstd such files are refused. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#if HAVE_LIBZSTD
#include <zstd.h>
#endif

#include "import/perf-data-internal.h"

#if HAVE_LIBZSTD

#define PIECE_BYTES (1 << 17)

struct perf_inflate {
    ZSTD_DStream *stream;
    char piece[PIECE_BYTES];
};

struct perf_inflate *perf_inflate_new(void)
{
    struct perf_inflate *inflate = malloc(sizeof *inflate);
    if (inflate && !(inflate->stream = ZSTD_createDStream())) {
        free(inflate);
        return NULL;
    }
    return inflate;
}

void perf_inflate_free(struct perf_inflate *inflate)
{
    if (inflate)
        (void)ZSTD_freeDStream(inflate->stream);
    free(inflate);
}

/* The compressed bytes of a record: to its end, or as many as the newer form tells. */
static struct perf_take compressed_of(const struct perf_data *data, const struct perf_data_record *record)
{
    struct perf_take take = {
        .bytes = perf_data_bytes(data, record), .n_bytes = record->n_bytes, .at = 8, .is_swapped = data->is_swapped};
    uint64_t n_bytes = record->n_bytes - 8;
    if (record->type == PERF_DATA_COMPRESSED2)
        n_bytes = perf_take_number(&take, 8);
    const unsigned char *bytes = perf_take_bytes(&take, n_bytes);
    return (struct perf_take){.bytes = bytes, .n_bytes = n_bytes, .failed = take.failed};
}

int perf_inflate(struct perf_inflate *inflate, struct perf_data *data, const struct perf_data_record *record,
                 struct error *err)
{
    struct perf_take from = compressed_of(data, record);
    ZSTD_inBuffer in = {.src = from.bytes, .size = from.n_bytes};
    bool is_full = false;
    while (!from.failed && (in.pos < in.size || is_full)) {
        ZSTD_outBuffer out = {.dst = inflate->piece, .size = PIECE_BYTES};
        size_t before = in.pos, result = ZSTD_decompressStream(inflate->stream, &out, &in);
        from.failed = ZSTD_isError(result) || (in.pos == before && out.pos == 0 && !is_full);
        is_full = out.pos == out.size;
        buf_append(&data->inflated, inflate->piece, from.failed ? 0 : out.pos);
        if (data->inflated.failed)
            return perf_data_no_memory(data, err);
    }
    return from.failed ? perf_data_fail_record(data, record, "the compressed records cannot be decompressed", err) : 0;
}

#else

struct perf_inflate {
    char nothing;
};

struct perf_inflate *perf_inflate_new(void)
{
    return calloc(1, sizeof(struct perf_inflate));
}

void perf_inflate_free(struct perf_inflate *inflate)
{
    free(inflate);
}

int perf_inflate(struct perf_inflate *inflate, struct perf_data *data, const struct perf_data_record *record,
                 struct error *err)
{
    (void)inflate;
    (void)perf_data_fail_record(data, record, "the records are compressed, and this program was built without libzstd",
                                err);
    if (err)
        err->code = ERR_UNSUPPORTED;
    return ERR_UNSUPPORTED;
}

#endif
