/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of a module: symbols, frame description entries, PLT and start-up sections, and the rest of the code in
 * a stripped file, as one sorted list without overlaps; its data symbols; and the table of both. Ordinary code,
 * untrusted input. */
#include "fnbounds/modtab-make.h"

#include <stdlib.h>
#include <string.h>

#include "base/invariant.h"

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

/* Adds [start, end) as a function when it starts, at a 16-byte boundary, with something other than padding. */
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
        add_range(m, &ranges, ((const struct modtab_fde *)fdes->items)[i].range);
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

/* --- data symbols --- */

/* The data symbols of a module: objects and COMMON by ELF symbol, the uncovered rest of the data sections as named
 * regions, thread-local symbols apart. Of several symbols for the same bytes the winner is: global, then longest, then
 * name. Ordinary code, untrusted input. */

#define REGION_BYTES_MIN 8 /* smaller holes are alignment */

/* A symbol, or what others have left of it. */
struct piece {
    uint64_t start, end;
    uint64_t full_bytes;
    const char *name;
    bool is_global;
};

/* Whether a names the shared bytes rather than b. */
static bool wins(const struct piece *a, const struct piece *b)
{
    if (a->is_global != b->is_global)
        return a->is_global;
    if (a->full_bytes != b->full_bytes)
        return a->full_bytes > b->full_bytes;
    return strcmp(a->name, b->name) < 0;
}

static bool comes_before(const struct piece *a, const struct piece *b)
{
    return a->start != b->start ? a->start < b->start : wins(a, b);
}

/* A binary heap of struct piece with the first one on top. */
static void heap_push(struct modtab_vec *heap, struct piece piece)
{
    modtab_vec_push(heap, &piece, sizeof piece);
    struct piece *p = heap->items;
    for (size_t i = heap->n - 1; !heap->failed && i > 0 && comes_before(&p[i], &p[(i - 1) / 2]); i = (i - 1) / 2) {
        struct piece other = p[i];
        p[i] = p[(i - 1) / 2];
        p[(i - 1) / 2] = other;
    }
}

static struct piece heap_pop(struct modtab_vec *heap)
{
    struct piece *p = heap->items, top = p[0];
    p[0] = p[--heap->n];
    for (size_t i = 0, child; (child = 2 * i + 1) < heap->n; i = child) {
        if (child + 1 < heap->n && comes_before(&p[child + 1], &p[child]))
            child++;
        if (!comes_before(&p[child], &p[i]))
            break;
        struct piece other = p[i];
        p[i] = p[child];
        p[child] = other;
    }
    return top;
}

/* Puts next after the pieces done so far; what loses bytes goes back to the heap with the rest of its bytes. */
static void place(struct modtab_vec *done, struct modtab_vec *heap, struct piece next)
{
    struct piece *last = done->n ? (struct piece *)done->items + done->n - 1 : NULL;
    if (last && next.start < last->end) {
        struct piece rest = *last;
        if (!wins(&next, last)) {
            next.start = last->end;
            if (next.start < next.end)
                heap_push(heap, next);
            return;
        }
        rest.start = next.end;
        if (rest.start < rest.end)
            heap_push(heap, rest);
        last->end = next.start;
        if (last->end == last->start)
            done->n--;
    }
    modtab_vec_push(done, &next, sizeof next);
}

/* Takes the heap apart into sorted pieces without overlaps. */
static void flatten_symbols(struct modtab_vec *heap, struct modtab_vec *done)
{
    size_t n_left = 16 * heap->n + 16; /* symbols of hostile tables may cut each other without end */
    while (heap->n && n_left--)
        place(done, heap, heap_pop(heap));
    done->failed |= heap->failed;
}

/* Appends text [n] to the strings and returns its offset. */
static uint32_t add_string(struct buf *strings, const char *text, size_t n)
{
    size_t at = strings->len_bytes;
    buf_append(strings, text, n);
    buf_append(strings, "", 1);
    if (strings->len_bytes > UINT32_MAX)
        strings->failed = true;
    return (uint32_t)at;
}

static void add_sym(struct modtab_vec *syms, uint64_t start, uint64_t end, uint32_t name, enum modtab_sym_kind kind)
{
    struct modtab_sym sym = {start, end - start, name, kind};
    modtab_vec_push(syms, &sym, sizeof sym);
}

static void add_pieces(const struct modtab_vec *done, enum modtab_sym_kind kind, struct modtab_vec *syms,
                       struct buf *strings)
{
    const struct piece *p = done->items;
    for (size_t i = 0; i < done->n; i++) {
        size_t n = strlen(p[i].name), plain = strcspn(p[i].name, "@");
        add_sym(syms, p[i].start, p[i].end, add_string(strings, p[i].name, plain ? plain : n), kind);
    }
}

/* Collects the symbols of one table by kind: data into *data, thread-local ones into *tls. */
static void collect(const struct modtab_elf *m, const struct modtab_symtab *t, struct modtab_vec *data,
                    struct modtab_vec *tls)
{
    const struct modtab_header *h = &m->header;
    GElf_Sym sym;
    const char *name;
    for (size_t i = 1; i < t->n; i++) {
        if (!modtab_symtab_get(t, i, &sym, &name) || !*name || sym.st_size == 0)
            continue;
        int type = GELF_ST_TYPE(sym.st_info);
        struct piece piece = {sym.st_value, sym.st_value + sym.st_size, sym.st_size, name,
                              GELF_ST_BIND(sym.st_info) != STB_LOCAL};
        if (piece.end < piece.start)
            continue;
        if (type == STT_TLS && piece.end <= h->tls_bytes)
            heap_push(tls, piece);
        if ((type == STT_OBJECT || type == STT_COMMON) && piece.start >= h->base_vaddr && piece.end <= h->end_vaddr)
            heap_push(data, piece);
    }
}

/* A data section, or a data segment of a file without section headers. */
struct data_region {
    uint64_t start, end;
    const char *section;
};

static int compare_regions(const void *a, const void *b)
{
    const struct data_region *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static void collect_regions(const struct modtab_elf *m, struct modtab_vec *regions)
{
    Elf_Scn *scn = NULL;
    GElf_Shdr shdr;
    while ((scn = elf_nextscn(m->elf, scn))) {
        struct data_region region;
        if (!gelf_getshdr(scn, &shdr) || !(shdr.sh_flags & SHF_ALLOC) || shdr.sh_flags & (SHF_EXECINSTR | SHF_TLS))
            continue;
        region = (struct data_region){shdr.sh_addr, shdr.sh_addr + shdr.sh_size, modtab_elf_section_name(m, &shdr)};
        if (region.start >= m->header.base_vaddr && region.end > region.start && region.end <= m->header.end_vaddr)
            modtab_vec_push(regions, &region, sizeof region);
    }
    for (size_t i = 0; i < m->n_segments && regions->n == 0; i++)
        if (!m->segments[i].is_text) {
            struct data_region region = {m->segments[i].start, m->segments[i].end, "data"};
            modtab_vec_push(regions, &region, sizeof region);
        }
    if (regions->n)
        qsort(regions->items, regions->n, sizeof(struct data_region), compare_regions);
}

/* One section's holes between the symbols. *next: first symbol that may end after its start. */
static void fill_region(const struct modtab_elf *m, struct data_region region, const struct modtab_vec *done,
                        size_t *next, struct modtab_vec *syms, struct buf *strings)
{
    const struct piece *p = done->items;
    uint64_t at = region.start;
    int64_t name = -1;
    while (*next < done->n && p[*next].end <= at)
        ++*next;
    for (size_t i = *next; at < region.end; i++) {
        uint64_t stop = i < done->n && p[i].start < region.end ? p[i].start : region.end;
        if (stop > at && stop - at >= REGION_BYTES_MIN) {
            if (name < 0) {
                name = (int64_t)strings->len_bytes;
                buf_printf(strings, "%s %s", m->name, region.section);
                buf_append(strings, "", 1);
            }
            add_sym(syms, at, stop, (uint32_t)name, MODTAB_SYM_REGION);
        }
        if (stop == region.end)
            return;
        at = p[i].end > at ? p[i].end : at;
    }
}

static int compare_syms(const void *a, const void *b)
{
    const struct modtab_sym *x = a, *y = b;
    return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static void fill_regions(const struct modtab_elf *m, const struct modtab_vec *done, struct modtab_vec *syms,
                         struct buf *strings)
{
    struct modtab_vec regions = {0};
    size_t next = 0;
    uint64_t reached = 0;
    collect_regions(m, &regions);
    for (size_t i = 0; i < regions.n; i++) {
        struct data_region region = ((struct data_region *)regions.items)[i];
        if (region.start < reached)
            region.start = reached;
        if (region.start >= region.end)
            continue;
        fill_region(m, region, done, &next, syms, strings);
        reached = region.end;
    }
    syms->failed |= regions.failed;
    free(regions.items);
    if (syms->n)
        qsort(syms->items, syms->n, sizeof(struct modtab_sym), compare_syms);
}

void modtab_make_syms(const struct modtab_elf *m, struct modtab_vec *syms, struct modtab_vec *tls_syms,
                      struct buf *strings, uint32_t *has_symtab)
{
    struct modtab_vec data = {0}, tls = {0}, data_done = {0}, tls_done = {0};
    struct modtab_symtab t;
    *has_symtab = modtab_symtab_open(&t, m, SHT_SYMTAB);
    bool has_data = *has_symtab && (t.elf == m->elf || modtab_symtab_has_data(&t));
    if (has_data || modtab_symtab_open(&t, m, SHT_DYNSYM))
        collect(m, &t, &data, &tls);
    flatten_symbols(&data, &data_done);
    flatten_symbols(&tls, &tls_done);
    add_pieces(&data_done, MODTAB_SYM_OBJECT, syms, strings);
    add_pieces(&tls_done, MODTAB_SYM_TLS, tls_syms, strings);
    fill_regions(m, &data_done, syms, strings);
    syms->failed |= data_done.failed;
    tls_syms->failed |= tls_done.failed;
    free(data.items);
    free(tls.items);
    free(data_done.items);
    free(tls_done.items);
}

/* --- the table --- */

/* Puts the parts of a module table together in the layout of fnbounds/modtab.h. */

/* What goes into the file. */
struct draft {
    struct modtab_vec fdes, ranges, funcs, rows, syms, tls_syms;
    struct buf strings;
    struct modtab_header header;
};

static void draft_fini(struct draft *d)
{
    free(d->fdes.items);
    free(d->ranges.items);
    free(d->funcs.items);
    free(d->rows.items);
    free(d->syms.items);
    free(d->tls_syms.items);
    buf_fini(&d->strings);
}

static bool draft_failed(const struct draft *d)
{
    return d->fdes.failed || d->ranges.failed || d->funcs.failed || d->rows.failed || d->syms.failed ||
           d->tls_syms.failed || d->strings.failed;
}

/* Functions in 32 bits relative to the base; those beyond are left out. */
static void pack_funcs(struct draft *d)
{
    const struct modtab_range *r = d->ranges.items;
    uint64_t base = d->header.base_vaddr;
    for (size_t i = 0; i < d->ranges.n; i++) {
        struct modtab_func func = {(uint32_t)(r[i].start - base), (uint32_t)(r[i].end - base)};
        if (r[i].end - base <= UINT32_MAX)
            modtab_vec_push(&d->funcs, &func, sizeof func);
    }
}

/* Reserves n_bytes at the next multiple of 16 of the file. */
static uint64_t reserve(struct modtab_header *h, uint64_t n_bytes)
{
    uint64_t offset = (h->file_bytes + 15) & ~(uint64_t)15;
    h->file_bytes = offset + n_bytes;
    return offset;
}

static void lay_out(struct draft *d)
{
    struct modtab_header *h = &d->header;
    memcpy(h->magic, MODTAB_MAGIC, sizeof h->magic);
    h->version = MODTAB_VERSION;
    h->header_bytes = sizeof *h;
    h->file_bytes = sizeof *h;
    h->n_funcs = d->funcs.n;
    h->n_rows = d->rows.n;
    h->n_syms = d->syms.n;
    h->n_tls_syms = d->tls_syms.n;
    h->strings_bytes = d->strings.len_bytes;
    h->rows_offset = reserve(h, h->n_rows * sizeof(struct modtab_row));
    h->funcs_offset = reserve(h, h->n_funcs * sizeof(struct modtab_func));
    h->syms_offset = reserve(h, h->n_syms * sizeof(struct modtab_sym));
    h->tls_syms_offset = reserve(h, h->n_tls_syms * sizeof(struct modtab_sym));
    h->strings_offset = reserve(h, h->strings_bytes);
}

static void copy(char *to, const void *from, uint64_t n_bytes)
{
    if (n_bytes)
        memcpy(to, from, n_bytes);
}

static char *assemble(const struct draft *d)
{
    const struct modtab_header *h = &d->header;
    char *table = calloc(1, h->file_bytes);
    if (!table)
        return NULL;
    memcpy(table, h, sizeof *h);
    copy(table + h->rows_offset, d->rows.items, h->n_rows * sizeof(struct modtab_row));
    copy(table + h->funcs_offset, d->funcs.items, h->n_funcs * sizeof(struct modtab_func));
    copy(table + h->syms_offset, d->syms.items, h->n_syms * sizeof(struct modtab_sym));
    copy(table + h->tls_syms_offset, d->tls_syms.items, h->n_tls_syms * sizeof(struct modtab_sym));
    copy(table + h->strings_offset, d->strings.data, h->strings_bytes);
    return table;
}

int modtab_make_table(const struct modtab_elf *m, char **table, size_t *n_bytes, struct error *err)
{
    struct draft d = {.header = m->header};
    *table = NULL;
    modtab_make_fdes(m, &d.fdes);
    modtab_make_funcs(m, &d.fdes, true, &d.ranges);
    pack_funcs(&d);
    modtab_make_rows(m, &d.fdes, &d.ranges, &d.rows);
    modtab_make_syms(m, &d.syms, &d.tls_syms, &d.strings, &d.header.has_symtab);
    buf_append(&d.strings, "", 1);
    if (!draft_failed(&d)) {
        lay_out(&d);
        *table = assemble(&d);
        *n_bytes = d.header.file_bytes;
        INVARIANT(!*table || !modtab_check_sig((const void *)*table, *n_bytes));
        INVARIANT(!*table || !modtab_check_code_sig((const void *)*table));
    }
    draft_fini(&d);
    return *table ? 0 : error_set(err, ERR_MEMORY, "%s: out of memory for the module's table.", m->path);
}
