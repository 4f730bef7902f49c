/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists profiles: the order of their processes and threads, where measurements are that did not arrive, and the
 * profiles of the directories that were named. See profile-list.h. */
#include "analysis/load/profile-list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analysis/load/perf-import.h"
#include "base/input.h"
#include "base/path.h"
#include "base/scratch.h"
#include "measurement/pending.h"
#include "measurement/runs.h"

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

/* new_of [n_processes] of the old numbers. */
static void apply_order(struct model *model, const struct process *sorted, const uint32_t *new_of)
{
    memcpy(model->processes, sorted, model->n_processes * sizeof *sorted);
    for (size_t i = 0; i < model->n_processes; i++)
        model->processes[i].n_threads = 0;
    for (size_t i = 0; i < model->n_threads; i++)
        model->threads[i].process = new_of[model->threads[i].process];
    qsort(model->threads, model->n_threads, sizeof *model->threads, compare_threads);
    for (size_t i = 0; i < model->n_threads; i++)
        model->threads[i].id = model->processes[model->threads[i].process].n_threads++;
}

int processes_order(struct model *model, struct error *err)
{
    size_t n = model->n_processes;
    uint32_t *order = calloc(n + 1, sizeof *order), *new_of = calloc(n + 1, sizeof *new_of);
    struct process *sorted = calloc(n + 1, sizeof *sorted);
    bool ok = order && new_of && sorted;
    for (uint32_t i = 0; ok && i < n; i++)
        order[i] = i;
    if (ok && n > 1)
        qsort_r(order, n, sizeof *order, compare_processes, model);
    for (uint32_t i = 0; ok && i < n; i++) {
        sorted[i] = model->processes[order[i]];
        new_of[order[i]] = i;
    }
    if (ok && model->n_threads)
        apply_order(model, sorted, new_of);
    free(order);
    free(new_of);
    free(sorted);
    return ok ? 0 : error_memory(err);
}

/* The name that the process was started by, if that is a link to its program; else NULL. */
static const char *called_name(const struct process *process)
{
    const char *called = process->exe;
    bool is_other = called && called[0] && called[0] != '-' && strcmp(called, path_last(process->path)) != 0;
    return is_other ? called : NULL;
}

void processes_choose_program(struct model *model, const double *sums)
{
    struct strtab paths = {0};
    double *by_path = calloc(model->n_processes + 1, sizeof *by_path);
    int64_t best = -1, first = -1;
    if (!model->program) /* else it is that of the database being extended */
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

/* --- measurements that did not arrive --- */

/* Says where measurements were left: see profile-list.h. */

struct listing {
    const char *directory;
    struct strtab *phrases;
};

static void add_phrase(void *ctx, const char *place)
{
    const struct listing *listing = ctx;
    char text[2 * DETOUR_PATH_MAX + 128];
    int len_host = (int)strcspn(place, ":");
    (void)snprintf(text, sizeof text, "what is still in %s on %.*s ('hpcrun --collect %s' there brings it)",
                   place[len_host] ? place + len_host + 1 : place, len_host, place, listing->directory);
    (void)strtab_intern(listing->phrases, text);
}

/* Adds a phrase for each place that, according to the measurement directory, holds something for it. */
static void undelivered_list(const char *directory, struct strtab *phrases)
{
    struct listing listing = {directory, phrases};
    char text[DETOUR_PATH_MAX + 160];
    struct pending_trouble trouble;
    unsigned n_left = detour_count_left(directory);
    detour_each_pointer(directory, add_phrase, &listing);
    (void)snprintf(text, sizeof text,
                   "the records of %u process%s whose companion had died ('hpcrun --collect "
                   "%.4000s' recovers them)",
                   n_left, n_left == 1 ? "" : "es", directory);
    if (n_left)
        (void)strtab_intern(phrases, text);
    if (pending_find_trouble(directory, &trouble) && trouble.is_dead) {
        (void)snprintf(text, sizeof text,
                       "what process %ld records, which runs on without its companion process ('hpcrun --collect "
                       "%.4000s' recovers it once it has ended)",
                       (long)trouble.program, directory);
        (void)strtab_intern(phrases, text);
    }
}

struct unmeasured {
    unsigned n, n_idle;             /* n_idle: measured, but without samples */
    char first[256], why_idle[256]; /* why_idle: what the first of those says about that, if anything */
};

static void take_line(struct unmeasured *unmeasured, const char *line)
{
    static const char no_samples[] = ": no samples";
    const char *idle = strstr(line, no_samples), *end = idle ? idle + sizeof no_samples - 1 : NULL;
    unmeasured->n_idle += end && (*end == '\n' || *end == ':');
    if (end && *end == ':' && !unmeasured->why_idle[0])
        (void)snprintf(unmeasured->why_idle, sizeof unmeasured->why_idle, "%.*s", (int)strcspn(end + 1, "\n"), end + 1);
    bool is_unmeasured = strstr(line, " not measured: ") || strstr(line, ", which was not measured");
    if (!is_unmeasured || strstr(line, "outside of the fraction"))
        return;
    if (!unmeasured->n++)
        (void)snprintf(unmeasured->first, sizeof unmeasured->first, "%.*s", (int)strcspn(line, "\n"), line);
}

static void read_index(int dir_fd, const char *name, struct unmeasured *unmeasured)
{
    char *line = NULL;
    size_t n_line = 0;
    int fd = input_open(dir_fd, name, O_NOFOLLOW, NULL);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    while (file && getline(&line, &n_line, file) > 0)
        take_line(unmeasured, line);
    free(line);
    if (file)
        (void)fclose(file);
    else if (fd >= 0)
        (void)close(fd);
}

static unsigned unmeasured_read(const char *directory, struct unmeasured *unmeasured)
{
    DIR *dir = opendir(directory);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        if (!strncmp(entry->d_name, "index-", 6))
            read_index(dirfd(dir), entry->d_name, unmeasured);
    if (dir)
        (void)closedir(dir);
    char *const texts[] = {unmeasured->first, unmeasured->why_idle};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (char *c = texts[i]; *c; c++)
            *c = (unsigned char)*c < ' ' || *c == 127 ? '?' : *c;
    return unmeasured->n;
}

/* Notes how many processes were not measured, according to the indexes of the hosts, and why one of them was not.
 * Processes that the user left out do not count. */
static void undelivered_note_unmeasured(const char *directory, struct model *model)
{
    struct unmeasured unmeasured = {0};
    (void)unmeasured_read(directory, &unmeasured);
    if (unmeasured.n == 1)
        model_note(model, "A process was not measured: %s", unmeasured.first);
    else if (unmeasured.n)
        model_note(model, "%u processes were not measured, see index-* in %s; the first: %s", unmeasured.n, directory,
                   unmeasured.first);
}

struct found {
    char path[DETOUR_PATH_MAX];
};

static int take_first(void *ctx, const char *path)
{
    struct found *found = ctx;
    (void)snprintf(found->path, sizeof found->path, "%s", path);
    return 1;
}

/* The absolute path of the directory; if it is gone, its parent may still be there. */
static bool absolute(const char *directory, char path[DETOUR_PATH_MAX])
{
    char real[PATH_MAX];
    if (realpath(directory, real))
        return snprintf(path, DETOUR_PATH_MAX, "%s", real) > 0;
    if (directory[0] == '/')
        return snprintf(path, DETOUR_PATH_MAX, "%s", directory) > 0;
    return getcwd(real, sizeof real) && snprintf(path, DETOUR_PATH_MAX, "%s/%s", real, directory) > 0;
}

/* Records of the scheduler, which are no samples. */
static bool has_sched(const char *directory)
{
    struct names_file *files = NULL;
    struct error ignored;
    size_t n = 0;
    bool has_any = names_list(directory, "sched", &files, &n, &ignored) == 0 && n > 0;
    free(files);
    return has_any;
}

/* Whether hpcrun has begun a run there. */
static bool was_begun(const char *directory)
{
    struct strtab ids = {0};
    bool was = runs_list(directory, &ids, NULL) == 0 && ids.n_strings > 0;
    strtab_fini(&ids);
    return was;
}

/* What to add about a directory without profiles: where something for it was found on this node. text is empty when
 * there is nothing. */
static void undelivered_hint(const char *directory, char *text, size_t n_text)
{
    char path[DETOUR_PATH_MAX];
    struct found found = {""};
    struct unmeasured unmeasured = {0};
    struct pending_trouble trouble;
    const char *local = getenv("HPCRUN_LOCAL");
    text[0] = '\0';
    if (detour_count_left(directory)) {
        (void)snprintf(text, n_text,
                       "; the companion process had died, but 'hpcrun --collect %s' recovers what its "
                       "processes left",
                       directory);
        return;
    }
    if (pending_find_trouble(directory, &trouble) && trouble.is_dead) {
        (void)snprintf(
            text, n_text,
            "; its companion process has ended, and the program (process %ld) runs on: it leaves its records "
            "there when it ends, and then 'hpcrun --collect %s' makes files of them",
            (long)trouble.program, directory);
        return;
    }
    if (!absolute(directory, path))
        return;
    for (size_t len = strlen(path); len > 1 && path[len - 1] == '/'; len--)
        path[len - 1] = '\0';
    if (!(local && local[0] && detour_each(local, path, take_first, &found)))
        (void)detour_each(detour_default_place(), path, take_first, &found);
    unsigned n_unmeasured = found.path[0] ? 0 : unmeasured_read(directory, &unmeasured);
    if (n_unmeasured) {
        (void)snprintf(text, n_text, "; %s", unmeasured.first);
        return;
    }
    if (has_sched(directory)) {
        (void)snprintf(text, n_text, "; it has scheduler records, which 'hpcquery sched %s' shows", directory);
        return;
    }
    if (unmeasured.why_idle[0]) {
        (void)snprintf(text, n_text, "; a process has no samples:%s; choose a shorter one, such as -e EADDR@200us",
                       unmeasured.why_idle);
        return;
    }
    if (unmeasured.n_idle) {
        (void)snprintf(text, n_text,
                       "; %s of the program ran too short for a sample, or did nothing that its events record",
                       unmeasured.n_idle == 1 ? "the process" : "all processes");
        return;
    }
    if (!found.path[0] && pending_has_stale(directory))
        (void)snprintf(text, n_text, "; the companion process died before anything was written");
    if (found.path[0])
        (void)snprintf(text, n_text, "; what was measured for it is in %s: 'hpcrun --collect %s' brings it there",
                       found.path, directory);
    if (!text[0] && was_begun(directory))
        (void)snprintf(text, n_text, "; its program ended before it could be measured, as where a library is missing");
}

/* --- the list --- */

/* Finds the profiles. */

/* Index of a directory, whatever its spelling; -1 when out of memory. */
static int64_t find_directory(struct profile_list *list, const char *directory)
{
    char *real = realpath(*directory ? directory : ".", NULL);
    int64_t index = strtab_intern(&list->directories, real ? real : directory);
    free(real);
    return index;
}

static int add_profile(struct profile_list *list, const char *directory, const char *name, struct error *err)
{
    char *path = NULL;
    int64_t index = find_directory(list, directory);
    if (index < 0 || !vec_reserve(&list->profiles, &list->cap_profiles, list->n_profiles + 1, sizeof *list->profiles) ||
        asprintf(&path, "%s/%s", list->directories.strings[index], name) < 0)
        return error_memory(err);
    list->profiles[list->n_profiles++] = (struct profile_path){path, (size_t)index};
    return 0;
}

static int add_file(struct profile_list *list, const char *path, struct error *err)
{
    const char *slash = strrchr(path, '/');
    char *directory = slash ? strndup(path, (size_t)(slash - path + 1)) : strdup("");
    int code = directory ? add_profile(list, directory, slash ? slash + 1 : path, err) : error_memory(err);
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
    char data[4200], hint[512];
    (void)snprintf(data, sizeof data, "%.4000s/data", path);
    if (perf_import_is_file(data))
        return error_set(err, ERR_UNSUPPORTED,
                         "%s is a directory of perf record --threads, which is not read; record into one file", path);
    undelivered_hint(path, hint, sizeof hint);
    return error_set(err, ERR_NOT_FOUND, "%s holds no profile (no file *.hpcrun)%s", path,
                     hint[0] ? hint : ", so it is not a measurement directory");
}

static int list_directory(struct profile_list *list, const char *path, struct error *err)
{
    char from[4200];
    bool is_copy = pending_is_copy(path, from, sizeof from); /* nobody writes into it */
    enum pending_state pending = is_copy ? PENDING_RUNNING : pending_wait(path, list->wait_ms);
    const struct timespec step = {.tv_nsec = 50000000};
    /* a program that has just ended may still be noted as running for a moment */
    for (int tries = 0; pending == PENDING_RUNNING && !is_copy && tries < 20; tries++) {
        (void)nanosleep(&step, NULL);
        pending = pending_wait(path, list->wait_ms);
    }
    if (pending == PENDING_RUNNING)
        model_note(list->model, "A program that writes into %s still runs: this is what it had saved so far.",
                   is_copy ? from : path);
    else if (pending == PENDING_WRITING)
        model_note(list->model, "%s was still being written after %d s: parts may be missing.", path,
                   list->wait_ms / 1000);
    DIR *directory = opendir(path);
    if (!directory)
        return error_set(err, ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    int code = 0;
    size_t n_before = list->n_profiles;
    for (struct dirent *entry; code == 0 && (entry = readdir(directory));)
        if (is_profile_name(entry->d_name))
            code = add_profile(list, path, entry->d_name, err);
    (void)closedir(directory);
    if (code == 0 && list->n_profiles == n_before)
        code = refuse_directory(path, err);
    if (code == 0)
        code = runs_list(path, &list->model->runs, err);
    if (pending == PENDING_NONE)
        undelivered_list(path, &list->skipped);
    undelivered_note_unmeasured(path, list->model);
    return code;
}

/* Turns a perf file into a measurement directory, which is removed when all is loaded. A file that cannot be read is
 * left out like a profile. */
static int add_perf(struct profile_list *list, const char *path, struct error *err)
{
    char directory[4096];
    struct error problem = {0};
    int code = scratch_make(directory, sizeof directory, "locus-perf", err);
    if (code != 0)
        return code;
    if (strtab_intern(&list->temporary, directory) < 0)
        return error_memory(err);
    code = perf_import(path, directory, list->model, &problem);
    if (code == 0)
        return list_directory(list, directory, err);
    if (code == ERR_MEMORY)
        return error_set(err, code, "%s", problem.text);
    return profile_list_skip(list, &problem, err);
}

static int compare_profiles(const void *a, const void *b)
{
    const struct profile_path *x = a, *y = b;
    if (x->directory != y->directory)
        return x->directory < y->directory ? -1 : 1;
    return strcmp(x->path, y->path);
}

/* Drops profiles that were given twice. */
static void drop_repeated(struct profile_list *list)
{
    size_t n = 0;
    for (size_t i = 0; i < list->n_profiles; i++) {
        if (n > 0 && strcmp(list->profiles[n - 1].path, list->profiles[i].path) == 0)
            free(list->profiles[i].path);
        else
            list->profiles[n++] = list->profiles[i];
    }
    list->n_profiles = n;
}

static int refuse_path(const char *path, struct error *err)
{
    int reason = errno;
    char hint[512];
    undelivered_hint(path, hint, sizeof hint);
    return error_set(err, ERR_IO, "%s: cannot be read: %s%s", path, strerror(reason), hint);
}

int profile_list_make(struct profile_list *list, const char *const *paths, size_t n_paths, struct error *err)
{
    for (size_t i = 0; i < n_paths; i++) {
        struct stat info;
        int code;
        if (stat(paths[i], &info) != 0)
            return refuse_path(paths[i], err);
        if (S_ISDIR(info.st_mode))
            code = list_directory(list, paths[i], err);
        else if (perf_import_is_file(paths[i]))
            code = add_perf(list, paths[i], err);
        else
            code = add_file(list, paths[i], err);
        if (code != 0)
            return code;
    }
    if (list->n_profiles)
        qsort(list->profiles, list->n_profiles, sizeof *list->profiles, compare_profiles);
    drop_repeated(list);
    return 0;
}

int profile_list_skip(struct profile_list *list, const struct error *problem, struct error *err)
{
    if (list->skipped.n_strings == 0)
        list->first_skip = problem->code;
    return strtab_intern(&list->skipped, problem->text) < 0 ? error_memory(err) : 0;
}

void profile_list_fini(struct profile_list *list)
{
    for (size_t i = 0; i < list->n_profiles; i++)
        free(list->profiles[i].path);
    free(list->profiles);
    strtab_fini(&list->directories);
    strtab_fini(&list->skipped);
    for (size_t i = 0; i < list->temporary.n_strings; i++)
        scratch_remove(list->temporary.strings[i]);
    strtab_fini(&list->temporary);
}
