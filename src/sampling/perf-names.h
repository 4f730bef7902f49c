/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of perf events: a small table of the kernel's software events, libpfm4 for all others. Apart from the source
 * because libpfm4 brings its own copy of the kernel's structures. Ordinary code of the launcher. */
#ifndef LOCUS_SAMPLING_PERF_NAMES_H
#define LOCUS_SAMPLING_PERF_NAMES_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "sampling/machine.h"

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

/* Why no names of hardware events are known; NULL: they are. Static storage.  ctx: ordinary */
const char *perf_names_obstacle(void);

/* The row of a software event by name or alias, without regard to case; NULL when there is none. */
const struct perf_name *perf_name_find(const char *name);

/* The row of a software event by PERF_COUNT_SW_x; NULL when there is none. */
const struct perf_name *perf_name_of_config(uint64_t config);

enum perf_name_status {
    PERF_NAME_ENCODED = 0,
    PERF_NAME_UNKNOWN,
    PERF_NAME_INCOMPLETE /* libpfm4 knows the event, but it needs a sub-event: NAME:PART */
};

/* Encodes an event name that libpfm4 knows for this machine, or for the fixture's CPU, including its own attributes
 * after colons. Sets the type, config, precision and exclusion fields of *attr, unless the event is unknown or
 * incomplete. */
enum perf_name_status perf_name_encode(const char *name, struct perf_event_attr *attr);

/* The formula of one of PAPI's presets ("PAPI_L1_TCM") that is no event of its own here but made of several, with
 * signs, numbers and names of events between blanks: "PAPI_L1_DCM + PAPI_L1_ICM". NULL: it is none, or one of its
 * events is not known for this machine. Static storage.  ctx: ordinary */
const char *perf_preset_formula(const char *name);

/* A table of libpfm4: a kind of counters. */
struct perf_table {
    const char *name;    /* "spr" */
    const char *summary; /* "Intel Sapphire Rapids" */
};

/* Calls visit for each table that is valid here, by libpfm4's detection or the fixture's CPU; the kernel's generic
 * hardware events come first. */
void perf_table_visit(void (*visit)(const struct perf_table *table, void *ctx), void *ctx);

/* Calls visit for each event of a table, with_parts also for each of its sub-events ("spr::EVENT:PART"); for the
 * generic table, only for events that hardware counts. Strings are valid only during the call. */
void perf_table_visit_events(const char *table, bool with_parts,
                             void (*visit)(const char *name, const char *summary, void *ctx), void *ctx);

/* --- CPU models of libpfm4 --- */

/* Which of libpfm4's tables describe the CPU of a fixture: libpfm4 itself only finds that out for the running CPU.
 * Ordinary code of the launcher. */

#endif
