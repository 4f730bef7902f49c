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
    const struct export_job *job; /* with items */
    const char *path;             /* of the database, as it was given */
    const char *tree;             /* nodes: "code", "data" or "both", which NULL is too */
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

/* The model of a session; NULL: recordings have none. Borrowed. */
const struct model *session_model(const struct session *session);

/* What another tool wrote, as a frame and as a model. */
struct foreign;

/* Opens the file at path, which must live as long, and fills the empty model, whose rows of code come from it then:
 * foreign_close frees it, and the model is of no use behind that.  err: as frame_open, ERR_NOT_FOUND (no costs) */
int foreign_open(const char *path, struct model *model, struct foreign **foreign, struct error *err);
void foreign_close(struct foreign *foreign);

/* The frame of functions, and the model; borrowed. */
struct frame *foreign_frame(const struct foreign *foreign);
const struct model *foreign_model(const struct foreign *foreign);

/* Whether a report or question has an answer: what is about code, of which the model knows all. If not, and of rows
 * that are to be split, refuses it.  err: ERR_UNSUPPORTED */
int foreign_check(const char *path, const struct request *request, struct error *err);

/* Whether a question is about the frame, and not about the model: nodes, and what it is (session). */
bool foreign_has(const char *question);

/* Fills *answer with what such a question asks. answer_fini frees it, unless this fails; path must live as long.
 * err: ERR_NOT_FOUND (no such metric), as frame_values */
int foreign_answer(const struct foreign *foreign, const char *path, const struct request *request,
                   struct answer *answer, struct error *err);

#endif
