/* SPDX-License-Identifier: BSD-3-Clause */
/* From a data address to the variable that holds it, in the order: impossible addresses, thread-local storage, recorded
 * blocks and mappings, statics, stacks, the rest under a reason. */
#ifndef LOCUS_RUNTIME_RESOLVE_H
#define LOCUS_RUNTIME_RESOLVE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/thread.h"

enum resolve_result {
    RESOLVE_NAMED = 0, /* in a known variable */
    RESOLVE_UNKNOWN,   /* in none: the key has kind VAR_UNKNOWN and the reason */
    RESOLVE_LATER,     /* its module's table has not arrived yet, or its block is being resized */
    RESOLVE_OWN        /* the profiler's own arena */
};

#define RESOLVE_NO_OFFSET UINT64_MAX

struct resolved {
    uint64_t var;    /* key */
    uint64_t offset; /* bytes from the start of the block or symbol, in the own stack down to the address from the
                      * frame's CFA; RESOLVE_NO_OFFSET: none or not known */
};

/* Fills *found for address. frames: [n_frames] of the sample, innermost first, for own-stack addresses.
 * ctx: signal handler of self's thread, or its ordinary code with tree_busy set */
enum resolve_result resolve_address_sig(const struct thread_state *self, uintptr_t address,
                                        const struct thread_frame *frames, unsigned n_frames, struct resolved *found);

#endif
