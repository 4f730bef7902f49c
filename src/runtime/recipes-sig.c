/* SPDX-License-Identifier: BSD-3-Clause */
/* Recipes as the handler finds them: a direct-mapped cache over the shared store. A miss posts one request; repeated
 * misses of the same function do not. */
#include "runtime/recipes.h"

#include <stddef.h>
#include <sys/mman.h>

#include "fnbounds/recipe-eval-sig.h"
#include "runtime/arena-writer.h"
#include "runtime/loadmap.h"
#include "runtime/zone.h"
#include "base/sigsafe.h"

#define CACHE_SLOTS 4096
#define ASKED_SLOTS 1024

struct cached {
    _Atomic uint64_t pc;                    /* 0 while it is being changed */
    _Atomic uint64_t recipe_and_generation; /* pointer (48 bits) | low 16 bits of the generation << 48 */
};

static struct {
    const struct recipe_store *store;
    struct cached cache[CACHE_SLOTS];
    _Atomic uint64_t asked[ASKED_SLOTS];
} recipes;

void recipes_map_store_sig(int fd, uint64_t n_bytes)
{
    const struct recipe_store *store = fd < 0 ? NULL : zone_share_sig(ZONE_RECIPES, fd, n_bytes, PROT_READ, 0);
    recipe_eval_init_sig();
    uint64_t n_slot_bytes = store ? store->slots_offset + store->n_slots * sizeof(struct recipe_slot) : 0;
    recipes.store = zone_reach_sig(ZONE_RECIPES, n_slot_bytes) ? store : NULL;
}

void recipes_fork_child_sig(void)
{
    for (unsigned i = 0; i < ASKED_SLOTS; i++)
        atomic_store_explicit(&recipes.asked[i], 0, memory_order_relaxed);
}

static const struct recipe *cache_get_sig(uintptr_t pc, uint64_t generation)
{
    struct cached *slot = &recipes.cache[(pc ^ pc >> 12) & (CACHE_SLOTS - 1)];
    if (atomic_load_explicit(&slot->pc, memory_order_acquire) != pc)
        return NULL;
    uint64_t value = atomic_load_explicit(&slot->recipe_and_generation, memory_order_acquire);
    if (value >> 48 != (generation & 0xffff) || atomic_load_explicit(&slot->pc, memory_order_acquire) != pc)
        return NULL;
    return (const struct recipe *)(uintptr_t)(value << 16 >> 16);
}

static void cache_put_sig(uintptr_t pc, uint64_t generation, const struct recipe *recipe)
{
    struct cached *slot = &recipes.cache[(pc ^ pc >> 12) & (CACHE_SLOTS - 1)];
    atomic_store_explicit(&slot->pc, 0, memory_order_release);
    atomic_store_explicit(&slot->recipe_and_generation, (uint64_t)(uintptr_t)recipe | generation << 48,
                          memory_order_release);
    atomic_store_explicit(&slot->pc, pc, memory_order_release);
}

/* The block of a function, as far as the store is mapped by now. */
static const struct recipe_block *block_find_sig(uint64_t table_id, uint32_t func)
{
    const struct recipe_block *block = recipe_find_block(recipes.store, table_id, func);
    uint64_t n_bytes = (uint64_t)((const char *)block - (const char *)recipes.store) + sizeof *block;
    if (!block || !zone_reach_sig(ZONE_RECIPES, n_bytes))
        return NULL;
    n_bytes += ((uint64_t)block->n_recipes + block->n_entries) * sizeof block->recipes[0];
    return zone_reach_sig(ZONE_RECIPES, n_bytes) ? block : NULL;
}

static void ask_sig(const struct loadmap_module *module, uint32_t func)
{
    uint64_t key = (uint64_t)module->code.ref << 32 | (func + 1u);
    _Atomic uint64_t *slot = &recipes.asked[recipe_hash(module->table_id, func) & (ASKED_SLOTS - 1)];
    if (atomic_exchange(slot, key) != key && !arena_request_sig(REQUEST_RECIPE, module->code.ref, func))
        atomic_store(slot, 0);
}

enum recipes_result recipes_find_sig(uintptr_t pc, const struct recipe **recipe)
{
    uint64_t generation = loadmap_generation_sig();
    *recipe = cache_get_sig(pc, generation);
    if (*recipe)
        return RECIPES_FOUND;
    const struct loadmap_module *module = loadmap_find_sig(pc);
    if (!recipes.store || !module || !module->table_id)
        return RECIPES_NEVER;
    const struct modtab_header *table = loadmap_table_sig(module);
    if (!table || !module->code.ref)
        return RECIPES_LATER;
    uint64_t vaddr = pc - module->code.bias;
    int64_t func = modtab_find_func(table, vaddr);
    if (func < 0)
        return RECIPES_NEVER;
    const struct recipe_block *block = block_find_sig(module->table_id, (uint32_t)func);
    if (!block) {
        ask_sig(module, (uint32_t)func);
        return RECIPES_LATER;
    }
    *recipe = recipe_find(block, (uint32_t)(vaddr - table->base_vaddr));
    if (!*recipe)
        return RECIPES_NEVER;
    cache_put_sig(pc, generation, *recipe);
    return RECIPES_FOUND;
}
