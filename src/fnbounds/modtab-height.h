/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the caller's frame is, as x86-64 code itself tells: how each instruction moves the stack pointer and copies of
 * it, and where it puts the caller's rbp and rbx. For assembly without unwind information. Ordinary code. */
#ifndef LOCUS_FNBOUNDS_MODTAB_HEIGHT_H
#define LOCUS_FNBOUNDS_MODTAB_HEIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fnbounds/modtab.h"

#define HEIGHT_UNKNOWN INT32_MIN

/* Before an instruction. Heights are CFA - register, HEIGHT_UNKNOWN when the register holds something else; slots are
 * address - CFA of the caller's value, 0: still in the register, HEIGHT_UNKNOWN: lost. */
struct height {
    int32_t rsp, rbp, rbx;
    int32_t other;      /* height of one more register */
    uint32_t other_reg; /* x86 number */
    int32_t rbp_slot, rbx_slot;
};

/* Where control goes behind an instruction. */
struct height_flow {
    uint32_t n_bytes; /* length; 0: not an instruction */
    bool falls_through;
    bool has_target;
    bool is_table_jump; /* an indirect jump: its targets are somewhere in the function */
    int64_t target;     /* relative to the instruction's start */
};

/* Where control and frame are at the entry of a function. */
struct height height_at_entry(void);

/* Applies the instruction at code [n] to *h.  ctx: ordinary code */
struct height_flow height_step(const uint8_t *code, size_t n, struct height *h);

/* Keeps in *h what *other agrees with; true when that changed *h. */
bool height_meet(struct height *h, const struct height *other);

/* The unwind row of a height (without pc); MODTAB_BAD when the CFA is not known. */
struct modtab_row height_row(const struct height *h);

#endif
