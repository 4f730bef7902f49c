/* SPDX-License-Identifier: BSD-3-Clause */
/* What else happened to loads and stores: page walks, atomic accesses, slow kinds of memory, blocked loads; then the
 * cost of accesses to other NUMA nodes (metric_remote). */
#include "analysis/metrics.h"

#include <math.h>

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

/* --- remote accesses --- */

/* The cost of accesses to other NUMA nodes. It is lpi_NUMA of Liu and Mellor-Crummey, A Tool to Analyze the Performance
 * of Multithreaded Programs on NUMA Architectures (PPoPP 2014): latency of remote accesses per instruction. Here both
 * are estimated from samples times their periods; the denominator is that of the whole measurement, so that the costs
 * of the variables add up to that of the program. If instructions were not counted, it is the number of loads: reports
 * say which. */

static double remote_mean(const struct metric_derived *row, const struct metric_input *input)
{
    (void)row;
    const struct latency_sum *latency = &input->latency;
    return latency->n_remote ? (double)latency->remote_cycles / (double)latency->n_remote : (double)NAN;
}

static double remote_share(const struct metric_derived *row, const struct metric_input *input)
{
    (void)row;
    return input->latency_cycles > 0 ? 100 * input->remote_cycles / input->latency_cycles : (double)NAN;
}

static double remote_cost(const struct metric_derived *row, const struct metric_input *input)
{
    (void)row;
    return input->work > 0 ? input->remote_cycles / input->work : (double)NAN;
}

const struct metric_derived metric_remote[] = {
    {.name = "remote_latency_mean_cycles",
     .description = "mean latency of the samples that another NUMA node served, core cycles",
     .value = remote_mean},
    {.name = "remote_latency_percent",
     .description = "of the latency of all accesses, that of those that another NUMA node served",
     .value = remote_share},
    {.name = "remote_cost",
     .description = "cycles of remote accesses per instruction of the whole program (lpi_NUMA), or per load",
     .value = remote_cost},
    {.name = NULL},
};
