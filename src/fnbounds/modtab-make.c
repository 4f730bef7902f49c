/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts the parts of a module table together in the layout of fnbounds/modtab.h. Ordinary code. */
#include "fnbounds/modtab-make.h"

#include <stdlib.h>
#include <string.h>

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
    }
    draft_fini(&d);
    return *table ? 0 : error_set(err, ERR_MEMORY, "%s: out of memory for the module's table.", m->path);
}
