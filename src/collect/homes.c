/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory nodes of what a thread's samples touched, and of the pages of large variables: what the companion has
 * entered into the arena. Ordinary code. */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "collect/profile.h"

_Static_assert(OBJECTS_NODES == ARENA_HOMES_MAX, "files hold what the arena does");

static uint32_t count_nodes(const struct view *view)
{
    uint32_t n = view->header->n_homes;
    return n < ARENA_HOMES_MAX ? n : ARENA_HOMES_MAX;
}

static bool add_home(struct collected_variable *variable, const struct objects_home *home)
{
    struct objects_variable *row = &variable->row;
    if (!home->count)
        return true;
    for (size_t i = 0; i < row->n_homes; i++)
        if (row->homes[i].cpu == home->cpu && row->homes[i].metric == home->metric &&
            row->homes[i].home == home->home) {
            row->homes[i].count += home->count;
            return true;
        }
    if (!vec_reserve(&row->homes, &variable->cap_homes, row->n_homes + 1, sizeof *row->homes))
        return false;
    row->homes[row->n_homes++] = *home;
    return true;
}

/* The variable of a place, if its event has one; NULL otherwise. */
static struct collected_variable *variable_of(struct collected_thread *thread, const struct arena_place *place,
                                              int *column)
{
    *column = place->event < ARENA_EVENTS_MAX ? thread->process->column_of_event[place->event] : -1;
    bool is_data = *column >= 0 && var_key_kind(place->var) != VAR_NONE &&
                   thread->process->view->header->events[place->event].flags & EVENT_ADDRESS;
    const struct declaration *declaration = is_data ? thread_declare(thread, place->var, HIT_MEMORY) : NULL;
    return declaration && declaration->variable != TREE_NONE ? &thread->variables[declaration->variable] : NULL;
}

static void take_place(struct collected_thread *thread, const struct arena_place *place, uint32_t n_nodes)
{
    int column;
    uint64_t n_asked = 0;
    for (uint32_t i = 0; i < HOME_FIRST + n_nodes; i++)
        n_asked += view_count(&place->homes[i]);
    struct collected_variable *variable = n_asked ? variable_of(thread, place, &column) : NULL;
    if (!variable)
        return;
    struct objects_home home = {.cpu = place->cpu, .metric = (uint32_t)column, .home = OBJECTS_NO_HOME};
    home.count = view_count(&place->homes[HOME_NONE]);
    bool ok = add_home(variable, &home);
    for (home.home = 0; home.home < n_nodes && ok; home.home++) {
        home.count = view_count(&place->homes[HOME_FIRST + home.home]);
        ok = add_home(variable, &home);
    }
    variable->row.n_moved += view_count(&place->homes[HOME_MOVED]);
    thread->tree.failed |= !ok;
}

/* The pages of a variable belong to the process: the first thread that has it gets them. */
static void take_extent(struct collected_thread *thread, unsigned i)
{
    struct collected_process *process = thread->process;
    struct arena_extent extent;
    memcpy(&extent, &process->view->header->extents[i], sizeof extent);
    if (!extent.var || !extent.n_asked || process->taken_extents >> i & 1)
        return;
    const struct declaration *declaration = thread_declared(thread, extent.var);
    if (!declaration || declaration->variable == TREE_NONE)
        return;
    struct objects_variable *row = &thread->variables[declaration->variable].row;
    process->taken_extents |= 1u << i;
    if (row->pages && row->pages->n_pages >= extent.n_pages)
        return;
    if (!row->pages)
        row->pages = malloc(sizeof *row->pages);
    if (!row->pages) {
        thread->tree.failed = true;
        return;
    }
    *row->pages = (struct objects_pages){
        .n_pages = extent.n_pages, .n_asked = extent.n_asked, .n_none = extent.n_none, .huge_bytes = extent.huge_bytes};
    for (unsigned node = 0; node < OBJECTS_NODES; node++)
        row->pages->n_on[node] = extent.n_on[node];
}

void thread_take_homes(struct collected_thread *thread)
{
    uint32_t n_nodes = count_nodes(thread->process->view);
    struct record_walk walk = {.kind = ARENA_PLACES, .thread = thread->ref, .record_bytes = arena_place_bytes(n_nodes)};
    const void *record;
    while (n_nodes && (record = view_next(thread->process->view, &walk)))
        take_place(thread, record, n_nodes);
    for (unsigned i = 0; n_nodes && i < ARENA_EXTENTS; i++)
        take_extent(thread, i);
}
