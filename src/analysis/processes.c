/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes and threads of the profiles. */
#include "analysis/processes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t number(const char *text, int base)
{
    return text ? (uint32_t)strtoul(text, NULL, base) : 0;
}

void processes_identify(const char *path, const struct hpcrun_profile *profile, struct names_file *id)
{
    if (names_parse(path, id, NULL) == 0)
        return;
    const char *name = hpcrun_pair_value(profile, "program-name");
    memset(id, 0, sizeof *id);
    (void)snprintf(id->exe, sizeof id->exe, "%.200s", name && *name ? name : "program");
    id->rank = number(hpcrun_pair_value(profile, "mpi-rank"), 10);
    id->thread = number(hpcrun_pair_value(profile, "thread-id"), 10);
    id->host_id = number(hpcrun_pair_value(profile, "host-id"), 16);
    id->pid = number(hpcrun_pair_value(profile, "process-id"), 10);
}

void processes_key(const struct process *process, char *key)
{
    (void)snprintf(key, PROCESS_KEY_BYTES, "%x/%x/%x/%x/%.16s/%.300s", process->directory, process->rank, process->pid,
                   process->generation, process->host_id, process->exe);
}

int64_t processes_find(struct model *model, struct strtab *keys, const struct names_file *id, uint32_t directory)
{
    char host[16], key[PROCESS_KEY_BYTES], exe[sizeof id->exe];
    (void)snprintf(host, sizeof host, "%08x", id->host_id);
    (void)snprintf(exe, sizeof exe, "%s", id->exe);
    struct process process = {.exe = exe,
                              .host_id = host,
                              .rank = id->rank,
                              .pid = id->pid,
                              .generation = (uint32_t)id->generation,
                              .directory = directory};
    processes_key(&process, key);
    int64_t index = strtab_intern(keys, key);
    if (index < 0 || (size_t)index < model->n_processes)
        return index;
    if (!vec_reserve(&model->processes, &model->cap_processes, model->n_processes + 1, sizeof *model->processes))
        return -1;
    process.exe = strdup(id->exe);
    process.host_id = strdup(host);
    model->processes[model->n_processes++] = process;
    return index;
}

static int compare_processes(const void *a, const void *b, void *context)
{
    const struct model *model = context;
    const struct process *x = &model->processes[*(const uint32_t *)a], *y = &model->processes[*(const uint32_t *)b];
    if (x->directory != y->directory)
        return x->directory < y->directory ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    int order = strcmp(x->host_id, y->host_id);
    if (order == 0 && x->pid != y->pid)
        order = x->pid < y->pid ? -1 : 1;
    order = order ? order : (int)x->generation - (int)y->generation;
    return order ? order : strcmp(x->exe, y->exe);
}

static int compare_threads(const void *a, const void *b)
{
    const struct thread *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->thread_id != y->thread_id)
        return x->thread_id < y->thread_id ? -1 : 1;
    return x->profile < y->profile ? -1 : x->profile > y->profile;
}

/* place [n_processes] of the old numbers. */
static void apply_order(struct model *model, const struct process *sorted, const uint32_t *place)
{
    memcpy(model->processes, sorted, model->n_processes * sizeof *sorted);
    for (size_t i = 0; i < model->n_processes; i++)
        model->processes[i].n_threads = 0;
    for (size_t i = 0; i < model->n_threads; i++)
        model->threads[i].process = place[model->threads[i].process];
    qsort(model->threads, model->n_threads, sizeof *model->threads, compare_threads);
    for (size_t i = 0; i < model->n_threads; i++)
        model->threads[i].id = model->processes[model->threads[i].process].n_threads++;
}

int processes_order(struct model *model, struct error *err)
{
    size_t n = model->n_processes;
    uint32_t *order = calloc(n + 1, sizeof *order), *place = calloc(n + 1, sizeof *place);
    struct process *sorted = calloc(n + 1, sizeof *sorted);
    bool ok = order && place && sorted;
    for (uint32_t i = 0; ok && i < n; i++)
        order[i] = i;
    if (ok && n > 1)
        qsort_r(order, n, sizeof *order, compare_processes, model);
    for (uint32_t i = 0; ok && i < n; i++) {
        sorted[i] = model->processes[order[i]];
        place[order[i]] = i;
    }
    if (ok && model->n_threads)
        apply_order(model, sorted, place);
    free(order);
    free(place);
    free(sorted);
    return ok ? 0 : error_set(err, ERR_MEMORY, "out of memory");
}

/* The name that the process was called by, where that is a link to its program; else NULL. */
static const char *called_name(const struct process *process)
{
    const char *slash = strrchr(process->path, '/'), *called = process->exe;
    bool is_other = called && called[0] && called[0] != '-' && strcmp(called, slash ? slash + 1 : process->path) != 0;
    return is_other ? called : NULL;
}

void processes_choose_program(struct model *model, const double *sums)
{
    struct strtab paths = {0};
    double *by_path = calloc(model->n_processes + 1, sizeof *by_path);
    int64_t best = -1, first = -1;
    if (!model->program) /* else of the database that is extended */
        for (size_t i = 0; by_path && i < model->n_processes; i++) {
            int64_t path = model->processes[i].path ? strtab_intern(&paths, model->processes[i].path) : -1;
            if (path >= 0)
                by_path[path] += sums[i];
        }
    for (size_t i = 0; i < paths.n_strings; i++)
        if (best < 0 || by_path[i] > by_path[best])
            best = (int64_t)i;
    for (size_t i = 0; best >= 0 && i < model->n_processes; i++) {
        const char *path = model->processes[i].path;
        if (path && strcmp(path, paths.strings[best]) == 0 && (first < 0 || sums[i] > sums[first]))
            first = (int64_t)i;
    }
    if (first >= 0)
        model->program = strdup(paths.strings[best]);
    const char *called = first >= 0 && !model->command ? called_name(&model->processes[first]) : NULL;
    if (called)
        model->command = strdup(called);
    strtab_fini(&paths);
    free(by_path);
}
