/* SPDX-License-Identifier: BSD-3-Clause */
/* A server for one page and the questions that it asks, on 127.0.0.1. Whoever is on the machine can connect, and so can
 * every page that is open in the user's browser: what is asked is answered only to who has a secret. An address with a
 * token opens one page, which gets a secret for the token; the token is worth nothing from then on.
 *
 *   GET /        the page, which has no data in it; for everybody
 *   POST /open   the body is a token, the answer a secret
 *   POST /ask    Authorization: Bearer SECRET, as those below; the body is a question, the answer what home.ask says
 *   POST /token  the answer is a fresh token, for a page that opens another one
 *   GET /alive   never ends: a page holds it for as long as it is open
 *
 * Built where there is libmicrohttpd. Ordinary code, one thread: nothing happens but in http_step. */
#ifndef LOCUS_FACE_SERVE_HTTP_H
#define LOCUS_FACE_SERVE_HTTP_H

#include <stdbool.h>

#include "base/error.h"
#include "base/vec.h"

struct http;

/* Appends the answer to a question, a text.  err: fills it, in a sentence for who asked */
typedef int http_ask(void *context, const char *question, struct buf *out, struct error *err);

/* What is served. The page stays where it is. Its policy is that of its own meta element; the server says the same in a
 * header, and that the page may ask the server, and nobody may frame it. */
struct http_home {
    const char *page;
    http_ask *ask;
    void *context;
    unsigned port; /* 0: one that is free */
};

/* Begins to listen; *http is the caller's.
 * err: ERR_IO (the port is taken), ERR_MEMORY */
int http_open(const struct http_home *home, struct http **http, struct error *err);

/* Ends all connections and frees it. NULL is allowed. */
void http_close(struct http *http);

/* The port on which it listens. */
unsigned http_port(const struct http *http);

/* Appends an address that opens one page, with a fresh token in it. When many are open the oldest are worth nothing any
 * more.  err: ERR_IO (no random numbers) */
int http_put_address(struct http *http, struct buf *out, struct error *err);

/* For poll(2): the descriptor that is readable when there is work, and after how many milliseconds there is some
 * without that, -1: never. http_step does it. */
int http_fd(const struct http *http);
int http_wait_ms(const struct http *http);
void http_step(struct http *http);

/* How many pages were opened so far, and whether the last one was closed and none came for some seconds. */
size_t http_n_opened(const struct http *http);
bool http_has_ended(const struct http *http);

#endif
