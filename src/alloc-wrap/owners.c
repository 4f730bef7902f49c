/* SPDX-License-Identifier: BSD-3-Clause */
/* Who owns the allocation functions: an allocator inside the executable, or preloaded before us, takes the calls and we
 * see none of them. Asked once at start, before the C library is initialised: so no dlopen, which would run the
 * library's constructors too early and without the environment. */
#include "alloc-wrap/alloc-wrap.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

/* The object whose definition of name the program's calls reach; NULL when there is none, or only a stub: an executable
 * that is not position-independent and takes the function's address has its own stub as that address, under an
 * undefined symbol, and calls go on to the definition. */
static const struct link_map *definer_of(const char *name)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    const struct link_map *owner = NULL;
    void *address = dlsym(RTLD_DEFAULT, name);
    if (!address || !dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT) ||
        (symbol && symbol->st_shndx == SHN_UNDEF) || !dladdr1(address, &info, (void **)&owner, RTLD_DL_LINKMAP))
        return NULL;
    return owner;
}

void alloc_wrap_owners(char owner[4][256])
{
    static const char *const names[4] = {"malloc", "free", "_Znwm", "_ZdlPv"};
    const struct link_map *ours = NULL;
    Dl_info info;
    memset(owner, 0, 4 * sizeof *owner);
    if (!dladdr1((void *)alloc_wrap_owners, &info, (void **)&ours, RTLD_DL_LINKMAP))
        return;
    for (int i = 0; i < 4; i++) {
        const struct link_map *definer = definer_of(names[i]);
        if (!definer || definer == ours)
            continue;
        strncpy(owner[i], definer->l_name[0] ? definer->l_name : "the executable", 255);
    }
}
