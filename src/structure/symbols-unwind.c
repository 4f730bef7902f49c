/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of stripped code: the ranges of the unwind tables, which every module has. */
#include "fnbounds/modtab-make.h"
#include "structure/symbols-internal.h"

static void index_ranges(struct symbols *symbols)
{
    struct modtab_elf elf;
    struct modtab_vec fdes = {0};
    symbols->unwind_indexed = true;
    if (modtab_elf_open(&elf, symbols->path, NULL) != 0)
        return;
    modtab_make_fdes(&elf, &fdes);
    symbols->ranges_unwind = fdes.items;
    symbols->n_ranges_unwind = fdes.n;
    modtab_elf_close(&elf);
}

bool symbols_unwind_start(struct symbols *symbols, uint64_t vaddr, uint64_t *start)
{
    if (!symbols->unwind_indexed)
        index_ranges(symbols);
    size_t low = 0, high = symbols->n_ranges_unwind;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (symbols->ranges_unwind[middle].start <= vaddr)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || vaddr >= symbols->ranges_unwind[low - 1].end)
        return false;
    *start = symbols->ranges_unwind[low - 1].start;
    return true;
}
