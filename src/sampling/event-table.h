/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of memory events: which load and store event gives data addresses on which CPU, for CPUs that their kernel
 * does not describe (no events/mem-loads in sysfs). It is a file, pmu-events.txt, so that a new CPU needs no new
 * version of this program; its head says what the columns hold. Read in this order, a later row wins:
 *   the installed one (share/locus), $XDG_CONFIG_HOME/locus or ~/.config/locus, the file that HPCRUN_PMU_TABLE names.
 * Ordinary code of the launcher. */
#ifndef LOCUS_SAMPLING_EVENT_TABLE_H
#define LOCUS_SAMPLING_EVENT_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "sampling/machine.h"

struct event_row {
    char load[192], store[192]; /* events as pmu_encode takes them, groups included; empty: there is none. The word
                                 * LDLAT in load stands for the latency threshold */
    uint64_t ldlat;             /* default threshold, core cycles; 0: the load event has none */
    uint64_t load_period, store_period; /* events from sample to sample by default */
    bool tells_source;          /* records say where the data came from, not only their address */
    char origin[320];           /* file and line, or "the installed event table" */
};

/* The last row for this CPU and PMU (a name in sysfs); false when there is none. complaints (n bytes) receives a
 * sentence with file, line and reason for each row that cannot be understood, and is empty otherwise. */
bool event_table_find(const struct machine_cpu *cpu, const char *pmu, struct event_row *row, char *complaints,
                      size_t n_complaints);

/* Where a user's own rows go, for advice: the file in the configuration directory. */
void event_table_user_path(char *path, size_t n_path);

#endif
