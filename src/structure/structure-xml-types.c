/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements D (local), R (place), T (type), M (field), E (dimension): see structure-xml-types.h and doc/FORMAT.md. */
#include "structure/structure-xml-types.h"

#include <stdlib.h>

#include "base/vec.h"
#include "structure/locals.h"
#include "structure/types.h"

struct structure_types {
    struct symbols *symbols;
    uint32_t *named; /* [n_named] ids in the order in which they were named */
    size_t n_named, cap_named;
    bool *is_named; /* [cap_is_named] by id */
    size_t cap_is_named;
};

struct structure_types *structure_types_new(struct symbols *symbols)
{
    struct structure_types *types = calloc(1, sizeof *types);
    if (types)
        types->symbols = symbols;
    return types;
}

void structure_types_free(struct structure_types *types)
{
    if (!types)
        return;
    free(types->named);
    free(types->is_named);
    free(types);
}

/* Writes the attribute t and remembers that the type is needed. */
static void put_type(struct structure_types *types, uint32_t id, struct xml_out *xml)
{
    if (id == 0 || !vec_reserve(&types->is_named, &types->cap_is_named, (size_t)id + 1, sizeof *types->is_named))
        return;
    if (!types->is_named[id]) {
        if (!vec_reserve(&types->named, &types->cap_named, types->n_named + 1, sizeof *types->named))
            return;
        types->is_named[id] = true;
        types->named[types->n_named++] = id;
    }
    xml_number_attribute(xml, "t", id);
}

void structure_types_put_static(struct structure_types *types, uint64_t vaddr, struct xml_out *xml)
{
    uint64_t start = 0;
    const char *name = NULL;
    uint32_t id = types_of_static(types->symbols, vaddr, false, &start, &name);
    if (start == vaddr)
        put_type(types, id, xml);
}

static void put_place(const struct local_place *place, struct xml_out *xml)
{
    static const char *const kinds[LOCAL_PLACE_KINDS] = {
        [LOCAL_UNKNOWN] = "unknown",   [LOCAL_FRAME] = "frame",   [LOCAL_INDIRECT] = "indirect",
        [LOCAL_REGISTER] = "register", [LOCAL_MEMORY] = "memory", [LOCAL_STATIC] = "static",
        [LOCAL_ENTRY] = "entry",       [LOCAL_VALUE] = "value"};
    bool has_register = place->kind == LOCAL_REGISTER || place->kind == LOCAL_MEMORY || place->kind == LOCAL_ENTRY;
    bool has_offset = place->kind == LOCAL_FRAME || place->kind == LOCAL_INDIRECT || place->kind == LOCAL_MEMORY ||
                      place->kind == LOCAL_STATIC;
    xml_open(xml, "R");
    xml_text_attribute(xml, "k", kinds[place->kind]);
    if (has_register)
        xml_signed_attribute(xml, "r", place->reg);
    if (has_offset)
        xml_signed_attribute(xml, "o", place->offset);
    xml_put(xml, " v=\"{");
    xml_put_range(xml, place->low, place->high);
    xml_put(xml, "}\"/>\n");
}

static void put_local(struct structure_types *types, const struct local *local, struct xml_out *xml)
{
    xml_open(xml, "D");
    xml_text_attribute(xml, "n", local->name);
    if (local->flags & LOCAL_IS_PARAMETER)
        xml_put(xml, " k=\"parameter\"");
    if (local->function)
        xml_text_attribute(xml, "p", local->function);
    xml_path_attribute(xml, "f", local->decl_file);
    xml_number_attribute(xml, "l", local->decl_line);
    if (local->size_bytes)
        xml_number_attribute(xml, "s", local->size_bytes);
    put_type(types, local->type, xml);
    xml_put(xml, ">\n");
    for (size_t i = 0; i < local->n_places; i++)
        put_place(&local->places[i], xml);
    xml_put(xml, "</D>\n");
}

void structure_types_put_locals(struct structure_types *types, uint64_t vaddr, struct xml_out *xml)
{
    const struct local *locals = NULL;
    size_t n = locals_of_function(types->symbols, vaddr, &locals);
    for (size_t i = 0; i < n; i++)
        if (locals[i].name && !(locals[i].flags & LOCAL_IS_ARTIFICIAL))
            put_local(types, &locals[i], xml);
}

static void put_field(struct structure_types *types, const struct type_field *field, struct xml_out *xml)
{
    xml_open(xml, "M");
    xml_text_attribute(xml, "n", field->name);
    xml_number_attribute(xml, "o", field->offset_bytes);
    if (field->bit_size) {
        xml_number_attribute(xml, "b", field->bit_offset);
        xml_number_attribute(xml, "w", field->bit_size);
    }
    if (field->flags & FIELD_IS_BASE)
        xml_put(xml, " k=\"base\"");
    put_type(types, field->type, xml);
    xml_put(xml, "/>\n");
}

static void put_dimension(const struct type_dimension *dimension, struct xml_out *xml)
{
    xml_open(xml, "E");
    xml_number_attribute(xml, "c", dimension->count);
    if (dimension->stride_bytes)
        xml_number_attribute(xml, "st", dimension->stride_bytes);
    if (dimension->lower)
        xml_signed_attribute(xml, "lo", dimension->lower);
    xml_put(xml, "/>\n");
}

static void put_one(struct structure_types *types, uint32_t id, struct xml_out *xml)
{
    static const char *const kinds[TYPE_KINDS] = {
        [TYPE_UNKNOWN] = "unknown", [TYPE_BASE] = "base",         [TYPE_POINTER] = "pointer",
        [TYPE_ARRAY] = "array",     [TYPE_STRUCT] = "struct",     [TYPE_UNION] = "union",
        [TYPE_ENUM] = "enum",       [TYPE_FUNCTION] = "function", [TYPE_ALIAS] = "alias"};
    const struct type *type = types_get(types->symbols, id);
    xml_open(xml, "T");
    xml_number_attribute(xml, "d", id);
    xml_text_attribute(xml, "k", kinds[type->kind]);
    if (type->name)
        xml_text_attribute(xml, "n", type->name);
    if (type->size_bytes)
        xml_number_attribute(xml, "s", type->size_bytes);
    if (type->decl_file) {
        xml_path_attribute(xml, "f", type->decl_file);
        xml_number_attribute(xml, "l", type->decl_line);
    }
    put_type(types, type->target, xml);
    xml_put(xml, ">\n");
    for (size_t i = 0; i < type->n_fields; i++)
        put_field(types, &type->fields[i], xml);
    for (size_t i = 0; i < type->n_dimensions; i++)
        put_dimension(&type->dimensions[i], xml);
    xml_put(xml, "</T>\n");
}

void structure_types_put(struct structure_types *types, struct xml_out *xml)
{
    for (size_t i = 0; i < types->n_named; i++)
        put_one(types, types->named[i], xml);
}
