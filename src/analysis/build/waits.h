/* SPDX-License-Identifier: BSD-3-Clause */
/* Samples that are not time at a variable, whatever they touched: those in which a thread waited for others in a loop,
 * recognised by the runtime library that they lie in and the call that led there, or by the loop's own code (PAUSE);
 * those in the profiler's own code; and those in the allocator, which works on what it keeps beside and between blocks.
 * Ordinary code. */
#ifndef LOCUS_ANALYSIS_BUILD_WAITS_H
#define LOCUS_ANALYSIS_BUILD_WAITS_H

#include "analysis/model.h"

/* What is known about the names in a model. */
struct waits {
    const struct model *model;
    uint8_t *modules, *functions, *allocators; /* [n_strings] what the names mean, by string id */
    struct strtab labels; /* "libgomp: barrier", WAITS_PROFILER, WAITS_ALLOCATOR "malloc: main (x.c:3)" */
    int64_t *kinds;       /* [n_kinds] by label: see waits_kind */
    size_t n_kinds, cap_kinds;
    bool is_time;                     /* waiting takes time; for other metrics only the profiler is set aside */
    bool has_profiler, has_allocator; /* it is among the names */
};

#define WAITS_PROFILER "<profiler>" /* the label of the profiler's own work; no library has such a name */

#define WAITS_ALLOCATOR "<allocator> " /* begins the labels of an allocator's work */

/* is_time: the metric is time. The caller frees *waits.  err: ERR_MEMORY */
int waits_new(struct waits **waits, const struct model *model, bool is_time, struct error *err);
void waits_free(struct waits *waits);

/* Whether samples on the variable can be waiting: if they are in no variable, or in one that a runtime library made for
 * itself. Samples on the program's data never are, but the profiler's own code may touch anything. */
bool waits_are_possible(const struct waits *waits, const struct variable *variable);

/* Index into waits->labels when samples of the statement scope, below one of the variable's scopes, were waiting; -1
 * when they were not, or when out of memory. */
int64_t waits_label(struct waits *waits, const struct variable *variable, uint32_t scope);

/* The first label of the same kind: all calls of MPI, whichever library of it waits, are one kind, and
 * so are all constructs of an OpenMP library. The allocator's and the profiler's labels are each a kind. The label
 * itself when out of memory. label: index into waits->labels. */
int64_t waits_kind(struct waits *waits, int64_t label);

/* "MPI" for the label of an MPI library, or of one that such a library uses; NULL for others. */
const char *waits_family(const char *label);

#endif
