/* SPDX-License-Identifier: BSD-3-Clause */
/* What our own tools need of a session beside session.h: reports in the forms of a terminal, a file or a page, and the
 * check of what goes with a report before anything is opened. Ordinary code. */
#ifndef LOCUS_SESSION_FACE_H
#define LOCUS_SESSION_FACE_H

#include "answer/answer.h"
#include "answer/state.h"
#include "session/session.h"
#include "streams/recordings.h"

/* Where a report is shown. */
struct face {
    const char *form; /* "text", "csv" or "json" */
    bool fits_screen, is_verbose;
    bool color, unicode;
    unsigned columns;
};

/* Appends a report in a form, which it must have, and which is no page (face/page.h). kind: a report, or what is like
 * one (NULL: the one that the request names); nothing of the request is refused but its metric.  err: as session_ask */
int session_write(struct session *session, const struct report_kind *kind, const struct request *request,
                  const struct face *face, struct buf *out, struct error *err);

/* Opens recordings of the scheduler on one axis of time, in their order, without a database: such a session answers
 * what viewers ask of time lines, and what it is. A topology that cannot be taken is left out.  err: as stream_open,
 * ERR_USAGE (it is not known how two of them lie to each other) */
int session_open_recordings(const struct recordings *recordings, struct session **session, struct error *err);

/* The same of files about which nothing else is said.  err: as session_open_recordings */
int session_open_streams(const char *const *paths, size_t n_paths, struct session **session, struct error *err);

/* Adds the recordings that a database was made of, or lies beside, or has. Where that fails, what viewers ask of time
 * lines is answered with the reason.  err: as session_open_recordings */
int session_add_recordings(struct session *session, const struct recordings *recordings, struct error *err);

/* From here on things are named in full, so that they keep their names in newer sessions of the same program. Before
 * anything is asked. */
void session_name_in_full(struct session *session);

/* Gives the recordings of one session to another one, which has none yet. */
void session_move_recordings(struct session *from, struct session *to);

/* Sets who is told how far recordings have been read while they are opened; NULL: nobody. */
void session_on_progress(void (*told)(void *context, const char *path, const char *doing, uint64_t done, uint64_t all),
                         void *context);

/* Whether the recordings have samples of what a program did. */
bool session_has_samples(const struct session *session);

/* Why the topology that was given for a recording is left out; NULL: it is not. */
const char *session_refusal(const struct session *session, size_t stream);

/* Answers a request as packed columns (answer_print_packed), which it appends to out; the request is that of
 * session_ask_json.  err: as session_ask_json */
int session_ask_packed(struct session *session, const char *request, struct buf *out, struct error *err);

/* What has become more or less from one session to another, as `hpcquery diff --by` prints it: rows name, file, line,
 * module, before, after, change, percent and noise, the largest change first. metric: a column of both, NULL: the usual
 * one. *answer is the caller's.  err: as frames_diff and session_frame */
int session_compare(struct session *before, struct session *after, const char *by, const char *metric,
                    struct answer **answer, struct error *err);

/* Fills *words with what stands behind "hpcquery" and before the database for what a state shows.
 * err: as session_state_line */
int session_state_words(struct session *session, const char *state, struct state_words *words, struct error *err);

/* *cost: what one sample adds to a column of the database's frame, with or without callees; 0 when that is not known,
 * or every event counts.  err: ERR_MEMORY */
int session_sample_cost(const struct session *session, const char *column, double *cost, struct error *err);

/* Who checks a question: the kinds of questions that it knows, NULL behind the last one; and what it calls the long
 * form of an option, which may be followed by other names. */
struct asker {
    const struct report_kind *(*kind_at)(size_t i);
    const char *(*name_of)(enum ask what);
};

/* The options that a kind has, as a set of enum ask. */
uint64_t kind_options(const struct report_kind *kind);

/* Refuses what a kind does not have, or not where its rows are split, and what does not go together.  err: ERR_USAGE */
int asks_check(const struct asker *asker, const struct report_kind *kind, uint64_t given, struct error *err);

/* Refuses what --by does not take; by NULL: nothing.  err: ERR_USAGE */
int by_check(const struct report_kind *kind, const char *by, struct error *err);

/* Appends the words of a set of enum split_by: "cpu, core or node". */
void by_put_words(unsigned set, struct buf *out);

/* Checks a request, whose fields are all known; *kind: its report.  err: ERR_USAGE */
int request_check(const struct request *request, const struct report_kind **kind, struct error *err);

/* A request as text; the request borrows from the rest. */
struct request_text {
    struct request request;
    void *json;
    const char **derived;
    uint64_t *rows;
};

/* Parses the JSON of session_ask_json. request_text_fini frees it, also after a failure.
 * err: ERR_FORMAT, ERR_USAGE, ERR_MEMORY */
int request_of_json(const char *text, struct request_text *parsed, struct error *err);
void request_text_fini(struct request_text *parsed);

#endif
