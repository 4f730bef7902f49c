/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program that runs already has and the runtime has not seen come: threads, of which each meets the runtime at
 * its first sample or allocation, and memory, which has the name of its mapping. Begun by late.c. */
#include "runtime/process/late.h"

#include <stddef.h>

#include "runtime/own/arch.h"
#include "runtime/own/own-call.h"
#include "runtime/own/process.h"
#include "runtime/process/threads.h"
#include "base/sigsafe.h"

static struct {
    const struct late_mapping *mappings;
    _Atomic uint32_t n; /* set last */
} late;

void late_set_mappings_sig(const struct late_mapping *mappings, uint32_t n)
{
    late.mappings = mappings;
    atomic_store_explicit(&late.n, n, memory_order_release);
}

/* NULL: there was none at that address when the runtime came. */
static const struct late_mapping *mapping_at_sig(uintptr_t address)
{
    uint32_t low = 0, high = atomic_load_explicit(&late.n, memory_order_acquire);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (address >= late.mappings[middle].high)
            low = middle + 1;
        else
            high = middle;
    }
    const struct late_mapping *found = &late.mappings[low];
    return low < atomic_load_explicit(&late.n, memory_order_acquire) && address >= found->low ? found : NULL;
}

bool late_find_sig(uintptr_t address, struct resolved *found)
{
    const struct late_mapping *mapping = mapping_at_sig(address);
    if (!mapping || !mapping->name)
        return false;
    *found = (struct resolved){.var = var_key(VAR_FILE, 0, mapping->name), .offset = address - mapping->low};
    return true;
}

/* A thread's control block lies at the upper end of its stack; of the first thread it lies elsewhere. */
void late_meet_sig(struct thread_state *state)
{
    state->thread_pointer = arch_thread_pointer_sig();
    const struct late_mapping *mapping = mapping_at_sig(state->thread_pointer);
    if (state->bounds.high || !mapping)
        return;
    state->bounds.low = mapping->low;
    state->bounds.high = arch_stack_high_sig(state->thread_pointer);
}

/* Threads that were made by a system call of the program's own may use the storage of another thread. */
struct thread_state *thread_adopt_sig(void)
{
    struct thread_state *self = thread_self_sig();
    if (!process_is_attached_sig())
        return self;
    uint32_t tid = own_tid_sig();
    if (self)
        return self->record && self->record->tid == tid ? self : NULL;
    for (struct thread_state *state = thread_live_sig(); state; state = thread_live_next_sig(state)) {
        if (!atomic_load(&state->is_absent) || state->record->tid != tid || state->ending)
            continue;
        late_meet_sig(state);
        thread_stack_add_sig(state);
        state->record->stack_low = state->bounds.low;
        state->record->stack_high = state->bounds.high;
        thread_set_self_sig(state);
        atomic_store(&state->is_absent, false);
        return state;
    }
    return NULL;
}
