/* SPDX-License-Identifier: BSD-3-Clause */
/* Which memory nodes the threads ran on, and which ones the pages that they touched were on: for all samples and for
 * each variable. Known of samples of events with data addresses, on machines with several memory nodes. Ordinary code.
 */
#ifndef LOCUS_ANALYSIS_REPORT_NUMA_H
#define LOCUS_ANALYSIS_REPORT_NUMA_H

#include "analysis/report/report.h"

/* Samples of threads that ran on node, on pages whose home is home. */
struct numa_pair {
    uint32_t row; /* of the pairs of variables */
    uint32_t node;
    uint32_t home; /* PLACE_UNKNOWN: the page was never written, or was released before the kernel was asked */
    uint64_t n_samples;
    uint64_t n_measured; /* of these, with a known distance ... */
    double distance;     /* ... and the sum of their distances: 1 is the own node's, as the firmware tells it */
};

struct numa_sum {
    uint64_t n_samples;         /* of the metric, whether their homes are known or not */
    uint64_t n_local, n_remote; /* home is known */
    uint64_t n_none;            /* on no node: never written, or released before the kernel was asked */
    uint64_t n_measured;        /* the distance of the page is known ... */
    double distance;            /* ... and their sum, as in a pair */
};

/* A variable, or all blocks of one site. */
struct numa_row {
    const struct report_row *row; /* name, class and site */
    struct numa_sum sum;
    size_t first, n;             /* its pairs, by node and home */
    struct variable_pages pages; /* n_pages 0: not counted */
};

struct numa {
    struct report report;
    size_t metric;
    uint32_t n_nodes; /* that are counted, from 0 on; below 2: the machine has one memory node; 0: not known */
    struct numa_sum sum;
    uint64_t *matrix;        /* [n_nodes][n_nodes] by node of the thread and home */
    struct numa_pair *pairs; /* [n_pairs] by row */
    size_t n_pairs, cap_pairs;
    struct numa_row *rows; /* [n_rows] by samples whose home is known, most first */
    size_t n_rows;
};

/* Fills *numa for a metric, or for the first one with homes where this has none. It must not
 * outlive the model, nor be copied.  err: ERR_MEMORY */
int numa_make(const struct model *model, size_t metric, struct numa *numa, struct error *err);
void numa_fini(struct numa *numa);

/* Percent of the samples whose home is known that were on another node than their thread; NAN where there is none. */
double numa_remote_percent(const struct numa_sum *sum);

/* How far away the pages of the samples are on average: 1 is the own node; NAN where distances are not known. */
double numa_mean_distance(const struct numa_sum *sum);

/* Samples of a row by node of the threads; those of which the home is known, and those on no node. */
uint64_t numa_row_on(const struct numa *numa, const struct numa_row *row, uint32_t node);

/* The same by home. */
uint64_t numa_row_at(const struct numa *numa, const struct numa_row *row, uint32_t home);

#endif
