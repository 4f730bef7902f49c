/* SPDX-License-Identifier: BSD-3-Clause */
/* Which variable an allocation is for. DWARF records no assignments, so the machine code after the call is followed:
 * the returned register, its copies and spills, until it is stored to a place that DWARF gives a variable or member, or
 * is held in a register that DWARF gives a variable. Ordinary code, offline. */
#ifndef LOCUS_STRUCTURE_ALLOC_NAME_H
#define LOCUS_STRUCTURE_ALLOC_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "structure/symbols.h"

enum alloc_name_result {
    ALLOC_NAME_UNKNOWN = 0,
    ALLOC_NAME_FOUND,   /* name filled: "a", "s->f", "rows[]", "v" */
    ALLOC_NAME_RETURNED /* the pointer is the function's own return value: the function is an allocator wrapper, look at
                         * its caller */
};

/* What the call yields. */
enum alloc_name_value {
    ALLOC_NAME_RETURN_VALUE, /* the block's address in the return register */
    ALLOC_NAME_FIRST_ARGUMENT /* an object whose address was the first argument owns the block: a C++ container's this,
                               * posix_memalign's pointer */
};

/* Looks at the call that returns to return_vaddr in the module of symbols (opened by symbols_open from path).
 * name [size_bytes] is filled with FOUND only.  Result UNKNOWN also off x86-64 and without debug information. */
enum alloc_name_result alloc_name_find(struct symbols *symbols, const char *path, uint64_t return_vaddr,
                                       enum alloc_name_value value, char *name, size_t size_bytes);

#endif
