/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcrun as the program's parent, where it cannot be replaced by it: forwards signals, stops and continues with it,
 * ends like it, and waits until the companion has written. Ordinary code. */
#ifndef LOCUS_HPCRUN_KEEPER_H
#define LOCUS_HPCRUN_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/* Both sides of one fork. */
struct keeper {
    bool is_child;
    pid_t child;
    int child_pidfd;
    int start_read_fd, start_write_fd; /* the child waits here until the companion serves */
    int done_read_fd, done_write_fd;   /* closed by the companion when all is written */
};

/* Forks. The child has is_child set, the parent's signals are blocked until keeper_run.  err: ERR_IO */
int keeper_fork(struct keeper *keeper, struct error *err);

/* In the child: waits until the parent has started the companion; true when it is to be measured. */
bool keeper_wait_for_start(struct keeper *keeper);

/* In the parent: lets the child go (is_measured: under the runtime), serves it to its end, then waits for the
 * companion. Returns the wait status of the child. */
int keeper_run(struct keeper *keeper, bool is_measured);

/* Dies of the signal that killed the child, without a core file of our own; returns when it ended by itself. */
void keeper_end_like(int wait_status);

/* The exit status that a shell would show. */
int keeper_exit_status(int wait_status);

#endif
