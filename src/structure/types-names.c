/* SPDX-License-Identifier: BSD-3-Clause */
/* Types and variables by name. Everything outside functions is indexed in one walk when first asked for: under its name
 * alone and under the name with its scopes, as hashes, so that the index of a large module stays small. */
#include <ctype.h>
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "structure/types-internal.h"

#define WALK_DEPTH_MAX 8
#define NAMES_MAX 8000000
#define HASH_START 0xcbf29ce484222325u

static uint64_t hash_more(uint64_t hash, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3u;
    return hash;
}

/* Types and variables of one name are told apart by the start value. */
static uint64_t hash_start(bool is_variable)
{
    return HASH_START ^ is_variable;
}

static struct type_name *slot_of(struct type_name *names, size_t n_slots, uint64_t hash)
{
    size_t slot = (size_t)(hash >> 20) & (n_slots - 1);
    while (names[slot].hash && names[slot].hash != hash)
        slot = (slot + 1) & (n_slots - 1);
    return &names[slot];
}

static bool grow_names(struct types *types)
{
    if (types->n_names * 2 < types->n_name_slots)
        return true;
    size_t n = types->n_name_slots ? types->n_name_slots * 2 : 1024;
    struct type_name *names = types->n_names < NAMES_MAX ? calloc(n, sizeof *names) : NULL;
    if (!names)
        return false;
    for (size_t i = 0; i < types->n_name_slots; i++)
        if (types->names[i].hash)
            *slot_of(names, n, types->names[i].hash) = types->names[i];
    free(types->names);
    types->names = names;
    types->n_name_slots = n;
    return true;
}

/* The first one stays: a module has one definition, or several that are alike. */
static void add_name(struct types *types, uint64_t hash, Dwarf_Die *die)
{
    if (!grow_names(types))
        return;
    struct type_name *name = slot_of(types->names, types->n_name_slots, hash ? hash : 1);
    if (!name->hash) {
        *name = (struct type_name){hash ? hash : 1, *die};
        types->n_names++;
    }
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

/* scopes: hash of the names around parent, each followed by "::"; HASH_START alone outside all. */
static void walk(struct types *types, Dwarf_Die *parent, uint64_t scopes, unsigned depth)
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
            add_name(types, hash_more(hash_start(is_variable), name, len), &die);
            add_name(types, hash_more(scopes ^ is_variable, name, len), &die);
        }
        if (is_scope(tag))
            walk(types, &die, len ? hash_more(hash_more(scopes, name, len), "::", 2) : scopes, depth + 1);
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
            walk(types, &symbols->units[i].scopes, HASH_START, 0);
    }
    const char *colon = strrchr(name, ':');
    uint64_t scopes = HASH_START;
    if (colon)
        scopes = hash_more(scopes, name, (size_t)(colon + 1 - name));
    const char *last = colon ? colon + 1 : name;
    uint64_t hash = hash_more(scopes ^ is_variable, last, strlen(last));
    if (!types->n_name_slots)
        return false;
    const struct type_name *found = slot_of(types->names, types->n_name_slots, hash ? hash : 1);
    if (found->hash)
        *die = found->die;
    return found->hash != 0;
}

bool types_same_name(const char *a, const char *b, bool is_fortran)
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

/* The words of a number's type without "int" beside others, in order of the alphabet: compilers and people write
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
