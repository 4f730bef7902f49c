/* SPDX-License-Identifier: BSD-3-Clause */
/* Workloads whose stacks are hard to walk, for the unwinder's oracle test. */
#ifndef LOCUS_TESTS_UNWIND_LOAD_H
#define LOCUS_TESTS_UNWIND_LOAD_H

#ifdef __cplusplus
extern "C" {
#endif

/* Deep recursion, qsort callbacks, alloca, realigned stacks, longjmp, library calls bound late, and a signal handler
 * (on_signal is called in it). n: amount of work. */
void unwind_load_c(int n, void (*on_signal)(void));

/* C++: containers, and exceptions thrown through several frames. */
void unwind_load_cxx(int n);

/* Assembly without usable unwind information; each calls callback once, asm_pushes three times. */
void asm_pushes(void (*callback)(void));
void asm_slots(void (*callback)(void));
void asm_aligned(void (*callback)(void));
void asm_framed(void (*callback)(void));
void asm_silent(void (*callback)(void));

#ifdef __cplusplus
}
#endif

#endif
