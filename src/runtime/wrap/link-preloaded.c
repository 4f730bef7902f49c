/* SPDX-License-Identifier: BSD-3-Clause */
/* The part that depends on how the runtime got into the program, for the preloaded library: the real functions come
 * after it in the loader's order, and all code of the library is the profiler's. Also what the stubs of dlopen
 * (wrap-dl-CPU.S) call before they jump on: wrap_dl_target. link-static.c takes its place in a static program. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "runtime/objmap/small.h"
#include "runtime/own/process.h"
#include "runtime/process/start.h"
#include "runtime/record/loadmap.h"
#include "runtime/record/thread.h"
#include "runtime/wrap/wrap.h"

void *wrap_real(const char *name)
{
    int saved_errno = errno;
    void *real = dlsym(RTLD_NEXT, name);
    if (!real)
        (void)dlerror(); /* the program must not see our failure when it asks for its own */
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

/* The handler that runs all destructors is registered after our constructor, so it is called before this one. */
void process_at_exit_last(void (*function)(void))
{
    (void)atexit(function);
}

/* --- dlopen, dlclose and chroot --- */

/* The functions that the dlopen stubs jump to: they find the real function once and make the load map's cached answers
 * stale. And chroot, after which loaded files have other names, or none. Ordinary code of the program's threads. */

#define CLOSES 2 /* index of dlclose */

typedef int chroot_function(const char *);

/* Only when the next library is loaded is it certain what dlclose has unloaded; the new library's code may lie at the
 * same addresses. */
static void find_unloaded(void)
{
    struct thread_state *self = thread_self_sig();
    if (self && process_is_ours_sig() && !process_is_vfork_child_sig())
        small_modules_gone_hook(self);
}

void *wrap_dl_target(int index)
{
    static const char *const names[] = {"dlopen", "dlmopen", "dlclose"};
    static void *real[3];
    static _Atomic bool has_closed;
    void *target = __atomic_load_n(&real[index], __ATOMIC_RELAXED);
    if (!target) {
        target = wrap_real(names[index]);
        __atomic_store_n(&real[index], target, __ATOMIC_RELAXED);
    }
    loadmap_changed_sig();
    if (index == CLOSES)
        atomic_store(&has_closed, true);
    else if (atomic_load_explicit(&has_closed, memory_order_relaxed) && atomic_exchange(&has_closed, false))
        find_unloaded();
    return target;
}

WRAP_EXPORT int chroot(const char *path);
WRAP_EXPORT int chroot(const char *path)
{
    chroot_function *real = (chroot_function *)wrap_real("chroot");
    int saved_errno = errno;
    if (!real) {
        errno = ENOSYS;
        return -1;
    }
    if (process_is_ours_sig())
        loadmap_complete();
    errno = saved_errno;
    return real(path);
}
