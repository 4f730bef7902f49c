/* SPDX-License-Identifier: BSD-3-Clause */
/* Levels of detail of a stream: what each CPU and each task did, so that a picture of any window, however wide, costs
 * as much as its pixels. A row has the stays of its CPU or task, sums before every few of them, and above these what
 * was heaviest in ever longer stretches. All times of pictures are exact sums; none is sampled. Ordinary code. */
#ifndef LOCUS_STREAMS_LEVELS_H
#define LOCUS_STREAMS_LEVELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "streams/stream.h"

enum level_kind { LEVEL_CPU, LEVEL_TASK };

/* What a row does in a stay. A task: runs; waits since it was woken; waits since it was displaced; nothing is known. A
 * CPU: runs a task, or nothing is known. Between stays a CPU is idle, and a task blocked or gone. */
enum level_part { LEVEL_RUNNING, LEVEL_WOKEN, LEVEL_PREEMPTED, LEVEL_UNKNOWN, LEVEL_PARTS };

/* What happens at a time: events of any type but lost records; these; of events, twins and samples. */
enum level_mark { LEVEL_EVENT, LEVEL_LOST, LEVEL_TWIN, LEVEL_SAMPLE, LEVEL_MARKS };

#define LEVEL_NO_KEY INT32_MIN

struct parts_index;

struct level_stay {
    int64_t from_ns, to_ns;
    int32_t key;   /* LEVEL_RUNNING: of a CPU the task, of a task the CPU; LEVEL_NO_KEY: not known */
    uint8_t part;  /* enum level_part */
    uint8_t state; /* of a task, LEVEL_RUNNING: what it does then, enum schedule_state; else the state itself */
    uint16_t spare;
};

/* What a row did before a block of LEVEL_BLOCK stays. */
enum { LEVEL_BLOCK = 16, LEVEL_FAN = 4 };
struct level_block {
    int64_t before_ns[LEVEL_PARTS];
};

/* The key that ran longest in a block, and for how long; in LEVEL_FAN of these, and so on: a lower bound there. */
struct level_top {
    int64_t ns;
    int32_t key, spare;
};

/* Stays by time, none of which lies over another, with what belongs to them. */
struct level_track {
    const struct level_stay *stays; /* [n] */
    size_t n;
    const struct level_block *blocks; /* [(n + LEVEL_BLOCK - 1) / LEVEL_BLOCK] */
    const struct level_top *tops;     /* as many, then a LEVEL_FAN-th of them, up to one; n 0: none */
};

/* The times of a row's marks of a kind, by time: the lower half of each since the begin of the levels, and from which
 * one on what the upper half is. */
struct level_turn {
    uint64_t first, high;
};

struct level_row {
    int32_t number; /* of the CPU or task */
    uint32_t kind;  /* enum level_kind */
    int64_t parts_ns[LEVEL_PARTS];
    int64_t first_ns, last_ns;                              /* of its marks and runs; first > last: it has none */
    uint64_t first_stay, n_stays, first_block;              /* in those of the levels */
    uint64_t first_top;                                     /* the same */
    uint64_t first_time[LEVEL_MARKS], n_times[LEVEL_MARKS]; /* the same */
    uint64_t first_turn[LEVEL_MARKS], n_turns[LEVEL_MARKS]; /* the same */
};

/* All zero is empty. */
struct levels {
    int64_t begin_ns, end_ns; /* of the stream, by its own clock: its first and its last event */
    struct level_row *rows;   /* [n_rows] CPUs, then tasks, by number; the idle task has none */
    size_t n_rows, n_cpus;
    struct level_stay *stays; /* [n_stays] row by row, as what follows */
    size_t n_stays;
    struct level_block *blocks; /* [n_blocks] */
    size_t n_blocks;
    struct level_top *tops; /* [n_tops] */
    size_t n_tops;
    struct level_turn *turns; /* [n_turns] */
    size_t n_turns;
    uint32_t *times; /* [n_times] */
    size_t n_times;
    uint64_t n_cut; /* stays of which a part was left out, because another one says otherwise */
    void *map;      /* the file that all of these lie in, NULL: they are malloc'ed */
    size_t n_map;
    uint64_t n_faults; /* of pages, of the process, when it was last seen how much is resident */
    uint64_t n_least;  /* pages that are resident without what is looked at in the map; 0: not known */
};

/* Makes those of a stream; *levels must be empty. levels_fini frees them.  err: ERR_MEMORY */
int levels_make(const struct stream *stream, struct levels *levels, struct error *err);
void levels_fini(struct levels *levels);

/* The row of a CPU or task, SIZE_MAX: none. */
size_t levels_find(const struct levels *levels, enum level_kind kind, int32_t number);

/* The stays of a row; how many blocks and tops n of them have; and fills blocks and tops of stays, from_ns by from_ns.
 */
struct level_track levels_track(const struct levels *levels, size_t row);
size_t level_n_blocks(size_t n_stays);
size_t level_n_tops(size_t n_stays);
void level_sum_up(const struct level_stay *stays, size_t n, struct level_block *blocks, struct level_top *tops);

/* The same piece by piece: n stays of a row, behind the first ones, a multiple of LEVEL_BLOCK, of which sums has the
 * sums, at first zero. blocks, tops: of the row. Then the tops of its n_blocks are to be summed up. */
void level_sum_part(const struct level_stay *stays, size_t first, size_t n, struct level_block *sums,
                    struct level_block *blocks, struct level_top *tops);
void level_sum_tops(struct level_top *tops, size_t n_blocks);

/* Index of the first stay that ends behind t_ns; n: none. */
size_t level_stay_at(const struct level_track *track, int64_t t_ns);

/* The time of each part before t_ns; and in a window. */
void level_sums(const struct level_track *track, int64_t t_ns, int64_t sums[LEVEL_PARTS]);
void level_sums_of(const struct level_track *track, int64_t from_ns, int64_t to_ns, int64_t sums[LEVEL_PARTS]);

/* How many marks of a kind a row has from from_ns on and before to_ns. */
uint64_t levels_count(const struct levels *levels, size_t row, enum level_mark mark, int64_t from_ns, int64_t to_ns);

/* Lets go what has been looked at of a large file, if that is much, whoever looked. Pictures do so themselves. */
void levels_rest(const struct levels *levels);

/* --- pictures --- */

/* What a row did in some pixels, of which all are alike, or in one. */
struct level_cell {
    size_t x, n;       /* the first pixel; how many */
    int64_t length_ns; /* of one pixel; where that is less than a nanosecond 1, with all of it in one part */
    int64_t parts_ns[LEVEL_PARTS]; /* in one pixel */
    uint64_t n_marks[LEVEL_MARKS]; /* the same */
    int32_t key;                   /* that ran longest, LEVEL_NO_KEY: none */
    int64_t key_ns;                /* how long, at least */
};

/* What is drawn. edges: where pixels begin, and the end of the last one, which includes its end. keys: other keys than
 * those of the row (NULL: its own), of which one is chosen as heaviest. key: which key stands for one, NULL: it
 * itself. */
struct level_picture {
    const int64_t *edges; /* [width + 1], on the levels' clock */
    size_t width;
    const struct level_track *keys;
    int32_t (*key)(const void *key_context, int32_t key);
    const void *key_context;
    void (*cell)(void *context, const struct level_cell *cell);
    void *context;
};

/* Draws a row: hands over its cells from left to right. */
void levels_draw(const struct levels *levels, size_t row, const struct level_picture *picture);

/* --- the file --- */

#define LEVELS_SUFFIX ".locus-time"

/* Which file a recording is, and when it was written. All zero: none, or no plain file. Two that are equal at both ends
 * of a reading are of what was read. */
struct levels_key {
    uint64_t device, inode, n_bytes;
    int64_t s, ns;
    uint32_t owner, mode;
};

/* The key of what lies at a path now.  ctx: ordinary */
struct levels_key levels_key_of(const char *recording);

/* Whether both are of one file that was not written in between.  ctx: any */
bool levels_key_is_same(const struct levels_key *a, const struct levels_key *b);

/* As levels_make of a recording that was opened without options, in a file at path, which is written while they are
 * made, whole or not at all; who may not read the recording may not read that file. *levels are mapped from it. key: of
 * the recording that was read.  err: ERR_IO (it cannot be written), ERR_UNSUPPORTED (it is no such recording),
 * ERR_MEMORY */
int levels_make_kept(const struct stream *stream, const struct levels_key *key, const char *path, struct levels *levels,
                     struct error *err);

/* The same of a recording that is read for it, of which no event is kept: *shell and *n_events as levels_map gives
 * them. n_least: of fewer events no file is made.  err: as stream_open and levels_make_kept; ERR_UNSUPPORTED (also: it
 * is no recording of which that can be done, or it was written meanwhile) */
int levels_make_passing(const char *recording, const struct levels_key *key, const char *path, uint64_t n_least,
                        struct levels *levels, struct stream **shell, uint64_t *n_events, struct error *err);

/* Maps what levels_make_kept has kept at path, if it is of the recording with that key, of this version, not damaged,
 * and belongs to the user, to root or to whom the recording belongs; false: it does not, or there is none. *shell, to
 * be closed, is a stream that says what the recording is and has neither events nor types; *n_events: how many the
 * recording has. */
bool levels_map(const char *recording, const struct levels_key *key, const char *path, struct levels *levels,
                struct stream **shell, uint64_t *n_events);

/* The index of such a file (parts.h); NULL: there is none. */
struct parts_index *levels_read_index(const struct levels_key *key, const char *path);

/* The sum over words by which damage is told.  ctx: any */
uint64_t levels_sum(const void *bytes, size_t n_bytes);

/* Where levels of a recording may be kept: beside it, else in the user's cache. Empty: nowhere. */
struct levels_places {
    struct buf beside, cached;
};

/* make: the cache's directory if it is not there. */
void levels_places_init(struct levels_places *places, const char *recording, bool make);
void levels_places_fini(struct levels_places *places);

/* Removes from the cache what has not been used for long, and the oldest where there is too much. newest: the path of
 * a file in it that stays. */
void levels_trim_cache(const char *newest);

/* The index that is kept of a recording as it is now, wherever; NULL: none. */
struct parts_index *levels_find_index(const char *recording);

#endif
