/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the Python interpreter by the symbols that it exports. See alloc-events.h. */
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#include "runtime/allocs/alloc-events.h"
#include "runtime/own/process.h"
#include "runtime/record/arena-writer.h"

#define VERSION_3_11 0x030b

static void find_api(void)
{
    struct python_api api = {0};
    const unsigned long *version = dlsym(RTLD_DEFAULT, "Py_Version"); /* exported from 3.11 on */
    if (!version || *version >> 16 != VERSION_3_11)
        return;
    *(void **)&api.current = dlsym(RTLD_DEFAULT, "_PyThreadState_UncheckedGet");
    *(void **)&api.own = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    api.code_type = (uintptr_t)dlsym(RTLD_DEFAULT, "PyCode_Type");
    api.text_type = (uintptr_t)dlsym(RTLD_DEFAULT, "PyUnicode_Type");
    api.bytes_type = (uintptr_t)dlsym(RTLD_DEFAULT, "PyBytes_Type");
    if (api.current && api.own && api.code_type && api.text_type && api.bytes_type)
        python_use(&api);
}

/* Whether the object is an interpreter, by its own name or that of its library. Symbols are only looked up if there is
 * one, because a failed look-up allocates. */
static int is_python(struct dl_phdr_info *info, size_t n_bytes, void *context)
{
    const char *path = info->dlpi_name && info->dlpi_name[0] ? info->dlpi_name : arena_header_sig()->exe;
    const char *slash = strrchr(path, '/');
    (void)n_bytes;
    (void)context;
    return strstr(slash ? slash : path, "python") != NULL;
}

void python_find(void)
{
    const char *wanted = process_environment("HPCRUN_PYTHON");
    if (wanted && strcmp(wanted, "0") == 0)
        return;
    if (!dl_iterate_phdr(is_python, NULL))
        return;
    find_api();
    (void)dlerror(); /* the program must not see our failures; dlsym() has left no failures of others */
}
