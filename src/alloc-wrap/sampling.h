/* SPDX-License-Identifier: BSD-3-Clause */
/* Poisson sampling of small blocks by bytes: every allocated byte is a trial of the same tiny probability, a block is
 * taken when one of its bytes hits, and stands for 1 / P(hit) blocks, which makes sums of weights unbiased. */
#ifndef LOCUS_ALLOC_WRAP_SAMPLING_H
#define LOCUS_ALLOC_WRAP_SAMPLING_H

#include <stddef.h>
#include <stdint.h>

/* State of one thread; all zero is valid and seeds itself from the process's random bytes. */
struct sampling {
    uint64_t random;    /* generator state, 0 = not seeded */
    double until_bytes; /* distance to the next hit */
};

/* Seeds with a chosen number (not 0), for repeatable runs; mean_bytes as below.  ctx: hook */
void sampling_seed_hook(struct sampling *sampling, uint64_t seed, double mean_bytes);

/* Passes a block of n_bytes. mean_bytes > 0: mean distance of hits. Returns 0 when the block is not taken, else the
 * number of blocks it stands for, 1 / (1 - exp(-n_bytes / mean_bytes)) >= 1. Empty blocks are never taken.
 * ctx: hook   src: inclusion probability of an interval under a homogeneous Poisson process (Horvitz-Thompson) */
double sampling_weight_hook(struct sampling *sampling, double mean_bytes, size_t n_bytes);

/* One of the two whole numbers around weight (>= 0), by chance, such that its expectation is weight: what a block was
 * counted for at its allocation can be taken off again, exactly, when it is freed.  ctx: hook */
double sampling_whole_hook(struct sampling *sampling, double weight);

#endif
