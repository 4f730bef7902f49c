/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of where threads ran while they used data: CPUs, cores, packages or NUMA nodes with their samples, threads
 * and variables, for a terminal, as CSV and as JSON. */
#include "analysis/report/cpu-table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/code-table.h"
#include "answer/answer.h"
#include "export/text-cells.h"
#include "fmt/json.h"

#define HOST_WIDTH 9
#define PLACE_WIDTH 6 /* at least */
#define VARIABLES_SHOWN 3
#define VARIABLES_WIDTH 20 /* with less room they go into the next line ... */
#define INDENT 9           /* ... so far in */
#define VARIABLE_SHARE 1.0 /* percent of a row's samples, below which a variable is not named */

/* The columns that say where a row is, and which rows have them: a package may have several nodes, and a node several
 * packages. */
static const struct {
    const char *name, *title;
    bool is_of[CPU_BYS]; /* by enum cpu_by */
} columns[CPU_BYS] = {
    [CPU_BY_CPU] = {"cpu", "CPU", {[CPU_BY_CPU] = true}},
    [CPU_BY_CORE] = {"core", "core", {[CPU_BY_CPU] = true, [CPU_BY_CORE] = true}},
    [CPU_BY_PACKAGE] = {"package", "package", {[CPU_BY_CPU] = true, [CPU_BY_CORE] = true, [CPU_BY_PACKAGE] = true}},
    [CPU_BY_NODE] = {"node", "node", {[CPU_BY_CPU] = true, [CPU_BY_CORE] = true, [CPU_BY_NODE] = true}},
};

/* A number of samples of a variable or thread in a row. */
struct part {
    uint32_t index;
    uint64_t n_samples;
};

struct cpu_report {
    const struct export_job *job;
    struct report report;
    const struct report_row **row_of; /* [n_variables of the report] one of its rows, NULL: none */
    struct cpu_table table;
    struct part *parts; /* [n_parts] of the present row, most samples first */
    size_t n_parts;
    uint32_t *rows; /* [n_rows] those that are shown, in the order of the table */
    size_t n_rows;
};

static bool has_column(const struct cpu_report *cpus, size_t column)
{
    return columns[column].is_of[cpus->table.by];
}

static uint32_t place_in(const struct cpu_row *row, size_t column)
{
    const uint32_t places[CPU_BYS] = {row->at.cpu, row->at.core, row->at.package, row->at.node};
    return places[column];
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100 * (double)part / (double)whole : 0;
}

static void cpus_fini(struct cpu_report *cpus)
{
    report_fini(&cpus->report);
    cpu_table_fini(&cpus->table);
    free(cpus->row_of);
    free(cpus->parts);
    free(cpus->rows);
}

static int compare_by_samples(const void *a, const void *b, void *context)
{
    const struct cpu_row *rows = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (rows[x].n_samples != rows[y].n_samples)
        return rows[x].n_samples > rows[y].n_samples ? -1 : 1;
    return x < y ? -1 : x > y;
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Chooses the rows with the most samples, as many as are wanted; they stay in their order. */
static bool choose_rows(struct cpu_report *cpus)
{
    struct cpu_table *table = &cpus->table;
    const struct export_job *job = cpus->job;
    cpus->rows = calloc(table->n_rows + 1, sizeof *cpus->rows);
    for (uint32_t i = 0; cpus->rows && i < table->n_rows; i++)
        if (percent(table->rows[i].n_samples, table->n_samples) >= job->least)
            cpus->rows[cpus->n_rows++] = i;
    if (!cpus->rows || job->top == 0 || cpus->n_rows <= job->top)
        return cpus->rows != NULL;
    qsort_r(cpus->rows, cpus->n_rows, sizeof *cpus->rows, compare_by_samples, table->rows);
    cpus->n_rows = job->top;
    qsort(cpus->rows, cpus->n_rows, sizeof *cpus->rows, compare_numbers);
    return true;
}

static int cpus_make(struct cpu_report *cpus, const struct export_job *job, struct error *err)
{
    static const enum cpu_by by[SPLIT_BYS] = {
        [SPLIT_CORE] = CPU_BY_CORE, [SPLIT_PACKAGE] = CPU_BY_PACKAGE, [SPLIT_NODE] = CPU_BY_NODE};
    *cpus = (struct cpu_report){.job = job};
    int code = report_make(job->model, job->metric, true, job->with_paths, &cpus->report, err);
    if (code != 0)
        return code;
    code = cpu_table_make(&cpus->report, by[job->by], job->subject, &cpus->table, err);
    size_t n = cpus->report.n_variables > job->model->n_threads ? cpus->report.n_variables : job->model->n_threads;
    cpus->row_of = calloc(cpus->report.n_variables + 1, sizeof *cpus->row_of);
    cpus->parts = calloc(n + 1, sizeof *cpus->parts);
    if (code == 0 && (!cpus->row_of || !cpus->parts || !choose_rows(cpus)))
        code = error_memory(err);
    for (size_t i = 0; code == 0 && i < cpus->report.n_rows; i++) {
        const struct report_row *row = &cpus->report.rows[i];
        if (row->variable && !row->part)
            cpus->row_of[row->variable - cpus->report.variables] = row;
    }
    if (code != 0)
        cpus_fini(cpus);
    return code;
}

static int compare_parts(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    if (x->n_samples != y->n_samples)
        return x->n_samples > y->n_samples ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static int compare_indexes(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Makes the parts of a row, by variable or by thread. False when out of memory. */
static bool make_parts(struct cpu_report *cpus, size_t row, bool by_thread)
{
    const struct cpu_table *table = &cpus->table;
    size_t first = table->first[row], n = table->first[row + 1] - first, n_parts = 0;
    struct part *all = calloc(n + 1, sizeof *all);
    for (size_t i = 0; all && i < n; i++) {
        const struct cpu_cell *cell = &table->cells[first + i];
        all[i] = (struct part){by_thread ? cell->thread : cell->variable, cell->n_samples};
    }
    if (all && n)
        qsort(all, n, sizeof *all, compare_indexes);
    for (size_t i = 0; all && i < n; i++) {
        if (n_parts && cpus->parts[n_parts - 1].index == all[i].index)
            cpus->parts[n_parts - 1].n_samples += all[i].n_samples;
        else
            cpus->parts[n_parts++] = all[i];
    }
    cpus->n_parts = n_parts;
    if (n_parts)
        qsort(cpus->parts, n_parts, sizeof *cpus->parts, compare_parts);
    bool ok = all != NULL;
    free(all);
    return ok;
}

static const char *variable_name(const struct cpu_report *cpus, uint32_t variable)
{
    return model_variable_name(cpus->job->model, &cpus->report.variables[variable]);
}

static const char *variable_class(const struct cpu_report *cpus, uint32_t variable)
{
    return model_class_name(cpus->report.variables[variable].class);
}

static const char *variable_site(const struct cpu_report *cpus, uint32_t variable)
{
    return cpus->row_of[variable] ? cpus->row_of[variable]->site : "";
}

/* --- text --- */

static const char *const words_of[CPU_BYS] = {"CPU", "core", "package", "NUMA node"};

static int place_width(const char *title)
{
    size_t width = strlen(title) + 2;
    return width > PLACE_WIDTH ? (int)width : PLACE_WIDTH;
}

static void put_head(const struct cpu_report *cpus, struct buf *out)
{
    struct buf text = {0};
    text_program(out, cpus->job);
    buf_printf(&text, "%llu of %s at data, by %s of the threads", (unsigned long long)cpus->table.n_samples,
               cpus->job->model->metrics[cpus->job->metric].name, words_of[cpus->table.by]);
    if (cpus->job->subject)
        buf_printf(&text, ", only those at %s", cpus->job->subject);
    text_labelled(out, cpus->job, "samples", text.data ? text.data : "");
    buf_fini(&text);
}

static void put_titles(const struct cpu_report *cpus, struct buf *out)
{
    struct buf text = {0};
    buf_printf(&text, "  share ");
    if (cpus->table.hosts.n_strings > 1)
        buf_printf(&text, " %-*s", HOST_WIDTH - 1, "host");
    for (size_t i = 0; i < CPU_BYS; i++)
        if (has_column(cpus, i))
            buf_printf(&text, "%*s", place_width(columns[i].title), columns[i].title);
    buf_printf(&text, "%*s  variables", place_width("threads"), "threads");
    buf_append(out, "\n", 1);
    text_style(out, cpus->job, TEXT_BOLD);
    text_cut(out, cpus->job, text.data ? text.data : "", cpus->job->columns);
    text_style(out, cpus->job, TEXT_PLAIN);
    buf_append(out, "\n", 1);
    buf_fini(&text);
}

/* "a 80 %, b 15 %, 3 more" */
static void put_variables(const struct cpu_report *cpus, const struct cpu_row *row, struct buf *text)
{
    size_t n = 0;
    while (n < cpus->n_parts && n < VARIABLES_SHOWN &&
           (n == 0 || percent(cpus->parts[n].n_samples, row->n_samples) >= VARIABLE_SHARE)) {
        const struct part *part = &cpus->parts[n];
        buf_printf(text, "%s%s %.0f %%", n ? ", " : "", variable_name(cpus, part->index),
                   percent(part->n_samples, row->n_samples));
        n++;
    }
    if (n < cpus->n_parts)
        buf_printf(text, ", %zu more", cpus->n_parts - n);
}

static void put_row(const struct cpu_report *cpus, const struct cpu_row *row, struct buf *out)
{
    struct buf text = {0};
    char place[16];
    buf_printf(&text, "%5.1f %% ", percent(row->n_samples, cpus->table.n_samples));
    if (cpus->table.hosts.n_strings > 1) {
        buf_append(&text, " ", 1);
        text_cell(&text, cpus->job, cpus->table.hosts.strings[row->host], HOST_WIDTH - 1, false);
    }
    for (size_t i = 0; i < CPU_BYS; i++) {
        if (!has_column(cpus, i))
            continue;
        uint32_t number = place_in(row, i);
        (void)snprintf(place, sizeof place, "%u", number);
        buf_printf(&text, "%*s", place_width(columns[i].title), number == PLACE_UNKNOWN ? "?" : place);
    }
    buf_printf(&text, "%*zu  ", place_width("threads"), row->n_threads);
    size_t at = text_width(text.data ? text.data : "");
    buf_append(out, text.data ? text.data : "", text.len_bytes);
    buf_fini(&text);
    put_variables(cpus, row, &text);
    if (at + VARIABLES_WIDTH > cpus->job->columns) {
        at = INDENT;
        buf_printf(out, "\n%*s", INDENT, "");
    }
    text_wrapped(out, cpus->job, text.data ? text.data : "-", at, at);
    buf_fini(&text);
}

static int write_text(const struct export_job *job, struct buf *out, struct error *err)
{
    struct cpu_report cpus;
    int code = cpus_make(&cpus, job, err);
    bool ok = true;
    if (code != 0)
        return code;
    put_head(&cpus, out);
    put_titles(&cpus, out);
    for (size_t i = 0; ok && i < cpus.n_rows; i++) {
        ok = make_parts(&cpus, cpus.rows[i], false);
        if (ok)
            put_row(&cpus, &cpus.table.rows[cpus.rows[i]], out);
    }
    if (cpus.n_rows < cpus.table.n_rows)
        buf_printf(out, "         %zu more (--top 0 shows all)\n", cpus.table.n_rows - cpus.n_rows);
    cpus_fini(&cpus);
    return ok ? 0 : error_memory(err);
}

/* --- CSV: a row for each place, thread and variable --- */

static void put_csv_row(const struct cpu_report *cpus, const struct cpu_cell *cell, struct buf *out)
{
    const struct model *model = cpus->job->model;
    const struct cpu_row *row = &cpus->table.rows[cell->row];
    const struct thread *thread = &model->threads[cell->thread];
    const struct process *process = &model->processes[thread->process];
    csv_put_text(out, cpus->table.hosts.strings[row->host]);
    for (size_t i = 0; i < CPU_BYS; i++) {
        if (has_column(cpus, i) && place_in(row, i) != PLACE_UNKNOWN)
            buf_printf(out, ",%u", place_in(row, i));
        else if (has_column(cpus, i))
            buf_append(out, ",", 1);
    }
    if (model_has_ranks(model))
        buf_printf(out, ",%u", process->rank);
    buf_printf(out, ",%u,%u,", process->pid, thread->thread_id);
    csv_put_text(out, variable_name(cpus, cell->variable));
    buf_printf(out, ",%s,", variable_class(cpus, cell->variable));
    csv_put_text(out, variable_site(cpus, cell->variable));
    buf_printf(out, ",%llu,%.6f\n", (unsigned long long)cell->n_samples,
               percent(cell->n_samples, cpus->table.n_samples));
}

static int write_csv(const struct export_job *job, struct buf *out, struct error *err)
{
    struct cpu_report cpus;
    int code = cpus_make(&cpus, job, err);
    if (code != 0)
        return code;
    buf_printf(out, "host");
    for (size_t i = 0; i < CPU_BYS; i++)
        if (has_column(&cpus, i))
            buf_printf(out, ",%s", columns[i].name);
    buf_printf(out, "%s,process,thread,variable,class,alloc_site,samples,share\n",
               model_has_ranks(job->model) ? ",rank" : "");
    for (size_t i = 0; i < cpus.n_rows; i++)
        for (size_t k = cpus.table.first[cpus.rows[i]]; k < cpus.table.first[cpus.rows[i] + 1]; k++)
            put_csv_row(&cpus, &cpus.table.cells[k], out);
    cpus_fini(&cpus);
    return 0;
}

/* --- JSON --- */

static void put_json_threads(const struct cpu_report *cpus, struct buf *out)
{
    const struct model *model = cpus->job->model;
    buf_printf(out, ", \"threads\": [");
    for (size_t i = 0; i < cpus->n_parts; i++) {
        const struct thread *thread = &model->threads[cpus->parts[i].index];
        buf_printf(out, "%s{\"process\": %u", i ? ", " : "", model->processes[thread->process].pid);
        if (model_has_ranks(model))
            json_put_word_at(out, "rank", model->processes[thread->process].rank);
        json_put_word_at(out, "thread", thread->thread_id);
        json_put_word_at(out, "samples", cpus->parts[i].n_samples);
        buf_append(out, "}", 1);
    }
    buf_append(out, "]", 1);
}

static void put_json_variables(const struct cpu_report *cpus, struct buf *out)
{
    buf_printf(out, ", \"variables\": [");
    for (size_t i = 0; i < cpus->n_parts; i++) {
        uint32_t variable = cpus->parts[i].index;
        buf_printf(out, i ? ", {\"variable\": " : "{\"variable\": ");
        json_put_text(out, variable_name(cpus, variable));
        json_put_text_at(out, "class", variable_class(cpus, variable));
        json_put_text_at(out, "alloc_site", variable_site(cpus, variable));
        json_put_word_at(out, "samples", cpus->parts[i].n_samples);
        buf_append(out, "}", 1);
    }
    buf_append(out, "]", 1);
}

static bool put_json_row(struct cpu_report *cpus, uint32_t index, struct buf *out)
{
    const struct cpu_row *row = &cpus->table.rows[index];
    buf_printf(out, "{\"host\": ");
    json_put_text(out, cpus->table.hosts.strings[row->host]);
    for (size_t i = 0; i < CPU_BYS; i++) {
        if (has_column(cpus, i) && place_in(row, i) != PLACE_UNKNOWN)
            json_put_word_at(out, columns[i].name, place_in(row, i));
        else if (has_column(cpus, i))
            json_put_text_at(out, columns[i].name, NULL);
    }
    json_put_word_at(out, "samples", row->n_samples);
    json_put_double_at(out, "share", percent(row->n_samples, cpus->table.n_samples));
    bool ok = make_parts(cpus, index, true);
    if (ok)
        put_json_threads(cpus, out);
    ok = ok && make_parts(cpus, index, false);
    if (ok)
        put_json_variables(cpus, out);
    buf_append(out, "}", 1);
    return ok;
}

static int write_json(const struct export_job *job, struct buf *out, struct error *err)
{
    struct cpu_report cpus;
    int code = cpus_make(&cpus, job, err);
    bool ok = true;
    if (code != 0)
        return code;
    buf_printf(out, "{\"program\": ");
    json_put_text(out, job->model->program);
    json_put_text_at(out, "metric", job->model->metrics[job->metric].name);
    json_put_text_at(out, "by", columns[cpus.table.by].name);
    json_put_text_at(out, "variable", job->subject);
    json_put_word_at(out, "samples", cpus.table.n_samples);
    buf_printf(out, ",\n\"rows\": [");
    for (size_t i = 0; ok && i < cpus.n_rows; i++) {
        buf_printf(out, i ? ",\n" : "\n");
        ok = put_json_row(&cpus, cpus.rows[i], out);
    }
    buf_printf(out, "]}\n");
    cpus_fini(&cpus);
    return ok ? 0 : error_memory(err);
}

static const struct ask_note notes[] = {
    {ASK_BY, "A row for each CPU (the default), core, package or node."},
    {0, NULL},
};

const struct report_kind answer_cpus = {
    .name = "cpus",
    .operands = "DB",
    .summary = "where threads ran while they used data",
    .manual =
        "cpus prints where threads ran while they used data: for each CPU, core, package or NUMA node of each host "
        "the samples at data that were taken there, by how many threads, and at which variables. This is where "
        "the threads were, not where the memory is. CPUs and cores without samples are left out. Cores and "
        "packages are numbered over the whole host, as by lscpu. CSV has a row for each place, thread and "
        "variable.",
    .example = "cpus --by node --variable grid hpctoolkit-app-database",
    .options = ASK_ROWS | ASK(PATHS) | ASK(BY) | ASK(VARIABLE),
    .options_by = ASK_ROWS | ASK(PATHS) | ASK(BY) | ASK(VARIABLE),
    .by = BY_PLACE,
    .notes = notes,
    .forms = {.text = write_text, .csv = write_csv, .json = write_json},
};
