/* SPDX-License-Identifier: BSD-3-Clause */
/* Names: measurement directories, and the files in them, <exe>-RANK-THREAD-HOST-PID-GEN.suffix, as HPCToolkit names
 * them. Many processes on many hosts write into one directory without talking to each other; names_claim gives each a
 * name of its own, even when process ids are used again. Ordinary code.
 *
 * The room: names.c has the names, and the others stand on it: pending.c knows what is being written or waits
 * elsewhere, runs.c moves files together and may call both. */
#ifndef LOCUS_MEASUREMENT_NAMES_H
#define LOCUS_MEASUREMENT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define NAMES_RANDOM_FROM 4     /* from this generation on the host id is random */
#define NAMES_MAX_GENERATION 11 /* the last one that is tried */

/* The fields of a file name. host_id: names_host_id of its host. suffix: "hpcrun", "hpctrace", "log", "objects",
 * "events" */
struct names_file {
    char exe[256];
    uint32_t rank, thread, host_id, pid;
    int generation;
    char suffix[16];
};

/* Job id of the batch system in this process's environment (LSF, Cobalt, PBS, Slurm, SGE), NULL when none; borrowed. */
const char *names_job_id(void);

/* A number that tells this host from others: the one that the administrator has set with sethostid(2), else a hash of
 * the host's name and /etc/machine-id. Not gethostid(2): it asks the name service, which is slow on a node without one,
 * it crashes when memory runs out, and it gives the same id to all hosts whose own name resolves to 127.0.1.1. The
 * first call decides: the host may be renamed later. Never 0.  ctx: ordinary, single-threaded */
uint32_t names_host_id(void);

/* Default measurement directory "./hpctoolkit-<exe>-measurements[-<job_id>]" for a program path, malloc'ed, NULL when
 * out of memory. out_path, when not NULL or empty, is taken instead. job_id may be NULL; '/' in it becomes '_'. */
char *names_directory(const char *out_path, const char *program, const char *job_id);

/* Makes the directory (mode 0755; fine when it exists) and its real path, malloc'ed, in *real_path. A directory of
 * a user other than root, or one behind such a user's link, is refused unless allows_foreign.
 * err: ERR_IO (cannot be made, not a directory, not writable, foreign), ERR_MEMORY */
int names_directory_make(const char *directory, bool allows_foreign, char **real_path, struct error *err);

/* Whether only root and our own user can put another directory in the place of the one at path (absolute, real).
 * ctx: ordinary */
bool names_directory_is_safe(const char *path);

/* "<dir>/<name>" of a file, malloc'ed, NULL when out of memory. directory NULL: the name alone. A long exe is cut so
 * that the name has at most 255 bytes. */
char *names_path(const char *directory, const struct names_file *file);

/* Splits the last part of a path into its fields.  err: ERR_FORMAT when it has another form */
int names_parse(const char *path, struct names_file *file, struct error *err);

/* The files of a directory with this suffix, by name, in *files [*n], malloc'ed; hidden ones are left out.
 * err: ERR_IO, ERR_FORMAT (a name of another form), ERR_MEMORY */
int names_list(const char *directory, const char *suffix, struct names_file **files, size_t *n, struct error *err);

/* Claims a name: creates the .log of file (exe, rank, host_id, pid filled; thread becomes 0) in directory and returns
 * its descriptor (O_WRONLY, CLOEXEC). When a name is taken, the generation is counted up; from NAMES_RANDOM_FROM on the
 * host id is random (containers that share a host id and process ids). file then holds the fields for all files
 * of this process; only thread and suffix differ.  err: ERR_IO (also after NAMES_MAX_GENERATION), ERR_MEMORY */
int names_claim(const char *directory, struct names_file *file, struct error *err);

#endif
