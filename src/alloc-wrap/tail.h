/* SPDX-License-Identifier: BSD-3-Clause */
/* Included by the files whose slow halves look at their caller's frame, before any function: with gcc, tail calls are
 * made when optimising only, and builds without optimisation must report the same sites. */
#ifndef LOCUS_ALLOC_WRAP_TAIL_H
#define LOCUS_ALLOC_WRAP_TAIL_H

#if !defined(__clang__) && !defined(__OPTIMIZE__)
#pragma GCC optimize("O2")
#endif

#endif
