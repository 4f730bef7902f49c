/* SPDX-License-Identifier: BSD-3-Clause */
/* Where threads meet: whether several of them use one cache line at the same time, and the same bytes of it. Each
 * thread posts what its samples touch on a board that all see. Now and then it takes from there a line that another
 * thread on another processor has just used, and lets its own watchpoints (runtime/events/watch-sig.c) watch the
 * other's bytes and further ones of that line, for a few milliseconds, once each. They have met when a watchpoint saw
 * an access and, in the same milliseconds and on another processor, the other has posted the line again: what it did
 * before may be over. So a thread touches only its own events, and nobody waits. Only where the user asked for it
 * (arena_header.watches_per_s). */
#ifndef LOCUS_RUNTIME_RECORD_MEETING_H
#define LOCUS_RUNTIME_RECORD_MEETING_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#define MEETING_WATCHES 2 /* of the four that a thread can have on x86: a debugger and the program want some too */
#define MEETING_RECENT 16

struct thread_state;

/* A sampled access. */
struct meeting_use {
    uint64_t address, var, t_ns; /* t_ns: CLOCK_MONOTONIC */
    uint32_t thread, leaf;       /* references */
    uint16_t cpu;
    uint8_t accesses; /* REACH_*, 0: not known */
    uint8_t bytes;    /* size, 0: not known */
};

/* Bytes that are watched. */
struct meeting_watch {
    uint64_t address; /* a multiple of bytes */
    uint8_t bytes;    /* 1, 2, 4 or 8 */
    bool is_same;     /* the other thread's */
    bool is_of_stores;
};

/* The access that a watchpoint has seen. */
struct meeting_trap {
    uint64_t var;
    uint32_t leaf; /* 0: none */
    uint16_t cpu;
};

/* A thread's part. */
struct thread_meetings {
    struct meeting_use recent[MEETING_RECENT]; /* what it used lately */
    uint32_t n_recent;
    uint32_t turn;             /* where it begins to look at the board */
    struct meeting_use target; /* what is being watched for */
    struct meeting_watch watches[MEETING_WATCHES];
    struct meeting_trap traps[MEETING_WATCHES]; /* of this watch, as the two below */
    volatile bool has_trapped, has_come; /* a watchpoint saw an access; the other has posted the line again ... */
    uint16_t come_cpu;                   /* ... from this processor */
    uint64_t n_before;                   /* samples of the other when it began */
    bool is_watching;
    uint64_t start_ns, begin_ns; /* CLOCK_MONOTONIC: when this watch began; when the next one may begin */
};

/* Posts a sample of self that was just taken. Its t_ns and thread are filled in.  ctx: signal handler of self */
void meeting_post_sig(struct thread_state *self, const struct meeting_use *use);

/* Chooses what to watch from now on, if there is something and it is time; true: it is in watches.
 * ctx: signal handler of self */
bool meeting_begin_sig(struct thread_state *self, uint64_t now_ns);

/* A watchpoint has seen an access of the interrupted code.  ctx: signal handler of self */
void meeting_take_sig(struct thread_state *self, unsigned watch, const ucontext_t *context);

/* Looks whether the other has come again; true: the watch is over.  ctx: signal handler of self */
bool meeting_is_over_sig(struct thread_state *self, uint64_t now_ns);

/* The watch is over: records what it has found.  ctx: signal handler of self */
void meeting_end_sig(struct thread_state *self);

/* In a child of fork: nobody has used anything yet.  ctx: ordinary, single-threaded */
void meeting_fork_child_sig(void);

#endif
