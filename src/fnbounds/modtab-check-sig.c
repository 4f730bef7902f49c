/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks a mapped table before anything in it is used: cache files may be torn, old or somebody else's. Apart because
 * the runtime does it inside the program. No libc. */
#include "fnbounds/modtab.h"

#include <stdbool.h>

#include "base/sigsafe.h"

static bool fits(uint64_t offset, uint64_t n, uint64_t item_bytes, uint64_t file_bytes)
{
    return offset % 8 == 0 && offset >= sizeof(struct modtab_header) && offset <= file_bytes &&
           n <= (file_bytes - offset) / item_bytes;
}

static bool has_magic(const struct modtab_header *t)
{
    static const char magic[8] = MODTAB_MAGIC;
    for (int i = 0; i < 8; i++)
        if (t->magic[i] != magic[i])
            return false;
    return true;
}

static bool syms_fit(const struct modtab_header *t, const struct modtab_sym *syms, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (syms[i].name >= t->strings_bytes || syms[i].kind > MODTAB_SYM_TLS || syms[i].size_bytes == 0 ||
            syms[i].vaddr + syms[i].size_bytes < syms[i].vaddr ||
            (i > 0 && syms[i].vaddr < syms[i - 1].vaddr + syms[i - 1].size_bytes))
            return false;
    return true;
}

static bool has_end(const char *text, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (!text[i])
            return true;
    return false;
}

const char *modtab_check_sig(const struct modtab_header *t, uint64_t n_bytes)
{
    if (n_bytes < sizeof *t || !has_magic(t))
        return "it is not a module table";
    if (t->version != MODTAB_VERSION || t->header_bytes != sizeof *t)
        return "it has another version";
    if (t->file_bytes != n_bytes)
        return "it is not complete";
    if (!fits(t->funcs_offset, t->n_funcs, sizeof(struct modtab_func), n_bytes) ||
        !fits(t->rows_offset, t->n_rows, sizeof(struct modtab_row), n_bytes) ||
        !fits(t->syms_offset, t->n_syms, sizeof(struct modtab_sym), n_bytes) ||
        !fits(t->tls_syms_offset, t->n_tls_syms, sizeof(struct modtab_sym), n_bytes) ||
        !fits(t->strings_offset, t->strings_bytes, 1, n_bytes))
        return "its parts lie outside of the file";
    if (!t->strings_bytes || modtab_string(t, 0)[t->strings_bytes - 1] || !has_end(t->path, sizeof t->path) ||
        t->build_id_bytes > sizeof t->build_id || t->end_vaddr < t->base_vaddr)
        return "its header is damaged";
    if (!syms_fit(t, modtab_syms(t), t->n_syms) || !syms_fit(t, modtab_tls_syms(t), t->n_tls_syms))
        return "its symbols are damaged";
    return (const char *)0;
}

const char *modtab_check_code_sig(const struct modtab_header *t)
{
    const struct modtab_row *rows = modtab_rows(t);
    const struct modtab_func *funcs = modtab_funcs(t);
    for (uint64_t i = 0; i < t->n_rows; i++)
        if (rows[i].kind > MODTAB_BAD || (i > 0 && rows[i].pc <= rows[i - 1].pc))
            return "its unwind rows are damaged";
    for (uint64_t i = 0; i < t->n_funcs; i++)
        if (funcs[i].end <= funcs[i].start || (i > 0 && funcs[i].start < funcs[i - 1].end))
            return "its functions are damaged";
    return (const char *)0;
}
