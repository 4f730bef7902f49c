/* SPDX-License-Identifier: BSD-3-Clause */
/* The file of levels while it is written, from its begin to its end; for the files of this folder. Its format:
 * levels-file.c. */
#ifndef LOCUS_STREAMS_LEVELS_FILE_H
#define LOCUS_STREAMS_LEVELS_FILE_H

#include "base/buf.h"
#include "streams/levels.h"

struct levels_file_header;

/* A sum over words that come piece by piece: of each of four in turn, which the processor sums at a time. */
struct levels_summing {
    uint64_t lanes[4];
    uint64_t n; /* words */
};

/* A file that is being written. */
struct levels_file {
    const struct levels_key *key; /* borrowed, as path and stream, until it is dropped */
    const char *path;
    const struct stream *stream;       /* of the levels, set before the head is put */
    struct buf name;                   /* that it may have until it is whole */
    struct buf texts;                  /* behind the levels */
    struct buf index, blocks;          /* that it ends with (parts.h), set before the head is put */
    struct levels_file_header *header; /* of what is written */
    int fd;                            /* -1: nothing is open */
    struct levels_summing sum;
    bool failed, is_done;
};

/* Opens one for levels of about so many bytes of the recording that key is of: see levels_make_kept. Ends with
 * levels_file_finish or levels_file_drop, also when it fails.  err: ERR_IO, ERR_UNSUPPORTED, ERR_MEMORY */
int levels_file_begin(struct levels_file *file, const struct levels_key *key, const char *path, uint64_t n_bytes,
                      struct error *err);

/* Whether levels of a stream may be kept: its recording is a file that says all of it. */
bool levels_file_takes(const struct stream *stream);

/* Writes the head, which says how many of each part there are, and the rows. A failure shows at the end. */
void levels_file_put_head(struct levels_file *file, const struct levels *levels);

/* Then come all stays, blocks, tops, turns and times; n_bytes is a multiple of 8, as for the sum over words. After a
 * failure nothing is written. */
void levels_file_put(struct levels_file *file, const void *bytes, size_t n_bytes);

/* Ends the file, gives it its name, and maps it: *levels are those in it, and what they were is freed. shell (NULL:
 * none is wanted): see levels_map.  err: ERR_IO, ERR_MEMORY */
int levels_file_finish(struct levels_file *file, struct levels *levels, struct stream **shell, struct error *err);

/* Closes what is open, of which nothing is left if it was not finished. */
void levels_file_drop(struct levels_file *file);

/* --- room for what goes into the file later --- */

struct levels_slab;

/* Memory that is taken piece by piece and freed at once. Beyond some hundred MiB it lies in a file without a name
 * beside the one that is written, so that the system may write it out. All zero is empty. */
struct levels_room {
    const struct levels_file *file; /* NULL: all of it is memory */
    struct levels_slab *slab;       /* the last one */
    uint64_t n_bytes;               /* of all of them, and of those in the file */
    uint64_t n_in_file, n_passed;
    bool has_file; /* it was tried; fd -1: in vain */
    int fd;
};

/* Room for n_bytes more, a multiple of four, which begins at a multiple of eight; NULL when out of memory. */
void *levels_room_take(struct levels_room *room, size_t n_bytes);

/* So many bytes have been gone through for the last time: some memory may be given back. */
void levels_room_pass(struct levels_room *room, size_t n_bytes);

/* Frees all of it. */
void levels_room_free(struct levels_room *room);

#endif
