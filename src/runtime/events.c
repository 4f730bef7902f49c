/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing the events of a thread. Ordinary code; raw system calls, because the program may wrap or forbid
 * the library functions. */
#include "runtime/events-internal.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "runtime/loadmap.h"
#include "runtime/own-call.h"
#include "runtime/sample.h"
#include "runtime/sandbox.h"
#include "runtime/wrap-signal.h"

static struct {
    _Atomic uint32_t n; /* that exist */
} timers;

/* As the kernel takes it, the same on all architectures with a walker of ours. */
struct kernel_action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

/* While a sample is taken nothing else is: no handler of the program, no cancellation (which libc does not let its own
 * sigaction block). Faults cannot wait, and the stand-in's bit is to stay as it was. */
static void block_all_in_handler(void)
{
    struct kernel_action action;
    if (own_call_sig(SYS_rt_sigaction, EVENTS_SIGNAL, NULL, &action, sizeof action.mask) != 0)
        return;
    action.mask = ~(MASK_BIT(SIGSEGV) | MASK_BIT(SIGBUS) | MASK_STAND_IN);
    own_call_sig(SYS_rt_sigaction, EVENTS_SIGNAL, &action, NULL, sizeof action.mask);
}

static bool is_function(const struct sigaction *action)
{
    return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

static bool install(const struct sigaction *program, struct sigaction *old)
{
    struct sigaction action = {.sa_sigaction = events_handler_sig, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    if (program && is_function(program))
        action.sa_flags = SA_SIGINFO | (program->sa_flags & (SA_RESTART | SA_ONSTACK));
    sigfillset(&action.sa_mask);
    sigdelset(&action.sa_mask, SIGSEGV);
    sigdelset(&action.sa_mask, SIGBUS);
    sigdelset(&action.sa_mask, SIGSTKFLT);
    if (wrap_real_sigaction(EVENTS_SIGNAL, &action, old) != 0)
        return false;
    block_all_in_handler();
    return true;
}

void events_install_handler(void)
{
    struct sigaction old;
    if (!install(NULL, &old) || old.sa_sigaction == events_handler_sig)
        return;
    chain_add_sig(EVENTS_SIGNAL, &old);
    if (is_function(&old))
        (void)install(&old, NULL);
    mask_translate_sig();
}

void events_set_action(const struct sigaction *action, struct sigaction *old)
{
    chain_set_sig(EVENTS_SIGNAL, action, old);
    if (action)
        (void)install(action, NULL);
}

void events_check_handler(void)
{
    struct kernel_action action = {.handler = events_handler_sig};
    if (!sandbox_is_entered_sig())
        own_call_sig(SYS_rt_sigaction, EVENTS_SIGNAL, NULL, &action, sizeof action.mask);
    if (action.handler != events_handler_sig)
        arena_log_sig("the program has put another action in the place of the profiler's for its signal (SIGURG), by a "
                      "system call of its own: the samples since then are lost");
}

/* Each timer takes one of the signals that may be pending: the program keeps the most of them. */
static bool may_have_timer(void)
{
    struct rlimit limit;
    uint32_t n = atomic_fetch_add(&timers.n, 1);
    if (own_call_sig(SYS_prlimit64, 0, RLIMIT_SIGPENDING, NULL, &limit) == 0 && n < limit.rlim_cur / 4)
        return true;
    atomic_fetch_sub(&timers.n, 1);
    return false;
}

static bool open_timer(struct thread_event *event, clockid_t clock)
{
    if (!may_have_timer())
        return false;
    struct sigevent notify = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = EVENTS_SIGNAL};
    notify.sigev_value.sival_ptr = events_timer_value_sig();
    notify._sigev_un._tid = (pid_t)own_tid_sig();
    if (own_call_sig(SYS_timer_create, clock, &notify, &event->timer_id) != 0) {
        atomic_fetch_sub(&timers.n, 1);
        return false;
    }
    event->has_timer = true;
    return true;
}

void events_replay(struct thread_state *self)
{
    const struct arena_header *header = arena_header_sig();
    for (unsigned i = 0; i < header->n_events; i++)
        if (header->events[i].flags & EVENT_REPLAY && self->events[i].fd >= 0)
            replay_run(self, i);
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
    if (plan->flags & EVENT_TIMER)
        return open_timer(event, plan->flags & EVENT_WALLCLOCK ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID);
    if (event_open(self, index))
        return true;
    /* No descriptor within the program's limit, perhaps. */
    bool has_timer = event_clock_period_sig(plan) && open_timer(event, CLOCK_THREAD_CPUTIME_ID);
    if (has_timer)
        atomic_fetch_add(&arena_header_sig()->n_on_timer[index], 1);
    return has_timer;
}

/* A delay ends while the program computes: its system calls are left alone. */
static void open_watch(struct thread_state *self)
{
    control_begin_sig();
    if (control_is_waiting_sig() &&
        (event_open_clock(self, &self->watch) || open_timer(&self->watch, CLOCK_THREAD_CPUTIME_ID)))
        events_enable_watch_sig(self, true);
}

void events_open(struct thread_state *self)
{
    const struct arena_header *header = arena_header_sig();
    for (unsigned i = 0; i < header->n_events; i++)
        self->events[i] = (struct thread_event){.fd = -1, .drain_fd = -1};
    self->watch = (struct thread_event){.fd = -1, .drain_fd = -1};
    if (sandbox_is_entered_sig())
        return;
    for (unsigned i = 0; i < header->n_events; i++) {
        if (header->events[i].source != SOURCE_MEMLEAK && !open_one(self, i))
            atomic_fetch_add(&arena_header_sig()->n_unopened[i], 1);
    }
    open_watch(self);
    moves_register_hook(self);
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

static void close_one(struct thread_event *event)
{
    if (event->has_timer && own_call_sig(SYS_timer_delete, event->timer_id) == 0)
        atomic_fetch_sub(&timers.n, 1);
    event_close(event);
}

void events_stop(struct thread_state *self)
{
    const struct arena_header *header = arena_header_sig();
    if (!sandbox_is_entered_sig())
        events_enable_sig(self, false);
    for (unsigned i = 0; i < header->n_events; i++) {
        struct thread_event *event = &self->events[i];
        if (event->ring && header->events[i].flags & EVENT_DRAINED && !self->tree_busy)
            events_drain_sig(self, i);
        count_overflows(self, i);
    }
}

void events_close(struct thread_state *self)
{
    const struct arena_header *header = arena_header_sig();
    bool may_call = !sandbox_is_entered_sig();
    events_stop(self);
    moves_unregister_hook(self);
    for (unsigned i = 0; may_call && i < header->n_events; i++)
        close_one(&self->events[i]);
    if (may_call)
        close_one(&self->watch);
}

static void forget_one(struct thread_event *event, bool keep)
{
    event_close_own(event);
    if (keep)
        event->fd = event->drain_fd = -1;
    else
        *event = (struct thread_event){.fd = -1, .drain_fd = -1};
}

void events_forget(struct thread_state *self, bool keep)
{
    atomic_store(&timers.n, 0); /* a child inherits none */
    moves_forget_hook();
    for (unsigned i = 0; i < arena_header_sig()->n_events; i++)
        forget_one(&self->events[i], keep);
    forget_one(&self->watch, keep);
}

static void *map_empty(void *place, uint64_t n_bytes)
{
    void *mapped =
        (void *)own_mmap_sig(place, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    return (uintptr_t)mapped >= (uintptr_t)-4095 ? NULL : mapped;
}

void events_keep_rings(const struct thread_state *state)
{
    uint64_t page_bytes = arena_header_sig()->page_bytes;
    for (unsigned i = 0; i < arena_header_sig()->n_events; i++) {
        const struct thread_event *event = &state->events[i];
        if (arena_header_sig()->events[i].flags & EVENT_REPLAY)
            continue; /* its ring is private memory */
        struct perf_event_mmap_page *ring = event->ring ? map_empty(event->ring, event->ring_bytes) : NULL;
        if (ring) {
            ring->data_offset = page_bytes;
            ring->data_size = event->ring_bytes - page_bytes;
        }
        if (event->aux)
            (void)map_empty(event->aux, event->aux_bytes);
    }
}
