/* SPDX-License-Identifier: BSD-3-Clause */
/* Directories of this node's own through which measurements go: what the companion does with them, and what whoever
 * finds them after its death must know. Ordinary code. */
#ifndef LOCUS_HPCRUN_COMPANION_DETOUR_H
#define LOCUS_HPCRUN_COMPANION_DETOUR_H

#include "companion-state.h"
#include "measurement/runs.h"

/* What lies beside the arenas, in native byte order: only the same build reads it, on the same machine. */
struct detour_setup {
    char version[32];
    uint64_t size_bytes; /* sizeof(struct detour_setup) */
    struct companion_setup setup;
};

/* Makes the detour directory below place, unless there is one; false with a line in the log when that fails. */
bool companion_detour_start(struct companion *c, const char *place);

/* Gives process a directory of its own in it; false when that fails. */
bool companion_detour_process(struct companion *c, struct companion_process *process);

/* Removes the directory of process: it is empty, or what is in it is not wanted any more. */
void companion_detour_leave(struct companion_process *process);

/* The arena of process has been turned into files. */
void companion_detour_drop_arena(const struct companion_process *process);

/* In a worker: moves the files of process on. Returns an exit status, and why in process->shared. */
int companion_detour_gather(const struct companion *c, const struct companion_process *process);

/* Tells once, in the log and, where the launcher waits for us, on the terminal, that the measurement directory does not
 * take what is meant for it, and where it is now. why: a sentence without its full stop */
void companion_trouble(struct companion *c, const char *why);

/* Last of all: moves on what can be moved, and removes the directory when it is empty. */
void companion_detour_end(struct companion *c);

/* Moves everything in the detour directory at path into target, files of lines too.  err: ERR_IO, ERR_MEMORY */
int detour_gather(const char *path, const char *target, struct gather_result *result, struct error *err);

#endif
