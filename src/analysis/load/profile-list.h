/* SPDX-License-Identifier: BSD-3-Clause */
/* The profiles of measurement directories, and files of perf turned into such: in an order that does not depend on how
 * they were given. Ordinary code. */
#ifndef LOCUS_ANALYSIS_LOAD_PROFILE_LIST_H
#define LOCUS_ANALYSIS_LOAD_PROFILE_LIST_H

#include "analysis/model.h"
#include "base/vec.h"
#include "fmt/hpcrun.h"
#include "measurement/names.h"

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

/* --- processes --- */

/* Which process and thread a profile is of, and their order. Ordinary code. */

/* The identity of a profile: by its file name, else by its header. */
void processes_identify(const char *path, const struct hpcrun_profile *profile, struct names_file *id);

#define PROCESS_KEY_BYTES 400

/* What makes a process one: key [PROCESS_KEY_BYTES]. */
void processes_key(const struct process *process, char *key);

/* Index of the process in a measurement directory, added when new, with keys as its index; -1 when out of memory. */
int64_t processes_find(struct model *model, struct strtab *keys, const struct names_file *id, uint32_t directory);

/* Puts processes and threads in order and numbers the threads of each process from 0.  err: ERR_MEMORY */
int processes_order(struct model *model, struct error *err);

/* Sets the model's program, which the report is named after: of the process with the most samples. sums [n_processes]
 * of values of the metric of reports. */
void processes_choose_program(struct model *model, const double *sums);

/* --- measurements that did not arrive --- */

/* Measurements that never reached their directory because the companion was killed on the way, or because the directory
 * did not take them: where they are, in sentences. Ordinary code. */

#endif
