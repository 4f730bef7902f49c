/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of the unwinder by pc: module tables behind a cache that all threads share without a lock. A cached rule
 * also says whether the return address follows a call. Signal context. */
#include "runtime/own/arch.h"
#include "runtime/unwind/unwind.h"

#include "base/sigsafe.h"

static struct {
    _Alignas(64) struct unwind_slot slots[UNWIND_CACHE_SLOTS];
} cache;

struct unwind_slot *unwind_slots_sig(void)
{
    return cache.slots;
}

/* Skips a slot that another thread is writing. */
static void slot_put(uintptr_t pc, uint32_t generation, const struct unwind_rule *rule)
{
    struct unwind_slot *slot = &cache.slots[unwind_slot_index(pc)];
    uint64_t key = atomic_load_explicit(&slot->key, memory_order_relaxed);
    uint64_t version = key >> UNWIND_PC_BITS;
    if (pc >> UNWIND_PC_BITS || version & 1 ||
        !atomic_compare_exchange_strong_explicit(&slot->key, &key, (version + 1) << UNWIND_PC_BITS,
                                                 memory_order_acquire, memory_order_relaxed))
        return;
    atomic_thread_fence(memory_order_release);
    uint64_t offsets = (uint32_t)rule->cfa_offset | (uint64_t)(uint16_t)rule->rbp_offset << 32 |
                       (uint64_t)(uint16_t)rule->rbx_offset << 48;
    uint64_t packed = rule->kind | (uint64_t)rule->reg << 8 | (uint64_t)rule->flags << 16 |
                      (uint64_t)(uint8_t)rule->extra << 24 | (uint64_t)rule->follows_call << 32 |
                      (uint64_t)(generation & INT32_MAX) << 33;
    atomic_store_explicit(&slot->offsets, offsets, memory_order_relaxed);
    atomic_store_explicit(&slot->rule, packed, memory_order_relaxed);
    atomic_store_explicit(&slot->module, (uintptr_t)rule->module, memory_order_relaxed);
    atomic_store_explicit(&slot->key, (version + 2) << UNWIND_PC_BITS | pc, memory_order_release);
}

/* pc is the last byte before a return address. Reads only bytes of a known function, because those are mapped. */
static bool follows_call(const struct unwind_module *module, uintptr_t pc)
{
    uint64_t vaddr = pc - module->bias;
    int64_t func = modtab_find_func(module->table, vaddr);
    if (func < 0)
        return false;
    uintptr_t start = module->bias + module->table->base_vaddr + modtab_funcs(module->table)[func].start;
    return arch_ends_in_call_sig((const uint8_t *)start, (const uint8_t *)pc + 1);
}

void unwind_find_rule_sig(const struct unwind_cursor *c, uintptr_t pc, struct unwind_rule *rule)
{
    *rule = (struct unwind_rule){.kind = UNWIND_KIND_NO_MODULE, .module = c->find(pc)};
    if (!rule->module)
        return;
    const struct modtab_header *table = atomic_load_explicit(&rule->module->table, memory_order_acquire);
    if (!table || !table->n_rows) {
        rule->kind = UNWIND_KIND_NO_TABLE;
        rule->follows_call = true;
        return;
    }
    const struct modtab_row *row = modtab_find_row(table, pc - rule->module->bias);
    rule->kind = MODTAB_GAP;
    if (row) {
        rule->cfa_offset = row->cfa_offset;
        rule->rbp_offset = row->rbp_offset;
        rule->rbx_offset = row->rbx_offset;
        rule->kind = row->kind;
        rule->reg = row->reg;
        rule->flags = row->flags;
        rule->extra = row->extra;
    }
    rule->follows_call = follows_call(rule->module, pc);
    slot_put(pc, c->generation, rule);
}
