/* SPDX-License-Identifier: BSD-3-Clause */
/* Which threads touched the pages of each variable first, where in the program, and which ones used it: from the page
 * faults that were sampled. What a library of the language's does for its caller, such as clearing memory in calloc,
 * the caller does. Ordinary code. */
#ifndef LOCUS_ANALYSIS_REPORT_FIRST_TOUCH_H
#define LOCUS_ANALYSIS_REPORT_FIRST_TOUCH_H

#include "analysis/report/report.h"

#define FIRST_TOUCH_DOUBT 0.75 /* of what they take by the self-test may be more, or less */

/* A place in the program. */
struct touch_place {
    uint32_t function, file, line; /* string ids; line 0 = not known */
};

/* The place of a scope in the innermost function that works for nobody else; the innermost of all when there is none.
 */
struct touch_place touch_place_of(const struct model *model, uint32_t scope);

/* The call path from there outwards, the language's libraries left out: fills places [max], returns how many there are,
 * at least 1, and maybe more than max. */
size_t touch_path_of(const struct model *model, uint32_t scope, struct touch_place *places, size_t max);

/* Page faults of one thread at one place on a variable. */
struct touch_row {
    uint32_t variable; /* index into the report's variables */
    uint32_t thread;   /* index into the model's threads */
    struct touch_place place;
    uint32_t node; /* NUMA node that the thread ran on at most of its faults on the variable; PLACE_UNKNOWN */
    uint64_t n_samples, n_faults, first_ns, low_bytes, high_bytes; /* as in struct touch */
    double share;                                                  /* percent of the variable's faults */
};

/* The rows of one place. */
struct touch_group {
    size_t first, n; /* rows, by thread */
    double share;    /* percent of the variable's faults */
};

/* What is known of one of the report's variables. */
struct touched {
    size_t first_group, n_groups; /* by faults, most first */
    size_t n_touchers;            /* different threads that touched it first */
    size_t first_user, n_users;   /* of the users: threads with other samples */
    uint64_t n_samples, n_faults, first_ns;
    double span; /* which part of what is used of its one block a thread uses on average, from its lowest to its highest
                  * sample; NAN: not known */
};

struct first_touches {
    const struct report *report;
    bool is_measured;       /* page faults were sampled, and say whose they are */
    bool is_complete;       /* every fault in user mode was sampled */
    struct touch_row *rows; /* [n_rows] by variable, group and thread */
    size_t n_rows;
    struct touch_group *groups; /* [n_groups] by variable */
    size_t n_groups, cap_groups;
    uint32_t *users; /* [n_users] indexes of threads, in their order, variable by variable */
    size_t n_users;
    struct touched *variables; /* [n_variables of the report] */
    int64_t faults, use;       /* metrics of the faults and of the use that nodes are known for; -1: none */
};

/* Collects them for the variables of a report.  err: ERR_MEMORY */
int first_touches_make(const struct report *report, struct first_touches *touches, struct error *err);
void first_touches_fini(struct first_touches *touches);

/* What is known of the variable of a row; NULL when nobody was seen to touch it, or the row is about no variable, or
 * about a part of one. */
const struct touched *first_touch_of(const struct first_touches *touches, const struct report_row *row);

/* Samples by NUMA node [n_numa_nodes] of the threads that touched the row's variable first, or used it; NULL when nodes
 * are not known. */
const uint64_t *first_touch_nodes(const struct first_touches *touches, const struct report_row *row, bool used);

/* Which part of waiting for memory at most lies in pages of 4 KiB, for data of so many bytes in random order: what
 * loads from huge pages save by the self-test of the machine that was measured, and a quarter more; is_chained: each
 * load waits for the one before, so that no others run beside it. 1: that was not measured. */
double first_touch_small_pages(const struct model *model, uint64_t n_bytes, bool is_chained);

/* Tells first touches from what else the rows of a report were spent on: so many page faults of each variable, at what
 * one takes of the time in user mode. Three quarters of that may be more, or less, and the intervals hold it. Nothing
 * changes where page faults were not sampled, or where they take less than half a percent. The samples lie at the lines
 * of the faults, of whatever data, as an instruction that is run again after the fault stands in front of itself: in
 * proportion to what the rows have there; and then in their loops, at the variable and at <compute>. In functions such
 * as memset, which store to one variable after the other, they are at the variable itself first of all.
 * err: ERR_MEMORY */
int first_touch_add_causes(struct report *report, struct error *err);

/* Percent of all samples that first touches take by the kernel's count of page faults, where these were not sampled, so
 * that nobody knows where; 0 where they were, or nothing is known. */
double first_touch_uncounted(const struct report *report);

#endif
