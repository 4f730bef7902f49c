/* SPDX-License-Identifier: BSD-3-Clause */
/* What to do, as text, CSV and JSON: see advice.h. */
#include "export/advice/advice.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "export/text-cells.h"
#include "export/vars-table.h"
#include "table/table.h"

static size_t n_shown(const struct advices *advices)
{
    size_t top = advices->job->top;
    return top && top < advices->n_items ? top : advices->n_items;
}

/* Where the row comes from, after its name or on a line of its own: special rows have that in their evidence. Where
 * several programs were measured, also which of them use it. */
static void put_site(const struct advices *advices, const struct advice *advice, struct buf *out)
{
    const struct export_job *job = advices->job;
    bool has_site = *advice->site && strcmp(advice->site, advice->name) != 0 && strcmp(advice->rule, "special") != 0;
    bool has_programs = advices->n_programs > 1 && advice->programs;
    struct buf text = {0};
    if (has_site)
        buf_printf(&text, "%s%s", advice->site, has_programs ? " " : "");
    if (has_programs)
        buf_printf(&text, "in %s", advice->programs);
    if (text.data) {
        size_t at = 9 + text_width(advice->name) + 2;
        bool is_beside = at + text_width(text.data) <= job->columns;
        buf_printf(out, is_beside ? "%2s" : "\n%9s", "");
        text_cut(out, job, text.data, job->columns - (is_beside ? at : 9));
    }
    buf_fini(&text);
}

/* Whether the bound of what a piece may gain is certain; "": it has none. */
static const char *bound_name(const struct advice *advice)
{
    return isnan(advice->gain) ? "" : advice->is_verified ? "verified" : "not verified";
}

/* What stands before the name: its part of the time, or the memory that a leak holds. */
static void put_weight(const struct advice *advice, struct buf *out)
{
    char size[16];
    if (advice->live_bytes) {
        text_size(advice->live_bytes, size);
        buf_printf(out, "%8s ", size);
    } else {
        buf_printf(out, "%5.1f %%  ", advice->share);
    }
}

/* A line about what came of trying a piece of advice. */
static void put_tried(const struct export_job *job, const struct trial_result *result, struct buf *out)
{
    struct buf text = {0};
    if (!result)
        return;
    buf_printf(&text, "tried: %s: ", result->action);
    trial_put_short(result, &text);
    if (result->effect && *result->effect)
        buf_printf(&text, "; %s", result->effect);
    buf_printf(out, "%9s", "");
    text_style(out, job, TEXT_BOLD);
    text_wrapped(out, job, text.data ? text.data : "", 9, 9);
    text_style(out, job, TEXT_PLAIN);
    buf_fini(&text);
}

/* What has been tried and is no advice that is shown. */
static void put_other_trials(const struct advices *advices, struct buf *out)
{
    const struct trial_results *tried = &advices->tried;
    for (size_t i = 0; i < tried->n; i++) {
        const struct trial_result *result = &tried->items[i];
        struct buf text = {0};
        bool is_shown = false;
        for (size_t k = 0; k < n_shown(advices); k++)
            is_shown |= advice_tried(tried, &advices->items[k]) == result;
        if (is_shown)
            continue;
        buf_printf(&text, "%s on %s: ", result->action, result->variable);
        trial_put_short(result, &text);
        if (result->effect && *result->effect)
            buf_printf(&text, "; %s", result->effect);
        buf_printf(out, "\n");
        text_labelled(out, advices->job, "tried", text.data ? text.data : "");
        buf_fini(&text);
    }
}

static int write_text(const struct export_job *job, struct buf *out, struct error *err)
{
    struct advices advices;
    const struct model *model = job->model;
    int code = advices_make(job, &advices, err);
    if (code != 0)
        return code;
    text_program(out, job);
    text_labelled(out, job, "metric", model->metrics[job->metric].name);
    if (model->n_numa_nodes == 1 && advices.touches->is_measured)
        text_labelled(out, job, "NUMA",
                      "the machine has one node, so where data lie is no matter here, and no advice is about that");
    if (advices.n_items == 0)
        text_labelled(out, job, "advice",
                      advices.report->has_too_few ? "none: there are too few samples"
                                                  : "none: the database has no evidence that is certain enough");
    for (size_t i = 0; i < n_shown(&advices); i++) {
        const struct advice *advice = &advices.items[i];
        struct buf text = {0};
        buf_append(out, "\n", 1);
        text_style(out, job, TEXT_BOLD);
        put_weight(advice, out);
        text_cut(out, job, advice->name, job->columns - 9);
        text_style(out, job, TEXT_PLAIN);
        put_site(&advices, advice, out);
        buf_printf(out, "\n%9s", "");
        text_wrapped(out, job, advice->words, 9, 9);
        buf_printf(&text, "because: %s", advice->evidence ? advice->evidence : "");
        if (advice->place && *advice->place && !advice->live_bytes)
            buf_printf(&text, "; most of it in %s", advice->place);
        if (!isnan(advice->memory) && !advice->live_bytes)
            buf_printf(&text, "; %.1f %% of all samples waited for memory here", advice->memory);
        if (!isnan(advice->gain) && !strstr(text.data ? text.data : "", "gain"))
            buf_printf(&text, "; it gains at most %.1f %% of the %stime", advice->gain,
                       advice->is_of_cpu_time ? "CPU " : "");
        if (!advice->is_verified)
            buf_printf(&text, ", not verified");
        buf_printf(out, "%9s", "");
        text_style(out, job, TEXT_DIM);
        text_wrapped(out, job, text.data ? text.data : "", 9, 9);
        text_style(out, job, TEXT_PLAIN);
        put_tried(job, advice_tried(&advices.tried, advice), out);
        buf_fini(&text);
    }
    if (n_shown(&advices) < advices.n_items)
        buf_printf(out, "\n         %zu more (--top 0 shows all)\n", advices.n_items - n_shown(&advices));
    put_other_trials(&advices, out);
    advices_fini(&advices);
    return 0;
}

/* --- CSV and JSON --- */

static const struct column advice_columns[] = {
    VARIABLE_COLUMNS,
    {"share", NULL, CELL_PERCENT | COLUMN_6_DIGITS},
    {"memory_share", NULL, CELL_PERCENT | COLUMN_6_DIGITS | COLUMN_LEFT_OUT},
    {"rule", NULL, CELL_TEXT},
    {"advice", NULL, CELL_TEXT},
    {"evidence", NULL, CELL_TEXT},
    {"gain_at_most", NULL, CELL_PERCENT | COLUMN_6_DIGITS | COLUMN_LEFT_OUT},
    {"program", NULL, CELL_TEXT},
    {"bound", NULL, CELL_TEXT},
    {"place", NULL, CELL_TEXT},
    {"tried", NULL, CELL_TEXT | COLUMN_LEFT_OUT},
    {"tried_as", NULL, CELL_TEXT | COLUMN_LEFT_OUT | COLUMN_NO_CSV},
    {"tried_ratio", NULL, CELL_NUMBER | COLUMN_6_DIGITS | COLUMN_LEFT_OUT},
    {"tried_low", NULL, CELL_NUMBER | COLUMN_6_DIGITS | COLUMN_LEFT_OUT},
    {"tried_high", NULL, CELL_NUMBER | COLUMN_6_DIGITS | COLUMN_LEFT_OUT},
    {"verdict", NULL, CELL_TEXT | COLUMN_LEFT_OUT},
    {"of_cpu_time", NULL, CELL_FLAG | COLUMN_PACKED}, /* else of the time of samples */
};

/* What came of trying a piece; NULL: it has not been tried. */
static void fill_tried(const struct trial_result *result, struct table *table)
{
    bool is_measured = result && result->n_pairs;
    struct buf text = {0};
    if (!result) {
        table_put_absents(table, 6);
        return;
    }
    trial_put_short(result, &text);
    table_put_text(table, result->action);
    table_put_made(table, &text);
    table_put_number(table, is_measured ? result->ratio : (double)NAN);
    table_put_number(table, is_measured ? result->low : (double)NAN);
    table_put_number(table, is_measured ? result->high : (double)NAN);
    table_put_text(table, trial_verdict_name(result->verdict));
}

static void fill_row(const struct advices *advices, const struct advice *advice, struct table *table)
{
    table_put_variable(table, advice->name, advice->class, advice->site);
    table_put_number(table, advice->share);
    table_put_number(table, advice->memory);
    table_put_text(table, advice->rule);
    table_put_text(table, advice->words);
    table_put_name(table, advice->evidence);
    table_put_number(table, advice->gain);
    table_put_name(table, advice->programs);
    table_put_name(table, bound_name(advice));
    table_put_name(table, advice->place);
    fill_tried(advice_tried(&advices->tried, advice), table);
    table_put_flag(table, advice->is_of_cpu_time);
}

static int make_answer(const struct export_job *job, struct answer *answer, struct error *err)
{
    struct advices advices;
    int code = advices_make(job, &advices, err);
    if (code != 0)
        return code;
    answer_begin(answer, "advice", COLUMNS(advice_columns));
    answer->rows.n_more = advices.n_items - n_shown(&advices);
    for (size_t i = 0; i < n_shown(&advices); i++)
        fill_row(&advices, &advices.items[i], &answer->rows);
    advices_fini(&advices);
    return 0;
}

static const struct ask_note notes[] = {
    {ASK_MIN, "Default: 5."},
    {0, NULL},
};

const struct report_kind answer_advice = {
    .name = "advice",
    .operands = "DB",
    .summary = "what to do about the variables with the most of the time",
    .manual =
        "advice prints what to do about the variables with the most of the time (from 5 % on, or from --min), and "
        "the figures that it follows from. Where these are missing it says nothing.",
    .example = "advice hpctoolkit-app-database",
    .options = ASK_ROWS,
    .no_by = "it weighs all threads and places together; see vars --by, numa and patterns",
    .notes = notes,
    .forms = {.make = make_answer, .text = write_text},
};
