/* SPDX-License-Identifier: BSD-3-Clause */
/* Symbols of a stripped file that are kept apart: in the debug file of its build id, or compressed in the section
 * .gnu_debugdata (functions only, as some distributions ship all their libraries). libdwfl finds and unpacks both.
 * Ordinary code; nothing is asked of a network. */
#include "fnbounds/modtab-make.h"

#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <unistd.h>

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_build_id_find_debuginfo, /* the standard one would also ask servers */
    .section_address = dwfl_offline_section_address,
};

/* The first file other than the module's own that a symbol of the module comes from. */
static Elf *find_other(Dwfl_Module *module)
{
    GElf_Addr bias;
    Elf *own = dwfl_module_getelf(module, &bias);
    int n = own ? dwfl_module_getsymtab(module) : 0;
    for (int i = 1; i < n; i++) {
        GElf_Sym sym;
        GElf_Addr address;
        Elf *elf = NULL;
        if (dwfl_module_getsym_info(module, i, &sym, &address, NULL, &elf, NULL) && elf && elf != own)
            return elf;
    }
    return NULL;
}

bool modtab_debug_exists(const struct modtab_elf *m)
{
    char path[128];
    int n = snprintf(path, sizeof path, "/usr/lib/debug/.build-id/");
    for (uint32_t i = 0; i < m->header.build_id_bytes; i++)
        n += snprintf(path + n, sizeof path - (size_t)n, "%02x%s", m->header.build_id[i], i == 0 ? "/" : "");
    (void)snprintf(path + n, sizeof path - (size_t)n, ".debug");
    return m->header.build_id_bytes > 0 && access(path, R_OK) == 0;
}

void modtab_debug_open(struct modtab_elf *m)
{
    struct modtab_symtab symtab;
    if (m->fd < 0 || m->dwfl || modtab_symtab_open(&symtab, m, SHT_SYMTAB))
        return;
    m->dwfl = dwfl_begin(&callbacks);
    Dwfl_Module *module = m->dwfl ? dwfl_report_elf(m->dwfl, m->name, m->path, -1, 0, true) : NULL;
    if (m->dwfl)
        (void)dwfl_report_end(m->dwfl, NULL, NULL);
    if (module)
        m->debug_elf = find_other(module);
}

void modtab_debug_close(struct modtab_elf *m)
{
    if (m->dwfl)
        dwfl_end(m->dwfl);
    m->dwfl = NULL;
    m->debug_elf = NULL;
}
