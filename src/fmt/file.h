/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole files: reading one into memory, and writing one so that its name never stands for half a file.
 * Ordinary code. */
#ifndef LOCUS_FMT_FILE_H
#define LOCUS_FMT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

/* Reads the file at path, up to the length that it has when opened, into *bytes, which must be empty and is left empty
 * on failure; buf_fini frees it. Anything but a regular file is refused.  err: ERR_IO, ERR_RANGE, ERR_MEMORY */
int file_read(const char *path, struct buf *bytes, struct error *err);

/* Writes bytes[len_bytes] to path, which must not exist: under a temporary name in the same directory first, then given
 * its name in one step that fails when another process was faster.  Mode 0644 less the umask.
 * err: ERR_IO (err text names path and reason; errno is EEXIST when the name is taken) */
int file_write_new(const char *path, const void *bytes, size_t len_bytes, struct error *err);

/* Same, but a file that is there is replaced in one step. */
int file_replace(const char *path, const void *bytes, size_t len_bytes, struct error *err);

/* Opens a file of lines for appending, and creates it when it is missing. Links, anything but regular files, other
 * users' files and files with several names are refused: somebody else may have put a trap there.
 * Returns a descriptor (CLOEXEC), or -1 with errno. */
int file_open_lines(const char *path);

/* Writing a file in pieces, when it is too large to be held in memory. file_begin opens a temporary file beside path,
 * whose name goes into *temporary (malloc'ed); file_end gives it the name path, which must not exist
 * (file_end_replacing: may exist), and frees both;
 * file_abandon removes what is left and frees both (nothing when *temporary is NULL).
 * err: ERR_IO (the text names path and reason), ERR_MEMORY */
int file_begin(const char *path, char **temporary, int *fd, struct error *err);
int file_append(int fd, const char *path, const void *bytes, size_t len_bytes, struct error *err);
int file_end(int *fd, char **temporary, const char *path, struct error *err);
int file_end_replacing(int *fd, char **temporary, const char *path, struct error *err);
void file_abandon(int *fd, char **temporary);

/* --- fields of files --- */

/* Big-endian fields with bounds checks: a cursor over bytes that remembers its first failure, and the matching appends.
 * Every reader of this folder goes through it, so no field is taken and no memory asked for before the bytes are known
 * to be there. Ordinary code. */

/* A cursor. Fill bytes, len_bytes, name (for messages) and err; the rest zero. Once code is not 0 every read returns
 * zero and moves nothing, so callers may check it once per group of fields. */
struct wire_in {
    const unsigned char *bytes;
    size_t len_bytes, offset;
    const char *name;
    struct error *err;
    int code; /* enum error_code of the first failure */
};

/* Remembers a failure: "<name>: offset <n>: <text>". Only the first one counts. Returns in->code. */
int wire_fail(struct wire_in *in, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* True when n_bytes more bytes are there; otherwise fails with "truncated in <what>". */
bool wire_has(struct wire_in *in, uint64_t n_bytes, const char *what);

/* True when n_items of at least item_bytes each can still be there; otherwise fails, naming the count. */
bool wire_has_items(struct wire_in *in, uint64_t n_items, uint64_t item_bytes, const char *what);

/* The next big-endian integer of 1-8 bytes; 0 after a failure. */
uint64_t wire_get(struct wire_in *in, unsigned n_bytes, const char *what);

/* Copies the next n_bytes to out; nothing after a failure. */
void wire_get_bytes(struct wire_in *in, void *out, size_t n_bytes, const char *what);

/* The next string (four bytes of length, then that many bytes without NUL), malloc'ed; NULL after a failure. */
char *wire_get_text(struct wire_in *in, const char *what);

/* True when the next bytes are text; they are then skipped. Does not fail. */
bool wire_accept(struct wire_in *in, const char *text);

/* Appends the low n_bytes of value, big-endian; a string with its length (NULL as an empty one). */
void wire_put(struct buf *out, uint64_t value, unsigned n_bytes);
void wire_put_text(struct buf *out, const char *text);

/* Appends n_bytes for the caller to fill at once; NULL when out of memory (out->failed is then set). */
char *wire_put_room(struct buf *out, size_t n_bytes);

#endif
