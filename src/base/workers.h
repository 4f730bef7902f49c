/* SPDX-License-Identifier: BSD-3-Clause */
/* Parallel work whose result does not depend on which thread did what and when. Threads take numbered tasks in order;
 * what a task must do in the order of the numbers it does in its turn. Ordinary code. */
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
    /* Called with the number of tasks of a phase that are done, first 0, by one thread at a time; may be NULL. */
    void (*progress)(void *context, const char *phase, size_t n_done, size_t n_tasks);
    /* Called between tasks by any thread; returning true ends the job with ERR_USAGE and the text "interrupted". May be
     * NULL. */
    bool (*stop)(void *context);
    void *context;
};

struct workers {
    const struct job *job;
    const char *phase; /* for progress */
    size_t n_tasks;
    /* Task i on thread number `worker`; any result but 0 ends the job. May call workers_turn once. */
    int (*task)(void *context, struct workers *workers, size_t worker, size_t i, struct error *err);
    void *context;
    /* set by workers_run */
    pthread_mutex_t mutex;
    pthread_cond_t advanced;
    size_t next_task, turn, n_done;
    struct error error;
    bool failed;
};

/* Runs all tasks; the caller's thread is one of the workers. Fill the members up to context, the rest zero.
 * Returns 0, or the code of the first task (by number among those begun) that failed.  err: of that task, ERR_MEMORY */
int workers_run(struct workers *workers, struct error *err);

/* Waits until all tasks before i have called workers_turned or have ended. False when the job has failed. */
bool workers_turn(struct workers *workers, size_t i);

/* Gives the task after i its turn. For a task that does not call it, this happens when it ends. */
void workers_turned(struct workers *workers, size_t i);

/* False, with *err filled, when the job should end. For phases without tasks. */
bool job_goes_on(const struct job *job, struct error *err);

/* Reports the start of a phase without tasks to progress. */
void job_begin(const struct job *job, const char *phase);

/* Processors that this process may run on, at least 1. */
size_t workers_processors(void);

/* Bytes of memory that this process may still take before others have to give way: what is free on the machine, or less
 * where a control group has a limit. 0: not known.  ctx: ordinary */
uint64_t workers_free_bytes(void);

/* --- a team of processes --- */

/* Several processes that do one job together, such as the ranks of an MPI program. How messages travel is not known
 * here; a job without a team is done by one process alone. All members call the collective operations in the same
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

/* True in the process that leads, and in one without a team. */
static inline bool team_leads(const struct team *team)
{
    return !team || team->rank == 0;
}

/* Whether there is anybody to share the work with. */
static inline bool team_is_several(const struct team *team)
{
    return team && team->n_ranks > 1;
}

/* Items of a list are dealt out in rounds: each member gets one of every n_ranks items, in another order each round, so
 * that items of a kind that recurs regularly are spread evenly. The member that has item i; how many of the n items
 * this member has; the k-th of them. */
size_t team_owner(const struct team *team, size_t i);
size_t team_count(const struct team *team, size_t n);
size_t team_item(const struct team *team, size_t k);

/* Collective: the code of this member, or, where it is 0 and another's is not, ERR_USAGE with the text TEAM_ENDED, so
 * that all end together and one of them says why. */
int team_agree(const struct team *team, int code, struct error *err);

#define TEAM_ENDED "another process of the team has ended"

#endif
