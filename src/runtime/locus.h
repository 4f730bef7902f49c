/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program can tell the profiler of its memory. Header only: nothing is linked, and without the profiler each
 * call is a test of a pointer.
 * Allocators of its own: which blocks a pool hands out, and their time is shown by the call path of each block instead
 * of as one large slab. Call locus_pool_alloc after the block was taken from the pool, locus_pool_free before it goes
 * back; what is still there when the pool's memory itself is freed or unmapped goes with it. */
#ifndef LOCUS_LOCUS_H
#define LOCUS_LOCUS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In the preloaded library; not to be called directly.  ctx: any thread, not in a signal handler */
__attribute__((weak)) void locus_pool_alloc_event(void *p, size_t n_bytes);
__attribute__((weak)) void locus_pool_free_event(void *p);
__attribute__((weak)) void locus_mark_live_event(void);

/* The block [p, p + n_bytes) now belongs to the caller. p may be NULL: nothing happens.  ctx: any thread */
static inline __attribute__((always_inline)) void locus_pool_alloc(void *p, size_t n_bytes)
{
    if (locus_pool_alloc_event)
        locus_pool_alloc_event(p, n_bytes);
}

/* The block that starts at p is about to go back to its pool.  ctx: any thread */
static inline __attribute__((always_inline)) void locus_pool_free(void *p)
{
    if (locus_pool_free_event)
        locus_pool_free_event(p);
}

/* Notes, for each allocation path, the blocks that are live now: reports show them beside those that are live at exit.
 * The last mark counts.  ctx: any, signal handlers too */
static inline __attribute__((always_inline)) void locus_mark_live(void)
{
    if (locus_mark_live_event)
        locus_mark_live_event();
}

#ifdef __cplusplus
}
#endif

#endif
