/* SPDX-License-Identifier: BSD-3-Clause */
/* The profiles of measurement directories, and files of perf turned into such: in an order that does not depend on how
 * they were given. Ordinary code. */
#ifndef LOCUS_ANALYSIS_PROFILE_LIST_H
#define LOCUS_ANALYSIS_PROFILE_LIST_H

#include "analysis/model.h"

struct profile_path {
    char *path;
    size_t directory; /* index into the directories: runs are never mixed up */
};

struct profile_list {
    struct model *model; /* for notes */
    int wait_ms;         /* for a measurement that is still being written */
    struct strtab directories;     /* real paths */
    struct profile_path *profiles; /* [n_profiles] by directory and name */
    size_t n_profiles, cap_profiles;
    struct strtab skipped;   /* why, one sentence each */
    int first_skip;          /* enum error_code */
    struct strtab temporary; /* directories made of files of perf, removed at the end */
};

/* Lists what paths [n_paths] name: directories, profiles, files of perf. Fill model and wait_ms, the rest zero;
 * directories may hold some already.  err: ERR_NOT_FOUND, ERR_IO, ERR_UNSUPPORTED, ERR_MEMORY */
int profile_list_make(struct profile_list *list, const char *const *paths, size_t n_paths, struct error *err);

/* Remembers why a profile is left out.  err: ERR_MEMORY */
int profile_list_skip(struct profile_list *list, const struct error *problem, struct error *err);

/* Frees everything and removes the temporary directories. */
void profile_list_fini(struct profile_list *list);

#endif
