/* SPDX-License-Identifier: BSD-3-Clause */
/* Telling other threads of blocks that come and go: the writers' side of moves.h. Runs inside the program's malloc,
 * under one short lock. */
#include "runtime/moves.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/events-internal.h"
#include "runtime/ring.h"

static struct {
    _Atomic int lock;
    struct thread_state *_Atomic readers; /* threads with rings that are drained */
} moving;

static void lock_moving(void)
{
    while (atomic_exchange(&moving.lock, 1))
        syscall(SYS_sched_yield);
}

static void unlock_moving(void)
{
    atomic_store(&moving.lock, 0);
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
    if (!has_drained(self))
        return;
    lock_moving();
    self->moves.next = moving.readers;
    moving.readers = self;
    unlock_moving();
}

void moves_unregister_hook(struct thread_state *self)
{
    lock_moving();
    struct thread_state *reader = moving.readers;
    if (reader == self)
        moving.readers = self->moves.next;
    for (; reader && reader != self; reader = reader->moves.next) {
        if (reader->moves.next == self)
            reader->moves.next = self->moves.next;
    }
    unlock_moving();
}

void moves_forget_hook(void)
{
    moving.readers = NULL;
    atomic_store(&moving.lock, 0);
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

/* Records that hardware keeps to itself for a while may be older than the ring says. */
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
    lock_moving();
    for (struct thread_state *reader = moving.readers; reader; reader = reader->moves.next) {
        if (reader != self)
            tell(reader, &move);
    }
    unlock_moving();
}
