/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the dlopen stubs jump to: the real functions, found once; the load map's cached answers become stale. And
 * chroot, behind which files that are loaded have other names, or none. Ordinary code of the program's threads. */
#include "runtime/wrap-dl.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

#include "runtime/loadmap.h"
#include "runtime/process.h"
#include "runtime/wrap.h"

typedef int chroot_function(const char *);

void *wrap_dl_target(int index)
{
    static const char *const names[] = {"dlopen", "dlmopen", "dlclose"};
    static void *real[3];
    void *target = __atomic_load_n(&real[index], __ATOMIC_RELAXED);
    if (!target) {
        target = wrap_real(names[index]);
        __atomic_store_n(&real[index], target, __ATOMIC_RELAXED);
    }
    loadmap_changed_sig();
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
