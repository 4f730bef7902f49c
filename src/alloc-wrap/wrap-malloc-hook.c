/* SPDX-License-Identifier: BSD-3-Clause */
/* malloc, calloc, the aligned forms and free. Below the threshold a call is one comparison and a jump to the real
 * function, or between a look-up of the caller and a note of where the block comes from; the slow halves are entered by
 * a jump as well, so that their caller's frame is the program's. */
#include "alloc-wrap/tail.h"

#include <malloc.h>
#include <stdlib.h>

#include "alloc-wrap/boot.h"
#include "alloc-wrap/hook.h"
#include "alloc-wrap/real.h"

ALLOC_EXPORT void cfree(void *p);

/* limit_bytes is 0 and the filter lets everything through until the real functions are known. */
static struct {
    _Alignas(64) struct alloc_fast at;
    uintptr_t boot_start;
    void *(*malloc)(size_t n_bytes);
    void *(*calloc)(size_t n, size_t size_bytes);
    void (*free)(void *p);
    struct start_filter every; /* until the real functions are known: every block is looked at */
    _Atomic uint8_t ones[2];
} fast = {.at.filter = &fast.every, .every = {.counts = fast.ones, .shift = 63}, .ones = {1, 1}};

static __thread struct small_stack stack __attribute__((tls_model("initial-exec")));

void wrap_malloc_set_hook(const struct alloc_fast *to)
{
    const struct alloc_real *real = alloc_real_hook();
    fast.boot_start = boot_arena_start_hook();
    fast.malloc = real->malloc;
    fast.calloc = real->calloc;
    fast.free = real->free;
    alloc_fast_set(&fast.at, to);
}

void wrap_malloc_stack_hook(const struct small_stack *known)
{
    alloc_stack_set(&stack, known);
}

static inline __attribute__((always_inline)) bool has_site(size_t n_bytes)
{
    return __builtin_expect(n_bytes < __atomic_load_n(&fast.at.small_bytes, __ATOMIC_ACQUIRE), 1);
}

static inline __attribute__((always_inline)) bool is_small(size_t n_bytes)
{
    return __builtin_expect(n_bytes < __atomic_load_n(&fast.at.limit_bytes, __ATOMIC_ACQUIRE), 1);
}

/* After the real call: what was begun is ended, and the site of what is too small for a record is noted. */
static inline void call_end(struct alloc_call *call, bool is_reported, void *p, size_t n_bytes,
                            const struct alloc_site *site)
{
    if (is_reported)
        alloc_call_end_hook(call, p, n_bytes, site);
    if (!is_reported || call->weight <= 0)
        alloc_small_hook(p, n_bytes, site);
}

static ALLOC_NOINLINE void *malloc_slow(size_t n_bytes)
{
    const struct alloc_site site = alloc_site_here();
    struct alloc_call call;
    bool is_reported = alloc_call_begin_hook(&call, ALLOC_NEST_ALLOC, n_bytes);
    void *p = alloc_real_hook()->malloc(n_bytes);
    call_end(&call, is_reported, p, n_bytes, &site);
    return p;
}

/* Of a known site. A function of its own, so that the others keep nothing over the real call. */
static ALLOC_NOINLINE void *malloc_noted(size_t n_bytes, uint64_t four)
{
    return alloc_small_done(&fast.at, fast.malloc(n_bytes), n_bytes, four);
}

/* Of a caller that has more than one itself. */
static ALLOC_NOINLINE void *malloc_walk(size_t n_bytes)
{
    uint64_t four;
    enum small_next next = alloc_small_walk(&fast.at, &stack, n_bytes, &four);
    if (__builtin_expect(next == SMALL_NOTE, 1))
        return malloc_noted(n_bytes, four);
    if (next == SMALL_PASS)
        ALLOC_TAIL return fast.malloc(n_bytes);
    ALLOC_TAIL return malloc_slow(n_bytes);
}

ALLOC_EXPORT void *malloc(size_t n_bytes)
{
    if (has_site(n_bytes)) {
        uint64_t four;
        enum small_next next = alloc_small_call(&fast.at, &stack, n_bytes, &four);
        if (__builtin_expect(next == SMALL_NOTE, 1))
            return malloc_noted(n_bytes, four);
        if (next == SMALL_PASS)
            ALLOC_TAIL return fast.malloc(n_bytes);
        ALLOC_TAIL return malloc_walk(n_bytes);
    }
    if (is_small(n_bytes))
        ALLOC_TAIL return fast.malloc(n_bytes);
    ALLOC_TAIL return malloc_slow(n_bytes);
}

static ALLOC_NOINLINE void *calloc_slow(size_t n, size_t size_bytes)
{
    const struct alloc_site site = alloc_site_here();
    struct alloc_call call;
    size_t n_bytes;
    if (__builtin_mul_overflow(n, size_bytes, &n_bytes))
        return alloc_real_hook()->calloc(n, size_bytes);
    bool is_reported = alloc_call_begin_hook(&call, ALLOC_NEST_ALLOC, n_bytes);
    void *p = alloc_real_hook()->calloc(n, size_bytes);
    call_end(&call, is_reported, p, n_bytes, &site);
    return p;
}

/* Of a known site. A function of its own, so that the others keep nothing over the real call. */
static ALLOC_NOINLINE void *calloc_noted(size_t n, size_t size_bytes, uint64_t four)
{
    return alloc_small_done(&fast.at, fast.calloc(n, size_bytes), n * size_bytes, four);
}

/* Of a caller that has more than one itself. */
static ALLOC_NOINLINE void *calloc_walk(size_t n, size_t size_bytes)
{
    uint64_t four;
    enum small_next next = alloc_small_walk(&fast.at, &stack, n * size_bytes, &four);
    if (__builtin_expect(next == SMALL_NOTE, 1))
        return calloc_noted(n, size_bytes, four);
    if (next == SMALL_PASS)
        ALLOC_TAIL return fast.calloc(n, size_bytes);
    ALLOC_TAIL return calloc_slow(n, size_bytes);
}

ALLOC_EXPORT void *calloc(size_t n, size_t size_bytes)
{
    size_t n_bytes;
    if (__builtin_mul_overflow(n, size_bytes, &n_bytes))
        ALLOC_TAIL return calloc_slow(n, size_bytes);
    if (has_site(n_bytes)) {
        uint64_t four;
        enum small_next next = alloc_small_call(&fast.at, &stack, n_bytes, &four);
        if (__builtin_expect(next == SMALL_NOTE, 1))
            return calloc_noted(n, size_bytes, four);
        if (next == SMALL_PASS)
            ALLOC_TAIL return fast.calloc(n, size_bytes);
        ALLOC_TAIL return calloc_walk(n, size_bytes);
    }
    if (is_small(n_bytes))
        ALLOC_TAIL return fast.calloc(n, size_bytes);
    ALLOC_TAIL return calloc_slow(n, size_bytes);
}

static ALLOC_NOINLINE void free_slow(void *p)
{
    struct alloc_call call;
    if (boot_owns_hook(p))
        return;
    if (!alloc_release_begin_hook(&call, p)) {
        alloc_real_hook()->free(p);
        return;
    }
    alloc_real_hook()->free(p);
    alloc_release_end_hook(&call);
}

static inline __attribute__((always_inline)) bool is_ordinary(const void *p)
{
    return !start_filter_has(__atomic_load_n(&fast.at.filter, __ATOMIC_ACQUIRE), (uintptr_t)p) &&
           (uintptr_t)p - fast.boot_start >= BOOT_ARENA_BYTES;
}

ALLOC_EXPORT void free(void *p)
{
    if (__builtin_expect(is_ordinary(p), 1))
        ALLOC_TAIL return fast.free(p);
    ALLOC_TAIL return free_slow(p);
}

/* Old programs only; the C library has not had it since 2017. */
ALLOC_EXPORT void cfree(void *p)
{
    if (__builtin_expect(is_ordinary(p), 1))
        ALLOC_TAIL return fast.free(p);
    ALLOC_TAIL return free_slow(p);
}

ALLOC_EXPORT void *memalign(size_t alignment, size_t n_bytes)
{
    const struct alloc_site site = alloc_site_here();
    struct alloc_call call;
    bool is_reported = alloc_call_begin_hook(&call, ALLOC_NEST_ALLOC, n_bytes);
    void *p = alloc_real_hook()->memalign(alignment, n_bytes);
    call_end(&call, is_reported, p, n_bytes, &site);
    return p;
}

ALLOC_EXPORT void *aligned_alloc(size_t alignment, size_t n_bytes)
{
    const struct alloc_site site = alloc_site_here();
    struct alloc_call call;
    bool is_reported = alloc_call_begin_hook(&call, ALLOC_NEST_ALLOC, n_bytes);
    void *p = alloc_real_hook()->aligned_alloc(alignment, n_bytes);
    call_end(&call, is_reported, p, n_bytes, &site);
    return p;
}

ALLOC_EXPORT int posix_memalign(void **p, size_t alignment, size_t n_bytes)
{
    const struct alloc_site site = alloc_site_here();
    struct alloc_call call;
    bool is_reported = alloc_call_begin_hook(&call, ALLOC_NEST_ALLOC, n_bytes);
    int status = alloc_real_hook()->posix_memalign(p, alignment, n_bytes);
    call_end(&call, is_reported, status == 0 ? *p : NULL, n_bytes, &site);
    return status;
}

ALLOC_EXPORT void *valloc(size_t n_bytes)
{
    const struct alloc_site site = alloc_site_here();
    struct alloc_call call;
    bool is_reported = alloc_call_begin_hook(&call, ALLOC_NEST_ALLOC, n_bytes);
    void *p = alloc_real_hook()->valloc(n_bytes);
    call_end(&call, is_reported, p, n_bytes, &site);
    return p;
}

ALLOC_EXPORT void *pvalloc(size_t n_bytes)
{
    const struct alloc_site site = alloc_site_here();
    struct alloc_call call;
    bool is_reported = alloc_call_begin_hook(&call, ALLOC_NEST_ALLOC, n_bytes);
    void *p = alloc_real_hook()->pvalloc(n_bytes);
    call_end(&call, is_reported, p, n_bytes, &site);
    return p;
}

/* Forwarded unchanged, but for the blocks of the bootstrap, which the real allocator does not know. */
ALLOC_EXPORT size_t malloc_usable_size(void *p)
{
    if (boot_owns_hook(p))
        return boot_size_hook(p);
    (void)alloc_sink_hook();
    return alloc_real_hook()->malloc_usable_size ? alloc_real_hook()->malloc_usable_size(p) : 0;
}
