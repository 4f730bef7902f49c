/* SPDX-License-Identifier: BSD-3-Clause */
/* The maker: module image + decoder + rules -> published blocks. */
#include "fnbounds/recipe-make.h"

#include <stdlib.h>

#include "fnbounds/recipe-image.h"
#include "fnbounds/recipe-rules.h"
#include "fnbounds/recipe-store.h"
#include "fnbounds/recipe-stride.h"

struct recipe_maker {
    const struct modtab_header *table;
    struct recipe_image image;
    struct insn_decoder *decoder;
    struct flow flow;
};

int recipe_maker_open(const struct modtab_header *table, const char *elf_path, struct recipe_maker **maker,
                      struct error *err)
{
    struct recipe_maker *m = calloc(1, sizeof *m);
    *maker = NULL;
    if (!m)
        return error_set(err, ERR_MEMORY, "out of memory for the recipes of %s", elf_path);
    m->table = table;
    int code = recipe_image_open(&m->image, elf_path, err);
    if (code == 0 && !(m->decoder = insn_decoder_open()))
        code = error_set(err, ERR_MEMORY, "out of memory for the recipes of %s", elf_path);
    if (code != 0) {
        recipe_maker_close(m);
        return code;
    }
    *maker = m;
    return 0;
}

void recipe_maker_close(struct recipe_maker *maker)
{
    if (!maker)
        return;
    recipe_image_close(&maker->image);
    insn_decoder_close(maker->decoder);
    flow_fini(&maker->flow);
    free(maker);
}

static const uint8_t *bytes_at_pc(const void *context, uint64_t pc, size_t n_bytes)
{
    const struct recipe_maker *maker = context;
    return recipe_image_bytes(&maker->image, maker->table->base_vaddr + pc, n_bytes);
}

static int publish(struct recipe_maker *maker, struct recipe_store *store, uint32_t func, struct error *err)
{
    uint32_t n = (uint32_t)maker->flow.n_insns, n_entries = 0;
    struct recipe entry;
    for (uint32_t i = 0; i < n; i++)
        n_entries += recipe_rules_entry(&maker->flow, i, &entry);
    struct recipe_block *block = recipe_store_reserve(store, maker->table->id, func, n, n_entries);
    if (!block)
        return error_set(err, ERR_RANGE, "the recipe store is full (%llu bytes)",
                         (unsigned long long)store->size_bytes);
    uint32_t next_entry = n;
    for (uint32_t i = 0; i < n; i++) {
        recipe_rules_apply(&maker->flow, i, &block->recipes[i]);
        if (!recipe_rules_entry(&maker->flow, i, &entry))
            continue;
        if (next_entry - i <= UINT16_MAX)
            block->recipes[i].entry = (uint16_t)(next_entry - i);
        block->recipes[next_entry++] = entry;
    }
    if (recipe_store_publish(store, block) != 0)
        return error_set(err, ERR_RANGE, "the recipe store is full (%u functions)", store->n_slots);
    return 0;
}

int recipe_maker_func(struct recipe_maker *maker, struct recipe_store *store, uint32_t func, struct error *err)
{
    if (func >= maker->table->n_funcs)
        return error_set(err, ERR_RANGE, "%s has no function number %u", maker->table->path, func);
    if (recipe_find_block(store, maker->table->id, func))
        return 0;
    const struct modtab_func *range = &modtab_funcs(maker->table)[func];
    const uint8_t *bytes = NULL;
    if (range->end > range->start)
        bytes = bytes_at_pc(maker, range->start, range->end - range->start);
    if (!bytes)
        return error_set(err, ERR_NOT_FOUND, "%s holds no code at %#llx", maker->table->path,
                         (unsigned long long)(maker->table->base_vaddr + range->start));
    struct flow_image image = {bytes_at_pc, maker};
    if (!flow_build(&maker->flow, maker->decoder, &image, bytes, range->start, range->end))
        return error_set(err, ERR_MEMORY, "out of memory for a function of %u bytes", range->end - range->start);
    if (!stride_build(&maker->flow))
        return error_set(err, ERR_MEMORY, "out of memory for the loops of a function of %u bytes",
                         range->end - range->start);
    return publish(maker, store, func, err);
}
