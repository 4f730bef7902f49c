/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces of a database in the order of time, and those of the XML form with the elements that they name: see
 * database.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scratch.h"
#include "database/database.h"
#include "fmt/trace.h"

struct kept_events {
    struct trace_event *all; /* [n] */
    size_t n, capacity;
};

static int keep(void *context, const struct trace_event *events, size_t n, struct error *err)
{
    struct kept_events *kept = context;
    if (!vec_reserve(&kept->all, &kept->capacity, kept->n + n, sizeof *kept->all))
        return error_set(err, ERR_MEMORY, "out of memory for a trace");
    memcpy(kept->all + kept->n, events, n * sizeof *events);
    kept->n += n;
    return 0;
}

static int compare_events(const void *a, const void *b)
{
    const struct trace_event *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return x->scope < y->scope ? -1 : x->scope > y->scope;
}

int trace_visit_in_order(const struct value_source *source, size_t profile,
                         int (*take)(void *, const struct trace_event *, size_t, struct error *), void *context,
                         struct error *err)
{
    struct kept_events kept = {0};
    if (!source->trace(source->self, profile).is_disordered)
        return source->visit_trace(source->self, profile, take, context, err);
    int code = source->visit_trace(source->self, profile, keep, &kept, err);
    if (code == 0 && kept.n) {
        qsort(kept.all, kept.n, sizeof *kept.all, compare_events);
        code = take(context, kept.all, kept.n, err);
    }
    free(kept.all);
    return code;
}

/* --- elements of the XML form --- */

static bool is_frame(const struct scope *scope)
{
    return scope->kind == SCOPE_PROC || scope->kind == SCOPE_INLINED || scope->kind == SCOPE_POSITION;
}

static int mark_events(void *context, const struct trace_event *events, size_t n, struct error *err)
{
    struct xml_layout *layout = context;
    (void)err;
    for (size_t i = 0; i < n; i++)
        layout->statements[events[i].scope] = 1;
    return 0;
}

/* Whether traces name what a scope lies in instead. */
static bool is_named_by_parent(const struct scope *scope)
{
    return scope->kind == SCOPE_CALL || scope->kind == SCOPE_INSTRUCTION;
}

/* Marks the scopes that traces name, and finds the first and the last time. */
static int mark_traced(const struct model *model, const struct value_source *source, struct xml_layout *layout,
                       struct error *err)
{
    int code = 0;
    for (size_t t = 0; code == 0 && t < model->n_threads; t++) {
        size_t profile = model->threads[t].profile;
        struct trace_info info = source->trace(source->self, profile);
        if (info.n_events == 0)
            continue;
        if (layout->max_time_ns == 0 || info.min_time_ns < layout->min_time_ns)
            layout->min_time_ns = info.min_time_ns;
        if (info.max_time_ns > layout->max_time_ns)
            layout->max_time_ns = info.max_time_ns;
        code = source->visit_trace(source->self, profile, mark_events, layout, err);
    }
    for (uint32_t i = (uint32_t)model->n_scopes; i-- > 1;) /* a call site is in its function */
        if (layout->statements[i] && is_named_by_parent(&model->scopes[i]))
            layout->statements[model->scopes[i].parent] = 1;
    layout->statements[0] = 0; /* of no scope: it is not known where the thread was */
    return code;
}

int xml_layout_make(const struct model *model, const struct value_source *source, struct xml_layout *layout,
                    struct error *err)
{
    size_t n = model->n_scopes + 1;
    *layout = (struct xml_layout){.elements = calloc(n, sizeof(uint32_t)),
                                  .calls = calloc(n, sizeof(uint32_t)),
                                  .statements = calloc(n, sizeof(uint32_t)),
                                  .n_elements = 1};
    if (!layout->elements || !layout->calls || !layout->statements)
        return error_memory(err);
    if (3 * (uint64_t)n > UINT32_MAX)
        return error_set(err, ERR_RANGE, "the XML form cannot hold %zu contexts", n);
    int code = mark_traced(model, source, layout, err);
    layout->elements[0] = 1;
    for (uint32_t i = 1; code == 0 && i < model->n_scopes; i++) {
        const struct scope *scope = &model->scopes[i];
        if (scope->kind == SCOPE_PROC && scope->parent && is_frame(&model->scopes[scope->parent]))
            layout->calls[i] = ++layout->n_elements;
        if (scope->kind != SCOPE_INSTRUCTION)
            layout->elements[i] = ++layout->n_elements;
        if (layout->statements[i] && is_named_by_parent(scope))
            layout->statements[i] = layout->statements[scope->parent];
        else if (layout->statements[i])
            layout->statements[i] = scope->kind == SCOPE_LINE ? layout->elements[i] : ++layout->n_elements;
    }
    return code;
}

void xml_layout_fini(struct xml_layout *layout)
{
    free(layout->elements);
    free(layout->calls);
    free(layout->statements);
    *layout = (struct xml_layout){0};
}

/* --- files of traces --- */

struct xml_trace {
    const struct xml_layout *layout;
    struct trace_writer writer;
};

static int put_events(void *context, const struct trace_event *events, size_t n, struct error *err)
{
    struct xml_trace *trace = context;
    int code = 0;
    for (size_t i = 0; code == 0 && i < n; i++) {
        const struct trace_record record = {events[i].time_ns, trace->layout->statements[events[i].scope],
                                            TRACE_NO_METRIC};
        code = trace_writer_add(&trace->writer, &record, err);
    }
    return code;
}

static int put_trace(const struct value_source *source, size_t profile, const struct xml_layout *layout,
                     const char *path, struct error *err)
{
    struct xml_trace trace = {.layout = layout};
    int code = trace_writer_open(&trace.writer, path, 0, err);
    if (code != 0)
        return code;
    code = trace_visit_in_order(source, profile, put_events, &trace, err);
    if (code == 0)
        return trace_writer_close(&trace.writer, err);
    trace_writer_abandon(&trace.writer);
    return code;
}

int xml_traces_write(const struct model *model, const struct value_source *source, const struct job *job,
                     const struct xml_layout *layout, const char *directory, struct error *err)
{
    uint32_t rank = UINT32_MAX, id = 0;
    int code = 0;
    for (size_t t = 0; code == 0 && t < model->n_threads; t++) {
        const struct thread *thread = &model->threads[t];
        char *path = NULL;
        id = thread->process == rank ? id + 1 : 0;
        rank = thread->process;
        if (source->trace(source->self, thread->profile).n_events == 0)
            continue;
        if (!job_goes_on(job, err))
            return ERR_USAGE;
        code = xml_file_name(model, directory, "", rank, id, "hpctrace", &path, err);
        if (code == 0)
            code = put_trace(source, thread->profile, layout, path, err);
        free(path);
    }
    return code;
}
