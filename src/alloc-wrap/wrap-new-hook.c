/* SPDX-License-Identifier: BSD-3-Clause */
/* operator new and delete in every form, in C under their mangled names. The real operator does everything: it throws,
 * it calls the new_handler, and where it calls malloc or free, those wrappers see that they are nested. An allocator
 * whose operators call no malloc is seen here only. */
#include "alloc-wrap/tail.h"

#include <unwind.h>

#include "alloc-wrap/hook.h"
#include "alloc-wrap/real.h"

static struct {
    _Alignas(64) struct alloc_fast at;
    struct start_filter every; /* until the real functions are known: every block is looked at */
    _Atomic uint8_t ones[2];
} fast = {.at.filter = &fast.every, .every = {.counts = fast.ones, .shift = 63}, .ones = {1, 1}};

static __thread struct small_stack stack __attribute__((tls_model("initial-exec")));

_Unwind_Reason_Code alloc_personality_hook(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                           struct _Unwind_Exception *exception, struct _Unwind_Context *context);

/* Called by the unwinder for the frame of new_real_call, when bad_alloc passes or the thread ends in the new_handler.
 * The clean-up is done here instead of in a landing pad, which would need libgcc.
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

/* 0x1b: the personality is named by a 32-bit offset from here. */
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

/* These take the size alone: nothing else need be kept for them. */
#define IS_PLAIN(form) ((form) == OPERATOR_NEW || (form) == OPERATOR_NEW_ARRAY)

/* One row per form: the wrapper, its slow half, and the function it jumps to while the real one is known by the
 * caller's module only. */
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
    static ALLOC_NOINLINE void *name##_noted(uintptr_t n_bytes, uintptr_t second, uintptr_t third, uint64_t four)      \
    {                                                                                                                  \
        return alloc_small_done(&fast.at, name##_next(n_bytes, second, third), n_bytes, four);                         \
    }                                                                                                                  \
    static ALLOC_NOINLINE void *name##_walk(uintptr_t n_bytes, uintptr_t second, uintptr_t third)                      \
    {                                                                                                                  \
        uint64_t four;                                                                                                 \
        enum small_next next = alloc_small_walk(&fast.at, &stack, n_bytes, &four);                                     \
        if (next == SMALL_ASK)                                                                                         \
            ALLOC_TAIL return name##_slow(n_bytes, second, third);                                                     \
        if (next == SMALL_PASS)                                                                                        \
            ALLOC_TAIL return name##_next(n_bytes, second, third);                                                     \
        return name##_noted(n_bytes, second, third, four);                                                             \
    }                                                                                                                  \
    ALLOC_EXPORT operator_function name;                                                                               \
    void *name(uintptr_t n_bytes, uintptr_t second, uintptr_t third)                                                   \
    {                                                                                                                  \
        if (IS_PLAIN(form))                                                                                            \
            second = third = 0;                                                                                        \
        if (n_bytes < __atomic_load_n(&fast.at.small_bytes, __ATOMIC_ACQUIRE)) {                                       \
            uint64_t four;                                                                                             \
            if (__builtin_expect(alloc_small_call(&fast.at, &stack, n_bytes, &four) == SMALL_NOTE, 1))                 \
                return name##_noted(n_bytes, second, third, four);                                                     \
            ALLOC_TAIL return name##_walk(n_bytes, second, third);                                                     \
        }                                                                                                              \
        if (n_bytes < __atomic_load_n(&fast.at.limit_bytes, __ATOMIC_ACQUIRE))                                         \
            ALLOC_TAIL return name##_next(n_bytes, second, third);                                                     \
        ALLOC_TAIL return name##_slow(n_bytes, second, third);                                                         \
    }

#define ROW_DELETE(form, name)                                                                                         \
    ROW_LOCAL(form, name)                                                                                              \
    static ALLOC_NOINLINE void *name##_slow(uintptr_t p, uintptr_t second, uintptr_t third)                            \
    {                                                                                                                  \
        return delete_reported(form, p, second, third, (uintptr_t)__builtin_return_address(0));                        \
    }                                                                                                                  \
    ALLOC_EXPORT operator_function name;                                                                               \
    void *name(uintptr_t p, uintptr_t second, uintptr_t third)                                                         \
    {                                                                                                                  \
        if (!start_filter_has(__atomic_load_n(&fast.at.filter, __ATOMIC_ACQUIRE), p))                                  \
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

/* Where a real operator is known by the caller's module only, all calls go the slow way, which asks whose it is. */
void wrap_new_set_hook(const struct alloc_fast *to)
{
    const struct alloc_real *real = alloc_real_hook();
    struct alloc_fast at = *to;
    bool is_known = true;
    OPERATOR_ROWS(ROW_SET, ROW_SET)
    OPERATOR_ROWS(ROW_IS_KNOWN, ROW_NONE)
    if (!is_known)
        at.small_bytes = at.limit_bytes = 0;
    alloc_fast_set(&fast.at, &at);
}

void wrap_new_stack_hook(const struct small_stack *known)
{
    alloc_stack_set(&stack, known);
}
