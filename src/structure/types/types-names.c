/* SPDX-License-Identifier: BSD-3-Clause */
/* Types found by names: of types, of variables, of members in expressions. */
#include "structure/types/types-dwarf.h"

#include <ctype.h>
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"

/* --- the index of names --- */

/* Everything outside functions is indexed in one walk when first needed, by the hash of its name alone and of its name
 * with its scopes, so that the index of a large module stays small. */

#define WALK_DEPTH_MAX 8
#define NAMES_MAX 8000000

/* The start value tells types and variables of one name apart. */
static uint64_t hash_start(bool is_variable)
{
    return BYTES_HASH_START ^ is_variable;
}

static uint64_t hash_name(const void *item)
{
    return ((const struct type_name *)item)->hash;
}

static bool is_same_name(const void *a, const void *b)
{
    return ((const struct type_name *)a)->hash == ((const struct type_name *)b)->hash;
}

static const struct slots_kind by_name = {sizeof(struct type_name), hash_name, is_same_name};

/* The first entry stays: a module has one definition, or several equal ones. */
static void add_name(struct types *types, uint64_t hash, Dwarf_Die *die)
{
    const struct type_name name = {hash, *die};
    if (slots_find(&types->name_slots, &by_name, types->names, &name) != SLOTS_NONE || types->n_names == NAMES_MAX ||
        !slots_reserve(&types->name_slots, &by_name, types->names, types->n_names) ||
        !vec_reserve(&types->names, &types->cap_names, types->n_names + 1, sizeof name))
        return;
    types->names[types->n_names] = name;
    slots_add(&types->name_slots, &by_name, types->names, types->n_names++);
}

static bool is_scope(int tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_structure_type ||
           tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

static bool is_type(int tag)
{
    return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type ||
           tag == DW_TAG_enumeration_type || tag == DW_TAG_typedef || tag == DW_TAG_base_type;
}

/* scopes: hash of the names around parent, each followed by "::"; BYTES_HASH_START alone outside all. */
static void index_entries(struct types *types, Dwarf_Die *parent, uint64_t scopes, unsigned depth)
{
    Dwarf_Die die;
    if (depth > WALK_DEPTH_MAX || dwarf_child(parent, &die) != 0)
        return;
    do {
        int tag = dwarf_tag(&die);
        bool is_variable = tag == DW_TAG_variable;
        const char *name = is_variable || is_type(tag) || is_scope(tag) ? dwarf_diename(&die) : NULL;
        size_t len = name ? strlen(name) : 0;
        bool is_defined = len && !dwarf_hasattr(&die, DW_AT_declaration);
        if (is_defined && (is_variable || is_type(tag))) {
            add_name(types, bytes_hash(hash_start(is_variable), name, len), &die);
            add_name(types, bytes_hash(scopes ^ is_variable, name, len), &die);
        }
        if (is_scope(tag))
            index_entries(types, &die, len ? bytes_hash(bytes_hash(scopes, name, len), "::", 2) : scopes, depth + 1);
    } while (dwarf_siblingof(&die, &die) == 0);
}

bool types_find_name(struct symbols *symbols, const char *name, bool is_variable, Dwarf_Die *die)
{
    struct types *types = types_of_symbols(symbols);
    if (!types)
        return false;
    if (!types->is_indexed) {
        types->is_indexed = true;
        for (size_t i = 0; i < symbols->n_units; i++)
            index_entries(types, &symbols->units[i].scopes, BYTES_HASH_START, 0);
    }
    const char *colon = strrchr(name, ':');
    uint64_t scopes = BYTES_HASH_START;
    if (colon)
        scopes = bytes_hash(scopes, name, (size_t)(colon + 1 - name));
    const char *last = colon ? colon + 1 : name;
    const struct type_name like = {.hash = bytes_hash(scopes ^ is_variable, last, strlen(last))};
    size_t index = slots_find(&types->name_slots, &by_name, types->names, &like);
    if (index != SLOTS_NONE)
        *die = types->names[index].die;
    return index != SLOTS_NONE;
}

/* Whether two names are the same; Fortran ignores case. */
static bool types_same_name(const char *a, const char *b, bool is_fortran)
{
    return a && b && (is_fortran ? strcasecmp(a, b) : strcmp(a, b)) == 0;
}

int types_scopes(struct symbols *symbols, uint64_t vaddr, Dwarf_Die scopes[TYPES_SCOPES_MAX])
{
    Dwarf_Die chain[TYPES_SCOPES_MAX];
    int n = 0;
    if (!symbols_dwarf_function(symbols, vaddr, &chain[0]))
        return 0;
    for (n = 1; n < TYPES_SCOPES_MAX - 1; n++)
        if (!symbols_dwarf_inner(symbols, &chain[n - 1], vaddr, &chain[n]))
            break;
    for (int i = 0; i < n; i++)
        scopes[i] = chain[n - 1 - i];
    return dwarf_diecu(&chain[0], &scopes[n], NULL, NULL) ? n + 1 : n;
}

/* --- types of variables with static storage, and template arguments --- */

uint32_t types_of_static(struct symbols *symbols, uint64_t vaddr, bool tls, uint64_t *start, const char **name)
{
    const struct dwarf_variable *best = symbols_dwarf_variable_upto(symbols, tls, vaddr);
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
    uint32_t named = die ? template_argument(symbols, die, "_Tp") : 0;
    return named || !die ? named : template_argument(symbols, die, NULL);
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
    Dwarf_Die die, scopes[SYMBOLS_SCOPES_MAX];
    if (!symbols->dwarf || !function || !dwarf_offdie(symbols->dwarf, function, &die) || !declaration_of(&die))
        return false;
    int n = symbols_scopes_around(symbols, &die, scopes);
    if (n > 1)
        *structure = scopes[1];
    return n > 1 && (dwarf_tag(structure) == DW_TAG_structure_type || dwarf_tag(structure) == DW_TAG_class_type);
}

uint32_t types_template_of_function(struct symbols *symbols, uint64_t offset)
{
    Dwarf_Die structure;
    return types_class_of(symbols, offset, &structure) ? template_argument(symbols, &structure, NULL) : 0;
}

/* The type that the template parameter called name stands for, in a function or in its class. */
static uint32_t types_template_parameter(struct symbols *symbols, Dwarf_Die *function, const char *name)
{
    Dwarf_Die die = *function, scopes[SYMBOLS_SCOPES_MAX];
    uint32_t found = 0;
    if (!declaration_of(&die))
        return 0;
    int n = symbols_scopes_around(symbols, &die, scopes);
    for (int i = 0; i < n && !found; i++)
        found = template_argument(symbols, &scopes[i], name);
    return found;
}

/* --- types by the names that code sees --- */

/* The words of a number's type in alphabetical order, without "int" if there are others: compilers and people write
 * "unsigned long", "long unsigned int" and so on. */
static void sort_words(const char *name, char *sorted, size_t size_bytes)
{
    char copy[128];
    const char *words[6];
    size_t n = 0;
    (void)snprintf(copy, sizeof copy, "%s", name);
    for (char *save = NULL, *word = strtok_r(copy, " \t", &save); word && n < 6; word = strtok_r(NULL, " \t", &save)) {
        size_t at = n++;
        for (; at > 0 && strcmp(words[at - 1], word) > 0; at--)
            words[at] = words[at - 1];
        words[at] = word;
    }
    sorted[0] = 0;
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(sorted);
        if ((n > 1 && strcmp(words[i], "int") == 0) || strcmp(words[i], "signed") == 0)
            continue;
        (void)snprintf(sorted + len, size_bytes - len, "%s%s", len ? " " : "", words[i]);
    }
    if (!sorted[0])
        (void)snprintf(sorted, size_bytes, "int");
}

static bool is_called(Dwarf_Die *die, const char *name, bool is_fortran)
{
    char a[128], b[128];
    const char *own = dwarf_diename(die);
    if (!own || dwarf_hasattr(die, DW_AT_declaration))
        return false;
    if (types_same_name(own, name, is_fortran))
        return true;
    if (dwarf_tag(die) != DW_TAG_base_type || !strchr(own, ' '))
        return false;
    sort_words(own, a, sizeof a);
    sort_words(name, b, sizeof b);
    return strcmp(a, b) == 0;
}

/* A type with this name directly in parent, or in a module or namespace in it. */
static uint32_t find_in(struct symbols *symbols, Dwarf_Die *parent, const char *name, unsigned depth)
{
    Dwarf_Die die;
    bool is_fortran = types_language(parent) & TYPE_IS_FORTRAN;
    if (depth > 2 || dwarf_child(parent, &die) != 0)
        return 0;
    do {
        int tag = dwarf_tag(&die);
        uint32_t found = 0;
        if (is_type(tag) && is_called(&die, name, is_fortran))
            found = types_enter(symbols, &die);
        else if (tag == DW_TAG_namespace || tag == DW_TAG_module)
            found = find_in(symbols, &die, name, depth + 1);
        if (found)
            return found;
    } while (dwarf_siblingof(&die, &die) == 0);
    return 0;
}

/* name without blanks at its ends, keywords and qualifiers. */
static bool bare_name(const char *name, char *bare, size_t size_bytes)
{
    static const char *const words[] = {"struct ", "union ", "enum ", "class ", "const ", "volatile ", "::"};
    for (size_t i = 0; i < sizeof words / sizeof *words;) {
        size_t len = strlen(words[i]);
        while (isspace((unsigned char)*name))
            name++;
        if (strncmp(name, words[i], len) == 0) {
            name += len;
            i = 0;
        } else {
            i++;
        }
    }
    size_t len = strlen(name);
    while (len && isspace((unsigned char)name[len - 1]))
        len--;
    if (len == 0 || len >= size_bytes || name[len - 1] == '*' || name[len - 1] == '&')
        return false;
    memcpy(bare, name, len);
    bare[len] = 0;
    return true;
}

uint32_t types_find(struct symbols *symbols, uint64_t vaddr, const char *name)
{
    char bare[256];
    Dwarf_Die scopes[TYPES_SCOPES_MAX], die;
    uint32_t found = 0;
    if (!bare_name(name, bare, sizeof bare))
        return 0;
    int n = types_scopes(symbols, vaddr, scopes);
    for (int i = 0; i < n && !found; i++)
        found = find_in(symbols, &scopes[i], bare, 0);
    for (int i = 0; i < n && !found; i++)
        if (dwarf_tag(&scopes[i]) == DW_TAG_subprogram || dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine)
            found = types_template_parameter(symbols, &scopes[i], bare);
    if (!found && types_find_name(symbols, bare, false, &die))
        found = types_enter(symbols, &die);
    return found;
}

/* --- types of expressions --- */

/* The type of an expression like "s->rows[]", by the declarations that code at an address sees: those of its blocks
 * from the inside out, members of its own object, its unit, then the module. Calls and arithmetic have no type here. */

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

/* Type of the variable in a scope and, for an inlined or specialised function, in its original, which may still have
 * variables that were optimised away here. */
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

/* The type of the object in a field, if its members belong to the structure: base classes, nameless members and, in
 * Fortran, the type that is extended and the object of a polymorphic variable; else 0. */
static uint32_t inner_object(struct symbols *symbols, const struct type *type, const struct type_field *field)
{
    const struct type *known = types_get(symbols, types_strip(symbols, field->type));
    if (field->flags & FIELD_IS_BASE || !field->name)
        return field->type;
    if (!(type->flags & TYPE_IS_FORTRAN))
        return 0;
    if (strcmp(field->name, "_data") == 0)
        return known->kind == TYPE_POINTER || known->kind == TYPE_ARRAY ? known->target : field->type;
    bool is_extended = field == type->fields && known->kind == TYPE_STRUCT && known->name;
    return is_extended && strcmp(known->name, field->name) == 0 ? field->type : 0;
}

/* Type of a member, also of an object inside. */
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
        uint32_t inner = inner_object(symbols, type, &type->fields[i]);
        uint32_t found = inner ? member_of(symbols, inner, name, depth + 1) : 0;
        if (found)
            return found;
    }
    return 0;
}

/* Type of what a pointer or smart pointer points to, or of the elements of an array or container, perhaps through a
 * reference; 0 for everything else. */
static uint32_t element_of(struct symbols *symbols, uint32_t id)
{
    uint32_t stripped = types_strip(symbols, id);
    const struct type *type = types_get(symbols, stripped);
    if (type->flags & TYPE_IS_REFERENCE) {
        stripped = types_strip(symbols, type->target);
        type = types_get(symbols, stripped);
    }
    if (type->kind == TYPE_POINTER || type->kind == TYPE_ARRAY)
        return type->target;
    return type->kind == TYPE_STRUCT ? types_template_argument(symbols, stripped) : 0;
}

/* The structure to search for a member: what a pointer, reference or array leads to, else the type itself. */
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

/* Copies the name at *text, with its scopes, and moves *text past it; false when there is none or it is too long. */
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

/* Moves *text past the bracket that closes the one there; false when none does. */
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

/* Applies the members and subscripts that follow the first name; 0 when anything else follows. */
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
