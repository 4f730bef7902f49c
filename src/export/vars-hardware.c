/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows and head of the table of variables measured by hardware. */
#include "export/vars-hardware.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "export/text-cells.h"

#define WIDE 95 /* columns from which on there is room for bars */
#define CLASS_WIDTH 12

/* Widths that depend on the terminal's. */
struct layout {
    size_t bar, name, cell;
};

static struct layout layout_of(const struct export_job *job)
{
    struct layout layout = {.bar = job->columns < WIDE ? 0 : 8, .cell = job->columns < WIDE ? 6 : 7};
    size_t used = 8 + layout.bar + 2 + 1 + CLASS_WIDTH;
    for (size_t i = 0; metrics_row(i); i++)
        used += metrics_row(i)->title ? layout.cell : 0;
    layout.name = job->columns > used + 12 ? job->columns - used : 12;
    layout.name = layout.name < 32 ? layout.name : 32;
    return layout;
}

void hardware_put_counters(const struct report *report, struct buf *text)
{
    const struct event_sum *event = report->event;
    if (!event || !text->len_bytes)
        return;
    if (event->n_no_metric)
        buf_printf(text, "; %llu without metric", (unsigned long long)event->n_no_metric);
    if (event->n_throttles)
        buf_printf(text, "; throttled %llu times", (unsigned long long)event->n_throttles);
    if (event->n_truncated)
        buf_printf(text, "; AUX area too small %llu times", (unsigned long long)event->n_truncated);
    if (event->n_collisions)
        buf_printf(text, "; hardware gave up samples %llu times", (unsigned long long)event->n_collisions);
    if (event->running_ns < event->enabled_ns)
        buf_printf(text, "; counted %.1f %% of the time, scaled to all of it",
                   100 * (double)event->running_ns / (double)event->enabled_ns);
}

/* Value with as many digits as say something. */
static void put_number(double value, char text[16])
{
    if (isnan(value))
        (void)snprintf(text, 16, "-");
    else if (value >= 10000)
        (void)snprintf(text, 16, "%.3gk", value / 1000);
    else
        (void)snprintf(text, 16, value >= 100 ? "%.0f" : "%.1f", value);
}

/* "52.0 M loads" */
static void put_count(double value, const char *what, struct buf *text)
{
    static const char *const units[] = {"", " k", " M", " G", " T"};
    size_t unit = 0;
    for (; value >= 10000 && unit + 1 < sizeof units / sizeof units[0]; unit++)
        value /= 1000;
    buf_printf(text, "%.*f%s %s", unit ? 1 : 0, value, units[unit], what);
}

/* All accesses in the words of the table. */
static void put_levels(const struct report *report, struct buf *text)
{
    int n_put = 0;
    put_count(report->all.counts[MEM_LOAD], "loads, ", text);
    put_count(report->all.counts[MEM_STORE], "stores", text);
    for (size_t i = 0; metrics_row(i); i++) {
        const struct metric_derived *row = metrics_row(i);
        double value = report->derived[i];
        size_t len = row->title ? strlen(row->title) : 0;
        char number[16];
        if (!row->title || isnan(value))
            continue;
        put_number(value, number);
        bool is_percent = len > 2 && strcmp(row->title + len - 2, " %") == 0;
        buf_printf(text, "%s %.*s %s%s", n_put++ ? "," : ";", (int)(is_percent ? len - 2 : len), row->title, number,
                   is_percent ? " %" : " cycles");
    }
}

void hardware_put_summary(const struct report *report, const struct export_job *job, struct buf *out)
{
    struct buf text = {0};
    if (!report->is_hardware)
        return;
    put_levels(report, &text);
    text_labelled(out, job, "accesses", text.data ? text.data : "");
    buf_fini(&text);
    if (report->all.remote_cycles > 0 && report->all.work > 0) {
        buf_printf(&text, "latency of accesses to other NUMA nodes: %.3g cycles per %s",
                   report->all.remote_cycles / report->all.work,
                   report->is_work_counted ? "instruction (lpi_NUMA)"
                                           : "load (lpi_NUMA, per instruction, needs -e instructions besides)");
        text_labelled(out, job, "remote", text.data ? text.data : "");
    }
    buf_fini(&text);
    text_labelled(out, job, "columns",
                  "mean, p95: latency in core cycles; L1 % of the loads, L2 % of those that missed L1, LLC % of those "
                  "that missed L2; lcl %, rmt %: of those that missed it, from this and from other NUMA nodes");
}

void hardware_put_head(const struct export_job *job, struct buf *out)
{
    const struct layout layout = layout_of(job);
    buf_append(out, "\n", 1);
    text_style(out, job, TEXT_BOLD);
    buf_printf(out, "  share %*s", (int)layout.bar + 2, "");
    text_cell(out, job, "variable", layout.name + 1, false);
    text_cell(out, job, "class", CLASS_WIDTH, false);
    for (size_t i = 0; metrics_row(i); i++)
        if (metrics_row(i)->title)
            text_cell(out, job, metrics_row(i)->title, layout.cell, true);
    text_style(out, job, TEXT_PLAIN);
    buf_append(out, "\n", 1);
}

/* Size and origin, in a line below the numbers. */
static void put_origin(const struct export_job *job, const struct report_row *row, size_t indent, struct buf *out)
{
    struct buf text = {0};
    char size[16];
    text_size(row->size_bytes, size);
    if (row->size_bytes)
        buf_printf(&text, "%s", size);
    if (row->n_blocks > 1)
        buf_printf(&text, " in %llu blocks", (unsigned long long)row->n_blocks);
    if (*row->site && strcmp(row->site, row->name) != 0)
        buf_printf(&text, "%s%s", text.len_bytes ? " from " : "from ", row->site);
    if (text.len_bytes) {
        buf_printf(out, "%*s", (int)indent, "");
        text_cut(out, job, text.data, job->columns - indent);
        buf_append(out, "\n", 1);
    }
    buf_fini(&text);
}

void hardware_put_row(const struct export_job *job, const struct report_row *row, struct buf *out)
{
    const struct layout layout = layout_of(job);
    buf_printf(out, "%5.1f %% ", row->share);
    text_bar(out, job, row->share, layout.bar);
    buf_printf(out, "  ");
    text_style(out, job, TEXT_BOLD);
    text_cell(out, job, fields_short_name(row->name, layout.name), layout.name, false);
    text_style(out, job, TEXT_PLAIN);
    buf_append(out, " ", 1);
    text_cell(out, job, row->class, CLASS_WIDTH, false);
    for (size_t i = 0; metrics_row(i); i++) {
        char number[16];
        if (!metrics_row(i)->title)
            continue;
        put_number(row->derived ? row->derived[i] : (double)NAN, number);
        text_cell(out, job, number, layout.cell, true);
    }
    buf_append(out, "\n", 1);
    put_origin(job, row, TEXT_LABEL_WIDTH + 8, out);
}
