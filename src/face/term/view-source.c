/* SPDX-License-Identifier: BSD-3-Clause */
/* The source of the active thing, with what each line cost as a bar, and what the line's variables were. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "face/term/screen.h"

static const struct view_column columns[] = {
    {NULL, "line", 5, true, false},
    {NULL, "share", 7, true, false},
    {NULL, "", 8, false, false},
    {NULL, "source", 0, false, true},
};

/* A line of a file; text NULL: there is no copy. is_gap: from this line on some are left out. */
struct source_line {
    uint32_t number;
    uint32_t n_text;
    const char *text;
    bool is_gap;
    double own, inclusive; /* percent; NAN: it has no samples */
};

struct source {
    struct source_line *items; /* [n] */
    size_t n, cap;
    char *file;
    double longest;
};

static void close_source(void *own)
{
    struct source *source = own;
    free(source->items);
    free(source->file);
    free(source);
}

/* The file and the number of an item "line:FILE:NUMBER"; file is malloc'ed, NULL: it is none. */
static char *file_of(const char *item, double *line)
{
    const char *colon = strrchr(item, ':');
    *line = colon ? strtod(colon + 1, NULL) : 0;
    return strncmp(item, "line:", 5) == 0 && colon > item + 5 ? strndup(item + 5, (size_t)(colon - item - 5)) : NULL;
}

static bool add_line(struct source *source, uint32_t number, const char *text, size_t n)
{
    bool ok = vec_reserve(&source->items, &source->cap, source->n + 1, sizeof *source->items);
    if (ok)
        source->items[source->n++] = (struct source_line){number, (uint32_t)n, text, false, NAN, NAN};
    return ok;
}

/* The copy of a file in pieces. */
static const struct table *pieces_of(struct screen *screen, const char *file)
{
    const struct request request = {.report = "source", .subject = file};
    struct error ignored;
    const struct answer *answer = ask(screen, &request, &ignored);
    return answer ? answer_rows(answer) : NULL;
}

static bool add_pieces(struct source *source, const struct table *pieces)
{
    uint32_t behind = 1;
    bool ok = true;
    for (size_t i = 0; ok && i < rows_of(pieces); i++) {
        uint32_t number = (uint32_t)cell_number(pieces, i, "first");
        const char *text = cell_text(pieces, i, "text");
        if (number > behind && (ok = add_line(source, behind, "", 0)))
            source->items[source->n - 1].is_gap = true;
        for (; ok && *text; number++) {
            size_t n = strcspn(text, "\n");
            ok = add_line(source, number, text, n);
            text += n + (text[n] == '\n');
        }
        behind = number;
    }
    return ok;
}

/* The place of a line, source->n: it is not there. */
static size_t place_of(const struct source *source, uint32_t number)
{
    size_t low = 0, high = source->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (source->items[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_there = low < source->n && source->items[low].number == number && !source->items[low].is_gap;
    return is_there ? low : source->n;
}

static void add_cost(struct source_line *line, const struct table *lines, size_t row)
{
    double own = cell_number(lines, row, "own_share"), inclusive = cell_number(lines, row, "inclusive_share");
    line->own = (isnan(line->own) ? 0 : line->own) + (isnan(own) ? 0 : own);
    line->inclusive = (isnan(line->inclusive) ? 0 : line->inclusive) + (isnan(inclusive) ? 0 : inclusive);
}

static int compare_numbers(const void *a, const void *b)
{
    const struct source_line *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* Adds the lines of the file that have costs as lines without a text. */
static bool add_known(struct source *source, const struct table *lines)
{
    bool ok = true;
    size_t n = 0;
    for (size_t i = 0; ok && i < rows_of(lines); i++)
        if (cell_number(lines, i, "line") > 0 && strcmp(cell_text(lines, i, "file"), source->file) == 0)
            ok = add_line(source, (uint32_t)cell_number(lines, i, "line"), NULL, 0);
    if (source->n)
        qsort(source->items, source->n, sizeof *source->items, compare_numbers);
    for (size_t i = 0; i < source->n; i++)
        if (i == 0 || source->items[i].number != source->items[n - 1].number)
            source->items[n++] = source->items[i];
    source->n = n;
    return ok;
}

/* Adds the costs of the lines of the file, which are a line for each function that it was compiled into. */
static void add_costs(struct source *source, const struct table *lines)
{
    for (size_t i = 0; i < rows_of(lines); i++) {
        double number = cell_number(lines, i, "line");
        if (!(number > 0) || strcmp(cell_text(lines, i, "file"), source->file) != 0)
            continue;
        size_t at = place_of(source, (uint32_t)number);
        if (at < source->n)
            add_cost(&source->items[at], lines, i);
    }
    for (size_t i = 0; i < source->n; i++)
        if (source->items[i].own > source->longest)
            source->longest = source->items[i].own;
}

/* The line that used a variable most, for which nobody has to ask; appended to out. */
static void put_line_of(struct screen *screen, const char *item, struct buf *out)
{
    const struct table *vars = strncmp(item, "variable:", 9) == 0 ? vars_table(screen) : NULL;
    size_t row = row_of_item(vars, item);
    const struct table *lines = row == SIZE_MAX ? NULL : cell_table(vars, row, "lines");
    if (rows_of(lines) && cell_number(lines, 0, "line") > 0)
        buf_printf(out, "line:%s:%.0f", cell_text(lines, 0, "file"), cell_number(lines, 0, "line"));
}

/* The line that is shown: what stands for the active thing, else the costliest one. */
static const char *line_shown(struct screen *screen, const char **why)
{
    const char *item = stand_in(screen, "line", why);
    const struct table *lines = lines_table(screen);
    if (item || *look_get(&screen->now, LOOK_ACTIVE))
        return item;
    *why = "No line of the source is known: compile with -g.";
    for (size_t i = 0; i < rows_of(lines); i++)
        if (cell_number(lines, i, "line") > 0 && *cell_text(lines, i, "item"))
            return cell_text(lines, i, "item");
    return NULL;
}

static int open_source(struct screen *screen, struct error *err)
{
    struct source *source = calloc(1, sizeof *source);
    struct buf direct = {0};
    double line;
    if (!source)
        return error_memory(err);
    screen->pane.own = source;
    screen->pane.close = close_source;
    put_line_of(screen, look_get(&screen->now, LOOK_ACTIVE), &direct);
    const char *why = "", *item = direct.data ? direct.data : line_shown(screen, &why);
    if (!item)
        return error_set(err, ERR_NOT_FOUND, "%s%s%s", look_get(&screen->now, LOOK_ACTIVE),
                         *look_get(&screen->now, LOOK_ACTIVE) ? ": " : "", *why ? why : "no line stands for it");
    source->file = file_of(item, &line);
    buf_fini(&direct);
    if (!source->file)
        return error_set(err, ERR_NOT_FOUND, "%s: no line of a file", look_get(&screen->now, LOOK_ACTIVE));
    bool ok = add_pieces(source, pieces_of(screen, source->file));
    if (ok && source->n == 0)
        ok = add_known(source, lines_table(screen));
    if (!ok)
        return error_memory(err);
    add_costs(source, lines_table(screen));
    screen->pane.n_all = source->n;
    for (size_t i = 0; i < source->n; i++)
        if (source->items[i].number == (uint32_t)line && !source->items[i].is_gap)
            screen->now.cursor = i;
    (void)snprintf(screen->pane.note, sizeof screen->pane.note, "%s", source->file);
    return 0;
}

static const struct source_line *line_at(const struct screen *screen, size_t row)
{
    return &((const struct source *)screen->pane.own)->items[row];
}

/* A line of a source with blanks for tabs; malloc'ed. */
static char *text_of(const struct source_line *line)
{
    enum { TAB = 4 };
    struct buf text = {0};
    size_t column = 0;
    for (size_t i = 0; i < line->n_text; i++) {
        bool is_tab = line->text[i] == '\t';
        size_t n = is_tab ? TAB - column % TAB : 1;
        for (size_t k = 0; k < n; k++)
            buf_append(&text, is_tab ? " " : &line->text[i], 1);
        column += n;
    }
    buf_append(&text, "", 0);
    return text.data;
}

static void put_source(const struct source_line *line, bool is_strong, struct line *out)
{
    unsigned room = out->width - out->at;
    if (line->is_gap || !line->text) {
        line_put_in(out, TONE_DIM, line->is_gap ? "..." : "(no copy of the source)", room);
        return;
    }
    char *text = text_of(line);
    line_put_in(out, is_strong ? TONE_STRONG : TONE_PLAIN, text ? text : "", room);
    free(text);
}

static void put_cell(struct screen *screen, size_t row, size_t column, struct line *line)
{
    const struct source *source = screen->pane.own;
    const struct source_line *at = line_at(screen, row);
    char text[NUMBER_BYTES];
    if (column == 0 && !at->is_gap) {
        (void)snprintf(text, sizeof text, "%u", at->number);
        line_put_right(line, TONE_DIM, text, columns[0].width);
    } else if (column == 1 && at->own > 0) {
        line_put_right(line, TONE_STRONG, percent_text(at->own, text), columns[1].width);
    } else if (column == 2 && at->own > 0) {
        line_put_bar(line, (double[]){at->own / source->longest}, (enum tone[]){TONE_MEMORY}, 1, columns[2].width);
    } else if (column == 3) {
        put_source(at, at->own >= 1, line);
    }
}

static void put_words(struct screen *screen, size_t row, struct buf *out)
{
    const struct source_line *at = line_at(screen, row);
    if (at->text)
        buf_append(out, at->text, at->n_text);
    buf_append(out, "", 0);
}

/* The first row of the table of lines at a place, SIZE_MAX: none. */
static size_t row_at(const struct table *lines, const char *file, double number)
{
    for (size_t i = 0; i < rows_of(lines); i++)
        if (cell_number(lines, i, "line") == number && strcmp(cell_text(lines, i, "file"), file) == 0)
            return i;
    return SIZE_MAX;
}

static void tell_row(const struct table *lines, size_t row, struct lines *out)
{
    const struct table *data = cell_table(lines, row, "data");
    double own = cell_number(lines, row, "own");
    char number[NUMBER_BYTES];
    lines_label(out, "function", cell_text(lines, row, "function"));
    lines_label(out, "share", percent_text(cell_number(lines, row, "own_share"), number));
    if (cell_number(lines, row, "inclusive_share") > cell_number(lines, row, "own_share"))
        lines_label(out, "with calls", percent_text(cell_number(lines, row, "inclusive_share"), number));
    for (size_t i = 0; i < rows_of(data); i++) {
        struct buf text = {0};
        buf_printf(&text, "%s  %s of it", cell_text(data, i, "variable"),
                   percent_text(100 * cell_number(data, i, "value") / own, number));
        lines_label(out, i ? "" : "data", text.data);
        buf_fini(&text);
    }
}

static void tell_place(struct screen *screen, const char *file, double number, struct lines *lines)
{
    const struct table *all = lines_table(screen);
    char place[512];
    lines_wrap(lines, TONE_STRONG, 0, place_text(file, number, place, sizeof place));
    for (size_t row = row_at(all, file, number); row < rows_of(all); row++)
        if (cell_number(all, row, "line") == number && strcmp(cell_text(all, row, "file"), file) == 0)
            tell_row(all, row, lines);
}

static void tell(struct screen *screen, size_t row, struct lines *lines)
{
    const struct source *source = screen->pane.own;
    if (!source->items[row].is_gap)
        tell_place(screen, source->file, source->items[row].number, lines);
}

void tell_source(struct screen *screen, const char *item, struct lines *lines)
{
    enum { AROUND = 3 };
    double number;
    struct source source = {.file = file_of(item, &number)};
    if (source.file)
        tell_place(screen, source.file, number, lines);
    if (source.file && add_pieces(&source, pieces_of(screen, source.file)))
        for (size_t i = 0; i < source.n; i++) {
            const struct source_line *line = &source.items[i];
            if (line->is_gap || line->number + AROUND < (uint32_t)number || line->number > (uint32_t)number + AROUND)
                continue;
            struct line *out = lines_add(lines);
            if (out) {
                line_printf(out, TONE_DIM, "%5u ", line->number);
                put_source(line, line->number == (uint32_t)number, out);
            }
        }
    free(source.items);
    free(source.file);
}

static void put_item(struct screen *screen, size_t row, struct buf *out)
{
    const struct source *source = screen->pane.own;
    if (!isnan(source->items[row].own))
        buf_printf(out, "line:%s:%u", source->file, source->items[row].number);
}

/* To the next line with a cost, or the one before. */
static void go_costly(struct screen *screen, int step)
{
    const struct pane *pane = &screen->pane;
    for (size_t at = pane->cursor + (size_t)step; at < pane->n; at += (size_t)step)
        if (line_at(screen, pane->rows[at])->own >= 0.05) {
            pane_move(screen, at);
            return;
        }
}

static bool take_key(struct screen *screen, int key)
{
    if (key != '+' && key != '-')
        return false;
    go_costly(screen, key == '+' ? 1 : -1);
    return true;
}

static void put_command(struct screen *screen, struct buf *out)
{
    const struct source *source = screen->pane.own;
    request_put_words(screen, &(struct request){.report = "annotate", .subject = source->file}, out);
}

const struct view view_source = {
    .name = "annotate",
    .title = "Source",
    .is_of_code = true,
    .columns = columns,
    .n_columns = sizeof columns / sizeof *columns,
    .keys = "+ -  the next line that cost something, the one before",
    .open = open_source,
    .cell = put_cell,
    .words = put_words,
    .detail = tell,
    .item = put_item,
    .key = take_key,
    .command = put_command,
};
