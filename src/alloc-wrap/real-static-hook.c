/* SPDX-License-Identifier: BSD-3-Clause */
/* How the runtime inside a static program finds the real functions: the linker's --wrap=NAME makes __real_NAME the
 * program's own definition. Functions that hpclink did not wrap stay undefined, so they are declared weak. Takes the
 * place of real-next-hook.c. */
#include <string.h>

#include "alloc-wrap/alloc-wrap.h"
#include "alloc-wrap/real.h"

#define FUNCTION_ROWS(ROW)                                                                                             \
    ROW(malloc)                                                                                                        \
    ROW(calloc)                                                                                                        \
    ROW(realloc)                                                                                                       \
    ROW(reallocarray)                                                                                                  \
    ROW(free)                                                                                                          \
    ROW(memalign)                                                                                                      \
    ROW(aligned_alloc)                                                                                                 \
    ROW(posix_memalign)                                                                                                \
    ROW(valloc)                                                                                                        \
    ROW(pvalloc)                                                                                                       \
    ROW(malloc_usable_size)                                                                                            \
    ROW(mmap)                                                                                                          \
    ROW(munmap)                                                                                                        \
    ROW(mremap)                                                                                                        \
    ROW(shmat)                                                                                                         \
    ROW(shmdt)                                                                                                         \
    ROW(brk)                                                                                                           \
    ROW(sbrk)

#define DECLARE_FUNCTION(name) extern void __real_##name(void) __attribute__((weak));
#define DECLARE_OPERATOR(form, name) DECLARE_FUNCTION(name)
FUNCTION_ROWS(DECLARE_FUNCTION)
OPERATOR_ROWS(DECLARE_OPERATOR, DECLARE_OPERATOR)

#define FUNCTION_ROW(name) {#name, __real_##name},
#define OPERATOR_ROW(form, name) FUNCTION_ROW(name)

void *alloc_real_find_hook(const char *name)
{
    static const struct {
        const char *name;
        void (*function)(void);
    } rows[] = {FUNCTION_ROWS(FUNCTION_ROW) OPERATOR_ROWS(OPERATOR_ROW, OPERATOR_ROW)};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, name))
            return (void *)rows[i].function;
    return NULL;
}

void alloc_real_found_hook(bool all, struct alloc_real *table)
{
    (void)all;
    (void)table;
}

/* Every form that the program calls was linked into it, so this is not reached. */
operator_function *alloc_local_operator_hook(enum operator_form form, uintptr_t pc)
{
    (void)form;
    (void)pc;
    __builtin_trap();
}

/* One program, one owner: hpclink has checked at link time that the calls come here. */
void alloc_wrap_owners(char owner[4][256])
{
    memset(owner, 0, 4 * sizeof *owner);
}
