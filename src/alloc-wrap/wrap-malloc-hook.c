/* SPDX-License-Identifier: BSD-3-Clause */
/* The malloc family and the operators of C++. Below the threshold a call is one comparison and a jump to the real
 * function; or, if sites of small blocks are noted, the real call between a look-up of the caller and a note of the
 * site. The slow halves are also entered by a jump, so that their caller's frame is the program's. */

/* Must come before any function: the slow halves need their caller's frame, but gcc makes tail calls only from -O2 on,
 * and builds at other levels must report the same sites. (For clang it is stated at each call, see ALLOC_TAIL.) */
#ifndef __clang__
#pragma GCC optimize("O2", "optimize-sibling-calls")
#endif

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include "alloc-wrap/hook.h"
#include "alloc-wrap/real.h"

/* --- malloc, calloc, the aligned forms and free --- */

ALLOC_EXPORT void cfree(void *p);

/* limit_bytes is 0 and the filter lets everything through until the real functions are known. */
static struct {
    _Alignas(64) struct alloc_fast at;
    uintptr_t boot_start;
    void *(*malloc)(size_t n_bytes);
    void *(*calloc)(size_t n, size_t size_bytes);
    void (*free)(void *p);
    struct start_filter every; /* until the real functions are known: lets every block through */
    _Atomic uint8_t ones[2];
} fast = {.at.filter = &fast.every, .every = {.counts = fast.ones, .shift = 63}, .ones = {UINT8_MAX, UINT8_MAX}};

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

/* After the real call: ends what was begun, or notes the site of a block that is too small for a record. */
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
    const struct alloc_sink *quick = alloc_quick_begin_hook(ALLOC_NEST_ALLOC, n_bytes);
    bool is_reported = !quick && alloc_call_begin_hook(&call, ALLOC_NEST_ALLOC, n_bytes);
    void *p = alloc_real_hook()->malloc(n_bytes);
    if (__builtin_expect(quick != NULL, 1))
        alloc_quick_end_hook(quick, p, n_bytes, &site);
    else
        call_end(&call, is_reported, p, n_bytes, &site);
    return p;
}

/* For a known site. A function of its own, so that the others need not save anything over the real call. */
static ALLOC_NOINLINE void *malloc_noted(size_t n_bytes, uint64_t cells)
{
    return alloc_small_done(&fast.at, fast.malloc(n_bytes), n_bytes, cells);
}

/* For a caller that itself has more than one caller. */
static ALLOC_NOINLINE void *malloc_walk(size_t n_bytes)
{
    uint64_t cells;
    enum small_next next = alloc_small_walk(&fast.at, &stack, n_bytes, &cells);
    if (__builtin_expect(next == SMALL_NOTE, 1))
        return malloc_noted(n_bytes, cells);
    if (next == SMALL_PASS)
        ALLOC_TAIL return fast.malloc(n_bytes);
    ALLOC_TAIL return malloc_slow(n_bytes);
}

ALLOC_EXPORT void *malloc(size_t n_bytes)
{
    if (has_site(n_bytes)) {
        uint64_t cells;
        enum small_next next = alloc_small_call(&fast.at, &stack, n_bytes, &cells);
        if (__builtin_expect(next == SMALL_NOTE, 1))
            return malloc_noted(n_bytes, cells);
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
    const struct alloc_sink *quick = alloc_quick_begin_hook(ALLOC_NEST_ALLOC, n_bytes);
    bool is_reported = !quick && alloc_call_begin_hook(&call, ALLOC_NEST_ALLOC, n_bytes);
    void *p = alloc_real_hook()->calloc(n, size_bytes);
    if (__builtin_expect(quick != NULL, 1))
        alloc_quick_end_hook(quick, p, n_bytes, &site);
    else
        call_end(&call, is_reported, p, n_bytes, &site);
    return p;
}

/* For a known site. A function of its own, so that the others need not save anything over the real call. */
static ALLOC_NOINLINE void *calloc_noted(size_t n, size_t size_bytes, uint64_t cells)
{
    return alloc_small_done(&fast.at, fast.calloc(n, size_bytes), n * size_bytes, cells);
}

/* For a caller that itself has more than one caller. */
static ALLOC_NOINLINE void *calloc_walk(size_t n, size_t size_bytes)
{
    uint64_t cells;
    enum small_next next = alloc_small_walk(&fast.at, &stack, n * size_bytes, &cells);
    if (__builtin_expect(next == SMALL_NOTE, 1))
        return calloc_noted(n, size_bytes, cells);
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
        uint64_t cells;
        enum small_next next = alloc_small_call(&fast.at, &stack, n_bytes, &cells);
        if (__builtin_expect(next == SMALL_NOTE, 1))
            return calloc_noted(n, size_bytes, cells);
        if (next == SMALL_PASS)
            ALLOC_TAIL return fast.calloc(n, size_bytes);
        ALLOC_TAIL return calloc_walk(n, size_bytes);
    }
    if (is_small(n_bytes))
        ALLOC_TAIL return fast.calloc(n, size_bytes);
    ALLOC_TAIL return calloc_slow(n, size_bytes);
}

/* Whether the block that starts at start can be freed without a bracket: it is not recorded, but only one near it, as
 * half of what the first look does not rule out; or its record is gone now. */
static inline bool is_done_with(const struct alloc_fast *at, uintptr_t start)
{
    __builtin_prefetch((const char *)start - 2 * sizeof(size_t)); /* where most allocators keep what free needs */
    enum start_filter_says says = start_filter_ask(__atomic_load_n(&at->filter, __ATOMIC_ACQUIRE), start);
    return says == START_FILTER_NONE || (says == START_FILTER_ONE && alloc_release_quick_hook((void *)start));
}

static ALLOC_NOINLINE void free_slow(void *p)
{
    struct alloc_call call;
    if ((uintptr_t)p - fast.boot_start < BOOT_ARENA_BYTES)
        return;
    if (is_done_with(&fast.at, (uintptr_t)p))
        ALLOC_TAIL return fast.free(p);
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

/* For old programs only; the C library has not had it since 2017. */
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

/* Forwarded unchanged, except for blocks of the bootstrap arena, which the real allocator does not know. */
ALLOC_EXPORT size_t malloc_usable_size(void *p)
{
    if (boot_owns_hook(p))
        return boot_size_hook(p);
    (void)alloc_sink_hook();
    return alloc_real_hook()->malloc_usable_size ? alloc_real_hook()->malloc_usable_size(p) : 0;
}

/* --- realloc and reallocarray --- */

/* realloc and reallocarray: the record of the old block is kept until the real function has succeeded, because a call
 * that fails leaves the block as it was. */

static struct {
    _Alignas(64) struct alloc_fast at;
    uintptr_t boot_start;
    void *(*realloc)(void *p, size_t n_bytes);
    struct start_filter every; /* until the real functions are known: lets every block through */
    _Atomic uint8_t ones[2];
} resizing = {
    .at.filter = &resizing.every, .every = {.counts = resizing.ones, .shift = 63}, .ones = {UINT8_MAX, UINT8_MAX}};

static __thread struct small_stack stack __attribute__((tls_model("initial-exec")));

void wrap_realloc_set_hook(const struct alloc_fast *to)
{
    resizing.boot_start = boot_arena_start_hook();
    resizing.realloc = alloc_real_hook()->realloc;
    alloc_fast_set(&resizing.at, to);
}

void wrap_realloc_stack_hook(const struct small_stack *known)
{
    alloc_stack_set(&stack, known);
}

/* Makes the real call in the form that the program used: n == SIZE_MAX marks realloc. */
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

/* Moves a block of the bootstrap arena to the real allocator. */
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

/* Most allocators free the block for size 0, and the others return another one: so its release is reported first, as by
 * free. */
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

/* For a known site. A function of its own, so that the others need not save anything over the real call. */
static ALLOC_NOINLINE void *realloc_noted(void *p, size_t n_bytes, uint64_t cells)
{
    return alloc_small_done(&resizing.at, resizing.realloc(p, n_bytes), n_bytes, cells);
}

/* For a caller that itself has more than one caller. */
static ALLOC_NOINLINE void *realloc_walk(void *p, size_t n_bytes)
{
    uint64_t cells;
    enum small_next next = alloc_small_walk(&resizing.at, &stack, n_bytes, &cells);
    if (__builtin_expect(next == SMALL_NOTE, 1))
        return realloc_noted(p, n_bytes, cells);
    if (next == SMALL_PASS)
        ALLOC_TAIL return resizing.realloc(p, n_bytes);
    ALLOC_TAIL return realloc_slow(p, n_bytes);
}

ALLOC_EXPORT void *realloc(void *p, size_t n_bytes)
{
    if (n_bytes >= __atomic_load_n(&resizing.at.limit_bytes, __ATOMIC_ACQUIRE) ||
        start_filter_has(__atomic_load_n(&resizing.at.filter, __ATOMIC_ACQUIRE), (uintptr_t)p) ||
        (uintptr_t)p - resizing.boot_start < BOOT_ARENA_BYTES)
        ALLOC_TAIL return realloc_slow(p, n_bytes);
    if (n_bytes >= __atomic_load_n(&resizing.at.small_bytes, __ATOMIC_ACQUIRE))
        ALLOC_TAIL return resizing.realloc(p, n_bytes);
    uint64_t cells;
    if (__builtin_expect(alloc_small_call(&resizing.at, &stack, n_bytes, &cells) == SMALL_NOTE, 1))
        return realloc_noted(p, n_bytes, cells);
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

/* --- operator new and delete --- */

/* operator new and delete in every form, in C under their mangled names. The real operator does everything: it throws,
 * it calls the new_handler, and if it calls malloc or free, those wrappers see that they are nested. An allocator whose
 * operators do not call malloc is only seen here. */

static struct {
    _Alignas(64) struct alloc_fast at;
    struct start_filter every; /* until the real functions are known: lets every block through */
    _Atomic uint8_t ones[2];
} operators = {
    .at.filter = &operators.every, .every = {.counts = operators.ones, .shift = 63}, .ones = {UINT8_MAX, UINT8_MAX}};

static __thread struct small_stack stack __attribute__((tls_model("initial-exec")));

_Unwind_Reason_Code alloc_personality_hook(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                           struct _Unwind_Exception *exception, struct _Unwind_Context *context);

/* Called by the unwinder for the frame of new_real_call when bad_alloc passes through or the thread ends in the
 * new_handler. Cleans up here and not in a landing pad, which would need libgcc.
 * src: Itanium C++ ABI, exception handling, 2.5.2 */
__attribute__((used, visibility("hidden"))) _Unwind_Reason_Code
alloc_personality_hook(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                       struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
    (void)version;
    (void)class;
    (void)exception;
    (void)context;
    if (actions & _UA_CLEANUP_PHASE)
        alloc_call_unwound_hook();
    return _URC_CONTINUE_UNWIND;
}

/* 0x1b: the personality is given as a 32-bit offset from here. */
static ALLOC_NOINLINE void *new_real_call(operator_function *operator_new, uintptr_t n_bytes, uintptr_t second,
                                          uintptr_t third)
{
    __asm__ volatile(".cfi_personality 0x1b, alloc_personality_hook");
    void *p = operator_new(n_bytes, second, third);
    __asm__ volatile("" : "+r"(p)); /* no tail call: this frame must be on the stack */
    return p;
}

static void *new_reported(enum operator_form form, uintptr_t n_bytes, uintptr_t second, uintptr_t third,
                          const struct alloc_site *site)
{
    struct alloc_call call;
    operator_function *operator_new = alloc_operator_hook(form, site->pc);
    bool is_reported = alloc_call_begin_hook(&call, ALLOC_NEST_NEW, n_bytes);
    void *p = is_reported ? new_real_call(operator_new, n_bytes, second, third) : operator_new(n_bytes, second, third);
    if (is_reported)
        alloc_call_end_hook(&call, p, n_bytes, site);
    if (!is_reported || call.weight <= 0)
        alloc_small_hook(p, n_bytes, site);
    return p;
}

static void *delete_reported(enum operator_form form, uintptr_t p, uintptr_t second, uintptr_t third, uintptr_t pc)
{
    struct alloc_call call;
    operator_function *operator_delete = alloc_operator_hook(form, pc);
    if (!alloc_release_begin_hook(&call, (void *)p))
        return operator_delete(p, second, third);
    (void)operator_delete(p, second, third);
    alloc_release_end_hook(&call);
    return NULL;
}

/* These forms take only the size, so nothing else need be kept for them. */
#define IS_PLAIN(form) ((form) == OPERATOR_NEW || (form) == OPERATOR_NEW_ARRAY)

/* One row per form: the wrapper, its slow half, and the function that it jumps to if only the caller's module has the
 * real one. */
#define ROW_LOCAL(form, name)                                                                                          \
    static operator_function name##_local;                                                                             \
    static operator_function *name##_next = name##_local;                                                              \
    static ALLOC_NOINLINE void *name##_local(uintptr_t first, uintptr_t second, uintptr_t third)                       \
    {                                                                                                                  \
        return alloc_operator_hook(form, (uintptr_t)__builtin_return_address(0))(first, second, third);                \
    }

#define ROW_NEW(form, name)                                                                                            \
    ROW_LOCAL(form, name)                                                                                              \
    static ALLOC_NOINLINE void *name##_slow(uintptr_t n_bytes, uintptr_t second, uintptr_t third)                      \
    {                                                                                                                  \
        const struct alloc_site site = alloc_site_here();                                                              \
        return new_reported(form, n_bytes, second, third, &site);                                                      \
    }                                                                                                                  \
    static ALLOC_NOINLINE void *name##_noted(uintptr_t n_bytes, uintptr_t second, uintptr_t third, uint64_t cells)     \
    {                                                                                                                  \
        return alloc_small_done(&operators.at, name##_next(n_bytes, second, third), n_bytes, cells);                   \
    }                                                                                                                  \
    static ALLOC_NOINLINE void *name##_walk(uintptr_t n_bytes, uintptr_t second, uintptr_t third)                      \
    {                                                                                                                  \
        uint64_t cells;                                                                                                \
        enum small_next next = alloc_small_walk(&operators.at, &stack, n_bytes, &cells);                               \
        if (next == SMALL_ASK)                                                                                         \
            ALLOC_TAIL return name##_slow(n_bytes, second, third);                                                     \
        if (next == SMALL_PASS)                                                                                        \
            ALLOC_TAIL return name##_next(n_bytes, second, third);                                                     \
        return name##_noted(n_bytes, second, third, cells);                                                            \
    }                                                                                                                  \
    ALLOC_EXPORT operator_function name;                                                                               \
    void *name(uintptr_t n_bytes, uintptr_t second, uintptr_t third)                                                   \
    {                                                                                                                  \
        if (IS_PLAIN(form))                                                                                            \
            second = third = 0;                                                                                        \
        if (n_bytes < __atomic_load_n(&operators.at.small_bytes, __ATOMIC_ACQUIRE)) {                                  \
            uint64_t cells;                                                                                            \
            if (__builtin_expect(alloc_small_call(&operators.at, &stack, n_bytes, &cells) == SMALL_NOTE, 1))           \
                return name##_noted(n_bytes, second, third, cells);                                                    \
            ALLOC_TAIL return name##_walk(n_bytes, second, third);                                                     \
        }                                                                                                              \
        if (n_bytes < __atomic_load_n(&operators.at.limit_bytes, __ATOMIC_ACQUIRE))                                    \
            ALLOC_TAIL return name##_next(n_bytes, second, third);                                                     \
        ALLOC_TAIL return name##_slow(n_bytes, second, third);                                                         \
    }

#define ROW_DELETE(form, name)                                                                                         \
    ROW_LOCAL(form, name)                                                                                              \
    static ALLOC_NOINLINE void *name##_slow(uintptr_t p, uintptr_t second, uintptr_t third)                            \
    {                                                                                                                  \
        if (is_done_with(&operators.at, p))                                                                            \
            ALLOC_TAIL return name##_next(p, second, third);                                                           \
        return delete_reported(form, p, second, third, (uintptr_t)__builtin_return_address(0));                        \
    }                                                                                                                  \
    ALLOC_EXPORT operator_function name;                                                                               \
    void *name(uintptr_t p, uintptr_t second, uintptr_t third)                                                         \
    {                                                                                                                  \
        if (!start_filter_has(__atomic_load_n(&operators.at.filter, __ATOMIC_ACQUIRE), p))                             \
            ALLOC_TAIL return name##_next(p, second, third);                                                           \
        ALLOC_TAIL return name##_slow(p, second, third);                                                               \
    }

OPERATOR_ROWS(ROW_NEW, ROW_DELETE)

#define ROW_IS(form, name) is_new |= function == (uintptr_t)real->operators[form];
#define ROW_NONE(form, name)

bool alloc_wrap_is_new(uintptr_t function)
{
    const struct alloc_real *real = alloc_real_hook();
    bool is_new = false;
    OPERATOR_ROWS(ROW_IS, ROW_NONE)
    return is_new;
}

#define ROW_SET(form, name)                                                                                            \
    if (real->operators[form])                                                                                         \
        name##_next = real->operators[form];

#define ROW_IS_KNOWN(form, name) is_known &= name##_next != name##_local;

/* If only the caller's module has a real operator, all calls take the slow way, which finds the caller's. */
void wrap_new_set_hook(const struct alloc_fast *to)
{
    const struct alloc_real *real = alloc_real_hook();
    struct alloc_fast at = *to;
    bool is_known = true;
    OPERATOR_ROWS(ROW_SET, ROW_SET)
    OPERATOR_ROWS(ROW_IS_KNOWN, ROW_NONE)
    if (!is_known)
        at.small_bytes = at.limit_bytes = 0;
    alloc_fast_set(&operators.at, &at);
}

void wrap_new_stack_hook(const struct small_stack *known)
{
    alloc_stack_set(&stack, known);
}
