/* SPDX-License-Identifier: BSD-3-Clause */
/* The overflow handler: tells which event fired, takes its sample, and passes on signals that are not ours. */
#include "runtime/events-internal.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#include "runtime/arch.h"
#include "runtime/loadmap.h"
#include "runtime/process.h"
#include "runtime/sample.h"
#include "base/sigsafe.h"

#define TIMES_EVERY 1024 /* samples */

static struct {
    _Atomic int lowest_fd; /* of all descriptors that were ever told to send our signal; 0 none */
} senders;

/* Our descriptors lie above those of the program, which get the lowest numbers that are free. */
void events_note_descriptor_sig(int fd)
{
    int lowest = atomic_load(&senders.lowest_fd);
    while ((!lowest || fd < lowest) && !atomic_compare_exchange_weak(&senders.lowest_fd, &lowest, fd))
        continue;
}

void *events_timer_value_sig(void)
{
    return &senders;
}

bool events_is_ours_sig(const siginfo_t *info)
{
    int lowest = atomic_load_explicit(&senders.lowest_fd, memory_order_relaxed);
    if (info->si_code == SI_TIMER)
        return info->si_value.sival_ptr == &senders;
    return info->si_code >= POLL_IN && info->si_code <= POLL_HUP && lowest && info->si_fd >= lowest;
}

static bool is_open_sig(const struct thread_event *event)
{
    return event->fd >= 0 || event->drain_fd >= 0 || event->has_timer;
}

bool events_send_signals_sig(const struct thread_state *self)
{
    const struct arena_header *header = arena_header_sig();
    for (unsigned i = 0; i < header->n_events; i++)
        if (is_open_sig(&self->events[i]))
            return true;
    return is_open_sig(&self->watch);
}

/* Index of the event that raised the signal, -1 when it is not one of ours. */
static int event_index_sig(const struct thread_state *self, const siginfo_t *info)
{
    const struct arena_header *header = arena_header_sig();
    for (unsigned i = 0; i < header->n_events; i++) {
        if (info->si_code == SI_TIMER) {
            if (self->events[i].has_timer && self->events[i].timer_id == info->si_timerid)
                return (int)i;
        } else if (info->si_code > 0 && info->si_fd >= 0 &&
                   (self->events[i].fd == info->si_fd || self->events[i].drain_fd == info->si_fd)) {
            return (int)i;
        }
    }
    return -1;
}

/* Page faults are recorded with the pc at which they happen. */
static bool is_of_faults_sig(const struct arena_event *plan)
{
    return plan->attr.type == PERF_TYPE_SOFTWARE && plan->attr.sample_type & PERF_SAMPLE_IP &&
           (plan->attr.config == PERF_COUNT_SW_PAGE_FAULTS || plan->attr.config == PERF_COUNT_SW_PAGE_FAULTS_MIN ||
            plan->attr.config == PERF_COUNT_SW_PAGE_FAULTS_MAJ);
}

/* The handler touches pages for the first time, too. */
static void tell_own_sig(const struct arena_event *plan, uintptr_t pc, struct ring_view *view)
{
    const struct loadmap_module *own = loadmap_find_sig((uintptr_t)events_handler_sig);
    if (!own || !is_of_faults_sig(plan))
        return;
    view->ip_word = plan->attr.sample_type & PERF_SAMPLE_IDENTIFIER ? 1 : 0;
    view->own_low = own->code.start;
    view->own_high = own->code.end;
    view->pc = pc;
}

void events_read_news_sig(struct thread_state *self, unsigned index, uintptr_t pc, struct ring_news *news)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    struct thread_event *event = &self->events[index];
    struct ring_view view = {.ring = event->ring,
                             .is_swapped = access_is_swapped_sig(plan),
                             .n_sample_bytes = ring_sample_bytes_sig(plan->attr.sample_type),
                             .buffer = self->wrapped,
                             .n_buffer = sizeof self->wrapped};
    tell_own_sig(plan, pc, &view);
    ring_news_sig(&view, &event->seen, news);
    event->n_written += news->n_samples;
    event->n_own += news->n_own;
    event->is_estimate |= news->is_estimate;
    if (news->n_own)
        atomic_fetch_add_explicit(&self->record->fates[index][FATE_OWN_FAULT], news->n_own, memory_order_relaxed);
    if (news->n_throttles)
        atomic_fetch_add_explicit(&self->record->n_throttles[index], news->n_throttles, memory_order_relaxed);
    if (news->n_lost)
        atomic_fetch_add_explicit(&self->record->fates[index][FATE_NOT_DELIVERED], news->n_lost, memory_order_relaxed);
}

/* The record that belongs to this signal is the newest one: nothing else of this thread can have overflowed since, but
 * in the handler itself. Without a record the sample has been taken before, with another event's signal. */
static void take_newest_sig(struct thread_state *self, unsigned index, const ucontext_t *context)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    struct sample_event event = {.index = (uint8_t)index};
    struct ring_news news;
    events_read_news_sig(self, index, arch_pc_of_context_sig(context), &news);
    if (news.n_samples == news.n_own)
        return;
    if (plan->flags & EVENT_RING) {
        event.has_access = news.has_newest && access_of_record_sig(plan, &news.newest, &event.access);
        if (news.has_newest && !event.has_access) {
            sample_drop_sig(self, index, FATE_DROP_BAD_RECORD);
            return;
        }
    }
    if (event.has_access && plan->flags & EVENT_WEIGHTED)
        event.weight = event.access.period;
    sample_take_sig(self, &event, context);
}

void events_read_times_sig(struct thread_state *self, unsigned index)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    uint64_t words[3 + 2 * ARENA_EVENTS_MAX]; /* value, enabled, running; of a group the values come behind */
    if (self->events[index].fd < 0 || plan->flags & EVENT_REPLAY || plan->attr.sample_type & PERF_SAMPLE_READ)
        return;
    int fd = event_fd_sig(&self->events[index]);
    if (fd < 0 || own_call_sig(SYS_read, fd, words, sizeof words) < (long)(3 * sizeof words[0]))
        return;
    const struct thread_past *past = &self->past;
    atomic_store_explicit(&self->record->enabled_ns[index], past->enabled_ns[index] + words[1], memory_order_relaxed);
    atomic_store_explicit(&self->record->running_ns[index], past->running_ns[index] + words[2], memory_order_relaxed);
}

/* A timer in the place of an event whose samples all weigh the same ticks more slowly: the samples weigh more, as those
 * of an event that was not always counting do. */
static void weigh_by_times_sig(struct thread_state *self, unsigned index, uint64_t elapsed_ns)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    uint64_t period_ns = event_clock_period_sig(plan);
    if (plan->flags & (EVENT_WEIGHTED | EVENT_TIMER) || !period_ns)
        return;
    atomic_fetch_add_explicit(&self->record->enabled_ns[index], elapsed_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&self->record->running_ns[index], period_ns, memory_order_relaxed);
}

static void take_sig(struct thread_state *self, unsigned index, const ucontext_t *context)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    struct thread_event *event = &self->events[index];
    if (plan->flags & EVENT_DRAINED) {
        if (!self->tree_busy) /* else the interrupted code is doing just that */
            events_drain_sig(self, index);
        return;
    }
    if (event->ring) {
        take_newest_sig(self, index, context);
        return;
    }
    struct sample_event sample = {.index = (uint8_t)index};
    if (event->has_timer) {
        uint64_t now = own_clock_ns_sig(CLOCK_THREAD_CPUTIME_ID); /* 0: a sandbox keeps it */
        sample.weight = now ? now - event->last_cpu_ns : event_timer_interval_sig(plan);
        event->last_cpu_ns += sample.weight;
        weigh_by_times_sig(self, index, sample.weight);
    }
    sample_take_sig(self, &sample, context);
}

/* Signals are not queued: of the events that overflow at the same instant, all but one have none of their own. */
static void take_others_sig(struct thread_state *self, unsigned index, const ucontext_t *context)
{
    const struct arena_header *header = arena_header_sig();
    for (unsigned i = 0; i < header->n_events; i++) {
        const struct thread_event *event = &self->events[i];
        if (i != index && event->ring && !(header->events[i].flags & EVENT_DRAINED) &&
            ring_head_sig(event->ring) != event->seen)
            take_newest_sig(self, i, context);
    }
}

/* Records that the hardware still keeps to itself go into the ring: reading the counter empties the processor's buffer
 * of precise records, stopping the event that of an AUX area. */
static void flush_sig(const struct thread_event *event, const struct arena_event *plan)
{
    uint64_t words[3];
    int fd = plan->flags & EVENT_REPLAY ? -1 : event_fd_sig(event);
    if (fd < 0)
        return;
    if (plan->flags & EVENT_AUX) {
        own_call_sig(SYS_ioctl, fd, PERF_EVENT_IOC_DISABLE, 0);
        own_call_sig(SYS_ioctl, fd, PERF_EVENT_IOC_ENABLE, 0);
    } else if (plan->flags & EVENT_BATCH && plan->attr.precise_ip) {
        own_call_sig(SYS_read, fd, words, sizeof words);
    }
}

void events_drain_all_sig(struct thread_state *self)
{
    const struct arena_header *header = arena_header_sig();
    for (unsigned i = 0; i < header->n_events; i++) {
        const struct perf_event_mmap_page *ring = self->events[i].ring;
        if (!(header->events[i].flags & EVENT_DRAINED) || !ring || self->in_handler || self->tree_busy)
            continue;
        flush_sig(&self->events[i], &header->events[i]);
        if (ring_head_sig(ring) == ring->data_tail)
            continue;
        self->tree_busy = 1;
        atomic_thread_fence(memory_order_seq_cst); /* as in handle_sig */
        if (!self->ending)
            events_drain_sig(self, i);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        self->tree_busy = 0;
    }
}

/* A program that is killed says nothing at its end: so the times are also read now and then. */
static void read_times_sometimes_sig(struct thread_state *self, unsigned index)
{
    if (atomic_load_explicit(&self->record->taken[index], memory_order_relaxed) % TIMES_EVERY == TIMES_EVERY - 1)
        events_read_times_sig(self, index);
}

static bool is_watch_sig(const struct thread_state *self, const siginfo_t *info)
{
    if (info->si_code == SI_TIMER)
        return self->watch.has_timer && self->watch.timer_id == info->si_timerid;
    return info->si_code > 0 && info->si_fd >= 0 && info->si_fd == self->watch.fd;
}

/* Takes the sample that the signal brings. Who closes the events of another thread says so and
 * then waits until its handler is not under way: so in_handler is set before ending is read. */
static void handle_sig(struct thread_state *self, const siginfo_t *info, const ucontext_t *context)
{
    self->in_handler = 1;
    atomic_thread_fence(memory_order_seq_cst);
    int index = event_index_sig(self, info);
    if (index < 0 && is_watch_sig(self, info))
        control_begin_sig();
    else if (index >= 0)
        control_end_sig();
    if (index >= 0 && !self->ending) { /* afterwards an overflow is one that was not delivered */
        take_sig(self, (unsigned)index, context);
        take_others_sig(self, (unsigned)index, context);
        read_times_sometimes_sig(self, (unsigned)index);
    }
    atomic_thread_fence(memory_order_release);
    self->in_handler = 0;
}

void events_handler_sig(int number, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    struct thread_state *self = thread_self_sig();
    (void)number;
    if (!events_is_ours_sig(info))
        mask_take_foreign_sig(self, info, context);
    else if (self && process_is_ours_sig())
        handle_sig(self, info, context);
    errno = saved_errno;
}
