/* SPDX-License-Identifier: BSD-3-Clause */
/* Directories for temporary files. Ordinary code. */
#ifndef LOCUS_BASE_SCRATCH_H
#define LOCUS_BASE_SCRATCH_H

#include <stddef.h>

#include "base/error.h"

/* Makes a directory of this user's in $TMPDIR, else /tmp, whose name begins with name; its path is written to
 * path [size_bytes].  err: ERR_IO */
int scratch_make(char *path, size_t size_bytes, const char *name, struct error *err);

/* Removes the directory and the files in it, which holds no directories. What cannot be removed stays. */
void scratch_remove(const char *path);

#endif
