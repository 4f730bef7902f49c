/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the advice: what the rules look at, all of them in turn, and their order. See advice.h. */
#include "export/advice/advice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "export/text-cells.h"

#define GAIN_LEAST 0.05 /* percent: less would be printed as 0.0 */
#define PROGRAMS_SHOWN 3
#define UNSAMPLED_VALUE 1e-9     /* of what no sample fell on: where nothing is sampled, as of leaks, it decides */
#define PROGRAM_PART 0.1         /* of a row: programs with less of it are not named */
#define NOT_VERIFIED_COUNTS 0.75 /* of what it may gain, in the order of advice */

/* --- programs --- */

/* The program whose file has this name, 1 + index; 0: none. The main one may have been started by another name. */
static uint32_t program_of_module(const struct advices *advices, const char *name)
{
    const struct model *model = advices->job->model;
    for (size_t i = 0; i < model->n_processes; i++) {
        const char *exe = path_last(model->processes[i].exe);
        const char *main_name = path_last(text_program_name(advices->job));
        bool is_main = model->program && strcmp(exe, main_name) == 0 && strcmp(path_last(model->program), name) == 0;
        if (strcmp(exe, name) != 0 && !is_main)
            continue;
        for (size_t k = 0; k < advices->n_programs; k++)
            if (strcmp(advices->programs[k], exe) == 0)
                return (uint32_t)k + 1;
    }
    return 0;
}

/* Lists the programs that were measured, and the modules of the tree that are one of them. False when out of memory. */
static bool find_programs(struct advices *advices)
{
    const struct model *model = advices->job->model;
    bool ok = (advices->program_of = calloc(model->strings.n_strings + 1, sizeof *advices->program_of)) != NULL;
    bool *is_seen = calloc(model->strings.n_strings + 1, sizeof *is_seen);
    ok = ok && is_seen;
    for (size_t i = 0; ok && i < model->n_processes; i++) {
        const char *exe = path_last(model->processes[i].exe);
        size_t k = 0;
        while (k < advices->n_programs && strcmp(advices->programs[k], exe) != 0)
            k++;
        ok = k < advices->n_programs || vec_reserve(&advices->programs, &advices->cap_programs, k + 1, sizeof exe);
        if (ok && k == advices->n_programs)
            advices->programs[advices->n_programs++] = exe;
    }
    for (size_t i = 1; ok && i < model->n_scopes; i++) {
        uint32_t module = model->scopes[i].module;
        if (!is_seen[module])
            advices->program_of[module] = program_of_module(advices, path_last(model_text(model, module)));
        is_seen[module] = true;
    }
    free(is_seen);
    return ok;
}

/* Adds what lies below a scope to the programs whose code took it, or called what took it. */
static void weigh_programs(const struct advices *advices, uint32_t scope, double *values)
{
    const struct model *model = advices->job->model;
    uint32_t end = model_subtree_end(model, scope);
    for (uint32_t i = scope; i < end; i++) {
        double value = model->own[i * model->n_metrics + advices->report->metric] + UNSAMPLED_VALUE;
        uint32_t at = i;
        while (at && !advices->program_of[model->scopes[at].module])
            at = model->scopes[at].parent;
        values[at ? advices->program_of[model->scopes[at].module] : 0] += value;
    }
}

/* The programs that a row is about, those with little of it left out; NULL where that is not known. */
static char *programs_of(struct advices *advices, const struct report_row *row)
{
    double *values = calloc(advices->n_programs + 1, sizeof *values), all = 0;
    struct buf names = {0};
    size_t n = 0;
    for (size_t i = 0; values && row->variable && i < row->variable->n_scopes; i++)
        weigh_programs(advices, row->variable->scopes[i], values);
    for (size_t k = 0; values && k <= advices->n_programs; k++)
        all += values[k];
    for (size_t k = 0; values && k < advices->n_programs; k++)
        if ((values[k + 1] > PROGRAM_PART * all || advices->n_programs == 1) && n++ < PROGRAMS_SHOWN)
            buf_printf(&names, "%s%s", n > 1 ? ", " : "", advices->programs[k]);
    if (n > PROGRAMS_SHOWN)
        buf_printf(&names, " and %zu more", n - PROGRAMS_SHOWN);
    advices->failed = advices->failed || !values || names.failed;
    free(values);
    return names.data;
}

/* --- pieces of advice --- */

/* Whether the rule says that a change gains little, or nothing. */
static bool is_verdict(const char *rule)
{
    return strcmp(rule, "not-worth-it") == 0 || strcmp(rule, "unknown") == 0;
}

/* Whether a row's line is in a library of the language's, whose lines say nothing to those who call it. */
static bool is_of_library(const struct advices *advices, const struct report_row *row, const struct report_line *line)
{
    const struct model *model = advices->report->model;
    for (size_t k = 0; row->variable && k < row->variable->n_scopes; k++) {
        uint32_t first = row->variable->scopes[k], end = model_subtree_end(model, first);
        for (uint32_t i = first + 1; i < end; i++) {
            struct code_line at = code_line_of(model, i);
            uint32_t loop;
            if (at.function == line->function && at.file == line->file && at.line == line->line)
                return code_library(model, model->scopes[code_function_around(model, i, &loop)].module);
        }
    }
    return false;
}

void advice_put_place(const struct advices *advices, const struct report_row *row, struct buf *out)
{
    const struct model *model = advices->report->model;
    const struct report_line *line = row->n_lines ? &row->lines[0] : NULL;
    if (line && line->line && is_of_library(advices, row, line) && advice_put_caller(advices, row, out))
        return;
    if (line && line->loop.first) {
        buf_printf(out, "loop %s:", path_last(model_text(model, line->loop.file)));
        text_lines(out, line->loop.first, line->loop.last);
    } else if (line && line->line) {
        buf_printf(out, "%s:%u", path_last(model_text(model, line->file)), line->line);
    } else if (line && !advice_put_caller(advices, row, out) &&
               strncmp(model_text(model, line->function), "0x", 2) != 0) {
        text_function(out, model_text(model, line->function));
    }
}

struct advice *advice_add(struct advices *advices, const struct report_row *row, const char *rule, double gain,
                          const char *words, struct buf *evidence)
{
    struct buf place = {0};
    if (gain < GAIN_LEAST && !is_verdict(rule)) {
        buf_fini(evidence);
        return NULL;
    }
    char *copy = strdup(words);
    advice_put_place(advices, row, &place);
    advices->failed = advices->failed || !copy || evidence->failed || place.failed ||
                      !vec_reserve(&advices->items, &advices->cap_items, advices->n_items + 1, sizeof(struct advice));
    if (advices->failed) {
        free(copy);
        buf_fini(&place);
        buf_fini(evidence);
        return NULL;
    }
    struct advice *made = &advices->items[advices->n_items];
    bool is_known =
        advices->report->has_causes && !special_rows_find(row->name) && !report_is_memory_unknown(&row->causes);
    *made = (struct advice){.rule = rule,
                            .number = advices->n_items,
                            .name = row->name,
                            .class = row->class,
                            .site = row->site,
                            .variable = row->variable,
                            .share = row->share,
                            .memory = is_known ? row->causes.memory : (double)NAN,
                            .gain = gain,
                            .is_verified = advice_verdict(advices, row) != ROW_MAY_WAIT,
                            .place = place.data,
                            .words = copy,
                            .evidence = evidence->data,
                            .programs = programs_of(advices, row)};
    made->rank = isnan(gain) ? advice_waited(advices, row) : gain;
    advices->n_items++;
    *evidence = (struct buf){0};
    return made;
}

void advice_set_place(struct advice *advice, struct buf *place)
{
    if (advice && place->len_bytes) {
        free(advice->place);
        advice->place = place->data;
        *place = (struct buf){0};
    }
    buf_fini(place);
}

void advice_add_of_code(struct advices *advices, const struct report_row *row, const char *rule, double share,
                        const char *words, struct buf *evidence, struct code_advice *at)
{
    bool is_placed = !isnan(at->share);
    struct advice *made = advice_add(advices, row, rule, is_placed ? at->share : share, words, evidence);
    if (made && is_placed)
        made->rank = fmin(at->share, share);
    if (made && at->is_unsure)
        made->is_verified = false;
    if (made && is_placed)
        made->spot = at->spot;
    if (made && (is_placed || at->is_spread)) {
        free(made->place);
        made->place = NULL;
    }
    advice_set_place(made, &at->place);
}

double advice_waited(const struct advices *advices, const struct report_row *row)
{
    return advices->report->has_causes ? row->causes.memory_high : row->share;
}

enum row_verdict advice_verdict(const struct advices *advices, const struct report_row *row)
{
    const struct cause_sum *sum = &row->causes;
    double most = ADVICE_PART * row->share;
    if (!advices->report->has_causes || !row->variable || report_is_special(row))
        return ROW_IS_OTHER;
    if (sum->memory > most)
        return ROW_WAITS;
    if (sum->first_touch > most)
        return ROW_TOUCHES;
    return sum->resident > most || sum->execution > most ? ROW_COMPUTES : ROW_MAY_WAIT;
}

bool advice_is_same(const struct report_row *a, const struct report_row *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->class, b->class) == 0 &&
           strcmp(a->site ? a->site : "", b->site ? b->site : "") == 0;
}

/* Whether a piece of advice is about a row. */
static bool is_about(const struct advice *advice, const struct report_row *row)
{
    return advice->name == row->name && advice->class == row->class && strcmp(advice->site, row->site) == 0;
}

static void advise_on_row(struct advices *advices, const struct report_row *row)
{
    if (advise_on_python(advices, row))
        return;
    if (special_rows_find(row->name)) {
        advise_on_special(advices, row);
        return;
    }
    if (!row->variable || report_is_special(row))
        return;
    bool has_shared_lines = advise_on_lines(advices, row);
    if (!advise_on_places(advices, row))
        advise_on_remote_accesses(advices, row);
    advise_on_data(advices, row, has_shared_lines);
    advise_on_churn(advices, row);
    bool is_answered = false;
    for (size_t i = 0; i < advices->n_items; i++) /* its loops have been answered for before */
        is_answered |= strcmp(advices->items[i].rule, "not-worth-it") != 0 && is_about(&advices->items[i], row);
    if (!is_answered)
        advise_on_rest(advices, row);
}

/* Gains become shares of the program's time, without the profiler's; ranks, shares of one whole. */
static void rank(struct advices *advices)
{
    for (struct advice *advice = advices->items; advice < advices->items + advices->n_items; advice++) {
        advice->gain /= fmax(advice->gain / 100, advice_program_part(advices, advice->is_of_cpu_time));
        advice->rank *= advice->is_verified ? 1 : NOT_VERIFIED_COUNTS;
        advice->rank *= advice->is_of_cpu_time ? 1 : 1 - report_kernel_percent(advices->report) / 100;
    }
}

static int compare_advice(const void *a, const void *b)
{
    const struct advice *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank > y->rank ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

void advices_fini(struct advices *advices)
{
    for (size_t i = 0; i < advices->n_items; i++) {
        free(advices->items[i].place);
        free(advices->items[i].words);
        free(advices->items[i].evidence);
        free(advices->items[i].programs);
    }
    free(advices->items);
    free(advices->programs);
    free(advices->program_of);
    code_files_free(advices->code);
    trial_results_fini(&advices->tried);
    if (advices->has_leaks)
        leaks_fini(&advices->leaks);
    if (advices->has_numa)
        numa_fini(&advices->numa);
    if (advices->has_patterns)
        patterns_fini(&advices->patterns);
    prepared_fini(&advices->prepared);
}

/* Fills in what the rules look at. Leaks, nodes and patterns may be missing. */
static int gather(struct advices *advices, const struct export_job *job, struct error *err)
{
    unsigned parts = PREPARED_USED | PREPARED_BY_SITE | PREPARED_TOUCHES;
    int code = prepared_make(job, parts, &advices->prepared, err);
    if (code != 0)
        return code;
    advices->report = &advices->prepared.report;
    advices->touches = &advices->prepared.touches;
    if (!find_programs(advices))
        code = error_memory(err);
    if (code == 0)
        code = advise_find_leaks(advices, job, err);
    if (code == 0 && job->model->n_home_counts) {
        code = numa_make(job->model, job->metric, &advices->numa, err);
        advices->has_numa = code == 0;
    }
    if (code == 0 && job->model->n_reaches) {
        code = patterns_of_report(advices->report, &advices->patterns, err);
        advices->has_patterns = code == 0;
    }
    if (code != 0)
        advices_fini(advices);
    return code;
}

/* All rules, once there are samples enough for them. */
static void advise(struct advices *advices)
{
    const struct export_job *job = advices->job;
    double least = job->least < 0 ? ADVICE_SHARE_MIN : job->least;
    advise_on_loops(advices, least);
    for (size_t i = 0; i < advices->report->n_rows; i++) {
        const struct report_row *row = &advices->report->rows[i];
        if (row->share >= least && row->share > 0)
            advise_on_row(advices, row);
        else if (job->least < 0 && row->share >= ADVICE_WORTHLESS_PERCENT && row->variable && !report_is_special(row))
            (void)advise_on_places(advices, row);
    }
    advise_on_kernel(advices, least);
    advise_on_waiting(advices, least);
    advise_on_locks(advices);
    advise_on_allocator(advices);
    advise_on_debug_information(advices, least);
    rank(advices);
    if (advices->n_items)
        qsort(advices->items, advices->n_items, sizeof *advices->items, compare_advice);
    advise_on_leaks(advices);
}

int advices_make(const struct export_job *job, struct advices *advices, struct error *err)
{
    *advices = (struct advices){.job = job};
    int code = gather(advices, job, err);
    if (code != 0)
        return code;
    code = job->directory ? trial_results_read(job->directory, &advices->tried, err) : 0;
    if (code != 0) {
        advices_fini(advices);
        return code;
    }
    report_order_by_memory(advices->report);
    if (advices->report->has_too_few)
        return 0;
    advise(advices);
    if (!advices->failed)
        return 0;
    advices_fini(advices);
    return error_memory(err);
}
