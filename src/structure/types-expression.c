/* SPDX-License-Identifier: BSD-3-Clause */
/* The type of an expression like "s->rows[]", by the declarations that code at an address sees: its blocks from the
 * inside out, members of its own object, its unit, the module. Calls and arithmetic have no type here. */
#include <ctype.h>
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "structure/types-internal.h"

#define NAME_MAX_BYTES 256

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static uint32_t variable_in(struct symbols *symbols, Dwarf_Die *parent, const char *name, bool is_fortran,
                            unsigned depth)
{
    Dwarf_Die die;
    if (depth > 2 || dwarf_child(parent, &die) != 0)
        return 0;
    do {
        int tag = dwarf_tag(&die);
        uint32_t found = 0;
        if ((tag == DW_TAG_variable || tag == DW_TAG_formal_parameter) &&
            types_same_name(dwarf_diename(&die), name, is_fortran))
            found = types_enter_of(symbols, &die);
        else if (tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_common_block)
            found = variable_in(symbols, &die, name, is_fortran, depth + 1);
        if (found)
            return found;
    } while (dwarf_siblingof(&die, &die) == 0);
    return 0;
}

/* A scope, and for an inlined or specialised function the original, which may know variables that are gone here. */
static uint32_t variable_in_scope(struct symbols *symbols, Dwarf_Die *scope, const char *name)
{
    Dwarf_Attribute attribute;
    Dwarf_Die origin;
    bool is_fortran = types_language(scope) & TYPE_IS_FORTRAN;
    uint32_t found = variable_in(symbols, scope, name, is_fortran, 0);
    if (!found && dwarf_attr(scope, DW_AT_abstract_origin, &attribute) && dwarf_formref_die(&attribute, &origin))
        found = variable_in(symbols, &origin, name, is_fortran, 0);
    return found;
}

/* Type of a member, sought in base classes and nameless members as well. */
static uint32_t member_of(struct symbols *symbols, uint32_t id, const char *name, int depth)
{
    const struct type *type = types_get(symbols, types_strip(symbols, id));
    bool is_fortran = type->flags & TYPE_IS_FORTRAN;
    if (depth > TYPES_DEPTH_MAX || (type->kind != TYPE_STRUCT && type->kind != TYPE_UNION))
        return 0;
    for (size_t i = 0; i < type->n_fields; i++)
        if (types_same_name(type->fields[i].name, name, is_fortran))
            return type->fields[i].type;
    for (size_t i = 0; i < type->n_fields; i++) {
        const struct type_field *field = &type->fields[i];
        uint32_t found =
            field->flags & FIELD_IS_BASE || !field->name ? member_of(symbols, field->type, name, depth + 1) : 0;
        if (found)
            return found;
    }
    return 0;
}

/* What a pointer, smart pointer or array is made of; 0 for everything else. */
static uint32_t element_of(struct symbols *symbols, uint32_t id)
{
    uint32_t stripped = types_strip(symbols, id);
    const struct type *type = types_get(symbols, stripped);
    if (type->kind == TYPE_POINTER || type->kind == TYPE_ARRAY)
        return type->target;
    return type->kind == TYPE_STRUCT ? types_template_argument(symbols, stripped) : 0;
}

/* The structure that a member is sought in: behind a pointer or reference. */
static uint32_t structure_of(struct symbols *symbols, uint32_t id)
{
    uint32_t stripped = types_strip(symbols, id);
    const struct type *type = types_get(symbols, stripped);
    return type->kind == TYPE_POINTER || type->kind == TYPE_ARRAY ? types_element(symbols, type->target) : stripped;
}

static uint32_t type_of_name(struct symbols *symbols, uint64_t vaddr, const char *name)
{
    Dwarf_Die scopes[TYPES_SCOPES_MAX], die;
    uint32_t found = 0;
    int n = types_scopes(symbols, vaddr, scopes);
    for (int i = 0; i < n && !found; i++) {
        found = variable_in_scope(symbols, &scopes[i], name);
        int tag = dwarf_tag(&scopes[i]);
        if (!found && (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine))
            found = member_of(symbols, structure_of(symbols, variable_in_scope(symbols, &scopes[i], "this")), name, 0);
    }
    if (!found && types_find_name(symbols, name, true, &die))
        found = types_enter_of(symbols, &die);
    return found;
}

/* Copies the name at *text, with its scopes, and goes behind it; false when there is none or it is too long. */
static bool take_name(const char **text, char *name)
{
    size_t len = 0;
    while (is_word((*text)[len]) || ((*text)[len] == ':' && (*text)[len + 1] == ':') ||
           (len && (*text)[len] == ':' && (*text)[len - 1] == ':'))
        len++;
    if (len == 0 || len >= NAME_MAX_BYTES || isdigit((unsigned char)**text))
        return false;
    memcpy(name, *text, len);
    name[len] = 0;
    *text += len;
    return true;
}

/* Goes behind the bracket that closes the one at *text; false when none does. */
static bool skip_bracket(const char **text)
{
    int depth = 0;
    for (; **text; (*text)++) {
        depth += **text == '[' || **text == '(';
        depth -= **text == ']' || **text == ')';
        if (depth == 0) {
            (*text)++;
            return true;
        }
    }
    return false;
}

static const char *skip_blanks(const char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    return text;
}

/* Applies what follows the first name; 0 when that is more than members and subscripts. */
static uint32_t apply_rest(struct symbols *symbols, uint32_t type, const char *text)
{
    char name[NAME_MAX_BYTES];
    while (type && *(text = skip_blanks(text))) {
        bool is_subscript = *text == '[' || *text == '(';
        if (is_subscript) {
            if (!skip_bracket(&text))
                return 0;
            type = element_of(symbols, type);
        } else if (*text == '.' || *text == '%' || strncmp(text, "->", 2) == 0) {
            text = skip_blanks(text + (*text == '-' ? 2 : 1));
            if (!take_name(&text, name))
                return 0;
            uint32_t structure = structure_of(symbols, type), member = member_of(symbols, structure, name, 0);
            /* through a smart pointer or a container */
            type = member ? member : member_of(symbols, types_template_argument(symbols, structure), name, 0);
        } else {
            return 0;
        }
    }
    return type;
}

uint32_t types_of_expression(struct symbols *symbols, uint64_t vaddr, const char *expression)
{
    char name[NAME_MAX_BYTES];
    unsigned n_stars = 0;
    const char *text = skip_blanks(expression);
    for (; *text == '*'; n_stars++)
        text = skip_blanks(text + 1);
    if (!take_name(&text, name))
        return 0;
    uint32_t type = apply_rest(symbols, type_of_name(symbols, vaddr, name), text);
    for (; n_stars && type; n_stars--)
        type = element_of(symbols, type);
    return type;
}
