/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the source files are that debug information names: files that somebody else's text names are opened in no other
 * place than under that name and in the directories that the user named. Ordinary code, untrusted paths. */
#ifndef LOCUS_STRUCTURE_SOURCE_FIND_H
#define LOCUS_STRUCTURE_SOURCE_FIND_H

#include "base/vec.h"

struct source_find;

/* A file is sought with a prefix of its name replaced (replace: "OLD=NEW" strings), under its own name when that is
 * absolute, then in each search directory: "DIR" by its last components, as many of them as fit; "DIR/+" also in all
 * directories below, where the file with the most last components in common is taken. No symbolic link leads out of a
 * search directory. Both lists are borrowed and NULL-terminated, or NULL.
 * Returns NULL when out of memory. */
struct source_find *source_find_new(const char *const *search, const char *const *replace);
void source_find_free(struct source_find *find);

/* Opens the regular file that path stands for, for reading; -1 when there is none. The caller closes it. */
int source_find_open(struct source_find *find, const char *path);

/* Appends path without ".", ".." and doubled slashes; what leads above its start is left out. */
void source_path_normalize(const char *path, struct buf *out);

#endif
