/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding the profiles, merging each, and building the model from all. */
#include "analysis/load.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analysis/load-sides.h"
#include "analysis/perf-import.h"
#include "analysis/roles.h"
#include "fmt/names.h"
#include "fmt/pending.h"

struct profile_path {
    char *path;
    size_t directory; /* index into the directories: runs are never mixed up */
};

struct load {
    const struct load_options *options;
    struct model *model;
    struct symbolizer *symbolizer;
    struct raw_tree tree;
    struct load_sides sides;
    struct strtab directories;     /* real paths */
    struct profile_path *profiles; /* [n_profiles] */
    size_t n_profiles, cap_profiles;
    size_t *process_directory; /* [model->n_processes] */
    size_t cap_process_directory;
    struct strtab skipped;   /* why, one sentence each */
    int first_skip;          /* enum error_code */
    struct strtab temporary; /* directories made of files of perf */
};

/* Index of a directory, however it is spelled; -1 when out of memory. */
static int64_t find_directory(struct load *load, const char *directory)
{
    char *real = realpath(*directory ? directory : ".", NULL);
    int64_t index = strtab_intern(&load->directories, real ? real : directory);
    free(real);
    return index;
}

static int add_profile(struct load *load, const char *directory, const char *name, struct error *err)
{
    char *path = NULL;
    int64_t index = find_directory(load, directory);
    if (index < 0 || !vec_reserve(&load->profiles, &load->cap_profiles, load->n_profiles + 1, sizeof *load->profiles) ||
        asprintf(&path, "%s/%s", load->directories.strings[index], name) < 0)
        return error_set(err, ERR_MEMORY, "out of memory");
    load->profiles[load->n_profiles++] = (struct profile_path){path, (size_t)index};
    return 0;
}

static int add_file(struct load *load, const char *path, struct error *err)
{
    const char *slash = strrchr(path, '/');
    char *directory = slash ? strndup(path, (size_t)(slash - path + 1)) : strdup("");
    int code = directory ? add_profile(load, directory, slash ? slash + 1 : path, err)
                         : error_set(err, ERR_MEMORY, "out of memory");
    free(directory);
    return code;
}

static bool is_profile_name(const char *name)
{
    size_t len = strlen(name);
    return len > 7 && strcmp(name + len - 7, ".hpcrun") == 0 && name[0] != '.';
}

static int refuse_directory(const char *path, struct error *err)
{
    char data[4200];
    (void)snprintf(data, sizeof data, "%.4000s/data", path);
    if (perf_import_is_file(data))
        return error_set(err, ERR_UNSUPPORTED,
                         "%s is a directory of perf record --threads, which is not read; record into one file", path);
    return error_set(err, ERR_NOT_FOUND, "%s holds no profile (no file *.hpcrun), so it is no measurement directory",
                     path);
}

static int list_directory(struct load *load, const char *path, struct error *err)
{
    enum pending_state pending = pending_wait(path, load->options->wait_ms);
    const struct timespec step = {.tv_nsec = 50000000};
    /* a program that has just ended may still be noted as running for a moment */
    for (int tries = 0; pending == PENDING_RUNNING && tries < 20; tries++) {
        (void)nanosleep(&step, NULL);
        pending = pending_wait(path, load->options->wait_ms);
    }
    if (pending == PENDING_RUNNING)
        model_note(load->model, "A program that writes into %s still runs: this is what it had saved so far.", path);
    else if (pending == PENDING_WRITING)
        model_note(load->model, "%s was still being written after %d s: parts may be missing.", path,
                   load->options->wait_ms / 1000);
    DIR *directory = opendir(path);
    if (!directory)
        return error_set(err, ERR_IO, "%s cannot be read: %s", path, strerror(errno));
    int code = 0;
    size_t n_before = load->n_profiles;
    for (struct dirent *entry; code == 0 && (entry = readdir(directory));)
        if (is_profile_name(entry->d_name))
            code = add_profile(load, path, entry->d_name, err);
    (void)closedir(directory);
    if (code == 0 && load->n_profiles == n_before)
        code = refuse_directory(path, err);
    return code;
}

/* A file of perf becomes a measurement directory, which is removed when all is loaded. One that cannot be read is left
 * out like a profile. */
static int add_perf(struct load *load, const char *path, struct error *err)
{
    char directory[4096];
    struct error problem = {0};
    const char *parent = getenv("TMPDIR");
    (void)snprintf(directory, sizeof directory, "%.4000s/locus-perf-XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(directory))
        return error_set(err, ERR_IO, "%s cannot be made: %s", directory, strerror(errno));
    if (strtab_intern(&load->temporary, directory) < 0)
        return error_set(err, ERR_MEMORY, "out of memory");
    int code = perf_import(path, directory, load->model, &problem);
    if (code == 0)
        return list_directory(load, directory, err);
    if (code == ERR_MEMORY)
        return error_set(err, code, "%s", problem.text);
    if (load->skipped.n_strings == 0)
        load->first_skip = code;
    return strtab_intern(&load->skipped, problem.text) < 0 ? error_set(err, ERR_MEMORY, "out of memory") : 0;
}

static void remove_directory(const char *path)
{
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        (void)unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory)
        (void)closedir(directory);
    (void)rmdir(path);
}

static int compare_profiles(const void *a, const void *b)
{
    const struct profile_path *x = a, *y = b;
    if (x->directory != y->directory)
        return x->directory < y->directory ? -1 : 1;
    return strcmp(x->path, y->path);
}

/* A profile that was given twice counts once. */
static void drop_repeated(struct load *load)
{
    size_t n = 0;
    for (size_t i = 0; i < load->n_profiles; i++) {
        if (n > 0 && strcmp(load->profiles[n - 1].path, load->profiles[i].path) == 0)
            free(load->profiles[i].path);
        else
            load->profiles[n++] = load->profiles[i];
    }
    load->n_profiles = n;
}

static int list_profiles(struct load *load, const char *const *paths, size_t n_paths, struct error *err)
{
    for (size_t i = 0; i < n_paths; i++) {
        struct stat info;
        int code;
        if (stat(paths[i], &info) != 0)
            return error_set(err, ERR_IO, "%s cannot be read: %s", paths[i], strerror(errno));
        if (S_ISDIR(info.st_mode))
            code = list_directory(load, paths[i], err);
        else if (perf_import_is_file(paths[i]))
            code = add_perf(load, paths[i], err);
        else
            code = add_file(load, paths[i], err);
        if (code != 0)
            return code;
    }
    if (load->n_profiles)
        qsort(load->profiles, load->n_profiles, sizeof *load->profiles, compare_profiles);
    drop_repeated(load);
    return 0;
}

static uint32_t number(const char *text, int base)
{
    return text ? (uint32_t)strtoul(text, NULL, base) : 0;
}

/* The identity of a profile: by its file name, else by its header. */
static void identify(const char *path, const struct hpcrun_profile *profile, struct names_file *id)
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

/* Index of the process, added when new; RAW_NONE when out of memory. */
static uint32_t find_process(struct load *load, const struct names_file *id, size_t directory)
{
    struct model *model = load->model;
    char host[16];
    (void)snprintf(host, sizeof host, "%08x", id->host_id);
    for (size_t i = model->n_processes; i-- > 0;) {
        const struct process *process = &model->processes[i];
        if (load->process_directory[i] == directory && process->rank == id->rank && process->pid == id->pid &&
            process->generation == (uint32_t)id->generation && strcmp(process->host_id, host) == 0 &&
            strcmp(process->exe, id->exe) == 0)
            return (uint32_t)i;
    }
    if (!vec_reserve(&model->processes, &model->cap_processes, model->n_processes + 1, sizeof *model->processes) ||
        !vec_reserve(&load->process_directory, &load->cap_process_directory, model->n_processes + 1,
                     sizeof *load->process_directory))
        return RAW_NONE;
    load->process_directory[model->n_processes] = directory;
    model->processes[model->n_processes] = (struct process){.exe = strdup(id->exe),
                                                            .host_id = strdup(host),
                                                            .rank = id->rank,
                                                            .pid = id->pid,
                                                            .generation = (uint32_t)id->generation};
    return (uint32_t)model->n_processes++;
}

static int merge_profile(struct load *load, const struct profile_path *path, const struct hpcrun_profile *profile,
                         struct error *err)
{
    struct model *model = load->model;
    struct names_file id;
    struct raw_id *ids = NULL;
    if (!vec_reserve(&model->threads, &model->cap_threads, model->n_threads + 1, sizeof *model->threads))
        return error_set(err, ERR_MEMORY, "out of memory");
    identify(path->path, profile, &id);
    struct thread *thread = &model->threads[model->n_threads];
    memset(thread, 0, sizeof *thread);
    for (const struct hpcrun_profile *epoch = profile; epoch; epoch = epoch->next) {
        int code = raw_merge(&load->tree, load->symbolizer, model, epoch, path->path, thread, &ids, err);
        if (code != 0)
            return code;
        load_sides_add(&load->sides, path->path, epoch, ids);
        free(ids);
    }
    thread->thread_id = id.thread;
    thread->process = find_process(load, &id, path->directory);
    model->n_threads++;
    const char *program = hpcrun_pair_value(profile, "program-path");
    if (thread->process != RAW_NONE && !model->processes[thread->process].path)
        model->processes[thread->process].path = strdup(program && *program ? program : id.exe);
    return thread->process == RAW_NONE ? error_set(err, ERR_MEMORY, "out of memory") : 0;
}

static int read_profiles(struct load *load, struct error *err)
{
    size_t n_read = 0;
    for (size_t i = 0; i < load->n_profiles; i++) {
        struct hpcrun_profile profile = {0};
        struct error problem = {0};
        int code = hpcrun_read(load->profiles[i].path, &profile, &problem);
        if (code == 0)
            code = merge_profile(load, &load->profiles[i], &profile, &problem);
        hpcrun_fini(&profile);
        if (code == ERR_MEMORY)
            return error_set(err, code, "%s", problem.text);
        if (code != 0 && load->skipped.n_strings == 0)
            load->first_skip = code;
        if (code != 0)
            (void)strtab_intern(&load->skipped, problem.text);
        n_read += code == 0;
    }
    size_t n_skipped = load->skipped.n_strings;
    if (n_read == 0)
        return error_set(err, load->first_skip,
                         n_skipped == 1 ? "%s" : "None of the profiles can be read; the first: %s",
                         load->skipped.strings[0]);
    for (size_t i = 0; load->options->message && i < n_skipped; i++)
        load->options->message(load->options->context, load->skipped.strings[i]);
    return 0;
}

static int compare_processes(const void *a, const void *b, void *context)
{
    const struct load *load = context;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const struct process *x = &load->model->processes[i], *y = &load->model->processes[j];
    if (load->process_directory[i] != load->process_directory[j])
        return load->process_directory[i] < load->process_directory[j] ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    int order = strcmp(x->host_id, y->host_id);
    if (order == 0 && x->pid != y->pid)
        order = x->pid < y->pid ? -1 : 1;
    return order ? order : (int)x->generation - (int)y->generation;
}

static int compare_threads(const void *a, const void *b)
{
    const struct thread *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return x->thread_id < y->thread_id ? -1 : x->thread_id > y->thread_id;
}

/* Puts processes and threads in order and numbers the threads of each process from 0. */
static int order_threads(struct load *load, struct error *err)
{
    struct model *model = load->model;
    size_t n = model->n_processes;
    uint32_t *order = calloc(n + 1, sizeof *order), *place = calloc(n + 1, sizeof *place);
    struct process *sorted = calloc(n + 1, sizeof *sorted);
    bool ok = order && place && sorted;
    for (uint32_t i = 0; ok && i < n; i++)
        order[i] = i;
    if (ok && n > 1)
        qsort_r(order, n, sizeof *order, compare_processes, load);
    for (uint32_t i = 0; ok && i < n; i++) {
        sorted[i] = model->processes[order[i]];
        place[order[i]] = i;
    }
    if (ok) {
        memcpy(model->processes, sorted, n * sizeof *sorted);
        for (size_t i = 0; i < model->n_threads; i++)
            model->threads[i].process = place[model->threads[i].process];
        qsort(model->threads, model->n_threads, sizeof *model->threads, compare_threads);
        for (size_t i = 0; i < model->n_threads; i++)
            model->threads[i].id = model->processes[model->threads[i].process].n_threads++;
    }
    free(order);
    free(place);
    free(sorted);
    return ok ? 0 : error_set(err, ERR_MEMORY, "out of memory");
}

/* The program that the report is named after: of the process with the most samples. */
static void choose_program(struct model *model)
{
    int64_t metric = model_choose_metric(model, NULL);
    double *sums = calloc(model->n_processes + 1, sizeof *sums);
    size_t best = 0;
    for (size_t t = 0; sums && t < model->n_threads; t++)
        for (size_t i = 0; i < model->threads[t].n_cells; i++)
            if (model->threads[t].cells[i].metric == metric)
                sums[model->threads[t].process] += model->threads[t].cells[i].value;
    for (size_t i = 1; sums && i < model->n_processes; i++)
        if (sums[i] > sums[best])
            best = i;
    free(sums);
    if (model->n_processes && model->processes[best].path)
        model->program = strdup(model->processes[best].path);
}

static int build_all(struct load *load, struct error *err)
{
    struct source_text *source = source_text_new(load->options->search, load->options->replace);
    struct build build = {.model = load->model,
                          .tree = &load->tree,
                          .symbolizer = load->symbolizer,
                          .source = source,
                          .sides = &load->sides.rows};
    if (!source)
        return error_set(err, ERR_MEMORY, "out of memory");
    roles_assign(&load->tree, load->symbolizer);
    int code = build_model(&build, err);
    source_text_free(source);
    if (code == 0) {
        symbolizer_note_missing(load->symbolizer);
        choose_program(load->model);
    }
    return code;
}

static void load_fini(struct load *load)
{
    raw_fini(&load->tree);
    load_sides_fini(&load->sides);
    symbolizer_free(load->symbolizer);
    for (size_t i = 0; i < load->n_profiles; i++)
        free(load->profiles[i].path);
    free(load->profiles);
    free(load->process_directory);
    strtab_fini(&load->directories);
    strtab_fini(&load->skipped);
    for (size_t i = 0; i < load->temporary.n_strings; i++)
        remove_directory(load->temporary.strings[i]);
    strtab_fini(&load->temporary);
}

int load_measurements(const char *const *paths, size_t n_paths, const struct load_options *options, struct model *model,
                      size_t *n_skipped, struct error *err)
{
    struct load load = {.options = options, .model = model, .symbolizer = symbolizer_new(model)};
    load.sides.model = model;
    load.sides.symbolizer = load.symbolizer;
    int code = load.symbolizer ? 0 : error_set(err, ERR_MEMORY, "out of memory");
    if (code == 0)
        code = list_profiles(&load, paths, n_paths, err);
    if (code == 0)
        code = read_profiles(&load, err);
    if (code == 0)
        code = order_threads(&load, err);
    model->has_samples = code == 0 && load.sides.n_with_samples >= model->n_threads;
    if (code == 0)
        code = build_all(&load, err);
    *n_skipped = load.skipped.n_strings;
    load_fini(&load);
    return code;
}
