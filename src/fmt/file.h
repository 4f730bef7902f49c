/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole files: reading one into memory, and writing one so that its name never stands for half a file.
 * Ordinary code. */
#ifndef LOCUS_FMT_FILE_H
#define LOCUS_FMT_FILE_H

#include <stddef.h>

#include "base/error.h"
#include "base/vec.h"

/* Reads the whole file (or pipe) at path into *bytes, which must be empty and is left empty on failure; buf_fini frees
 * it. Directories and devices are refused.  err: ERR_IO, ERR_MEMORY */
int file_read(const char *path, struct buf *bytes, struct error *err);

/* Writes bytes[len_bytes] to path, which must not exist: under a temporary name in the same directory first, then given
 * its name in one step that fails when another process was faster.  Mode 0644 less the umask.
 * err: ERR_IO (err text names path and reason; errno is EEXIST when the name is taken) */
int file_write_new(const char *path, const void *bytes, size_t len_bytes, struct error *err);

/* Same, but a file that is there is replaced in one step. */
int file_replace(const char *path, const void *bytes, size_t len_bytes, struct error *err);

/* Gives the complete file temporary its final name path, which must not exist. The temporary is gone afterwards.
 * err: ERR_IO, as file_write_new */
int file_publish(const char *temporary, const char *path, struct error *err);

#endif
