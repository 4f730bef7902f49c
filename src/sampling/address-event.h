/* SPDX-License-Identifier: BSD-3-Clause */
/* What the sources of hardware address sampling share: the fields of their samples, and how often they sample.
 * Ordinary code of the launcher. */
#ifndef LOCUS_SAMPLING_ADDRESS_EVENT_H
#define LOCUS_SAMPLING_ADDRESS_EVENT_H

#include "sampling/machine.h"
#include "sampling/plan-parts.h"

/* How often a unit can sample. */
struct address_rate {
    uint64_t period;       /* default; 0: default_hz */
    unsigned default_hz;
    uint64_t period_min, period_max;
    unsigned period_step;  /* the hardware counts in steps of so many events */
    const char *unit;      /* what is counted, for messages: "operations" */
    bool is_fixed;         /* the unit knows periods only */
};

/* Fills what they have in common: user mode only, one signal a sample, the newest record at data_head; instruction,
 * thread, time, address, CPU, period, data source and latency of each. */
void address_attr_init(struct perf_event_attr *attr, uint32_t type);

/* Tries the event with a ring, first with the latency in parts (Linux 5.12), then with the latency as a whole: *attr is
 * what opened, or what was tried last. */
void address_probe(struct perf_event_attr *attr, struct source_probe *out);

/* Large-buffer mode: the row's records collect in a ring that the thread drains, without call paths. */
void address_set_large(struct source_event *row);

/* "one sample every 2000000 dispatched operations", for the plan's choice. */
void address_say_rate(const struct address_rate *rate, const struct source_event *row, char *text, size_t n);

/* Appends an event with this attr: EVENT_ADDRESS, EVENT_DATA_SRC, a ring, integer. name: as the user wrote it. NULL
 * with *err filled when the plan is full. */
struct source_event *address_plan_add(struct source_plan *plan, const char *name, const char *metric,
                                      const struct perf_event_attr *attr, struct error *err);

/* Sets period or frequency of the row from the threshold. A period between two steps is rounded down, with a warning
 * in the plan. A frequency given with -c falls back to the default period where is_fixed.
 * err: ERR_RANGE outside what the unit (or kernel.perf_event_max_sample_rate) allows, with what to write instead */
int address_set_rate(const struct address_rate *rate, const char *event, const struct source_threshold *threshold,
                     struct source_event *row, struct source_plan *plan, struct error *err);

#endif
