/* SPDX-License-Identifier: BSD-3-Clause */
/* How hpcviewer serves a session to browsers, alone or beside a terminal. Ordinary code. */
#ifndef LOCUS_TOOLS_HPCVIEWER_SERVE_H
#define LOCUS_TOOLS_HPCVIEWER_SERVE_H

#include "face/term/term.h"

struct served {
    struct session *session;
    unsigned port; /* 0: one that is free */
    bool without_browser;
    int stop_fd;       /* readable: end */
    const char *state; /* that a browser is to show; NULL: the first one */
};

/* Why no browser is started; NULL: one is. */
const char *serve_lacks_browser(const struct served *served);

/* Serves until the last page is closed, or stop_fd says so.  err: ERR_IO, ERR_MEMORY, ERR_UNSUPPORTED (it was built
 * without what it takes) */
int serve(struct served *served, struct error *err);

/* Gives a terminal the way to a browser, which is begun when somebody asks for it; and ends that. */
void serve_beside(struct served *served, struct term_host *host);
void serve_end_beside(void);

#endif
