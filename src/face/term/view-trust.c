/* SPDX-License-Identifier: BSD-3-Clause */
/* How far the figures can be trusted: what became of each sample, what was left out, and notes of the measurement. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "face/term/screen.h"

static const struct view_column columns[] = {
    {NULL, "samples", 9, true, false}, {NULL, "share", 7, true, false},   {NULL, "", 8, false, false},
    {NULL, "fate", 14, false, false},  {NULL, "meaning", 0, false, true},
};

/* Rows: the lines of the foot, the notes, the fates. */
struct sources {
    const struct table *foot, *notes, *fates;
};

static struct sources sources_of(struct screen *screen)
{
    struct error ignored;
    const struct answer *trust = ask_report(screen, "trust", NULL, &ignored),
                        *session = ask_report(screen, "session", NULL, &ignored);
    return (struct sources){trust ? cell_table(answer_head(trust), 0, "foot") : NULL,
                            session ? cell_table(answer_head(session), 0, "notes") : NULL,
                            trust ? answer_rows(trust) : NULL};
}

static int open_trust(struct screen *screen, struct error *err)
{
    if (!ask_report(screen, "trust", NULL, err))
        return error_set(err, ERR_UNSUPPORTED,
                         "This input is no database of hpcprof: it does not say what became of its samples.");
    struct sources from = sources_of(screen);
    screen->pane.n_all = rows_of(from.foot) + rows_of(from.notes) + rows_of(from.fates);
    return 0;
}

/* What a row says: the row of a fate, SIZE_MAX where it is a label and words. */
static size_t look_up(const struct sources *from, size_t row, const char **label, const char **words)
{
    size_t foot = rows_of(from->foot), notes = rows_of(from->notes);
    *label = "note";
    if (row < foot) {
        *label = cell_text(from->foot, row, "label");
        *words = cell_text(from->foot, row, "words");
        return SIZE_MAX;
    }
    if (row < foot + notes) {
        *words = cell_text(from->notes, row - foot, "text");
        return SIZE_MAX;
    }
    row -= foot + notes;
    *label = cell_text(from->fates, row, "fate");
    *words = cell_text(from->fates, row, "meaning");
    return row;
}

/* All samples of the event of a fate. */
static double samples_of(const struct table *fates, size_t row)
{
    double sum = 0;
    for (size_t i = 0; i < rows_of(fates); i++)
        if (strcmp(cell_text(fates, i, "event"), cell_text(fates, row, "event")) == 0)
            sum += cell_number(fates, i, "samples");
    return sum;
}

static void put_cell(struct screen *screen, size_t row, size_t column, struct line *line)
{
    struct sources from = sources_of(screen);
    const char *label, *words;
    size_t fate = look_up(&from, row, &label, &words);
    char text[NUMBER_BYTES];
    if (column == 3) {
        line_put_in(line, TONE_STRONG, label, columns[3].width);
    } else if (column == 4) {
        line_put_in(line, TONE_PLAIN, words, line->width - line->at);
    } else if (fate != SIZE_MAX) {
        double samples = cell_number(from.fates, fate, "samples"), all = samples_of(from.fates, fate);
        (void)snprintf(text, sizeof text, "%.0f", samples);
        if (column == 0)
            line_put_right(line, TONE_PLAIN, text, columns[0].width);
        else if (column == 1)
            line_put_right(line, TONE_PLAIN, percent_text(100 * samples / all, text), columns[1].width);
        else
            line_put_bar(line, (double[]){samples / all}, (enum tone[]){TONE_PLAIN}, 1, columns[2].width);
    }
}

static void put_words(struct screen *screen, size_t row, struct buf *out)
{
    struct sources from = sources_of(screen);
    const char *label, *words;
    (void)look_up(&from, row, &label, &words);
    buf_printf(out, "%s %s", label, words);
}

static void tell(struct screen *screen, size_t row, struct lines *lines)
{
    struct sources from = sources_of(screen);
    const char *label, *words;
    size_t fate = look_up(&from, row, &label, &words);
    lines_wrap(lines, TONE_STRONG, 0, label);
    lines_wrap(lines, TONE_PLAIN, 0, words);
    if (fate != SIZE_MAX)
        lines_label(lines, "event", cell_text(from.fates, fate, "event"));
}

const struct view view_trust = {
    .name = "trust",
    .title = "Trust",
    .columns = columns,
    .n_columns = sizeof columns / sizeof *columns,
    .open = open_trust,
    .cell = put_cell,
    .words = put_words,
    .detail = tell,
};
