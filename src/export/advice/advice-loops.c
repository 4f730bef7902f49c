/* SPDX-License-Identifier: BSD-3-Clause */
/* Advice about the order of loops: by the machine code of the instructions that were sampled, whatever their samples
 * waited for. See advice.h. */
#include "export/advice/advice.h"

#include <stdio.h>
#include <string.h>

#include "base/access-pattern.h"
#include "base/path.h"
#include "structure/cfg/cfg.h"

#define NEST_PART 0.5     /* of a row's samples: so many in such nests are what the row is about */
#define WAITING_LEAST 0.1 /* of them, that may have waited for memory */
#define CACHE_BYTES 32768 /* a variable that fits a first-level cache is near in any order */
#define NAMES_MOST 4

static const struct variable *variable_of(const struct advices *advices, const struct nest_count *count)
{
    return &advices->report->variables[advices->report->variable_of[count->variable]];
}

static bool is_counted(const struct advices *advices, const struct nest_count *count)
{
    return report_is_of_event(advices->report, count->event);
}

/* The part of the row's samples that lie in nests like this one; NULL: in any. */
static double part_in(const struct advices *advices, const struct report_row *row, const struct nest_count *like)
{
    const struct model *model = advices->report->model;
    double n = 0, all = row->variable ? (double)report_samples_of(advices->report, row->variable) : 0;
    for (size_t i = 0; all > 0 && !row->part && i < model->n_nest_counts; i++) {
        const struct nest_count *count = &model->nest_counts[i];
        bool is_like =
            !like || (count->verdict == like->verdict && count->file == like->file && count->line == like->line &&
                      count->outer_file == like->outer_file && count->outer_line == like->outer_line);
        if (is_like && is_counted(advices, count) && variable_of(advices, count) == row->variable)
            n += (double)count->n_samples;
    }
    return all > 0 && n < all ? n / all : all > 0;
}

bool advice_has_loops(const struct advices *advices, const struct report_row *row)
{
    return part_in(advices, row, NULL) >= NEST_PART;
}

/* What is known of the length of the steps that the variable is gone through with, where the code does not say it: the
 * least of those that were seen; 0: nothing. */
static uint32_t least_step(const struct variable *variable)
{
    double most = 0;
    uint32_t bytes = 0;
    for (size_t i = 0; i < variable->n_walks; i++) {
        const struct variable_walk *walk = &variable->walks[i];
        if (walk->kind != PATTERN_STRIDED || !pattern_is_least(walk->stride_bytes) || walk->samples <= most)
            continue;
        most = walk->samples;
        bytes = walk->stride_bytes;
    }
    return bytes;
}

static void put_steps(const struct advices *advices, const struct nest_count *count, struct buf *out)
{
    uint32_t least = count->move == NEST_VARIED ? least_step(variable_of(advices, count)) : 0;
    if (count->move == NEST_CONSTANT)
        buf_printf(out, "in steps of %llu bytes", (unsigned long long)count->stride_bytes);
    else if (count->move == NEST_ROWS)
        buf_printf(out, "from row to row");
    else if (least)
        buf_printf(out, "in steps of at least %u bytes", least);
    else
        buf_printf(out, "in steps as long as its rows");
}

/* The arrays of one nest. */
struct nest_rows {
    double share; /* percent of all samples */
    char names[200];
    size_t n_names;
};

/* Whether another order could gain anything at the row: its data are large enough, and its samples may have waited. */
static bool may_gain(const struct advices *advices, const struct report_row *row)
{
    bool is_small = row->size_bytes && row->size_bytes < CACHE_BYTES && !report_is_turned_over(row);
    return !is_small && advice_waited(advices, row) >= WAITING_LEAST * row->share;
}

/* The sentence: which loops, and how the arrays are gone through now. */
static void put_words(const struct advices *advices, const struct nest_count *count, const struct nest_rows *rows,
                      struct buf *words)
{
    const struct model *model = advices->report->model;
    const char *file = path_last(model_text(model, count->file));
    const char *outer = path_last(model_text(model, count->outer_file));
    bool is_swap = count->verdict == NEST_SWAP;
    if (is_swap && count->is_around)
        buf_printf(words, "swap the loops of %s:%u and %s:%u", outer, count->outer_line, file, count->line);
    else if (is_swap)
        buf_printf(words, "let the loop of %s:%u be the innermost one, instead of that of %s:%u", outer,
                   count->outer_line, file, count->line);
    else
        buf_printf(words, "go through the loops of %s:%u and %s:%u in blocks of a few dozen turns each", outer,
                   count->outer_line, file, count->line);
    buf_printf(words, ": %s%s %s gone through ", rows->names, rows->n_names > NAMES_MOST ? " and others" : "",
               rows->n_names == 1 ? "is" : "are");
    put_steps(advices, count, words);
    if (is_swap && count->outer_bytes)
        buf_printf(words, ", and the other way round of %llu", (unsigned long long)count->outer_bytes);
    else if (!is_swap)
        buf_printf(words, ", and in the other order another array would be");
}

/* The part of a row's samples that a sentence about the nest would be about. */
static double part_told(const struct advices *advices, const struct report_row *row, const struct nest_count *count)
{
    return report_is_special(row) || !may_gain(advices, row) ? 0 : part_in(advices, row, count);
}

static void add_to_row(struct advices *advices, const struct report_row *row, double part,
                       const struct nest_count *count, const char *words)
{
    double gain = part * row->share; /* a loop in another order may be vectorized, too */
    struct buf evidence = {0};
    buf_printf(&evidence,
               "so says the machine code of the loops, in which %.0f %% of its samples are; where the result does not "
               "depend on the order, another one gains at most %.1f %% of the time",
               100 * part, gain);
    (void)advice_add(advices, row, count->verdict == NEST_SWAP ? "loop-order" : "loop-blocks", gain, words, &evidence);
}

/* One nest, of which this is the first count. All of its arrays get the same sentence, which becomes one behind a
 * report. */
static void advise_on_nest(struct advices *advices, const struct nest_count *count, double least)
{
    const struct report *report = advices->report;
    struct nest_rows rows = {0};
    struct buf words = {0};
    for (size_t i = 0; i < report->n_rows; i++) {
        double part = part_told(advices, &report->rows[i], count);
        size_t len = strlen(rows.names);
        rows.share += part * report->rows[i].share;
        if (part > 0 && rows.n_names++ < NAMES_MOST)
            (void)snprintf(rows.names + len, sizeof rows.names - len, "%s%s", len ? ", " : "", report->rows[i].name);
    }
    if (rows.n_names == 0 || rows.share < least)
        return;
    put_words(advices, count, &rows, &words);
    advices->failed |= words.failed;
    for (size_t i = 0; words.data && i < report->n_rows; i++) {
        double part = part_told(advices, &report->rows[i], count);
        if (part > 0)
            add_to_row(advices, &report->rows[i], part, count, words.data);
    }
    buf_fini(&words);
}

void advise_on_loops(struct advices *advices, double least)
{
    const struct model *model = advices->report->model;
    for (size_t i = 0; i < model->n_nest_counts && !advices->failed; i++) {
        const struct nest_count *count = &model->nest_counts[i];
        bool is_first = is_counted(advices, count);
        for (size_t k = 0; k < i && is_first; k++) {
            const struct nest_count *other = &model->nest_counts[k];
            is_first = !is_counted(advices, other) || other->verdict != count->verdict || other->file != count->file ||
                       other->line != count->line || other->outer_file != count->outer_file ||
                       other->outer_line != count->outer_line;
        }
        if (is_first)
            advise_on_nest(advices, count, least);
    }
}
