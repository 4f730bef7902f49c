/* SPDX-License-Identifier: BSD-3-Clause */
/* Included by the files whose slow halves look at their caller's frame, before any function: gcc makes tail calls from
 * its second level of optimisation only, and builds at other levels must report the same sites. (clang is told at each
 * call, see ALLOC_TAIL.) */
#ifndef LOCUS_ALLOC_WRAP_TAIL_H
#define LOCUS_ALLOC_WRAP_TAIL_H

#ifndef __clang__
#pragma GCC optimize("O2", "optimize-sibling-calls")
#endif

#endif
