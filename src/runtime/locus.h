/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program can tell the profiler about itself: which blocks its own allocators hand out, and which part of its
 * work it is doing. Header only: there is nothing to link, and without the profiler each call only tests a pointer.
 *
 * Pools: call locus_pool_alloc after a block was taken from the pool, locus_pool_free before it goes back, and reports
 * show time by the call path of each block instead of for one large slab. Blocks that are left when the pool's memory
 * itself is freed or unmapped end with it.
 *
 * Leaks: locus_mark_live notes which blocks are live now.
 *
 * Regions: what happens on this thread between locus_region_begin("solve") and locus_region_end() is shown as part of
 * region "solve". They nest, 64 deep; each thread has its own. In C++: locus::region here("solve"); */
#ifndef LOCUS_LOCUS_H
#define LOCUS_LOCUS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Defined in the preloaded library; do not call it directly.  ctx: any thread, not in a signal handler */
__attribute__((weak)) void locus_pool_alloc_event(void *p, size_t n_bytes);
__attribute__((weak)) void locus_pool_free_event(void *p);
__attribute__((weak)) void locus_mark_live_event(void);
__attribute__((weak)) void locus_region_begin_event(const char *name);
__attribute__((weak)) void locus_region_end_event(void);

/* The block [p, p + n_bytes) now belongs to the caller. Does nothing if p is NULL.  ctx: any thread */
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

/* Notes, for each allocation path, the blocks that are live now: reports show them next to those that are live at exit.
 * The last mark counts.  ctx: any, signal handlers too */
static inline __attribute__((always_inline)) void locus_mark_live(void)
{
    if (locus_mark_live_event)
        locus_mark_live_event();
}

/* The calling thread enters the region called name (at most 255 bytes; copied), inside the one it is in. Every begin
 * needs an end on the same thread, even when an exception or longjmp leaves the region.  ctx: any thread */
static inline __attribute__((always_inline)) void locus_region_begin(const char *name)
{
    if (locus_region_begin_event)
        locus_region_begin_event(name);
}

/* The calling thread leaves the region that it entered last.  ctx: any thread */
static inline __attribute__((always_inline)) void locus_region_end(void)
{
    if (locus_region_end_event)
        locus_region_end_event();
}

#ifdef __cplusplus
}

namespace locus
{
/* A region that lasts as long as the object lives. */
class region
{
  public:
    explicit region(const char *name)
    {
        locus_region_begin(name);
    }
    ~region()
    {
        locus_region_end();
    }
    region(const region &) = delete;
    region &operator=(const region &) = delete;
};
} // namespace locus
#endif

#endif
