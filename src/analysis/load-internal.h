/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of loading, for load.c and what a team adds to it (load-team.c) only. */
#ifndef LOCUS_ANALYSIS_LOAD_INTERNAL_H
#define LOCUS_ANALYSIS_LOAD_INTERNAL_H

#include "analysis/load-sides.h"
#include "analysis/load.h"
#include "analysis/older.h"
#include "analysis/processes.h"
#include "analysis/profile-list.h"
#include "analysis/team-tree.h"

struct load {
    const struct load_options *options;
    struct model *model;
    struct symbolizer *symbolizer;
    struct profile_list list;
    size_t n_mine; /* profiles that this process reads */
    struct ingest ingest;
    struct ingest_scratch *scratch; /* [job->n_threads] */
    struct load_sides sides;
    struct raw_tree tree;
    struct strtab process_keys;
    struct older older;
    uint32_t *older_scopes; /* [older.n_scopes] new numbers */
    struct spilled_values *values;
    size_t n_read;
    struct buf digests; /* of what was read, for the leader of the team */
    struct team_tree branches;
};

/* One profile while it is read. */
struct reading {
    struct load *load;
    struct workers *workers;
    size_t number; /* of the profile */
    size_t task;
    const char *path;
    struct side_file side;
    struct names_file id;
    char *program;
    bool is_identified;
    struct error trace_problem; /* why the thread has no trace; code 0: nothing is wrong */
    struct buf epochs;          /* for the digest */
    size_t n_epochs;
};

/* What depends on the order of the profiles, in their order: metrics, modules, side files.  err: ERR_MEMORY */
int load_take_epoch(struct reading *reading, const struct hpcrun_profile *head, const struct raw_ids *ids,
                    struct error *err);

/* Makes a note of why the thread has no trace, when its first epoch is taken. */
void load_note_trace(struct load *load, const struct error *problem, bool is_first);

/* Adds the thread of a profile that has been read.  err: ERR_MEMORY */
int load_take_thread(struct reading *reading, uint32_t directory, struct error *err);

/* The metrics of the values that were written.  err: ERR_MEMORY */
int load_map_metrics(struct load *load, struct error *err);

/* Collective, all: code and err are this member's so far, and the result is the same for all in that all go on or none.
 * Shares the leader's list and this member's part of it. */
int load_team_begin(struct load *load, int code, struct error *err);

/* After reading: the leader gets the trees and takes in the digests of all. */
int load_team_gather(struct load *load, int code, struct error *err);

/* When the leader has built the model: the others get as much of it as writing values takes. */
int load_team_return(struct load *load, int code, struct error *err);

#endif
