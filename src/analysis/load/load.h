/* SPDX-License-Identifier: BSD-3-Clause */
/* From measurement directories to a model: all profiles with their side files, merged and symbolized, and added to what
 * an older database has. Ordinary code.
 *
 * The room: load.c may call all others: profile-list.c says which profiles there are, ingest.c merges their trees,
 * sides.c reads side files (with cpus.c, homes.c and touches.c), values.c keeps values by thread, team.c does the same
 * with several processes. perf-import.c makes a measurement of a file of perf first. */
#ifndef LOCUS_ANALYSIS_LOAD_LOAD_H
#define LOCUS_ANALYSIS_LOAD_LOAD_H

#include <stdint.h>

#include "analysis/build/build.h"
#include "analysis/load/ingest.h"
#include "analysis/load/profile-list.h"
#include "analysis/load/team.h"
#include "analysis/load/values.h"
#include "base/error.h"
#include "base/workers.h"
#include "fmt/objects.h"
#include "import/topology.h"

struct structure_file;

/* What became of the nodes of the profiles, for who has their numbers from elsewhere, such as from a log of samples. */
struct load_place {
    uint32_t id;       /* of the node in its profile, absolute */
    uint32_t variable; /* index into the model's variables, RAW_NONE: the node is no variable */
    uint32_t scope;    /* of its own values, 0: none */
};

struct load_profile {
    char *path;
    struct load_place *places; /* [n] by id */
    size_t n;
};

struct load_places {
    struct load_profile *profiles; /* [n] in the order of loading */
    size_t n, capacity;
};

/* Frees everything and makes it empty. */
void load_places_fini(struct load_places *places);

struct load_options {
    const char *const *search;                      /* directories of sources, NULL-terminated, or NULL */
    const char *const *replace;                     /* "OLD=NEW" path prefixes, NULL-terminated, or NULL */
    const struct structure_file *const *structures; /* NULL-terminated, or NULL; used instead of the modules */
    bool keeps_instructions;                        /* as scopes below their statements */
    bool shows_interpreter;                         /* frames of Python's interpreter beside those of Python */
    int wait_ms;                                    /* for a measurement that is still being written */
    const struct job *job;
    struct value_source *prior; /* values of the database that is extended, which the model was read from; NULL =
                                 * none */
    struct load_places *places; /* receives what its name says, not in a team; may be NULL */
    size_t *n_known;            /* receives the number of profiles that it already has; may be NULL */
    /* Called for every profile that is left out, with a sentence that says why; may be NULL. */
    void (*message)(void *context, const char *sentence);
    void *context;
};

/* Loads paths [n_paths], directories or single profiles, into *model, which model_init made or a database was read
 * into; in that case *values takes over *prior. The values are not loaded: *values is their source (values_free), and
 * the caller sums up own and inclusive. Profiles that cannot be read are left out and counted in *n_skipped. The result
 * does not depend on the number of threads.
 * err: ERR_NOT_FOUND (no profile at all), ERR_IO, ERR_FORMAT (none of them readable), ERR_USAGE (stopped),
 * ERR_MEMORY */
int load_measurements(const char *const *paths, size_t n_paths, const struct load_options *options, struct model *model,
                      struct value_source *values, size_t *n_skipped, struct error *err);

/* --- what a database already has --- */

/* When measurements are loaded into a model that was read from a database: what is already there, and how its variables
 * are found again. Ordinary code. */

/* How large the model was. All zero for an empty one. */
struct prior_database {
    size_t n_threads, n_scopes, n_metrics, n_numa_nodes;
    bool has_samples;
    struct strtab threads; /* of the database: process and thread */
    uint32_t n_directories;
    uint32_t *directories; /* [of the list] number of each directory, those of the database first */
};

/* Enters the variables that are there under the keys of variables.c, and makes their tables as wide as the model's
 * metrics and nodes are now; false when out of memory. */
bool prior_variables(const struct prior_database *prior, struct build *build);

/* --- side files --- */

/* Side files while profiles are loaded: what they say about variables is added up by node of the merged tree, their
 * sums go into the model. A profile may have no side file. Ordinary code. */

struct load_sides {
    struct model *model;
    struct symbolizer *symbolizer;
    struct side_rows rows;
    struct slots slots; /* of the rows, by node */
    struct access_table accesses;
    struct cause_table causes;
    struct strtab topology_paths;
    struct topology *topologies; /* [topology_paths.n_strings] */
    size_t cap_topologies;
    bool failed;                    /* out of memory: counts are missing */
    uint64_t n_variables;           /* of all side files, counted each time */
    size_t n_files, n_with_samples; /* side files read; those with the samples of each variable */
    struct cpu_count *cpus;         /* [n_cpus] variable: the node, as in the rows; thread: thread.profile */
    size_t n_cpus, cap_cpus;
    struct touch *touches; /* [n_touches] in the same way; scope: the node */
    size_t n_touches, cap_touches;
    struct meeting *meetings; /* [n_meetings] likewise */
    size_t n_meetings, cap_meetings;
    struct reach_row *reaches; /* [n_reaches] in the same way */
    size_t n_reaches, cap_reaches;
    struct home_count *homes; /* [n_homes] likewise */
    size_t n_homes, cap_homes;
    struct variable_pages *pages; /* [n_pages] likewise */
    size_t n_pages, cap_pages;
    struct drop_count *drops; /* [n_drops] thread: thread.profile */
    size_t n_drops, cap_drops;
    char *skid;                   /* the figures that were read last, which threads of a process share; NULL: none */
    struct cause_caches measured; /* what they say of the caches */
};

/* A side file that was read, or why it was not. */
struct side_file {
    struct objects_file file;
    struct error err;
    enum { SIDE_NONE, SIDE_READ, SIDE_BAD } state;
};

/* Reads the side file of the profile at path, if there is one; any thread. load_sides_drop frees it. */
void load_sides_read(const char *path, struct side_file *side);
void load_sides_drop(struct side_file *side);

/* Adds what was read to the rows and the model; call it in the order of the profiles. path, number (as in
 * struct thread), head and ids are the profile's. A side file that could not be read becomes a note. */
void load_sides_add(struct load_sides *sides, const char *path, size_t number, const struct side_file *side,
                    const struct hpcrun_profile *head, const struct raw_ids *ids);

/* Adds the CPUs of the host that the profile at path is from, unless the model has that host. False when out of
 * memory. */
bool load_sides_add_machine(struct load_sides *sides, const char *path, const struct side_file *side,
                            const char *host_id);

/* Turns the rows' nodes into those of the merged tree, once all are added. */
void load_sides_renumber(struct load_sides *sides, const struct raw_tree *tree);

/* cpus.c: adds the CPUs of a host to the model, unless it has that host. False when out of memory. */
bool machines_add(struct model *model, const char *host_id, const struct topology *topology);

/* cpus.c: moves the counts by CPU to the model, whose variables are made and whose threads are in order, and puts them
 * and the machines in order. Those of profiles that were left out, and of no variable, are dropped.  err: ERR_MEMORY */
int load_sides_apply_cpus(struct load_sides *sides, const struct raw_tree *tree, struct error *err);

/* cpus.c: the same for the samples that were dropped.  err: ERR_MEMORY */
int load_sides_apply_drops(struct load_sides *sides, struct error *err);

/* touches.c: the same for the touches of pages, whose scopes are made; prior [prior->n_scopes of struct
 * prior_database]: the new numbers of those that a database had before.  err: ERR_MEMORY */
int load_sides_apply_touches(struct load_sides *sides, const struct raw_tree *tree, const struct build_scopes *scopes,
                             struct error *err);

/* touches.c: the same for meetings at cache lines.  err: ERR_MEMORY */
int load_sides_apply_meetings(struct load_sides *sides, const struct raw_tree *tree, const struct build_scopes *scopes,
                              struct error *err);

/* touches.c: adds where the profile's samples lie in a variable, that of the node; profile: as in struct thread. False
 * when out of memory. */
bool load_sides_add_reach(struct load_sides *sides, uint32_t node, size_t profile, const struct objects_variable *from);

/* touches.c: moves these rows to the model as above.  err: ERR_MEMORY */
int load_sides_apply_reaches(struct load_sides *sides, const struct raw_tree *tree, struct error *err);

/* cpus.c: the threads by the numbers of their profiles, PLACE_UNKNOWN for none: *n of them, to be freed; NULL when out
 * of memory. */
uint32_t *threads_by_profile(const struct model *model, size_t *n);

/* homes.c: notes the homes of a variable's samples and pages. node, metrics ([n_metrics] of the profile, as those of
 * the model, -1 for none) and number as above. */
void load_sides_add_homes(struct load_sides *sides, uint32_t node, size_t number, const struct objects_variable *from,
                          const int64_t *metrics, size_t n_metrics);

/* homes.c: the same as load_sides_apply_cpus for the homes. */
int load_sides_apply_homes(struct load_sides *sides, const struct raw_tree *tree, struct error *err);

/* Frees what was read, except the model's part. */
void load_sides_fini(struct load_sides *sides);

/* --- private part --- */

/* The state of loading, only for load.c and team.c. */

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
    struct prior_database prior;
    uint32_t *prior_scopes; /* [prior.n_scopes] new numbers */
    struct spilled_values *values;
    size_t n_read;
    struct buf digests; /* of what was read, for the leader of the team */
    struct team_tree branches;
};

/* One profile being read. */
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

/* Takes what depends on the order of the profiles, so call it in that order: metrics, modules, side files.
 * err: ERR_MEMORY */
int load_take_epoch(struct reading *reading, const struct hpcrun_profile *head, const struct raw_ids *ids,
                    struct error *err);

/* Adds a note that says why the thread has no trace, when its first epoch is taken. */
void load_note_trace(struct load *load, const struct error *problem, bool is_first);

/* Adds the thread of a profile that was read.  err: ERR_MEMORY */
int load_take_thread(struct reading *reading, uint32_t directory, struct error *err);

/* Maps the metrics of the values that were written.  err: ERR_MEMORY */
int load_map_metrics(struct load *load, struct error *err);

/* These three are collective: code and err are this member's so far; all members go on or none does. The first shares
 * the leader's list and sets this member's part of it. */
int load_team_begin(struct load *load, int code, struct error *err);

/* After reading: the leader gets the trees and replays the digests of all. */
int load_team_gather(struct load *load, int code, struct error *err);

/* When the leader has built the model: the others get the part that writing values needs. */
int load_team_return(struct load *load, int code, struct error *err);

#endif
