/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole files: reading one into memory, and writing one so that its name never stands for half a file.
 * Ordinary code. */
#ifndef LOCUS_FMT_FILE_H
#define LOCUS_FMT_FILE_H

#include <stddef.h>

#include "base/error.h"
#include "base/vec.h"

/* Reads the whole file at path, as long as it is when opened, into *bytes, which must be empty and is left empty on
 * failure; buf_fini frees it. Whatever is no regular file is refused.  err: ERR_IO, ERR_RANGE, ERR_MEMORY */
int file_read(const char *path, struct buf *bytes, struct error *err);

/* Writes bytes[len_bytes] to path, which must not exist: under a temporary name in the same directory first, then given
 * its name in one step that fails when another process was faster.  Mode 0644 less the umask.
 * err: ERR_IO (err text names path and reason; errno is EEXIST when the name is taken) */
int file_write_new(const char *path, const void *bytes, size_t len_bytes, struct error *err);

/* Same, but a file that is there is replaced in one step. */
int file_replace(const char *path, const void *bytes, size_t len_bytes, struct error *err);

/* Opens a file of lines for appending, made when it is not there. A link, anything but a file, another user's file and
 * one with further names are refused: what stands in a directory may be somebody else's trap.
 * Returns a descriptor (CLOEXEC), or -1 with errno. */
int file_open_lines(const char *path);

/* The same in pieces, for files that should not be held in memory. file_begin opens a temporary file beside path, whose
 * name goes into *temporary (malloc'ed); file_end gives it the name path, which must not exist (file_end_replacing: may
 * exist), and frees both;
 * file_abandon removes what is left and frees both (nothing when *temporary is NULL).
 * err: ERR_IO (the text names path and reason), ERR_MEMORY */
int file_begin(const char *path, char **temporary, int *fd, struct error *err);
int file_append(int fd, const char *path, const void *bytes, size_t len_bytes, struct error *err);
int file_end(int *fd, char **temporary, const char *path, struct error *err);
int file_end_replacing(int *fd, char **temporary, const char *path, struct error *err);
void file_abandon(int *fd, char **temporary);

#endif
