/* SPDX-License-Identifier: BSD-3-Clause */
/* Work in parallel whose result does not depend on who did it when: numbered tasks are taken in order, and what each of
 * them has to do in the order of the numbers is done in its turn. Ordinary code. */
#ifndef LOCUS_BASE_WORKERS_H
#define LOCUS_BASE_WORKERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/team.h"

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

#endif
