/* SPDX-License-Identifier: BSD-3-Clause */
/* Several processes that do one job together, such as the ranks of an MPI program. Who carries the messages is not
 * known here; a job without a team is done by one process alone. All members call the collective operations in the same
 * order, each from one thread. Ordinary code. */
#ifndef LOCUS_BASE_TEAM_H
#define LOCUS_BASE_TEAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

enum team_operation { TEAM_SUM, TEAM_OR, TEAM_LEAST };

struct team {
    size_t rank, n_ranks; /* rank 0 leads */
    bool any_thread;      /* send and receive may be called from any thread, from one at a time */
    /* Carries bytes to another member, which receives them at the end of *out. A broken connection ends the process. */
    void (*send)(const struct team *team, size_t to, const void *bytes, size_t len_bytes);
    void (*receive)(const struct team *team, size_t from, struct buf *out);
    /* Combines the arrays [n] of all members, element by element; all get the result. */
    void (*combine)(const struct team *team, int64_t *numbers, size_t n, enum team_operation operation);
    /* Appends the leader's *text to that of all others. */
    void (*broadcast)(const struct team *team, struct buf *text);
};

/* True in the process that leads, which is also one without a team. */
static inline bool team_leads(const struct team *team)
{
    return !team || team->rank == 0;
}

/* Whether there is anybody to share the work with. */
static inline bool team_is_several(const struct team *team)
{
    return team && team->n_ranks > 1;
}

/* Items of a list are dealt out to the members, each of n_ranks that follow each other to another one, and differently
 * each time, so that every member gets as many of any kind that comes back regularly. Which member has item i; how many
 * of the n items this member has; the k-th of them. */
size_t team_owner(const struct team *team, size_t i);
size_t team_count(const struct team *team, size_t n);
size_t team_item(const struct team *team, size_t k);

/* Collective: the code of this member, or, where it is 0 and another's is not, ERR_USAGE with the text TEAM_ENDED, so
 * that all end together and one of them says why. */
int team_agree(const struct team *team, int code, struct error *err);

#define TEAM_ENDED "another process of the team has ended"

#endif
