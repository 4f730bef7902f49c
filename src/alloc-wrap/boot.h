/* SPDX-License-Identifier: BSD-3-Clause */
/* Bootstrap arena: serves the allocations that are made while the real functions are being looked up. Blocks are never
 * given back; the wrappers recognise them for ever. */
#ifndef LOCUS_ALLOC_WRAP_BOOT_H
#define LOCUS_ALLOC_WRAP_BOOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOOT_ARENA_BYTES 65536

/* Replacements of the malloc family: zeroed memory, or NULL and ENOMEM when the arena is full. alignment: a power of
 * two, else NULL and EINVAL.  ctx: hook */
void *boot_malloc_hook(size_t n_bytes);
void *boot_calloc_hook(size_t n, size_t size_bytes);
void *boot_memalign_hook(size_t alignment, size_t n_bytes);

/* Moves p (a boot block or NULL; the contents of any other block cannot be known here and are not moved).  ctx: hook */
void *boot_realloc_hook(void *p, size_t n_bytes);

/* Does nothing: what is freed before the real free is known stays.  ctx: hook */
void boot_free_hook(void *p);

/* First address of the arena.  ctx: hook */
uintptr_t boot_arena_start_hook(void);

/* True when p lies in the arena.  ctx: hook */
bool boot_owns_hook(const void *p);

/* Size of boot block p in bytes, as requested.  ctx: hook */
size_t boot_size_hook(const void *p);

#endif
