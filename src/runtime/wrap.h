/* SPDX-License-Identifier: BSD-3-Clause */
/* What the wrappers of libc functions share. */
#ifndef LOCUS_RUNTIME_WRAP_H
#define LOCUS_RUNTIME_WRAP_H

#define WRAP_EXPORT __attribute__((visibility("default")))

/* The next definition of a function after this library, NULL when there is none.  ctx: ordinary */
void *wrap_real(const char *name);

#endif
