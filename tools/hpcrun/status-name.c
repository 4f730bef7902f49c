/* SPDX-License-Identifier: BSD-3-Clause */
/* Names for the variables of a process that still runs, as its report will have them, as far as its modules can be read
 * here. */
#include "status.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/build/placeholders.h"
#include "analysis/build/heap-name.h"
#include "fnbounds/modtab-cache.h"

#define KEYS_MAX 64 /* the rest is small change, and debug information takes its time */

struct namer {
    const struct status_process *process;
    struct model model;
    struct symbolizer *symbolizer;
    struct source_text *source;
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Appends the functions of a place, innermost first. */
static bool push_place(struct namer *namer, const struct live_place *place, struct path_frame **path, size_t *n,
                       size_t *capacity)
{
    const struct code_frame *frames;
    uint32_t module = symbolizer_module(namer->symbolizer, place->path ? place->path : "");
    size_t n_frames = symbolizer_lookup(namer->symbolizer, module, place->vaddr, &frames);
    if (!vec_reserve(path, capacity, *n + n_frames, sizeof **path))
        return false;
    for (size_t i = n_frames; i-- > 0;)
        (*path)[(*n)++] =
            (struct path_frame){.code = frames[i], .module = module, .vaddr = place->vaddr, .inlined = i > 0};
    return true;
}

static void set_site(const struct namer *namer, const struct code_frame *code, struct status_variable *variable)
{
    const char *function = symbolizer_text(namer->symbolizer, code->function);
    const char *file = symbolizer_text(namer->symbolizer, code->file);
    if (code->line)
        (void)snprintf(variable->site, sizeof variable->site, "%.150s (%.120s:%u)", function, base_name(file),
                       code->line);
    else
        (void)snprintf(variable->site, sizeof variable->site, "%.150s", function);
}

static void name_heap(struct namer *namer, const struct live_variable_place *place, struct status_variable *variable)
{
    struct path_frame *path = NULL;
    size_t n = 0, capacity = 0;
    struct heap_name name;
    for (size_t i = 0; i < place->n_frames; i++)
        if (!push_place(namer, &place->frames[i], &path, &n, &capacity))
            break;
    if (n) {
        heap_name_find(namer->symbolizer, namer->source, path, n, &name);
        (void)snprintf(variable->name, sizeof variable->name, "%s", name.name);
        set_site(namer, &path[name.site].code, variable);
    }
    free(path);
}

static void name_stack(struct namer *namer, const struct live_variable_place *place, struct status_variable *variable)
{
    struct path_frame *path = NULL;
    size_t n = 0, capacity = 0;
    if (place->n_frames && push_place(namer, &place->frames[0], &path, &n, &capacity) && n)
        (void)snprintf(variable->name, sizeof variable->name, "stack of %.150s",
                       symbolizer_text(namer->symbolizer, path[n - 1].code.function));
    free(path);
}

/* The table by which the process itself names its variables. */
static void name_static(const struct namer *namer, const struct live_variable_place *place, uint64_t var,
                        struct status_variable *variable)
{
    const struct modtab_header *table;
    struct error err;
    bool is_tls = var_key_kind(var) == VAR_TLS;
    uint32_t index = var_key_b(var);
    (void)snprintf(variable->site, sizeof variable->site, "%.300s", place->path ? base_name(place->path) : "");
    if (!place->table_id || modtab_map(namer->process->live.tables, place->table_id, &table, &err) != 0)
        return;
    if (index < (is_tls ? table->n_tls_syms : table->n_syms)) {
        const struct modtab_sym *symbol = (is_tls ? modtab_tls_syms(table) : modtab_syms(table)) + index;
        (void)snprintf(variable->name, sizeof variable->name, "%.190s", modtab_string(table, symbol->name));
    }
    modtab_unmap(table);
}

static void name_unknown(const struct live_variable_place *place, struct status_variable *variable)
{
    char reason[128] = "";
    if (place->reason)
        (void)roles_reason(place->reason, reason, sizeof reason);
    (void)snprintf(variable->name, sizeof variable->name, "<%.120s>", reason);
}

static void name_one(struct namer *namer, const struct live_variable *from, struct status_variable *variable)
{
    static const enum variable_class classes[VAR_KINDS] = {
        [VAR_HEAP] = CLASS_HEAP, [VAR_MMAP] = CLASS_MMAP,   [VAR_STATIC] = CLASS_STATIC,
        [VAR_TLS] = CLASS_TLS,   [VAR_STACK] = CLASS_STACK, [VAR_STACK_OTHER] = CLASS_STACK,
        [VAR_FILE] = CLASS_FILE, [VAR_UNKNOWN] = CLASS_UNKNOWN};
    const struct status_process *process = namer->process;
    enum var_kind kind = var_key_kind(from->var);
    struct live_variable_place place;
    struct error err;
    *variable = (struct status_variable){.n_samples = from->n_samples, .name = "?", .class = "unknown"};
    if (kind >= VAR_KINDS || live_place(process->arena, process->size_bytes, from->var, &place, &err) != 0)
        return;
    variable->class = model_class_name(classes[kind]);
    if (kind == VAR_HEAP || kind == VAR_MMAP)
        name_heap(namer, &place, variable);
    else if (kind == VAR_STACK)
        name_stack(namer, &place, variable);
    else if (kind == VAR_STACK_OTHER)
        (void)snprintf(variable->name, sizeof variable->name, "stack of another thread");
    else if (kind == VAR_FILE)
        (void)snprintf(variable->name, sizeof variable->name, "%.190s", place.path ? place.path : "?");
    else if (kind == VAR_UNKNOWN)
        name_unknown(&place, variable);
    else
        name_static(namer, &place, from->var, variable);
    free(place.frames);
}

static int compare(const void *a, const void *b)
{
    const struct status_variable *x = a, *y = b;
    if (x->n_samples != y->n_samples)
        return x->n_samples > y->n_samples ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Threads have their own keys for one allocation path. */
static size_t add(struct status_variable *variables, size_t n, const struct status_variable *variable)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(variables[i].name, variable->name) == 0 && strcmp(variables[i].site, variable->site) == 0 &&
            variables[i].class == variable->class) {
            variables[i].n_samples += variable->n_samples;
            return n;
        }
    }
    variables[n] = *variable;
    return n + 1;
}

static size_t name_all(struct namer *namer, struct status_variable *all)
{
    size_t n = 0;
    const struct live *live = &namer->process->live;
    for (size_t i = 0; i < live->n_variables && i < KEYS_MAX; i++) {
        struct status_variable variable;
        name_one(namer, &live->variables[i], &variable);
        n = add(all, n, &variable);
    }
    if (n)
        qsort(all, n, sizeof *all, compare);
    return n;
}

size_t status_name(const struct status_process *process, struct status_variable *variables, size_t n_max)
{
    struct namer namer = {.process = process};
    struct status_variable *all = calloc(KEYS_MAX, sizeof *all);
    struct error err;
    size_t n = 0;
    bool has_model = model_init(&namer.model, &err) == 0;
    namer.symbolizer = has_model ? symbolizer_new(&namer.model) : NULL;
    namer.source = source_text_new(NULL, NULL);
    if (all && namer.symbolizer && namer.source)
        n = name_all(&namer, all);
    n = n < n_max ? n : n_max;
    if (n)
        memcpy(variables, all, n * sizeof *all);
    source_text_free(namer.source);
    symbolizer_free(namer.symbolizer);
    if (has_model)
        model_fini(&namer.model);
    free(all);
    return n;
}
