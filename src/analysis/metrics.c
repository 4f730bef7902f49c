/* SPDX-License-Identifier: BSD-3-Clause */
/* Metrics that are computed from others: the table of derived metrics, and what its rows are computed from; then the
 * causes of time as metrics (cause_metrics_), into which the values of an event are split. */
#include "analysis/metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "analysis/build/waits.h"
#include "base/path.h"
#include "fmt/hpcrun.h"

/* Each family ends with an empty row. */
extern const struct metric_derived metric_latency[], metric_levels[], metric_remote[], metric_access[];

static const struct metric_derived *const families[] = {metric_latency, metric_levels, metric_remote, metric_access};

const struct metric_derived *metrics_row(size_t i)
{
    for (size_t family = 0; family < sizeof families / sizeof families[0]; family++)
        for (const struct metric_derived *row = families[family]; row->name; row++)
            if (i-- == 0)
                return row;
    return NULL;
}

void metrics_columns(const struct model *model, struct metric_columns *columns)
{
    for (int i = 0; i < MEM_METRICS; i++)
        columns->counts[i] = model_metric(model, mem_metric_row((enum mem_metric)i)->name);
    columns->latency = model_metric(model, MEM_LATENCY_NAME);
    columns->remote = model_metric(model, MEM_REMOTE_LATENCY_NAME);
}

static double sum_value(const struct model *model, const uint32_t *scopes, size_t n, int64_t metric)
{
    double value = 0;
    for (size_t i = 0; metric >= 0 && i < n; i++)
        value += model_value(model, scopes[i], (size_t)metric);
    return value;
}

void metrics_fill(const struct model *model, const struct metric_columns *columns, const uint32_t *scopes, size_t n,
                  struct metric_input *input)
{
    for (int i = 0; i < MEM_METRICS; i++)
        input->counts[i] = sum_value(model, scopes, n, columns->counts[i]);
    input->latency_cycles = sum_value(model, scopes, n, columns->latency);
    input->remote_cycles = sum_value(model, scopes, n, columns->remote);
}

void metrics_add_latency(const struct variable_latency *from, size_t n, uint32_t event, struct latency_sum *sum)
{
    for (size_t i = 0; i < n; i++) {
        if (event != UINT32_MAX && from[i].event != event)
            continue;
        sum->n_samples += from[i].sum.n_samples;
        sum->cycles += from[i].sum.cycles;
        sum->n_remote += from[i].sum.n_remote;
        sum->remote_cycles += from[i].sum.remote_cycles;
        for (int bin = 0; bin < LATENCY_BINS; bin++)
            sum->bins[bin] += from[i].sum.bins[bin];
    }
}

bool metrics_merge_latencies(struct variable *variable, const struct variable_latency *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = 0;
        while (at < variable->n_latencies && variable->latencies[at].event != from[i].event)
            at++;
        if (!vec_reserve(&variable->latencies, &variable->cap_latencies, at + 1, sizeof *variable->latencies))
            return false;
        if (at == variable->n_latencies)
            variable->latencies[variable->n_latencies++].event = from[i].event;
        metrics_add_latency(&from[i], 1, from[i].event, &variable->latencies[at].sum);
    }
    return true;
}

bool metrics_is_access(const char *name)
{
    for (int i = 0; i < MEM_METRICS; i++)
        if (strcmp(mem_metric_row((enum mem_metric)i)->name, name) == 0)
            return true;
    return strcmp(name, MEM_LATENCY_NAME) == 0 || strcmp(name, MEM_REMOTE_LATENCY_NAME) == 0;
}

bool metrics_is_time(const char *name)
{
    size_t len = strlen(name), n = strlen(METRICS_TIME_UNIT);
    return len > n && !strcmp(name + len - n, METRICS_TIME_UNIT);
}

bool metrics_is_blocked(const char *name)
{
    return text_begins(name, "BLOCKTIME");
}

bool metrics_is_io(const char *name)
{
    return text_begins(name, "IO Bytes ");
}

bool metrics_has_hardware(const struct model *model)
{
    for (size_t i = 0; i < model->n_metrics; i++)
        if (metrics_is_access(model->metrics[i].name))
            return true;
    return false;
}

/* Names of sysfs, of libpfm4 and of POWER, with or without the PMU before them. */
int64_t metrics_instructions(const struct model *model)
{
    static const char *const names[] = {"instructions", "inst_retired", "pm_inst_cmpl"};
    for (size_t i = 0; i < model->n_metrics; i++) {
        const char *name = model->metrics[i].name, *pmu = strpbrk(name, ":/");
        if (pmu && (pmu[0] == '/' || pmu[1] == ':'))
            name = pmu + (pmu[0] == '/' ? 1 : 2);
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
            if (strncasecmp(name, names[k], strlen(names[k])) == 0)
                return (int64_t)i;
    }
    return -1;
}

double metrics_percentile(const struct latency_sum *latency, double percent)
{
    double total = 0, below = 0;
    for (int i = 0; i < LATENCY_BINS; i++)
        total += (double)latency->bins[i];
    double wanted = total * percent / 100;
    for (unsigned i = 0; i < LATENCY_BINS && total > 0; i++) {
        double n = (double)latency->bins[i], low = (double)mem_latency_of_bin_sig(i);
        if (n > 0 && below + n >= wanted) {
            double width = i + 1 < LATENCY_BINS ? (double)mem_latency_of_bin_sig(i + 1) - low - 1 : 0;
            return low + width * (wanted - below) / n;
        }
        below += n;
    }
    return (double)NAN;
}

bool metrics_is_beyond(const struct metric_derived *row, double value)
{
    return row->is_of_histogram && value >= (double)mem_latency_of_bin_sig(LATENCY_BINS - 1);
}

static double count_set(const struct metric_input *input, uint32_t set)
{
    double sum = 0;
    for (int i = 0; i < MEM_METRICS; i++)
        sum += set & 1u << i ? input->counts[i] : 0;
    return sum;
}

double metrics_sum(const struct metric_derived *row, const struct metric_input *input)
{
    return count_set(input, row->above);
}

double metrics_percent(const struct metric_derived *row, const struct metric_input *input)
{
    double whole = count_set(input, row->below) - count_set(input, row->without);
    return whole > 0 ? 100 * count_set(input, row->above) / whole : (double)NAN;
}

/* --- causes as metrics --- */

_Static_assert(VALUE_PARTS == CAUSE_PARTS, "values are split into as many parts as there are causes");

static const struct {
    const char *word, *sentence;
} parts[CAUSE_PARTS] = {
    [CAUSE_MEMORY] = {"memory", "waited for the data to come from memory"},
    [CAUSE_EXECUTION] = {"execution", "was execution; data were at most its input"},
    [CAUSE_UNVERIFIED] = {"unverified", "may have waited for memory or not"},
};

/* The name with a word before its unit. */
static int name_part(const char *metric, const char *word, char **name)
{
    const char *unit = strrchr(metric, '(');
    size_t len = unit && unit > metric && unit[-1] == ' ' ? (size_t)(unit - metric) - 1 : strlen(metric);
    return asprintf(name, "%.*s %s%s", (int)len, metric, word, metric + len);
}

/* Index of the metric, added when new; -1 when out of memory. */
static int64_t add_metric(struct model *model, int64_t whole, enum cause_part part)
{
    char *name = NULL, *description = NULL;
    int64_t known = cause_metrics_part(model, (size_t)whole, part);
    if (known < 0 && name_part(model->metrics[whole].name, parts[part].word, &name) < 0)
        return -1;
    bool is_new =
        known < 0 && vec_reserve(&model->metrics, &model->cap_metrics, model->n_metrics + 1, sizeof *model->metrics);
    if (is_new && asprintf(&description, "of %s: what %s", model->metrics[whole].name, parts[part].sentence) >= 0) {
        model->metrics[model->n_metrics] = (struct metric){.name = name,
                                                           .description = description,
                                                           .per_sample = model->metrics[whole].per_sample,
                                                           .period = model->metrics[whole].period};
        return (int64_t)model->n_metrics++;
    }
    free(name);
    return known;
}

int64_t cause_metrics_part(const struct model *model, size_t whole, enum cause_part part)
{
    char *name = NULL;
    if (name_part(model->metrics[whole].name, parts[part].word, &name) < 0)
        return -1;
    int64_t metric = model_metric(model, name);
    free(name);
    return metric;
}

int cause_metrics_add(struct model *model, const struct cause_table *causes, struct error *err)
{
    uint64_t events = causes_events(causes, model);
    for (uint32_t e = 0; e < 64 && events >> e; e++) {
        int64_t whole = events >> e & 1 ? model_metric(model, model->events[e].metric) : -1;
        for (int k = 0; whole >= 0 && k < CAUSE_PARTS; k++)
            if (add_metric(model, whole, (enum cause_part)k) < 0)
                return error_memory(err);
    }
    return 0;
}

/* Events, the metrics that are split, and what tells which samples waited for other threads. */
struct splitting {
    const struct build *build;
    struct value_splits *splits;
    uint32_t events[64];    /* [splits->n_metrics] */
    struct waits *waits[2]; /* for metrics that are not time, and those that are */
};

static int list_metrics(struct splitting *splitting, struct error *err)
{
    const struct build *build = splitting->build;
    const struct model *model = build->model;
    struct value_splits *splits = splitting->splits;
    uint64_t events = causes_events(build->causes, model);
    splits->metrics = calloc(64, sizeof *splits->metrics);
    splits->row_of = calloc(build->tree->n_nodes + 1, sizeof *splits->row_of);
    if (!splits->metrics || !splits->row_of)
        return error_memory(err);
    for (uint32_t e = 0; e < 64 && events >> e; e++) {
        struct value_split split;
        int64_t whole = events >> e & 1 ? model_metric(model, model->events[e].metric) : -1;
        bool is_there = whole >= 0;
        for (int k = 0; is_there && k < CAUSE_PARTS; k++) {
            int64_t metric = cause_metrics_part(model, (size_t)whole, (enum cause_part)k);
            is_there = metric >= 0;
            split.parts[k] = (uint32_t)metric;
        }
        if (!is_there)
            continue;
        split.metric = (uint32_t)whole;
        splitting->events[splits->n_metrics] = e;
        splits->metrics[splits->n_metrics++] = split;
    }
    for (int is_time = 0; is_time < 2 && splits->n_metrics; is_time++)
        if (waits_new(&splitting->waits[is_time], model, is_time, err) != 0)
            return ERR_MEMORY;
    return 0;
}

/* Computes the parts of a node's values of metric i. */
static void split_node(const struct splitting *splitting, const struct raw_node *node, size_t i,
                       double fractions[CAUSE_PARTS])
{
    const struct model *model = splitting->build->model;
    const struct variable *variable = node->variable == RAW_NONE ? NULL : &model->variables[node->variable];
    bool is_time = metrics_is_time(model->metrics[splitting->splits->metrics[i].metric].name);
    struct waits *waits = splitting->waits[is_time];
    bool is_none = variable && (variable->class == CLASS_UNATTRIBUTED || variable->class == CLASS_WAITING);
    bool is_aside = variable && waits_are_possible(waits, variable) && waits_label(waits, variable, node->own) >= 0;
    memset(fractions, 0, CAUSE_PARTS * sizeof *fractions);
    if (is_aside || (is_none && !causes_are_unknown(model_text(model, variable->name))))
        fractions[CAUSE_EXECUTION] = 1;
    else if (is_none || !variable)
        fractions[CAUSE_UNVERIFIED] = 1;
    else
        causes_parts(splitting->build->causes, node->variable, splitting->events[i], node->module, node->ip, fractions);
}

static int split_nodes(const struct splitting *splitting, struct error *err)
{
    const struct raw_tree *tree = splitting->build->tree;
    struct value_splits *splits = splitting->splits;
    size_t capacity = 0, width = splits->n_metrics * CAUSE_PARTS;
    for (size_t i = 0; splits->n_metrics && i < tree->n_nodes; i++) {
        const struct raw_node *node = &tree->nodes[i];
        if (!node->has_values || !node->in_data)
            continue;
        if (!vec_reserve(&splits->rows, &capacity, (splits->n_rows + 1) * width, sizeof *splits->rows))
            return error_memory(err);
        for (size_t k = 0; k < splits->n_metrics; k++)
            split_node(splitting, node, k, &splits->rows[splits->n_rows * width + k * CAUSE_PARTS]);
        splits->row_of[i] = (uint32_t)++splits->n_rows;
    }
    return 0;
}

int cause_metrics_split(const struct build *build, struct value_splits *splits, struct error *err)
{
    struct splitting splitting = {.build = build, .splits = splits};
    int code = list_metrics(&splitting, err);
    if (code == 0)
        code = split_nodes(&splitting, err);
    waits_free(splitting.waits[0]);
    waits_free(splitting.waits[1]);
    return code;
}
