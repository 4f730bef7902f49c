/* SPDX-License-Identifier: BSD-3-Clause */
/* What the DIE of a type says: size, target, fields, dimensions. */
#include <dwarf.h>
#include <stdlib.h>

#include "structure/types-internal.h"

#define ALL_FIELDS_MAX 16000000 /* of one module */

bool types_number(Dwarf_Die *die, unsigned name, int64_t *value)
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

/* Offset of a member: a number, or the one that an expression adds; false when only run time tells it. */
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

/* Both ways to describe bit fields: from the start of the structure, and from the high end of a storage unit. */
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

/* The last field of a structure, when it is an array without length. */
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

/* Sets the count of a dimension; an upper bound below the lower one, as C writes [] and [0], is an open one. */
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

void types_read(struct symbols *symbols, struct type_node *node)
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
