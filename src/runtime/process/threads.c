/* SPDX-License-Identifier: BSD-3-Clause */
/* Beginning and end of threads: see threads.h. Ordinary code, with raw system calls. */
#include "runtime/process/threads.h"
#include "runtime/process/waits.h"

#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "alloc-wrap/alloc-wrap.h"
#include "base/clock.h"
#include "runtime/events/events.h"
#include "runtime/objmap/objmap.h"
#include "runtime/own/own-call.h"
#include "runtime/own/process.h"
#include "runtime/record/sample.h"

/* --- threads --- */

/* Registering and ending threads. Ordinary code that may run inside the program's pthread_create and at thread exit;
 * its memory comes from mmap, never from the program's allocator. */

#define LAST_TRIES 150  /* of 2 ms: on a busy machine the companion answers late */
#define QUIET_TRIES 200 /* of 1 ms, after as many tries with sched_yield */
#define MAIN_STACK_MAX ((uintptr_t)256 << 20)
#define STATES_AT_ONCE 16

extern void *__libc_stack_end __attribute__((weak)); /* set by the loader: where the main stack begins */

/* States of ended threads, kept for the next ones, as a stack without a lock. Its word holds the page of the first
 * state and a number that every change of the stack increases: a state that was taken and put back meanwhile is
 * noticed. */
#define STATE_ALIGN_BITS 12
#define STATE_PAGE_BITS 36

static struct {
    _Atomic uint64_t free_states;
    _Atomic unsigned n_mapped; /* states that were ever mapped */
    _Atomic bool is_left;      /* the process goes on without us */
    _Atomic bool is_over;      /* the process is ending; no thread may begin any more */
} threads;

/* Lets other threads run: first yields, later sleeps, because yielding does not help threads of lower priority. */
static void give_way(int n_tries)
{
    struct timespec pause = {.tv_nsec = 1000000};
    if (n_tries < QUIET_TRIES)
        own_call_sig(SYS_sched_yield);
    else
        own_call_sig(SYS_nanosleep, &pause, NULL);
}

static struct thread_state *state_of_word(uint64_t word)
{
    return (struct thread_state *)(uintptr_t)((word & (((uint64_t)1 << STATE_PAGE_BITS) - 1)) << STATE_ALIGN_BITS);
}

static uint64_t next_word(uint64_t word, const struct thread_state *state)
{
    return ((word >> STATE_PAGE_BITS) + 1) << STATE_PAGE_BITS | (uintptr_t)state >> STATE_ALIGN_BITS;
}

/* The memory of a state stays mapped, so its `next` can be read even if another thread has just taken it. */
static struct thread_state *state_take(void)
{
    uint64_t word = atomic_load(&threads.free_states);
    struct thread_state *state;
    do
        state = state_of_word(word);
    while (state &&
           !atomic_compare_exchange_weak(&threads.free_states, &word, next_word(word, atomic_load(&state->next))));
    return state;
}

static void state_put(struct thread_state *state)
{
    uint64_t word = atomic_load(&threads.free_states);
    if ((uintptr_t)state >> STATE_ALIGN_BITS >> STATE_PAGE_BITS)
        return; /* too high for the word: used once */
    do
        atomic_store(&state->next, state_of_word(word));
    while (!atomic_compare_exchange_weak(&threads.free_states, &word, next_word(word, state)));
}

/* Whether a thread with this state has a record of its own, and not that of one that has ended. */
static bool takes_new_record(const struct thread_state *state)
{
    return !state->record || atomic_load(&arena_header_sig()->n_threads) < ARENA_THREADS_OWN;
}

/* Threads are numbered in the order of their creation: which of them runs first is different in each run. */
static void id_take(struct thread_state *state)
{
    struct arena_header *header = arena_header_sig();
    state->id_of = header && takes_new_record(state) ? header : NULL;
    if (state->id_of)
        state->id = atomic_fetch_add(&header->n_threads, 1);
}

/* Of a thread that did not come to be; the number is lost when another thread has the next one by now. */
static void id_return(struct thread_state *state)
{
    struct arena_header *header = arena_header_sig();
    uint32_t next = state->id + 1;
    if (state->id_of && state->id_of == header)
        atomic_compare_exchange_strong(&header->n_threads, &next, state->id);
    state->id_of = NULL;
}

/* Maps states together: with each mapping twice as many, up to STATES_AT_ONCE. All but the first are free. */
static struct thread_state *states_map(void)
{
    unsigned n_before = atomic_load(&threads.n_mapped), n = n_before < STATES_AT_ONCE ? n_before + 1 : STATES_AT_ONCE;
    size_t own_stack_bytes, stride_bytes;
    char *first = altstack_map(sizeof(struct thread_state), &n, &own_stack_bytes, &stride_bytes);
    if (!first)
        return NULL;
    atomic_fetch_add(&threads.n_mapped, n);
    for (unsigned i = n; i-- > 0;) {
        struct thread_state *state = (struct thread_state *)(void *)(first + i * stride_bytes);
        state->own_stack = (uintptr_t)state - own_stack_bytes;
        state->own_stack_bytes = own_stack_bytes;
        if (i)
            state_put(state);
    }
    return (struct thread_state *)(void *)first;
}

struct thread_state *thread_prepare(void)
{
    struct thread_state *state = state_take();
    if (!state)
        state = states_map();
    if (!state)
        return NULL;
    id_take(state);
    state->creator = 0;
    state->creator_of = arena_header_sig();
    state->maker = NULL;
    state->maker_is_guess = false;
    return state;
}

void thread_discard(struct thread_state *state)
{
    id_return(state);
    state_put(state);
}

static void events_clear(struct thread_state *state)
{
    for (int i = 0; i < ARENA_EVENTS_MAX; i++)
        state->events[i].fd = state->events[i].drain_fd = -1;
    state->watch.fd = state->watch.drain_fd = state->page_ins.fd = state->page_ins.drain_fd = -1;
    for (int i = 0; i < MEETING_WATCHES; i++)
        state->watchpoints[i].event.fd = state->watchpoints[i].event.drain_fd = -1;
}

/* Clears the part of a reused state that must be zero; the large arrays need not be. */
static void state_clear(struct thread_state *state)
{
    if (state->is_used) {
        memset(&state->thread_pointer, 0,
               offsetof(struct thread_state, alloc_path) - offsetof(struct thread_state, thread_pointer));
        state->sample_path.n_frames = 0;
        memset(&state->block_changes, 0, offsetof(struct thread_block_changes, items));
    }
    state->alloc_path.n_frames = 0; /* also of a new one: who reads its memory first, has two page faults */
    state->is_used = true;
    events_clear(state);
}

/* Stack of the main thread: from where the loader says it begins down to the limit. */
static void bounds_of_main(struct thread_state *state)
{
    struct rlimit limit;
    uintptr_t top = (uintptr_t)(&__libc_stack_end ? __libc_stack_end : __builtin_frame_address(0));
    uintptr_t size = MAIN_STACK_MAX;
    if (own_call_sig(SYS_prlimit64, 0, RLIMIT_STACK, NULL, &limit) == 0 && limit.rlim_cur < size)
        size = limit.rlim_cur;
    state->bounds.high = (top | (getauxval(AT_PAGESZ) - 1)) + 1;
    state->bounds.low = state->bounds.high - size;
}

static void bounds_of_thread(struct thread_state *state, size_t stack_bytes)
{
    state->bounds.high = arch_stack_high_sig(state->thread_pointer);
    state->bounds.low = state->bounds.high - stack_bytes;
}

#define RECORD_CHUNKS ((sizeof(struct arena_thread) + ARENA_CHUNK_BYTES - 1) / ARENA_CHUNK_BYTES)

static struct arena_thread *record_make(struct thread_state *state, struct arena_cursor *chunks)
{
    struct arena_header *header = arena_header_sig();
    struct arena_cursor cursor = {0};
    arena_part_sig(chunks, &cursor, ARENA_THREADS, 0, RECORD_CHUNKS);
    struct arena_thread *record = arena_reserve_sig(&cursor, ARENA_THREADS, 0, sizeof *record);
    if (!record)
        return NULL;
    record->id = state->id_of == header ? state->id : atomic_fetch_add(&header->n_threads, 1);
    state->id_of = NULL;
    record->start_ns = own_clock_ns_sig(CLOCK_REALTIME);
    state->ref = arena_ref_sig(record);
    state->reader = record->id % OBJMAP_READERS;
    arena_publish_sig(&cursor);
    return record;
}

static struct arena_node *node_of(uint32_t ref)
{
    return arena_record_sig(ref);
}

/* Where the paths of the thread go on, if that is in this arena. */
static uint32_t creator_of(const struct thread_state *state)
{
    return state->creator_of == arena_header_sig() ? state->creator : 0;
}

/* A record and the tree of allocations have chunks of their own: threads that begin at once wait for nobody. Many short
 * threads are never sampled: the tree of samples begins with the first. */
static bool record_new(struct thread_state *state)
{
    struct arena_cursor chunks = {0};
    trace_leave_sig(&state->trace);
    state->record = NULL;
    state->samples = (struct cct_tree){0};
    (void)arena_take_sig(&chunks, RECORD_CHUNKS + CCT_CHUNKS - 1);
    struct arena_thread *record = record_make(state, &chunks);
    if (!record || !cct_init_in_sig(&state->allocs, ARENA_ALLOC_NODES, state->ref, false, &chunks))
        return false;
    record->alloc_root = state->allocs.root;
    node_of(state->allocs.root)->ip = creator_of(state);
    state->record = record;
    state->chunks = chunks;
    return true;
}

/* Where faults of ours would be sampled, what a sample needs is touched before the thread's events start. Elsewhere it
 * is left to who uses it first: many threads that ask the kernel for it wait for each other. */
static void touch(struct thread_state *state)
{
    state->sees_faults = events_see_faults_sig(state);
    if (!state->sees_faults)
        return;
    arena_touch_sig(&state->chunks);
    state->chunks = (struct arena_cursor){0};
    if (!state->is_touched)
        altstack_touch(state);
    state->is_touched = true;
}

/* Notes what other threads have counted in the record; the thread's own counts are added to that. */
static void record_resume(struct thread_state *state)
{
    struct arena_thread *record = state->record;
    struct thread_past *past = &state->past;
    past->cpu_time_ns = atomic_load(&record->cpu_time_ns);
    past->user_ns = atomic_load(&record->user_ns);
    past->system_ns = atomic_load(&record->system_ns);
    past->delay_ns = atomic_load(&record->delay_ns);
    past->n_page_faults = atomic_load(&record->n_page_faults);
    state->samples.below = state->samples.root;
    state->samples.below_partial = state->samples.partial;
    for (int i = 0; i < ARENA_EVENTS_MAX; i++) {
        past->taken[i] = atomic_load(&record->taken[i]);
        past->overflows[i] = atomic_exchange(&record->overflows[i], 0);
        past->not_delivered[i] = atomic_load(&record->fates[i][FATE_NOT_DELIVERED]);
        past->enabled_ns[i] = atomic_load(&record->enabled_ns[i]);
        past->running_ns[i] = atomic_load(&record->running_ns[i]);
    }
    if (node_of(state->allocs.root)->ip != creator_of(state)) { /* threads that were made on several paths */
        node_of(state->allocs.root)->ip = 0;
        if (state->samples.root)
            node_of(state->samples.root)->ip = 0;
    }
    record->end_ns = 0;
    atomic_fetch_add(&record->n_merged, 1);
}

/* Gives the thread a record: its own or, in a program where very many threads come and go, that of a thread that has
 * ended. */
static bool record_begin(struct thread_state *state, uint32_t tid)
{
    if (!takes_new_record(state) && state->id_of != arena_header_sig())
        record_resume(state);
    else if (!record_new(state))
        return false;
    state->record->tid = tid;
    state->record->stack_low = state->bounds.low;
    state->record->stack_high = state->bounds.high;
    return true;
}

/* Adds the thread to the list; false when the process is already ending. Either who ends it finds the thread in the
 * list, or the thread sees here that it ends. */
static bool live_add(struct thread_state *state)
{
    thread_live_add_sig(state);
    if (!atomic_load(&threads.is_over))
        return true;
    (void)thread_live_remove_sig(state);
    return false;
}

void thread_start_events(void)
{
    struct thread_state *self = process_is_ours_sig() ? thread_self_sig() : NULL;
    if (!self || self->ending || sandbox_is_entered_sig())
        return;
    thread_switch_new_sig(self);
    if (sample_is_active_sig())
        events_replay(self);
}

void thread_start_events_unshielded(void)
{
    struct shield shield;
    shield_raise_sig(&shield);
    thread_start_events();
    shield_lower_sig(&shield);
}

/* Begins a thread whose bounds and regions are set. */
static bool begin_as(struct thread_state *state, uint32_t tid)
{
    atomic_store(&state->is_taken, true);
    if (!record_begin(state, tid))
        return false;
    if (!live_add(state)) {
        state->record->end_ns = own_clock_ns_sig(CLOCK_REALTIME);
        return false;
    }
    if (!atomic_load(&state->is_absent)) {
        thread_stack_add_sig(state);
        thread_set_self_sig(state);
    }
    DEBUG_NOTE_SIG(DEBUG_PROCESS, 1, "thread begins", {"number", state->record->id, NULL},
                   {"stack", state->bounds.low, NULL}, {"end", state->bounds.high, NULL});
    waits_begin(state);
    events_open(state);
    touch(state);
    atomic_store(&state->is_taken, false);
    return true;
}

static bool begin(struct thread_state *state)
{
    return begin_as(state, own_tid_sig());
}

bool thread_begin_absent(struct thread_state *state, uint32_t tid)
{
    state_clear(state);
    if (tid == own_pid_sig())
        bounds_of_main(state);
    atomic_store(&state->is_absent, true);
    return begin_as(state, tid);
}

bool thread_begin(struct thread_state *state, size_t stack_bytes)
{
    state_clear(state);
    state->thread_pointer = arch_thread_pointer_sig();
    if (stack_bytes)
        bounds_of_thread(state, stack_bytes);
    else if (!process_is_attached_sig() || own_tid_sig() == own_pid_sig())
        bounds_of_main(state);
    return begin(state);
}

/* Copies to another state what belongs to the thread itself and not to its record. */
static void take_over(struct thread_state *state, const struct thread_state *old)
{
    struct unwind_bounds bounds = old->bounds;
    struct thread_regions regions = old->regions;
    state_clear(state);
    state->thread_pointer = arch_thread_pointer_sig();
    state->bounds = bounds;
    state->regions = regions;
    state->regions.applied = regions.version - 1;
    state->regions.is_sole = false;
    state->regions.n_task_paths = 0;
}

/* Gives samples that wait for answers a little time: at most *n_tries tries. At the limit of processes nobody answers.
 */
static void last_answers(struct thread_state *state, int *n_tries)
{
    while (state->n_pending && *n_tries > 0) {
        if (atomic_load(&arena_header_sig()->room) == ROOM_GIVEN)
            *n_tries = 1;
        sample_resolve_pending_sig(state, *n_tries == 1);
        if (state->n_pending && --*n_tries) {
            struct timespec pause = {.tv_nsec = 2000000};
            own_call_sig(SYS_nanosleep, &pause, NULL);
        }
    }
}

/* Closes the record of a thread whose events are closed. is_half: code that was changing its tree will never go on. */
static void record_end(struct thread_state *state, clockid_t cpu_clock, int *n_tries, bool is_half)
{
    regions_thread_ends_sig(state);
    if (is_half) {
        sample_forget_pending_sig(state);
    } else {
        state->tree_busy = 1;
        last_answers(state, n_tries);
    }
    uint64_t cpu_ns = own_clock_ns_sig(cpu_clock);
    if (!is_half)
        waits_end(state, cpu_ns);
    if (cpu_ns)
        atomic_store(&state->record->cpu_time_ns, state->past.cpu_time_ns + cpu_ns);
    if (!sandbox_is_entered_sig())
        thread_facts_record(state);
    state->record->end_ns = own_clock_ns_sig(CLOCK_REALTIME);
    DEBUG_NOTE_SIG(DEBUG_PROCESS, 1, "thread ends", {"number", state->record->id, NULL},
                   {"cpu_ms", cpu_ns / 1000000, NULL});
}

static int last_tries(void)
{
    return sandbox_is_entered_sig() ? 1 : LAST_TRIES;
}

void thread_end(struct thread_state *state)
{
    int n_tries = last_tries();
    if (atomic_exchange(&state->is_taken, true)) {
        thread_set_self_sig(NULL);
        return;
    }
    bool is_half = thread_is_changing_trees_sig(state);
    state->ending = 1;
    events_close(state);
    altstack_end(state);
    record_end(state, CLOCK_THREAD_CPUTIME_ID, &n_tries, is_half);
    if (is_half)
        state->record = NULL; /* a handler of the program never returned to code that was changing its trees */
    bool is_free = thread_live_remove_sig(state);
    thread_set_self_sig(NULL);
    thread_stack_remove_sig(state);
    if (is_free)
        thread_discard(state);
}

/* Waits until the thread must have seen `ending`: until it is in no code of the runtime that may not have seen it.
 * False when that takes too long. */
static bool becomes_quiet(struct thread_state *state)
{
    state->ending = 1;
    atomic_thread_fence(memory_order_seq_cst);
    events_enable_sig(state, false);
    for (int tries = 0; (state->in_handler || state->tree_busy) && tries < 2 * QUIET_TRIES; tries++)
        give_way(tries);
    atomic_thread_fence(memory_order_acquire);
    return !state->in_handler && !state->tree_busy;
}

/* Closes the record of another thread. Its descriptors and rings stay, because it may be about to use them. */
static void end_other(struct thread_state *state, int *n_tries)
{
    bool is_quiet = becomes_quiet(state);
    atomic_store(&state->is_left, true);
    if (is_quiet)
        events_stop(state);
    record_end(state, thread_facts_clock(state), n_tries, !is_quiet);
    if (is_quiet && atomic_load(&threads.is_left))
        events_close(state);
    (void)thread_live_remove_sig(state);
    thread_stack_remove_sig(state);
}

/* Ends all other threads that nobody else is ending; returns how many of the others there are. */
static int end_round(int *n_tries)
{
    int n_others = 0;
    for (struct thread_state *state = thread_live_sig(); state; state = thread_live_next_sig(state)) {
        if (state == thread_self_sig())
            continue;
        if (!atomic_exchange(&state->is_taken, true))
            end_other(state, n_tries);
        else
            n_others++; /* it is beginning or ending at this moment */
    }
    return n_others;
}

static void end_others(void)
{
    int n_tries = last_tries();
    atomic_store(&threads.is_over, true);
    for (int tries = 0; end_round(&n_tries) && tries < 2 * QUIET_TRIES; tries++)
        give_way(tries);
}

bool thread_begin_first(bool is_active)
{
    struct thread_state *state = thread_prepare();
    events_install_handler();
    thread_switch_init_sig(is_active);
    thread_unmeasured_begin(false);
    return state && thread_begin(state, 0);
}

void thread_end_all(void)
{
    struct thread_state *self = thread_self_sig();
    uint64_t process_ns = sandbox_is_entered_sig() ? 0 : own_clock_ns_sig(CLOCK_PROCESS_CPUTIME_ID);
    bool is_handled = events_check_handler() && !sandbox_is_entered_sig();
    if (is_handled)
        thread_stop_others_sig(STOP_OUTSIDE_OURS);
    thread_switch_end_sig();
    end_others();
    if (is_handled)
        thread_stop_others_sig(STOP_ANYWHERE);
    if (self)
        thread_end(self);
    if (arena_header_sig())
        thread_unmeasured_record(process_ns);
}

void thread_leave_all(void)
{
    struct thread_state *self = thread_self_sig();
    uint64_t process_ns = own_clock_ns_sig(CLOCK_PROCESS_CPUTIME_ID);
    atomic_store(&threads.is_left, true);
    thread_switch_end_sig();
    end_others();
    if (self)
        thread_end(self);
    events_remove_handler();
    thread_unmeasured_record(process_ns);
}

bool thread_is_on_own_stack(const struct thread_state *self, uintptr_t low, uintptr_t high)
{
    stack_t stack = {.ss_flags = SS_ONSTACK};
    if (low < self->bounds.low || high >= self->bounds.high || sandbox_is_entered_sig())
        return false;
    (void)own_call_sig(SYS_sigaltstack, NULL, &stack);
    return !(stack.ss_flags & SS_ONSTACK);
}

void thread_renew(struct thread_state *self)
{
    struct shield shield;
    shield_raise_sig(&shield);
    alloc_wrap_guard_enter();
    const struct arena_thread *closed = self->record;
    struct thread_past past = self->past;
    struct thread_state *state = thread_prepare();
    if (state) {
        take_over(state, self);
        state->creator = creator_of(self);
        state->maker = self->maker;
        state->maker_depth = self->maker_depth;
        state->maker_is_guess = self->maker_is_guess;
        state->is_holding = self->is_holding;
        state->lacks_stack_room = self->lacks_stack_room;
        state->mask_exceptions = self->mask_exceptions;
    }
    thread_end(self);
    if (state && begin(state)) {
        /* The thread's clocks go on. */
        state->past.cpu_time_ns -= atomic_load(&closed->cpu_time_ns) - past.cpu_time_ns;
        state->past.user_ns -= atomic_load(&closed->user_ns) - past.user_ns;
        state->past.system_ns -= atomic_load(&closed->system_ns) - past.system_ns;
        state->past.delay_ns -= atomic_load(&closed->delay_ns) - past.delay_ns;
        state->past.n_page_faults -= atomic_load(&closed->n_page_faults) - past.n_page_faults;
    } else if (state) {
        thread_discard(state);
    }
    alloc_wrap_guard_leave();
    shield_lower_sig(&shield);
    altstack_begin();
    thread_start_events_unshielded();
}

/* The interrupted code continues with old, so nothing of old may be freed, and nothing that it records counts in this
 * process. */
static struct thread_state *leave_to_interrupted(struct thread_state *old)
{
    struct thread_state *state = thread_prepare();
    struct arena_thread *nowhere = zone_pages_sig(sizeof *nowhere);
    if (nowhere)
        old->record = nowhere;
    old->n_pending = old->n_parked = 0;
    old->ending = 1;
    if (state) { /* signals are still handled on this stack */
        state->own_stack = old->own_stack;
        state->own_stack_bytes = old->own_stack_bytes;
    }
    return state;
}

void thread_fork_child(void)
{
    struct thread_state *old = thread_self_sig(), *state = old;
    bool is_half = old && thread_is_changing_trees_sig(old);
    for (struct thread_state *other = thread_live_sig(); is_half && other; other = thread_live_next_sig(other))
        events_keep_rings(other);
    thread_stack_reset_sig();
    thread_live_reset_sig();
    atomic_store(&threads.free_states, 0);
    atomic_store(&threads.n_mapped, 0);
    atomic_store(&threads.is_over, false);
    thread_unmeasured_begin(true);
    if (!old)
        return;
    events_forget(old, is_half);
    thread_set_self_sig(NULL);
    if (is_half)
        state = leave_to_interrupted(old);
    if (!state)
        return;
    bool lacks_stack_room = old->lacks_stack_room;
    uint8_t mask_exceptions = old->mask_exceptions;
    take_over(state, old);
    regions_fork_child_sig(state);
    state->regions.working = NULL; /* the thread that opened it does not exist here */
    state->maker = NULL;
    state->maker_is_guess = false;
    state->lacks_stack_room = lacks_stack_room;
    state->mask_exceptions = mask_exceptions;
    state->record = NULL;
    state->trace = (struct trace_writer){0}; /* the run is the parent's */
    state->stack_slot = 0;
    state->is_listed = false;
    sample_set_active_sig(sample_is_active_sig()); /* the new arena does not have it yet */
    (void)begin(state);
}
