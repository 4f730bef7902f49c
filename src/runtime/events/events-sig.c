/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of events that runs in the signal handler and wherever rings are drained: the overflow handler, draining,
 * starting and stopping, and the clock that limits the sampling. See events.h. */
#include "runtime/events/events.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/own/arch.h"
#include "runtime/own/own-call.h"
#include "runtime/own/process.h"
#include "runtime/record/arena-writer.h"
#include "runtime/record/loadmap.h"
#include "runtime/record/sample.h"
#include "sampling/abi/spe.h"
#include "base/sigsafe.h"

/* --- the time of the sampling --- */

/* Checks of the clock, and the handler of the signals that start and stop the sampling: see events.h. */

static struct {
    _Atomic bool is_waiting;                /* for the end of the delay */
    _Atomic uint8_t slow[ARENA_EVENTS_MAX]; /* governor.slow of the thread that changed it last */
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

static void control_end_sig(void)
{
    if (sample_is_active_sig() && is_over_sig())
        thread_switch_sig(false);
}

/* One signal for both toggles the sampling. */
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

/* --- block changes --- */

/* Block changes that other threads have announced to this thread: the reader's side of events.h. Wait-free; runs where
 * rings are drained, also in the signal handler. */

static uint32_t block_changes_count_sig(const struct thread_state *self)
{
    return atomic_load_explicit(&self->block_changes.end, memory_order_acquire);
}

/* The variable that was at address when the record at position was written to the ring of an event of self; 0 when that
 * has not changed since.  ctx: where self drains */
static uint64_t block_changes_find_sig(const struct thread_state *self, unsigned event, uint64_t position,
                                       uintptr_t address)
{
    const struct thread_block_changes *changes = &self->block_changes;
    uint32_t end = atomic_load_explicit(&changes->end, memory_order_acquire);
    for (uint32_t i = atomic_load_explicit(&changes->begin, memory_order_relaxed); i != end; i++) {
        const struct thread_block_change *change = &changes->items[i % THREAD_BLOCK_CHANGES_MAX];
        if (change->event != event || change->is_done || address < change->start || address >= change->end)
            continue;
        if (position < change->position)
            return change->var;
        if (change->is_vague)
            return var_key(VAR_UNKNOWN, 0, UNKNOWN_FREED);
    }
    /* For lack of room, not all changes up to here were kept. */
    if (position < atomic_load_explicit(&changes->lost[event], memory_order_relaxed))
        return var_key(VAR_UNKNOWN, 0, UNKNOWN_FREED);
    return 0;
}

/* The ring of the event has been read up to position; n_known: block_changes_count_sig when that began.  ctx: likewise
 */
static void block_changes_done_sig(struct thread_state *self, unsigned event, uint64_t position, uint32_t n_known)
{
    struct thread_block_changes *changes = &self->block_changes;
    uint32_t begin = atomic_load_explicit(&changes->begin, memory_order_relaxed);
    for (uint32_t i = begin; i != n_known; i++) {
        struct thread_block_change *change = &changes->items[i % THREAD_BLOCK_CHANGES_MAX];
        change->is_done |= change->event == event && position >= change->position;
    }
    while (begin != n_known && changes->items[begin % THREAD_BLOCK_CHANGES_MAX].is_done)
        begin++;
    atomic_store_explicit(&changes->begin, begin, memory_order_release);
}

/* --- AUX areas --- */

/* The AUX area of an event, which has it in addition to its ring: records that the hardware itself writes there (Arm's
 * statistical profiling extension). Runs where rings are drained. */

#define SPE_RECORD_MAX 256 /* a generous bound for a record with its padding */

/* A part of the area, in the order in which it was written. */
struct aux_span {
    const unsigned char *area;
    uint64_t n_area, position, end;
};

/* Returns at most n_buffer of the next bytes, contiguous: in place or, near the area's end, copied to buffer. */
static const unsigned char *span_window_sig(const struct aux_span *span, unsigned char *buffer, size_t n_buffer,
                                            size_t *n_bytes)
{
    uint64_t offset = span->position % span->n_area;
    uint64_t left = span->end - span->position, before_wrap = span->n_area - offset;
    if (left <= before_wrap || before_wrap >= n_buffer) {
        *n_bytes = (size_t)(left < before_wrap ? left : before_wrap);
        return span->area + offset;
    }
    *n_bytes = (size_t)(left < n_buffer ? left : n_buffer);
    memcpy(buffer, span->area + offset, (size_t)before_wrap);
    memcpy(buffer + before_wrap, span->area, *n_bytes - (size_t)before_wrap);
    return buffer;
}

static void take_spe_sig(struct thread_state *self, unsigned index, const struct spe_record *record)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    struct sample_event event = {.index = (uint8_t)index, .has_access = true};
    access_of_spe_sig(plan, record, &event.access);
    if (event.access.has_address)
        event.earlier_var = block_changes_find_sig(self, index, UINT64_MAX, (uintptr_t)event.access.address);
    sample_take_plain_sig(self, &event);
}

/* Takes the samples of a part of an event's AUX area. offset: its position in all that was written to the area.
 * ctx: as events_drain_sig */
static void aux_drain_sig(struct thread_state *self, unsigned index, uint64_t offset, uint64_t n_bytes)
{
    struct thread_event *event = &self->events[index];
    struct perf_event_mmap_page *ring = event->ring;
    unsigned char buffer[SPE_RECORD_MAX];
    struct aux_span span = {
        .area = event->aux, .n_area = event->aux_bytes, .position = offset, .end = offset + n_bytes};
    uint64_t n_garbage = 0;
    if (!event->aux || n_bytes > event->aux_bytes) {
        sample_drop_sig(self, index, FATE_DROP_BAD_RECORD);
        return;
    }
    while (span.position < span.end) {
        struct spe_record record;
        size_t n_window;
        const unsigned char *window = span_window_sig(&span, buffer, sizeof buffer, &n_window);
        size_t n_used = spe_record_parse_sig(window, n_window, &record, &n_garbage);
        if (n_used)
            take_spe_sig(self, index, &record);
        else
            n_used = window == buffer || n_window < SPE_RECORD_MAX ? n_window : n_window - SPE_RECORD_MAX + 1;
        span.position += n_used;
    }
    if (n_garbage)
        sample_drop_sig(self, index, FATE_DROP_BAD_RECORD);
    __atomic_store_n(&ring->aux_tail, span.end, __ATOMIC_RELEASE);
}

/* --- rings that the reader empties --- */

/* Rings that the reader empties: many records at a time, each with only a pc. Runs in the signal handler, and in
 * ordinary code before a block disappears. */

#define RELEASE_PART 4 /* the kernel gets its ring back when a quarter of it has been read */

static void add_sig(_Atomic uint64_t *counter, uint64_t n)
{
    if (n)
        atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static void take_sample_sig(struct thread_state *self, unsigned index, const struct ring_record *record,
                            uint64_t position)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    struct sample_event event = {.index = (uint8_t)index, .has_access = true};
    if (!access_of_record_sig(plan, record, &event.access)) {
        sample_drop_sig(self, index, FATE_DROP_BAD_RECORD);
        return;
    }
    if (plan->flags & EVENT_WEIGHTED)
        event.weight = event.access.period;
    if (event.access.has_address)
        event.earlier_var = block_changes_find_sig(self, index, position, (uintptr_t)event.access.address);
    sample_take_plain_sig(self, &event);
}

static void take_record_sig(struct thread_state *self, unsigned index, const struct ring_record *record,
                            uint64_t position)
{
    struct arena_thread *counts = self->record;
    bool is_swapped = access_is_swapped_sig(&arena_header_sig()->events[index]);
    switch (record->header.type) {
    case PERF_RECORD_SAMPLE:
        take_sample_sig(self, index, record, position);
        break;
    case PERF_RECORD_LOST:
        add_sig(&counts->fates[index][FATE_NOT_DELIVERED], ring_word_sig(record, 1, is_swapped));
        break;
    case PERF_RECORD_LOST_SAMPLES:
        add_sig(&counts->fates[index][FATE_NOT_DELIVERED], ring_word_sig(record, 0, is_swapped));
        break;
    case PERF_RECORD_THROTTLE:
        add_sig(&counts->n_throttles[index], 1);
        break;
    case PERF_RECORD_AUX:
        add_sig(&counts->n_truncated[index], ring_word_sig(record, 2, is_swapped) & PERF_AUX_FLAG_TRUNCATED ? 1 : 0);
        add_sig(&counts->n_collisions[index], ring_word_sig(record, 2, is_swapped) & PERF_AUX_FLAG_COLLISION ? 1 : 0);
        aux_drain_sig(self, index, ring_word_sig(record, 0, is_swapped), ring_word_sig(record, 1, is_swapped));
        break;
    default:
        break;
    }
}

void events_drain_sig(struct thread_state *self, unsigned index)
{
    bool is_swapped = access_is_swapped_sig(&arena_header_sig()->events[index]);
    struct perf_event_mmap_page *ring = self->events[index].ring;
    struct ring_record record;
    uint64_t position = ring->data_tail, released = position;
    uint32_t n_changes = block_changes_count_sig(self);
    for (;;) {
        enum ring_status status =
            ring_next_sig(ring, is_swapped, &position, self->wrapped, sizeof self->wrapped, &record);
        if (status == RING_EMPTY)
            break;
        if (status == RING_GARBAGE)
            sample_drop_sig(self, index, FATE_DROP_BAD_RECORD);
        else
            take_record_sig(self, index, &record, position - record.header.size);
        if (position - released > ring->data_size / RELEASE_PART)
            ring_release_sig(ring, released = position);
    }
    ring_release_sig(ring, position);
    block_changes_done_sig(self, index, position, n_changes);
}

/* --- starting and stopping events --- */

/* Starting and stopping the events of any thread, only with system calls, because the handler of the signal with which
 * the user switches the sampling does it too. */

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
    if (!abi_is_clock_sig(attr) ||
        plan->flags & (EVENT_DRAINED | EVENT_RING | EVENT_KERNEL | EVENT_SILENT | EVENT_REPLAY) || plan->leader ||
        !attr->sample_period)
        return 0;
    return attr->freq ? CLOCK_S_NS / attr->sample_freq : attr->sample_period;
}

/* src: the finalizer of splitmix64 (Steele, Lea, Flood 2014). */
uint64_t events_mixed_sig(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Of time and thread. */
uint64_t events_random_sig(const struct thread_state *self)
{
    return events_mixed_sig(own_clock_ns_sig(CLOCK_MONOTONIC) + ((uint64_t)self->record->tid << 40));
}

struct governor_plan events_governed_sig(const struct arena_event *plan)
{
    const struct perf_event_attr *attr = &plan->attr;
    uint64_t period = attr->freq ? CLOCK_S_NS / (attr->sample_freq ? attr->sample_freq : 1) : attr->sample_period;
    bool is_timer = plan->flags & EVENT_TIMER, is_clock = is_timer || abi_is_clock_sig(attr);
    if (is_timer)
        period = plan->timer_interval_ns;
    return (struct governor_plan){.period = period ? period : 1,
                                  .tick_ns = arena_header_sig()->tick_ns,
                                  .is_clock = is_clock,
                                  .is_rate = attr->freq && !is_clock,
                                  .slow_least = arena_header_sig()->slow_least,
                                  .is_exact = (!is_clock && !attr->freq && attr->sample_period <= 1) ||
                                              events_has_each_sig(plan) || attr->sample_type & PERF_SAMPLE_READ ||
                                              plan->flags & (EVENT_DRAINED | EVENT_SILENT | EVENT_REPLAY)};
}

unsigned events_slow_hint_sig(unsigned index)
{
    return atomic_load_explicit(&control.slow[index], memory_order_relaxed);
}

static struct timespec timespec_of_sig(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / CLOCK_S_NS), .tv_nsec = (long)(ns % CLOCK_S_NS)};
}

/* The only place that arms a timer. */
static bool timer_arm_sig(const struct thread_event *event, uint64_t first_ns, uint64_t interval_ns)
{
    struct itimerspec setting = {.it_interval = timespec_of_sig(interval_ns), .it_value = timespec_of_sig(first_ns)};
    return own_call_sig(SYS_timer_settime, event->timer_id, 0, &setting, NULL) == 0;
}

bool event_period_set_sig(const struct thread_event *event, uint64_t value)
{
    int fd = event_fd_sig(event);
    return fd >= 0 && own_call_sig(SYS_ioctl, fd, PERF_EVENT_IOC_PERIOD, &value) == 0;
}

/* What the first sample of a timer stands for: the time from one to the next. */
static uint64_t timer_spacing_sig(const struct thread_event *event, uint64_t interval_ns)
{
    return interval_ns > event->tick_ns ? interval_ns : event->tick_ns;
}

/* The first period is a random one. The kernel looks at CPU-time timers at its own ticks only, whose phase is random
 * already: a first period below a tick ends at the next one. CPU time that a thread used while its timer was off must
 * not count: the first sample has the weight of a period, later ones that of the time since the last. */
static void timer_start_sig(const struct thread_state *self, struct thread_event *event, const struct arena_event *plan)
{
    const struct governor_plan governed = events_governed_sig(plan);
    uint64_t interval_ns = governor_period_sig(&event->governor, &governed), random = events_random_sig(self);
    event->first = 1 + random % timer_spacing_sig(event, interval_ns);
    if (event->tick_ns)
        event->first = (event->first - 1) / event->tick_ns * event->tick_ns + 1;
    else
        event->first = governor_first_sig(&event->governor, &governed, random);
    (void)timer_arm_sig(event, event->first, interval_ns);
}

/* Stores how long the event was enabled and how long it really counted.  ctx: any, while its descriptor is open */
static void events_read_times_sig(struct thread_state *self, unsigned index)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    uint64_t words[3 + 2 * ARENA_EVENTS_MAX]; /* value, enabled, running; in a group the values come last */
    if (self->events[index].fd < 0 || plan->flags & EVENT_REPLAY || plan->attr.sample_type & PERF_SAMPLE_READ)
        return;
    int fd = event_fd_sig(&self->events[index]);
    if (fd < 0 || own_call_sig(SYS_read, fd, words, sizeof words) < (long)(3 * sizeof words[0]))
        return;
    const struct thread_past *past = &self->past;
    atomic_store_explicit(&self->record->enabled_ns[index], past->enabled_ns[index] + words[1], memory_order_relaxed);
    atomic_store_explicit(&self->record->running_ns[index], past->running_ns[index] + words[2], memory_order_relaxed);
}

static void enable_one_sig(struct thread_state *self, unsigned index, bool enable)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    struct thread_event *event = &self->events[index];
    unsigned long request = enable ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;
    if (event->has_timer && enable)
        timer_start_sig(self, event, plan);
    else if (event->has_timer)
        (void)timer_arm_sig(event, 0, 0);
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
    events_enable_page_ins_sig(self, enable);
    if (!enable)
        watchpoints_stop_sig(self);
}

void events_enable_watch_sig(struct thread_state *self, bool enable)
{
    uint64_t period_ns = enable ? CONTROL_WATCH_NS : 0;
    if (self->watch.has_timer)
        (void)timer_arm_sig(&self->watch, period_ns, period_ns);
    int fd = event_fd_sig(&self->watch);
    if (fd >= 0)
        own_call_sig(SYS_ioctl, fd, enable ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

/* --- the overflow handler --- */

/* The overflow handler: finds out which event fired, takes its sample, and passes on signals that are not from our
 * events. */

#define TIMES_EVERY 1024 /* samples */

static struct {
    _Atomic int lowest_fd;          /* of all descriptors that were ever set to send our signal; 0 none */
    char timers[EVENTS_TIMERS_MAX]; /* a timer's signals bring the address of its place */
} senders;

/* Our descriptors lie above the program's, because the program gets the lowest free numbers. */
void events_note_descriptor_sig(int fd)
{
    int lowest = atomic_load(&senders.lowest_fd);
    while ((!lowest || fd < lowest) && !atomic_compare_exchange_weak(&senders.lowest_fd, &lowest, fd))
        continue;
}

void *events_timer_value_sig(unsigned index)
{
    return &senders.timers[index];
}

/* Index of the event, EVENTS_TIMER_OF_WATCH, or EVENTS_TIMERS_MAX: it is not a timer of ours. The value tells, not the
 * timer's number: emulators bring another one. */
static unsigned timer_index_sig(const siginfo_t *info)
{
    uintptr_t index = (uintptr_t)info->si_value.sival_ptr - (uintptr_t)senders.timers;
    return info->si_code == SI_TIMER && index < EVENTS_TIMERS_MAX ? (unsigned)index : EVENTS_TIMERS_MAX;
}

bool events_is_ours_sig(const siginfo_t *info)
{
    int lowest = atomic_load_explicit(&senders.lowest_fd, memory_order_relaxed);
    if (info->si_code == SI_TIMER)
        return timer_index_sig(info) < EVENTS_TIMERS_MAX;
    bool is_of_event = info->si_code >= POLL_IN && info->si_code <= POLL_HUP && lowest && info->si_fd >= lowest;
    return is_of_event || thread_is_stop_sig(info);
}

/* The watchpoint that raised the signal, -1 when none did. */
static int watchpoint_index_sig(const struct thread_state *self, const siginfo_t *info)
{
    for (int i = 0; info->si_code > 0 && info->si_fd >= 0 && i < MEETING_WATCHES; i++)
        if (self->watchpoints[i].event.fd == info->si_fd)
            return i;
    return -1;
}

static bool is_open_sig(const struct thread_event *event)
{
    return event->fd >= 0 || event->drain_fd >= 0 || event->has_timer;
}

bool events_can_signal_sig(const struct thread_state *self)
{
    const struct arena_header *header = arena_header_sig();
    for (unsigned i = 0; i < header->n_events; i++)
        if (is_open_sig(&self->events[i]))
            return true;
    for (unsigned i = 0; i < MEETING_WATCHES; i++)
        if (is_open_sig(&self->watchpoints[i].event))
            return true;
    return is_open_sig(&self->watch) || is_open_sig(&self->page_ins);
}

/* Index of the event that raised the signal, -1 when it is not our event. */
static int event_index_sig(const struct thread_state *self, const siginfo_t *info)
{
    const struct arena_header *header = arena_header_sig();
    unsigned timer = timer_index_sig(info);
    if (info->si_code == SI_TIMER)
        return timer < header->n_events && self->events[timer].has_timer ? (int)timer : -1;
    for (unsigned i = 0; info->si_code > 0 && info->si_fd >= 0 && i < header->n_events; i++)
        if (self->events[i].fd == info->si_fd || self->events[i].drain_fd == info->si_fd)
            return (int)i;
    return -1;
}

/* Whether the event is page faults: these are recorded with the pc at which they happen. */
static bool is_of_faults_sig(const struct arena_event *plan)
{
    return plan->attr.type == PERF_TYPE_SOFTWARE && plan->attr.sample_type & PERF_SAMPLE_IP &&
           (plan->attr.config == PERF_COUNT_SW_PAGE_FAULTS || plan->attr.config == PERF_COUNT_SW_PAGE_FAULTS_MIN ||
            plan->attr.config == PERF_COUNT_SW_PAGE_FAULTS_MAJ);
}

bool events_see_faults_sig(const struct thread_state *self)
{
    const struct arena_header *header = arena_header_sig();
    for (unsigned i = 0; i < header->n_events; i++)
        if (self->events[i].fd >= 0 && is_of_faults_sig(&header->events[i]))
            return true;
    return false;
}

/* Sets the range of the handler's own code: it also touches pages for the first time, and its faults must not count. */
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

/* For how many threads the event is sampled. */
static uint32_t threads_sig(const struct thread_event *event)
{
    return event->n_threads ? event->n_threads : 1;
}

/* Counts how many periods a sample stands for beyond its own, and returns what it weighs by that: nothing where samples
 * bring weights, or are weighed by the time since the one before. */
static uint64_t spared_sig(struct thread_state *self, unsigned index, uint32_t n_periods)
{
    const struct thread_event *event = &self->events[index];
    bool is_told = arena_header_sig()->events[index].flags & EVENT_WEIGHTED || event->has_timer;
    uint64_t n = n_periods ? n_periods - 1 : 0;
    if (n)
        atomic_fetch_add_explicit(&self->record->n_spared[index], n, memory_order_relaxed);
    return is_told ? 0 : n;
}

/* The record that belongs to this signal is the newest one: since then only the handler itself can have caused another
 * overflow on this thread. If there is no record, the sample has already been taken, with another event's signal. */
static void take_newest_sig(struct thread_state *self, unsigned index, uint32_t n_periods, const ucontext_t *context)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    uint32_t n_threads = threads_sig(&self->events[index]);
    struct sample_event event = {.index = (uint8_t)index};
    struct ring_news news;
    events_read_news_sig(self, index, arch_pc_of_context_sig(context), &news);
    if (news.n_samples == news.n_own)
        return;
    event.weight = spared_sig(self, index, n_periods * n_threads);
    if (self->events[index].count.cell.period && plan->flags & EVENT_WEIGHTED)
        event.weight = self->events[index].count.cell.period * n_threads;
    if (plan->flags & EVENT_RING) {
        event.has_access = news.has_newest && access_of_record_sig(plan, &news.newest, &event.access);
        if (news.has_newest && !event.has_access) {
            sample_drop_sig(self, index, FATE_DROP_BAD_RECORD);
            return;
        }
    } else if (event.has_access && plan->flags & EVENT_WEIGHTED)
        event.weight = event.access.period * n_threads;
    sample_take_sig(self, &event, context);
}

/* A timer that replaces an event whose samples all have the same weight ticks more slowly than the event. So its
 * samples weigh more, like those of an event that did not count all the time. */
static void weigh_by_times_sig(struct thread_state *self, unsigned index, uint64_t elapsed_ns)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    uint64_t period_ns = event_clock_period_sig(plan);
    if (plan->flags & (EVENT_WEIGHTED | EVENT_TIMER) || !period_ns)
        return;
    atomic_fetch_add_explicit(&self->record->enabled_ns[index], elapsed_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&self->record->running_ns[index], period_ns, memory_order_relaxed);
}

#define LATE_NS UINT64_C(100000) /* of CPU time, at most, from the tick of a clock to the handler */

/* Whether the event is a clock that leaves the kernel out: it ticks there as well, but without a signal. */
static bool is_user_clock_sig(const struct arena_event *plan)
{
    return plan->attr.exclude_kernel && event_clock_period_sig(plan);
}

/* Gives an event whose first period has ended the second one, and then that of the plan; false when the signal is no
 * sample. A clock goes on ticking at the distance of its first period while it meets only the kernel. The tick that
 * meets the program then is a sample only if it is the one that a clock with the plan's period would have had about
 * now; if not, what is left of that period becomes a first period again. */
static bool first_ends_sig(struct thread_event *event, const struct arena_event *plan)
{
    const struct governor_plan governed = events_governed_sig(plan);
    uint64_t period = governor_period_sig(&event->governor, &governed), next = period, words[3] = {0};
    bool is_sample = true;
    int fd = event_fd_sig(event);
    if (fd >= 0 && is_user_clock_sig(plan) && own_call_sig(SYS_read, fd, words, sizeof words) > 0) {
        uint64_t late = words[0] > event->due ? words[0] - event->due : 0;
        bool is_from_kernel = late >= event->first && late >= LATE_NS;
        is_sample = !is_from_kernel || (late >= period && late % period < event->first);
        next = is_sample ? period : governor_rest_sig(&event->governor, &governed, late);
    }
    if (is_sample)
        next = governor_second_sig(&event->governor, &governed);
    (void)event_period_set_sig(event, next);
    event->first = is_sample && next == period ? 0 : next;
    event->due = words[0] + next;
    return is_sample;
}

/* Begins or ends the pause of an event, or goes on with it: then a tick, also the last one, is none of a sample. Clocks
 * tick seldom in it, and begin anew at random when it is over, so that weights stay exact. */
__attribute__((noinline)) static bool pause_sig(struct thread_state *self, unsigned index)
{
    struct thread_event *event = &self->events[index];
    const struct arena_event *plan = &arena_header_sig()->events[index];
    const struct governor_plan governed = events_governed_sig(plan);
    uint64_t words[3 + 2 * ARENA_EVENTS_MAX] = {0};
    bool was_paused = event->is_paused, is_paused = sample_is_paused_sig() && governed.is_clock;
    int fd = was_paused && !is_paused && !event->has_timer ? event_fd_sig(event) : -1;
    event->is_paused = is_paused;
    event->first = is_paused ? 0 : event->first;
    if (is_paused && !was_paused && event->has_timer)
        (void)timer_arm_sig(event, governor_pause_sig(&governed), governor_pause_sig(&governed));
    else if (is_paused && !was_paused)
        (void)event_period_set_sig(event, governor_pause_sig(&governed));
    else if (was_paused && !is_paused && event->has_timer)
        timer_start_sig(self, event, plan);
    if (fd >= 0 && own_call_sig(SYS_read, fd, words, sizeof words) > 0) {
        event->first = governor_first_sig(&event->governor, &governed, events_random_sig(self));
        event->due = words[0] + event->first;
        (void)event_period_set_sig(event, event->first);
    }
    return was_paused || is_paused;
}

/* Counts the overflow of an event; true when it is a sample. One that is not counts as none. */
static bool count_overflow_sig(struct thread_state *self, unsigned index)
{
    struct thread_event *event = &self->events[index];
    struct ring_news news;
    event_count_enter_sig(event);
    bool is_sample = event->count.cell.period ? event_count_overflow_sig(event)
                                              : !event->first || event->has_timer ||
                                                    first_ends_sig(event, &arena_header_sig()->events[index]);
    bool is_paused = __builtin_expect(sample_is_paused_sig() || event->is_paused, 0) && pause_sig(self, index);
    if (is_sample && !is_paused)
        return true;
    if (event->ring) {
        events_read_news_sig(self, index, 0, &news);
        event->n_written -= news.n_samples;
    }
    return false;
}

void events_settle_sig(struct thread_state *self)
{
    for (unsigned i = 0; i < arena_header_sig()->n_events; i++) {
        struct thread_event *event = &self->events[i];
        const struct arena_event *plan = &arena_header_sig()->events[i];
        const struct governor_plan governed = events_governed_sig(plan);
        if (event->first && !event->has_timer &&
            event_period_set_sig(event, governor_period_sig(&event->governor, &governed)))
            event->first = 0;
        event_count_settle_sig(self, event);
    }
}

/* False when the signal was none of a sample. */
static bool take_sig(struct thread_state *self, unsigned index, uint64_t entered_ns, const ucontext_t *context)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    struct thread_event *event = &self->events[index];
    uint32_t n_periods = event->governor.stands_for;
    if (plan->flags & EVENT_DRAINED) {
        if (!self->tree_busy) /* else the interrupted code is doing this already */
            events_drain_sig(self, index);
        return true;
    }
    if (!count_overflow_sig(self, index))
        return false;
    if (event->ring) {
        take_newest_sig(self, index, n_periods, context);
        return true;
    }
    struct sample_event sample = {
        .index = (uint8_t)index, .weight = spared_sig(self, index, n_periods), .t_ns = entered_ns};
    if (event->has_timer) {
        const struct governor_plan governed = events_governed_sig(plan);
        uint64_t now = own_clock_ns_sig(CLOCK_THREAD_CPUTIME_ID); /* 0: a sandbox forbids reading it */
        sample.weight = timer_spacing_sig(event, governor_period_sig(&event->governor, &governed));
        if (now && !event->first)
            sample.weight = now - event->last_cpu_ns;
        event->last_cpu_ns = now;
        event->first = 0;
        weigh_by_times_sig(self, index, sample.weight);
        sample.weight = plan->flags & EVENT_WEIGHTED ? sample.weight : 0;
    }
    sample_take_sig(self, &sample, context);
    return true;
}

/* Signals are not queued: of several events that overflow at the same instant, only one gets a signal. */
static void take_others_sig(struct thread_state *self, unsigned index, const ucontext_t *context)
{
    const struct arena_header *header = arena_header_sig();
    for (unsigned i = 0; i < header->n_events; i++) {
        const struct thread_event *event = &self->events[i];
        uint32_t n_periods = event->governor.stands_for;
        if (i != index && event->ring && !(header->events[i].flags & EVENT_DRAINED) &&
            ring_head_sig(event->ring) != event->seen && count_overflow_sig(self, i))
            take_newest_sig(self, i, n_periods, context);
    }
}

/* Moves records that the hardware still holds into the ring: reading the counter empties the processor's buffer of
 * precise records, and stopping the event empties the buffer of an AUX area. */
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

/* A program that is killed cannot report the times at its end, so they are also read now and then. */
static void read_times_sometimes_sig(struct thread_state *self, unsigned index)
{
    if (atomic_load_explicit(&self->record->taken[index], memory_order_relaxed) % TIMES_EVERY == TIMES_EVERY - 1)
        events_read_times_sig(self, index);
}

static bool is_watch_sig(const struct thread_state *self, const siginfo_t *info)
{
    if (info->si_code == SI_TIMER)
        return self->watch.has_timer && timer_index_sig(info) == EVENTS_TIMER_OF_WATCH;
    return info->si_code > 0 && info->si_fd >= 0 && info->si_fd == self->watch.fd;
}

/* --- what the sampling may take --- */

/* A handler that runs. */
struct taking {
    uint64_t entered_ns; /* CLOCK_MONOTONIC */
    uint64_t got_ns;     /* what the program had for itself before */
    bool is_timed;
    uint64_t on_cpu_ns; /* with is_timed: time_on_cpu_sig when it was entered */
};

/* Arms the period that the governor has decided on; false when the kernel, or a sandbox, refuses. */
static bool rearm_sig(struct thread_event *event, const struct arena_event *plan)
{
    const struct governor_plan governed = events_governed_sig(plan);
    uint64_t period = governor_period_sig(&event->governor, &governed),
             hz = plan->attr.sample_freq >> event->governor.slow;
    if (event->has_timer)
        return timer_arm_sig(event, period, period);
    if (event->count.cell.period) /* when the handler ends */
        return true;
    /* The kernel gives a clock a period even where a frequency was asked for. */
    bool is_frequency = plan->attr.freq && !governed.is_clock;
    return event_period_set_sig(event, is_frequency ? hz ? hz : 1 : period);
}

static void note_cost_sig(struct thread_state *self, uint64_t cost_ns)
{
    _Atomic uint64_t *least = &self->record->spared_cost_ns;
    uint64_t before_ns = atomic_load_explicit(least, memory_order_relaxed);
    if (!before_ns || cost_ns < before_ns)
        atomic_store_explicit(least, cost_ns, memory_order_relaxed);
}

#define TIMED_SAMPLES 16

/* The time that the thread has had the processor, ns: by one of its clocks, which also counts what a hypervisor takes
 * away, as their ticks come by that. */
static uint64_t time_on_cpu_sig(const struct thread_state *self)
{
    const struct arena_header *header = arena_header_sig();
    uint64_t words[3 + 2 * ARENA_EVENTS_MAX];
    for (unsigned i = 0; i < header->n_events; i++) {
        bool is_clock =
            event_clock_period_sig(&header->events[i]) && !(header->events[i].attr.sample_type & PERF_SAMPLE_READ);
        int fd = is_clock ? event_fd_sig(&self->events[i]) : -1;
        if (fd >= 0 && own_call_sig(SYS_read, fd, words, sizeof words) > 0)
            return words[0];
    }
    return own_clock_ns_sig(CLOCK_THREAD_CPUTIME_ID);
}

/* A sample that seems to have cost too much may only have waited for the processor: then the next ones are timed by a
 * clock that knows, which takes a system call. Only what that says slows an event down. False when there is nothing to
 * judge. */
static bool find_cost_sig(struct thread_state *self, const struct governor *governor,
                          const struct governor_plan *governed, const struct taking *taking, uint64_t *cost_ns)
{
    if (taking->is_timed) {
        uint64_t now_ns = time_on_cpu_sig(self);
        *cost_ns = now_ns > taking->on_cpu_ns ? now_ns - taking->on_cpu_ns : 0;
        self->n_to_time -= self->n_to_time > 0;
    } else if (!governor_is_fair_sig(governor, governed, *cost_ns, taking->got_ns)) {
        self->n_to_time = TIMED_SAMPLES;
        return false;
    }
    if (governor->slow > governor_least_sig(governed))
        self->n_to_time = TIMED_SAMPLES;
    return true;
}

/* Lets the governor judge what the sample that is now at its end has cost. */
static void govern_sig(struct thread_state *self, unsigned index, const struct taking *taking, uint64_t now_ns)
{
    struct thread_event *event = &self->events[index];
    const struct arena_event *plan = &arena_header_sig()->events[index];
    const struct governor_plan governed = events_governed_sig(plan);
    const struct governor before = event->governor;
    uint64_t cost_ns = now_ns > taking->entered_ns ? now_ns - taking->entered_ns : 0;
    if (event->first || !find_cost_sig(self, &event->governor, &governed, taking, &cost_ns) ||
        !governor_judge_sig(&event->governor, &governed, cost_ns, taking->got_ns))
        return;
    if (!rearm_sig(event, plan)) {
        event->governor.slow = before.slow;
        event->governor.wished = before.wished;
        event->governor.stands_for = before.stands_for;
        return;
    }
    atomic_store_explicit(&control.slow[index], event->governor.slow, memory_order_relaxed);
    if (event->governor.slow > before.slow)
        note_cost_sig(self, (cost_ns < before.before_ns ? cost_ns : before.before_ns) + governed.tick_ns);
}

/* For tests: makes the sample as expensive as it is on a machine that is slow at samples. */
static void spend_sig(void)
{
    const struct arena_header *header = arena_header_sig();
    uint64_t from_ns = own_clock_ns_sig(CLOCK_THREAD_CPUTIME_ID);
    while (own_clock_ns_sig(CLOCK_THREAD_CPUTIME_ID) - from_ns < header->test_sample_ns &&
           !atomic_load(&header->is_halted))
        continue;
}

static bool take_all_sig(struct thread_state *self, unsigned index, uint64_t entered_ns, const ucontext_t *context)
{
    bool is_sample = take_sig(self, index, entered_ns, context);
    take_others_sig(self, index, context);
    read_times_sometimes_sig(self, index);
    if (arena_header_sig()->watches_per_s)
        watchpoints_step_sig(self);
    if (arena_header_sig()->test_sample_ns)
        spend_sig();
    return is_sample;
}

/* The handler begins and ends: the companion watches over how much of the time that takes. */
static struct taking enter_sig(struct thread_state *self, uint64_t now_ns)
{
    struct taking taking = {.entered_ns = now_ns, .got_ns = UINT64_MAX / 2, .is_timed = self->n_to_time > 0};
    if (self->left_ns && now_ns > self->left_ns)
        taking.got_ns = now_ns - self->left_ns;
    if (taking.is_timed)
        taking.on_cpu_ns = time_on_cpu_sig(self);
    for (unsigned i = 0; self->n_cold && i < arena_header_sig()->n_events; i++)
        event_count_enter_sig(&self->events[i]);
    self->n_cold -= self->n_cold > 0;
    atomic_store_explicit(&self->record->entered_ns, now_ns, memory_order_relaxed);
    return taking;
}

static void leave_sig(struct thread_state *self, uint64_t entered_ns, uint64_t now_ns)
{
    struct arena_thread *record = self->record;
    uint64_t before_ns = atomic_load_explicit(&record->handler_ns, memory_order_relaxed);
    atomic_store_explicit(&record->handler_ns, before_ns + (now_ns > entered_ns ? now_ns - entered_ns : 0),
                          memory_order_relaxed);
    atomic_store_explicit(&record->entered_ns, 0, memory_order_relaxed);
    self->left_ns = now_ns;
}

/* Takes the sample that the signal announces. A thread that closes the events of another one sets `ending` and then
 * waits until that thread's handler is not running; so in_handler is set before ending is read. */
static void handle_sig(struct thread_state *self, const siginfo_t *info, const ucontext_t *context)
{
    uint64_t entered_ns = own_clock_ns_sig(CLOCK_MONOTONIC);
    self->in_handler = 1;
    atomic_thread_fence(memory_order_seq_cst);
    struct taking taking = enter_sig(self, entered_ns);
    int index = event_index_sig(self, info);
    DEBUG_NOTE_SIG(DEBUG_EVENTS, 2, "signal", {"event", (uint32_t)(index + 1), NULL},
                   {"fd", (uint32_t)info->si_fd, NULL}, {"pc", arch_pc_of_context_sig(context), NULL});
    int watchpoint = index < 0 ? watchpoint_index_sig(self, info) : -1;
    if (watchpoint >= 0)
        watchpoint_take_sig(self, (unsigned)watchpoint, context);
    else if (index < 0 && is_watch_sig(self, info))
        control_begin_sig();
    else if (index < 0)
        events_take_page_in_sig(self, info, context);
    else
        control_end_sig();
    bool is_halted = atomic_load_explicit(&arena_header_sig()->is_halted, memory_order_relaxed);
    if (is_halted)
        events_enable_sig(self, false);
    bool is_taken = index >= 0 && !self->ending && !is_halted; /* an overflow after that counts as not delivered */
    bool is_sample = is_taken && take_all_sig(self, (unsigned)index, entered_ns, context);
    uint64_t now_ns = own_clock_ns_sig(CLOCK_MONOTONIC);
    if (is_sample)
        govern_sig(self, (unsigned)index, &taking, now_ns);
    events_count_leave_sig(self);
    leave_sig(self, entered_ns, now_ns);
    atomic_thread_fence(memory_order_release);
    self->in_handler = 0;
}

void events_handler_sig(int number, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    struct thread_state *self = thread_adopt_sig();
    (void)number;
    bool is_stop = thread_stand_sig(self, info, context);
    if (process_is_attached_sig() && !events_is_ours_sig(info))
        chain_call_sig(number, info, context); /* masks are not translated */
    else if (!events_is_ours_sig(info))
        mask_take_foreign_sig(self, info, context);
    else if (self && process_is_ours_sig() && !is_stop)
        handle_sig(self, info, context);
    errno = saved_errno;
}
