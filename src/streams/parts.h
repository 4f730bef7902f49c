/* SPDX-License-Identifier: BSD-3-Clause */
/* A recording of which parts are read: who asks about a window of a large one need not read all of it. While its levels
 * are made (levels.h), an index is made of what is known at some of its events: where in the file each CPU goes on, and
 * what each task does. A stream that is opened with it has all events at their places, but only those of the parts that
 * were asked for are filled. Ordinary code. */
#ifndef LOCUS_STREAMS_PARTS_H
#define LOCUS_STREAMS_PARTS_H

#include "streams/readers.h"
#include "streams/schedule.h"

/* --- making --- */

struct parts_making;

/* Begins the index of a stream that is a file; NULL when there is none to be made. */
struct parts_making *parts_making_new(const struct stream *stream);
void parts_making_free(struct parts_making *making);

/* What is called while its schedule is followed: of each event before it is taken, of each stretch and stay. */
void parts_making_event(struct parts_making *making, const struct schedule *sched, const struct stream_event *event);
void parts_making_piece(struct parts_making *making, const struct schedule *sched, const struct schedule_piece *piece);
void parts_making_run(struct parts_making *making, const struct schedule *sched, const struct schedule_run *run);

/* Appends the index in two parts that follow each other, their lengths multiples of eight; nothing if there is none.
 * err: buf.failed */
void parts_making_put(struct parts_making *making, const struct schedule *sched, struct buf *out, struct buf *blocks);

/* --- a stream of which parts are read --- */

struct parts_index;

/* Takes an index that begins at a place of a mapped file and ends with it; the map belongs to it then. NULL: it is
 * damaged, or out of memory. */
struct parts_index *parts_index_take(void *map, size_t n_map, size_t at);
void parts_index_free(struct parts_index *index);

/* The first event of all. */
int64_t parts_index_begin_ns(const struct parts_index *index);

/* As stream_open of the recording that the index is of, with names followed; the events from from_ns to to_ns are
 * filled, and some on both sides. The index belongs to the stream, also when this fails.  err: as stream_open;
 * ERR_FORMAT (the index does not fit) */
int stream_open_part(const char *path, struct parts_index *index, int64_t from_ns, int64_t to_ns,
                     struct stream **stream, struct error *err);

/* Fills the events around the one at an index, up to *end; and forgets all that are filled, when there are many: what
 * is asked for again is filled again.  err: ERR_FORMAT, ERR_MEMORY */
int stream_part_fill(struct stream *stream, size_t index, size_t *end, struct error *err);
void stream_part_rest(struct stream *stream);

/* --- for streams and schedules --- */

/* As stream_at of such a stream, which reads the events there if need be. */
size_t stream_part_at(const struct stream *stream, int64_t t_ns);

/* Where the filled events end that the event at an index is one of. */
size_t stream_part_filled(const struct stream *stream, size_t index);

/* Brings sched to the beginning of the part that the window lies in: events [*first, *end) are to be followed. False:
 * out of memory, or the events cannot be read. */
bool stream_part_begin(const struct stream *stream, const struct schedule_window *window, struct schedule *sched,
                       size_t *first, size_t *end);

/* They have been followed up to end, where sched ends as it would behind all others. False: the index is damaged. */
bool stream_part_end(const struct stream *stream, size_t end, struct schedule *sched);

/* Frees it with its index; NULL is allowed. */
void stream_part_free(struct stream_part *part);

#endif
