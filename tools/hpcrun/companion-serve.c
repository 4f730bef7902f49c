/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that the runtime posts in its arena. The program may be corrupt, so every reference is checked against the
 * arena's bounds before it is followed. Ordinary code. */
#include "companion-serve.h"

#include <string.h>

/* The record behind ref when it lies whole inside the arena's data, else NULL. */
static const void *checked_record(const struct companion_process *process, uint32_t ref, size_t n_bytes)
{
    uint64_t offset = (uint64_t)ref * ARENA_UNIT;
    if (offset < process->arena->chunk_data_offset || offset + n_bytes > process->size_bytes)
        return NULL;
    return (const char *)process->arena + offset;
}

/* Path of the module, copied; false when the arena does not hold one. */
static bool module_path(const struct companion_process *process, uint32_t ref, char path[ARENA_PATH_MAX])
{
    const struct arena_module *module = checked_record(process, ref, sizeof *module);
    if (!module)
        return false;
    const struct arena_string *string = checked_record(process, module->path, sizeof *string);
    if (!string || string->len_bytes >= ARENA_PATH_MAX ||
        !checked_record(process, module->path, sizeof *string + string->len_bytes))
        return false;
    memcpy(path, string->text, string->len_bytes);
    path[string->len_bytes] = '\0';
    return path[0] == '/';
}

void companion_serve_request(struct companion *c, const struct companion_process *process,
                             const struct arena_request *request)
{
    char path[ARENA_PATH_MAX];
    if (!module_path(process, request->module, path))
        return;
    if (request->kind == REQUEST_MODULE)
        (void)companion_job_add(c, JOB_MODULE, NULL, path);
}
