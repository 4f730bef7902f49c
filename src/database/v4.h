/* SPDX-License-Identifier: BSD-3-Clause */
/* The version 4 form of a database: meta.db, profile.db, cct.db and metrics/default.yaml. The data-centric tree has an
 * entry point of its own. Ordinary code. */
#ifndef LOCUS_DATABASE_V4_H
#define LOCUS_DATABASE_V4_H

#include "analysis/load/values.h"
#include "base/scratch.h"
#include "base/workers.h"
#include "database/database.h"
#include "fmt/v4.h"

/* Scopes of values. The metric ids of column pair k are these + 3 k. LEXICAL is what hpcviewer shows as exclusive: as
 * FUNCTION, except that a loop has no values of the loops in it: threads have it at loops only, with zeros where they
 * have FUNCTION, and the sum over all has it everywhere. Hatchet puts both into one column, in the order of the ids, so
 * that FUNCTION must come later. */
enum { V4_ID_LEXICAL = 0, V4_ID_FUNCTION = 1, V4_ID_EXECUTION = 2, V4_IDS_PER_METRIC = 3 };

/* Reads from the meta.db of one of our databases how many ids each metric has. The last two are always those of
 * FUNCTION and EXECUTION; older databases have no others.  err: ERR_IO, ERR_FORMAT (not ours, or damaged), ERR_MEMORY
 */
int v4_ids_per_metric(const char *directory, uint16_t *n_ids, struct error *err);

/* Files of a database that no value is in. */
#define V4_FORMATS "FORMATS.md"
#define V4_METRICS_DIRECTORY "metrics"
#define V4_METRICS_YAML "default.yaml"
#define V4_METRICS_EXAMPLE "METRICS.yaml.ex"

/* Appends what a database's files hold, for people who read or write them: the bytes of the files, and the form of
 * metrics/default.yaml. Sets out->failed when out of memory. */
void v4_put_formats(struct buf *out);
void v4_put_metrics_example(struct buf *out);

/* Writes one of the files into a directory, by the name of its kind; or what says how to read the others, for viewers
 * (default.yaml) and for people. is_hidden [n_metrics]: viewers do not show the metric unless they are asked to.
 * err: ERR_IO, ERR_RANGE, ERR_MEMORY */
int v4_put_file(const char *directory, const struct v4_file *file, struct error *err);
int v4_put_notes(const char *directory, const struct v4_meta *meta, const bool *is_hidden, struct error *err);

/* Names that identify a profile, as v4_meta.kinds numbers them. */
enum { V4_ID_NODE = 1, V4_ID_RANK = 2, V4_ID_THREAD = 3 };

/* Writes the files into directory, all values from source, and fills in the sums over all threads: the model's own and
 * inclusive values, and the value of a sample. copies: of source files, already made; NULL = none.
 * err: ERR_IO, ERR_RANGE (more metrics or contexts than the format holds), ERR_MEMORY, ERR_USAGE (stopped) */
int v4_export(struct model *model, const struct value_source *source, const struct job *job, const char *directory,
              const char *title, const struct source_copies *copies, struct error *err);

/* For the members of a team other than the leader: does this member's part of the leader's v4_export, with the part of
 * the model that load_measurements has given it.  err: as v4_export */
int v4_join(struct model *model, const struct value_source *source, const struct job *job, struct error *err);

/* For a leader that fails before v4_export: tells the others, which wait in v4_join. Returns code. */
int v4_give_up(const struct job *job, int code, struct error *err);

/* Writes trace.db, with a trace for each thread, if some thread has events. */
int v4_export_traces(const struct model *model, const struct value_source *source, const struct job *job,
                     const char *directory, struct error *err);
/* A column pair's name and scale in this form: readers take "CPUTIME (sec)" for time. */
double v4_export_scale(const struct column_pair *pair);

/* --- values --- */

/* Writing the values of a version 4 database: first by profile, from their source into profile.db; then by context,
 * from profile.db into cct.db, with the statistics over all profiles. Neither file is ever in memory as a whole, and
 * the bytes do not depend on the number of threads: every sum runs over the profiles in their order. Ordinary code. */

/* Where a profile's values lie in profile.db. */
struct v4_place {
    uint64_t n_values, values, indices;
    uint32_t n_indices;
};

struct v4_values {
    struct model *model; /* own is filled in */
    const struct columns *columns;
    const struct value_source *source;
    const struct job *job;
    char *profile_path, *context_path; /* of the files; open at the descriptors */
    int profile_fd, context_fd;
    uint32_t n_contexts, n_ids;
    const uint32_t *metrics; /* [n_pairs] of the columns, and their scales */
    const double *scales;
    struct v4_place *places; /* [n_threads + 1]; 0 is the summary */
    uint64_t *n_values;      /* [n_contexts] of all threads */
    uint64_t profile_end;    /* end of what has been written */
    struct buf head;         /* beginning of profile.db; only the leader has it */
    struct v4_layout {
        uint64_t *present; /* [n_contexts][n_words] bits: the ids of each context, over all members of a team; NULL
                            * without a team */
        size_t n_words;
        uint32_t first, end; /* the contexts that this process writes */
    } layout;
};

/* In a team each profile is written by the member that has read it. The profiles follow each other in the order of the
 * threads: the place where the next one begins is passed from member to member. */
struct v4_baton {
    const struct v4_values *values;
    size_t *mine;          /* [n_mine] threads whose values are here, in their order; NULL without a team */
    size_t n_mine, n_done; /* those whose end was passed on */
    uint64_t end;          /* of the last one here */
};

/* Collective: lists the threads of this member and shares where the first profile begins.
 * err: ERR_MEMORY, ERR_USAGE */
int v4_baton_init(struct v4_baton *baton, struct v4_values *values, struct error *err);
void v4_baton_fini(struct v4_baton *baton);

/* Waits for the place of the next profile and passes on where it ends; call it in the order of mine, from one thread at
 * a time.
 * err: ERR_USAGE (a member before this one has given up) */
int v4_baton_take(struct v4_baton *baton, size_t len_bytes, uint64_t *place, struct error *err);

/* Tells members that wait for threads which are not done that they never will be. */
void v4_baton_drop(struct v4_baton *baton);

/* Collective, in a team, when all profiles are written: adds up what the members have counted, and shares all places.
 * err: ERR_MEMORY, ERR_USAGE */
int v4_team_profiles(struct v4_values *values, struct error *err);

struct v4_lengths {
    uint64_t n_bytes, n_summary, n_contexts;
};

/* The lengths of contexts [first, end): bytes in cct.db, values and contexts in the summary. */
struct v4_lengths v4_team_lengths(const struct v4_values *values, uint32_t first, uint32_t end);

/* Divides the contexts among the members. */
void v4_team_divide(struct v4_values *values);

/* Collective: the leader's model gets the own values of all contexts.  err: ERR_MEMORY, ERR_USAGE */
int v4_team_own(struct v4_values *values, struct error *err);

/* Writes profile.db except the summary, and counts the values of each context.  err: ERR_IO, ERR_MEMORY, ERR_USAGE */
int v4_values_by_profile(struct v4_values *values, struct error *err);

/* Writes cct.db and the summary, completes profile.db and sums up the model's own values.
 * err: ERR_IO, ERR_MEMORY, ERR_USAGE */
int v4_values_by_context(struct v4_values *values, struct error *err);

/* --- values of one context --- */

/* The part of profile.db for one profile and a range of contexts, read piece by piece: however many profiles there are,
 * each reading thread has only one piece of the file in memory. Ordinary code. */

/* The reader of one thread; it starts with all zero except the first two. */
struct v4_slices {
    int fd; /* of profile.db */
    const char *path;
    char *index, *values; /* of the current piece */
    size_t cap_index, cap_values;
};

/* The values of a profile in one context: n of them, each an id in 2 bytes and a number in 8. */
struct v4_run {
    uint32_t context;
    const char *values;
    uint64_t n;
};

/* Some entries of a profile's index, and their values. */
struct v4_piece {
    const char *index, *values;
    uint32_t n;
};

/* Sets *found to the first entry of the profile's index, from `from` on, whose context is not before id; to the number
 * of entries when there is none.  err: ERR_IO, ERR_MEMORY */
int v4_slice_find(struct v4_slices *slices, const struct v4_place *place, uint32_t from, uint32_t id, uint32_t *found,
                  struct error *err);

/* Reads entries from *at on, up to end at most, and moves *at past them; *piece is valid until the next call.
 * err: ERR_IO, ERR_MEMORY, ERR_FORMAT (the file is not what was written) */
int v4_slice_next(struct v4_slices *slices, const struct v4_place *place, uint32_t *at, uint32_t end,
                  struct v4_piece *piece, struct error *err);

/* Entry i of the piece. */
struct v4_run v4_piece_run(const struct v4_piece *piece, uint32_t i);

/* Frees the pieces. */
void v4_slices_fini(struct v4_slices *slices);

#endif
