/* SPDX-License-Identifier: BSD-3-Clause */
/* Layout and growth of the recipe store. Blocks are filled before their slot names them. */
#include "fnbounds/recipe-store.h"

#include <string.h>

#include "fnbounds/recipe-make.h"

_Static_assert(sizeof(struct recipe) == 48, "recipes are shared between processes");
_Static_assert(sizeof(struct recipe_slot) == 16, "slots are shared between processes");

int recipe_store_init(void *memory, size_t size_bytes, uint32_t n_slots)
{
    struct recipe_store *store = memory;
    uint64_t slots_offset = (sizeof *store + 63) / 64 * 64;
    uint64_t blocks_offset = slots_offset + (uint64_t)n_slots * sizeof(struct recipe_slot);
    if (!n_slots || n_slots & (n_slots - 1) || blocks_offset > size_bytes)
        return ERR_RANGE;
    store->size_bytes = size_bytes;
    store->n_slots = n_slots;
    store->n_used = 0;
    store->slots_offset = slots_offset;
    atomic_store_explicit(&store->next_offset, blocks_offset, memory_order_relaxed);
    memcpy(store->magic, RECIPE_MAGIC, sizeof store->magic);
    return 0;
}

static uint64_t block_bytes(uint32_t n_recipes)
{
    return (sizeof(struct recipe_block) + (uint64_t)n_recipes * sizeof(struct recipe) + 7) / 8 * 8;
}

struct recipe_block *recipe_store_reserve(struct recipe_store *store, uint64_t module_id, uint32_t func,
                                          uint32_t n_recipes, uint32_t n_entries)
{
    uint64_t offset = atomic_load_explicit(&store->next_offset, memory_order_relaxed);
    uint64_t n_bytes = block_bytes(n_recipes + n_entries);
    if (offset > store->size_bytes || n_bytes > store->size_bytes - offset || offset / 8 > UINT32_MAX)
        return NULL;
    struct recipe_block *block = (struct recipe_block *)((char *)store + offset);
    block->module_id = module_id;
    block->func = func;
    block->n_recipes = n_recipes;
    block->n_entries = n_entries;
    return block;
}

int recipe_store_publish(struct recipe_store *store, struct recipe_block *block)
{
    struct recipe_slot *slots = (struct recipe_slot *)((char *)store + store->slots_offset);
    uint64_t offset = (uint64_t)((char *)block - (char *)store);
    /* One slot stays empty, so that looking for what is not there always ends early. */
    if (store->n_used + 1 >= store->n_slots)
        return ERR_RANGE;
    uint64_t i = recipe_hash(block->module_id, block->func);
    while (atomic_load_explicit(&slots[i & (store->n_slots - 1)].block, memory_order_relaxed))
        i++;
    struct recipe_slot *slot = &slots[i & (store->n_slots - 1)];
    slot->module_id = block->module_id;
    slot->func = block->func;
    store->n_used++;
    uint64_t n_bytes = block_bytes(block->n_recipes + block->n_entries);
    atomic_store_explicit(&store->next_offset, offset + n_bytes, memory_order_relaxed);
    atomic_store_explicit(&slot->block, (uint32_t)(offset / 8), memory_order_release);
    return 0;
}

void recipe_store_refuse(struct recipe_store *store, uint64_t module_id, uint32_t func)
{
    struct recipe_block *block =
        recipe_find_block(store, module_id, func) ? NULL : recipe_store_reserve(store, module_id, func, 0, 0);
    if (block)
        (void)recipe_store_publish(store, block);
}
