/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics/default.yaml: for each metric the statistics over threads, inclusive and exclusive. Mean and deviations are
 * over the threads that have a value, because the others are not counted. */
#include "export/v4-export.h"

/* Inputs, in the order of enum v4_statistic. */
static const struct {
    const char *name, *formula, *combine;
} inputs[V4_STATISTICS] = {
    [V4_SUM] = {"sum", "$$", "sum"},
    [V4_MIN] = {"min", "$$", "min"},
    [V4_MAX] = {"max", "$$", "max"},
    [V4_COUNT] = {"count", "'1'", "sum"},
    [V4_SQUARES] = {"squares", "($$^2)", "sum"},
};

#define MEAN "{'/': [*@sum, *@count]}"
#define DEVIATION "{sqrt: [{max: [0, {'-': [{'/': [*@squares, *@count]}, {pow: [" MEAN ", 2]}]}]}]}"

/* What is shown of a metric: @ stands for the metric in the names of the inputs. */
static const struct {
    const char *name, *render, *formula;
} variants[] = {
    {"Sum", "[number, percent]", "*@sum"},
    {"Mean", "[number]", MEAN},
    {"StdDev", "[number]", DEVIATION},
    {"CoefVar", "[number]", "{'/': [" DEVIATION ", " MEAN "]}"},
    {"Min", "[number]", "*@min"},
    {"Max", "[number]", "*@max"},
    {"Count", "[number]", "*@count"},
};

/* A double-quoted scalar; names are ASCII by now. */
static void put_quoted(struct buf *out, const char *text)
{
    buf_append(out, "\"", 1);
    for (const char *p = text; *p; p++)
        if (*p == '"' || *p == '\\')
            buf_printf(out, "\\%c", *p);
        else if ((unsigned char)*p < ' ' || *p == 0x7f)
            buf_printf(out, "\\x%02x", (unsigned)*p);
        else
            buf_append(out, p, 1);
    buf_append(out, "\"\n", 2);
}

/* A formula for metric i in a scope: "*@sum" becomes "*m0-sum-function". */
static void put_formula(struct buf *out, const char *formula, size_t i, const char *scope)
{
    for (const char *p = formula; *p; p++) {
        if (*p != '@') {
            buf_append(out, p, 1);
            continue;
        }
        buf_printf(out, "m%zu-", i);
        for (; p[1] >= 'a' && p[1] <= 'z'; p++)
            buf_append(out, p + 1, 1);
        buf_printf(out, "-%s", scope);
    }
    buf_append(out, "\n", 1);
}

static void put_inputs(struct buf *out, const struct v4_meta *meta, size_t i)
{
    for (size_t k = 0; k < meta->n_scopes; k++)
        for (size_t s = 0; s < V4_STATISTICS; s++) {
            buf_printf(out, "  - &m%zu-%s-%s\n    metric: ", i, inputs[s].name, meta->scopes[k].name);
            put_quoted(out, meta->metrics[i].name);
            buf_printf(out, "    scope: %s\n    formula: %s\n    combine: %s\n", meta->scopes[k].name,
                       inputs[s].formula, inputs[s].combine);
        }
}

static void put_root(struct buf *out, const struct v4_meta *meta, size_t i)
{
    buf_printf(out, "  - name: ");
    put_quoted(out, meta->metrics[i].name);
    buf_printf(out, "    description: ");
    put_quoted(out, meta->metrics[i].name);
    buf_printf(out, "    variants:\n");
    for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++) {
        buf_printf(out, "      %s:\n        render: %s\n        formula:\n", variants[v].name, variants[v].render);
        buf_printf(out, "          inclusive:\n            standard: ");
        put_formula(out, variants[v].formula, i, meta->scopes[V4_ID_EXECUTION].name);
        buf_printf(out, "          exclusive:\n            standard: ");
        put_formula(out, variants[v].formula, i, meta->scopes[V4_ID_FUNCTION].name);
    }
}

void v4_export_yaml(const struct v4_meta *meta, struct buf *out)
{
    buf_printf(out, "version: 0\ninputs:%s\n", meta->n_metrics ? "" : " []");
    for (size_t i = 0; i < meta->n_metrics; i++)
        put_inputs(out, meta, i);
    buf_printf(out, "roots:%s\n", meta->n_metrics ? "" : " []");
    for (size_t i = 0; i < meta->n_metrics; i++)
        put_root(out, meta, i);
}
