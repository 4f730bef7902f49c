/* SPDX-License-Identifier: BSD-3-Clause */
/* Side files while profiles are loaded: their variables become rows tied to the merged tree, their sums go into the
 * model. A profile without side file is fine. Ordinary code. */
#ifndef LOCUS_ANALYSIS_LOAD_SIDES_H
#define LOCUS_ANALYSIS_LOAD_SIDES_H

#include "analysis/build.h"
#include "analysis/topology.h"

struct load_sides {
    struct model *model;
    struct symbolizer *symbolizer;
    struct side_rows rows;
    struct strtab topology_paths;
    struct topology *topologies; /* [topology_paths.n_strings] */
    size_t cap_topologies;
    size_t n_files, n_with_samples; /* side files read; those with the samples of each variable */
};

/* Reads the side file of the profile at path, if there is one; ids [profile->n_nodes] from raw_merge. A side file that
 * cannot be read becomes a note. */
void load_sides_add(struct load_sides *sides, const char *path, const struct hpcrun_profile *profile,
                    const struct raw_id *ids);

/* Frees what was read; the model keeps its part. */
void load_sides_fini(struct load_sides *sides);

#endif
