/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of performance monitoring units, from text to attributes: first by the kernel's own description in sysfs, then
 * by libpfm4. Users, tables and sources share one grammar:
 *   EVENT[MODIFIERS]       name of sysfs (any PMU) or libpfm4: mem-loads, INST_RETIRED:ANY_P, ibs_op//
 *   PMU/TERM[=VALUE],.../  terms of the PMU's format directory, events of its events directory, config= (config1 to 3),
 *                          period=, freq=, name=; a later term wins over an earlier one, any over those of an event;
 *                          a number at the end of PMU may be left out (arm_spe for arm_spe_0)
 *   PMU::EVENT             libpfm4 with its PMU named
 *   rHEX, perf_raw::rHEX   raw config of the CPU's PMU
 *   SUBSYSTEM:NAME         a tracepoint of the kernel, if tracefs shows its number
 *   mem:ADDRESS[/BYTES][:r|w|rw|x]  a breakpoint
 *   {A,B,...}MODIFIERS     a group: opened together, A leads
 * MODIFIERS after ':' (or after the closing '/'): u k h (only these levels), p pp ppp P (precise; P the highest), G H
 * (guests, hosts only), I (not when idle), D (pinned), e (exclusive), S (read the group), and libpfm4's own.
 * Ordinary code of the launcher. */
#ifndef LOCUS_SAMPLING_PMU_H
#define LOCUS_SAMPLING_PMU_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct pmu {
    char name[64];
    uint32_t type;        /* attr.type */
    char cpus[128];       /* of cpumask or cpus, empty: all */
    unsigned max_precise; /* caps/max_precise, 0 when not known */
};

/* Finds a PMU of sysfs by name; false when there is none. */
bool pmu_find(const char *name, struct pmu *pmu);

/* Calls visit for each PMU of sysfs in the order of their names; stops when it returns false. */
void pmu_visit(bool (*visit)(const struct pmu *pmu, void *ctx), void *ctx);

/* True when the PMU's directory has this file (such as "format/swfilt", "events/mem-loads", "caps/min_interval"). */
bool pmu_has(const struct pmu *pmu, const char *file);

/* Text of such a file, false when there is none. */
bool pmu_read(const struct pmu *pmu, const char *file, char *out, unsigned n_out);

/* Calls visit with the name and the terms ("event=0xcd,umask=0x1") of each event of the PMU's events directory, in the
 * order of their names, leaving out files that describe an event (.scale, .unit, ...). Strings are valid only during
 * the call; stops when visit returns false. */
void pmu_visit_events(const struct pmu *pmu, bool (*visit)(const char *name, const char *terms, void *ctx), void *ctx);

/* The same for the terms of its format directory: name and bits ("config1:0-15"). */
void pmu_visit_terms(const struct pmu *pmu, bool (*visit)(const char *name, const char *bits, void *ctx), void *ctx);

/* Puts value into the bits of attr that format/TERM names ("config1:0-15", "config:0-7,32-35").
 * err: ERR_USAGE no such term, ERR_RANGE value too large */
int pmu_set_term(const struct pmu *pmu, const char *term, uint64_t value, struct perf_event_attr *attr,
                 struct error *err);

/* Fills type, config, config1, config2, config3 and the fields for the modifiers in *attr, which the caller has
 * initialised; the terms period= and freq= set sample_period or sample_freq and freq. No other field changes. P sets
 * precise_ip to the PMU's caps/max_precise, or 3 if the kernel does not give it; the caller lowers it until the event
 * opens.
 * err: ERR_USAGE no such event (with similar names), PMU, term or modifier, ERR_RANGE value too large, ERR_UNSUPPORTED
 * a word that the kernel headers of the build do not have */
int pmu_encode(const char *event, struct perf_event_attr *attr, struct error *err);

/* True when the event is written with the modifier P. */
bool pmu_wants_highest_precision(const char *event);

/* True when one of the modifiers u, k and h is given. */
bool pmu_names_levels(const char *event);

/* The term name= of PMU/.../; false when there is none. */
bool pmu_event_label(const char *event, char *out, unsigned n_out);

/* Splits "{A,B}mods" into at most n_max members, each with the modifiers added (before a threshold, NAME@PERIOD); a
 * plain event is a group of one. Returns the number of members.  err: ERR_USAGE */
int pmu_split_group(const char *event, char (*members)[256], unsigned n_max, struct error *err);

/* --- private part --- */

/* What the files pmu-*.c share. Ordinary code of the launcher. */

/* The parts of PMU/TERMS/MODIFIERS. */
struct pmu_text {
    char pmu[64];
    char terms[256];
    char modifiers[32]; /* without the colon */
};

/* Finds the PMU by its name, or by its name without the number at its end.  err: ERR_USAGE with the names of the PMUs
 * that exist */
int pmu_find_near(const char *name, struct pmu *pmu, struct error *err);

/* Finds the first PMU that has this event in its events directory; the CPU's own comes first. */
bool pmu_of_event(const char *name, struct pmu *pmu);

#endif
