/* SPDX-License-Identifier: BSD-3-Clause */
/* The runtime as one object, with the place of hpcrun written into it. */
#ifndef LOCUS_HPCLINK_RUNTIME_OBJECT_H
#define LOCUS_HPCLINK_RUNTIME_OBJECT_H

#include <stddef.h>

#include "base/error.h"

/* Finds the object that belongs to this hpclink. path[n]: filled.  err: ERR_NOT_FOUND */
int runtime_object_find(char *path, size_t n, struct error *err);

/* Copies the object at path to copy and writes hpcrun's path into it.  err: ERR_IO, ERR_FORMAT, ERR_MEMORY */
int runtime_object_copy(const char *path, const char *copy, struct error *err);

#endif
