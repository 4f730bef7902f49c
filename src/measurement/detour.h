/* SPDX-License-Identifier: BSD-3-Clause */
/* Directories on a node's own disk that hold measurements on their way into a measurement directory: one per
 * companion, `locus-detour-XXXXXX`, in it one directory per process, with its files and perhaps its arena. A lock says
 * that the companion lives; a text, where everything belongs; and a pointer `.detour-HOST-PID` in the measurement
 * directory tells readers that something is still elsewhere: a symbolic link, which fits onto a disk that is full.
 * Ordinary code. */
#ifndef LOCUS_MEASUREMENT_DETOUR_H
#define LOCUS_MEASUREMENT_DETOUR_H

#include <stdbool.h>

#include "base/error.h"

#define DETOUR_PATH_MAX 4352
#define DETOUR_ARENA "arena" /* name of the arena in a process's directory */
#define DETOUR_LEFT_PREFIX ".arena-" /* in the measurement directory: arenas of processes whose companion had died */
#define DETOUR_SETUP "setup" /* name of what else must be known to write its files */

/* One that we own. path empty: none. */
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

/* Makes the pointer, unless it is there: something is about to be on its way. Without rights nothing happens. */
void detour_point(struct detour *detour);

/* Removes the pointer when nothing is on its way any more. */
void detour_unpoint(struct detour *detour);

/* Removes the directory when it is empty, and the pointer with it. Otherwise both stay. Gives the lock up. */
void detour_close(struct detour *detour);

/* Reads where the files in the detour directory at path belong; false when it is none. */
bool detour_target(const char *path, char target[DETOUR_PATH_MAX]);

/* Calls visit with each detour directory below place (or place itself) that belongs to target (NULL: to anything) and
 * whose companion is dead; the directory is locked meanwhile. Stops at and returns the first value that is not 0. */
int detour_each(const char *place, const char *target, int (*visit)(void *ctx, const char *path), void *ctx);

/* Removes the detour directory at path and the pointers to it in target, when nothing is left in it but our notes. */
bool detour_remove(const char *path, const char *target);

/* Arenas that processes have left in the measurement directory because their companion had died. */
unsigned detour_count_left(const char *directory);

/* Calls visit with the place ("HOST:PATH") that each pointer in the measurement directory names. */
void detour_each_pointer(const char *directory, void (*visit)(void *ctx, const char *place), void *ctx);

#endif
