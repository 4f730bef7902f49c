/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits: how long the program's calls wait without a processor, and where (event BLOCKTIME); and how many bytes they
 * move from and to which files (event IO). The library that wraps the calls (wrap/wrap-wait.c) is preloaded only where
 * one of the events is wanted. Of the exported functions here, two bracket each call. */
#ifndef LOCUS_RUNTIME_PROCESS_WAITS_H
#define LOCUS_RUNTIME_PROCESS_WAITS_H

#include "alloc-wrap/alloc-wrap.h"
#include "runtime/record/thread.h"

/* One bracketed call. The caller fills the first two fields. */
struct wait_call {
    struct alloc_site site;   /* of the wrapper */
    uintptr_t function;       /* the real function: the leaf of the call path */
    struct thread_wait outer; /* the wait that a handler of the program interrupted with this call */
    uint64_t blocked_ns;      /* what its thread had waited before */
};

/* The C library's own function of this name, the leaf of a call path that waits in it; NULL: it has none.
 * ctx: any, takes no lock */
void *locus_wait_leaf_event(const char *name);

/* The program is about to make a call that may wait. False: the wait is not measured, and _end is not called.  errno is
 * kept, here and below.  ctx: any code of the program, its signal handlers included */
bool locus_wait_begin_event(struct wait_call *call);

/* The call has returned, or its thread is cancelled in it.  ctx: likewise, the same thread */
void locus_wait_end_event(const struct wait_call *call);

/* transfers.c: the call has read or written n_bytes of an open file. The caller has filled the first two fields of
 * call. ctx: as _begin */
void locus_wait_moved_event(const struct wait_call *call, bool is_write, int fd, uint64_t n_bytes);

/* transfers.c: the names of files are to be noted again, in the new arena of a child of fork.  ctx: ordinary */
void waits_fork_child(void);

/* The thread begins to be recorded.  ctx: ordinary */
void waits_begin(struct thread_state *state);

/* The thread's record is about to be closed: a call in which it still waits counts until now. cpu_ns: its CPU time so
 * far, 0: not known, and then nothing is counted.
 * ctx: ordinary, the thread that ends state, with its tree_busy set */
void waits_end(struct thread_state *state, uint64_t cpu_ns);

/* --- shared by waits.c and transfers.c --- */

/* The calling thread's state when its calls are measured now, else NULL.  ctx: as locus_wait_begin_event */
struct thread_state *waits_measured_thread(void);

/* Where the path of a call begins: in its caller.  ctx: any */
struct unwind_start waits_start_at(uintptr_t pc, uintptr_t sp, uintptr_t fp);

#endif
