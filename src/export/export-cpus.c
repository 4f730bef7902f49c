/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of where threads ran while they used data: CPUs, cores, packages or NUMA nodes with their samples, threads
 * and variables, for a terminal, as CSV and as JSON. */
#include "analysis/report/cpu-table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/code-table.h"
#include "export/prepared.h"
#include "export/text-cells.h"
#include "table/table.h"

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
    struct prepared prepared;
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

static void cpus_fini(struct cpu_report *cpus)
{
    prepared_fini(&cpus->prepared);
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
        if (job_shows(job, percent_of_counts(table->rows[i].n_samples, table->n_samples), 0))
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
    int code = prepared_make(job, PREPARED_UNUSED, &cpus->prepared, err);
    if (code != 0)
        return code;
    code = cpu_table_make(&cpus->prepared.report, by[job->by], job->subject, &cpus->table, err);
    size_t n = cpus->prepared.report.n_variables > job->model->n_threads ? cpus->prepared.report.n_variables
                                                                         : job->model->n_threads;
    cpus->row_of = calloc(cpus->prepared.report.n_variables + 1, sizeof *cpus->row_of);
    cpus->parts = calloc(n + 1, sizeof *cpus->parts);
    if (code == 0 && (!cpus->row_of || !cpus->parts || !choose_rows(cpus)))
        code = error_memory(err);
    for (size_t i = 0; code == 0 && i < cpus->prepared.report.n_rows; i++) {
        const struct report_row *row = &cpus->prepared.report.rows[i];
        if (row->variable && !row->part)
            cpus->row_of[row->variable - cpus->prepared.report.variables] = row;
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
    return model_variable_name(cpus->job->model, &cpus->prepared.report.variables[variable]);
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
           (n == 0 || percent_of_counts(cpus->parts[n].n_samples, row->n_samples) >= VARIABLE_SHARE)) {
        const struct part *part = &cpus->parts[n];
        buf_printf(text, "%s%s %.0f %%", n ? ", " : "", variable_name(cpus, part->index),
                   percent_of_counts(part->n_samples, row->n_samples));
        n++;
    }
    if (n < cpus->n_parts)
        buf_printf(text, ", %zu more", cpus->n_parts - n);
}

static void put_row(const struct cpu_report *cpus, const struct cpu_row *row, struct buf *out)
{
    struct buf text = {0};
    char place[16];
    buf_printf(&text, "%5.1f %% ", percent_of_counts(row->n_samples, cpus->table.n_samples));
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

/* --- CSV and JSON --- */

static const struct column head_columns[] = {
    {"by", NULL, CELL_TEXT},
    {"variable", NULL, CELL_TEXT},
    {"samples", NULL, CELL_WORD},
};

static const struct column thread_columns[] = {
    THREAD_COLUMNS,
    {"samples", NULL, CELL_WORD},
};

static const struct column variable_columns[] = {
    VARIABLE_COLUMNS,
    {"samples", NULL, CELL_WORD},
};

/* Of a thread at a variable; without ranks from the second on. */
static const struct column cell_columns[] = {
    {"rank", NULL, CELL_COUNT},
    {"process", NULL, CELL_COUNT},
    {"thread", NULL, CELL_COUNT},
    {"thread_name", NULL, CELL_TEXT},
    VARIABLE_COLUMNS,
    {"samples", NULL, CELL_WORD},
    {"share", NULL, CELL_PERCENT | COLUMN_6_DIGITS},
};

/* Behind those of the place. */
static const struct column row_columns[] = {
    {"samples", NULL, CELL_WORD | COLUMN_NO_CSV},
    {"share", NULL, CELL_PERCENT | COLUMN_NO_CSV},
    {"cells", NULL, CELL_TABLE | COLUMN_JOINED | COLUMN_NO_EMPTY | COLUMN_NO_JSON},
    {"threads", NULL, CELL_TABLE},
    {"variables", NULL, CELL_TABLE},
};

static void add_columns(const struct cpu_report *cpus, struct column_list *list)
{
    column_list_add(list, &(struct column){"host", NULL, CELL_TEXT}, 1);
    for (size_t i = 0; i < CPU_BYS; i++)
        if (has_column(cpus, i))
            column_list_add(list, &(struct column){columns[i].name, NULL, CELL_COUNT}, 1);
    column_list_add(list, COLUMNS(row_columns));
}

static void fill_variable(struct table *table, const struct cpu_report *cpus, uint32_t variable)
{
    table_put_variable(table, variable_name(cpus, variable),
                       model_class_name(cpus->prepared.report.variables[variable].class),
                       cpus->row_of[variable] ? cpus->row_of[variable]->site : NULL);
}

static void fill_cells(struct table *table, const struct cpu_report *cpus, uint32_t row)
{
    const struct model *model = cpus->job->model;
    for (size_t i = cpus->table.first[row]; i < cpus->table.first[row + 1]; i++) {
        const struct cpu_cell *cell = &cpus->table.cells[i];
        const struct thread *thread = &model->threads[cell->thread];
        if (model_has_ranks(model))
            table_put_count(table, model->processes[thread->process].rank);
        table_put_count(table, model->processes[thread->process].pid);
        table_put_count(table, thread->thread_id);
        table_put_name(table, model_text(model, thread->name));
        fill_variable(table, cpus, cell->variable);
        table_put_word(table, cell->n_samples);
        table_put_number(table, percent_of_counts(cell->n_samples, cpus->table.n_samples));
    }
}

/* The parts of a row, by thread or by variable. */
static void fill_parts(struct table *table, struct cpu_report *cpus, uint32_t row, bool by_thread)
{
    if (!make_parts(cpus, row, by_thread))
        table_fail(table);
    for (size_t i = 0; i < cpus->n_parts; i++) {
        uint32_t index = cpus->parts[i].index;
        if (by_thread)
            thread_put_cells(cpus->job->model, index, table);
        else
            fill_variable(table, cpus, index);
        table_put_word(table, cpus->parts[i].n_samples);
    }
}

/* In CSV a row for each place, thread and variable. */
static void fill_row(struct table *table, struct cpu_report *cpus, uint32_t index)
{
    const struct cpu_row *row = &cpus->table.rows[index];
    table_put_text(table, cpus->table.hosts.strings[row->host]);
    for (size_t i = 0; i < CPU_BYS; i++)
        if (has_column(cpus, i))
            table_put_if(table, place_in(row, i) != PLACE_UNKNOWN, place_in(row, i));
    table_put_word(table, row->n_samples);
    table_put_number(table, percent_of_counts(row->n_samples, cpus->table.n_samples));
    fill_cells(table_put_table(table, table->joined, table->n_joined), cpus, index);
    fill_parts(table_put_table(table, COLUMNS(thread_columns)), cpus, index, true);
    fill_parts(table_put_table(table, COLUMNS(variable_columns)), cpus, index, false);
}

static int make_answer(const struct export_job *job, struct answer *answer, struct error *err)
{
    size_t first = model_has_ranks(job->model) ? 0 : 1;
    struct cpu_report cpus;
    int code = cpus_make(&cpus, job, err);
    if (code != 0)
        return code;
    add_columns(&cpus, &answer->columns);
    answer_begin(answer, "rows", NULL, 0);
    answer_join(answer, cell_columns + first, sizeof cell_columns / sizeof *cell_columns - first);
    answer->rows.n_more = cpus.table.n_rows - cpus.n_rows;
    struct table *head = answer_set_head(answer, COLUMNS(head_columns));
    table_put_text(head, columns[cpus.table.by].name);
    table_put_text(head, job->subject);
    table_put_word(head, cpus.table.n_samples);
    for (size_t i = 0; i < cpus.n_rows; i++)
        fill_row(&answer->rows, &cpus, cpus.rows[i]);
    cpus_fini(&cpus);
    return 0;
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
    .about = about_variable,
    .options_by = ASK_ROWS | ASK(PATHS) | ASK(BY) | ASK(VARIABLE),
    .by = BY_PLACE,
    .notes = notes,
    .forms = {.make = make_answer, .text = write_text},
};
