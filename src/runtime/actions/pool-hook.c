/* SPDX-License-Identifier: BSD-3-Clause */
/* pool: small blocks lie next to each other in the order in which a thread makes them, without a header in between. A
 * block that was freed is used again for the next one of its size. */
#include "runtime/actions/actions.h"

const struct action action_pool = {
    .name = "pool", .most_slot = 4096, .slot_step = 16, /* what malloc aligns to */
};
