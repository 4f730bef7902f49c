/* SPDX-License-Identifier: BSD-3-Clause */
/* The first screen: what to change, the costliest first; behind that what the run was, and how it was measured. */
#include <math.h>
#include <string.h>

#include "face/term/screen.h"

static const struct view_column columns[] = {
    {"share", "share", 7, true, false},
    {NULL, "", 10, false, false},
    {"variable", "variable", 22, false, false},
    {NULL, "what to do", 0, false, true},
};

static const struct table *facts_of(struct screen *screen)
{
    struct error ignored;
    const struct answer *session = ask_report(screen, "session", NULL, &ignored);
    return session ? cell_table(answer_head(session), 0, "lines") : NULL;
}

/* The row of the table of variables that an advice is about. */
static size_t variable_of(struct screen *screen, size_t row)
{
    const struct table *vars = vars_table(screen), *advice = screen->pane.table;
    const char *name = cell_text(advice, row, "variable"), *site = cell_text(advice, row, "alloc_site");
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < rows_of(vars); i++)
        if (strcmp(cell_text(vars, i, "variable"), name) == 0 &&
            (found == SIZE_MAX || strcmp(cell_text(vars, i, "alloc_site"), site) == 0))
            found = i;
    return found;
}

/* Rows: what there is to do; where that is nothing, a row that says so; then the lines of the head. */
static size_t n_advice(const struct screen *screen)
{
    return rows_of(screen->pane.table);
}

static int open_answer(struct screen *screen, struct error *err)
{
    const struct answer *advice = ask_report(screen, "advice", NULL, err);
    screen->pane.table = advice ? answer_rows(advice) : NULL;
    size_t n = n_advice(screen), facts = rows_of(facts_of(screen));
    screen->pane.n_all = (n ? n : 1) + facts;
    return 0;
}

/* The line of the head that a row is, SIZE_MAX: it is none. */
static size_t fact_at(const struct screen *screen, size_t row)
{
    size_t n = n_advice(screen) ? n_advice(screen) : 1;
    return row < n ? SIZE_MAX : row - n;
}

static const char nothing[] =
    "Nothing stands out that a change of data or of a loop would mend: see Variables and the Tree.";

static void put_cell(struct screen *screen, size_t row, size_t column, struct line *line)
{
    const struct table *advice = screen->pane.table, *vars = vars_table(screen);
    size_t fact = fact_at(screen, row),
           variable = fact == SIZE_MAX && row < n_advice(screen) ? variable_of(screen, row) : SIZE_MAX;
    char text[NUMBER_BYTES];
    if (fact != SIZE_MAX) {
        if (column == 2)
            line_put_right(line, TONE_DIM, cell_text(facts_of(screen), fact, "label"), line->width - line->at);
        if (column == 3)
            line_put(line, TONE_PLAIN, cell_text(facts_of(screen), fact, "words"));
        return;
    }
    if (row >= n_advice(screen)) {
        if (column == 3)
            line_put(line, TONE_PLAIN, nothing);
        return;
    }
    double share = cell_number(advice, row, "share");
    if (column == 0)
        line_put_right(line, TONE_STRONG, percent_text(share, text), columns[0].width);
    else if (column == 1 && variable != SIZE_MAX)
        put_cause_bar(vars, variable, 100, columns[1].width, line);
    else if (column == 1)
        line_put_bar(line, (double[]){share / 100}, (enum tone[]){TONE_PLAIN}, 1, columns[1].width);
    else if (column == 2)
        line_put_in(line, TONE_STRONG, cell_text(advice, row, "variable"), columns[2].width);
    else
        line_put_in(line, TONE_PLAIN, cell_text(advice, row, "advice"), line->width - line->at);
}

static void tell_gain(const struct table *advice, size_t row, struct lines *lines)
{
    double gain = cell_number(advice, row, "gain_at_most");
    char number[NUMBER_BYTES];
    struct buf text = {0};
    if (isnan(gain))
        return;
    buf_printf(&text, "%s of the %s%s", percent_text(gain, number),
               cell_number(advice, row, "of_cpu_time") == 1 ? "CPU time" : "time",
               strcmp(cell_text(advice, row, "bound"), "not verified") == 0 ? ", not verified" : "");
    lines_label(lines, "at most", text.data);
    buf_fini(&text);
}

static void tell_advice(struct screen *screen, size_t row, struct lines *lines)
{
    const struct table *advice = screen->pane.table;
    size_t variable = variable_of(screen, row);
    struct buf text = {0};
    char number[NUMBER_BYTES];
    lines_wrap(lines, TONE_STRONG, 0, cell_text(advice, row, "variable"));
    lines_wrap(lines, TONE_PLAIN, 0, cell_text(advice, row, "advice"));
    lines_label(lines, "share", percent_text(cell_number(advice, row, "share"), number));
    tell_gain(advice, row, lines);
    lines_label(lines, "where", cell_text(advice, row, "place"));
    lines_label(lines, "comes from", cell_text(advice, row, "alloc_site"));
    lines_label(lines, "why", cell_text(advice, row, "evidence"));
    if (*cell_text(advice, row, "tried")) {
        buf_printf(&text, "%s: %s", cell_text(advice, row, "tried"), cell_text(advice, row, "tried_as"));
        lines_label(lines, "tried", text.data);
        text.len_bytes = 0;
    }
    if (variable != SIZE_MAX)
        tell_spread(vars_table(screen), variable, &text);
    if (text.len_bytes)
        lines_label(lines, "threads", text.data);
    buf_fini(&text);
}

static void tell(struct screen *screen, size_t row, struct lines *lines)
{
    size_t fact = fact_at(screen, row);
    if (fact != SIZE_MAX) {
        lines_wrap(lines, TONE_STRONG, 0, cell_text(facts_of(screen), fact, "label"));
        lines_wrap(lines, TONE_PLAIN, 0, cell_text(facts_of(screen), fact, "words"));
    } else if (row < n_advice(screen)) {
        tell_advice(screen, row, lines);
    } else {
        lines_wrap(lines, TONE_PLAIN, 0, nothing);
    }
}

static void put_item(struct screen *screen, size_t row, struct buf *out)
{
    size_t variable = row < n_advice(screen) ? variable_of(screen, row) : SIZE_MAX;
    if (variable != SIZE_MAX)
        buf_printf(out, "%s", cell_text(vars_table(screen), variable, "item"));
}

static void put_words(struct screen *screen, size_t row, struct buf *out)
{
    size_t fact = fact_at(screen, row);
    if (fact != SIZE_MAX)
        buf_printf(out, "%s %s", cell_text(facts_of(screen), fact, "label"),
                   cell_text(facts_of(screen), fact, "words"));
    else if (row < n_advice(screen))
        buf_printf(out, "%s %s", cell_text(screen->pane.table, row, "variable"),
                   cell_text(screen->pane.table, row, "advice"));
}

static void put_command(struct screen *screen, struct buf *out)
{
    request_put_words(screen, &(struct request){.report = "advice"}, out);
}

const struct view view_answer = {
    .name = "advice",
    .title = "Answer",
    .columns = columns,
    .n_columns = sizeof columns / sizeof *columns,
    .open = open_answer,
    .cell = put_cell,
    .words = put_words,
    .detail = tell,
    .item = put_item,
    .command = put_command,
};
