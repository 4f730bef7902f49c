/* SPDX-License-Identifier: BSD-3-Clause */
/* Facts about calls: which of them never return, and in which order the calls of one line are made. Ordinary code,
 * untrusted input. */
#ifndef LOCUS_STRUCTURE_CFG_CALLS_H
#define LOCUS_STRUCTURE_CFG_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "structure/cfg/cfg.h"
#include "structure/elf/elf-file.h"
#include "structure/elf/symbols.h"

/* --- functions that never return --- */

/* A function never returns if it has one of the well-known names, such as abort, or if no path through its code leads
 * to a return. Without this the code after a call of abort() would seem to continue the code before it. */

struct returns;

/* The name of the function that begins at vaddr, NULL when there is none. */
typedef const char *returns_name(void *context, uint64_t vaddr);

/* elf: the module, for the names of imported functions; everything is borrowed. NULL when out of memory. */
struct returns *returns_new(struct Elf *elf, const struct code_image *image, const struct cfg_decoder *decoder,
                            returns_name *name, void *context);
void returns_free(struct returns *returns);

/* True when the function at callee (by_slot: the function whose address is in the word at callee) is known not to
 * return. by_name: only its name is checked, which is quick. */
bool returns_never(struct returns *returns, uint64_t callee, bool by_slot, bool by_name);

/* --- the order of the calls on one line of source, where the code leaves no doubt --- */

/* Fortran's "allocate (a(n), b(n), c(n))" calls malloc once for each. */

/* Takes the call that returns to return_vaddr and counts the calls of the same callee on its line of the function;
 * *rank gets its place among them, from 0, in the order in which they are made. Returns 0 when they are not made one
 * after the other on all paths through the function, or when that is not known. */
size_t call_order_find(struct symbols *symbols, uint64_t return_vaddr, size_t *rank);

#endif
