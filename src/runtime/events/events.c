/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing the events of a thread, replays among them, and the signals that start and stop the sampling.
 * Ordinary code; raw system calls, because the program may wrap or forbid the library functions. */
#include "runtime/events/events.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/own/own-call.h"
#include "runtime/own/process.h"
#include "runtime/record/arena-writer.h"
#include "runtime/record/loadmap.h"
#include "runtime/record/sample.h"

/* --- one event: descriptor, group, ring, AUX area, signal --- */

#define RING_ONLY_BYTES (256 * 1024)
#define BATCH_BYTES (512 * 1024)
#define DRAIN_PERIOD_NS 10000000 /* CPU time between checks of a ring whose event cannot signal that it fills up */

/* One call of perf_event_open for the thread of self, with the descriptor moved out of the program's way; -1 when it
 * fails.
 * ctx: ordinary */
static int event_open_attr(const struct thread_state *self, const struct perf_event_attr *attr, int group_fd)
{
    pid_t thread = atomic_load(&self->is_absent) ? (pid_t)self->record->tid : 0;
    struct perf_event_attr copy = *attr;
    if (arena_header_sig()->lacks & ARENA_LACKS_PERF) {
        errno = EACCES;
        return -1;
    }
    if (!(copy.sample_type & PERF_SAMPLE_READ))
        copy.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    int fd = (int)own_call_sig(SYS_perf_event_open, &copy, thread, -1, group_fd, PERF_FLAG_FD_CLOEXEC);
    return descriptors_move_up_sig(fd, DESCRIPTOR_EVENT);
}

static void *map_or_null(int fd, uint64_t n_bytes, int protection, uint64_t offset)
{
    void *mapped = (void *)own_mmap_sig(NULL, n_bytes, protection, MAP_SHARED, fd, offset);
    return (uintptr_t)mapped >= (uintptr_t)-4095 ? NULL : mapped;
}

/* Makes every overflow of fd signal the calling thread, self. */
static bool set_signal(const struct thread_state *self, int fd)
{
    struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = (pid_t)self->record->tid};
    events_note_descriptor_sig(fd);
    return own_call_sig(SYS_fcntl, fd, F_SETFL, O_ASYNC) == 0 &&
           own_call_sig(SYS_fcntl, fd, F_SETSIG, EVENTS_SIGNAL) == 0 &&
           own_call_sig(SYS_fcntl, fd, F_SETOWN_EX, &owner) == 0;
}

/* Size of the ring's data: the plan's, in pages of this machine. */
static uint64_t data_bytes(const struct arena_event *plan, uint64_t page_bytes)
{
    uint64_t wanted = plan->ring_bytes;
    if (!wanted && plan->flags & EVENT_RING_ONLY)
        wanted = RING_ONLY_BYTES;
    else if (!wanted && plan->flags & (EVENT_BATCH | EVENT_AUX))
        wanted = BATCH_BYTES;
    uint64_t n_bytes = page_bytes;
    while (n_bytes < wanted)
        n_bytes *= 2;
    return n_bytes;
}

/* Maps the largest ring that the limit on locked memory allows, down to one page. */
static void map_ring(struct thread_event *event, const struct arena_event *plan)
{
    uint64_t page_bytes = arena_header_sig()->page_bytes;
    bool is_drained = plan->flags & EVENT_DRAINED;
    for (uint64_t n_bytes = data_bytes(plan, page_bytes); n_bytes >= page_bytes && !event->ring; n_bytes /= 2) {
        event->ring_bytes = (uint32_t)(page_bytes + n_bytes);
        event->ring = map_or_null(event->fd, event->ring_bytes, is_drained ? PROT_READ | PROT_WRITE : PROT_READ, 0);
    }
}

static bool map_aux(struct thread_event *event, const struct arena_event *plan)
{
    struct perf_event_mmap_page *page = event->ring;
    uint64_t page_bytes = arena_header_sig()->page_bytes;
    for (uint64_t n_bytes = plan->aux_bytes; page && n_bytes >= page_bytes && !event->aux; n_bytes /= 2) {
        page->aux_offset = event->ring_bytes;
        page->aux_size = event->aux_bytes = n_bytes;
        event->aux = map_or_null(event->fd, n_bytes, PROT_READ | PROT_WRITE, event->ring_bytes);
    }
    return event->aux;
}

_Static_assert(DRAIN_PERIOD_NS >= GOVERNOR_CLOCK_LEAST_NS && CONTROL_WATCH_NS >= GOVERNOR_CLOCK_LEAST_NS,
               "clocks beside the plan's events are slow enough");

static struct perf_event_attr clock_attr(uint64_t period_ns)
{
    return (struct perf_event_attr){.size = sizeof(struct perf_event_attr),
                                    .type = PERF_TYPE_SOFTWARE,
                                    .config = PERF_COUNT_SW_TASK_CLOCK,
                                    .sample_period = period_ns,
                                    .disabled = 1,
                                    .exclude_kernel = 1,
                                    .exclude_hv = 1};
}

/* An event that sends signals sends one at each overflow, however full the ring is. So a ring that is drained has a
 * second event beside it: for a software event, one that counts the same and overflows whenever about a third of the
 * ring has been filled; for any other event, a clock. */
static bool open_drain(const struct thread_state *self, struct thread_event *event, const struct arena_event *plan)
{
    struct perf_event_attr attr = plan->attr;
    unsigned n_record_bytes = ring_sample_bytes_sig(plan->attr.sample_type);
    uint64_t n_bytes = event->ring_bytes - arena_header_sig()->page_bytes;
    attr.sample_type = 0;
    if (plan->attr.type == PERF_TYPE_SOFTWARE && n_record_bytes && !plan->attr.freq)
        attr.sample_period = plan->attr.sample_period * (n_bytes / 3) / n_record_bytes;
    else
        attr = clock_attr(DRAIN_PERIOD_NS);
    event->drain_fd = event_open_attr(self, &attr, -1);
    event->drain_id = descriptors_event_id_sig(event->drain_fd);
    return event->drain_fd >= 0 && set_signal(self, event->drain_fd);
}

/* Whether one signal stands for many records: the processor collects precise records by itself and interrupts when its
 * buffer is full, and so does the AUX area. */
static bool signals_by_buffer(const struct arena_event *plan)
{
    return plan->flags & EVENT_AUX || (plan->flags & EVENT_BATCH && plan->attr.precise_ip && !plan->attr.freq &&
                                       !(plan->attr.sample_type & PERF_SAMPLE_RAW));
}

#define COLD_HANDLERS 32u /* of a thread: later ones hardly touch memory of ours for the first time */
#define FEW_THREADS 64u   /* so many are always measured in full, and as many as twice the processors */
#define PROCESSORS_MAX 8192
#define THINNED_TO 8 /* one thread of so many has an event that is thinned */

static struct {
    _Atomic uint32_t n_few; /* 0: not known yet */
    _Atomic uint64_t seed;  /* of the choice, 0: none yet */
    _Atomic uint64_t n_met[ARENA_EVENTS_MAX];
} many;

/* How many threads at once are few. The processors are those that the first thread may use. */
static uint32_t few_threads(void)
{
    uint64_t processors[PROCESSORS_MAX / 64];
    uint32_t n_few = atomic_load_explicit(&many.n_few, memory_order_relaxed), n_processors = 0;
    if (n_few)
        return n_few;
    long n_bytes = own_call_sig(SYS_sched_getaffinity, 0, sizeof processors, processors);
    for (long i = 0; i < n_bytes / (long)sizeof *processors; i++)
        for (uint64_t left = processors[i]; left; left &= left - 1)
            n_processors++;
    n_few = 2 * n_processors > FEW_THREADS ? 2 * n_processors : FEW_THREADS;
    atomic_store_explicit(&many.n_few, n_few, memory_order_relaxed);
    return n_few;
}

/* Whether the thread began as one of so many at once that most of them are short or wait: their starts cost more than
 * what is learned from each. */
static bool is_one_of_many(const struct thread_state *self)
{
    return self->n_live > few_threads();
}

/* Of clocks, the ring only says how many overflows were not delivered. Where threads are many, that is not worth a
 * mapping of each, for which all threads of the program wait in turn. */
static bool start_ring(const struct thread_state *self, struct thread_event *event, const struct arena_event *plan)
{
    if (plan->flags & EVENT_SILENT)
        return true;
    if (event_clock_period_sig(plan) && !(plan->flags & EVENT_DRAINED) && is_one_of_many(self))
        return set_signal(self, event->fd);
    map_ring(event, plan);
    if (plan->flags & EVENT_DRAINED && !event->ring)
        return false;
    if (plan->flags & EVENT_AUX && !map_aux(event, plan))
        return false;
    if (!(plan->flags & EVENT_DRAINED) || signals_by_buffer(plan))
        return set_signal(self, event->fd);
    return open_drain(self, event, plan);
}

/* Closes only the event's descriptors (child of fork), unless the program has closed them and uses their numbers for
 * something else.  ctx: ordinary */
static void event_close_own(const struct thread_event *event)
{
    if (event_fd_sig(event) >= 0)
        own_call_sig(SYS_close, event->fd);
    if (event_drain_fd_sig(event) >= 0)
        own_call_sig(SYS_close, event->drain_fd);
}

/* Closes the event.  ctx: ordinary */
static void event_close(struct thread_event *event)
{
    if (event->fd >= 0)
        DEBUG_NOTE_SIG(DEBUG_EVENTS, 1, "closed", {"fd", (uint32_t)event->fd, NULL});
    if (event->aux)
        own_call_sig(SYS_munmap, event->aux, event->aux_bytes);
    if (event->ring)
        own_call_sig(SYS_munmap, event->ring, event->ring_bytes);
    event_close_own(event);
    *event = (struct thread_event){.fd = -1, .drain_fd = -1};
}

/* Whether the event can begin with a period of its own: one that signals each overflow, at a fixed period, and that the
 * kernel does not count down. */
static bool begins_anywhere(const struct arena_event *plan)
{
    const struct perf_event_attr *attr = &plan->attr;
    return !attr->freq && attr->sample_period > 1 && !events_has_each_sig(plan) && !event_is_counted_sig(plan) &&
           !(attr->sample_type & PERF_SAMPLE_READ) && !(plan->flags & (EVENT_DRAINED | EVENT_SILENT | EVENT_REPLAY));
}

/* The event as the governor lets it begin. A clock is given a period where a frequency was asked for, as the kernel
 * does it. */
static void set_period(struct perf_event_attr *attr, struct governor *governor, const struct governor_plan *governed)
{
    uint64_t hz = attr->sample_freq >> governor->slow, period = governor_period_sig(governor, governed);
    bool is_frequency = attr->freq && !governed->is_clock;
    if (!attr->sample_period) /* it only counts */
        return;
    attr->freq = is_frequency;
    if (is_frequency)
        attr->sample_freq = hz ? hz : 1;
    else
        attr->sample_period = period;
}

/* Opens the event with a first period of random length where it can have one. The event goes on at the distance of its
 * first period until a signal of it is handled, which may be a while in the kernel or under a shield. */
static void open_at_random(const struct thread_state *self, struct thread_event *event, const struct arena_event *plan,
                           int group_fd)
{
    struct perf_event_attr attr = plan->attr;
    const struct governor_plan governed = events_governed_sig(plan);
    unsigned index = (unsigned)(plan - arena_header_sig()->events);
    event->governor = governor_begin_sig(&governed, events_slow_hint_sig(index));
    if (event_is_counted_sig(plan)) {
        attr.freq = 0;
        attr.sample_period = event_count_begin_sig(self, event, index);
        event->fd = event_open_attr(self, &attr, group_fd);
        return;
    }
    if (begins_anywhere(plan)) {
        attr.sample_period = governor_first_sig(&event->governor, &governed, events_random_sig(self));
        event->fd = event_open_attr(self, &attr, group_fd);
        event->first = event->due = event->fd >= 0 ? attr.sample_period : 0;
    }
    if (event->fd >= 0)
        return;
    attr.sample_period = plan->attr.sample_period;
    set_period(&attr, &event->governor, &governed);
    event->fd = event_open_attr(self, &attr, group_fd);
}

/* Opens one event of the plan for the calling thread, whose earlier events are already open.  ctx: ordinary */
static bool event_open(struct thread_state *self, unsigned index)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    struct thread_event *event = &self->events[index];
    bool has_leader = plan->leader && plan->leader <= index;
    open_at_random(self, event, plan, has_leader ? self->events[plan->leader - 1].fd : -1);
    DEBUG_NOTE_SIG(DEBUG_EVENTS, 1, event->fd < 0 ? "refused" : "opened", {"event", 0, plan->name},
                   {"fd", (uint32_t)(event->fd < 0 ? 0 : event->fd), NULL},
                   {"errno", (uint32_t)(event->fd < 0 ? errno : 0), NULL});
    if (event->fd < 0)
        return false;
    event->id = descriptors_event_id_sig(event->fd);
    if (start_ring(self, event, plan))
        return true;
    event_close(event);
    return false;
}

/* Opens an event that has no ring, and signals the calling thread at each overflow.  ctx: ordinary */
static bool event_open_alone(const struct thread_state *self, struct thread_event *event,
                             const struct perf_event_attr *attr)
{
    event->fd = event_open_attr(self, attr, -1);
    if (event->fd < 0)
        return false;
    event->id = descriptors_event_id_sig(event->fd);
    if (set_signal(self, event->fd))
        return true;
    event_close(event);
    return false;
}

/* --- replays --- */

/* Replays: a file takes the place of kernel and hardware. The ring lies in private memory; pieces of the file are
 * written into it as the kernel would write them, and signals are raised where the kernel would raise them, so that
 * everything after the ring is the same code as in a real measurement. Ordinary code. Format of the file:
 * doc/replay.md. */

enum piece_kind { PIECE_WRITE = 1, PIECE_SIGNAL = 2, PIECE_AUX = 3 };

/* The part of the file that is still to come. */
struct replay {
    const unsigned char *at, *end;
};

static void *map_private(size_t n_bytes)
{
    void *mapped = (void *)own_mmap_sig(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return (uintptr_t)mapped >= (uintptr_t)-4095 ? NULL : mapped;
}

static bool replay_open(struct thread_event *event, const struct arena_event *plan)
{
    uint64_t page_bytes = arena_header_sig()->page_bytes;
    event->fd = (int)own_call_sig(SYS_openat, AT_FDCWD, plan->file, O_RDONLY | O_CLOEXEC);
    event->ring_bytes = (uint32_t)(page_bytes + plan->ring_bytes);
    event->ring = map_private(event->ring_bytes);
    if (plan->flags & EVENT_AUX) {
        event->aux_bytes = plan->aux_bytes;
        event->aux = map_private(plan->aux_bytes);
    }
    if (event->fd < 0 || !event->ring || (plan->flags & EVENT_AUX && !event->aux)) {
        event_close(event);
        return false;
    }
    struct perf_event_mmap_page *page = event->ring;
    page->data_offset = page_bytes;
    page->data_size = plan->ring_bytes;
    return true;
}

static void copy_in(unsigned char *area, uint64_t n_area, uint64_t position, const unsigned char *bytes, size_t n)
{
    uint64_t offset = position % n_area;
    size_t first = n < n_area - offset ? n : (size_t)(n_area - offset);
    memcpy(area + offset, bytes, first);
    memcpy(area, bytes + first, n - first);
}

/* Sends the signal as the kernel would for the descriptor; it is handled before this returns. */
static void raise_signal(int fd)
{
    siginfo_t info = {.si_signo = EVENTS_SIGNAL, .si_code = POLL_IN};
    info.si_fd = fd;
    events_note_descriptor_sig(fd);
    own_call_sig(SYS_rt_tgsigqueueinfo, (pid_t)own_pid_sig(), own_tid_sig(), EVENTS_SIGNAL, &info);
}

/* Writes to the ring; calls the reader if there is no room. False when there is still none. */
static bool write_ring(struct thread_event *event, bool is_drained, const unsigned char *bytes, size_t n_bytes)
{
    struct perf_event_mmap_page *page = event->ring;
    unsigned char *data = (unsigned char *)page + page->data_offset;
    if (n_bytes > page->data_size)
        return false;
    if (!is_drained) {
        uint64_t head = page->data_head - n_bytes;
        copy_in(data, page->data_size, head, bytes, n_bytes);
        __atomic_store_n(&page->data_head, head, __ATOMIC_RELEASE);
        return true;
    }
    if (page->data_head - page->data_tail + n_bytes > page->data_size)
        raise_signal(event->fd);
    if (page->data_head - page->data_tail + n_bytes > page->data_size)
        return false;
    copy_in(data, page->data_size, page->data_head, bytes, n_bytes);
    __atomic_store_n(&page->data_head, page->data_head + n_bytes, __ATOMIC_RELEASE);
    return true;
}

static bool write_aux(struct thread_event *event, const unsigned char *bytes, size_t n_bytes)
{
    struct perf_event_mmap_page *page = event->ring;
    if (!event->aux || n_bytes > event->aux_bytes)
        return false;
    if (page->aux_head - page->aux_tail + n_bytes > event->aux_bytes)
        raise_signal(event->fd);
    if (page->aux_head - page->aux_tail + n_bytes > event->aux_bytes)
        return false;
    copy_in(event->aux, event->aux_bytes, page->aux_head, bytes, n_bytes);
    __atomic_store_n(&page->aux_head, page->aux_head + n_bytes, __ATOMIC_RELEASE);
    return true;
}

/* Feeds one piece: kind and length as little-endian words of 4 bytes, then the bytes, padded to a multiple of 8. */
static bool feed_piece(struct thread_event *event, bool is_drained, struct replay *replay)
{
    uint32_t words[2];
    if (replay->end - replay->at < (ptrdiff_t)sizeof words)
        return false;
    memcpy(words, replay->at, sizeof words);
    size_t n_bytes = le32toh(words[1]), n_padded = (n_bytes + 7) & ~(size_t)7;
    const unsigned char *bytes = replay->at + sizeof words;
    if (n_padded > (size_t)(replay->end - bytes))
        return false;
    replay->at = bytes + n_padded;
    switch (le32toh(words[0])) {
    case PIECE_AUX:
        return write_aux(event, bytes, n_bytes);
    case PIECE_WRITE:
        return write_ring(event, is_drained, bytes, n_bytes);
    case PIECE_SIGNAL:
        if (!write_ring(event, is_drained, bytes, n_bytes))
            return false;
        raise_signal(event->fd);
        return true;
    default:
        return false;
    }
}

/* Where the pieces begin: after the empty line that ends the text, at a multiple of 8 bytes. */
static const unsigned char *pieces_begin(const unsigned char *file, size_t n_bytes)
{
    const unsigned char *found = memmem(file, n_bytes, "\n\n", 2);
    size_t offset = found ? ((size_t)(found - file) + 2 + 7) & ~(size_t)7 : n_bytes;
    return file + (offset < n_bytes ? offset : n_bytes);
}

/* Makes a ring of private memory for a replay and feeds the file's pieces into it as the kernel would.
 * ctx: ordinary, calling thread */
static void replay_run(struct thread_state *self, unsigned index)
{
    struct thread_event *event = &self->events[index];
    struct perf_event_mmap_page *page = event->ring;
    struct stat status;
    if (self != thread_self_sig() || page->data_head || page->aux_head ||
        own_call_sig(SYS_fstat, event->fd, &status) != 0 || status.st_size <= 0)
        return;
    size_t n_bytes = (size_t)status.st_size;
    const unsigned char *file =
        (const unsigned char *)own_mmap_sig(NULL, n_bytes, PROT_READ, MAP_PRIVATE, event->fd, 0);
    if ((uintptr_t)file >= (uintptr_t)-4095)
        return;
    struct replay replay = {.at = pieces_begin(file, n_bytes), .end = file + n_bytes};
    bool is_drained = arena_header_sig()->events[index].flags & EVENT_DRAINED;
    while (replay.at < replay.end && feed_piece(event, is_drained, &replay))
        continue;
    if (replay.at < replay.end)
        arena_log_sig("the replay ends early: a piece of its file does not fit the ring, or is damaged");
    own_call_sig(SYS_munmap, (void *)(uintptr_t)file, n_bytes);
}

/* --- all events of a thread --- */

static struct {
    _Atomic uint32_t n; /* number of timers */
} timers;

/* The kernel's struct sigaction; the same on all architectures that have our own walker. */
struct kernel_action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

/* While a sample is taken nothing else may run: no handler of the program and no cancellation (which libc's own
 * sigaction does not let us block). Faults cannot wait, and the stand-in's bit must stay as it was. */
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
    if (!process_is_attached_sig())
        mask_translate_sig();
}

void events_remove_handler(void)
{
    struct sigaction program;
    if (chain_get_sig(EVENTS_SIGNAL, &program) && events_check_handler())
        (void)wrap_real_sigaction(EVENTS_SIGNAL, &program, NULL);
}

void events_set_action(const struct sigaction *action, struct sigaction *old)
{
    chain_set_sig(EVENTS_SIGNAL, action, old);
    if (action)
        (void)install(action, NULL);
}

bool events_check_handler(void)
{
    struct kernel_action action = {.handler = events_handler_sig};
    if (!sandbox_is_entered_sig())
        own_call_sig(SYS_rt_sigaction, EVENTS_SIGNAL, NULL, &action, sizeof action.mask);
    if (action.handler == events_handler_sig)
        return true;
    arena_log_sig("the program has replaced the profiler's action for its signal (SIGURG) by a system call of its own: "
                  "samples since then are lost");
    return false;
}

/* Each timer uses up one of the signals that may be pending: takes one; false where most of them must be left for the
 * program. */
static bool reserve_timer(void)
{
    struct rlimit limit;
    uint32_t n = atomic_fetch_add(&timers.n, 1);
    if (own_call_sig(SYS_prlimit64, 0, RLIMIT_SIGPENDING, NULL, &limit) == 0 && n < limit.rlim_cur / TIMER_PART)
        return true;
    atomic_fetch_sub(&timers.n, 1);
    return false;
}

/* index: of the event, or EVENTS_TIMER_OF_WATCH. */
static bool open_timer(struct thread_event *event, unsigned index, clockid_t clock, struct governor governor)
{
    if (process_is_attached_sig() || !reserve_timer()) /* a timer's signal can end a system call */
        return false;
    struct sigevent notify = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = EVENTS_SIGNAL};
    notify.sigev_value.sival_ptr = events_timer_value_sig(index);
    notify._sigev_un._tid = (pid_t)own_tid_sig();
    if (own_call_sig(SYS_timer_create, clock, &notify, &event->timer_id) != 0) {
        atomic_fetch_sub(&timers.n, 1);
        return false;
    }
    struct timespec tick = {0};
    if (clock == CLOCK_THREAD_CPUTIME_ID)
        own_call_sig(SYS_clock_getres, CLOCK_MONOTONIC_COARSE, &tick);
    event->tick_ns = clock_ns_of(&tick);
    event->governor = governor;
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

/* Writes one line about an event to the log. */
static void say(unsigned index, const char *what)
{
    char text[192] = "event ";
    size_t len = strlen(text), n_name = strnlen(arena_header_sig()->events[index].name, 63);
    memcpy(text + len, arena_header_sig()->events[index].name, n_name);
    strncpy(text + len + n_name, what, sizeof text - len - n_name - 1);
    arena_log_sig(text);
}

/* Whether the event costs a thread most at its start, where its samples stand for few events, and each sample brings
 * its weight. */
static bool may_be_thinned(const struct arena_event *plan)
{
    return plan->attr.type == PERF_TYPE_SOFTWARE && plan->attr.freq && plan->flags & EVENT_WEIGHTED &&
           plan->flags & EVENT_RING && !plan->leader &&
           !(plan->flags & (EVENT_DRAINED | EVENT_SILENT | EVENT_REPLAY)) && !event_clock_period_sig(plan);
}

/* Whether the thread is chosen, which is the next in the row: of each eight one is, by chance: so that in all as many
 * are as should be, and threads that do the same in turn all have theirs. */
static bool choose_next(const struct thread_state *self, unsigned index)
{
    uint64_t n_before = atomic_fetch_add_explicit(&many.n_met[index], 1, memory_order_relaxed), seed = 0;
    uint64_t mine = events_random_sig(self) | 1;
    if (atomic_compare_exchange_strong(&many.seed, &seed, mine))
        seed = mine;
    return events_mixed_sig(seed + n_before / THINNED_TO * UINT64_C(0x9e3779b97f4a7c15)) % THINNED_TO ==
           n_before % THINNED_TO;
}

/* False when the event is left to others of very many threads. */
static bool is_chosen(const struct thread_state *self, unsigned index, uint32_t *n_threads)
{
    if (!is_one_of_many(self) || !may_be_thinned(&arena_header_sig()->events[index]))
        return true;
    *n_threads = THINNED_TO;
    return choose_next(self, index);
}

static bool open_one(struct thread_state *self, unsigned index)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    struct thread_event *event = &self->events[index];
    const struct governor_plan governed = events_governed_sig(plan);
    const struct governor governor = governor_begin_sig(&governed, events_slow_hint_sig(index));
    if (plan->flags & EVENT_KERNEL)
        loadmap_add_kernel();
    if (plan->flags & (EVENT_BATCH | EVENT_AUX) && !self->record->id)
        say(index, " is read many samples at a time: they have addresses and instructions, but no call paths");
    if (plan->flags & EVENT_REPLAY)
        return self->record->id || replay_open(event, plan);
    if (!is_chosen(self, index, &event->n_threads))
        return true;
    if (plan->flags & EVENT_TIMER)
        return open_timer(event, index, plan->flags & EVENT_WALLCLOCK ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID,
                          governor);
    if (event_open(self, index))
        return true;
    /* Perhaps there is no descriptor left within the program's limit. */
    bool has_timer = event_clock_period_sig(plan) && open_timer(event, index, CLOCK_THREAD_CPUTIME_ID, governor);
    if (has_timer)
        atomic_fetch_add(&arena_header_sig()->n_on_timer[index], 1);
    return has_timer;
}

/* The end of a delay is noticed while the program computes, so that its system calls are not interrupted. */
static void open_watch(struct thread_state *self)
{
    const struct perf_event_attr attr = clock_attr(CONTROL_WATCH_NS);
    control_begin_sig();
    if (control_is_waiting_sig() &&
        (event_open_alone(self, &self->watch, &attr) ||
         open_timer(&self->watch, EVENTS_TIMER_OF_WATCH, CLOCK_THREAD_CPUTIME_ID, (struct governor){0})))
        events_enable_watch_sig(self, true);
}

/* The kernel counts a page-in when it is done: no call is interrupted. Without the event page-ins are what the thread
 * has waited for by nothing that is known. */
static void open_page_ins(struct thread_state *self)
{
    struct perf_event_attr attr = clock_attr(1);
    attr.config = PERF_COUNT_SW_PAGE_FAULTS_MAJ;
    if (self->waits.is_wanted)
        (void)event_open_alone(self, &self->page_ins, &attr);
}

static void count_watchpoint(int error)
{
    struct arena_header *header = arena_header_sig();
    if (!error)
        return;
    atomic_fetch_add(error == ENOSPC ? &header->n_watch_full : &header->n_watch_refused, 1);
    if (error != ENOSPC)
        atomic_store(&header->watch_errno, error);
}

/* 0, or the reason why there is none. */
static int open_watchpoint(const struct thread_state *self, struct thread_event *event)
{
    static const uint64_t nothing;
    const struct meeting_watch before = {.address = (uintptr_t)&nothing, .bytes = sizeof nothing, .is_of_stores = true};
    const struct perf_event_attr attr = watchpoint_attr_sig(&before);
    errno = 0;
    event->fd = event_open_attr(self, &attr, -1);
    event->id = descriptors_event_id_sig(event->fd);
    if (event->fd >= 0 && set_signal(self, event->fd))
        return 0;
    return errno ? errno : EMFILE;
}

static void open_watchpoints(struct thread_state *self)
{
    int error = 0;
    if (!arena_header_sig()->watches_per_s)
        return;
    self->meetings = (struct thread_meetings){.turn = self->record->id};
    if (arena_header_sig()->lacks & ARENA_LACKS_BREAKPOINTS)
        return;
    for (unsigned i = 0; i < MEETING_WATCHES && !error && watchpoints_are_wanted_sig(); i++)
        error = open_watchpoint(self, &self->watchpoints[i].event);
    count_watchpoint(error);
    if (error)
        watchpoints_close_sig(self);
}

void events_open(struct thread_state *self)
{
    const struct arena_header *header = arena_header_sig();
    for (unsigned i = 0; i < header->n_events; i++)
        self->events[i] = (struct thread_event){.fd = -1, .drain_fd = -1};
    self->watch = self->page_ins = (struct thread_event){.fd = -1, .drain_fd = -1};
    self->n_cold = COLD_HANDLERS;
    for (unsigned i = 0; i < MEETING_WATCHES; i++)
        self->watchpoints[i] = (struct thread_watchpoint){.event = {.fd = -1, .drain_fd = -1}};
    if (sandbox_is_entered_sig())
        return;
    for (unsigned i = 0; i < header->n_events; i++) {
        if (!(header->events[i].flags & EVENT_CALLS) && !open_one(self, i))
            atomic_fetch_add(&arena_header_sig()->n_unopened[i], 1);
    }
    open_watch(self);
    open_page_ins(self);
    open_watchpoints(self);
    block_changes_register_hook(self);
}

/* Overflows at the distance of the first period count as those that there would have been at the plan's. */
static void correct_overflows(struct thread_event *event, const struct arena_event *plan)
{
    const struct governor_plan governed = events_governed_sig(plan);
    uint64_t words[3] = {0};
    if (event->count.cell.period)
        event->n_written = event_count_due_sig(event) + event->n_own;
    int fd = event->first && event->n_written ? event_fd_sig(event) : -1;
    if (fd >= 0 && own_call_sig(SYS_read, fd, words, sizeof words) > 0 && words[0] >= event->due)
        event->n_written = 1 + (words[0] - event->due) / governor_period_sig(&event->governor, &governed);
}

/* Counts the overflows that the kernel saw: the samples in an overwritten ring, also those whose signal never came. */
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
    correct_overflows(event, &arena_header_sig()->events[index]);
    uint64_t n_met = atomic_load(&self->record->taken[index]) - past->taken[index] + event->n_own;
    atomic_store(&self->record->overflows[index], past->overflows[index] + event->n_written);
    if (event->n_written > n_met)
        atomic_store(&self->record->fates[index][FATE_NOT_DELIVERED],
                     past->not_delivered[index] + event->n_written - n_met);
}

/* Unmaps the rings of all events. The kernel has mostly put them side by side: then it need not tell the other
 * processors of each of them. */
static void unmap_rings(struct thread_state *self)
{
    char *start = NULL;
    size_t n_bytes = 0;
    for (unsigned i = 0; i < arena_header_sig()->n_events; i++) {
        struct thread_event *event = &self->events[i];
        char *ring = event->aux ? NULL : event->ring;
        if (!ring)
            continue;
        if (n_bytes && ring != start + n_bytes && ring + event->ring_bytes != start) {
            own_call_sig(SYS_munmap, start, n_bytes);
            n_bytes = 0;
        }
        start = !n_bytes || ring < start ? ring : start;
        n_bytes += event->ring_bytes;
        event->ring = NULL;
    }
    if (n_bytes)
        own_call_sig(SYS_munmap, start, n_bytes);
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
    block_changes_unregister_hook(self);
    if (may_call)
        unmap_rings(self);
    for (unsigned i = 0; may_call && i < header->n_events; i++)
        close_one(&self->events[i]);
    if (!may_call)
        return;
    close_one(&self->watch);
    close_one(&self->page_ins);
    watchpoints_close_sig(self);
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
    atomic_store(&timers.n, 0); /* a child does not inherit timers */
    block_changes_forget_hook();
    for (unsigned i = 0; i < arena_header_sig()->n_events; i++)
        forget_one(&self->events[i], keep);
    forget_one(&self->watch, keep);
    forget_one(&self->page_ins, keep);
    watchpoints_close_sig(self);
    meeting_fork_child_sig();
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

/* --- signals that start and stop the sampling --- */

/* Installs our handler with those parts of the program's action that matter to the kernel. */
static void install_switch(int number, const struct sigaction *program, struct sigaction *old)
{
    struct sigaction action = {.sa_flags = SA_RESTART | SA_ONSTACK};
    if (program && program->sa_handler != SIG_DFL && program->sa_handler != SIG_IGN)
        action = *program;
    action.sa_sigaction = control_handler_sig;
    action.sa_flags = (action.sa_flags | SA_SIGINFO) & ~SA_RESETHAND;
    sigdelset(&action.sa_mask, EVENTS_SIGNAL);
    (void)wrap_real_sigaction(number, &action, old);
}

static void take_over(int number)
{
    struct sigaction old;
    if (number <= 0 || chain_holds_sig(number) || wrap_real_sigaction(number, NULL, &old) != 0)
        return;
    if (chain_add_sig(number, &old))
        install_switch(number, &old, NULL);
}

void control_set_action(int number, const struct sigaction *action, struct sigaction *old)
{
    chain_set_sig(number, action, old);
    if (action)
        install_switch(number, action, NULL);
}

static void limit_life(void)
{
    if (arena_header_sig()->lifetime_s)
        alarm(arena_header_sig()->lifetime_s);
}

void control_init(void)
{
    take_over((int)arena_header_sig()->start_signal);
    take_over((int)arena_header_sig()->stop_signal);
    limit_life();
}

void control_fork_child(void)
{
    limit_life();
}
