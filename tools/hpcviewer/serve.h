/* SPDX-License-Identifier: BSD-3-Clause */
/* How hpcviewer serves a session to browsers, alone or beside a terminal. Ordinary code. */
#ifndef LOCUS_TOOLS_HPCVIEWER_SERVE_H
#define LOCUS_TOOLS_HPCVIEWER_SERVE_H

#include <stdint.h>

#include "face/term/term.h"

struct live_view;

struct served {
    struct session *session;
    struct live_view *live; /* whose session it is, which is renewed; NULL: it stays */
    unsigned port;          /* 0: one that is free */
    bool without_browser;
    int stop_fd;       /* readable: end */
    const char *state; /* that a browser is to show; NULL: the first one */

    /* while it is still being opened: what is done, of which file and how far; and whether a page wants it to end */
    const char *path, *doing;
    uint64_t done, all;
    bool is_left;
};

/* --- live.c --- */

/* Begins to follow the processes that words mean (borrowed), whose session is that of *served from then on.
 * err: as follow_begin and session_open */
int live_view_begin(struct live_view **live, const char *const *words, struct served *served, struct error *err);
/* Shows it on the terminal, with browsers beside that.  err: as term_run */
int live_view_show(struct live_view *live, const struct term_choice *choice, struct error *err);
/* Does what there is to be done, and after how many milliseconds there is more, -1: never. */
void live_view_step(struct live_view *live);
int live_view_wait_ms(const struct live_view *live);
/* Answers what a page asks of it: {"report":"live"}, with "take":true where it wants the newer session, and
 * "control":COMMAND where something is wanted of the programs. The answer is JSON, {} where live is NULL. false: the
 * question is another one */
bool live_view_answer(struct live_view *live, const char *question, struct buf *out);
/* Answers what a page asks first: whether there is something to be looked at, {"report":"opening"}, and with
 * "end":true that it is not waited for. The answer is JSON. false: the question is another one */
bool live_answer_opening(struct served *served, const char *question, struct buf *out);
/* NULL is allowed. */
void live_view_end(struct live_view *live);

/* --- serve.c --- */

/* Why no browser is started; NULL: one is. */
const char *serve_lacks_browser(const struct served *served);

/* Serves until the last page is closed, or stop_fd says so.  err: ERR_IO, ERR_MEMORY, ERR_UNSUPPORTED (it was built
 * without what it takes) */
int serve(struct served *served, struct error *err);

/* Called now and then while it is being opened: serves pages that say how far it is. serve goes on with them.
 * err: as serve */
int serve_opening(struct served *served, struct error *err);

/* Ends what serve_opening has begun, if serve did not. */
void serve_end_opening(void);

/* Gives a terminal the way to a browser, which is begun when somebody asks for it; and ends that. */
void serve_beside(struct served *served, struct term_host *host);
void serve_end_beside(void);

#endif
