/* SPDX-License-Identifier: BSD-3-Clause */
/* What to do, as far as a database has evidence for it: a sentence for each variable, and for what is no variable. A
 * rule that lacks a figure says nothing. The rules about the order and size of accesses are in advice.c, those about
 * places and cache lines in advice-places.c, what is printed in export-advice.c. Ordinary code. */
#ifndef LOCUS_EXPORT_ADVICE_H
#define LOCUS_EXPORT_ADVICE_H

#include "analysis/report/first-touch.h"
#include "analysis/report/leaks.h"
#include "analysis/report/numa.h"
#include "analysis/report/patterns.h"
#include "export/exporters.h"

/* One piece of advice. */
struct advice {
    const char *rule; /* "interleave" */
    const char *name, *class, *site;
    double share, memory; /* percent of all samples; memory NAN: not known */
    double gain;          /* percent of all samples: following it saves no more time than that; NAN: not known */
    uint64_t live_bytes;  /* of a leak: the memory that following it saves; else 0 */
    size_t number;        /* in the order of the report */
    char *words, *evidence;
    char *programs; /* that use it: "cc1, as"; NULL: not known */
};

struct advices {
    const struct export_job *job;
    struct leaks leaks;
    struct report report;
    struct first_touches touches;
    struct numa numa;
    struct patterns patterns;
    bool has_leaks, has_numa, has_patterns;
    const char **programs; /* [n_programs] names of the measured programs, all different, borrowed from the model */
    size_t n_programs, cap_programs;
    uint32_t *program_of; /* [strings] which of them a string names as a module, 1 + index; 0: none */
    struct advice *items; /* [n_items] what waits most for memory first, else by the order of the report; leaks last */
    size_t n_items, cap_items;
    bool failed;
};

/* Makes all advice about the job's metric, for its rows from job->least percent on. It must not outlive the model.
 * err: ERR_MEMORY */
int advices_make(const struct export_job *job, struct advices *advices, struct error *err);
void advices_fini(struct advices *advices);

/* Appends the pieces of advice that may gain most, a line or two each, behind a report; nothing when there are none.
 * err: ERR_MEMORY */
int advices_put_short(const struct export_job *job, struct buf *out, struct error *err);

/* --- for the rules --- */

#define ADVICE_SHARE_MIN 5.0         /* percent of all samples that a row must have, unless the job says otherwise */
#define ADVICE_WORTH_PERCENT 3.0     /* of all time: what a change must be able to gain ... */
#define ADVICE_WORTHLESS_PERCENT 1.0 /* ... and the share of a variable about which it is said that it cannot */

/* Adds advice about a row, unless following it gains nothing. words: static; evidence is taken over. */
void advice_add(struct advices *advices, const struct report_row *row, const char *rule, double gain, const char *words,
                struct buf *evidence);

/* Percent of all samples that waited for memory at the row, at most; all of its samples where that is not known. */
double advice_waited(const struct advices *advices, const struct report_row *row);

/* Whether two rows of different reports are about the same variable. */
bool advice_is_same(const struct report_row *a, const struct report_row *b);

/* advice-places.c: advice from where its pages are and who uses them. True if more is known than the hardware says. */
bool advise_on_places(struct advices *advices, const struct report_row *row);

/* advice-places.c: advice from what the hardware says about its accesses to other nodes. */
void advise_on_remote_accesses(struct advices *advices, const struct report_row *row);

/* advice-places.c: advice about cache lines that several threads use. True if there is any. */
bool advise_on_lines(struct advices *advices, const struct report_row *row);

#endif
