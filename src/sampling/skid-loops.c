/* SPDX-License-Identifier: BSD-3-Clause */
/* Table of the self-test's loops. */
#include "sampling/skid.h"

#if defined(__x86_64__)

#define LOOP(name)                                                                                                     \
    uint64_t skid_##name(uint64_t position, uint64_t n_turns, void *memory, uint64_t mask);                            \
    extern const char skid_##name##_from[], skid_##name##_stall[], skid_##name##_next[], skid_##name##_to[]
#define ROW(name)                                                                                                      \
    {                                                                                                                  \
        skid_##name##_from, skid_##name##_stall, skid_##name##_next, skid_##name##_to, skid_##name                     \
    }

LOOP(chase);
LOOP(mixed);
LOOP(store);
LOOP(random);

const struct skid_loop *skid_loops(void)
{
    static const struct skid_loop loops[SKID_KERNELS] = {ROW(chase), ROW(mixed), ROW(store), ROW(random)};
    return loops;
}

#else

const struct skid_loop *skid_loops(void)
{
    static const struct skid_loop loops[SKID_KERNELS];
    return loops;
}

#endif
