/* SPDX-License-Identifier: BSD-3-Clause */
/* Advice about what is gone through in the program's own loops: about their order, by the machine code of the
 * instructions that were sampled, whatever their samples waited for; and about Python that its interpreter runs, where
 * the data are the interpreter's and the loops are not known. See advice.h. */
#include "export/advice/advice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/access-pattern.h"
#include "base/path.h"
#include "export/text-cells.h"
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

/* --- Python --- */

/* What the interpreter does for lines of Python, and the part of that for one function, of which that in what it calls
 * of Python's libraries. */
struct interpreted {
    struct code_line line;                                        /* the function's costliest one */
    double line_value, function_value, library_value, value, all; /* all: with what other code does */
};

/* A line of the program, with what it calls of libraries. */
struct line_value {
    struct code_line at;
    double value, library_value;
};

static int compare_lines(const void *a, const void *b)
{
    const struct code_line *x = &((const struct line_value *)a)->at, *y = &((const struct line_value *)b)->at;
    const uint32_t keys[][2] = {{x->function, y->function}, {x->file, y->file}, {x->line, y->line}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

static bool is_of_library(const struct model *model, uint32_t procedure)
{
    return path_is_python_library(model_text(model, model->scopes[procedure].file));
}

/* The function of Python around a scope, through code of the interpreter and of the modules that come with it, which do
 * the work of a line of Python, as do functions that are built in; 0: another one. *at becomes the scope in it. */
static uint32_t python_around(const struct model *model, uint32_t *at)
{
    uint32_t loop, procedure = code_function_around(model, *at, &loop);
    while (procedure) {
        const char *module = model_text(model, model->scopes[procedure].module);
        if (strcmp(module, PYTHON_MODULE) == 0 || (!path_is_python(module) && !strstr(module, "/lib-dynload/")))
            return strcmp(module, PYTHON_MODULE) == 0 ? procedure : 0;
        *at = model->scopes[procedure].parent;
        procedure = code_function_around(model, *at, &loop);
    }
    return 0;
}

/* The line of a sample that was taken while the interpreter did its work; of Python's libraries it is the program's
 * line that called them. False: other code did it. */
static bool find_line(const struct model *model, uint32_t scope, struct line_value *line)
{
    uint32_t inner = scope, procedure = python_around(model, &inner), own = inner;
    if (!procedure)
        return false;
    line->library_value = is_of_library(model, procedure) ? line->value : 0;
    while (procedure && is_of_library(model, procedure)) {
        own = model->scopes[procedure].parent;
        procedure = python_around(model, &own);
    }
    line->at = code_line_of(model, procedure ? own : inner);
    return true;
}

/* Appends the lines of a variable's samples that were interpreted, and adds up its samples. */
static void list_lines(struct advices *advices, const struct variable *variable, struct line_value **lines, size_t *n,
                       size_t *capacity, double *all)
{
    const struct model *model = advices->report->model;
    for (size_t k = 0; k < variable->n_scopes; k++) {
        uint32_t first = variable->scopes[k], end = model_subtree_end(model, first);
        for (uint32_t i = first + 1; i < end; i++) {
            struct line_value line = {.value = model->own[i * model->n_metrics + advices->report->metric]};
            *all += line.value;
            if (line.value <= 0 || report_wait(advices->report, variable, i) >= 0 || !find_line(model, i, &line))
                continue;
            if (!vec_reserve(lines, capacity, *n + 1, sizeof **lines)) {
                advices->failed = true;
                return;
            }
            (*lines)[(*n)++] = line;
        }
    }
}

/* Sums up the lines [n], in order: the function with most of them, or the one of that name in that file. */
static struct interpreted sum_lines(const struct line_value *lines, size_t n, const struct code_line *of)
{
    struct interpreted sum = {0};
    for (size_t i = 0, next; i < n; i = next) {
        struct interpreted function = {.line = lines[i].at};
        double line_value = 0;
        for (next = i;
             next < n && lines[next].at.function == lines[i].at.function && lines[next].at.file == lines[i].at.file;
             next++) {
            line_value = next > i && lines[next].at.line == lines[next - 1].at.line ? line_value : 0;
            line_value += lines[next].value;
            function.function_value += lines[next].value;
            function.library_value += lines[next].library_value;
            if (line_value > function.line_value) {
                function.line_value = line_value;
                function.line = lines[next].at;
            }
        }
        double value = sum.value + function.function_value;
        bool is_wanted = of ? of->function == lines[i].at.function && of->file == lines[i].at.file
                            : function.function_value > sum.function_value;
        sum = is_wanted ? function : sum;
        sum.value = value;
    }
    return sum;
}

/* variable NULL: of all of them. */
static struct interpreted interpreted_of(struct advices *advices, const struct variable *variable,
                                         const struct code_line *of)
{
    const struct report *report = advices->report;
    struct line_value *lines = NULL;
    size_t n = 0, capacity = 0;
    double all = 0;
    for (size_t v = 0; v < report->n_variables; v++)
        if (!variable || variable == &report->variables[v])
            list_lines(advices, &report->variables[v], &lines, &n, &capacity, &all);
    if (n)
        qsort(lines, n, sizeof *lines, compare_lines);
    struct interpreted sum = sum_lines(lines, n, of);
    sum.all = all;
    free(lines);
    return sum;
}

bool advise_on_python(struct advices *advices, const struct report_row *row)
{
    const struct model *model = advices->report->model;
    struct interpreted own =
        row->variable && !row->is_waiting ? interpreted_of(advices, row->variable, NULL) : (struct interpreted){0};
    if (own.value <= ADVICE_PART * own.all || advices->report->total_value <= 0)
        return false;
    struct interpreted all = interpreted_of(advices, NULL, &own.line);
    double percent = 100 / advices->report->total_value, share = percent * all.function_value;
    struct buf words = {0}, evidence = {0}, place = {0};
    text_function(&words, model_text(model, all.line.function));
    if (share >= ADVICE_LARGE_PERCENT) {
        buf_printf(&words, "%s",
                   all.library_value > ADVICE_PART * all.function_value
                       ? " calls library code that runs in the interpreter: call it less often, or for more at once"
                       : " runs in the interpreter: work on whole arrays at once (numpy), leave more to built-in "
                         "functions, or compile it (Numba, Cython)");
        buf_printf(&place, "%s:%u", path_last(model_text(model, all.line.file)), all.line.line);
    } else {
        share = percent * all.value;
        buf_printf(&words,
                   ", with %.1f %% of the time, is the largest of the functions that the interpreter runs: compile "
                   "their modules (mypyc, Cython), or try PyPy",
                   percent * all.function_value);
    }
    buf_printf(
        &evidence,
        "in %.0f %% of its samples the interpreter or a function that is built into it did the work of a line of "
        "Python; the bound is all of that work for the %s, on whatever data",
        100 * own.value / own.all, share > percent * all.function_value ? "program" : "function");
    struct advice *made = words.data ? advice_add(advices, row, "interpreter", share, words.data, &evidence) : NULL;
    if (made) {
        made->is_verified = true;
        made->rank = fmin(share, row->share);
    }
    advice_set_place(made, &place);
    advices->failed |= words.failed;
    buf_fini(&words);
    return true;
}
