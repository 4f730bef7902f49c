/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of a module: symbols, frame description entries, PLT and start-up sections, and what code is left
 * over in a stripped file. One sorted list without overlaps. Ordinary code, untrusted input. */
#include "fnbounds/modtab-make.h"

#include <stdlib.h>
#include <string.h>

#define GAP_BYTES_MIN 16 /* smaller ones are alignment */

static void add_range(const struct modtab_elf *m, struct modtab_vec *ranges, struct modtab_range range)
{
    const struct modtab_segment *text = modtab_elf_text(m, range.start);
    if (!text)
        return;
    if (range.end < range.start || range.end > text->end)
        range.end = text->end;
    modtab_vec_push(ranges, &range, sizeof range);
}

static void add_symbols(const struct modtab_elf *m, uint32_t table, struct modtab_vec *ranges)
{
    struct modtab_symtab t;
    GElf_Sym sym;
    const char *name;
    if (!modtab_symtab_open(&t, m, table))
        return;
    for (size_t i = 1; i < t.n; i++) {
        if (!modtab_symtab_get(&t, i, &sym, &name) || !*name)
            continue;
        int type = GELF_ST_TYPE(sym.st_info);
        bool is_global = GELF_ST_BIND(sym.st_info) != STB_LOCAL;
        /* assembly: local ones with a size are no labels inside a function; linker scripts name places in data, too,
         * which may lie in one segment with the code */
        bool is_assembly =
            type == STT_NOTYPE && (is_global || sym.st_size > 0) && modtab_elf_code(m, sym.st_value) != NULL;
        bool is_func = type == STT_FUNC || type == STT_GNU_IFUNC || is_assembly;
        if (is_func)
            add_range(m, ranges, (struct modtab_range){sym.st_value, sym.st_value + sym.st_size, name, is_global});
    }
}

static bool is_code_section(const GElf_Shdr *shdr)
{
    return shdr->sh_flags & SHF_EXECINSTR && shdr->sh_flags & SHF_ALLOC && shdr->sh_type != SHT_NOBITS;
}

/* The sections of stubs that no symbol names as a whole. */
static void add_sections(const struct modtab_elf *m, struct modtab_vec *ranges)
{
    Elf_Scn *scn = NULL;
    GElf_Shdr shdr;
    while ((scn = elf_nextscn(m->elf, scn))) {
        if (!gelf_getshdr(scn, &shdr) || !is_code_section(&shdr))
            continue;
        const char *name = modtab_elf_section_name(m, &shdr);
        if (strncmp(name, ".plt", 4) == 0 || strcmp(name, ".iplt") == 0 || strcmp(name, ".init") == 0 ||
            strcmp(name, ".fini") == 0)
            add_range(m, ranges, (struct modtab_range){shdr.sh_addr, shdr.sh_addr + shdr.sh_size, NULL, false});
    }
}

/* By start; of equal ones the best name first: any, global, alphabetical. */
static int compare_ranges(const void *a, const void *b)
{
    const struct modtab_range *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (!x->name != !y->name)
        return x->name ? -1 : 1;
    if (x->is_global != y->is_global)
        return x->is_global ? -1 : 1;
    if (x->name && strcmp(x->name, y->name) != 0)
        return strcmp(x->name, y->name);
    return x->end < y->end ? 1 : x->end > y->end ? -1 : 0;
}

/* End of the code section (or segment) that holds vaddr. */
static uint64_t section_end(const struct modtab_elf *m, uint64_t vaddr)
{
    const struct modtab_segment *code = modtab_elf_code(m, vaddr);
    if (!code)
        code = modtab_elf_text(m, vaddr);
    return code ? code->end : vaddr;
}

/* Cuts the sorted ranges so that none overlap: an entry inside another one ends it and takes the rest. */
static void flatten(const struct modtab_elf *m, const struct modtab_vec *ranges, struct modtab_vec *funcs)
{
    const struct modtab_range *r = ranges->items;
    uint64_t reach = 0; /* end of what sized ranges have covered so far */
    for (size_t i = 0; i < ranges->n; i++) {
        struct modtab_range *last = funcs->n ? (struct modtab_range *)funcs->items + funcs->n - 1 : NULL;
        struct modtab_range next = r[i];
        bool is_sized = next.end > next.start;
        if (!is_sized && next.start < reach)
            continue;
        if (is_sized && next.end > reach)
            reach = next.end;
        if (is_sized && next.end < reach)
            next.end = reach;
        if (last && last->start == next.start) {
            last->end = is_sized ? reach : last->end;
            continue;
        }
        if (last && last->end > next.start)
            last->end = next.start;
        if (!is_sized)
            next.end = section_end(m, next.start);
        modtab_vec_push(funcs, &next, sizeof next);
    }
}

static bool looks_like_padding(const uint8_t *b)
{
    return b[0] == 0x90 || b[0] == 0xcc || b[0] == 0 || (b[0] == 0x0f && b[1] == 0x1f) ||
           (b[0] == 0x66 && (b[1] == 0x66 || b[1] == 0x2e || b[1] == 0x0f || b[1] == 0x90));
}

/* Adds [start, end) as a function when it starts, at a 16-byte boundary, with something else than padding. */
static void add_gap(const struct modtab_elf *m, uint64_t start, uint64_t end, struct modtab_vec *funcs)
{
    uint8_t bytes[2];
    start = (start + 15) & ~(uint64_t)15;
    while (start + GAP_BYTES_MIN <= end) {
        if (modtab_elf_read(m, start, bytes, sizeof bytes) != sizeof bytes)
            return;
        if (!looks_like_padding(bytes)) {
            struct modtab_range range = {.start = start, .end = end};
            modtab_vec_push(funcs, &range, sizeof range);
            return;
        }
        start += 16;
    }
}

static void discover_section(const struct modtab_elf *m, const struct modtab_segment *code, struct modtab_vec *funcs,
                             size_t n)
{
    uint64_t at = code->start;
    for (size_t i = 0; i < n; i++) {
        struct modtab_range f = ((struct modtab_range *)funcs->items)[i];
        if (f.end <= at || f.start >= code->end)
            continue;
        if (f.start > at)
            add_gap(m, at, f.start, funcs);
        at = f.end;
    }
    if (at < code->end)
        add_gap(m, at, code->end, funcs);
}

static void sort(struct modtab_vec *ranges)
{
    if (ranges->n)
        qsort(ranges->items, ranges->n, sizeof(struct modtab_range), compare_ranges);
}

/* Adds the uncovered code of all sections. Sections of a damaged file may overlap, hence flattened again. */
static void discover_code(const struct modtab_elf *m, struct modtab_vec *funcs)
{
    size_t n = funcs->n;
    struct modtab_vec all = *funcs;
    for (size_t i = 0; i < m->n_code; i++)
        discover_section(m, &m->code[i], &all, n);
    *funcs = (struct modtab_vec){.failed = all.failed};
    sort(&all);
    flatten(m, &all, funcs);
    free(all.items);
}

void modtab_make_funcs(const struct modtab_elf *m, const struct modtab_vec *fdes, bool discover,
                       struct modtab_vec *funcs)
{
    struct modtab_vec ranges = {0};
    for (size_t i = 0; i < fdes->n; i++)
        add_range(m, &ranges, ((const struct modtab_range *)fdes->items)[i]);
    add_symbols(m, SHT_SYMTAB, &ranges);
    add_symbols(m, SHT_DYNSYM, &ranges);
    add_sections(m, &ranges);
    sort(&ranges);
    flatten(m, &ranges, funcs);
    funcs->failed |= ranges.failed;
    free(ranges.items);
    if (discover)
        discover_code(m, funcs);
}
