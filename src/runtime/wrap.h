/* SPDX-License-Identifier: BSD-3-Clause */
/* What the wrappers of libc functions share. */
#ifndef LOCUS_RUNTIME_WRAP_H
#define LOCUS_RUNTIME_WRAP_H

#include <stdint.h>

#define WRAP_EXPORT __attribute__((visibility("default")))

/* The next definition of a function after this library, NULL when there is none. errno is kept.  ctx: ordinary */
void *wrap_real(const char *name);

/* A child was made with these flags of clone and without the handlers of fork: it is named, as it is not measured,
 * unless it shares our memory. errno is kept.  ctx: any, the parent */
void wrap_note_clone(int pid, uint64_t flags);

/* Where the profiler's own code and data lie, when they are a library of their own; else both 0.  ctx: any */
void wrap_own_image(uintptr_t *low, uintptr_t *high);

#endif
