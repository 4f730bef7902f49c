/* SPDX-License-Identifier: BSD-3-Clause */
/* What the threads of a process share: the metrics that were recorded at all, the threads in order, and which
 * allocation paths stand for mappings. Ordinary code. */
#include <stdio.h>
#include <stdlib.h>

#include "collect/collect-internal.h"

/* Sums over all hits of the process. */
struct sums {
    uint64_t counts[ARENA_EVENTS_MAX], weights[ARENA_EVENTS_MAX];
    uint32_t metric_events[MEM_METRICS], latency_events, remote_latency_events; /* one bit for each event */
};

static int compare_refs(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static bool add_mmap_node(struct process *process, size_t *capacity, uint32_t ref)
{
    if (process->n_mmap_nodes && process->mmap_nodes[process->n_mmap_nodes - 1] == ref)
        return true;
    if (!vec_reserve(&process->mmap_nodes, capacity, process->n_mmap_nodes + 1, sizeof ref))
        return false;
    process->mmap_nodes[process->n_mmap_nodes++] = ref;
    return true;
}

/* Which events told what of their accesses. */
static void sum_metrics(const struct process *process, const struct arena_hit *hit, struct sums *sums)
{
    uint32_t bit = 1u << hit->event, metrics = hit->metrics;
    if (!(process->view->header->events[hit->event].flags & EVENT_DATA_SRC))
        return;
    for (int i = 0; i < MEM_METRICS; i++)
        sums->metric_events[i] |= metrics & 1u << i ? bit : 0;
    if (__atomic_load_n((const uint64_t *)&hit->latency, __ATOMIC_RELAXED)) {
        sums->latency_events |= bit;
        sums->remote_latency_events |= metrics & MEM_REMOTE_METRICS ? bit : 0;
    }
}

static bool sum_hits(struct process *process, struct sums *sums)
{
    size_t cap_mmap = 0;
    struct view_walk walk = {.kind = ARENA_HITS, .record_bytes = sizeof(struct arena_hit)};
    const struct arena_hit *hit;
    while ((hit = view_next(process->view, &walk))) {
        uint64_t count = __atomic_load_n((const uint64_t *)&hit->count, __ATOMIC_RELAXED);
        uint64_t weight = __atomic_load_n((const uint64_t *)&hit->weight, __ATOMIC_RELAXED);
        if (hit->event < process->view->n_events) {
            sums->counts[hit->event] += count;
            sums->weights[hit->event] += weight;
            if (count)
                sum_metrics(process, hit, sums);
        }
        if (var_key_kind(hit->var) == VAR_MMAP && !add_mmap_node(process, &cap_mmap, var_key_b(hit->var)))
            return false;
    }
    if (process->n_mmap_nodes)
        qsort(process->mmap_nodes, process->n_mmap_nodes, sizeof *process->mmap_nodes, compare_refs);
    return true;
}

int process_add_column(struct process *process, const struct column *column, const char *name, const char *description)
{
    struct column *added = &process->columns[process->n_columns];
    *added = *column;
    (void)snprintf(added->name, sizeof added->name, "%.63s", name);
    (void)snprintf(added->description, sizeof added->description, "%.191s", description);
    return (int)process->n_columns++;
}

/* A fixed period goes into the metric table, so that the file holds the counts themselves. */
static void add_event_column(struct process *process, uint32_t index, const struct sums *sums)
{
    const struct arena_event *event = &process->view->header->events[index];
    bool is_weighted = event->flags & EVENT_WEIGHTED;
    if (!(is_weighted ? sums->weights[index] : sums->counts[index]))
        return;
    struct column column = {.kind = is_weighted ? COLUMN_WEIGHT : COLUMN_COUNT,
                            .event = index,
                            .events = 1u << index,
                            .format = event->flags & EVENT_INTEGER ? HPCRUN_VALUE_INT : HPCRUN_VALUE_REAL,
                            .period = 1,
                            .scale = event->scale,
                            .is_frequency = event->attr.freq};
    if (!is_weighted && event->scale >= 1 && event->scale < 1e15 && event->scale == (double)(uint64_t)event->scale) {
        column.period = (uint64_t)event->scale;
        column.scale = 1;
    }
    process->column_of_event[index] = process_add_column(process, &column, event->metric, event->description);
}

/* What hardware told of accesses: counts in the period of the events that they come from. */
static int add_access_column(struct process *process, enum column_kind kind, uint32_t events, const char *name,
                             const char *description)
{
    struct column column = {
        .kind = kind, .events = events, .format = HPCRUN_VALUE_INT, .period = 1, .scale = 1, .is_frequency = false};
    if (!events)
        return -1;
    for (uint32_t i = 0; i < process->view->n_events; i++)
        column.is_frequency |= events & 1u << i && process->view->header->events[i].attr.freq;
    return process_add_column(process, &column, name, description);
}

static void add_access_columns(struct process *process, const struct sums *sums)
{
    for (int i = 0; i < MEM_METRICS; i++) {
        const struct mem_metric_row *row = mem_metric_row((enum mem_metric)i);
        char description[192];
        if (!row)
            continue;
        (void)snprintf(description, sizeof description, "%s%s%s", row->alias ? row->alias : "", row->alias ? ": " : "",
                       row->description);
        process->column_of_metric[i] =
            add_access_column(process, COLUMN_MEMORY, sums->metric_events[i], row->name, description);
    }
    process->latency_column = add_access_column(process, COLUMN_LATENCY, sums->latency_events, MEM_LATENCY_NAME,
                                                "Cycles from issue to data, summed over the accesses");
    process->remote_latency_column =
        add_access_column(process, COLUMN_REMOTE_LATENCY, sums->remote_latency_events, MEM_REMOTE_LATENCY_NAME,
                          "Cycles from issue to data of the accesses that another NUMA node served");
}

static void choose_columns(struct process *process, const struct sums *sums)
{
    for (uint32_t i = 0; i < process->view->n_events; i++) {
        process->has_variables |= process->view->header->events[i].source == SOURCE_MEMLEAK;
        if (process->view->header->events[i].flags & EVENT_ADDRESS) {
            process->is_data_centric = process->has_variables = true;
            if (process->first_address_event < 0)
                process->first_address_event = (int)i;
        }
    }
    if (process->has_variables)
        process_add_size_column(process);
    for (uint32_t i = 0; i < process->view->n_events; i++) {
        if (process->view->header->events[i].source != SOURCE_MEMLEAK)
            add_event_column(process, i, sums);
        else if (process->allocated_column < 0)
            process_add_leak_columns(process);
    }
    add_access_columns(process, sums);
}

struct numbered_thread {
    uint32_t id, ref;
};

static int compare_threads(const void *a, const void *b)
{
    const struct numbered_thread *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->ref < y->ref ? -1 : x->ref > y->ref;
}

/* Threads by id; of two with the same id (which no runtime writes) only the first. */
static bool list_threads(struct process *process)
{
    struct numbered_thread *threads = NULL;
    size_t n = 0, capacity = 0;
    struct view_walk walk = {.kind = ARENA_THREADS, .record_bytes = sizeof(struct arena_thread)};
    const struct arena_thread *record;
    while ((record = view_next(process->view, &walk))) {
        if (!vec_reserve(&threads, &capacity, n + 1, sizeof *threads))
            break;
        threads[n++] = (struct numbered_thread){record->id, walk.ref};
        for (uint32_t i = 0; i < process->view->n_events; i++)
            process->n_samples += __atomic_load_n((const uint64_t *)&record->taken[i], __ATOMIC_RELAXED);
    }
    process->threads = calloc(n + 1, sizeof *process->threads);
    if (record || !process->threads) {
        free(threads);
        return false;
    }
    if (n)
        qsort(threads, n, sizeof *threads, compare_threads);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || threads[i].id != threads[i - 1].id)
            process->threads[process->n_threads++] = threads[i].ref;
    free(threads);
    return true;
}

int process_init(struct process *process, const struct view *view, const struct collect_context *context,
                 struct error *err)
{
    struct sums sums = {0};
    *process = (struct process){.view = view,
                                .context = context,
                                .size_column = -1,
                                .allocated_column = -1,
                                .freed_column = -1,
                                .leaked_column = -1,
                                .marked_column = -1,
                                .latency_column = -1,
                                .remote_latency_column = -1,
                                .first_address_event = -1,
                                .next_id = 12};
    for (int i = 0; i < ARENA_EVENTS_MAX; i++)
        process->column_of_event[i] = -1;
    for (int i = 0; i < MEM_METRICS; i++)
        process->column_of_metric[i] = -1;
    if (!sum_hits(process, &sums) || !list_threads(process)) {
        process_fini(process);
        return error_set(err, ERR_MEMORY, "Out of memory for the measurement of a process.");
    }
    process_sum_blocks(process);
    choose_columns(process, &sums);
    process_bound(process);
    return 0;
}

void process_fini(struct process *process)
{
    free(process->threads);
    free(process->mmap_nodes);
    free(process->sized);
    process->threads = process->mmap_nodes = NULL;
    process->sized = NULL;
}
