/* SPDX-License-Identifier: BSD-3-Clause */
/* What a function's own code keeps in its stack frame. Debug information often says where a variable lies in a register
 * and leaves out the slot that its value was put into: the stores to the slot tell whose it is. Ordinary code, offline.
 */
#ifndef LOCUS_STRUCTURE_FRAME_SLOTS_H
#define LOCUS_STRUCTURE_FRAME_SLOTS_H

#include "structure/locals.h"

enum frame_slot_use {
    SLOT_NONE = 0, /* no instruction of the function names the slot: it is reached through pointers, if at all */
    SLOT_VALUE,    /* values of the compiler's own, of several variables, or not known whose */
    SLOT_LOCAL     /* every store puts the value of one variable there */
};

struct frame_slots; /* opaque: what is known of a module's functions */

/* What lies at CFA + cfa_offset in the frame of the function that contains vaddr, whose locals [n] are those of
 * locals_of_function. SLOT_LOCAL: *index is that of the local, *offset_bytes where in it. SLOT_NONE also off x86-64.
 * The answers are kept until symbols_close. */
enum frame_slot_use frame_slots_find(struct symbols *symbols, uint64_t vaddr, const struct local *locals, size_t n,
                                     int64_t cfa_offset, size_t *index, uint64_t *offset_bytes);

/* For symbols_close; NULL is allowed. */
void frame_slots_free(struct frame_slots *slots);

#endif
