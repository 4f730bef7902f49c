/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcrun --status: how far measured processes are, while they run. Ordinary code. */
#ifndef LOCUS_HPCRUN_STATUS_H
#define LOCUS_HPCRUN_STATUS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"
#include "collect/live.h"

/* A measured process, as its companion describes it. */
struct status_process {
    pid_t pid;
    char dir[ARENA_PATH_MAX]; /* measurement directory */
    const void *arena;        /* read-only mapping */
    uint64_t size_bytes;
    struct live live, before; /* the second look and the first */
    double seconds;           /* between them */
    bool is_foreign;          /* another user's: what it names is not opened */
    bool is_readable;
};

struct status_list {
    struct status_process *processes; /* [n] by id */
    size_t n, capacity;
    unsigned n_silent;     /* companions that did not answer in time */
    struct strtab skipped; /* sentences about companions of other users that did not answer as they should */
};

/* Adds the processes of the companion of user uid at the other end of fd. Another user's (also root's, for
 * others) is not waited for long, nor listened to without end.  err: ERR_MEMORY */
int status_ask(struct status_list *list, int fd, uid_t uid, struct error *err);
void status_fini(struct status_list *list);

/* A variable with a name for people. */
struct status_variable {
    char name[192], site[320];
    const char *class;
    uint64_t n_samples;
};

/* One process in full, or a line for each. */
void status_print_one(const struct status_process *process, FILE *out);
void status_print_list(const struct status_list *list, FILE *out);
void status_print_json(const struct status_list *list, FILE *out);

/* Answers hpcrun --status: operand is a process id, a measurement directory, or NULL for all. Returns the tool's exit
 * status, 1 after a message about a process that is not measured. */
int status_run(const char *operand, bool is_json, FILE *out);

#endif
