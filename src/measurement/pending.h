/* SPDX-License-Identifier: BSD-3-Clause */
/* "Still being written": a marker file `.writing-<hostid>-<pid>` in a measurement directory, held (flock) by the
 * companion process as long as it has or may get something to write, so that a reader that comes right after the
 * program's end waits instead of reading half. A marker whose owner has died is stale: its lock is free. */
#ifndef LOCUS_MEASUREMENT_PENDING_H
#define LOCUS_MEASUREMENT_PENDING_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/* A marker being held. fd -1: none. */
struct pending_mark {
    int fd;
    bool is_writing; /* as last noted */
    pid_t program;
    char path[4352];
};

/* Creates and locks the marker of this process in dir. program: pid of the launched program, 0 when not known.
 * err: ERR_IO (mark->fd is -1 then, and the other calls do nothing) */
int pending_mark_open(struct pending_mark *mark, const char *dir, pid_t program, struct error *err);

/* Notes whether files are being written right now, or only a program (pid, 0 when it is gone) still runs. */
void pending_mark_set(struct pending_mark *mark, bool is_writing, pid_t program);

/* Removes the marker. */
void pending_mark_close(struct pending_mark *mark);

/* Whether dir has markers of this host whose owners have died. */
bool pending_has_stale(const char *dir);

/* Removes the markers of this host whose owners have died. */
void pending_mark_sweep(const char *dir);

enum pending_state {
    PENDING_NONE = 0, /* complete */
    PENDING_RUNNING,  /* a program still runs: what is there are checkpoints */
    PENDING_WRITING   /* files were still being written when the time was over */
};

/* Waits until nothing in dir is being written any more, at most timeout_ms; does not wait for programs that still
 * run. Stale markers are ignored.  ctx: ordinary, sleeps in steps of 20 ms */
enum pending_state pending_wait(const char *dir, int timeout_ms);

#endif
