/* SPDX-License-Identifier: BSD-3-Clause */
/* What depends on how the runtime came into the program, for the preloaded library: real functions lie behind it in
 * the loader's order, and the whole library is the profiler's. A static program takes link-static.c instead. */
#include <dlfcn.h>

#include "runtime/loadmap.h"
#include "runtime/process-internal.h"
#include "runtime/wrap.h"

void *wrap_real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
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
