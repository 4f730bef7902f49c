/* SPDX-License-Identifier: BSD-3-Clause */
/* bind-to-users: each part of a block on the memory node whose threads used it most when it was measured. The argument
 * has the parts: "0-500:0,500-1000:1", from and to in thousandths of the block, and the node. */
#include "runtime/actions/actions.h"

#include <string.h>

#define PREFERRED 1 /* MPOL_PREFERRED */

static struct {
    struct {
        uint32_t from, to, node;
    } parts[TRIAL_PIECES_MAX];
    unsigned n;
} bound;

/* A decimal number that a character follows. */
static bool take_number(const char **at, char until, uint32_t *number)
{
    *number = 0;
    if (**at < '0' || **at > '9')
        return false;
    for (; **at >= '0' && **at <= '9' && *number < 100000; ++*at)
        *number = *number * 10 + (uint32_t)(**at - '0');
    bool is_there = **at == until;
    *at += is_there && until;
    return is_there;
}

static bool bind_take(const char *argument)
{
    for (const char *at = argument; *at && bound.n < TRIAL_PIECES_MAX; bound.n++) {
        uint32_t from, to, node;
        if (!take_number(&at, '-', &from) || !take_number(&at, ':', &to))
            return false;
        bool is_last = !strchr(at, ',');
        if (!take_number(&at, is_last ? '\0' : ',', &node) || from >= to || to > 1000 || node >= TRIAL_NODES_MAX)
            return false;
        bound.parts[bound.n].from = from;
        bound.parts[bound.n].to = to;
        bound.parts[bound.n].node = node;
    }
    return bound.n > 0;
}

static uint32_t bind_node(size_t offset, size_t n_bytes)
{
    for (unsigned i = 0; i < bound.n; i++)
        if (offset < n_bytes / 1000 * bound.parts[i].to || bound.parts[i].to == 1000)
            return bound.parts[i].node;
    return UINT32_MAX;
}

static void bind_ready(uintptr_t start, size_t n_bytes)
{
    for (unsigned i = 0; i < bound.n; i++) {
        size_t from = n_bytes / 1000 * bound.parts[i].from;
        size_t to = bound.parts[i].to == 1000 ? n_bytes : n_bytes / 1000 * bound.parts[i].to;
        place_pages_hook(start + from, to - from, PREFERRED, UINT64_C(1) << bound.parts[i].node);
    }
}

static void bind_look(uintptr_t start, size_t n_bytes)
{
    look_at_nodes_hook(start, n_bytes, bind_node);
}

const struct action action_bind_to_users = {
    .name = "bind-to-users",
    .is_for_statics = true,
    .least_bytes = 4 * ACTION_PAGE,
    .take = bind_take,
    .ready = bind_ready,
    .look = bind_look,
};
