/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of threads, and the start and the stop of the sampling of all of them. A thread enters the list and leaves
 * it without a lock, so that thousands of threads that begin or end at once never wait for each other. A signal handler
 * may ask for a switch; it may have interrupted another switch, so it cannot wait for that either. It stores the
 * request first, and whoever switches looks for requests when done. That is why this is apart from threads.c. */
#include "runtime/process/threads.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>

#include "base/clock.h"
#include "runtime/events/events.h"
#include "runtime/events/signals.h"
#include "runtime/own/arch.h"
#include "runtime/own/own-call.h"
#include "runtime/record/sample.h"
#include "base/sigsafe.h"

static struct {
    struct thread_state *_Atomic listed; /* all states that ever were a thread's, alive or not */
    struct thread_state *_Atomic at;     /* the one whose events are being switched just now */
    _Atomic bool is_switching;
    _Atomic bool is_wanted; /* the last request */
    _Atomic bool is_over;
    _Atomic uint32_t n_live;
} switching;

static bool begin_switching_sig(void)
{
    return !atomic_exchange(&switching.is_switching, true);
}

/* Who ends a thread marks its state first and then looks at `at`; here it is the other way round. So a state that is
 * switched here either is alive or is not used again. */
static void switch_each_sig(bool is_active)
{
    for (struct thread_state *state = atomic_load(&switching.listed); state; state = state->next_listed) {
        atomic_store(&switching.at, state);
        if (!atomic_load(&state->is_live))
            continue;
        events_enable_sig(state, is_active);
        if (!is_active)
            atomic_store_explicit(&state->waits.has_gap, true, memory_order_relaxed);
    }
    atomic_store(&switching.at, NULL);
}

/* When sampling stops, events are switched first, so that few samples are dropped; when it starts, they are switched
 * last, so that none is. */
static void switch_all_sig(bool is_active)
{
    if (is_active)
        sample_set_active_sig(true);
    switch_each_sig(is_active);
    if (!is_active)
        sample_set_active_sig(false);
}

static bool is_pending_sig(void)
{
    return atomic_load(&switching.is_wanted) != sample_is_active_sig() && !atomic_load(&switching.is_over);
}

/* A request that comes after the last check finds nobody switching. */
static void settle_sig(void)
{
    struct shield shield;
    if (!is_pending_sig())
        return;
    shield_raise_sig(&shield);
    while (is_pending_sig() && begin_switching_sig()) {
        bool is_wanted = atomic_load(&switching.is_wanted);
        if (is_wanted != sample_is_active_sig())
            switch_all_sig(is_wanted);
        atomic_store(&switching.is_switching, false);
    }
    shield_lower_sig(&shield);
}

void thread_switch_sig(bool is_active)
{
    if (atomic_load(&switching.is_over))
        return;
    atomic_store(&switching.is_wanted, is_active);
    settle_sig();
}

void thread_switch_init_sig(bool is_active)
{
    atomic_store(&switching.is_wanted, is_active);
    sample_set_active_sig(is_active);
}

void thread_switch_end_sig(void)
{
    atomic_store(&switching.is_over, true);
    sample_set_active_sig(false);
}

static bool is_wanted_now_sig(void)
{
    return atomic_load(&switching.is_wanted) && !atomic_load(&switching.is_over);
}

/* A request is stored before the list is walked: if the walk has passed this thread by, the request is seen here. */
void thread_switch_new_sig(struct thread_state *state)
{
    bool is_on = false;
    while (is_wanted_now_sig() != is_on) {
        is_on = !is_on;
        events_enable_sig(state, is_on);
    }
    settle_sig(); /* in a child of fork, nobody else may be left to do that */
}

static struct thread_state *first_live_sig(struct thread_state *state)
{
    while (state && !atomic_load(&state->is_live))
        state = state->next_listed;
    return state;
}

struct thread_state *thread_live_sig(void)
{
    return first_live_sig(atomic_load(&switching.listed));
}

struct thread_state *thread_live_next_sig(const struct thread_state *state)
{
    return first_live_sig(state->next_listed);
}

void thread_live_add_sig(struct thread_state *state)
{
    if (!state->is_listed) {
        state->is_listed = true;
        state->next_listed = atomic_load(&switching.listed);
        while (!atomic_compare_exchange_weak(&switching.listed, &state->next_listed, state))
            continue;
    }
    atomic_store(&state->is_live, true);
    state->n_live = atomic_fetch_add(&switching.n_live, 1) + 1;
}

bool thread_live_remove_sig(struct thread_state *state)
{
    if (atomic_exchange(&state->is_live, false))
        atomic_fetch_sub(&switching.n_live, 1);
    return atomic_load(&switching.at) != state;
}

void thread_live_reset_sig(void)
{
    atomic_store(&switching.listed, NULL);
    atomic_store(&switching.at, NULL);
    atomic_store(&switching.is_switching, false);
    atomic_store(&switching.n_live, 0);
}

/* --- the end of the process: the other threads stand still --- */

#define STAND_NS ((COMPANION_END_WAIT_MS + UINT64_C(1000)) * CLOCK_MS_NS)
#define CUT_NS 500000000 /* the process ends in much less */

static struct {
    _Atomic uint32_t how;   /* enum thread_stop; threads sleep on it */
    _Atomic uint32_t pid;   /* of the process: a child has a copy of this */
    _Atomic uint32_t ender; /* the thread that all wait for: its own signals come when its shield is lowered */
} stop;

bool thread_is_stop_sig(const siginfo_t *info)
{
    return info->si_code == SI_QUEUE && info->si_value.sival_ptr == &stop;
}

static void send_stop_sig(const struct thread_state *state, uint32_t pid)
{
    siginfo_t info = {.si_signo = EVENTS_SIGNAL, .si_code = SI_QUEUE};
    info.si_pid = (pid_t)pid;
    info.si_value.sival_ptr = &stop;
    (void)own_call_sig(SYS_rt_tgsigqueueinfo, pid, state->record->tid, EVENTS_SIGNAL, &info);
}

void thread_stop_others_sig(enum thread_stop how)
{
    const struct thread_state *self = thread_self_sig();
    uint32_t pid = own_pid_sig();
    atomic_store(&stop.pid, pid);
    atomic_store(&stop.ender, own_tid_sig());
    atomic_store(&stop.how, how);
    for (struct thread_state *state = atomic_load(&switching.listed); state; state = state->next_listed) {
        bool is_there = atomic_load(&state->is_live) || atomic_load(&state->is_left);
        bool is_reached = !state->is_waiting && !state->is_holding && !state->lacks_stack_room;
        if (state != self && is_there && is_reached && !atomic_load(&state->is_standing))
            send_stop_sig(state, pid);
    }
}

void thread_release_others_sig(void)
{
    atomic_store(&stop.how, STOP_NONE);
    (void)own_call_sig(SYS_futex, &stop.how, FUTEX_WAKE_PRIVATE, INT_MAX);
}

/* Of a thread that is left, the one that ends the process changes the trees. */
static bool may_stand_sig(const struct thread_state *self, uint32_t how)
{
    bool is_ours = self && (self->in_hook || self->in_allocator || (self->tree_busy && !atomic_load(&self->is_left)));
    return how && (how == STOP_ANYWHERE || !is_ours) && atomic_load(&stop.pid) == own_pid_sig() &&
           atomic_load(&stop.ender) != own_tid_sig();
}

static void wait_for_release_sig(void)
{
    uint64_t now_ns = own_clock_ns_sig(CLOCK_MONOTONIC), end_ns = now_ns + STAND_NS;
    uint32_t how;
    for (; (how = atomic_load(&stop.how)) && now_ns < end_ns; now_ns = own_clock_ns_sig(CLOCK_MONOTONIC)) {
        struct timespec limit = {.tv_sec = (time_t)((end_ns - now_ns) / CLOCK_S_NS),
                                 .tv_nsec = (long)((end_ns - now_ns) % CLOCK_S_NS)};
        (void)own_call_sig(SYS_futex, &stop.how, FUTEX_WAIT_PRIVATE, how, &limit);
    }
}

/* Once released, a thread may be needed for what the process still does: it may hold a lock. But one that slept in a
 * system call does not come back from it early, before the process is gone. */
bool thread_stand_sig(struct thread_state *self, const siginfo_t *info, const ucontext_t *context)
{
    const struct timespec cut = {.tv_nsec = CUT_NS};
    if (!may_stand_sig(self, atomic_load(&stop.how)))
        return thread_is_stop_sig(info);
    if (self)
        atomic_store(&self->is_standing, true);
    wait_for_release_sig();
    if (arch_call_is_cut_sig(context))
        (void)own_call_sig(SYS_nanosleep, &cut, NULL);
    if (self)
        atomic_store(&self->is_standing, false);
    return thread_is_stop_sig(info);
}
