/* SPDX-License-Identifier: BSD-3-Clause */
/* Scheduler records (.sched): what the kernel said of switches, wake-ups and migrations of the threads of one launch,
 * as far as it could be asked there (the tier). A file is a row of chunks, and grows while the program runs: where the
 * recorder was killed, it ends early and says no more than that. Layout: FORMAT.md. Ordinary code. */
#ifndef LOCUS_FMT_SCHED_H
#define LOCUS_FMT_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "fmt/json.h"

#define SCHED_VERSION "01.00"
#define SCHED_BEGINS "LOCUS-sched_______"
#define SCHED_NO_TID UINT32_MAX

/* What could be recorded, best first. */
enum sched_tier {
    SCHED_TIER_TRACEPOINTS = 1, /* sched_switch, sched_waking, sched_migrate_task of all CPUs, with their fields */
    SCHED_TIER_SWITCHES,        /* switches of all CPUs: who left, who came; no wake-ups */
    SCHED_TIER_OWN,             /* own threads left or came; not for whom or after whom */
    SCHED_TIER_NONE             /* nothing of it: totals of threads only */
};

/* What holds for the whole file. wall_ns: nanoseconds since 1970 less those of CLOCK_MONOTONIC, which all times in the
 * file are of. why: what kept a better tier away; empty for the best. online: CPUs, "0-3,6". */
struct sched_head {
    uint8_t tier;
    bool has_all; /* of all threads of the machine; else of the program's and of whom they switched with or woke */
    int64_t wall_ns;
    uint64_t limit_bytes; /* of the file, 0: none */
    uint32_t n_cpus;      /* possible ones: numbers are below */
    uint32_t pid;         /* of the program */
    char *online, *host, *boot_id, *kernel, *why;
};

/* Kind of a tracepoint's event: text as the host's tracefs has it. */
struct sched_format {
    uint32_t id;
    char *system, *name, *text;
};

/* A thread that is the program's, or that its threads switched with or woke: from t_ns on it is called comm. pid: its
 * process, 0: not known. */
struct sched_task {
    uint64_t t_ns;
    uint32_t tid, pid;
    bool is_own;
    char *comm;
};

enum sched_kind {
    SCHED_RAW = 1, /* a tracepoint's bytes, as PERF_SAMPLE_RAW has them */
    SCHED_SWITCH   /* struct sched_switch */
};

#define SCHED_OUT 1u     /* the thread leaves the CPU, else it comes */
#define SCHED_PREEMPT 2u /* it could have run on */
#define SCHED_GONE 4u    /* it has ended, and leaves for the last time */

/* One thread leaves or comes. other: who comes or left, SCHED_NO_TID: not known. */
struct sched_switch {
    uint32_t tid, other;
    uint8_t flags;
};

/* An event. at: where its n_bytes lie in the file's payload. */
struct sched_event {
    uint64_t t_ns, at;
    uint16_t cpu, n_bytes;
    uint8_t kind;
};

/* On this CPU n records were lost before t_ns. */
struct sched_lost {
    uint64_t t_ns, n;
    uint16_t cpu;
};

/* What the kernel has counted of a thread up to t_ns, its end or the last look. */
struct sched_total {
    uint64_t t_ns, run_ns, wait_ns; /* wait: runnable, but not running */
    uint64_t n_slices, n_voluntary, n_involuntary;
    uint32_t tid, pid;
    uint16_t cpu; /* where it ran last */
    bool has_schedstat;
};

/* What the recorder said at its end. */
struct sched_end {
    uint64_t n_events;   /* that were to be kept */
    uint64_t n_left_out; /* of them not kept because the file was full, */
    uint64_t t_full_ns;  /* from then on; 0: never */
    uint64_t n_lost;     /* that did not come because the kernel's buffers were full */
};

/* Kinds of chunks. */
enum sched_chunk { SCHED_HEAD = 1, SCHED_FORMAT, SCHED_TASK, SCHED_EVENTS, SCHED_LOST, SCHED_TOTAL, SCHED_END };

/* A whole file. All zero is empty. Events are in the order of the file, in which threads of different CPUs may be a
 * little out of the order of time. */
struct sched_file {
    struct sched_head head;
    struct sched_format *formats; /* [n_formats] */
    struct sched_task *tasks;     /* [n_tasks] */
    struct sched_event *events;   /* [n_events] */
    struct sched_lost *lost;      /* [n_lost] */
    struct sched_total *totals;   /* [n_totals] */
    uint64_t *order;              /* [n_order] chunks of the file: enum sched_chunk << 32 | number of items */
    size_t n_formats, n_tasks, n_events, n_lost, n_totals, n_order;
    size_t cap_formats, cap_tasks, cap_events, cap_lost, cap_totals, cap_order;
    struct buf payload;
    struct sched_end end;
    bool has_end;              /* the recorder has finished it */
    size_t n_unfinished_bytes; /* !has_end: after the last whole chunk */
};

/* Name of a tier (static); "?" for others. */
const char *sched_tier_name(unsigned tier);

/* What a switch says; false for other kinds. */
bool sched_event_switch(const struct sched_file *file, const struct sched_event *event, struct sched_switch *out);

/* The bytes of an event, borrowed. */
const unsigned char *sched_event_bytes(const struct sched_file *file, const struct sched_event *event);

/* Reads a whole file; *file must be empty and is left empty on failure. A file that ends within a chunk is read up to
 * there. _memory: name is used in messages.  err: ERR_IO, ERR_FORMAT (file, offset, reason), ERR_UNSUPPORTED (version),
 * ERR_MEMORY */
int sched_read(const char *path, struct sched_file *file, struct error *err);
int sched_read_memory(const void *bytes, size_t len_bytes, const char *name, struct sched_file *file,
                      struct error *err);

/* Appends the file's bytes to out.  err: ERR_RANGE (an order that the arrays do not fill), ERR_MEMORY */
int sched_write(const struct sched_file *file, struct buf *out, struct error *err);

/* Frees everything and makes the file empty. */
void sched_fini(struct sched_file *file);

/* --- writing while it is recorded --- */

/* A file that grows. All zero is empty. Events are kept until limit_bytes, then counted; what else there is may take an
 * eighth more. */
struct sched_writer {
    int fd;
    char *path;
    uint64_t limit_bytes, n_bytes; /* n_bytes: written and pending */
    struct buf pending;            /* whole chunks */
    struct buf events;             /* of the chunk that is being filled */
    uint32_t n_events;
    struct sched_end end;
    uint64_t n_flushed;         /* bytes in the file */
    uint64_t n_since, since_ns; /* events since the last flush that are to be written, and the first one's time */
    bool has_failed;            /* a write did: nothing more is written, but for the end */
};

/* Creates path, which must not exist, and writes head.  err: ERR_IO (errno EEXIST: the name is taken), ERR_MEMORY */
int sched_writer_open(struct sched_writer *writer, const char *path, const struct sched_head *head, struct error *err);

/* Add what their names say; payload [event->n_bytes], event->at is ignored. */
void sched_writer_format(struct sched_writer *writer, const struct sched_format *format);
void sched_writer_task(struct sched_writer *writer, const struct sched_task *task);
void sched_writer_event(struct sched_writer *writer, const struct sched_event *event, const void *payload);
void sched_writer_lost(struct sched_writer *writer, const struct sched_lost *lost);
void sched_writer_total(struct sched_writer *writer, const struct sched_total *total);

enum { SCHED_SWITCH_BYTES = 9 };

/* A switch as the payload of an event. */
void sched_switch_put(const struct sched_switch *what, unsigned char payload[SCHED_SWITCH_BYTES]);

/* Writes what is pending, so that it survives the recorder.  err: ERR_IO, ERR_MEMORY */
int sched_writer_flush(struct sched_writer *writer, struct error *err);

/* Adds the end and closes the file; the writer is empty afterwards, on failure too.  err: ERR_IO, ERR_MEMORY */
int sched_writer_close(struct sched_writer *writer, struct error *err);

/* --- as text and JSON --- */

/* Appends the file as text, or as JSON from which the same file can be made again. Sets out->failed when out of memory.
 */
void sched_put_text(const struct sched_file *file, struct buf *out);
void sched_put_json(const struct sched_file *file, struct buf *out);

/* Makes a file of such JSON; *file must be empty and is left empty on failure. Returns take->code. */
int sched_take_json(struct json_take *take, const json_t *root, struct sched_file *file);

#endif
