/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters and local variables of a function with the places where they live and for which code that holds, and which
 * of them lies at an address in its stack frame. Ordinary code. */
#ifndef LOCUS_STRUCTURE_TYPES_LOCALS_H
#define LOCUS_STRUCTURE_TYPES_LOCALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "structure/elf/symbols.h"

#define LOCALS_MAX 65536       /* of one function, those of inlined ones included */
#define LOCALS_PLACES_MAX 4096 /* of one variable */

enum local_place_kind {
    LOCAL_UNKNOWN = 0, /* more than one piece, or computed */
    LOCAL_FRAME,       /* offset: from the canonical frame address (CFA) */
    LOCAL_INDIRECT,    /* the word at offset from the CFA holds its address: arrays of variable length */
    LOCAL_REGISTER,    /* in the register with DWARF number reg */
    LOCAL_MEMORY,      /* at the register's value plus offset, where that is not a place in the frame */
    LOCAL_STATIC,      /* offset: virtual address */
    LOCAL_ENTRY,       /* what the register reg held when the function was entered */
    LOCAL_VALUE,       /* no place: only its value is known */
    LOCAL_PLACE_KINDS
};

/* Where a variable lies while the pc is in [low, high). */
struct local_place {
    uint64_t low, high;
    enum local_place_kind kind;
    int reg;
    int64_t offset;
    bool is_listed; /* one of a list: elsewhere the variable lies in another place, or nowhere */
};

#define LOCAL_IS_PARAMETER 1u
#define LOCAL_IS_ARTIFICIAL 2u /* made by the compiler */

/* Strings are borrowed until symbols_close, the rest until the locals of another function are asked for. */
struct local {
    const char *name;     /* NULL: nameless */
    const char *function; /* that declares it; of an inlined one the inlined one's name */
    uint32_t type;        /* id, see types.h */
    uint32_t flags;       /* LOCAL_IS_* */
    uint64_t size_bytes;  /* 0: not known */
    const char *decl_file;
    uint32_t decl_line;
    uint64_t low, high;         /* code of the block that declares it, gaps included */
    uint64_t inside;            /* an address in that code, in the middle of its largest part */
    struct local_place *places; /* [n_places] */
    size_t n_places;
};

/* The locals of the function that contains vaddr, in the order of their declaration; returns their number. */
size_t locals_of_function(struct symbols *symbols, uint64_t vaddr, const struct local **locals);

/* The local variable at CFA - distance_bytes in the frame of the function that contains vaddr. pc: of the access, or of
 * the instruction behind it, when it lies in the same function, which tells apart what shares its place: blocks, and
 * variables that lie there for a part of the code only; else 0. *offset_bytes is where in the variable. NULL when none
 * is known there; *is_spill then: variables lie there at other times, or the function's own code names the place, so
 * that this is a value that the compiler put aside. An array of variable length is taken when it is the only one and
 * nothing else lies there; *offset_bytes is UINT64_MAX then. */
const struct local *locals_at(struct symbols *symbols, uint64_t vaddr, uint64_t pc, int64_t distance_bytes,
                              uint64_t *offset_bytes, bool *is_spill);

/* The local variable or parameter in the stack frame of the function that contains vaddr, by the distance of a 16-byte
 * granule below the frame's CFA: distance_bytes is a multiple of 16, the granule is [CFA - distance - 15,
 * CFA - distance]. data->vaddr is 0. Returns false when none is known there. */
bool symbols_stack_at(struct symbols *symbols, uint64_t vaddr, int64_t distance_bytes, struct symbols_data *data);

/* --- private part: what a function's own code keeps in its stack frame --- */

/* Debug information often says where a variable lies in a register and leaves out the slot that its value was put into:
 * the stores to the slot tell whose it is. */

enum frame_slot_use {
    SLOT_NONE = 0, /* no instruction of the function names the slot: it is reached through pointers, if at all */
    SLOT_VALUE,    /* values of the compiler's own, of several variables, or not known whose */
    SLOT_LOCAL     /* every store puts the value of one variable there */
};

/* What lies at CFA + cfa_offset in the frame of the function that contains vaddr, whose locals [n] are those of
 * locals_of_function. SLOT_LOCAL: *index is that of the local, *offset_bytes where in it. SLOT_NONE also off x86-64.
 * The answers are kept until symbols_close. */
enum frame_slot_use frame_slots_find(struct symbols *symbols, uint64_t vaddr, const struct local *locals, size_t n,
                                     int64_t cfa_offset, size_t *index, uint64_t *offset_bytes);

#endif
