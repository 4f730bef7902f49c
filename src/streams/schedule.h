/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tasks of a stream did when: on a CPU, waiting for one, or blocked; how long a woken task waited; who moved
 * where. It follows switches and wakings from event to event, and says nothing where they do not tell: what a recording
 * cannot know is in no sum. Ordinary code. */
#ifndef LOCUS_STREAMS_SCHEDULE_H
#define LOCUS_STREAMS_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "streams/stream.h"

/* What a task does between two events. */
enum schedule_state {
    SCHEDULE_UNKNOWN,
    SCHEDULE_RUNNING,         /* on a CPU */
    SCHEDULE_WOKEN,           /* from its waking until it runs */
    SCHEDULE_PREEMPTED,       /* from leaving its CPU, although it could go on, until it runs */
    SCHEDULE_SLEEPING,        /* from leaving its CPU in an interruptible sleep until it is woken */
    SCHEDULE_UNINTERRUPTIBLE, /* the same in an uninterruptible one, such as for a disk */
    SCHEDULE_STOPPED,         /* the same otherwise: stopped, traced, parked, an idle kernel thread */
    SCHEDULE_OFF,             /* from leaving its CPU blocked until it runs: when it was woken is not recorded */
    SCHEDULE_DEAD,
    SCHEDULE_N_STATES
};

/* The name of a state for people, such as "running". */
const char *schedule_state_name(enum schedule_state state);

/* Stands for a task that the recording does not name. */
#define SCHEDULE_NOBODY INT32_MIN

enum schedule_kind { SCHEDULE_SWITCH, SCHEDULE_WAKING, SCHEDULE_LOST };

/* An event of scheduling, whatever format it was recorded in. */
struct schedule_step {
    int64_t t_ns;
    int32_t prev, next; /* SCHEDULE_SWITCH: who leaves and who comes, SCHEDULE_NOBODY; SCHEDULE_WAKING: next is woken */
    int32_t then;       /* SCHEDULE_SWITCH: who comes, although nothing more is known of it; else next */
    uint16_t cpu;
    uint8_t kind;  /* enum schedule_kind */
    uint8_t state; /* SCHEDULE_SWITCH: what prev does from then on; SCHEDULE_UNKNOWN is SCHEDULE_OFF */
};

/* How long tasks waited from their waking until they ran. All zero: no waking was followed by a run. */
struct schedule_latency {
    uint64_t n;
    int64_t sum_ns, p95_ns, max_ns; /* p95: the least value that 95 % are not above */
    int64_t max_at_ns;              /* when the longest one ended */
};

struct schedule_task {
    int32_t task;
    int64_t ns[SCHEDULE_N_STATES]; /* time in each state, inside the window; SCHEDULE_UNKNOWN, SCHEDULE_DEAD: 0 */
    struct schedule_latency latency;
    uint64_t n_switches;    /* away from a CPU */
    uint64_t n_preemptions; /* of them, while it could go on */
    uint64_t n_runs;        /* onto a CPU */
    uint64_t n_migrations;  /* of them, onto another CPU than before */
    int64_t run_max_ns;     /* its longest stay on a CPU, inside the window */
    /* where it stands while events are followed */
    int32_t last_cpu, from_cpu; /* -1: not known; from: before the run that goes on */
    int64_t since_ns, known_ns, left_ns,
        woken_ns;               /* known: until when it is accounted; left, woken: INT64_MIN, never */
    int64_t off_ns, latency_ns; /* of the run that goes on: before it; -1: not known */
    size_t n_gaps;              /* that had been when it came into its state */
    uint8_t state;
};

struct schedule_cpu {
    uint16_t cpu;
    bool is_seen;                                     /* has a switch */
    int64_t running_ns, idle_ns, unknown_ns;          /* sum: the window */
    int64_t waited_ns;                                /* by tasks until they ran here: woken or preempted */
    struct schedule_latency latency;                  /* of the tasks that then ran here */
    uint64_t n_switches, n_preemptions, n_migrations; /* migrations: onto this CPU */
    uint64_t n_lost_places;
    /* while events are followed: who runs (SCHEDULE_NOBODY: not known), since when, when something happened last */
    int32_t current;
    int64_t since_ns, last_ns;
};

/* A stretch of time of one state; inside the window. */
struct schedule_piece {
    int64_t from_ns, to_ns;
    int32_t task;      /* 0: idle */
    uint16_t cpu;      /* where it runs; of other states, where it ran last, STREAM_NO_CPU */
    uint16_t next_cpu; /* where it came behind the stretch, STREAM_NO_CPU: nowhere, or it is not known */
    uint8_t state;
};

/* A stay on a CPU, whole even where the window cuts it. */
struct schedule_run {
    int64_t from_ns, to_ns;
    int64_t off_ns;     /* how long it had been away from any CPU; -1: not known */
    int64_t latency_ns; /* of that, since it was woken; -1: not known, or it was not blocked */
    int32_t task;
    int32_t next;     /* who came behind it, SCHEDULE_NOBODY */
    int32_t from_cpu; /* where it ran before, -1: not known */
    uint16_t cpu;
    uint8_t state; /* what it did then; SCHEDULE_UNKNOWN: it still ran at the end, or records were lost */
};

/* Orders struct schedule_run by task, then by when they begin: for qsort.  ctx: any */
int schedule_compare_runs(const void *a, const void *b);

/* Receives stretches and stays as they end: of one task, or on one CPU, in the order of time; and all events, whatever
 * they are, before what they end. Each may be NULL. */
struct schedule_sink {
    void (*piece)(void *context, const struct schedule_piece *piece);
    void (*run)(void *context, const struct schedule_run *run);
    void (*event)(void *context, const struct stream_event *event);
    void *context;
    bool is_brief; /* nobody asks how long tasks waited: all latencies stay empty */
};

/* The window: events outside are followed, but not counted. */
struct schedule_window {
    int64_t from_ns, to_ns; /* inclusive */
};

struct schedule_wait;

/* Where a task was found. */
struct schedule_place {
    int32_t task;
    uint32_t behind; /* its index; 0: nothing was found */
};

enum { SCHEDULE_RECENT = 1024 };

/* The answer. All zero is empty. */
struct schedule {
    struct schedule_task *tasks; /* [n_tasks] by task, when it is finished; the idle task is not among them */
    size_t n_tasks, cap_tasks;
    struct schedule_cpu *cpus; /* [n_cpus] by number */
    size_t n_cpus, cap_cpus;
    struct schedule_window window;
    int64_t begin_ns, end_ns; /* of the stream: its first and its last event */
    bool knows_wakings;       /* else: SCHEDULE_WOKEN, the blocked states and latencies are absent */
    bool knows_all_tasks;     /* else: idle and unknown times are absent */
    uint64_t n_switches, n_wakings, n_lost_places; /* in the window */
    uint64_t n_unseen; /* in the window: tasks left CPUs onto which nobody saw them come after they had left before */
    int64_t unseen_ns; /* between these: part of it they ran */
    uint64_t n_unseen_wakings; /* of n_unseen: they had been woken, so that this waking has no latency */
    uint64_t n_contradictions; /* events that do not fit to those before: something was not recorded */
    bool failed;               /* out of memory */
    const struct schedule_sink *sink;
    struct slots slots;
    struct schedule_place recent[SCHEDULE_RECENT]; /* by the rest of the task's number, while events are followed */
    int64_t *gaps;                                 /* [n_gaps] when records began to be lost */
    size_t n_gaps, cap_gaps;
    struct schedule_wait *waits; /* [n_waits] */
    size_t n_waits, cap_waits;
};

/* Follows all events of a stream. window NULL: all of it; sink NULL: none. *sched must be empty; schedule_close frees
 * it. err: ERR_MEMORY */
int schedule_analyse(const struct stream *stream, const struct schedule_window *window,
                     const struct schedule_sink *sink, struct schedule *sched, struct error *err);

/* The same, step by step: begin_ns, end_ns, window, knows_* and sink are set, then come all steps in the order of
 * time, then schedule_finish, before which end_ns may be set. seen: something else happened on a CPU. */
void schedule_seen(struct schedule *sched, uint16_t cpu, int64_t t_ns);
void schedule_take(struct schedule *sched, const struct schedule_step *step);
int schedule_finish(struct schedule *sched, struct error *err);

/* Frees everything and makes it empty. */
void schedule_close(struct schedule *sched);

/* --- from a place within the stream, up to another one --- */

/* What a task does at a place, and how that ends behind it, in the words of struct schedule_task. */
struct schedule_task_stand {
    int32_t task, last_cpu, from_cpu;
    int32_t next; /* with has_run: of the run that goes on; as state then_state */
    int64_t since_ns, known_ns, left_ns, woken_ns, off_ns, latency_ns;
    uint64_t n_gaps;
    int64_t begin_ns, end_ns; /* of the stretch that goes on; it has begun at since_ns, unless it is one that only later
                               * events tell of */
    uint16_t end_cpu;         /* where it came then, or where it runs */
    uint8_t state, end_state, then_state;
    bool has_run, has_end, is_late; /* late: later events tell of it */
};

struct schedule_cpu_stand {
    int64_t since_ns, last_ns, begin_ns, end_ns; /* as above */
    int32_t current, end_current;
    bool is_seen, has_end;
};

/* Of all tasks and CPUs that have been met, and when records began to be lost. */
struct schedule_stand {
    struct schedule_task_stand *tasks; /* [n_tasks] in the order in which they were met */
    size_t n_tasks;
    struct schedule_cpu_stand *cpus; /* [n_cpus] */
    size_t n_cpus;
    const int64_t *gaps; /* [n_gaps] */
    size_t n_gaps;
};

/* Fills what sched stands at: there is room for its tasks and CPUs. */
void schedule_stand_take(const struct schedule *sched, struct schedule_stand *stand);

/* Notes how something ends that went on at a place before t_ns. False: it does not fit to what was known there, so that
 * nobody can end there. */
bool schedule_stand_piece(const struct schedule *sched, struct schedule_stand *stand,
                          const struct schedule_piece *piece);
bool schedule_stand_run(const struct schedule *sched, struct schedule_stand *stand, const struct schedule_run *run);

/* Instead of the events before a place: its stand; and instead of those behind another one, where the window has ended:
 * that one's, and the last one of all. begin: false when out of memory. */
bool schedule_begin_at(struct schedule *sched, const struct schedule_stand *stand);
void schedule_end_at(struct schedule *sched, const struct schedule_stand *stand, const struct schedule_stand *last);

/* The task or CPU by its number, NULL: none.  Of a finished one. */
const struct schedule_task *schedule_task_of(const struct schedule *sched, int32_t task);
const struct schedule_cpu *schedule_cpu_of(const struct schedule *sched, uint16_t cpu);

/* Whether anything is known of what a CPU ran: else its times are not zero, but absent. */
bool schedule_cpu_is_known(const struct schedule_cpu *cpu);

/* Away from any CPU, as far as that is known. */
int64_t schedule_off_ns(const struct schedule_task *task);

/* --- the events of scheduling in a stream --- */

/* Where a stream has them: types and fields, found once. */
struct schedule_source {
    const struct stream *stream;
    int32_t switch_id, waking_id, new_id; /* STREAM_ID_NONE: there are none */
    const struct stream_field *prev_pid, *prev_state, *misc, *next_pid, *woken_pid, *new_pid;
    bool knows_next; /* whoever comes is seen to leave again */
    bool knows_own;  /* of tasks that are not the stream's own, nothing is known but that they were there */
};

/* The field of switches that are made of the kernel's records of switches (perf_event_open(2)), its misc word, and the
 * bits of it: whether the record is of the thread that leaves, whether that could go on, whether it ended. */
#define SCHEDULE_MISC_FIELD "misc"
#define SCHEDULE_MISC_OUT 0x2000
#define SCHEDULE_MISC_PREEMPTED 0x4000
#define SCHEDULE_MISC_GONE 0x1000 /* of records that were made of the end of a thread */

/* Finds them; expect: in a stream whose events are yet to come, as if there were some of all types that it has. */
void schedule_source_init(struct schedule_source *source, const struct stream *stream);
void schedule_source_expect(struct schedule_source *source, const struct stream *stream);

/* The same, event by event, of a stream of which they need not be there: begin sets all but end_ns in an empty *sched;
 * then come all events in the order of time, each with its step (NULL: it is none), then schedule_finish. */
void schedule_begin(struct schedule *sched, const struct schedule_source *source, const struct schedule_window *window,
                    const struct schedule_sink *sink, int64_t begin_ns);
void schedule_follow(struct schedule *sched, const struct stream_event *event, const struct schedule_step *step);

/* Whether the event is one of scheduling, and which. */
bool schedule_source_step(const struct schedule_source *source, const struct stream_event *event,
                          struct schedule_step *step);

/* Takes an event with its step (NULL: it is none), as if the stream had events of all its types; it may not look at
 * what the stream counts. */
typedef void schedule_taker(void *context, const struct stream *stream, const struct stream_event *event,
                            const struct schedule_step *step);

/* As stream_open of a file, of which no event is kept: each is handed over, in its order, to a thread of its own while
 * the next ones are read. Then the stream says how many there were, and its names are followed.
 * err: as stream_open; ERR_UNSUPPORTED (also: they do not come in their order) */
int schedule_open_passing(const char *path, schedule_taker *take, void *context, struct stream **stream,
                          struct error *err);

/* The event that woke a task exactly then, NULL: there is none. */
const struct stream_event *schedule_waking_of(const struct schedule_source *source, int32_t task, int64_t t_ns);

/* Who came onto the CPU that a task left exactly then, or who left the one that it came onto, in the words of that
 * switch: it may be a task of which nothing more is known, or the idle one (0). SCHEDULE_NOBODY: it is not recorded. */
int32_t schedule_next_of(const struct schedule_source *source, int32_t task, int64_t t_ns);
int32_t schedule_previous_of(const struct schedule_source *source, int32_t task, int64_t t_ns);

/* Where slice i begins of n_slices (> 0) equal ones from from_ns to to_ns; i = n_slices: to_ns.  ctx: any */
int64_t schedule_slice_ns(int64_t from_ns, int64_t to_ns, size_t n_slices, size_t i);

/* The slice of them that t_ns, from from_ns on, lies in; the last one also from its end on.  ctx: any */
size_t schedule_slice_at(int64_t from_ns, int64_t to_ns, size_t n_slices, int64_t t_ns);

#endif
