/* SPDX-License-Identifier: BSD-3-Clause */
/* The calling thread's state, and whose stack an address lies in. Runs in the signal handler. */
#include "runtime/thread-internal.h"

#include <stddef.h>

#include "base/sigsafe.h"

#define STACKS_MAX 16384

struct stack_entry {
    _Atomic uintptr_t low;
    uintptr_t high;
    uint32_t ref;
};

static _Thread_local struct thread_state *self __attribute__((tls_model("initial-exec")));

static struct {
    struct stack_entry entries[STACKS_MAX]; /* low 0: free */
    _Atomic uint32_t n_entries;             /* high-water mark */
} stacks;

struct thread_state *thread_self_sig(void)
{
    return self;
}

void thread_set_self_sig(struct thread_state *state)
{
    self = state;
}

void thread_stack_add_sig(const struct thread_state *state)
{
    for (uint32_t i = 0; i < STACKS_MAX; i++) {
        uintptr_t free_low = 0;
        struct stack_entry *entry = &stacks.entries[i];
        if (!atomic_compare_exchange_strong(&entry->low, &free_low, UINTPTR_MAX))
            continue;
        entry->high = state->bounds.high;
        entry->ref = state->ref;
        atomic_store_explicit(&entry->low, state->bounds.low, memory_order_release);
        uint32_t seen = atomic_load(&stacks.n_entries);
        while (seen <= i && !atomic_compare_exchange_weak(&stacks.n_entries, &seen, i + 1)) {
        }
        return;
    }
}

void thread_stack_remove_sig(const struct thread_state *state)
{
    uint32_t n_entries = atomic_load(&stacks.n_entries);
    for (uint32_t i = 0; i < n_entries; i++) {
        if (stacks.entries[i].ref == state->ref && atomic_load(&stacks.entries[i].low) == state->bounds.low)
            atomic_store(&stacks.entries[i].low, 0);
    }
}

void thread_stack_reset_sig(void)
{
    for (uint32_t i = 0; i < STACKS_MAX && i < atomic_load(&stacks.n_entries); i++)
        atomic_store(&stacks.entries[i].low, 0);
    atomic_store(&stacks.n_entries, 0);
}

uint32_t thread_of_stack_sig(uintptr_t address)
{
    uint32_t n_entries = atomic_load_explicit(&stacks.n_entries, memory_order_acquire);
    for (uint32_t i = 0; i < n_entries; i++) {
        const struct stack_entry *entry = &stacks.entries[i];
        uintptr_t low = atomic_load_explicit(&entry->low, memory_order_acquire);
        if (low && address >= low && address < entry->high)
            return entry->ref;
    }
    return 0;
}
