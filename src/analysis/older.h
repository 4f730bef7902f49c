/* SPDX-License-Identifier: BSD-3-Clause */
/* When measurements are loaded into a model that was read from a database: what is there already, and how its variables
 * are found again. Ordinary code. */
#ifndef LOCUS_ANALYSIS_OLDER_H
#define LOCUS_ANALYSIS_OLDER_H

#include "analysis/build.h"
#include "analysis/profile-list.h"

/* How large the model was. All zero for an empty one. */
struct older {
    size_t n_threads, n_scopes, n_metrics, n_numa_nodes;
    bool has_samples;
    struct strtab threads; /* of the database: process and thread */
    uint32_t n_directories;
    uint32_t *directories; /* [of the list] number of each directory, those of the database first */
};

/* Takes down the model's size; process_keys receives its processes by number.  err: ERR_MEMORY */
int older_init(struct older *older, const struct model *model, struct strtab *process_keys, struct error *err);
void older_fini(struct older *older);

/* Numbers the directories of the list, and drops the profiles that are in the database already; how many.  Returns -1
 * when out of memory. */
int64_t older_drop_known(struct older *older, const struct strtab *process_keys, struct profile_list *list);

/* Makes the variables that are there findable by the keys of variables.c, and their tables as wide as the model's
 * metrics and nodes are now; false when out of memory. */
bool older_variables(const struct older *older, struct build *build);

#endif
