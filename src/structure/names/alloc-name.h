/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the variable that an allocation is for. DWARF records no assignments, so we follow the returned register, its
 * copies and spills through the machine code after the call, until the pointer is stored to a place that DWARF gives a
 * variable or member, or is held in a register that DWARF gives a variable. Ordinary code, offline. */
#ifndef LOCUS_STRUCTURE_NAMES_ALLOC_NAME_H
#define LOCUS_STRUCTURE_NAMES_ALLOC_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "structure/elf/symbols.h"

enum alloc_name_result {
    ALLOC_NAME_UNKNOWN = 0,
    ALLOC_NAME_FOUND,   /* out filled: "a", "s->f", "rows[]", "v" */
    ALLOC_NAME_RETURNED /* the pointer is the function's own return value: the function is an allocator wrapper, look at
                         * its caller */
};

/* What the call yields. */
enum alloc_name_value {
    ALLOC_NAME_RETURN_VALUE,  /* the block's address in the return register */
    ALLOC_NAME_FIRST_ARGUMENT /* an object whose address was the first argument owns the block: a C++ container's
                               * "this", posix_memalign's pointer */
};

/* What a block is called. Members that code outside their class cannot name are named with the class, "Solver::v_"; so
 * are other members as long as the object is not known, only its class. */
struct alloc_name {
    char text[256];
    char member[128];     /* is_open: what goes after the name of the object, ".coefs"; "" when the object itself is
                           * meant */
    bool is_open;         /* the code is a method, and the object that it was called for has a better name */
    const char *of_class; /* set by the caller: find an object of this class, not a member of it; NULL: any object */
};

/* Examines the call that returns to return_vaddr in the module of symbols.
 * out is filled only when the result is FOUND. Off x86-64 and without debug information the result is UNKNOWN. */
enum alloc_name_result alloc_name_find(struct symbols *symbols, uint64_t return_vaddr, enum alloc_name_value value,
                                       struct alloc_name *out);

/* The name of a member, as a method spells it, of the class that the function at this DIE belongs to. Fills out except
 * of_class; false when the class has no such member. */
bool alloc_name_of_member(struct symbols *symbols, uint64_t function_die, const char *member, struct alloc_name *out);

/* The same for the only member that is an object of a class of this name; false when there are none or several. */
bool alloc_name_of_class(struct symbols *symbols, uint64_t function_die, const char *class, struct alloc_name *out);

/* Index of the parameter of the function at this DIE with this name, from 0, not counting those that the compiler adds;
 * -1 when there is none. *is_reference and *is_pointer give its type. */
int alloc_name_parameter(struct symbols *symbols, uint64_t function_die, const char *name, bool *is_reference,
                         bool *is_pointer);

/* Whether the class that the function at this DIE belongs to is derived from one of this name. */
bool alloc_name_is_base(struct symbols *symbols, uint64_t function_die, const char *base);

/* --- private part --- */

/* Between alloc-name.c (following the machine code) and alloc-name-dwarf.c (which variable is where). */

/* Where a value lies at some pc. Registers by DWARF number. */
enum place_kind { PLACE_NONE, PLACE_REGISTER, PLACE_STACK, PLACE_STATIC };
struct value_place {
    enum place_kind kind;
    int reg;
    int64_t offset; /* PLACE_STACK: from the CFA; PLACE_STATIC: vaddr */
    bool is_inner;  /* the value there points to a polymorphic variable of Fortran, whose object is meant */
};

/* True when DWARF says that the function at vaddr returns a pointer. */
bool alloc_returns_pointer(struct symbols *symbols, uint64_t vaddr);

/* The variable in scope at vaddr that lies at place. member_offset >= 0: the place holds a pointer, and the member at
 * that offset of the object it points to is meant (indexed: of an element of an array). Fills out; *depth gets the
 * nesting depth of the variable's scope (outermost function 0, inlined functions deeper). Variables of the C++ library
 * do not count. */
bool alloc_variable_at(struct symbols *symbols, uint64_t vaddr, const struct value_place *place, int64_t member_offset,
                       bool indexed, struct alloc_name *out, int *depth);

#endif
