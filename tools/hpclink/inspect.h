/* SPDX-License-Identifier: BSD-3-Clause */
/* What an ELF file defines: the program after the first link, and the runtime's object. */
#ifndef LOCUS_HPCLINK_INSPECT_H
#define LOCUS_HPCLINK_INSPECT_H

#include <stdbool.h>

#include "base/error.h"
#include "base/vec.h"

/* Names of the functions that a file defines. */
struct inspected {
    bool has_loader;      /* PT_INTERP: not static */
    struct strtab names;  /* for others */
    struct strtab locals; /* for itself; in position-independent programs also what was hidden */
};

/* Reads path. err: ERR_IO, ERR_FORMAT; ERR_NOT_FOUND when it has no symbol table */
int inspect_file(const char *path, struct inspected *inspected, struct error *err);

/* Whether the file defines a function of this name: for others, or in any case. */
bool inspect_defines(const struct inspected *inspected, const char *name);
bool inspect_contains(const struct inspected *inspected, const char *name);

/* Frees the names. */
void inspect_fini(struct inspected *inspected);

#endif
