/* SPDX-License-Identifier: BSD-3-Clause */
/* Bootstrap arena: see boot.h. dlsym and dlerror may allocate while the real malloc is still unknown; measured with
 * glibc 2.36 that is 0 to 4 blocks of some hundred bytes. */
#include "alloc-wrap/boot.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#define BOOT_ALIGN 16

static struct {
    _Alignas(BOOT_ALIGN) unsigned char bytes[BOOT_ARENA_BYTES];
    _Atomic size_t used_bytes;
} boot;

/* Every block has its size right before it, in the 16 bytes that keep it aligned. */
void *boot_memalign_hook(size_t alignment, size_t n_bytes)
{
    if (!alignment || alignment & (alignment - 1)) {
        errno = EINVAL;
        return NULL;
    }
    if (alignment < BOOT_ALIGN)
        alignment = BOOT_ALIGN;
    size_t need_bytes = n_bytes + alignment + 2 * BOOT_ALIGN;
    if (n_bytes > BOOT_ARENA_BYTES || alignment > BOOT_ARENA_BYTES ||
        atomic_load(&boot.used_bytes) + need_bytes > BOOT_ARENA_BYTES) {
        errno = ENOMEM;
        return NULL;
    }
    size_t start = atomic_fetch_add(&boot.used_bytes, need_bytes);
    if (start + need_bytes > BOOT_ARENA_BYTES) {
        errno = ENOMEM;
        return NULL;
    }
    uintptr_t p = ((uintptr_t)boot.bytes + start + BOOT_ALIGN + alignment - 1) & ~(uintptr_t)(alignment - 1);
    memcpy((void *)(p - BOOT_ALIGN), &n_bytes, sizeof n_bytes);
    return (void *)p;
}

void *boot_malloc_hook(size_t n_bytes)
{
    return boot_memalign_hook(BOOT_ALIGN, n_bytes);
}

void *boot_calloc_hook(size_t n, size_t size_bytes)
{
    size_t n_bytes;
    if (__builtin_mul_overflow(n, size_bytes, &n_bytes))
        n_bytes = SIZE_MAX;
    return boot_malloc_hook(n_bytes);
}

void *boot_realloc_hook(void *p, size_t n_bytes)
{
    void *moved = boot_malloc_hook(n_bytes);
    if (moved && p && boot_owns_hook(p)) {
        size_t old_bytes = boot_size_hook(p);
        memcpy(moved, p, old_bytes < n_bytes ? old_bytes : n_bytes);
    }
    return moved;
}

void boot_free_hook(void *p)
{
    (void)p;
}

uintptr_t boot_arena_start_hook(void)
{
    return (uintptr_t)boot.bytes;
}

bool boot_owns_hook(const void *p)
{
    return (uintptr_t)p - (uintptr_t)boot.bytes < BOOT_ARENA_BYTES;
}

size_t boot_size_hook(const void *p)
{
    size_t n_bytes;
    memcpy(&n_bytes, (const unsigned char *)p - BOOT_ALIGN, sizeof n_bytes);
    return n_bytes;
}
