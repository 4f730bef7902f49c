/* SPDX-License-Identifier: BSD-3-Clause */
/* What to do, as text, CSV and JSON: see advice.h. */
#include "export/advice/advice.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "export/text-cells.h"
#include "export/vars-table.h"
#include "fmt/json.h"

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

/* The cells about what came of trying a piece. */
static void csv_put_tried(const struct trial_result *result, struct buf *out)
{
    bool is_measured = result && result->n_pairs;
    buf_printf(out, ",%s,", result ? result->action : "");
    if (is_measured)
        buf_printf(out, "%.6f,%.6f,%.6f,", result->ratio, result->low, result->high);
    else
        buf_printf(out, ",,,");
    buf_printf(out, "%s", result ? trial_verdict_name(result->verdict) : "");
}

static int write_csv(const struct export_job *job, struct buf *out, struct error *err)
{
    struct advices advices;
    int code = advices_make(job, &advices, err);
    if (code != 0)
        return code;
    buf_printf(out,
               "variable,class,alloc_site,share,memory_share,rule,advice,evidence,gain_at_most,program,bound,place,"
               "tried,tried_ratio,tried_low,tried_high,verdict\n");
    for (size_t i = 0; i < n_shown(&advices); i++) {
        const struct advice *advice = &advices.items[i];
        csv_put_text(out, advice->name);
        buf_printf(out, ",%s,", advice->class);
        csv_put_text(out, advice->site);
        buf_printf(out, ",%.6f,", advice->share);
        if (!isnan(advice->memory))
            buf_printf(out, "%.6f", advice->memory);
        buf_printf(out, ",%s,", advice->rule);
        csv_put_text(out, advice->words);
        buf_append(out, ",", 1);
        csv_put_text(out, advice->evidence ? advice->evidence : "");
        buf_append(out, ",", 1);
        if (!isnan(advice->gain))
            buf_printf(out, "%.6f", advice->gain);
        buf_append(out, ",", 1);
        csv_put_text(out, advice->programs ? advice->programs : "");
        buf_printf(out, ",%s,", bound_name(advice));
        csv_put_text(out, advice->place ? advice->place : "");
        csv_put_tried(advice_tried(&advices.tried, advice), out);
        buf_append(out, "\n", 1);
    }
    advices_fini(&advices);
    return 0;
}

static void json_put_tried(const struct trial_result *result, struct buf *out)
{
    struct buf text = {0};
    if (!result)
        return;
    trial_put_short(result, &text);
    json_put_text_at(out, "tried", result->action);
    json_put_text_at(out, "tried_as", text.data);
    if (result->n_pairs) {
        json_put_double_at(out, "tried_ratio", result->ratio);
        json_put_double_at(out, "tried_low", result->low);
        json_put_double_at(out, "tried_high", result->high);
    }
    json_put_text_at(out, "verdict", trial_verdict_name(result->verdict));
    buf_fini(&text);
}

static int write_json(const struct export_job *job, struct buf *out, struct error *err)
{
    struct advices advices;
    int code = advices_make(job, &advices, err);
    if (code != 0)
        return code;
    buf_printf(out, "{\"program\": ");
    json_put_text(out, job->model->program);
    json_put_text_at(out, "metric", job->model->metrics[job->metric].name);
    buf_printf(out, ",\n\"advice\": [");
    for (size_t i = 0; i < n_shown(&advices); i++) {
        const struct advice *advice = &advices.items[i];
        buf_printf(out, i ? ",\n{\"variable\": " : "\n{\"variable\": ");
        json_put_text(out, advice->name);
        json_put_text_at(out, "class", advice->class);
        json_put_text_at(out, "alloc_site", advice->site);
        json_put_double_at(out, "share", advice->share);
        if (!isnan(advice->memory))
            json_put_double_at(out, "memory_share", advice->memory);
        json_put_text_at(out, "rule", advice->rule);
        json_put_text_at(out, "advice", advice->words);
        json_put_text_at(out, "evidence", advice->evidence ? advice->evidence : "");
        if (!isnan(advice->gain))
            json_put_double_at(out, "gain_at_most", advice->gain);
        json_put_text_at(out, "program", advice->programs);
        json_put_text_at(out, "bound", bound_name(advice));
        json_put_text_at(out, "place", advice->place);
        json_put_tried(advice_tried(&advices.tried, advice), out);
        buf_append(out, "}", 1);
    }
    buf_printf(out, "]}\n");
    advices_fini(&advices);
    return 0;
}

const struct exporter export_advice_text = {"advice", "text", write_text};
const struct exporter export_advice_csv = {"advice", "csv", write_csv};
const struct exporter export_advice_json = {"advice", "json", write_json};
