/* SPDX-License-Identifier: BSD-3-Clause */
/* Where in the variables of the merged tree the samples of all threads lie, by the instruction that took them. The
 * table grows with the tree and its instructions, not with the number of files. Ordinary code. */
#ifndef LOCUS_ANALYSIS_ACCESSES_H
#define LOCUS_ANALYSIS_ACCESSES_H

#include "base/vec.h"
#include "fmt/spread.h"

/* Samples of one event by one instruction on the variable of one node of the merged tree. */
struct access {
    uint32_t node, event; /* merged tree; model */
    uint32_t module;      /* symbolizer id */
    uint64_t vaddr;       /* of the sample */
    uint64_t n_samples;
    struct spread offsets; /* as in struct objects_access */
};

#define ACCESSES_MAX 1000000

/* All zero is empty. */
struct access_table {
    struct access *items; /* [n]; accesses_sort puts them in order of node */
    size_t n, capacity;
    struct slots slots; /* by their keys; gone after accesses_sort */
};

/* Adds samples and their offsets to the entry like this one (whose own offsets do not count). What is new beyond
 * ACCESSES_MAX entries is left out: its samples have no place. False when out of memory. */
bool accesses_add(struct access_table *table, const struct access *like, const struct spread *offsets);

/* Sorts by node, instruction and event; nothing can be added afterwards. */
void accesses_sort(struct access_table *table);

/* The accesses of a node [*n], after accesses_sort; NULL when there are none. */
const struct access *accesses_of_node(const struct access_table *table, uint32_t node, size_t *n);

/* Frees everything and makes the table empty. */
void accesses_fini(struct access_table *table);

#endif
