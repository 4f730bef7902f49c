/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the files of the unwinder: the state of a walk, the rule of one pc, and the cache of rules with its inline
 * lookup. Signal context. */
#ifndef LOCUS_RUNTIME_UNWIND_INTERNAL_H
#define LOCUS_RUNTIME_UNWIND_INTERNAL_H

#include <stdatomic.h>
#include <string.h>

#include "runtime/unwind.h"

enum { UNWIND_RBX = 3, UNWIND_RBP = 6, UNWIND_RSP = 7 };

/* Kinds behind those of enum modtab_row_kind: places without table. Never cached. */
enum { UNWIND_KIND_NO_TABLE = 64, UNWIND_KIND_NO_MODULE };

/* What is known of one pc: the fields of its row, its module, and whether a call ends right behind it. */
struct unwind_rule {
    int32_t cfa_offset;
    int16_t rbp_offset, rbx_offset;
    uint8_t kind, reg, flags;
    int8_t extra;
    bool follows_call;
    const struct unwind_module *module;
};

#define UNWIND_CACHE_SLOTS 8192
#define UNWIND_PC_BITS 48

/* One rule, readable while another thread replaces it: key holds a version (odd: being written) above the pc; a reader
 * takes the words between two equal reads of it. */
struct unwind_slot {
    _Atomic uint64_t key;
    _Atomic uint64_t offsets; /* cfa_offset, rbp_offset, rbx_offset */
    _Atomic uint64_t rule;    /* kind, reg, flags, extra, then generation << 1 | follows_call */
    _Atomic uint64_t module;
};

/* All slots [UNWIND_CACHE_SLOTS].  ctx: signal handler */
struct unwind_slot *unwind_slots_sig(void);

static inline uint64_t unwind_slot_index(uintptr_t pc)
{
    return (pc * 0x9e3779b97f4a7c15u) >> 51;
}
_Static_assert(UNWIND_CACHE_SLOTS == 1 << (64 - 51), "index bits");

/* Takes the rule of pc out of its slot; false when it is not there.  ctx: signal handler, wait-free */
static inline bool unwind_slot_get(struct unwind_slot *slots, uintptr_t pc, uint32_t generation,
                                   struct unwind_rule *out)
{
    struct unwind_slot *slot = &slots[unwind_slot_index(pc)];
    uint64_t key = atomic_load_explicit(&slot->key, memory_order_acquire);
    if (!key || key << 16 != (uint64_t)pc << 16 || key & (uint64_t)1 << UNWIND_PC_BITS)
        return false;
    uint64_t offsets = atomic_load_explicit(&slot->offsets, memory_order_relaxed);
    uint64_t rule = atomic_load_explicit(&slot->rule, memory_order_relaxed);
    uint64_t module = atomic_load_explicit(&slot->module, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&slot->key, memory_order_relaxed) != key || rule >> 33 != (generation & INT32_MAX))
        return false;
    out->cfa_offset = (int32_t)offsets;
    out->rbp_offset = (int16_t)(offsets >> 32);
    out->rbx_offset = (int16_t)(offsets >> 48);
    out->kind = (uint8_t)rule;
    out->reg = (uint8_t)(rule >> 8);
    out->flags = (uint8_t)(rule >> 16);
    out->extra = (int8_t)(rule >> 24);
    out->follows_call = rule >> 32 & 1;
    out->module = (const struct unwind_module *)(uintptr_t)module;
    return true;
}

/* Where other registers than rsp, rbp, rbx are to be had. */
enum unwind_live { UNWIND_LIVE_NONE, UNWIND_LIVE_START, UNWIND_LIVE_CONTEXT };

/* State of a walk: the frame that is looked at. */
struct unwind_cursor {
    uintptr_t pc, sp;
    uint64_t rbp, rbx;
    bool has_rbp, has_rbx;
    bool is_interrupted;
    enum unwind_live live;
    uintptr_t context;        /* ucontext of UNWIND_LIVE_CONTEXT */
    uintptr_t floor, ceiling; /* reads of 8 bytes are allowed at floor <= address <= ceiling */
    uintptr_t fp_valid;       /* a chain of frame pointers has been validated up to this frame pointer */
    const struct unwind_start *start;
    const struct unwind_bounds *bounds;
    struct unwind_slot *slots;
    unwind_find_module find;
    uint32_t generation;
};

typedef uint64_t __attribute__((may_alias, aligned(1))) unwind_word;

/* Reads a word of the stack; false when it lies outside of what may be read.  ctx: signal handler */
__attribute__((no_sanitize("address", "undefined"))) static inline bool unwind_read(const struct unwind_cursor *c,
                                                                                    uintptr_t address, uint64_t *value)
{
    if (address - c->floor > c->ceiling - c->floor)
        return false;
    *value = *(const unwind_word *)address;
    return true;
}

/* Finds the rule of the code at pc the slow way and caches it.  ctx: signal handler */
void unwind_find_rule_sig(const struct unwind_cursor *c, uintptr_t pc, struct unwind_rule *rule);

/* Rule of the code at pc.  ctx: signal handler */
static inline void unwind_rule_of(const struct unwind_cursor *c, uintptr_t pc, struct unwind_rule *rule)
{
    if (!unwind_slot_get(c->slots, pc, c->generation, rule))
        unwind_find_rule_sig(c, pc, rule);
}

/* Sets floor and ceiling for the stack that holds c->sp; false when no known one does.  ctx: signal handler */
bool unwind_enter_stack_sig(struct unwind_cursor *c);

/* Follows the chain of frame pointers from rbp through generated code until it reaches a call in known code; true when
 * it does, and for all frames of that chain.  ctx: signal handler */
bool unwind_validate_fp_sig(struct unwind_cursor *c);

/* One step from the frame at *c to its caller by any rule, filling frame->cfa, the unwinder's flags and *regs.
 * Returns true when *c is now the caller, else false with *stop set.  ctx: signal handler */
bool unwind_step_sig(struct unwind_cursor *c, const struct unwind_rule *rule, struct unwind_frame *frame,
                     struct unwind_regs *regs, enum unwind_stop *stop);

#endif
