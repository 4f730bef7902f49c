/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing one event of a thread: descriptor, group, ring, AUX area, signal. Ordinary code; raw system
 * calls, because the program may wrap or forbid the library functions. */
#include "runtime/events-internal.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/descriptors.h"
#include "runtime/own-call.h"

#define RING_ONLY_BYTES (256 * 1024)
#define BATCH_BYTES (512 * 1024)
#define DRAIN_PERIOD_NS 10000000 /* CPU time between looks into the ring of an event that cannot say that it fills */

int event_open_attr(const struct perf_event_attr *attr, int group_fd)
{
    struct perf_event_attr copy = *attr;
    if (!(copy.sample_type & PERF_SAMPLE_READ))
        copy.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    int fd = (int)own_call_sig(SYS_perf_event_open, &copy, 0, -1, group_fd, PERF_FLAG_FD_CLOEXEC);
    return descriptors_move_up_sig(fd, DESCRIPTOR_EVENT);
}

static void *map_or_null(int fd, uint64_t n_bytes, int protection, uint64_t offset)
{
    void *mapped = (void *)own_mmap_sig(NULL, n_bytes, protection, MAP_SHARED, fd, offset);
    return (uintptr_t)mapped >= (uintptr_t)-4095 ? NULL : mapped;
}

/* Lets every overflow of fd signal the calling thread, self. */
static bool set_signal(const struct thread_state *self, int fd)
{
    struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = (pid_t)self->record->tid};
    events_note_descriptor_sig(fd);
    return own_call_sig(SYS_fcntl, fd, F_SETFL, O_ASYNC) == 0 &&
           own_call_sig(SYS_fcntl, fd, F_SETSIG, EVENTS_SIGNAL) == 0 &&
           own_call_sig(SYS_fcntl, fd, F_SETOWN_EX, &owner) == 0;
}

/* Bytes of the ring's data: as the plan says, in pages of this machine. */
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

/* Where signals are wanted at all, each overflow sends one, however full the ring is. So a ring that is drained has a
 * second event beside it: of a software event one that counts the same and overflows each time that about a third of
 * the ring has been filled; of any other a clock. */
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
    event->drain_fd = event_open_attr(&attr, -1);
    event->drain_id = descriptors_event_id_sig(event->drain_fd);
    return event->drain_fd >= 0 && set_signal(self, event->drain_fd);
}

/* The processor collects precise records by itself and interrupts when its buffer is full: one signal for many. The
 * AUX area likewise. */
static bool signals_by_buffer(const struct arena_event *plan)
{
    return plan->flags & EVENT_AUX || (plan->flags & EVENT_BATCH && plan->attr.precise_ip && !plan->attr.freq &&
                                       !(plan->attr.sample_type & PERF_SAMPLE_RAW));
}

static bool start_ring(const struct thread_state *self, struct thread_event *event, const struct arena_event *plan)
{
    if (plan->flags & EVENT_SILENT)
        return true;
    map_ring(event, plan);
    if (plan->flags & EVENT_DRAINED && !event->ring)
        return false;
    if (plan->flags & EVENT_AUX && !map_aux(event, plan))
        return false;
    if (!(plan->flags & EVENT_DRAINED) || signals_by_buffer(plan))
        return set_signal(self, event->fd);
    return open_drain(self, event, plan);
}

void event_close_own(const struct thread_event *event)
{
    if (event_fd_sig(event) >= 0)
        own_call_sig(SYS_close, event->fd);
    if (event_drain_fd_sig(event) >= 0)
        own_call_sig(SYS_close, event->drain_fd);
}

void event_close(struct thread_event *event)
{
    if (event->aux)
        own_call_sig(SYS_munmap, event->aux, event->aux_bytes);
    if (event->ring)
        own_call_sig(SYS_munmap, event->ring, event->ring_bytes);
    event_close_own(event);
    *event = (struct thread_event){.fd = -1, .drain_fd = -1};
}

bool event_open(struct thread_state *self, unsigned index)
{
    const struct arena_event *plan = &arena_header_sig()->events[index];
    struct thread_event *event = &self->events[index];
    bool has_leader = plan->leader && plan->leader <= index;
    event->fd = event_open_attr(&plan->attr, has_leader ? self->events[plan->leader - 1].fd : -1);
    if (event->fd < 0)
        return false;
    event->id = descriptors_event_id_sig(event->fd);
    if (start_ring(self, event, plan))
        return true;
    event_close(event);
    return false;
}

bool event_open_clock(const struct thread_state *self, struct thread_event *event)
{
    struct perf_event_attr attr = clock_attr(CONTROL_WATCH_NS);
    event->fd = event_open_attr(&attr, -1);
    if (event->fd < 0)
        return false;
    event->id = descriptors_event_id_sig(event->fd);
    if (set_signal(self, event->fd))
        return true;
    event_close(event);
    return false;
}
