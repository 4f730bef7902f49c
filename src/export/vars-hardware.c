/* SPDX-License-Identifier: BSD-3-Clause */
/* What hardware told of all accesses together. */
#include "export/vars-hardware.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "export/text-cells.h"

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
        if (!row->title || isnan(value))
            continue;
        bool is_percent = len > 2 && strcmp(row->title + len - 2, " %") == 0;
        buf_printf(text, "%s %.*s %s", n_put++ ? "," : ";", (int)(is_percent ? len - 2 : len), row->title,
                   metrics_is_beyond(row, value) ? "> " : "");
        text_number(text, value);
        buf_printf(text, is_percent ? " %%" : " cycles");
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
}

void hardware_put_legend(const struct report *report, const struct export_job *job, struct buf *out)
{
    if (report->is_hardware)
        text_labelled(out, job, "columns",
                      "mean, p95: latency in core cycles; L1 % of the loads, L2 % of those that missed L1, LLC % of "
                      "those that missed L2; lcl %, rmt %: of those that missed it, from this and from other NUMA "
                      "nodes");
}
