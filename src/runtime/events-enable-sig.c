/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting and stopping the events of any thread, with system calls alone: also from the handler of a signal by which
 * the user switches the sampling. */
#include "runtime/events-internal.h"

#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/sigsafe.h"

static void timer_arm_sig(const struct thread_event *event, uint64_t interval_ns)
{
    struct timespec interval = {.tv_sec = (time_t)(interval_ns / 1000000000u),
                                .tv_nsec = (long)(interval_ns % 1000000000u)};
    struct itimerspec setting = {.it_interval = interval, .it_value = interval};
    syscall(SYS_timer_settime, event->timer_id, 0, &setting, NULL);
}

/* What a thread computed while its timer was off is not the next sample's. The clock of another thread, as glibc's
 * pthread_getcpuclockid makes it: ~tid << 3 | per-thread | sched. */
static void timer_start_sig(const struct thread_state *self, struct thread_event *event, uint64_t interval_ns)
{
    struct timespec now = {0};
    clock_gettime((clockid_t)(~self->record->tid << 3 | 6u), &now);
    event->last_cpu_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    timer_arm_sig(event, interval_ns);
}

static void enable_one_sig(struct thread_state *self, unsigned index, bool enable)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    struct thread_event *event = &self->events[index];
    unsigned long request = enable ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;
    if (event->has_timer && enable)
        timer_start_sig(self, event, plan->timer_interval_ns);
    else if (event->has_timer)
        timer_arm_sig(event, 0);
    if (event->fd < 0 || plan->flags & EVENT_REPLAY)
        return;
    syscall(SYS_ioctl, event->fd, request, 0);
    if (event->drain_fd >= 0)
        syscall(SYS_ioctl, event->drain_fd, request, 0);
    if (!enable)
        events_read_times_sig(self, index);
}

void events_enable_sig(struct thread_state *self, bool enable)
{
    for (unsigned i = 0; i < arena_header_sig()->n_events; i++)
        enable_one_sig(self, i, enable);
    events_enable_watch_sig(self, false);
}

void events_enable_watch_sig(struct thread_state *self, bool enable)
{
    if (self->watch.has_timer)
        timer_arm_sig(&self->watch, enable ? CONTROL_WATCH_NS : 0);
    if (self->watch.fd >= 0)
        syscall(SYS_ioctl, self->watch.fd, enable ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}
