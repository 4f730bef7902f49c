/* SPDX-License-Identifier: BSD-3-Clause */
/* interleave: page after page on the next memory node, of those that the process may use. */
#include "runtime/actions/actions.h"

#define INTERLEAVE 3 /* MPOL_INTERLEAVE */

static void interleave_ready(uintptr_t start, size_t n_bytes)
{
    place_pages_hook(start, n_bytes, INTERLEAVE, nodes_allowed_hook());
}

static void interleave_look(uintptr_t start, size_t n_bytes)
{
    look_at_nodes_hook(start, n_bytes, NULL);
}

const struct action action_interleave = {
    .name = "interleave",
    .is_for_statics = true,
    .least_bytes = 4 * ACTION_PAGE,
    .ready = interleave_ready,
    .look = interleave_look,
};
