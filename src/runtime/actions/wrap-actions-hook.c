/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that the program calls: the malloc family, the operators of C++, mmap, and the ends of a process that
 * run no destructors. A call of a place of the table gets its block from blocks-hook.c; all others go where they went
 * before, by a jump. See actions.h. */
#ifndef __clang__
#pragma GCC optimize("O2", "optimize-sibling-calls")
#endif

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "alloc-wrap/hook.h"
#include "alloc-wrap/real.h"
#include "runtime/actions/actions.h"

#define LARGE_BYTES 65536 /* at such calls it is looked whether libraries have been loaded ... */
#define CALLS_BETWEEN 256 /* ... and at so many others */

/* --- what real-hook.c needs, instead of the wrappers that report --- */

static __thread struct alloc_thread thread __attribute__((tls_model("initial-exec")));

struct alloc_thread *alloc_thread_hook(void)
{
    return &thread;
}

void alloc_fast_refresh_hook(void)
{
}

void alloc_wrap_guard_enter(void)
{
}

void alloc_wrap_guard_leave(void)
{
}

/* The real functions, found at the first call. */
static inline const struct alloc_real *real(void)
{
    if (ALLOC_UNLIKELY(!alloc_real_known_hook()))
        alloc_wrap_init();
    return alloc_real_hook();
}

void *alloc_wrap_plain_hook(size_t n_bytes)
{
    return real()->malloc(n_bytes);
}

/* --- blocks --- */

/* Now and then it is looked whether a place has come with a library. */
static inline void look_for_places(size_t n_bytes)
{
    static _Atomic unsigned n_calls;
    if (n_bytes >= LARGE_BYTES || atomic_fetch_add_explicit(&n_calls, 1, memory_order_relaxed) % CALLS_BETWEEN == 0)
        action_look_for_places_hook();
}

static inline bool may_be_place(uintptr_t pc, size_t n_bytes)
{
    if (ALLOC_UNLIKELY(action_waits_for_places_hook()))
        look_for_places(n_bytes);
    return ALLOC_UNLIKELY(sites_may_hook(pc));
}

#define RETURN_ADDRESS ((uintptr_t)__builtin_return_address(0))

/* A block of the action, if the call is one of a place; else NULL. errno is kept. */
static ALLOC_NOINLINE void *make(const struct alloc_site *site, size_t n_bytes, size_t alignment, bool is_zero)
{
    int saved_errno = errno;
    void *p =
        alloc_real_known_hook() && sites_match_hook(site, false) ? blocks_make_hook(n_bytes, alignment, is_zero) : NULL;
    errno = saved_errno;
    return p;
}

static ALLOC_NOINLINE void *malloc_slow(size_t n_bytes)
{
    const struct alloc_site site = alloc_site_here();
    void *p = make(&site, n_bytes, 0, false);
    return p ? p : real()->malloc(n_bytes);
}

ALLOC_EXPORT void *malloc(size_t n_bytes)
{
    if (may_be_place(RETURN_ADDRESS, n_bytes))
        ALLOC_TAIL return malloc_slow(n_bytes);
    ALLOC_TAIL return real()->malloc(n_bytes);
}

static ALLOC_NOINLINE void *calloc_slow(size_t n, size_t size_bytes)
{
    const struct alloc_site site = alloc_site_here();
    size_t n_bytes;
    void *p = __builtin_mul_overflow(n, size_bytes, &n_bytes) ? NULL : make(&site, n_bytes, 0, true);
    return p ? p : real()->calloc(n, size_bytes);
}

ALLOC_EXPORT void *calloc(size_t n, size_t size_bytes)
{
    if (may_be_place(RETURN_ADDRESS, n * size_bytes))
        ALLOC_TAIL return calloc_slow(n, size_bytes);
    ALLOC_TAIL return real()->calloc(n, size_bytes);
}

static inline bool is_power(size_t alignment)
{
    return alignment && !(alignment & (alignment - 1));
}

ALLOC_EXPORT void *memalign(size_t alignment, size_t n_bytes)
{
    const struct alloc_site site = alloc_site_here();
    void *p = is_power(alignment) && may_be_place(site.pc, n_bytes) ? make(&site, n_bytes, alignment, false) : NULL;
    return p ? p : real()->memalign(alignment, n_bytes);
}

ALLOC_EXPORT void *aligned_alloc(size_t alignment, size_t n_bytes)
{
    const struct alloc_site site = alloc_site_here();
    void *p = is_power(alignment) && may_be_place(site.pc, n_bytes) ? make(&site, n_bytes, alignment, false) : NULL;
    return p ? p : real()->aligned_alloc(alignment, n_bytes);
}

ALLOC_EXPORT int posix_memalign(void **to, size_t alignment, size_t n_bytes)
{
    const struct alloc_site site = alloc_site_here();
    bool is_valid = is_power(alignment) && alignment % sizeof(void *) == 0;
    void *p = is_valid && may_be_place(site.pc, n_bytes) ? make(&site, n_bytes, alignment, false) : NULL;
    if (!p)
        return real()->posix_memalign(to, alignment, n_bytes);
    *to = p;
    return 0;
}

ALLOC_EXPORT void *valloc(size_t n_bytes)
{
    const struct alloc_site site = alloc_site_here();
    void *p = may_be_place(site.pc, n_bytes) ? make(&site, n_bytes, ACTION_PAGE, false) : NULL;
    return p ? p : real()->valloc(n_bytes);
}

ALLOC_EXPORT void *pvalloc(size_t n_bytes)
{
    return real()->pvalloc(n_bytes);
}

static ALLOC_NOINLINE void free_slow(void *p)
{
    int saved_errno = errno;
    if (blocks_own_hook(p))
        blocks_free_hook(p);
    errno = saved_errno;
}

static inline bool is_foreign(const void *p)
{
    return __builtin_expect(!blocks_own_hook(p) && !boot_owns_hook(p), 1);
}

ALLOC_EXPORT void free(void *p)
{
    if (is_foreign(p))
        ALLOC_TAIL return real()->free(p);
    ALLOC_TAIL return free_slow(p);
}

/* For old programs only; the C library has not had it since 2017. */
ALLOC_EXPORT void cfree(void *p);
ALLOC_EXPORT void cfree(void *p)
{
    if (is_foreign(p))
        ALLOC_TAIL return real()->free(p);
    ALLOC_TAIL return free_slow(p);
}

ALLOC_EXPORT size_t malloc_usable_size(void *p)
{
    if (boot_owns_hook(p))
        return boot_size_hook(p);
    if (p && blocks_own_hook(p))
        return blocks_size_hook(p);
    return real()->malloc_usable_size ? real()->malloc_usable_size(p) : 0;
}

/* A plain block that becomes one of the action; NULL: it is none of a place. */
static void *take_over(void *p, size_t n_bytes, const struct alloc_site *site)
{
    void *made = make(site, n_bytes, 0, false);
    size_t old_bytes = made && p && real()->malloc_usable_size ? real()->malloc_usable_size(p) : 0;
    if (!made)
        return NULL;
    memcpy(made, p ? p : made, old_bytes < n_bytes ? old_bytes : n_bytes);
    real()->free(p);
    return made;
}

static void *resize(void *p, size_t n_bytes, const struct alloc_site *site)
{
    if (p && boot_owns_hook(p)) {
        void *moved = real()->malloc(n_bytes ? n_bytes : 1);
        size_t old_bytes = boot_size_hook(p);
        if (moved)
            memcpy(moved, p, old_bytes < n_bytes ? old_bytes : n_bytes);
        return moved;
    }
    if (p && blocks_own_hook(p)) {
        if (n_bytes)
            return blocks_resize_hook(p, n_bytes);
        free_slow(p);
        return NULL;
    }
    void *made =
        n_bytes && real()->malloc_usable_size && may_be_place(site->pc, n_bytes) ? take_over(p, n_bytes, site) : NULL;
    return made ? made : real()->realloc(p, n_bytes);
}

ALLOC_EXPORT void *realloc(void *p, size_t n_bytes)
{
    const struct alloc_site site = alloc_site_here();
    return resize(p, n_bytes, &site);
}

ALLOC_EXPORT void *reallocarray(void *p, size_t n, size_t size_bytes)
{
    const struct alloc_site site = alloc_site_here();
    size_t n_bytes;
    if (!__builtin_mul_overflow(n, size_bytes, &n_bytes))
        return resize(p, n_bytes, &site);
    errno = ENOMEM;
    return NULL;
}

/* --- operators --- */

/* All forms are called as functions of three integers. The second one of the aligned forms is the alignment. */
#define IS_ALIGNED(form)                                                                                               \
    ((form) == OPERATOR_NEW_ALIGNED || (form) == OPERATOR_NEW_ALIGNED_NOTHROW ||                                       \
     (form) == OPERATOR_NEW_ARRAY_ALIGNED || (form) == OPERATOR_NEW_ARRAY_ALIGNED_NOTHROW)

#define ROW_NEW(form, name)                                                                                            \
    ALLOC_EXPORT operator_function name;                                                                               \
    static ALLOC_NOINLINE void *name##_slow(uintptr_t n_bytes, uintptr_t second, uintptr_t third)                      \
    {                                                                                                                  \
        const struct alloc_site site = alloc_site_here();                                                              \
        void *p = make(&site, n_bytes, IS_ALIGNED(form) ? second : 0, false);                                          \
        return p ? p : alloc_operator_hook(form, site.pc)(n_bytes, second, third);                                     \
    }                                                                                                                  \
    void *name(uintptr_t n_bytes, uintptr_t second, uintptr_t third)                                                   \
    {                                                                                                                  \
        if (may_be_place(RETURN_ADDRESS, n_bytes))                                                                     \
            ALLOC_TAIL return name##_slow(n_bytes, second, third);                                                     \
        ALLOC_TAIL return alloc_operator_hook(form, RETURN_ADDRESS)(n_bytes, second, third);                           \
    }

#define ROW_DELETE(form, name)                                                                                         \
    ALLOC_EXPORT operator_function name;                                                                               \
    void *name(uintptr_t p, uintptr_t second, uintptr_t third)                                                         \
    {                                                                                                                  \
        if (is_foreign((const void *)p))                                                                               \
            ALLOC_TAIL return alloc_operator_hook(form, RETURN_ADDRESS)(p, second, third);                             \
        free_slow((void *)p);                                                                                          \
        return NULL;                                                                                                   \
    }

OPERATOR_ROWS(ROW_NEW, ROW_DELETE)

/* --- mappings --- */

/* A private mapping of no file, anywhere, for which the action has pages to make ready: it begins on a boundary of 2
 * MiB if it is that long. */
static void *map_ready(size_t n_bytes, int protection, int flags)
{
    const struct action *action = action_hook();
    size_t more = n_bytes >= ACTION_HUGE ? ACTION_HUGE : 0;
    void *made = real()->mmap(NULL, n_bytes + more, protection, flags, -1, 0);
    uintptr_t all = (uintptr_t)made, start = (all + more) & ~(uintptr_t)(more ? more - 1 : 0);
    size_t in_front = start - all, pages = (n_bytes + ACTION_PAGE - 1) & ~(size_t)(ACTION_PAGE - 1);
    if (made == MAP_FAILED)
        return made;
    if (more && in_front)
        (void)real()->munmap(made, in_front);
    if (more && more - in_front)
        (void)real()->munmap((void *)(start + pages), more - in_front);
    action->ready(start, pages);
    blocks_note_mapping_hook(start, pages);
    action_count(&action_effect_hook()->n_blocks, 1);
    action_count(&action_effect_hook()->n_bytes, n_bytes);
    return (void *)start;
}

static void *map(void *address, size_t n_bytes, int protection, int flags, int fd, off_t offset,
                 const struct alloc_site *site)
{
    int plain = MAP_PRIVATE | MAP_ANONYMOUS;
    bool is_plain = !address && (flags & (plain | MAP_SHARED)) == plain && !(flags & (MAP_HUGETLB | MAP_GROWSDOWN));
    if (!may_be_place(site->pc, n_bytes) || !sites_match_hook(site, true))
        return real()->mmap(address, n_bytes, protection, flags, fd, offset);
    if (is_plain && n_bytes && action_hook()->ready)
        return map_ready(n_bytes, protection, flags);
    action_count(&action_effect_hook()->n_plain, 1);
    return real()->mmap(address, n_bytes, protection, flags, fd, offset);
}

ALLOC_EXPORT void *mmap(void *address, size_t n_bytes, int protection, int flags, int fd, off_t offset)
{
    const struct alloc_site site = alloc_site_here();
    return map(address, n_bytes, protection, flags, fd, offset, &site);
}

ALLOC_EXPORT void *mmap64(void *address, size_t n_bytes, int protection, int flags, int fd, off64_t offset);
ALLOC_EXPORT void *mmap64(void *address, size_t n_bytes, int protection, int flags, int fd, off64_t offset)
{
    const struct alloc_site site = alloc_site_here();
    return map(address, n_bytes, protection, flags, fd, offset, &site);
}

/* --- ends that run no destructors --- */

ALLOC_EXPORT void _exit(int status)
{
    action_end_hook();
    for (;;)
        (void)action_call(SYS_exit_group, status, 0, 0, 0, 0, 0);
}

ALLOC_EXPORT void _Exit(int status)
{
    action_end_hook();
    for (;;)
        (void)action_call(SYS_exit_group, status, 0, 0, 0, 0, 0);
}
