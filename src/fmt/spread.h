/* SPDX-License-Identifier: BSD-3-Clause */
/* How samples spread over the offsets of an object: a bounded list of (offset, samples). While it has room it is exact;
 * beyond that a fair choice of the offsets stands for all of them, and the sum stays right. Ordinary code. */
#ifndef LOCUS_FMT_SPREAD_H
#define LOCUS_FMT_SPREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPREAD_MAX 64 /* offsets that a list keeps */

struct spread_entry {
    uint64_t offset; /* bytes */
    uint64_t count;  /* samples */
};

/* All zero is empty. */
struct spread {
    struct spread_entry *entries; /* [n] with different offsets, in no order */
    size_t n, capacity;
};

/* Adds samples at an offset. False when out of memory. */
bool spread_add(struct spread *spread, uint64_t offset, uint64_t count);

/* Brings the list to SPREAD_MAX entries at most and sorts it by offset. The choice depends on the entries alone. */
void spread_reduce(struct spread *spread);

/* Samples of all entries. */
uint64_t spread_total(const struct spread *spread);

/* Frees the list and makes it empty. */
void spread_fini(struct spread *spread);

#endif
