/* SPDX-License-Identifier: BSD-3-Clause */
/* Reach: where in a variable the samples of one thread lie, as a summary of fixed size. The runtime keeps it as
 * struct arena_reach; side files and databases hold it as a list of JSON. Ordinary code. */
#ifndef LOCUS_FMT_REACH_H
#define LOCUS_FMT_REACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/access-pattern.h"
#include "base/vec.h"
#include "fmt/json.h"

#define REACH_BINS 64
#define REACH_BLOCKS 4
#define REACH_LINES 8

/* All zero is empty. */
struct reach_sum {
    uint32_t shift;              /* bin i counts the offsets of i << shift to ((i + 1) << shift) - 1 bytes; below 64 */
    uint64_t first, last;        /* lowest and highest offset */
    uint64_t n_steps, n_forward; /* samples at another address than the one before; of them, at a higher one */
    uint64_t n_loads, n_stores; /* by instructions that only read, and that write; the rest of the samples: not known */
    uint64_t bins[REACH_BINS];
    struct reach_block {
        uint64_t address, count; /* count: samples, at most; 0: none */
    } blocks[REACH_BLOCKS];      /* those with most samples, and they first */
};

/* A cache line that was among those with most samples of a thread. */
struct reach_line {
    uint64_t line;                 /* address / 64 */
    uint64_t read_at, written_at;  /* a bit for each byte at which an access began */
    uint64_t n_stores;             /* of the samples in slots */
    uint64_t slots[PATTERN_SLOTS]; /* samples by place in the line */
};

/* What one thread's samples say of a variable. */
struct reach {
    struct reach_sum sum;
    struct reach_line lines[REACH_LINES]; /* [n_lines] most samples first */
    size_t n_lines;
};

/* Samples in all bins; samples of a line. */
uint64_t reach_total(const struct reach_sum *sum);
uint64_t reach_line_total(const struct reach_line *line);

/* Makes the bins at least 2^shift bytes wide. */
void reach_widen(struct reach_sum *sum, uint32_t shift);

/* Adds from, in bins as wide as the wider ones of both; of the blocks, those with most samples stay. */
void reach_merge(struct reach_sum *into, const struct reach_sum *from);

/* Adds samples at a block: the summary of a record is filled block by block and line by line. */
void reach_add_block(struct reach_sum *sum, uint64_t address, uint64_t count);

/* Adds a line; when there are too many, the one with the fewest samples goes. */
void reach_add_line(struct reach *reach, const struct reach_line *line);

/* Appends the summary, or a line, as a list. */
void reach_put(struct buf *out, const struct reach_sum *sum);
void reach_line_put(struct buf *out, const struct reach_line *line);

/* Reads such a list; what does not fit fails as json_take_fail says. */
void reach_take(struct json_take *take, const json_t *list, struct reach_sum *sum);
void reach_line_take(struct json_take *take, const json_t *list, struct reach_line *line);

#endif
