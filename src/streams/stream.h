/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream as the rooms of this repository see it; what it is for others is in events.h.
 *
 * The room: readers.c is the table of readers and alone names all of them (reader-x.c). These fill stream.c;
 * stream-text.c, stream-filter.c and task-names.c answer what an event says, which are shown, and how tasks were called
 * when; schedule.c, busy.c, couplebreak.c
 * and topology.c make views of streams, and know no reader. */
#ifndef LOCUS_STREAMS_STREAM_H
#define LOCUS_STREAMS_STREAM_H

#include <string.h>

#include "base/vec.h"
#include "streams/events.h"

_Static_assert(sizeof(struct stream_event) == 32, "ten million events take 320 MB");

/* Adds a field, of which name and type are copied. False when out of memory. */
bool stream_add_field(struct stream_type *type, const struct stream_field *field);

/* Frees what a type holds. */
void stream_type_fini(struct stream_type *type);

/* What the kernel had counted of a task at a time, where nothing better is known. waited: runnable, but not running. */
struct stream_total {
    int32_t task;
    int64_t t_ns, run_ns, wait_ns; /* run, wait: -1: not known */
    uint64_t n_runs, n_voluntary, n_involuntary;
    uint16_t cpu;
};

/* A type whose events concern two tasks or CPUs (couplebreak.h): the fields that name the second ones, or NULL. */
struct stream_couple {
    bool is_known; /* whether the stream has this type */
    int32_t id;
    const struct stream_field *task, *cpu;
};

/* Is told now and then how far a recording has been read, or what is made of it has been written, and may end the
 * process. doing: what is done, such as "reading". */
typedef void stream_told(void *context, const char *path, const char *doing, uint64_t done, uint64_t all);

/* Sets who is told, of all streams; NULL: nobody. */
void stream_on_progress(stream_told *told, void *context);

/* Tells them.  ctx: ordinary */
void stream_tell(const char *path, const char *doing, uint64_t done, uint64_t all);

struct stream_reader;
struct stream_formats; /* formats.h */
struct stream_filters; /* of stream-filter.c */
struct stream_texts;   /* of stream-text.c */
struct stream_names;   /* of task-names.c */
struct stream_part;    /* of parts.c */

struct stream {
    char *path;       /* as given to stream_open */
    const char *kind; /* of file, for people: "trace.dat" */
    char *host;       /* NULL: the recording does not say */
    char *system;     /* kernel and machine, as uname says; NULL */
    enum stream_tier tier;
    bool is_synthesised; /* events of scheduling were joined from records that each know one side */

    enum stream_clock clock;
    char *clock_text; /* as the recording names it, NULL */
    bool cuts_times;  /* to microseconds where people read them, as its own tool does; others are rounded */
    bool has_wall;
    int64_t wall_ns;   /* with has_wall: nanoseconds since 1970 less t_ns */
    int64_t offset_ns; /* that has been added to each t_ns to bring it onto an axis of several streams */
    uint64_t trace_id; /* of the recording, or boot: equal ones have the same clock; 0: not known */

    uint32_t n_cpus;         /* CPUs that have a row: 0 .. n_cpus - 1 */
    char *possible, *online; /* lists such as "0-3,8"; NULL: not known */
    char *topology;          /* the file of its host that lies beside it, NULL */
    const char *launcher;    /* what own tasks are called before they become the program: none of its names; NULL */
    char *note;              /* about the recording, for people, such as why it has no better tier; NULL */
    uint64_t n_lost;         /* records; those whose number is not known count as one */
    uint64_t n_lost_places;  /* events STREAM_ID_LOST */

    struct stream_event *events; /* [n_events], by time, equal times by CPU; a twin right behind its origin */
    size_t n_events, cap_events, room_events; /* cap: of the room that is allocated, what has memory */

    struct stream_type *types; /* [n_types], by id */
    size_t n_types, cap_types;
    struct stream_task *tasks; /* [n_tasks], by task: those that have events or names */
    size_t n_tasks, cap_tasks;
    struct stream_total *totals; /* [n_totals], of different tasks */
    size_t n_totals, cap_totals;

    /* couplebreak.h */
    bool couplebreak_on;
    int n_couplebreak_evts;          /* how many types of twins are present */
    uint64_t couplebreak_evts_flags; /* which: bit 0 switch, 1 waking, 2 migration */
    struct stream_couple couples[3]; /* by these bits */

    /* For the files of this folder. Bytes of events lie in bytes unless the reader has payload(). */
    const struct stream_reader *reader;
    void *reader_data;
    const unsigned char *bytes;
    uint64_t n_bytes;
    bool is_mapped;                 /* bytes are those of a file, which gives them again */
    bool is_swapped;                /* numbers in events are of the other byte order */
    struct stream_formats *formats; /* who prints events, NULL: the reader itself does */
    struct stream_filters *filters;
    struct stream_texts *texts;     /* that have been printed ahead */
    struct stream_names *names;     /* of tasks at times, NULL: not known */
    struct slots task_slots;        /* while the stream is being read */
    struct stream_part *part;       /* only parts of events are filled (parts.h); NULL: all are */
    struct stream_passing *passing; /* while it is read: events are handed over, not kept; NULL: they are */
};

/* A number of 1, 2, 4 or 8 bytes, extended by its sign; false: there is none of so many. */
static inline bool stream_read_number(const unsigned char *at, size_t n_bytes, bool is_swapped, bool is_signed,
                                      int64_t *value)
{
    uint16_t half;
    uint32_t word;
    uint64_t wide;
    switch (n_bytes) {
    case 1:
        *value = is_signed ? (int8_t)*at : *at;
        return true;
    case 2:
        memcpy(&half, at, sizeof half);
        half = is_swapped ? __builtin_bswap16(half) : half;
        *value = is_signed ? (int16_t)half : half;
        return true;
    case 4:
        memcpy(&word, at, sizeof word);
        word = is_swapped ? __builtin_bswap32(word) : word;
        *value = is_signed ? (int32_t)word : (int64_t)word;
        return true;
    case 8:
        memcpy(&wide, at, sizeof wide);
        *value = (int64_t)(is_swapped ? __builtin_bswap64(wide) : wide);
        return true;
    default:
        return false;
    }
}

/* As stream_event_bytes of an event that the reader has made, of a reader without bytes of its own. */
static inline bool stream_plain_bytes(const struct stream *stream, const struct stream_event *event,
                                      const unsigned char **bytes, size_t *n_bytes)
{
    if (!stream->bytes || event->record > stream->n_bytes || event->n_bytes > stream->n_bytes - event->record)
        return false;
    *bytes = stream->bytes + event->record;
    *n_bytes = event->n_bytes;
    return true;
}

/* As stream_field_number, of the bytes of an event: for who asks for several fields of it. */
static inline bool stream_number_in(const struct stream *stream, const unsigned char *bytes, size_t n_bytes,
                                    const struct stream_field *field, int64_t *value)
{
    return field->offset <= n_bytes && field->n_bytes <= n_bytes - field->offset &&
           stream_read_number(bytes + field->offset, field->n_bytes, stream->is_swapped,
                              field->flags & STREAM_FIELD_SIGNED, value);
}

#endif
