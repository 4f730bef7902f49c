/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for arrays of many MiB, in pages as large as the machine has: to get ten thousands of small ones takes longer
 * than to fill them. Inline, for ordinary code. */
#ifndef LOCUS_BASE_PAGES_H
#define LOCUS_BASE_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

enum { PAGES_SMALL = 4096, PAGES_WORTH = 4 << 20 };

/* Asks for large pages where [at, at + n_bytes) is not used yet; of few bytes it does nothing. Older kernels, and
 * machines without such pages, give small ones. */
static inline void pages_want_large(const void *at, size_t n_bytes)
{
    uintptr_t begin = ((uintptr_t)at + PAGES_SMALL - 1) & -(uintptr_t)PAGES_SMALL;
    uintptr_t end = ((uintptr_t)at + n_bytes) & -(uintptr_t)PAGES_SMALL;
    if (at && n_bytes >= PAGES_WORTH)
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

/* New memory, which is zero; MAP_FAILED: there is none. munmap(2) frees it. */
static inline void *pages_get(size_t n_bytes)
{
    void *at = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at != MAP_FAILED)
        pages_want_large(at, n_bytes);
    return at;
}

#endif
