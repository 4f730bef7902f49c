/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of types: a type is entered when something refers to it and read when it is first used, so that a walk only
 * costs what it touches and recursive types need no special care. A DIE is identified by its address in the mapped
 * section, whichever file that belongs to (type units, dwz, split DWARF). */
#include "structure/types/types.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "structure/types/types-dwarf.h"

/* --- what the DIE of a type says: size, target, fields, dimensions --- */

#define ALL_FIELDS_MAX 16000000 /* of one module */

/* An attribute that is a constant number, signed; false when it is missing or of another form. */
static bool types_number(Dwarf_Die *die, unsigned name, int64_t *value)
{
    Dwarf_Attribute attribute;
    Dwarf_Sword number = 0;
    Dwarf_Word word = 0;
    if (!dwarf_attr_integrate(die, name, &attribute))
        return false;
    switch (dwarf_whatform(&attribute)) {
    case DW_FORM_sdata:
    case DW_FORM_implicit_const:
        if (dwarf_formsdata(&attribute, &number) != 0)
            return false;
        *value = number;
        return true;
    case DW_FORM_data1:
    case DW_FORM_data2:
    case DW_FORM_data4:
    case DW_FORM_data8:
    case DW_FORM_udata:
        if (dwarf_formudata(&attribute, &word) != 0)
            return false;
        *value = (int64_t)word;
        return true;
    default:
        return false;
    }
}

static uint64_t size_of(Dwarf_Die *die)
{
    int64_t size = 0;
    if (types_number(die, DW_AT_byte_size, &size) && size > 0)
        return (uint64_t)size;
    if (types_number(die, DW_AT_bit_size, &size) && size > 0)
        return ((uint64_t)size + 7) / 8;
    return 0;
}

/* Offset of a member: a number, or the one that an expression adds; false when it is only known at run time. */
static bool member_offset(Dwarf_Die *die, uint64_t *offset)
{
    Dwarf_Attribute attribute;
    Dwarf_Op *ops = NULL;
    size_t n_ops = 0;
    int64_t number = 0;
    *offset = 0;
    if (!dwarf_attr(die, DW_AT_data_member_location, &attribute))
        return true;
    if (types_number(die, DW_AT_data_member_location, &number)) {
        *offset = (uint64_t)number;
        return number >= 0;
    }
    if (dwarf_getlocation(&attribute, &ops, &n_ops) != 0 || n_ops != 1 || ops[0].atom != DW_OP_plus_uconst)
        return false;
    *offset = ops[0].number;
    return true;
}

/* Reads both ways to describe bit fields: from the start of the structure, and from the high end of a storage unit. */
static void read_bits(Dwarf_Die *die, struct type_field *field)
{
    int64_t size = 0, offset = 0, unit = 0;
    if (!types_number(die, DW_AT_bit_size, &size) || size <= 0 || size > 1024)
        return;
    if (types_number(die, DW_AT_data_bit_offset, &offset)) {
        field->bit_offset = (uint32_t)offset;
    } else if (types_number(die, DW_AT_bit_offset, &offset)) {
        if (!types_number(die, DW_AT_byte_size, &unit))
            unit = 4;
        field->bit_offset = (uint32_t)((int64_t)field->offset_bytes * 8 + unit * 8 - offset - size);
    } else {
        field->bit_offset = (uint32_t)(field->offset_bytes * 8);
    }
    field->bit_size = (uint32_t)size;
    field->offset_bytes = field->bit_offset / 8;
}

static bool is_field(Dwarf_Die *die)
{
    int tag = dwarf_tag(die);
    bool is_static = dwarf_hasattr(die, DW_AT_external) || dwarf_hasattr(die, DW_AT_declaration);
    return (tag == DW_TAG_member && !is_static) || tag == DW_TAG_inheritance;
}

static void read_field(struct symbols *symbols, Dwarf_Die *die, struct type_node *node, size_t *capacity)
{
    struct type *type = &node->type;
    struct type_field field = {.name = dwarf_diename(die), .type = types_enter_of(symbols, die)};
    if (type->n_fields >= TYPES_FIELDS_MAX || symbols->types->n_fields >= ALL_FIELDS_MAX ||
        !vec_reserve(&type->fields, capacity, type->n_fields + 1, sizeof *type->fields)) {
        type->flags |= TYPE_IS_TRUNCATED;
        return;
    }
    if (!member_offset(die, &field.offset_bytes))
        return;
    read_bits(die, &field);
    field.flags = (dwarf_tag(die) == DW_TAG_inheritance ? FIELD_IS_BASE : 0) |
                  (dwarf_hasattr(die, DW_AT_artificial) ? FIELD_IS_ARTIFICIAL : 0);
    type->fields[type->n_fields++] = field;
    symbols->types->n_fields++;
}

/* Marks the last field of a structure as flexible if it is an array without length. */
static void mark_flexible(struct symbols *symbols, struct type *type)
{
    struct type_field *last = type->n_fields ? &type->fields[type->n_fields - 1] : NULL;
    if (!last || type->kind != TYPE_STRUCT)
        return;
    const struct type *array = types_get(symbols, types_strip(symbols, last->type));
    bool is_open = array->kind == TYPE_ARRAY && !(array->flags & TYPE_IS_DYNAMIC) && array->n_dimensions > 0 &&
                   array->dimensions[0].count == 0;
    if (is_open && last->offset_bytes <= type->size_bytes)
        last->flags |= FIELD_IS_FLEXIBLE;
}

static void read_fields(struct symbols *symbols, Dwarf_Die *parent, struct type_node *node)
{
    Dwarf_Die die;
    size_t capacity = 0;
    if (dwarf_child(parent, &die) != 0)
        return;
    do {
        if (is_field(&die))
            read_field(symbols, &die, node, &capacity);
    } while (dwarf_siblingof(&die, &die) == 0);
    mark_flexible(symbols, &node->type);
}

/* A structure that is only declared here takes its fields from where it is defined. */
static void read_structure(struct symbols *symbols, struct type_node *node)
{
    Dwarf_Die definition = node->die;
    if (dwarf_hasattr(&node->die, DW_AT_declaration) &&
        (!node->type.name || !types_find_name(symbols, node->type.name, false, &definition) ||
         dwarf_tag(&definition) != dwarf_tag(&node->die))) {
        node->type.flags |= TYPE_IS_INCOMPLETE;
        return;
    }
    node->type.size_bytes = size_of(&definition);
    read_fields(symbols, &definition, node);
}

/* Sets the count of a dimension. An upper bound below the lower one, as compilers write for C's [] and [0], leaves it
 * open. */
static void read_dimension(Dwarf_Die *die, bool is_fortran, struct type *type, struct type_dimension *dimension)
{
    int64_t number = 0, upper = 0;
    *dimension = (struct type_dimension){.lower = is_fortran};
    if (types_number(die, DW_AT_lower_bound, &number))
        dimension->lower = number;
    if (types_number(die, DW_AT_count, &number) && number > 0)
        dimension->count = (uint64_t)number;
    else if (types_number(die, DW_AT_upper_bound, &upper) && upper != INT64_MAX && upper >= dimension->lower &&
             (uint64_t)upper - (uint64_t)dimension->lower < UINT64_MAX >> 8 && upper != (int64_t)UINT32_MAX)
        dimension->count = (uint64_t)(upper - dimension->lower) + 1;
    if (!dimension->count)
        type->flags |= TYPE_IS_VARIABLE;
    if (types_number(die, DW_AT_byte_stride, &number) && number > 0)
        dimension->stride_bytes = (uint64_t)number;
}

static void read_array(struct symbols *symbols, struct type_node *node)
{
    struct type *type = &node->type;
    Dwarf_Die die;
    size_t capacity = 0;
    bool is_fortran = type->flags & TYPE_IS_FORTRAN;
    if (dwarf_hasattr(&node->die, DW_AT_data_location))
        type->flags |= TYPE_IS_DYNAMIC;
    if (dwarf_child(&node->die, &die) == 0) {
        do {
            int tag = dwarf_tag(&die);
            if ((tag != DW_TAG_subrange_type && tag != DW_TAG_generic_subrange && tag != DW_TAG_enumeration_type) ||
                type->n_dimensions >= TYPES_FIELDS_MAX ||
                !vec_reserve(&type->dimensions, &capacity, type->n_dimensions + 1, sizeof *type->dimensions))
                continue;
            read_dimension(&die, is_fortran, type, &type->dimensions[type->n_dimensions++]);
        } while (dwarf_siblingof(&die, &die) == 0);
    }
    uint64_t size = types_size(symbols, type->target);
    for (size_t i = 0; i < type->n_dimensions; i++)
        if (__builtin_mul_overflow(size, type->dimensions[i].count, &size))
            size = 0;
    type->size_bytes = size_of(&node->die);
    if (!type->size_bytes && !(type->flags & TYPE_IS_DYNAMIC))
        type->size_bytes = size;
}

static uint64_t pointer_bytes(Dwarf_Die *die)
{
    uint8_t address_bytes = 8;
    Dwarf_Die unit;
    uint64_t size = size_of(die);
    (void)dwarf_diecu(die, &unit, &address_bytes, NULL);
    return size ? size : address_bytes;
}

static bool is_float(Dwarf_Die *die)
{
    int64_t encoding = 0;
    return types_number(die, DW_AT_encoding, &encoding) &&
           (encoding == DW_ATE_float || encoding == DW_ATE_complex_float || encoding == DW_ATE_imaginary_float);
}

/* types.c: fills everything but the name of a type from its DIE. */
static void types_read(struct symbols *symbols, struct type_node *node)
{
    struct type *type = &node->type;
    int line = 0;
    type->flags = types_language(&node->die);
    type->target = types_enter_of(symbols, &node->die);
    if (dwarf_decl_line(&node->die, &line) == 0) {
        type->decl_line = (uint32_t)line;
        type->decl_file = symbols_decl_file(symbols, &node->die);
    }
    switch (type->kind) {
    case TYPE_STRUCT:
        type->flags |= dwarf_tag(&node->die) == DW_TAG_class_type ? TYPE_IS_CLASS : 0;
        read_structure(symbols, node);
        break;
    case TYPE_UNION:
        read_structure(symbols, node);
        break;
    case TYPE_ARRAY:
        read_array(symbols, node);
        break;
    case TYPE_POINTER:
        type->flags |= dwarf_tag(&node->die) != DW_TAG_pointer_type ? TYPE_IS_REFERENCE : 0;
        type->size_bytes = pointer_bytes(&node->die);
        break;
    case TYPE_BASE:
        type->flags |= is_float(&node->die) ? TYPE_IS_FLOAT : 0;
        type->size_bytes = size_of(&node->die);
        break;
    default:
        type->size_bytes = size_of(&node->die);
        break;
    }
}

/* --- the table --- */

static uint64_t hash_node(const void *item)
{
    const struct type_node *const *node = item;
    return (uintptr_t)(*node)->die.addr;
}

static bool is_same_node(const void *a, const void *b)
{
    const struct type_node *const *one = a, *const *other = b;
    return (*one)->die.addr == (*other)->die.addr;
}

static const struct slots_kind by_die = {sizeof(struct type_node *), hash_node, is_same_node};

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

static void types_free(struct types *types)
{
    if (!types)
        return;
    for (size_t i = 0; i < types->n_nodes; i++) {
        free(types->nodes[i]->type.fields);
        free(types->nodes[i]->type.dimensions);
        free(types->nodes[i]);
    }
    free(types->nodes);
    slots_fini(&types->slots);
    free(types->names);
    slots_fini(&types->name_slots);
    free(types);
}

struct types *types_of_symbols(struct symbols *symbols)
{
    if (!symbols->types && (symbols->types = calloc(1, sizeof *symbols->types))) {
        symbols->types_free = types_free;
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
static bool strip_qualifiers(Dwarf_Die *die)
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
    if (!types || !strip_qualifiers(&die))
        return 0;
    enum type_kind kind = kind_of_tag(dwarf_tag(&die));
    if (kind == TYPE_UNKNOWN || !slots_reserve(&types->slots, &by_die, types->nodes, types->n_nodes))
        return 0;
    const struct type_node like = {.die = die}, *const key = &like;
    size_t found = slots_find(&types->slots, &by_die, types->nodes, &key);
    if (found != SLOTS_NONE)
        return (uint32_t)found;
    struct type_node *node = types->n_nodes < TYPES_MAX ? add_node(types) : NULL;
    if (!node)
        return 0;
    node->die = die;
    node->type = (struct type){.kind = kind, .name = dwarf_diename(&die), .die = dwarf_dieoffset(&die)};
    slots_add(&types->slots, &by_die, types->nodes, types->n_nodes - 1);
    return (uint32_t)types->n_nodes - 1;
}

uint32_t types_enter_of(struct symbols *symbols, Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    Dwarf_Die type;
    if (!dwarf_attr_integrate(die, DW_AT_type, &attribute) || !dwarf_formref_die(&attribute, &type))
        return 0;
    return types_enter(symbols, &type);
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
        node->is_read = true; /* set before reading, so that a type that contains itself ends here */
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

/* depth bounds the pointers to pointers to ... in a hostile file. */
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
