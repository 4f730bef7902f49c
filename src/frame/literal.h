/* SPDX-License-Identifier: BSD-3-Clause */
/* Hatchet's literals on their way to a frame, whether a text or objects of Python said them. Ordinary code; for the
 * files of this folder. */
#ifndef LOCUS_FRAME_LITERAL_H
#define LOCUS_FRAME_LITERAL_H

#include "frame/readers.h"

/* The words that a literal has itself, which are the first texts of a reading. */
enum literal_word {
    WORD_EMPTY,
    WORD_FRAME,
    WORD_METRICS,
    WORD_ATTRIBUTES,
    WORD_CHILDREN,
    WORD_NID,
    WORD_NAME,
    WORD_FILE,
    WORD_MODULE,
    WORD_LINE,
    WORD_TYPE,
    WORD_IDENTITY,
    WORD_NONE,
    WORDS
};

/* A node's fact: of its frame or attributes, or a metric. */
struct fact {
    uint32_t node, key, text; /* ids */
    double number;            /* where text is 0 and is_number */
    bool is_number, is_metric;
};

struct literal_node {
    uint32_t parent, same_as;     /* FRAME_NONE: it is itself */
    uint32_t name;                /* beside the frame, not in it; 0: none */
    size_t first_fact, n_facts;   /* of the frame, sorted by key */
    size_t first_aside, n_asides; /* of "attributes" */
    double nid;                   /* NAN: none */
    bool is_duplicate, has_frame;
    uint32_t number; /* of the maker */
};

struct reading {
    struct json_in in;
    struct strtab texts;
    struct literal_node *nodes; /* [n_nodes] in the order in which they begin */
    size_t n_nodes, cap_nodes;
    struct fact *facts; /* [n_facts], those of a frame one after the other */
    size_t n_facts, cap_facts;
    uint32_t *open; /* [n_open] nodes whose objects are open */
    size_t n_open, cap_open;
    struct dumped *dumped; /* of to_json */
    uint32_t type;         /* the text of a type that was looked up last */
    enum frame_kind kind;  /* what it means */
};

/* Begins a reading, all zero, with its words.  err: ERR_MEMORY */
int literal_begin(struct reading *reading, struct error *err);

/* The facts of node from first on are those of its frame: they are sorted. */
void literal_keep_frame(struct reading *reading, uint32_t node, size_t first);

/* Begins a node below the one that is open, and opens it.  err: ERR_MEMORY */
int literal_open_node(struct reading *reading, struct error *err);

/* The frame of what has been read. n_bytes: how long that was, at least.  err: ERR_MEMORY, ERR_FORMAT (arrays very much
 * larger than that) */
int literal_make_frame(struct reading *reading, size_t n_bytes, struct frame **frame, struct error *err);

/* Frees what a reading holds, but not the text that it reads. */
void literal_fini(struct reading *reading);

#endif
