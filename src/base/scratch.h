/* SPDX-License-Identifier: BSD-3-Clause */
/* Directories for temporary files, and for results that are not complete yet. Those that this process has made and not
 * removed yet are noted, so that whoever ends it early can remove them. Ordinary code. */
#ifndef LOCUS_BASE_SCRATCH_H
#define LOCUS_BASE_SCRATCH_H

#include <stddef.h>

#include "base/error.h"

/* Makes and notes a directory of this user's in $TMPDIR, else /tmp, whose name begins with name; its path is written to
 * path [size_bytes].  err: ERR_IO */
int scratch_make(char *path, size_t size_bytes, const char *name, struct error *err);

/* Removes the directory with all that is in it, and its note; links in it are removed, never followed. What cannot be
 * removed stays. */
void scratch_remove(const char *path);

/* The same of a directory that is not noted, by its name in the directory parent. */
void scratch_remove_tree(int parent, const char *name);

/* Notes a directory that was made otherwise; forgets it, when it has got a name that stays. */
void scratch_note(const char *path);
void scratch_forget(const char *path);

/* Removes all that are noted, while other threads may still write into them. For a process that ends at once. */
void scratch_remove_noted(void);

#endif
