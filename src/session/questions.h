/* SPDX-License-Identifier: BSD-3-Clause */
/* What only viewers ask: questions beside reports (questions.c), and what files of other tools answer (foreign.c).
 * Ordinary code. */
#ifndef LOCUS_SESSION_QUESTIONS_H
#define LOCUS_SESSION_QUESTIONS_H

#include "answer/answer.h"
#include "answer/item.h"
#include "frame/frame.h"
#include "session/session.h"
#include "session/timeline.h"

/* A question to an open database. */
struct asked {
    const struct export_job *job;
    const char *path;    /* of the database, as it was given */
    const char *tree;    /* nodes: "code", "data" or "both", which NULL is too */
    struct items *items; /* of the job's metric */
};

/* The question of that name, as if it were a report; NULL: there is none. */
const struct report_kind *question_find(const char *name);

/* Answers the question that is the job's report. answer_fini frees it, unless this fails.
 * err: ERR_USAGE, ERR_NOT_FOUND (a file), ERR_MEMORY */
int question_answer(const struct asked *asked, struct answer *answer, struct error *err);

/* The columns of nodes, of whatever they are: row of the parent, number in the frame, what it is, and its costs. */
enum { NODE_COLUMNS = 10 };
extern const struct column node_columns[NODE_COLUMNS];

/* Adds a row of nodes for n that are too small to be listed: parent: the row that they are below; value: the sum of
 * what they and all below them cost. */
void node_put_small(struct table *table, uint32_t parent, size_t n, double value);

/* Fills *answer with what a request asks of the frame that the file at path gave: functions, lines, nodes, or what it
 * is (session). answer_fini frees it, unless this fails; path must live as long.  err: ERR_UNSUPPORTED (another
 * report), ERR_NOT_FOUND (no such metric), as frame_values */
int foreign_answer(struct frame *frame, const char *path, const struct request *request, struct answer *answer,
                   struct error *err);

#endif
