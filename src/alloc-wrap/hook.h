/* SPDX-License-Identifier: BSD-3-Clause */
/* What the wrapper files share: the state of the calling thread, the brackets around a real call (what the sink gets
 * before and after it), and the caller's frame. Internal to this folder. Everything here runs inside the program's
 * allocation calls. */
#ifndef LOCUS_ALLOC_WRAP_HOOK_H
#define LOCUS_ALLOC_WRAP_HOOK_H

#include <stddef.h>
#include <stdint.h>

#include "alloc-wrap/alloc-wrap.h"
#include "alloc-wrap/small-sites.h"

/* --- Poisson sampling --- */

/* Poisson sampling of small blocks by bytes: every allocated byte is a trial with the same tiny probability, a block is
 * sampled when one of its bytes hits, and it then stands for 1 / P(hit) blocks, so that sums of weights are unbiased.
 */

/* State of one thread; all zero is valid and seeds itself from the process's random bytes. */
struct sampling {
    uint64_t random;    /* generator state, 0 = not seeded */
    double until_bytes; /* distance to the next hit */
};

/* Seeds with a chosen number (not 0), for repeatable runs; mean_bytes as below.  ctx: hook */
void sampling_seed_hook(struct sampling *sampling, uint64_t seed, double mean_bytes);

/* Decides whether a block of n_bytes is sampled. mean_bytes > 0: mean distance of hits. Returns 0 when the block is not
 * sampled, else the number of blocks it stands for, 1 / (1 - exp(-n_bytes / mean_bytes)) >= 1. Empty blocks are never
 * sampled.
 * ctx: hook   src: inclusion probability of an interval under a homogeneous Poisson process (Horvitz-Thompson) */
double sampling_weight_hook(struct sampling *sampling, double mean_bytes, size_t n_bytes);

/* --- state and brackets --- */

#define ALLOC_EXPORT __attribute__((visibility("default")))
#ifdef __clang__
#define ALLOC_NOINLINE __attribute__((noinline))
#else
#define ALLOC_NOINLINE __attribute__((noinline, noclone))
#endif
#define ALLOC_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* The slow halves of the wrappers assume that their caller's frame is the program's, so the wrapper must have left the
 * stack. */
#ifdef __clang__
#define ALLOC_TAIL __attribute__((musttail))
#else
#define ALLOC_TAIL
#endif

/* What the thread's outermost wrapper is doing while the real function runs. Normally only operator new calls malloc; a
 * malloc inside another malloc is a signal handler's. */
enum alloc_nest { ALLOC_NEST_NONE = 0, ALLOC_NEST_NEW, ALLOC_NEST_ALLOC, ALLOC_NEST_RESIZE, ALLOC_NEST_FREE };

/* State of one thread, in initial-exec TLS (cut from every thread's stack: keep it small). */
struct alloc_thread {
    uint32_t n_guard;                 /* alloc_wrap_guard_enter calls not yet left */
    uint8_t in_hook;                  /* the sink is working */
    uint8_t nest;                     /* enum alloc_nest */
    uint8_t resolving;                /* it is looking up the real functions */
    uintptr_t hook_frame, nest_frame; /* stack pointers where in_hook and nest were set */
    struct sampling sampling;         /* below the threshold */
};
_Static_assert(sizeof(struct alloc_thread) <= 64, "the share of this folder in the TLS budget");

/* One bracketed call of a real function. */
struct alloc_call {
    const struct alloc_sink *sink;
    struct alloc_thread *thread;
    double weight;  /* blocks the result stands for; 0: it is not reported */
    bool recorded;  /* the block given to realloc is a recorded one */
    bool announced; /* inside(true) was called */
    bool is_quick;  /* ... by the sink's short way */
    uint8_t outer;  /* enum alloc_nest of the call around this one */
};

/* State of the calling thread.  ctx: hook */
struct alloc_thread *alloc_thread_hook(void);

/* For a wrapper, at stack pointer here, that finds in_hook or nest set. Either a handler of the program has interrupted
 * the code that set them and calls the wrapper, or that code was left by a jump: then they are cleared and the sink is
 * informed.  ctx: hook */
void alloc_check_left_hook(struct alloc_thread *thread, uintptr_t here);

/* The connected sink or NULL; first finds the real functions if they are not known yet.  ctx: hook */
const struct alloc_sink *alloc_sink_hook(void);

/* Size from which blocks are always reported, bytes.  ctx: hook */
uint64_t alloc_min_bytes_hook(void);

/* Whole number of blocks that a new block of n_bytes stands for, 0 when it is too small and not sampled.  ctx: hook */
double alloc_weight_hook(struct alloc_thread *thread, size_t n_bytes);

/* Before a real allocation of n_bytes. False: only call it and report nothing. True: call it, then alloc_call_end_hook.
 * nest: ALLOC_NEST_NEW or ALLOC_NEST_ALLOC. errno is kept.  ctx: hook */
bool alloc_call_begin_hook(struct alloc_call *call, enum alloc_nest nest, size_t n_bytes);

/* After the real allocation: reports p (NULL: it failed).  ctx: hook */
void alloc_call_end_hook(struct alloc_call *call, void *p, size_t n_bytes, const struct alloc_site *site);

/* The same in one go where nothing is unusual: the block is recorded, the call is in no other one, and the sink has a
 * short way. Returns the sink, to be given to alloc_quick_end_hook after the real call; NULL: nothing was done, and the
 * way above is to be gone.  ctx: hook */
const struct alloc_sink *alloc_quick_begin_hook(enum alloc_nest nest, size_t n_bytes);
void alloc_quick_end_hook(const struct alloc_sink *sink, void *p, size_t n_bytes, const struct alloc_site *site);

/* After an unreported call for n_bytes, below the threshold: notes the site of block p if the sink wants it. p may be
 * NULL. errno is kept.  ctx: hook */
void alloc_small_hook(void *p, size_t n_bytes, const struct alloc_site *site);

/* Before a real free of p. False: only call it (the record, if there was one, is already gone). True: call it, then
 * alloc_release_end_hook.  ctx: hook */
bool alloc_release_begin_hook(struct alloc_call *call, void *p);
void alloc_release_end_hook(struct alloc_call *call);

/* The same for a block that is very likely a recorded one, without anything to be done after the real free. False: the
 * way above is to be gone.  ctx: hook */
bool alloc_release_quick_hook(void *p);

/* Before a real realloc of p (not NULL) to n_bytes (not 0). False: only call it. True: call it, then
 * alloc_resize_end_hook with the result.  ctx: hook */
bool alloc_resize_begin_hook(struct alloc_call *call, void *p, size_t n_bytes);
void alloc_resize_end_hook(struct alloc_call *call, void *old_p, void *new_p, size_t n_bytes,
                           const struct alloc_site *site);

/* Leaves the bracket of a call that an exception or a cancelled thread unwinds; the block was not made.  ctx: hook */
void alloc_call_unwound_hook(void);

/* Brackets work of the sink: errno is kept, and allocations that a signal handler of the program makes meanwhile are
 * only forwarded.  ctx: hook */
int alloc_work_enter_hook(struct alloc_thread *thread);
void alloc_work_leave_hook(struct alloc_thread *thread, int saved_errno);

/* Passes the current limit and filter to the fast paths: when the real functions have become known and when a sink has
 * been connected.  ctx: hook */
void alloc_fast_refresh_hook(void);

/* What the fast paths of a wrapper file read. The pointers lead to static storage or to the sink's. */
struct alloc_fast {
    size_t small_bytes;                /* calls below it are noted by site; 0: none */
    size_t limit_bytes;                /* other calls below it are forwarded at once */
    const struct start_filter *filter; /* blocks that it rules out are freed at once */
    const struct small_sites *sites;
    struct small_region *regions;
};

/* Each wrapper file has its own struct, beside the functions that it forwards to. These functions refresh it and set
 * what is known of the calling thread's stack.  ctx: hook */
void wrap_malloc_set_hook(const struct alloc_fast *to);
void wrap_realloc_set_hook(const struct alloc_fast *to);
void wrap_new_set_hook(const struct alloc_fast *to);
void wrap_malloc_stack_hook(const struct small_stack *known);
void wrap_realloc_stack_hook(const struct small_stack *known);
void wrap_new_stack_hook(const struct small_stack *known);

/* The limits are set in such an order that calls pass only when everything that they need is visible.  ctx: hook */
static inline void alloc_fast_set(struct alloc_fast *fast, const struct alloc_fast *to)
{
    __atomic_store_n(&fast->filter, to->filter, __ATOMIC_RELEASE);
    __atomic_store_n(&fast->sites, to->sites ? to->sites : fast->sites, __ATOMIC_RELEASE);
    __atomic_store_n(&fast->regions, to->regions ? to->regions : fast->regions, __ATOMIC_RELEASE);
    __atomic_store_n(&fast->small_bytes, to->small_bytes, __ATOMIC_RELEASE);
    __atomic_store_n(&fast->limit_bytes, to->limit_bytes, __ATOMIC_RELEASE);
}

/* Sets what is known of a thread's own stack. A handler that interrupts this finds the stack unknown.  ctx: hook */
static inline void alloc_stack_set(struct small_stack *stack, const struct small_stack *known)
{
    if (stack->high == known->high && stack->low <= known->low)
        return;
    __atomic_store_n(&stack->high, 0, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&stack->low, known->low, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&stack->high, known->high, __ATOMIC_RELAXED);
}

/* For a call of n_bytes, below small_bytes, of the enclosing wrapper: returns what to do next, and sets what
 * alloc_small_done needs. SMALL_ASK: ask alloc_small_walk. The wrapper needs no stack frame for this.  ctx: hook */
static inline __attribute__((always_inline)) enum small_next
alloc_small_call(const struct alloc_fast *fast, const struct small_stack *stack, size_t n_bytes, uint64_t *cells)
{
    return small_sites_find(fast->sites, (uintptr_t)__builtin_return_address(0), (uintptr_t)__builtin_dwarf_cfa(),
                            stack, n_bytes, cells);
}

/* The same, also following frame pointers.  ctx: hook */
static inline __attribute__((always_inline)) enum small_next
alloc_small_walk(const struct alloc_fast *fast, const struct small_stack *stack, size_t n_bytes, uint64_t *cells)
{
    const struct alloc_site site = alloc_site_here();
    return small_sites_walk(fast->sites, (struct small_caller){.pc = site.pc, .sp = site.sp, .fp = site.fp}, stack,
                            n_bytes, cells);
}

/* Notes the site of block p (NULL: none), which is known, when p is the first block in its part of the heap; cells:
 * from small_sites_find. Returns p. errno is kept.  ctx: hook */
void *alloc_small_first_hook(void *p, size_t n_bytes, uint64_t cells);

/* Notes the site of the real call's result p and returns p.  ctx: hook */
static inline __attribute__((always_inline)) void *alloc_small_done(const struct alloc_fast *fast, void *p,
                                                                    size_t n_bytes, uint64_t cells)
{
    if (__builtin_expect(!small_sites_note(fast->regions, p, n_bytes, cells), 0))
        return alloc_small_first_hook(p, n_bytes, cells);
    return p;
}

#endif
