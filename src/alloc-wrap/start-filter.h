/* SPDX-License-Identifier: BSD-3-Clause */
/* Filter of block starts: counters by address, kept by the sink and asked by every free. It is a type of its own so
 * that the question can be inlined there: a call through a pointer would cost more than the answer. */
#ifndef LOCUS_ALLOC_WRAP_START_FILTER_H
#define LOCUS_ALLOC_WRAP_START_FILTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define START_FILTER_BITS 21      /* counters, log2 */
#define START_FILTER_LOCAL_BITS 9 /* so many neighbouring counters stay neighbours; above, the address is folded */

/* Readers load shift before counts, writers store it after: a shift of 63 needs the first two counters only. */
struct start_filter {
    _Atomic uint8_t *_Atomic counts; /* [1 << START_FILTER_BITS], 0: no recorded block starts there */
    _Atomic unsigned shift;          /* addresses per counter, log2 */
};

/* The counter of address start.  ctx: any */
static inline _Atomic uint8_t *start_filter_at(const struct start_filter *filter, uintptr_t start)
{
    const uintptr_t local = (1u << START_FILTER_LOCAL_BITS) - 1, all = (1u << START_FILTER_BITS) - 1;
    const unsigned fold = START_FILTER_BITS - START_FILTER_LOCAL_BITS;
    uintptr_t bin = start >> atomic_load_explicit(&filter->shift, memory_order_acquire);
    uintptr_t index = (bin ^ (bin >> fold & ~local)) & all;
    return &atomic_load_explicit(&filter->counts, memory_order_relaxed)[index];
}

/* True when a recorded block may start at start; false is certain.  ctx: any */
static inline bool start_filter_has(const struct start_filter *filter, uintptr_t start)
{
    return atomic_load_explicit(start_filter_at(filter, start), memory_order_relaxed) != 0;
}

#endif
