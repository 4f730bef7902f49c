/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that are places: tracepoints of the kernel (sched:sched_switch) and breakpoints on data or code
 * (mem:0x404040/8:w). Ordinary code of the launcher. */
#ifndef LOCUS_SAMPLING_EVENT_PLACES_H
#define LOCUS_SAMPLING_EVENT_PLACES_H

#include <linux/perf_event.h>
#include <stdbool.h>

#include "base/error.h"

/* True when the text has the form of a breakpoint: mem: and an address. */
bool breakpoint_is_named(const char *event);

/* mem:ADDRESS[/BYTES][:ACCESS]: type, bp_type, bp_addr and bp_len of *attr. ACCESS: r, w, rw or x; rw and 4 bytes when
 * nothing is said. The rest of the text, modifiers without their colon, goes to *modifiers, inside event or "".
 * src: perf_event_open(2), perf-record(1)
 * err: ERR_USAGE, ERR_RANGE */
int breakpoint_encode(const char *event, struct perf_event_attr *attr, const char **modifiers, struct error *err);

/* SUBSYSTEM:NAME: type and config of *attr by tracefs. False when tracefs tells of no such tracepoint. */
bool tracepoint_encode(const char *name, struct perf_event_attr *attr);

/* Why tracepoints cannot be told here (tracefs not mounted or not readable), as half a sentence; NULL when they can. */
const char *tracepoint_obstacle(void);

/* Calls visit for each tracepoint, sorted; stops when it returns false. */
void tracepoint_visit(bool (*visit)(const char *name, void *ctx), void *ctx);

#endif
