/* SPDX-License-Identifier: BSD-3-Clause */
/* What depends on how the runtime came into the program, for the preloaded library: real functions lie behind it in
 * the loader's order, and the whole library is the profiler's. A static program takes link-static.c instead. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sys/auxv.h>

#include "runtime/loadmap.h"
#include "runtime/process-internal.h"
#include "runtime/wrap.h"

void *wrap_real(const char *name)
{
    int saved_errno = errno;
    void *real = dlsym(RTLD_NEXT, name);
    if (!real)
        (void)dlerror(); /* the program must not find our failure when it asks for its own */
    errno = saved_errno;
    return real;
}

extern const char __ehdr_start[] __attribute__((visibility("hidden"))); /* the linker's: where this library begins */

void wrap_own_image(uintptr_t *low, uintptr_t *high)
{
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)(uintptr_t)__ehdr_start;
    const ElfW(Phdr) *segments = (const ElfW(Phdr) *)((uintptr_t)header + header->e_phoff);
    uintptr_t page_bytes = getauxval(AT_PAGESZ);
    *low = *high = (uintptr_t)header;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        uintptr_t end = *low + segments[i].p_vaddr + segments[i].p_memsz;
        if (segments[i].p_type == PT_LOAD && end > *high)
            *high = (end + page_bytes - 1) / page_bytes * page_bytes;
    }
}

struct loadmap_own loadmap_own_code(void)
{
    return (struct loadmap_own){.address = (uintptr_t)loadmap_own_code};
}

void process_find_launcher(int argc, char **arguments)
{
    (void)argc;
    (void)arguments;
}
