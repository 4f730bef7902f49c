/* SPDX-License-Identifier: BSD-3-Clause */
/* The page for a browser, as text: as a file of its own, with the answers that it shows in it, or without any, for a
 * server that answers what it asks. Both are the application of src/face/web. Ordinary code. */
#ifndef LOCUS_FACE_PAGE_H
#define LOCUS_FACE_PAGE_H

#include "session/session.h"

struct buf;

/* What a page holds. All zero: everything, for the usual metric. */
struct page_choice {
    const struct request *variables; /* which variables, in which order, and the metric of all; NULL: all of them */
};

/* Appends a page with recorded answers. What a report cannot answer is recorded as its error.
 * err: as session_ask of vars and of functions, where the input has no data */
int page_record(struct session *session, const struct page_choice *choice, struct buf *out, struct error *err);

/* Appends the page without answers. */
void page_served(struct buf *out);

#endif
