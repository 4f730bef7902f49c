/* SPDX-License-Identifier: BSD-3-Clause */
/* What opens a parallel region of OpenMP or oneTBB, or makes a task of OpenMP, wrapped: the workers of a pool work for
 * whoever opens a region, so their paths go on where that was. The opener notes where it is, which takes a few stores;
 * its path is read from its stack by the handler of a worker that has a sample. A worker of libgomp works only for the
 * thread that made it, and most of libomp's work for one thread; the others run a function of ours, which tells each
 * what it works on. Ordinary code. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "alloc-wrap/alloc-wrap.h"
#include "base/path.h"
#include "runtime/process/start.h"
#include "runtime/record/loadmap.h"
#include "runtime/record/sample-path.h"
#include "runtime/wrap/wrap.h"

/* --- the real functions --- */

/* Several libraries of one kind may be in a process, such as the one that a Python package brings along: each caller
 * gets that to which the loader would have bound its call, which is remembered for each call. */

#define SITES_MAX 256 /* power of two */

/* The real function of a call that returns to pc. version is odd while the entry is being changed. */
struct call_site {
    _Atomic uint32_t version;
    _Atomic uint32_t generation; /* of the load map */
    _Atomic uintptr_t pc, real;
};

static struct {
    struct call_site sites[SITES_MAX];
} parallel;

static struct call_site *site_of(uintptr_t pc)
{
    return &parallel.sites[(pc ^ pc >> 8) & (SITES_MAX - 1)];
}

static uintptr_t known_real(uintptr_t pc)
{
    struct call_site *site = site_of(pc);
    uint32_t version = atomic_load_explicit(&site->version, memory_order_acquire);
    bool is_it = atomic_load_explicit(&site->pc, memory_order_relaxed) == pc &&
                 atomic_load_explicit(&site->generation, memory_order_relaxed) == loadmap_generation_sig();
    uintptr_t real = atomic_load_explicit(&site->real, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    return is_it && !(version & 1) && atomic_load_explicit(&site->version, memory_order_relaxed) == version ? real : 0;
}

/* If another thread is changing the entry, this one leaves it alone. */
static void note_real(uintptr_t pc, uint32_t generation, uintptr_t real)
{
    struct call_site *site = site_of(pc);
    uint32_t version = atomic_load_explicit(&site->version, memory_order_relaxed) & ~1u;
    if (!atomic_compare_exchange_strong(&site->version, &version, version + 1))
        return;
    atomic_store_explicit(&site->pc, pc, memory_order_relaxed);
    atomic_store_explicit(&site->generation, generation, memory_order_relaxed);
    atomic_store_explicit(&site->real, real, memory_order_relaxed);
    atomic_store_explicit(&site->version, version + 2, memory_order_release);
}

/* The real function, if all callers have the same: the next one after ours. */
struct next {
    _Atomic uint32_t generation; /* of the load map */
    _Atomic uintptr_t real;
};

static __attribute__((noinline)) uintptr_t find_anew(struct next *next, const char *name, uintptr_t pc)
{
    uintptr_t real = known_real(pc);
    if (real)
        return real;
    uint32_t generation = loadmap_generation_sig();
    real = (uintptr_t)wrap_real(name);
    atomic_store_explicit(&next->real, 0, memory_order_relaxed);
    atomic_store_explicit(&next->generation, generation, memory_order_release);
    atomic_store_explicit(&next->real, real, memory_order_release);
    if (!real) {
        real = (uintptr_t)wrap_real_for(name, (const void *)pc);
        note_real(pc, generation, real);
    }
    return real;
}

static inline uintptr_t find_real(struct next *next, const char *name, uintptr_t pc)
{
    uintptr_t real = atomic_load_explicit(&next->real, memory_order_acquire);
    bool is_it = atomic_load_explicit(&next->generation, memory_order_relaxed) == loadmap_generation_sig();
    return is_it && real ? real : find_anew(next, name, pc);
}

/* --- working for others --- */

/* A thread of the pool begins to work on a region, or has done its part. What it did before is kept by its caller: an
 * opened region may be worked on inside another one. */
static const struct thread_work *begin(struct thread_state *self, const struct thread_work *work)
{
    const struct thread_work *before = self->regions.working;
    work_set_sig(self, work);
    return before;
}

static void end(const struct thread_work *before)
{
    struct thread_state *self = thread_self_sig(); /* it may have a new state by now */
    if (self)
        work_set_sig(self, before);
}

/* self, the calling thread, opens a region at site, and comes back. */
static inline void open_at(struct thread_state *self, const struct alloc_site *site)
{
    struct thread_regions *mine = &self->regions;
    uint32_t depth = mine->n_open;
    if (depth < THREAD_OPEN_MAX) {
        struct thread_work *work = &mine->open[depth];
        work->opener = self;
        work->outer = self->maker || mine->working ? work_of_sig(self) : NULL;
        work->pc = site->pc;
        work->sp = site->sp;
        work->fp = site->fp;
        work->serial = ++mine->n_opened;
    }
    mine->n_open = depth + 1;
}

static inline void close_region(void)
{
    struct thread_state *self = thread_self_sig();
    if (self && self->regions.n_open)
        self->regions.n_open--;
}

/* --- regions of libgomp --- */

/* The functions that GCC's compiled code calls.
 * src: libgomp's libgomp_g.h */

typedef void region_function(void *data);

/* All forms are called with six arguments behind the first two; a form with fewer parameters ignores the rest. */
typedef unsigned open_function(region_function *function, void *data, uintptr_t a, uintptr_t b, uintptr_t c,
                               uintptr_t d, uintptr_t e, uintptr_t f);

/* Inline, as it looks at its caller's frame, and an empty region takes less than a microsecond. */
static inline __attribute__((always_inline)) unsigned
open_region(struct next *next, const char *name, region_function *function, void *data, const uintptr_t more[6])
{
    const struct alloc_site site = alloc_site_here();
    open_function *real = (open_function *)find_real(next, name, site.pc);
    struct thread_state *self = thread_self_sig();
    if (!real) { /* not even the caller knows it: a team of one thread */
        function(data);
        return 0;
    }
    if (!self)
        return real(function, data, more[0], more[1], more[2], more[3], more[4], more[5]);
    open_at(self, &site);
    unsigned result = real(function, data, more[0], more[1], more[2], more[3], more[4], more[5]);
    close_region();
    return result;
}

WRAP_EXPORT void GOMP_parallel(region_function *function, void *data, unsigned n_threads, unsigned flags);
WRAP_EXPORT void GOMP_parallel(region_function *function, void *data, unsigned n_threads, unsigned flags)
{
    static struct next next;
    const uintptr_t more[6] = {n_threads, flags};
    (void)open_region(&next, "GOMP_parallel", function, data, more);
}

/* libgomp reads data itself here, before any thread runs the function. */
WRAP_EXPORT unsigned GOMP_parallel_reductions(region_function *function, void *data, unsigned n_threads,
                                              unsigned flags);
WRAP_EXPORT unsigned GOMP_parallel_reductions(region_function *function, void *data, unsigned n_threads, unsigned flags)
{
    static struct next next;
    const uintptr_t more[6] = {n_threads, flags};
    return open_region(&next, "GOMP_parallel_reductions", function, data, more);
}

WRAP_EXPORT void GOMP_parallel_sections(region_function *function, void *data, unsigned n_threads, unsigned n_sections,
                                        unsigned flags);
WRAP_EXPORT void GOMP_parallel_sections(region_function *function, void *data, unsigned n_threads, unsigned n_sections,
                                        unsigned flags)
{
    static struct next next;
    const uintptr_t more[6] = {n_threads, n_sections, flags};
    (void)open_region(&next, "GOMP_parallel_sections", function, data, more);
}

/* One row for each of the calls for a loop: with a schedule that has a size of chunks, or with one that is chosen when
 * the program runs. */
#define LOOP_OF_CHUNKS(name)                                                                                           \
    WRAP_EXPORT void name(region_function *function, void *data, unsigned n_threads, long start, long end, long step,  \
                          long chunk, unsigned flags);                                                                 \
    void name(region_function *function, void *data, unsigned n_threads, long start, long end, long step, long chunk,  \
              unsigned flags)                                                                                          \
    {                                                                                                                  \
        static struct next next;                                                                                       \
        const uintptr_t more[6] = {n_threads,       (uintptr_t)start, (uintptr_t)end,                                  \
                                   (uintptr_t)step, (uintptr_t)chunk, flags};                                          \
        (void)open_region(&next, #name, function, data, more);                                                         \
    }

#define LOOP_AT_RUN_TIME(name)                                                                                         \
    WRAP_EXPORT void name(region_function *function, void *data, unsigned n_threads, long start, long end, long step,  \
                          unsigned flags);                                                                             \
    void name(region_function *function, void *data, unsigned n_threads, long start, long end, long step,              \
              unsigned flags)                                                                                          \
    {                                                                                                                  \
        static struct next next;                                                                                       \
        const uintptr_t more[6] = {n_threads, (uintptr_t)start, (uintptr_t)end, (uintptr_t)step, flags};               \
        (void)open_region(&next, #name, function, data, more);                                                         \
    }

LOOP_OF_CHUNKS(GOMP_parallel_loop_static)
LOOP_OF_CHUNKS(GOMP_parallel_loop_dynamic)
LOOP_OF_CHUNKS(GOMP_parallel_loop_guided)
LOOP_OF_CHUNKS(GOMP_parallel_loop_nonmonotonic_dynamic)
LOOP_OF_CHUNKS(GOMP_parallel_loop_nonmonotonic_guided)
LOOP_AT_RUN_TIME(GOMP_parallel_loop_runtime)
LOOP_AT_RUN_TIME(GOMP_parallel_loop_nonmonotonic_runtime)
LOOP_AT_RUN_TIME(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

/* --- regions of libomp and libiomp5 --- */

/* A worker may work for any thread. The first thread that opens a region opens its outermost ones as they are: a worker
 * that knows of no other works on that one. In all others the workers run a function of ours, which tells them. That
 * costs some hundred nanoseconds, as each worker reads lines of the opener's stack. The function of a region gets its
 * arguments one by one, as many as were given to the call that opens it; ours gets a single one, which knows them.
 * src: kmp.h and kmp_csupport.cpp of LLVM's OpenMP runtime */

typedef void micro_function(int *thread, int *member, ...);
typedef void fork_function(void *place, int n_arguments, micro_function *function, ...);

struct forked {
    micro_function *function;
    void *const *arguments; /* [n_given] */
    int n_given;            /* the least of the numbers below that is not less than the region's own number */
    const struct thread_work *work;
};

/* A function ignores arguments beyond its own: in C, callers clean up. */
#define GIVEN_4(a) (a)[0], (a)[1], (a)[2], (a)[3]
#define GIVEN_16(a) GIVEN_4(a), GIVEN_4((a) + 4), GIVEN_4((a) + 8), GIVEN_4((a) + 12)
#define GIVEN_64(a) GIVEN_16(a), GIVEN_16((a) + 16), GIVEN_16((a) + 32), GIVEN_16((a) + 48)
#define GIVEN_256(a) GIVEN_64(a), GIVEN_64((a) + 64), GIVEN_64((a) + 128), GIVEN_64((a) + 192)
#define GIVEN_1024(a) GIVEN_256(a), GIVEN_256((a) + 256), GIVEN_256((a) + 512), GIVEN_256((a) + 768)
#define GIVEN_MAX 1024 /* far more variables than compilers are known to pass for one region */

static inline int given(int n_arguments)
{
    return n_arguments <= 4     ? 4
           : n_arguments <= 16  ? 16
           : n_arguments <= 64  ? 64
           : n_arguments <= 256 ? 256
                                : GIVEN_MAX;
}

/* Opens a region as the caller has done, whose function is the program's. */
static void fork_plain(fork_function *real, void *place, int n_arguments, const struct forked *region)
{
    void *const *a = region->arguments;
    if (region->n_given == 4)
        real(place, n_arguments, region->function, GIVEN_4(a));
    else if (region->n_given == 16)
        real(place, n_arguments, region->function, GIVEN_16(a));
    else if (region->n_given == 64)
        real(place, n_arguments, region->function, GIVEN_64(a));
    else if (region->n_given == 256)
        real(place, n_arguments, region->function, GIVEN_256(a));
    else
        real(place, n_arguments, region->function, GIVEN_1024(a));
}

static void call_micro(const struct forked *region, int *thread, int *member)
{
    void *const *a = region->arguments;
    if (region->n_given == 4)
        region->function(thread, member, GIVEN_4(a));
    else if (region->n_given == 16)
        region->function(thread, member, GIVEN_16(a));
    else if (region->n_given == 64)
        region->function(thread, member, GIVEN_64(a));
    else if (region->n_given == 256)
        region->function(thread, member, GIVEN_256(a));
    else
        region->function(thread, member, GIVEN_1024(a));
}

/* What all threads of a region call. The opener, in whose state the region is noted, needs no help. */
static void work_forked(int *thread, int *member, const struct forked *region)
{
    struct thread_state *self = thread_self_sig();
    if (!self || !region->work || (uintptr_t)region->work - (uintptr_t)self < sizeof *self) {
        call_micro(region, thread, member);
        return;
    }
    const struct thread_work *before = begin(self, region->work);
    call_micro(region, thread, member);
    end(before);
}

/* The arguments of a call that are in list, and up to n_given any others. Four are there in any case, in registers and
 * in the caller's frame. */
static inline __attribute__((always_inline)) void take_arguments(void **arguments, int n_given, int n_arguments,
                                                                 va_list list)
{
    if (n_given == 4)
        for (int i = 0; i < 4; i++)
            arguments[i] = va_arg(list, void *);
    else
        for (int i = 0; i < n_given; i++)
            arguments[i] = i < n_arguments ? va_arg(list, void *) : NULL;
}

/* Opens the region at site. */
static void fork_region(struct next *next, const char *name, const struct alloc_site *site, void *place,
                        struct forked *region, int n_arguments)
{
    fork_function *real = (fork_function *)find_real(next, name, site->pc);
    struct thread_state *self = thread_self_sig();
    int first = 0;
    if (!real) { /* not even the caller knows it: a team of one thread */
        call_micro(region, &first, &first);
        return;
    }
    uint32_t depth = self ? self->regions.n_open : 0;
    bool is_plain = self && depth == 0 && (self->regions.is_sole || work_claim_sole_sig(self));
    if (self)
        open_at(self, site);
    if (is_plain) {
        fork_plain(real, place, n_arguments, region);
    } else {
        region->work = self && depth < THREAD_OPEN_MAX ? &self->regions.open[depth] : NULL;
        real(place, 1, (micro_function *)(uintptr_t)work_forked, region);
    }
    if (self)
        close_region();
}

WRAP_EXPORT void __kmpc_fork_call(void *place, int n_arguments, micro_function *function, ...);
WRAP_EXPORT void __kmpc_fork_call(void *place, int n_arguments, micro_function *function, ...)
{
    static struct next next;
    const struct alloc_site site = alloc_site_here();
    int n_given = given(n_arguments);
    void **arguments = __builtin_alloca((size_t)n_given * sizeof *arguments);
    struct forked region = {function, arguments, n_given, NULL};
    va_list list;
    va_start(list, function);
    take_arguments(arguments, n_given, n_arguments, list);
    va_end(list);
    fork_region(&next, "__kmpc_fork_call", &site, place, &region, n_arguments);
}

WRAP_EXPORT void __kmpc_fork_teams(void *place, int n_arguments, micro_function *function, ...);
WRAP_EXPORT void __kmpc_fork_teams(void *place, int n_arguments, micro_function *function, ...)
{
    static struct next next;
    const struct alloc_site site = alloc_site_here();
    int n_given = given(n_arguments);
    void **arguments = __builtin_alloca((size_t)n_given * sizeof *arguments);
    struct forked region = {function, arguments, n_given, NULL};
    va_list list;
    va_start(list, function);
    take_arguments(arguments, n_given, n_arguments, list);
    va_end(list);
    fork_region(&next, "__kmpc_fork_teams", &site, place, &region, n_arguments);
}

/* --- tasks of OpenMP --- */

/* When a task runs, who made it may be gone. So the path to the call that makes it is walked at once, and the task
 * takes the path's node along; its function is called by one of ours. */

/* The calling thread begins to run a task; what it ran before. */
static struct thread_task begin_task(const struct thread_task *task)
{
    struct thread_state *self = thread_self_sig();
    struct thread_task before = {0};
    if (self) {
        before = self->regions.task;
        task_set_sig(self, task);
    }
    return before;
}

static void end_task(const struct thread_task *before)
{
    struct thread_state *self = thread_self_sig(); /* it may have a new state by now */
    if (self)
        task_set_sig(self, before);
}

typedef void copy_function(void *to, void *from);

/* In libgomp a task gets a copy of its data; ours have this in front. Loops of tasks (GOMP_taskloop) stay as they are:
 * with a function that copies, libgomp has the data of all tasks on the stack at once, and libomp, which has these
 * functions for code of gcc, calls it when it has already written each task's part of the loop. */
struct task_data {
    uint32_t before_bytes; /* from here to the task's own data, a multiple of its alignment */
    region_function *function;
    copy_function *copy; /* NULL: its bytes are copied */
    void *from;
    size_t n_bytes;
    struct thread_task task;
};

static void copy_task(void *to, void *from)
{
    const struct task_data *data = from;
    char *own = (char *)to + data->before_bytes;
    memcpy(to, from, sizeof *data);
    if (data->copy)
        data->copy(own, data->from);
    else
        memcpy(own, data->from, data->n_bytes);
}

static void run_task(void *arguments)
{
    const struct task_data *data = arguments;
    char *own = (char *)arguments + data->before_bytes;
    struct thread_task task = data->task;
    region_function *function = data->function;
    task.frame = (uintptr_t)__builtin_frame_address(0);
    const struct thread_task before = begin_task(&task);
    function(own);
    end_task(&before);
}

#define ALIGNMENT ((long)_Alignof(struct task_data))
#define TASK_DETACHED (1u << 13) /* libgomp writes into the task's data */

typedef void task_function(region_function *function, void *data, copy_function *copy, long n_bytes, long alignment,
                           bool is_deferred, unsigned flags, void **depend, int priority, void *detach);

/* Not inlined, so that GOMP_task has no variable in memory: it jumps to the real one then, and takes no stack of a
 * program that recurses by tasks. */
static __attribute__((noinline)) struct thread_task note_task(struct alloc_site site)
{
    return process_make_task(&site);
}

static __attribute__((noinline)) void make_noted(task_function *real, struct thread_task task,
                                                 region_function *function, void *data, copy_function *copy,
                                                 long n_bytes, long alignment, unsigned flags, void **depend,
                                                 int priority, void *detach)
{
    struct task_data more = {
        .function = function, .copy = copy, .from = data, .n_bytes = (size_t)n_bytes, .task = task};
    alignment = alignment < ALIGNMENT ? ALIGNMENT : alignment;
    more.before_bytes = (uint32_t)(((long)sizeof more + alignment - 1) & -alignment);
    real(run_task, &more, copy_task, n_bytes + more.before_bytes, alignment, true, flags, depend, priority, detach);
}

WRAP_EXPORT void GOMP_task(region_function *function, void *data, copy_function *copy, long n_bytes, long alignment,
                           bool is_deferred, unsigned flags, void **depend, int priority, void *detach);
WRAP_EXPORT void GOMP_task(region_function *function, void *data, copy_function *copy, long n_bytes, long alignment,
                           bool is_deferred, unsigned flags, void **depend, int priority, void *detach)
{
    static struct next next;
    const struct alloc_site site = alloc_site_here();
    task_function *real = (task_function *)find_real(&next, "GOMP_task", site.pc);
    struct thread_task task = {0};
    if (is_deferred && !(flags & TASK_DETACHED))
        task = note_task(site);
    if (task.pid)
        make_noted(real, task, function, data, copy, n_bytes, alignment, flags, depend, priority, detach);
    else
        real(function, data, copy, n_bytes, alignment, is_deferred, flags, depend, priority, detach);
}

/* In libomp and libiomp5 a task has two words that only a task with a destructor, and one with a priority, uses. They
 * take along the task's function, and its path. */

typedef int entry_function(int thread, void *task);

struct task_block {
    void *shared;
    entry_function *function;
    int part;
    entry_function *real;  /* the destructor */
    uint32_t creator, pid; /* the priority */
};

/* Whether a function is libomp's or libiomp5's: other runtimes have one of this name, and tasks of another form. */
static bool is_of_libomp(uintptr_t function)
{
    static atomic_uintptr_t known, other;
    Dl_info info;
    if (function == atomic_load_explicit(&known, memory_order_relaxed))
        return true;
    if (function == atomic_load_explicit(&other, memory_order_relaxed))
        return false;
    const char *name = dladdr((void *)function, &info) && info.dli_fname ? path_last(info.dli_fname) : "";
    bool is_it = strncmp(name, "libomp", 6) == 0 || strncmp(name, "libiomp", 7) == 0;
    atomic_store_explicit(is_it ? &known : &other, function, memory_order_relaxed);
    return is_it;
}

#define TASK_USES_WORDS (1u << 3 | 1u << 5) /* a destructor, a priority */

static int run_block(int thread, void *block)
{
    const struct task_block *task = block;
    const struct thread_task now = {
        .creator = task->creator, .pid = task->pid, .frame = (uintptr_t)__builtin_frame_address(0)};
    const struct thread_task before = begin_task(&now);
    int result = task->real(thread, block);
    end_task(&before);
    return result;
}

typedef void *allocate_function(void *place, int thread, int flags, size_t n_bytes, size_t n_shared_bytes,
                                entry_function *function);

WRAP_EXPORT void *__kmpc_omp_task_alloc(void *place, int thread, int flags, size_t n_bytes, size_t n_shared_bytes,
                                        entry_function *function);
WRAP_EXPORT void *__kmpc_omp_task_alloc(void *place, int thread, int flags, size_t n_bytes, size_t n_shared_bytes,
                                        entry_function *function)
{
    static struct next next;
    const struct alloc_site site = alloc_site_here();
    allocate_function *real = (allocate_function *)find_real(&next, "__kmpc_omp_task_alloc", site.pc);
    struct thread_task task = {0};
    if (!((unsigned)flags & TASK_USES_WORDS) && n_bytes >= sizeof(struct task_block) && is_of_libomp((uintptr_t)real))
        task = process_make_task(&site);
    struct task_block *block = real(place, thread, flags, n_bytes, n_shared_bytes, task.pid ? run_block : function);
    if (task.pid) {
        block->real = function;
        block->creator = task.creator;
        block->pid = task.pid;
    }
    return block;
}

/* --- regions of oneTBB --- */

/* Nothing tells a worker for which thread it works. As long as a single thread that is no worker has opened regions,
 * its outermost one is what all of them work on; afterwards nothing is said. An exception leaves a region without
 * coming back here, so one that was opened as deep in the stack as the next one has ended.
 * src: oneTBB's detail/_task.h */

static bool open_tasks(const struct alloc_site *site)
{
    struct thread_state *self = thread_self_sig();
    if (!self || self->maker)
        return false;
    if (!self->regions.is_sole && !work_claim_sole_sig(self)) {
        work_share_sig();
        return false;
    }
    struct thread_regions *mine = &self->regions;
    while (mine->n_open > 0 && mine->n_open <= THREAD_OPEN_MAX && mine->open[mine->n_open - 1].sp <= site->sp)
        mine->n_open--;
    if (mine->n_open == 0) {
        open_at(self, site);
        return true;
    }
    return false;
}

/* Both throw what a task throws. */
typedef void tasks_function(void *a, void *b, void *c, void *d);

static inline __attribute__((always_inline)) void wait_for_tasks(struct next *next, const char *name,
                                                                 const struct alloc_site *site, void *const a[4])
{
    tasks_function *real = (tasks_function *)find_real(next, name, site->pc);
    bool is_open = open_tasks(site);
    real(a[0], a[1], a[2], a[3]);
    if (is_open)
        close_region();
}

/* tbb::detail::r1::execute_and_wait(task &, task_group_context &, wait_context &, task_group_context &) */
#define EXECUTE_AND_WAIT                                                                                               \
    _ZN3tbb6detail2r116execute_and_waitERNS0_2d14taskERNS2_18task_group_contextERNS2_12wait_contextES6_
WRAP_EXPORT void EXECUTE_AND_WAIT(void *task, void *its_context, void *wait, void *context);
WRAP_EXPORT void EXECUTE_AND_WAIT(void *task, void *its_context, void *wait, void *context)
{
    static struct next next;
    const struct alloc_site site = alloc_site_here();
    void *const arguments[4] = {task, its_context, wait, context};
    wait_for_tasks(&next, __func__, &site, arguments);
}

/* tbb::detail::r1::wait(wait_context &, task_group_context &) */
#define WAIT _ZN3tbb6detail2r14waitERNS0_2d112wait_contextERNS2_18task_group_contextE
WRAP_EXPORT void WAIT(void *wait, void *context);
WRAP_EXPORT void WAIT(void *wait, void *context)
{
    static struct next next;
    const struct alloc_site site = alloc_site_here();
    void *const arguments[4] = {wait, context, NULL, NULL};
    wait_for_tasks(&next, __func__, &site, arguments);
}
