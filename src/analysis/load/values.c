/* SPDX-License-Identifier: BSD-3-Clause */
/* Sources of values: the temporary file, and two sources joined. See values.h. */
#include "analysis/load/values.h"

#include <stdlib.h>
#include <string.h>

/* Appends the parts of a cell to cells [n], which it is one of; returns the new number of cells. */
static size_t split(const struct value_splits *splits, uint32_t node, const struct cell *cell, struct cell *cells,
                    size_t n)
{
    uint32_t row = splits->row_of ? splits->row_of[node] : 0;
    for (size_t i = 0; row && i < splits->n_metrics; i++) {
        const double *parts = &splits->rows[((row - 1) * splits->n_metrics + i) * VALUE_PARTS];
        for (int k = 0; splits->metrics[i].metric == cell->metric && k < VALUE_PARTS; k++)
            if (parts[k] > 0)
                cells[n++] = (struct cell){cell->scope, splits->metrics[i].parts[k], cell->value * parts[k]};
    }
    return n;
}

/* Turns the bytes of a piece into cells, at most 1 + VALUE_PARTS for each value; returns their number. */
static size_t decode(const struct spilled_values *values, const char *bytes, size_t n, struct cell *cells)
{
    size_t n_cells = 0;
    for (size_t i = 0; i < n; i++) {
        struct ingest_value value = ingest_value_at(bytes + i * INGEST_VALUE_BYTES);
        const struct cell cell = {
            .scope = values->scopes[value.node], .metric = values->metrics[value.metric], .value = value.value};
        cells[n_cells++] = cell;
        n_cells = split(&values->splits, value.node, &cell, cells, n_cells);
    }
    return n_cells;
}

/* Frees everything and makes it empty. */
static void value_splits_fini(struct value_splits *splits)
{
    free(splits->metrics);
    free(splits->rows);
    free(splits->row_of);
    *splits = (struct value_splits){0};
}

static int visit_spilled(void *self, size_t number, int (*take)(void *, const struct cell *, size_t, struct error *),
                         void *context, struct error *err)
{
    const struct spilled_values *values = self;
    const struct ingested *profile = &values->profiles[number];
    char *bytes = NULL;
    struct cell *cells = NULL;
    size_t cap_bytes = 0, cap_cells = 0;
    int code = 0;
    for (size_t i = 0; code == 0 && i < profile->n_pieces; i++) {
        size_t len_bytes = profile->pieces[i].len_bytes, n = len_bytes / INGEST_VALUE_BYTES;
        size_t n_most = values->splits.n_metrics ? n * (1 + VALUE_PARTS) : n;
        if (!vec_reserve(&bytes, &cap_bytes, len_bytes, 1) || !vec_reserve(&cells, &cap_cells, n_most, sizeof *cells)) {
            code = error_set(err, ERR_MEMORY, "out of memory for %zu values", n);
            break;
        }
        code = spill_read(&values->spill, profile->pieces[i].offset, bytes, len_bytes, err);
        if (code)
            break;
        n = decode(values, bytes, n, cells);
        code = take(context, cells, n, err);
    }
    free(bytes);
    free(cells);
    return code;
}

static struct trace_info trace_spilled(void *self, size_t number)
{
    const struct spilled_values *values = self;
    const struct ingested *profile = &values->profiles[number];
    return (struct trace_info){profile->n_events, profile->min_time_ns, profile->max_time_ns, profile->is_disordered};
}

static void decode_events(const struct spilled_values *values, const char *bytes, size_t n, struct trace_event *events)
{
    for (size_t i = 0; i < n; i++) {
        struct ingest_event event;
        memcpy(&event.time_ns, bytes + i * INGEST_EVENT_BYTES, 8);
        memcpy(&event.node, bytes + i * INGEST_EVENT_BYTES + 8, 4);
        events[i] = (struct trace_event){event.time_ns, event.node == RAW_NONE ? 0 : values->traced[event.node]};
    }
}

static int visit_spilled_trace(void *self, size_t number,
                               int (*take)(void *, const struct trace_event *, size_t, struct error *), void *context,
                               struct error *err)
{
    const struct spilled_values *values = self;
    const struct ingested *profile = &values->profiles[number];
    int code = 0;
    for (size_t i = 0; code == 0 && i < profile->n_trace_pieces; i++) {
        const struct spill_piece *piece = &profile->trace_pieces[i];
        size_t n = piece->len_bytes / INGEST_EVENT_BYTES;
        char *bytes = malloc(piece->len_bytes + 1);
        struct trace_event *events = calloc(n + 1, sizeof *events);
        code = bytes && events ? spill_read(&values->spill, piece->offset, bytes, piece->len_bytes, err)
                               : error_set(err, ERR_MEMORY, "out of memory for %zu events", n);
        if (code == 0) {
            decode_events(values, bytes, n, events);
            code = take(context, events, n, err);
        }
        free(bytes);
        free(events);
    }
    return code;
}

static void free_spilled(void *self)
{
    struct spilled_values *values = self;
    spill_close(&values->spill);
    for (size_t i = 0; i < values->n_profiles; i++)
        ingested_fini(&values->profiles[i]);
    free(values->profiles);
    free(values->scopes);
    free(values->traced);
    free(values->metrics);
    value_splits_fini(&values->splits);
    free(values);
}

struct value_source values_spilled(struct spilled_values *values)
{
    return (struct value_source){.self = values,
                                 .visit = visit_spilled,
                                 .trace = trace_spilled,
                                 .visit_trace = visit_spilled_trace,
                                 .free = free_spilled};
}

void values_free(struct value_source *source)
{
    if (source->free)
        source->free(source->self);
    *source = (struct value_source){0};
}

/* --- joining --- */

/* Two sources as one: an older database and what is added to it. */

struct joined {
    struct value_source first, second;
    size_t n_first, n_scopes;
    uint32_t *scopes;
};

/* Reading from the first source. */
struct first_visit {
    const struct joined *joined;
    int (*take)(void *, const struct cell *, size_t, struct error *);
    int (*take_events)(void *, const struct trace_event *, size_t, struct error *);
    void *context;
};

static uint32_t translate(const struct joined *joined, uint32_t scope)
{
    return scope < joined->n_scopes ? joined->scopes[scope] : 0;
}

static int take_cells(void *context, const struct cell *cells, size_t n_cells, struct error *err)
{
    const struct first_visit *reading = context;
    struct cell *translated = calloc(n_cells + 1, sizeof *translated);
    if (!translated)
        return error_set(err, ERR_MEMORY, "out of memory for %zu values", n_cells);
    for (size_t i = 0; i < n_cells; i++) {
        translated[i] = cells[i];
        translated[i].scope = translate(reading->joined, cells[i].scope);
    }
    int code = reading->take(reading->context, translated, n_cells, err);
    free(translated);
    return code;
}

static int take_events(void *context, const struct trace_event *events, size_t n_events, struct error *err)
{
    const struct first_visit *reading = context;
    struct trace_event *translated = calloc(n_events + 1, sizeof *translated);
    if (!translated)
        return error_set(err, ERR_MEMORY, "out of memory for %zu events", n_events);
    for (size_t i = 0; i < n_events; i++)
        translated[i] = (struct trace_event){events[i].time_ns, translate(reading->joined, events[i].scope)};
    int code = reading->take_events(reading->context, translated, n_events, err);
    free(translated);
    return code;
}

static int visit(void *self, size_t profile, int (*take)(void *, const struct cell *, size_t, struct error *),
                 void *context, struct error *err)
{
    const struct joined *joined = self;
    struct first_visit reading = {.joined = joined, .take = take, .context = context};
    if (profile >= joined->n_first)
        return joined->second.visit(joined->second.self, profile - joined->n_first, take, context, err);
    return joined->first.visit(joined->first.self, profile, take_cells, &reading, err);
}

static struct trace_info trace(void *self, size_t profile)
{
    const struct joined *joined = self;
    if (profile >= joined->n_first)
        return joined->second.trace(joined->second.self, profile - joined->n_first);
    return joined->first.trace(joined->first.self, profile);
}

static int visit_trace(void *self, size_t profile,
                       int (*take)(void *, const struct trace_event *, size_t, struct error *), void *context,
                       struct error *err)
{
    const struct joined *joined = self;
    struct first_visit reading = {.joined = joined, .take_events = take, .context = context};
    if (profile >= joined->n_first)
        return joined->second.visit_trace(joined->second.self, profile - joined->n_first, take, context, err);
    return joined->first.visit_trace(joined->first.self, profile, take_events, &reading, err);
}

static void free_joined(void *self)
{
    struct joined *joined = self;
    values_free(&joined->first);
    values_free(&joined->second);
    free(joined->scopes);
    free(joined);
}

int values_join(struct value_source *first, size_t n_first, uint32_t *scopes, size_t n_scopes,
                struct value_source *second, struct value_source *joined, struct error *err)
{
    struct joined *self = calloc(1, sizeof *self);
    if (!self) {
        values_free(first);
        values_free(second);
        free(scopes);
        return error_memory(err);
    }
    *self =
        (struct joined){.first = *first, .second = *second, .n_first = n_first, .n_scopes = n_scopes, .scopes = scopes};
    *first = *second = (struct value_source){0};
    *joined = (struct value_source){
        .self = self, .visit = visit, .trace = trace, .visit_trace = visit_trace, .free = free_joined};
    return 0;
}
