/* SPDX-License-Identifier: BSD-3-Clause */
/* pad: each block has cache lines of its own, so that threads that write neighbouring blocks do not take lines from
 * each other. */
#include "runtime/actions/actions.h"

const struct action action_pad = {
    .name = "pad",
    .most_slot = 32768,
    .slot_step = ACTION_LINES_APART,
};
