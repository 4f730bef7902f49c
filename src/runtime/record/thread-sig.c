/* SPDX-License-Identifier: BSD-3-Clause */
/* The calling thread's state, and whose stack an address lies in. Runs in the signal handler. */
#include "runtime/record/thread.h"

#include <stddef.h>

#include "base/sigsafe.h"

#define STACKS_MAX 16384

/* Only its own thread writes it. A reader that finds the same even version before and after has read the bounds of one
 * thread. Equal bounds would not prove that, because a new thread may get the stack of one that has ended. */
struct stack_entry {
    _Atomic uint32_t version; /* odd while it is written */
    _Atomic uint32_t ref;
    _Atomic uintptr_t low, high; /* low 0: no thread */
};

static _Thread_local struct thread_state *self __attribute__((tls_model("initial-exec")));

static struct {
    struct stack_entry entries[STACKS_MAX];
    _Atomic uint32_t n_entries; /* entries that were ever used or wanted */
} stacks;

struct thread_state *thread_self_sig(void)
{
    return self;
}

bool thread_is_changing_trees_sig(const struct thread_state *state)
{
    return state->in_handler || state->tree_busy || state->in_hook;
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

/* Each store has release order, so none is seen before the odd version. */
static void write_entry_sig(struct stack_entry *entry, uint32_t ref, uintptr_t low, uintptr_t high)
{
    uint32_t version = atomic_load_explicit(&entry->version, memory_order_relaxed);
    atomic_store_explicit(&entry->version, version + 1, memory_order_relaxed);
    atomic_store_explicit(&entry->low, low, memory_order_release);
    atomic_store_explicit(&entry->high, high, memory_order_release);
    atomic_store_explicit(&entry->ref, ref, memory_order_release);
    atomic_store_explicit(&entry->version, version + 2, memory_order_release);
}

void thread_stack_add_sig(struct thread_state *state)
{
    if (!state->stack_slot)
        state->stack_slot = atomic_fetch_add(&stacks.n_entries, 1) + 1;
    if (state->stack_slot > STACKS_MAX)
        return;
    write_entry_sig(&stacks.entries[state->stack_slot - 1], state->ref, state->bounds.low, state->bounds.high);
}

void thread_stack_remove_sig(const struct thread_state *state)
{
    if (state->stack_slot && state->stack_slot <= STACKS_MAX)
        write_entry_sig(&stacks.entries[state->stack_slot - 1], 0, 0, 0);
}

void thread_stack_reset_sig(void)
{
    for (uint32_t i = 0; i < n_used_sig(); i++) {
        atomic_store(&stacks.entries[i].low, 0);
        atomic_store(&stacks.entries[i].version, 0); /* its thread may have been about to write */
    }
    atomic_store(&stacks.n_entries, 0);
}

uint32_t thread_of_stack_sig(uintptr_t address)
{
    uint32_t n_entries = n_used_sig();
    for (uint32_t i = 0; i < n_entries; i++) {
        const struct stack_entry *entry = &stacks.entries[i];
        uint32_t version = atomic_load_explicit(&entry->version, memory_order_acquire);
        uintptr_t low = atomic_load_explicit(&entry->low, memory_order_acquire);
        if (!low || address < low || address >= atomic_load_explicit(&entry->high, memory_order_acquire))
            continue;
        uint32_t ref = atomic_load_explicit(&entry->ref, memory_order_acquire);
        if (version % 2 == 0 && atomic_load_explicit(&entry->version, memory_order_relaxed) == version)
            return ref;
    }
    return 0;
}
