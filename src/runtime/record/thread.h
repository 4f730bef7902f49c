/* SPDX-License-Identifier: BSD-3-Clause */
/* The state that the runtime keeps per thread, in private memory that is mapped once and reused. Reached through one
 * initial-exec thread-local pointer. */
#ifndef LOCUS_RUNTIME_RECORD_THREAD_H
#define LOCUS_RUNTIME_RECORD_THREAD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "fnbounds/recipe-eval-sig.h"
#include "runtime/record/cct.h"
#include "runtime/record/governor.h"
#include "runtime/record/meeting.h"
#include "runtime/record/python.h"
#include "runtime/record/trace.h"
#include "runtime/unwind/unwind.h"

#define THREAD_PENDING_MAX 256 /* power of two */
#define THREAD_PENDING_FRAMES 24
#define THREAD_RECORD_BYTES 131072 /* two of the largest records */

/* How far an event is that the kernel counts down to its next sample: which sample comes next is decided here, and the
 * kernel is told how many events there are until then. */
struct thread_count {
    struct governor_cell cell; /* period 0: not such an event */
    uint64_t next, gap;        /* the kernel's next overflow, and the distance of those after it */
    uint64_t entered;          /* the count when the handler was entered, THREAD_COUNT_UNKNOWN: was not read */
    uint64_t sampled;          /* the count at the last sample */
    uint64_t n_due;            /* samples that should have come */
    bool is_sampled;           /* one has come, and the next is not decided yet */
};

#define THREAD_COUNT_UNKNOWN UINT64_MAX

/* A sampled event of one thread. */
struct thread_event {
    int fd;                /* perf descriptor (in a replay, that of the file), -1 none */
    int drain_fd;          /* event that signals when the ring of fd fills up, -1 none */
    uint64_t id, drain_id; /* of their events: the program may close a descriptor and reuse its number */
    bool has_timer;        /* POSIX timer instead of perf */
    bool is_paused;        /* its last tick came in a pause */
    int timer_id;          /* kernel timer id */
    void *ring;            /* mapped ring of 1 + 2^n pages, NULL none */
    uint32_t ring_bytes;   /* all of the mapping */
    void *aux;             /* AUX area, NULL none */
    uint64_t aux_bytes;
    uint64_t seen;        /* head of an overwritten ring when it was last read */
    uint64_t n_written;   /* samples that were written to the ring */
    uint64_t n_own;       /* those of them that are page faults of the profiler itself */
    bool is_estimate;     /* n_written is estimated */
    uint64_t last_cpu_ns; /* thread CPU time at the last sample of a timer, or of a counted event with a frequency */
    uint64_t first;       /* length of its first period, while that lasts; 0: it has the plan's period */
    uint64_t due;         /* the event's count at which that ends */
    uint64_t tick_ns;     /* of a CPU-time timer: how often the kernel looks at it */
    uint32_t n_threads; /* its samples stand for so many threads, as others like this one do not have it; 0: its own */
    struct governor governor;
    struct thread_count count;
};

/* A watchpoint of one thread. */
struct thread_watchpoint {
    struct thread_event event; /* fd -1: none */
    uint64_t n_seen;           /* accesses so far, by the kernel's count */
    bool is_armed;
    bool has_shot; /* it was armed and saw nothing: the kernel would still stop it after one access */
};

/* A block change: until position of the ring of an event, [start, end) was var. See events.h. */
struct thread_block_change {
    uintptr_t start, end;
    uint64_t var, position;
    uint32_t event;
    bool is_vague; /* nothing is known of records after position */
    bool is_done;
};

#define THREAD_BLOCK_CHANGES_MAX 256 /* power of two */

struct thread_block_changes {
    _Atomic uint32_t begin, end;             /* unread entries, modulo THREAD_BLOCK_CHANGES_MAX */
    _Atomic uint64_t lost[ARENA_EVENTS_MAX]; /* up to this position entries are missing for lack of room */
    struct thread_state *next;               /* list of the registered threads */
    struct thread_block_change items[THREAD_BLOCK_CHANGES_MAX];
};

/* A parallel region that a thread has opened, for others to work on. While a thread works on it, the opener stays in
 * the call that opened it: its stack above that call does not change, and can be read by the others. */
struct thread_work {
    const struct thread_state *opener;
    const struct thread_work *outer; /* what the opener itself works on for another thread; NULL: nothing */
    uintptr_t pc, sp, fp;            /* of the call, in the opener (struct alloc_site) */
    uint32_t serial;                 /* of those that the opener has opened */
};

#define THREAD_OPEN_MAX 8

/* A task that a thread runs now, for whoever made it. */
struct thread_task {
    uint32_t creator; /* node of the path that it was made on, ... */
    uint32_t pid;     /* ... in this process; 0: not known */
    uintptr_t frame;  /* of our function that has called the task's */
};

#define THREAD_REGIONS_MAX 64

/* The regions that the program has entered on this thread and not left. Written by ordinary code of the thread. */
struct thread_regions {
    volatile uint32_t n;                /* regions entered, the outermost first */
    uint32_t n_beyond;                  /* regions entered for which there was no room */
    volatile uint32_t version;          /* counts changes */
    uint32_t applied;                   /* the version that the sample tree's paths are entered for */
    uint32_t names[THREAD_REGIONS_MAX]; /* references of arena_string, 0: not known */
    uint32_t phase, phase_seen;         /* the name of the phase that it is in, 0: none; arena_header.phase then */
    /* What the thread works on for another one, NULL: nothing; a change counts in version. */
    const struct thread_work *volatile working;
    struct thread_task task; /* the innermost one; a change counts in version */
    uint32_t n_task_paths;   /* paths on which the thread has made tasks */
    uint32_t n_tasks;        /* that it has made since n_taken, its samples of the first event, changed */
    uint64_t n_taken;
    uint32_t top, top_of; /* the node of what it worked on last, in the tree with this root */
    /* The parallel regions that the thread has opened itself, the outermost first, for workers that know whose they
     * are. */
    struct thread_work open[THREAD_OPEN_MAX];
    volatile uint32_t n_open, n_opened; /* now; ever. n_open may be more than THREAD_OPEN_MAX */
    bool is_sole;                       /* it is known to be (work_claim_sole_sig) */
    const struct thread_work *seen;     /* what the thread was seen working on last, with this serial */
    uint32_t seen_serial;
};

/* A call of the program that waits at this moment (process/waits.h). */
struct thread_wait {
    uintptr_t pc, sp, fp; /* of its caller */
    uintptr_t function;
    uint64_t cpu_ns;   /* the thread's CPU time when it began */
    uint64_t since_ns; /* CLOCK_MONOTONIC when it began; 0: the thread is in no such call */
};

struct thread_waits {
    bool is_wanted, has_transfers; /* of bytes: one of the two events below */
    uint32_t event;                /* index into arena_header.events */
    int8_t transfers[2];           /* the same of bytes read and of bytes written; -1: not wanted */
    uint32_t below;                /* the tree's below when path was entered */
    struct thread_wait now;
    uint64_t blocked_ns; /* what the thread has waited, as recorded */
    uint64_t began_ns;   /* CLOCK_MONOTONIC less its CPU time when it began to be recorded; 0: not known */
    /* When the thread was looked at last: how long it had been without a processor, less blocked_ns, and how often it
     * had left one. n_left 0: it has not been looked at. */
    uint64_t away_ns, n_left;
    uintptr_t fault_pc;   /* of the page fault that was sampled since, 0: none */
    _Atomic bool has_gap; /* the program has stopped the sampling meanwhile */
};

/* The leaf of the last sample that had only a pc: the next one is often at the same instruction. */
struct thread_last_pc {
    uintptr_t pc;
    uint32_t leaf, generation;
    bool is_own;
};

/* A frame kept with a pending sample, for stack addresses. */
struct thread_frame {
    uintptr_t cfa;
    uint32_t node;
    uint32_t pad;
};

/* A sample that cannot be attributed yet: its recipe or module table is missing, or its thread was inside the
 * allocator, whose result is not known yet. */
struct thread_pending {
    struct recipe_regs regs;
    uint64_t address;      /* when has_address */
    uint64_t last_address; /* of n_samples samples on neighbouring pages; address is the first */
    uint64_t weight;       /* of all of them */
    uint64_t lat_cycles;
    uint64_t pattern; /* when has_address */
    uint32_t metrics;
    uint32_t n_samples;
    uint64_t t_ns, last_t_ns; /* CLOCK_MONOTONIC when the first and the last of them were taken */
    uint32_t leaf;
    uint16_t cpu;
    uint8_t event, class;
    uint16_t flags;
    bool has_address, is_traced;
    uint8_t n_frames;
    struct thread_frame frames[THREAD_PENDING_FRAMES];
};

/* The sums of the record when the thread began: they belong to the threads that had it before. */
struct thread_past {
    uint64_t cpu_time_ns, user_ns, system_ns, delay_ns, n_page_faults;
    uint64_t taken[ARENA_EVENTS_MAX], overflows[ARENA_EVENTS_MAX], not_delivered[ARENA_EVENTS_MAX];
    uint64_t enabled_ns[ARENA_EVENTS_MAX], running_ns[ARENA_EVENTS_MAX];
};

/* How fast the thread releases recorded blocks (alloc-events-hook.c). */
struct thread_churn {
    uint32_t n_blocks, n_fast; /* blocks of the series; series in a row that were too fast */
    uint64_t since_ns;         /* the thread's CPU time when the series began; 0: not known */
    uint64_t n_made;           /* blocks that the process had recorded then */
};

struct thread_state {
    /* Kept after the thread has ended: another thread may continue it. */
    struct arena_thread *record; /* NULL: none yet */
    uint32_t ref;                /* of record */
    uint32_t reader;             /* epoch slot of the object map */
    uint32_t stack_slot;         /* 1 + its place in the table of stacks, 0 none */
    struct cct_tree samples, allocs;
    struct trace_writer trace;
    struct arena_cursor chunks; /* of the record and the tree of allocations, as long as they are not touched */
    uintptr_t own_stack;        /* alternate signal stack for the samples, above a guard page; 0 none */
    size_t own_stack_bytes;
    bool has_own_stack;  /* we have set it in the kernel; since then only the program may have set another */
    bool begins_blocked; /* its creator had our signal blocked for our own reasons, and it inherited that */
    uint32_t id;         /* given when its creation began, in the arena with this header; NULL: none */
    const struct arena_header *id_of;
    uint32_t
        creator; /* node of the path that its creation was called on, in the arena with this header; 0: not known */
    const struct arena_header *creator_of;
    const struct thread_state
        *maker;           /* whose region number maker_depth the thread was made for, like all that it will */
    uint32_t maker_depth; /* work on; NULL: not known */
    bool maker_is_guess;  /* maker is the only thread that is known to open regions of this kind */
    bool has_given_mask;  /* begins with the mask of its attribute, which is not translated yet */
    bool is_used;         /* a thread has had it: its memory is no longer all zero */
    bool is_touched;      /* what a sample needs of it has memory (altstack_touch) */
    bool is_listed;       /* in the list of all states */
    _Atomic bool is_live; /* of a registered thread */
    uint32_t n_live;      /* with it, so many threads were registered when it began */
    struct thread_state *next_listed;
    struct thread_state *_Atomic next; /* in the list of free states */
    /* Of the thread itself. */
    uintptr_t thread_pointer;
    _Atomic bool is_absent; /* it ran before the runtime came, and has not met it yet (thread_adopt_sig) */
    struct unwind_bounds bounds;
    struct thread_past past;
    volatile sig_atomic_t in_handler;   /* the overflow handler runs on this thread */
    volatile sig_atomic_t in_hook;      /* a malloc hook of ours is recording on this thread */
    volatile sig_atomic_t tree_busy;    /* ordinary code is changing the sample tree */
    volatile sig_atomic_t in_allocator; /* the thread is inside the real allocator */
    volatile sig_atomic_t ending;
    _Atomic bool is_taken; /* its events are being opened or closed, by its thread or the one that ends the process */
    _Atomic bool is_left;  /* the one that ends the process closes its record, or has done so */
    _Atomic bool is_standing; /* in thread_stand_sig */
    bool sees_faults;         /* page faults of ours would be sampled */
    bool is_holding;          /* a signal with our number is held back for the program; no samples meanwhile */
    bool is_waiting;          /* the program waits for a signal with our number; no samples meanwhile */
    bool lacks_stack_room;    /* the program's alternate signal stack has no room for a sample: our signal is blocked */
    uint8_t mask_exceptions;  /* of the mask translation: see signals-sig.c */
    uint32_t toggle;          /* which operand of a two-operand instruction is next */
    uint32_t n_pending, first_pending;
    uint32_t n_parked; /* pending samples that know their address and wait for the object there */
    struct thread_event events[ARENA_EVENTS_MAX];
    struct thread_event watch;    /* the event that shows the end of a delay; -1 none */
    struct thread_event page_ins; /* one that shows pages that came from a disk, where waits are wanted; -1 none */
    struct thread_watchpoint watchpoints[MEETING_WATCHES];
    struct thread_last_pc last_pc;
    struct thread_churn churn;
    uint64_t left_ns;   /* CLOCK_MONOTONIC when the handler was left last, 0: it has not run yet */
    uint32_t n_cold;    /* so many more handlers may touch memory for the first time */
    uint32_t n_to_time; /* so many samples are timed by the clock that stops while others have the processor */
    struct thread_regions regions;
    struct thread_waits waits;
    void *(*start)(void *);   /* start function of pthread_create, or */
    int (*start_c11)(void *); /* of thrd_create, else NULL */
    void *argument;
    size_t stack_bytes;
    struct unwind_path alloc_path; /* begins on a page that is in use already: a page more costs each thread a fault */
    struct thread_meetings meetings; /* where watchpoints are wanted */
    struct thread_pending pending[THREAD_PENDING_MAX];
    struct unwind_path sample_path;
    struct python_path python;
    struct thread_block_changes block_changes;
    struct unwind_path wait_path;              /* of the last call that waited or moved bytes */
    struct unwind_path task_path;              /* of the last call that made a task */
    uint64_t wrapped[THREAD_RECORD_BYTES / 8]; /* copies of records that wrap in their ring */
};

/* State of the calling thread, NULL when it is not registered.  ctx: any */
struct thread_state *thread_self_sig(void);

/* The same where the runtime came into a running program: a thread that is registered and has not met the runtime yet
 * gets its state now. NULL, too, when the thread-local storage is another thread's.  ctx: any */
struct thread_state *thread_adopt_sig(void);

/* Makes state (NULL: none) the calling thread's state.  ctx: ordinary */
void thread_set_self_sig(struct thread_state *state);

/* _add and _remove: the table of stacks that thread_of_stack_sig searches. A state keeps its place in the table.  ctx:
 * ordinary */
void thread_stack_add_sig(struct thread_state *state);
void thread_stack_remove_sig(const struct thread_state *state);
void thread_stack_reset_sig(void);

/* Code of the runtime that was changing the trees of self, the calling thread, was left for good by a jump: closes
 * these trees, and the thread continues with new ones.  ctx: hook */
void thread_renew(struct thread_state *self);

/* Whether both addresses lie on the stack that self, the calling thread, was created with, and the thread runs on it
 * now: not on a signal stack or on a stack that the program has made.  ctx: any */
bool thread_is_on_own_stack(const struct thread_state *self, uintptr_t low, uintptr_t high);

/* Whether code of the runtime is changing the trees of self.  ctx: any */
bool thread_is_changing_trees_sig(const struct thread_state *self);

/* Starts or stops the sampling of all threads. If a switch is being made at this moment, whoever makes it does this
 * too. Does nothing after the end.  ctx: any */
void thread_switch_sig(bool is_active);

/* Ends the sampling for good; running events go on until they are closed, but their samples are not taken.
 * ctx: any */
void thread_switch_end_sig(void);

/* Handles a signal with our number while the process ends: the thread stands still as long as it has to. True: the
 * signal was sent for that alone.  ctx: handler of that signal; self may be NULL */
bool thread_stand_sig(struct thread_state *self, const siginfo_t *info, const ucontext_t *context);

/* Whether a signal with our number was sent for that.  ctx: any */
bool thread_is_stop_sig(const siginfo_t *info);

/* The thread whose stack holds address: reference of its arena_thread, 0 when none does.  ctx: any */
uint32_t thread_of_stack_sig(uintptr_t address);

#endif
