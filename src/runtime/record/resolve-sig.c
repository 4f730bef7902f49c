/* SPDX-License-Identifier: BSD-3-Clause */
/* From a data address to the variable that holds it: see sample.h. Wait-free; runs in the signal handler. */
#include <unistd.h>

#include "runtime/objmap/objmap.h"
#include "runtime/objmap/small.h"
#include "runtime/own/own-call.h"
#include "runtime/record/loadmap.h"
#include "runtime/record/sample.h"
#include "base/sigsafe.h"

#define NO_SYMBOL UINT32_MAX

static _Atomic uintptr_t last_break;

static enum resolve_result unknown_sig(enum unknown_reason reason, struct resolved *found)
{
    found->var = var_key(VAR_UNKNOWN, 0, reason);
    return RESOLVE_UNKNOWN;
}

static bool resolve_tls_sig(const struct thread_state *self, uintptr_t address, struct resolved *found)
{
    uint64_t offset;
    const struct loadmap_module *module = loadmap_find_tls_sig(self->thread_pointer, address, &offset);
    if (!module || !module->id)
        return false;
    const struct modtab_header *table = loadmap_table_sig(module);
    int64_t index = table ? modtab_find_sym(modtab_tls_syms(table), table->n_tls_syms, offset) : -1;
    found->var = var_key(VAR_TLS, module->id, index < 0 ? NO_SYMBOL : (uint32_t)index);
    if (index >= 0)
        found->offset = offset - modtab_tls_syms(table)[index].vaddr;
    return true;
}

static enum resolve_result resolve_static_sig(const struct loadmap_module *module, uintptr_t address,
                                              struct resolved *found)
{
    if (module->is_vdso)
        return unknown_sig(UNKNOWN_VDSO, found);
    if (module->is_own)
        return unknown_sig(UNKNOWN_OWN, found);
    if (!module->table_id || !module->id)
        return unknown_sig(UNKNOWN_NO_BLOCK, found);
    const struct modtab_header *table = loadmap_table_sig(module);
    if (!table)
        return RESOLVE_LATER;
    int64_t index = modtab_find_sym(modtab_syms(table), table->n_syms, address - module->code.bias);
    if (index < 0)
        return unknown_sig(UNKNOWN_NO_BLOCK, found);
    found->var = var_key(VAR_STATIC, module->id, (uint32_t)index);
    found->offset = address - module->code.bias - modtab_syms(table)[index].vaddr;
    found->start = address - found->offset;
    found->end = found->start + modtab_syms(table)[index].size_bytes;
    return RESOLVE_NAMED;
}

/* Finds the frame whose stack area holds the address: the innermost one whose canonical frame address lies above it.
 * Without a call path, the stack as a whole. */
static void resolve_own_stack_sig(const struct thread_state *self, uintptr_t address, const struct thread_frame *frames,
                                  unsigned n_frames, struct resolved *found)
{
    found->var = n_frames ? var_key(VAR_STACK, 0, frames[n_frames - 1].node) : var_key(VAR_STACK_OTHER, 0, self->ref);
    for (unsigned i = 0; i < n_frames; i++)
        if (address < frames[i].cfa) {
            found->var = var_key(VAR_STACK, 0, frames[i].node);
            found->offset = frames[i].cfa - address;
            return;
        }
}

/* Whether an address in no recorded block lies below the program break: then it is in a small block, or in one that
 * nobody noted. Where the kernel must not be asked, the last known break counts. */
static bool is_in_brk_sig(uintptr_t address)
{
    long answer = own_call_sig(SYS_brk, 0L);
    if (answer != -1)
        atomic_store_explicit(&last_break, (uintptr_t)answer, memory_order_relaxed);
    uintptr_t top = atomic_load_explicit(&last_break, memory_order_relaxed);
    return address < top && top - address < (uintptr_t)1 << 36;
}

/* Finds a block below the threshold whose site is known. */
static bool resolve_small_sig(uintptr_t address, struct resolved *found)
{
    uintptr_t start;
    unsigned id;
    if (!small_find_sig(address, &start, &id))
        return false;
    *found = (struct resolved){.var = var_key(VAR_SMALL, 0, small_ref_sig(id)), .offset = address - start};
    return true;
}

/* Finds a recorded block, or the pool's block inside it; UNKNOWN when there is none. */
static enum resolve_result resolve_block_sig(const struct thread_state *self, uintptr_t address, struct resolved *found)
{
    struct objmap_block block;
    if (address >= OBJMAP_POOL_LAYER)
        return RESOLVE_UNKNOWN;
    if (objmap_has_pools_sig() && objmap_find_sig(self->reader, address + OBJMAP_POOL_LAYER, &block)) {
        *found = (struct resolved){.var = block.var, .offset = address + OBJMAP_POOL_LAYER - block.start};
        return RESOLVE_NAMED;
    }
    if (!objmap_find_sig(self->reader, address, &block))
        return RESOLVE_UNKNOWN;
    if (atomic_load_explicit(&block.flags, memory_order_relaxed) & OBJMAP_RESIZING)
        return RESOLVE_LATER;
    /* an allocator's mapping: the block that it handed out is the better answer */
    if (var_key_kind(block.var) == VAR_MMAP && resolve_small_sig(address, found))
        return RESOLVE_NAMED;
    *found = (struct resolved){block.var, address - block.start, block.start, block.end};
    return RESOLVE_NAMED;
}

enum resolve_result resolve_address_sig(const struct thread_state *self, uintptr_t address,
                                        const struct thread_frame *frames, unsigned n_frames, struct resolved *found)
{
    *found = (struct resolved){.offset = RESOLVE_NO_OFFSET};
    small_recheck_sig();
    if (address >> 63)
        return unknown_sig(UNKNOWN_KERNEL, found);
    if (address < 4096)
        return unknown_sig(UNKNOWN_NULL, found);
    if (resolve_tls_sig(self, address, found))
        return RESOLVE_NAMED;
    enum resolve_result result = resolve_block_sig(self, address, found);
    if (result != RESOLVE_UNKNOWN)
        return result;
    const struct loadmap_module *module = loadmap_find_sig(address);
    if (module)
        return resolve_static_sig(module, address, found);
    if (address >= self->bounds.low && address < self->bounds.high) {
        resolve_own_stack_sig(self, address, frames, n_frames, found);
        return RESOLVE_NAMED;
    }
    uintptr_t arena_low, arena_high;
    arena_range_sig(&arena_low, &arena_high);
    if (address >= arena_low && address < arena_high)
        return RESOLVE_OWN;
    uint32_t other = thread_of_stack_sig(address);
    if (other) {
        found->var = var_key(VAR_STACK_OTHER, 0, other);
        return RESOLVE_NAMED;
    }
    if (self->in_allocator)
        return RESOLVE_LATER;
    if (resolve_small_sig(address, found) || late_find_sig(address, found))
        return RESOLVE_NAMED;
    /* where each small block is noted, this is none */
    return unknown_sig(!small_sites_sig() && is_in_brk_sig(address) ? UNKNOWN_SMALL_BLOCK : UNKNOWN_NO_BLOCK, found);
}
