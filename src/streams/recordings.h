/* SPDX-License-Identifier: BSD-3-Clause */
/* Recordings that were open together, and how each was looked at, in a JSON file (doc/FORMAT.md). What can be computed
 * again is not in it. Ordinary code. */
#ifndef LOCUS_STREAMS_RECORDINGS_H
#define LOCUS_STREAMS_RECORDINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "streams/events.h"
#include "streams/topology.h"

/* Texts in their order. All zero is empty. */
struct recording_list {
    char **texts; /* [n] */
    size_t n, capacity;
};

/* Lists that choose events: by number of enum stream_filter (events.h), texts of names or numbers; then conditions on
 * fields. */
enum { RECORDING_FIELDS = STREAM_N_FILTERS, RECORDING_LISTS };

/* A stream; its number is its index. */
struct recording {
    char *file;
    bool has_couplebreak;
    enum topology_view view;
    char *topology; /* path of the XML, NULL: none */
    char *buffer;   /* of a recording with several, NULL: the top one */
    bool has_offset;
    int64_t offset_ns; /* that somebody said is to be added to its times */
    struct recording_list lists[RECORDING_LISTS];
};

/* A row of a time line. */
struct recording_row {
    size_t stream;
    int32_t number; /* of the CPU or task */
    bool is_cpu, is_hidden, is_pinned;
};

/* A marker: at a time, or at an event by its number in the merged list of all streams, as KernelShark keeps it. */
struct recording_marker {
    bool is_set, is_row;
    int64_t at;
};

/* What was shown of all streams together: what hpcquery's options of these names choose. */
enum recording_choice { RECORDING_TASK, RECORDING_CPU, RECORDING_EVENT, RECORDING_FILTER, RECORDING_CHOICES };

/* All zero is empty. */
struct recordings {
    struct recording *streams; /* [n_streams] */
    size_t n_streams, capacity;
    bool has_from, has_to;
    int64_t from_ns, to_ns;           /* the window, on the axis of the first stream */
    char *choices[RECORDING_CHOICES]; /* NULL: none */
    struct recording_row *rows;       /* [n_rows] in their order; none: as always */
    size_t n_rows, cap_rows;
    struct recording_marker markers[2]; /* A, B */
    bool b_is_active;
    char *colors; /* what a time line is coloured by, as the viewer names it; NULL: not said */
    char *notes;  /* what was left out, a sentence a line; NULL: nothing */
};

/* Appends a stream; the texts are copied, topology may be NULL.  err: ERR_MEMORY */
int recordings_add(struct recordings *recordings, const char *file, bool has_couplebreak, enum topology_view view,
                   const char *topology, struct error *err);

/* Appends a text to a list.  err: ERR_MEMORY */
int recording_list_add(struct recording_list *list, const char *text, struct error *err);

/* Copies all lists of a stream, behind those that *to has.  err: ERR_MEMORY */
int recording_copy_lists(const struct recording *from, struct recording *to, struct error *err);

/* Appends a stream with all that is said of it.  err: ERR_MEMORY */
int recordings_copy_stream(const struct recording *from, struct recordings *to, struct error *err);

/* Copies what is not of single streams, except notes; *to must have none of it.  err: ERR_MEMORY */
int recordings_copy_view(const struct recordings *from, struct recordings *to, struct error *err);

/* Writes it to path; a session that is there is replaced in one step, anything else is not. Paths become absolute.
 * err: ERR_IO (a file of the session is missing, too), ERR_MEMORY */
int recordings_write(const char *path, const struct recordings *recordings, struct error *err);

/* Appends what that writes.  err: ERR_IO (a file of the session is missing), ERR_MEMORY */
int recordings_put(const struct recordings *recordings, struct buf *out, struct error *err);

/* Reads it, of any version, or a session of KernelShark; *recordings must be empty and is left empty on failure. A file
 * that is not where it was is looked for beside the session. A topology whose file is gone, or whose stream is not
 * there, is left out; what is missing is off.  err: ERR_IO, ERR_FORMAT, ERR_MEMORY */
int recordings_read(const char *path, struct recordings *recordings, struct error *err);
void recordings_fini(struct recordings *recordings);

/* Sets the filters of a stream that has been opened from its lists, and applies them. Names that it does not have are
 * left out.  err: as stream_filter_fields, stream_filter_apply */
int recording_apply(const struct recording *recording, struct stream *stream, struct error *err);

#endif
