/* SPDX-License-Identifier: BSD-3-Clause */
/* What profile.db holds of one profile for a stretch of contexts, read piece by piece: however many profiles there are,
 * no more of the file is in memory than one piece of each thread that reads. Ordinary code. */
#ifndef LOCUS_EXPORT_V4_SLICE_H
#define LOCUS_EXPORT_V4_SLICE_H

#include "export/v4-values.h"

/* One thread's reading; all zero but the first two to begin with. */
struct v4_slices {
    int fd; /* of profile.db */
    const char *path;
    char *index, *values; /* of the piece */
    size_t cap_index, cap_values;
};

/* The values of a profile in one context: n of them, each an id in 2 bytes and a number in 8. */
struct v4_run {
    uint32_t context;
    const char *values;
    uint64_t n;
};

/* Some entries of a profile's index, and their values. */
struct v4_piece {
    const char *index, *values;
    uint32_t n;
};

/* Sets *found to the first entry of the profile's index, from `from` on, of a context not before id; the number of
 * entries when there is none.  err: ERR_IO, ERR_MEMORY */
int v4_slice_find(struct v4_slices *slices, const struct v4_place *place, uint32_t from, uint32_t id, uint32_t *found,
                  struct error *err);

/* Reads entries from *at on, which is moved behind them, of those before end; *piece is good until the next reading.
 * err: ERR_IO, ERR_MEMORY, ERR_FORMAT (the file is not what was written) */
int v4_slice_next(struct v4_slices *slices, const struct v4_place *place, uint32_t *at, uint32_t end,
                  struct v4_piece *piece, struct error *err);

/* Entry i of the piece. */
struct v4_run v4_piece_run(const struct v4_piece *piece, uint32_t i);

/* Frees the pieces. */
void v4_slices_fini(struct v4_slices *slices);

#endif
