/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing the events of a thread. Ordinary code; raw system calls, because the program may wrap or forbid
 * the library functions. */
#include "runtime/events-internal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/descriptors.h"
#include "runtime/ring.h"
#include "runtime/sample.h"
#include "runtime/wrap-signal.h"

#define HIGH_FD 900 /* away from descriptors that select() and shells use */

void events_install_handler(void)
{
    struct sigaction action = {.sa_sigaction = events_handler_sig, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    struct sigaction old;
    sigfillset(&action.sa_mask);
    sigdelset(&action.sa_mask, SIGSEGV);
    sigdelset(&action.sa_mask, SIGBUS);
    if (wrap_real_sigaction(EVENTS_SIGNAL, &action, &old) == 0 && old.sa_sigaction != events_handler_sig)
        events_set_program_action_sig(&old, NULL);
}

static void *ring_map(int fd, size_t n_pages, int protection)
{
    size_t size = (1 + n_pages) * 4096;
    void *ring = (void *)syscall(SYS_mmap, 0, size, protection, MAP_SHARED, fd, 0);
    return (uintptr_t)ring >= (uintptr_t)-4095 ? NULL : ring;
}

#define RING_ONLY_PAGES 16

static int open_event(struct perf_event_attr *attr)
{
    int fd = (int)syscall(SYS_perf_event_open, attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    return descriptors_move_up(fd, HIGH_FD);
}

/* Lets every overflow of fd signal the calling thread. */
static bool set_signal(int fd)
{
    struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = (pid_t)syscall(SYS_gettid)};
    return fcntl(fd, F_SETFL, O_ASYNC) == 0 && fcntl(fd, F_SETSIG, EVENTS_SIGNAL) == 0 &&
           fcntl(fd, F_SETOWN_EX, &owner) == 0;
}

/* Where signals are wanted at all, each overflow sends one, however full the ring is. So a silent ring has a second
 * event beside it, which counts the same and overflows each time that about a third of the ring has been filled. */
static bool open_drain(struct thread_event *event, const struct arena_event *plan)
{
    struct perf_event_attr attr = plan->attr;
    attr.sample_type = 0;
    attr.sample_period = plan->attr.sample_period * RING_ONLY_PAGES * 4096 / 3 /
                         ring_record_bytes_sig(plan->attr.sample_type);
    event->drain_fd = open_event(&attr);
    event->drain_id = descriptors_event_id(event->drain_fd);
    return event->ring && event->drain_fd >= 0 && set_signal(event->drain_fd);
}

/* Closes an event's descriptors unless the program has done so and uses their numbers for something else. */
static void close_own(const struct thread_event *event)
{
    if (event->fd >= 0 && descriptors_event_id(event->fd) == event->id)
        close(event->fd);
    if (event->drain_fd >= 0 && descriptors_event_id(event->drain_fd) == event->drain_id)
        close(event->drain_fd);
}

static void close_perf(struct thread_event *event)
{
    if (event->ring)
        syscall(SYS_munmap, event->ring, event->ring_bytes);
    close_own(event);
    *event = (struct thread_event){.fd = -1, .drain_fd = -1};
}

static bool open_perf(struct thread_event *event, const struct arena_event *plan)
{
    struct perf_event_attr attr = plan->attr;
    bool is_silent = plan->flags & EVENT_RING_ONLY;
    event->fd = open_event(&attr);
    if (event->fd < 0)
        return false;
    event->id = descriptors_event_id(event->fd);
    /* An overwritten ring of one page holds the newest record, and its head is the exact number of overflows. */
    size_t n_pages = is_silent ? RING_ONLY_PAGES : 1;
    event->ring_bytes = (uint32_t)((1 + n_pages) * 4096);
    event->ring = ring_map(event->fd, n_pages, attr.write_backward ? PROT_READ : PROT_READ | PROT_WRITE);
    if (is_silent ? open_drain(event, plan) : set_signal(event->fd))
        return true;
    close_perf(event);
    return false;
}

static bool open_timer(struct thread_event *event, const struct arena_event *plan)
{
    struct sigevent notify = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = EVENTS_SIGNAL};
    notify._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    clockid_t clock = plan->flags & EVENT_WALLCLOCK ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
    if (syscall(SYS_timer_create, clock, &notify, &event->timer_id) != 0)
        return false;
    event->has_timer = true;
    return true;
}

static void timer_arm(const struct thread_event *event, uint64_t interval_ns)
{
    struct timespec interval = {.tv_sec = (time_t)(interval_ns / 1000000000u),
                                .tv_nsec = (long)(interval_ns % 1000000000u)};
    struct itimerspec setting = {.it_interval = interval, .it_value = interval};
    syscall(SYS_timer_settime, event->timer_id, 0, &setting, NULL);
}

void events_enable(struct thread_state *self, bool enable)
{
    const struct arena_header *header = arena_header_sig();
    for (unsigned i = 0; i < header->n_events; i++) {
        struct thread_event *event = &self->events[i];
        if (event->fd >= 0)
            ioctl(event->fd, enable ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
        if (event->drain_fd >= 0)
            ioctl(event->drain_fd, enable ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
        if (event->has_timer)
            timer_arm(event, enable ? header->events[i].timer_interval_ns : 0);
    }
}

void events_open(struct thread_state *self)
{
    const struct arena_header *header = arena_header_sig();
    descriptors_widen();
    for (unsigned i = 0; i < header->n_events; i++) {
        const struct arena_event *plan = &header->events[i];
        struct thread_event *event = &self->events[i];
        *event = (struct thread_event){.fd = -1, .drain_fd = -1};
        if (plan->source == SOURCE_MEMLEAK)
            continue;
        bool is_open = plan->flags & EVENT_TIMER ? open_timer(event, plan) : open_perf(event, plan);
        if (!is_open)
            arena_log_sig("an event could not be opened on a thread: its samples are missing there");
    }
    descriptors_narrow();
    if (sample_is_active_sig())
        events_enable(self, true);
}

/* Overflows counted by the kernel: the head of an overwritten ring divided by the size of a bare record. */
static void count_overflows(struct thread_state *self, unsigned index)
{
    const struct thread_event *event = &self->events[index];
    const struct arena_event *plan = &arena_header_sig()->events[index];
    if (!event->ring || !plan->attr.write_backward)
        return;
    uint64_t n = ring_count_sig(event->ring, ring_record_bytes_sig(plan->attr.sample_type));
    uint64_t taken = atomic_load(&self->record->taken[index]);
    atomic_store(&self->record->overflows[index], n);
    if (n > taken)
        atomic_store(&self->record->fates[index][FATE_NOT_DELIVERED], n - taken);
}

void events_close(struct thread_state *self)
{
    const struct arena_header *header = arena_header_sig();
    events_enable(self, false);
    for (unsigned i = 0; i < header->n_events; i++) {
        struct thread_event *event = &self->events[i];
        if (event->ring && header->events[i].flags & EVENT_RING_ONLY && !self->tree_busy)
            events_drain_sig(self, i);
        count_overflows(self, i);
        if (event->has_timer)
            syscall(SYS_timer_delete, event->timer_id);
        close_perf(event);
    }
}

void events_forget(struct thread_state *self)
{
    const struct arena_header *header = arena_header_sig();
    for (unsigned i = 0; i < header->n_events; i++) {
        close_own(&self->events[i]);
        self->events[i] = (struct thread_event){.fd = -1, .drain_fd = -1};
    }
}
