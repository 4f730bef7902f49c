/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of types: a type is entered when something refers to it and read when it is looked at, so that a walk costs
 * what it touches and recursive types need no care. A DIE is known by its address in the mapped section, whichever file
 * (type units, dwz, split DWARF) that belongs to. */
#include "structure/types.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "structure/types-internal.h"

static size_t slot_of(const struct types *types, const void *address)
{
    size_t slot = (size_t)((uintptr_t)address * 0x9e3779b97f4a7c15u >> 20) & (types->n_slots - 1);
    while (types->slots[slot] && types->nodes[types->slots[slot]]->die.addr != address)
        slot = (slot + 1) & (types->n_slots - 1);
    return slot;
}

static bool grow_slots(struct types *types)
{
    if (types->n_nodes * 2 < types->n_slots)
        return true;
    free(types->slots);
    types->n_slots = types->n_slots ? types->n_slots * 2 : 1024;
    types->slots = calloc(types->n_slots, sizeof *types->slots);
    if (!types->slots) {
        types->n_slots = 0;
        return false;
    }
    for (size_t i = 1; i < types->n_nodes; i++)
        types->slots[slot_of(types, types->nodes[i]->die.addr)] = (uint32_t)i;
    return true;
}

static struct type_node *add_node(struct types *types)
{
    struct type_node *node = calloc(1, sizeof *node);
    if (!node || !vec_reserve(&types->nodes, &types->cap_nodes, types->n_nodes + 1, sizeof(struct type_node *))) {
        free(node);
        return NULL;
    }
    types->nodes[types->n_nodes++] = node;
    return node;
}

struct types *types_of_symbols(struct symbols *symbols)
{
    if (!symbols->types && (symbols->types = calloc(1, sizeof *symbols->types))) {
        struct type_node *nothing = add_node(symbols->types);
        if (!nothing) {
            free(symbols->types);
            symbols->types = NULL;
            return NULL;
        }
        nothing->is_read = true;
    }
    return symbols->types;
}

void types_free(struct types *types)
{
    if (!types)
        return;
    for (size_t i = 0; i < types->n_nodes; i++) {
        free(types->nodes[i]->type.fields);
        free(types->nodes[i]->type.dimensions);
        free(types->nodes[i]);
    }
    free(types->nodes);
    free(types->slots);
    free(types->names);
    free(types);
}

uint32_t types_language(Dwarf_Die *die)
{
    Dwarf_Die unit;
    if (!dwarf_diecu(die, &unit, NULL, NULL))
        return 0;
    switch (dwarf_srclang(&unit)) {
    case DW_LANG_Fortran77:
    case DW_LANG_Fortran90:
    case DW_LANG_Fortran95:
    case DW_LANG_Fortran03:
    case DW_LANG_Fortran08:
    case 0x2d: /* Fortran 2018 */
        return TYPE_IS_FORTRAN;
    case DW_LANG_C:
    case DW_LANG_C89:
    case DW_LANG_C99:
    case DW_LANG_C11:
    case 0x2c: /* C17 */
        return TYPE_IS_C;
    default:
        return 0;
    }
}

static enum type_kind kind_of_tag(int tag)
{
    switch (tag) {
    case DW_TAG_base_type:
    case DW_TAG_string_type:
    case DW_TAG_unspecified_type:
    case DW_TAG_ptr_to_member_type:
        return TYPE_BASE;
    case DW_TAG_pointer_type:
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type:
        return TYPE_POINTER;
    case DW_TAG_array_type:
        return TYPE_ARRAY;
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_interface_type:
        return TYPE_STRUCT;
    case DW_TAG_union_type:
        return TYPE_UNION;
    case DW_TAG_enumeration_type:
        return TYPE_ENUM;
    case DW_TAG_subroutine_type:
        return TYPE_FUNCTION;
    case DW_TAG_typedef:
    case DW_TAG_template_alias:
        return TYPE_ALIAS;
    default:
        return TYPE_UNKNOWN;
    }
}

/* Removes qualifiers, and takes the definition in a type unit for the stub that refers to it. */
static bool peel(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    Dwarf_Die inner;
    for (int i = 0; i < TYPES_DEPTH_MAX; i++) {
        int tag = dwarf_tag(die);
        bool is_qualifier = tag == DW_TAG_const_type || tag == DW_TAG_volatile_type || tag == DW_TAG_restrict_type ||
                            tag == DW_TAG_atomic_type || tag == DW_TAG_immutable_type || tag == DW_TAG_packed_type ||
                            tag == DW_TAG_shared_type;
        if (!is_qualifier && !dwarf_hasattr(die, DW_AT_signature))
            return true;
        if (!dwarf_attr(die, is_qualifier ? DW_AT_type : DW_AT_signature, &attribute) ||
            !dwarf_formref_die(&attribute, &inner))
            return !is_qualifier;
        *die = inner;
    }
    return false;
}

uint32_t types_enter(struct symbols *symbols, Dwarf_Die *from)
{
    struct types *types = types_of_symbols(symbols);
    Dwarf_Die die = *from;
    if (!types || !peel(&die))
        return 0;
    enum type_kind kind = kind_of_tag(dwarf_tag(&die));
    if (kind == TYPE_UNKNOWN || !grow_slots(types))
        return 0;
    size_t slot = slot_of(types, die.addr);
    if (types->slots[slot])
        return types->slots[slot];
    struct type_node *node = types->n_nodes < TYPES_MAX ? add_node(types) : NULL;
    if (!node)
        return 0;
    node->die = die;
    node->type = (struct type){.kind = kind, .name = dwarf_diename(&die), .die = dwarf_dieoffset(&die)};
    return types->slots[slot] = (uint32_t)types->n_nodes - 1;
}

uint32_t types_enter_of(struct symbols *symbols, Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    Dwarf_Die type;
    if (!dwarf_attr_integrate(die, DW_AT_type, &attribute) || !dwarf_formref_die(&attribute, &type))
        return 0;
    return types_enter(symbols, &type);
}

uint32_t types_of_die(struct symbols *symbols, uint64_t offset)
{
    Dwarf_Die die;
    return symbols->dwarf && dwarf_offdie(symbols->dwarf, offset, &die) ? types_enter_of(symbols, &die) : 0;
}

uint32_t types_at_die(struct symbols *symbols, uint64_t offset)
{
    Dwarf_Die die;
    return symbols->dwarf && dwarf_offdie(symbols->dwarf, offset, &die) ? types_enter(symbols, &die) : 0;
}

Dwarf_Die *types_die(struct symbols *symbols, uint32_t id)
{
    struct types *types = types_of_symbols(symbols);
    return id && types && id < types->n_nodes ? &types->nodes[id]->die : NULL;
}

const struct type *types_get(struct symbols *symbols, uint32_t id)
{
    static const struct type nothing;
    struct types *types = types_of_symbols(symbols);
    if (!types || id >= types->n_nodes)
        return &nothing;
    struct type_node *node = types->nodes[id];
    if (!node->is_read) {
        if (types->depth > TYPES_DEPTH_MAX)
            return &nothing;
        types->depth++;
        node->is_read = true; /* first, so that a type that holds itself ends here */
        types_read(symbols, node);
        types->depth--;
    }
    return &node->type;
}

uint32_t types_strip(struct symbols *symbols, uint32_t id)
{
    for (int i = 0; i < TYPES_DEPTH_MAX; i++) {
        const struct type *type = types_get(symbols, id);
        if (type->kind != TYPE_ALIAS)
            return id;
        id = type->target;
    }
    return 0;
}

uint64_t types_size(struct symbols *symbols, uint32_t id)
{
    return types_get(symbols, types_strip(symbols, id))->size_bytes;
}

uint32_t types_element(struct symbols *symbols, uint32_t id)
{
    for (int i = 0; i < TYPES_DEPTH_MAX; i++) {
        id = types_strip(symbols, id);
        const struct type *type = types_get(symbols, id);
        if (type->kind != TYPE_ARRAY)
            return id;
        id = type->target;
    }
    return 0;
}

static void append(char *text, size_t size_bytes, const char *more)
{
    size_t len = strlen(text);
    if (len + 1 < size_bytes)
        (void)snprintf(text + len, size_bytes - len, "%s", more);
}

static const char *nameless(const struct type *type)
{
    switch (type->kind) {
    case TYPE_STRUCT:
        return "struct {...}";
    case TYPE_UNION:
        return "union {...}";
    case TYPE_ENUM:
        return "enum {...}";
    case TYPE_FUNCTION:
        return "function";
    case TYPE_UNKNOWN:
        return "void";
    default:
        return "?";
    }
}

static const char *keyword(const struct type *type)
{
    if (!(type->flags & TYPE_IS_C) || !type->name)
        return "";
    return type->kind == TYPE_STRUCT  ? "struct "
           : type->kind == TYPE_UNION ? "union "
           : type->kind == TYPE_ENUM  ? "enum "
                                      : "";
}

static void append_dimensions(const struct type *type, char *text, size_t size_bytes)
{
    char number[32];
    bool is_fortran = type->flags & TYPE_IS_FORTRAN;
    append(text, size_bytes, is_fortran ? "(" : " ");
    for (size_t i = 0; i < type->n_dimensions; i++) {
        unsigned long long count = type->dimensions[i].count;
        if (is_fortran)
            (void)snprintf(number, sizeof number, count ? "%s%llu" : "%s:", i ? "," : "", count);
        else
            (void)snprintf(number, sizeof number, count ? "[%.0s%llu]" : "[]", "", count);
        append(text, size_bytes, number);
    }
    if (is_fortran)
        append(text, size_bytes, ")");
}

/* depth bounds pointers to pointers to ... of a hostile file. */
static void spell(struct symbols *symbols, uint32_t id, char *text, size_t size_bytes, int depth)
{
    const struct type *type = types_get(symbols, id);
    bool is_composed = !type->name && (type->kind == TYPE_POINTER || type->kind == TYPE_ARRAY);
    if (!is_composed || depth > TYPES_DEPTH_MAX) {
        append(text, size_bytes, keyword(type));
        append(text, size_bytes, type->name ? type->name : nameless(type));
        return;
    }
    spell(symbols, type->target, text, size_bytes, depth + 1);
    if (type->kind == TYPE_ARRAY) {
        append_dimensions(type, text, size_bytes);
        return;
    }
    size_t len = strlen(text);
    append(text, size_bytes, len && text[len - 1] == '*' ? "" : " ");
    append(text, size_bytes, type->flags & TYPE_IS_REFERENCE ? "&" : "*");
}

const char *types_spell(struct symbols *symbols, uint32_t id, char *text, size_t size_bytes)
{
    text[0] = 0;
    spell(symbols, id, text, size_bytes, 0);
    return text;
}
