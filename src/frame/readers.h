/* SPDX-License-Identifier: BSD-3-Clause */
/* Readers: one for each kind of file or directory that frame_open knows. Ordinary code; for the files of this
 * folder. */
#ifndef LOCUS_FRAME_READERS_H
#define LOCUS_FRAME_READERS_H

#include "base/vec.h"
#include "frame/json-in.h"
#include "frame/make.h"

/* What is to be opened. A reader looks at the first bytes of a file, and into a directory. */
struct frame_input {
    const char *path;
    bool is_directory;
    bool with_fields; /* as in frame_open_fields */
    bool with_parts;  /* as in frame_open_parts */
    struct buf head;  /* of a file: its first bytes, at most FRAME_HEAD_BYTES; data is never NULL */
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

/* The first bytes of a file, with a NUL behind them, in place of what *head held; the caller frees it.
 * err: ERR_IO, ERR_MEMORY */
int readers_head(const char *path, struct buf *head, struct error *err);

/* All of a file, with a NUL behind it; the caller frees *text.  err: ERR_IO, ERR_RANGE, ERR_MEMORY */
int readers_text(const struct frame_input *input, struct buf *text, struct error *err);

/* The same for JSON that is read piece by piece: *in stands at its begin, and the empty text is number 0 of texts. The
 * caller releases all three, also after an error.  err: ERR_IO, ERR_RANGE, ERR_MEMORY */
int readers_json(const struct frame_input *input, struct buf *text, struct strtab *texts, struct json_in *in,
                 struct error *err);

/* Fails when arrays over all nodes would take very much more than the file's length: n_columns distinct names in a
 * damaged text may be as many as its words.  err: ERR_FORMAT */
int readers_check_size(const char *path, uint64_t n_nodes, uint64_t n_columns, size_t len_bytes, struct error *err);

/* --- call paths --- */

/* A tree that grows from call paths. All zero is empty. */
struct frame_paths {
    struct path_step {
        uint32_t parent, frame, node; /* node: what stands for the frame below the parent */
    } * steps;                        /* [n] */
    size_t n, capacity;
    struct slots slots;
};

/* The node below parent (FRAME_NONE: a root) that stands for a frame, which is any number of the caller's; made from
 * like where there is none yet. */
uint32_t paths_node(struct frame_paths *paths, struct frame_maker *maker, uint32_t parent, uint32_t frame,
                    const struct made_node *like);
void paths_fini(struct frame_paths *paths);

/* Ends a maker of exclusive columns, as frame_made, and adds the inclusive ones. err: as frame_made */
int paths_made(struct frame_maker *maker, struct frame **frame, struct error *err);

/* --- files of Caliper --- */

/* The column that a name of Caliper's becomes: "time" and "time (inc)" for the sums of time.duration, whatever stands
 * before it; otherwise its own name. *scale: what values are multiplied by, so that times are seconds. */
size_t caliper_column(struct frame_maker *maker, const char *name, double *scale);

/* Whether a name is that of ranks; of places in the source. */
bool caliper_is_rank(const char *name);
bool caliper_is_place(const char *name);
#define CALIPER_CALL_PATH "source.function#callpath.address"

/* The node of a line below another one, for a place FILE:LINE; like: its name, a number of the caller's. */
uint32_t caliper_line(struct frame_paths *paths, struct frame_maker *maker, uint32_t node, uint32_t like,
                      const char *place);

/* --- files of callgrind --- */

/* Appends the files beside path, without itself, that are further parts of the same profile by their names and are of
 * callgrind, in the order of their numbers. False when out of memory. */
bool callgrind_parts(const char *path, struct strtab *parts);

/* --- databases of HPCToolkit --- */

struct model; /* fmt/locus-db.h */

/* What both forms have in common: names of metrics, and the nodes that stand for data. */

/* A node of a database. */
struct hpctoolkit_node {
    const char *name;     /* of a procedure, else NULL */
    uint32_t parent;      /* index, less than that of the node; FRAME_NONE for a root */
    enum frame_kind kind; /* by its type alone, until hpctoolkit_find_kinds */
    bool is_data;         /* filled there: in the tree of data */
    /* Filled there, and by hpctoolkit_name_variables: what the node stands for, and what it shares with all nodes below
     * it. NULL: as the node above. */
    const char *class, *variable, *type;
};

/* Finds among the procedures those that are placeholders or variables. False when out of memory. */
bool hpctoolkit_find_kinds(struct hpctoolkit_node *nodes, size_t n);

/* The same from the variables that a locus.db names: index_of [n_ids] gives the node of each context id, FRAME_NONE:
 * none. Procedures that are no variable there are none. name: of the file. The texts must outlive the nodes.
 * err: ERR_FORMAT (a variable at a context that the tree does not have) */
int hpctoolkit_name_variables(struct hpctoolkit_node *nodes, size_t n, const struct model *model,
                              const uint32_t *index_of, uint32_t n_ids, const char *name, struct error *err);

/* Gives the nodes [n] of a maker their attributes: "tree" is "code" or "data"; nodes of data have "class" and, from a
 * variable on downwards, its name as "variable" and the type of its elements as "element_type", where these are known.
 * number_of [n]: of the maker; NULL: the same numbers. */
void hpctoolkit_set_data(struct frame_maker *maker, struct hpctoolkit_node *nodes, size_t n, const uint32_t *number_of);

/* Gives the variables themselves theirs: "size" (bytes of all blocks), "blocks", "element_size", and "site", the place
 * where a variable is declared or its blocks are allocated. node_of [n_ids]: as index_of, of the maker. */
void hpctoolkit_set_variables(struct frame_maker *maker, const struct model *model, const uint32_t *node_of);

/* "app.c:7", "fill (app.c:7)" or "fill": whatever is known of where a variable comes from; line 0 and "" are not
 * known. Replaces what out holds. */
void hpctoolkit_print_site(const char *function, const char *file, uint32_t line, struct buf *out);

/* Replaces each stack frame of which several local variables are known by these; with_fields: also puts the fields of
 * each variable between it and what accesses it, where the file counts them. What accesses the variable is copied for
 * each of them, with its share of the values: of a scope as the samples of the metric's event fell there, else as all
 * that the file knows. What a fraction is missing of stays with the last local, and what has no field stays below the
 * variable. A frame that would become very much larger stays. node_of [n_ids]: as above. *frame may become another one,
 * also on failure.  err: ERR_MEMORY */
int hpctoolkit_split_variables(struct frame **frame, const struct model *model, const uint32_t *node_of, uint32_t n_ids,
                               bool with_fields, struct error *err);

/* The name of a metric as Hatchet has it, without a suffix: "time" for "CPUTIME (sec)" and "CPUTIME (usec)". len: of
 * metric. *scale: what the values of the file are multiplied by, so that "time" is seconds in both forms. */
const char *hpctoolkit_metric_name(const char *metric, size_t *len, double *scale);

/* "file.c:7", "Loop@file.c:7" for a loop: the name of a node that has none of its own. Replaces what out holds. */
void hpctoolkit_place_name(enum frame_kind kind, const char *file, uint32_t line, struct buf *out);

#endif
