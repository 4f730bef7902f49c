/* SPDX-License-Identifier: BSD-3-Clause */
/* Readers: one for each kind of file or directory that frame_open knows. Ordinary code; for the files of this
 * folder. */
#ifndef LOCUS_FRAME_READERS_H
#define LOCUS_FRAME_READERS_H

#include "base/vec.h"
#include "frame/frame.h"

/* What is to be opened. A reader looks at the first bytes of a file, and into a directory. */
struct frame_input {
    const char *path;
    bool is_directory;
    struct buf head; /* of a file: its first bytes, at most FRAME_HEAD_BYTES; data is never NULL */
};

enum { FRAME_HEAD_BYTES = 16384 };

struct frame_reader {
    const char *name; /* as people call what it reads, for messages */
    bool (*fits)(const struct frame_input *input);
    /* As frame_open, of an input that fits. */
    int (*read)(const struct frame_input *input, struct frame **frame, struct error *err);
};

/* The reader at index i, in the order in which they are asked; NULL behind the last. */
const struct frame_reader *readers_at(size_t i);

/* Whether a file of the directory path begins with a text. */
bool readers_begins(const char *path, const char *file, const char *text);

/* The directory that the input is, or lies in; malloc'ed, NULL when out of memory. */
char *readers_directory(const struct frame_input *input);

/* All of a file, with a NUL behind it; the caller frees *text.  err: ERR_IO, ERR_RANGE, ERR_MEMORY */
int readers_text(const struct frame_input *input, struct buf *text, struct error *err);

/* Fails when arrays over all nodes would take very much more than the file's length: n_columns distinct names in a
 * damaged text may be as many as its words.  err: ERR_FORMAT */
int readers_check_size(const char *path, uint64_t n_nodes, uint64_t n_columns, size_t len_bytes, struct error *err);

/* --- databases of HPCToolkit --- */

/* What both forms have in common: names of metrics, and the nodes that stand for data. */

/* A node of a database. */
struct hpctoolkit_node {
    const char *name;     /* of a procedure, else NULL */
    uint32_t parent;      /* index, less than that of the node; FRAME_NONE for a root */
    enum frame_kind kind; /* by its type alone, until hpctoolkit_find_kinds */
};

/* Finds among the procedures those that are placeholders or variables. False when out of memory. */
bool hpctoolkit_find_kinds(struct hpctoolkit_node *nodes, size_t n);

/* The name of a metric as Hatchet has it, without a suffix: "time" for "CPUTIME (sec)". len: of metric. */
const char *hpctoolkit_metric_name(const char *metric, size_t *len);

/* "file.c:7", "Loop@file.c:7" for a loop: the name of a node that has none of its own. Replaces what out holds. */
void hpctoolkit_place_name(enum frame_kind kind, const char *file, uint32_t line, struct buf *out);

#endif
