/* SPDX-License-Identifier: BSD-3-Clause */
/* Who owns the allocation functions: an allocator inside the executable, or preloaded before us, takes the calls and we
 * see none of them. Ordinary code, asked once at start. */
#include "alloc-wrap/alloc-wrap.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

/* Address of name's definition in the module itself, NULL when the module has none. */
static void *defined_in(const struct link_map *module, const char *name)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    const struct link_map *owner = NULL;
    void *handle = dlopen(module->l_name, RTLD_LAZY | RTLD_NOLOAD);
    void *address = handle ? dlsym(handle, name) : NULL;
    if (handle)
        (void)dlclose(handle);
    if (!address || !dladdr1(address, &info, (void **)&owner, RTLD_DL_LINKMAP) || owner != module)
        return NULL;
    /* An executable that is not position-independent and takes the function's address has its own stub as that
     * address, under an undefined symbol: calls go on to the definition. */
    if (dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol && symbol->st_shndx == SHN_UNDEF)
        return NULL;
    return address;
}

/* First module in the order of the global scope that defines name. */
static const struct link_map *first_definer(const struct link_map *executable, const char *name)
{
    for (const struct link_map *module = executable; module; module = module->l_next)
        if (defined_in(module, name))
            return module;
    return NULL;
}

void alloc_wrap_owners(char owner[4][256])
{
    static const char *const names[4] = {"malloc", "free", "_Znwm", "_ZdlPv"};
    const struct link_map *ours = NULL;
    Dl_info info;
    memset(owner, 0, 4 * sizeof *owner);
    if (!dladdr1((void *)alloc_wrap_owners, &info, (void **)&ours, RTLD_DL_LINKMAP))
        return;
    alloc_wrap_guard_enter();
    void *program = dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD);
    for (int i = 0; i < 4 && program; i++) {
        const struct link_map *definer = first_definer(program, names[i]);
        if (!definer || definer == ours)
            continue;
        if (definer->l_name[0])
            strncpy(owner[i], definer->l_name, 255);
        else
            strncpy(owner[i], "the executable", 255);
    }
    if (program)
        (void)dlclose(program);
    (void)dlerror(); /* the program must not find our failures when it asks for its own */
    alloc_wrap_guard_leave();
}
