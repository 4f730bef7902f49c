/* SPDX-License-Identifier: BSD-3-Clause */
/* The load map at the start: registers the modules that are already loaded, with their static TLS offsets, which only
 * the loader's list has. Ordinary code, once per process. */
#include <gnu/libc-version.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "runtime/own/arch.h"
#include "runtime/own/own-call.h"
#include "runtime/record/arena-writer.h"
#include "runtime/record/loadmap.h"

/* What nearly every path leads through: the program, its loader, the C library and the profiler. The first run of a new
 * program finds no tables yet; its first allocations need them, because their paths cannot be unwound later. */
static bool is_of_start(const struct loadmap_module *module)
{
    const uintptr_t within[] = {getauxval(AT_BASE), (uintptr_t)gnu_get_libc_version};
    bool is_wanted = module->has_runtime || module->is_vdso || strcmp(module->name, arena_header_sig()->exe) == 0;
    for (size_t i = 0; i < sizeof within / sizeof *within; i++)
        is_wanted |= within[i] >= module->code.start && within[i] < module->code.end;
    return is_wanted;
}

static int add_object(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    uintptr_t vdso = *(uintptr_t *)context;
    uintptr_t low = UINTPTR_MAX, high = 0, header = 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD)
            continue;
        uintptr_t start = info->dlpi_addr + (segment->p_vaddr & ~(getauxval(AT_PAGESZ) - 1));
        uintptr_t end = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;
        low = start < low ? start : low;
        high = end > high ? end : high;
        if (!segment->p_offset)
            header = start;
    }
    if (!high || header != low)
        return 0;
    int64_t tls_offset = 0;
    if (info->dlpi_tls_data)
        tls_offset = (int64_t)((uintptr_t)info->dlpi_tls_data - arch_thread_pointer_sig());
    if (!arch_is_static_tls_sig(tls_offset))
        tls_offset = 0; /* dynamic TLS: its blocks come from malloc */
    const char *name = info->dlpi_name[0] ? info->dlpi_name : arena_header_sig()->exe;
    const struct loadmap_module *module =
        loadmap_add_sig(low, high, info->dlpi_addr, low == vdso ? "[vdso]" : name, tls_offset);
    if (module && is_of_start(module))
        loadmap_set_needed_sig(module);
    return 0;
}

void loadmap_complete(void)
{
    uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
    dl_iterate_phdr(add_object, &vdso);
    loadmap_await_tables_sig(false);
}

void loadmap_init(void)
{
    uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
    struct loadmap_own own = loadmap_own_code();
    loadmap_set_own_sig(&own, vdso);
    dl_iterate_phdr(add_object, &vdso);
    loadmap_set_started_sig();
    loadmap_await_tables_sig(true);
}

void loadmap_add_kernel(void)
{
    if (loadmap_kernel_sig())
        return;
    while (!arena_shared_begin_sig())
        own_call_sig(SYS_sched_yield);
    loadmap_set_kernel_sig(loadmap_pseudo_sig("[kernel]", (uint64_t)1 << 63));
    arena_shared_end_sig();
}
