/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of perf events: a small table of the kernel's software events, libpfm4 for all others. Apart from the source
 * because libpfm4 brings its own copy of the kernel's structures. Ordinary code of the launcher. */
#ifndef LOCUS_SAMPLING_PERF_NAMES_H
#define LOCUS_SAMPLING_PERF_NAMES_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

/* A software event. */
struct perf_name {
    const char *name, *alias; /* alias may be NULL */
    const char *summary;
    uint32_t config;         /* PERF_COUNT_SW_* */
    uint64_t default_period; /* 0: the default is a frequency */
    bool is_in_kernel;       /* happens in kernel mode only */
};

/* The table, ended by a row without name; static storage. */
const struct perf_name *perf_name_table(void);

/* The row of a software event by name or alias, without regard to case; NULL when there is none. */
const struct perf_name *perf_name_find(const char *name);

/* The row of a software event by PERF_COUNT_SW_x; NULL when there is none. */
const struct perf_name *perf_name_of_config(uint64_t config);

/* Encodes an event name that libpfm4 knows for this machine, or for the fixture's CPU, its own attributes behind colons
 * included, into the type, config, precision and exclusion fields of *attr. False when libpfm4 does not know it. */
bool perf_name_encode(const char *name, struct perf_event_attr *attr);

/* Calls visit(name, summary, ctx) for every event that libpfm4 knows for the counters of this machine, besides the
 * kernel's software events; returns their number. Strings are valid during the call only. */
unsigned perf_name_visit(void (*visit)(const char *name, const char *summary, void *ctx), void *ctx);

#endif
