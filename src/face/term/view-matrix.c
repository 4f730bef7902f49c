/* SPDX-License-Identifier: BSD-3-Clause */
/* What each thread, rank or processor has of each variable, function or line: a shade and the percent of the row. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "face/term/screen.h"

enum { CELL_WIDTH = 5, NAME_COLUMN = 2, CELLS_COLUMN = 3 };

static const struct view_column columns[] = {
    {"share", "share", 7, true, false},
    {"max_over_mean", "max/mean", 8, true, false},
    {NULL, "name", 22, false, false},
    {NULL, "", 0, false, true},
};

/* The columns of the matrix. */
struct matrix {
    const struct table *columns; /* their names, in its only column */
    const char *by;
    bool is_of_lines;
};

static const char *rows_word(const struct screen *screen)
{
    const char *word = look_get(&screen->now, LOOK_ROWS);
    return *word ? word : "vars";
}

static const char *by_word(const struct screen *screen)
{
    const char *word = look_get(&screen->now, LOOK_BY);
    return *word ? word : "thread";
}

static int open_matrix(struct screen *screen, struct error *err)
{
    const struct answer *answer = ask_report(screen, rows_word(screen), by_word(screen), err);
    struct matrix *matrix = calloc(1, sizeof *matrix);
    if (!matrix)
        return error_memory(err);
    screen->pane.own = matrix;
    screen->pane.close = free;
    if (!answer)
        return err->code;
    *matrix = (struct matrix){cell_table(answer_head(answer), 0, "columns"), by_word(screen),
                              strcmp(rows_word(screen), "lines") == 0};
    screen->pane.table = answer_rows(answer);
    screen->pane.n_all = rows_of(screen->pane.table);
    (void)snprintf(screen->pane.note, sizeof screen->pane.note, "%s by %s, percent of the row (v: rows, b: by)",
                   rows_word(screen), by_word(screen));
    if (column_of(screen->pane.table, "cells") == SIZE_MAX)
        return error_set(err, ERR_UNSUPPORTED, "This cannot be shown by %s on a terminal (b: another one).",
                         by_word(screen));
    return screen->pane.n_all ? 0 : error_set(err, ERR_NOT_FOUND, "There are no rows.");
}

static const char *column_name(const struct matrix *matrix, size_t at)
{
    const char *text = NULL;
    return matrix->columns && at < table_rows(matrix->columns) && table_get_texts(matrix->columns, 0, at, 1, &text) &&
                   text
               ? text
               : "?";
}

/* The number of columns that fit; the first one is the shift. */
static size_t n_fitting(const struct line *line)
{
    return (line->width - line->at) / CELL_WIDTH;
}

static void put_head(struct screen *screen, size_t column, struct line *line)
{
    const struct matrix *matrix = screen->pane.own;
    size_t n = rows_of(matrix->columns), first = screen->pane.shift, fits = n_fitting(line);
    (void)column;
    for (size_t i = first; i < n && i < first + fits; i++) {
        const char *name = column_name(matrix, i), *words = strstr(name, " (");
        char number[CELL_WIDTH]; /* of a thread, without its name */
        size_t len = words ? (size_t)(words - name) : strlen(name),
               n_over = len < CELL_WIDTH ? 0 : len - (CELL_WIDTH - 1);
        (void)snprintf(number, sizeof number, "%.*s", (int)(len - n_over), name + n_over);
        line_put_right(line, TONE_STRONG, number, CELL_WIDTH - 1);
        line_to(line, line->at + 1);
    }
}

/* The cell of a column in a row of cells, SIZE_MAX: it is zero. */
static size_t find_cell(const struct table *cells, const char *by, const char *name)
{
    for (size_t i = 0; i < rows_of(cells); i++) {
        const char *text = cell_text(cells, i, by);
        if (strcmp(*text ? text : "?", name) == 0)
            return i;
    }
    return SIZE_MAX;
}

static void put_cells(struct screen *screen, size_t row, struct line *line)
{
    const struct matrix *matrix = screen->pane.own;
    const struct table *cells = cell_table(screen->pane.table, row, "cells");
    size_t n = rows_of(matrix->columns), first = screen->pane.shift, fits = n_fitting(line);
    char text[NUMBER_BYTES];
    for (size_t i = first; i < n && i < first + fits; i++) {
        size_t at = find_cell(cells, matrix->by, column_name(matrix, i));
        double part = at == SIZE_MAX ? NAN : cell_number(cells, at, "share_of_row");
        line_put_shade(line, part / 100);
        (void)snprintf(text, sizeof text, "%.0f", part);
        line_put_right(line, TONE_PLAIN, isnan(part) ? "" : text, CELL_WIDTH - 2);
        line_to(line, line->at + 1);
    }
}

static void put_name(const struct screen *screen, size_t row, struct buf *out)
{
    const struct table *table = screen->pane.table;
    const struct matrix *matrix = screen->pane.own;
    const char *name =
        *cell_text(table, row, "variable") ? cell_text(table, row, "variable") : cell_text(table, row, "function");
    double line = cell_number(table, row, "line");
    char place[512];
    if (matrix->is_of_lines && line > 0)
        buf_printf(out, "%s ", place_text(cell_text(table, row, "file"), line, place, sizeof place));
    buf_printf(out, "%s", name);
}

static void put_cell(struct screen *screen, size_t row, size_t column, struct line *line)
{
    const struct table *table = screen->pane.table;
    char text[NUMBER_BYTES];
    struct buf name = {0};
    if (column == 0) {
        line_put_right(line, TONE_STRONG, percent_text(cell_number(table, row, "share"), text), columns[0].width);
    } else if (column == 1) {
        (void)snprintf(text, sizeof text, "%.2f", cell_number(table, row, "max_over_mean"));
        line_put_right(line, TONE_PLAIN, isnan(cell_number(table, row, "max_over_mean")) ? "-" : text,
                       columns[1].width);
    } else if (column == NAME_COLUMN) {
        put_name(screen, row, &name);
        line_put_in(line, TONE_PLAIN, name.data ? name.data : "", columns[NAME_COLUMN].width);
        buf_fini(&name);
    } else {
        put_cells(screen, row, line);
    }
}

static void tell(struct screen *screen, size_t row, struct lines *lines)
{
    const struct matrix *matrix = screen->pane.own;
    const struct table *cells = cell_table(screen->pane.table, row, "cells");
    char number[NUMBER_BYTES];
    struct buf text = {0};
    put_name(screen, row, &text);
    lines_wrap(lines, TONE_STRONG, 0, text.data ? text.data : "");
    lines_label(lines, "comes from", cell_text(screen->pane.table, row, "alloc_site"));
    for (size_t i = 0; i < rows_of(cells); i++) {
        struct line *line = lines_add(lines);
        const char *name = cell_text(cells, i, matrix->by);
        if (!line)
            break;
        text.len_bytes = 0;
        buf_printf(&text, "%s %s", matrix->by, *name ? name : "?");
        line_put_in(line, TONE_DIM, text.data ? text.data : "", 14);
        line_put_right(line, TONE_PLAIN, percent_text(cell_number(cells, i, "share_of_row"), number), 8);
        line_put(line, TONE_DIM, " of it, ");
        line_put(line, TONE_PLAIN, percent_text(cell_number(cells, i, "share"), number));
        line_put(line, TONE_DIM, " of all");
    }
    buf_fini(&text);
}

/* What a row is about: functions and lines of a split table have no items of their own. */
static void put_item(struct screen *screen, size_t row, struct buf *out)
{
    const struct table *table = screen->pane.table;
    const char *name = cell_text(table, row, "variable"), *item = cell_text(table, row, "item");
    if (*item) {
        buf_printf(out, "%s", item);
    } else if (*name) {
        const struct table *vars = vars_table(screen);
        for (size_t i = 0; i < rows_of(vars); i++)
            if (strcmp(cell_text(vars, i, "variable"), name) == 0 &&
                strcmp(cell_text(vars, i, "alloc_site"), cell_text(table, row, "alloc_site")) == 0) {
                buf_printf(out, "%s", cell_text(vars, i, "item"));
                return;
            }
    } else if (strcmp(rows_word(screen), "lines") == 0 && cell_number(table, row, "line") > 0) {
        buf_printf(out, "line:%s:%.0f", cell_text(table, row, "file"), cell_number(table, row, "line"));
    } else if (*cell_text(table, row, "function")) {
        buf_printf(out, "function:%s", cell_text(table, row, "function"));
    }
}

static bool take_key(struct screen *screen, int key)
{
    static const char *const rows[] = {"", "functions", "lines"}, *const bys[] = {"",     "process", "rank", "cpu",
                                                                                  "core", "package", "node"};
    const struct matrix *matrix = screen->pane.own;
    size_t n = key == 'v' ? sizeof rows / sizeof *rows : sizeof bys / sizeof *bys, at = 0;
    const char *const *words = key == 'v' ? rows : bys;
    enum look_key of = key == 'v' ? LOOK_ROWS : LOOK_BY;
    if (key == 'v' || key == 'b') {
        while (at + 1 < n && strcmp(words[at], look_get(&screen->now, of)) != 0)
            at++;
        go_set(screen, of, words[(at + 1) % n]);
        return true;
    }
    if (key == KEYS_RIGHT && screen->pane.shift + 1 < rows_of(matrix->columns))
        screen->pane.shift++;
    else if (key == KEYS_LEFT && screen->pane.shift)
        screen->pane.shift--;
    return key == KEYS_RIGHT || key == KEYS_LEFT;
}

static void put_command(struct screen *screen, struct buf *out)
{
    request_put_words(screen, &(struct request){.report = rows_word(screen), .by = by_word(screen)}, out);
}

const struct view view_matrix = {
    .name = "matrix",
    .title = "Matrix",
    .columns = columns,
    .n_columns = sizeof columns / sizeof *columns,
    .keys = "v  rows: variables, functions, lines\nb  by thread, process, rank, CPU, core, package, memory node\nRight "
            "Left  other columns",
    .open = open_matrix,
    .cell = put_cell,
    .head = put_head,
    .detail = tell,
    .item = put_item,
    .key = take_key,
    .command = put_command,
};
