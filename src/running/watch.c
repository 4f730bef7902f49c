/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that are looked at again and again: which ones there are. Ordinary code. */
#include "running/running.h"

#include <string.h>

#include "base/clock.h"
#include "base/options.h"

int running_watch_begin(struct running_watch *watch)
{
    struct error err;
    if (running_find(&watch->list, &err) != 0)
        return tool_error(watch->list.tool, "%s", err.text);
    int status = running_choose(&watch->list, watch->words);
    return status || watch->list.n ? status
                                   : tool_error(watch->list.tool, "no process of yours is being measured here");
}

/* What was seen of those that still run stays with them. */
static void take_over(struct running_list *from, struct running_list *to)
{
    for (size_t i = 0; i < to->n; i++) {
        for (size_t k = 0; k < from->n; k++) {
            struct running_process *old = &from->processes[k], *new = &to->processes[i];
            if (!old->arena || !running_is_same(old, new))
                continue;
            memcpy(new->past, old->past, sizeof new->past);
            new->n_past = old->n_past;
            new->names = old->names;
            memset(old->past, 0, sizeof old->past);
            old->n_past = 0;
            old->names = NULL;
        }
    }
}

/* --- those that have ended --- */

#define ENDED_S 10 /* for so long their last numbers stay */
#define ENDED_MAX 8

static double now_s(void)
{
    return (double)clock_now_ns(CLOCK_MONOTONIC) / (double)CLOCK_S_NS;
}

/* Moves a process, with what was seen of it, to the end of a list; its records are there as long as they are mapped. */
static void move(struct running_process *process, struct running_list *to)
{
    if (!vec_reserve(&to->processes, &to->capacity, to->n + 1, sizeof *to->processes))
        return;
    if (process->ended_at_s == 0)
        process->ended_at_s = now_s();
    to->processes[to->n++] = *process;
    *process = (struct running_process){.arena = NULL};
}

/* Those of the list before that are not in the new one have ended. */
static void keep_ended(struct running_watch *watch, struct running_list *to)
{
    size_t n_running = to->n;
    for (size_t i = 0; i < watch->list.n; i++) {
        struct running_process *old = &watch->list.processes[i];
        bool runs = false;
        for (size_t k = 0; k < n_running && !runs; k++)
            runs = running_is_same(old, &to->processes[k]);
        if (runs)
            continue;
        watch->n_ended += old->ended_at_s == 0;
        if (watch->keeps_ended && to->n - n_running < ENDED_MAX &&
            (old->ended_at_s == 0 || now_s() - old->ended_at_s < ENDED_S))
            move(old, to);
    }
}

/* --- looking again --- */

/* A measurement whose first process has ended may have others; a process may have ended, and then its children stay:
 * those that were seen before are kept, whoever is their parent now. */
void running_watch_find(struct running_watch *watch)
{
    struct running_list list = {.tool = watch->list.tool};
    struct error err;
    if (running_find(&list, &err) != 0)
        return;
    (void)running_keep(&list, watch->words, &watch->list);
    take_over(&watch->list, &list);
    keep_ended(watch, &list);
    running_fini(&watch->list);
    watch->list = list;
}

size_t running_watch_step(struct running_watch *watch, bool with_sums)
{
    struct error err;
    size_t n = 0;
    if (!watch->list.n || watch->list.processes[0].n_past)
        running_watch_find(watch);
    for (size_t i = 0; i < watch->list.n; i++)
        (void)running_look(&watch->list.processes[i], with_sums, &err);
    running_keep_readable(&watch->list);
    for (size_t i = 0; i < watch->list.n; i++)
        n += watch->list.processes[i].ended_at_s == 0;
    return n;
}
