/* SPDX-License-Identifier: BSD-3-Clause */
/* Directories for temporary files, and for results that are not complete yet. The process keeps a list of those that it
 * has made and not removed yet, so that they can be removed when it ends early. Ordinary code. */
#ifndef LOCUS_BASE_SCRATCH_H
#define LOCUS_BASE_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Makes a directory for this user alone in $TMPDIR, else /tmp, whose name begins with name, and notes it; its path is
 * written to path [size_bytes].  err: ERR_IO */
int scratch_make(char *path, size_t size_bytes, const char *name, struct error *err);

/* Removes what processes of this user that have ended on this host without removing it, as by SIGKILL, have made under
 * that name. What is in use stays. */
void scratch_sweep(const char *name);

/* Removes the directory with all that is in it, and its note; links in it are removed, never followed. What cannot be
 * removed stays. */
void scratch_remove(const char *path);

/* The same for a directory that is not noted, by its name in the directory parent. */
void scratch_remove_tree(int parent, const char *name);

/* Notes a directory that was made in another way; forgets one that has got its final name. */
void scratch_note(const char *path);
void scratch_forget(const char *path);

/* Removes all that are noted, while other threads may still write into them. For a process that is about to end. */
void scratch_remove_noted(void);

/* --- what does not fit into memory --- */

/* A file without a name for data that is too large for memory: any thread appends pieces and reads them back by their
 * offsets. It disappears when the program ends, whatever the reason. Ordinary code. */

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

/* The same for any open file, name for messages.  err: ERR_IO (also when the file ends too early) */
int spill_write_at(int fd, const char *name, uint64_t offset, const void *bytes, size_t len_bytes, struct error *err);
int spill_read_at(int fd, const char *name, uint64_t offset, void *bytes, size_t len_bytes, struct error *err);

#endif
