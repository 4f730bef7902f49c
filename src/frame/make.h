/* SPDX-License-Identifier: BSD-3-Clause */
/* How frames are made: by readers, node by node and value by value, and by operations, from the parts of other frames.
 * Ordinary code; for the files of this folder. */
#ifndef LOCUS_FRAME_MAKE_H
#define LOCUS_FRAME_MAKE_H

#include "base/vec.h"
#include "frame/columns.h"

/* --- the parts of a frame --- */

/* Texts that several frames share: they only ever grow. */
struct frame_strings {
    unsigned n_owners;
    struct strtab table; /* id 0 is "" */
};

/* A further attribute of nodes. */
struct frame_attribute {
    char *name;
    uint32_t *texts; /* [n] ids, or NULL: it is a number */
    double *numbers; /* [n] */
};

/* What the nodes are. */
struct frame_nodes {
    unsigned n_owners;
    uint32_t n;
    struct frame_strings *strings;
    uint8_t *kinds;                            /* [n] enum frame_kind */
    uint32_t *names, *files, *modules, *lines; /* [n] ids of strings; numbers */
    uint32_t *identities;                      /* [n] ids of strings, see frame_identity */
    struct frame_attribute *attributes;        /* [n_attributes] */
    size_t n_attributes, cap_attributes;
};

struct frame_profiles {
    unsigned n_owners;
    struct frame_profile *items; /* [n]; names are malloc'ed */
    size_t n, capacity;
};

struct frame {
    unsigned n_owners;
    struct frame_graph *graph;
    struct frame_nodes *nodes;
    struct frame_profiles *profiles;
    struct frame_column **columns; /* [n_columns] */
    size_t n_columns, cap_columns;
};

/* A frame without columns that takes over one ownership of each part, also on failure. NULL when out of memory, or when
 * a part is NULL. */
struct frame *frame_new(struct frame_graph *graph, struct frame_nodes *nodes, struct frame_profiles *profiles);

/* Adds a column, whose ownership is taken over, also on failure.  err: ERR_MEMORY (also for column NULL) */
int frame_add_column(struct frame *frame, struct frame_column *column, struct error *err);

/* One owner more of a part, and one less. */
struct frame_nodes *nodes_keep(struct frame_nodes *nodes);
struct frame_profiles *profiles_keep(struct frame_profiles *profiles);
void nodes_drop(struct frame_nodes *nodes);
void profiles_drop(struct frame_profiles *profiles);

/* Some of the nodes, or all in another order: node i is that of `from` whose number is old_of[i]. NULL when out of
 * memory. */
struct frame_nodes *nodes_choose(const struct frame_nodes *from, const uint32_t *old_of, uint32_t n);

/* Says that a name is none of the columns and the others [n_others], and which of these it is like: "WHAT 'NAME'; did
 * you mean 'time'?". Returns ERR_NOT_FOUND, or ERR_MEMORY. */
int frame_unknown(const struct frame *frame, const char *const *others, size_t n_others, const char *what,
                  const char *name, struct error *err);

/* --- one by one --- */

/* What a reader says of a node. NULL texts are "". */
struct made_node {
    enum frame_kind kind;
    const char *name, *file, *module;
    uint32_t line;
    const char *identity; /* NULL: made of these, by made_node_put_identity */
};

/* The name [*len] of the shared library that a module is: "libm" of "/lib/libm.so.6"; 0: it is none. A program is
 * itself under another name, but a function of one library is not that of another one. */
const char *made_node_library(const char *module, int *len);

/* Appends the identity of a node that names none: kind, name and file, the line of what is a place in the source, and
 * the shared library of what else is in one. */
void made_node_put_identity(const struct made_node *node, struct buf *out);

/* A frame on its way. All failures are remembered: after the first one nothing more happens, and frame_made reports
 * it. */
struct frame_maker {
    struct frame_nodes *nodes;
    struct frame_profiles *profiles;
    size_t cap_nodes;
    struct frame_edge *edges;
    size_t n_edges, cap_edges;
    struct made_column {
        char *name;
        enum frame_sums sums;
        bool is_hidden;
        struct made_value {
            uint32_t node, profile;
            double value;
        } * values; /* [n_values] */
        size_t n_values, cap_values;
    } * columns; /* [n_columns] */
    size_t n_columns, cap_columns;
    struct buf text; /* of an identity */
    bool failed;     /* out of memory */
};

/* Begins a frame without nodes. */
void maker_init(struct frame_maker *maker);

/* Adds a node below parent, FRAME_NONE: none. Returns its number, which frame_made changes. */
uint32_t maker_node(struct frame_maker *maker, uint32_t parent, const struct made_node *node);
void maker_edge(struct frame_maker *maker, uint32_t parent, uint32_t child);

/* Sets a further attribute of a node. */
void maker_text(struct frame_maker *maker, const char *attribute, uint32_t node, const char *text);
void maker_number(struct frame_maker *maker, const char *attribute, uint32_t node, double number);

/* Adds a profile, whose name is copied, or a column; returns its number. */
uint32_t maker_profile(struct frame_maker *maker, const struct frame_profile *profile);
size_t maker_column(struct frame_maker *maker, const char *name, enum frame_sums sums);

/* A value of a node in a profile; a second one is added to the first. NAN is no value. */
void maker_value(struct frame_maker *maker, size_t column, uint32_t node, uint32_t profile, double value);

/* Ends the maker: *frame is the caller's. Where there is no profile, there is one without a name. *new_of, when not
 * NULL, gets the new number of each node, malloc'ed.  err: ERR_MEMORY */
int frame_made(struct frame_maker *maker, struct frame **frame, uint32_t **new_of, struct error *err);

/* Frees a maker that is not to be ended. */
void maker_fini(struct frame_maker *maker);

#endif
