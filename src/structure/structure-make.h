/* SPDX-License-Identifier: BSD-3-Clause */
/* How a function is made: each step cuts its code up by one aspect (inlined functions, lines, blocks), and the pieces
 * are joined at the end. Apart from structure.h as elf/symbols-dwarf.h is from symbols.h. */
#ifndef LOCUS_STRUCTURE_STRUCTURE_MAKE_H
#define LOCUS_STRUCTURE_STRUCTURE_MAKE_H

#include "structure/cfg/cfg.h"
#include "structure/elf/symbols-dwarf.h"
#include "structure/structure.h"

/* An inlined function; node 0 is the function itself. */
struct inline_node {
    uint32_t parent; /* precedes its children */
    uint32_t depth;
    const char *name, *linkage, *file;
    uint32_t line;
    const char *call_file;
    uint32_t call_line, call_column;
};

/* Code [start, end) whose innermost inlined function is node. */
struct inline_piece {
    uint64_t start, end;
    uint32_t node, depth;
};

struct line_piece {
    uint64_t start, end;
    const char *file;
    uint32_t line, column;
};

/* Code [start, end) without any border inside. */
struct atom {
    uint64_t start, end;
    uint32_t node;   /* inlined function */
    uint32_t lines;  /* line piece, STRUCTURE_NONE: none */
    uint32_t loop;   /* innermost machine loop, CFG_NONE: none; later the source loop */
    bool is_carried; /* in a loop: its line is that of unrelated code that lies before it */
};

/* A loop of the source, from one or more machine loops. */
struct source_loop {
    uint32_t parent; /* machine loop index until merged */
    uint32_t merged; /* the loop it was merged into; itself when it was not merged */
    uint32_t node;   /* the inlined function it is written in */
    const char *file;
    uint32_t first_line, last_line;
    uint32_t key_line, key_column; /* position of the jump back */
    uint32_t top_line;             /* of the header's first instruction */
    uint32_t n_machine;
    uint32_t depth;
    bool is_irreducible;
    bool is_tested; /* the jump back is conditional, or a test on its line leaves the loop */
    uint64_t vaddr;
};

/* A value for a pointer, such as the names of an abstract function by the address of its DIE. */
struct memo {
    const void *key;
    const void *value;
};

struct memo_table {
    struct memo *slots; /* [n_slots] open addressing */
    size_t n_slots, n_used;
};

struct kept_function {
    uint64_t start, end;
    const struct structure_function *function;
};

struct structure {
    struct symbols *symbols;
    struct code_image image;
    struct cfg_decoder *decoder;
    struct returns *returns;
    struct cfg cfg;
    struct loops loops;
    struct nests nests; /* of the function nests_of, whose graph and loops are the ones here; NULL: of none */
    const struct structure_function *nests_of;
    struct cfg_range *ranges; /* [n_ranges] of the function being made */
    size_t n_ranges, cap_ranges;
    Dwarf_Die *inside; /* [n_inside] functions and types found inside the function being made */
    size_t n_inside, cap_inside;
    struct inline_node *nodes; /* [n_nodes] */
    size_t n_nodes, cap_nodes;
    struct inline_piece *nested, *pieces; /* [n_nested] as found; [n_pieces] disjoint */
    size_t n_nested, cap_nested, n_pieces, cap_pieces;
    struct line_piece *lines; /* [n_lines] */
    size_t n_lines, cap_lines;
    struct atom *atoms; /* [n_atoms] */
    size_t n_atoms, cap_atoms;
    struct source_loop *source; /* [n_source] as many as machine loops */
    size_t n_source, cap_source;
    struct structure_scope *scopes; /* [n_scopes] of the function being made */
    size_t n_scopes, cap_scopes;
    struct structure_span *spans; /* [n_spans] */
    size_t n_spans, cap_spans;
    Dwarf_Die *unit; /* of the function being made, with the line table; NULL: it has no debug information */
    const char *last_raw, *last_path; /* the last argument of structure_path, and its answer */
    struct memo_table places;         /* of the function being made: scope index by inlined function and loop */
    struct memo_table paths, origins;
    struct structure_function **owned; /* [n_owned] made by structure_function_at */
    size_t n_owned, cap_owned;
    struct kept_function *kept; /* [n_kept] their ranges, by start */
    size_t n_kept, cap_kept;
};

/* structure.c: the value of a key, added as NULL when new. NULL when out of memory. */
const void **memo_of(struct memo_table *table, const void *key);

/* structure.c: makes the function of a DIE; a function without code gets no scopes. False when out of memory. */
bool structure_make(struct structure *structure, struct dwarf_unit *unit, Dwarf_Die *die,
                    struct structure_function *function);

/* structure-dwarf.c: fills nodes, pieces and inside from the function's DIE in unit; without one there is one node for
 * all of ranges. False when out of memory. */
bool structure_read_inlined(struct structure *structure, struct dwarf_unit *unit, Dwarf_Die *die);

/* structure-dwarf.c: fills lines for ranges. Rows without line number take that of the row before.
 * False when out of memory. */
bool structure_read_lines(struct structure *structure, struct dwarf_unit *unit);

/* structure-loops.c: fills source from the machine loops and sets each atom's source loop. False when out of memory. */
bool structure_name_loops(struct structure *structure);
/* The loop that stands for loop i; STRUCTURE_NONE for itself. */
uint32_t structure_standing_loop(const struct structure *structure, uint32_t i);

#endif
