/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole structure of one load module, made by several threads, and written as a structure file. Ordinary code,
 * untrusted input. */
#ifndef LOCUS_STRUCTURE_STRUCTURE_MODULE_H
#define LOCUS_STRUCTURE_STRUCTURE_MODULE_H

#include <stdio.h>

#include "base/vec.h"
#include "structure/structure.h"
#include "structure/xml-out.h"

struct structure_variable {
    uint64_t start, end;
    const char *name; /* readable */
};

/* One of the threads that made it: its own view of the files, which owns the strings. */
struct structure_worker;

struct structure_module {
    char *path;                           /* canonical */
    struct structure_function *functions; /* [n_functions] by file and entry; those without file last */
    size_t n_functions, cap_functions;
    struct structure_variable *variables; /* [n_variables] by name */
    size_t n_variables, cap_variables;
    bool has_debug, knows_loops;
    uint64_t n_loops, n_irreducible, n_unresolved; /* loops of the source; jumps whose targets are not known */
    struct structure_worker *workers;              /* [n_workers] */
    size_t n_workers;
};

struct structure_options {
    unsigned n_jobs;    /* threads, at least 1 */
    uint64_t bytes_min; /* the smallest variable */
};

/* Makes the structure of the module at path. On failure *module is empty.
 * err: ERR_IO, ERR_FORMAT (no ELF file, or one that cannot be loaded), ERR_MEMORY */
int structure_module_load(const char *path, const struct structure_options *options, struct structure_module *module,
                          struct error *err);
void structure_module_fini(struct structure_module *module);

/* The view of the files that the first thread had; valid as long as the module. */
struct symbols *structure_module_symbols(const struct structure_module *module);

/* How a structure file is written. */
struct structure_output {
    FILE *out;
    const struct xml_replacement *replacements; /* [n_replacements] */
    size_t n_replacements;
    bool with_types; /* with types, and locals with their places, in elements of our own */
};

/* Writes the module as a structure file (doc/FORMAT.md).
 * err: ERR_IO when it cannot be written, ERR_MEMORY */
int structure_module_write(const struct structure_module *module, const struct structure_output *output,
                           struct error *err);

#endif
