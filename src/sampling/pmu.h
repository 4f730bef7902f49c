/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of performance monitoring units, from text to attributes: the kernel's own description in sysfs first, then
 * libpfm4. One grammar for users, tables and sources:
 *   EVENT[MODIFIERS]       name of sysfs (any PMU) or libpfm4: mem-loads, INST_RETIRED:ANY_P, ibs_op//
 *   PMU/TERM[=VALUE],.../  terms of the PMU's format directory, events of its events directory, config=, period=, name=
 *   PMU::EVENT             libpfm4 with its PMU named
 *   rHEX, perf_raw::rHEX   raw config of the CPU's PMU
 *   {A,B,...}MODIFIERS     a group: opened together, A leads
 * MODIFIERS after ':' (or after the closing '/'): u k h p pp ppp P G H D S, as perf has them, and libpfm4's own.
 * Ordinary code of the launcher. */
#ifndef LOCUS_SAMPLING_PMU_H
#define LOCUS_SAMPLING_PMU_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct pmu {
    char name[64];
    uint32_t type;       /* attr.type */
    char cpus[128];      /* of cpumask or cpus, empty: all */
    unsigned max_precise; /* caps/max_precise, 0 when not told */
};

/* Finds a PMU of sysfs by name; false when there is none. */
bool pmu_find(const char *name, struct pmu *pmu);

/* Calls visit for each PMU of sysfs in the order of their names; stops when it returns false. */
void pmu_visit(bool (*visit)(const struct pmu *pmu, void *ctx), void *ctx);

/* True when the PMU's directory has this file (such as "format/swfilt", "events/mem-loads", "caps/min_interval"). */
bool pmu_has(const struct pmu *pmu, const char *file);

/* Text of such a file, false when there is none. */
bool pmu_read(const struct pmu *pmu, const char *file, char *out, unsigned n_out);

/* Puts value into the bits of attr that format/TERM names ("config1:0-15", "config:0-7,32-35").
 * err: ERR_USAGE no such term, ERR_RANGE value too large */
int pmu_set_term(const struct pmu *pmu, const char *term, uint64_t value, struct perf_event_attr *attr,
                 struct error *err);

/* Fills type, config, config1, config2, config3 and what the modifiers say of *attr, which the caller has initialised;
 * nothing else is touched.  err: ERR_USAGE no such event (with near names) or term, ERR_RANGE value too large */
int pmu_encode(const char *event, struct perf_event_attr *attr, struct error *err);

/* Splits "{A,B}mods" into its members with the modifiers added, at most n_max, each n_text bytes long; a plain event is
 * a group of one. Returns the number.  err: ERR_USAGE */
int pmu_split_group(const char *event, char (*members)[256], unsigned n_max, struct error *err);

#endif
