/* SPDX-License-Identifier: BSD-3-Clause */
/* What the source-x.c files share: appending to a plan, checking thresholds, trying an event on this machine.
 * Ordinary code of the launcher. */
#ifndef LOCUS_SAMPLING_PLAN_PARTS_H
#define LOCUS_SAMPLING_PLAN_PARTS_H

#include "sampling/source.h"
#include "sampling/source-number.h"

/* Appends an empty event with these names; NULL with *err filled (ERR_RANGE) when the plan is full. */
struct source_event *source_plan_add(struct source_plan *plan, enum source_number source, const char *name,
                                     const char *metric, struct error *err);

/* Adds a sentence to plan->warning. */
void source_plan_warn(struct source_plan *plan, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A term that may follow a source's name. */
struct source_term {
    const char *name; /* NULL ends the list */
    bool has_value;   /* "ldlat=30"; else a word alone, such as "large" */
    uint64_t *value;  /* set to its value, or to 1; untouched when the term is not given */
};

/* Takes the terms of an event apart: "PEBS,ldlat=30,large". known is ended by an empty row.
 * err: ERR_USAGE not one of the known terms (they are listed) or no number */
int source_parse_terms(const char *event, const struct source_term *known, struct error *err);

/* Fills what all our perf events have in common: size, disabled, user mode only, not inherited, one wake-up each,
 * a ring (if any) that the kernel overwrites. */
void source_attr_init(struct perf_event_attr *attr, uint32_t type, uint64_t config);

/* Period of a clock source in ns: threshold, or default_hz without one.
 * err: ERR_RANGE outside 10 us .. 1000 s, with what to write instead */
int source_period_ns(const char *event, const struct source_threshold *threshold, unsigned default_hz,
                     uint64_t *period_ns, struct error *err);

/* Tries perf_event_open with *attr on the calling process (in a forked child, because a seccomp filter may kill) and,
 * with_ring, a ring of one page. out->works, or reason and fix: errno, perf_event_paranoid, seccomp, limits. */
void source_probe_perf(const struct perf_event_attr *attr, bool with_ring, struct source_probe *out);

/* The same for a member of a group, behind its leader; leader may be NULL. */
void source_probe_group(const struct perf_event_attr *attr, const struct perf_event_attr *leader, bool with_ring,
                        struct source_probe *out);

/* The same for the last of n members of a group, behind all members before it; members[0] leads. */
void source_probe_members(const struct source_event *members, unsigned n, bool with_ring, struct source_probe *out);

/* Checks a frequency against kernel.perf_event_max_sample_rate, beyond which the kernel refuses.  err: ERR_RANGE */
int source_check_frequency(const char *event, uint64_t hz, struct error *err);

/* The frequency to use when the user names none: hz, or what the kernel allows when that is less. */
uint64_t source_default_frequency(uint64_t hz);

/* Tries a thread CPU-time timer; reason tells the rate that the kernel's tick allows. */
void source_probe_timer(struct source_probe *out);

/* Highest rate of a CPU-time timer: the kernel's tick, in Hz. */
unsigned source_tick_hz(void);

#endif
