/* SPDX-License-Identifier: BSD-3-Clause */
/* Recipes as the handler finds them: a direct-mapped cache over the shared store. A miss posts one request; repeated
 * misses of the same function do not. */
#include "runtime/recipes.h"

#include "fnbounds/recipe-eval-sig.h"
#include "runtime/arena-writer.h"
#include "runtime/loadmap.h"
#include "base/sigsafe.h"

#define CACHE_SLOTS 4096
#define ASKED_SLOTS 1024

struct cached {
    _Atomic uint64_t pc; /* 0 while it is being changed */
    _Atomic uint64_t recipe_and_generation; /* pointer (48 bits) | low 16 bits of the generation << 48 */
};

static struct {
    const struct recipe_store *store;
    struct cached cache[CACHE_SLOTS];
    _Atomic uint64_t asked[ASKED_SLOTS];
} recipes;

void recipes_set_store_sig(const struct recipe_store *store)
{
    recipe_eval_init_sig();
    recipes.store = store;
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

static void ask_sig(const struct loadmap_module *module, uint32_t func)
{
    uint64_t key = (uint64_t)module->code.ref << 32 | (func + 1u);
    _Atomic uint64_t *slot = &recipes.asked[recipe_hash(module->table_id, func) & (ASKED_SLOTS - 1)];
    if (atomic_exchange(slot, key) != key)
        arena_request_sig(REQUEST_RECIPE, module->code.ref, func);
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
    const struct recipe_block *block = recipe_find_block(recipes.store, module->table_id, (uint32_t)func);
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
