/* SPDX-License-Identifier: BSD-3-Clause */
/* Which events give data addresses on this Intel CPU, and how the kernel takes them: one load and one store event for
 * each kind of cores, from sysfs (mem-loads, mem-stores), the event table or libpfm4, in this order.
 * Ordinary code of the launcher. */
#ifndef LOCUS_SAMPLING_PEBS_EVENTS_H
#define LOCUS_SAMPLING_PEBS_EVENTS_H

#include "sampling/machine.h"
#include "sampling/source.h"

#define PEBS_EVENTS_MAX 6 /* loads and stores of three kinds of cores */

/* What the user asks for. */
struct pebs_request {
    uint64_t ldlat; /* threshold in core cycles; 0: the default of the CPU */
    bool wants_loads, wants_stores;
    bool wants_large; /* large-buffer mode */
};

/* An event that the kernel opens. */
struct pebs_event {
    char text[96];    /* its term name=, or as hpcrun -e takes it, without its leader: cpu/mem-loads,ldlat=3/ */
    char origin[320]; /* sysfs, the row of the event table, libpfm4 */
    bool is_load;
    bool tells_source; /* records carry the data source */
    bool has_leader;
    struct perf_event_attr leader; /* counts only, opened before */
    struct perf_event_attr attr;   /* complete but for the period */
    uint64_t period;               /* default */
    unsigned max_precise;          /* of its PMU, as the kernel tells; 0: it does not */
};

struct pebs_found {
    struct pebs_event events[PEBS_EVENTS_MAX];
    unsigned n_events;
    char complaints[768]; /* sentences on rows and events that were left out; empty when none */
};

/* Finds the events and tries them, highest precise level first. out->works when at least one opens, else reason and
 * fix. */
void pebs_events_find(const struct pebs_request *request, struct pebs_found *found, struct source_probe *out);

/* Sets what a record of the event holds: with the weight in this form where the data source is told; in large-buffer
 * mode only what the hardware's buffer can hold. */
void pebs_set_record(struct pebs_event *event, uint64_t weight, bool is_large);

/* Period for loads of at least ldlat core cycles when period is the one for all loads: slow ones are rare.
 * src: SampleAfterValue of MEM_TRANS_RETIRED.LOAD_LATENCY_GT_x in Intel's event lists (at 32, where these jump back to
 * the one for all loads, a value in between) */
uint64_t pebs_load_period(uint64_t ldlat, uint64_t period);

/* Why the kernel would interrupt for every record even in large-buffer mode (part of a sentence), or NULL when it lets
 * the hardware's buffer fill. What the records then lack is in left_out (part of a sentence, may become empty).
 * src: conditions of large PEBS in the logs of the kernel: fixed period, watermark, no call chain; weights since
 * Linux 6.0 ("Enable large PEBS for PERF_SAMPLE_WEIGHT_TYPE"), time stamps where the hardware writes them */
const char *pebs_large_obstacle(const struct pebs_event *event, char *left_out, unsigned n_left_out);

#endif
