/* SPDX-License-Identifier: BSD-3-Clause */
/* What the wrapper files share: the state of the calling thread, the brackets around a real call (who is told what
 * before and after it), and the caller's frame. Internal to this folder. Everything here runs inside the program's
 * allocation calls. */
#ifndef LOCUS_ALLOC_WRAP_HOOK_H
#define LOCUS_ALLOC_WRAP_HOOK_H

#include <stddef.h>
#include <stdint.h>

#include "alloc-wrap/alloc-wrap.h"
#include "alloc-wrap/small-sites.h"

/* --- Poisson sampling --- */

/* Poisson sampling of small blocks by bytes: every allocated byte is a trial of the same tiny probability, a block is
 * taken when one of its bytes hits, and stands for 1 / P(hit) blocks, which makes sums of weights unbiased. */

/* State of one thread; all zero is valid and seeds itself from the process's random bytes. */
struct sampling {
    uint64_t random;    /* generator state, 0 = not seeded */
    double until_bytes; /* distance to the next hit */
};

/* Seeds with a chosen number (not 0), for repeatable runs; mean_bytes as below.  ctx: hook */
void sampling_seed_hook(struct sampling *sampling, uint64_t seed, double mean_bytes);

/* Passes a block of n_bytes. mean_bytes > 0: mean distance of hits. Returns 0 when the block is not taken, else the
 * number of blocks it stands for, 1 / (1 - exp(-n_bytes / mean_bytes)) >= 1. Empty blocks are never taken.
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

/* The slow halves of the wrappers take their caller's frame for the program's: the wrapper must have left the stack. */
#ifdef __clang__
#define ALLOC_TAIL __attribute__((musttail))
#else
#define ALLOC_TAIL
#endif

/* What the thread's outermost wrapper is doing while the real function runs. Only operator new calls malloc in the
 * ordinary course of things; in a malloc, another one is a signal handler's. */
enum alloc_nest { ALLOC_NEST_NONE = 0, ALLOC_NEST_NEW, ALLOC_NEST_ALLOC, ALLOC_NEST_RESIZE, ALLOC_NEST_FREE };

/* State of one thread, in initial-exec TLS (cut from every thread's stack: keep it small). */
struct alloc_thread {
    uint32_t n_guard;                 /* alloc_wrap_guard_enter calls not yet left */
    uint8_t in_hook;                  /* the sink is working */
    uint8_t nest;                     /* enum alloc_nest */
    uint8_t resolving;                /* the real functions are being looked up */
    uintptr_t hook_frame, nest_frame; /* stack pointers of who set in_hook, nest */
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
    uint8_t outer;  /* enum alloc_nest of the call around this one */
};

/* Frame of the function that called the enclosing function. Needs no frame pointers elsewhere: asking for the own
 * frame address gives this function one. */
static inline __attribute__((always_inline)) struct alloc_site alloc_site_here(void)
{
    const uintptr_t *frame = __builtin_frame_address(0);
    struct alloc_site site = {.pc = (uintptr_t)__builtin_return_address(0), .fp = frame[0]};
#ifdef __x86_64__
    site.sp = (uintptr_t)(frame + 2);
#else
    site.sp = (uintptr_t)__builtin_dwarf_cfa();
#endif
    return site;
}

/* State of the calling thread.  ctx: hook */
struct alloc_thread *alloc_thread_hook(void);

/* For a wrapper, at stack pointer here, that finds in_hook or nest set. Either it is called on top of what set them, by
 * a handler of the program; or that was left by a jump, whereupon they are cleared and the sink is told.  ctx: hook */
void alloc_look_back_hook(struct alloc_thread *thread, uintptr_t here);

/* The connected sink or NULL; finds the real functions first when that was not done.  ctx: hook */
const struct alloc_sink *alloc_sink_hook(void);

/* Smallest block that is reported in any case, bytes.  ctx: hook */
uint64_t alloc_min_bytes_hook(void);

/* Whole number of blocks that a new block of n_bytes stands for, 0 when it is too small and not sampled.  ctx: hook */
double alloc_weight_hook(struct alloc_thread *thread, size_t n_bytes);

/* Before a real allocation of n_bytes. False: call it plainly and report nothing. True: call it, then
 * alloc_call_end_hook. nest: ALLOC_NEST_NEW or ALLOC_NEST_ALLOC. errno is kept.  ctx: hook */
bool alloc_call_begin_hook(struct alloc_call *call, enum alloc_nest nest, size_t n_bytes);

/* After it: reports p (NULL: it failed).  ctx: hook */
void alloc_call_end_hook(struct alloc_call *call, void *p, size_t n_bytes, const struct alloc_site *site);

/* After a plain call for n_bytes, below the threshold: notes where the block p comes from, if the sink wants to know. p
 * may be NULL. errno is kept.  ctx: hook */
void alloc_small_hook(void *p, size_t n_bytes, const struct alloc_site *site);

/* Before a real free of p. False: call it plainly (the record, if there was one, is gone already). True: call it, then
 * alloc_release_end_hook.  ctx: hook */
bool alloc_release_begin_hook(struct alloc_call *call, void *p);
void alloc_release_end_hook(struct alloc_call *call);

/* Before a real realloc of p (not NULL) to n_bytes (not 0). False: call it plainly. True: call it, then
 * alloc_resize_end_hook with the result.  ctx: hook */
bool alloc_resize_begin_hook(struct alloc_call *call, void *p, size_t n_bytes);
void alloc_resize_end_hook(struct alloc_call *call, void *old_p, void *new_p, size_t n_bytes,
                           const struct alloc_site *site);

/* Leaves the bracket of a call that an exception or a cancelled thread unwinds; the block was not made.  ctx: hook */
void alloc_call_unwound_hook(void);

/* Brackets work of the sink: errno is kept over it and allocations made meanwhile (by a signal handler of the program)
 * are forwarded.  ctx: hook */
int alloc_work_enter_hook(struct alloc_thread *thread);
void alloc_work_leave_hook(struct alloc_thread *thread, int saved_errno);

/* Hands the current limit and filter to the fast paths: after the real functions became known and after a sink was
 * connected.  ctx: hook */
void alloc_fast_refresh_hook(void);

/* What the fast paths of a wrapper file go by; what the pointers name is static storage or the sink's. */
struct alloc_fast {
    size_t small_bytes;                /* calls below it are noted by their sites; 0: none */
    size_t limit_bytes;                /* other calls below it are forwarded at once */
    const struct start_filter *filter; /* blocks that it does not know are freed at once */
    const struct small_sites *sites;
    struct small_region *regions;
};

/* Each wrapper file keeps its own, beside the functions that it forwards to; these refresh it, and tell it of the
 * calling thread's stack.  ctx: hook */
void wrap_malloc_set_hook(const struct alloc_fast *to);
void wrap_realloc_set_hook(const struct alloc_fast *to);
void wrap_new_set_hook(const struct alloc_fast *to);
void wrap_malloc_stack_hook(const struct small_stack *known);
void wrap_realloc_stack_hook(const struct small_stack *known);
void wrap_new_stack_hook(const struct small_stack *known);

/* The limits let calls through only when all that these then need can be seen.  ctx: hook */
static inline void alloc_fast_set(struct alloc_fast *fast, const struct alloc_fast *to)
{
    __atomic_store_n(&fast->filter, to->filter, __ATOMIC_RELEASE);
    __atomic_store_n(&fast->sites, to->sites ? to->sites : fast->sites, __ATOMIC_RELEASE);
    __atomic_store_n(&fast->regions, to->regions ? to->regions : fast->regions, __ATOMIC_RELEASE);
    __atomic_store_n(&fast->small_bytes, to->small_bytes, __ATOMIC_RELEASE);
    __atomic_store_n(&fast->limit_bytes, to->limit_bytes, __ATOMIC_RELEASE);
}

/* For a thread's own stack. A handler that comes in between finds nothing known.  ctx: hook */
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

/* A call of n_bytes, below small_bytes, of the wrapper that this is used in: what comes next, and what alloc_small_done
 * needs of it. SMALL_ASK: ask alloc_small_walk. The wrapper keeps no frame for this.  ctx: hook */
static inline __attribute__((always_inline)) enum small_next
alloc_small_call(const struct alloc_fast *fast, const struct small_stack *stack, size_t n_bytes, uint64_t *four)
{
    return small_sites_find(fast->sites, (uintptr_t)__builtin_return_address(0), (uintptr_t)__builtin_dwarf_cfa(),
                            stack, n_bytes, four);
}

/* The same by way of frame pointers as well.  ctx: hook */
static inline __attribute__((always_inline)) enum small_next
alloc_small_walk(const struct alloc_fast *fast, const struct small_stack *stack, size_t n_bytes, uint64_t *four)
{
    const struct alloc_site site = alloc_site_here();
    return small_sites_walk(fast->sites, (struct small_caller){.pc = site.pc, .sp = site.sp, .fp = site.fp}, stack,
                            n_bytes, four);
}

/* Notes it for a block p (NULL: none) of a known site that is the first one in its part of the heap; four: as of
 * small_sites_find. Returns p. errno is kept.  ctx: hook */
void *alloc_small_first_hook(void *p, size_t n_bytes, uint64_t four);

/* Notes the site of the real call's result p, which it returns.  ctx: hook */
static inline __attribute__((always_inline)) void *alloc_small_done(const struct alloc_fast *fast, void *p,
                                                                    size_t n_bytes, uint64_t four)
{
    if (__builtin_expect(!small_sites_note(fast->regions, p, n_bytes, four), 0))
        return alloc_small_first_hook(p, n_bytes, four);
    return p;
}

#endif
