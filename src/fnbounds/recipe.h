/* SPDX-License-Identifier: BSD-3-Clause */
/* Recipes: for a program counter at which a sample was taken, how to work out from the registers which data address
 * the stalled instruction used. Made place by place by the companion (Zydis) and read by the signal handler out of a
 * shared, append-only memory (the recipe store). Rule and measurements: an interrupted pc points at the instruction
 * AFTER the stalled one; never fall back to a neighbour.
 *
 * Store layout: struct recipe_store, then n_slots struct recipe_slot (open addressing, linear probing, power of two),
 * then blocks. A slot is published by a release-store of its block offset; blocks never move or change.
 * Declarations and lookups only; the inline functions are signal-safe. */
#ifndef LOCUS_FNBOUNDS_RECIPE_H
#define LOCUS_FNBOUNDS_RECIPE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define RECIPE_MAGIC "LOCUSRS5"
#define RECIPE_NO_REG 0xff

/* Register numbers in operands: x86 encoding order rax rcx rdx rbx rsp rbp rsi rdi r8-r15 (0-15), 16 = rip (the
 * sampled pc itself), RECIPE_NO_REG = none; vector registers xmm/ymm/zmm 0-31 are 32-63 (their lowest lane). */
enum recipe_reg { RECIPE_RAX = 0, RECIPE_RSP = 4, RECIPE_RBP = 5, RECIPE_RIP = 16, RECIPE_VEC = 32 };

#define RECIPE_OP_WRITE 1u /* the instruction stores there */
#define RECIPE_OP_READ 2u  /* the instruction loads from there */
#define RECIPE_OP_FS 4u    /* add the fs base (thread-local storage) */
#define RECIPE_OP_GS 8u
#define RECIPE_OP_INDEX32 16u /* only the lower 32 bits of the index (or lane) count, sign-extended */
#define RECIPE_OP_INEXACT                                                                                              \
    32u                      /* proxy: right block expected, address within it uncertain; count the sample as lost     \
                              * when it lies in no known block */
#define RECIPE_OP_ADDR32 64u /* 32-bit address size: truncate the sum before adding the segment */
#define RECIPE_OP_STACK 128u /* push/pop/call/ret: implicit stack slot */

/* In base: a word near the register's address holds the base: base value = *(uint64_t *)(register + disp), and the
 * access is at base value + index * scale + offset. The register is rsp or rbp; read only inside known stack bounds. */
#define RECIPE_BASE_DEREF 0x80
/* In index: only some bits of the register count: those that are set in the register which offset numbers, or, where
 * offset is negative, a field of bits (struct recipe_field); never together with RECIPE_BASE_DEREF. */
#define RECIPE_INDEX_MASKED 0x80
/* In scale: the index is subtracted (a stride that was added since). */
#define RECIPE_SCALE_NEGATIVE 0x80

/* address = base + index * scale + disp (+ fs base), registers as at the sampled pc; the register changes of the
 * instructions in between are folded into disp, base and index. Evaluate with recipe_address_sig(). */
struct recipe_operand {
    uint8_t base, index;
    uint8_t scale; /* 0-127, or 1-127 | RECIPE_SCALE_NEGATIVE; index is ignored when 0 */
    uint8_t flags; /* RECIPE_OP_* */
    int32_t disp;
    uint16_t size_bytes; /* of the access; 0 = variable (string operations) */
    int16_t offset;      /* only with RECIPE_BASE_DEREF or RECIPE_INDEX_MASKED, else 0 */
};

/* Neighbouring bits of a register. As a number of its own, or where they are. */
struct recipe_field {
    unsigned first, n_bits; /* 1-64 of them */
    bool is_shifted;        /* a number of its own */
};

/* A field as an operand's offset, which is negative.  ctx: any */
static inline int16_t recipe_field_pack(struct recipe_field field)
{
    return (int16_t)(-1 - (int)((field.n_bits - 1) | field.first << 6 | (unsigned)field.is_shifted << 12));
}

/* The field that an offset stands for.  ctx: any */
static inline struct recipe_field recipe_field_unpack(int16_t offset)
{
    unsigned code = (unsigned)(-1 - offset);
    return (struct recipe_field){code >> 6 & 63, (code & 63) + 1, code >> 12 & 1};
}

/* The value of a register's field.  ctx: any */
static inline uint64_t recipe_field_of(uint64_t value, struct recipe_field field)
{
    uint64_t bits = value >> field.first & UINT64_MAX >> (64 - field.n_bits);
    return field.is_shifted ? bits : bits << field.first;
}

/* Values of recipe.class; the same numbers as enum hit_class of arena/arena.h. */
enum recipe_class {
    RECIPE_MEMORY = 0,    /* operand of the stalled instruction */
    RECIPE_DEPENDENT = 1, /* operand of the load that the stalled instruction waited for */
    RECIPE_COMPUTE = 2,   /* no memory involved: no operand */
    RECIPE_LOST = 3,      /* memory instruction, address not recoverable: no operand */
    RECIPE_SYSCALL = 4,   /* after a system call: no operand */
    RECIPE_WAITING = 7    /* in a loop that only waits for another thread: no operand */
};

/* One program counter. class: enum hit_class of arena/arena.h (memory, dependent, compute, lost, system call, waiting).
 */
struct recipe {
    uint32_t pc;        /* relative to the module's base_vaddr */
    uint8_t class;      /* enum recipe_class */
    uint8_t n_operands; /* 0, 1 or 2 (string operations: the sample is split) */
    /* 1 at the head of a loop whose entry waits for something other than its repetition: the recipe of the entry, which
     * holds a guard, lies behind this one; else 0. Choose with recipe_choose_sig(). */
    uint16_t entry;
    struct recipe_operand operands[2];
    /* Recipe of an entry only: it applies when register guard_reg equals guard_value in its lower 32 bits, or the
     * register guard_other when that is not RECIPE_NO_REG. */
    uint32_t guard_value;
    uint8_t guard_reg, guard_other;
    /* Of a walk that moves on by a register's value, such as the width of a matrix: in each turn by step_scale times
     * the value of register step % 16, over 1 << step / 16 accesses at most. step_scale 0: of another walk. */
    uint8_t step;
    int8_t step_scale;
    /* Of RECIPE_MEMORY and _DEPENDENT: how the stalled instruction walks through memory, in two halves
     * (base/access-pattern.h). */
    uint32_t pattern_low, pattern_high;
};

/* The recipe of one place. Places are analysed as samples fall on them: where a program's time is spread over much
 * code, few of those beside a sampled one are ever sampled. */
struct recipe_block {
    uint64_t module_id; /* modtab_header.id */
    uint32_t pc;        /* relative to base_vaddr */
    uint32_t n_recipes; /* 1, 2 with that of the loop's entry, 0: there is none and will be none */
    struct recipe recipes[];
};

struct recipe_slot {
    uint64_t module_id;
    uint32_t pc;
    _Atomic uint32_t block; /* byte offset / 8 in the store, 0 = empty; stored last, with release */
};

struct recipe_store {
    char magic[8];
    uint64_t size_bytes;
    uint32_t n_slots; /* power of two */
    uint32_t n_used;
    uint64_t slots_offset;
    _Atomic uint64_t next_offset; /* first free byte */
};

/* Hash of a place in a module's code, for the slots of a store.  ctx: any */
static inline uint64_t recipe_hash(uint64_t module_id, uint32_t pc)
{
    return (module_id ^ (uint64_t)pc * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u >> 20;
}

/* The published block of a place, NULL when it has not been made yet.  ctx: any, wait-free */
static inline const struct recipe_block *recipe_find_block(const struct recipe_store *store, uint64_t module_id,
                                                           uint32_t pc)
{
    const struct recipe_slot *slots = (const struct recipe_slot *)((const char *)store + store->slots_offset);
    for (uint64_t i = recipe_hash(module_id, pc), n = 0; n < store->n_slots; i++, n++) {
        const struct recipe_slot *slot = &slots[i & (store->n_slots - 1)];
        uint32_t block = atomic_load_explicit(&slot->block, memory_order_acquire);
        if (!block)
            return NULL;
        if (slot->module_id == module_id && slot->pc == pc)
            return (const struct recipe_block *)((const char *)store + (uint64_t)block * 8);
    }
    return NULL;
}

#endif
