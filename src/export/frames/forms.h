/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of forms that a frame can be printed in, whoever made the frame: trees and tables for people, and files for
 * other tools. To add one, write form-x.c with one struct frame_form and add its row to forms.c. Ordinary code. */
#ifndef LOCUS_EXPORT_FRAMES_FORMS_H
#define LOCUS_EXPORT_FRAMES_FORMS_H

#include "base/vec.h"
#include "frame/frame.h"

/* What the user asked for. */
struct frame_job {
    struct frame *frame;
    size_t column;            /* of the frame: the one that the form shows, or sorts by */
    bool is_named;            /* the user named the column, and wants only it and those of named */
    const char *const *named; /* [n_named] names of columns that the user wants, too */
    size_t n_named;
    struct frame_view view; /* which profiles count */
    size_t top;             /* rows at most; 0 = all */
    double min_percent;     /* what is below this part of the total is left out */
    const char *title;      /* of a page or a file: the program's name, or the database's */
    const char *path;       /* of the first input, which may have copies of sources; NULL: none */
    bool color;             /* terminal escape sequences may be used */
    bool unicode;           /* characters beyond ASCII may be used */
    unsigned columns;       /* width of the terminal */
    uint32_t depth;         /* levels of a tree at most; 0 = all */
};

struct frame_form {
    const char *name;    /* "folded": the word on the command line */
    const char *summary; /* "stacks, a line each, for flame graph tools" */
    double min_percent;  /* of a job that does not say */
    /* Appends to out. Values are not rounded where the form allows; a node without a value counts as 0.
     * err: ERR_MEMORY, ERR_UNSUPPORTED (a graph where the form needs a tree), errors of frame_values */
    int (*write)(const struct frame_job *job, struct buf *out, struct error *err);
};

/* Whether a node is the root of the data-centric tree of a database, which holds costs of its code once more. */
bool frames_is_data(const struct frame *frame, uint32_t node);

/* What 100 percent of a column are, with the values of the job's view: the root's value of an inclusive column; of an
 * exclusive one, or where several roots or a circle may hold each other's costs, the sum of the exclusive values. The
 * data-centric tree counts only where there is nothing else. Never negative; 0 for a column that does not add up.
 * err: as frame_values */
int frame_job_total(const struct frame_job *job, size_t column, double *total, struct error *err);

/* The columns of a frame that hold a column's costs with and without callees; SIZE_MAX: none without. */
void frames_find_columns(const struct frame *frame, size_t column, size_t *with, size_t *without);

/* What each node costs with its lines and loops but without what it calls, [n_nodes], from own [n_nodes], what it costs
 * alone; the caller frees it. NULL when out of memory. */
double *frames_with_lines(const struct frame *frame, const double *own);

/* The forms in order; *n: how many. */
const struct frame_form *const *frame_forms(size_t *n);

/* The form of this name; NULL: there is none, and *err says which there are. */
const struct frame_form *frame_form_find(const char *name, struct error *err);

/* --- saved --- */

/* Writes the frame into a new directory, which is complete or not there: frame.db for ourselves, where nothing is lost
 * except that formulas become values, and beside it, if the frame is a tree, a database for viewers and Hatchet
 * (save-v4.c). title: of that database.  err: ERR_IO (the path, and why; something is there), ERR_RANGE, ERR_MEMORY,
 * and as frame_values */
int frames_save(struct frame *frame, const char *path, const char *title, struct error *err);

/* Writes a tree into a directory as meta.db, profile.db, cct.db and metrics/default.yaml: functions, loops and lines,
 * profiles, and the columns that add up, each with and without callees. What else there is becomes a function, or is
 * left out.  err: as frames_save */
int frames_save_v4(struct frame *frame, const char *directory, const char *title, struct error *err);

/* --- compared --- */

/* diff.c: what has become more or less from one profile to another. */
struct diff_job {
    const struct frame *before, *after;
    const char *column; /* of both; NULL: the default of before */
    const char *by;     /* "function", "line" or "variable" */
    const char *form;   /* "text", "csv" or "json" */
    double threshold;   /* percent of the total before */
    bool increases;     /* only what has become more */
    bool beyond_noise;  /* only what is beyond the noise, where this is known */
    /* What one sample adds to the column before and after; 0: it is not sampled, or this is not known. */
    double sample_costs[2];
    size_t top; /* rows at most; 0 = all */
    bool color; /* terminal escape sequences may be used */
};

/* Appends what differs by more than the threshold to out, the largest change first; *n_found: how many rows there are
 * without top. Functions, lines and variables are the same as frame_match says; what one side does not have counts as 0
 * there. Costs are those of functions and lines alone, callees not included (unless the column is inclusive), and all
 * accesses of a variable.
 *
 * The noise of a row is what 95 of 100 differences would stay below if nothing had changed, as far as the inputs tell:
 * by the number of samples, whose standard deviation is its root; and, where both sides have the same four or more
 * profiles, by how much their differences vary (paired t-test). The larger one counts; without either it is not known.
 *
 * err: ERR_USAGE for an unknown by, ERR_NOT_FOUND (the column, or nodes of this kind), and as frame_diff */
int frames_diff(const struct diff_job *job, struct buf *out, size_t *n_found, struct error *err);

#endif
