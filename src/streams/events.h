/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams: the events of one host on one time line, whoever recorded them. Opening a file reads what all events have
 * (time, CPU, task, type) into one array; fields and texts are taken from the recorded bytes when somebody asks for
 * them. Names, numbers and texts are those that libkshark gives. Ordinary code; a stream belongs to one thread at a
 * time. */
#ifndef LOCUS_STREAMS_EVENTS_H
#define LOCUS_STREAMS_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct stream;

/* --- events --- */

/* Ids that no recording has; those from -10000 down are twins (couplebreak.h). */
#define STREAM_ID_LOST (-75) /* missed_events: records were lost before the next event of this CPU */
#define STREAM_LOST_NAME "missed_events"
#define STREAM_ID_NONE INT32_MIN

#define STREAM_NO_CPU UINT16_MAX
#define STREAM_NO_TASK (-1)

/* Bits of stream_event.visible, as in libkshark: where filters leave an event. */
enum stream_visible {
    STREAM_VISIBLE_TEXT = 1 << 0,      /* in lists */
    STREAM_VISIBLE_GRAPH = 1 << 1,     /* in time lines, as what its task does */
    STREAM_VISIBLE_EVENT = 1 << 2,     /* in time lines, as an event */
    STREAM_VISIBLE_UNTOUCHED = 1 << 7, /* no consumer has changed the event */
    STREAM_VISIBLE_ALL = 0xff
};

/* One event. record and n_bytes: where its bytes lie in those of its stream. Of a twin, record is the index of its
 * origin in stream.events; of STREAM_ID_LOST, the number of records that were lost (0: not known). */
struct stream_event {
    int64_t t_ns; /* on the stream's clock */
    uint64_t record;
    int32_t task; /* thread id, 0: the idle task of its CPU, STREAM_NO_TASK */
    int32_t id;   /* of its type in this stream */
    uint32_t n_bytes;
    uint16_t cpu; /* as the kernel numbers it, STREAM_NO_CPU */
    uint8_t visible;
    uint8_t flags; /* of its reader */
};

/* --- types of events and their fields --- */

enum stream_field_flags {
    STREAM_FIELD_SIGNED = 1 << 0,
    STREAM_FIELD_ARRAY = 1 << 1,
    STREAM_FIELD_TEXT = 1 << 2,     /* char[] */
    STREAM_FIELD_DYNAMIC = 1 << 3,  /* its place is a word with length << 16 and offset */
    STREAM_FIELD_RELATIVE = 1 << 4, /* of a dynamic one: the offset counts from behind that word */
    STREAM_FIELD_POINTER = 1 << 5,
    STREAM_FIELD_COMMON = 1 << 6 /* events of all types have it */
};

/* A field of a type: where it lies in an event's bytes. */
struct stream_field {
    char *name, *type; /* as the format says, such as "pid_t" */
    uint32_t offset, n_bytes;
    uint32_t flags;
};

/* What lies at the same place in all events of a type; those of the common fields come first. */
struct stream_type {
    int32_t id;
    char *name;                  /* "sched/sched_switch" */
    struct stream_field *fields; /* [n_fields] */
    size_t n_fields;
    uint64_t n_events; /* of this stream; twins count for none */
};

/* --- tasks and CPUs --- */

struct stream_task {
    int32_t task, process; /* thread id; process id, STREAM_NO_TASK: not known */
    char *comm;            /* "<...>" when the recording names none */
    uint64_t n_events;     /* twins included */
    bool is_own;           /* one of the program that hpcrun measured. With STREAM_TIER_PROGRAM all events of it are
                            * there, of others those that concern these */
};

/* Which clock the times are of. */
enum stream_clock {
    STREAM_CLOCK_UNKNOWN,   /* the recording does not say */
    STREAM_CLOCK_LOCAL,     /* of the kernel's scheduler: since the boot, CPUs may differ by a little */
    STREAM_CLOCK_MONOTONIC, /* CLOCK_MONOTONIC */
    STREAM_CLOCK_BOOT,      /* CLOCK_BOOTTIME */
    STREAM_CLOCK_RAW,       /* CLOCK_MONOTONIC_RAW */
    STREAM_CLOCK_WALL,      /* nanoseconds since 1970 */
    STREAM_CLOCK_COUNTER    /* of the processor, or a mere count: no time of this world */
};

/* The name of a clock for people, such as "monotonic". */
const char *stream_clock_name(enum stream_clock clock);

/* What a recording can know of scheduling. What it cannot know is absent from every view: never zero, never guessed. */
enum stream_tier {
    STREAM_TIER_FULL,     /* switches, wakings and migrations of all tasks of its CPUs */
    STREAM_TIER_SWITCHES, /* switches of all tasks; no wakings */
    STREAM_TIER_PROGRAM,  /* switches, wakings and migrations of one program's threads (stream_task.is_own) */
    STREAM_TIER_OWN,      /* when some threads came onto their CPUs and left them */
    STREAM_TIER_NONE      /* nothing of scheduling: CPUs of other events at most */
};

/* What a tier knows, in words. */
const char *stream_tier_name(enum stream_tier tier);

/* --- a stream --- */

/* Who knows what the nodes of a measurement's profiles are called in reports; streams know addresses alone. profile:
 * the file's name; variable, node: their numbers there. */
struct stream_namer {
    /* Makes ready for a directory; whatever fails, the stream goes on with addresses.  err: any, with a sentence */
    int (*open)(void *context, const char *directory, struct error *err);
    /* Append the name of what a sample at a node of a call path is on, or of the code of that node; false: it has none.
     * err: buf.failed */
    bool (*put_variable)(void *context, const char *profile, uint32_t variable, uint32_t node, struct buf *out);
    bool (*put_place)(void *context, const char *profile, uint32_t node, struct buf *out);
    void *context;
};

/* What to do while a stream is opened; all but size may be zero, which is what the original tools do without being
 * asked. */
struct stream_options {
    size_t size; /* sizeof(struct stream_options) */
    bool couplebreak;
    const char *buffer;               /* of a recording with several: its name; NULL: the top one */
    const struct stream_namer *namer; /* of samples; NULL: addresses will do */
};

/* Opens a recording of any kind that is known, recognised by its content. options NULL: all zero. Close it with
 * stream_close.
 * err: ERR_IO, ERR_FORMAT (file, offset, reason), ERR_UNSUPPORTED (kind or version, named), ERR_NOT_FOUND, ERR_MEMORY
 */
int stream_open(const char *path, const struct stream_options *options, struct stream **stream, struct error *err);

/* Frees everything; NULL is allowed. */
void stream_close(struct stream *stream);

/* --- what a stream is --- */

/* The events by time, equal times by CPU, a twin right behind its origin; types by id; tasks that have events or names.
 * All are the stream's. */
const struct stream_event *stream_events(const struct stream *stream, size_t *n);
const struct stream_type *stream_types(const struct stream *stream, size_t *n);
const struct stream_task *stream_tasks(const struct stream *stream, size_t *n);

/* What it is, for people, such as "trace.dat"; the host, and a note such as why it has no better tier (NULL: none). */
const char *stream_kind(const struct stream *stream);
const char *stream_host(const struct stream *stream);
const char *stream_note(const struct stream *stream);

/* What it can know, its clock, how many CPUs have rows, and how many records were lost (of whose number nothing is
 * known counts as one). */
enum stream_tier stream_get_tier(const struct stream *stream);
enum stream_clock stream_get_clock(const struct stream *stream);
uint32_t stream_n_cpus(const struct stream *stream);
uint64_t stream_n_lost(const struct stream *stream);

/* Whether its events say on which CPUs they happened; a recording without events may. */
bool stream_knows_cpus(const struct stream *stream);

/* The file with the topology of its host (machine.h) that lies beside a measurement of ours; NULL: there is none. */
const char *stream_topology(const struct stream *stream);

/* --- names, fields and texts of events; of twins: their origins' (couplebreak.h) --- */

/* The type with an id, NULL: none. */
const struct stream_type *stream_type_of(const struct stream *stream, int32_t id);

/* The id of "system/name", of "name" where one system alone has it, of a twin's name, or of "missed_events";
 * STREAM_ID_NONE when the stream has no such type, or no such twins. */
int32_t stream_find_id(const struct stream *stream, const char *name);

/* The name of an event's type: "sched/sched_switch", a twin's own, "missed_events", "[UNKNOWN EVENT]". */
const char *stream_event_name(const struct stream *stream, const struct stream_event *event);

/* The task with an id, NULL: none. */
const struct stream_task *stream_task_of(const struct stream *stream, int32_t task);

/* The name of a task: "<idle>" of 0, "<...>" of one that has none. */
const char *stream_comm(const struct stream *stream, int32_t task);

/* Finds out how tasks were called when: they change their names, at exec and when they like. Events of scheduling tell
 * it, and records of perf; a change that nobody recorded is known from the next event on. Once: again it does nothing.
 * err: ERR_MEMORY */
int stream_follow_names(struct stream *stream, struct error *err);

/* The name of a task at a time; and its name number i, in the order in which it had them, NULL behind the last. Without
 * stream_follow_names a task has the name that stream_comm gives, at all times. */
const char *stream_comm_at(const struct stream *stream, int32_t task, int64_t t_ns);
const char *stream_comm_number(const struct stream *stream, int32_t task, size_t i);

/* Appends all names of a task: "alpha, then beta"; of many the first ones, how many, and the last one. */
void stream_put_comms(const struct stream *stream, int32_t task, struct buf *out);

/* The field of a type, NULL when it has none of that name. */
const struct stream_field *stream_field_of(const struct stream_type *type, const char *name);

/* The type whose fields an event has: of a twin its origin's; NULL of an event without fields. */
const struct stream_type *stream_fields_of(const struct stream *stream, const struct stream_event *event);

/* The recorded bytes of an event, borrowed until the stream is closed; false when there are none. */
bool stream_event_bytes(const struct stream *stream, const struct stream_event *event, const unsigned char **bytes,
                        size_t *n_bytes);

/* The number in a field of the event's type, of its first element in an array. False when the event has no such bytes
 * or the field is no number of 1, 2, 4 or 8 bytes. */
bool stream_field_number(const struct stream *stream, const struct stream_event *event,
                         const struct stream_field *field, int64_t *value);

/* Appends the text in a field (as far as it is printable), or its number; nothing when it has neither. */
void stream_put_field(const struct stream *stream, const struct stream_event *event, const struct stream_field *field,
                      struct buf *out);

/* Appends the latency column (of interrupts, preemption and locks, such as "d..2."), or what the event says.
 * err: ERR_FORMAT (the library that prints it has failed on this file), ERR_MEMORY */
int stream_put_latency(struct stream *stream, const struct stream_event *event, struct buf *out, struct error *err);
int stream_put_info(struct stream *stream, const struct stream_event *event, struct buf *out, struct error *err);

/* Appends "stream; ts; task-pid; CPU n; latency; event; info; 0xVV" without a line feed; of a twin, what couplebreak.h
 * says. number: of the stream among those that are shown.  err: as stream_put_info */
int stream_put_line(struct stream *stream, int number, const struct stream_event *event, struct buf *out,
                    struct error *err);

/* --- search --- */

#define STREAM_NONE SIZE_MAX

/* Which events are meant: those that fulfill each condition that is set. All zero means all. */
struct stream_match {
    bool by_id, by_task, by_cpu;
    int32_t id;
    int32_t task;
    uint16_t cpu;
    uint8_t visible; /* bits of which all must be left; 0: whatever filters say */
};

/* Index of the first such event at or behind from; of the last such one before from. STREAM_NONE when there is none. */
size_t stream_next(const struct stream *stream, size_t from, const struct stream_match *match);
size_t stream_previous(const struct stream *stream, size_t from, const struct stream_match *match);

/* All such events: *indexes [*n], ascending, malloc'ed.  err: ERR_MEMORY */
int stream_list(const struct stream *stream, const struct stream_match *match, size_t **indexes, size_t *n,
                struct error *err);

/* Columns of a list of events in which texts are looked for, as a set. */
enum stream_columns {
    STREAM_IN_TASK = 1 << 0,  /* "comm:tid" */
    STREAM_IN_EVENT = 1 << 1, /* the name of the type */
    STREAM_IN_INFO = 1 << 2,
    STREAM_IN_ALL = STREAM_IN_TASK | STREAM_IN_EVENT | STREAM_IN_INFO
};

/* Whether an event has a text in one of these columns; capital letters are like small ones.  err: as stream_put_info */
int stream_says(struct stream *stream, const struct stream_event *event, unsigned columns, const char *text, bool *says,
                struct error *err);

/* As stream_next and stream_previous, of the events that have a text as well; *index: STREAM_NONE when there is none.
 * err: as stream_put_info */
int stream_search_next(struct stream *stream, size_t from, const struct stream_match *match, unsigned columns,
                       const char *text, size_t *index, struct error *err);
int stream_search_previous(struct stream *stream, size_t from, const struct stream_match *match, unsigned columns,
                           const char *text, size_t *index, struct error *err);

/* Index of the first event at or behind a time; n_events when there is none. */
size_t stream_at(const struct stream *stream, int64_t t_ns);

/* --- filters --- */

enum stream_filter {
    STREAM_SHOW_EVENT, /* only types in the set are shown, if it has any */
    STREAM_HIDE_EVENT, /* types in the set are hidden */
    STREAM_SHOW_TASK,
    STREAM_HIDE_TASK,
    STREAM_SHOW_CPU,
    STREAM_HIDE_CPU,
    STREAM_N_FILTERS
};

/* Adds a type, task or CPU to a filter; empties one. Nothing is hidden or shown before stream_filter_apply.
 * err: ERR_MEMORY */
int stream_filter_add(struct stream *stream, enum stream_filter filter, int32_t value, struct error *err);
void stream_filter_clear(struct stream *stream, enum stream_filter filter);

/* Sets a condition on fields as trace-cmd(1) and KernelShark write them, such as "sched/sched_switch:prev_prio < 100",
 * or several, one a line, for different types; NULL takes them back. As in libkshark, types that it does not name are
 * hidden; twins and lost records are not.
 * err: ERR_USAGE (cannot be understood), ERR_UNSUPPORTED (a type of twins is named, or the stream has no formats) */
int stream_filter_fields(struct stream *stream, const char *condition, struct error *err);

/* Sets which of the bits TEXT, GRAPH and EVENT hidden events lose. From the beginning: all three.  err: ERR_MEMORY */
int stream_filter_mask(struct stream *stream, uint8_t mask, struct error *err);

/* Makes the visible bits of all events anew. An event hidden by its type or fields stays in the graph.
 * err: ERR_MEMORY, ERR_FORMAT (as stream_put_info) */
int stream_filter_apply(struct stream *stream, struct error *err);

#ifdef __cplusplus
}
#endif

#endif
