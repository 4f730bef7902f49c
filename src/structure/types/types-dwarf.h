/* SPDX-License-Identifier: BSD-3-Clause */
/* Types by their DIEs, for the files of src/structure that read DWARF themselves; apart from types.h as
 * elf/symbols-dwarf.h is from symbols.h. */
#ifndef LOCUS_STRUCTURE_TYPES_TYPES_DWARF_H
#define LOCUS_STRUCTURE_TYPES_TYPES_DWARF_H

#include "structure/elf/symbols-dwarf.h"
#include "structure/types/types.h"

/* A type and the DIE that it is read from. */
struct type_node {
    struct type type;
    Dwarf_Die die;
    bool is_read;
};

/* A DIE by the hash of its name, with those of its scopes. */
struct type_name {
    uint64_t hash;
    Dwarf_Die die;
};

struct types {
    struct type_node **nodes; /* [n_nodes], node 0 stands for all unknown types */
    size_t n_nodes, cap_nodes;
    struct slots slots; /* of the nodes, by the address of the DIE */
    size_t n_fields;    /* of all types */
    unsigned depth;     /* of types being read */
    bool is_indexed;
    struct type_name *names; /* [n_names] of types and of variables outside functions */
    size_t n_names, cap_names;
    struct slots name_slots; /* of the names, by hash */
};

/* types.c: the module's types, made when first needed; NULL when out of memory. */
struct types *types_of_symbols(struct symbols *symbols);

/* Id of the type that a DIE is, and of the type that its DW_AT_type names. 0 for none. */
uint32_t types_enter(struct symbols *symbols, Dwarf_Die *die);
uint32_t types_enter_of(struct symbols *symbols, Dwarf_Die *die);

/* The DIE of a type; NULL for id 0. */
Dwarf_Die *types_die(struct symbols *symbols, uint32_t id);

/* types-names.c: the DIE of the first definition with this name ("ns::name", or without scopes) among types (tag 0: of
 * any kind) or variables; false when there is none. */
bool types_find_name(struct symbols *symbols, const char *name, bool is_variable, Dwarf_Die *die);

#define TYPES_SCOPES_MAX 64

/* The blocks and functions around vaddr, innermost first, out through inlined functions to the real function and its
 * unit. Returns their number. */
int types_scopes(struct symbols *symbols, uint64_t vaddr, Dwarf_Die scopes[TYPES_SCOPES_MAX]);

/* types-names.c: the class that the function at this offset of .debug_info is a method of; false when it is none. */
bool types_class_of(struct symbols *symbols, uint64_t function, Dwarf_Die *structure);

/* The language of the unit that holds a DIE: TYPE_IS_FORTRAN, TYPE_IS_C or 0. */
uint32_t types_language(Dwarf_Die *die);

#endif
