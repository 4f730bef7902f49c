/* SPDX-License-Identifier: BSD-3-Clause */
/* Looking into an arena while its process fills it: see live.h. Like the collector, this code trusts no reference.
 * Ordinary code. */
#include "collect/live.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/path.h"
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

/* What its owner has asked for. */
static void look_at_wishes(const struct arena_header *header, struct live *live)
{
    uint32_t phase = load_small(&header->phase);
    if (phase && phase <= ARENA_PHASES)
        copy_text(live->phase, sizeof live->phase, header->phases[phase - 1], sizeof header->phases[0]);
    live->is_paused = load_small(&header->is_paused) != 0;
    live->paused_ns = view_count(&header->paused_ns) + arena_pause_ns(header, clock_now_ns(CLOCK_MONOTONIC));
    live->slow_least = load_small(&header->slow_least) & 31;
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
    live->main_event = -1;
    for (uint32_t i = 0; i < view->n_events; i++) {
        const struct arena_event *event = &header->events[i];
        bool is_one_of_two = event->flags & EVENT_FILE && event->flags & EVENT_CALLS; /* read and written */
        const char *name = is_one_of_two ? event->metric : event->name;
        copy_text(live->events[i].name, sizeof live->events[i].name, name, sizeof event->name);
        bool gives_samples = !(event->flags & EVENT_CALLS);
        bool is_first = !live->has_addresses && event->flags & EVENT_ADDRESS;
        if (is_first || (live->main_event < 0 && gives_samples))
            live->main_event = (int)i;
        live->has_addresses |= is_first;
    }
    look_at_wishes(header, live);
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

int live_sum_compare(const void *a, const void *b)
{
    const struct live_sum *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->module < y->module ? -1 : x->module > y->module;
}

/* Adds up those with equal keys, and sorts them. */
static void merge(struct live_sums *sums)
{
    size_t n = 0;
    if (sums->n)
        qsort(sums->sums, sums->n, sizeof *sums->sums, live_sum_compare);
    for (size_t i = 0; i < sums->n; i++) {
        struct live_sum *last = n ? &sums->sums[n - 1] : NULL;
        if (last && live_sum_compare(last, &sums->sums[i]) == 0) {
            last->n += sums->sums[i].n;
            last->value += sums->sums[i].value;
        } else {
            sums->sums[n++] = sums->sums[i];
        }
    }
    sums->n = n;
}

#define MERGE_FROM 65536 /* sums, before those with equal keys become one; then whenever they have doubled */

struct adder {
    const struct view *view;
    const struct live *live;
    struct live_sums *sums;
    size_t merge_at;
    struct view_python python;
};

static bool add(struct adder *adder, const struct live_sum *sum)
{
    struct live_sums *sums = adder->sums;
    if (sums->n >= adder->merge_at) {
        merge(sums);
        adder->merge_at = sums->n * 2 > MERGE_FROM ? sums->n * 2 : MERGE_FROM;
    }
    if (!vec_reserve(&sums->sums, &sums->capacity, sums->n + 1, sizeof *sums->sums))
        return false;
    sums->sums[sums->n++] = *sum;
    return true;
}

/* The variable of a hit: of a stack without the place in the frame, of small blocks that of their site. */
static uint64_t variable_of(const struct view *view, uint64_t var)
{
    const struct arena_site *site;
    if (var_key_kind(var) == VAR_STACK)
        return var_key(VAR_STACK, 0, var_key_b(var));
    return var_key_kind(var) == VAR_SMALL ? view_heap_of_site(view, var, &site) : var;
}

/* A hit of a node of the sample tree of thread. */
static bool add_hit(struct adder *adder, const struct arena_hit *hit, const struct arena_node *node, uint32_t thread)
{
    const struct arena_event *event = &adder->view->header->events[hit->event];
    bool is_weighted = event->flags & EVENT_WEIGHTED, is_wait = event->source == SOURCE_BLOCKTIME;
    uint64_t count = view_count(&hit->count), weight = view_count(&hit->weight);
    struct live_sum sum = {.n = (double)count + (is_weighted ? 0 : (double)weight)};
    sum.value = (is_weighted ? (double)weight : sum.n) * event->scale;
    sum.kind = is_wait ? LIVE_WAIT : LIVE_CODE;
    const struct arena_node *shown = view_shown_node(adder->view, &adder->python, node);
    sum.key = shown->ip;
    sum.module = shown->module;
    if (!count || (!is_wait && hit->event != adder->live->main_event))
        return true;
    if (!add(adder, &sum))
        return false;
    if (is_wait)
        return true;
    sum.module = 0;
    sum.kind = LIVE_THREAD;
    sum.key = thread;
    bool ok = add(adder, &sum);
    sum.kind = LIVE_CLASS;
    sum.key = hit->class;
    ok = ok && add(adder, &sum);
    sum.kind = LIVE_VARIABLE;
    sum.key = variable_of(adder->view, hit->var);
    return ok && (var_key_kind(hit->var) == VAR_NONE || add(adder, &sum));
}

static bool add_samples(struct adder *adder)
{
    const struct view *view = adder->view;
    struct record_walk walk = {.kind = ARENA_NODES, .record_bytes = sizeof(struct arena_node)};
    const struct arena_node *node;
    struct arena_hit hit;
    while ((node = view_next(view, &walk))) {
        uint32_t thread = node->hits ? view_owner(view, walk.ref, ARENA_NODES, sizeof *node) : 0;
        for (uint32_t newer = 0, at = node->hits; view_hit(view, at, newer, &hit); newer = at, at = hit.next)
            if (hit.event < view->n_events && !add_hit(adder, &hit, node, thread))
                return false;
    }
    return true;
}

/* Blocks that are still there, by the path that allocated them. */
static bool add_blocks(struct adder *adder)
{
    const struct view *view = adder->view;
    struct record_walk walk = {.kind = ARENA_ALLOC_NODES, .record_bytes = sizeof(struct arena_node)};
    const struct arena_node *node;
    struct arena_hit hit;
    while ((node = view_next(view, &walk))) {
        struct live_sum sum = {.kind = LIVE_MEMORY};
        for (uint32_t newer = 0, at = node->hits; view_hit(view, at, newer, &hit); newer = at, at = hit.next) {
            double sign = hit.event == HIT_EVENT_ALLOC ? 1 : hit.event == HIT_EVENT_FREE ? -1 : 0;
            sum.n += sign * (double)view_count(&hit.count);
            sum.value += sign * (double)view_count(&hit.weight);
            if (hit.event == HIT_EVENT_ALLOC)
                sum.key = var_key(var_key_kind(hit.var), 0, walk.ref);
        }
        if (sum.key && sum.n > 0 && !add(adder, &sum))
            return false;
    }
    return true;
}

int live_look(const void *base, size_t size_bytes, struct live *live, struct live_sums *sums, struct error *err)
{
    struct view view;
    *live = (struct live){0};
    int code = view_open(&view, base, size_bytes, err);
    if (code != 0)
        return code;
    look_at_head(&view, live);
    look_at_threads(&view, live);
    if (sums) {
        struct adder adder = {.view = &view, .live = live, .sums = sums, .merge_at = MERGE_FROM};
        *sums = (struct live_sums){0};
        view_find_python(&view, &adder.python);
        if (add_samples(&adder) && add_blocks(&adder)) {
            merge(sums);
        } else {
            live_sums_fini(sums);
            code = error_set(err, ERR_MEMORY, "Out of memory for the sums of process %u.", view.header->pid);
        }
    }
    view_close(&view);
    return code;
}

void live_sums_fini(struct live_sums *sums)
{
    free(sums->sums);
    *sums = (struct live_sums){0};
}

/* The place of an address in a module. is_return: it follows a call. */
static struct live_place place_at(const struct view *view, const struct view_module *module, uint64_t ip,
                                  bool is_return)
{
    const char *path = module ? module->path : NULL;
    if (path && (strcmp(path, REGION_MODULE) == 0 || strcmp(path, PYTHON_MODULE) == 0))
        return (struct live_place){path, ip, view_string(view, (uint32_t)ip)};
    return (struct live_place){path, ip - is_return - (module ? module->bias : 0), NULL};
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
            place->frames[place->n_frames++] = place_at(view, module, path.frames[i].ip, is_call);
    }
    free(path.frames);
    return ok;
}

static bool fill_code(const struct view *view, const struct live_sum *sum, struct live_variable_place *place)
{
    const struct view_module *module = view_module_at(view, sum->module);
    place->frames = calloc(1, sizeof *place->frames);
    if (!place->frames)
        return false;
    place->frames[place->n_frames++] = place_at(view, module, sum->key, false);
    return true;
}

static void fill_thread(const struct view *view, uint32_t ref, struct live_variable_place *place)
{
    const struct arena_thread *thread = view_record(view, ref, ARENA_THREADS, sizeof *thread);
    if (thread)
        copy_text(place->comm, sizeof place->comm, thread->name, sizeof thread->name);
    place->thread = thread ? thread->id : 0;
}

static bool fill_variable(const struct view *view, uint64_t var, struct live_variable_place *place)
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

static bool fill_place(const struct view *view, const struct live_sum *sum, struct live_variable_place *place)
{
    if (sum->kind == LIVE_CODE || sum->kind == LIVE_WAIT)
        return fill_code(view, sum, place);
    if (sum->kind == LIVE_VARIABLE || sum->kind == LIVE_MEMORY)
        return fill_variable(view, sum->key, place);
    if (sum->kind == LIVE_THREAD)
        fill_thread(view, (uint32_t)sum->key, place);
    return true;
}

int live_place(const void *base, size_t size_bytes, const struct live_sum *sum, struct live_variable_place *place,
               struct error *err)
{
    struct view view;
    *place = (struct live_variable_place){0};
    int code = view_open(&view, base, size_bytes, err);
    if (code != 0)
        return code;
    if (!fill_place(&view, sum, place)) {
        free(place->frames);
        *place = (struct live_variable_place){0};
        code = error_set(err, ERR_MEMORY, "Out of memory for the place of a variable.");
    }
    view_close(&view);
    return code;
}
