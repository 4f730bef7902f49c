/* SPDX-License-Identifier: BSD-3-Clause */
/* What else happened to loads and stores: page walks, atomic accesses, slow kinds of memory, blocked loads. */
#include "analysis/metrics.h"

#define SET(metric) (1u << (metric))
#define ACCESSES (SET(MEM_LOAD) | SET(MEM_STORE))

const struct metric_derived metric_access[] = {
    {.name = "dtlb_walk_percent",
     .description = "of the loads and stores, those for which the page tables were read",
     .value = metrics_percent,
     .above = SET(MEM_DTLB_WALK),
     .below = ACCESSES},
    {.name = "locked_percent",
     .description = "of the loads and stores, those that were atomic",
     .value = metrics_percent,
     .above = SET(MEM_LOCKED),
     .below = ACCESSES},
    {.name = "pmem_percent",
     .description = "of the loads and stores, those served by persistent memory",
     .value = metrics_percent,
     .above = SET(MEM_PMEM),
     .below = ACCESSES},
    {.name = "cxl_percent",
     .description = "of the loads and stores, those served by CXL memory",
     .value = metrics_percent,
     .above = SET(MEM_CXL),
     .below = ACCESSES},
    {.name = "blocked_data_percent",
     .description = "of the loads, those that waited because the data of a store could not be forwarded",
     .value = metrics_percent,
     .above = SET(MEM_BLOCKED_DATA),
     .below = SET(MEM_LOAD)},
    {.name = "blocked_address_percent",
     .description = "of the loads, those blocked by an address conflict",
     .value = metrics_percent,
     .above = SET(MEM_BLOCKED_ADDR),
     .below = SET(MEM_LOAD)},
    {.name = NULL},
};
