/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting and stopping the events of any thread, with system calls alone: also from the handler of a signal by which
 * the user switches the sampling. */
#include "runtime/events-internal.h"

#include <stddef.h>
#include <time.h>
#include <unistd.h>

#include "runtime/descriptors.h"
#include "runtime/own-call.h"
#include "base/sigsafe.h"

int event_fd_sig(const struct thread_event *event)
{
    return event->fd >= 0 && descriptors_event_id_sig(event->fd) == event->id ? event->fd : -1;
}

int event_drain_fd_sig(const struct thread_event *event)
{
    return event->drain_fd >= 0 && descriptors_event_id_sig(event->drain_fd) == event->drain_id ? event->drain_fd : -1;
}

uint64_t event_clock_period_sig(const struct arena_event *plan)
{
    const struct perf_event_attr *attr = &plan->attr;
    bool is_clock = attr->type == PERF_TYPE_SOFTWARE &&
                    (attr->config == PERF_COUNT_SW_TASK_CLOCK || attr->config == PERF_COUNT_SW_CPU_CLOCK);
    if (!is_clock || plan->flags & (EVENT_DRAINED | EVENT_RING | EVENT_KERNEL | EVENT_SILENT | EVENT_REPLAY) ||
        plan->leader || !attr->sample_period)
        return 0;
    return attr->freq ? 1000000000u / attr->sample_freq : attr->sample_period;
}

uint64_t event_timer_interval_sig(const struct arena_event *plan)
{
    return plan->timer_interval_ns ? plan->timer_interval_ns : event_clock_period_sig(plan);
}

static void timer_arm_sig(const struct thread_event *event, uint64_t interval_ns)
{
    struct timespec interval = {.tv_sec = (time_t)(interval_ns / 1000000000u),
                                .tv_nsec = (long)(interval_ns % 1000000000u)};
    struct itimerspec setting = {.it_interval = interval, .it_value = interval};
    own_call_sig(SYS_timer_settime, event->timer_id, 0, &setting, NULL);
}

/* What a thread computed while its timer was off is not the next sample's. The clock of another thread, as glibc's
 * pthread_getcpuclockid makes it: ~tid << 3 | per-thread | sched. */
static void timer_start_sig(const struct thread_state *self, struct thread_event *event, uint64_t interval_ns)
{
    event->last_cpu_ns = own_clock_ns_sig((clockid_t)(~self->record->tid << 3 | 6u));
    timer_arm_sig(event, interval_ns);
}

static void enable_one_sig(struct thread_state *self, unsigned index, bool enable)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    struct thread_event *event = &self->events[index];
    unsigned long request = enable ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;
    uint64_t interval_ns = event_timer_interval_sig(plan);
    if (event->has_timer && enable)
        timer_start_sig(self, event, interval_ns);
    else if (event->has_timer)
        timer_arm_sig(event, 0);
    if (event->fd < 0 || plan->flags & EVENT_REPLAY)
        return;
    int fd = event_fd_sig(event), drain_fd = event_drain_fd_sig(event);
    if (fd >= 0)
        own_call_sig(SYS_ioctl, fd, request, 0);
    if (drain_fd >= 0)
        own_call_sig(SYS_ioctl, drain_fd, request, 0);
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
    int fd = event_fd_sig(&self->watch);
    if (fd >= 0)
        own_call_sig(SYS_ioctl, fd, enable ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}
