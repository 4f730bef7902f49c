/* SPDX-License-Identifier: BSD-3-Clause */
/* Pictures of a window of the time line: for each row what it did in each pixel, from levels of detail. */
#include "session/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "streams/schedule.h"
#include "table/table.h"

enum { WIDTH_USUAL = 1000, WIDTH_MAX = 16384, WHOLE = UINT8_MAX, RUNS_MOST = 4000000 };

/* Bits of a run of pixels. */
enum { FLAG_LOST = 1, FLAG_TWIN = 2, FLAG_SAMPLE = 4, FLAG_WOKEN = 8, FLAG_PREEMPTED = 16 };

static const struct column pixel_columns[] = {
    {"row", NULL, CELL_COUNT},     {"x", NULL, CELL_COUNT},      {"n", NULL, CELL_COUNT},
    {"key", NULL, CELL_COUNT},     {"run", NULL, CELL_COUNT},    {"wait", NULL, CELL_COUNT},
    {"unknown", NULL, CELL_COUNT}, {"events", NULL, CELL_COUNT}, {"flags", NULL, CELL_COUNT},
};

static const struct column picture_head[] = {
    {"from_ns", NULL, CELL_SPAN}, {"to_ns", NULL, CELL_SPAN}, {"width", NULL, CELL_COUNT},
    {"by", NULL, CELL_TEXT},      {"keys", NULL, CELL_TABLE},
};

/* Alike pixels of a row. */
struct pixels {
    size_t x, n;
    int64_t key;
    uint8_t run, wait, unknown, events, flags;
};

/* A row that is being drawn. */
struct drawn {
    struct table *table;
    struct time_colours *colours;
    struct time_row row;
    uint64_t number;
    struct pixels last; /* n 0: there are none as yet */
};

/* The share of a pixel: 0 if there is nothing of it alone, WHOLE if there is nothing else alone. */
static uint8_t share_of(int64_t part_ns, int64_t length_ns)
{
    if (part_ns <= 0 || part_ns >= length_ns)
        return part_ns <= 0 ? 0 : WHOLE;
    double share = (double)part_ns / (double)length_ns * WHOLE;
    return share < 1 ? 1 : share > WHOLE - 1 ? WHOLE - 1 : (uint8_t)(share + 0.5);
}

/* 1 for one event, 2 for two or three, 3 for four to seven. */
static uint8_t scale_of(uint64_t n)
{
    uint8_t scale = 0;
    for (; n; n >>= 1)
        scale++;
    return scale;
}

static bool is_blank(const struct pixels *pixels)
{
    return !pixels->run && !pixels->wait && !pixels->unknown && !pixels->events && !pixels->flags;
}

static void flush(struct drawn *drawn)
{
    const struct pixels *last = &drawn->last;
    if (last->n == 0 || is_blank(last))
        return;
    table_put_count(drawn->table, (int64_t)drawn->number);
    table_put_count(drawn->table, (int64_t)last->x);
    table_put_count(drawn->table, (int64_t)last->n);
    table_put_if(drawn->table, last->key >= 0, last->key);
    table_put_count(drawn->table, last->run);
    table_put_count(drawn->table, last->wait);
    table_put_count(drawn->table, last->unknown);
    table_put_count(drawn->table, last->events);
    table_put_count(drawn->table, last->flags);
}

static bool is_same(const struct pixels *a, const struct pixels *b)
{
    return a->key == b->key && a->run == b->run && a->wait == b->wait && a->unknown == b->unknown &&
           a->events == b->events && a->flags == b->flags;
}

static void take_cell(void *context, const struct level_cell *cell)
{
    struct drawn *drawn = context;
    int64_t wait_ns = cell->parts_ns[LEVEL_WOKEN] + cell->parts_ns[LEVEL_PREEMPTED];
    struct pixels pixels = {
        .x = cell->x,
        .n = cell->n,
        .key = time_colours_place(drawn->colours, &drawn->row, cell->key, cell->parts_ns[LEVEL_RUNNING]),
        .run = share_of(cell->parts_ns[LEVEL_RUNNING], cell->length_ns),
        .wait = share_of(wait_ns, cell->length_ns),
        .unknown = share_of(cell->parts_ns[LEVEL_UNKNOWN], cell->length_ns),
        .events = scale_of(cell->n_marks[LEVEL_EVENT])};
    pixels.flags =
        (uint8_t)((cell->n_marks[LEVEL_LOST] ? FLAG_LOST : 0) | (cell->n_marks[LEVEL_TWIN] ? FLAG_TWIN : 0) |
                  (cell->n_marks[LEVEL_SAMPLE] ? FLAG_SAMPLE : 0) | (cell->parts_ns[LEVEL_WOKEN] ? FLAG_WOKEN : 0) |
                  (cell->parts_ns[LEVEL_PREEMPTED] ? FLAG_PREEMPTED : 0));
    if (drawn->last.n && is_same(&drawn->last, &pixels)) {
        drawn->last.n += pixels.n;
        return;
    }
    flush(drawn);
    drawn->last = pixels;
}

/* Where pixels begin, and the end of the last one, on the axis. */
static int64_t *make_edges(int64_t from_ns, int64_t to_ns, size_t width)
{
    int64_t *edges = calloc(width + 1, sizeof *edges);
    for (size_t x = 0; edges && x <= width; x++)
        edges[x] = schedule_slice_ns(from_ns, to_ns, width, x);
    return edges;
}

/* Draws the rows of one recording; wanted: [n] of them, in any order, n 0: all. */
static int draw(const struct timeline *timeline, const struct request *request, const int64_t *edges, size_t width,
                struct time_colours *colours, struct table *table, struct error *err)
{
    size_t n = request->n_rows ? request->n_rows : timeline->n_rows;
    int64_t *own = calloc(width + 1, sizeof *own);
    const struct time_stream *last = NULL;
    int code = own ? 0 : error_memory(err);
    for (size_t i = 0; code == 0 && i < n; i++) {
        if (table->n_cells / table->n_columns >
            RUNS_MOST) { /* nobody sees as many; the page asks for what is in sight */
            table->n_more = n - i;
            break;
        }
        struct drawn drawn = {.table = table, .colours = colours};
        drawn.number = request->n_rows ? request->rows[i] : i;
        code = timeline_row(timeline, drawn.number, &drawn.row, err);
        for (size_t x = 0; code == 0 && drawn.row.of != last && x <= width; x++)
            own[x] = time_of_levels(drawn.row.of, edges[x]);
        last = drawn.row.of;
        struct level_picture picture = {.edges = own, .width = width, .cell = take_cell, .context = &drawn};
        if (code == 0) {
            time_colours_set(colours, &drawn.row, &picture);
            levels_draw(&drawn.row.of->levels, drawn.row.row, &picture);
            flush(&drawn);
        }
    }
    free(own);
    return code;
}

int time_make_picture(struct timeline *timeline, const struct request *request, struct answer *answer,
                      struct error *err)
{
    size_t width = request->width ? request->width : WIDTH_USUAL;
    int64_t from_ns, to_ns;
    struct time_colours colours;
    if (width > WIDTH_MAX)
        return error_set(err, ERR_USAGE, "width takes 1 to %d pixels", WIDTH_MAX);
    int code = timeline_window(timeline, request, &from_ns, &to_ns, err);
    if (code == 0)
        code = time_colours_init(&colours, timeline, request->by, from_ns, to_ns, err);
    if (code != 0)
        return code;
    int64_t *edges = make_edges(from_ns, to_ns, width);
    answer_begin(answer, "pixels", COLUMNS(pixel_columns));
    code = edges ? draw(timeline, request, edges, width, &colours, &answer->rows, err) : error_memory(err);
    free(edges);
    struct table *head = answer_set_head(answer, COLUMNS(picture_head));
    table_put_count(head, time_add(from_ns, -timeline->begin_ns));
    table_put_count(head, time_add(to_ns, -timeline->begin_ns));
    table_put_count(head, (int64_t)width);
    table_put_borrowed(head, time_colours_name(&colours));
    time_colours_put_keys(&colours, table_put_table(head, time_key_columns, TIME_KEY_COLUMNS));
    time_colours_fini(&colours);
    return code;
}
