/* SPDX-License-Identifier: BSD-3-Clause */
/* Which variables cost the time in which region of the program: the rows of a table of variables, taken apart by the
 * regions that their samples fell into. Ordinary code. */
#ifndef LOCUS_ANALYSIS_REGIONS_H
#define LOCUS_ANALYSIS_REGIONS_H

#include "analysis/report.h"

/* The part of a variable's value that belongs to one region. */
struct region_row {
    const struct report_row *row; /* NULL: samples outside of the data-centric tree */
    double value;
    double share; /* percent of all samples */
};

struct region {
    const char *name; /* "outer > inner" for nested ones; "" outside of all */
    double value, share; /* without what belongs to regions inside of it */
    struct region_row *rows; /* [n_rows] by value, highest first */
    size_t n_rows, cap_rows;
};

struct region_report {
    struct region *regions; /* [n_regions] by value, highest first; only those with samples */
    size_t n_regions, cap_regions;
    struct strtab names;
};

/* Takes the rows of a report apart. The values of all regions add up to the report's total. Borrows from the report.
 * err: ERR_MEMORY */
int regions_make(const struct report *report, struct region_report *regions, struct error *err);
void regions_fini(struct region_report *regions);

#endif
