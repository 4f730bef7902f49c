/* SPDX-License-Identifier: BSD-3-Clause */
/* The calling thread's state, and whose stack an address lies in. Runs in the signal handler. */
#include "runtime/thread-internal.h"

#include <stddef.h>

#include "base/sigsafe.h"

#define STACKS_MAX 16384

/* The order in which it is written and read lets no reader take the bounds of two threads for one's. */
struct stack_entry {
    _Atomic uintptr_t low; /* 0: nobody's; written last, and read first and last */
    _Atomic uintptr_t high;
    _Atomic uint32_t ref;
};

static _Thread_local struct thread_state *self __attribute__((tls_model("initial-exec")));

static struct {
    struct stack_entry entries[STACKS_MAX];
    _Atomic uint32_t n_entries; /* that were ever used, or wanted */
} stacks;

struct thread_state *thread_self_sig(void)
{
    return self;
}

void thread_set_self_sig(struct thread_state *state)
{
    self = state;
}

static uint32_t n_used_sig(void)
{
    uint32_t n_entries = atomic_load_explicit(&stacks.n_entries, memory_order_acquire);
    return n_entries < STACKS_MAX ? n_entries : STACKS_MAX;
}

void thread_stack_add_sig(struct thread_state *state)
{
    if (!state->stack_slot)
        state->stack_slot = atomic_fetch_add(&stacks.n_entries, 1) + 1;
    if (state->stack_slot > STACKS_MAX)
        return;
    struct stack_entry *entry = &stacks.entries[state->stack_slot - 1];
    atomic_store_explicit(&entry->high, state->bounds.high, memory_order_release);
    atomic_store_explicit(&entry->ref, state->ref, memory_order_release);
    atomic_store_explicit(&entry->low, state->bounds.low, memory_order_release);
}

void thread_stack_remove_sig(const struct thread_state *state)
{
    if (state->stack_slot && state->stack_slot <= STACKS_MAX)
        atomic_store_explicit(&stacks.entries[state->stack_slot - 1].low, 0, memory_order_release);
}

void thread_stack_reset_sig(void)
{
    for (uint32_t i = 0; i < n_used_sig(); i++)
        atomic_store(&stacks.entries[i].low, 0);
    atomic_store(&stacks.n_entries, 0);
}

uint32_t thread_of_stack_sig(uintptr_t address)
{
    uint32_t n_entries = n_used_sig();
    for (uint32_t i = 0; i < n_entries; i++) {
        const struct stack_entry *entry = &stacks.entries[i];
        uintptr_t low = atomic_load_explicit(&entry->low, memory_order_acquire);
        if (!low || address < low || address >= atomic_load_explicit(&entry->high, memory_order_acquire))
            continue;
        uint32_t ref = atomic_load_explicit(&entry->ref, memory_order_acquire);
        if (atomic_load_explicit(&entry->low, memory_order_acquire) == low)
            return ref;
    }
    return 0;
}
