/* SPDX-License-Identifier: BSD-3-Clause */
/* What has become more or less since another measurement, by the rules of hpcquery diff. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "face/term/screen.h"
#include "session/face.h"

static const struct view_column columns[] = {
    {"change", "change", 9, true, false}, {"percent", "of all", 8, true, false}, {NULL, "", 10, false, false},
    {"before", "before", 9, true, false}, {"after", "after", 9, true, false},    {"noise", "noise", 8, true, false},
    {"name", "name", 0, false, true},
};

static const char *by_word(const struct screen *screen)
{
    const char *word = look_get(&screen->now, LOOK_ROWS);
    return strcmp(word, "functions") == 0 ? "function" : strcmp(word, "lines") == 0 ? "line" : "variable";
}

static void close_answer(void *own)
{
    answer_free(own);
}

static int open_compare(struct screen *screen, struct error *err)
{
    const char *metric = look_get(&screen->now, LOOK_METRIC);
    struct answer *answer;
    if (!screen->choice->other)
        return error_set(err, ERR_NOT_FOUND,
                         "There is nothing to compare with: hpcviewer --tui BEFORE AFTER compares two databases.");
    int code =
        session_compare(screen->choice->other, screen->session, by_word(screen), *metric ? metric : NULL, &answer, err);
    if (code != 0)
        return code;
    screen->pane.own = answer;
    screen->pane.close = close_answer;
    screen->pane.table = answer_rows(answer);
    screen->pane.n_all = rows_of(screen->pane.table);
    (void)snprintf(screen->pane.note, sizeof screen->pane.note, "by %s: %.5g before, %.5g after (v: by what)",
                   by_word(screen), cell_number(answer_head(answer), 0, "total_before"),
                   cell_number(answer_head(answer), 0, "total_after"));
    if (!screen->pane.n_all)
        (void)snprintf(screen->pane.why, sizeof screen->pane.why,
                       "Nothing differs by more than 1 %% of what was before.");
    return 0;
}

static double most_of(const struct table *table)
{
    double most = 0;
    for (size_t i = 0; i < rows_of(table); i++)
        most = fmax(most, fabs(cell_number(table, i, "change")));
    return most;
}

/* To the left for less, to the right for more. */
static void put_change(double part, unsigned width, struct line *line)
{
    unsigned half = width / 2, n = (unsigned)lround(fabs(part) * half);
    unsigned begin = line->at;
    n = n ? n : 1;
    line_to(line, begin + (part < 0 ? half - n : half));
    for (unsigned i = 0; i < n; i++)
        line_put(line, part < 0 ? TONE_LESS : TONE_MORE, part < 0 ? "<" : ">");
    line_to(line, begin + width);
}

static void put_cell(struct screen *screen, size_t row, size_t column, struct line *line)
{
    const struct table *table = screen->pane.table;
    const struct view_column *about = &columns[column];
    double value = about->key ? cell_number(table, row, about->key) : NAN;
    char text[NUMBER_BYTES], shown[NUMBER_BYTES + 1];
    if (column == 0) {
        (void)snprintf(shown, sizeof shown, "%s%s", value > 0 ? "+" : "", short_text(value, text));
        line_put_right(line, value < 0 ? TONE_LESS : TONE_MORE, shown, about->width);
    } else if (column == 1) {
        (void)snprintf(shown, sizeof shown, "%s%s", value > 0 ? "+" : "", percent_text(value, text));
        line_put_right(line, TONE_STRONG, shown, about->width);
    } else if (!about->key) {
        put_change(cell_number(table, row, "change") / most_of(table), about->width, line);
    } else if (about->is_right) {
        line_put_right(line, TONE_PLAIN, short_text(value, text), about->width);
    } else {
        line_put_in(line, TONE_PLAIN, cell_text(table, row, "name"), line->width - line->at);
    }
}

static void tell(struct screen *screen, size_t row, struct lines *lines)
{
    const struct table *table = screen->pane.table;
    double change = cell_number(table, row, "change"), noise = cell_number(table, row, "noise");
    char text[512], number[NUMBER_BYTES];
    lines_wrap(lines, TONE_STRONG, 0, cell_text(table, row, "name"));
    if (*cell_text(table, row, "file") && *cell_text(table, row, "file") != '<')
        lines_label(lines, "where",
                    place_text(cell_text(table, row, "file"), cell_number(table, row, "line"), text, sizeof text));
    lines_label(lines, "module", cell_text(table, row, "module"));
    lines_label(lines, "before", short_text(cell_number(table, row, "before"), number));
    lines_label(lines, "after", short_text(cell_number(table, row, "after"), number));
    lines_label(lines, "noise", short_text(noise, number));
    if (fabs(change) <= noise)
        lines_wrap(lines, TONE_DIM, 0, "The change is not beyond the noise.");
}

static void put_item(struct screen *screen, size_t row, struct buf *out)
{
    const struct table *table = screen->pane.table;
    double line = cell_number(table, row, "line");
    if (strcmp(by_word(screen), "variable") == 0) {
        const char *name = cell_text(table, row, "name");
        const struct table *vars = vars_table(screen);
        for (size_t i = 0; i < rows_of(vars); i++)
            if (strcmp(cell_text(vars, i, "variable"), name) == 0) {
                buf_printf(out, "%s", cell_text(vars, i, "item"));
                return;
            }
    } else if (strcmp(by_word(screen), "line") == 0 && line > 0) {
        buf_printf(out, "line:%s:%.0f", cell_text(table, row, "file"), line);
    }
}

static bool take_key(struct screen *screen, int key)
{
    static const char *const words[] = {"", "functions", "lines"};
    size_t at = 0;
    if (key != 'v')
        return false;
    while (at < 2 && strcmp(words[at], look_get(&screen->now, LOOK_ROWS)) != 0)
        at++;
    go_set(screen, LOOK_ROWS, words[(at + 1) % 3]);
    return true;
}

static void put_command(struct screen *screen, struct buf *out)
{
    const char *metric = look_get(&screen->now, LOOK_METRIC);
    buf_printf(out, " diff --by=%s", by_word(screen));
    if (*metric) {
        buf_printf(out, " --metric");
        word_put(out, metric);
    }
}

const struct view view_compare = {
    .name = "diff",
    .title = "Compare",
    .columns = columns,
    .n_columns = sizeof columns / sizeof *columns,
    .keys = "v  by variable, function, line",
    .open = open_compare,
    .cell = put_cell,
    .detail = tell,
    .item = put_item,
    .key = take_key,
    .command = put_command,
};
