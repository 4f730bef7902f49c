/* SPDX-License-Identifier: BSD-3-Clause */
/* What always holds where a room keeps its data in order. Builds for tests (configure --enable-asserts, as ./dev test
 * has it) stop the process where it does not; others compile nothing. Any context: no call is made. */
#ifndef LOCUS_BASE_INVARIANT_H
#define LOCUS_BASE_INVARIANT_H

#ifdef LOCUS_ASSERTS
#define INVARIANT(condition) ((condition) ? (void)0 : __builtin_trap())
#else
#define INVARIANT(condition) ((void)(0 && (condition)))
#endif

#endif
