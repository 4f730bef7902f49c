/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for module tables as they are mapped from the cache: a table that passes the checks can be
 * searched for any address, and everything found lies inside it. Seeds: tables of small programs. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fnbounds/modtab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

static void check(int holds, const char *sentence)
{
    if (holds)
        return;
    (void)fprintf(stderr, "%s\n", sentence);
    abort();
}

static uint64_t check_symbols(const struct modtab_header *t, const struct modtab_sym *syms, uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        int64_t found = modtab_find_sym(syms, n, syms[i].vaddr);
        check(found == (int64_t)i, "a symbol is not found at its own address");
        found = modtab_find_sym(syms, n, syms[i].vaddr + syms[i].size_bytes);
        check(found != (int64_t)i, "a symbol is found behind its end");
        sum += strlen(modtab_string(t, syms[i].name));
    }
    return sum;
}

static uint64_t look_up(const struct modtab_header *t, uint64_t vaddr)
{
    const struct modtab_row *row = modtab_find_row(t, vaddr);
    int64_t func = modtab_find_func(t, vaddr);
    int64_t sym = modtab_find_sym(modtab_syms(t), t->n_syms, vaddr);
    uint64_t sum = row ? row->kind + (uint64_t)row->cfa_offset : 0;
    sum += func >= 0 ? modtab_funcs(t)[func].end : 0;
    return sum + (sym >= 0 ? strlen(modtab_string(t, modtab_syms(t)[sym].name)) : 0);
}

/* Nothing inside a table that passes may lead out of it; with orderly code its functions are found, too. */
static void check_table(const struct modtab_header *t)
{
    uint64_t sum = check_symbols(t, modtab_syms(t), t->n_syms) + check_symbols(t, modtab_tls_syms(t), t->n_tls_syms);
    uint64_t span = t->end_vaddr - t->base_vaddr, step = span / 64 + 1;
    for (uint64_t i = 0; i <= 65; i++)
        sum += look_up(t, t->base_vaddr - step + i * step);
    sum += look_up(t, 0) + look_up(t, UINT64_MAX) + strlen(t->path);
    const char *wrong = modtab_check_code_sig(t);
    for (uint64_t i = 0; !wrong && i < t->n_funcs; i++) {
        uint64_t vaddr = t->base_vaddr + modtab_funcs(t)[i].start;
        if (vaddr >= t->base_vaddr && vaddr < t->end_vaddr)
            check(modtab_find_func(t, vaddr) == (int64_t)i, "a function is not found at its own address");
    }
    check(sum != UINT64_MAX, "the compiler may not drop the reads");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    void *copy = malloc(len_bytes ? len_bytes : 1);
    check(copy != NULL, "out of memory");
    memcpy(copy, data, len_bytes);
    struct modtab_header *table = copy;
    if (len_bytes >= sizeof *table)
        table->file_bytes = len_bytes;
    if (!modtab_check_sig(table, len_bytes))
        check_table(table);
    free(copy);
    return 0;
}
