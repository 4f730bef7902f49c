/* SPDX-License-Identifier: BSD-3-Clause */
/* What accesses to other NUMA nodes cost. The cost is lpi_NUMA of Liu and Mellor-Crummey, A Tool to Analyze the
 * Performance of Multithreaded Programs on NUMA Architectures (PPoPP 2014): latency of remote accesses per instruction.
 * Here both are estimated from samples times their periods; the denominator is of the whole measurement, so that the
 * costs of the variables add up to that of the program. Where instructions were not counted, it is the number of loads:
 * reports say which. */
#include <math.h>

#include "analysis/metrics.h"

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
