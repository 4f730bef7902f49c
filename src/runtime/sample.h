/* SPDX-License-Identifier: BSD-3-Clause */
/* One sample: from the overflow signal to the records in the arena. */
#ifndef LOCUS_RUNTIME_SAMPLE_H
#define LOCUS_RUNTIME_SAMPLE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "runtime/access.h"
#include "runtime/arch.h"
#include "runtime/own-call.h"
#include "runtime/thread.h"

/* What the event itself knows of the sample. */
struct sample_event {
    uint8_t index;      /* into arena_header.events */
    bool has_access;    /* the record was found */
    uint64_t weight;    /* in the event's unit, 0 for a fixed period */
    uint64_t moved_var; /* what its address was when it was accessed, where that has changed; else 0 */
    struct access access;
};

/* Records one sample of the interrupted context; the fate is counted in any case.  ctx: signal handler of self */
void sample_take_sig(struct thread_state *self, const struct sample_event *event, const ucontext_t *context);

/* Records a sample of which only its record is known (large buffers), also when sampling has been stopped since.
 * ctx: signal handler of self, or its ordinary code with tree_busy set */
void sample_take_plain_sig(struct thread_state *self, const struct sample_event *event);

/* Counts a sample that is not recorded.  ctx: as sample_take_plain_sig */
void sample_drop_sig(struct thread_state *self, unsigned event, enum fate fate);

/* Counts whatever was taken and has no fate yet as dropped: the code that was about to decide it will never go on.
 * ctx: who ends self */
void sample_forget_pending_sig(struct thread_state *self);

/* Tries to attribute pending samples. final: those that still cannot be are dropped and counted.
 * ctx: signal handler of self, or its ordinary code with tree_busy set */
void sample_resolve_pending_sig(struct thread_state *self, bool final);

/* True when a pending sample knows its address and only waits for its object.  ctx: any, thread of self */
bool sample_has_parked_sig(const struct thread_state *self);

/* Likewise for those that know their address and wait for the object there: at the end of every recorded allocation,
 * so it leaves alone what waits for the companion.  ctx: as sample_resolve_pending_sig */
void sample_resolve_parked_sig(struct thread_state *self);

/* Sampling as a whole, by the public API.  ctx: any */
void sample_set_active_sig(bool active);
bool sample_is_active_sig(void);

#endif
