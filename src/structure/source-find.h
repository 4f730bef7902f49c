/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the source files are that debug information names: files that somebody else's text names are opened in no other
 * place than under that name and in the directories that the user named. Ordinary code, untrusted paths. */
#ifndef LOCUS_STRUCTURE_SOURCE_FIND_H
#define LOCUS_STRUCTURE_SOURCE_FIND_H

#include <stdbool.h>

#include "base/vec.h"

struct source_find;

/* The owner of a program. */
struct source_owner {
    unsigned user, group;
};

#define SOURCE_OWNERS_MAX 16

/* Adds the owner of a program to owners [*n] of at most SOURCE_OWNERS_MAX, unless it is root or there already. False
 * when there are too many: then nothing is to be read for them. */
bool source_owner_add(const char *program, struct source_owner *owners, size_t *n);

/* A file is sought with a prefix of its name replaced (replace: "OLD=NEW" strings), under its own name when that is
 * absolute, then in each search directory: "DIR" by its last components, as many of them as fit; "DIR/+" also in all
 * directories below, where the file with the most last components in common is taken. No symbolic link leads out of a
 * search directory. Both lists are borrowed and NULL-terminated, or NULL.
 * Returns NULL when out of memory. */
struct source_find *source_find_new(const char *const *search, const char *const *replace);
void source_find_free(struct source_find *find);

/* The users [n] whose programs name the files. Where this process has more rights than they (root), it only finds what
 * each of them could read. To be called once, before files are opened; borrowed.  ctx: ordinary */
void source_find_limit(struct source_find *find, const struct source_owner *owners, size_t n);

/* Opens the regular file that path stands for, for reading; -1 when there is none. The caller closes it. Files of the
 * kernel (/proc, /sys and the like) and what a link of /proc leads to are none. */
int source_find_open(struct source_find *find, const char *path);

/* Appends path without ".", ".." and doubled slashes; what leads above its start is left out. */
void source_path_normalize(const char *path, struct buf *out);

#endif
