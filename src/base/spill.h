/* SPDX-License-Identifier: BSD-3-Clause */
/* A file without a name that holds what memory should not: pieces are appended by any thread and read back by place. It
 * is gone when the program ends, however it does. Ordinary code. */
#ifndef LOCUS_BASE_SPILL_H
#define LOCUS_BASE_SPILL_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct spill {
    int fd;
    uint64_t len_bytes;
};

struct spill_piece {
    uint64_t offset, len_bytes;
};

/* Makes the file in a directory.  err: ERR_IO */
int spill_open(struct spill *spill, const char *directory, struct error *err);
void spill_close(struct spill *spill);

/* Appends bytes; any thread.  err: ERR_IO */
int spill_append(struct spill *spill, const void *bytes, size_t len_bytes, struct spill_piece *piece,
                 struct error *err);

/* Reads [len_bytes] of what was appended at offset; any thread.  err: ERR_IO */
int spill_read(const struct spill *spill, uint64_t offset, void *bytes, size_t len_bytes, struct error *err);

/* The same for any open file, name for messages.  err: ERR_IO (also when the file ends before) */
int spill_write_at(int fd, const char *name, uint64_t offset, const void *bytes, size_t len_bytes, struct error *err);
int spill_read_at(int fd, const char *name, uint64_t offset, void *bytes, size_t len_bytes, struct error *err);

#endif
