/* SPDX-License-Identifier: BSD-3-Clause */
/* How long accesses took, from issue to data, over the samples for which the hardware told a latency. */
#include <math.h>

#include "analysis/metrics.h"

static double mean(const struct metric_derived *row, const struct metric_input *input)
{
    (void)row;
    const struct latency_sum *latency = &input->latency;
    return latency->n_samples ? (double)latency->cycles / (double)latency->n_samples : (double)NAN;
}

static double percentile(const struct metric_derived *row, const struct metric_input *input)
{
    return metrics_percentile(&input->latency, row->parameter);
}

const struct metric_derived metric_latency[] = {
    {.name = "latency_mean_cycles",
     .title = "mean",
     .description = "mean latency of the samples that have one, core cycles",
     .value = mean},
    {.name = "latency_p50_cycles",
     .description = "latency that half of them stay below, within a bin of the histogram",
     .value = percentile,
     .parameter = 50,
     .is_of_histogram = true},
    {.name = "latency_p95_cycles",
     .title = "p95",
     .description = "latency that 95 % of them stay below, within a bin of the histogram",
     .value = percentile,
     .parameter = 95,
     .is_of_histogram = true},
    {.name = NULL},
};
