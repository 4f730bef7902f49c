/* SPDX-License-Identifier: BSD-3-Clause */
/* The profiles of measurement directories, and perf files turned into such directories, in an order that does not
 * depend on how they were given. Ordinary code. */
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
    struct model *model;           /* for notes */
    int wait_ms;                   /* for a measurement that is still being written */
    struct strtab directories;     /* real paths */
    struct profile_path *profiles; /* [n_profiles] by directory and name */
    size_t n_profiles, cap_profiles;
    struct strtab skipped;   /* why, one sentence each */
    int first_skip;          /* enum error_code */
    struct strtab temporary; /* directories made from perf files, removed at the end */
};

/* Lists what paths [n_paths] name: directories, profiles, perf files. The caller fills model and wait_ms, with the rest
 * zero; directories may hold some already.  err: ERR_NOT_FOUND, ERR_IO, ERR_UNSUPPORTED, ERR_MEMORY */
int profile_list_make(struct profile_list *list, const char *const *paths, size_t n_paths, struct error *err);

/* Records why a profile is left out.  err: ERR_MEMORY */
int profile_list_skip(struct profile_list *list, const struct error *problem, struct error *err);

/* Frees everything and removes the temporary directories. */
void profile_list_fini(struct profile_list *list);

/* --- processes --- */

/* The process and thread of a profile, and their order. Ordinary code. */

/* The identity of a profile: by its file name, else by its header. */
void processes_identify(const char *path, const struct hpcrun_profile *profile, struct names_file *id);

#define PROCESS_KEY_BYTES 400

/* What identifies a process: key [PROCESS_KEY_BYTES]. */
void processes_key(const struct process *process, char *key);

/* Number of the process in a measurement directory, added when new; keys is the table of their keys. -1 when out of
 * memory. */
int64_t processes_find(struct model *model, struct strtab *keys, const struct names_file *id, uint32_t directory);

/* Puts processes and threads in order and numbers the threads of each process from 0.  err: ERR_MEMORY */
int processes_order(struct model *model, struct error *err);

/* Sets the model's program, which the report is named after: that of the process with the highest sum. sums
 * [n_processes]: values of the report's metric. */
void processes_choose_program(struct model *model, const double *sums);

/* --- measurements that did not arrive --- */

/* Measurements that never reached their directory because the companion was killed first, or because the directory
 * could not be written: where they are, in sentences. Ordinary code. */

#endif
