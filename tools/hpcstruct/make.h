/* SPDX-License-Identifier: BSD-3-Clause */
/* One structure file: from the cache, or made and put there. */
#ifndef LOCUS_TOOLS_HPCSTRUCT_MAKE_H
#define LOCUS_TOOLS_HPCSTRUCT_MAKE_H

#include <stdbool.h>

#include "base/error.h"
#include "structure/structure-module.h"

struct make_settings {
    struct structure_options options;
    struct structure_output output; /* its out is filled here */
    const char *cache_dir;          /* NULL: none */
};

/* What is told about one file that was made. */
struct make_report {
    bool from_cache;
    bool has_debug, knows_loops; /* the rest only when not from the cache */
    size_t n_functions, n_variables;
    uint64_t n_loops, n_irreducible, n_unresolved;
};

/* Writes the structure of the module at path to output ("-": standard output), which appears when it is complete.
 * err: ERR_IO, ERR_FORMAT, ERR_MEMORY */
int make_structure(const char *path, const char *output, const struct make_settings *settings,
                   struct make_report *report, struct error *err);

#endif
