/* SPDX-License-Identifier: BSD-3-Clause */
/* realloc and reallocarray: the record of the old block is kept until the real function has succeeded, since a failed
 * one leaves the block alone. */
#include "alloc-wrap/tail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alloc-wrap/boot.h"
#include "alloc-wrap/hook.h"
#include "alloc-wrap/real.h"

static struct {
    _Alignas(64) struct alloc_fast at;
    uintptr_t boot_start;
    void *(*realloc)(void *p, size_t n_bytes);
    struct start_filter every; /* until the real functions are known: every block is looked at */
    _Atomic uint8_t ones[2];
} fast = {.at.filter = &fast.every, .every = {.counts = fast.ones, .shift = 63}, .ones = {1, 1}};

static __thread struct small_stack stack __attribute__((tls_model("initial-exec")));

void wrap_realloc_set_hook(const struct alloc_fast *to)
{
    fast.boot_start = boot_arena_start_hook();
    fast.realloc = alloc_real_hook()->realloc;
    alloc_fast_set(&fast.at, to);
}

void wrap_realloc_stack_hook(const struct small_stack *known)
{
    alloc_stack_set(&stack, known);
}

/* The real call in the form that the program used: n == SIZE_MAX marks realloc. */
static void *real_resize(void *p, size_t n, size_t size_bytes)
{
    const struct alloc_real *real = alloc_real_hook();
    size_t n_bytes;
    if (n == SIZE_MAX)
        return real->realloc(p, size_bytes);
    if (real->reallocarray)
        return real->reallocarray(p, n, size_bytes);
    if (__builtin_mul_overflow(n, size_bytes, &n_bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return real->realloc(p, n_bytes);
}

/* A block of the bootstrap moves to the real allocator. */
static void *move_boot_block(void *p, size_t n_bytes)
{
    if (!alloc_real_known_hook())
        return boot_realloc_hook(p, n_bytes);
    void *moved = n_bytes ? alloc_real_hook()->malloc(n_bytes) : NULL;
    size_t old_bytes = boot_size_hook(p);
    if (moved)
        memcpy(moved, p, old_bytes < n_bytes ? old_bytes : n_bytes);
    return moved;
}

/* Size 0 frees the block in most allocators, and the others return another one: released before, as by free. */
static void *resize_to_nothing(void *p, size_t n, size_t size_bytes)
{
    struct alloc_call call;
    if (!alloc_release_begin_hook(&call, p))
        return real_resize(p, n, size_bytes);
    void *result = real_resize(p, n, size_bytes);
    alloc_release_end_hook(&call);
    return result;
}

static void *resize_reported(void *p, size_t n, size_t size_bytes, size_t n_bytes, const struct alloc_site *site)
{
    struct alloc_call call;
    (void)alloc_sink_hook();
    if (p && boot_owns_hook(p))
        return move_boot_block(p, n_bytes);
    if (p && !n_bytes)
        return resize_to_nothing(p, n, size_bytes);
    bool is_reported = alloc_resize_begin_hook(&call, p, n_bytes);
    void *result = real_resize(p, n, size_bytes);
    if (is_reported)
        alloc_resize_end_hook(&call, p, result, n_bytes, site);
    if (!is_reported || call.weight <= 0)
        alloc_small_hook(result, n_bytes, site);
    return result;
}

static ALLOC_NOINLINE void *realloc_slow(void *p, size_t n_bytes)
{
    const struct alloc_site site = alloc_site_here();
    return resize_reported(p, SIZE_MAX, n_bytes, n_bytes, &site);
}

/* Of a known site. A function of its own, so that the others keep nothing over the real call. */
static ALLOC_NOINLINE void *realloc_noted(void *p, size_t n_bytes, uint64_t four)
{
    return alloc_small_done(&fast.at, fast.realloc(p, n_bytes), n_bytes, four);
}

/* Of a caller that has more than one itself. */
static ALLOC_NOINLINE void *realloc_walk(void *p, size_t n_bytes)
{
    uint64_t four;
    enum small_next next = alloc_small_walk(&fast.at, &stack, n_bytes, &four);
    if (__builtin_expect(next == SMALL_NOTE, 1))
        return realloc_noted(p, n_bytes, four);
    if (next == SMALL_PASS)
        ALLOC_TAIL return fast.realloc(p, n_bytes);
    ALLOC_TAIL return realloc_slow(p, n_bytes);
}

ALLOC_EXPORT void *realloc(void *p, size_t n_bytes)
{
    if (n_bytes >= __atomic_load_n(&fast.at.limit_bytes, __ATOMIC_ACQUIRE) ||
        start_filter_has(__atomic_load_n(&fast.at.filter, __ATOMIC_ACQUIRE), (uintptr_t)p) ||
        (uintptr_t)p - fast.boot_start < BOOT_ARENA_BYTES)
        ALLOC_TAIL return realloc_slow(p, n_bytes);
    if (n_bytes >= __atomic_load_n(&fast.at.small_bytes, __ATOMIC_ACQUIRE))
        ALLOC_TAIL return fast.realloc(p, n_bytes);
    uint64_t four;
    if (__builtin_expect(alloc_small_call(&fast.at, &stack, n_bytes, &four) == SMALL_NOTE, 1))
        return realloc_noted(p, n_bytes, four);
    ALLOC_TAIL return realloc_walk(p, n_bytes);
}

ALLOC_EXPORT void *reallocarray(void *p, size_t n, size_t size_bytes)
{
    const struct alloc_site site = alloc_site_here();
    size_t n_bytes;
    if (__builtin_mul_overflow(n, size_bytes, &n_bytes)) {
        (void)alloc_sink_hook();
        return real_resize(p, n, size_bytes);
    }
    return resize_reported(p, n, size_bytes, n_bytes, &site);
}
