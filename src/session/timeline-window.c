/* SPDX-License-Identifier: BSD-3-Clause */
/* What a window of the time line holds, without time: what ran for how long, how busy CPUs and nodes were, who waited,
 * and who displaced whom. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "session/timeline.h"
#include "streams/schedule.h"
#include "table/table.h"

enum { PAIRS_MAX = 100 };

static const struct column window_head[] = {
    {"from_ns", NULL, CELL_SPAN},    {"to_ns", NULL, CELL_SPAN},    {"by", NULL, CELL_TEXT},
    {"running_ns", NULL, CELL_SPAN}, {"woken_ns", NULL, CELL_SPAN}, {"preempted_ns", NULL, CELL_SPAN},
    {"samples", NULL, CELL_COUNT},   {"cpus", NULL, CELL_TABLE},    {"nodes", NULL, CELL_TABLE},
    {"displaced", NULL, CELL_TABLE},
};

static const struct column cpu_columns[] = {
    {"row", NULL, CELL_COUNT},     {"name", NULL, CELL_TEXT},       {"busy_ns", NULL, CELL_SPAN},
    {"idle_ns", NULL, CELL_SPAN},  {"unknown_ns", NULL, CELL_SPAN}, {"events", NULL, CELL_COUNT},
    {"samples", NULL, CELL_COUNT}, {"lost", NULL, CELL_COUNT},
};

static const struct column node_columns_of_window[] = {
    {"stream", NULL, CELL_COUNT}, {"node", NULL, CELL_COUNT},   {"cpus", NULL, CELL_COUNT},
    {"busy_ns", NULL, CELL_SPAN}, {"idle_ns", NULL, CELL_SPAN}, {"unknown_ns", NULL, CELL_SPAN},
};

static const struct column pair_columns[] = {
    {"row", NULL, CELL_COUNT}, {"name", NULL, CELL_TEXT},   {"by_row", NULL, CELL_COUNT},
    {"by", NULL, CELL_TEXT},   {"times", NULL, CELL_COUNT}, {"waited_ns", NULL, CELL_SPAN},
};

/* A window on the axis. */
struct window {
    const struct timeline *timeline;
    int64_t from_ns, to_ns;
};

/* Who was displaced by whom. */
struct pair {
    uint32_t row; /* its number */
    int32_t by;   /* the task, SCHEDULE_NOBODY: not known */
    uint64_t n;
    int64_t waited_ns;
};

struct pairs {
    struct pair *all; /* [n] */
    size_t n, capacity;
    struct slots slots;
    bool failed;
};

/* The part of the window that a recording has, on the clock of its levels; false: none. */
static bool inside(const struct window *window, const struct time_stream *of, int64_t *from_ns, int64_t *to_ns)
{
    *from_ns = time_of_levels(of, window->from_ns);
    *to_ns = time_of_levels(of, window->to_ns);
    *from_ns = *from_ns < of->levels.begin_ns ? of->levels.begin_ns : *from_ns;
    *to_ns = *to_ns > of->levels.end_ns ? of->levels.end_ns : *to_ns;
    return *from_ns <= *to_ns;
}

static bool sums_of(const struct window *window, const struct time_stream *of, size_t row, int64_t sums[LEVEL_PARTS],
                    int64_t *length_ns)
{
    const struct level_track track = levels_track(&of->levels, row);
    int64_t from_ns, to_ns;
    memset(sums, 0, LEVEL_PARTS * sizeof *sums);
    *length_ns = 0;
    if (!inside(window, of, &from_ns, &to_ns))
        return false;
    level_sums_of(&track, from_ns, to_ns, sums);
    *length_ns = to_ns - from_ns;
    return true;
}

static uint64_t marks_of(const struct window *window, const struct time_stream *of, size_t row, enum level_mark mark)
{
    return levels_count(&of->levels, row, mark, time_of_levels(of, window->from_ns),
                        time_add(time_of_levels(of, window->to_ns), 1));
}

/* --- CPUs and nodes --- */

static void put_cpu(struct table *table, const struct window *window, const struct time_row *at)
{
    int64_t sums[LEVEL_PARTS], length_ns;
    struct buf name = {0};
    bool is_there = sums_of(window, at->of, at->row, sums, &length_ns);
    time_row_put_name(window->timeline, at, &name);
    table_put_count(table, (int64_t)(at->of->first_row + at->row));
    table_put_made(table, &name);
    bool is_known = is_there && (sums[LEVEL_UNKNOWN] < length_ns || length_ns == 0);
    table_put_if(table, is_known, sums[LEVEL_RUNNING]);
    table_put_if(table, is_known, length_ns - sums[LEVEL_RUNNING] - sums[LEVEL_UNKNOWN]);
    table_put_count(table, sums[LEVEL_UNKNOWN]);
    table_put_count(table, (int64_t)marks_of(window, at->of, at->row, LEVEL_EVENT));
    table_put_count(table, (int64_t)marks_of(window, at->of, at->row, LEVEL_SAMPLE));
    table_put_count(table, (int64_t)marks_of(window, at->of, at->row, LEVEL_LOST));
}

/* The CPUs of one node together. */
static void put_node(struct table *table, const struct window *window, size_t stream, uint32_t node)
{
    const struct time_stream *of = &window->timeline->streams[stream];
    int64_t busy_ns = 0, idle_ns = 0, unknown_ns = 0, n = 0;
    for (size_t i = 0; i < of->brief.n_cpus; i++) {
        size_t row = levels_find(&of->levels, LEVEL_CPU, (int32_t)of->brief.cpus[i].os);
        int64_t sums[LEVEL_PARTS], length_ns;
        if (of->brief.cpus[i].node != node || row == SIZE_MAX || !sums_of(window, of, row, sums, &length_ns))
            continue;
        busy_ns += sums[LEVEL_RUNNING];
        unknown_ns += sums[LEVEL_UNKNOWN];
        idle_ns += length_ns - sums[LEVEL_RUNNING] - sums[LEVEL_UNKNOWN];
        n++;
    }
    if (n == 0)
        return;
    table_put_count(table, (int64_t)stream);
    table_put_if(table, node != TOPOLOGY_UNKNOWN, node);
    table_put_count(table, n);
    table_put_count(table, busy_ns);
    table_put_count(table, idle_ns);
    table_put_count(table, unknown_ns);
}

static void put_nodes(struct table *table, const struct window *window)
{
    for (size_t i = 0; i < window->timeline->n_streams; i++) {
        const struct brief_topology *brief = &window->timeline->streams[i].brief;
        for (size_t k = 0; k < brief->n_cpus; k++) /* they are by node */
            if (k == 0 || brief->cpus[k].node != brief->cpus[k - 1].node)
                put_node(table, window, i, brief->cpus[k].node);
    }
}

/* --- who displaced whom --- */

static uint64_t pair_hash(const void *item)
{
    const struct pair *pair = item;
    return ((uint64_t)pair->row << 32 | (uint32_t)pair->by) * UINT64_C(0x9e3779b97f4a7c15) >> 20;
}

static bool pair_is_same(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    return x->row == y->row && x->by == y->by;
}

/* Whether the CPUs of a recording say who ran on them, whoever it was: else only switches name others' tasks. */
static bool knows_all(const struct stream *stream)
{
    return stream->tier == STREAM_TIER_FULL || stream->tier == STREAM_TIER_SWITCHES;
}

/* Who came onto the CPU of a task that was displaced. */
static int32_t displaced_by(const struct time_stream *of, const struct schedule_source *source, int32_t task,
                            const struct level_stay *stay)
{
    if (!knows_all(of->stream))
        return schedule_next_of(source, task, time_add(stay->from_ns, of->stream->offset_ns));
    size_t cpu = stay->key == LEVEL_NO_KEY ? SIZE_MAX : levels_find(&of->levels, LEVEL_CPU, stay->key);
    if (cpu == SIZE_MAX)
        return SCHEDULE_NOBODY;
    const struct level_track track = levels_track(&of->levels, cpu);
    size_t i = level_stay_at(&track, stay->from_ns);
    bool is_there = i < track.n && track.stays[i].from_ns == stay->from_ns && track.stays[i].part == LEVEL_RUNNING;
    return is_there ? track.stays[i].key : SCHEDULE_NOBODY;
}

static void add_displaced(struct pairs *pairs, const struct time_stream *of, size_t row, int64_t from_ns, int64_t to_ns)
{
    enum { REST_STAYS = 1 << 12 };
    static const struct slots_kind kind = {sizeof(struct pair), pair_hash, pair_is_same};
    const struct level_track track = levels_track(&of->levels, row);
    struct schedule_source source;
    schedule_source_init(&source, of->stream);
    for (size_t i = level_stay_at(&track, from_ns); i < track.n && track.stays[i].from_ns <= to_ns; i++) {
        const struct level_stay *stay = &track.stays[i];
        if (i % REST_STAYS == 0)
            levels_rest(&of->levels);
        if (stay->part != LEVEL_PREEMPTED || stay->from_ns < from_ns)
            continue;
        const struct pair like = {.row = (uint32_t)(of->first_row + row),
                                  .by = displaced_by(of, &source, of->levels.rows[row].number, stay)};
        size_t at = slots_put(&pairs->slots, &kind, &pairs->all, &pairs->n, &pairs->capacity, &like);
        if (at == SLOTS_NONE) {
            pairs->failed = true;
            return;
        }
        pairs->all[at].n++;
        pairs->all[at].waited_ns += (stay->to_ns < to_ns ? stay->to_ns : to_ns) - stay->from_ns;
    }
}

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->waited_ns != y->waited_ns)
        return x->waited_ns < y->waited_ns ? 1 : -1;
    return x->row != y->row ? (x->row > y->row) - (x->row < y->row) : (x->by > y->by) - (x->by < y->by);
}

/* The row, if it has one, and the name of who displaced a task. */
static void put_by(struct table *table, const struct timeline *timeline, const struct time_row *displaced, int32_t by)
{
    const struct time_stream *of = displaced->of;
    size_t row = by == SCHEDULE_NOBODY ? SIZE_MAX : levels_find(&of->levels, LEVEL_TASK, by);
    const struct time_row at = {of, displaced->stream, row};
    struct buf name = {0};
    table_put_if(table, row != SIZE_MAX, (int64_t)(of->first_row + row));
    if (row != SIZE_MAX) {
        time_row_put_name(timeline, &at, &name);
    } else if (by != SCHEDULE_NOBODY) {
        stream_put_comms(of->stream, by, &name);
        if (by != 0)
            buf_printf(&name, ":%" PRId32, by);
        if (timeline->n_streams > 1)
            buf_printf(&name, " [%zu]", displaced->stream);
    }
    if (by == SCHEDULE_NOBODY)
        table_put_absent(table);
    else
        table_put_made(table, &name);
}

static void put_pair(struct table *table, const struct timeline *timeline, const struct pair *pair)
{
    struct buf name = {0};
    struct time_row at;
    if (timeline_row(timeline, pair->row, &at, NULL) != 0)
        return;
    table_put_count(table, pair->row);
    time_row_put_name(timeline, &at, &name);
    table_put_made(table, &name);
    put_by(table, timeline, &at, pair->by);
    table_put_count(table, (int64_t)pair->n);
    table_put_count(table, pair->waited_ns);
}

static void put_displaced(struct table *table, const struct window *window)
{
    struct pairs pairs = {0};
    for (size_t i = 0; i < window->timeline->n_streams; i++) {
        const struct time_stream *of = &window->timeline->streams[i];
        int64_t from_ns, to_ns;
        for (size_t row = 0; inside(window, of, &from_ns, &to_ns) && row < of->levels.n_rows; row++)
            if (of->levels.rows[row].kind == LEVEL_TASK && !pairs.failed)
                add_displaced(&pairs, of, row, from_ns, to_ns);
    }
    if (pairs.n)
        qsort(pairs.all, pairs.n, sizeof *pairs.all, compare_pairs);
    for (size_t i = 0; i < pairs.n && i < PAIRS_MAX; i++)
        put_pair(table, window->timeline, &pairs.all[i]);
    if (pairs.failed)
        table_fail(table);
    slots_fini(&pairs.slots);
    free(pairs.all);
}

/* --- all of it --- */

/* Puts the sums of all tasks: running, woken, preempted, samples. */
static void put_sums(struct table *head, const struct window *window)
{
    int64_t all[LEVEL_PARTS] = {0}, n_samples = 0, sums[LEVEL_PARTS], length_ns;
    struct time_row at;
    for (uint64_t i = 0; i < window->timeline->n_rows; i++) {
        if (timeline_row(window->timeline, i, &at, NULL) != 0 || at.of->levels.rows[at.row].kind != LEVEL_TASK)
            continue;
        (void)sums_of(window, at.of, at.row, sums, &length_ns);
        for (size_t part = 0; part < LEVEL_PARTS; part++)
            all[part] += sums[part];
        n_samples += (int64_t)marks_of(window, at.of, at.row, LEVEL_SAMPLE);
    }
    table_put_count(head, all[LEVEL_RUNNING]);
    table_put_count(head, all[LEVEL_WOKEN]);
    table_put_count(head, all[LEVEL_PREEMPTED]);
    table_put_count(head, n_samples);
}

int time_make_window(struct timeline *timeline, const struct request *request, struct answer *answer, struct error *err)
{
    struct window window = {.timeline = timeline};
    struct time_colours colours;
    struct time_row at;
    int code = timeline_window(timeline, request, &window.from_ns, &window.to_ns, err);
    for (size_t i = 0; code == 0 && i < timeline->n_streams; i++)
        if (!knows_all(timeline->streams[i].stream)) /* its switches say who displaced whom */
            code = timeline_load(timeline, i, err);
    if (code == 0)
        code = time_colours_init(&colours, timeline, request->by, window.from_ns, window.to_ns, err);
    if (code != 0)
        return code;
    answer_begin(answer, "keys", time_key_columns, TIME_KEY_COLUMNS);
    time_colours_put_keys(&colours, &answer->rows);
    struct table *head = answer_set_head(answer, COLUMNS(window_head));
    table_put_count(head, time_add(window.from_ns, -timeline->begin_ns));
    table_put_count(head, time_add(window.to_ns, -timeline->begin_ns));
    table_put_borrowed(head, time_colours_name(&colours));
    put_sums(head, &window);
    struct table *inner = table_put_table(head, COLUMNS(cpu_columns));
    for (uint64_t i = 0; i < timeline->n_rows; i++)
        if (timeline_row(timeline, i, &at, NULL) == 0 && at.of->levels.rows[at.row].kind == LEVEL_CPU)
            put_cpu(inner, &window, &at);
    put_nodes(table_put_table(head, COLUMNS(node_columns_of_window)), &window);
    put_displaced(table_put_table(head, COLUMNS(pair_columns)), &window);
    time_colours_fini(&colours);
    return 0;
}
