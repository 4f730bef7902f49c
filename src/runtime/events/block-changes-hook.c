/* SPDX-License-Identifier: BSD-3-Clause */
/* Block changes: announces to other threads that blocks come and go, so that records still waiting in their rings are
 * attributed to the block that was there when they were written: the writers' side of events.h. Runs inside the
 * program's malloc, under one short lock. */
#include <time.h>
#include <unistd.h>

#include "runtime/events/events.h"
#include "runtime/own/arch.h"
#include "runtime/own/own-call.h"
#include "runtime/record/ring.h"

#define LOCK_TRIES 5000

static struct {
    _Atomic uintptr_t owner;              /* of the lock: the thread pointer of its holder, 0 none */
    struct thread_state *_Atomic readers; /* threads with rings that are drained */
} announcements;

/* False when the thread itself already holds the lock (a handler of the program has interrupted it and ends the thread
 * or the process), or when the holder does not release it. */
static bool lock_changes(void)
{
    struct timespec pause = {.tv_nsec = 1000000};
    uintptr_t self = arch_thread_pointer_sig(), holder = 0;
    for (int tries = 0; !atomic_compare_exchange_strong(&announcements.owner, &holder, self); tries++, holder = 0) {
        if (holder == self || tries == LOCK_TRIES)
            return false;
        if (tries < LOCK_TRIES / 5)
            own_call_sig(SYS_sched_yield);
        else
            own_call_sig(SYS_nanosleep, &pause, NULL);
    }
    return true;
}

static void unlock_changes(void)
{
    atomic_store(&announcements.owner, 0);
}

static bool has_drained(const struct thread_state *self)
{
    const struct arena_header *header = arena_header_sig();
    for (unsigned i = 0; i < header->n_events; i++) {
        if (header->events[i].flags & EVENT_DRAINED && self->events[i].ring)
            return true;
    }
    return false;
}

void block_changes_register_hook(struct thread_state *self)
{
    if (!has_drained(self) || !lock_changes())
        return;
    self->block_changes.next = announcements.readers;
    announcements.readers = self;
    unlock_changes();
}

void block_changes_unregister_hook(struct thread_state *self)
{
    if (!has_drained(self) || !lock_changes())
        return;
    struct thread_state *reader = announcements.readers;
    if (reader == self)
        announcements.readers = self->block_changes.next;
    for (; reader && reader != self; reader = reader->block_changes.next) {
        if (reader->block_changes.next == self)
            reader->block_changes.next = self->block_changes.next;
    }
    unlock_changes();
}

void block_changes_abandon_hook(void)
{
    if (atomic_load(&announcements.owner) == arch_thread_pointer_sig())
        unlock_changes();
}

void block_changes_forget_hook(void)
{
    announcements.readers = NULL;
    unlock_changes();
}

static void add_change(struct thread_state *reader, const struct thread_block_change *change)
{
    struct thread_block_changes *changes = &reader->block_changes;
    uint32_t end = atomic_load_explicit(&changes->end, memory_order_relaxed);
    if (end - atomic_load_explicit(&changes->begin, memory_order_acquire) == THREAD_BLOCK_CHANGES_MAX) {
        atomic_store_explicit(&changes->lost[change->event], change->position, memory_order_relaxed);
        return;
    }
    changes->items[end % THREAD_BLOCK_CHANGES_MAX] = *change;
    atomic_store_explicit(&changes->end, end + 1, memory_order_release);
}

/* Whether the hardware may hold records back, so that they are older than their place in the ring says. */
static bool is_vague(const struct arena_event *plan)
{
    return plan->flags & EVENT_AUX || (plan->flags & EVENT_BATCH && plan->attr.precise_ip);
}

static void announce_to(struct thread_state *reader, struct thread_block_change *change)
{
    const struct arena_header *header = arena_header_sig();
    for (unsigned i = 0; i < header->n_events; i++) {
        const struct perf_event_mmap_page *ring = reader->events[i].ring;
        if (!(header->events[i].flags & EVENT_DRAINED) || !ring)
            continue;
        change->event = i;
        change->position = ring_head_sig(ring);
        change->is_vague = is_vague(&header->events[i]);
        if (change->is_vague || change->position != __atomic_load_n(&ring->data_tail, __ATOMIC_RELAXED))
            add_change(reader, change);
    }
}

bool block_changes_are_wanted_hook(void)
{
    return atomic_load_explicit(&announcements.readers, memory_order_relaxed);
}

void block_changes_announce_hook(const struct thread_state *self, uintptr_t start, uintptr_t end, uint64_t var)
{
    struct thread_block_change change = {.start = start, .end = end, .var = var};
    if (!block_changes_are_wanted_hook())
        return;
    if (!lock_changes())
        return;
    for (struct thread_state *reader = announcements.readers; reader; reader = reader->block_changes.next) {
        if (reader != self)
            announce_to(reader, &change);
    }
    unlock_changes();
}
