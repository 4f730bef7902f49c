/* SPDX-License-Identifier: BSD-3-Clause */
/* Types of variables with static storage, and what templates were made with. */
#include <dwarf.h>
#include <stdlib.h>

#include "structure/types-internal.h"

uint32_t types_of_static(struct symbols *symbols, uint64_t vaddr, bool tls, uint64_t *start, const char **name)
{
    const struct dwarf_variable *best = NULL;
    size_t n = symbols_dwarf_variables(symbols), low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (symbols_variable_before(&symbols->variables[middle], tls, vaddr))
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t tries = 0; low > 0 && tries < 8 && !best; tries++)
        if (symbols->variables[--low].is_tls == tls)
            best = &symbols->variables[low];
    if (!best)
        return 0;
    Dwarf_Die die = best->die;
    uint32_t type = types_enter_of(symbols, &die);
    uint64_t size = types_size(symbols, type);
    if (vaddr - best->vaddr >= (size ? size : 1))
        return 0;
    *start = best->vaddr;
    *name = dwarf_diename(&die);
    return type;
}

/* name NULL: the first one */
static uint32_t template_argument(struct symbols *symbols, Dwarf_Die *die, const char *name)
{
    Dwarf_Die child;
    if (dwarf_child(die, &child) != 0)
        return 0;
    do {
        if (dwarf_tag(&child) == DW_TAG_template_type_parameter &&
            (!name || types_same_name(dwarf_diename(&child), name, false)))
            return types_enter_of(symbols, &child);
    } while (dwarf_siblingof(&child, &child) == 0);
    return 0;
}

uint32_t types_template_argument(struct symbols *symbols, uint32_t id)
{
    Dwarf_Die *die = types_die(symbols, types_strip(symbols, id));
    return die ? template_argument(symbols, die, NULL) : 0;
}

/* From the concrete or inlined function to the declaration inside its class. */
static bool declaration_of(Dwarf_Die *die)
{
    static const unsigned attributes[] = {DW_AT_abstract_origin, DW_AT_specification};
    Dwarf_Attribute attribute;
    for (int i = 0; i < 4; i++)
        for (size_t a = 0; a < 2; a++)
            if (dwarf_attr(die, attributes[a], &attribute) && !dwarf_formref_die(&attribute, die))
                return false;
    return true;
}

bool types_class_of(struct symbols *symbols, uint64_t function, Dwarf_Die *structure)
{
    Dwarf_Die die, *scopes = NULL;
    if (!symbols->dwarf || !function || !dwarf_offdie(symbols->dwarf, function, &die) || !declaration_of(&die))
        return false;
    int n = dwarf_getscopes_die(&die, &scopes);
    if (n > 1)
        *structure = scopes[1];
    free(scopes);
    return n > 1 && (dwarf_tag(structure) == DW_TAG_structure_type || dwarf_tag(structure) == DW_TAG_class_type);
}

uint32_t types_template_of_function(struct symbols *symbols, uint64_t offset)
{
    Dwarf_Die structure;
    return types_class_of(symbols, offset, &structure) ? template_argument(symbols, &structure, NULL) : 0;
}

uint32_t types_template_parameter(struct symbols *symbols, Dwarf_Die *function, const char *name)
{
    Dwarf_Die die = *function, *scopes = NULL;
    uint32_t found = 0;
    if (!declaration_of(&die))
        return 0;
    int n = dwarf_getscopes_die(&die, &scopes);
    for (int i = 0; i < n && !found; i++)
        found = template_argument(symbols, &scopes[i], name);
    free(scopes);
    return found;
}
