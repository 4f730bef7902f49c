/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the real functions, and the bootstrap arena that serves allocations until it is filled: see real.h.
 * Runs inside the program's allocation calls. */
#include "alloc-wrap/real.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "alloc-wrap/hook.h"
#include "base/raw-mmap.h"

/* --- bootstrap arena --- */

/* Bootstrap arena: see real.h. dlsym and dlerror may allocate while the real malloc is still unknown; measured with
 * glibc 2.36 that is 0 to 4 blocks of some hundred bytes. */

#define BOOT_ALIGN 16

static struct {
    _Alignas(BOOT_ALIGN) unsigned char bytes[BOOT_ARENA_BYTES];
    _Atomic size_t used_bytes;
} boot;

/* The size of a block is stored right before it, in the 16 bytes that keep it aligned. */
void *boot_memalign_hook(size_t alignment, size_t n_bytes)
{
    if (!alignment || alignment & (alignment - 1)) {
        errno = EINVAL;
        return NULL;
    }
    if (alignment < BOOT_ALIGN)
        alignment = BOOT_ALIGN;
    size_t need_bytes = n_bytes + alignment + 2 * BOOT_ALIGN;
    if (n_bytes > BOOT_ARENA_BYTES || alignment > BOOT_ARENA_BYTES ||
        atomic_load(&boot.used_bytes) + need_bytes > BOOT_ARENA_BYTES) {
        errno = ENOMEM;
        return NULL;
    }
    size_t start = atomic_fetch_add(&boot.used_bytes, need_bytes);
    if (start + need_bytes > BOOT_ARENA_BYTES) {
        errno = ENOMEM;
        return NULL;
    }
    uintptr_t p = ((uintptr_t)boot.bytes + start + BOOT_ALIGN + alignment - 1) & ~(uintptr_t)(alignment - 1);
    memcpy((void *)(p - BOOT_ALIGN), &n_bytes, sizeof n_bytes);
    return (void *)p;
}

void *boot_malloc_hook(size_t n_bytes)
{
    return boot_memalign_hook(BOOT_ALIGN, n_bytes);
}

void *boot_calloc_hook(size_t n, size_t size_bytes)
{
    size_t n_bytes;
    if (__builtin_mul_overflow(n, size_bytes, &n_bytes))
        n_bytes = SIZE_MAX;
    return boot_malloc_hook(n_bytes);
}

void *boot_realloc_hook(void *p, size_t n_bytes)
{
    void *moved = boot_malloc_hook(n_bytes);
    if (moved && p && boot_owns_hook(p)) {
        size_t old_bytes = boot_size_hook(p);
        memcpy(moved, p, old_bytes < n_bytes ? old_bytes : n_bytes);
    }
    return moved;
}

/* Does nothing: a block freed before the real free is known stays allocated.  ctx: hook */
static void boot_free_hook(void *p)
{
    (void)p;
}

uintptr_t boot_arena_start_hook(void)
{
    return (uintptr_t)boot.bytes;
}

bool boot_owns_hook(const void *p)
{
    return (uintptr_t)p - (uintptr_t)boot.bytes < BOOT_ARENA_BYTES;
}

size_t boot_size_hook(const void *p)
{
    size_t n_bytes;
    memcpy(&n_bytes, (const unsigned char *)p - BOOT_ALIGN, sizeof n_bytes);
    return n_bytes;
}

/* --- table of the real functions --- */

/* The table of the real functions: see real.h. Filled at the first call, which may come before our constructor (an
 * allocator's own constructor), never through __libc_ names. A thread that comes before the table is complete fills it
 * itself, with the same values; no thread waits. */

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

/* free comes first: blocks that later look-ups free must not be lost. */
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

/* Looks up the next definition of name after ours and stores it at slot; on false the slot is unchanged. */
static bool find_next(const char *name, void *slot)
{
    void *address = alloc_real_find_hook(name);
    if (address)
        memcpy(slot, &address, sizeof address);
    return address != NULL;
}

/* C programs have no operators: this saves them twenty failed look-ups for one. */
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
