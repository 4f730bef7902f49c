/* SPDX-License-Identifier: BSD-3-Clause */
/* Values by context: cct.db from profile.db. The file is read with pread, not mapped: pages of a mapping would count as
 * memory of the process as long as others need the file. */
#include "database/v4.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

enum {
    VALUE_BYTES = 10,
    INDEX_BYTES = 12,
    SEARCH_ENTRIES = 256, /* a search ends by reading this many at once */
    PIECE_ENTRIES = 4096,
    PIECE_VALUES = 16384 /* unless one context has more */
};

static uint32_t context_of(const char *entry)
{
    uint32_t id;
    memcpy(&id, entry, 4);
    return id;
}

static uint64_t start_of(const char *entry)
{
    uint64_t start;
    memcpy(&start, entry + 4, 8);
    return start;
}

static int read_index(struct v4_slices *slices, const struct v4_place *place, uint32_t first, uint32_t n,
                      struct error *err)
{
    if (!vec_reserve(&slices->index, &slices->cap_index, (size_t)(n + 1) * INDEX_BYTES, 1))
        return error_memory(err);
    return spill_read_at(slices->fd, slices->path, place->indices + (uint64_t)INDEX_BYTES * first, slices->index,
                         (size_t)n * INDEX_BYTES, err);
}

int v4_slice_find(struct v4_slices *slices, const struct v4_place *place, uint32_t from, uint32_t id, uint32_t *found,
                  struct error *err)
{
    uint32_t low = from, high = place->n_indices;
    int code = 0;
    while (code == 0 && high - low > SEARCH_ENTRIES) {
        uint32_t middle = low + (high - low) / 2;
        code = read_index(slices, place, middle, 1, err);
        if (code == 0 && context_of(slices->index) < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (code == 0)
        code = read_index(slices, place, low, high - low, err);
    const char *entry = slices->index;
    for (; code == 0 && low < high && context_of(entry) < id; entry += INDEX_BYTES)
        low++;
    *found = low;
    return code;
}

/* How many of the n entries that were read go into one piece, at least 1; one more entry says where they end. */
static uint32_t fit_values(const struct v4_slices *slices, uint32_t n)
{
    uint64_t end = start_of(slices->index) + PIECE_VALUES;
    while (n > 1 && start_of(slices->index + (size_t)n * INDEX_BYTES) > end)
        n--;
    return n;
}

/* Whether the places of values are ascending and stay inside the profile's. */
static bool is_sound(const struct v4_slices *slices, const struct v4_place *place, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (start_of(slices->index + (size_t)i * INDEX_BYTES) > start_of(slices->index + (i + 1ul) * INDEX_BYTES))
            return false;
    return start_of(slices->index + (size_t)n * INDEX_BYTES) <= place->n_values;
}

int v4_slice_next(struct v4_slices *slices, const struct v4_place *place, uint32_t *at, uint32_t end,
                  struct v4_piece *piece, struct error *err)
{
    uint32_t n = end - *at < PIECE_ENTRIES ? end - *at : PIECE_ENTRIES;
    bool is_last = *at + n == place->n_indices;
    int code = read_index(slices, place, *at, is_last ? n : n + 1, err);
    if (code != 0)
        return code;
    if (is_last)
        memcpy(slices->index + (size_t)n * INDEX_BYTES + 4, &place->n_values, 8);
    if (!is_sound(slices, place, n))
        return error_set(err, ERR_FORMAT, "%.600s: the index at byte %llu is not the one that was written",
                         slices->path, (unsigned long long)(place->indices + (uint64_t)INDEX_BYTES * *at));
    n = fit_values(slices, n);
    uint64_t first = start_of(slices->index), n_values = start_of(slices->index + (size_t)n * INDEX_BYTES) - first;
    if (!vec_reserve(&slices->values, &slices->cap_values, n_values * VALUE_BYTES + 1, 1))
        return error_set(err, ERR_MEMORY, "out of memory for %llu values", (unsigned long long)n_values);
    *piece = (struct v4_piece){slices->index, slices->values, n};
    *at += n;
    return spill_read_at(slices->fd, slices->path, place->values + VALUE_BYTES * first, slices->values,
                         n_values * VALUE_BYTES, err);
}

struct v4_run v4_piece_run(const struct v4_piece *piece, uint32_t i)
{
    const char *entry = piece->index + (size_t)i * INDEX_BYTES;
    uint64_t start = start_of(entry);
    return (struct v4_run){.context = context_of(entry),
                           .values = piece->values + VALUE_BYTES * (start - start_of(piece->index)),
                           .n = start_of(entry + INDEX_BYTES) - start};
}

void v4_slices_fini(struct v4_slices *slices)
{
    free(slices->index);
    free(slices->values);
}

/* --- cct.db --- */

/* cct.db is profile.db transposed, some contexts at a time: their values are picked out of all profiles and put in the
 * order of metrics and profiles, in which the summary is also summed up. */

enum {
    CELL_BYTES = 12,
    METRIC_BYTES = 10,
    ROW_BYTES = 32,
    PROFILE_ROW_BYTES = 48,
    TABLE_AT = 32 + 16,
    PROFILE_TABLE_AT = 48 + 16
};

#define BATCH_VALUES_ALL (UINT64_C(1) << 23) /* of all workers together */
#define BATCHES_IN_TEAM 4 /* instead of one: a file is written by one process at a time, while others work */
#define BATCH_VALUES_LEAST (UINT64_C(1) << 18)
#define BATCH_COUNTERS_ALL (UINT64_C(1) << 23)

struct slice {
    uint32_t first, end; /* of a profile's index */
};

/* One worker's batch of contexts. */
struct batch {
    uint32_t first, end;  /* contexts */
    struct slice *slices; /* [n_threads] */
    struct v4_slices reading;
    bool follows; /* it follows the worker's last batch */
    uint64_t *at; /* [end - first][n_ids] first the number of values, then the place of the next one in bytes */
    size_t cap_at;
    char *bytes; /* of cct.db */
    size_t cap_bytes, len_bytes;
    struct buf rows, summary, index; /* of the contexts: table rows, summary values, index of those */
    uint64_t n_summary;
    double *sums; /* [n_ids] of one context */
};

struct context_writer {
    struct v4_values *values;
    uint32_t *firsts; /* [n_batches + 1] */
    size_t n_batches, cap_firsts;
    struct batch *batches; /* [job->n_threads] */
    char *rows;            /* [n_contexts] table of cct.db */
    uint64_t context_end;
    struct buf index; /* of the summary */
    uint64_t n_summary;
    const size_t *own_pairs;         /* [n_metrics] that own values are taken from */
    struct v4_lengths before, whole; /* of the contexts before those of this process, and of all */
};

static int batch_memory(const struct batch *batch, struct error *err)
{
    return error_set(err, ERR_MEMORY, "out of memory for the values of %u contexts", batch->end - batch->first);
}

/* Finds the batch's part of profile t. A worker's batches are in ascending order; one may directly follow another. */
static int find_slice(const struct context_writer *writer, struct batch *batch, size_t t, struct error *err)
{
    const struct v4_place *place = &writer->values->places[t + 1];
    struct slice *slice = &batch->slices[t];
    int code = 0;
    if (batch->follows)
        slice->first = slice->end;
    else
        code = v4_slice_find(&batch->reading, place, slice->end, batch->first, &slice->first, err);
    return code ? code : v4_slice_find(&batch->reading, place, slice->first, batch->end, &slice->end, err);
}

/* Calls take with the values of each context of the batch in profile t. */
static int walk_slice(const struct context_writer *writer, struct batch *batch, size_t t,
                      void (*take)(const struct context_writer *writer, struct batch *batch, uint32_t profile,
                                   const struct v4_run *run),
                      struct error *err)
{
    const struct v4_place *place = &writer->values->places[t + 1];
    uint32_t at = batch->slices[t].first;
    int code = 0;
    while (code == 0 && at < batch->slices[t].end) {
        struct v4_piece piece = {0};
        code = v4_slice_next(&batch->reading, place, &at, batch->slices[t].end, &piece, err);
        for (uint32_t i = 0; code == 0 && i < piece.n; i++) {
            struct v4_run run = v4_piece_run(&piece, i);
            take(writer, batch, (uint32_t)t + 1, &run);
        }
    }
    return code;
}

static void count_run(const struct context_writer *writer, struct batch *batch, uint32_t profile,
                      const struct v4_run *run)
{
    uint64_t *at = &batch->at[(size_t)(run->context - batch->first) * writer->values->n_ids];
    (void)profile;
    for (uint64_t k = 0; k < run->n; k++) {
        uint16_t id;
        memcpy(&id, run->values + VALUE_BYTES * k, 2);
        at[id]++;
    }
}

/* Finds the batch's part of each profile and counts its values by context and metric. */
static int count_values(const struct context_writer *writer, struct batch *batch, struct error *err)
{
    int code = 0;
    for (size_t t = 0; code == 0 && t < writer->values->model->n_threads; t++) {
        code = find_slice(writer, batch, t, err);
        if (code == 0)
            code = walk_slice(writer, batch, t, count_run, err);
    }
    return code;
}

static void put(struct buf *out, uint64_t value, unsigned n_bytes)
{
    buf_append(out, &value, n_bytes);
}

/* Makes room for the batch's part of cct.db. All of it will be written, so nothing has to be kept or zeroed. */
static bool need_bytes(struct batch *batch, size_t n_bytes)
{
    if (n_bytes <= batch->cap_bytes)
        return true;
    free(batch->bytes);
    batch->bytes = malloc(n_bytes);
    batch->cap_bytes = batch->bytes ? n_bytes : 0;
    return batch->bytes != NULL;
}

/* Gives each context its place in the batch: values by metric, then the index. Counts become places. */
static bool place_contexts(const struct context_writer *writer, struct batch *batch)
{
    uint32_t n_ids = writer->values->n_ids;
    uint64_t end = 0;
    for (uint32_t c = batch->first; c < batch->end; c++) {
        uint64_t *at = &batch->at[(size_t)(c - batch->first) * n_ids], n = 0, n_metrics = 0, start = end;
        for (uint32_t m = 0; m < n_ids; m++)
            n += at[m];
        if (n == 0) {
            buf_append(&batch->rows, (const char[ROW_BYTES]){0}, ROW_BYTES);
            continue;
        }
        uint64_t indices = start + (CELL_BYTES * n + 7) / 8 * 8;
        for (uint32_t m = 0; m < n_ids; m++) {
            uint64_t count = at[m];
            at[m] = end;
            end += CELL_BYTES * count;
            n_metrics += count != 0;
        }
        put(&batch->rows, n, 8);
        put(&batch->rows, start, 8);
        put(&batch->rows, n_metrics, 8);
        put(&batch->rows, indices, 8);
        end = indices + (METRIC_BYTES * n_metrics + 7) / 8 * 8;
    }
    batch->len_bytes = end;
    return !batch->rows.failed && need_bytes(batch, end + 8);
}

static void scatter_run(const struct context_writer *writer, struct batch *batch, uint32_t profile,
                        const struct v4_run *run)
{
    uint64_t *at = &batch->at[(size_t)(run->context - batch->first) * writer->values->n_ids];
    for (uint64_t k = 0; k < run->n; k++) {
        const char *value = run->values + VALUE_BYTES * k;
        uint16_t id;
        memcpy(&id, value, 2);
        memcpy(batch->bytes + at[id], &profile, 4);
        memcpy(batch->bytes + at[id] + 4, value + 2, 8);
        at[id] += CELL_BYTES;
    }
}

static int scatter_values(const struct context_writer *writer, struct batch *batch, struct error *err)
{
    int code = 0;
    for (size_t t = 0; code == 0 && t < writer->values->model->n_threads; t++)
        code = walk_slice(writer, batch, t, scatter_run, err);
    return code;
}

/* Adds up the values in bytes [start, end), in the order of the profiles, as the next one of the summary. */
static void add_up(struct batch *batch, uint64_t start, uint64_t end, uint32_t id)
{
    double sum = 0;
    for (uint64_t at = start; at < end; at += CELL_BYTES) {
        double value;
        memcpy(&value, batch->bytes + at + 4, 8);
        sum += value;
    }
    batch->sums[id] = sum;
    put(&batch->summary, id, 2);
    put(&batch->summary, bytes_bits_of(sum), 8);
    batch->n_summary++;
}

static void take_own(const struct context_writer *writer, const struct batch *batch, uint32_t context)
{
    const struct v4_values *values = writer->values;
    struct model *model = values->model;
    if (context >= model->n_scopes || !model_has_own(model, context))
        return;
    for (size_t m = 0; m < model->n_metrics; m++) {
        size_t pair = writer->own_pairs[m];
        double own = batch->sums[V4_IDS_PER_METRIC * pair + V4_ID_FUNCTION] / values->scales[pair];
        /* counts are rounded to whole numbers when they are converted back from another unit */
        if (values->scales[pair] != 1 && model->metrics[m].is_integer && own < 9e15)
            own = (double)(int64_t)(own + 0.5);
        model->own[context * model->n_metrics + m] = own;
    }
}

/* Adds index and sums of each context; after scattering, each metric's place is the end of its values. */
static void finish_contexts(const struct context_writer *writer, struct batch *batch)
{
    uint32_t n_ids = writer->values->n_ids;
    for (uint32_t c = batch->first; c < batch->end; c++) {
        const char *row = batch->rows.data + (size_t)(c - batch->first) * ROW_BYTES;
        const uint64_t *at = &batch->at[(size_t)(c - batch->first) * n_ids];
        uint64_t n, start, indices;
        memcpy(&n, row, 8);
        memcpy(&start, row + 8, 8);
        memcpy(&indices, row + 24, 8);
        if (n == 0)
            continue;
        memset(batch->bytes + start + CELL_BYTES * n, 0, indices - start - CELL_BYTES * n);
        memset(batch->sums, 0, n_ids * sizeof *batch->sums);
        put(&batch->index, c, 4);
        put(&batch->index, batch->n_summary, 8);
        char *index = batch->bytes + indices;
        uint64_t before = start;
        for (uint32_t m = 0; m < n_ids; m++) {
            uint64_t number = (before - start) / CELL_BYTES;
            if (at[m] == before && m % V4_IDS_PER_METRIC == V4_ID_LEXICAL && at[m + V4_ID_FUNCTION] != before)
                add_up(batch, before, at[m + V4_ID_FUNCTION], m);
            if (at[m] == before)
                continue;
            memcpy(index, &m, 2);
            memcpy(index + 2, &number, 8);
            index += METRIC_BYTES;
            add_up(batch, before, at[m], m);
            before = at[m];
        }
        memset(index, 0, -(uintptr_t)(index - batch->bytes) % 8);
        take_own(writer, batch, c);
    }
}

/* Makes room for a batch of contexts and empties it. */
static bool begin_batch(const struct context_writer *writer, struct batch *batch, size_t i)
{
    const struct v4_values *values = writer->values;
    batch->reading.fd = values->profile_fd;
    batch->reading.path = values->profile_path;
    batch->follows = batch->end == writer->firsts[i];
    batch->first = writer->firsts[i];
    batch->end = writer->firsts[i + 1];
    size_t n = (size_t)(batch->end - batch->first) * values->n_ids;
    batch->rows.len_bytes = batch->summary.len_bytes = batch->index.len_bytes = batch->n_summary = 0;
    if (!batch->slices)
        batch->slices = calloc(values->model->n_threads + 1, sizeof *batch->slices);
    if (!batch->sums)
        batch->sums = calloc(values->n_ids + 1, sizeof *batch->sums);
    if (!batch->slices || !batch->sums || !vec_reserve(&batch->at, &batch->cap_at, n + 1, sizeof *batch->at))
        return false;
    memset(batch->at, 0, n * sizeof *batch->at);
    return true;
}

/* Moves a number of the batch, in its rows or index, to where it is in the file. */
static void shift(char *bytes, uint64_t by)
{
    uint64_t number;
    memcpy(&number, bytes, 8);
    number += by;
    memcpy(bytes, &number, 8);
}

/* When it is the batch's turn, its places in both files are known: moves all numbers there. */
static void place_batch(struct context_writer *writer, struct batch *batch, uint64_t *context_at, uint64_t *summary_at)
{
    *context_at = writer->context_end;
    *summary_at = writer->values->profile_end + VALUE_BYTES * writer->n_summary;
    for (size_t at = 0; at < batch->rows.len_bytes; at += ROW_BYTES) {
        uint64_t n;
        memcpy(&n, batch->rows.data + at, 8);
        if (n) {
            shift(batch->rows.data + at + 8, *context_at);
            shift(batch->rows.data + at + 24, *context_at);
        }
    }
    for (size_t at = 0; at < batch->index.len_bytes; at += INDEX_BYTES)
        shift(batch->index.data + at + 4, writer->n_summary);
    memcpy(writer->rows + (size_t)batch->first * ROW_BYTES, batch->rows.data, batch->rows.len_bytes);
    buf_append(&writer->index, batch->index.data, batch->index.len_bytes);
    writer->context_end += batch->len_bytes;
    writer->n_summary += batch->n_summary;
}

/* Makes all of the batch except its places in the files. */
static int make_batch(const struct context_writer *writer, struct batch *batch, size_t i, struct error *err)
{
    int code = begin_batch(writer, batch, i) ? count_values(writer, batch, err) : batch_memory(batch, err);
    if (code == 0 && !place_contexts(writer, batch))
        code = batch_memory(batch, err);
    if (code == 0)
        code = scatter_values(writer, batch, err);
    if (code != 0)
        return code;
    finish_contexts(writer, batch);
    return batch->summary.failed || batch->index.failed ? batch_memory(batch, err) : 0;
}

static int write_batch(void *context, struct workers *workers, size_t worker, size_t i, struct error *err)
{
    struct context_writer *writer = context;
    struct v4_values *values = writer->values;
    struct batch *batch = &writer->batches[worker];
    uint64_t context_at, summary_at;
    int code = make_batch(writer, batch, i, err);
    if (code != 0)
        return code;
    if (!workers_turn(workers, i))
        return error_set(err, ERR_USAGE, "interrupted");
    place_batch(writer, batch, &context_at, &summary_at);
    workers_turned(workers, i);
    code = spill_write_at(values->context_fd, values->context_path, context_at, batch->bytes, batch->len_bytes, err);
    if (code == 0)
        code = spill_write_at(values->profile_fd, values->profile_path, summary_at, batch->summary.data,
                              batch->summary.len_bytes, err);
    return code;
}

/* Divides the contexts so that a batch fits into its share of memory. */
static bool plan(struct context_writer *writer)
{
    const struct v4_values *values = writer->values;
    uint64_t most = BATCH_VALUES_ALL / values->job->n_threads, n = 0;
    if (team_is_several(values->job->team))
        most /= BATCHES_IN_TEAM;
    most = most < BATCH_VALUES_LEAST ? BATCH_VALUES_LEAST : most;
    uint64_t most_contexts = BATCH_COUNTERS_ALL / values->job->n_threads / (values->n_ids + 1) + 1;
    uint32_t start = values->layout.first;
    for (uint32_t c = start, first = c; c <= values->layout.end; c++) {
        bool is_end = c == values->layout.end;
        if (c == start || is_end || n + values->n_values[c] > most || c - first >= most_contexts) {
            if (!vec_reserve(&writer->firsts, &writer->cap_firsts, writer->n_batches + 2, sizeof *writer->firsts))
                return false;
            writer->firsts[writer->n_batches++] = first = c;
            n = 0;
        }
        n += is_end ? 0 : values->n_values[c];
    }
    writer->n_batches--;
    return true;
}

/* Writes this process's part of the table of cct.db. */
static int put_rows(struct context_writer *writer, struct error *err)
{
    const struct v4_values *values = writer->values;
    uint64_t first = (uint64_t)ROW_BYTES * values->layout.first, end = (uint64_t)ROW_BYTES * values->layout.end;
    return spill_write_at(values->context_fd, values->context_path, TABLE_AT + first, writer->rows + first, end - first,
                          err);
}

/* Writes the header of cct.db and the mark at its end. */
static int finish_context_file(struct context_writer *writer, struct error *err)
{
    const struct v4_values *values = writer->values;
    struct v4_file file = {.kind = V4_CCT};
    struct buf head = {0};
    int code = v4_write(&file, &head, err);
    uint64_t len_table = (uint64_t)ROW_BYTES * values->n_contexts, len_section = 16 + len_table;
    if (code == 0 && head.len_bytes >= TABLE_AT) {
        memcpy(head.data + 16, &len_section, 8);
        memcpy(head.data + 40, &values->n_contexts, 4);
        code = spill_write_at(values->context_fd, values->context_path, 0, head.data, TABLE_AT, err);
    }
    buf_fini(&head);
    uint64_t end = writer->whole.n_bytes;
    return code ? code : spill_write_at(values->context_fd, values->context_path, end, "__ctx.db", 8, err);
}

/* Where the index of the summary begins in profile.db. */
static uint64_t summary_index_at(const struct context_writer *writer)
{
    return (writer->values->profile_end + VALUE_BYTES * writer->whole.n_summary + 7) / 8 * 8;
}

/* Writes this process's part of the index of the summary. */
static int put_index(struct context_writer *writer, struct error *err)
{
    const struct v4_values *values = writer->values;
    if (writer->index.failed)
        return error_memory(err);
    return spill_write_at(values->profile_fd, values->profile_path,
                          summary_index_at(writer) + INDEX_BYTES * writer->before.n_contexts, writer->index.data,
                          writer->index.len_bytes, err);
}

/* Writes the header, the tables and the mark at the end of profile.db. */
static int finish_profile_file(struct context_writer *writer, struct error *err)
{
    struct v4_values *values = writer->values;
    uint64_t indices = summary_index_at(writer), end = indices + INDEX_BYTES * writer->whole.n_contexts;
    values->places[0] = (struct v4_place){.n_values = writer->whole.n_summary,
                                          .values = values->profile_end,
                                          .indices = indices,
                                          .n_indices = (uint32_t)writer->whole.n_contexts};
    for (size_t i = 0; i <= values->model->n_threads; i++) {
        char *row = values->head.data + PROFILE_TABLE_AT + i * PROFILE_ROW_BYTES;
        memcpy(row, &values->places[i].n_values, 8);
        memcpy(row + 8, &values->places[i].values, 8);
        memcpy(row + 16, &values->places[i].n_indices, 4);
        memcpy(row + 24, &values->places[i].indices, 8);
    }
    int code =
        spill_write_at(values->profile_fd, values->profile_path, 0, values->head.data, values->head.len_bytes - 8, err);
    if (code == 0)
        code = spill_write_at(values->profile_fd, values->profile_path, end, (const char[8]){0}, -end % 8, err);
    if (code == 0)
        code = spill_write_at(values->profile_fd, values->profile_path, end + -end % 8, "_prof.db", 8, err);
    return code;
}

/* Sets where this process's part begins, and the length of all parts together. */
static void begin_parts(struct context_writer *writer)
{
    const struct v4_values *values = writer->values;
    uint64_t table = TABLE_AT + (uint64_t)ROW_BYTES * values->n_contexts;
    if (values->layout.present) {
        writer->before = v4_team_lengths(values, 0, values->layout.first);
        writer->whole = v4_team_lengths(values, 0, values->n_contexts);
    }
    writer->context_end = table + writer->before.n_bytes;
    writer->n_summary = writer->before.n_summary;
    writer->whole.n_bytes += table;
}

/* Without a team, the lengths are what was collected. */
static void end_parts(struct context_writer *writer)
{
    if (writer->values->layout.present)
        return;
    writer->whole = (struct v4_lengths){writer->context_end, writer->n_summary, writer->index.len_bytes / INDEX_BYTES};
}

static int write_contexts(struct context_writer *writer, struct error *err)
{
    struct v4_values *values = writer->values;
    struct workers workers = {.job = values->job,
                              .phase = "writing values by context",
                              .n_tasks = writer->n_batches,
                              .task = write_batch,
                              .context = writer};
    begin_parts(writer);
    int code = workers_run(&workers, err);
    end_parts(writer);
    if (code == 0)
        code = put_rows(writer, err);
    if (code == 0)
        code = put_index(writer, err);
    if (code != 0 || !team_leads(values->job->team))
        return code;
    code = finish_context_file(writer, err);
    return code ? code : finish_profile_file(writer, err);
}

static void free_writer(struct context_writer *writer)
{
    for (size_t i = 0; writer->batches && i < writer->values->job->n_threads; i++) {
        struct batch *batch = &writer->batches[i];
        free(batch->slices);
        v4_slices_fini(&batch->reading);
        free(batch->at);
        free(batch->bytes);
        free(batch->sums);
        buf_fini(&batch->rows);
        buf_fini(&batch->summary);
        buf_fini(&batch->index);
    }
    free(writer->batches);
    free(writer->firsts);
    free(writer->rows);
    free((void *)(uintptr_t)writer->own_pairs);
    buf_fini(&writer->index);
}

/* For each metric the pair that holds it in its own unit, if there is one. */
static size_t *choose_pairs(const struct v4_values *values)
{
    size_t *pairs = calloc(values->model->n_metrics + 1, sizeof *pairs);
    for (size_t k = 0; pairs && k < values->columns->n_pairs; k++)
        pairs[values->metrics[k]] = k;
    return pairs;
}

int v4_values_by_context(struct v4_values *values, struct error *err)
{
    struct context_writer writer = {.values = values};
    struct model *model = values->model;
    writer.batches = calloc(values->job->n_threads, sizeof *writer.batches);
    writer.rows = calloc(values->n_contexts, ROW_BYTES);
    writer.own_pairs = choose_pairs(values);
    v4_team_divide(values);
    free(model->own);
    model->own = calloc(model->n_scopes * model->n_metrics + 1, sizeof *model->own);
    int code = 0;
    if (!writer.batches || !writer.rows || !writer.own_pairs || !model->own || !plan(&writer))
        code = error_set(err, ERR_MEMORY, "out of memory for %u contexts", values->n_contexts);
    /* the file may be shorter than its places say if those at its end are empty */
    if (code == 0 && team_leads(values->job->team))
        code = spill_write_at(values->profile_fd, values->profile_path, 0, values->head.data,
                              values->head.len_bytes - 8, err);
    if (code == 0)
        code = write_contexts(&writer, err);
    free_writer(&writer);
    code = team_agree(values->job->team, code, err);
    return code == 0 && team_is_several(values->job->team) ? v4_team_own(values, err) : code;
}
