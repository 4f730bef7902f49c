/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the real functions: see real.h. Filled at the first call, which may come before our constructor (an
 * allocator's own constructor), never through __libc_ names. Every thread that comes before the table is complete
 * fills it itself, with the same values: nobody waits. */
#include "alloc-wrap/real.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "alloc-wrap/boot.h"
#include "alloc-wrap/hook.h"
#include "base/raw-mmap.h"

static int stand_in_posix_memalign(void **p, size_t alignment, size_t n_bytes)
{
    *p = boot_memalign_hook(alignment, n_bytes);
    return *p ? 0 : ENOMEM;
}

static void *stand_in_valloc(size_t n_bytes)
{
    return boot_memalign_hook((size_t)getpagesize(), n_bytes);
}

static void *stand_in_mmap(void *address, size_t len_bytes, int prot, int flags, int fd, off_t offset)
{
    return (void *)raw_mmap(address, len_bytes, prot, flags, fd, offset);
}

static int stand_in_munmap(void *address, size_t len_bytes)
{
    return (int)syscall(SYS_munmap, address, len_bytes);
}

static struct {
    struct alloc_real table;
    atomic_bool known;
} real = {
    .table =
        {
            .malloc = boot_malloc_hook,
            .free = boot_free_hook,
            .calloc = boot_calloc_hook,
            .realloc = boot_realloc_hook,
            .memalign = boot_memalign_hook,
            .aligned_alloc = boot_memalign_hook,
            .posix_memalign = stand_in_posix_memalign,
            .valloc = stand_in_valloc,
            .pvalloc = stand_in_valloc,
            .mmap = stand_in_mmap,
            .munmap = stand_in_munmap,
        },
};

#define REAL_ROW(function)                                                                                             \
    {                                                                                                                  \
#function, offsetof(struct alloc_real, function)                                                               \
    }

/* free first: what the look-ups of the others release must not be lost. */
static const struct real_row {
    const char *name;
    size_t offset;
} real_rows[] = {
    REAL_ROW(free),
    REAL_ROW(malloc),
    REAL_ROW(calloc),
    REAL_ROW(realloc),
    REAL_ROW(reallocarray),
    REAL_ROW(memalign),
    REAL_ROW(posix_memalign),
    REAL_ROW(valloc),
    REAL_ROW(pvalloc),
    REAL_ROW(malloc_usable_size),
    REAL_ROW(aligned_alloc),
    REAL_ROW(mmap),
    REAL_ROW(munmap),
    REAL_ROW(mremap),
    REAL_ROW(shmat),
    REAL_ROW(shmdt),
    REAL_ROW(brk),
    REAL_ROW(sbrk),
};

#define NAME_ROW(form, name) [form] = #name,
static const char *const operator_names[OPERATOR_FORMS] = {OPERATOR_ROWS(NAME_ROW, NAME_ROW)};

const char *operator_name_hook(enum operator_form form)
{
    return operator_names[form];
}

const struct alloc_real *alloc_real_hook(void)
{
    return &real.table;
}

bool alloc_real_known_hook(void)
{
    return atomic_load_explicit(&real.known, memory_order_acquire);
}

/* Looks name up behind us and stores it at slot; false leaves the slot alone. */
static bool find_next(const char *name, void *slot)
{
    void *address = alloc_real_find_hook(name);
    if (address)
        memcpy(slot, &address, sizeof address);
    return address != NULL;
}

/* C programs have no operators: one failed look-up instead of twenty. */
static bool find_operators(void)
{
    for (unsigned form = 0; form < OPERATOR_FORMS; form++)
        if (!find_next(operator_names[form], &real.table.operators[form]) && form == OPERATOR_NEW)
            return false;
    return true;
}

void alloc_wrap_init(void)
{
    struct alloc_thread *thread = alloc_thread_hook();
    if (alloc_real_known_hook() || thread->resolving)
        return;
    int saved_errno = errno;
    thread->resolving = 1;
    bool all = true;
    for (size_t i = 0; i < sizeof real_rows / sizeof *real_rows; i++)
        all = find_next(real_rows[i].name, (char *)&real.table + real_rows[i].offset) && all;
    all = find_operators() && all;
    alloc_real_found_hook(all, &real.table);
    atomic_store_explicit(&real.known, true, memory_order_release);
    thread->resolving = 0;
    alloc_fast_refresh_hook();
    errno = saved_errno;
}

operator_function *alloc_operator_hook(enum operator_form form, uintptr_t pc)
{
    alloc_wrap_init();
    operator_function *next = real.table.operators[form];
    return next ? next : alloc_local_operator_hook(form, pc);
}

void *alloc_wrap_real_mmap(void *address, size_t len_bytes, int prot, int flags, int fd, int64_t offset)
{
    alloc_wrap_init();
    return real.table.mmap(address, len_bytes, prot, flags, fd, offset);
}
