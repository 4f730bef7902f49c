/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs in parts. Each part has its share of the time, by timers, and is one of the loops of the other files. */
#include "causes.h"

const struct cause_row cause_programs[] = {
    /* Half of the time goes into arithmetic and branches over arrays that stay in the first-level cache. */
    {.name = "four_loops",
     .groups = {"nodes"},
     .parts = {{"chase", 4, 0, "nodes"},
               {"add_16k", 1, CAUSE_GROUPS, "addends"},
               {"divide_16k", 1, CAUSE_GROUPS, "divisors"},
               {"multiply_16k", 1, CAUSE_GROUPS, "factors"},
               {"branches_16k", 1, CAUSE_GROUPS, "coins"}}},
    {.name = "three_phases",
     .groups = {"picked", "lanes"},
     .parts = {{"indexed_256m", 1, 0, "picked+picks"},
               {"four_sums", 1, 1, "lanes"},
               {"divide_16k", 1, CAUSE_GROUPS, "divisors"}}},
    {.name = NULL},
};
