/* SPDX-License-Identifier: BSD-3-Clause */
/* Taking one sample: from the overflow signal to the records in the arena.
 *
 * The room: sample-sig.c may call all others, for one sample after the other: sample-path-sig.c (its call path;
 * loadmap-sig.c and the unwinder), resolve-sig.c (its variable), cct-sig.c (the trees), trace-sig.c and meeting-sig.c;
 * they write through arena-writer-sig.c. ring-sig.c reads the kernel's records, governor-sig.c says how often,
 * python-*.c has frames of Python, thread-sig.c the thread's state. */
#ifndef LOCUS_RUNTIME_RECORD_SAMPLE_H
#define LOCUS_RUNTIME_RECORD_SAMPLE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "fnbounds/recipe.h"
#include "runtime/own/arch.h"
#include "runtime/own/own-call.h"
#include "runtime/record/ring.h"
#include "runtime/record/thread.h"

/* What the event says about the sample. */
struct sample_event {
    uint8_t index;        /* into arena_header.events */
    bool has_access;      /* the sample's record was found */
    uint64_t weight;      /* in the event's unit; for a fixed period, how many more periods the sample stands for */
    uint64_t t_ns;        /* CLOCK_MONOTONIC when the handler was entered, 0: not known */
    uint64_t earlier_var; /* the variable that was at the address at the access, if that has changed; else 0 */
    struct access access;
};

/* Records one sample of the interrupted context; its fate is always counted.  ctx: signal handler of self */
void sample_take_sig(struct thread_state *self, const struct sample_event *event, const ucontext_t *context);

/* Records a sample from its record alone (large buffers), also when sampling has been stopped since.
 * ctx: signal handler of self, or its ordinary code with tree_busy set */
void sample_take_plain_sig(struct thread_state *self, const struct sample_event *event);

/* What a call of the program has waited, or moved to or from a file. */
struct sample_call {
    uint8_t event;                    /* into arena_header.events */
    uint64_t weight;                  /* in the event's unit: ns, or bytes */
    uint64_t var;                     /* the file's variable key; 0: none */
    uintptr_t function;               /* that was called: the leaf; 0: not known */
    const struct unwind_start *start; /* what called it; NULL: the leaf lies directly below the thread's root */
};

/* Records a call. The path is walked into self->wait_path, or sample_path where there is Python.  ctx: ordinary code of
 * self with tree_busy set, or of who ends self */
void sample_take_call_sig(struct thread_state *self, const struct sample_call *call);

/* What self has been without a processor and is not recorded as waits, ns: in page faults, where others had the
 * processor, and in system calls that nobody brackets. cpu_ns: its CPU time.  ctx: any */
uint64_t sample_rest_sig(const struct thread_state *self, uint64_t cpu_ns);

/* Looks at the thread, where waits are wanted: what it waits for from now on is told from what it did before.
 * ctx: any code of self */
void sample_look_sig(struct thread_state *self);

/* A page has come from a disk. If the thread has left its processor just once since it was looked at, that is what it
 * waited for.  ctx: signal handler of self */
void sample_take_page_in_sig(struct thread_state *self, const ucontext_t *context);

/* Counts a sample that is not recorded.  ctx: as sample_take_plain_sig */
void sample_drop_sig(struct thread_state *self, unsigned event, enum fate fate);

/* Counts samples that were taken and have no fate yet as dropped: the code that was about to decide will never go on.
 * ctx: the thread that ends self */
void sample_forget_pending_sig(struct thread_state *self);

/* Tries to attribute pending samples. final: those that still cannot be are dropped and counted.
 * ctx: signal handler of self, or its ordinary code with tree_busy set */
void sample_resolve_pending_sig(struct thread_state *self, bool final);

/* True when a pending sample has its address and only waits for its object.  ctx: any, thread of self */
bool sample_has_parked_sig(const struct thread_state *self);

/* The same only for samples that have their address and wait for its object. Called at the end of every recorded
 * allocation, so it skips samples that wait for the companion.  ctx: as sample_resolve_pending_sig */
void sample_resolve_parked_sig(struct thread_state *self);

/* Sampling of the whole process, set by the public API.  ctx: any */
void sample_set_active_sig(bool active);
bool sample_is_active_sig(void);
/* Whether the owner has paused it from outside, which changes nothing of that.  ctx: any, once there is an arena */
bool sample_is_paused_sig(void);

/* --- recipes of addresses --- */

/* How the handler finds recipes: by pc, through a cache; it asks for missing ones. */

enum recipes_result {
    RECIPES_FOUND = 0,
    RECIPES_LATER, /* asked for; try again */
    RECIPES_NEVER  /* pc lies in no analysable function, or is no instruction boundary */
};

/* Maps the companion's store from its memory file; fd -1: there is no store, and every answer is NEVER.
 * ctx: ordinary, at start */
void recipes_map_store_sig(int fd, uint64_t n_bytes);

/* In a child of fork: requests of the parent may never be answered, so the child asks again.  ctx: ordinary */
void recipes_fork_child_sig(void);

/* --- from an address to its variable (resolve-sig.c) --- */

/* From a data address to the variable that holds it. Looked for in this order: impossible addresses, thread-local
 * storage, recorded blocks and mappings, statics, stacks; the rest is unknown for a stated reason. */

enum resolve_result {
    RESOLVE_NAMED = 0, /* in a known variable */
    RESOLVE_UNKNOWN,   /* in none: the key has kind VAR_UNKNOWN and the reason */
    RESOLVE_LATER,     /* its module's table has not arrived yet, or its block is being resized */
    RESOLVE_OWN        /* the profiler's own arena */
};

#define RESOLVE_NO_OFFSET UINT64_MAX

struct resolved {
    uint64_t var;    /* key */
    uint64_t offset; /* bytes from the start of the block or symbol; in the thread's own stack, bytes from the frame's
                      * CFA down to the address; RESOLVE_NO_OFFSET: none or not known */
    uintptr_t start, end; /* of the block or symbol; 0: not known */
};

/* Fills *found for address. frames: [n_frames] of the sample, innermost first, for own-stack addresses.
 * ctx: signal handler of self's thread, or its ordinary code with tree_busy set */
enum resolve_result resolve_address_sig(const struct thread_state *self, uintptr_t address,
                                        const struct thread_frame *frames, unsigned n_frames, struct resolved *found);

/* Finds the mapping that was there at address when the runtime came into a running program; false in any other case.
 * ctx: any */
bool late_find_sig(uintptr_t address, struct resolved *found);

#endif
