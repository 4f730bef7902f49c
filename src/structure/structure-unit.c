/* SPDX-License-Identifier: BSD-3-Clause */
/* All functions of a compilation unit in one walk: each entry is looked at once, as part of the function it lies in. */
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "structure/structure-internal.h"

#define WALK_DEPTH_MAX 64

/* One walk over a unit. */
struct walk {
    struct structure *structure;
    struct dwarf_unit *unit;
    void (*take)(void *context, struct structure_function *function);
    void *context;
    bool is_c; /* structures hold no functions */
};

static bool walk_scope(struct walk *walk, Dwarf_Die *die, unsigned depth);

static bool walk_children(struct walk *walk, Dwarf_Die *parent, unsigned depth)
{
    Dwarf_Die die;
    if (depth > WALK_DEPTH_MAX || dwarf_child(parent, &die) != 0)
        return true;
    do
        if (!walk_scope(walk, &die, depth))
            return false;
    while (dwarf_siblingof(&die, &die) == 0);
    return true;
}

/* Makes a function with code, then those inside of it. */
static bool walk_function(struct walk *walk, Dwarf_Die *die, unsigned depth)
{
    struct structure *structure = walk->structure;
    struct structure_function function;
    structure->n_inside = 0;
    if (!structure_make(structure, walk->unit, die, &function))
        return false;
    if (function.n_scopes)
        walk->take(walk->context, &function);
    size_t n = depth < WALK_DEPTH_MAX ? structure->n_inside : 0;
    if (n == 0)
        return true;
    Dwarf_Die *inside = malloc(n * sizeof *inside);
    bool ok = inside != NULL;
    if (ok)
        memcpy(inside, structure->inside, n * sizeof *inside);
    for (size_t i = 0; ok && i < n; i++)
        ok = walk_scope(walk, &inside[i], depth + 1);
    free(inside);
    return ok;
}

/* Looks for functions in an entry that may hold some. */
static bool walk_scope(struct walk *walk, Dwarf_Die *die, unsigned depth)
{
    Dwarf_Addr base = 0, low = 0, high = 0;
    switch (dwarf_tag(die)) {
    case DW_TAG_subprogram:
        if (dwarf_ranges(die, 0, &base, &low, &high) > 0)
            return walk_function(walk, die, depth);
        return walk_children(walk, die, depth + 1);
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
        return walk->is_c || walk_children(walk, die, depth + 1);
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_lexical_block:
        return walk_children(walk, die, depth + 1);
    default:
        return true;
    }
}

static bool is_c(Dwarf_Die *unit)
{
    switch (dwarf_srclang(unit)) {
    case DW_LANG_C:
    case DW_LANG_C89:
    case DW_LANG_C99:
    case DW_LANG_C11:
        return true;
    default:
        return false;
    }
}

size_t structure_n_units(const struct structure *structure)
{
    return structure->symbols->n_units;
}

bool structure_unit(struct structure *structure, size_t i, void (*take)(void *, struct structure_function *),
                    void *context)
{
    struct dwarf_unit *unit = &structure->symbols->units[i];
    struct walk walk = {structure, unit, take, context, is_c(&unit->scopes)};
    return walk_children(&walk, &unit->scopes, 0);
}
