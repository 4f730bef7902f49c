/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks at the clock, and the handler of the signals that start and stop the sampling: see control.h. */
#include "runtime/control.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

#include "runtime/arena-writer.h"
#include "runtime/own-call.h"
#include "runtime/process.h"
#include "runtime/sample.h"
#include "base/sigsafe.h"

static struct {
    _Atomic bool is_waiting; /* for the end of the delay */
} control;

bool control_is_waiting_sig(void)
{
    return atomic_load_explicit(&control.is_waiting, memory_order_relaxed);
}

static bool is_over_sig(void)
{
    uint64_t end_ns = arena_header_sig()->end_of_sampling_ns;
    return end_ns && own_clock_ns_sig(CLOCK_MONOTONIC_COARSE) >= end_ns;
}

bool control_begins_active_sig(void)
{
    const struct arena_header *header = arena_header_sig();
    atomic_store(&control.is_waiting, own_clock_ns_sig(CLOCK_MONOTONIC_COARSE) < header->begin_ns);
    return !header->delay_sampling && !control_is_waiting_sig() && !is_over_sig();
}

void control_start_sig(void)
{
    atomic_store(&control.is_waiting, false);
    if (!is_over_sig())
        thread_switch_sig(true);
}

void control_begin_sig(void)
{
    if (control_is_waiting_sig() && own_clock_ns_sig(CLOCK_MONOTONIC_COARSE) >= arena_header_sig()->begin_ns)
        control_start_sig();
}

void control_end_sig(void)
{
    if (sample_is_active_sig() && is_over_sig())
        thread_switch_sig(false);
}

/* One signal for both switches to and fro. */
static void switch_by_sig(int number)
{
    const struct arena_header *header = arena_header_sig();
    bool starts = (uint32_t)number == header->start_signal, stops = (uint32_t)number == header->stop_signal;
    if (starts && stops)
        starts = !sample_is_active_sig();
    if (starts)
        control_start_sig();
    else if (stops)
        thread_switch_sig(false);
}

void control_handler_sig(int number, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    if (process_is_ours_sig())
        switch_by_sig(number);
    errno = saved_errno;
    chain_call_sig(number, info, context);
}
