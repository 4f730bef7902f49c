/* SPDX-License-Identifier: BSD-3-Clause */
/* How the preloaded library finds the real functions: behind itself, in the order of the loader. A static program takes
 * real-static-hook.c instead. May run in the first allocation of a process. */
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdint.h>

#include "alloc-wrap/real.h"

void *alloc_real_find_hook(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

/* dl_iterate_phdr callback: true (stop) at the module that contains the real malloc. */
static int find_allocator(struct dl_phdr_info *info, size_t size, void *context)
{
    struct alloc_real *table = context;
    (void)size;
    uintptr_t low = UINTPTR_MAX, high = 0, wanted = (uintptr_t)table->malloc;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD)
            continue;
        low = start < low ? start : low;
        high = start + segment->p_memsz > high ? start + segment->p_memsz : high;
    }
    if (wanted < low || wanted >= high)
        return 0;
    uintptr_t in_libc = (uintptr_t)gnu_get_libc_version;
    if (in_libc < low || in_libc >= high) {
        table->allocator_start = low;
        table->allocator_end = high;
    }
    return 1;
}

void alloc_real_found_hook(bool all, struct alloc_real *table)
{
    if (!all)
        (void)dlerror(); /* the program must not find our failures when it asks for its own */
    (void)dl_iterate_phdr(find_allocator, table);
}
