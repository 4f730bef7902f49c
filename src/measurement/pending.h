/* SPDX-License-Identifier: BSD-3-Clause */
/* "Still being written": a marker file `.writing-<hostid>-<pid>` in a measurement directory, held (flock) by the
 * companion process as long as it has or may get something to write, so that a reader that comes right after the
 * program's end waits instead of reading half. A marker whose owner has died is stale: its lock is free. */
#ifndef LOCUS_MEASUREMENT_PENDING_H
#define LOCUS_MEASUREMENT_PENDING_H

#include <stdbool.h>
#include <stdint.h>
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

/* Removes the markers of this host whose owners have died; not those of programs that run on without them. */
void pending_mark_sweep(const char *dir);

/* About when the first of the programs began that dir has markers of, by CLOCK_REALTIME; 0: it has none. */
uint64_t pending_begun_ns(const char *dir);

/* A companion process that does nothing any more for its program, which runs on. */
struct pending_trouble {
    pid_t companion, program; /* program: 0, it is not known */
    bool is_dead;             /* else it is stopped */
};

/* Whether dir has the marker of such a companion of this host; of one that has died, if there are both. */
bool pending_find_trouble(const char *dir, struct pending_trouble *trouble);

enum pending_state {
    PENDING_NONE = 0, /* complete */
    PENDING_RUNNING,  /* a program still runs: what is there are checkpoints */
    PENDING_WRITING   /* files were still being written when the time was up */
};

/* Waits until nothing in dir is being written any more, at most timeout_ms; does not wait for programs that still
 * run. Stale markers are ignored.  ctx: ordinary, sleeps in steps of 20 ms */
enum pending_state pending_wait(const char *dir, int timeout_ms);

/* Notes that the files of directory to are a copy, made while their program went on, of what was in `from`.
 * err: ERR_IO */
int pending_copy_note(const char *from, const char *to, struct error *err);

/* Whether dir is such a copy; from [n_from]: of which directory, at most so much of it as there is room. */
bool pending_is_copy(const char *dir, char *from, size_t n_from);

struct names_file;

/* Makes new the same file as old, which is complete: by another name of it, which stays when old goes, or, on another
 * file system, by a symbolic link. Whether it is there now. */
bool pending_share(const char *old, const char *new);

/* Adds to a copy what else is in the directory `from` (absolute) by links: files of processes that have ended, and what
 * those of other hosts have saved. is_left_out: whether a file is copied in another way; its context. Returns the
 * number of profiles. */
size_t pending_copy_rest(const char *from, const char *to,
                         bool (*is_left_out)(const struct names_file *file, const void *context), const void *context);

/* --- files that wait elsewhere --- */

/* Detours. A detour is a directory elsewhere, such as on the node's own disk, where files are written first because the
 * measurement directory is full, slow or refuses them; the companion moves them on later. Each companion has one,
 * `locus-detour-XXXXXX`, with a directory for each process that holds its files and perhaps its arena. A lock in it
 * shows that the companion is alive, a text names the measurement directory, and a pointer `.detour-HOST-PID` in the
 * measurement directory shows readers that something is still elsewhere: a symbolic link, because that fits onto a full
 * disk. Ordinary code. */

#define DETOUR_PATH_MAX 4352
#define DETOUR_ARENA "arena"         /* name of the arena in a process's directory */
#define DETOUR_LEFT_PREFIX ".arena-" /* in the measurement directory: arenas of processes whose companion had died */
#define DETOUR_SETUP "setup"         /* name of the file with what else is needed to make files of an arena */

/* A detour that this process owns. path empty: none. */
struct detour {
    char path[DETOUR_PATH_MAX];
    char target[DETOUR_PATH_MAX];
    char pointer[DETOUR_PATH_MAX]; /* in the measurement directory, empty while there is none */
    int lock_fd;
};

/* Where such directories are made when nobody names a place: TMPDIR, else /tmp. */
const char *detour_default_place(void);

/* Makes one below place for files that belong into target (absolute).  err: ERR_IO (detour->path stays empty) */
int detour_open(struct detour *detour, const char *place, const char *target, struct error *err);

/* Makes the pointer unless it is there: files are about to be written to the detour. Without permission nothing
 * happens. */
void detour_point(struct detour *detour);

/* Removes the pointer when no files are left to be moved. */
void detour_unpoint(struct detour *detour);

/* Removes the directory when it is empty, and the pointer with it. Otherwise both stay. Releases the lock. */
void detour_close(struct detour *detour);

/* Reads to which measurement directory the detour at path belongs; false when path is not a detour. */
bool detour_target(const char *path, char target[DETOUR_PATH_MAX]);

/* Calls visit with each detour directory below place (or place itself) that belongs to target (NULL: to anything) and
 * whose companion is dead; the directory is locked meanwhile. Stops at and returns the first value that is not 0. */
int detour_each(const char *place, const char *target, int (*visit)(void *ctx, const char *path), void *ctx);

/* Removes the detour directory at path and the pointers to it in target, when only our own notes are left in it. */
bool detour_remove(const char *path, const char *target);

/* The number of arenas that processes have left in the measurement directory because their companion had died. */
unsigned detour_count_left(const char *directory);

/* Calls visit with the place ("HOST:PATH") that each pointer in the measurement directory names. */
void detour_each_pointer(const char *directory, void (*visit)(void *ctx, const char *place), void *ctx);

#endif
