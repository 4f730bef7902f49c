/* SPDX-License-Identifier: BSD-3-Clause */
/* The values of a version 4 database on their way: first by profile, from their source into profile.db; then by
 * context, from profile.db into cct.db, with the statistics over all profiles. Neither is ever in memory as a whole,
 * and the bytes do not depend on the number of threads: every sum runs over the profiles in their order. Ordinary
 * code. */
#ifndef LOCUS_EXPORT_V4_VALUES_H
#define LOCUS_EXPORT_V4_VALUES_H

#include "analysis/load/values.h"
#include "base/scratch.h"
#include "base/workers.h"
#include "export/columns.h"
#include "fmt/v4.h"

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
    uint64_t profile_end;    /* of what has been written */
    struct buf head;         /* of profile.db; the leader's only */
    struct v4_layout {
        uint64_t
            *present; /* [n_contexts][n_words] bits: the ids of each context, of all members of a team; else NULL */
        size_t n_words;
        uint32_t first, end; /* the contexts that this process turns round */
    } layout;
};

/* In a team the profiles are written by those that have read them, and follow each other in the order of the threads:
 * the place where the next one begins is handed from member to member. */
struct v4_baton {
    const struct v4_values *values;
    size_t *mine;          /* [n_mine] threads whose values are here, in their order; NULL without a team */
    size_t n_mine, n_done; /* those whose end has been told */
    uint64_t end;          /* of the last one here */
};

/* Collective: lists the threads of this member; all know where the first profile begins.  err: ERR_MEMORY, ERR_USAGE */
int v4_baton_init(struct v4_baton *baton, struct v4_values *values, struct error *err);
void v4_baton_fini(struct v4_baton *baton);

/* In the order of mine, by one thread at a time: waits for the place of the next one, and tells where it ends.
 * err: ERR_USAGE (a member before has given up) */
int v4_baton_take(struct v4_baton *baton, size_t len_bytes, uint64_t *place, struct error *err);

/* Lets those that wait for threads which are not done know that they never will be. */
void v4_baton_drop(struct v4_baton *baton);

/* Collective, in a team, when all profiles are written: what the members have counted is added up, and all know the
 * places of all.  err: ERR_MEMORY, ERR_USAGE */
int v4_team_profiles(struct v4_values *values, struct error *err);

struct v4_lengths {
    uint64_t n_bytes, n_summary, n_contexts;
};

/* What contexts [first, end) come to: bytes in cct.db, values and contexts in the summary. */
struct v4_lengths v4_team_lengths(const struct v4_values *values, uint32_t first, uint32_t end);

/* Divides the contexts among the members. */
void v4_team_divide(struct v4_values *values);

/* Collective: the leader's model gets the own values of all contexts.  err: ERR_MEMORY, ERR_USAGE */
int v4_team_own(struct v4_values *values, struct error *err);

/* Writes profile.db, all but the summary, and counts the values of each context.  err: ERR_IO, ERR_MEMORY, ERR_USAGE */
int v4_values_by_profile(struct v4_values *values, struct error *err);

/* Writes cct.db and the summary, completes profile.db and sums up the model's own values.
 * err: ERR_IO, ERR_MEMORY, ERR_USAGE */
int v4_values_by_context(struct v4_values *values, struct error *err);

#endif
