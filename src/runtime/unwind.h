/* SPDX-License-Identifier: BSD-3-Clause */
/* Table unwinder: from the registers of an interrupted or calling frame to the full call path, reading only the stack
 * of this thread (inside known bounds) and mapped module tables. No lock, no allocation, no libc. */
#ifndef LOCUS_RUNTIME_UNWIND_H
#define LOCUS_RUNTIME_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fnbounds/modtab.h"

#define UNWIND_FRAMES_MAX 1024

/* Registers that a walk can start with, by DWARF number (but the link register of POWER, which is 65 there). */
#if defined(__aarch64__)
enum { UNWIND_FP = 29, UNWIND_LR = 30, UNWIND_SP = 31, UNWIND_REGISTERS = 32 };
#elif defined(__powerpc64__)
enum { UNWIND_SP = 1, UNWIND_FP = 31, UNWIND_LR = 32, UNWIND_REGISTERS = 33 };
#elif defined(__s390x__)
enum { UNWIND_FP = 11, UNWIND_LR = 14, UNWIND_SP = 15, UNWIND_REGISTERS = 16 };
#else
enum { UNWIND_FP = 6, UNWIND_SP = 7, UNWIND_REGISTERS = 16 };
#endif

/* A module as the unwinder sees it; filled by the load map (loadmap.h). */
struct unwind_module {
    uintptr_t start, end; /* run-time range of the mapping */
    uintptr_t bias;
    const struct modtab_header *_Atomic table; /* NULL while unknown */
    _Atomic uint32_t ref;                      /* arena reference of its arena_module, 0 while it has none */
};

/* Finds the module of a code address; NULL when no module holds it.  ctx: signal handler */
typedef const struct unwind_module *(*unwind_find_module)(uintptr_t pc);

/* Registers at the start: for a sample those of the ucontext, for a wrapper those of the caller's frame.
 * gpr by DWARF number (x86-64: rax rdx rcx rbx rsi rdi rbp rsp r8-r15); known: bit i set when gpr[i] is valid. */
struct unwind_start {
    uint64_t gpr[UNWIND_REGISTERS];
    uint64_t known;
    uintptr_t pc;
    bool is_interrupted; /* pc is an interrupted instruction (look it up as is); false: a return address (pc - 1) */
};

struct unwind_bounds {
    uintptr_t low, high;         /* the thread's stack */
    uintptr_t alt_low, alt_high; /* alternate signal stack or another recorded block holding sp; 0 when none */
};

/* One frame, innermost first. */
struct unwind_frame {
    uintptr_t pc;  /* interrupted pc, or return address */
    uintptr_t cfa; /* canonical frame address of this frame; 0 when not known (last frame of a partial path) */
    const struct unwind_module *module; /* NULL: outside all modules */
    uint32_t node;  /* free for the caller: the call-tree node of this frame; kept over calls for the reused part */
    uint32_t flags; /* UNWIND_FRAME_INTERRUPTED when pc is not a return address */
};
#define UNWIND_FRAME_INTERRUPTED 1u
#define UNWIND_FRAME_SIGNAL 2u /* the trampoline of a signal handler; its cfa is the interrupted stack pointer */
/* The other bits say what the frames from here outwards rest on; they belong to the unwinder. */
#define UNWIND_FRAME_NEEDS_RBP 4u /* the value of rbp in this frame */
#define UNWIND_FRAME_NEEDS_RBX 8u
#define UNWIND_FRAME_NEEDS_LIVE 16u /* other registers: never taken over */
#define UNWIND_FRAME_LOADS_RBP 32u  /* the stack slot from which the caller's rbp came */
#define UNWIND_FRAME_LOADS_RBX 64u
#define UNWIND_FRAME_LOADS_CFA 128u
#define UNWIND_FRAME_ENDS_IN_ZERO 256u /* outermost because its return address is 0 */

/* Registers of one frame and where its caller's were read, for the check whether a path still holds. The slots are
 * relative to the frame's cfa. */
struct unwind_regs {
    uint64_t rbp, rbx;
    int32_t rbp_slot, rbx_slot, cfa_slot;
    int32_t cfa_extra; /* cfa = *(cfa + cfa_slot) + cfa_extra */
};

enum unwind_stop {
    UNWIND_COMPLETE = 0,  /* outermost frame reached: main thread's _start or a thread's clone */
    UNWIND_NO_MODULE,     /* pc in no module */
    UNWIND_NO_TABLE,      /* module without table, and the frame pointer did not validate */
    UNWIND_GAP,           /* no rule for this pc, and no leaf guess validated */
    UNWIND_BAD_ROW,       /* rule not representable */
    UNWIND_BAD_STACK,     /* the next frame would lie outside the stack bounds */
    UNWIND_BAD_CALLER,    /* the return address does not follow a call in known code */
    UNWIND_TOO_DEEP,      /* more than UNWIND_FRAMES_MAX frames */
    UNWIND_LOST_REGISTER, /* the rule needs a register that could not be restored */
    UNWIND_STOPS
};

/* Name of a stop reason, never NULL. */
const char *unwind_stop_name(enum unwind_stop stop);

/* A path with memory: frames[0..n_frames) of the last call, kept so that the next call on the same thread only walks
 * what changed (a frame with equal cfa and pc whose callers' return-address slots all still hold the same values).
 * One per thread and purpose (handler, hooks); all zero is empty. */
struct unwind_path {
    uint32_t n_frames;
    uint32_t n_reused;           /* out: how many outermost frames were taken over from the previous path, node kept */
    uint32_t stop;               /* enum unwind_stop */
    uint32_t generation;         /* load-map generation of the frames; changed: nothing is reused */
    uint32_t first_plain;        /* frames inside of this one came before a signal frame: walked anew each time */
    uintptr_t start_sp;          /* stack pointer of frames[0] */
    struct unwind_frame *frames; /* [n_frames] innermost first; points into store, every walk sets it */
    struct unwind_frame store[UNWIND_FRAMES_MAX]; /* the path and, beside it, room for the next one */
    struct unwind_regs regs[UNWIND_FRAMES_MAX];   /* the unwinder's, parallel to store */
};

/* Per-process cache pc -> row, direct-mapped; static storage inside unwind-cache-sig.c; invalidated by generation:
 * the caller must give a new one whenever a module comes, goes or gets its table. */

/* Walks from *start and updates *path. generation: current load-map generation. The outermost n_reused frames keep
 * their node, those of the others are 0. The frame at the start is always there; a caller that does not validate is
 * not. Returns the stop reason (also in path->stop).
 * ctx: signal handler and hooks; uses <= 1 KiB of stack */
enum unwind_stop unwind_walk_sig(const struct unwind_start *start, const struct unwind_bounds *bounds,
                                 unwind_find_module find, uint32_t generation, struct unwind_path *path);

/* Stack that the sampling handler may take with this walker, below the kernel's frame; tests/meta/stack.py compares.
 * ctx: any */
size_t unwind_handler_bytes_sig(void);

/* The way from a frame to its caller, where it is the same each time the frame is at one return address: the canonical
 * frame address is base + cfa_offset, the return address lies below it, the caller's frame pointer is unchanged or lies
 * at the canonical frame address + fp_offset. */
struct unwind_hop {
    int32_t cfa_offset;
    int16_t fp_offset;
    bool is_from_fp; /* the base: frame pointer, else stack pointer */
    bool has_fp;     /* the frame pointer was saved */
};

/* The hop for return address pc; false when there is none that simple.  ctx: signal handler and hooks */
bool unwind_hop_sig(uintptr_t pc, unwind_find_module find, uint32_t generation, struct unwind_hop *hop);

#endif
