/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters and local variables of a function: the places where they live and the code for which each place is valid,
 * and the variable at an address in the stack frame. Ordinary code. */
#ifndef LOCUS_STRUCTURE_TYPES_LOCALS_H
#define LOCUS_STRUCTURE_TYPES_LOCALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "structure/elf/symbols.h"

#define LOCALS_MAX 65536       /* of one function, inlined ones included */
#define LOCALS_PLACES_MAX 4096 /* of one variable */

enum local_place_kind {
    LOCAL_UNKNOWN = 0, /* more than one piece, or computed */
    LOCAL_FRAME,       /* offset: from the canonical frame address (CFA) */
    LOCAL_INDIRECT,    /* the word at offset from the CFA holds its address: arrays of variable length */
    LOCAL_REGISTER,    /* in the register with DWARF number reg */
    LOCAL_MEMORY,      /* at the register's value plus offset, if that is not a place in the frame */
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
    /* Where the function realigns the stack pointer, the distance from the CFA depends on the call: the place begins at
     * realigned_offset from the CFA, or a multiple of 16 up to slack_bytes below. */
    bool is_realigned;
    int64_t realigned_offset, slack_bytes;
};

#define LOCAL_IS_PARAMETER 1u
#define LOCAL_IS_ARTIFICIAL 2u /* made by the compiler */

/* Strings are borrowed until symbols_close, the rest until the locals of another function are asked for. */
struct local {
    const char *name;     /* NULL: nameless */
    const char *function; /* that declares it, perhaps an inlined one */
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

/* Where in a variable an address lies. */
struct local_spot {
    uint64_t offset_bytes; /* UINT64_MAX: not known */
    uint64_t slack_bytes;  /* the offset may be larger by up to that: realigned frames */
    bool is_spill;         /* no variable: see locals_at */
};

/* The local variable at CFA - distance_bytes in the frame of the function that contains vaddr. pc: of the access, or of
 * the instruction after it, if that lies in the same function, else 0; it tells apart variables that share a place, in
 * different blocks or in different parts of the code. NULL when none is known there; is_spill then says that variables
 * lie there at other times, or that the function's own code accesses the place, so that it holds a value that the
 * compiler spilled. An array of variable length is taken if it is the only one and nothing else lies there. In a
 * realigned frame a variable is taken if it is the only one at all possible alignments. */
const struct local *locals_at(struct symbols *symbols, uint64_t vaddr, uint64_t pc, int64_t distance_bytes,
                              struct local_spot *spot);

/* The local variable or parameter in the stack frame of the function that contains vaddr, by the distance of a 16-byte
 * granule below the frame's CFA: distance_bytes is a multiple of 16, the granule is [CFA - distance - 15,
 * CFA - distance]. data->vaddr is 0. Returns false when none is known there. */
bool symbols_stack_at(struct symbols *symbols, uint64_t vaddr, int64_t distance_bytes, struct symbols_data *data);

/* --- private part: what a function's own code keeps in its stack frame --- */

/* Debug information often says only which register holds a variable and leaves out the slot that its value was spilled
 * to: the stores to the slot show whose it is. */

enum frame_slot_use {
    SLOT_NONE = 0, /* no instruction of the function names the slot: it is accessed through pointers, if at all */
    SLOT_VALUE,    /* values of the compiler's own, of several variables, or of unknown origin */
    SLOT_LOCAL     /* every store puts the value of one variable there */
};

/* What lies at CFA + cfa_offset in the frame of the function that contains vaddr, whose locals [n] are those of
 * locals_of_function. SLOT_LOCAL: *index is that of the local, *offset_bytes the offset in it. SLOT_NONE also off
 * x86-64. The answers are kept until symbols_close. */
enum frame_slot_use frame_slots_find(struct symbols *symbols, uint64_t vaddr, const struct local *locals, size_t n,
                                     int64_t cfa_offset, size_t *index, uint64_t *offset_bytes);

#define FRAME_BASES 8 /* DWARF numbers of registers: rbx is 3, rbp 6, rsp 7 */

/* Where registers point to in the body of a function that realigns its stack pointer: at CFA - distance_bytes, or a
 * multiple of 16 up to slack_bytes below. */
struct frame_bases {
    bool is_realigned; /* false: the function does not realign its stack pointer, or not in a known way */
    int64_t slack_bytes;
    struct frame_base {
        bool is_known;
        int64_t distance_bytes;
    } bases[FRAME_BASES];
};

/* Reads the code of the function that contains vaddr. */
void frame_bases_find(struct symbols *symbols, uint64_t vaddr, struct frame_bases *bases);

#endif
