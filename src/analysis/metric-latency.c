/* SPDX-License-Identifier: BSD-3-Clause */
/* How long accesses took, from issue to data, over the samples for which the hardware gave a latency; then the levels
 * of memory that served them (metric_levels). */
#include "analysis/metrics.h"

#include <math.h>

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

/* --- levels of memory --- */

/* Where loads found their data. Each share refers to the loads that got as far as that level, as in the formulas that
 * the original's data source handler defines (and leaves unused): L1 of all loads, L2 of those that missed L1 (lines
 * already on their way included), the last-level cache of those that missed L2. */

#define SET(metric) (1u << (metric))
#define LLC_MISSES (SET(MEM_DRAM_LOCAL) | SET(MEM_DRAM_REMOTE) | SET(MEM_REMOTE_HIT) | SET(MEM_HITM_REMOTE))

const struct metric_derived metric_levels[] = {
    {.name = "l1_percent",
     .title = "L1 %",
     .description = "of the loads, those served by L1",
     .value = metrics_percent,
     .above = SET(MEM_LOAD_L1),
     .below = SET(MEM_LOAD)},
    {.name = "lfb_percent",
     .description = "of the loads, those of a line that was already on its way",
     .value = metrics_percent,
     .above = SET(MEM_LOAD_LFB),
     .below = SET(MEM_LOAD)},
    {.name = "l2_percent",
     .title = "L2 %",
     .description = "of the loads that missed L1, those served by L2",
     .value = metrics_percent,
     .above = SET(MEM_LOAD_L2),
     .below = SET(MEM_LOAD),
     .without = SET(MEM_LOAD_L1)},
    {.name = "llc_percent",
     .title = "LLC %",
     .description = "of the loads that missed L2, those served by the last-level cache, lines modified there included",
     .value = metrics_percent,
     .above = SET(MEM_LLC_HIT) | SET(MEM_HITM_LOCAL),
     .below = SET(MEM_LOAD),
     .without = SET(MEM_LOAD_L1) | SET(MEM_LOAD_L2)},
    {.name = "llc_misses",
     .description = "loads served by memory, or by a cache of another NUMA node",
     .value = metrics_sum,
     .above = LLC_MISSES},
    {.name = "dram_local_percent",
     .title = "lcl %",
     .description = "of the last-level cache misses, those served by memory of the same NUMA node",
     .value = metrics_percent,
     .above = SET(MEM_DRAM_LOCAL),
     .below = LLC_MISSES},
    {.name = "remote_percent",
     .title = "rmt %",
     .description = "of the last-level cache misses, those served by memory or a cache of another NUMA node",
     .value = metrics_percent,
     .above = SET(MEM_DRAM_REMOTE) | SET(MEM_REMOTE_HIT) | SET(MEM_HITM_REMOTE),
     .below = LLC_MISSES},
    {.name = "store_l1_percent",
     .description = "of the stores, those that hit L1",
     .value = metrics_percent,
     .above = SET(MEM_STORE_L1_HIT),
     .below = SET(MEM_STORE)},
    {.name = NULL},
};
