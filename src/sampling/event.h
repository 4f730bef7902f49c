/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of memory events: which load and store event gives data addresses on which CPU, for CPUs that their kernel
 * does not describe (no events/mem-loads in sysfs). It is a file, pmu-events.txt, so that a new CPU needs no new
 * version of this program; its head explains the columns. The files are read in this order, and a later row wins:
 * the installed one (share/locus), $XDG_CONFIG_HOME/locus or ~/.config/locus, the file that HPCRUN_PMU_TABLE names.
 * Ordinary code of the launcher. */
#ifndef LOCUS_SAMPLING_EVENT_H
#define LOCUS_SAMPLING_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sampling/machine.h"
#include "sampling/pmu.h"
#include "sampling/source.h"

struct event_row {
    char load[192], store[192]; /* events as pmu_encode takes them, groups included; empty: there is none. The word
                                 * LDLAT in load stands for the latency threshold */
    uint64_t ldlat;             /* default threshold, core cycles; 0: the load event has none */
    uint64_t load_period, store_period; /* default number of events from one sample to the next */
    bool tells_source;                  /* records say where the data came from, not only their address */
    char origin[320];                   /* file and line, or "the installed event table" */
};

/* Finds the last row for this CPU and PMU (a name in sysfs); false when there is none. complaints (n bytes) receives a
 * sentence with file, line and reason for each row that cannot be understood, and is empty otherwise. */
bool event_table_find(const struct machine_cpu *cpu, const char *pmu, struct event_row *row, char *complaints,
                      size_t n_complaints);

/* The file in the configuration directory where users put their own rows, for advice. */
void event_table_user_path(char *path, size_t n_path);

/* --- lists of events --- */

/* All events that -e accepts on this machine, by the unit that counts them, and which of them can be opened. Ordinary
 * code of the launcher. */

enum event_mark {
    EVENT_OPENS = 0,
    EVENT_REFUSED,   /* not on this machine */
    EVENT_INCOMPLETE /* incomplete: it needs a sub-event or the value of a term */
};

/* Receives the list. Strings are valid only during the call. */
struct event_lister {
    void (*section)(const char *title, void *ctx);
    /* why: reason and fix, for all marks except EVENT_OPENS */
    void (*event)(enum event_mark mark, const char *name, const char *summary, const struct source_probe *why,
                  void *ctx);
    void (*note)(const char *text, void *ctx);
    void *ctx;
};

/* Lists events that match one of the patterns (ended by NULL; if there are none, everything except tracepoints): our
 * sources, the kernel's software events, the PMUs of sysfs with their events and terms, the tables of libpfm4 for this
 * CPU, and, for patterns with a single colon, tracepoints. A pattern with * ? or [ is a shell pattern and must match
 * the whole name, with or without its PMU; any other pattern matches part of the name; case is ignored. A section may
 * stay empty. Events of one of libpfm4's tables share one probe if its answer is about the unit. Returns the number
 * listed. */
unsigned event_list(const char *const *patterns, const struct event_lister *lister);

/* --- places in an event --- */

/* Events that are places: tracepoints of the kernel (sched:sched_switch) and breakpoints on data or code
 * (mem:0x404040/8:w). Ordinary code of the launcher. */

/* True when the text has the form of a breakpoint: mem: and an address. */
bool breakpoint_is_named(const char *event);

/* Why tracepoints cannot be listed here (tracefs is not mounted or not readable), as part of a sentence; NULL when they
 * can. */
const char *tracepoint_obstacle(void);

/* Calls visit for each tracepoint, sorted; stops when it returns false. */
void tracepoint_visit(bool (*visit)(const char *name, void *ctx), void *ctx);

/* --- similar names --- */

/* "Did you mean": the known event names most similar to an unknown one. Ordinary code of the launcher. */

/* Number of single-letter changes that turn a into b, ignoring case; the result is at most limit + 1. Names longer than
 * 64 bytes are always limit + 1 apart. */
unsigned near_name_distance(const char *a, const char *b, unsigned limit);

/* Fills text [n] with the known event names similar to name ("EADDR, FAULTS"); empty when there is none. */
void near_name_list(const char *name, char *text, size_t n);

/* The same among the events and terms of one PMU. */
void near_name_of_pmu(const struct pmu *pmu, const char *name, char *text, size_t n);

#endif
