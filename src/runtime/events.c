/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing the events of a thread. Ordinary code; raw system calls, because the program may wrap or forbid
 * the library functions. */
#include "runtime/events-internal.h"

#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/descriptors.h"
#include "runtime/loadmap.h"
#include "runtime/sample.h"
#include "runtime/sandbox.h"
#include "runtime/wrap-signal.h"

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

static void enable_one(struct thread_state *self, unsigned index, bool enable)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    struct thread_event *event = &self->events[index];
    unsigned long request = enable ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;
    if (event->has_timer)
        timer_arm(event, enable ? plan->timer_interval_ns : 0);
    if (event->fd < 0)
        return;
    if (plan->flags & EVENT_REPLAY) {
        if (enable)
            replay_run(self, index);
        return;
    }
    ioctl(event->fd, request, 0);
    if (event->drain_fd >= 0)
        ioctl(event->drain_fd, request, 0);
    if (!enable)
        events_read_times_sig(self, index);
}

void events_enable(struct thread_state *self, bool enable)
{
    for (unsigned i = 0; i < arena_header_sig()->n_events; i++)
        enable_one(self, i, enable);
}

/* One line on an event. */
static void say(unsigned index, const char *what)
{
    char text[192] = "event ";
    size_t len = strlen(text), n_name = strnlen(arena_header_sig()->events[index].name, 63);
    memcpy(text + len, arena_header_sig()->events[index].name, n_name);
    strncpy(text + len + n_name, what, sizeof text - len - n_name - 1);
    arena_log_sig(text);
}

static bool open_one(struct thread_state *self, unsigned index)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    struct thread_event *event = &self->events[index];
    if (plan->flags & EVENT_KERNEL)
        loadmap_add_kernel();
    if (plan->flags & (EVENT_BATCH | EVENT_AUX) && !self->record->id)
        say(index, " is read many samples at a time: they have addresses and instructions, but no call paths");
    if (plan->flags & EVENT_REPLAY)
        return self->record->id || replay_open(event, plan);
    return plan->flags & EVENT_TIMER ? open_timer(event, plan) : event_open(self, index);
}

void events_open(struct thread_state *self)
{
    const struct arena_header *header = arena_header_sig();
    for (unsigned i = 0; i < header->n_events; i++)
        self->events[i] = (struct thread_event){.fd = -1, .drain_fd = -1};
    if (sandbox_is_entered_sig())
        return;
    descriptors_widen();
    for (unsigned i = 0; i < header->n_events; i++) {
        if (header->events[i].source != SOURCE_MEMLEAK && !open_one(self, i))
            atomic_fetch_add(&arena_header_sig()->n_unopened[i], 1);
    }
    descriptors_narrow();
    moves_register_hook(self);
    if (sample_is_active_sig())
        events_enable(self, true);
}

/* Overflows counted by the kernel: the samples in an overwritten ring, also those whose signal never came. */
static void count_overflows(struct thread_state *self, unsigned index)
{
    struct thread_event *event = &self->events[index];
    struct ring_news news;
    if (!event->ring || arena_header_sig()->events[index].flags & EVENT_DRAINED)
        return;
    events_read_news_sig(self, index, 0, &news);
    const struct thread_past *past = &self->past;
    if (event->is_estimate || (past->taken[index] && !past->overflows[index]))
        return;
    uint64_t n_met = atomic_load(&self->record->taken[index]) - past->taken[index] + event->n_own;
    atomic_store(&self->record->overflows[index], past->overflows[index] + event->n_written);
    if (event->n_written > n_met)
        atomic_store(&self->record->fates[index][FATE_NOT_DELIVERED],
                     past->not_delivered[index] + event->n_written - n_met);
}

void events_close(struct thread_state *self)
{
    const struct arena_header *header = arena_header_sig();
    bool may_call = !sandbox_is_entered_sig();
    if (may_call)
        events_enable(self, false);
    for (unsigned i = 0; i < header->n_events; i++) {
        struct thread_event *event = &self->events[i];
        if (event->ring && header->events[i].flags & EVENT_DRAINED && !self->tree_busy)
            events_drain_sig(self, i);
        count_overflows(self, i);
    }
    moves_unregister_hook(self);
    for (unsigned i = 0; may_call && i < header->n_events; i++) {
        if (self->events[i].has_timer)
            syscall(SYS_timer_delete, self->events[i].timer_id);
        event_close(&self->events[i]);
    }
}

void events_forget(struct thread_state *self)
{
    moves_forget_hook();
    for (unsigned i = 0; i < arena_header_sig()->n_events; i++) {
        event_close_own(&self->events[i]);
        self->events[i] = (struct thread_event){.fd = -1, .drain_fd = -1};
    }
}
