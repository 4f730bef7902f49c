/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the two files of the load map: loadmap.c (start, ordinary code) and loadmap-sig.c (handler). */
#ifndef LOCUS_RUNTIME_LOADMAP_INTERNAL_H
#define LOCUS_RUNTIME_LOADMAP_INTERNAL_H

#include <dlfcn.h>
#include <stdint.h>

#include "runtime/loadmap.h"
#include "runtime/own-call.h"
#include "runtime/zone.h"

/* The loader's lock-free look-up (glibc >= 2.35); NULL where it is missing. */
extern int _dl_find_object(void *address, struct dl_find_object *result) __attribute__((weak));

/* Tells where our own code is and where the vdso is.  ctx: ordinary, before the first look-up */
void loadmap_set_own_sig(const struct loadmap_own *own, uintptr_t vdso);

/* Adds a module, or returns the entry it has; NULL when the table is full or busy. tls_offset: see
 * struct loadmap_module.  ctx: any */
const struct loadmap_module *loadmap_add_sig(uintptr_t start, uintptr_t end, uintptr_t bias, const char *name,
                                             int64_t tls_offset);

/* What comes from now on may be unloaded again.  ctx: ordinary */
void loadmap_set_started_sig(void);

/* Makes ref that of the kernel's pseudo module.  ctx: ordinary */
void loadmap_set_kernel_sig(uint32_t ref);

#endif
