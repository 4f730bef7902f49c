/* SPDX-License-Identifier: BSD-3-Clause */
#include "recipe-lib.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct span {
    uint64_t bias, low, high;
};

static int first_module(struct dl_phdr_info *info, size_t size, void *data)
{
    struct span *span = data;
    (void)size;
    *span = (struct span){.bias = info->dlpi_addr, .low = UINT64_MAX};
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        uint64_t start = info->dlpi_phdr[i].p_vaddr & ~UINT64_C(4095);
        uint64_t end = info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
        span->low = start < span->low ? start : span->low;
        span->high = end > span->high ? end : span->high;
    }
    return 1;
}

uint64_t recipe_lib_table(struct recipe_lib_table *table, const void *start, const void *end)
{
    struct span span;
    (void)dl_iterate_phdr(first_module, &span);
    memset(table, 0, sizeof *table);
    memcpy(table->header.magic, MODTAB_MAGIC, sizeof table->header.magic);
    table->header.id = 77;
    table->header.base_vaddr = span.low;
    table->header.end_vaddr = span.high;
    table->header.funcs_offset = offsetof(struct recipe_lib_table, func);
    table->header.n_funcs = 1;
    table->func.start = (uint32_t)((uintptr_t)start - span.bias - span.low);
    table->func.end = (uint32_t)((uintptr_t)end - span.bias - span.low);
    return span.bias;
}

static void give_up(const char *what, const struct error *err)
{
    fprintf(stderr, "%s: %s\n", what, err->text);
    abort();
}

struct recipe recipe_lib_pair(const void *start, const void *end, const void *pc, struct recipe *entry)
{
    const size_t store_bytes = 1 << 20;
    struct recipe_lib_table table;
    struct recipe_maker *maker;
    struct error err;
    uint64_t bias = recipe_lib_table(&table, start, end);
    struct recipe_store *store = aligned_alloc(64, store_bytes);
    memset(store, 0, store_bytes);
    if (recipe_store_init(store, store_bytes, 16) != 0)
        abort();
    if (recipe_maker_open(&table.header, "/proc/self/exe", &maker, &err) != 0)
        give_up("recipe_maker_open", &err);
    uint32_t at = (uint32_t)((uintptr_t)pc - bias - table.header.base_vaddr);
    int status = recipe_maker_place(maker, store, at, &err);
    if (status != 0 && status != ERR_NOT_FOUND)
        give_up("recipe_maker_place", &err);
    recipe_maker_close(maker);
    const struct recipe_block *block = recipe_find_block(store, 77, at);
    const struct recipe *found = block ? block->recipes : NULL;
    struct recipe recipe = {.class = 255};
    if (found)
        recipe = *found;
    *entry = (struct recipe){.class = 255};
    if (found && found->entry)
        *entry = found[found->entry];
    free(store);
    return recipe;
}

struct recipe recipe_lib_at(const void *start, const void *end, const void *pc)
{
    struct recipe entry;
    return recipe_lib_pair(start, end, pc, &entry);
}
