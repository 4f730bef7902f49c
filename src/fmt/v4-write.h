/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of writing a file of a version 4 database. What is written depends on the structures alone: a file of ours
 * that is read and written again has the same bytes. Ordinary code. */
#ifndef LOCUS_FMT_V4_WRITE_H
#define LOCUS_FMT_V4_WRITE_H

#include "fmt/v4.h"

/* The parts of v4-write*.c: each appends the sections of one kind of file.  err: as v4_write */
int v4_write_meta(const struct v4_meta *meta, struct buf *out, struct error *err);
int v4_write_profiles(const struct v4_file *file, struct buf *out, struct error *err);
int v4_write_blocks(const struct v4_file *file, struct buf *out, struct error *err);
int v4_write_traces(const struct v4_file *file, struct buf *out, struct error *err);

/* Appends the low n_bytes of value, little-endian. */
void v4_put(struct buf *out, uint64_t value, unsigned n_bytes);

/* Appends zeros up to a multiple of 8 bytes; returns where the next byte will be. */
uint64_t v4_align(struct buf *out);

/* Overwrites n_bytes at offset. */
void v4_patch(struct buf *out, uint64_t offset, uint64_t value, unsigned n_bytes);

/* Section i of the header: from offset to the end of out. */
void v4_put_section(struct buf *out, unsigned i, uint64_t offset);

#endif
