/* SPDX-License-Identifier: BSD-3-Clause */
/* In a program that is running, no call comes to us by the loader's order. So the slots of its modules, through which
 * they call libc's functions, get ours; only a slot that holds the very function that ours will call is changed. Only
 * in the library that the launcher loads into such a program. */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "alloc-wrap/real.h"
#include "runtime/process/start.h"
#include "runtime/wrap/wrap.h"

#define OPERATOR(form, name) extern char name[];
OPERATOR_ROWS(OPERATOR, OPERATOR)
#undef OPERATOR

/* Addresses of our functions: in this library these names are local. Those of operators that the program's C++ library
 * lacks are found by nobody. */
#define FUNCTION(name) {.function = #name, .to = (uintptr_t)name},
#define OPERATOR(form, name) FUNCTION(name)

static struct wrap_change *changes(size_t *n)
{
    static struct wrap_change rows[] = {
        FUNCTION(free) FUNCTION(malloc) FUNCTION(calloc) FUNCTION(realloc) FUNCTION(reallocarray) FUNCTION(memalign)
            FUNCTION(aligned_alloc) FUNCTION(posix_memalign) FUNCTION(valloc) FUNCTION(pvalloc) FUNCTION(mmap)
                FUNCTION(mmap64) FUNCTION(munmap) FUNCTION(mremap) FUNCTION(shmat) FUNCTION(shmdt)
                    FUNCTION(pthread_create) FUNCTION(dlopen) FUNCTION(dlclose) OPERATOR_ROWS(OPERATOR, OPERATOR)};
    *n = sizeof rows / sizeof *rows;
    return rows;
}

void wrap_slots_take(void)
{
    size_t n;
    struct wrap_change *rows = changes(&n);
    for (size_t i = 0; i < n; i++) {
        rows[i].from = (uintptr_t)wrap_real(rows[i].function);
        rows[i].may_be_lazy = rows[i].from && rows[i].from == (uintptr_t)dlsym(RTLD_DEFAULT, rows[i].function);
    }
    wrap_slots_change(rows, n);
}

void wrap_slots_restore(void)
{
    size_t n;
    struct wrap_change *rows = changes(&n);
    for (size_t i = 0; i < n; i++) {
        uintptr_t ours = rows[i].to;
        rows[i].to = rows[i].from;
        rows[i].from = rows[i].to ? ours : 0;
        rows[i].may_be_lazy = false;
    }
    wrap_slots_change(rows, n);
}
