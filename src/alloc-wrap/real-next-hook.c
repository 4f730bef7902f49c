/* SPDX-License-Identifier: BSD-3-Clause */
/* How the preloaded library finds the real functions: after itself in the loader's order. real-static-hook.c takes its
 * place in a static program. May run in the first allocation of a process. */
#include "alloc-wrap/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "alloc-wrap/alloc-wrap.h"
#include "alloc-wrap/hook.h"
#include "base/bytes.h"

/* The library that the launcher loads into a running program is built with RTLD_DEFAULT: there the program's own
 * functions are behind ours in no order. */
#ifndef WRAP_SCOPE
#define WRAP_SCOPE RTLD_NEXT
#endif

void *alloc_real_find_hook(const char *name)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    void *found = dlsym(WRAP_SCOPE, name);
    if (WRAP_SCOPE == RTLD_DEFAULT && found && dladdr1(found, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol &&
        symbol->st_shndx == SHN_UNDEF)
        found = dlsym(RTLD_NEXT, name); /* a stub of the executable, which calls by the executable's slot */
    return found;
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
    uintptr_t in_libc = (uintptr_t)gnu_get_libc_release; /* never called, so no wrapper of it is of any consequence */
    if (in_libc < low || in_libc >= high) {
        table->allocator_start = low;
        table->allocator_end = high;
    }
    return 1;
}

void alloc_real_found_hook(bool all, struct alloc_real *table)
{
    if (!all)
        (void)dlerror(); /* the program must not see our failures when it asks for its own */
    (void)dl_iterate_phdr(find_allocator, table);
}

/* --- operators of the caller's own module --- */

/* Operator new and delete of the caller's own module: in a C program that opens C++ with RTLD_LOCAL, our wrappers are
 * in the global scope and get the calls, but no object after us in that scope has operators. The loader is asked once
 * per module and form. Runs inside the program's operator new. */

#define LOCAL_MODULES 64

/* A module that called an operator. A module may be unloaded and another one mapped in its place: an entry is valid
 * only while handle, base and name are the same. */
struct local_module {
    const struct link_map *map;
    uintptr_t base;
    uint64_t name_hash;
    operator_function *_Atomic operators[OPERATOR_FORMS];
};

static struct {
    struct local_module modules[LOCAL_MODULES];
    _Atomic unsigned n_modules;
    atomic_flag adding;
    operator_function *_Atomic last_found[OPERATOR_FORMS];
} local = {.adding = ATOMIC_FLAG_INIT};

#ifdef DLFO_STRUCT_HAS_EH_DBASE
#pragma weak _dl_find_object
#endif

/* Takes no lock if the C library supports that (glibc >= 2.35). */
static struct link_map *module_of(uintptr_t pc)
{
#ifdef DLFO_STRUCT_HAS_EH_DBASE
    struct dl_find_object object;
    if (_dl_find_object)
        return _dl_find_object((void *)pc, &object) == 0 ? object.dlfo_link_map : NULL;
#endif
    struct link_map *map = NULL;
    Dl_info info;
    return dladdr1((void *)pc, &info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
}

/* Looks the form up in the scope of caller, as the loader would have without us. If the operator is not in the caller
 * itself, its module stays loaded from then on. */
static operator_function *ask_loader(const struct link_map *caller, enum operator_form form)
{
    void *handle = dlopen(caller->l_name, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        return NULL;
    void *found = dlsym(handle, operator_name_hook(form));
    const struct link_map *owner = found ? module_of((uintptr_t)found) : NULL;
    if (!owner || owner == module_of((uintptr_t)ask_loader))
        found = NULL;
    else if (owner != caller)
        (void)dlopen(owner->l_name, RTLD_LAZY | RTLD_NOLOAD);
    (void)dlclose(handle);
    return (operator_function *)found;
}

static operator_function *ask_loader_guarded(const struct link_map *caller, enum operator_form form)
{
    int saved_errno = errno;
    alloc_wrap_guard_enter();
    operator_function *found = ask_loader(caller, form);
    if (!found)
        (void)dlerror(); /* the program must not see our failure when it asks for its own */
    alloc_wrap_guard_leave();
    errno = saved_errno;
    if (found)
        atomic_store(&local.last_found[form], found);
    return found;
}

static struct local_module *find_module(const struct link_map *map, uint64_t name_hash)
{
    unsigned n_modules = atomic_load_explicit(&local.n_modules, memory_order_acquire);
    for (unsigned i = 0; i < n_modules; i++) {
        struct local_module *module = &local.modules[i];
        if (module->map == map && module->base == map->l_addr && module->name_hash == name_hash)
            return module;
    }
    return NULL;
}

/* NULL when the table is full or another thread is adding a module: the caller then does without the cache. */
static struct local_module *add_module(const struct link_map *map, uint64_t name_hash)
{
    struct local_module *module = NULL;
    if (atomic_flag_test_and_set(&local.adding))
        return NULL;
    unsigned n_modules = atomic_load(&local.n_modules);
    if (n_modules < LOCAL_MODULES) {
        module = &local.modules[n_modules];
        module->map = map;
        module->base = map->l_addr;
        module->name_hash = name_hash;
        atomic_store_explicit(&local.n_modules, n_modules + 1, memory_order_release);
    }
    atomic_flag_clear(&local.adding);
    return module;
}

/* The last resort when no scope has the operator. A throwing form must not return NULL, and we cannot throw from here.
 */
static void *last_resort_new(uintptr_t n_bytes, uintptr_t second, uintptr_t third)
{
    (void)second;
    (void)third;
    void *p = alloc_real_hook()->malloc(n_bytes ? n_bytes : 1);
    if (!p)
        __builtin_trap();
    return p;
}

static void *last_resort_delete(uintptr_t p, uintptr_t second, uintptr_t third)
{
    (void)second;
    (void)third;
    alloc_real_hook()->free((void *)p);
    return NULL;
}

static operator_function *fallback(enum operator_form form)
{
    operator_function *found = atomic_load(&local.last_found[form]);
    if (found)
        return found;
    return form < OPERATOR_DELETE ? last_resort_new : last_resort_delete;
}

operator_function *alloc_local_operator_hook(enum operator_form form, uintptr_t pc)
{
    const struct link_map *caller = module_of(pc);
    if (!caller)
        return fallback(form);
    uint64_t name_hash = bytes_hash_text(BYTES_HASH_START, caller->l_name);
    struct local_module *module = find_module(caller, name_hash);
    if (!module)
        module = add_module(caller, name_hash);
    operator_function *found = module ? atomic_load(&module->operators[form]) : NULL;
    if (!found) {
        found = ask_loader_guarded(caller, form);
        if (module && found)
            atomic_store(&module->operators[form], found);
    }
    return found ? found : fallback(form);
}

/* --- who owns the allocation functions --- */

/* Who owns the allocation functions: if an allocator is in the executable, or preloaded before us, it gets the calls
 * and we see none of them. Asked once at the start, before the C library is initialised; so dlopen cannot be used,
 * because it would run the library's constructors too early and without the environment. */

/* The object whose definition of name the program's calls reach; NULL when there is none, or only a stub. (An
 * executable that is not position-independent and takes the function's address uses a stub of its own as that address,
 * under an undefined symbol; calls still reach the definition.) */
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
