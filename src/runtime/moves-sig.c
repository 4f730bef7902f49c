/* SPDX-License-Identifier: BSD-3-Clause */
/* What a thread was told of blocks that came and went: the reader's side of moves.h. Wait-free; runs where rings are
 * drained, also in the signal handler. */
#include "runtime/moves.h"

#include <stddef.h>

#include "base/sigsafe.h"

uint32_t moves_count_sig(const struct thread_state *self)
{
    return atomic_load_explicit(&self->moves.end, memory_order_acquire);
}

uint64_t moves_find_sig(const struct thread_state *self, unsigned event, uint64_t position, uintptr_t address)
{
    const struct thread_moves *moves = &self->moves;
    uint32_t end = atomic_load_explicit(&moves->end, memory_order_acquire);
    for (uint32_t i = atomic_load_explicit(&moves->begin, memory_order_relaxed); i != end; i++) {
        const struct thread_move *move = &moves->items[i % THREAD_MOVES_MAX];
        if (move->event != event || move->is_done || address < move->start || address >= move->end)
            continue;
        if (position < move->position)
            return move->var;
        if (move->is_vague)
            return var_key(VAR_UNKNOWN, 0, UNKNOWN_FREED);
    }
    /* Something was not written down for lack of room. */
    if (position < atomic_load_explicit(&moves->lost[event], memory_order_relaxed))
        return var_key(VAR_UNKNOWN, 0, UNKNOWN_FREED);
    return 0;
}

void moves_done_sig(struct thread_state *self, unsigned event, uint64_t position, uint32_t n_known)
{
    struct thread_moves *moves = &self->moves;
    uint32_t begin = atomic_load_explicit(&moves->begin, memory_order_relaxed);
    for (uint32_t i = begin; i != n_known; i++) {
        struct thread_move *move = &moves->items[i % THREAD_MOVES_MAX];
        move->is_done |= move->event == event && position >= move->position;
    }
    while (begin != n_known && moves->items[begin % THREAD_MOVES_MAX].is_done)
        begin++;
    atomic_store_explicit(&moves->begin, begin, memory_order_release);
}
