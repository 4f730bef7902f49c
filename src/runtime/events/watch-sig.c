/* SPDX-License-Identifier: BSD-3-Clause */
/* Counted events, and watchpoints: see events.h. A watchpoint is opened once for each thread, and aimed by a system
 * call that changes its address (Linux 4.17). Signals say which of them has seen an access, so that no ring is needed.
 * Runs in the signal handler, and where events are closed. */
#include <linux/hw_breakpoint.h>
#include <time.h>

#include "runtime/events/events.h"
#include "runtime/own/own-call.h"
#include "runtime/own/process.h"
#include "runtime/record/arena-writer.h"
#include "runtime/record/sample.h"
#include "base/sigsafe.h"

/* --- counted events --- */

#define SAMPLES_A_STEP 16 /* of the process, before a sample may stand for twice as many events */

/* How often threads of this process count events, as far as that has been seen. */
static struct {
    _Atomic uint64_t period;    /* that threads begin with, 0: nothing has been seen yet */
    _Atomic uint64_t n_samples; /* of threads of this process */
} pace[ARENA_EVENTS_MAX];

bool events_has_each_sig(const struct arena_event *plan)
{
    const struct perf_event_attr *attr = &plan->attr;
    return abi_is_counted_sig(attr) && attr->sample_type & PERF_SAMPLE_PERIOD && !attr->freq;
}

bool event_is_counted_sig(const struct arena_event *plan)
{
    const struct perf_event_attr *attr = &plan->attr;
    if (!abi_is_counted_sig(attr) || attr->sample_type & (PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ) ||
        plan->flags & (EVENT_DRAINED | EVENT_SILENT | EVENT_REPLAY))
        return false;
    return attr->freq ? plan->flags & EVENT_WEIGHTED && !plan->leader : attr->sample_period > 1;
}

static bool read_count_sig(const struct thread_event *event, uint64_t *count)
{
    uint64_t words[3];
    int fd = event_fd_sig(event);
    if (fd < 0 || own_call_sig(SYS_read, fd, words, sizeof words) <= 0)
        return false;
    *count = words[0];
    return true;
}

static uint64_t first_period_sig(struct thread_event *event, unsigned index)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    const struct governor_plan governed = events_governed_sig(plan);
    uint64_t period = governor_period_sig(&event->governor, &governed);
    if (!plan->attr.freq)
        return period;
    event->last_cpu_ns = own_clock_ns_sig(CLOCK_THREAD_CPUTIME_ID);
    period = atomic_load_explicit(&pace[index].period, memory_order_relaxed);
    return period ? period : 1;
}

uint64_t event_count_begin_sig(const struct thread_state *self, struct thread_event *event, unsigned index)
{
    struct governor_cell cell = governor_first_cell_sig(first_period_sig(event, index), events_random_sig(self));
    event->count =
        (struct thread_count){.cell = cell, .next = cell.due, .gap = cell.due, .entered = THREAD_COUNT_UNKNOWN};
    return cell.due;
}

void event_count_enter_sig(struct thread_event *event)
{
    uint64_t count;
    if (event->count.cell.period && event->count.entered == THREAD_COUNT_UNKNOWN && read_count_sig(event, &count))
        event->count.entered = count;
}

bool event_count_overflow_sig(struct thread_event *event)
{
    struct thread_count *count = &event->count;
    if (count->entered == THREAD_COUNT_UNKNOWN) { /* a sandbox forbids reading it */
        count->n_due++;
        return true;
    }
    if (count->is_sampled || count->entered < count->cell.due)
        return false;
    count->n_due += 1 + (count->entered - count->cell.due) / count->cell.period;
    count->is_sampled = true;
    return true;
}

uint64_t event_count_due_sig(const struct thread_event *event)
{
    const struct governor_cell *cell = &event->count.cell;
    uint64_t now, n_due = event->count.n_due;
    if (read_count_sig(event, &now) && now >= cell->due)
        n_due += 1 + (now - cell->due) / cell->period;
    return n_due;
}

/* What threads begin with follows what threads see, a step at a time. */
static void tell_pace_sig(unsigned index, uint64_t period)
{
    uint64_t before = atomic_load_explicit(&pace[index].period, memory_order_relaxed);
    before = before ? before : 1;
    if (period > before)
        period = 2 * before;
    else if (period < before)
        period = before / 2;
    atomic_store_explicit(&pace[index].period, period, memory_order_relaxed);
}

/* The period of the next cell. The first samples of a process stand for few events, so that little programs have some;
 * not where samples are dear. */
static uint64_t choose_period_sig(struct thread_event *event, unsigned index, uint64_t now)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    const struct governor_plan governed = events_governed_sig(plan);
    uint64_t period = governor_period_sig(&event->governor, &governed);
    if (!plan->attr.freq)
        return period;
    uint64_t cpu_ns = own_clock_ns_sig(CLOCK_THREAD_CPUTIME_ID), most = UINT64_MAX;
    uint64_t spent_ns = cpu_ns > event->last_cpu_ns ? cpu_ns - event->last_cpu_ns : 0;
    uint64_t step = atomic_fetch_add_explicit(&pace[index].n_samples, 1, memory_order_relaxed) / SAMPLES_A_STEP;
    if (!event->governor.slow && step < GOVERNOR_SLOWEST)
        most = UINT64_C(1) << step;
    period = governor_pace_sig(event->count.cell.period, event->count.entered - event->count.sampled, spent_ns, period,
                               most);
    event->count.sampled = now;
    event->last_cpu_ns = cpu_ns;
    tell_pace_sig(index, period);
    return period;
}

/* Makes the kernel's next overflow the next sample. When its period changes, the kernel forgets how far the event was,
 * and an event that runs then overflows at once; one that is stopped does not.
 * src: Linux kernel/events/core.c __perf_event_period, perf_swevent_add */
static void count_arm_sig(struct thread_event *event, uint64_t now)
{
    struct thread_count *count = &event->count;
    uint64_t gap = count->cell.due > now ? count->cell.due - now : 1;
    int fd = event_fd_sig(event);
    if (fd < 0 || own_call_sig(SYS_ioctl, fd, PERF_EVENT_IOC_DISABLE, 0) != 0)
        return;
    if (event_period_set_sig(event, gap)) {
        count->gap = gap;
        count->next = now + gap;
    }
    own_call_sig(SYS_ioctl, fd, PERF_EVENT_IOC_ENABLE, 0);
}

static bool is_stopped_sig(const struct thread_state *self)
{
    return self->ending || self->is_holding || self->is_waiting || !sample_is_active_sig() ||
           atomic_load_explicit(&arena_header_sig()->is_halted, memory_order_relaxed);
}

static void count_leave_sig(struct thread_state *self, unsigned index)
{
    struct thread_event *event = &self->events[index];
    struct thread_count *count = &event->count;
    uint64_t now, n_own;
    if (!read_count_sig(event, &now) || now < count->entered)
        return;
    n_own = now - count->entered;
    if (count->is_sampled)
        count->cell = governor_next_cell_sig(&count->cell, count->entered, choose_period_sig(event, index, now),
                                             events_random_sig(self));
    count->is_sampled = false;
    count->cell.due += n_own;
    if (now >= count->next)
        count->next += ((now - count->next) / count->gap + 1) * count->gap;
    if (count->next == count->cell.due || is_stopped_sig(self))
        return;
    count_arm_sig(event, now);
    if (is_stopped_sig(self)) /* by another thread, just before it was enabled again */
        own_call_sig(SYS_ioctl, event_fd_sig(event), PERF_EVENT_IOC_DISABLE, 0);
}

void events_count_leave_sig(struct thread_state *self)
{
    for (unsigned i = 0; i < arena_header_sig()->n_events; i++) {
        struct thread_count *count = &self->events[i].count;
        if (count->cell.period && count->entered != THREAD_COUNT_UNKNOWN)
            count_leave_sig(self, i);
        count->entered = THREAD_COUNT_UNKNOWN;
    }
}

void event_count_settle_sig(const struct thread_state *self, struct thread_event *event)
{
    struct thread_count *count = &event->count;
    uint64_t now;
    if (is_stopped_sig(self) || !count->cell.period || count->gap == count->cell.period || !read_count_sig(event, &now))
        return;
    count->cell.due = now + count->cell.period;
    count_arm_sig(event, now);
}

/* --- watchpoints --- */

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

/* --- pages that come from a disk --- */

void events_enable_page_ins_sig(struct thread_state *self, bool enable)
{
    int fd = event_fd_sig(&self->page_ins);
    if (fd >= 0)
        own_call_sig(SYS_ioctl, fd, enable ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

void events_take_page_in_sig(struct thread_state *self, const siginfo_t *info, const ucontext_t *context)
{
    bool is_its = info->si_code > 0 && info->si_fd >= 0 && info->si_fd == self->page_ins.fd;
    if (is_its && !self->ending && !atomic_load_explicit(&arena_header_sig()->is_halted, memory_order_relaxed))
        sample_take_page_in_sig(self, context);
}
