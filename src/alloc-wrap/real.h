/* SPDX-License-Identifier: BSD-3-Clause */
/* The real functions, which the program would have called without us. They are found with RTLD_NEXT, so that a program
 * keeps its own allocator. Also the table of C++ operators, and the bootstrap arena, which serves allocations while the
 * real functions are being found. */
#ifndef LOCUS_ALLOC_WRAP_REAL_H
#define LOCUS_ALLOC_WRAP_REAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* --- forms of operator new and delete --- */

/* The table of the forms of operator new and delete: one row each, NEW(form, mangled name) or DELETE(form, name).
 * The enum, the names and the wrappers are made from it. src: Itanium C++ ABI, 5.1.3 (size_t = unsigned long) */

#define OPERATOR_ROWS(NEW, DELETE)                                                                                     \
    NEW(OPERATOR_NEW, _Znwm)                                                                                           \
    NEW(OPERATOR_NEW_NOTHROW, _ZnwmRKSt9nothrow_t)                                                                     \
    NEW(OPERATOR_NEW_ALIGNED, _ZnwmSt11align_val_t)                                                                    \
    NEW(OPERATOR_NEW_ALIGNED_NOTHROW, _ZnwmSt11align_val_tRKSt9nothrow_t)                                              \
    NEW(OPERATOR_NEW_ARRAY, _Znam)                                                                                     \
    NEW(OPERATOR_NEW_ARRAY_NOTHROW, _ZnamRKSt9nothrow_t)                                                               \
    NEW(OPERATOR_NEW_ARRAY_ALIGNED, _ZnamSt11align_val_t)                                                              \
    NEW(OPERATOR_NEW_ARRAY_ALIGNED_NOTHROW, _ZnamSt11align_val_tRKSt9nothrow_t)                                        \
    DELETE(OPERATOR_DELETE, _ZdlPv)                                                                                    \
    DELETE(OPERATOR_DELETE_NOTHROW, _ZdlPvRKSt9nothrow_t)                                                              \
    DELETE(OPERATOR_DELETE_SIZED, _ZdlPvm)                                                                             \
    DELETE(OPERATOR_DELETE_ALIGNED, _ZdlPvSt11align_val_t)                                                             \
    DELETE(OPERATOR_DELETE_ALIGNED_NOTHROW, _ZdlPvSt11align_val_tRKSt9nothrow_t)                                       \
    DELETE(OPERATOR_DELETE_SIZED_ALIGNED, _ZdlPvmSt11align_val_t)                                                      \
    DELETE(OPERATOR_DELETE_ARRAY, _ZdaPv)                                                                              \
    DELETE(OPERATOR_DELETE_ARRAY_NOTHROW, _ZdaPvRKSt9nothrow_t)                                                        \
    DELETE(OPERATOR_DELETE_ARRAY_SIZED, _ZdaPvm)                                                                       \
    DELETE(OPERATOR_DELETE_ARRAY_ALIGNED, _ZdaPvSt11align_val_t)                                                       \
    DELETE(OPERATOR_DELETE_ARRAY_ALIGNED_NOTHROW, _ZdaPvSt11align_val_tRKSt9nothrow_t)                                 \
    DELETE(OPERATOR_DELETE_ARRAY_SIZED_ALIGNED, _ZdaPvmSt11align_val_t)

#define OPERATOR_FORM(form, name) form,
enum operator_form { OPERATOR_ROWS(OPERATOR_FORM, OPERATOR_FORM) OPERATOR_FORMS };
#undef OPERATOR_FORM

/* --- real functions --- */

/* All forms are called as functions of three integer registers; a form with fewer parameters ignores the rest. */
typedef void *operator_function(uintptr_t first, uintptr_t second, uintptr_t third);

/* Entries are never NULL, except those marked (optional) and the operators. */
struct alloc_real {
    void *(*malloc)(size_t n_bytes);
    void (*free)(void *p);
    void *(*calloc)(size_t n, size_t size_bytes);
    void *(*realloc)(void *p, size_t n_bytes);
    void *(*reallocarray)(void *p, size_t n, size_t size_bytes); /* (optional) */
    void *(*memalign)(size_t alignment, size_t n_bytes);
    void *(*aligned_alloc)(size_t alignment, size_t n_bytes);
    int (*posix_memalign)(void **p, size_t alignment, size_t n_bytes);
    void *(*valloc)(size_t n_bytes);
    void *(*pvalloc)(size_t n_bytes);
    size_t (*malloc_usable_size)(void *p); /* (optional) */
    void *(*mmap)(void *address, size_t len_bytes, int prot, int flags, int fd, off_t offset);
    int (*munmap)(void *address, size_t len_bytes);
    void *(*mremap)(void *old_address, size_t old_bytes, size_t new_bytes, int flags, ...); /* (optional) */
    void *(*shmat)(int id, const void *address, int flags);                                 /* (optional) */
    int (*shmdt)(const void *address);                                                      /* (optional) */
    int (*brk)(void *address);                                                              /* (optional) */
    void *(*sbrk)(intptr_t increment_bytes);                                                /* (optional) */
    operator_function *operators[OPERATOR_FORMS]; /* NULL: only the caller's module has it */
    uintptr_t allocator_start, allocator_end;     /* the allocator's own module, when it is not libc; else empty */
};

/* The function of this name that the program would have called without us; NULL when there is none.  ctx: hook */
void *alloc_real_find_hook(const char *name);

/* Called once all look-ups are done (all: none failed): fills allocator_start and _end of table, whose functions are
 * known by then, if they can be found.  ctx: hook */
void alloc_real_found_hook(bool all, struct alloc_real *table);

/* The table; until alloc_wrap_init has run, its entries are the functions of the bootstrap arena.  ctx: hook */
const struct alloc_real *alloc_real_hook(void);

/* True after alloc_wrap_init.  ctx: hook */
bool alloc_real_known_hook(void);

/* The operator that a caller at return address pc gets: the next one after us, or, in a program whose global scope has
 * none (C++ only in modules opened with RTLD_LOCAL), that of the caller's module. Never NULL.  ctx: hook */
operator_function *alloc_operator_hook(enum operator_form form, uintptr_t pc);

/* The operator in the scope of the module that contains pc, NULL when there is none.  ctx: hook; locks of the loader,
 * once per module and form */
operator_function *alloc_local_operator_hook(enum operator_form form, uintptr_t pc);

/* Mangled name of a form; static storage.  ctx: any */
const char *operator_name_hook(enum operator_form form);

/* --- bootstrap arena --- */

/* Bootstrap arena: serves the allocations that are made while the real functions are being looked up. Blocks are never
 * given back, and the wrappers always recognise them. */

#define BOOT_ARENA_BYTES 65536

/* Replacements of the malloc family: zeroed memory, or NULL and ENOMEM when the arena is full. alignment: a power of
 * two, else NULL and EINVAL.  ctx: hook */
void *boot_malloc_hook(size_t n_bytes);
void *boot_calloc_hook(size_t n, size_t size_bytes);
void *boot_memalign_hook(size_t alignment, size_t n_bytes);

/* Moves p (a boot block or NULL; the size of any other block is not known here, so its contents are not moved).  ctx:
 * hook */
void *boot_realloc_hook(void *p, size_t n_bytes);

/* First address of the arena.  ctx: hook */
uintptr_t boot_arena_start_hook(void);

/* True when p lies in the arena.  ctx: hook */
bool boot_owns_hook(const void *p);

/* Size of boot block p in bytes, as requested.  ctx: hook */
size_t boot_size_hook(const void *p);

#endif
