/* SPDX-License-Identifier: BSD-3-Clause */
/* Watchpoints: see events.h. A watchpoint is opened once for each thread, and aimed by a system call that changes its
 * address (Linux 4.17). Signals say which of them has seen an access, so that no ring is needed. Runs in the signal
 * handler, and where events are closed. */
#include <linux/hw_breakpoint.h>
#include <time.h>

#include "runtime/events/events.h"
#include "runtime/own/own-call.h"
#include "runtime/own/process.h"
#include "runtime/record/arena-writer.h"
#include "runtime/record/sample.h"
#include "base/sigsafe.h"

static struct {
    _Atomic bool is_released; /* the program wants them all */
} watching;

/* The kernel compares what it is given with what the event was opened with: all but the last four must be the same. */
struct perf_event_attr watchpoint_attr_sig(const struct meeting_watch *watch)
{
    return (struct perf_event_attr){.type = PERF_TYPE_BREAKPOINT,
                                    .size = sizeof(struct perf_event_attr),
                                    .sample_period = 1,
                                    .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
                                    .exclude_kernel = 1,
                                    .exclude_hv = 1,
                                    .disabled = 1,
                                    .bp_type = watch->is_of_stores ? HW_BREAKPOINT_W : HW_BREAKPOINT_RW,
                                    .bp_addr = watch->address,
                                    .bp_len = watch->bytes};
}

static void close_sig(struct thread_watchpoint *point)
{
    int fd = event_fd_sig(&point->event);
    if (fd >= 0)
        own_call_sig(SYS_close, fd);
    *point = (struct thread_watchpoint){.event = {.fd = -1, .drain_fd = -1}};
}

bool watchpoints_are_wanted_sig(void)
{
    return arena_header_sig()->watches_per_s && !atomic_load(&watching.is_released);
}

void watchpoints_close_sig(struct thread_state *self)
{
    for (unsigned i = 0; i < MEETING_WATCHES; i++)
        close_sig(&self->watchpoints[i]);
}

bool watchpoints_release_sig(void)
{
    struct thread_state *self = process_is_ours_sig() ? thread_self_sig() : NULL;
    if (!self || !arena_header_sig()->watches_per_s)
        return false;
    atomic_store(&watching.is_released, true);
    atomic_store_explicit(&arena_header_sig()->is_watch_released, 1, memory_order_relaxed);
    watchpoints_close_sig(self);
    return true;
}

/* How often the watchpoint has seen an access, by the kernel's count. */
static uint64_t count_sig(const struct thread_watchpoint *point, int fd)
{
    uint64_t words[3]; /* value, enabled, running */
    return own_call_sig(SYS_read, fd, words, sizeof words) < (long)sizeof words ? point->n_seen : words[0];
}

/* An event that is refreshed stops after one more access, one that is only enabled goes on: so it matters whether it
 * still has its shot from before. Linux 6.18 leaves a breakpoint stopped that has stopped so; setting its period starts
 * it again. */
static void arm_sig(struct thread_watchpoint *point, const struct meeting_watch *watch)
{
    uint64_t period = 1;
    struct perf_event_attr attr = watchpoint_attr_sig(watch);
    int fd = event_fd_sig(&point->event);
    if (fd < 0 || own_call_sig(SYS_ioctl, fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr) != 0)
        return;
    long result = point->has_shot ? own_call_sig(SYS_ioctl, fd, PERF_EVENT_IOC_ENABLE, 0)
                                  : own_call_sig(SYS_ioctl, fd, PERF_EVENT_IOC_REFRESH, 1);
    if (result == 0)
        own_call_sig(SYS_ioctl, fd, PERF_EVENT_IOC_PERIOD, &period);
    point->is_armed = result == 0;
    point->has_shot = point->has_shot || result == 0;
}

static void disarm_sig(struct thread_watchpoint *point)
{
    int fd = point->is_armed ? event_fd_sig(&point->event) : -1;
    if (fd < 0)
        return;
    own_call_sig(SYS_ioctl, fd, PERF_EVENT_IOC_DISABLE, 0);
    uint64_t n_seen = count_sig(point, fd);
    point->has_shot = n_seen == point->n_seen;
    point->n_seen = n_seen;
    point->is_armed = false;
}

void watchpoints_stop_sig(struct thread_state *self)
{
    for (unsigned i = 0; i < MEETING_WATCHES; i++) {
        int fd = self->watchpoints[i].is_armed ? event_fd_sig(&self->watchpoints[i].event) : -1;
        if (fd >= 0)
            own_call_sig(SYS_ioctl, fd, PERF_EVENT_IOC_DISABLE, 0);
    }
}

void watchpoints_step_sig(struct thread_state *self)
{
    struct thread_meetings *meetings = &self->meetings;
    if (self->watchpoints[0].event.fd < 0 || self->tree_busy)
        return;
    if (atomic_load_explicit(&watching.is_released, memory_order_relaxed)) {
        watchpoints_close_sig(self);
        meetings->is_watching = false;
        return;
    }
    uint64_t now_ns = own_clock_ns_sig(CLOCK_MONOTONIC);
    if (meetings->is_watching && meeting_is_over_sig(self, now_ns)) {
        for (unsigned i = 0; i < MEETING_WATCHES; i++)
            disarm_sig(&self->watchpoints[i]);
        meeting_end_sig(self);
    }
    if (meetings->is_watching || !meeting_begin_sig(self, now_ns))
        return;
    for (unsigned i = 0; i < MEETING_WATCHES; i++)
        arm_sig(&self->watchpoints[i], &meetings->watches[i]);
}

void watchpoint_take_sig(struct thread_state *self, unsigned index, const ucontext_t *context)
{
    if (!self->ending && !self->tree_busy && sample_is_active_sig())
        meeting_take_sig(self, index, context);
}
