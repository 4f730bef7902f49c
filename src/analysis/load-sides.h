/* SPDX-License-Identifier: BSD-3-Clause */
/* Side files while profiles are loaded: what they tell of variables is added up by node of the merged tree, their sums
 * go into the model. A profile without side file is fine. Ordinary code. */
#ifndef LOCUS_ANALYSIS_LOAD_SIDES_H
#define LOCUS_ANALYSIS_LOAD_SIDES_H

#include "analysis/build.h"
#include "analysis/ingest.h"
#include "analysis/topology.h"
#include "fmt/objects.h"

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
    uint64_t n_variables;           /* of side files, each as often as it is there */
    size_t n_files, n_with_samples; /* side files read; those with the samples of each variable */
};

/* A side file that has been read, or why it has not. */
struct side_file {
    struct objects_file file;
    struct error err;
    enum { SIDE_NONE, SIDE_READ, SIDE_BAD } state;
};

/* Reads the side file of the profile at path, if there is one; any thread. load_sides_drop frees it. */
void load_sides_read(const char *path, struct side_file *side);
void load_sides_drop(struct side_file *side);

/* Adds what was read to the rows and the model, in the order of the profiles; path, head and ids are the profile's. A
 * side file that could not be read becomes a note. */
void load_sides_add(struct load_sides *sides, const char *path, const struct side_file *side,
                    const struct hpcrun_profile *head, const struct raw_ids *ids);

/* When all are added: the rows' nodes become those of the merged tree. */
void load_sides_place(struct load_sides *sides, const struct raw_tree *tree);

/* Frees what was read; the model keeps its part. */
void load_sides_fini(struct load_sides *sides);

#endif
