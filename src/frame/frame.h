/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames: the graph of a profile's nodes with their attributes and values, as a library. A frame does not change once
 * it is made: operations return new frames, which share with the old one what is the same. Values are computed when
 * somebody asks for them, and kept. Ordinary code; a frame is used by one thread at a time.
 *
 * Numbers of nodes run from 0 in pre-order of the first visit: in a tree every parent precedes its children. Where a
 * graph has nodes with several parents, or cycles, each function here says what it does with them.
 *
 * The room: ops.c is the table of operations and alone names all of them (op-x.c); readers.c is the table of readers
 * and names all of those (reader-x.c). Both stand on make.c (a frame node by node), graph.c, columns.c (values,
 * lazily), formula.c with expression.c, and query.c with pattern.c. What operations share is in op-shape.c and
 * op-match.c. */
#ifndef LOCUS_FRAME_FRAME_H
#define LOCUS_FRAME_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct frame;
struct frame_column;

#define FRAME_NONE UINT32_MAX

/* What a node stands for. */
enum frame_kind {
    FRAME_OTHER = 0, /* a file that does not say */
    FRAME_FUNCTION,
    FRAME_INLINED, /* a function inlined into its parent */
    FRAME_LOOP,    /* file and line are those of its head */
    FRAME_LINE,    /* a statement */
    FRAME_CALL,    /* a call site */
    FRAME_INSTRUCTION,
    FRAME_VARIABLE, /* data: a variable, or a place where blocks were allocated */
    FRAME_GROUP,    /* made by a profiler: "<heap>", "<thread root>", a region of the program */
    FRAME_FIELD,    /* of a variable */
    FRAME_JUMP,     /* within a function: where it leads is in its attributes */
    FRAME_KINDS
};

/* How the values of a column at a node and at the nodes below it belong together. */
enum frame_sums {
    FRAME_PLAIN = 0, /* they do not: a mean, a ratio */
    FRAME_EXCLUSIVE, /* of the node alone */
    FRAME_INCLUSIVE  /* of the node and all below it */
};

/* How the values of several profiles become one. With none at all there is no value, which is NAN. Where a node has
 * some, a profile without one counts as 0 there in a column that adds up: what did not run there has cost nothing. In
 * one that does not (a mean, a ratio) it is left out. */
enum frame_aggregate {
    FRAME_SUM = 0,
    FRAME_MEAN,
    FRAME_MIN,
    FRAME_MAX,
    FRAME_STD,       /* of the population: divided by n */
    FRAME_COUNT,     /* profiles with a value */
    FRAME_PERCENTILE /* between two values, linearly */
};

/* Which profiles are meant and what becomes of their values. All zero: the sum over all. */
struct frame_view {
    const uint32_t *profiles; /* [n_profiles] in ascending order; NULL = all */
    size_t n_profiles;
    enum frame_aggregate aggregate;
    double percentile; /* 0 to 100 */
};

/* Somewhere that values were measured: a thread, a rank, a file. -1: not known. */
struct frame_profile {
    const char *name;
    int64_t rank, thread, process, node; /* process: its id; node: the host, numbered from 0 */
};

/* A cell of a column: the value that a node has in a profile. */
struct frame_cell {
    uint32_t profile;
    double value;
};

/* The size of a struct of these headers by its name, "frame_view", as the library was built; 0: it knows none. For who
 * has declared it in another language. */
size_t locus_struct_size(const char *name);

/* Opens whatever a reader of readers.h knows: a database, or a file of another tool. *frame is the caller's.
 * An exclusive column holds the cost of each node alone, whatever the file calls so: in a database of HPCToolkit (and
 * ours) a function's "X" is what its lines and loops do not have, and mostly nothing. What hpcviewer and Hatchet show
 * there, the lines and loops within the function included, is the hidden column "X (function)".
 * err: ERR_NOT_FOUND, ERR_IO, ERR_FORMAT (file, offset or line, reason), ERR_UNSUPPORTED, ERR_MEMORY */
int frame_open(const char *path, struct frame **frame, struct error *err);

/* The same with the fields of each variable between it and what accesses it, as nodes of their own; all below a field
 * has its name as "field" and its type as "field_type". In these frames code that touches several fields is there once
 * for each.  err: ERR_UNSUPPORTED also where the file does not know them */
int frame_open_fields(const char *path, struct frame **frame, struct error *err);

/* The same with what functions consist of as nodes of their own, where the file says it and its nodes are functions
 * alone otherwise: of callgrind, lines, their instructions ("offset"), and calls and jumps there, with where they lead
 * as "target_line", "target_offset", "target_file" and "target_function", and of a jump whether it is "conditional".
 * What a call costs is "EVENT (call)"; "calls made", "jumps" and "jumps followed" count. Of other files, as frame_open.
 * err: as frame_open */
int frame_open_parts(const char *path, struct frame **frame, struct error *err);

/* A frame of a literal of Hatchet, as frame_open makes it of its text: a list or tuple of dictionaries that are objects
 * of the Python that the process runs in, whose lock the caller holds.  err: ERR_UNSUPPORTED where there is no Python,
 * or the objects are others than dictionaries, lists, tuples, texts and numbers: their text says what is wrong;
 * ERR_MEMORY */
int frame_open_objects(void *literal, struct frame **frame, struct error *err);

/* The file in the directory of a saved frame. */
#define FRAME_FILE "frame.db"

/* The frame as the bytes of that file, from which frame_open makes an equal one: doc/FORMAT.md. Formulas become values.
 * *bytes [*len_bytes] is malloc'ed.  err: ERR_MEMORY, and as frame_values */
int frame_save(struct frame *frame, char **bytes, size_t *len_bytes, struct error *err);

/* One owner more of the frame, and one less: the last one frees it. NULL is allowed in the second. */
struct frame *frame_keep(const struct frame *frame);
void frame_close(struct frame *frame);

/* --- nodes --- */

/* How many nodes there are. */
size_t frame_n_nodes(const struct frame *frame);

/* Whether every node has at most one parent and there is no cycle. */
bool frame_is_tree(const struct frame *frame);

/* The nodes without parent, in order: borrowed from the frame. */
const uint32_t *frame_roots(const struct frame *frame, size_t *n);

/* The children of a node in the order of its source, and its parents. Borrowed from the frame. */
const uint32_t *frame_children(const struct frame *frame, uint32_t node, size_t *n);
const uint32_t *frame_parents(const struct frame *frame, uint32_t node, size_t *n);

/* All nodes [n_nodes], each once, children before their parents (except along an edge that closes a cycle); pre-order
 * is 0, 1, 2, ... Borrowed from the frame; NULL when out of memory. */
const uint32_t *frame_post_order(const struct frame *frame);

/* Steps from the nearest root over first parents: 0 for a root. [n_nodes], borrowed; NULL when out of memory. */
const uint32_t *frame_depths(const struct frame *frame);

/* What a node stands for, and the word for it: "function", ... */
enum frame_kind frame_kind(const struct frame *frame, uint32_t node);
const char *frame_kind_name(enum frame_kind kind);

/* Whether nodes of a kind are parts of the function above them: loops, statements, call sites, instructions. */
bool frame_kind_is_part(enum frame_kind kind);

/* Whether nodes of a kind are functions, inlined ones and code that has none included. */
bool frame_kind_is_function(enum frame_kind kind);

/* The attributes that every node has, "" and 0 where they are not known. Borrowed from the frame. */
const char *frame_name(const struct frame *frame, uint32_t node);
const char *frame_file(const struct frame *frame, uint32_t node);
const char *frame_module(const struct frame *frame, uint32_t node);
uint32_t frame_line(const struct frame *frame, uint32_t node);

/* Further attributes by name, as the file has them: texts, or numbers (NAN = none). Databases have "id" (of the
 * context) and "tree": "code", or "data", which has the same costs once more, by variable. Nodes of data have "class"
 * (heap, mmap, static, thread-local, stack, file, unknown, ...); from a variable on downwards "variable" is its name,
 * and in databases of ours "element_type" the type of its elements; the variable itself has "size", "blocks",
 * "element_size" and "site" there. Where instructions are known, "offset" is the address in the module of an
 * instruction, of the call that a line makes, and of the begin of a function. */
size_t frame_n_attributes(const struct frame *frame);
const char *frame_attribute_name(const struct frame *frame, size_t attribute);
bool frame_attribute_is_text(const struct frame *frame, size_t attribute);
const char *frame_attribute_text(const struct frame *frame, size_t attribute, uint32_t node);
double frame_attribute_number(const struct frame *frame, size_t attribute, uint32_t node);

/* The attribute of this name that is a number; SIZE_MAX: there is none. */
size_t frame_find_number(const struct frame *frame, const char *name);

/* What makes two nodes of two frames the same: kind, name, file, and line or shared library, or what else a file says
 * that belongs to it; never an address, and never the name of a program, which may be another one. Borrowed from the
 * frame. */
const char *frame_identity(const struct frame *frame, uint32_t node);

/* Whether that is kind, name and file, with the line of loops, lines, calls and instructions, or the shared library of
 * others, and nothing else. */
bool frame_identity_is_usual(const struct frame *frame, uint32_t node);

/* --- profiles and columns --- */

/* The profiles, numbered from 0. Borrowed from the frame. */
size_t frame_n_profiles(const struct frame *frame);
const struct frame_profile *frame_profile(const struct frame *frame, uint32_t profile);

/* The columns, numbered from 0. Names are borrowed from the frame. */
size_t frame_n_columns(const struct frame *frame);
const char *frame_column_name(const struct frame *frame, size_t column);
enum frame_sums frame_column_sums(const struct frame *frame, size_t column);
bool frame_column_is_hidden(const struct frame *frame, size_t column);

/* The column of this name. SIZE_MAX: there is none; *err then names those that are near. err may be NULL. */
size_t frame_find_column(const struct frame *frame, const char *name, struct error *err);

/* The column that a report shows when nobody asks for one. Of those that are not hidden, exclusive ones come first;
 * among these the latency that hardware measured, then "time", then the first that does not count bytes. SIZE_MAX:
 * there is none. */
size_t frame_default_column(const struct frame *frame);

/* The column with the same costs summed the other way: the inclusive one of an exclusive column, and the reverse.
 * SIZE_MAX: there is none. */
size_t frame_column_pair(const struct frame *frame, size_t column);

/* The values of all nodes, [n_nodes], NAN where there is none; computed once for each view and kept until the frame is
 * closed. view NULL: the sum over all profiles.  err: ERR_IO, ERR_FORMAT, ERR_MEMORY */
int frame_values(struct frame *frame, size_t column, const struct frame_view *view, const double **values,
                 struct error *err);

/* The cells of a node, by profile: [*n], valid until the next call for the frame.  err: as frame_values */
int frame_cells(struct frame *frame, size_t column, uint32_t node, const struct frame_cell **cells, size_t *n,
                struct error *err);

/* --- many at once, for other languages --- */

/* What the nodes [n_nodes] are, into arrays of the caller; NULL: not wanted. parents: the first one, FRAME_NONE of
 * roots. Texts are borrowed from the frame; equal ones need not have equal addresses. */
void frame_get_nodes(const struct frame *frame, enum frame_kind *kinds, const char **names, const char **files,
                     const char **modules, uint32_t *lines, uint32_t *parents);

/* A further attribute of all nodes [n_nodes], as texts if it has texts, else as numbers. */
void frame_get_texts(const struct frame *frame, size_t attribute, const char **texts);
void frame_get_numbers(const struct frame *frame, size_t attribute, double *numbers);

/* The value that a node has in a profile. */
struct frame_entry {
    uint32_t node, profile;
    double value;
};

/* All cells of a column, by node and then by profile: [*n], malloc'ed.  err: as frame_values */
int frame_entries(struct frame *frame, size_t column, struct frame_entry **entries, size_t *n, struct error *err);

/* The cells of several columns [n_columns] as rows [*n], by node and then by profile, where any of them has a value:
 * the nodes, the profiles, and for each column its values, NAN where it has none. All arrays are malloc'ed.
 * err: as frame_values */
int frame_get_rows(struct frame *frame, const size_t *columns, size_t n_columns, uint32_t **nodes, uint32_t **profiles,
                   double **values, size_t *n, struct error *err);

#ifdef __cplusplus
}
#endif

#endif
