/* SPDX-License-Identifier: BSD-3-Clause */
/* How an instruction walks through memory, in one 64-bit word. It is worked out from machine code outside the program
 * and carried through the program's records to the analysis, which uses it to tell waiting for memory from execution.
 * 0: nothing is known. Any context. */
#ifndef LOCUS_BASE_ACCESS_PATTERN_H
#define LOCUS_BASE_ACCESS_PATTERN_H

#include <stdint.h>

#define PATTERN_LINE_BYTES 64
#define PATTERN_SLOTS 16 /* of 4 bytes in a line */
#define PATTERN_STEP_LEAST 511u

enum pattern_kind {
    PATTERN_UNKNOWN = 0,
    PATTERN_FIXED,     /* the same address in every turn of its loop, or a slot of the stack */
    PATTERN_STRIDED,   /* moves on by a constant in every turn */
    PATTERN_DERIVED,   /* the same, through another register: mov, movsxd, lea */
    PATTERN_IRREGULAR, /* anything else: loaded addresses, computed indexes */
    PATTERN_FED,       /* no access: an instruction without a memory operand that uses what was loaded from there */
    PATTERN_STORED,    /* irregular, and only written */
    PATTERN_CHAINED    /* irregular, and read to find where to read in the next turn: a list */
};

/* Bits 0-31 group: place in the module of the first instruction that walks the same data in the same loop; where the
 * pattern has a footprint (pattern_has_footprint), of the loop's head, or outside of loops of the function. 32-47
 * stride in bytes, saturated (pattern_with_step: at least); 48-51 slots - 1: how many of a line's PATTERN_SLOTS slots
 * the group visits; 52-54 firsts - 1: in how many of them the group can enter a line, up to 8; 55-57 binary logarithm
 * of the bytes of an access, at most 64; 58-60 kind; then flags. */
#define PATTERN_PROXY (UINT64_C(1) << 61)   /* the address is that of a neighbour: it has a line, but no place in it */
#define PATTERN_MIXED (UINT64_C(1) << 62)   /* also computes, slowly, with a value from the turn before */
#define PATTERN_NO_LINE (UINT64_C(1) << 63) /* the address only tells which array it is */
/* With PATTERN_MIXED, of an irregular walk, whose stride bits are free: so do all such accesses of the loop, one
 * after the other, each with what the one before has computed. */
#define PATTERN_SERIAL (UINT64_C(1) << 32)

/* Its parts.  ctx: any */
static inline enum pattern_kind pattern_kind(uint64_t pattern)
{
    return (enum pattern_kind)(pattern >> 58 & 7);
}
static inline uint32_t pattern_group(uint64_t pattern)
{
    return (uint32_t)pattern;
}
static inline int pattern_stride_bytes(uint64_t pattern)
{
    return (int16_t)(uint16_t)(pattern >> 32);
}
static inline unsigned pattern_slots(uint64_t pattern)
{
    return (unsigned)(pattern >> 48 & 15) + 1;
}
static inline unsigned pattern_firsts(uint64_t pattern)
{
    return (unsigned)(pattern >> 52 & 7) + 1;
}
static inline unsigned pattern_access_bytes(uint64_t pattern)
{
    return 1u << (pattern >> 55 & 7);
}

/* A word of these parts, without flags: slots 1, firsts 1. size_bytes is rounded up to a power of two.  ctx: any */
static inline uint64_t pattern_make(enum pattern_kind kind, uint32_t group, int64_t stride_bytes, unsigned size_bytes)
{
    uint64_t log = 0;
    while (log < 6 && 1u << log < size_bytes)
        log++;
    stride_bytes = stride_bytes > INT16_MAX ? INT16_MAX : stride_bytes < INT16_MIN ? INT16_MIN : stride_bytes;
    return (uint64_t)kind << 58 | log << 55 | (uint64_t)(uint16_t)(int16_t)stride_bytes << 32 | group;
}

/* The word with another stride, of at most 16 bits.  ctx: any */
static inline uint64_t pattern_with_stride(uint64_t pattern, int stride_bytes)
{
    return (pattern & ~(UINT64_C(0xffff) << 32)) | (uint64_t)(uint16_t)stride_bytes << 32;
}

/* The word of a walk by steps that only the running program knows, with the stride that was seen: one less than a power
 * of two, from 511 on, so that its steps are longer; 0 where they are shorter. Few strides make few words.  ctx: any */
static inline uint64_t pattern_with_step(uint64_t pattern, uint64_t step_bytes)
{
    uint64_t least = INT16_MAX;
    while (least >= PATTERN_STEP_LEAST && least >= step_bytes)
        least /= 2;
    return least < PATTERN_STEP_LEAST ? pattern : pattern | least << 32;
}

/* Whether the stride is that of a word of such steps, or saturated: it was that or more.  ctx: any */
static inline int pattern_is_least(uint32_t stride_bytes)
{
    return stride_bytes >= PATTERN_STEP_LEAST && (stride_bytes & (stride_bytes + 1)) == 0;
}

/* The word with another group.  ctx: any */
static inline uint64_t pattern_with_group(uint64_t pattern, uint32_t group)
{
    return (pattern & ~(uint64_t)UINT32_MAX) | group;
}

/* The word with slots and firsts, both from 1; where every slot can be the first one, or more than 8 can, they tell
 * nothing and stay 1.  ctx: any */
static inline uint64_t pattern_with_slots(uint64_t pattern, unsigned slots, unsigned firsts)
{
    if (firsts >= slots || firsts > 8 || slots > PATTERN_SLOTS)
        return pattern;
    return pattern | (uint64_t)(slots - 1) << 48 | (uint64_t)(firsts - 1) << 52;
}

/* True when the places of samples within lines say something: the group visits several.  ctx: any */
static inline int pattern_has_contrast(uint64_t pattern)
{
    enum pattern_kind kind = pattern_kind(pattern);
    return (kind == PATTERN_STRIDED || kind == PATTERN_DERIVED) && pattern_slots(pattern) > 1 &&
           !(pattern & (PATTERN_PROXY | PATTERN_NO_LINE));
}

/* True when the number of different lines says something.  ctx: any */
static inline int pattern_has_footprint(uint64_t pattern)
{
    enum pattern_kind kind = pattern_kind(pattern);
    return kind >= PATTERN_STRIDED && kind != PATTERN_FED && !pattern_has_contrast(pattern) &&
           !(pattern & PATTERN_NO_LINE);
}

/* True when PATTERN_SERIAL is set, and is no stride.  ctx: any */
static inline int pattern_is_serial(uint64_t pattern)
{
    return pattern_kind(pattern) == PATTERN_IRREGULAR && pattern & PATTERN_MIXED && pattern & PATTERN_SERIAL;
}

/* The part that all patterns with contrast of one group share. A group may hold accesses of several sizes, and some
 * that reach their address through another register.  ctx: any */
static inline uint64_t pattern_walk(uint64_t pattern)
{
    return pattern & ((UINT64_C(1) << 55) - 1);
}

/* The part that the patterns judged together on one variable share: a compiler that unrolls a loop turns one access
 * into several instructions, and their samples are of the same data. For patterns with a footprint only.  ctx: any */
static inline uint64_t pattern_pool(uint64_t pattern)
{
    enum pattern_kind kind = pattern_kind(pattern);
    return pattern_group(pattern) | (uint64_t)(kind == PATTERN_DERIVED ? PATTERN_STRIDED : kind) << 32;
}

/* A sample's place as it is kept with its offset in the variable: bits 0-41 the offset (all ones: none), 42-45 the slot
 * of its line, 46-63 a hash of the line. Where only bins are kept of many samples, they are the hash's upper bits. */
#define PATTERN_OFFSET_BITS 42
#define PATTERN_NO_OFFSET ((UINT64_C(1) << PATTERN_OFFSET_BITS) - 1)
#define PATTERN_HASH_BITS 14
#define PATTERN_FINE_BITS 18

/* The word for a sample at address.  ctx: any */
static inline uint64_t pattern_place(uint64_t address, uint64_t offset_bytes)
{
    /* multiplied twice, so that neighbouring lines share a bin as often as any others do */
    uint64_t hash = address / PATTERN_LINE_BYTES * 0x9e3779b97f4a7c15u;
    hash = ((hash ^ hash >> 32) * 0xbf58476d1ce4e5b9u) >> (64 - PATTERN_FINE_BITS);
    if (offset_bytes > PATTERN_NO_OFFSET)
        offset_bytes = PATTERN_NO_OFFSET;
    return hash << (64 - PATTERN_FINE_BITS) | (address / 4 % PATTERN_SLOTS) << PATTERN_OFFSET_BITS | offset_bytes;
}
static inline uint64_t pattern_place_offset(uint64_t place)
{
    return place & PATTERN_NO_OFFSET;
}
static inline unsigned pattern_place_slot(uint64_t place)
{
    return (unsigned)(place >> PATTERN_OFFSET_BITS) % PATTERN_SLOTS;
}
static inline unsigned pattern_place_hash(uint64_t place)
{
    return (unsigned)(place >> (64 - PATTERN_HASH_BITS));
}
static inline unsigned pattern_place_fine(uint64_t place)
{
    return (unsigned)(place >> (64 - PATTERN_FINE_BITS));
}

#endif
