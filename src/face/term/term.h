/* SPDX-License-Identifier: BSD-3-Clause */
/* A session on a terminal: a screen with a list and what is known of the chosen row, or the same as lines for who
 * listens to them. It asks the session and shows its answers, as the page for browsers does, with the same words for
 * what is looked at. Ordinary code, one thread; terminal_restore_sig runs in signal handlers.
 *
 * The room: term.c has the loop and its keys; screen.c draws (with ncursesw), plain.c prints lines; look.c keeps what
 * is looked at; pane.c has lists of rows, which a view-*.c fills; ask.c reads answers, line.c makes lines. */
#ifndef LOCUS_FACE_TERM_TERM_H
#define LOCUS_FACE_TERM_TERM_H

#include <poll.h>
#include <stdbool.h>

#include "base/vec.h"
#include "session/session.h"

/* Who runs the screen. Functions may be NULL. */
struct term_host {
    void *context;
    /* Opens a state in a browser, and appends lines about how one gets there.  err: a sentence */
    int (*browse)(void *context, const char *state, struct buf *says, struct error *err);
    /* What else is waited for: fills a descriptor, and after how many milliseconds there is work without it, -1: never;
     * false: nothing. step does the work. */
    bool (*poll)(void *context, struct pollfd *fd, int *wait_ms);
    void (*step)(void *context);
    int stop_fd;                  /* readable: end; -1: none */
    const struct term_live *live; /* NULL: the session stays as it is */
};

/* A session that is renewed, since its program runs. All get the host's context; none may be NULL. */
struct term_live {
    /* Whether there is a newer one, after a step; and that one: of the one before nothing may be in use. NULL: it
     * cannot be had, and the one before stays. */
    bool (*is_newer)(void *context);
    struct session *(*renew)(void *context);
    /* Appends how far the program is, in a few words, or in full. */
    void (*tell)(void *context, bool in_full, struct buf *out);
    /* Measurement directory i of the programs, NULL behind the last. */
    const char *(*directory)(void *context, size_t i);
    /* Renews it no more, or again. */
    void (*hold)(void *context);
    /* Whether its owner has paused the sampling; asks for something as hpcrun --control does, and appends what came of
     * it.  err: a sentence */
    bool (*is_paused)(void *context);
    int (*control)(void *context, const char *command, struct buf *says, struct error *err);
};

/* What is wanted of it. */
struct term_choice {
    bool is_plain;         /* lines, and no escape sequences */
    const char *keys;      /* that are pressed first, as in the list of keys; NULL: none */
    struct session *other; /* what there was before, for Compare; NULL: nothing */
    const char *paths[2];  /* of the session and the other one, for command lines */
    const char *measured;  /* the measurement that paths[0] is to be made of; NULL: that is there */
};

/* Shows a session until somebody quits or stop_fd says so. Command lines that were copied are printed at the end.
 * err: ERR_UNSUPPORTED (no screen is possible here), ERR_IO, ERR_MEMORY */
int term_run(struct session *session, const struct term_choice *choice, const struct term_host *host,
             struct error *err);

/* Why there can be no screen here; NULL: there can. */
const char *term_lacks(void);

/* Makes the terminal what it was before there was a screen, if there is one; for who ends the program in a hurry. */
void terminal_restore_sig(void);

#endif
