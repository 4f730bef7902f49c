/* SPDX-License-Identifier: BSD-3-Clause */
/* From hits to values: every sample goes to its call path and, when its event yields addresses, below its variable as
 * well, so that the totals of both trees agree. Ordinary code. */
#include <stdlib.h>
#include <string.h>

#include "collect/collect-internal.h"

static void add_stack_offset(struct thread *thread, struct variable *variable, uint64_t var, uint64_t n_samples)
{
    struct objects_variable *row = &variable->row;
    int64_t offset_bytes = (int64_t)var_key_a(var) * 16;
    for (size_t i = 0; i < row->n_stack_offsets; i++) {
        if (row->stack_offsets[2 * i] == offset_bytes) {
            row->stack_offsets[2 * i + 1] += (int64_t)n_samples;
            return;
        }
    }
    if (!vec_reserve(&row->stack_offsets, &variable->cap_offsets, 2 * row->n_stack_offsets + 2,
                     sizeof *row->stack_offsets)) {
        thread->tree.failed = true;
        return;
    }
    row->stack_offsets[2 * row->n_stack_offsets] = offset_bytes;
    row->stack_offsets[2 * row->n_stack_offsets++ + 1] = (int64_t)n_samples;
}

static void describe_hit(struct thread *thread, const struct declaration *declaration, const struct arena_hit *hit,
                         const struct hit_values *values)
{
    if (declaration->variable == TREE_NONE)
        return;
    struct variable *variable = &thread->variables[declaration->variable];
    uint64_t count = hit->count;
    thread_describe_samples(thread, variable, hit, values);
    thread_describe_offsets(thread, declaration->variable, hit);
    if (hit->event != thread->process->first_address_event)
        return;
    if (hit->class < sizeof variable->row.classes / sizeof variable->row.classes[0])
        variable->row.classes[hit->class] += count;
    if (hit->flags & HIT_FLAG_INEXACT)
        variable->row.n_inexact += count;
    if (var_key_kind(hit->var) == VAR_STACK && hit->n_offsets == 0)
        add_stack_offset(thread, variable, hit->var, count);
}

static void add_values(struct thread *thread, uint32_t node, const struct hit_values *values)
{
    for (size_t i = 0; i < values->n; i++)
        tree_add(&thread->tree, node, values->columns[i], values->values[i]);
}

/* For the metric table: how many samples the columns hold. */
static void count_values(struct thread *thread, const struct hit_values *values, uint64_t n_samples)
{
    for (size_t i = 0; i < values->n; i++) {
        thread->columns[values->columns[i]].n_samples += n_samples;
        thread->columns[values->columns[i]].total += values->values[i];
    }
}

/* *leaf: the path's node in the ordinary tree, TREE_NONE until there is something to put there. */
static void take_hit(struct thread *thread, const struct arena_hit *hit, uint32_t *leaf)
{
    struct process *process = thread->process;
    struct hit_values values;
    thread_weigh_hit(thread, hit, &values);
    if (!values.n)
        return;
    if (*leaf == TREE_NONE)
        *leaf =
            path_insert(thread, &thread->path, thread->path.is_partial ? TREE_PARTIAL : TREE_ROOT, HPCRUN_NODE_LEAF);
    add_values(thread, *leaf, &values);
    count_values(thread, &values, hit->count);
    if (!(process->view->header->events[hit->event].flags & EVENT_ADDRESS))
        return;
    const struct declaration *declaration = thread_declare(thread, hit->var, (enum hit_class)hit->class);
    if (!declaration)
        return;
    describe_hit(thread, declaration, hit, &values);
    uint32_t node = path_insert(thread, &thread->path, declaration->base, HPCRUN_NODE_MEMACCESS);
    add_values(thread, node, &values);
}

void thread_take_node(struct thread *thread, uint32_t ref, const struct arena_node *node)
{
    struct arena_hit hit;
    uint32_t leaf = TREE_NONE;
    const struct view *view = thread->process->view;
    if (!view_hit(view, node->hits, 0, &hit) || !path_of(view, ref, ARENA_NODES, &thread->path))
        return;
    /* A new hit is put before the older ones: references fall along the list. */
    for (uint32_t hit_ref = node->hits;;) {
        take_hit(thread, &hit, &leaf);
        uint32_t next = hit.next;
        if (!view_hit(view, next, hit_ref, &hit))
            break;
        hit_ref = next;
    }
}

static void take_place(struct thread *thread, const struct arena_place *place)
{
    int column = place->event < ARENA_EVENTS_MAX ? thread->process->column_of_event[place->event] : -1;
    bool has_variable = var_key_kind(place->var) != VAR_NONE && column >= 0 &&
                        thread->process->view->header->events[place->event].flags & EVENT_ADDRESS;
    const struct declaration *declaration =
        has_variable && place->count ? thread_declare(thread, place->var, HIT_MEMORY) : NULL;
    if (!declaration || declaration->variable == TREE_NONE)
        return;
    struct variable *variable = &thread->variables[declaration->variable];
    for (size_t i = 0; i < variable->row.n_cpus; i++) {
        if (variable->row.cpus[i].cpu == place->cpu && variable->row.cpus[i].metric == (uint32_t)column) {
            variable->row.cpus[i].count += place->count;
            return;
        }
    }
    if (!vec_reserve(&variable->row.cpus, &variable->cap_cpus, variable->row.n_cpus + 1, sizeof *variable->row.cpus)) {
        thread->tree.failed = true;
        return;
    }
    variable->row.cpus[variable->row.n_cpus++] =
        (struct objects_count){.cpu = place->cpu, .metric = (uint32_t)column, .count = place->count};
}

void thread_take_places(struct thread *thread)
{
    struct view_walk walk = {.kind = ARENA_PLACES, .thread = thread->ref, .record_bytes = sizeof(struct arena_place)};
    const void *record;
    while ((record = view_next(thread->process->view, &walk))) {
        struct arena_place place;
        memcpy(&place, record, sizeof place);
        take_place(thread, &place);
    }
}
