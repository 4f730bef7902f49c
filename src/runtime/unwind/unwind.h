/* SPDX-License-Identifier: BSD-3-Clause */
/* Table unwinder: from the registers of an interrupted or calling frame to the full call path. It reads only the stack
 * of this thread (inside known bounds) and mapped module tables. No lock, no allocation, no libc.
 *
 * The room: unwind-sig.c (unwind-link-sig.c where calls leave the return address in a register, unwind-libunwind-sig.c
 * where there is no walker of ours) is the walker and may call unwind-cache-sig.c. */
#ifndef LOCUS_RUNTIME_UNWIND_UNWIND_H
#define LOCUS_RUNTIME_UNWIND_UNWIND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "fnbounds/modtab.h"
#include "runtime/own/arch.h"

#define UNWIND_FRAMES_MAX 1024

/* A module as the unwinder sees it; filled by the load map (loadmap.h). */
struct unwind_module {
    uintptr_t start, end; /* run-time range of the mapping */
    uintptr_t bias;
    const struct modtab_header *_Atomic table; /* NULL while unknown */
    _Atomic uint32_t ref;                      /* arena reference of its arena_module, 0 while it has none */
};

/* Finds the module of a code address; NULL when no module holds it.  ctx: signal handler */
typedef const struct unwind_module *(*unwind_find_module)(uintptr_t pc);

struct unwind_bounds {
    uintptr_t low, high;         /* the thread's stack */
    uintptr_t alt_low, alt_high; /* alternate signal stack or another recorded block holding sp; 0 when none */
};

/* One frame, innermost first. */
struct unwind_frame {
    uintptr_t pc;  /* interrupted pc, or return address */
    uintptr_t cfa; /* canonical frame address of this frame; 0 when not known (last frame of a partial path) */
    const struct unwind_module *module; /* NULL: outside all modules */
    uint32_t node;  /* for the caller: the call-tree node of this frame; kept from call to call for the reused part */
    uint32_t flags; /* UNWIND_FRAME_INTERRUPTED when pc is not a return address */
};
#define UNWIND_FRAME_INTERRUPTED 1u
#define UNWIND_FRAME_SIGNAL 2u /* the trampoline of a signal handler; its cfa is the interrupted stack pointer */
/* The other bits say what the frames from here outwards depend on; they belong to the unwinder. */
#define UNWIND_FRAME_NEEDS_RBP 4u /* the value of rbp in this frame */
#define UNWIND_FRAME_NEEDS_RBX 8u
#define UNWIND_FRAME_NEEDS_LIVE 16u /* other registers: such frames are never reused */
#define UNWIND_FRAME_LOADS_RBP 32u  /* the stack slot from which the caller's rbp came */
#define UNWIND_FRAME_LOADS_RBX 64u
#define UNWIND_FRAME_LOADS_CFA 128u
#define UNWIND_FRAME_ENDS_IN_ZERO 256u /* outermost because its return address is 0 */

/* Registers of one frame and where its caller's were read, to check whether a path is unchanged. The slots are relative
 * to the frame's cfa. */
struct unwind_regs {
    uint64_t rbp, rbx;
    int32_t rbp_slot, rbx_slot, cfa_slot;
    int32_t cfa_extra; /* cfa = *(cfa + cfa_slot) + cfa_extra */
};

enum unwind_stop {
    UNWIND_COMPLETE = 0,  /* outermost frame reached: main thread's _start or a thread's clone */
    UNWIND_NO_MODULE,     /* pc in no module */
    UNWIND_NO_TABLE,      /* module without a table, and the frame pointer could not be validated */
    UNWIND_GAP,           /* no rule for this pc, and no guess at a leaf could be validated */
    UNWIND_BAD_ROW,       /* rule not representable */
    UNWIND_BAD_STACK,     /* the next frame would lie outside the stack bounds */
    UNWIND_BAD_CALLER,    /* the return address does not follow a call in known code */
    UNWIND_TOO_DEEP,      /* more than UNWIND_FRAMES_MAX frames */
    UNWIND_LOST_REGISTER, /* the rule needs a register that could not be restored */
    UNWIND_STOPS
};

/* A path that is kept: frames[0..n_frames) of the last call, so that the next call on the same thread only walks what
 * has changed. It stops at a frame with the same cfa and pc as before, if the return-address slots of all its callers
 * are unchanged. One per thread and purpose (handler, hooks); all zero means empty. */
struct unwind_path {
    uint32_t n_frames;
    uint32_t n_reused;           /* out: how many outermost frames, with their node, were reused from the last path */
    uint32_t stop;               /* enum unwind_stop */
    uint32_t generation;         /* load-map generation of the frames; changed: nothing is reused */
    uint32_t n_cut;              /* for the caller: so many outermost frames are no part of its path in a tree */
    uint32_t first_plain;        /* frames before this one lie inside a signal frame and are always walked anew */
    uintptr_t start_sp;          /* stack pointer of frames[0] */
    struct unwind_frame *frames; /* [n_frames] innermost first; points into store, every walk sets it */
    struct unwind_frame store[UNWIND_FRAMES_MAX]; /* the path and, before or after it, room for the next one */
    struct unwind_regs regs[UNWIND_FRAMES_MAX];   /* the unwinder's, parallel to store */
};

/* Per-process cache pc -> row, direct-mapped; static storage inside unwind-cache-sig.c; invalidated by generation:
 * the caller must give a new one whenever a module comes, goes or gets its table. */

/* Walks from *start and updates *path. generation: current load-map generation. The outermost n_reused frames keep
 * their node, those of the others are 0. The path always has the frame at the start; a caller that cannot be validated
 * is left out. Returns the stop reason (also in path->stop).
 * ctx: signal handler and hooks; uses <= 1 KiB of stack */
enum unwind_stop unwind_walk_sig(const struct unwind_start *start, const struct unwind_bounds *bounds,
                                 unwind_find_module find, uint32_t generation, struct unwind_path *path);

/* Whether the last path that was walked into *path is still the path of a call that returns to pc, with the stack
 * pointer at sp and the frame pointer fp after it: no stack word that it depends on has changed. If so, *path is as a
 * walk would leave it, n_reused == n_frames. False is no certain answer; walk then.  ctx: signal handler and hooks */
bool unwind_is_same_sig(uintptr_t pc, uintptr_t sp, uintptr_t fp, const struct unwind_bounds *bounds,
                        uint32_t generation, struct unwind_path *path);

/* Stack that the sampling handler may take with this walker, below the kernel's frame; tests/meta/stack.py compares.
 * ctx: any */
size_t unwind_handler_bytes_sig(void);

/* A hop: how to get from a frame to its caller, where that is the same each time the frame is at one return address.
 * The canonical frame address is base + cfa_offset, the return address lies below it, and the caller's frame pointer is
 * unchanged or lies at the canonical frame address + fp_offset. */
struct unwind_hop {
    int32_t cfa_offset;
    int16_t fp_offset;
    bool is_from_fp; /* the base: frame pointer, else stack pointer */
    bool has_fp;     /* the frame pointer was saved */
};

/* The hop for return address pc; false when there is none that simple.  ctx: signal handler and hooks */
bool unwind_hop_sig(uintptr_t pc, unwind_find_module find, uint32_t generation, struct unwind_hop *hop);

/* --- private part: state of a walk, rule of one pc, cache of rules --- */

enum { UNWIND_RBX = 3, UNWIND_RBP = 6, UNWIND_RSP = 7 };

/* Kinds after those of enum modtab_row_kind, for code without a table. Never cached. */
enum { UNWIND_KIND_NO_TABLE = 64, UNWIND_KIND_NO_MODULE };

/* What is known of one pc: the fields of its row, its module, and whether it is the last byte of a call. */
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

/* The one slot in which the rule of pc may be.  ctx: any */
static inline uint64_t unwind_slot_index(uintptr_t pc)
{
    return (pc * 0x9e3779b97f4a7c15u) >> 51;
}
_Static_assert(UNWIND_CACHE_SLOTS == 1 << (64 - 51), "index bits");

/* Reads the rule of pc from its slot; false when it is not there.  ctx: signal handler, wait-free */
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

/* Where registers other than rsp, rbp and rbx can be read. */
enum unwind_live { UNWIND_LIVE_NONE, UNWIND_LIVE_START, UNWIND_LIVE_CONTEXT };

/* The current frame of a walk. */
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

/* Reads a word of the stack; false when it lies outside the bounds.  ctx: signal handler */
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

#endif
