/* SPDX-License-Identifier: BSD-3-Clause */
/* The data symbols of a module: objects and COMMON by ELF symbol, the uncovered rest of the data sections as named
 * regions, thread-local symbols apart. Of several symbols for the same bytes the winner is: global, then longest, then
 * name. Ordinary code, untrusted input. */
#include "fnbounds/modtab-make.h"

#include <stdlib.h>
#include <string.h>

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

/* Puts next behind the pieces done so far; what loses bytes goes back to the heap with the rest of its bytes. */
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
static void flatten(struct modtab_vec *heap, struct modtab_vec *done)
{
    size_t n_left = 16 * heap->n + 16; /* hostile tables may cut each other without end */
    while (heap->n && n_left--)
        place(done, heap, heap_pop(heap));
    done->failed |= heap->failed;
}

/* Offset of text [n] in the strings, added behind the others. */
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
struct region {
    uint64_t start, end;
    const char *section;
};

static int compare_regions(const void *a, const void *b)
{
    const struct region *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static void collect_regions(const struct modtab_elf *m, struct modtab_vec *regions)
{
    Elf_Scn *scn = NULL;
    GElf_Shdr shdr;
    while ((scn = elf_nextscn(m->elf, scn))) {
        struct region region;
        if (!gelf_getshdr(scn, &shdr) || !(shdr.sh_flags & SHF_ALLOC) || shdr.sh_flags & (SHF_EXECINSTR | SHF_TLS))
            continue;
        region = (struct region){shdr.sh_addr, shdr.sh_addr + shdr.sh_size, modtab_elf_section_name(m, &shdr)};
        if (region.start >= m->header.base_vaddr && region.end > region.start && region.end <= m->header.end_vaddr)
            modtab_vec_push(regions, &region, sizeof region);
    }
    for (size_t i = 0; i < m->n_segments && regions->n == 0; i++)
        if (!m->segments[i].is_text) {
            struct region region = {m->segments[i].start, m->segments[i].end, "data"};
            modtab_vec_push(regions, &region, sizeof region);
        }
    if (regions->n)
        qsort(regions->items, regions->n, sizeof(struct region), compare_regions);
}

/* One section's holes between the symbols. *next: first symbol that may end behind its start. */
static void fill_region(const struct modtab_elf *m, struct region region, const struct modtab_vec *done, size_t *next,
                        struct modtab_vec *syms, struct buf *strings)
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
        struct region region = ((struct region *)regions.items)[i];
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
    flatten(&data, &data_done);
    flatten(&tls, &tls_done);
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
