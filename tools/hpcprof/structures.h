/* SPDX-License-Identifier: BSD-3-Clause */
/* The structure files that a command line names. */
#ifndef LOCUS_HPCPROF_STRUCTURES_H
#define LOCUS_HPCPROF_STRUCTURES_H

#include "structure/structure-file.h"

struct structures {
    const struct structure_file **files; /* [n], NULL-terminated; NULL when there are none */
    size_t n, capacity;
};

/* Reads the files, and of directories all files in them that end in .hpcstruct, in the order of their names.
 * err: ERR_IO, ERR_FORMAT, ERR_NOT_FOUND (a directory without any), ERR_MEMORY */
int structures_read(const char *const *paths, size_t n_paths, struct structures *structures, struct error *err);
void structures_fini(struct structures *structures);

#endif
