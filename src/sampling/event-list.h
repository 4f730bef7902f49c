/* SPDX-License-Identifier: BSD-3-Clause */
/* All events that -e takes on this machine, by the unit that counts them, and which of them open. Ordinary code of the
 * launcher. */
#ifndef LOCUS_SAMPLING_EVENT_LIST_H
#define LOCUS_SAMPLING_EVENT_LIST_H

#include <stdbool.h>

#include "sampling/source.h"

enum event_mark {
    EVENT_OPENS = 0,
    EVENT_REFUSED,   /* not on this machine */
    EVENT_INCOMPLETE /* not as it stands: it needs a sub-event or the value of a term */
};

/* Where the list goes. Strings are valid during the call only. */
struct event_lister {
    void (*section)(const char *title, void *ctx);
    /* why: reason and fix of all marks but EVENT_OPENS */
    void (*event)(enum event_mark mark, const char *name, const char *summary, const struct source_probe *why,
                  void *ctx);
    void (*note)(const char *text, void *ctx);
    void *ctx;
};

/* Lists what matches one of the patterns (ended by NULL; none at all: everything but tracepoints): our sources, the
 * kernel's software events, the PMUs of sysfs with their events and terms, the tables of libpfm4 for this CPU, and, for
 * patterns with a single colon, tracepoints. A pattern with * ? or [ is one of the shell and must match the whole name,
 * with or without its PMU; any other matches as a part of the name; case does not count. A section may stay empty.
 * Events of one of libpfm4's tables share one probe where its answer is about the unit. Returns the number listed. */
unsigned event_list(const char *const *patterns, const struct event_lister *lister);

#endif
