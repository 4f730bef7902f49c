/* SPDX-License-Identifier: BSD-3-Clause */
/* What the source-x.c files share: appending to a plan, checking thresholds, trying an event on this machine.
 * Ordinary code of the launcher. */
#ifndef LOCUS_SAMPLING_PROBE_H
#define LOCUS_SAMPLING_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "sampling/machine.h"
#include "sampling/source.h"

/* Appends an empty event with these names; NULL with *err filled (ERR_RANGE) when the plan is full. */
struct source_event *source_plan_add(struct source_plan *plan, enum source_number source, const char *name,
                                     const char *metric, struct error *err);

/* Adds a sentence to plan->warning. */
void source_plan_warn(struct source_plan *plan, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A term that may follow a source's name. */
struct source_term {
    const char *name; /* NULL ends the list */
    bool has_value;   /* "ldlat=30"; else a single word, such as "large" */
    uint64_t *value;  /* set to its value, or to 1; untouched when the term is not given */
};

/* Parses the terms of an event: "PEBS,ldlat=30,large". known is ended by an empty row.
 * err: ERR_USAGE not one of the known terms (the message lists them) or not a number */
int source_parse_terms(const char *event, const struct source_term *known, struct error *err);

/* Fills the fields that all our perf events have in common: size, disabled, user mode only, not inherited, one wake-up
 * per record, a ring (if any) that the kernel overwrites. */
void source_attr_init(struct perf_event_attr *attr, uint32_t type, uint64_t config);

/* Period of a clock source in ns: threshold (a bare number is microseconds, as HPCToolkit's), or default_hz without
 * one. err: ERR_RANGE outside SOURCE_CLOCK_MIN_NS .. 1000 s; the message says what to write instead */
int source_period_ns(const char *event, const struct source_threshold *threshold, unsigned default_hz,
                     uint64_t *period_ns, struct error *err);

/* Refuses a period that no clock may have; unit: what a bare number means behind this event, bare_ns: the same in ns,
 * for the message.  err: ERR_RANGE outside SOURCE_CLOCK_MIN_NS .. 1000 s */
int source_check_clock(const char *event, uint64_t period_ns, const char *unit, unsigned bare_ns, struct error *err);

/* Refuses a time (2ms) as the period of an event that counts something else.  err: ERR_USAGE */
int source_check_count(const char *event, const struct source_threshold *threshold, struct error *err);

/* Tries perf_event_open with *attr on the calling process (in a forked child, because a seccomp filter may kill) and,
 * with_ring, a ring of one page. out->works, or reason and fix: errno, perf_event_paranoid, seccomp, limits. */
void source_probe_perf(const struct perf_event_attr *attr, bool with_ring, struct source_probe *out);

/* The same for a member of a group, opened after its leader; leader may be NULL. */
void source_probe_group(const struct perf_event_attr *attr, const struct perf_event_attr *leader, bool with_ring,
                        struct source_probe *out);

/* The same for the last of n members of a group, opened after all others; members[0] leads. */
void source_probe_members(const struct source_event *members, unsigned n, bool with_ring, struct source_probe *out);

/* The same, with a ring, for an event of this CPU: of the calling process, or of all that run there. */
void source_probe_cpu(const struct perf_event_attr *attr, bool is_of_all, struct source_probe *out);

/* Checks a frequency against kernel.perf_event_max_sample_rate, the highest that the kernel accepts.  err: ERR_RANGE */
int source_check_frequency(const char *event, uint64_t hz, struct error *err);

/* The frequency to use when the user gives none: hz, or less if the kernel allows less. */
uint64_t source_default_frequency(uint64_t hz);

/* Highest rate of a CPU-time timer: the kernel's tick, in Hz. */
unsigned source_tick_hz(void);

/* --- clocks --- */

/* The trigger that EADDR and CPUTIME share: a per-thread CPU clock, made with perf, or with a timer where perf is
 * refused. Ordinary code of the launcher. */

/* A source on this clock. */
struct source_clock {
    enum source_number source;
    uint32_t flags; /* SOURCE_*, in addition to those of the trigger */
    const char *metric, *description;
    unsigned default_hz;
};

/* perf_event_attr of the clock with this period.  src: perf_event_open(2) */
void source_clock_attr(uint64_t period_ns, struct perf_event_attr *attr);

/* Tries the clock with perf, else with timers (out->reason then says why not perf, and out->fix how to get it). */
void source_clock_probe(struct source_probe *out);

/* Appends the clock's event.  err: ERR_RANGE impossible period, ERR_UNSUPPORTED neither perf nor timers */
int source_clock_plan(const struct source_clock *clock, const char *event, const struct source_threshold *threshold,
                      struct source_plan *plan, struct error *err);

/* --- events with addresses --- */

/* Functions that the sources of hardware address sampling share: the fields of their samples, and how often they
 * sample.
 * Ordinary code of the launcher. */

/* How often a unit can sample. */
struct address_rate {
    uint64_t period; /* default; 0: default_hz */
    unsigned default_hz;
    uint64_t period_min, period_max;
    unsigned period_step; /* the hardware counts in steps of this many events */
    const char *unit;     /* what is counted, for messages: "operations" */
    bool is_fixed;        /* the unit supports periods only */
};

/* Fills the fields that they have in common: user mode only, one signal per sample, the newest record at data_head;
 * instruction, thread, time, address, CPU, period, data source and latency of each. */
void address_attr_init(struct perf_event_attr *attr, uint32_t type);

/* Tries the event with a ring, first with the latency in parts (Linux 5.12), then with the whole latency. *attr is the
 * one that opened, or the last one tried. */
void address_probe(struct perf_event_attr *attr, struct source_probe *out);

/* Sets large-buffer mode: the row's records collect in a ring that the thread drains, without call paths. */
void address_set_large(struct source_event *row);

/* "one sample every 2000000 dispatched operations", for the plan's choice. */
void address_say_rate(const struct address_rate *rate, const struct source_event *row, char *text, size_t n);

/* Appends an event with this attr: EVENT_ADDRESS, EVENT_DATA_SRC, a ring, integer. name: as the user wrote it. NULL
 * with *err filled when the plan is full. */
struct source_event *address_plan_add(struct source_plan *plan, const char *name, const char *metric,
                                      const struct perf_event_attr *attr, struct error *err);

/* Sets period or frequency of the row from the threshold. A period between two steps is rounded down, with a warning
 * in the plan. A frequency given with -c falls back to the default period where is_fixed.
 * err: ERR_RANGE outside what the unit (or kernel.perf_event_max_sample_rate) allows, with what to write instead */
int address_set_rate(const struct address_rate *rate, const char *event, const struct source_threshold *threshold,
                     struct source_event *row, struct source_plan *plan, struct error *err);

/* --- size of the AUX area --- */

/* How large the AUX area of each thread may be. The kernel counts rings and AUX areas of one user against
 * kernel.perf_event_mlock_kb, for each CPU, and what lies above against the limit of locked memory.
 * src: Documentation/admin-guide/perf-security.rst, "Memory allocation". Ordinary code of the launcher. */

struct aux_limits {
    uint64_t page_bytes;
    unsigned n_cpus;
    unsigned n_areas;        /* of each thread */
    uint64_t mlock_kb;       /* kernel.perf_event_mlock_kb, per CPU */
    uint64_t memlock_bytes;  /* RLIMIT_MEMLOCK; UINT64_MAX: no limit */
    uint64_t hardware_bytes; /* largest area that the hardware takes; 0: not known */
    bool is_unlimited;       /* CAP_IPC_LOCK, or perf_event_paranoid -1 */
};

struct aux_size {
    uint32_t aux_bytes;     /* of one area, a power of two pages; 0: the limits do not suffice for one thread */
    uint32_t ring_bytes;    /* data part of the ring that goes with it: one page */
    uint64_t needed_bytes;  /* least memory that one thread locks, rings included */
    uint64_t allowed_bytes; /* memory that all threads together may lock; UINT64_MAX: any number */
    uint64_t n_threads;     /* number of threads that this is enough for; UINT64_MAX: any number */
};

/* Reads the limits of this machine, or of the fixture that is used in its place. */
void aux_limits_read(struct aux_limits *limits);

/* Chooses 32 pages but at most 1 MiB; less if needed so that a thread on each CPU gets its area, but at least 4 pages.
 */
void aux_size_choose(const struct aux_limits *limits, struct aux_size *size);

/* --- events of perf --- */

/* Trying an event by name without planning it. Ordinary code of the launcher. */

/* Whether -e EVENT would work for an event (not a group) that has no source of its own; reason and fix as in struct
 * source_probe, or why the name cannot be understood. */
void source_perf_try(const char *event, struct source_probe *out);

/* --- events of PEBS --- */

/* Which events give data addresses on this Intel CPU, and how the kernel takes them: one load and one store event for
 * each kind of cores, from sysfs (mem-loads, mem-stores), the event table or libpfm4, in this order.
 * Ordinary code of the launcher. */

#define PEBS_EVENTS_MAX 6 /* loads and stores of three kinds of cores */

/* The user's wishes. */
struct pebs_request {
    uint64_t ldlat; /* threshold in core cycles; 0: the default of the CPU */
    bool wants_loads, wants_stores;
    bool wants_large; /* large-buffer mode */
};

/* An event that the kernel has opened. */
struct pebs_event {
    char text[96];    /* its term name=, or the text for hpcrun -e, without its leader: cpu/mem-loads,ldlat=3/ */
    char origin[320]; /* sysfs, the row of the event table, libpfm4 */
    bool is_load;
    bool tells_source; /* records carry the data source */
    bool has_leader;
    struct perf_event_attr leader; /* only counts; opened first */
    struct perf_event_attr attr;   /* complete except for the period */
    uint64_t period;               /* default */
    unsigned max_precise;          /* of its PMU; 0: the kernel does not give it */
};

struct pebs_found {
    struct pebs_event events[PEBS_EVENTS_MAX];
    unsigned n_events;
    char complaints[768]; /* sentences about rows and events that were left out; may be empty */
};

/* --- trials --- */

/* What a machine claims is tried, not asked: each ability that sources, options or tests need is used once, on memory
 * and processes of our own, and works if what it should say or count is said and counted. Some kernels open hardware
 * breakpoints that never count, refuse tracepoints that are listed, or run no 32-bit programs.
 * For tests LOCUS_LACKS (environment: names with commas between, as trial_name gives them) makes a machine behave like
 * one without. Ordinary code of the launcher. */

enum trial_kind {
    TRIAL_PERF,        /* an event of perf interrupts a thread of ours */
    TRIAL_RINGS,       /* a record comes into a mapped ring */
    TRIAL_BREAKPOINTS, /* a hardware breakpoint counts writes */
    TRIAL_TRACEPOINTS, /* the kernel's tracepoints can be read and counted */
    TRIAL_TIMERS,      /* timers of CPU time; the reason says how often they come */
    TRIAL_MEMFD,       /* memory files */
    TRIAL_USERFAULTFD, /* page faults handled by a program itself */
    TRIAL_IA32,        /* 32-bit programs; foreign on processors other than x86-64 */
    TRIAL_COUNT
};

/* "breakpoints", as in LOCUS_LACKS and hpcrun --doctor=NAME; static storage. */
const char *trial_name(enum trial_kind trial);

/* What it is good for: "for --verify-sharing and mem:ADDRESS"; static storage. */
const char *trial_use(enum trial_kind trial);

/* The trial of this name; TRIAL_COUNT when there is none. */
enum trial_kind trial_find(const char *name);

/* Tries it, in a child process. *out: as of a source's probe; reason says what was tried and what came of it. Takes
 * some milliseconds of CPU time. A fixture (machine.h) is not asked. */
void trial_run(enum trial_kind trial, struct source_probe *out);

/* The directory of tracefs, mounted or, for root, not; -1 with errno when there is none or it may not be read. The
 * caller closes it. */
int trial_open_tracefs(void);

/* The number of a tracepoint ("sched/sched_switch"), which its events have in attr.config, from its file id below that
 * directory; 0 when it cannot be read.  src: Documentation/trace/events.rst */
unsigned long trial_tracepoint_id(int tracefs, const char *event);

#endif
