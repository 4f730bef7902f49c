/* SPDX-License-Identifier: BSD-3-Clause */
/* Between alloc-name.c (following the machine code) and alloc-name-dwarf.c (which variable is where). */
#ifndef LOCUS_STRUCTURE_ALLOC_NAME_INTERNAL_H
#define LOCUS_STRUCTURE_ALLOC_NAME_INTERNAL_H

#include "structure/alloc-name.h"
#include "structure/symbols-internal.h"

/* Where a value lies at some pc. Registers by DWARF number. */
enum place_kind { PLACE_NONE, PLACE_REGISTER, PLACE_STACK, PLACE_STATIC };
struct place {
    enum place_kind kind;
    int reg;
    int64_t offset; /* PLACE_STACK: from the CFA; PLACE_STATIC: vaddr */
};

/* Distance of a register-relative address from the CFA at vaddr: *offset becomes CFA-relative when reg is the stack or
 * frame pointer and the unwind rule at vaddr is based on it. False when the distance is not known. */
bool alloc_place_of_register(struct symbols *symbols, uint64_t vaddr, int reg, int64_t *offset);

/* True when the function at vaddr returns a pointer, as far as DWARF tells. */
bool alloc_returns_pointer(struct symbols *symbols, uint64_t vaddr);

/* The variable in scope at vaddr that lies at place. member_offset >= 0: the place holds a pointer, and the member at
 * that offset of what it points to is meant (through an index: indexed). Fills out; *depth gets the nesting depth of
 * the variable's scope (outermost function 0, inlined functions deeper). Variables of the C++ library are none. */
bool alloc_variable_at(struct symbols *symbols, uint64_t vaddr, const struct place *place, int64_t member_offset,
                       bool indexed, struct alloc_name *out, int *depth);

#endif
