/* SPDX-License-Identifier: BSD-3-Clause */
/* Work in parallel whose result does not depend on who did it when: numbered tasks are taken in order, and what each of
 * them has to do in the order of the numbers is done in its turn. Ordinary code. */
#ifndef LOCUS_BASE_WORKERS_H
#define LOCUS_BASE_WORKERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

/* How a whole job is done, phase by phase. */
struct job {
    size_t n_threads;        /* at least 1 */
    const struct team *team; /* the processes that share the work, NULL for this one alone */
    const char *scratch;     /* directory for temporary files */
    /* Told how many tasks of a phase are done, first 0 of them, by one thread at a time; may be NULL. */
    void (*progress)(void *context, const char *phase, size_t n_done, size_t n_tasks);
    /* Asked between tasks by any thread; true ends the job with ERR_USAGE and the text "interrupted". May be NULL. */
    bool (*stop)(void *context);
    void *context;
};

struct workers {
    const struct job *job;
    const char *phase; /* for progress */
    size_t n_tasks;
    /* Task i on thread number `worker`; anything but 0 ends the whole. May call workers_turn once. */
    int (*task)(void *context, struct workers *workers, size_t worker, size_t i, struct error *err);
    void *context;
    /* Of workers_run */
    pthread_mutex_t mutex;
    pthread_cond_t advanced;
    size_t next_task, turn, n_done;
    struct error error;
    bool failed;
};

/* Runs all tasks; the caller's thread is one of the workers. Fill the members up to context, the rest zero.
 * Returns 0, or the code of the first task (by number among those begun) that failed.  err: of that task, ERR_MEMORY */
int workers_run(struct workers *workers, struct error *err);

/* Waits until all tasks before i have called workers_turned or have ended. False when the whole has failed. */
bool workers_turn(struct workers *workers, size_t i);

/* Lets the task after i have its turn. A task that does not call it does so by ending. */
void workers_turned(struct workers *workers, size_t i);

/* False, and *err says so, when the job is to end. For phases that are no tasks. */
bool job_goes_on(const struct job *job, struct error *err);

/* Tells progress that a phase without tasks begins. */
void job_begin(const struct job *job, const char *phase);

/* Processors that this process may run on, at least 1. */
size_t workers_processors(void);

/* --- a team of processes --- */

/* Several processes that do one job together, such as the ranks of an MPI program. Who carries the messages is not
 * known here; a job without a team is done by one process alone. All members call the collective operations in the same
 * order, each from one thread. Ordinary code. */

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
