/* SPDX-License-Identifier: BSD-3-Clause */
/* Little-endian fields at any offset of a version 4 file, with bounds checks. Its parts are found by pointers, which in
 * a damaged file may lead anywhere and to the same place many times: all that is taken through them counts against a
 * budget, a multiple of the file's length. Ordinary code. */
#ifndef LOCUS_FMT_V4_WIRE_H
#define LOCUS_FMT_V4_WIRE_H

#include "fmt/v4.h"

/* A file that is read. The first failure is remembered; after it every read gives zero. */
struct v4_in {
    const unsigned char *bytes;
    size_t len_bytes;
    const char *name;
    struct error *err;
    int code;
    uint64_t budget_bytes;
    struct v4_file *file; /* being filled */
};

struct v4_section {
    uint64_t offset, len_bytes;
};

/* An array in the file whose elements others point to. */
struct v4_table {
    uint64_t offset, stride_bytes;
    size_t n;
};

/* Remembers "<name>: offset <n>: <text>"; returns in->code. */
int v4_fail(struct v4_in *in, uint64_t offset, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* True when n_items of item_bytes each are there and within the budget, of which they are taken. */
bool v4_has(struct v4_in *in, uint64_t offset, uint64_t n_items, uint64_t item_bytes, const char *what);

/* The integer of n_bytes (1-8) at offset; 0 after a failure or beyond the end, which is one. */
uint64_t v4_get(struct v4_in *in, uint64_t offset, unsigned n_bytes);
double v4_get_double(struct v4_in *in, uint64_t offset);

/* The text at offset; NULL for offset 0 and after a failure. */
const char *v4_get_text(struct v4_in *in, uint64_t offset, const char *what);

/* Section i of the header; fails when it is not in the file or shorter than least_bytes. */
struct v4_section v4_get_section(struct v4_in *in, unsigned i, uint64_t least_bytes, const char *what);

/* An array: pointer at offset, u32 count after it, size of an element at stride_at (in n_stride bytes). Fails when an
 * element is smaller than least_bytes. */
struct v4_table v4_get_table(struct v4_in *in, uint64_t offset, uint64_t stride_at, unsigned n_stride,
                             uint64_t least_bytes, const char *what);

/* Index + 1 of the element that pointer is of; 0 for a null pointer; fails when it is none. */
uint32_t v4_get_index(struct v4_in *in, uint64_t pointer, const struct v4_table *table, const char *what);

/* Zeroed memory; NULL for none or after a failure. */
void *v4_alloc(struct v4_in *in, size_t n_items, size_t item_bytes);

/* The parts of reading: each fills in->file. */
void v4_read_meta(struct v4_in *in);
void v4_read_tree(struct v4_in *in, const struct v4_table *modules, const struct v4_table *files,
                  const struct v4_table *functions);
void v4_read_profiles(struct v4_in *in);
void v4_read_blocks(struct v4_in *in);
void v4_read_traces(struct v4_in *in);

#endif
