/* SPDX-License-Identifier: BSD-3-Clause */
/* What ran where, and when: one character for each bucket of time, from the same levels of detail as the page's. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "face/term/screen.h"
#include "table/table.h"

enum { NAME_WIDTH = 18, RUN_WIDTH = 7, LETTERS = 52 };
enum { FLAG_LOST = 1, FLAG_SAMPLE = 4, FLAG_PREEMPTED = 16 };

static const struct view_column columns[] = {
    {NULL, "row", NAME_WIDTH, false, false},
    {NULL, "ran", RUN_WIDTH, true, false},
    {NULL, "", 0, false, true},
};

struct timeline_view {
    const struct table *topology;
    int64_t from_ns, to_ns, length_ns;
    struct answer *picture; /* of the rows that are in sight */
    size_t first, n;        /* of the pane's rows */
    unsigned width;         /* buckets; 0: they were not drawn yet */
    bool has_samples_alone; /* nobody recorded what ran: samples say when a thread did */
};

static void close_timeline(void *own)
{
    struct timeline_view *view = own;
    answer_free(view->picture);
    free(view);
}

/* The window of the look, "FROM-TO" in nanoseconds. */
static void take_window(const struct screen *screen, struct timeline_view *view)
{
    const char *text = look_get(&screen->now, LOOK_TIME);
    char *end;
    view->from_ns = 0;
    view->to_ns = view->length_ns;
    if (!*text)
        return;
    int64_t from_ns = strtoll(text, &end, 10), to_ns = *end == '-' ? strtoll(end + 1, NULL, 10) : 0;
    if (from_ns >= 0 && to_ns > from_ns && to_ns <= view->length_ns) {
        view->from_ns = from_ns;
        view->to_ns = to_ns;
    }
}

static int open_timeline(struct screen *screen, struct error *err)
{
    const struct answer *streams = ask_report(screen, "streams", NULL, err);
    struct timeline_view *view = calloc(1, sizeof *view);
    if (!view)
        return error_memory(err);
    screen->pane.own = view;
    screen->pane.close = close_timeline;
    if (!streams)
        return err->code;
    const struct table *head = answer_head(streams), *lacking = cell_table(head, 0, "lacking");
    screen->pane.table = answer_rows(streams);
    screen->pane.n_all = rows_of(screen->pane.table);
    view->length_ns = (int64_t)cell_number(head, 0, "length_ns");
    view->topology = cell_table(head, 0, "topology");
    if (!screen->pane.n_all)
        return error_set(err, ERR_NOT_FOUND, "%s",
                         rows_of(lacking) ? cell_text(lacking, 0, "text") : "There is no recording of what ran when.");
    take_window(screen, view);
    view->has_samples_alone = true;
    for (size_t i = 0; i < screen->pane.n_all && view->has_samples_alone; i++)
        view->has_samples_alone = isnan(cell_number(screen->pane.table, i, "run_ns"));
    return 0;
}

/* --- the picture --- */

/* Draws the rows in sight, unless that was done. */
static const struct table *picture_of(struct screen *screen, unsigned width)
{
    struct timeline_view *view = screen->pane.own;
    const struct pane *pane = &screen->pane;
    size_t n = layout_of(screen).list_h, first = pane->top;
    struct error ignored;
    n = first + n > pane->n ? pane->n - first : n;
    if (view->picture && view->first == first && view->n == n && view->width == width)
        return answer_rows(view->picture);
    uint64_t *rows = calloc(n + 1, sizeof *rows);
    for (size_t i = 0; rows && i < n; i++)
        rows[i] = (uint64_t)cell_number(pane->table, pane->rows[first + i], "row");
    struct request request = {.size = sizeof request,
                              .report = "timeline",
                              .rows = rows,
                              .n_rows = n,
                              .width = width,
                              .from_ns = view->from_ns,
                              .to_ns = view->to_ns,
                              .has_from = true,
                              .has_to = true};
    answer_free(view->picture);
    view->picture = NULL;
    if (rows && n && width)
        (void)session_ask(screen->session, &request, &view->picture, &ignored);
    screen->pane.is_to_tell = true;
    view->first = first;
    view->n = n;
    view->width = width;
    free(rows);
    return view->picture ? answer_rows(view->picture) : NULL;
}

static char letter_of(double key)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    return isnan(key) || key < 0 ? '#' : key < LETTERS ? letters[(size_t)key] : '*';
}

/* The character of alike buckets: what they are most. */
static char character_of(const struct timeline_view *view, const struct table *pixels, size_t i)
{
    double run = cell_number(pixels, i, "run"), wait = cell_number(pixels, i, "wait"),
           unknown = cell_number(pixels, i, "unknown");
    unsigned flags = (unsigned)cell_number(pixels, i, "flags");
    if (flags & FLAG_LOST)
        return '!';
    if (run > 0 && run >= wait && run >= unknown)
        return letter_of(cell_number(pixels, i, "key"));
    if (wait > 0 && wait >= unknown)
        return flags & FLAG_PREEMPTED ? '~' : '-';
    if (flags & FLAG_SAMPLE && !(run > 0))
        return '+';
    if (view->has_samples_alone)
        return '.';
    return unknown > 0 ? '?' : run > 0 ? letter_of(cell_number(pixels, i, "key")) : '\'';
}

/* The first of the alike buckets of a row at a place, SIZE_MAX: there is nothing. */
static size_t pixels_at(const struct table *pixels, double row, unsigned x)
{
    for (size_t i = 0; i < rows_of(pixels); i++) {
        double first = cell_number(pixels, i, "x");
        if (cell_number(pixels, i, "row") == row && x >= first && x < first + cell_number(pixels, i, "n"))
            return i;
    }
    return SIZE_MAX;
}

static void put_buckets(struct screen *screen, size_t row, struct line *line)
{
    unsigned width = line->width - line->at;
    const struct table *pixels = picture_of(screen, width);
    double number = cell_number(screen->pane.table, row, "row");
    char *text = malloc(width + 1);
    if (!text)
        return;
    memset(text, '.', width);
    text[width] = 0;
    for (size_t i = 0; i < rows_of(pixels); i++) {
        if (cell_number(pixels, i, "row") != number)
            continue;
        size_t first = (size_t)cell_number(pixels, i, "x"), n = (size_t)cell_number(pixels, i, "n");
        for (size_t x = first; x < first + n && x < width; x++)
            text[x] = character_of(screen->pane.own, pixels, i);
    }
    line_put(line, TONE_PLAIN, text);
    free(text);
}

/* --- rows --- */

/* Behind its name where a CPU is in the machine: memory node and core. */
static void put_where(const struct screen *screen, size_t row, struct line *line)
{
    const struct table *rows = screen->pane.table, *places = ((const struct timeline_view *)screen->pane.own)->topology;
    if (strcmp(cell_text(rows, row, "kind"), "cpu") != 0)
        return;
    for (size_t i = 0; i < rows_of(places); i++)
        if (cell_number(places, i, "stream") == cell_number(rows, row, "stream") &&
            cell_number(places, i, "number") == cell_number(rows, row, "number")) {
            line_printf(line, TONE_DIM, " N%.0f C%.0f", cell_number(places, i, "node"), cell_number(places, i, "core"));
            return;
        }
}

static void put_cell(struct screen *screen, size_t row, size_t column, struct line *line)
{
    const struct table *rows = screen->pane.table;
    const struct timeline_view *view = screen->pane.own;
    char text[NUMBER_BYTES];
    if (column == 0) {
        unsigned wide = text_columns(cell_text(rows, row, "name"), screen->is_ascii);
        line_put_in(line, TONE_STRONG, cell_text(rows, row, "name"), wide < NAME_WIDTH ? wide : NAME_WIDTH);
        put_where(screen, row, line);
    } else if (column == 1)
        line_put_right(line, TONE_PLAIN,
                       percent_text(100 * cell_number(rows, row, "run_ns") / (double)view->length_ns, text), RUN_WIDTH);
    else
        put_buckets(screen, row, line);
}

static void span_text(int64_t ns, struct buf *out)
{
    out->len_bytes = 0;
    span_put(out, ns);
    buf_append(out, "", 0);
}

/* The axis: where the window begins and ends, and the bucket that is looked at. */
static void put_head(struct screen *screen, size_t column, struct line *line)
{
    const struct timeline_view *view = screen->pane.own;
    unsigned begin = line->at, width = line->width - begin,
             x = screen->pane.shift < width ? screen->pane.shift : width - 1;
    struct buf from = {0}, to = {0};
    (void)column;
    span_text(view->from_ns, &from);
    span_text(view->to_ns, &to);
    unsigned n = text_columns(from.data, true), end = text_columns(to.data, true);
    if (x > n)
        line_put(line, TONE_DIM, from.data);
    line_to(line, begin + x);
    line_put(line, TONE_STRONG, "v");
    if (x + 1 + end < width) {
        line_to(line, begin + width - end);
        line_put(line, TONE_DIM, to.data);
    }
    buf_fini(&from);
    buf_fini(&to);
}

/* --- what is known of a bucket --- */

static void tell_bucket(struct screen *screen, size_t row, struct lines *lines)
{
    const struct timeline_view *view = screen->pane.own;
    const struct table *pixels = view->picture ? answer_rows(view->picture) : NULL,
                       *keys = view->picture ? cell_table(answer_head(view->picture), 0, "keys") : NULL;
    unsigned x = view->width && screen->pane.shift < view->width ? screen->pane.shift : 0;
    size_t i = pixels_at(pixels, cell_number(screen->pane.table, row, "row"), x);
    double length = (double)(view->to_ns - view->from_ns), key = cell_number(pixels, i, "key");
    struct buf text = {0}, at = {0};
    char number[NUMBER_BYTES];
    if (!view->width)
        return;
    span_text(view->from_ns + (int64_t)(length * x / view->width), &at);
    span_text((int64_t)(length / view->width), &text);
    buf_printf(&at, ", for %s", text.data);
    lines_label(lines, "at", at.data);
    if (i == SIZE_MAX)
        lines_label(lines, "", "nothing");
    else if (key >= 0)
        lines_label(lines, "most", cell_text(keys, (size_t)key, "name"));
    if (i != SIZE_MAX && view->has_samples_alone) {
        bool has_sample = (unsigned)cell_number(pixels, i, "flags") & FLAG_SAMPLE;
        lines_label(lines, "", has_sample ? "samples were taken" : "no sample was taken");
    } else if (i != SIZE_MAX) {
        text.len_bytes = 0;
        buf_printf(&text, "%s", percent_text(100 * cell_number(pixels, i, "run") / 255, number));
        buf_printf(&text, " running, %s", percent_text(100 * cell_number(pixels, i, "wait") / 255, number));
        buf_printf(&text, " waiting");
        lines_label(lines, "", text.data);
    }
    buf_fini(&text);
    buf_fini(&at);
}

static void tell_keys(const struct timeline_view *view, struct lines *lines)
{
    const struct table *keys = view->picture ? cell_table(answer_head(view->picture), 0, "keys") : NULL;
    struct buf text = {0};
    for (size_t i = 0; i < rows_of(keys) && i < LETTERS && cell_number(keys, i, "ns") > 0; i++) {
        struct line *line = lines_add(lines);
        if (!line)
            break;
        line_printf(line, TONE_STRONG, "%c ", letter_of((double)i));
        span_text((int64_t)cell_number(keys, i, "ns"), &text);
        line_put_right(line, TONE_PLAIN, text.data, 9);
        line_put(line, TONE_PLAIN, "  ");
        line_put(line, TONE_PLAIN, cell_text(keys, i, "name"));
    }
    buf_fini(&text);
}

static void tell(struct screen *screen, size_t row, struct lines *lines)
{
    const struct table *rows = screen->pane.table;
    struct buf text = {0};
    lines_wrap(lines, TONE_STRONG, 0, cell_text(rows, row, "name"));
    span_text((int64_t)cell_number(rows, row, "run_ns"), &text);
    lines_label(lines, "ran", isnan(cell_number(rows, row, "run_ns")) ? "-" : text.data);
    span_text((int64_t)cell_number(rows, row, "wait_ns"), &text);
    lines_label(lines, "waited", isnan(cell_number(rows, row, "wait_ns")) ? "-" : text.data);
    buf_fini(&text);
    tell_bucket(screen, row, lines);
    tell_keys(screen->pane.own, lines);
    lines_wrap(
        lines, TONE_DIM, 0,
        ((const struct timeline_view *)screen->pane.own)->has_samples_alone
            ? "+ samples, so it ran  . no sample  ! records lost. When it waited and who ran instead is not known: "
              "hpcrun -e datacentric -e sched -t records that."
            : "- woken and waiting  ~ preempted  ? not known  ! records lost  ' events alone");
}

/* --- keys --- */

static void set_window(struct screen *screen, double from, double to)
{
    const struct timeline_view *view = screen->pane.own;
    double length = (double)view->length_ns;
    char text[64];
    if (to - from < 100)
        return;
    if (from < 0) {
        to -= from;
        from = 0;
    }
    if (to > length) {
        from = from - (to - length) > 0 ? from - (to - length) : 0;
        to = length;
    }
    (void)snprintf(text, sizeof text, "%.0f-%.0f", from, to);
    look_set(&screen->now, LOOK_TIME, from <= 0 && to >= length ? "" : text);
    pane_open(screen);
}

static bool take_key(struct screen *screen, int key)
{
    struct timeline_view *view = screen->pane.own;
    double from = (double)view->from_ns, length = (double)(view->to_ns - view->from_ns);
    unsigned *x = &screen->pane.shift, width = view->width ? view->width : 1;
    double at = from + length * (*x + 0.5) / width, part = (at - from) / length;
    if (key == '+')
        set_window(screen, at - part * length / 2, at + (1 - part) * length / 2);
    else if (key == '-')
        set_window(screen, at - part * length * 2, at + (1 - part) * length * 2);
    else if (key == '0')
        set_window(screen, 0, (double)view->length_ns);
    else if (key == KEYS_RIGHT && *x + 1 < width)
        ++*x;
    else if (key == KEYS_LEFT && *x > 0)
        --*x;
    else if (key == KEYS_RIGHT || key == KEYS_LEFT)
        set_window(screen, from + (key == KEYS_RIGHT ? length / 4 : -length / 4),
                   from + length + (key == KEYS_RIGHT ? length / 4 : -length / 4));
    else
        return false;
    pane_tell(screen);
    return true;
}

static void put_command(struct screen *screen, struct buf *out)
{
    const struct timeline_view *view = screen->pane.own;
    buf_printf(out, " sched");
    if (view->from_ns > 0 || view->to_ns < view->length_ns)
        buf_printf(out, " --from=+%.9f --to=+%.9f", (double)view->from_ns / 1e9, (double)view->to_ns / 1e9);
}

const struct view view_timeline = {
    .name = "timeline",
    .title = "Time line",
    .columns = columns,
    .n_columns = sizeof columns / sizeof *columns,
    .keys = "+ -  nearer, farther\nRight Left  along the time\n0  all of it",
    .open = open_timeline,
    .cell = put_cell,
    .head = put_head,
    .detail = tell,
    .key = take_key,
    .command = put_command,
};
