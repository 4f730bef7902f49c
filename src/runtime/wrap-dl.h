/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the assembly stubs of dlopen, dlmopen, dlclose and the C part. */
#ifndef LOCUS_RUNTIME_WRAP_DL_H
#define LOCUS_RUNTIME_WRAP_DL_H

/* Marks the load map as changed and returns the real function to jump to. index: 0 dlopen, 1 dlmopen, 2 dlclose.
 * Called from the stubs only.  ctx: ordinary */
void *wrap_dl_target(int index) __attribute__((visibility("hidden")));

#endif
