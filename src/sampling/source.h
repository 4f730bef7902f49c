/* SPDX-License-Identifier: BSD-3-Clause */
/* Sample sources: the hardware and software that can make samples. One file per source (source-x.c: launcher side,
 * probe and attributes) and one row in sources.c. The launcher resolves the user's events into a plan; the runtime only
 * opens what the plan says.
 *
 * The room: sources.c is the table and alone names all sources; plan.c goes from the user's events to a plan and calls
 * event.c (their syntax), probe.c and trial.c (what works here), pmu.c and pmu-encode.c (what the kernel describes),
 * machine.c and perf-names.c. A source calls these, never another source. skid.c and caches.c measure the machine. */
#ifndef LOCUS_SAMPLING_SOURCE_H
#define LOCUS_SAMPLING_SOURCE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define SOURCE_EVENTS_MAX 16
#define SOURCE_RANK_HARDWARE 50 /* from this datacentric_rank on the hardware gives the addresses */

/* One event of the plan, ready to be copied into struct arena_event by the launcher (the fields mean the same; sampling
 * does not include arena). source: value of enum source_id of arena/arena.h; flags: EVENT_*.
 * Rings: attr.write_backward set means a ring mapped read-only (the kernel overwrites; the newest record starts at
 * data_head); not set (EVENT_RING_ONLY) means a ring mapped writable that the reader drains. */
struct source_event {
    char metric[64];
    char description[192];
    char name[64];
    uint32_t source;
    uint32_t flags;
    double scale;
    struct perf_event_attr attr;
    uint64_t timer_interval_ns;
    uint32_t leader;     /* 1 + index of the event of this plan that leads its group; 0: none */
    uint32_t decode;     /* enum mem_decode of abi/data-src.h */
    uint32_t ring_bytes; /* data part of the ring; 0: one page */
    uint32_t aux_bytes;  /* SOURCE_AUX: size of the AUX area */
    char file[256];      /* SOURCE_REPLAY: file to replay; SOURCE_RECORD: file to record the ring in; real path */
};

/* What is recorded of the scheduler. The numbers equal those of enum sched_tier (fmt/sched.h), which this folder must
 * not include; the launcher asserts that. */
enum source_sched_tier { SOURCE_SCHED_TRACEPOINTS = 1, SOURCE_SCHED_SWITCHES, SOURCE_SCHED_OWN, SOURCE_SCHED_NONE };
enum { SOURCE_SCHED_FORMATS = 3, SOURCE_SCHED_FORMAT_BYTES = 4096 };

struct source_sched {
    uint32_t tier;     /* enum source_sched_tier: the best one that works; 0: nothing is to be recorded */
    bool has_all;      /* the threads of other programs, too */
    char why[768];     /* what keeps better tiers away */
    char choice[1024]; /* a line for the user */
    char formats[SOURCE_SCHED_FORMATS][SOURCE_SCHED_FORMAT_BYTES]; /* of sched_switch, sched_waking, sched_migrate_task;
                                                                    * SOURCE_SCHED_TRACEPOINTS */
};

struct source_plan {
    uint32_t n_events;
    struct source_event events[SOURCE_EVENTS_MAX];
    char choice[1024];      /* one line for the user: which source was chosen and why; may be empty */
    char warning[1024];     /* for REALTIME and the like; may be empty */
    bool wants_datacentric; /* allocations and statics are recorded */
    bool wants_memleak;
    bool wants_waits; /* calls that wait, read or write are wrapped */
    struct source_sched sched;
};

/* Shortest period of a clock: more than 5000 samples a second leave a busy or virtual machine no time for the program.
 */
#define SOURCE_CLOCK_MIN_NS UINT64_C(200000)

/* Threshold as the user wrote it: NAME@period or NAME@fHZ. */
struct source_threshold {
    bool is_given;
    bool is_frequency; /* value in samples per second */
    bool is_time;      /* written with ns, us, ms or s: value in ns; for clocks only */
    bool is_standard;  /* from -c, not written after the event */
    uint64_t value;    /* neither: a bare number, in events; of our clocks in us, of perf's clocks in ns */
};

/* Result of trying a source on this machine. */
struct source_probe {
    bool works;
    int error;        /* of perf_event_open or mmap: 0 or an errno, -SIGSYS when a filter kills the process */
    bool is_foreign;  /* the source belongs to other processors, so it need not be mentioned */
    char reason[512]; /* what was tried, if it works, or exactly why not: system call, errno, paranoid level, limits */
    char fix[512];    /* what the user or administrator can do; may be empty */
};

struct sample_source {
    const char *name;     /* "EADDR": case is ignored; "": asked for events that no other source knows */
    const char *summary;  /* one line for -L and the man page */
    int datacentric_rank; /* > 0: may be chosen by -e datacentric, highest working one wins; 0: never by itself */
    bool takes_terms;     /* its name may be followed by terms: NAME,term,term=VALUE (source_parse_terms) */
    bool takes_file;      /* its name is followed by a colon and a file: NAME:FILE */
    void (*probe)(struct source_probe *out);
    /* Appends this source's event(s) to the plan; may say in plan->choice what was chosen.  err: ERR_RANGE impossible
     * period, ERR_UNSUPPORTED, ERR_USAGE unknown term */
    int (*plan)(const char *event, const struct source_threshold *threshold, struct source_plan *plan,
                struct error *err);
};

/* All sources, ended by NULL; static storage. */
const struct sample_source *const *source_table(void);

/* Resolves the events as given with -e (n_events may be 0: datacentric) with the default threshold of -c (may be
 * NULL).  err: ERR_USAGE unknown event (with similar names), ERR_RANGE impossible period, ERR_UNSUPPORTED refused here
 */
int source_plan_events(const char *const *events, unsigned n_events, const char *count, struct source_plan *plan,
                       struct error *err);

/* Parses "NAME@threshold" into name (n_name bytes) and *threshold; the form FAULTS@ring stays part of the name.
 * err: ERR_USAGE, ERR_RANGE */
int source_parse_event(const char *text, char *name, unsigned n_name, struct source_threshold *threshold,
                       struct error *err);

/* Parses only a threshold ("100000", "2ms", "f500") of event, which is named in messages.  err: ERR_USAGE, ERR_RANGE */
int source_parse_threshold(const char *event, const char *text, struct source_threshold *threshold, struct error *err);

/* --- numbers of sources --- */

/* Numbers of sources and flags of events for struct source_event. They equal SOURCE_x and EVENT_x of arena/arena.h,
 * which this folder must not include; the launcher asserts that where it copies the plan. */

enum source_number {
    SOURCE_NUMBER_EADDR = 1,
    SOURCE_NUMBER_FAULTS,
    SOURCE_NUMBER_CPUTIME,
    SOURCE_NUMBER_REALTIME,
    SOURCE_NUMBER_MEMLEAK,
    SOURCE_NUMBER_PERF,
    SOURCE_NUMBER_PMU_ADDR,
    SOURCE_NUMBER_BLOCKTIME,
    SOURCE_NUMBER_IO_READ,
    SOURCE_NUMBER_IO_WRITE
};

#define SOURCE_WEIGHTED 1u   /* the value comes from weights, not from counts */
#define SOURCE_TIMER 2u      /* POSIX timer instead of perf */
#define SOURCE_RING 4u       /* needs a mapped ring */
#define SOURCE_ADDRESS 8u    /* yields data addresses */
#define SOURCE_INTEGER 16u   /* integer in the profile */
#define SOURCE_WALLCLOCK 32u /* timer on CLOCK_MONOTONIC */
#define SOURCE_RING_ONLY 64u /* no signal */
#define SOURCE_DATA_SRC 128u /* records have level, latency and so on of the access */
#define SOURCE_BATCH 256u    /* large-buffer mode: many records per signal, no call path */
#define SOURCE_AUX 512u      /* records in an AUX area (Arm SPE) */
#define SOURCE_SILENT 1024u  /* leads a group and gives no samples itself */
#define SOURCE_KERNEL 2048u  /* records carry a kernel call chain */
#define SOURCE_REPLAY 4096u  /* a file replaces the kernel and the hardware */
#define SOURCE_SWAPPED 8192u /* SOURCE_REPLAY: from a machine of the other byte order */
#define SOURCE_RECORD 16384u /* the ring of the first thread is copied to a file */
#define SOURCE_FILE 32768u   /* what is recorded names a file, without an address */
#define SOURCE_CALLS 65536u  /* wrappers of calls record it; the kernel is asked for nothing */

#endif
