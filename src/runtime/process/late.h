/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that is measured from its middle on (hpcrun --unsafe-attach). */
#ifndef LOCUS_RUNTIME_PROCESS_LATE_H
#define LOCUS_RUNTIME_PROCESS_LATE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/record/sample.h"
#include "runtime/record/thread.h"

/* A mapping that was there when the runtime came. */
struct late_mapping {
    uintptr_t low, high;
    uint32_t name; /* reference of an arena_string; 0: what lies there has a name otherwise */
};

/* The mappings, ordered by address, which stay where they are.  ctx: ordinary, once */
void late_set_mappings_sig(const struct late_mapping *mappings, uint32_t n);

/* Notes in the state of the calling thread what only itself knows of it: thread pointer and stack.  ctx: any */
void late_meet_sig(struct thread_state *state);

/* What the launcher calls in the program, by ptrace. */

enum late_answer {
    LATE_DONE = 1,
    LATE_REFUSED, /* the companion was not heard, or refused: it has said why */
    LATE_AGAIN    /* the library has measured this process before */
};

/* companion: as companion_way_keep writes it. Returns enum late_answer.  ctx: ordinary, all signals blocked */
long locus_attach(const char *companion);

/* Ends the measurement; the program goes on. Returns enum late_answer.  ctx: as locus_attach */
long locus_detach(void);

#endif
