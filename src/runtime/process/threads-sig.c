/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts and stops the sampling of all threads. A signal handler may ask for that; it may have interrupted the holder
 * of the lock of the list of threads, so it cannot wait for the lock. It stores the request first, and the holder of
 * the lock checks for requests when it releases the lock. That is why this is apart from threads.c. */
#include "runtime/process/threads.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>

#include "runtime/events/events.h"
#include "runtime/record/sample.h"
#include "base/sigsafe.h"

enum { LOCK_FREE = 0, LOCK_HELD, LOCK_AWAITED };

static struct {
    _Atomic int lock;       /* a futex */
    _Atomic bool is_wanted; /* the last request */
    _Atomic bool is_over;
    struct thread_state *live;
} switching;

static bool thread_try_lock_sig(void)
{
    int lock = LOCK_FREE;
    return atomic_compare_exchange_strong(&switching.lock, &lock, LOCK_HELD);
}

/* A waiting thread sleeps until it is woken: thousands of threads that check again from time to time would leave no CPU
 * time to the holder. */
bool thread_lock_sig(void)
{
    if (thread_try_lock_sig())
        return true;
    while (atomic_exchange(&switching.lock, LOCK_AWAITED) != LOCK_FREE)
        if (own_call_sig(SYS_futex, &switching.lock, FUTEX_WAIT_PRIVATE, LOCK_AWAITED, NULL) != 0 && errno != EAGAIN &&
            errno != EINTR)
            return false;
    return true;
}

static void let_go_sig(void)
{
    if (atomic_exchange(&switching.lock, LOCK_FREE) == LOCK_AWAITED)
        own_call_sig(SYS_futex, &switching.lock, FUTEX_WAKE_PRIVATE, 1);
}

/* When sampling stops, events are switched first, so that few samples are dropped; when it starts, they are switched
 * last, so that none is. */
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

/* A request that comes after the last check finds the lock free. */
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
        let_go_sig();
    }
    shield_lower_sig(&shield);
}

void thread_unlock_sig(void)
{
    let_go_sig();
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
    atomic_store(&switching.lock, LOCK_FREE);
}
