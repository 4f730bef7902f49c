/* SPDX-License-Identifier: BSD-3-Clause */
/* Where threads ran while they used data: the samples of variables by CPU, core, package or NUMA node of each host.
 * Ordinary code. */
#ifndef LOCUS_ANALYSIS_REPORT_CPU_TABLE_H
#define LOCUS_ANALYSIS_REPORT_CPU_TABLE_H

#include "analysis/report/report.h"

enum cpu_by { CPU_BY_CPU = 0, CPU_BY_CORE, CPU_BY_PACKAGE, CPU_BY_NODE, CPU_BYS };

/* A CPU, core, package or node of a host. */
struct cpu_row {
    uint32_t host;         /* index into the table's hosts */
    uint32_t place;        /* its number, as in struct machine_cpu; PLACE_UNKNOWN: not in the topology */
    struct machine_cpu at; /* where its CPUs are; what is not the same for all of them is PLACE_UNKNOWN */
    uint64_t n_samples;
    size_t n_threads; /* that took them */
};

/* Samples of a thread on a variable in a row. */
struct cpu_cell {
    uint32_t row;
    uint32_t thread;   /* index into the model's threads */
    uint32_t variable; /* index into the report's variables */
    uint64_t n_samples;
};

struct cpu_table {
    enum cpu_by by;
    struct strtab hosts;  /* host ids */
    struct cpu_row *rows; /* [n_rows] by host id, then by place */
    size_t n_rows, cap_rows;
    struct cpu_cell *cells; /* [n_cells] by row, then by thread and variable */
    size_t n_cells, cap_cells;
    size_t *first; /* [n_rows + 1] where the cells of each row begin */
    uint64_t n_samples;
};

/* Makes the table of the samples of the report's metric, as they were counted; of the latency of accesses, those of
 * all events that report accesses. variable: only those of the report's variables with this name; NULL: all. CPUs and
 * cores have a row if they have samples; packages and nodes of the hosts' topologies always have one.
 * err: ERR_NOT_FOUND (there is no such variable, or CPUs are not known), ERR_MEMORY */
int cpu_table_make(const struct report *report, enum cpu_by by, const char *variable, struct cpu_table *table,
                   struct error *err);
void cpu_table_fini(struct cpu_table *table);

/* Appends what a row is called: "3", with several hosts "3@007f0100"; "?" for a place that is not known. */
void cpu_table_put_name(const struct cpu_table *table, size_t row, struct buf *out);

#endif
