/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of variables for a terminal of 100 columns: what was measured and how well, then two lines a variable. */
#include <stdio.h>
#include <string.h>

#include "analysis/regions.h"
#include "export/exporter-list.h"
#include "export/skid-text.h"
#include "export/text-cells.h"
#include "export/vars-hardware.h"
#include "fmt/leak-columns.h"

#define REGIONS_SHOWN 8
#define REGION_WIDTH 40

#define PROGRAMS_SHOWN 8

/* The programs of the processes, when they are several. */
static void put_programs(const struct model *model, struct buf *text)
{
    struct strtab names = {0};
    for (size_t i = 0; i < model->n_processes; i++)
        (void)strtab_intern(&names, model->processes[i].exe);
    for (size_t i = 0; names.n_strings > 1 && i < names.n_strings && i < PROGRAMS_SHOWN; i++)
        buf_printf(text, "%s%s", i ? ", " : " (", names.strings[i]);
    if (names.n_strings > PROGRAMS_SHOWN)
        buf_printf(text, " and %zu other programs", names.n_strings - PROGRAMS_SHOWN);
    buf_printf(text, "%s", names.n_strings > 1 ? ")" : "");
    strtab_fini(&names);
}

/* What 100 % is: which part of the CPU time the samples stand for. */
static void put_times(const struct report *report, const struct export_job *job, struct buf *out)
{
    double cpu_s = report->user_s + report->system_s;
    struct buf text = {0};
    if (report->sampled_s <= 0 || cpu_s <= 0)
        return;
    buf_printf(&text, "the samples stand for %.2f s, %.0f %% of the CPU time", report->sampled_s,
               100 * report->sampled_s / cpu_s);
    if (report->is_user_only)
        buf_printf(&text,
                   ": they are taken in user code only (%.2f s); time in the kernel (%.2f s, %.0f %%) is no part of "
                   "the shares",
                   report->user_s, report->system_s, 100 * report->system_s / cpu_s);
    text_labelled(out, job, "time", text.data);
    buf_fini(&text);
}

static void put_program(const struct report *report, const struct export_job *job, struct buf *out)
{
    const struct model *model = job->model;
    struct buf text = {0};
    buf_printf(&text, "%s", model->command ? model->command : model->program ? model->program : "?");
    text_labelled(out, job, "program", text.data);
    buf_fini(&text);
    if (model->runs.n_strings > 1)
        buf_printf(&text, "%zu runs, ", model->runs.n_strings);
    buf_printf(&text, "%zu process%s", model->n_processes, model->n_processes == 1 ? "" : "es");
    put_programs(model, &text);
    buf_printf(&text, ", %zu thread%s", model->n_threads, model->n_threads == 1 ? "" : "s");
    if (model->cpu_time_ns)
        buf_printf(&text, ", %.2f s of CPU time", (double)model->cpu_time_ns / 1e9);
    if (model->user_ns || model->system_ns)
        buf_printf(&text, " (%.2f s user, %.2f s system)", (double)model->user_ns / 1e9,
                   (double)model->system_ns / 1e9);
    if (model->topology)
        buf_printf(&text, "; %s", model->topology);
    text_labelled(out, job, "run", text.data);
    buf_fini(&text);
    if (model->plan)
        text_labelled(out, job, "source", model->plan);
    if (!strncmp(model->metrics[report->metric].name, LEAK_NAMES_PREFIX, strlen(LEAK_NAMES_PREFIX))) {
        buf_printf(&text, "%.0f of %s", report->total_value, model->metrics[report->metric].name);
        text_labelled(out, job, "bytes", text.data);
        buf_fini(&text);
        return;
    }
    buf_printf(&text, "%.0f %s %s: ", report->total_samples,
               metrics_is_access(model->metrics[report->metric].name) ? "with" : "of",
               model->metrics[report->metric].name);
    if (report->has_too_few)
        buf_printf(&text, "too few for shares, which take at least %d", REPORT_SAMPLES_MIN);
    else
        buf_printf(&text, "address found for %.1f %%, variable named for %.1f %%", report->recovered, report->named);
    text_labelled(out, job, "samples", text.data);
    buf_fini(&text);
    put_times(report, job, out);
}

/* Shares by class, so that many small variables are seen as a whole. */
static void put_classes(const struct report *report, const struct export_job *job, struct buf *out)
{
    double shares[CLASS_COUNT] = {0};
    struct buf text = {0};
    for (size_t i = 0; i < report->n_rows && !report->has_too_few; i++) {
        const struct report_row *row = &report->rows[i];
        enum variable_class other = row->is_waiting ? CLASS_WAITING : CLASS_UNATTRIBUTED;
        shares[row->variable ? row->variable->class : row->fate ? CLASS_DROPPED : other] += row->share;
    }
    for (int i = 0; i < CLASS_COUNT; i++)
        if (shares[i] >= 0.05)
            buf_printf(&text, "%s%s %.1f %%", text.len_bytes ? ", " : "", model_class_name((enum variable_class)i),
                       shares[i]);
    if (text.len_bytes)
        text_labelled(out, job, "classes", text.data);
    buf_fini(&text);
}

/* Where the program tells of regions: how much of the metric each has. */
static void put_regions(const struct report *report, const struct export_job *job, struct buf *out)
{
    struct region_report regions;
    struct error err;
    struct buf text = {0};
    if (regions_make(report, &regions, &err) != 0)
        return;
    for (size_t i = 0; regions.names.n_strings > 1 && i < regions.n_regions && i < REGIONS_SHOWN; i++) {
        const char *name = regions.regions[i].name;
        if (regions.regions[i].share < 0.05)
            break;
        buf_printf(&text, "%s", i ? ", " : "");
        text_cut(&text, job, *name ? name : "outside", REGION_WIDTH);
        buf_printf(&text, " %.1f %%", regions.regions[i].share);
    }
    if (regions.n_regions > REGIONS_SHOWN)
        buf_printf(&text, ", %zu more (--by region)", regions.n_regions - REGIONS_SHOWN);
    if (text.len_bytes)
        text_labelled(out, job, "regions", text.data);
    buf_fini(&text);
    regions_fini(&regions);
}

static void put_fates(const struct report *report, const struct export_job *job, struct buf *out)
{
    struct buf text = {0};
    for (int i = 0; report->event && i < FATE_MAX; i++)
        if (report->event->fates[i])
            buf_printf(&text, "%s%llu %s", text.len_bytes ? ", " : "", (unsigned long long)report->event->fates[i],
                       fate_row(i)->name);
    hardware_put_counters(report, &text);
    if (text.len_bytes)
        text_labelled(out, job, "fates", text.data);
    buf_fini(&text);
}

static void put_notes(const struct export_job *job, struct buf *out)
{
    const struct model *model = job->model;
    struct buf skid = {0};
    if (model->skid)
        skid_text(&skid, model->skid);
    if (skid.len_bytes)
        text_labelled(out, job, "skid test", skid.data);
    buf_fini(&skid);
    if (model->n_killed) {
        char text[128];
        (void)snprintf(text, sizeof text, "%u of %zu threads belong to processes that did not end by themselves.",
                       model->n_killed, model->n_threads);
        text_labelled(out, job, "note", text);
    }
    for (size_t i = 0; i < model->n_notes; i++)
        text_labelled(out, job, "note", model->notes[i]);
}

static void put_share(const struct export_job *job, double share, struct buf *out)
{
    buf_printf(out, "%5.1f %% ", share);
    text_bar(out, job, share, 8);
    buf_printf(out, "  ");
}

/* Time in the kernel stands above the table, as a share of another whole, with a line that says where the table's
 * shares begin. */
static void put_kernel(const struct report *report, const struct export_job *job, struct buf *out)
{
    double cpu_s = report->user_s + report->system_s;
    if (!report->is_user_only || cpu_s <= 0 || report->system_s < 0.005 * cpu_s)
        return;
    put_share(job, 100 * report->system_s / cpu_s, out);
    text_style(out, job, TEXT_BOLD);
    text_cell(out, job, "<kernel>", 22, false);
    text_style(out, job, TEXT_PLAIN);
    buf_printf(out, " of the CPU time: %.2f s in system calls, page faults and the like\n", report->system_s);
    put_share(job, 100 * report->user_s / cpu_s, out);
    text_cell(out, job, "user code", 22, false);
    buf_printf(out, " of the CPU time: %.2f s, of whose samples the following rows are shares\n\n", report->user_s);
}

static void put_head(const struct report *report, const struct export_job *job, struct buf *out)
{
    if (report->is_hardware) {
        hardware_put_head(job, out);
        return;
    }
    buf_append(out, "\n", 1);
    text_style(out, job, TEXT_BOLD);
    buf_printf(out, "%s           variable               class             size  blocks  comes from",
               report->has_too_few ? "samples" : "  share");
    text_style(out, job, TEXT_PLAIN);
    buf_append(out, "\n", 1);
    put_kernel(report, job, out);
}

/* Samples by NUMA node, those with at least half a percent. */
static void put_places(const struct report *report, const struct report_row *row, struct buf *text)
{
    uint64_t total = 0;
    for (uint32_t i = 0; row->places && i < report->model->n_numa_nodes; i++)
        total += row->places[i];
    if (total == 0)
        return;
    buf_printf(text, "NUMA node");
    for (uint32_t i = 0; i < report->model->n_numa_nodes; i++) {
        double share = 100 * (double)row->places[i] / (double)total;
        if (share >= 0.5)
            buf_printf(text, " %u: %.0f %%", i, share);
    }
    buf_printf(text, "   ");
}

/* " in loop 77-79", with the file where that is another one than the line's; not again for the next line in it. */
static void put_loop(const struct report *report, const struct report_row *row, size_t i, struct buf *text)
{
    const struct report_line *line = &row->lines[i];
    bool is_told = i > 0 && line[-1].loop.first == line->loop.first && line[-1].loop.file == line->loop.file;
    if (!line->loop.first || is_told)
        return;
    buf_printf(text, " in loop ");
    if (line->loop.file != line->file)
        buf_printf(text, "%s:", text_base(model_text(report->model, line->loop.file)));
    text_lines(text, line->loop.first, line->loop.last);
}

static void put_access(const struct report *report, const struct export_job *job, const struct report_row *row,
                       struct buf *out)
{
    struct buf text = {0};
    put_places(report, row, &text);
    for (size_t i = 0; i < row->n_lines && i < 3 && row->lines[i].value >= 0.005 * row->value; i++) {
        const struct report_line *line = &row->lines[i];
        const char *function = model_text(report->model, line->function);
        const char *file = text_base(model_text(report->model, line->file));
        buf_printf(&text, "%s", i ? ", " : "");
        if (!report->has_too_few)
            buf_printf(&text, "%.0f %% ", 100 * line->value / row->value);
        text_function(&text, function);
        if (line->line)
            buf_printf(&text, " %s:%u", file, line->line);
        put_loop(report, row, i, &text);
    }
    if (text.len_bytes) {
        buf_printf(out, "%*s", TEXT_LABEL_WIDTH + 8, "");
        text_style(out, job, TEXT_DIM);
        text_cut(out, job, text.data, job->columns - TEXT_LABEL_WIDTH - 8);
        text_style(out, job, TEXT_PLAIN);
        buf_append(out, "\n", 1);
    }
    buf_fini(&text);
}

/* Where the whole site does not fit, its file and line say more than the beginning of the function's name. */
static void put_site(const struct export_job *job, const char *site, size_t width, struct buf *out)
{
    char place[256];
    const char *open = strrchr(site, '(');
    size_t len = open ? strlen(open + 1) : 0;
    bool has_place = len > 1 && len < sizeof place && open > site && open[-1] == ' ' && open[len] == ')';
    if (has_place)
        (void)snprintf(place, sizeof place, "%.*s", (int)(len - 1), open + 1);
    text_cut(out, job, has_place && strlen(site) > width ? place : site, width);
}

static void put_row(const struct report *report, const struct export_job *job, const struct report_row *row,
                    struct buf *out)
{
    if (report->is_hardware) {
        hardware_put_row(job, row, out);
        put_access(report, job, row, out);
        fields_put_row(job, row, out);
        return;
    }
    char size[16], blocks[24];
    text_size(row->size_bytes, size);
    (void)snprintf(blocks, sizeof blocks, "%llu", (unsigned long long)row->n_blocks);
    if (report->has_too_few)
        buf_printf(out, "%7.0f%*s", row->samples, 11, "");
    else
        put_share(job, row->share, out);
    text_style(out, job, TEXT_BOLD);
    text_cell(out, job, fields_short_name(row->name, 22), 22, false);
    text_style(out, job, TEXT_PLAIN);
    buf_append(out, " ", 1);
    text_cell(out, job, row->class, 12, false);
    text_cell(out, job, size, 10, true);
    text_cell(out, job, blocks[0] == '0' ? "-" : blocks, 8, true);
    buf_printf(out, "  ");
    if (strcmp(row->site, row->name) != 0)
        put_site(job, row->site, job->columns - 73, out);
    while (out->len_bytes && out->data[out->len_bytes - 1] == ' ')
        out->data[--out->len_bytes] = 0;
    buf_append(out, "\n", 1);
    put_access(report, job, row, out);
    fields_put_row(job, row, out);
}

static int write_text(const struct export_job *job, struct buf *out, struct error *err)
{
    struct report report;
    int code = report_make(job->model, job->metric, job->with_unused, job->with_paths, &report, err);
    if (code != 0)
        return code;
    put_program(&report, job, out);
    put_classes(&report, job, out);
    put_regions(&report, job, out);
    put_fates(&report, job, out);
    fields_put_summary(&report, job, out);
    put_notes(job, out);
    hardware_put_summary(&report, job, out);
    put_head(&report, job, out);
    double rest = 0;
    size_t n = job->top ? job->top : report.n_rows;
    for (size_t i = 0; i < report.n_rows; i++)
        if (i < n)
            put_row(&report, job, &report.rows[i], out);
        else
            rest += report.rows[i].share;
    if (n < report.n_rows && report.has_too_few)
        buf_printf(out, "                  %zu more (--top 0 shows all)\n", report.n_rows - n);
    else if (n < report.n_rows)
        buf_printf(out, "%5.1f %%           %zu more (--top 0 shows all)\n", rest, report.n_rows - n);
    report_fini(&report);
    return 0;
}

const struct exporter export_vars_text = {"vars", "text", write_text};
