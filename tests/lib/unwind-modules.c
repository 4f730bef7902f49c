/* SPDX-License-Identifier: BSD-3-Clause */
/* The modules of this process for tests of the unwinder. */
#include "unwind-modules.h"

#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>

#include "fnbounds/modtab-cache.h"
#include "runtime/own/arch.h"

#define MODULES_MAX 64

static struct {
    struct unwind_module modules[MODULES_MAX];
    unsigned n;
    const char *cache_dir;
    struct error *err;
} loaded;

static int add_module(struct dl_phdr_info *info, size_t size, void *status)
{
    (void)size;
    bool is_vdso = info->dlpi_addr == getauxval(AT_SYSINFO_EHDR);
    const char *path = is_vdso ? MODTAB_VDSO : *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
    struct unwind_module *module = &loaded.modules[loaded.n];
    const struct modtab_header *table = NULL;
    uint64_t id;
    if (loaded.n == MODULES_MAX)
        return 1;
    *(int *)status = modtab_make(path, loaded.cache_dir, &id, loaded.err);
    if (*(int *)status == 0)
        *(int *)status = modtab_map(loaded.cache_dir, id, &table, loaded.err);
    if (*(int *)status != 0)
        return 1;
    module->table = table;
    module->bias = info->dlpi_addr;
    module->start = module->bias + table->base_vaddr;
    module->end = module->bias + table->end_vaddr;
    loaded.n++;
    return 0;
}

int unwind_modules_load(const char *cache_dir, struct error *err)
{
    int status = 0;
    loaded.cache_dir = cache_dir;
    loaded.err = err;
    dl_iterate_phdr(add_module, &status);
    return status;
}

bool unwind_modules_replace(const char *cache_dir, const char *name, const char *path)
{
    for (unsigned i = 0; i < loaded.n; i++) {
        const struct modtab_header *table = loaded.modules[i].table;
        size_t n = strlen(table->path), n_name = strlen(name);
        uint64_t id;
        if (n < n_name || strcmp(table->path + n - n_name, name) != 0)
            continue;
        if (modtab_make(path, cache_dir, &id, NULL) != 0 || modtab_map(cache_dir, id, &table, NULL) != 0)
            return false;
        loaded.modules[i].table = table;
        return true;
    }
    return false;
}

const struct unwind_module *unwind_modules_find(uintptr_t pc)
{
    for (unsigned i = 0; i < loaded.n; i++)
        if (pc >= loaded.modules[i].start && pc < loaded.modules[i].end)
            return &loaded.modules[i];
    return NULL;
}

struct unwind_bounds unwind_stack_bounds(void)
{
    struct unwind_bounds bounds = {0};
    pthread_attr_t attr;
    void *low;
    size_t n_bytes;
    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return bounds;
    (void)pthread_attr_getstack(&attr, &low, &n_bytes);
    (void)pthread_attr_destroy(&attr);
    bounds.low = (uintptr_t)low;
    bounds.high = bounds.low + n_bytes;
    return bounds;
}

struct unwind_start unwind_start_of(const ucontext_t *context)
{
    struct unwind_start start = {.known = 0xffff, .is_interrupted = true};
#ifdef __x86_64__
    static const uint8_t order[16] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
                                      REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    for (int i = 0; i < 16; i++)
        start.gpr[i] = (uint64_t)context->uc_mcontext.gregs[order[i]];
    start.pc = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#else
    arch_start_of_context_sig(context, &start);
#endif
    return start;
}
