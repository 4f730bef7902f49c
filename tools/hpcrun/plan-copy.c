/* SPDX-License-Identifier: BSD-3-Clause */
/* Copying a plan; see plan-copy.h. The two folders state the same numbers apart, so they are compared here. */
#include "plan-copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/min-bytes.h"
#include "sampling/source.h"

_Static_assert((int)SOURCE_NUMBER_EADDR == SOURCE_EADDR && (int)SOURCE_NUMBER_FAULTS == SOURCE_FAULTS &&
                   (int)SOURCE_NUMBER_CPUTIME == SOURCE_CPUTIME && (int)SOURCE_NUMBER_REALTIME == SOURCE_REALTIME &&
                   (int)SOURCE_NUMBER_MEMLEAK == SOURCE_MEMLEAK && (int)SOURCE_NUMBER_PERF == SOURCE_PERF &&
                   (int)SOURCE_NUMBER_PMU_ADDR == SOURCE_PMU_ADDR,
               "sources have the same numbers in sampling and fmt");
_Static_assert(SOURCE_WEIGHTED == EVENT_WEIGHTED && SOURCE_TIMER == EVENT_TIMER && SOURCE_RING == EVENT_RING &&
                   SOURCE_ADDRESS == EVENT_ADDRESS && SOURCE_INTEGER == EVENT_INTEGER &&
                   SOURCE_WALLCLOCK == EVENT_WALLCLOCK && SOURCE_RING_ONLY == EVENT_RING_ONLY &&
                   SOURCE_DATA_SRC == EVENT_DATA_SRC && SOURCE_BATCH == EVENT_BATCH && SOURCE_AUX == EVENT_AUX &&
                   SOURCE_SILENT == EVENT_SILENT && SOURCE_KERNEL == EVENT_KERNEL,
               "flags have the same values in sampling and fmt");
_Static_assert(SOURCE_EVENTS_MAX == ARENA_EVENTS_MAX, "a plan fits into an arena");

static void copy_event(const struct source_event *from, struct arena_event *to)
{
    memcpy(to->metric, from->metric, sizeof to->metric);
    memcpy(to->description, from->description, sizeof to->description);
    memcpy(to->name, from->name, sizeof to->name);
    to->source = from->source;
    to->flags = from->flags;
    to->scale = from->scale;
    to->attr = from->attr;
    to->timer_interval_ns = from->timer_interval_ns;
    to->leader = from->leader;
    to->decode = from->decode;
    to->ring_bytes = from->ring_bytes;
    to->aux_bytes = from->aux_bytes;
    memcpy(to->file, from->file, sizeof to->file);
}

/* Probability as a decimal or x/y; 1 when it is neither. */
static double probability(const char *text)
{
    double above = 1, below = 1;
    if (!text || sscanf(text, "%lf/%lf", &above, &below) < 1 || !(below > 0) || !(above > 0) || above > below)
        return 1;
    return above / below;
}

/* A block of n bytes is recorded with probability 1 - exp(-n / sample_bytes), and always from min_bytes on. */
static void set_allocation(const struct source_plan *plan, const struct hpcrun_options *options,
                           struct companion_setup *setup)
{
    const char *part = options->memleak_prob;
    if (!part)
        part = getenv(plan->wants_memleak ? "HPCRUN_MEMLEAK_PROB" : "HPCRUN_DATACENTRIC_PROB");
    double p = probability(part);
    setup->min_bytes = min_bytes_of_environment();
    setup->sample_bytes = options->sample_bytes;
    if (p < 1)
        setup->min_bytes = setup->sample_bytes = (uint64_t)((double)setup->min_bytes / p);
    /* asked for, they are noted without samples as well: a simulator can count what that takes */
    const char *sites = getenv("DATACENTRIC_SMALL_SITES");
    setup->has_small_sites = plan->wants_datacentric || (sites && plan->wants_memleak);
    if (sites && strcmp(sites, "0") == 0)
        setup->has_small_sites = 0;
    if (!plan->wants_datacentric && !plan->wants_memleak) {
        setup->min_bytes = UINT64_MAX;
        setup->sample_bytes = 0;
    }
}

void plan_copy(const struct source_plan *plan, const struct hpcrun_options *options, struct companion_setup *setup)
{
    for (uint32_t i = 0; i < plan->n_events; i++)
        copy_event(&plan->events[i], &setup->events[i]);
    setup->n_events = plan->n_events;
    memcpy(setup->plan, plan->choice, sizeof setup->plan);
    setup->trace = options->trace;
    setup->delay_sampling = options->delay;
    setup->delay_ns = options->delay_ns;
    setup->duration_ns = options->duration_ns;
    setup->start_signal = options->start_signal;
    setup->stop_signal = options->stop_signal;
    setup->lifetime_s = options->lifetime_s;
    setup->fraction = options->part;
    setup->arena_bytes = options->memsize_bytes;
    setup->ahead_bytes = options->low_memsize_bytes;
    setup->max_bytes = options->max_bytes;
    setup->checkpoint_s = options->checkpoint_s;
    setup->mark_ms = (options->mark_ns + 999999) / 1000000;
    setup->n_jobs = options->jobs_symtab ? (unsigned)strtoul(options->jobs_symtab, NULL, 10) : 0;
    setup->writes_topology = true;
    setup->writes_memleak = plan->wants_memleak;
    set_allocation(plan, options, setup);
}
