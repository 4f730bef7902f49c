/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection to the sink, the thread's state, the brackets around real calls, and the sampling of small blocks: see
 * hook.h. Apart from the wrappers, which only know the signatures that they forward. Runs inside the program's
 * allocation calls. */
#include "alloc-wrap/hook.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>

#include "alloc-wrap/real.h"
#include "base/environment.h"

/* --- Poisson sampling --- */

/* Poisson sampling of small blocks: see hook.h. The two functions of libm that it needs are written here, because the
 * preloaded library may need only libc. Runs inside the program's malloc. */

#define LN2 0.693147180559945309417

/* Natural logarithm of x, a positive normal number; error below 1e-12. src: log m = 2 atanh((m - 1) / (m + 1)) */
static double natural_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1022;
    bits = (bits & 0xfffffffffffffull) | 1022ull << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m < 0.70710678118654752) {
        m *= 2;
        exponent--;
    }
    double s = (m - 1) / (m + 1), square = s * s, sum = 0;
    for (int k = 17; k >= 1; k -= 2)
        sum = sum * square + 1.0 / k;
    return exponent * LN2 + 2 * s * sum;
}

/* 1 - exp(-x) for x >= 0, exact for small x too. src: with y = 1 - exp(-h), 1 - exp(-2h) = y (2 - y) */
static double hit_probability(double x)
{
    if (x > 40)
        return 1;
    int n_halvings = 0;
    for (; x > 0.125; n_halvings++)
        x /= 2;
    double sum = 0;
    for (int k = 9; k >= 1; k--)
        sum = (1 - sum) * x / k;
    for (; n_halvings; n_halvings--)
        sum *= 2 - sum;
    return sum;
}

/* splitmix64 (Steele, Lea and Flood 2014) */
static uint64_t next_random(struct sampling *sampling)
{
    uint64_t z = sampling->random += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

/* Draws the exponentially distributed distance to the next hit. */
static void draw_distance(struct sampling *sampling, double mean_bytes)
{
    double uniform = ((double)(next_random(sampling) >> 11) + 0.5) * 0x1p-53;
    sampling->until_bytes = -mean_bytes * natural_log(uniform);
}

void sampling_seed_hook(struct sampling *sampling, uint64_t seed, double mean_bytes)
{
    sampling->random = seed;
    draw_distance(sampling, mean_bytes);
}

/* A seed that differs between processes and, by the address of the thread's state, between threads. */
static void seed_from_process(struct sampling *sampling, double mean_bytes)
{
    uint64_t seed = 0;
    const void *bytes = (const void *)getauxval(AT_RANDOM);
    if (bytes)
        memcpy(&seed, bytes, sizeof seed);
    seed ^= (uint64_t)(uintptr_t)sampling * 0x9e3779b97f4a7c15ull;
    sampling_seed_hook(sampling, seed | 1, mean_bytes);
}

double sampling_weight_hook(struct sampling *sampling, double mean_bytes, size_t n_bytes)
{
    if (!sampling->random)
        seed_from_process(sampling, mean_bytes);
    sampling->until_bytes -= (double)n_bytes;
    if (sampling->until_bytes >= 0 || !n_bytes)
        return 0;
    draw_distance(sampling, mean_bytes);
    return 1 / hit_probability((double)n_bytes / mean_bytes);
}

/* One of the two whole numbers around weight (>= 0), by chance, such that its expectation is weight: so when a block is
 * freed, exactly what was counted at its allocation can be subtracted again.  ctx: hook */
static double sampling_whole_hook(struct sampling *sampling, double weight)
{
    double whole = (double)(uint64_t)weight;
    double uniform = (double)(next_random(sampling) >> 11) * 0x1p-53;
    return whole + (uniform < weight - whole);
}

/* --- connection, state and brackets --- */

#define SIGNAL_FRAME_MIN 512 /* bytes; larger on every architecture */

static struct {
    const struct alloc_sink *_Atomic sink;
    uint64_t min_bytes, sample_bytes;
    _Atomic uint64_t raised_bytes; /* heap blocks below this are too small as well; 0: min_bytes decides */
    atomic_bool configured;        /* alloc_wrap_connect was called */
    _Atomic uint64_t n_early;
    struct start_filter every, none; /* for a sink without a filter, and without a sink */
    _Atomic uint8_t ones[2], zeros[2];
} scope = {
    .every = {.counts = scope.ones, .shift = 63},
    .none = {.counts = scope.zeros, .shift = 63},
    .ones = {UINT8_MAX, UINT8_MAX},
};

static __thread struct alloc_thread scope_thread __attribute__((tls_model("initial-exec")));

struct alloc_thread *alloc_thread_hook(void)
{
    return &scope_thread;
}

const struct alloc_sink *alloc_sink_hook(void)
{
    if (ALLOC_UNLIKELY(!alloc_real_known_hook()))
        alloc_wrap_init();
    return atomic_load_explicit(&scope.sink, memory_order_acquire);
}

uint64_t alloc_min_bytes_hook(void)
{
    return scope.min_bytes;
}

/* The same for blocks of malloc. */
static inline uint64_t heap_min_bytes(void)
{
    uint64_t raised = atomic_load_explicit(&scope.raised_bytes, memory_order_relaxed);
    return ALLOC_UNLIKELY(raised > scope.min_bytes) ? raised : scope.min_bytes;
}

void alloc_fast_refresh_hook(void)
{
    const struct alloc_sink *sink = atomic_load(&scope.sink);
    size_t limit = sink ? heap_min_bytes() : SIZE_MAX;
    if (!alloc_real_known_hook() || !atomic_load(&scope.configured) || (sink && scope.sample_bytes))
        limit = 0;
    const struct start_filter *filter = sink && sink->filter ? sink->filter : sink ? &scope.every : &scope.none;
    if (!alloc_real_known_hook())
        return;
    const struct small_sites *small = sink ? sink->small_sites : NULL;
    const struct alloc_fast fast = {.small_bytes = !small                    ? 0
                                                   : limit < SMALL_BYTES_MAX ? limit
                                                                             : SMALL_BYTES_MAX,
                                    .limit_bytes = limit,
                                    .filter = filter,
                                    .sites = small,
                                    .regions = small ? small->regions : NULL};
    wrap_malloc_set_hook(&fast);
    wrap_realloc_set_hook(&fast);
    wrap_new_set_hook(&fast);
}

void alloc_wrap_connect(const struct alloc_sink *sink, uint64_t min_bytes, uint64_t sample_bytes)
{
    alloc_wrap_init();
    scope.min_bytes = min_bytes;
    scope.sample_bytes = sample_bytes;
    atomic_store(&scope.raised_bytes, 0);
    atomic_store_explicit(&scope.sink, sink, memory_order_release);
    atomic_store(&scope.configured, true);
    if (sink)
        for (uint64_t n = atomic_exchange(&scope.n_early, 0); n; n--)
            sink->skipped(ALLOC_SKIP_EARLY);
    alloc_fast_refresh_hook();
}

void alloc_wrap_raise(uint64_t min_bytes)
{
    uint64_t raised = atomic_load(&scope.raised_bytes);
    while (raised < min_bytes && !atomic_compare_exchange_weak(&scope.raised_bytes, &raised, min_bytes))
        ;
    alloc_fast_refresh_hook();
}

void alloc_wrap_stack_is(uintptr_t low, uintptr_t high)
{
    const struct small_stack known = {low, high};
    wrap_malloc_stack_hook(&known);
    wrap_realloc_stack_hook(&known);
    wrap_new_stack_hook(&known);
}

void alloc_wrap_guard_enter(void)
{
    scope_thread.n_guard++;
}

void alloc_wrap_guard_leave(void)
{
    scope_thread.n_guard--;
}

static void abandon(struct alloc_thread *thread, const struct alloc_sink *sink)
{
    if (thread->nest && sink)
        sink->inside(false);
    thread->in_hook = 0;
    thread->nest = ALLOC_NEST_NONE;
}

/* If a handler has interrupted work of the sink, at least a signal frame lies between the two. A real function may
 * itself call a wrapper, so there only a frame that is not below shows that the function was left. */
void alloc_check_left_hook(struct alloc_thread *thread, uintptr_t here)
{
    const struct alloc_sink *sink = atomic_load_explicit(&scope.sink, memory_order_acquire);
    uintptr_t frame = thread->in_hook ? thread->hook_frame - SIGNAL_FRAME_MIN : thread->nest_frame;
    int saved_errno = errno;
    if (here >= frame && sink && sink->abandoned && sink->abandoned(frame, here))
        abandon(thread, sink);
    errno = saved_errno;
}

void alloc_wrap_thread_ends(void)
{
    const struct alloc_sink *sink = atomic_load_explicit(&scope.sink, memory_order_acquire);
    if ((scope_thread.in_hook || scope_thread.nest) && sink && sink->abandoned && sink->abandoned(0, 0))
        abandon(&scope_thread, sink);
}

int alloc_work_enter_hook(struct alloc_thread *thread)
{
    int saved_errno = errno;
    thread->hook_frame = (uintptr_t)__builtin_frame_address(0);
    atomic_signal_fence(memory_order_seq_cst);
    thread->in_hook = 1;
    atomic_signal_fence(memory_order_seq_cst);
    return saved_errno;
}

void alloc_work_leave_hook(struct alloc_thread *thread, int saved_errno)
{
    atomic_signal_fence(memory_order_seq_cst);
    thread->in_hook = 0;
    errno = saved_errno;
}

bool alloc_wrap_work_enter(int *saved_errno)
{
    struct alloc_thread *thread = &scope_thread;
    if (thread->n_guard || thread->in_hook || thread->nest || !atomic_load_explicit(&scope.sink, memory_order_acquire))
        return false;
    *saved_errno = alloc_work_enter_hook(thread);
    return true;
}

void alloc_wrap_work_leave(int saved_errno)
{
    alloc_work_leave_hook(&scope_thread, saved_errno);
}

static void count_early(size_t n_bytes)
{
    if (n_bytes >= MIN_BYTES_DEFAULT && !atomic_load_explicit(&scope.configured, memory_order_relaxed))
        atomic_fetch_add_explicit(&scope.n_early, 1, memory_order_relaxed);
}

double alloc_weight_hook(struct alloc_thread *thread, size_t n_bytes)
{
    if (n_bytes >= scope.min_bytes)
        return 1;
    if (!scope.sample_bytes)
        return 0;
    double weight = sampling_weight_hook(&thread->sampling, (double)scope.sample_bytes, n_bytes);
    return sampling_whole_hook(&thread->sampling, weight);
}

/* The same for a block of malloc. */
static double heap_weight(struct alloc_thread *thread, size_t n_bytes)
{
    bool is_too_small = n_bytes >= scope.min_bytes && n_bytes < heap_min_bytes();
    return is_too_small ? 0 : alloc_weight_hook(thread, n_bytes);
}

/* Tells the sink that the thread enters the allocator if the sink is ready to record the result. */
static void announce(struct alloc_call *call)
{
    bool is_plain = call->weight == 1 && !call->recorded && call->outer == ALLOC_NEST_NONE && call->sink->enter;
    call->is_quick = call->announced = is_plain && call->sink->enter();
    if (call->is_quick)
        return;
    int saved_errno = alloc_work_enter_hook(call->thread);
    if (call->weight > 0 && !call->sink->ready())
        call->weight = 0;
    call->announced = (call->weight > 0 || call->recorded) && call->outer == ALLOC_NEST_NONE;
    if (call->announced)
        call->sink->inside(true);
    alloc_work_leave_hook(call->thread, saved_errno);
}

bool alloc_call_begin_hook(struct alloc_call *call, enum alloc_nest nest, size_t n_bytes)
{
    *call = (struct alloc_call){.sink = alloc_sink_hook(), .thread = &scope_thread};
    struct alloc_thread *thread = call->thread;
    if (!call->sink) {
        count_early(n_bytes);
        return false;
    }
    if (ALLOC_UNLIKELY(thread->in_hook || thread->nest))
        alloc_check_left_hook(thread, (uintptr_t)__builtin_frame_address(0));
    if ((thread->in_hook || thread->nest >= ALLOC_NEST_ALLOC) && !thread->n_guard && n_bytes >= scope.min_bytes)
        call->sink->skipped(ALLOC_SKIP_REENTERED);
    if (thread->n_guard || thread->in_hook || thread->nest)
        return false;
    call->weight = heap_weight(thread, n_bytes);
    if (call->weight > 0)
        announce(call);
    /* With sampling on, a real operator new may call malloc: the bytes must go through the sampler only once. */
    if (!call->announced && !scope.sample_bytes)
        return false;
    thread->nest_frame = (uintptr_t)__builtin_frame_address(0);
    thread->nest = (uint8_t)nest;
    return true;
}

void alloc_call_end_hook(struct alloc_call *call, void *p, size_t n_bytes, const struct alloc_site *site)
{
    if (call->announced) {
        int saved_errno = alloc_work_enter_hook(call->thread);
        if (p && call->is_quick) {
            call->sink->made(p, n_bytes, site);
        } else {
            if (p && call->weight > 0)
                call->sink->alloc(ALLOC_HEAP, p, n_bytes, call->weight, site);
            call->sink->inside(false);
        }
        alloc_work_leave_hook(call->thread, saved_errno);
    }
    call->thread->nest = ALLOC_NEST_NONE;
}

const struct alloc_sink *alloc_quick_begin_hook(enum alloc_nest nest, size_t n_bytes)
{
    const struct alloc_sink *sink = atomic_load_explicit(&scope.sink, memory_order_acquire);
    struct alloc_thread *thread = &scope_thread;
    if (!sink || !sink->enter || n_bytes < heap_min_bytes() || thread->n_guard || thread->in_hook || thread->nest ||
        !sink->enter())
        return NULL;
    thread->nest_frame = (uintptr_t)__builtin_frame_address(0);
    thread->nest = (uint8_t)nest;
    return sink;
}

void alloc_quick_end_hook(const struct alloc_sink *sink, void *p, size_t n_bytes, const struct alloc_site *site)
{
    struct alloc_thread *thread = &scope_thread;
    int saved_errno = alloc_work_enter_hook(thread);
    if (p)
        sink->made(p, n_bytes, site);
    else
        sink->inside(false);
    alloc_work_leave_hook(thread, saved_errno);
    thread->nest = ALLOC_NEST_NONE;
}

void alloc_small_hook(void *p, size_t n_bytes, const struct alloc_site *site)
{
    const struct alloc_sink *sink = atomic_load_explicit(&scope.sink, memory_order_acquire);
    struct alloc_thread *thread = &scope_thread;
    if (!p || !sink || !sink->small_sites || n_bytes >= heap_min_bytes() || n_bytes >= SMALL_BYTES_MAX)
        return;
    if (ALLOC_UNLIKELY(thread->n_guard || thread->in_hook)) {
        sink->small(p, n_bytes, NULL);
        return;
    }
    int saved_errno = alloc_work_enter_hook(thread);
    sink->small(p, n_bytes, site);
    alloc_work_leave_hook(thread, saved_errno);
}

/* Notes the site of block p (NULL: none), which is known, when p is the first block in its part of the heap; cells:
 * from small_sites_find. Returns p. errno is kept.  ctx: hook */
void *alloc_small_first_hook(void *p, size_t n_bytes, uint64_t cells)
{
    const struct alloc_sink *sink = atomic_load_explicit(&scope.sink, memory_order_acquire);
    int saved_errno = errno;
    if (p && sink)
        sink->small_note(p, n_bytes, cells);
    errno = saved_errno;
    return p;
}

void alloc_call_unwound_hook(void)
{
    const struct alloc_sink *sink = alloc_sink_hook();
    if (sink) {
        int saved_errno = alloc_work_enter_hook(&scope_thread);
        sink->inside(false);
        alloc_work_leave_hook(&scope_thread, saved_errno);
    }
    scope_thread.nest = ALLOC_NEST_NONE;
}

/* Whether p may be reported to the sink now. A block that a signal handler frees while the sink works on this thread
 * may not, because the sink's locks may be held. */
static bool may_touch(struct alloc_call *call, void *p)
{
    *call = (struct alloc_call){.sink = alloc_sink_hook(), .thread = &scope_thread};
    if (!call->sink || !p || !call->sink->maybe_recorded(p))
        return false;
    if (ALLOC_UNLIKELY(call->thread->in_hook || call->thread->nest))
        alloc_check_left_hook(call->thread, (uintptr_t)__builtin_frame_address(0));
    if (call->thread->in_hook) {
        call->sink->skipped(ALLOC_SKIP_REENTERED);
        return false;
    }
    return true;
}

bool alloc_release_begin_hook(struct alloc_call *call, void *p)
{
    if (!may_touch(call, p) || call->thread->nest == ALLOC_NEST_RESIZE)
        return false;
    int saved_errno = alloc_work_enter_hook(call->thread);
    call->sink->release(ALLOC_HEAP, p);
    /* Called by a new_handler or a signal handler inside a real function: the release is reported, but the bracket
     * belongs to the outer call. */
    call->announced = call->thread->nest == ALLOC_NEST_NONE;
    if (call->announced)
        call->sink->inside(true);
    alloc_work_leave_hook(call->thread, saved_errno);
    if (call->announced) {
        call->thread->nest_frame = (uintptr_t)__builtin_frame_address(0);
        call->thread->nest = ALLOC_NEST_FREE;
    }
    return call->announced;
}

bool alloc_release_quick_hook(void *p)
{
    const struct alloc_sink *sink = atomic_load_explicit(&scope.sink, memory_order_acquire);
    struct alloc_thread *thread = &scope_thread;
    if (!sink || !sink->release_quick || thread->in_hook || thread->nest)
        return false;
    int saved_errno = alloc_work_enter_hook(thread);
    bool is_done = sink->release_quick(p);
    alloc_work_leave_hook(thread, saved_errno);
    return is_done;
}

void alloc_release_end_hook(struct alloc_call *call)
{
    int saved_errno = alloc_work_enter_hook(call->thread);
    call->sink->inside(false);
    alloc_work_leave_hook(call->thread, saved_errno);
    call->thread->nest = ALLOC_NEST_NONE;
}

bool alloc_resize_begin_hook(struct alloc_call *call, void *p, size_t n_bytes)
{
    bool touch = may_touch(call, p);
    if (!touch)
        return alloc_call_begin_hook(call, ALLOC_NEST_ALLOC, n_bytes);
    if (call->thread->nest == ALLOC_NEST_RESIZE)
        return false;
    call->outer = call->thread->nest;
    call->weight = call->thread->n_guard ? 0 : heap_weight(call->thread, n_bytes);
    int saved_errno = alloc_work_enter_hook(call->thread);
    call->recorded = call->sink->resize_begin(p);
    alloc_work_leave_hook(call->thread, saved_errno);
    announce(call);
    if (call->outer == ALLOC_NEST_NONE)
        call->thread->nest_frame = (uintptr_t)__builtin_frame_address(0);
    call->thread->nest = ALLOC_NEST_RESIZE;
    return true;
}

void alloc_resize_end_hook(struct alloc_call *call, void *old_p, void *new_p, size_t n_bytes,
                           const struct alloc_site *site)
{
    int saved_errno = alloc_work_enter_hook(call->thread);
    bool fresh = new_p && call->weight > 0 && (!call->recorded || n_bytes < scope.min_bytes);
    bool is_too_small =
        n_bytes >= scope.min_bytes && call->weight <= 0 && !call->thread->n_guard; /* alloc_wrap_raise */
    if (call->recorded && new_p)
        call->sink->resize_done(old_p, new_p, n_bytes, is_too_small ? NULL : site);
    if (call->recorded && !new_p)
        call->sink->resize_failed(old_p);
    if (fresh)
        call->sink->alloc(ALLOC_HEAP, new_p, n_bytes, call->weight, site);
    if (call->announced)
        call->sink->inside(false);
    alloc_work_leave_hook(call->thread, saved_errno);
    call->thread->nest = call->outer;
}
