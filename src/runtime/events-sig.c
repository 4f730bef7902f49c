/* SPDX-License-Identifier: BSD-3-Clause */
/* The overflow handler: tells which event fired, takes its sample, and passes on signals that are not ours. */
#include "runtime/events-internal.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

#include "runtime/process.h"
#include "runtime/ring.h"
#include "runtime/sample.h"
#include "base/sigsafe.h"

static struct {
    struct sigaction program; /* what the program set for our signal */
} chain;

void events_set_program_action_sig(const struct sigaction *action, struct sigaction *old)
{
    if (old)
        *old = chain.program;
    if (action)
        chain.program = *action;
}

static void chain_sig(int number, siginfo_t *info, void *context)
{
    struct sigaction action = chain.program;
    if (action.sa_flags & SA_SIGINFO) {
        if (action.sa_sigaction)
            action.sa_sigaction(number, info, context);
    } else if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) {
        action.sa_handler(number);
    }
}

static uint64_t thread_cpu_ns_sig(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Index of the event that raised the signal, -1 when it is not one of ours. */
static int event_index_sig(const struct thread_state *self, const siginfo_t *info)
{
    const struct arena_header *header = arena_header_sig();
    for (unsigned i = 0; i < header->n_events; i++) {
        if (info->si_code == SI_TIMER) {
            if (self->events[i].has_timer && self->events[i].timer_id == info->si_timerid)
                return (int)i;
        } else if (info->si_code > 0 && info->si_fd >= 0 &&
                   (self->events[i].fd == info->si_fd || self->events[i].drain_fd == info->si_fd)) {
            return (int)i;
        }
    }
    return -1;
}

void events_drain_sig(struct thread_state *self, unsigned index)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    struct ring_sample record;
    bool is_last = false;
    while (ring_take_sig(self->events[index].ring, plan->attr.sample_type, &record, &is_last)) {
        struct sample_event event = {.index = (uint8_t)index, .has_address = true, .address = record.address};
        if (plan->flags & EVENT_WEIGHTED)
            event.weight = record.period;
        atomic_fetch_add(&self->record->fates[index][FATE_NOT_DELIVERED], record.n_lost);
        sample_take_plain_sig(self, &event, (uintptr_t)record.ip);
    }
}

/* The record that belongs to this signal is the newest one: nothing else of this thread can have overflowed since. */
static void take_newest_sig(struct thread_state *self, unsigned index, const ucontext_t *context)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    struct sample_event event = {.index = (uint8_t)index};
    struct ring_sample record;
    if (ring_newest_sig(self->events[index].ring, plan->attr.sample_type, &record)) {
        event.has_address = true;
        event.address = record.address;
        event.weight = plan->flags & EVENT_WEIGHTED ? record.period : 0;
    }
    sample_take_sig(self, &event, context);
}

static void take_sig(struct thread_state *self, unsigned index, const ucontext_t *context)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    struct thread_event *event = &self->events[index];
    if (plan->flags & EVENT_RING_ONLY)
        return; /* a sign that its ring fills, no sample */
    if (event->ring && plan->flags & EVENT_RING) {
        take_newest_sig(self, index, context);
        return;
    }
    struct sample_event sample = {.index = (uint8_t)index};
    if (event->has_timer) {
        uint64_t now = thread_cpu_ns_sig();
        sample.weight = now - event->last_cpu_ns;
        event->last_cpu_ns = now;
    }
    sample_take_sig(self, &sample, context);
}

/* Silent rings are emptied on the occasion of any signal, but not while the interrupted code is doing just that. */
static void drain_silent_sig(struct thread_state *self)
{
    const struct arena_header *header = arena_header_sig();
    for (unsigned i = 0; i < header->n_events; i++) {
        if (header->events[i].flags & EVENT_RING_ONLY && self->events[i].ring && !self->tree_busy)
            events_drain_sig(self, i);
    }
}

void events_drain_all_sig(struct thread_state *self)
{
    const struct arena_header *header = arena_header_sig();
    for (unsigned i = 0; i < header->n_events; i++) {
        const struct perf_event_mmap_page *ring = self->events[i].ring;
        if (!(header->events[i].flags & EVENT_RING_ONLY) || !ring || self->in_handler || self->tree_busy ||
            ring->data_head == ring->data_tail)
            continue;
        self->tree_busy = 1;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        events_drain_sig(self, i);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        self->tree_busy = 0;
    }
}

/* Takes the sample that the signal brings; -1 when it is not ours. Who closes the events of another thread says so and
 * then waits until its handler is not under way: so in_handler is set before ending is read. */
static int handle_sig(struct thread_state *self, const siginfo_t *info, const ucontext_t *context)
{
    self->in_handler = 1;
    atomic_thread_fence(memory_order_seq_cst);
    int index = event_index_sig(self, info);
    if (index >= 0 && self->ending) {
        sample_refuse_sig(self, (unsigned)index);
    } else if (index >= 0) {
        take_sig(self, (unsigned)index, context);
        drain_silent_sig(self);
    }
    atomic_thread_fence(memory_order_release);
    self->in_handler = 0;
    return index;
}

void events_handler_sig(int number, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    struct thread_state *self = thread_self_sig();
    int index = -1;
    if (self && process_is_ours_sig())
        index = handle_sig(self, info, context);
    if (index < 0 && info->si_code <= 0)
        chain_sig(number, info, context);
    errno = saved_errno;
}
