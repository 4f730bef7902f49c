/* SPDX-License-Identifier: BSD-3-Clause */
/* Looking into an arena while its process fills it: see live.h. Like the collector, this code trusts no reference.
 * Ordinary code. */
#include "collect/live.h"

#include <stdlib.h>
#include <string.h>

#include "collect/profile.h"

static uint32_t load_small(const _Atomic uint32_t *value)
{
    return __atomic_load_n((const uint32_t *)value, __ATOMIC_ACQUIRE);
}

/* The arena's text may lack its end. */
static void copy_text(char *to, size_t n_to, const char *from, size_t n_from)
{
    size_t len = strnlen(from, n_from);
    len = len < n_to ? len : n_to - 1;
    memcpy(to, from, len);
    to[len] = '\0';
}

static void look_at_head(const struct view *view, struct live *live)
{
    const struct arena_header *header = view->header;
    copy_text(live->program, sizeof live->program, header->argv0, sizeof header->argv0);
    copy_text(live->exe, sizeof live->exe, header->exe, sizeof header->exe);
    copy_text(live->tables, sizeof live->tables, header->tables, sizeof header->tables);
    live->pid = header->pid;
    live->rank = load_small(&header->rank);
    live->state = load_small(&header->state);
    live->is_sampling = load_small(&header->is_sampling);
    live->start_ns = header->start_ns;
    live->used_bytes = (uint64_t)view->n_chunks * ARENA_CHUNK_BYTES;
    live->limit_bytes = (uint64_t)header->chunk_limit * ARENA_CHUNK_BYTES;
    live->n_blocks = view_count(&header->n_blocks_recorded);
    live->bytes = view_count(&header->bytes_recorded);
    live->n_events = view->n_events;
    live->address_event = -1;
    for (uint32_t i = 0; i < view->n_events; i++) {
        const struct arena_event *event = &header->events[i];
        copy_text(live->events[i].name, sizeof live->events[i].name, event->name, sizeof event->name);
        if (live->address_event < 0 && event->flags & EVENT_ADDRESS)
            live->address_event = (int)i;
    }
}

static void look_at_threads(const struct view *view, struct live *live)
{
    struct record_walk walk = {.kind = ARENA_THREADS, .record_bytes = sizeof(struct arena_thread)};
    const struct arena_thread *thread;
    while ((thread = view_next(view, &walk))) {
        live->n_threads += 1 + (uint64_t)load_small(&thread->n_merged);
        live->n_threads_live += __atomic_load_n(&thread->end_ns, __ATOMIC_RELAXED) == 0;
        for (uint32_t i = 0; i < view->n_events; i++) {
            live->events[i].n_taken += view_count(&thread->taken[i]);
            for (int fate = 0; fate < FATE_MAX; fate++)
                live->events[i].fates[fate] += view_count(&thread->fates[i][fate]);
        }
    }
}

static int compare_keys(const void *a, const void *b)
{
    const struct live_variable *x = a, *y = b;
    return x->var < y->var ? -1 : x->var > y->var;
}

static int compare_samples(const void *a, const void *b)
{
    const struct live_variable *x = a, *y = b;
    if (x->n_samples != y->n_samples)
        return x->n_samples > y->n_samples ? -1 : 1;
    return compare_keys(a, b);
}

/* Adds up the variables with equal keys, and sorts them by samples. */
static void merge(struct live *live)
{
    size_t n = 0;
    if (live->n_variables)
        qsort(live->variables, live->n_variables, sizeof *live->variables, compare_keys);
    for (size_t i = 0; i < live->n_variables; i++) {
        if (n && live->variables[n - 1].var == live->variables[i].var)
            live->variables[n - 1].n_samples += live->variables[i].n_samples;
        else
            live->variables[n++] = live->variables[i];
    }
    live->n_variables = n;
    if (n)
        qsort(live->variables, n, sizeof *live->variables, compare_samples);
}

static bool look_at_variables(const struct view *view, struct live *live)
{
    size_t capacity = 0;
    struct record_walk walk = {.kind = ARENA_HITS, .record_bytes = sizeof(struct arena_hit)};
    const struct arena_hit *hit;
    const struct arena_site *site;
    while (live->address_event >= 0 && (hit = view_next(view, &walk))) {
        uint64_t n = view_count(&hit->count), var = hit->var;
        if (hit->event != live->address_event || !n)
            continue;
        live->n_address_samples += n;
        if (var_key_kind(var) == VAR_NONE)
            continue;
        if (var_key_kind(var) == VAR_STACK)
            var = var_key(VAR_STACK, 0, var_key_b(var));
        if (var_key_kind(var) == VAR_SMALL)
            var = view_heap_of_site(view, var, &site);
        if (!vec_reserve(&live->variables, &capacity, live->n_variables + 1, sizeof *live->variables))
            return false;
        live->variables[live->n_variables++] = (struct live_variable){var, n};
    }
    merge(live);
    return true;
}

int live_look(const void *base, size_t size_bytes, bool with_variables, struct live *live, struct error *err)
{
    struct view view;
    *live = (struct live){0};
    int code = view_open(&view, base, size_bytes, err);
    if (code != 0)
        return code;
    look_at_head(&view, live);
    look_at_threads(&view, live);
    if (with_variables && !look_at_variables(&view, live)) {
        live_fini(live);
        code = error_set(err, ERR_MEMORY, "Out of memory for the variables of process %u.", view.header->pid);
    }
    view_close(&view);
    return code;
}

void live_fini(struct live *live)
{
    free(live->variables);
    live->variables = NULL;
    live->n_variables = 0;
}

/* Places of the frames from a node outwards; a sampled pc, which has no child, is no return address. */
static bool place_path(const struct view *view, uint32_t ref, enum arena_kind kind, struct live_variable_place *place)
{
    struct path path = {0};
    size_t capacity = 0;
    bool ok = path_of(view, ref, kind, &path);
    for (size_t i = 0; ok && i < path.n; i++) {
        const struct view_module *module = view_module_at(view, path.frames[i].module);
        const struct arena_node *node = view_record(view, path.frames[i].ref, kind, sizeof *node);
        bool is_call = kind == ARENA_ALLOC_NODES || (node && node->child);
        ok = vec_reserve(&place->frames, &capacity, place->n_frames + 1, sizeof *place->frames);
        if (ok)
            place->frames[place->n_frames++] = (struct live_place){
                module ? module->path : NULL, path.frames[i].ip - is_call - (module ? module->bias : 0)};
    }
    free(path.frames);
    return ok;
}

static bool fill_place(const struct view *view, uint64_t var, struct live_variable_place *place)
{
    const struct view_module *module;
    switch (var_key_kind(var)) {
    case VAR_HEAP:
    case VAR_MMAP:
        return place_path(view, var_key_b(var), ARENA_ALLOC_NODES, place);
    case VAR_STACK:
        return place_path(view, var_key_b(var), ARENA_NODES, place);
    case VAR_STATIC:
    case VAR_TLS:
        module = view_module_with_id(view, var_key_a(var));
        place->path = module ? module->path : NULL;
        place->table_id = module ? module->table_id : 0;
        return true;
    case VAR_FILE:
        place->path = view_string(view, var_key_b(var));
        return true;
    case VAR_UNKNOWN:
        place->reason = var_key_b(var) < UNKNOWN_REASONS ? placeholder_name(PLACEHOLDER_REASON + var_key_b(var)) : NULL;
        return true;
    default:
        return true;
    }
}

int live_place(const void *base, size_t size_bytes, uint64_t var, struct live_variable_place *place, struct error *err)
{
    struct view view;
    *place = (struct live_variable_place){0};
    int code = view_open(&view, base, size_bytes, err);
    if (code != 0)
        return code;
    if (!fill_place(&view, var, place)) {
        free(place->frames);
        *place = (struct live_variable_place){0};
        code = error_set(err, ERR_MEMORY, "Out of memory for the place of a variable.");
    }
    view_close(&view);
    return code;
}
