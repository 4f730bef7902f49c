/* SPDX-License-Identifier: BSD-3-Clause */
/* How threads use variables: for a terminal, as CSV and as JSON. */
#include "analysis/report/code-table.h"
#include "analysis/report/first-touch.h"
#include "analysis/report/patterns.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "answer/answer.h"
#include "export/text-cells.h"
#include "export/prepared.h"
#include "table/table.h"

/* Whether a row is shown behind n others; all are of one variable, if that is what was asked for. */
static bool is_shown(const struct export_job *job, const struct pattern_row *row, size_t n)
{
    return job->subject ? report_is_named(row->row, job->subject) : job_shows(job, row->row->share, n);
}

static const char *order_words(const struct pattern_row *row)
{
    static const char *const words[] = {"not known", "in order", "irregular"};
    return row->step_bytes ? "in steps" : words[row->order];
}

/* --- text --- */

static void put_evidence(const struct pattern_row *row, struct buf *out)
{
    uint64_t known = row->n_loads + row->n_stores;
    buf_printf(out, "%llu samples of %zu thread%s", (unsigned long long)row->n_samples, row->n, row->n == 1 ? "" : "s");
    if (row->n > 1)
        buf_printf(out, ", %.0f %% of one", 100 * row->owner);
    if (known)
        buf_printf(out, "; %.0f %% stores", percent_of_counts(row->n_stores, known));
    if (row->order != ORDER_UNKNOWN)
        buf_printf(out, "; %s", order_words(row));
    if (row->step_bytes)
        buf_printf(out, " of %s%llu bytes", row->is_least ? "at least " : "", (unsigned long long)row->step_bytes);
    if (row->by_block >= 0.8)
        buf_printf(out, "; blocks agree %.2f", row->by_block);
    else if (!isnan(row->by_place))
        buf_printf(out, "; places agree %.2f", row->by_place);
    if (row->by_chunk > 0.3)
        buf_printf(out, "; chunks of %llu B agree %.2f", (unsigned long long)row->chunk_bytes, row->by_chunk);
}

static void put_row(const struct export_job *job, const struct pattern_row *row, struct buf *out)
{
    struct buf text = {0};
    buf_printf(out, "%5.1f %%  ", row->row->share);
    text_cell(out, job, row->row->name, 24, false);
    buf_printf(out, "  ");
    text_style(out, job, TEXT_BOLD);
    text_cell(out, job, use_class_name(row->class), 18, false);
    text_style(out, job, TEXT_PLAIN);
    buf_printf(out, "%-10s", use_confidence_name(row->confidence));
    put_evidence(row, &text);
    text_wrapped(out, job, text.data ? text.data : "", 63, 63);
    buf_fini(&text);
}

/* A line of the map: the thread's samples by place, each cell as dark as its part of the fullest cell. */
static void put_map_line(const struct patterns *patterns, const struct pattern_thread *thread, size_t n_bins,
                         uint64_t most, struct buf *out)
{
    static const char shades[] = " .:-=+*#%@";
    const struct model *model = patterns->report->model;
    const struct split_naming naming = split_naming_of(model);
    struct buf name = {0};
    split_put_thread(model, &naming, thread->thread, &name);
    buf_printf(out, "  %-8s |", name.data ? name.data : "");
    buf_fini(&name);
    for (size_t bin = 0; bin < n_bins; bin++) {
        uint64_t n = thread->sum.bins[bin];
        buf_printf(out, "%c", n ? shades[1 + (size_t)(8 * (double)n / (double)most)] : ' ');
    }
    buf_printf(out, "| %llu\n", (unsigned long long)thread->n_samples);
}

static void put_map(const struct patterns *patterns, const struct pattern_row *row, struct buf *out)
{
    char size[16];
    size_t n_bins = 0;
    uint64_t most = 1;
    for (size_t i = row->first; i < row->first + row->n; i++)
        for (size_t bin = 0; bin < REACH_BINS; bin++) {
            uint64_t n = patterns->threads[i].sum.bins[bin];
            most = n > most ? n : most;
            n_bins = n && bin >= n_bins ? bin + 1 : n_bins;
        }
    text_size(UINT64_C(1) << patterns->threads[row->first].sum.shift, size);
    const struct split_naming naming = split_naming_of(patterns->report->model);
    buf_printf(out, "\n  %s, places from the start of the block (%s each), samples\n", split_thread_key(&naming), size);
    for (size_t i = row->first; i < row->first + row->n; i++)
        put_map_line(patterns, &patterns->threads[i], n_bins, most, out);
}

/* Whether samples lie in variables that others can share, and whether the place of one of them is known. */
static bool has_sampled(const struct report *report, bool *has_exact)
{
    bool has_samples = false;
    *has_exact = false;
    for (size_t i = 0; i < report->model->n_variables; i++) {
        const struct variable *variable = &report->model->variables[i];
        uint64_t n = report_samples_of(report, variable);
        if (!n || variable->class == CLASS_STACK || variable->class >= CLASS_UNKNOWN)
            continue;
        has_samples = true;
        *has_exact |= n > report_inexact_samples_of(report, variable);
    }
    return has_samples;
}

/* Why there is nothing to say. */
static const char *why_none(const struct report *report)
{
    const struct model *model = report->model;
    bool has_address = false, has_exact, has_samples = has_sampled(report, &has_exact);
    for (size_t i = 0; i < model->n_events; i++)
        has_address |= model->events[i].has_address;
    if (!has_address)
        return "The measurement has no event with data addresses, such as datacentric.";
    if (has_samples && !has_exact)
        return "Where in variables the samples lie is not known: each instruction that was sampled there overwrites a "
               "register that its address came from, such as one that follows a list.";
    if (!model->n_reaches && (has_samples || !model->has_samples))
        return "Where in variables the samples lie is not known: the measurement or the database was made by an older "
               "version.";
    return "No sample of this metric lies in a variable, other than in threads' own stacks.";
}

static int write_text(const struct export_job *job, struct buf *out, struct error *err)
{
    struct patterns patterns;
    size_t n = 0, n_left = 0;
    int code = patterns_make_of(job->model, job->metric, job->with_paths, job->subject, &patterns, err);
    if (code != 0)
        return code;
    if (!patterns.n_rows)
        text_labelled(out, job, "note", why_none(patterns.report));
    else
        buf_printf(out, "  share  variable                  used as           confidence because\n");
    for (size_t i = 0; i < patterns.n_rows; i++) {
        if (!is_shown(job, &patterns.rows[i], n)) {
            n_left += !job->subject && job_shows(job, patterns.rows[i].row->share, 0);
            continue;
        }
        n++;
        put_row(job, &patterns.rows[i], out);
        if (job->subject)
            put_map(&patterns, &patterns.rows[i], out);
    }
    if (job->subject && !n)
        return patterns_refuse_variable(&patterns, job->subject, err);
    if (n_left)
        buf_printf(out, "%zu more variables (--top 0 shows all)\n", n_left);
    if (patterns.n_lines && !job->subject)
        buf_printf(out, "\n%zu cache line%s of several threads: hpcquery sharing shows %s\n", patterns.n_lines,
                   patterns.n_lines == 1 ? "" : "s", patterns.n_lines == 1 ? "it" : "them");
    patterns_fini(&patterns);
    return 0;
}

/* --- CSV and JSON --- */

static const struct column thread_columns[] = {
    THREAD_COLUMNS,
    {"samples", NULL, CELL_WORD},
    {"loads", NULL, CELL_WORD},
    {"stores", NULL, CELL_WORD},
    {"bins", NULL, CELL_WORDS},
};

static const struct column pattern_columns[] = {
    VARIABLE_COLUMNS,
    {"share", NULL, CELL_PERCENT | COLUMN_6_DIGITS},
    {"used_as", NULL, CELL_TEXT},
    {"confidence", NULL, CELL_TEXT},
    {"samples", NULL, CELL_WORD},
    {"threads", NULL, CELL_COUNT | COLUMN_NO_JSON},
    {"loads", NULL, CELL_WORD},
    {"stores", NULL, CELL_WORD},
    {"order", NULL, CELL_TEXT},
    {"step_bytes", NULL, CELL_WORD | COLUMN_LEFT_OUT},
    {"first_offset", NULL, CELL_WORD},
    {"last_offset", NULL, CELL_WORD},
    {"owner", NULL, CELL_PERCENT | COLUMN_6_DIGITS},
    {"by_block", NULL, CELL_NUMBER | COLUMN_LEFT_OUT | COLUMN_4_DIGITS},
    {"by_place", NULL, CELL_NUMBER | COLUMN_LEFT_OUT | COLUMN_4_DIGITS},
    {"by_chunk", NULL, CELL_NUMBER | COLUMN_LEFT_OUT | COLUMN_4_DIGITS},
    {"chunk_bytes", NULL, CELL_WORD | COLUMN_LEFT_OUT},
    {"bin_bytes", NULL, CELL_WORD},
    {"threads", NULL, CELL_TABLE},
};

static void fill_threads(struct table *rows, const struct patterns *patterns, const struct pattern_row *row)
{
    for (size_t i = row->first; i < row->first + row->n; i++) {
        const struct pattern_thread *thread = &patterns->threads[i];
        thread_put_cells(patterns->report->model, thread->thread, rows);
        table_put_word(rows, thread->n_samples);
        table_put_word(rows, thread->sum.n_loads);
        table_put_word(rows, thread->sum.n_stores);
        table_put_words(rows, thread->sum.bins, REACH_BINS);
    }
}

static void fill_pattern(struct table *table, const struct patterns *patterns, const struct pattern_row *row)
{
    table_put_variable(table, row->row->name, row->row->class, row->row->site);
    table_put_number(table, row->row->share);
    table_put_text(table, use_class_name(row->class));
    table_put_text(table, use_confidence_name(row->confidence));
    table_put_word(table, row->n_samples);
    table_put_count(table, (int64_t)row->n);
    table_put_word(table, row->n_loads);
    table_put_word(table, row->n_stores);
    table_put_text(table, order_words(row));
    table_put_word_if(table, row->step_bytes > 0, row->step_bytes);
    table_put_word(table, row->first_offset);
    table_put_word(table, row->last_offset);
    table_put_number(table, 100 * row->owner);
    table_put_number(table, row->by_block);
    table_put_number(table, row->by_place);
    table_put_number(table, row->by_chunk);
    table_put_word_if(table, !isnan(row->by_chunk), row->chunk_bytes);
    table_put_word(table, UINT64_C(1) << patterns->threads[row->first].sum.shift);
    fill_threads(table_put_table(table, COLUMNS(thread_columns)), patterns, row);
}

static int make_answer(const struct export_job *job, struct answer *answer, struct error *err)
{
    struct patterns patterns;
    size_t n = 0;
    int code = patterns_make_of(job->model, job->metric, job->with_paths, job->subject, &patterns, err);
    if (code != 0)
        return code;
    answer_begin(answer, "variables", COLUMNS(pattern_columns));
    for (size_t i = 0; i < patterns.n_rows; i++)
        if (is_shown(job, &patterns.rows[i], n)) {
            fill_pattern(&answer->rows, &patterns, &patterns.rows[i]);
            n++;
        } else {
            answer->rows.n_more += is_shown(job, &patterns.rows[i], 0);
        }
    if (job->subject && !n)
        return patterns_refuse_variable(&patterns, job->subject, err);
    patterns_fini(&patterns);
    return 0;
}

static const struct ask_note pattern_notes[] = {
    {ASK_VARIABLE, "Also show where in it each thread's samples lie."},
    {0, NULL},
};

const struct report_kind answer_patterns = {
    .name = "patterns",
    .operands = "DB",
    .summary = "how the threads use each variable",
    .manual = "patterns prints how the threads use each variable: by a single owner, blocked by thread, interleaved, "
              "shared and only read, shared and written, streaming or at random, how certain that is, and what it "
              "follows from. doc/guide.md has the rules.",
    .example = "patterns --variable grid hpctoolkit-app-database",
    .options = ASK_ROWS | ASK(PATHS) | ASK(VARIABLE),
    .about = about_variable,
    .notes = pattern_notes,
    .forms = {.make = make_answer, .text = write_text},
};
