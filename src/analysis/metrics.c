/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of derived metrics, and what its rows are computed from. */
#include "analysis/metrics.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "analysis/metric-list.h"
#include "fmt/columns.h"

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
