/* SPDX-License-Identifier: BSD-3-Clause */
/* The side file of a profile in memory: its words and its end. Reading and writing: objects-read.c, objects-write.c. */
#include "fmt/objects.h"

#include <stdlib.h>
#include <string.h>

#include "arena/arena.h"
#include "fmt/objects-names.h"

static const char *const kind_names[] = {"none",  "heap",        "mmap", "static", "tls",
                                         "stack", "stack-other", "file", "unknown"};
_Static_assert(sizeof kind_names / sizeof kind_names[0] == VAR_KINDS, "every kind of variable has a name");

const char *objects_kind_name(uint32_t kind)
{
    return kind < VAR_KINDS ? kind_names[kind] : NULL;
}

int objects_kind_of(const char *name)
{
    for (int i = 0; i < VAR_KINDS; i++)
        if (strcmp(kind_names[i], name) == 0)
            return i;
    return -1;
}

static void free_variable(struct objects_variable *variable)
{
    free(variable->name);
    free(variable->cpus);
    free(variable->stack_offsets);
    free(variable->samples);
    free(variable->latencies);
    for (size_t i = 0; i < variable->n_accesses; i++) {
        spread_fini(&variable->accesses[i].offsets);
        free(variable->accesses[i].lines);
    }
    free(variable->accesses);
}

void objects_fini(struct objects_file *file)
{
    char *const texts[] = {file->host, file->exe, file->plan, file->skid, file->state, file->topology};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free(texts[i]);
    for (size_t i = 0; i < file->n_events; i++) {
        free(file->events[i].metric);
        free(file->events[i].name);
    }
    free(file->events);
    free(file->note);
    for (size_t i = 0; i < file->n_variables; i++)
        free_variable(&file->variables[i]);
    free(file->variables);
    for (size_t i = 0; i < file->n_placeholders; i++)
        free(file->placeholders[i].name);
    free(file->placeholders);
    for (size_t i = 0; i < file->n_kernel; i++)
        free(file->kernel[i].name);
    free(file->kernel);
    for (size_t i = 0; i < file->n_jit; i++)
        free(file->jit[i].name);
    free(file->jit);
    for (size_t i = 0; i < file->n_regions; i++)
        free(file->regions[i].name);
    free(file->regions);
    for (size_t i = 0; i < file->n_modules; i++)
        free(file->modules[i].path);
    free(file->modules);
    *file = (struct objects_file){0};
}
