/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding the profiles. */
#include "analysis/profile-list.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analysis/left-over.h"
#include "analysis/perf-import.h"
#include "base/scratch.h"
#include "measurement/pending.h"
#include "measurement/runs.h"

/* Index of a directory, however it is spelled; -1 when out of memory. */
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
        return error_set(err, ERR_MEMORY, "out of memory");
    list->profiles[list->n_profiles++] = (struct profile_path){path, (size_t)index};
    return 0;
}

static int add_file(struct profile_list *list, const char *path, struct error *err)
{
    const char *slash = strrchr(path, '/');
    char *directory = slash ? strndup(path, (size_t)(slash - path + 1)) : strdup("");
    int code = directory ? add_profile(list, directory, slash ? slash + 1 : path, err)
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
    char data[4200], hint[512];
    (void)snprintf(data, sizeof data, "%.4000s/data", path);
    if (perf_import_is_file(data))
        return error_set(err, ERR_UNSUPPORTED,
                         "%s is a directory of perf record --threads, which is not read; record into one file", path);
    left_over_hint(path, hint, sizeof hint);
    return error_set(err, ERR_NOT_FOUND, "%s holds no profile (no file *.hpcrun), so it is no measurement directory%s",
                     path, hint);
}

static int list_directory(struct profile_list *list, const char *path, struct error *err)
{
    enum pending_state pending = pending_wait(path, list->wait_ms);
    const struct timespec step = {.tv_nsec = 50000000};
    /* a program that has just ended may still be noted as running for a moment */
    for (int tries = 0; pending == PENDING_RUNNING && tries < 20; tries++) {
        (void)nanosleep(&step, NULL);
        pending = pending_wait(path, list->wait_ms);
    }
    if (pending == PENDING_RUNNING)
        model_note(list->model, "A program that writes into %s still runs: this is what it had saved so far.", path);
    else if (pending == PENDING_WRITING)
        model_note(list->model, "%s was still being written after %d s: parts may be missing.", path,
                   list->wait_ms / 1000);
    DIR *directory = opendir(path);
    if (!directory)
        return error_set(err, ERR_IO, "%s cannot be read: %s", path, strerror(errno));
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
        left_over_list(path, &list->skipped);
    left_over_note_unmeasured(path, list->model);
    return code;
}

/* A file of perf becomes a measurement directory, which is removed when all is loaded. One that cannot be read is left
 * out like a profile. */
static int add_perf(struct profile_list *list, const char *path, struct error *err)
{
    char directory[4096];
    struct error problem = {0};
    int code = scratch_make(directory, sizeof directory, "locus-perf", err);
    if (code != 0)
        return code;
    if (strtab_intern(&list->temporary, directory) < 0)
        return error_set(err, ERR_MEMORY, "out of memory");
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

/* A profile that was given twice counts once. */
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
    left_over_hint(path, hint, sizeof hint);
    return error_set(err, ERR_IO, "%s cannot be read: %s%s", path, strerror(reason), hint);
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
    return strtab_intern(&list->skipped, problem->text) < 0 ? error_set(err, ERR_MEMORY, "out of memory") : 0;
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
