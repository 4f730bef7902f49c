/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that the runtime posts in its arena. The program may be corrupt, so every reference is checked against the
 * arena's bounds before it is followed. Ordinary code. */
#include "companion-serve.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "companion-recipes.h"
#include "fnbounds/modtab-cache.h"

/* The record behind ref when it lies whole inside the arena's data, else NULL. */
static const void *checked_record(const struct companion_process *process, uint32_t ref, size_t n_bytes)
{
    uint64_t offset = (uint64_t)ref * ARENA_UNIT;
    if (offset < process->data_offset || offset + n_bytes > process->size_bytes)
        return NULL;
    return (const char *)process->arena + offset;
}

/* The module behind ref with its path copied; NULL when the arena does not hold one. What was checked is not read
 * again: the program may change it meanwhile. */
static const struct arena_module *module_at(const struct companion_process *process, uint32_t ref,
                                            char path[ARENA_PATH_MAX])
{
    const struct arena_module *module = checked_record(process, ref, sizeof *module);
    uint32_t path_ref = module ? __atomic_load_n(&module->path, __ATOMIC_RELAXED) : 0;
    const struct arena_string *string = module ? checked_record(process, path_ref, sizeof *string) : NULL;
    uint32_t len_bytes = string ? __atomic_load_n(&string->len_bytes, __ATOMIC_RELAXED) : 0;
    if (!string || len_bytes >= ARENA_PATH_MAX || !checked_record(process, path_ref, sizeof *string + len_bytes))
        return NULL;
    memcpy(path, string->text, len_bytes);
    path[len_bytes] = '\0';
    return module;
}

static bool is_safe(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || (status.st_uid != 0 && status.st_uid != geteuid()))
        return false;
    bool is_sticky = S_ISDIR(status.st_mode) && status.st_mode & S_ISVTX;
    return (S_ISDIR(status.st_mode) || S_ISREG(status.st_mode)) &&
           (is_sticky || !(status.st_mode & (S_IWGRP | S_IWOTH)));
}

bool companion_is_safe_path(const char *path)
{
    char *real = strcmp(path, MODTAB_VDSO) ? realpath(path, NULL) : NULL;
    bool is_all_safe = real ? is_safe("/") && is_safe(real) : !strcmp(path, MODTAB_VDSO);
    for (char *slash = real ? strchr(real + 1, '/') : NULL; slash && is_all_safe; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        is_all_safe = is_safe(real);
        *slash = '/';
    }
    free(real);
    return is_all_safe;
}

/* A wrong path for a module that others use as well would cost them its recipes. */
static bool is_safe_module(const char *path, uint64_t wanted)
{
    uint64_t id;
    return companion_is_safe_path(path) && modtab_identify(path, &id, NULL) == 0 && id == wanted;
}

bool companion_serve_request(struct companion *c, struct companion_process *process,
                             const struct arena_request *request)
{
    char path[ARENA_PATH_MAX];
    const struct arena_module *record = module_at(process, request->module, path);
    if (!record)
        return true;
    /* Another user's memory and descriptors are not looked through for the file. */
    bool is_foreign = companion_process_is_foreign(process);
    const struct companion_module module = {.id = record->table_id,
                                            .start = record->start,
                                            .inode = record->inode,
                                            .pid = is_foreign ? 0 : process->peer_pid};
    if (request->kind == REQUEST_MODULE)
        return companion_job_add_module(c, process, &module, request->module, path) != NULL;
    if (request->kind == REQUEST_RECIPE && module.id && (!is_foreign || is_safe_module(path, module.id)))
        return companion_recipes_ask(c, &module, request->func, path);
    return true;
}
