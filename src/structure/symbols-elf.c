/* SPDX-License-Identifier: BSD-3-Clause */
/* The ELF symbols of a module by kind, sorted for lookup: .symtab, .dynsym or the compressed mini table, whichever
 * libdwfl finds (the debug file's first). */
#include <stdlib.h>
#include <string.h>

#include "structure/symbols-internal.h"

static bool is_in_code(Elf *elf, GElf_Word section)
{
    GElf_Shdr header;
    Elf_Scn *found = elf && section < SHN_LORESERVE ? elf_getscn(elf, section) : NULL;
    return found && gelf_getshdr(found, &header) && header.sh_flags & SHF_EXECINSTR;
}

/* elf, section: where it is defined. Assembly often leaves the type of its functions out, but gives them a size. */
static int symbol_kind(const GElf_Sym *symbol, Elf *elf, GElf_Word section)
{
    switch (GELF_ST_TYPE(symbol->st_info)) {
    case STT_FUNC:
    case STT_GNU_IFUNC:
        return ELF_SYMBOL_CODE;
    case STT_OBJECT:
    case STT_COMMON:
        return ELF_SYMBOL_DATA;
    case STT_TLS:
        return ELF_SYMBOL_TLS;
    case STT_NOTYPE:
        return symbol->st_size > 0 && is_in_code(elf, section) ? ELF_SYMBOL_CODE : -1;
    default:
        return -1;
    }
}

static int bind_rank(uint8_t bind)
{
    return bind == STB_GLOBAL || bind == STB_GNU_UNIQUE ? 0 : bind == STB_WEAK ? 1 : 2;
}

static int compare_symbols(const void *a, const void *b)
{
    const struct elf_symbol *x = a, *y = b;
    if (x->vaddr != y->vaddr)
        return x->vaddr < y->vaddr ? -1 : 1;
    if (bind_rank(x->bind) != bind_rank(y->bind))
        return bind_rank(x->bind) - bind_rank(y->bind);
    if (x->size_bytes != y->size_bytes)
        return x->size_bytes > y->size_bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void add_symbol(struct elf_symbols *list, const struct elf_symbol *symbol)
{
    if (!vec_reserve(&list->items, &list->capacity, list->n + 1, sizeof *list->items))
        return;
    list->items[list->n++] = *symbol;
    if (symbol->size_bytes > list->max_size_bytes)
        list->max_size_bytes = symbol->size_bytes;
}

void symbols_elf_load(struct symbols *symbols)
{
    int n = dwfl_module_getsymtab(symbols->module);
    for (int i = 1; i < n; i++) {
        GElf_Sym symbol;
        GElf_Addr vaddr = 0;
        GElf_Word section = 0;
        Elf *elf = NULL;
        const char *name = dwfl_module_getsym_info(symbols->module, i, &symbol, &vaddr, &section, &elf, NULL);
        int kind = name && *name ? symbol_kind(&symbol, elf, section) : -1;
        if (kind < 0 || section == SHN_UNDEF)
            continue;
        struct elf_symbol item = {.vaddr = kind == ELF_SYMBOL_TLS ? symbol.st_value : vaddr,
                                  .size_bytes = symbol.st_size,
                                  .name = name,
                                  .bind = GELF_ST_BIND(symbol.st_info)};
        if (item.size_bytes > 0 || kind == ELF_SYMBOL_CODE)
            add_symbol(&symbols->elf[kind], &item);
    }
    for (int kind = 0; kind < ELF_SYMBOL_KINDS; kind++)
        if (symbols->elf[kind].n)
            qsort(symbols->elf[kind].items, symbols->elf[kind].n, sizeof(struct elf_symbol), compare_symbols);
}

void symbols_elf_free(struct symbols *symbols)
{
    for (int kind = 0; kind < ELF_SYMBOL_KINDS; kind++)
        free(symbols->elf[kind].items);
}

/* Number of symbols with an address <= vaddr. */
static size_t upper_bound(const struct elf_symbols *list, uint64_t vaddr)
{
    size_t low = 0, high = list->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (list->items[middle].vaddr <= vaddr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A code symbol without a size (hand-written assembly) reaches to the next symbol. */
static bool covers(const struct elf_symbols *list, size_t i, uint64_t vaddr)
{
    const struct elf_symbol *symbol = &list->items[i];
    if (symbol->size_bytes > 0)
        return vaddr - symbol->vaddr < symbol->size_bytes;
    return i + 1 < list->n && vaddr < list->items[i + 1].vaddr;
}

const struct elf_symbol *symbols_elf_find(const struct symbols *symbols, enum elf_symbol_kind kind, uint64_t vaddr)
{
    const struct elf_symbols *list = &symbols->elf[kind];
    const struct elf_symbol *best = NULL;
    for (size_t i = upper_bound(list, vaddr); i-- > 0;) {
        const struct elf_symbol *symbol = &list->items[i];
        if (best ? symbol->vaddr != best->vaddr : vaddr - symbol->vaddr > list->max_size_bytes && list->max_size_bytes)
            break;
        if (covers(list, i, vaddr))
            best = symbol;
    }
    return best;
}
