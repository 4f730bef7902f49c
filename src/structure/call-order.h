/* SPDX-License-Identifier: BSD-3-Clause */
/* In which order the calls on one line of source are made, where the code leaves no doubt: Fortran's
 * "allocate (a(n), b(n), c(n))" calls malloc once for each. Ordinary code, untrusted input. */
#ifndef LOCUS_STRUCTURE_CALL_ORDER_H
#define LOCUS_STRUCTURE_CALL_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "structure/symbols.h"

/* Number of calls that the line of the one returning to return_vaddr makes in its function to the same callee, and the
 * number of this one among them, from 0, in the order in which they are made. Returns 0 when they are not made one
 * after the other on all ways through the function, or that is not known. */
size_t call_order_find(struct symbols *symbols, uint64_t return_vaddr, size_t *rank);

#endif
