/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the interpreter of Python by the symbols that it exports, and knows the layouts of its versions. See
 * alloc-events.h. */
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#include "runtime/allocs/alloc-events.h"
#include "runtime/own/arch.h"
#include "runtime/own/process.h"
#include "runtime/record/arena-writer.h"
#include "runtime/record/python.h"

/* From the headers of each version, by offsetof. */
static const struct python_layout layouts[] = {
    {.version = 0x0309,
     .linkage = PYTHON_ONE_EACH,
     .lines = PYTHON_LNOTAB,
     .runtime_finalizing = 16,
     .runtime_interpreters = 32,
     .runtime_current = 568,
     .runtime_key = 584,
     .thread_top = 24,
     .thread_id = 176,
     .frame_code = 32,
     .frame_previous = 24,
     .frame_instruction = 104,
     .code_first_line = 40,
     .code_file = 104,
     .code_name = 112,
     .code_lines = 120,
     .text_ascii = 48,
     .text_other = 72},
    {.version = 0x030a,
     .linkage = PYTHON_ONE_EACH,
     .lines = PYTHON_LINETABLE,
     .runtime_finalizing = 16,
     .runtime_interpreters = 32,
     .runtime_current = 568,
     .runtime_key = 584,
     .thread_top = 24,
     .thread_id = 176,
     .frame_code = 32,
     .frame_previous = 24,
     .frame_instruction = 96,
     .code_first_line = 40,
     .code_file = 104,
     .code_name = 112,
     .code_lines = 120,
     .text_ascii = 48,
     .text_other = 72},
    {.version = 0x030b,
     .linkage = PYTHON_C_FRAMES,
     .lines = PYTHON_LOCATIONS,
     .runtime_finalizing = 24,
     .runtime_interpreters = 40,
     .runtime_current = 576,
     .runtime_key = 592,
     .thread_top = 56,
     .thread_id = 152,
     .thread_chunk = 296,
     .cframe_current = 8,
     .cframe_previous = 16,
     .frame_code = 32,
     .frame_previous = 48,
     .frame_instruction = 56,
     .frame_owner = 68,
     .code_first_line = 72,
     .code_file = 112,
     .code_name = 128,
     .code_lines = 136,
     .code_start = 184,
     .text_ascii = 48,
     .text_other = 72,
     .generator_state = -5},
    {.version = 0x030c,
     .linkage = PYTHON_TRAMPOLINES,
     .lines = PYTHON_LOCATIONS,
     .runtime_finalizing = 24,
     .runtime_interpreters = 40,
     .runtime_key = 1544,
     .thread_top = 56,
     .thread_id = 136,
     .thread_chunk = 232,
     .cframe_current = 0,
     .cframe_previous = 8,
     .frame_code = 0,
     .frame_previous = 8,
     .frame_instruction = 56,
     .frame_owner = 70,
     .code_first_line = 68,
     .code_file = 112,
     .code_name = 128,
     .code_lines = 136,
     .code_start = 192,
     .text_ascii = 40,
     .text_other = 56,
     .generator_state = -5},
    {.version = 0x030d,
     .linkage = PYTHON_TRAMPOLINES,
     .lines = PYTHON_LOCATIONS,
     .runtime_finalizing = 608,
     .runtime_interpreters = 632,
     .runtime_key = 2160,
     .thread_top = 72,
     .thread_id = 152,
     .thread_chunk = 232,
     .frame_code = 0,
     .frame_previous = 8,
     .frame_instruction = 56,
     .frame_owner = 70,
     .code_first_line = 68,
     .code_file = 112,
     .code_name = 128,
     .code_lines = 136,
     .code_start = 200,
     .text_ascii = 40,
     .text_other = 56,
     .generator_state = -5},
};

/* Major << 8 | minor; 0 when there is no interpreter. */
static unsigned find_version(void)
{
    const unsigned long *number = dlsym(RTLD_DEFAULT, "Py_Version"); /* exported from 3.11 on */
    const char *(*text)(void);
    if (number)
        return (unsigned)(*number >> 16);
    *(void **)&text = dlsym(RTLD_DEFAULT, "Py_GetVersion");
    const char *version = text ? text() : "";
    unsigned minor = 0;
    if (strncmp(version, "3.", 2) != 0)
        return 0;
    for (version += 2; *version >= '0' && *version <= '9'; version++)
        minor = 10 * minor + (unsigned)(*version - '0');
    return 0x0300u | (minor & 0xff);
}

static const struct python_layout *find_layout(void)
{
    unsigned version = find_version();
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].version == version)
            return &layouts[i];
    return NULL;
}

static void *find(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

/* Where the function that executes frames lies; false when its size is not known. */
static bool find_evaluation(struct python_api *api)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    void *function = find("_PyEval_EvalFrameDefault");
    if (!function || !dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol || !symbol->st_size)
        return false;
    api->evaluation = (uintptr_t)function;
    api->evaluation_end = api->evaluation + symbol->st_size;
    return true;
}

static void find_api(void)
{
    struct python_api api = {0};
    const struct python_layout *layout = find_layout();
    uintptr_t (*self)(void);
    if (!layout)
        return;
    api.layout = *layout;
    *(void **)&api.current =
        find(layout->version < 0x030d ? "_PyThreadState_UncheckedGet" : "PyThreadState_GetUnchecked");
    *(void **)&api.own = find("PyGILState_GetThisThreadState");
    *(void **)&api.value_of = find("pthread_getspecific");
    *(void **)&self = find("pthread_self");
    api.code_type = (uintptr_t)find("PyCode_Type");
    api.text_type = (uintptr_t)find("PyUnicode_Type");
    api.bytes_type = (uintptr_t)find("PyBytes_Type");
    api.runtime = (uintptr_t)find("_PyRuntime");
    if (!api.current || !api.own || !api.value_of || !self || !api.code_type || !api.text_type || !api.bytes_type ||
        !api.runtime || !find_evaluation(&api))
        return;
    api.self_offset = (intptr_t)(self() - arch_thread_pointer_sig());
    python_use_sig(&api);
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
