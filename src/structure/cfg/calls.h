/* SPDX-License-Identifier: BSD-3-Clause */
/* What is to be known of calls: which never return, and in which order those of one line are made. Ordinary code,
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

/* They are known by the names of well-known ones, and by their code, when no way through it leads to a return. Without
 * this the code behind a call of abort() would seem to continue the code before it. */

struct returns;

/* What is asked of the module: the name of the function that begins at vaddr, NULL when there is none. */
typedef const char *returns_name(void *context, uint64_t vaddr);

/* elf: the module, for the names of imported functions; everything is borrowed. NULL when out of memory. */
struct returns *returns_new(struct Elf *elf, const struct code_image *image, const struct cfg_decoder *decoder,
                            returns_name *name, void *context);
void returns_free(struct returns *returns);

/* True when the function at callee (by_slot: whose address is in the word at callee) is known not to return: by_name
 * only when that can be told from its name, which is quick. */
bool returns_never(struct returns *returns, uint64_t callee, bool by_slot, bool by_name);

/* --- the order of the calls on one line of source, where the code leaves no doubt --- */

/* Fortran's "allocate (a(n), b(n), c(n))" calls malloc once for each. */

/* Number of calls that the line of the one returning to return_vaddr makes in its function to the same callee, and the
 * number of this one among them, from 0, in the order in which they are made. Returns 0 when they are not made one
 * after the other on all ways through the function, or that is not known. */
size_t call_order_find(struct symbols *symbols, uint64_t return_vaddr, size_t *rank);

#endif
