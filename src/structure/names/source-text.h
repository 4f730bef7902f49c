/* SPDX-License-Identifier: BSD-3-Clause */
/* The source files that debug information names: where they are, and their texts. They are opened only under that name
 * and in the directories that the user gave. Ordinary code, untrusted paths. */
#ifndef LOCUS_STRUCTURE_NAMES_SOURCE_TEXT_H
#define LOCUS_STRUCTURE_NAMES_SOURCE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct source_finder;

/* The owner of a program. */
struct program_owner {
    unsigned user, group;
};

#define PROGRAM_OWNERS_MAX 16

/* Adds the owner of a program to owners [*n], at most PROGRAM_OWNERS_MAX, unless it is root or already there. False
 * when there are too many: then nothing may be read for them. */
bool program_owner_add(const char *program, struct program_owner *owners, size_t *n);

/* A file is searched for with a prefix of its name replaced (replace: "OLD=NEW" strings), under its own name if that is
 * absolute, then in each search directory: in "DIR" by its last components, as many of them as fit; in "DIR/+" also in
 * all directories below, where the file with the most last components in common is taken. No symbolic link leads out of
 * a search directory. Both lists are borrowed and NULL-terminated, or NULL.
 * Returns NULL when out of memory. */
struct source_finder *source_finder_new(const char *const *search, const char *const *replace);
void source_finder_free(struct source_finder *find);

/* The users [n] whose programs name the files. If this process has more rights than they do (root), it only finds what
 * each of them could read. Call it once, before files are opened; borrowed.  ctx: ordinary */
void source_finder_limit(struct source_finder *find, const struct program_owner *owners, size_t n);

/* Opens the regular file that path stands for, for reading; -1 when there is none. The caller closes it. Files of the
 * kernel (/proc, /sys and the like) and what a link in /proc leads to do not count. */
int source_finder_open(struct source_finder *find, const char *path);

/* Appends path without ".", ".." and doubled slashes; ".." that would lead above its start is left out. */
void source_path_normalize(const char *path, struct buf *out);

/* --- their texts, read when first needed, and the statement around a line --- */

struct source_text;

/* Where to look: as source_finder_new. Both lists are borrowed and NULL-terminated, or NULL.
 * Returns NULL when out of memory. */
struct source_text *source_text_new(const char *const *search, const char *const *replace);
void source_text_free(struct source_text *source);

/* Line of a file, from 1, without its newline; borrowed. NULL when the file or line cannot be read. */
const char *source_text_line(struct source_text *source, const char *path, uint32_t line);

/* Appends the statement that line belongs to, with its lines joined by blanks, without comments and what strings hold:
 * from the end of the statement before to the end of this one, a few lines at most. *offset is where column (from 1;
 * 0 = start of the line's text) of that line is in it. Returns false when the line cannot be read. */
bool source_text_statement(struct source_text *source, const char *path, uint32_t line, uint32_t column,
                           struct buf *statement, size_t *offset);

#endif
