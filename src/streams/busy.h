/* SPDX-License-Identifier: BSD-3-Clause */
/* How busy the parts of a machine were over time: CPUs, cores, NUMA nodes, packages and all of it, from the switches of
 * a stream. Busy is the time in which a task other than the idle one ran. Where the recording does not tell what ran,
 * the time is in no sum. Ordinary code. */
#ifndef LOCUS_STREAMS_BUSY_H
#define LOCUS_STREAMS_BUSY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "streams/schedule.h"
#include "streams/topology.h"

enum busy_level { BUSY_MACHINE, BUSY_PACKAGE, BUSY_NODE, BUSY_CORE, BUSY_CPU };

/* What is known of a part in a slice of time, summed over its CPUs. */
struct busy_cell {
    int64_t busy_ns, idle_ns;
    uint64_t n_events; /* of all types, lost ones and twins not counted */
};

/* A part of the machine. */
struct busy_row {
    enum busy_level level;
    uint32_t number; /* hwloc's logical one; of a CPU as the operating system numbers it; of the machine 0 */
    uint32_t n_cpus; /* that are shown */
    bool is_known;   /* of at least one of its CPUs the recording tells what ran */
    bool is_beside;  /* a node that its CPUs have in addition to the one that they are in: nested, or memory alone */
    uint32_t depth;  /* in the tree; of what stands beside it 1 */
    struct busy_cell *cells; /* [n_slices] owned by busy */
};

/* Rows: the machine; packages, if there are several, and nodes beside the tree; then nodes, cores and CPUs in the order
 * of the view. Without a view as a tree: the machine and its CPUs. All zero is empty. */
struct busy {
    int64_t from_ns, to_ns;
    size_t n_slices;
    bool knows_idle;       /* all tasks were recorded: idle times and shares are known */
    bool knows_busy;       /* at least some were; else only events are counted */
    bool knows_cpus;       /* events say where they happened; else none are counted */
    struct busy_row *rows; /* [n_rows] */
    size_t n_rows, cap_rows;
    struct busy_cell *cells;
    uint32_t **rows_of; /* [n_rows_of] by CPU: indexes of its rows, up to BUSY_NO_ROW; NULL: it is not shown */
    size_t n_rows_of;
};
#define BUSY_NO_ROW UINT32_MAX

/* Where slice i of n_slices begins; n_slices: the end. */
int64_t busy_slice_ns(const struct busy *busy, size_t i);

/* Computes it for the CPUs os[n_os], in the order of their rows, from from_ns to to_ns in n_slices (> 0) equal slices.
 * view NULL: none, or not as a tree. *busy must be empty; busy_fini frees it.  err: ERR_MEMORY */
int busy_make(const struct stream *stream, const struct stream_view *view, const uint32_t *os, size_t n_os,
              int64_t from_ns, int64_t to_ns, size_t n_slices, struct busy *busy, struct error *err);
void busy_fini(struct busy *busy);

/* All slices of a row together. */
struct busy_cell busy_sum(const struct busy *busy, const struct busy_row *row);

/* Whether it is known of a row in a slice, or in all, how much it was busy. */
bool busy_is_known(const struct busy *busy, const struct busy_row *row, const struct busy_cell *cell);

/* Percent of the known time that it was busy; of a recording that does not know idle times, of all time, which is a
 * lower bound. Negative: not known. length_ns: of the slice, or of all. */
double busy_percent(const struct busy *busy, const struct busy_row *row, const struct busy_cell *cell,
                    int64_t length_ns);

#endif
