/* SPDX-License-Identifier: BSD-3-Clause */
/* offset: blocks that would lie a power of two apart, where the same elements of all compete for the same lines of the
 * cache, begin at different distances from the boundary of a page. Small ones lie behind each other at a distance that
 * is no multiple of two lines. */
#include "runtime/actions/actions.h"

#define DISTANCES 32

static size_t offset_lead(uint64_t n)
{
    return n % DISTANCES * ACTION_LINES_APART;
}

const struct action action_offset = {
    .name = "offset",
    .least_bytes = 256,
    .most_slot = 16384,
    .slot_step = ACTION_LINES_APART,
    .slot_extra = 3 * ACTION_LINE,
    .lead = offset_lead,
};
