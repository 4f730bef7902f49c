/* SPDX-License-Identifier: BSD-3-Clause */
/* What has become more or less from one profile to another: by function, line or variable. Ordinary code. */
#ifndef LOCUS_EXPORT_FRAMES_DIFF_H
#define LOCUS_EXPORT_FRAMES_DIFF_H

#include "base/vec.h"
#include "frame/frame.h"

struct diff_job {
    const struct frame *before, *after;
    const char *column; /* of both; NULL: the default of before */
    const char *by;     /* "function", "line" or "variable" */
    const char *form;   /* "text", "csv" or "json" */
    double threshold;   /* percent of the total before */
    size_t top;         /* rows at most; 0 = all */
    bool color;         /* terminal escape sequences may be used */
};

/* Appends what differs by more than the threshold to out, the largest change first; *n_found: how many rows there are
 * without top. Functions, lines and variables are the same when they have the same name, wherever they are; a name that
 * one side does not have counts as 0 there. Costs are those of functions and lines alone, callees not included (unless
 * the column is inclusive), and all accesses of a variable.
 * err: ERR_USAGE for an unknown by, ERR_NOT_FOUND (the column, or nodes of this kind), and as frame_diff */
int frames_diff(const struct diff_job *job, struct buf *out, size_t *n_found, struct error *err);

#endif
