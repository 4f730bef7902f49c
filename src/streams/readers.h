/* SPDX-License-Identifier: BSD-3-Clause */
/* Readers of streams: one file and one row of readers.c for each kind of recording, and what they build streams with.
 * Ordinary code; for the files of this folder. */
#ifndef LOCUS_STREAMS_READERS_H
#define LOCUS_STREAMS_READERS_H

#include "streams/formats.h"
#include "streams/stream.h"

/* What is to be opened. */
struct stream_input {
    const char *path;
    bool is_directory;
    const unsigned char *head; /* of a file: its first bytes, NUL behind them */
    size_t n_head;
};

/* Where a CPU goes on: record of its next event (UINT64_MAX: none), and what came before. */
struct stream_place {
    uint64_t record;
    int64_t last_ns;         /* of the event before, INT64_MIN: none */
    uint64_t lost, has_lost; /* how many records were lost between both, and whether any were */
};

enum { STREAM_HEAD_BYTES = 4096, STREAM_ASK_FORMATS = 1 };

struct stream_reader {
    const char *name; /* as people call what it reads, for messages */
    bool (*fits)(const struct stream_input *input);
    /* Fills a stream whose path is set: events in any order (by time and CPU is fastest), types, tasks that have names,
     * and what the recording says of itself. On failure stream_close frees what there is.  err: as stream_open */
    int (*read)(const struct stream_input *input, const struct stream_options *options, struct stream *stream,
                struct error *err);
    bool hands_over; /* read() hands events over one by one where that is wanted, to stream_emit */
    /* Frees reader_data and what bytes points to. */
    void (*close)(struct stream *stream);
    /* Instead of stream.bytes: the bytes of an event that is neither a twin nor STREAM_ID_LOST, borrowed until the
     * stream is closed. NULL: record and n_bytes are a place in stream.bytes. */
    bool (*payload)(const struct stream *stream, const struct stream_event *event, const unsigned char **bytes,
                    size_t *n_bytes);
    /* Appends to read the events of a stream that was read with stream.part set, and therefore without events: of each
     * of n_cpus CPUs from a place to another one. NULL: a place in its file is none of an event.  err: ERR_FORMAT,
     * ERR_MEMORY */
    int (*read_part)(struct stream *stream, const struct stream_place *from, const struct stream_place *to,
                     size_t n_cpus, struct stream *read, struct error *err);
    /* Instead of stream.formats. NULL: nothing is printed where there are no formats. Either may return
     * STREAM_ASK_FORMATS for events that those print. */
    int (*put_latency)(const struct stream *stream, const struct stream_event *event, struct buf *out,
                       struct error *err);
    int (*put_info)(const struct stream *stream, const struct stream_event *event, struct buf *out, struct error *err);
};

/* couplebreak.c: fills stream.couples from the types. Called by stream_open, couplebreak on or off. */
void couplebreak_find_origins(struct stream *stream);

/* Makes the twins of a stream that has none, whose types know their numbers of events, and counts them for their tasks;
 * sets its couplebreak members. Called by stream_open.  err: ERR_MEMORY */
int couplebreak_apply(struct stream *stream, struct error *err);

/* The reader at index i, in the order in which they are asked; NULL behind the last. */
const struct stream_reader *stream_readers_at(size_t i);

/* Makes room for n events in all. False when out of memory. */
bool stream_reserve_events(struct stream *stream, size_t n);

/* Says that n events at most are to come, if there is so much to be had: what is not used takes no memory, and the
 * events need not move. */
void stream_expect_events(struct stream *stream, size_t n);

/* Says that the i-th event has been passed: what lies in memory of a mapped file is let go from time to time, so that
 * going through it does not make it all resident at once. Whoever needs it again gets it from the system's cache. */
void stream_pass(const struct stream *stream, size_t i);

/* Makes room for one more event and returns it, with visible set and the rest for the caller to fill; NULL when out of
 * memory. */
struct stream_event *stream_add_event_slowly(struct stream *stream);
static inline struct stream_event *stream_add_event(struct stream *stream)
{
    if (__builtin_expect(stream->n_events == stream->cap_events, 0))
        return stream_add_event_slowly(stream);
    struct stream_event *event = &stream->events[stream->n_events++];
    event->visible = STREAM_VISIBLE_ALL;
    event->flags = 0;
    return event;
}

/* Adds an event by way of what the reader made of it, or hands it over (schedule_open_passing). False: out of memory,
 * or nobody wants any more. */
bool stream_hand_over(struct stream *stream, const struct stream_event *event);
static inline bool stream_emit(struct stream *stream, const struct stream_event *event)
{
    if (stream->passing)
        return stream_hand_over(stream, event);
    struct stream_event *kept = stream_add_event(stream);
    if (kept)
        *kept = *event;
    return kept;
}

/* Adds a type, or returns the one that has the id; NULL when out of memory. Valid until the next call. Its fields are
 * added by stream_add_field; name is copied. */
struct stream_type *stream_add_type(struct stream *stream, int32_t id, const char *name);

/* Names a task, comm NULL: only that there is one; a name given later stands. process: STREAM_NO_TASK when not known.
 * False when out of memory. */
bool stream_add_task(struct stream *stream, int32_t task, int32_t process, const char *comm);

/* Notes that a task has a name from t_ns on. False when out of memory. */
bool stream_add_name(struct stream *stream, int32_t task, int64_t t_ns, const char *comm);

/* Names tasks that the recording does not name otherwise by the first event that does. Called by stream_finish. by_...:
 * by the names that were gathered of these events. False when out of memory. */
bool stream_name_tasks(struct stream *stream);
bool stream_name_tasks_by_gathered(struct stream *stream);

/* Notes that a task is one of those whose events are all there (STREAM_TIER_PROGRAM). False when out of memory. */
bool stream_add_own(struct stream *stream, int32_t task);

/* Counts n events for a task, while the stream is being read. False when out of memory. */
bool stream_count_task(struct stream *stream, int32_t task, uint64_t n);

/* The clock by the name that the kernel gives it in tracing ("local", "mono", ...). */
enum stream_clock stream_clock_of(const char *name);

/* As stream_open of a file, with part set, which belongs to it then, also on failure: no events are read.
 * err: as stream_open */
int stream_open_empty(const char *path, struct stream_part *part, struct stream **stream, struct error *err);

/* Who is handed events, in the order that they have in streams, once types, tier and CPUs are known; then the end,
 * whether all have come or not. */
struct stream_taker {
    void (*event)(void *context, const struct stream *stream, const struct stream_event *event);
    void (*end)(void *context);
    void *context;
};

/* What goes on while events are handed over. NULL: out of memory. */
struct stream_passing *stream_passing_new(const struct stream_taker *taker);
int stream_passing_finish(struct stream *stream, struct error *err); /* counts and names; err: ERR_FORMAT, ERR_MEMORY */
bool stream_passing_end(const struct stream_passing *passing);       /* false: they did not come in their order */
void stream_passing_free(struct stream_passing *passing);            /* NULL is allowed */

/* Sorts the events by time and CPU; what is equal keeps its order. False when out of memory. */
bool stream_sort(struct stream *stream);

struct names_gathering;

/* Gathers the names that tasks have at times while events are read, which are in the caches then; each event by time.
 * Whatever fails, stream_follow_names makes up for. NULL is allowed.  NULL: out of memory */
struct names_gathering *stream_names_gather(struct stream *stream);
void stream_names_event(struct names_gathering *gathering, const struct stream_event *event);
void stream_names_gathered(struct names_gathering *gathering); /* frees it */

/* The names that tasks had when, as bytes; and takes them again. take: false when out of memory.  put, err: buf.failed
 */
void stream_names_put(const struct stream *stream, struct buf *out);
bool stream_names_take(struct stream *stream, const char *bytes, size_t n_bytes);

/* Brings the events of a stream that has been filled into their order, makes the twins, and counts. Called by
 * stream_open after read().  err: ERR_MEMORY, ERR_FORMAT */
int stream_finish(struct stream *stream, bool couplebreak, struct error *err);

/* --- switches that are made of the kernel's records of one side --- */

enum { STREAM_SWITCH_BYTES = 24, STREAM_ADJACENT_NS = 5000 };

/* What such a switch says. misc: SCHEDULE_MISC_* of the thread that leaves (schedule.h); either task may be
 * STREAM_NO_TASK. */
struct stream_switch {
    int32_t prev, next;
    uint16_t misc;
};

/* The bytes of one: those of a SWITCH_CPU_WIDE record that ends with thread and time. */
void stream_switch_put(const struct stream_switch *what, bool is_swapped, unsigned char bytes[STREAM_SWITCH_BYTES]);

/* Sets who comes in such bytes. */
void stream_switch_put_next(unsigned char *bytes, int32_t next, bool is_swapped);

/* Adds their type, "sched/sched_switch".  err: ERR_MEMORY */
int stream_switch_add_type(struct stream *stream, int32_t id, struct error *err);

/* Appends what such an event, of the type with this id, says. */
void stream_switch_put_info(const struct stream *stream, const struct stream_event *event, int32_t id, struct buf *out);

/* A CPU while switches are joined: a thread that comes right behind one that has left makes one switch with it. */
struct stream_joining {
    bool is_open; /* the last record told who has left */
    int64_t t_ns;
    int32_t prev, next;
    size_t event; /* index */
};

/* Frees filters, texts, or names; NULL is allowed. */
void stream_filters_free(struct stream_filters *filters);
void stream_texts_free(struct stream_texts *texts);
void stream_names_free(struct stream_names *names);

/* Takes the types that formats describe into the stream, which owns formats from then on.  err: ERR_MEMORY */
int stream_take_formats(struct stream *stream, struct stream_formats *formats, struct error *err);

#endif
