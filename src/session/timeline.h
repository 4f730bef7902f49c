/* SPDX-License-Identifier: BSD-3-Clause */
/* What viewers ask of recordings of the scheduler: one time line of all of them, whose rows are their CPUs and tasks.
 * Times in questions and answers are nanoseconds since the first event of all. Ordinary code.
 *
 * The room: timeline.c opens recordings and answers what their rows are; timeline-picture.c draws windows, in the
 * colours of timeline-colours.c; timeline-list.c answers about single events and stays,
 * timeline-window.c about windows; timeline-samples.c says which data were worked on; timeline-file.c writes files. */
#ifndef LOCUS_SESSION_TIMELINE_H
#define LOCUS_SESSION_TIMELINE_H

#include "answer/answer.h"
#include "session/session.h"
#include "streams/axis.h"
#include "streams/levels.h"
#include "streams/recordings.h"
#include "streams/topology.h"

struct timeline;

/* Opens recordings on one axis, which is the clock of the first. A topology that cannot be taken is left out.
 * err: as session_open_recordings */
int timeline_open(const struct recordings *wanted, struct timeline **timeline, struct error *err);

/* Why the topology that was given for a recording is left out; NULL: it is not, or there is no such recording. */
const char *timeline_refusal(const struct timeline *timeline, size_t stream);

/* Whether there is any sample. */
bool timeline_has_samples(const struct timeline *timeline);

/* Frees it; NULL is allowed. */
void timeline_close(struct timeline *timeline);

/* The question of that name; NULL: there is none. */
const struct report_kind *timeline_find(const char *name);

/* Answers a question; without recordings (timeline NULL) streams says what is lacking, and all others fail; why: those
 * that there are could not be read, NULL: there are none. answer_fini frees it, unless this fails.
 * err: ERR_USAGE, ERR_NOT_FOUND (no such row), ERR_UNSUPPORTED, ERR_MEMORY */
int timeline_answer(struct timeline *timeline, const char *why, const struct request *request, struct answer *answer,
                    struct error *err);

/* Answers what a session of recordings alone is asked beside that: what it is (session).  err: ERR_UNSUPPORTED
 * (anything else), ERR_MEMORY */
int timeline_answer_session(const struct timeline *timeline, const struct request *request, struct answer *answer,
                            struct error *err);

/* --- private part: what these files share --- */

struct sched_names;

/* A topology of a recording's machine: the one that lies beside it, or the one that was given for it. */
enum time_topology_kind { TIME_TOPOLOGY_NONE, TIME_TOPOLOGY_OWN, TIME_TOPOLOGY_GIVEN, TIME_TOPOLOGIES };
struct time_topology {
    char *path; /* NULL: there is none */
    struct topology topology;
    struct brief_topology brief;
};

/* A recording. */
struct time_stream {
    struct recording *wanted; /* what was said of it */
    struct stream *stream;    /* if is_shell, without events and types: these have not been read */
    bool is_shell;
    uint64_t n_events;
    struct levels levels;
    struct levels_key key; /* of the file that they are of */
    size_t first_row;      /* the number of its first row */
    struct time_topology topologies[TIME_TOPOLOGIES];
    enum time_topology_kind shown;
    struct brief_topology brief;  /* that of the shown one, which owns it */
    char *refusal;                /* why the one that was given is left out; NULL: it is not */
    struct time_samples *samples; /* NULL: they were not asked for */
};

struct timeline {
    char *path; /* of the first recording: answers outlive what was read of it */
    struct recordings wanted;
    struct axis_stream *axis;    /* [n_streams] */
    struct time_stream *streams; /* [n_streams] */
    size_t n_streams, n_rows;
    int64_t begin_ns, end_ns; /* on the axis: the first and the last event of all */
    struct sched_names *names;
    struct strtab words; /* what samples are */
};

/* A row by its number: its recording, and its index in the levels there. */
struct time_row {
    const struct time_stream *of;
    size_t stream, row;
};

/* err: ERR_NOT_FOUND */
int timeline_row(const struct timeline *timeline, uint64_t number, struct time_row *row, struct error *err);

/* Reads what a recording says, if it was not read because its levels were kept in a file.  err: as stream_open;
 * ERR_FORMAT: it has been changed since */
int timeline_load(struct timeline *timeline, size_t stream, struct error *err);

/* The same where a window is wanted that begins at a time: of a recording with an index (parts.h) the events alone that
 * are asked for are read, of others all.  err: the same */
int timeline_load_part(struct timeline *timeline, size_t stream, int64_t from_ns, struct error *err);

/* Appends the recordings as a session has them, as they are shown; the view is the page's.  err: as recordings_put */
int timeline_put_session(const struct timeline *timeline, struct buf *out, struct error *err);

/* The window of a request on the axis.  err: ERR_USAGE */
int timeline_window(const struct timeline *timeline, const struct request *request, int64_t *from_ns, int64_t *to_ns,
                    struct error *err);

/* The sum, or the nearest number that there is.  ctx: any */
int64_t time_add(int64_t a_ns, int64_t b_ns);

/* Where a time of the axis is on the clock of a recording's levels. */
int64_t time_of_levels(const struct time_stream *of, int64_t t_ns);

/* A name for people of a row: "CPU 3", "spmv:137", with several recordings "spmv:137 [1]". */
void time_row_put_name(const struct timeline *timeline, const struct time_row *row, struct buf *out);

/* Appends a time of the axis in seconds with nine digits behind the point. */
void time_text_put(int64_t t_ns, struct buf *out);

/* "#rrggbb" */
void time_colour_put(struct table *table, struct tree_color colour);

/* --- colours --- */

/* What pixels are coloured by: what ran longest in them. */
enum time_by {
    TIME_BY_TASK,
    TIME_BY_CPU,
    TIME_BY_NODE,     /* of the CPU */
    TIME_BY_VARIABLE, /* this and what follows: of samples */
    TIME_BY_FUNCTION,
    TIME_BY_LOCAL, /* whether the memory was near */
    TIME_BYS
};

/* What something has of a window, and its place in the list; -1: it is not there. */
struct time_key {
    int64_t ns, place;
};

/* The colours of a window. */
struct time_colours {
    const struct timeline *timeline;
    enum time_by by;
    int64_t from_ns, to_ns; /* on the axis */
    struct time_key *keys;  /* [n_keys]: tasks and CPUs by the numbers of their rows, nodes stream by stream, what
                             * samples are by their words, and behind them what has no sample */
    size_t n_keys;
    uint32_t *order; /* [n_order] the list: those that have time in the window, the longest first, then others */
    size_t n_order;
    size_t *first_node;                /* [n_streams] the key of the first node of each; behind the last: not known */
    int32_t last_key;                  /* that was looked up, and ... */
    const struct time_stream *last_of; /* ... where */
    size_t last_row;
};

/* Makes those of a window by a word, NULL: "task".  err: ERR_USAGE (another word), ERR_NOT_FOUND (what the recordings
 * lack), ERR_MEMORY */
int time_colours_init(struct time_colours *colours, struct timeline *timeline, const char *by, int64_t from_ns,
                      int64_t to_ns, struct error *err);
void time_colours_fini(struct time_colours *colours);

/* The word. */
const char *time_colours_name(const struct time_colours *colours);

/* Says which keys a row is drawn by. */
void time_colours_set(const struct time_colours *colours, const struct time_row *row, struct level_picture *picture);

/* The place in the list of what a cell of the row is coloured by, in which something runs or not; -1: nothing. */
int64_t time_colours_place(struct time_colours *colours, const struct time_row *row, int32_t key, bool runs);

/* The columns of the list. */
enum { TIME_KEY_COLUMNS = 4 };
extern const struct column time_key_columns[TIME_KEY_COLUMNS];

/* Puts the list. */
void time_colours_put_keys(const struct time_colours *colours, struct table *table);

/* --- samples --- */

/* Makes what is known of the samples of a recording: of->samples; words: what they are.  err: ERR_MEMORY */
int time_samples_make(struct time_stream *of, struct strtab *words, struct error *err);
void time_samples_free(struct time_samples *samples);

/* How many there are. */
size_t time_samples_count(const struct time_samples *samples);

/* Adds the time on CPUs in a window, on the clock of the levels, to the keys, by number of their words; none: what no
 * sample in the window stands for. */
void time_samples_add(const struct time_samples *samples, enum time_by by, int64_t from_ns, int64_t to_ns,
                      struct time_key *keys, struct time_key *none);

/* Makes the tracks of one way, which are kept.  err: ERR_MEMORY */
int time_samples_track(struct time_samples *samples, enum time_by by, struct error *err);

/* That of a row of the levels. */
const struct level_track *time_samples_row(const struct time_samples *samples, enum time_by by, size_t row);

/* What a question makes; as timeline_answer. */
typedef int time_maker(struct timeline *timeline, const struct request *request, struct answer *answer,
                       struct error *err);
time_maker time_make_picture, time_make_events, time_make_stay, time_make_window, time_make_file;

#endif
