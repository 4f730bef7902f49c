/* SPDX-License-Identifier: BSD-3-Clause */
/* The samples of each variable by thread and CPU, and where the CPUs of each host are, on their way into the model: see
 * load.h. */
#include "analysis/load/load.h"

#include <stdlib.h>
#include <string.h>

bool machines_add(struct model *model, const char *host_id, const struct topology *topology)
{
    for (size_t i = 0; i < model->n_machines; i++)
        if (strcmp(model->machines[i].host_id, host_id) == 0)
            return true;
    if (!vec_reserve(&model->machines, &model->cap_machines, model->n_machines + 1, sizeof *model->machines))
        return false;
    struct machine machine = {.host_id = strdup(host_id), .cpus = calloc(topology->n_cpus + 1, sizeof *machine.cpus)};
    for (uint32_t os = 0; machine.cpus && os < topology->n_os; os++) {
        const struct topology_cpu *cpu = topology_find(topology, os);
        if (cpu)
            machine.cpus[machine.n_cpus++] =
                (struct machine_cpu){os, cpu->core, cpu->package, topology_node(topology, os)};
    }
    size_t n_pairs = (size_t)topology->n_distances * topology->n_distances;
    machine.distances = n_pairs ? malloc(n_pairs * sizeof *machine.distances) : NULL;
    machine.n_distances = machine.distances ? topology->n_distances : 0;
    if (machine.distances)
        memcpy(machine.distances, topology->distances, n_pairs * sizeof *machine.distances);
    model->machines[model->n_machines++] = machine;
    if (machine.host_id && machine.cpus && (machine.distances || !n_pairs))
        return true;
    free(machine.host_id);
    free(machine.cpus);
    free(machine.distances);
    model->n_machines--;
    return false;
}

static int compare_machines(const void *a, const void *b)
{
    return strcmp(((const struct machine *)a)->host_id, ((const struct machine *)b)->host_id);
}

static int compare_counts(const void *a, const void *b)
{
    const struct cpu_count *x = a, *y = b;
    const uint32_t xs[] = {x->variable, x->thread, x->metric, x->cpu};
    const uint32_t ys[] = {y->variable, y->thread, y->metric, y->cpu};
    for (size_t i = 0; i < sizeof xs / sizeof *xs; i++)
        if (xs[i] != ys[i])
            return xs[i] < ys[i] ? -1 : 1;
    return 0;
}

/* Puts the counts in order, and adds up those of the same key. */
static void merge_counts(struct model *model)
{
    struct cpu_count *counts = model->cpu_counts;
    size_t n = 0;
    if (model->n_cpu_counts)
        qsort(counts, model->n_cpu_counts, sizeof *counts, compare_counts);
    for (size_t i = 0; i < model->n_cpu_counts; i++) {
        if (n && compare_counts(&counts[n - 1], &counts[i]) == 0)
            counts[n - 1].n_samples += counts[i].n_samples;
        else
            counts[n++] = counts[i];
    }
    model->n_cpu_counts = n;
}

uint32_t *threads_by_profile(const struct model *model, size_t *n)
{
    *n = 0;
    for (size_t i = 0; i < model->n_threads; i++)
        if (model->threads[i].profile >= *n)
            *n = model->threads[i].profile + 1;
    uint32_t *thread_of = malloc((*n + 1) * sizeof *thread_of);
    if (!thread_of)
        return NULL;
    memset(thread_of, 0xff, (*n + 1) * sizeof *thread_of);
    for (uint32_t i = 0; i < model->n_threads; i++)
        thread_of[model->threads[i].profile] = i;
    return thread_of;
}

int load_sides_apply_cpus(struct load_sides *sides, const struct raw_tree *tree, struct error *err)
{
    struct model *model = sides->model;
    size_t n_profiles, n_prior = model->n_cpu_counts;
    if (!vec_reserve(&model->cpu_counts, &model->cap_cpu_counts, n_prior + sides->n_cpus + 1,
                     sizeof *model->cpu_counts))
        return error_memory(err);
    uint32_t *thread_of = threads_by_profile(model, &n_profiles);
    if (!thread_of)
        return error_memory(err);
    for (size_t i = 0; i < n_prior; i++) /* the threads of a database were in the order of their profiles */
        model->cpu_counts[i].thread = thread_of[model->cpu_counts[i].thread];
    for (size_t i = 0; i < sides->n_cpus; i++) {
        struct cpu_count count = sides->cpus[i];
        count.variable = count.variable < tree->n_nodes ? tree->nodes[count.variable].variable : RAW_NONE;
        count.thread = count.thread < n_profiles ? thread_of[count.thread] : PLACE_UNKNOWN;
        if (count.variable != RAW_NONE && count.thread != PLACE_UNKNOWN)
            model->cpu_counts[model->n_cpu_counts++] = count;
    }
    free(thread_of);
    merge_counts(model);
    if (model->n_machines)
        qsort(model->machines, model->n_machines, sizeof *model->machines, compare_machines);
    return 0;
}

/* --- dropped samples --- */

static int compare_drops(const void *a, const void *b)
{
    const struct drop_count *x = a, *y = b;
    const uint32_t xs[] = {x->thread, x->event, x->fate}, ys[] = {y->thread, y->event, y->fate};
    for (size_t i = 0; i < sizeof xs / sizeof *xs; i++)
        if (xs[i] != ys[i])
            return xs[i] < ys[i] ? -1 : 1;
    return 0;
}

int load_sides_apply_drops(struct load_sides *sides, struct error *err)
{
    struct model *model = sides->model;
    size_t n_profiles, n_prior = model->n_drops, n = 0;
    if (!vec_reserve(&model->drops, &model->cap_drops, n_prior + sides->n_drops + 1, sizeof *model->drops))
        return error_memory(err);
    uint32_t *thread_of = threads_by_profile(model, &n_profiles);
    if (!thread_of)
        return error_memory(err);
    for (size_t i = 0; i < n_prior; i++) /* as above */
        model->drops[i].thread = thread_of[model->drops[i].thread];
    for (size_t i = 0; i < sides->n_drops; i++) {
        struct drop_count drop = sides->drops[i];
        drop.thread = drop.thread < n_profiles ? thread_of[drop.thread] : PLACE_UNKNOWN;
        if (drop.thread != PLACE_UNKNOWN)
            model->drops[model->n_drops++] = drop;
    }
    free(thread_of);
    if (model->n_drops)
        qsort(model->drops, model->n_drops, sizeof *model->drops, compare_drops);
    for (size_t i = 0; i < model->n_drops; i++) {
        if (n && compare_drops(&model->drops[n - 1], &model->drops[i]) == 0)
            model->drops[n - 1].n_samples += model->drops[i].n_samples;
        else
            model->drops[n++] = model->drops[i];
    }
    model->n_drops = n;
    return 0;
}
