/* SPDX-License-Identifier: BSD-3-Clause */
/* What is still allocated, by allocation path, and how much it was used: rows for the exporters of the report of leaks;
 * and the table of variables by region.
 * "Live" is a difference of counts: blocks allocated on the path and not freed when the process ended, or at the mark.
 * Whether something still points to them is not checked. Ordinary code. */
#ifndef LOCUS_ANALYSIS_REPORT_LEAKS_H
#define LOCUS_ANALYSIS_REPORT_LEAKS_H

#include "analysis/report/report.h"

struct leak_row {
    const struct report_row *row; /* name, site, samples and share: of all blocks of the path, freed ones included */
    uint64_t n_live, live_bytes;  /* at the end, or at the mark if the report is about that */
};

/* Blocks and bytes over all paths. */
struct leak_sum {
    uint64_t n_blocks, bytes;
};

struct leaks {
    struct report report; /* variables by allocation path */
    bool is_at_mark;
    bool has_use;          /* samples with addresses were taken, so the shares mean something */
    struct leak_row *rows; /* [n_rows] by live bytes, most first */
    size_t n_rows, cap_rows;
    struct leak_sum allocated, freed, live, marked;
    struct leak_sum unused; /* live blocks on paths without any sample */
    double share;           /* percent of all samples that are on blocks of paths with live ones */
};

/* One function on an allocation path. */
struct leak_frame {
    uint32_t function, file, line; /* string ids; where it calls the next one */
    uint32_t module;               /* string id */
};

/* Whether some path has blocks of at least so many bytes live at the end, and no cost of the metric: quicker than to
 * make the rows. */
bool leaks_may_be_unused(const struct model *model, size_t metric, uint64_t least_bytes);

/* Makes the rows; at_mark: for the blocks live at the mark instead of those at the end; with_unused: also for paths
 * without live blocks.
 * err: ERR_NOT_FOUND (no mark was made, or allocations were not recorded), ERR_MEMORY */
int leaks_make(const struct model *model, size_t metric, bool at_mark, bool with_unused, struct leaks *leaks,
               struct error *err);
void leaks_fini(struct leaks *leaks);

/* The allocation path of a row of a report that has a variable, innermost function first: fills at most max frames and
 * returns how many. Where Python code is on it, it has no frames of the interpreter: first what the code called and
 * what has a name, then the Python functions, then what called the interpreter. */
size_t leaks_path(const struct report *report, const struct report_row *row, struct leak_frame *frames, size_t max);

/* The longest path that is printed. */
#define LEAK_FRAMES_MAX 1024

/* --- regions --- */

/* Which variables cost the time in which region of the program: the rows of a table of variables, split by the regions
 * of their samples. Ordinary code. */

/* The part of a variable's value that belongs to one region. */
struct region_row {
    const struct report_row *row; /* NULL: samples outside the data-centric tree */
    double value;
    double share; /* percent of all samples */
};

#define REGION_NOT_KNOWN "?"

struct region {
    const char *name;        /* "outer > inner" for nested ones; "" outside all; of dropped samples REGION_NOT_KNOWN */
    double value, share;     /* without the regions inside it */
    struct region_row *rows; /* [n_rows] by value, highest first */
    size_t n_rows, cap_rows;
};

struct region_report {
    struct region *regions; /* [n_regions] by value, highest first; only those with samples */
    size_t n_regions, cap_regions;
    struct strtab names;
};

/* Whether there is any region of the program, or any phase that its owner has named. */
bool regions_has_any(const struct report *report, bool of_phases);

/* Splits the rows of a report by regions, or by the phases that the program's owner has named. The values of all
 * regions add up to the report's total. Borrows from the report. err: ERR_MEMORY */
int regions_make(const struct report *report, bool of_phases, struct region_report *regions, struct error *err);
void regions_fini(struct region_report *regions);

/* Whether a note of the measurement is about what is missing in the figures of blocks. */
bool leaks_is_of_blocks(const char *note);

#endif
