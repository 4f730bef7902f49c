/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits by call path: see waits.h. A wait is the time of a call less the thread's CPU
 * time in it; so what the thread waits for a processor after it was woken is part of it. Ordinary code of the program's
 * threads, which may be in a signal handler that interrupted ours. */
#include "runtime/process/waits.h"

#include <errno.h>
#include <stdatomic.h>

#include "runtime/own/process.h"
#include "runtime/record/sample.h"

#define LEAST_NS 1000 /* below it a call has not waited: reading two clocks takes about as long */

struct thread_state *waits_measured_thread(void)
{
    struct thread_state *self = thread_self_sig();
    bool is_free = self && (self->waits.is_wanted || self->waits.has_transfers) && !self->ending &&
                   !thread_is_changing_trees_sig(self);
    if (!is_free || !process_is_ours_sig() || process_is_vfork_child_sig() || sandbox_is_entered_sig())
        return NULL;
    return sample_is_active_sig() && !sample_is_paused_sig() ? self : NULL;
}

__attribute__((visibility("default"))) void *locus_wait_leaf_event(const char *name)
{
    return own_libc_function(name);
}

__attribute__((visibility("default"))) bool locus_wait_begin_event(struct wait_call *call)
{
    struct thread_state *self = waits_measured_thread();
    if (!self || !self->waits.is_wanted)
        return false;
    struct thread_wait *wait = &self->waits.now;
    call->outer = *wait;
    call->blocked_ns = self->waits.blocked_ns;
    wait->since_ns = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    wait->pc = call->site.pc;
    wait->sp = call->site.sp;
    wait->fp = call->site.fp;
    wait->function = call->function;
    wait->cpu_ns = own_clock_ns_sig(CLOCK_THREAD_CPUTIME_ID);
    __atomic_store_n(&wait->since_ns, own_clock_ns_sig(CLOCK_MONOTONIC), __ATOMIC_RELEASE);
    return true;
}

struct unwind_start waits_start_at(uintptr_t pc, uintptr_t sp, uintptr_t fp)
{
    struct unwind_start start = {.pc = pc, .known = (uint64_t)1 << UNWIND_FP | (uint64_t)1 << UNWIND_SP};
    start.gpr[UNWIND_FP] = fp;
    start.gpr[UNWIND_SP] = sp;
    return start;
}

/* Records a wait of ns in the call that is noted. */
static void add(struct thread_state *state, const struct thread_wait *noted, uint64_t ns)
{
    const struct unwind_start start = waits_start_at(noted->pc, noted->sp, noted->fp);
    const struct sample_call wait = {
        .event = (uint8_t)state->waits.event, .weight = ns, .function = noted->function, .start = &start};
    sample_take_call_sig(state, &wait);
    state->waits.blocked_ns += ns;
}

/* The wait's time so far, without what was recorded of it on its own; 0 when it has not waited. */
static uint64_t waited_ns(const struct thread_wait *wait, uint64_t cpu_ns, uint64_t inner_ns)
{
    uint64_t ns = own_clock_ns_sig(CLOCK_MONOTONIC) - wait->since_ns;
    uint64_t used_ns = cpu_ns - wait->cpu_ns + inner_ns;
    return cpu_ns && ns > used_ns + LEAST_NS ? ns - used_ns : 0;
}

static void record(struct thread_state *self, const struct thread_wait *wait, uint64_t ns)
{
    self->tree_busy = 1;
    atomic_thread_fence(memory_order_seq_cst); /* the ending thread sets ending, then reads tree_busy */
    if (!self->ending)
        add(self, wait, ns);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->tree_busy = 0;
}

__attribute__((visibility("default"))) void locus_wait_end_event(const struct wait_call *call)
{
    struct thread_state *self = waits_measured_thread();
    int saved_errno = errno;
    if (!self || !self->waits.is_wanted)
        return;
    const struct thread_wait wait = self->waits.now;
    __atomic_store_n(&self->waits.now.since_ns, 0, __ATOMIC_RELEASE);
    /* After a fork in a handler, or a jump out of one, the wait that is noted may be another one. */
    if (wait.since_ns && wait.sp == call->site.sp && own_clock_ns_sig(CLOCK_MONOTONIC) - wait.since_ns > LEAST_NS) {
        uint64_t cpu_ns = own_clock_ns_sig(CLOCK_THREAD_CPUTIME_ID);
        uint64_t ns = waited_ns(&wait, cpu_ns, self->waits.blocked_ns - call->blocked_ns);
        if (ns) {
            record(self, &wait, ns);
            sample_look_sig(self);
        }
    }
    self->waits.now = call->outer;
    errno = saved_errno;
}

/* --- beginning and end of a thread --- */

/* Finds the events that are wanted. */
static void find_events(struct thread_waits *waits)
{
    const struct arena_header *header = arena_header_sig();
    waits->transfers[0] = waits->transfers[1] = -1;
    for (uint32_t i = 0; i < header->n_events; i++) {
        uint32_t source = header->events[i].source;
        if (source == SOURCE_BLOCKTIME) {
            waits->event = i;
            waits->is_wanted = true;
        } else if (source == SOURCE_IO_READ || source == SOURCE_IO_WRITE) {
            waits->transfers[source == SOURCE_IO_WRITE] = (int8_t)i;
            waits->has_transfers = true;
        }
    }
}

void waits_begin(struct thread_state *state)
{
    struct thread_waits *waits = &state->waits;
    find_events(waits);
    if (waits->has_transfers)
        state->wait_path.n_frames = 0;
    if (!waits->is_wanted)
        return;
    state->wait_path.n_frames = 0;
    uint64_t cpu_ns = state == thread_self_sig() ? own_clock_ns_sig(CLOCK_THREAD_CPUTIME_ID) : 0;
    waits->began_ns = cpu_ns ? own_clock_ns_sig(CLOCK_MONOTONIC) - cpu_ns : 0;
}

/* What the thread has waited elsewhere, at its root: so that its waits and its CPU time add up to its life. Not where
 * it was not measured for a while. */
static void add_rest(struct thread_state *state, uint64_t cpu_ns)
{
    const struct arena_header *header = arena_header_sig();
    bool has_gap = header->delay_sampling || header->begin_ns || atomic_load(&header->paused_ns) ||
                   atomic_load(&header->paused_since_ns) || atomic_load(&state->waits.has_gap);
    uint64_t ns = has_gap ? 0 : sample_rest_sig(state, cpu_ns);
    const struct sample_call rest = {.event = (uint8_t)state->waits.event, .weight = ns};
    if (ns <= LEAST_NS)
        return;
    sample_take_call_sig(state, &rest);
}

void waits_end(struct thread_state *state, uint64_t cpu_ns)
{
    const struct thread_wait wait = state->waits.now;
    if (!state->waits.is_wanted)
        return;
    uint64_t ns = wait.since_ns && state != thread_self_sig() ? waited_ns(&wait, cpu_ns, 0) : 0;
    if (ns)
        add(state, &wait, ns);
    state->waits.now.since_ns = 0;
    add_rest(state, cpu_ns);
}
