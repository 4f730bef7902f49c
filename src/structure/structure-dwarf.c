/* SPDX-License-Identifier: BSD-3-Clause */
/* What the debug information says about one function's code: its lines and the functions inlined into it. */
#include "structure/structure-make.h"

#include <dwarf.h>
#include <stdlib.h>

/* --- the rows of a unit's line table that cover one function --- */

#define ROWS_BACK_MAX 16 /* how many rows before code with line 0 are searched for a position */

/* The owned path of a string that libdw keeps. */
static const char *structure_path(struct structure *structure, const char *path)
{
    if (path == structure->last_raw)
        return structure->last_path;
    const void **known = path ? memo_of(&structure->paths, path) : NULL;
    if (known && !*known)
        *known = symbols_own_file(structure->symbols, structure->unit, path);
    structure->last_raw = path;
    structure->last_path = known ? *known : NULL;
    return structure->last_path;
}

static uint64_t row_address(Dwarf_Lines *lines, size_t i)
{
    Dwarf_Addr address = 0;
    (void)dwarf_lineaddr(dwarf_onesrcline(lines, i), &address);
    return address;
}

/* Position of row i or, when it has none, of the nearest row before it in its sequence. False at the end of one. */
static bool position_of(struct structure *structure, Dwarf_Lines *lines, size_t i, struct line_piece *piece)
{
    for (size_t tries = 0; tries < ROWS_BACK_MAX; tries++) {
        Dwarf_Line *row = dwarf_onesrcline(lines, i);
        int line = 0, column = 0;
        bool end = false;
        if (!row || (dwarf_lineendsequence(row, &end) == 0 && end))
            return false;
        if (dwarf_lineno(row, &line) == 0 && line > 0) {
            (void)dwarf_linecol(row, &column);
            piece->file = structure_path(structure, dwarf_linesrc(row, NULL, NULL));
            piece->line = (uint32_t)line;
            piece->column = (uint32_t)column;
            return true;
        }
        if (i-- == 0)
            return false;
    }
    return false;
}

static bool add_line(struct structure *structure, const struct line_piece *piece)
{
    if (structure->n_lines == structure->cap_lines &&
        !vec_reserve(&structure->lines, &structure->cap_lines, structure->n_lines + 1, sizeof *structure->lines))
        return false;
    structure->lines[structure->n_lines++] = *piece;
    return true;
}

/* Adds the rows of [start, end), addresses as in the debug information. */
static bool add_range(struct structure *structure, Dwarf_Lines *lines, size_t n, uint64_t start, uint64_t end)
{
    uint64_t bias = structure->symbols->dwarf_bias;
    size_t i = symbols_rows_upto(lines, n, start);
    i -= i > 0;
    for (uint64_t next = i < n ? row_address(lines, i) : end; i < n && next < end; i++) {
        uint64_t from = next < start ? start : next, to = end;
        next = i + 1 < n ? row_address(lines, i + 1) : end;
        to = next > end ? end : next;
        struct line_piece piece = {.start = from + bias, .end = to + bias};
        if (from < to && position_of(structure, lines, i, &piece) && !add_line(structure, &piece))
            return false;
    }
    return true;
}

bool structure_read_lines(struct structure *structure, struct dwarf_unit *unit)
{
    Dwarf_Lines *lines = NULL;
    size_t n = 0;
    uint64_t bias = structure->symbols->dwarf_bias;
    structure->n_lines = 0;
    if (!unit || dwarf_getsrclines(&unit->die, &lines, &n) != 0)
        return true;
    for (size_t i = 0; i < structure->n_ranges; i++)
        if (!add_range(structure, lines, n, structure->ranges[i].start - bias, structure->ranges[i].end - bias))
            return false;
    return true;
}

/* --- the tree of inlined functions, and which of them each address lies in --- */

#define WALK_DEPTH_MAX 64 /* of inlined functions, as in symbols-dwarf.c; blocks may nest as deeply in each */

/* One walk over a function's DIEs. */
struct inline_walk {
    struct structure *structure;
    Dwarf_Files *files;
    size_t n_files;
};

/* The attributes of an inlined function that matter, read in one pass. */
struct call {
    Dwarf_Word file, line, column;
    Dwarf_Attribute origin;
    bool has_origin;
};

static int take_attribute(Dwarf_Attribute *attribute, void *context)
{
    struct call *call = context;
    switch (dwarf_whatattr(attribute)) {
    case DW_AT_abstract_origin:
        call->origin = *attribute;
        call->has_origin = true;
        break;
    case DW_AT_call_file:
        (void)dwarf_formudata(attribute, &call->file);
        break;
    case DW_AT_call_line:
        (void)dwarf_formudata(attribute, &call->line);
        break;
    case DW_AT_call_column:
        (void)dwarf_formudata(attribute, &call->column);
        break;
    default:
        break;
    }
    return DWARF_CB_OK;
}

/* Name and declaration of a function's DIE, which are kept. */
static const struct inline_node *describe(struct structure *structure, Dwarf_Die *die)
{
    const void **known = memo_of(&structure->origins, die->addr);
    if (!known || *known)
        return known ? *known : NULL;
    struct inline_node *node = calloc(1, sizeof *node);
    struct symbols_frame frame;
    if (!node)
        return NULL;
    const char *linkage = symbols_dwarf_describe(structure->symbols, die, &frame);
    int64_t id = linkage ? strtab_intern(&structure->symbols->strings, linkage) : -1;
    node->linkage = id < 0 ? NULL : structure->symbols->strings.strings[id];
    node->name = frame.function;
    node->file = frame.decl_file;
    node->line = frame.decl_line;
    *known = node;
    return node;
}

static bool add_node(struct structure *structure, uint32_t parent, const struct inline_node *named)
{
    if (!named ||
        !vec_reserve(&structure->nodes, &structure->cap_nodes, structure->n_nodes + 1, sizeof *structure->nodes))
        return false;
    struct inline_node *node = &structure->nodes[structure->n_nodes++];
    *node = *named;
    node->parent = parent;
    node->depth = parent == STRUCTURE_NONE ? 0 : structure->nodes[parent].depth + 1;
    return true;
}

static bool add_nested(struct structure *structure, uint64_t start, uint64_t end, uint32_t node)
{
    if (!vec_reserve(&structure->nested, &structure->cap_nested, structure->n_nested + 1, sizeof *structure->nested))
        return false;
    structure->nested[structure->n_nested++] = (struct inline_piece){start, end, node, structure->nodes[node].depth};
    return true;
}

static bool add_inlined(struct inline_walk *walk, Dwarf_Die *die, uint32_t parent)
{
    struct structure *structure = walk->structure;
    struct call call = {0};
    Dwarf_Die origin;
    Dwarf_Addr base = 0, low = 0, high = 0;
    (void)dwarf_getattrs(die, take_attribute, &call, 0);
    bool has_origin = call.has_origin && dwarf_formref_die(&call.origin, &origin);
    if (!add_node(structure, parent, describe(structure, has_origin ? &origin : die)))
        return false;
    uint32_t at = (uint32_t)structure->n_nodes - 1;
    struct inline_node *node = &structure->nodes[at];
    node->call_line = (uint32_t)call.line;
    node->call_column = (uint32_t)call.column;
    if (call.file < walk->n_files)
        node->call_file = structure_path(structure, dwarf_filesrc(walk->files, call.file, NULL, NULL));
    uint64_t bias = structure->symbols->dwarf_bias;
    for (ptrdiff_t next = 0; (next = dwarf_ranges(die, next, &base, &low, &high)) > 0;)
        if (low < high && !add_nested(structure, low + bias, high + bias, at))
            return false;
    return true;
}

/* Keeps a DIE that may hold further functions: nested ones, methods of local classes. */
static bool add_inside(struct structure *structure, const Dwarf_Die *die)
{
    if (!vec_reserve(&structure->inside, &structure->cap_inside, structure->n_inside + 1, sizeof *structure->inside))
        return false;
    structure->inside[structure->n_inside++] = *die;
    return true;
}

static bool walk_children(struct inline_walk *walk, Dwarf_Die *parent, uint32_t node, unsigned n_blocks)
{
    Dwarf_Die die;
    if (n_blocks > WALK_DEPTH_MAX || walk->structure->nodes[node].depth >= WALK_DEPTH_MAX - 1 ||
        dwarf_child(parent, &die) != 0)
        return true;
    do {
        int tag = dwarf_tag(&die);
        bool ok = true;
        if (tag == DW_TAG_inlined_subroutine) {
            ok = add_inlined(walk, &die, node) && walk_children(walk, &die, (uint32_t)walk->structure->n_nodes - 1, 0);
        } else if (tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block) {
            ok = walk_children(walk, &die, node, n_blocks + 1);
        } else if (tag == DW_TAG_subprogram || tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
                   tag == DW_TAG_union_type) {
            ok = add_inside(walk->structure, &die);
        }
        if (!ok)
            return false;
    } while (dwarf_siblingof(&die, &die) == 0);
    return true;
}

static int compare_nested(const void *a, const void *b)
{
    const struct inline_piece *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static bool add_piece(struct structure *structure, uint64_t start, uint64_t end, uint32_t node)
{
    if (start >= end)
        return true;
    if (!vec_reserve(&structure->pieces, &structure->cap_pieces, structure->n_pieces + 1, sizeof *structure->pieces))
        return false;
    structure->pieces[structure->n_pieces++] = (struct inline_piece){start, end, node, 0};
    return true;
}

/* Flattens the nested pieces: sorted by start, outer before inner, each cut off where the one around it ends. */
static bool flatten(struct structure *structure)
{
    struct inline_piece stack[WALK_DEPTH_MAX + 1];
    size_t n = 0;
    uint64_t at = 0;
    for (size_t i = 0; i <= structure->n_nested; i++) {
        bool is_last = i == structure->n_nested;
        struct inline_piece piece = is_last ? (struct inline_piece){0} : structure->nested[i];
        while (n > 0 && (is_last || stack[n - 1].end <= piece.start || stack[n - 1].depth >= piece.depth)) {
            uint64_t end = is_last || stack[n - 1].end <= piece.start ? stack[n - 1].end : piece.start;
            if (!add_piece(structure, at, end, stack[n - 1].node))
                return false;
            at = end > at ? end : at;
            n--;
        }
        if (is_last)
            break;
        if (n == 0 && piece.depth > 0)
            continue; /* outside of the function */
        if (n > 0 && !add_piece(structure, at, piece.start, stack[n - 1].node))
            return false;
        if (n > 0 && piece.end > stack[n - 1].end)
            piece.end = stack[n - 1].end;
        at = piece.start > at ? piece.start : at;
        stack[n++] = piece;
    }
    return true;
}

bool structure_read_inlined(struct structure *structure, struct dwarf_unit *unit, Dwarf_Die *die)
{
    struct inline_walk walk = {.structure = structure};
    static const struct inline_node nameless;
    structure->n_nodes = structure->n_nested = structure->n_pieces = structure->n_inside = 0;
    if (!add_node(structure, STRUCTURE_NONE, die ? describe(structure, die) : &nameless))
        return false;
    for (size_t i = 0; i < structure->n_ranges; i++)
        if (!add_nested(structure, structure->ranges[i].start, structure->ranges[i].end, 0))
            return false;
    if (die) {
        if (dwarf_getsrcfiles(&unit->scopes, &walk.files, &walk.n_files) != 0)
            walk.n_files = 0;
        if (!walk_children(&walk, die, 0, 0))
            return false;
    }
    qsort(structure->nested, structure->n_nested, sizeof *structure->nested, compare_nested);
    return flatten(structure);
}
