/* SPDX-License-Identifier: BSD-3-Clause */
/* CPUTIME: CPU time by call path, without data addresses, by the same clock as EADDR. Ordinary code of the launcher. */
#include "sampling/probe.h"

#define DEFAULT_HZ 1000

static int plan(const char *event, const struct source_threshold *threshold, struct source_plan *out, struct error *err)
{
    static const struct source_clock clock = {
        .source = SOURCE_NUMBER_CPUTIME,
        .metric = "CPUTIME (usec)",
        .description = "CPU time in user mode",
        .default_hz = DEFAULT_HZ,
    };
    return source_clock_plan(&clock, event, threshold, out, err);
}

const struct sample_source source_cputime = {
    .name = "CPUTIME",
    .summary = "CPU time in user mode by call path",
    .probe = source_clock_probe,
    .plan = plan,
};
