/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums up the model, and answers questions to it: see model.h. */
#include "arena/arena.h"
#include "analysis/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/code-table.h"
#include "base/pages.h"
#include "base/path.h"
#include "fmt/hpcrun.h"

double model_delay_percent(const struct model *model)
{
    double run_ns = (double)model->cpu_time_ns, delay_ns = (double)model->delay_ns;
    return delay_ns > 0 ? 100 * delay_ns / (run_ns + delay_ns) : 0;
}

/* Whether a program's own name for itself is that of a file, and not a part of base, as where the kernel cut it. */
static bool is_other_name(const char *called, const char *base)
{
    return *called && *called != '-' && !strpbrk(called, " :[]") && strncmp(called, base, strlen(called)) != 0;
}

const char *model_module_name(const struct model *model, const char *path)
{
    const char *base = path_last(path), *called = NULL;
    for (size_t i = 0; i < model->n_processes; i++) {
        const struct process *process = &model->processes[i];
        const char *program = process->path ? process->path : model->program; /* a database has one for all */
        if (!program || !process->exe || strcmp(program, path) != 0)
            continue;
        if (called && strcmp(called, process->exe) != 0)
            return base;
        called = process->exe;
    }
    return called && is_other_name(called, base) ? called : base;
}

int64_t model_metric(const struct model *model, const char *name)
{
    for (size_t i = 0; i < model->n_metrics; i++)
        if (strcmp(model->metrics[i].name, name) == 0)
            return (int64_t)i;
    return -1;
}

/* Finds a metric by name, or by the name that the original's documentation has for it. */
static int64_t named_metric(const struct model *model, const char *name)
{
    int64_t metric = model_metric(model, name);
    for (int i = 0; metric < 0 && i < MEM_METRICS; i++) {
        const struct mem_metric_row *row = mem_metric_row((enum mem_metric)i);
        if (row->alias && strcmp(row->alias, name) == 0)
            metric = model_metric(model, row->name);
    }
    return metric;
}

int64_t model_choose_metric(const struct model *model, const char *name)
{
    if (name)
        return named_metric(model, name);
    int64_t latency = model_metric(model, MEM_LATENCY_NAME);
    return latency >= 0 && model->metrics[latency].used_by_data ? latency : model_first_metric(model);
}

static bool is_main(const struct metric *metric)
{
    return metric->used_by_data && !metric->hidden &&
           strncmp(metric->name, LEAK_NAMES_PREFIX, strlen(LEAK_NAMES_PREFIX)) != 0;
}

/* Metrics are in the order in which profiles had values for them, events in that of the command line, so the events
 * decide: a shell that ran before the program and only had page faults does not. */
int64_t model_first_metric(const struct model *model)
{
    for (size_t i = 0; i < model->n_events; i++) {
        int64_t metric = model_metric(model, model->events[i].metric);
        if (metric >= 0 && (is_main(&model->metrics[metric]) || model->events[i].has_address))
            return metric;
    }
    for (size_t i = 0; i < model->n_metrics; i++)
        if (is_main(&model->metrics[i]))
            return (int64_t)i;
    for (size_t i = 0; i < model->n_metrics; i++)
        if (!model->metrics[i].hidden)
            return (int64_t)i;
    return model->n_metrics ? 0 : -1;
}

void model_sum_inclusive(const struct model *model, const double *own, double *inclusive)
{
    size_t n = model->n_metrics;
    memcpy(inclusive, own, model->n_scopes * n * sizeof *own);
    for (size_t i = model->n_scopes; i-- > 1;) {
        const struct scope *scope = &model->scopes[i];
        if (scope->role == ROLE_DATACENTRIC)
            continue;
        for (size_t m = 0; m < n; m++)
            inclusive[scope->parent * n + m] += inclusive[i * n + m];
    }
}

static void mark_data_metrics(struct model *model)
{
    uint32_t root = model_data_root(model);
    for (size_t m = 0; m < model->n_metrics; m++)
        model->metrics[m].used_by_data = root && model_value(model, root, m) != 0.0;
}

int model_sum(struct model *model, struct error *err)
{
    size_t n = model->n_scopes * model->n_metrics;
    if (!model->own)
        model->own = calloc(n + 1, sizeof *model->own);
    free(model->inclusive);
    model->inclusive = calloc(n + 1, sizeof *model->inclusive);
    if (!model->own || !model->inclusive)
        return error_set(err, ERR_MEMORY, "out of memory for %zu values", n);
    pages_want_large(model->inclusive, n * sizeof *model->inclusive);
    model_sum_inclusive(model, model->own, model->inclusive);
    mark_data_metrics(model);
    return 0;
}

double model_value(const struct model *model, uint32_t scope, size_t metric)
{
    return model->inclusive[scope * model->n_metrics + metric];
}

double model_samples(const struct model *model, size_t metric, double value)
{
    double per_sample = model->metrics[metric].per_sample;
    return per_sample > 0 ? value / per_sample : value;
}

bool model_has_own(const struct model *model, uint32_t scope)
{
    const struct scope *at = &model->scopes[scope];
    /* in their order, the instructions of a statement come next */
    bool has_instructions = scope + 1 < model->n_scopes && at[1].kind == SCOPE_INSTRUCTION;
    return at->kind == SCOPE_INSTRUCTION || (at->kind == SCOPE_LINE && !has_instructions);
}

bool model_has_instructions(const struct model *model)
{
    if (model->code)
        return model->code->has_instructions;
    for (size_t i = 1; i < model->n_scopes; i++)
        if (model->scopes[i].kind == SCOPE_INSTRUCTION)
            return true;
    return false;
}

bool model_add_build(struct model *model, uint32_t module, uint64_t build)
{
    for (size_t i = 0; i < model->n_builds; i++)
        if (model->builds[i].module == module && model->builds[i].build == build)
            return true;
    if (!vec_reserve(&model->builds, &model->cap_builds, model->n_builds + 1, sizeof *model->builds))
        return false;
    model->builds[model->n_builds++] = (struct module_build){module, build};
    return true;
}

bool model_is_lexical(const struct scope *scope)
{
    return scope->kind == SCOPE_LINE || scope->kind == SCOPE_CALL || scope->kind == SCOPE_POSITION ||
           scope->kind == SCOPE_LOOP || scope->kind == SCOPE_INSTRUCTION;
}

bool model_is_procedure(const struct scope *scope)
{
    return scope->kind == SCOPE_PROC || scope->kind == SCOPE_INLINED;
}

bool model_is_block(const struct variable *variable)
{
    return variable && (variable->class == CLASS_HEAP || variable->class == CLASS_MMAP);
}

bool model_is_phase(const struct model *model, const struct scope *scope)
{
    return scope->role == ROLE_REGION && text_begins(model_text(model, scope->name), PHASE_TITLE);
}

uint32_t model_file_of(const struct model *model, uint32_t scope)
{
    const struct scope *at = &model->scopes[scope];
    while (scope && !model_is_procedure(at) && at->kind != SCOPE_POSITION && at->kind != SCOPE_LOOP) {
        scope = at->parent;
        at = &model->scopes[scope];
    }
    return at->file;
}

uint32_t model_subtree_end(const struct model *model, uint32_t scope)
{
    return scope ? model->scopes[scope].end : (uint32_t)model->n_scopes;
}

uint32_t model_data_root(const struct model *model)
{
    for (uint32_t i = model->scopes[0].first_child; i; i = model->scopes[i].next_sibling)
        if (model->scopes[i].role == ROLE_DATACENTRIC)
            return i;
    return 0;
}

const char *model_type_source_name(enum type_source source)
{
    static const char *const names[TYPE_SOURCES] = {NULL, "declaration", "template", "new", "sizeof", "accesses"};
    return source < TYPE_SOURCES ? names[source] : NULL;
}

bool model_add_field(struct variable *variable, const struct variable_field *field, uint32_t *index)
{
    for (size_t i = 0; i < variable->n_fields; i++) {
        struct variable_field *known = &variable->fields[i];
        if (known->event == field->event && known->part == field->part && known->name == field->name &&
            known->offset_bytes == field->offset_bytes && known->flags == field->flags) {
            known->samples += field->samples;
            if (index)
                *index = (uint32_t)i;
            return true;
        }
    }
    if (!vec_reserve(&variable->fields, &variable->cap_fields, variable->n_fields + 1, sizeof *variable->fields))
        return false;
    if (index)
        *index = (uint32_t)variable->n_fields;
    variable->fields[variable->n_fields++] = *field;
    return true;
}

static int compare_field_counts(const void *a, const void *b)
{
    const struct field_count *x = a, *y = b;
    const uint32_t xs[] = {x->variable, x->scope, x->field}, ys[] = {y->variable, y->scope, y->field};
    for (size_t i = 0; i < sizeof xs / sizeof *xs; i++)
        if (xs[i] != ys[i])
            return xs[i] < ys[i] ? -1 : 1;
    return 0;
}

static int compare_nest_counts(const void *a, const void *b)
{
    const struct nest_count *x = a, *y = b;
    const uint64_t xs[] = {x->variable,   x->event,   x->file, x->line,      x->end_line,     x->outer_file,
                           x->outer_line, x->verdict, x->move, x->is_around, x->stride_bytes, x->outer_bytes};
    const uint64_t ys[] = {y->variable,   y->event,   y->file, y->line,      y->end_line,     y->outer_file,
                           y->outer_line, y->verdict, y->move, y->is_around, y->stride_bytes, y->outer_bytes};
    for (size_t i = 0; i < sizeof xs / sizeof *xs; i++)
        if (xs[i] != ys[i])
            return xs[i] < ys[i] ? -1 : 1;
    return 0;
}

void model_order_nest_counts(struct model *model)
{
    struct nest_count *counts = model->nest_counts;
    size_t n = 0;
    if (model->n_nest_counts)
        qsort(counts, model->n_nest_counts, sizeof *counts, compare_nest_counts);
    for (size_t i = 0; i < model->n_nest_counts; i++) {
        if (n && compare_nest_counts(&counts[n - 1], &counts[i]) == 0)
            counts[n - 1].n_samples += counts[i].n_samples;
        else
            counts[n++] = counts[i];
    }
    model->n_nest_counts = n;
}

void model_order_field_counts(struct model *model)
{
    struct field_count *counts = model->field_counts;
    size_t n = 0;
    if (model->n_field_counts)
        qsort(counts, model->n_field_counts, sizeof *counts, compare_field_counts);
    for (size_t i = 0; i < model->n_field_counts; i++) {
        if (n && compare_field_counts(&counts[n - 1], &counts[i]) == 0)
            counts[n - 1].n_samples += counts[i].n_samples;
        else
            counts[n++] = counts[i];
    }
    model->n_field_counts = n;
}

/* Adds what tells a process apart, whichever program it runs; false when that is not known, or out of memory. */
static bool add_birth(struct strtab *births, const struct process *process)
{
    char key[96];
    (void)snprintf(key, sizeof key, "%x/%.16s/%x/%llx", process->directory, process->host_id, process->pid,
                   (unsigned long long)process->birth);
    return process->birth && strtab_intern(births, key) >= 0;
}

size_t model_count_processes(const struct model *model)
{
    struct strtab births = {0};
    size_t n = 0;
    for (size_t i = 0; i < model->n_processes; i++)
        n += !add_birth(&births, &model->processes[i]);
    n += births.n_strings;
    strtab_fini(&births);
    return n;
}

const char *model_variable_name(const struct model *model, const struct variable *variable)
{
    return model_text(model, variable->n_parts == 1 ? variable->parts[0].name : variable->name);
}

bool model_has_ranks(const struct model *model)
{
    for (size_t i = 0; i < model->n_processes; i++)
        if (model->processes[i].rank)
            return true;
    return false;
}

bool model_has_merged_threads(const struct model *model)
{
    for (size_t i = 0; i < model->n_processes; i++)
        if (model->processes[i].n_threads >= ARENA_THREADS_OWN)
            return true;
    return false;
}

size_t model_count_threads(const struct model *model)
{
    struct strtab births = {0};
    size_t n = model->has_thread_list ? 0 : model->n_threads;
    for (size_t i = 0; model->has_thread_list && i < model->n_threads; i++) {
        const struct thread *thread = &model->threads[i];
        n += thread->thread_id != 0 || !add_birth(&births, &model->processes[thread->process]);
    }
    n += births.n_strings;
    strtab_fini(&births);
    return n;
}
