/* SPDX-License-Identifier: BSD-3-Clause */
/* The cache lines that several threads use, and what watchpoints found there: for a terminal, as CSV and as JSON. */
#include "analysis/report/code-table.h"
#include "analysis/report/first-touch.h"
#include "analysis/report/patterns.h"

#include <math.h>
#include <string.h>

#include "answer/answer.h"
#include "base/path.h"
#include "export/text-cells.h"
#include "export/prepared.h"
#include "table/table.h"

#define CALLERS_MOST 5 /* of an access, in text */
#define JSON_PATH_MOST 256

static const char *name_of(const struct patterns *patterns, uint32_t row)
{
    return patterns->report->rows[row].name;
}

/* Whether a line is of the variable that was asked for, if any, and shown behind n others. */
static bool is_line_shown(const struct export_job *job, const struct patterns *patterns, const struct shared_line *line,
                          size_t n)
{
    double all = patterns->report->total_samples;
    bool is_meant = !job->subject || report_is_named(&patterns->report->rows[line->row], job->subject) ||
                    report_is_named(&patterns->report->rows[line->other_row], job->subject);
    return is_meant && job_shows(job, all > 0 ? 100 * (double)line->n_samples / all : 0, n);
}

/* "reads", for one side of a meeting. */
static const char *access_words(uint32_t accesses)
{
    static const char *const words[] = {"uses", "reads", "writes", "reads and writes"};
    return words[accesses & 3];
}

/* "count_words (patterns.c:120)" */
static void put_place(const struct model *model, const struct touch_place *place, struct buf *out)
{
    const char *function = model_text(model, place->function);
    buf_printf(out, "%s", *function ? function : "unknown code");
    if (place->line)
        buf_printf(out, " (%s:%u)", path_last(model_text(model, place->file)), place->line);
}

/* "thread 0.1 writes words + 8 in count_words (patterns.c:120), called by run (patterns.c:141)" */
static void put_side(const struct patterns *patterns, const struct line_side *side, struct buf *out)
{
    const struct model *model = patterns->report->model;
    const struct split_naming naming = split_naming_of(model);
    struct touch_place places[CALLERS_MOST + 1];
    if (side->row == UINT32_MAX) {
        buf_printf(out, "an access that is not known");
        return;
    }
    buf_printf(out, "thread ");
    split_put_thread(model, &naming, side->thread, out);
    buf_printf(out, " %s %s", access_words(side->accesses), name_of(patterns, side->row));
    if (side->offset_bytes != UINT64_MAX)
        buf_printf(out, " + %llu", (unsigned long long)side->offset_bytes);
    if (side->field)
        buf_printf(out, " (%s)", side->field);
    size_t n = touch_path_of(model, side->scope, places, CALLERS_MOST + 1);
    for (size_t i = 0; i < n && i <= CALLERS_MOST; i++) {
        buf_printf(out, "%s", i == 0 ? " in " : i == 1 ? ", called by " : ", ");
        put_place(model, &places[i], out);
    }
    if (n > CALLERS_MOST + 1)
        buf_printf(out, ", and %zu more", n - CALLERS_MOST - 1);
}

/* What watchpoints found, and the two accesses that met most often. */
static void put_verdict(const struct export_job *job, const struct patterns *patterns, const struct shared_line *line,
                        struct buf *out)
{
    struct buf text = {0};
    buf_printf(out, "%10s", "");
    if (line->verdict == VERDICT_NOT_VERIFIED) {
        buf_printf(out, "not verified: too few watches that saw both threads there, or that saw one of them away\n");
        return;
    }
    text_style(out, job, TEXT_BOLD);
    text_cell(out, job, line_verdict_name(line->verdict), 24, false);
    text_style(out, job, TEXT_PLAIN);
    buf_printf(&text,
               "verified: %llu traps at the same bytes, %llu beside them, %llu watches that did not see both threads",
               (unsigned long long)line->n_same, (unsigned long long)line->n_beside, (unsigned long long)line->n_none);
    if (line->n_most) {
        buf_printf(&text, "; ");
        put_side(patterns, &line->sides[0], &text);
        buf_printf(&text, ", ");
        put_side(patterns, &line->sides[1], &text);
    }
    text_wrapped(out, job, text.data ? text.data : "", 34, 34);
    buf_fini(&text);
}

static void put_line(const struct export_job *job, const struct patterns *patterns, const struct shared_line *line,
                     struct buf *out)
{
    if (line->is_candidate) {
        buf_printf(out, "%8llu  ", (unsigned long long)line->n_samples);
        text_style(out, job, TEXT_BOLD);
        text_cell(out, job, line_sharing_name(line->sharing), 24, false);
        text_style(out, job, TEXT_PLAIN);
        if (!isnan(line->in_common))
            buf_printf(out, "%4zu threads, %zu write; %3.0f %% stores; same places %.2f; ", line->n_threads,
                       line->n_writers, percent_of_counts(line->n_stores, line->n_samples), line->in_common);
        if (line->is_seen_modified)
            buf_printf(out, "found modified by the hardware; %s", line->line == LINE_ALL ? "lines of " : "");
    } else {
        buf_printf(out, "%8s  %-24s", "few", "no candidate");
    }
    buf_printf(out, "%s", name_of(patterns, line->row));
    if (line->offset_bytes != UINT64_MAX)
        buf_printf(out, " + %llu", (unsigned long long)line->offset_bytes);
    if (line->other_row != line->row)
        buf_printf(out, " and %s", name_of(patterns, line->other_row));
    buf_append(out, "\n", 1);
    if (patterns->is_watched && line->line != LINE_ALL)
        put_verdict(job, patterns, line, out);
}

/* Whether a note says why lines were not watched though the user asked for it. */
static bool is_about_watching(const char *note)
{
    return strncmp(note, SHARING_NOTE, strlen(SHARING_NOTE)) == 0;
}

/* Why lines were not watched though the user asked for it; false: they were, or nobody asked. */
static bool put_sharing_notes(const struct export_job *job, struct buf *out)
{
    bool is_any = false;
    for (size_t i = 0; i < job->model->n_notes; i++) {
        const char *note = job->model->notes[i];
        if (!is_about_watching(note))
            continue;
        text_labelled(out, job, "note", note);
        is_any = true;
    }
    return is_any;
}

static int write_text(const struct export_job *job, struct buf *out, struct error *err)
{
    struct patterns patterns;
    size_t n = 0, n_left = 0;
    int code = patterns_make_of(job->model, job->metric, job->with_paths, job->subject, &patterns, err);
    if (code != 0)
        return code;
    for (size_t i = 0; i < patterns.n_lines; i++) {
        if (!is_line_shown(job, &patterns, &patterns.lines[i], n)) {
            n_left += is_line_shown(job, &patterns, &patterns.lines[i], 0);
            continue;
        }
        if (!n++)
            buf_printf(out, " samples  candidate for\n");
        put_line(job, &patterns, &patterns.lines[i], out);
    }
    if (n_left)
        buf_printf(out, "%zu more lines (--top 0 shows all)\n", n_left);
    bool is_noted = put_sharing_notes(job, out);
    text_labelled(out, job, "note",
                  !n ? "No cache line with enough samples was used by several threads of which one writes."
                  : patterns.is_watched
                      ? "Verified by watchpoints: threads on two processors used the line within 20 milliseconds."
                  : is_noted ? "Candidates: whether the threads used a line at the same time is not known."
                             : "Candidates: whether the threads used a line at the same time is not known; hpcrun "
                               "--verify-sharing finds out.");
    patterns_fini(&patterns);
    return 0;
}

static const struct column place_columns[] = {
    PLACE_COLUMNS,
};

static const struct column side_columns[] = {
    {"variable", NULL, CELL_TEXT},
    {"field", NULL, CELL_TEXT},
    {"from", NULL, CELL_TEXT},
    THREAD_COLUMNS,
    {"access", NULL, CELL_TEXT},
    {"address", NULL, CELL_WORD},
    {"bytes", NULL, CELL_WORD},
    {"offset", NULL, CELL_WORD | COLUMN_LEFT_OUT},
    PLACE_COLUMNS,
    {"called_by", NULL, CELL_TABLE},
};

static const struct column line_columns[] = {
    {"variable", NULL, CELL_TEXT},
    {"other_variable", NULL, CELL_TEXT},
    {"process", NULL, CELL_COUNT},
    {"line_address", NULL, CELL_ADDRESS | COLUMN_LEFT_OUT},
    {"offset", NULL, CELL_WORD | COLUMN_LEFT_OUT},
    {"sharing", NULL, CELL_TEXT},
    {"samples", NULL, CELL_WORD},
    {"stores", NULL, CELL_WORD},
    {"threads", NULL, CELL_COUNT},
    {"writers", NULL, CELL_COUNT},
    {"same_places", NULL, CELL_NUMBER | COLUMN_LEFT_OUT | COLUMN_4_DIGITS},
    {"seen_modified", NULL, CELL_FLAG},
    {"verified", NULL, CELL_TEXT},
    {"same_traps", NULL, CELL_WORD},
    {"beside_traps", NULL, CELL_WORD},
    {"no_traps", NULL, CELL_WORD},
    {"sample_place", NULL, CELL_TEXT | COLUMN_NO_JSON},
    {"trap_place", NULL, CELL_TEXT | COLUMN_NO_JSON},
    {"accesses", NULL, CELL_TABLE},
};

static void fill_place(struct table *table, const struct model *model, const struct touch_place *place)
{
    table_put_place(table, model_text(model, place->function), model_text(model, place->file), place->line);
}

/* One of the two accesses, with the path of calls that led there, innermost first. */
static void fill_side(struct table *table, const struct patterns *patterns, const struct line_side *side,
                      const char *from)
{
    const struct model *model = patterns->report->model;
    struct touch_place places[JSON_PATH_MOST];
    table_put_text(table, name_of(patterns, side->row));
    table_put_text(table, side->field);
    table_put_text(table, from);
    thread_put_cells(model, side->thread, table);
    table_put_text(table, access_words(side->accesses));
    table_put_word(table, side->address);
    table_put_word(table, side->n_bytes);
    table_put_word_if(table, side->offset_bytes != UINT64_MAX, side->offset_bytes);
    size_t n = touch_path_of(model, side->scope, places, JSON_PATH_MOST);
    fill_place(table, model, &places[0]);
    struct table *callers = table_put_table(table, COLUMNS(place_columns));
    for (size_t i = 1; i < n && i < JSON_PATH_MOST; i++)
        fill_place(callers, model, &places[i]);
}

static void fill_sides(struct table *table, const struct patterns *patterns, const struct shared_line *line)
{
    for (int i = 0; i < 2; i++) {
        struct buf text = {0};
        if (line->n_most)
            put_side(patterns, &line->sides[i], &text);
        table_put_made(table, &text);
    }
    struct table *sides = table_put_table(table, COLUMNS(side_columns));
    for (int i = 0; line->n_most && i < 2; i++)
        if (line->sides[i].row != UINT32_MAX)
            fill_side(sides, patterns, &line->sides[i], i ? "watchpoint" : "sample");
}

static void fill_line(struct table *table, const struct patterns *patterns, const struct shared_line *line)
{
    table_put_text(table, name_of(patterns, line->row));
    table_put_text(table, line->other_row == line->row ? NULL : name_of(patterns, line->other_row));
    table_put_count(table, line->process);
    table_put_word_if(table, line->line != LINE_ALL, line->line * PATTERN_LINE_BYTES);
    table_put_word_if(table, line->offset_bytes != UINT64_MAX, line->offset_bytes);
    table_put_text(table, line->is_candidate ? line_sharing_name(line->sharing) : "no candidate");
    table_put_word(table, line->n_samples);
    table_put_word(table, line->n_stores);
    table_put_count(table, (int64_t)line->n_threads);
    table_put_count(table, (int64_t)line->n_writers);
    table_put_number(table, line->in_common);
    table_put_flag(table, line->is_seen_modified);
    table_put_text(table, line_verdict_name(line->verdict));
    table_put_word(table, line->n_same);
    table_put_word(table, line->n_beside);
    table_put_word(table, line->n_none);
    fill_sides(table, patterns, line);
}

static const struct column note_columns[] = {{"note", NULL, CELL_TEXT}};
static const struct column head_columns[] = {
    {"notes", NULL, CELL_TABLE | COLUMN_BARE},
};

static int make_answer(const struct export_job *job, struct answer *answer, struct error *err)
{
    struct patterns patterns;
    int code = patterns_make_of(job->model, job->metric, job->with_paths, job->subject, &patterns, err);
    if (code != 0)
        return code;
    answer_begin(answer, "lines", COLUMNS(line_columns));
    struct table *notes = table_put_table(answer_set_head(answer, COLUMNS(head_columns)), COLUMNS(note_columns));
    for (size_t i = 0; i < job->model->n_notes; i++)
        if (is_about_watching(job->model->notes[i]))
            table_put_text(notes, job->model->notes[i]);
    for (size_t i = 0; i < patterns.n_lines; i++)
        if (is_line_shown(job, &patterns, &patterns.lines[i], table_rows(&answer->rows)))
            fill_line(&answer->rows, &patterns, &patterns.lines[i]);
        else
            answer->rows.n_more += is_line_shown(job, &patterns, &patterns.lines[i], 0);
    patterns_fini(&patterns);
    return 0;
}

const struct report_kind answer_sharing = {
    .name = "sharing",
    .operands = "DB",
    .summary = "cache lines that several threads used and one of them wrote",
    .manual = "sharing prints the cache lines that several threads of a process used and at least one of them wrote: "
              "candidates for false sharing, where they used different bytes, and for true sharing.",
    .example = "sharing hpctoolkit-app-database",
    .options = ASK_ROWS | ASK(PATHS) | ASK(VARIABLE),
    .about = about_variable,
    .forms = {.make = make_answer, .text = write_text},
};
