/* SPDX-License-Identifier: BSD-3-Clause */
/* What a database holds already. */
#include "analysis/older.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/processes.h"

int older_init(struct older *older, const struct model *model, struct strtab *process_keys, struct error *err)
{
    bool ok = true;
    *older = (struct older){.n_threads = model->n_threads,
                            .n_scopes = model->n_scopes,
                            .n_metrics = model->n_metrics,
                            .n_numa_nodes = model->n_numa_nodes,
                            .has_samples = model->n_threads == 0 || model->has_samples};
    for (size_t i = 0; ok && i < model->n_processes; i++) {
        char key[PROCESS_KEY_BYTES];
        processes_key(&model->processes[i], key);
        ok = strtab_intern(process_keys, key) == (int64_t)i;
        if (model->processes[i].directory >= older->n_directories)
            older->n_directories = model->processes[i].directory + 1;
    }
    for (size_t t = 0; ok && t < model->n_threads; t++) {
        char key[40];
        (void)snprintf(key, sizeof key, "%x/%x", model->threads[t].process, model->threads[t].thread_id);
        ok = strtab_intern(&older->threads, key) >= 0;
    }
    return ok ? 0 : error_set(err, ERR_MEMORY, "out of memory, or the database names a process twice");
}

void older_fini(struct older *older)
{
    strtab_fini(&older->threads);
    free(older->directories);
}

/* True when the database has the profile, as one of this directory of its own. */
static bool is_known(const struct older *older, const struct strtab *process_keys, const char *path,
                     uint32_t directory)
{
    struct names_file id;
    char key[PROCESS_KEY_BYTES], host[16];
    if (names_parse(path, &id, NULL) != 0)
        return false;
    (void)snprintf(host, sizeof host, "%08x", id.host_id);
    const struct process process = {.exe = id.exe,
                                    .host_id = host,
                                    .rank = id.rank,
                                    .pid = id.pid,
                                    .generation = (uint32_t)id.generation,
                                    .directory = directory};
    processes_key(&process, key);
    int64_t known = strtab_find(process_keys, key);
    (void)snprintf(key, sizeof key, "%x/%x", (unsigned)known, id.thread);
    return known >= 0 && strtab_find(&older->threads, key) >= 0;
}

/* The database's number of a directory of the list: of one whose profiles it has, else a new one. */
static uint32_t number_of(const struct older *older, const struct strtab *process_keys, const struct profile_list *list,
                          size_t directory, uint32_t *next)
{
    for (uint32_t d = 0; d < older->n_directories; d++)
        for (size_t i = 0; i < list->n_profiles; i++)
            if (list->profiles[i].directory == directory && is_known(older, process_keys, list->profiles[i].path, d))
                return d;
    return (*next)++;
}

int64_t older_drop_known(struct older *older, const struct strtab *process_keys, struct profile_list *list)
{
    uint32_t next = older->n_directories;
    size_t n = 0, n_before = list->n_profiles;
    older->directories = calloc(list->directories.n_strings + 1, sizeof *older->directories);
    if (!older->directories)
        return -1;
    for (size_t d = 0; d < list->directories.n_strings; d++)
        older->directories[d] = number_of(older, process_keys, list, d, &next);
    for (size_t i = 0; i < n_before; i++) {
        if (is_known(older, process_keys, list->profiles[i].path, older->directories[list->profiles[i].directory]))
            free(list->profiles[i].path);
        else
            list->profiles[n++] = list->profiles[i];
    }
    list->n_profiles = n;
    return (int64_t)(n_before - n);
}

/* Key of a heap variable: the functions and lines of its allocation path, outermost first, as its scopes have them. */
static void append_path(const struct model *model, uint32_t scope, struct buf *key)
{
    size_t n = 0, n_kept = 0, capacity = 0;
    uint32_t *path = NULL, line = 0;
    for (uint32_t up = model->scopes[scope].parent; up && model->scopes[up].role != ROLE_HEAP;
         up = model->scopes[up].parent) {
        const struct scope *s = &model->scopes[up];
        bool is_function = s->kind == SCOPE_PROC || s->kind == SCOPE_INLINED;
        if (s->kind == SCOPE_CALL || (s->kind == SCOPE_PLACE && s->line))
            line = s->line;
        if (is_function && vec_reserve(&path, &capacity, 2 * n + 2, sizeof *path)) {
            path[2 * n] = s->name;
            path[2 * n++ + 1] = line;
        }
    }
    uint32_t *kept = calloc(2 * n + 2, sizeof *kept);
    for (size_t i = n; kept && i-- > 0;) {
        for (size_t j = 0; j < n_kept; j++)
            if (kept[2 * j] == path[2 * i])
                n_kept = j;
        memcpy(&kept[2 * n_kept++], &path[2 * i], 2 * sizeof *kept);
    }
    for (size_t i = 0; kept && i < n_kept; i++)
        buf_printf(key, "/%x:%x", kept[2 * i], kept[2 * i + 1]);
    free(kept);
    free(path);
}

/* The same text that variables.c makes. */
static void append_key(const struct model *model, const struct variable *variable, struct buf *key)
{
    const char *name = model_text(model, variable->name);
    size_t len = strlen(name);
    if (variable->class == CLASS_HEAP || variable->class == CLASS_MMAP) {
        buf_printf(key, "%d/%s", variable->class, name);
        if (variable->n_scopes)
            append_path(model, variable->scopes[0], key);
    } else if (variable->class == CLASS_UNKNOWN || variable->class == CLASS_UNATTRIBUTED ||
               variable->class == CLASS_WAITING) {
        buf_printf(key, "%d/%.*s", variable->class, len > 2 ? (int)len - 2 : 0, name + (len > 0)); /* without <> */
    } else {
        buf_printf(key, "%d/%x/%x/%x/%x", variable->class, variable->name, variable->module, variable->file,
                   variable->line);
    }
}

/* Copies a table [old_rows][old_columns] into a wider one. */
static bool widen(uint64_t **table, size_t old_rows, size_t old_columns, size_t rows, size_t columns)
{
    if (!*table || (rows == old_rows && columns == old_columns))
        return true;
    uint64_t *wider = calloc(rows * columns + 1, sizeof *wider);
    for (size_t i = 0; wider && i < old_rows; i++)
        memcpy(wider + i * columns, *table + i * old_columns, old_columns * sizeof *wider);
    if (!wider)
        return false;
    free(*table);
    *table = wider;
    return true;
}

bool older_variables(const struct older *older, struct build *build)
{
    struct model *model = build->model;
    bool ok = true;
    for (size_t v = 0; ok && v < model->n_variables; v++) {
        struct variable *variable = &model->variables[v];
        struct buf key = {0};
        append_key(model, variable, &key);
        if (!key.data || strtab_find(&build->keys, key.data) >= 0)
            buf_printf(&key, "#%zu", v); /* what cannot be told apart is not found again */
        ok = !key.failed && strtab_intern(&build->keys, key.data) == (int64_t)v &&
             widen(&variable->places, older->n_metrics, older->n_numa_nodes, model->n_metrics, model->n_numa_nodes) &&
             widen(&variable->samples, older->n_metrics, 1, model->n_metrics, 1);
        buf_fini(&key);
    }
    return ok;
}
