/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns of the XML form, and values read back from a database: see database.h. */
#include "database/database.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "database/v4.h"

static int add_pair(struct columns *columns, const char *name, size_t metric, struct error *err)
{
    char *copy = strdup(name);
    if (!copy || !vec_reserve(&columns->pairs, &columns->capacity, columns->n_pairs + 1, sizeof *columns->pairs)) {
        free(copy);
        return error_memory(err);
    }
    columns->pairs[columns->n_pairs++] = (struct column_pair){copy, metric};
    return 0;
}

/* The metric that measures time, by the beginning of its name, best first; -1 when there is none. */
static int64_t time_metric(const struct model *model)
{
    static const char *const names[] = {"EADDR (usec)", "REALTIME (usec)", "WALLCLOCK (usec)"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        int64_t metric = model_metric(model, names[k]);
        if (metric >= 0)
            return metric;
    }
    return -1;
}

int columns_make(const struct model *model, struct columns *columns, struct error *err)
{
    int code = 0;
    int64_t time = time_metric(model);
    memset(columns, 0, sizeof *columns);
    if (time >= 0 && model_metric(model, "CPUTIME (usec)") < 0 && model_metric(model, "CPUTIME (sec)") < 0)
        code = add_pair(columns, "CPUTIME (usec)", (size_t)time, err);
    for (size_t i = 0; code == 0 && i < model->n_metrics; i++)
        code = add_pair(columns, model->metrics[i].name, i, err);
    return code;
}

void columns_fini(struct columns *columns)
{
    for (size_t i = 0; i < columns->n_pairs; i++)
        free(columns->pairs[i].name);
    free(columns->pairs);
    memset(columns, 0, sizeof *columns);
}

void columns_exclusive(const struct model *model, const double *own, double *exclusive)
{
    size_t n = model->n_metrics;
    memcpy(exclusive, own, model->n_scopes * n * sizeof *exclusive);
    for (size_t i = model->n_scopes; i-- > 1;) {
        const struct scope *scope = &model->scopes[i];
        for (size_t m = 0; model_is_lexical(scope) && scope->parent && m < n; m++)
            exclusive[scope->parent * n + m] += exclusive[i * n + m];
    }
}

/* --- values of a database --- */

/* Values from profile.db, events from trace.db. */

enum {
    VALUE_BYTES = 10,
    INDEX_BYTES = 12,
    EVENT_BYTES = 12,
    PROFILE_AT = 48,
    TRACE_AT = 32,
    METRICS_AT = 16 + 2 * 16, /* in the header of meta.db */
    N_SCOPES_AT = 24,         /* in its section of metrics */
    PIECE_EVENTS = 4096,
    PIECE_BYTES = 1 << 13
};

struct file {
    int fd;
    char *path;
    uint64_t len_bytes;
};

/* A row of profile.db. */
struct profile_place {
    uint64_t n_values, values, n_indices, indices;
};

struct trace_place {
    uint64_t begin, end;
};

/* A row of trace.db. */
struct trace_row {
    uint32_t profile, pad;
    uint64_t begin, end;
};
_Static_assert(sizeof(struct profile_place) == 32 && offsetof(struct profile_place, values) == 8 &&
                   offsetof(struct profile_place, indices) == 24,
               "as in profile.db");
_Static_assert(sizeof(struct trace_row) == 24 && offsetof(struct trace_row, begin) == 8 &&
                   offsetof(struct trace_row, end) == 16,
               "rows are read as trace.db has them");

struct database_values {
    struct file profiles, traces;
    struct profile_place *places;     /* [n_profiles] */
    struct trace_place *trace_places; /* [n_profiles] */
    size_t n_profiles;
    struct columns columns;
    double *scales;   /* [n_pairs] */
    bool *is_own;     /* [n_pairs] own values are taken from this pair */
    bool *is_integer; /* [n_pairs] */
    bool *is_leaf;    /* [n_scopes] it has values by itself */
    size_t n_scopes;
    uint16_t n_ids; /* of each pair */
};

static int damaged(const struct file *file, uint64_t offset, struct error *err)
{
    return error_set(err, ERR_FORMAT, "%s: offset %llu: the values are damaged", file->path,
                     (unsigned long long)offset);
}

static int take_bytes(const struct file *file, uint64_t offset, uint64_t n_items, uint64_t item_bytes, void *bytes,
                      struct error *err)
{
    if (offset > file->len_bytes || n_items > (file->len_bytes - offset) / item_bytes)
        return damaged(file, offset, err);
    return spill_read_at(file->fd, file->path, offset, bytes, n_items * item_bytes, err);
}

/* Opens a file of the database. If may_miss, a missing one is no error and its descriptor is -1. */
static int open_file(const char *directory, enum v4_kind kind, bool may_miss, struct file *file, struct error *err)
{
    struct stat info;
    if (asprintf(&file->path, "%s/%s", directory, v4_file_name(kind)) < 0) {
        file->path = NULL;
        return error_memory(err);
    }
    file->fd = input_open(AT_FDCWD, file->path, O_NOFOLLOW, &info);
    if (file->fd < 0 && may_miss && errno == ENOENT)
        return 0;
    if (file->fd < 0)
        return error_set(err, ERR_IO, "%s: cannot be read: %s", file->path, input_reason(errno));
    file->len_bytes = (uint64_t)info.st_size;
    return 0;
}

static int read_places(struct database_values *values, struct error *err)
{
    struct {
        uint64_t rows;
        uint32_t n, stride;
    } table;
    int code = take_bytes(&values->profiles, PROFILE_AT, 1, sizeof table, &table, err);
    if (code == 0 && (table.n != values->n_profiles + 1 || (table.stride & 0xff) < sizeof(struct profile_place)))
        code = error_set(err, ERR_FORMAT, "%s: offset %d: the file does not belong to the database",
                         values->profiles.path, PROFILE_AT);
    for (size_t i = 0; code == 0 && i < values->n_profiles; i++) {
        struct profile_place *place = &values->places[i];
        uint64_t row = table.rows + (i + 1) * (table.stride & 0xff);
        code = take_bytes(&values->profiles, row, 1, sizeof *place, place, err);
        place->n_indices &= UINT32_MAX;
        if (code == 0 && place->n_values > values->profiles.len_bytes / VALUE_BYTES)
            code = damaged(&values->profiles, row, err);
    }
    return code;
}

static int read_trace_places(struct database_values *values, struct error *err)
{
    struct {
        uint64_t rows;
        uint32_t n, stride;
    } table = {0};
    int code = values->traces.fd < 0 ? 0 : take_bytes(&values->traces, TRACE_AT, 1, sizeof table, &table, err);
    if (code == 0 && table.n && (table.stride & 0xff) < sizeof(struct trace_row))
        code = damaged(&values->traces, TRACE_AT, err);
    for (uint32_t i = 0; code == 0 && i < table.n; i++) {
        struct trace_row row = {0};
        uint64_t at = table.rows + (uint64_t)i * (table.stride & 0xff);
        code = take_bytes(&values->traces, at, 1, sizeof row, &row, err);
        if (code == 0 && (row.profile == 0 || row.profile > values->n_profiles || row.begin > row.end ||
                          row.end > values->traces.len_bytes))
            code = damaged(&values->traces, at, err);
        if (code == 0)
            values->trace_places[row.profile - 1] = (struct trace_place){row.begin, row.end};
    }
    return code;
}

int v4_ids_per_metric(const char *directory, uint16_t *n_ids, struct error *err)
{
    struct file meta = {.fd = -1};
    uint64_t section[2] = {0}; /* size and offset of the section of metrics */
    *n_ids = 0;
    int code = open_file(directory, V4_META, false, &meta, err);
    if (code == 0)
        code = take_bytes(&meta, METRICS_AT, 1, sizeof section, section, err);
    if (code == 0 && section[1] > meta.len_bytes)
        code = damaged(&meta, METRICS_AT, err);
    if (code == 0)
        code = take_bytes(&meta, section[1] + N_SCOPES_AT, 1, sizeof *n_ids, n_ids, err);
    if (code == 0 && *n_ids != V4_IDS_PER_METRIC && *n_ids != V4_IDS_PER_METRIC - 1)
        code = error_set(err, ERR_FORMAT, "%s: offset %llu: the file does not belong to the database", meta.path,
                         (unsigned long long)(section[1] + N_SCOPES_AT));
    if (meta.fd >= 0)
        (void)close(meta.fd);
    free(meta.path);
    return code;
}

/* Finds out which metric ids are own values, and of which metric. */
static int describe(struct database_values *values, const struct model *model, struct error *err)
{
    int code = columns_make(model, &values->columns, err);
    size_t n = values->columns.n_pairs;
    values->scales = calloc(n + 1, sizeof *values->scales);
    values->is_own = calloc(n + 1, sizeof *values->is_own);
    values->is_integer = calloc(n + 1, sizeof *values->is_integer);
    values->is_leaf = calloc(model->n_scopes + 1, sizeof *values->is_leaf);
    if (code == 0 && (!values->scales || !values->is_own || !values->is_integer || !values->is_leaf))
        code = error_memory(err);
    for (size_t k = 0; code == 0 && k < n; k++) {
        size_t metric = values->columns.pairs[k].metric;
        values->scales[k] = v4_export_scale(&values->columns.pairs[k]);
        values->is_integer[k] = model->metrics[metric].is_integer;
        values->is_own[k] = true;
        for (size_t i = 0; i < k; i++) /* the last pair has the metric's own unit */
            values->is_own[i] &= values->columns.pairs[i].metric != metric;
    }
    values->n_scopes = model->n_scopes;
    for (size_t i = 0; code == 0 && i < model->n_scopes; i++)
        values->is_leaf[i] = model_has_own(model, (uint32_t)i);
    return code;
}

/* Reads the value in bytes if it is an own value. */
static bool take_value(const struct database_values *values, const char *bytes, struct cell *cell)
{
    uint16_t id;
    memcpy(&id, bytes, 2);
    memcpy(&cell->value, bytes + 2, 8);
    size_t pair = id / values->n_ids;
    if (id % values->n_ids != values->n_ids - 2 || pair >= values->columns.n_pairs || !values->is_own[pair])
        return false;
    cell->metric = (uint32_t)values->columns.pairs[pair].metric;
    cell->value /= values->scales[pair];
    if (values->scales[pair] != 1 && values->is_integer[pair] && cell->value < 9e15)
        cell->value = (double)(int64_t)(cell->value + 0.5);
    return true;
}

/* Items one behind the other in a file, of which some are in memory: all of them would go through more memory than the
 * caches have. */
struct piece {
    const struct file *file;
    uint64_t begin, n; /* where the items are, how many */
    size_t item_bytes;
    uint64_t first, n_here; /* those that are in bytes */
    char bytes[PIECE_BYTES];
};

/* Begins with items that lie in the file; none is read yet.  err: ERR_FORMAT */
static int piece_init(struct piece *piece, const struct file *file, uint64_t begin, uint64_t n, size_t item_bytes,
                      struct error *err)
{
    piece->file = file;
    piece->begin = begin;
    piece->n = n;
    piece->item_bytes = item_bytes;
    piece->first = piece->n_here = 0;
    return begin > file->len_bytes || n > (file->len_bytes - begin) / item_bytes ? damaged(file, begin, err) : 0;
}

/* Item i < n, valid until the next one is asked for; NULL on an error. */
static const char *piece_at(struct piece *piece, uint64_t i, struct error *err)
{
    if (i - piece->first >= piece->n_here) { /* also where it is before the first */
        uint64_t room = PIECE_BYTES / piece->item_bytes, n = piece->n - i < room ? piece->n - i : room;
        piece->n_here = 0;
        if (take_bytes(piece->file, piece->begin + i * piece->item_bytes, n, piece->item_bytes, piece->bytes, err) != 0)
            return NULL;
        piece->first = i;
        piece->n_here = n;
    }
    return piece->bytes + (i - piece->first) * piece->item_bytes;
}

/* The context at a row of the index, and where its values begin; behind the last row, where all end. */
static int read_index(struct piece *index, uint64_t i, uint64_t n_values, uint32_t *context, uint64_t *start,
                      struct error *err)
{
    const char *row = i < index->n ? piece_at(index, i, err) : NULL;
    *start = n_values;
    if (i == index->n)
        return 0;
    if (!row)
        return err->code;
    memcpy(context, row, 4);
    memcpy(start, row + 4, 8);
    return 0;
}

/* Lists the profile's own values; cells has room for all values. */
static int list_cells(const struct database_values *values, const struct profile_place *place, struct piece *own,
                      struct piece *index, struct cell *cells, size_t *n_cells, struct error *err)
{
    uint32_t context = 0, next = 0;
    uint64_t start, end;
    int code = read_index(index, 0, place->n_values, &context, &start, err);
    for (uint64_t i = 0; code == 0 && i < place->n_indices; i++) {
        code = read_index(index, i + 1, place->n_values, &next, &end, err);
        if (code == 0 && (start > end || end > place->n_values || context > values->n_scopes))
            return damaged(&values->profiles, place->indices + INDEX_BYTES * i, err);
        bool is_leaf = code == 0 && context < values->n_scopes && values->is_leaf[context];
        for (uint64_t k = start; is_leaf && code == 0 && k < end; k++) {
            const char *bytes = piece_at(own, k, err);
            cells[*n_cells].scope = context;
            code = bytes ? 0 : err->code;
            *n_cells += bytes && take_value(values, bytes, &cells[*n_cells]);
        }
        context = next;
        start = end;
    }
    return code;
}

static int visit_values(void *self, size_t profile, int (*take)(void *, const struct cell *, size_t, struct error *),
                        void *context, struct error *err)
{
    const struct database_values *values = self;
    const struct profile_place *place = &values->places[profile];
    if (place->n_indices > values->profiles.len_bytes / INDEX_BYTES)
        return damaged(&values->profiles, place->indices, err);
    struct piece *own = malloc(sizeof *own), *index = malloc(sizeof *index);
    struct cell *cells = calloc(place->n_values + 1, sizeof *cells);
    size_t n_cells = 0;
    int code = own && index && cells ? 0 : error_set(err, ERR_MEMORY, "out of memory for the values of a profile");
    if (code == 0)
        code = piece_init(own, &values->profiles, place->values, place->n_values, VALUE_BYTES, err);
    if (code == 0)
        code = piece_init(index, &values->profiles, place->indices, place->n_indices, INDEX_BYTES, err);
    if (code == 0)
        code = list_cells(values, place, own, index, cells, &n_cells, err);
    if (code == 0)
        code = take(context, cells, n_cells, err);
    free(own);
    free(index);
    free(cells);
    return code;
}

static struct trace_info info_of_trace(void *self, size_t profile)
{
    const struct database_values *values = self;
    const struct trace_place *place = &values->trace_places[profile];
    struct trace_info info = {.n_events = (place->end - place->begin) / EVENT_BYTES};
    struct error err;
    if (info.n_events &&
        (take_bytes(&values->traces, place->begin, 1, 8, &info.min_time_ns, &err) != 0 ||
         take_bytes(&values->traces, place->begin + EVENT_BYTES * (info.n_events - 1), 1, 8, &info.max_time_ns, &err)))
        info.n_events = 0;
    return info;
}

static int visit_events(void *self, size_t profile,
                        int (*take)(void *, const struct trace_event *, size_t, struct error *), void *context,
                        struct error *err)
{
    const struct database_values *values = self;
    const struct trace_place *place = &values->trace_places[profile];
    char bytes[PIECE_EVENTS * EVENT_BYTES];
    struct trace_event events[PIECE_EVENTS];
    uint64_t n = (place->end - place->begin) / EVENT_BYTES;
    int code = 0;
    for (uint64_t done = 0; code == 0 && done < n;) {
        size_t n_now = n - done < PIECE_EVENTS ? (size_t)(n - done) : PIECE_EVENTS;
        code = take_bytes(&values->traces, place->begin + EVENT_BYTES * done, n_now, EVENT_BYTES, bytes, err);
        for (size_t i = 0; code == 0 && i < n_now; i++) {
            memcpy(&events[i].time_ns, bytes + EVENT_BYTES * i, 8);
            memcpy(&events[i].scope, bytes + EVENT_BYTES * i + 8, 4);
            if (events[i].scope >= values->n_scopes)
                code = damaged(&values->traces, place->begin + EVENT_BYTES * (done + i), err);
        }
        if (code == 0)
            code = take(context, events, n_now, err);
        done += n_now;
    }
    return code;
}

static void free_values(void *self)
{
    struct database_values *values = self;
    struct file *files[] = {&values->profiles, &values->traces};
    for (size_t i = 0; i < 2; i++) {
        if (files[i]->fd >= 0)
            (void)close(files[i]->fd);
        free(files[i]->path);
    }
    columns_fini(&values->columns);
    void *owned[] = {values->places,     values->trace_places, values->scales,
                     values->is_integer, values->is_leaf,      values->is_own};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    free(values);
}

int database_values_open(const char *directory, const struct model *model, struct value_source *source,
                         struct error *err)
{
    if (!model->has_thread_list)
        return error_set(err, ERR_UNSUPPORTED, "%s was made by an older version: it cannot be extended", directory);
    struct database_values *values = calloc(1, sizeof *values);
    if (!values)
        return error_memory(err);
    *source = (struct value_source){.self = values,
                                    .visit = visit_values,
                                    .trace = info_of_trace,
                                    .visit_trace = visit_events,
                                    .free = free_values};
    values->profiles.fd = values->traces.fd = -1;
    values->n_profiles = model->n_threads;
    values->places = calloc(model->n_threads + 1, sizeof *values->places);
    values->trace_places = calloc(model->n_threads + 1, sizeof *values->trace_places);
    int code = values->places && values->trace_places ? describe(values, model, err) : error_memory(err);
    if (code == 0)
        code = v4_ids_per_metric(directory, &values->n_ids, err);
    if (code == 0)
        code = open_file(directory, V4_PROFILE, false, &values->profiles, err);
    if (code == 0)
        code = open_file(directory, V4_TRACE, true, &values->traces, err);
    if (code == 0)
        code = read_places(values, err);
    if (code == 0)
        code = read_trace_places(values, err);
    if (code != 0)
        values_free(source);
    return code;
}

/* --- some of the threads --- */

/* Where values go. */
struct adding {
    const struct model *model;
    double *own;
};

static int add_to_sums(void *context, const struct cell *cells, size_t n_cells, struct error *err)
{
    const struct adding *adding = context;
    (void)err;
    for (size_t i = 0; i < n_cells; i++)
        adding->own[cells[i].scope * adding->model->n_metrics + cells[i].metric] += cells[i].value;
    return 0;
}

/* Replaces the sums over all threads. */
static int sum_chosen(struct model *model, const char *directory, const uint32_t *threads, size_t n, struct error *err)
{
    struct value_source source;
    int code = database_values_open(directory, model, &source, err);
    if (code != 0)
        return code;
    memset(model->own, 0, model->n_scopes * model->n_metrics * sizeof *model->own);
    for (size_t i = 0; code == 0 && i < n; i++)
        code = source.visit(source.self, model->threads[threads[i]].profile, add_to_sums,
                            &(struct adding){model, model->own}, err);
    values_free(&source);
    return code ? code : model_sum(model, err);
}

/* Events count samples and fates of all threads together; so do variables by event, by node, and by field. */
static void forget_events(struct model *model)
{
    for (size_t i = 0; i < model->n_events; i++) {
        free(model->events[i].metric);
        free(model->events[i].name);
    }
    model->n_events = 0;
    for (size_t i = 0; i < model->n_metrics; i++)
        model->metrics[i].n_samples = 0;
    for (size_t i = 0; i < model->n_variables; i++) {
        struct variable *variable = &model->variables[i];
        free(variable->places);
        free(variable->samples);
        variable->places = variable->samples = NULL;
        variable->n_latencies = variable->n_causes = variable->n_walks = variable->n_fields = 0;
    }
    model->has_samples = false;
    model->n_field_counts = model->n_nest_counts = model->n_drops = model->n_meetings = 0;
    for (size_t i = 0; i < model->n_reaches; i++)
        reach_row_fini(&model->reaches[i]);
    model->n_reaches = 0;
    model->cpu_time_ns = model->user_ns = model->system_ns = model->unmeasured_ns = model->delay_ns = 0;
    model->n_page_faults = 0;
}

/* What lists have of the other threads goes. */
static void keep_counts(struct model *model)
{
    size_t n = 0;
    for (size_t i = 0; i < model->n_touches; i++)
        if (!model->is_left_out[model->touches[i].thread])
            model->touches[n++] = model->touches[i];
    model->n_touches = n;
    n = 0;
    for (size_t i = 0; i < model->n_cpu_counts; i++)
        if (!model->is_left_out[model->cpu_counts[i].thread])
            model->cpu_counts[n++] = model->cpu_counts[i];
    model->n_cpu_counts = n;
    n = 0;
    for (size_t i = 0; i < model->n_home_counts; i++)
        if (!model->is_left_out[model->home_counts[i].thread])
            model->home_counts[n++] = model->home_counts[i];
    model->n_home_counts = n;
}

/* A reader of a report is told. */
static int note_choice(struct model *model, const char *condition, size_t n, struct error *err)
{
    struct buf text = {0};
    buf_printf(&text, "Only the threads for which %s: %zu of %zu.", condition, n, model->n_threads);
    if (text.failed || !vec_reserve(&model->notes, &model->cap_notes, model->n_notes + 1, sizeof *model->notes)) {
        buf_fini(&text);
        return error_memory(err);
    }
    model->notes[model->n_notes++] = text.data;
    return 0;
}

int database_choose_threads(struct model *model, const char *directory, const char *condition, const uint32_t *threads,
                            size_t n, struct error *err)
{
    model->is_left_out = malloc(model->n_threads + 1);
    if (!model->is_left_out)
        return error_memory(err);
    memset(model->is_left_out, true, model->n_threads + 1);
    for (size_t i = 0; i < n; i++)
        model->is_left_out[threads[i]] = false;
    int code = sum_chosen(model, directory, threads, n, err);
    if (code != 0)
        return code;
    keep_counts(model);
    forget_events(model);
    return note_choice(model, condition, n, err);
}
