/* SPDX-License-Identifier: BSD-3-Clause */
/* The runtime's side of the conversation with the companion: see arena/arena.h. */
#ifndef LOCUS_RUNTIME_CLIENT_H
#define LOCUS_RUNTIME_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a WELCOME brought. The descriptors belong to the caller. */
struct client_welcome {
    int arena_fd, recipe_fd, bell_fd;
    uint64_t arena_bytes, recipe_bytes;
};

/* What a child of fork takes over from its parent's arena. */
struct client_heritage {
    uint64_t arena_bytes; /* size of that arena, so of its own */
    uint64_t used_bytes;  /* as far as it is in use */
};

enum client_answer {
    CLIENT_WELCOME = 0,
    CLIENT_REFUSED,  /* the companion knows of the process, and has noted why it is not measured */
    CLIENT_NO_ANSWER /* nobody knows of it */
};

/* Says HELLO (or, with a heritage, FORK) and fills *welcome when that is the answer.  ctx: ordinary or hook; no malloc
 */
enum client_answer client_hello(const struct client_heritage *heritage, struct client_welcome *welcome);

/* Says END and waits for WRITTEN, but not for ever. False when there is nobody who could write: the companion has died,
 * or nothing leads to it.  ctx: ordinary; no malloc */
bool client_end(int exit_code, int rank);

#endif
