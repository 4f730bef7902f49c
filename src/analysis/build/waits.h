/* SPDX-License-Identifier: BSD-3-Clause */
/* Samples that are not time at a variable, whatever they touched: those in which a thread waited for others in a loop,
 * recognised by the runtime library that they lie in and the call that led there, or by the loop's own code (PAUSE),
 * or in locks of the C library for which it calls the kernel;
 * those in the profiler's own code; and those in the allocator, which works on what it keeps beside and between blocks.
 * Ordinary code. */
#ifndef LOCUS_ANALYSIS_BUILD_WAITS_H
#define LOCUS_ANALYSIS_BUILD_WAITS_H

#include "analysis/model.h"

/* What a function of the program has at locks of the C library, in time. */
struct lock_taker {
    double time,
        waited;       /* in functions of the library for them; of this in a loop, or on the way back from the kernel */
    uint32_t name;    /* of the variable with most of that, 0: none ... */
    double most;      /* ... which is so much */
    uint32_t last;    /* the variable that is being summed up, ... */
    double last_time; /* ... and its sum */
    bool is_contended;
};

/* What is known about the names in a model. */
struct waits {
    const struct model *model;
    uint8_t *modules, *functions, *allocators, *locks; /* [n_strings] what the names mean, by string id */
    struct lock_taker *takers;                         /* [n_strings] by the program's function */
    size_t *n_users;                                   /* of these tables */
    struct strtab labels; /* "libgomp: barrier", WAITS_PROFILER, WAITS_ALLOCATOR "malloc: main (x.c:3)" */
    int64_t *kinds;       /* [n_kinds] by label: see waits_kind */
    size_t n_kinds, cap_kinds;
    bool is_time; /* waiting takes time; for other metrics only the profiler is set aside */
    bool has_profiler, has_allocator, has_locks; /* it is among the names */
    bool is_contended;                           /* some lock is */
};

#define WAITS_CALL "<system call>" /* the name of samples on the way back from the kernel */

#define WAITS_PROFILER "<profiler>" /* the label of the profiler's own work; no library has such a name */

#define WAITS_ALLOCATOR "<allocator> " /* begins the labels of an allocator's work */

/* is_time: the metric is time. The caller frees *waits.  err: ERR_MEMORY */
int waits_new(struct waits **waits, const struct model *model, bool is_time, struct error *err);
void waits_free(struct waits *waits);

/* The same for the model and the kind of metric of another one, whose tables of names it shares: they take long to make
 * where there are many names. Both are freed, in any order; in one thread.  err: ERR_MEMORY */
int waits_like(struct waits **waits, const struct waits *other, struct error *err);

/* Whether samples on the variable can be waiting: if they are in no variable, or in one that a runtime library made for
 * itself. Samples on the program's data are only in the code of contended locks, but the profiler's own may touch
 * anything. */
bool waits_are_possible(const struct waits *waits, const struct variable *variable);

/* Index into waits->labels when samples of the statement scope, below one of the variable's scopes, were waiting; -1
 * when they were not, or when out of memory. */
int64_t waits_label(struct waits *waits, const struct variable *variable, uint32_t scope);

/* Whether the variable stands for samples on the way back from system calls. */
bool waits_is_call(const struct waits *waits, const struct variable *variable);

/* The code of the program that called a function of a library, whatever passed the call on. */
struct waits_caller {
    const struct scope *function, *line; /* NULL: not known */
    const char *container;               /* [n_container] of the functions between, "std::vector"; 0: none */
    size_t n_container;
    bool is_growth; /* ... it grows there */
};

/* The same for a statement scope; for one of the program itself, what called its function. */
struct waits_caller waits_caller_of(const struct waits *waits, uint32_t scope);

/* Appends "main (x.c:5)" behind some text; nothing where the function is not known. */
void waits_put_caller(const struct model *model, const struct waits_caller *caller, const char *before,
                      struct buf *text);

/* The function of the program that takes a lock of the C library, or gives it back, at the statement scope: a string
 * id; 0: none. */
uint32_t waits_lock_taker(const struct waits *waits, uint32_t scope);

/* Whether the statement scope lies in a function that gives a lock back, instead of taking it. */
bool waits_gives_back(const struct waits *waits, uint32_t scope);

/* The first label of the same kind: all calls of MPI, whichever library of it waits, are one kind, and
 * so are all constructs of an OpenMP library. The allocator's and the profiler's labels are each a kind. The label
 * itself when out of memory. label: index into waits->labels. */
int64_t waits_kind(struct waits *waits, int64_t label);

/* "MPI" for the label of an MPI library, or of one that such a library uses; NULL for others. */
const char *waits_family(const char *label);

#endif
