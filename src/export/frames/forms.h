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
    size_t column;          /* of the frame: the one that the form shows, or sorts by */
    struct frame_view view; /* which profiles count */
    size_t top;             /* rows at most; 0 = all */
    double min_percent;     /* what is below this part of the total is left out */
    const char *title;      /* of a page or a file: the program's name, or the database's */
    bool color;             /* terminal escape sequences may be used */
    bool unicode;           /* characters beyond ASCII may be used */
    unsigned columns;       /* width of the terminal */
};

struct frame_form {
    const char *name;    /* "folded": the word on the command line */
    const char *summary; /* "stacks, a line each, for flame graph tools" */
    /* Appends to out. Values are not rounded where the form allows; a node without a value counts as 0.
     * err: ERR_MEMORY, ERR_UNSUPPORTED (a graph where the form needs a tree), errors of frame_values */
    int (*write)(const struct frame_job *job, struct buf *out, struct error *err);
};

/* The forms in order; *n: how many. */
const struct frame_form *const *frame_forms(size_t *n);

/* The form of this name; NULL: there is none, and *err says which there are. */
const struct frame_form *frame_form_find(const char *name, struct error *err);

#endif
