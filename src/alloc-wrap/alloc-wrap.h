/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocation wrappers: the malloc family, operator new and delete, mmap and shm, forwarded to the program's own
 * allocator and reported upwards. This folder knows no object map, no call tree and no arena: it passes events to the
 * sink that it was given, and works without one (it then only forwards calls), so that it can be tested alone.
 *
 * The room: wrap-malloc-hook.c and wrap-mmap-hook.c are what the program calls, annotate-hook.c what its pools call.
 * They call scope-hook.c (the sink, brackets around real calls) and real-hook.c (the real functions, found by
 * real-next-hook.c, or real-static-hook.c in a static program), never each other. */
#ifndef LOCUS_ALLOC_WRAP_H
#define LOCUS_ALLOC_WRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct small_sites;
struct start_filter;

enum alloc_kind {
    ALLOC_HEAP = 0,
    ALLOC_MMAP = 1,
    ALLOC_FILE = 2,
    ALLOC_SHM = 3,
    ALLOC_BRK = 4,
    ALLOC_POOL = 5 /* a block that a pool of the program hands out of a larger one */
};

/* Why an allocation was not reported; counted. */
enum alloc_skip { ALLOC_SKIP_SMALL = 0, ALLOC_SKIP_NESTED, ALLOC_SKIP_EARLY, ALLOC_SKIP_REENTERED, ALLOC_SKIPS };

/* Where the wrapper was called from: state of the caller's frame right after the wrapper's return. */
struct alloc_site {
    uintptr_t pc; /* return address of the wrapper */
    uintptr_t sp; /* stack pointer in the caller after the return (CFA of the wrapper) */
    uintptr_t fp; /* caller's rbp */
};

/* Frame of the function that called the enclosing function. The rest of the program needs no frame pointers:
 * __builtin_frame_address makes the compiler give this function one. */
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

/* Receiver of the events. All functions run in the calling thread, inside the program's allocation call, with errno
 * free to change (the wrapper restores it). They must not allocate with malloc and must not print.  ctx: hook */
struct alloc_sink {
    /* Whether recording is possible on this thread now (false: child of raw clone, profiler not started, our own code).
     */
    bool (*ready)(void);
    /* A block [p, p + n_bytes) now exists; called after the real allocation returned. weight: the number of blocks it
     * stands for, a whole number (1; below the threshold, in expectation the inverse of the sampling probability). */
    void (*alloc)(enum alloc_kind kind, void *p, size_t n_bytes, double weight, const struct alloc_site *site);
    /* True when p may be the start of a recorded block: no lock, a few loads; false positives allowed. */
    bool (*maybe_recorded)(const void *p);
    /* The block that starts at p is about to be freed; called before the real free.  kind: what the caller frees. */
    void (*release)(enum alloc_kind kind, void *p);
    /* realloc of p is about to be tried: flag the record as uncertain but keep it. Exactly one of resize_done(old, new,
     * n) (success; new may equal old) and resize_failed(old) follows. Returns false when p is not recorded; then
     * neither follows. resize_done ends the old record and, if n is not below the threshold, records the new block with
     * weight 1, unless site is NULL (alloc_wrap_raise); below it, alloc follows if the new block is sampled. mremap of
     * a whole recorded mapping is reported in the same way. */
    bool (*resize_begin)(void *p);
    void (*resize_done)(void *old_p, void *new_p, size_t n_bytes, const struct alloc_site *site);
    void (*resize_failed)(void *old_p);
    /* Address range [p, p + n_bytes) was unmapped or replaced (munmap, MAP_FIXED, mremap's old range): splits or
     * shortens the mappings it touches. */
    void (*unmapped)(void *p, size_t n_bytes);
    /* The thread enters (true) or leaves (false) the real allocator, so that samples in between can be parked. */
    void (*inside)(bool entering);
    /* May be NULL: short ways for a block of weight 1 where nothing is unusual. enter: as ready and then inside(true);
     * false: nothing was done, and the long way is to be gone. made: as alloc(ALLOC_HEAP, ...) and then inside(false).
     * release_quick: as release(ALLOC_HEAP, p), for a free that needs no inside(); false as for enter. */
    bool (*enter)(void);
    void (*made)(void *p, size_t n_bytes, const struct alloc_site *site);
    bool (*release_quick)(void *p);
    /* A file was mapped: fd is that given to mmap, for its name. Called instead of alloc for ALLOC_FILE. */
    void (*mapped_file)(void *p, size_t n_bytes, int fd, const struct alloc_site *site);
    /* May be NULL: a file was mapped executable. */
    void (*mapped_code)(int fd);
    /* An allocation was not reported. */
    void (*skipped)(enum alloc_skip reason);
    /* May be NULL: a call that was under way at stack pointer frame seems to have been left for good, because the
     * thread's stack pointer is now here: a handler of the program has jumped out of the call. Returns true if so:
     * unfinished work of the sink on this thread will never go on. Both are 0 when the thread ends. */
    bool (*abandoned)(uintptr_t frame, uintptr_t here);
    /* May be NULL: the filter that maybe_recorded reads, so that free need not call that function
     * (alloc-wrap/small-sites.h). */
    const struct start_filter *filter;
    /* May be NULL: the tables that say which call made a block below the threshold (alloc-wrap/small-sites.h). If set,
     * these functions do what cannot be done inline for the block [p, p + n_bytes), n_bytes < SMALL_BYTES_MAX: small
     * finds the block's site and notes it (site is NULL when a handler interrupted work of the sink, and where the
     * profiler allocates); small_note notes a known site, of whose slot the cells are. */
    const struct small_sites *small_sites;
    void (*small)(void *p, size_t n_bytes, const struct alloc_site *site);
    void (*small_note)(void *p, size_t n_bytes, uint64_t cells);
};

/* Connects the wrappers to a sink (NULL disconnects). min_bytes: blocks of at least this size are reported;
 * sample_bytes: below it, Poisson sampling with this mean distance in bytes, 0 = off. The sink must stay valid.
 * ctx: ordinary, once at start. */
void alloc_wrap_connect(const struct alloc_sink *sink, uint64_t min_bytes, uint64_t sample_bytes);

/* Blocks of malloc are reported from this size on, if it is larger than min_bytes and than in earlier calls since
 * alloc_wrap_connect; other blocks as before. Not where smaller ones are sampled.  ctx: hook */
void alloc_wrap_raise(uint64_t min_bytes);

/* Finds the real functions and prepares the bootstrap arena; idempotent, called by the first wrapper used.
 * ctx: hook */
void alloc_wrap_init(void);

/* Which other object owns malloc, free, operator new and operator delete in this process: fills owner[4][256] with its
 * path ("the executable" for the program itself), or with an empty string where the calls come to this library.  ctx:
 * ordinary */
void alloc_wrap_owners(char owner[4][256]);

/* Whether the real operator new, in one of its forms, starts at this address.  ctx: hook */
bool alloc_wrap_is_new(uintptr_t function);

/* Exported: a block of a pool of the program now exists, or goes back to its pool (runtime/locus.h).  ctx: hook */
void locus_pool_alloc_event(void *p, size_t n_bytes);
void locus_pool_free_event(void *p);

/* The calling thread's stack is known to be mapped from low up to high, and the wrappers may look for return addresses
 * in that range. An earlier call with the same high end stays valid, too.  ctx: hook */
void alloc_wrap_stack_is(uintptr_t low, uintptr_t high);

/* Marks the calling thread as inside the profiler (calls nest): its allocations are forwarded and not reported. */
void alloc_wrap_guard_enter(void);
void alloc_wrap_guard_leave(void);

/* Work of the sink's begins that is no allocation's, and ends: if it is left by a jump, the wrappers notice. False: the
 * sink is at work already, or is not to be disturbed.  ctx: hook */
bool alloc_wrap_work_enter(int *saved_errno);
void alloc_wrap_work_leave(int saved_errno);

/* The calling thread ends: abandons whatever the wrappers still have under way on it.  ctx: ordinary, shielded */
void alloc_wrap_thread_ends(void);

#endif
