/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops of the skid self-test (skid-kernels.S, x86-64) and the handler that sorts samples into them. */
#ifndef LOCUS_SAMPLING_SKID_KERNELS_H
#define LOCUS_SAMPLING_SKID_KERNELS_H

#include <signal.h>

#include "sampling/skid.h"

/* One loop: from and to bound it, stall and next are the stalling instruction and the one after it. run makes n_turns
 * turns over memory [mask + 64 bytes]; position is carried from call to call. */
struct skid_loop {
    const char *from, *stall, *next, *to;
    uint64_t (*run)(uint64_t position, uint64_t n_turns, void *memory, uint64_t mask);
};

/* [SKID_KERNELS]; static storage, all NULL where there are none for this architecture. */
const struct skid_loop *skid_loops(void);

/* Starts counting samples of one loop into *kernel (NULL: stop).  ctx: any */
void skid_count_sig(const struct skid_loop *loop, struct skid_kernel *kernel);

/* The handler (SA_SIGINFO).  ctx: signal handler */
void skid_sample_sig(int signo, siginfo_t *info, void *context);

#endif
