/* SPDX-License-Identifier: BSD-3-Clause */
/* first-touch-spread: as many equal parts as there are memory nodes, each on one of them in turn: where the pages would
 * be if threads of all nodes had touched them first in a loop that gives each an equal part. */
#include "runtime/actions/actions.h"

#define PREFERRED 1 /* MPOL_PREFERRED */

static unsigned count_nodes(uint64_t nodes)
{
    unsigned n = 0;
    for (; nodes; nodes &= nodes - 1)
        n++;
    return n;
}

static uint32_t spread_node(size_t offset, size_t n_bytes)
{
    uint64_t nodes = nodes_allowed_hook();
    unsigned n_nodes = count_nodes(nodes);
    for (size_t part = n_nodes && n_bytes ? offset * n_nodes / n_bytes : 0; part > 0; part--)
        nodes &= nodes - 1;
    return nodes ? (uint32_t)__builtin_ctzll(nodes) : 0;
}

static void spread_ready(uintptr_t start, size_t n_bytes)
{
    unsigned n = count_nodes(nodes_allowed_hook());
    for (unsigned i = 0; i < n; i++) {
        size_t from = n_bytes * i / n, to = n_bytes * (i + 1) / n;
        place_pages_hook(start + from, to - from, PREFERRED, UINT64_C(1) << spread_node(from, n_bytes));
    }
}

static void spread_look(uintptr_t start, size_t n_bytes)
{
    look_at_nodes_hook(start, n_bytes, spread_node);
}

const struct action action_first_touch_spread = {
    .name = "first-touch-spread",
    .is_for_statics = true,
    .least_bytes = 4 * ACTION_PAGE,
    .ready = spread_ready,
    .look = spread_look,
};
