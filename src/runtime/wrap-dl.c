/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the dlopen stubs jump to: the real functions, found once; the load map's cached answers become stale. */
#include "runtime/wrap-dl.h"

#include <dlfcn.h>
#include <stddef.h>

#include "runtime/loadmap.h"
#include "runtime/wrap.h"

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
