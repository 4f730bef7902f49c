/* SPDX-License-Identifier: BSD-3-Clause */
/* From samples by CPU and home to nodes: see numa.h. */
#include "analysis/report/numa.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NO_ROW UINT32_MAX

/* --- from a CPU to its node --- */

static const struct machine *machine_of(const struct model *model, uint32_t thread)
{
    const char *host_id = model->processes[model->threads[thread].process].host_id;
    for (size_t i = 0; i < model->n_machines; i++)
        if (strcmp(model->machines[i].host_id, host_id) == 0)
            return &model->machines[i];
    return NULL;
}

static int compare_cpus(const void *a, const void *b)
{
    const struct machine_cpu *x = a, *y = b;
    return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

static uint32_t node_of(const struct model *model, uint32_t thread, uint32_t cpu)
{
    const struct machine *machine = machine_of(model, thread);
    const struct machine_cpu like = {.cpu = cpu}, *found = NULL;
    if (machine && machine->n_cpus)
        found = bsearch(&like, machine->cpus, machine->n_cpus, sizeof like, compare_cpus);
    return found ? found->node : PLACE_UNKNOWN;
}

/* How far the home is from the node, 1 being the node itself; 0 when that is not known. */
static double distance_of(const struct model *model, uint32_t thread, uint32_t node, uint32_t home)
{
    const struct machine *machine = machine_of(model, thread);
    uint32_t n = machine ? machine->n_distances : 0;
    if (node >= n || home >= n || !machine->distances[node * n + node])
        return 0;
    return (double)machine->distances[node * n + home] / (double)machine->distances[node * n + node];
}

/* --- pairs --- */

/* The report's rows by scope, NO_ROW for none: [n_scopes], to be freed; NULL when out of memory. */
static uint32_t *rows_by_scope(const struct report *report)
{
    size_t n = report->model->n_scopes;
    uint32_t *row_of = malloc((n + 1) * sizeof *row_of);
    for (size_t i = 0; row_of && i < n; i++)
        row_of[i] = NO_ROW;
    for (uint32_t r = 0; row_of && r < report->n_rows; r++) {
        const struct variable *variable = report->rows[r].is_waiting ? NULL : report->rows[r].variable;
        for (size_t i = 0; variable && i < variable->n_scopes; i++)
            if (row_of[variable->scopes[i]] == NO_ROW)
                row_of[variable->scopes[i]] = r;
    }
    return row_of;
}

static uint32_t row_of_variable(const struct model *model, const uint32_t *row_of, uint32_t index)
{
    const struct variable *variable = &model->variables[index];
    return variable->n_scopes ? row_of[variable->scopes[0]] : NO_ROW;
}

static int compare_pairs(const void *a, const void *b)
{
    const struct numa_pair *x = a, *y = b;
    const uint32_t xs[] = {x->row, x->node, x->home}, ys[] = {y->row, y->node, y->home};
    for (size_t i = 0; i < sizeof xs / sizeof *xs; i++)
        if (xs[i] != ys[i])
            return xs[i] < ys[i] ? -1 : 1;
    return 0;
}

static bool add_pairs(struct numa *numa, const uint32_t *row_of)
{
    const struct model *model = numa->report.model;
    size_t n = 0;
    if (!vec_reserve(&numa->pairs, &numa->cap_pairs, model->n_home_counts + 1, sizeof *numa->pairs))
        return false;
    for (size_t i = 0; i < model->n_home_counts; i++) {
        const struct home_count *count = &model->home_counts[i];
        struct numa_pair pair = {.row = row_of_variable(model, row_of, count->variable),
                                 .node = node_of(model, count->thread, count->cpu),
                                 .home = count->home,
                                 .n_samples = count->n_samples};
        double distance = distance_of(model, count->thread, pair.node, pair.home);
        pair.n_measured = distance > 0 ? pair.n_samples : 0;
        pair.distance = distance * (double)pair.n_measured;
        if (count->metric == numa->metric && pair.row != NO_ROW && pair.node < HOMES_MAX)
            numa->pairs[numa->n_pairs++] = pair;
    }
    if (numa->n_pairs)
        qsort(numa->pairs, numa->n_pairs, sizeof *numa->pairs, compare_pairs);
    for (size_t i = 0; i < numa->n_pairs; i++) {
        if (n && compare_pairs(&numa->pairs[n - 1], &numa->pairs[i]) == 0) {
            numa->pairs[n - 1].n_samples += numa->pairs[i].n_samples;
            numa->pairs[n - 1].n_measured += numa->pairs[i].n_measured;
            numa->pairs[n - 1].distance += numa->pairs[i].distance;
        } else
            numa->pairs[n++] = numa->pairs[i];
    }
    numa->n_pairs = n;
    return true;
}

/* --- rows --- */

static void add_pair(struct numa_sum *sum, const struct numa_pair *pair)
{
    sum->n_none += pair->home == PLACE_UNKNOWN ? pair->n_samples : 0;
    sum->n_local += pair->home == pair->node ? pair->n_samples : 0;
    sum->n_remote += pair->home != PLACE_UNKNOWN && pair->home != pair->node ? pair->n_samples : 0;
    sum->n_measured += pair->n_measured;
    sum->distance += pair->distance;
}

static uint64_t n_samples_of(const struct numa *numa, const struct variable *variable)
{
    return variable->samples ? variable->samples[numa->metric] : 0;
}

static void add_pages(struct variable_pages *into, const struct variable_pages *from)
{
    into->n_moved += from->n_moved;
    into->n_pages += from->n_pages;
    into->n_asked += from->n_asked;
    into->n_none += from->n_none;
    if (from->huge_bytes != UINT64_MAX)
        into->huge_bytes = from->huge_bytes + (into->huge_bytes == UINT64_MAX ? 0 : into->huge_bytes);
    for (size_t i = 0; i < HOMES_MAX; i++)
        into->n_on[i] += from->n_on[i];
}

static int compare_rows(const void *a, const void *b)
{
    const struct numa_row *x = a, *y = b;
    uint64_t n = x->sum.n_local + x->sum.n_remote, m = y->sum.n_local + y->sum.n_remote;
    if (n != m)
        return n > m ? -1 : 1;
    int order = strcmp(x->row->name, y->row->name);
    return order ? order : strcmp(x->row->site ? x->row->site : "", y->row->site ? y->row->site : "");
}

/* Makes a row of each run of pairs. index_of [rows of the report] becomes the row's index. */
static bool add_rows(struct numa *numa, uint32_t *index_of)
{
    numa->rows = calloc(numa->n_pairs + 1, sizeof *numa->rows);
    if (!numa->rows)
        return false;
    for (size_t i = 0; i < numa->n_pairs; i++) {
        const struct numa_pair *pair = &numa->pairs[i];
        if (i == 0 || pair[-1].row != pair->row) {
            index_of[pair->row] = (uint32_t)numa->n_rows;
            numa->rows[numa->n_rows++] = (struct numa_row){
                .row = &numa->report.rows[pair->row], .first = i, .pages = {.huge_bytes = UINT64_MAX}};
        }
        numa->rows[numa->n_rows - 1].n++;
        add_pair(&numa->rows[numa->n_rows - 1].sum, pair);
    }
    return true;
}

/* What is known of whole variables: their samples and pages. */
static void add_variables(struct numa *numa, const uint32_t *row_of, const uint32_t *index_of)
{
    const struct model *model = numa->report.model;
    for (uint32_t v = 0; v < model->n_variables; v++) {
        uint32_t row = row_of_variable(model, row_of, v);
        if (row != NO_ROW && index_of[row] != NO_ROW)
            numa->rows[index_of[row]].sum.n_samples += n_samples_of(numa, &model->variables[v]);
    }
    for (size_t i = 0; i < model->n_pages; i++) {
        uint32_t row = row_of_variable(model, row_of, model->pages[i].variable);
        if (row != NO_ROW && index_of[row] != NO_ROW)
            add_pages(&numa->rows[index_of[row]].pages, &model->pages[i]);
    }
}

/* --- all --- */

static void count_nodes(struct numa *numa)
{
    const struct model *model = numa->report.model;
    numa->n_nodes = model->n_numa_nodes < HOMES_MAX ? model->n_numa_nodes : HOMES_MAX;
    for (size_t i = 0; i < model->n_home_counts; i++)
        if (model->home_counts[i].home != PLACE_UNKNOWN && model->home_counts[i].home >= numa->n_nodes)
            numa->n_nodes = model->home_counts[i].home + 1;
}

static bool add_matrix(struct numa *numa)
{
    size_t n = numa->n_nodes;
    numa->matrix = calloc(n * n + 1, sizeof *numa->matrix);
    for (size_t i = 0; numa->matrix && i < numa->n_pairs; i++) {
        const struct numa_pair *pair = &numa->pairs[i];
        add_pair(&numa->sum, pair);
        if (pair->home != PLACE_UNKNOWN && pair->node < n)
            numa->matrix[pair->node * n + pair->home] += pair->n_samples;
    }
    for (size_t i = 0; i < numa->n_rows; i++)
        numa->sum.n_samples += numa->rows[i].sum.n_samples;
    return numa->matrix != NULL;
}

static size_t metric_with_homes(const struct model *model, size_t metric)
{
    for (size_t i = 0; i < model->n_home_counts; i++)
        if (model->home_counts[i].metric == metric)
            return metric;
    return model->n_home_counts ? model->home_counts[0].metric : metric;
}

int numa_make(const struct model *model, size_t metric, struct numa *numa, struct error *err)
{
    *numa = (struct numa){.metric = metric_with_homes(model, metric)};
    int code = report_make(model, numa->metric, false, false, &numa->report, err);
    if (code != 0)
        return code;
    uint32_t *row_of = rows_by_scope(&numa->report), *index_of = malloc((numa->report.n_rows + 1) * sizeof *index_of);
    for (size_t i = 0; index_of && i < numa->report.n_rows; i++)
        index_of[i] = NO_ROW;
    count_nodes(numa);
    bool ok = row_of && index_of && add_pairs(numa, row_of) && add_rows(numa, index_of);
    if (ok)
        add_variables(numa, row_of, index_of);
    ok = ok && add_matrix(numa);
    free(row_of);
    free(index_of);
    if (!ok) {
        numa_fini(numa);
        return error_memory(err);
    }
    if (numa->n_rows)
        qsort(numa->rows, numa->n_rows, sizeof *numa->rows, compare_rows);
    return 0;
}

void numa_fini(struct numa *numa)
{
    report_fini(&numa->report);
    free(numa->matrix);
    free(numa->pairs);
    free(numa->rows);
    *numa = (struct numa){0};
}

double numa_remote_percent(const struct numa_sum *sum)
{
    uint64_t n = sum->n_local + sum->n_remote;
    return n ? 100 * (double)sum->n_remote / (double)n : NAN;
}

double numa_mean_distance(const struct numa_sum *sum)
{
    return sum->n_measured ? sum->distance / (double)sum->n_measured : (double)NAN;
}

uint64_t numa_row_on(const struct numa *numa, const struct numa_row *row, uint32_t node)
{
    uint64_t n = 0;
    for (size_t i = row->first; i < row->first + row->n; i++)
        n += numa->pairs[i].node == node ? numa->pairs[i].n_samples : 0;
    return n;
}

uint64_t numa_row_at(const struct numa *numa, const struct numa_row *row, uint32_t home)
{
    uint64_t n = 0;
    for (size_t i = row->first; i < row->first + row->n; i++)
        n += numa->pairs[i].home == home ? numa->pairs[i].n_samples : 0;
    return n;
}
