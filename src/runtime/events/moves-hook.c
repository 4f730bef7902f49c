/* SPDX-License-Identifier: BSD-3-Clause */
/* Announces to other threads that blocks come and go, so that records still waiting in their rings are attributed to
 * the block that was there when they were written: the writers' side of events.h. Runs inside the program's malloc,
 * under one short lock. */
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
} moving;

/* False when the thread itself already holds the lock (a handler of the program has interrupted it and ends the thread
 * or the process), or when the holder does not release it. */
static bool lock_moving(void)
{
    struct timespec pause = {.tv_nsec = 1000000};
    uintptr_t self = arch_thread_pointer_sig(), holder = 0;
    for (int tries = 0; !atomic_compare_exchange_strong(&moving.owner, &holder, self); tries++, holder = 0) {
        if (holder == self || tries == LOCK_TRIES)
            return false;
        if (tries < LOCK_TRIES / 5)
            own_call_sig(SYS_sched_yield);
        else
            own_call_sig(SYS_nanosleep, &pause, NULL);
    }
    return true;
}

static void unlock_moving(void)
{
    atomic_store(&moving.owner, 0);
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

void moves_register_hook(struct thread_state *self)
{
    if (!has_drained(self) || !lock_moving())
        return;
    self->moves.next = moving.readers;
    moving.readers = self;
    unlock_moving();
}

void moves_unregister_hook(struct thread_state *self)
{
    if (!lock_moving())
        return;
    struct thread_state *reader = moving.readers;
    if (reader == self)
        moving.readers = self->moves.next;
    for (; reader && reader != self; reader = reader->moves.next) {
        if (reader->moves.next == self)
            reader->moves.next = self->moves.next;
    }
    unlock_moving();
}

void moves_abandon_hook(void)
{
    if (atomic_load(&moving.owner) == arch_thread_pointer_sig())
        unlock_moving();
}

void moves_forget_hook(void)
{
    moving.readers = NULL;
    unlock_moving();
}

static void add_move(struct thread_state *reader, const struct thread_move *move)
{
    struct thread_moves *moves = &reader->moves;
    uint32_t end = atomic_load_explicit(&moves->end, memory_order_relaxed);
    if (end - atomic_load_explicit(&moves->begin, memory_order_acquire) == THREAD_MOVES_MAX) {
        atomic_store_explicit(&moves->lost[move->event], move->position, memory_order_relaxed);
        return;
    }
    moves->items[end % THREAD_MOVES_MAX] = *move;
    atomic_store_explicit(&moves->end, end + 1, memory_order_release);
}

/* Whether the hardware may hold records back, so that they are older than their place in the ring says. */
static bool is_vague(const struct arena_event *plan)
{
    return plan->flags & EVENT_AUX || (plan->flags & EVENT_BATCH && plan->attr.precise_ip);
}

static void tell(struct thread_state *reader, struct thread_move *move)
{
    const struct arena_header *header = arena_header_sig();
    for (unsigned i = 0; i < header->n_events; i++) {
        const struct perf_event_mmap_page *ring = reader->events[i].ring;
        if (!(header->events[i].flags & EVENT_DRAINED) || !ring)
            continue;
        move->event = i;
        move->position = ring_head_sig(ring);
        move->is_vague = is_vague(&header->events[i]);
        if (move->is_vague || move->position != __atomic_load_n(&ring->data_tail, __ATOMIC_RELAXED))
            add_move(reader, move);
    }
}

bool moves_are_wanted_hook(void)
{
    return atomic_load_explicit(&moving.readers, memory_order_relaxed);
}

void moves_announce_hook(const struct thread_state *self, uintptr_t start, uintptr_t end, uint64_t var)
{
    struct thread_move move = {.start = start, .end = end, .var = var};
    if (!moves_are_wanted_hook())
        return;
    if (!lock_moving())
        return;
    for (struct thread_state *reader = moving.readers; reader; reader = reader->moves.next) {
        if (reader != self)
            tell(reader, &move);
    }
    unlock_moving();
}
