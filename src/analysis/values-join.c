/* SPDX-License-Identifier: BSD-3-Clause */
/* Two sources as one: an older database and what is added to it. */
#include <stdlib.h>

#include "analysis/values.h"

struct joined {
    struct value_source first, second;
    size_t n_first, n_scopes;
    uint32_t *scopes;
};

/* A visit to the first source. */
struct turning {
    const struct joined *joined;
    int (*take)(void *, const struct cell *, size_t, struct error *);
    int (*take_events)(void *, const struct trace_event *, size_t, struct error *);
    void *context;
};

static uint32_t turn(const struct joined *joined, uint32_t scope)
{
    return scope < joined->n_scopes ? joined->scopes[scope] : 0;
}

static int take_cells(void *context, const struct cell *cells, size_t n_cells, struct error *err)
{
    const struct turning *turning = context;
    struct cell *turned = calloc(n_cells + 1, sizeof *turned);
    if (!turned)
        return error_set(err, ERR_MEMORY, "out of memory for %zu values", n_cells);
    for (size_t i = 0; i < n_cells; i++) {
        turned[i] = cells[i];
        turned[i].scope = turn(turning->joined, cells[i].scope);
    }
    int code = turning->take(turning->context, turned, n_cells, err);
    free(turned);
    return code;
}

static int take_events(void *context, const struct trace_event *events, size_t n_events, struct error *err)
{
    const struct turning *turning = context;
    struct trace_event *turned = calloc(n_events + 1, sizeof *turned);
    if (!turned)
        return error_set(err, ERR_MEMORY, "out of memory for %zu events", n_events);
    for (size_t i = 0; i < n_events; i++)
        turned[i] = (struct trace_event){events[i].time_ns, turn(turning->joined, events[i].scope)};
    int code = turning->take_events(turning->context, turned, n_events, err);
    free(turned);
    return code;
}

static int visit(void *self, size_t profile, int (*take)(void *, const struct cell *, size_t, struct error *),
                 void *context, struct error *err)
{
    const struct joined *joined = self;
    struct turning turning = {.joined = joined, .take = take, .context = context};
    if (profile >= joined->n_first)
        return joined->second.visit(joined->second.self, profile - joined->n_first, take, context, err);
    return joined->first.visit(joined->first.self, profile, take_cells, &turning, err);
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
    struct turning turning = {.joined = joined, .take_events = take, .context = context};
    if (profile >= joined->n_first)
        return joined->second.visit_trace(joined->second.self, profile - joined->n_first, take, context, err);
    return joined->first.visit_trace(joined->first.self, profile, take_events, &turning, err);
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
        return error_set(err, ERR_MEMORY, "out of memory");
    }
    *self = (struct joined){
        .first = *first, .second = *second, .n_first = n_first, .n_scopes = n_scopes, .scopes = scopes};
    *first = *second = (struct value_source){0};
    *joined = (struct value_source){
        .self = self, .visit = visit, .trace = trace, .visit_trace = visit_trace, .free = free_joined};
    return 0;
}
