/* SPDX-License-Identifier: BSD-3-Clause */
/* All variables: what each costs, why, and where it comes from. */
#include <math.h>
#include <string.h>

#include "face/term/screen.h"

static const struct view_column columns[] = {
    {"share", "share", 7, true, false},
    {NULL, "", 10, false, false},
    {"variable", "variable", 20, false, false},
    {"class", "class", 7, false, false},
    {LATELY_KEY, "10 s", 7, true, false},
    {"memory_share", "memory", 7, true, false},
    {"execution_share", "compute", 7, true, false},
    {"unverified_share", "unknown", 7, true, false},
    {"samples", "samples", 7, true, false},
    {"size_bytes", "size", 9, true, false},
    {"n_blocks", "blocks", 7, true, false},
    {"alloc_site", "comes from", 0, false, true},
};

void put_cause_bar(const struct table *vars, size_t row, double whole, unsigned n_columns, struct line *line)
{
    static const char *const keys[] = {"memory_share", "execution_share", "unverified_share", "first_touch_share"};
    static const enum tone tones[] = {TONE_MEMORY, TONE_EXECUTION, TONE_UNKNOWN, TONE_DIM, TONE_PLAIN};
    double parts[5], rest = cell_number(vars, row, "share");
    rest = isnan(rest) ? 0 : rest;
    for (size_t i = 0; i < 4; i++) {
        double part = cell_number(vars, row, keys[i]);
        parts[i] = isnan(part) ? 0 : part / whole;
        rest -= isnan(part) ? 0 : part;
    }
    parts[4] = rest > 0 ? rest / whole : 0;
    line_put_bar(line, parts, tones, 5, n_columns);
}

static int open_variables(struct screen *screen, struct error *err)
{
    const struct request request = {.report = "vars", .with_fields = true};
    const struct answer *vars = ask(screen, &request, err);
    if (!vars)
        return err->code;
    screen->pane.table = answer_rows(vars);
    screen->pane.n_all = rows_of(screen->pane.table);
    return screen->pane.n_all
               ? 0
               : error_set(err, ERR_NOT_FOUND, "Nothing was sampled at data: hpcrun -e datacentric measures it.");
}

static void put_number(const struct table *vars, size_t row, const struct view_column *column, struct line *line)
{
    char text[NUMBER_BYTES];
    double value = cell_number(vars, row, column->key);
    const char *shown = strcmp(column->key, "size_bytes") == 0                       ? bytes_text(value, text)
                        : strcmp(column->key, "samples") == 0 || *column->key == 'n' ? short_text(value, text)
                        : strcmp(column->key, "share") == 0 && strcmp(cell_text(vars, row, "class"), "kernel") == 0
                            ? "-"
                            : percent_text(value, text);
    line_put_right(line, *column->key == 's' && column->key[1] == 'h' ? TONE_STRONG : TONE_PLAIN, shown, column->width);
}

static void put_cell(struct screen *screen, size_t row, size_t column, struct line *line)
{
    const struct table *vars = screen->pane.table;
    const struct view_column *about = &columns[column];
    double whole = cell_number(vars, 0, "share");
    char text[NUMBER_BYTES];
    if (about->key && strcmp(about->key, LATELY_KEY) == 0)
        line_put_right(line, TONE_STRONG, percent_text(live_lately(screen, cell_text(vars, row, "item")), text),
                       about->width);
    else if (!about->key)
        put_cause_bar(vars, row, whole > 0 ? whole : 100, about->width, line);
    else if (about->is_right)
        put_number(vars, row, about, line);
    else
        line_put_in(line, strcmp(about->key, "variable") == 0 ? TONE_STRONG : TONE_PLAIN,
                    cell_text(vars, row, about->key), line->width - line->at);
}

static void put_item(struct screen *screen, size_t row, struct buf *out)
{
    buf_printf(out, "%s", cell_text(screen->pane.table, row, "item"));
}

static void put_command(struct screen *screen, struct buf *out)
{
    request_put_words(screen, &(struct request){.report = "vars"}, out);
}

const struct view view_variables = {
    .name = "vars",
    .title = "Variables",
    .columns = columns,
    .n_columns = sizeof columns / sizeof *columns,
    .open = open_variables,
    .cell = put_cell,
    .detail = tell_variable,
    .item = put_item,
    .command = put_command,
};
