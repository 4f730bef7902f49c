/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting and stopping the sampling of all threads. It may be asked for in a signal handler, which interrupts anything
 * and so cannot wait for the lock of the list of threads: the wish is written down first, and whoever holds the lock
 * looks for wishes when it lets go. Apart from thread.c because of that. */
#include "runtime/thread-internal.h"

#include <stddef.h>

#include "runtime/events.h"
#include "runtime/sample.h"
#include "base/sigsafe.h"

static struct {
    _Atomic int lock;
    _Atomic bool is_wanted; /* what was asked for last */
    _Atomic bool is_over;
    struct thread_state *live;
} switching;

bool thread_try_lock_sig(void)
{
    return !atomic_exchange(&switching.lock, 1);
}

/* Events first when it stops, so that few samples are dropped; last when it starts, so that none is. */
static void switch_all_sig(bool is_active)
{
    if (is_active)
        sample_set_active_sig(true);
    for (struct thread_state *state = switching.live; state; state = state->next_live)
        events_enable_sig(state, is_active);
    if (!is_active)
        sample_set_active_sig(false);
}

static bool is_pending_sig(void)
{
    return atomic_load(&switching.is_wanted) != sample_is_active_sig() && !atomic_load(&switching.is_over);
}

/* A wish that comes after the last look finds the lock free. */
static void settle_sig(void)
{
    struct shield shield;
    if (!is_pending_sig())
        return;
    shield_raise_sig(&shield);
    while (is_pending_sig() && thread_try_lock_sig()) {
        bool is_wanted = atomic_load(&switching.is_wanted);
        if (is_wanted != sample_is_active_sig())
            switch_all_sig(is_wanted);
        atomic_store(&switching.lock, 0);
    }
    shield_lower_sig(&shield);
}

void thread_unlock_sig(void)
{
    atomic_store(&switching.lock, 0);
    settle_sig();
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

struct thread_state *thread_live_sig(void)
{
    return switching.live;
}

void thread_live_add_sig(struct thread_state *state)
{
    state->previous_live = NULL;
    state->next_live = switching.live;
    if (switching.live)
        switching.live->previous_live = state;
    switching.live = state;
}

void thread_live_remove_sig(const struct thread_state *state)
{
    if (state->next_live)
        state->next_live->previous_live = state->previous_live;
    if (state->previous_live)
        state->previous_live->next_live = state->next_live;
    else
        switching.live = state->next_live;
}

void thread_live_reset_sig(void)
{
    switching.live = NULL;
    atomic_store(&switching.lock, 0);
}
