/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the dlopen stubs jump to: the real functions, found once; the load map's cached answers become stale. And
 * chroot, behind which files that are loaded have other names, or none. Ordinary code of the program's threads. */
#include "runtime/wrap-dl.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "runtime/loadmap.h"
#include "runtime/process.h"
#include "runtime/small.h"
#include "runtime/thread.h"
#include "runtime/wrap.h"

#define CLOSES 2 /* index of dlclose */

typedef int chroot_function(const char *);

/* What dlclose unloads is gone for certain only when the next library is loaded, whose code may lie where the other's
 * was. */
static void look_for_gone(void)
{
    struct thread_state *self = thread_self_sig();
    if (self && process_is_ours_sig() && !process_is_lent_sig())
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
        look_for_gone();
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
