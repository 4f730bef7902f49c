/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that are looked at again and again: which ones there are. Ordinary code. */
#include "running/running.h"

#include <string.h>

#include "base/options.h"

int running_watch_begin(struct running_watch *watch)
{
    struct error err;
    if (running_find(&watch->list, &err) != 0)
        return tool_error(watch->list.tool, "%s", err.text);
    int status = running_choose(&watch->list, watch->operand);
    return status || watch->list.n ? status
                                   : tool_error(watch->list.tool, "no process of yours is being measured here");
}

/* Whether a process fills the same arena as before: after exec it is another one. */
static bool is_same(const struct running_process *a, const struct running_process *b)
{
    const struct arena_header *x = a->arena, *y = b->arena;
    return a->pid == b->pid && a->size_bytes == b->size_bytes && x->start_ns == y->start_ns;
}

/* What was seen of those that still run stays with them. */
static void take_over(struct running_list *from, struct running_list *to)
{
    for (size_t i = 0; i < to->n; i++) {
        for (size_t k = 0; k < from->n; k++) {
            struct running_process *old = &from->processes[k], *new = &to->processes[i];
            if (!old->arena || !is_same(old, new))
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

/* A measurement whose first process has ended may have others; a process may have ended, and then its children stay. */
static void find_again(struct running_watch *watch)
{
    struct running_list list = {.tool = watch->list.tool};
    struct error err;
    bool is_found = running_find(&list, &err) == 0;
    if (is_found && running_keep(&list, watch->operand)) {
        take_over(&watch->list, &list);
        running_fini(&watch->list);
        watch->list = list;
    } else if (is_found) {
        running_fini(&list);
        running_fini(&watch->list);
    }
}

size_t running_watch_step(struct running_watch *watch, bool with_sums)
{
    struct error err;
    if (!watch->list.n || watch->list.processes[0].n_past)
        find_again(watch);
    for (size_t i = 0; i < watch->list.n; i++)
        (void)running_look(&watch->list.processes[i], with_sums, &err);
    running_keep_readable(&watch->list);
    return watch->list.n;
}
