/* SPDX-License-Identifier: BSD-3-Clause */
/* From the schedule of a stream to rows of stays with sums: see levels.h. Stays and marks are gathered, packed, while
 * events are gone through once. Then they go to their places row by row, in memory or, in the order that it has, into a
 * file: what has gone there takes no memory of ours, and is not copied again. */
#include "streams/levels.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "streams/couplebreak.h"
#include "streams/levels-file.h"
#include "streams/parts.h"
#include "streams/schedule.h"

/* --- from pieces of a schedule to stays --- */

/* A stay until all are there: they are many. bits: key, part, state; PACKED_WHOLE: the stay follows as it is. */
struct packed {
    uint32_t gap_ns, length_ns; /* since the one before ended; of it */
    uint32_t bits;
};

enum { PACKED_KEY = 24, PACKED_STATE = PACKED_KEY + 2, PACKED_WHOLE = 1 << 30, WHOLE = 3 };

_Static_assert(sizeof(struct level_stay) == (WHOLE - 1) * sizeof(struct packed) && (int)LEVEL_PARTS <= 4 &&
                   (int)SCHEDULE_N_STATES <= 16,
               "a stay that is packed says all of it");

/* Some successive stays of a row. */
struct piece {
    struct piece *next;
    uint32_t n, capacity;
    struct packed packed[];
};

/* Some successive times of a row's marks. */
struct times_piece {
    struct times_piece *next;
    uint32_t n, capacity;
    uint32_t low[];
};

struct times {
    struct times_piece *first, *last;
    uint64_t high; /* of the last one */
    size_t n;
    struct level_turn *turns; /* [n_turns] */
    size_t n_turns, cap_turns;
};

enum { PIECE_FIRST = 16, PIECE_MOST = 4096, TIMES_FIRST = 8, TIMES_MOST = 1 << 12, RECENT = 4096 };

/* A row that is being made. */
struct growing {
    int32_t number;
    uint32_t kind;
    struct piece *first, *last;
    size_t n;               /* stays */
    struct level_stay stay; /* the last one, which is not packed yet */
    int64_t packed_ns;      /* until when they are */
    int64_t known_ns;       /* until when it is accounted */
    bool is_gone;           /* it has ended, so that nothing more is to be known of it */
    int64_t first_ns, last_ns;
    int64_t parts_ns[LEVEL_PARTS];
    struct times times[LEVEL_MARKS];
};

/* Where the row of a task was that was looked up. */
struct recent {
    int32_t task;
    uint32_t place; /* behind its index; 0: nothing was looked up */
};

struct making {
    const struct stream *stream;
    struct levels *levels;
    struct growing *rows; /* [n] CPUs by number first, then tasks as they come */
    size_t n, capacity, n_cpus;
    struct slots slots;      /* of all rows */
    struct recent *recent;   /* [RECENT] by the rest of the task's number */
    struct levels_room room; /* of pieces */
    int32_t sample_id;
    bool failed;
    struct parts_making *parts; /* NULL: no index is made */
    struct schedule sched;
    struct schedule_sink sink;
    int64_t last_ns; /* of the last one */
};

static uint64_t row_hash(const void *item)
{
    const struct growing *row = item;
    return ((uint64_t)(uint32_t)row->number * 2 + row->kind) * UINT64_C(0x9e3779b97f4a7c15) >> 20;
}

static bool row_is_same(const void *a, const void *b)
{
    const struct growing *x = a, *y = b;
    return x->number == y->number && x->kind == y->kind;
}

static const struct slots_kind row_kind = {sizeof(struct growing), row_hash, row_is_same};

static struct growing *row_put(struct making *making, enum level_kind kind, int32_t number)
{
    struct growing like = {.number = number,
                           .kind = kind,
                           .known_ns = making->levels->begin_ns,
                           .packed_ns = making->levels->begin_ns,
                           .first_ns = INT64_MAX,
                           .last_ns = INT64_MIN};
    size_t i = slots_put(&making->slots, &row_kind, &making->rows, &making->n, &making->capacity, &like);
    making->failed |= i == SLOTS_NONE;
    if (i < UINT32_MAX && kind == LEVEL_TASK)
        making->recent[(uint32_t)number % RECENT] = (struct recent){number, (uint32_t)i + 1};
    return i == SLOTS_NONE ? NULL : &making->rows[i];
}

static inline struct growing *row_of(struct making *making, enum level_kind kind, int32_t number)
{
    if (kind == LEVEL_CPU && (size_t)number < making->n_cpus)
        return &making->rows[number];
    const struct recent *recent = &making->recent[(uint32_t)number % RECENT];
    if (kind == LEVEL_TASK && recent->place && recent->task == number)
        return &making->rows[recent->place - 1];
    return row_put(making, kind, number);
}

/* A piece behind the last one of a row, which is full. */
static bool add_piece(struct making *making, struct growing *row)
{
    uint32_t n = row->last ? row->last->capacity * 2 : PIECE_FIRST;
    n = n < PIECE_MOST ? n : PIECE_MOST;
    struct piece *piece = levels_room_take(&making->room, sizeof *piece + n * sizeof *piece->packed);
    if (!piece)
        return false;
    piece->next = NULL;
    piece->n = 0;
    piece->capacity = n;
    if (row->last)
        row->last->next = piece;
    else
        row->first = piece;
    row->last = piece;
    return true;
}

/* Packs the last stay of a row. */
static void pack(struct making *making, struct growing *row)
{
    const struct level_stay *stay = &row->stay;
    uint64_t gap_ns = (uint64_t)stay->from_ns - (uint64_t)row->packed_ns;
    uint64_t length_ns = (uint64_t)stay->to_ns - (uint64_t)stay->from_ns;
    const uint32_t no_key = (1u << PACKED_KEY) - 1;
    uint32_t key = stay->key == LEVEL_NO_KEY ? no_key : (uint32_t)stay->key;
    bool is_whole = gap_ns > UINT32_MAX || length_ns > UINT32_MAX || key > no_key || (uint32_t)stay->key == no_key;
    if ((!row->last || row->last->n + WHOLE > row->last->capacity) && !add_piece(making, row)) {
        making->failed = true;
        return;
    }
    struct packed *at = &row->last->packed[row->last->n];
    row->last->n += is_whole ? WHOLE : 1;
    row->packed_ns = stay->to_ns;
    *at = (struct packed){(uint32_t)gap_ns, (uint32_t)length_ns,
                          key | (uint32_t)stay->part << PACKED_KEY | (uint32_t)stay->state << PACKED_STATE};
    if (is_whole) {
        at->bits = PACKED_WHOLE;
        memcpy(at + 1, stay, sizeof *stay);
    }
}

/* How far the stays of a row have been unpacked. */
struct unpacking {
    const struct growing *row;
    const struct piece *piece;
    uint32_t i; /* in the piece */
    int64_t t_ns;
};

/* Unpacks the next stays of a row, up to n_most of them; how many these were. */
static size_t unpack(struct unpacking *from, size_t n_most, struct level_stay *stays)
{
    const uint32_t no_key = (1u << PACKED_KEY) - 1;
    size_t n = 0;
    while (n < n_most && from->piece) {
        if (from->i == from->piece->n) {
            from->piece = from->piece->next;
            from->i = 0;
            continue;
        }
        const struct packed *at = &from->piece->packed[from->i++];
        if (at->bits == PACKED_WHOLE) {
            memcpy(&stays[n], at + 1, sizeof *stays);
            from->i += WHOLE - 1;
        } else {
            uint32_t key = at->bits & no_key;
            int64_t from_ns = from->t_ns + at->gap_ns;
            stays[n] = (struct level_stay){.from_ns = from_ns,
                                           .to_ns = from_ns + at->length_ns,
                                           .key = key == no_key ? LEVEL_NO_KEY : (int32_t)key,
                                           .part = at->bits >> PACKED_KEY & 3,
                                           .state = at->bits >> PACKED_STATE & 15};
        }
        from->t_ns = stays[n++].to_ns;
    }
    if (n < n_most && from->row) { /* the last one was not packed */
        stays[n++] = from->row->stay;
        from->row = NULL;
    }
    return n;
}

static void add_stay(struct making *making, struct growing *row, const struct level_stay *stay)
{
    if (stay->from_ns >= stay->to_ns)
        return;
    if (row->n)
        pack(making, row);
    row->stay = *stay;
    row->parts_ns[stay->part] += stay->to_ns - stay->from_ns;
    row->n++;
}

/* The row is accounted until from_ns: nothing is known of what is missing. */
static void know_until(struct making *making, struct growing *row, int64_t from_ns)
{
    const struct level_stay gap = {row->known_ns, from_ns, LEVEL_NO_KEY, LEVEL_UNKNOWN, SCHEDULE_UNKNOWN, 0};
    if (!row->is_gone)
        add_stay(making, row, &gap);
    row->is_gone = false;
}

/* Takes what a row did: a stay of it, or (has_stay false) what lies between stays. */
static void take(struct making *making, struct growing *row, struct level_stay stay, bool has_stay)
{
    if (!row)
        return;
    if (stay.from_ns > row->known_ns)
        know_until(making, row, stay.from_ns);
    if (stay.from_ns < row->known_ns) {
        making->levels->n_cut++;
        stay.from_ns = row->known_ns;
    }
    if (stay.from_ns >= stay.to_ns)
        return;
    if (has_stay)
        add_stay(making, row, &stay);
    if (stay.part == LEVEL_RUNNING && has_stay) {
        row->first_ns = stay.from_ns < row->first_ns ? stay.from_ns : row->first_ns;
        row->last_ns = stay.to_ns > row->last_ns ? stay.to_ns : row->last_ns;
    }
    row->known_ns = stay.to_ns;
    row->is_gone = false;
}

static void take_piece(void *context, const struct schedule_piece *piece)
{
    struct making *making = context;
    parts_making_piece(making->parts, &making->sched, piece);
    struct level_stay stay = {piece->from_ns, piece->to_ns, piece->task, LEVEL_RUNNING, piece->state, 0};
    bool is_run = piece->state == SCHEDULE_RUNNING, has_cpu = piece->cpu != STREAM_NO_CPU;
    if (is_run && has_cpu)
        take(making, row_of(making, LEVEL_CPU, piece->cpu), stay, piece->task != 0);
    if (piece->task == 0)
        return;
    stay.key = has_cpu ? piece->cpu : LEVEL_NO_KEY;
    stay.part = piece->state == SCHEDULE_WOKEN ? LEVEL_WOKEN : is_run ? LEVEL_RUNNING : LEVEL_PREEMPTED;
    stay.state = is_run ? SCHEDULE_UNKNOWN : piece->state;
    take(making, row_of(making, LEVEL_TASK, piece->task), stay,
         is_run || piece->state == SCHEDULE_WOKEN || piece->state == SCHEDULE_PREEMPTED);
}

/* The end of a stay that was a piece just before. */
static void take_run(void *context, const struct schedule_run *run)
{
    struct making *making = context;
    parts_making_run(making->parts, &making->sched, run);
    struct growing *row = row_of(making, LEVEL_TASK, run->task);
    if (!row)
        return;
    if (run->from_ns > row->known_ns) { /* it ran for no time, of which there is no piece */
        know_until(making, row, run->from_ns);
        row->known_ns = run->from_ns;
    }
    row->is_gone = run->state == SCHEDULE_DEAD;
    if (row->n && row->stay.part == LEVEL_RUNNING && row->stay.to_ns == run->to_ns)
        row->stay.state = run->state;
}

/* --- marks --- */

/* The marks that an event is, as bits. */
static unsigned marks_of(const struct making *making, const struct stream_event *event)
{
    if (event->id == STREAM_ID_LOST)
        return 1u << LEVEL_LOST;
    return 1u << LEVEL_EVENT | (event->id < 0 && couplebreak_is_twin(event->id) ? 1u << LEVEL_TWIN : 0) |
           (event->id == making->sample_id ? 1u << LEVEL_SAMPLE : 0);
}

/* A piece behind the last one, which is full. */
static bool add_times(struct making *making, struct times *times)
{
    uint32_t n = times->last ? times->last->capacity * 2 : TIMES_FIRST;
    n = n < TIMES_MOST ? n : TIMES_MOST;
    struct times_piece *piece = levels_room_take(&making->room, sizeof *piece + n * sizeof *piece->low);
    if (!piece)
        return false;
    *piece = (struct times_piece){.capacity = n};
    if (times->last)
        times->last->next = piece;
    else
        times->first = piece;
    times->last = piece;
    return true;
}

/* From the next time on the upper half is another one. */
static bool add_turn(struct times *times, uint64_t high)
{
    if (!vec_reserve(&times->turns, &times->cap_turns, times->n_turns + 1, sizeof *times->turns))
        return false;
    times->turns[times->n_turns++] = (struct level_turn){times->n, high};
    times->high = high;
    return true;
}

static inline void put_time(struct making *making, struct times *times, int64_t t_ns)
{
    uint64_t since_ns = (uint64_t)t_ns - (uint64_t)making->levels->begin_ns;
    bool is_full = !times->last || times->last->n == times->last->capacity;
    if (__builtin_expect(is_full, 0) && !add_times(making, times))
        making->failed = true;
    else if (__builtin_expect(!times->n || times->high != since_ns >> 32, 0) && !add_turn(times, since_ns >> 32))
        making->failed = true;
    else {
        times->last->low[times->last->n++] = (uint32_t)since_ns;
        times->n++;
    }
}

static inline void mark_row(struct making *making, struct growing *row, unsigned marks, int64_t t_ns)
{
    if (!row)
        return;
    row->first_ns = t_ns < row->first_ns ? t_ns : row->first_ns;
    row->last_ns = t_ns > row->last_ns ? t_ns : row->last_ns;
    for (; marks; marks &= marks - 1) { /* most have one */
        put_time(making, &row->times[__builtin_ctz(marks)], t_ns);
    }
}

/* Takes the marks of an event, which is of a CPU and a task. */
static void take_event(void *context, const struct stream_event *event)
{
    struct making *making = context;
    unsigned marks = marks_of(making, event);
    parts_making_event(making->parts, &making->sched, event);
    if (event->cpu != STREAM_NO_CPU)
        mark_row(making, row_of(making, LEVEL_CPU, event->cpu), marks, event->t_ns);
    if (event->task > 0)
        mark_row(making, row_of(making, LEVEL_TASK, event->task), marks, event->t_ns);
}

/* --- making them --- */

static int compare_rows(const void *a, const void *b)
{
    const struct growing *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Begins with the first event of a stream. CPUs without any have rows, too. */
static void begin(struct making *making, const struct stream *stream, int64_t begin_ns, bool with_parts)
{
    making->stream = stream;
    making->sink = (struct schedule_sink){take_piece, take_run, take_event, making, true};
    making->sample_id = stream_find_id(stream, "locus/sample");
    making->sample_id = making->sample_id == STREAM_ID_NONE ? STREAM_ID_LOST : making->sample_id;
    making->parts = with_parts ? parts_making_new(stream) : NULL;
    making->levels->begin_ns = begin_ns;
    making->recent = calloc(RECENT, sizeof *making->recent);
    making->failed = !making->recent;
    for (uint32_t cpu = 0; cpu < stream->n_cpus && cpu < STREAM_NO_CPU && !making->failed; cpu++)
        (void)row_of(making, LEVEL_CPU, (int32_t)cpu);
    making->n_cpus = making->failed ? 0 : making->n;
}

/* All rows are known up to the end.  err: ERR_MEMORY */
static int end(struct making *making, int64_t end_ns, struct error *err)
{
    making->levels->end_ns = end_ns;
    for (size_t i = 0; i < making->n && !making->failed; i++)
        if (making->rows[i].known_ns < end_ns)
            know_until(making, &making->rows[i], end_ns);
    return making->failed ? error_memory(err) : 0;
}

/* Follows the schedule of a stream that has its events.  err: ERR_MEMORY */
static int follow(struct making *making, const struct stream *stream, bool with_parts, struct error *err)
{
    size_t n = stream->n_events;
    begin(making, stream, n ? stream->events[0].t_ns : 0, with_parts);
    int code = making->failed ? error_memory(err) : schedule_analyse(stream, NULL, &making->sink, &making->sched, err);
    return code ? code : end(making, n ? stream->events[n - 1].t_ns : 0, err);
}

/* The next event of a stream that does not keep them. */
static void follow_event(void *context, const struct stream *stream, const struct stream_event *event,
                         const struct schedule_step *step)
{
    struct making *making = context;
    if (!making->stream) {
        begin(making, stream, event->t_ns, true);
        struct schedule_source source;
        schedule_source_expect(&source, stream);
        schedule_begin(&making->sched, &source, NULL, &making->sink, event->t_ns);
    }
    making->last_ns = event->t_ns;
    if (!making->failed && !making->sched.failed)
        schedule_follow(&making->sched, event, step);
}

/* They have all been handed over.  err: ERR_MEMORY, ERR_UNSUPPORTED (what was expected of its types does not hold) */
static int follow_end(struct making *making, struct stream *stream, struct error *err)
{
    struct schedule_source source, expected;
    schedule_source_init(&source, stream);
    schedule_source_expect(&expected, stream);
    if (!making->stream || source.waking_id != expected.waking_id)
        return error_set(err, ERR_UNSUPPORTED, "%.600s: has no events of a type that it describes", stream->path);
    making->sched.end_ns = making->last_ns;
    int code = schedule_finish(&making->sched, err);
    return code ? code : end(making, making->last_ns, err);
}

/* Where the parts of each row lie; *n_...: how many there are in all. */
static void place(struct making *making, struct levels *levels)
{
    for (size_t i = 0; i < making->n; i++) {
        struct growing *from = &making->rows[i];
        struct level_row *row = &levels->rows[i];
        *row = (struct level_row){.number = from->number,
                                  .kind = from->kind,
                                  .first_ns = from->first_ns,
                                  .last_ns = from->last_ns,
                                  .first_stay = levels->n_stays,
                                  .n_stays = from->n,
                                  .first_block = levels->n_blocks,
                                  .first_top = levels->n_tops};
        memcpy(row->parts_ns, from->parts_ns, sizeof row->parts_ns);
        levels->n_cpus += from->kind == LEVEL_CPU;
        levels->n_stays += from->n;
        levels->n_blocks += level_n_blocks(from->n);
        levels->n_tops += level_n_tops(from->n);
        for (unsigned mark = 0; mark < LEVEL_MARKS; mark++) {
            row->first_time[mark] = levels->n_times;
            row->n_times[mark] = from->times[mark].n;
            levels->n_times += from->times[mark].n;
            row->first_turn[mark] = levels->n_turns;
            row->n_turns[mark] = from->times[mark].n_turns;
            levels->n_turns += from->times[mark].n_turns;
        }
    }
    levels->n_rows = making->n;
}

/* What goes into a file, as much at a time as stays in the caches. */
enum { STAYS_AT_ONCE = 2048, TIMES_AT_ONCE = 4 * TIMES_MOST };

/* Takes the stays of all rows to their places: stays, or into a file (NULL: none) by way of stays, which has room for
 * STAYS_AT_ONCE then. */
static void settle(struct making *making, struct level_stay *stays, struct levels_file *file)
{
    struct levels *levels = making->levels;
    size_t used = 0;
    for (size_t i = 0; i < making->n; i++) {
        const struct level_row *row = &levels->rows[i];
        struct unpacking from = {&making->rows[i], making->rows[i].first, 0, levels->begin_ns};
        struct level_block sums = {{0}};
        for (size_t done = 0; done < row->n_stays;) {
            size_t room = file ? (STAYS_AT_ONCE - used) / LEVEL_BLOCK * LEVEL_BLOCK : row->n_stays;
            size_t n = room < row->n_stays - done ? room : row->n_stays - done;
            n = unpack(&from, n, stays + used);
            level_sum_part(stays + used, done, n, &sums, levels->blocks + row->first_block,
                           levels->tops + row->first_top);
            used += n;
            done += n;
            levels_room_pass(&making->room, n * sizeof(struct packed));
            if (file && used + LEVEL_BLOCK > STAYS_AT_ONCE) {
                levels_file_put(file, stays, used * sizeof *stays);
                used = 0;
            }
        }
        level_sum_tops(levels->tops + row->first_top, level_n_blocks(row->n_stays));
        if (file)
            stream_tell(making->stream->path, "writing what was read", row->first_stay + row->n_stays, levels->n_stays);
    }
    if (file)
        levels_file_put(file, stays, used * sizeof *stays);
}

/* The same of the times of all marks, with TIMES_AT_ONCE. They end with a multiple of eight bytes. */
static void settle_times(struct making *making, uint32_t *times, struct levels_file *file)
{
    size_t used = 0;
    for (size_t i = 0; i < making->n * LEVEL_MARKS; i++)
        for (const struct times_piece *piece = making->rows[i / LEVEL_MARKS].times[i % LEVEL_MARKS].first; piece;
             piece = piece->next) {
            if (file && used + piece->n > TIMES_AT_ONCE) {
                size_t n = used / 2 * 2;
                levels_file_put(file, times, n * sizeof *times);
                memmove(times, times + n, (used - n) * sizeof *times);
                used -= n;
            }
            memcpy(times + used, piece->low, piece->n * sizeof *times);
            used += piece->n;
            levels_room_pass(&making->room, piece->n * sizeof *times);
        }
    times[used] = 0;
    if (file)
        levels_file_put(file, times, (used + used % 2) * sizeof *times);
}

static void *array(size_t n, size_t each)
{
    return n < SIZE_MAX / 2 / each ? malloc((n + 1) * each) : NULL;
}

/* Fills stays, blocks and tops. */
static int fill_stays(struct making *making, struct levels_file *file, struct error *err)
{
    struct levels *levels = making->levels;
    struct level_stay *stays = array(file ? STAYS_AT_ONCE : levels->n_stays, sizeof *stays);
    levels->blocks = array(levels->n_blocks, sizeof *levels->blocks);
    levels->tops = array(levels->n_tops, sizeof *levels->tops);
    bool ok = stays && levels->blocks && levels->tops;
    if (ok)
        settle(making, stays, file);
    if (file)
        free(stays);
    else
        levels->stays = stays;
    if (ok && file) {
        levels_file_put(file, levels->blocks, levels->n_blocks * sizeof *levels->blocks);
        levels_file_put(file, levels->tops, levels->n_tops * sizeof *levels->tops);
    }
    return ok ? 0 : error_memory(err);
}

/* Fills turns and times. */
static int fill_times(struct making *making, struct levels_file *file, struct error *err)
{
    struct levels *levels = making->levels;
    uint32_t *times = array(file ? TIMES_AT_ONCE + 1 : levels->n_times, sizeof *times);
    levels->turns = array(levels->n_turns, sizeof *levels->turns);
    bool ok = times && levels->turns;
    struct level_turn *turn = levels->turns;
    for (size_t i = 0; ok && i < making->n * LEVEL_MARKS; i++) {
        const struct times *from = &making->rows[i / LEVEL_MARKS].times[i % LEVEL_MARKS];
        for (size_t k = 0; k < from->n_turns; k++)
            *turn++ = from->turns[k];
    }
    if (ok && file)
        levels_file_put(file, levels->turns, levels->n_turns * sizeof *levels->turns);
    if (ok)
        settle_times(making, times, file);
    if (file)
        free(times);
    else
        levels->times = times;
    return ok ? 0 : error_memory(err);
}

static int fill(struct making *making, struct levels_file *file, struct error *err)
{
    struct levels *levels = making->levels;
    if (file) {
        file->stream = making->stream;
        parts_making_put(making->parts, &making->sched, &file->index, &file->blocks);
        parts_making_free(making->parts);
        making->parts = NULL;
    }
    qsort(making->rows, making->n, sizeof *making->rows, compare_rows);
    slots_fini(&making->slots); /* the rows have moved */
    levels->rows = calloc(making->n + 1, sizeof *levels->rows);
    if (!levels->rows)
        return error_memory(err);
    place(making, levels);
    if (file)
        levels_file_put_head(file, levels);
    int code = fill_stays(making, file, err);
    return code ? code : fill_times(making, file, err);
}

static void making_free(struct making *making)
{
    for (size_t i = 0; i < making->n * LEVEL_MARKS; i++)
        free(making->rows[i / LEVEL_MARKS].times[i % LEVEL_MARKS].turns);
    schedule_close(&making->sched);
    parts_making_free(making->parts);
    levels_room_free(&making->room);
    free(making->rows);
    free(making->recent);
    slots_fini(&making->slots);
    free(making);
}

/* Makes levels of a stream that has its events, in a file or (NULL) in memory. */
static int make(const struct stream *stream, struct levels_file *file, struct levels *levels, struct error *err)
{
    struct making *making = calloc(1, sizeof *making);
    if (!making)
        return error_memory(err);
    making->levels = levels;
    making->room.file = file;
    int code = follow(making, stream, file, err);
    code = code ? code : fill(making, file, err);
    making_free(making);
    if (code == 0 && file)
        code = levels_file_finish(file, levels, NULL, err);
    if (code != 0)
        levels_fini(levels);
    return code;
}

int levels_make(const struct stream *stream, struct levels *levels, struct error *err)
{
    return make(stream, NULL, levels, err);
}

int levels_make_kept(const struct stream *stream, const struct levels_key *key, const char *path, struct levels *levels,
                     struct error *err)
{
    enum { EVENT_BYTES_LIKELY = 44 };
    struct levels_file file;
    if (!levels_file_takes(stream))
        return error_set(err, ERR_UNSUPPORTED, "%.600s: has no levels to be kept", stream->path);
    int code = levels_file_begin(&file, key, path, stream->n_events * EVENT_BYTES_LIKELY, err);
    code = code ? code : make(stream, &file, levels, err);
    levels_file_drop(&file);
    return code;
}

/* Whether what has been read is one recording, and worth a file.  err: ERR_UNSUPPORTED */
static int check_passed(const struct stream *stream, const struct levels_key *key, uint64_t n_least, struct error *err)
{
    const struct levels_key after = levels_key_of(stream->path);
    if (levels_file_takes(stream) && stream->n_events >= n_least && levels_key_is_same(key, &after))
        return 0;
    return error_set(err, ERR_UNSUPPORTED, "%.600s: has no levels to be kept", stream->path);
}

int levels_make_passing(const char *recording, const struct levels_key *key, const char *path, uint64_t n_least,
                        struct levels *levels, struct stream **shell, uint64_t *n_events, struct error *err)
{
    struct levels_file file;
    struct stream *stream = NULL;
    struct making *making = calloc(1, sizeof *making);
    *shell = NULL;
    if (!making)
        return error_memory(err);
    making->levels = levels;
    making->room.file = &file;
    int code = levels_file_begin(&file, key, path, key->n_bytes, err);
    code = code ? code : schedule_open_passing(recording, follow_event, making, &stream, err);
    code = code ? code : check_passed(stream, key, n_least, err);
    code = code ? code : follow_end(making, stream, err);
    code = code ? code : fill(making, &file, err);
    making_free(making);
    *n_events = code == 0 ? stream->n_events : 0;
    code = code ? code : levels_file_finish(&file, levels, shell, err);
    stream_close(stream);
    levels_file_drop(&file);
    if (code != 0)
        levels_fini(levels);
    return code;
}
