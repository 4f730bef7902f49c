/* SPDX-License-Identifier: BSD-3-Clause */
/* Which runs a measurement directory holds: the file .runs in it, to which each launch adds a line. It shows whether a
 * launch belongs to a run that has begun there (ranks, a program that starts hpcrun itself), and tells reports how many
 * runs there were. Ordinary code. */
#ifndef LOCUS_MEASUREMENT_RUNS_H
#define LOCUS_MEASUREMENT_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "measurement/names.h"

#define RUNS_FILE ".runs"
#define RUNS_ID_MAX 192

/* One launch of hpcrun. */
struct run {
    char id[RUNS_ID_MAX]; /* without blanks; where is_shared, the same for all launches that belong together */
    bool is_shared;       /* the launcher of the ranks gave them an id in common */
    int rank;             /* -1: none */
    int n_ranks;          /* 0: not known */
    char place[96];       /* host and parent process, which the ranks of one host have in common */
};

/* Adds the run to the directory, as its first one when is_first (which fails with ERR_NOT_FOUND where there is one
 * already).  err: ERR_IO, ERR_NOT_FOUND */
int runs_add(const char *directory, const struct run *run, bool is_first, struct error *err);

/* Notes that a rank has joined the last run there.  err: ERR_IO */
int runs_join(const char *directory, const struct run *run, struct error *err);

/* Notes that the program of a rank has ended, and its measurement is complete.  err: ERR_IO */
int runs_end(const char *directory, const struct run *run, struct error *err);

/* Whether the run is the first rank of the last run of the text; true when it is not a rank of it. */
bool runs_is_first(const char *text, const struct run *run);

/* Whether its end was the last one that the last run of the text waited for: all ranks that have begun have ended, and
 * no other end was noted after it, so that this holds for only one of them. True when it is not a rank of it. *n_begun:
 * how many ranks have begun. */
bool runs_is_last(const char *text, const struct run *run, int *n_begun);

/* Adds to the directory what a run was: JSON, an object on one line.  err: ERR_IO, ERR_MEMORY */
int runs_describe(const char *directory, const char *id, const char *json, struct error *err);

/* Appends these objects, that of each run of the text (see runs_text) which has one, with ",\n" between them: the first
 * that names the run, or else one of ranks that joined it under an id of their own. out->failed: out of memory */
void runs_put_descriptions(const char *text, struct buf *out);

/* The text of the file, empty when there is none.  err: ERR_IO, ERR_MEMORY */
int runs_text(const char *directory, struct buf *text, struct error *err);

/* Whether the run belongs to the last one of the text: by its id, or as a rank that is still missing there. */
bool runs_belongs(const char *text, const struct run *run);

/* Whether a run of this id is among those of the text. */
bool runs_has(const char *text, const char *id);

/* The id of the last run of the text; false when there is none. */
bool runs_last(const char *text, char id[RUNS_ID_MAX]);

/* Adds the ids of all runs of the directory to ids, each once.  err: ERR_MEMORY */
int runs_list(const char *directory, struct strtab *ids, struct error *err);

/* --- bringing files together --- */

/* Moving the files of processes from one measurement directory into another: from one on a node's own disk, where they
 * were written, into the one that all nodes share. New names are claimed there, so that many may write at once. An
 * interrupted move continues where it was when it is called again. Ordinary code. */

struct gather_result {
    size_t n_processes, n_files; /* that were moved whole */
    uint64_t n_bytes;
};

/* Moves the files of all processes from the directory from to the directory to; other files stay. The files of a
 * process are removed from the first when all of them are in the second, its profiles last. result is added to, on
 * failure, too.
 * err: ERR_IO, ERR_MEMORY (the text names the file; what is there stays as it is) */
int gather_files(const char *from, const char *to, struct gather_result *result, struct error *err);

/* Notes that the files of name in from replace those that the other directory already has under the name claimed.
 * err: ERR_IO, ERR_MEMORY */
int gather_note(const char *from, const struct names_file *name, const struct names_file *claimed, struct error *err);

#endif
