/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of variables as comma-separated values (RFC 4180) and as JSON. The first seven columns of CSV never change.
 * Without --fields both forms print one table, of which each leaves something to the other: JSON has lists where CSV
 * has a few words. */
#include <math.h>
#include <string.h>

#include "answer/item.h"
#include "export/prepared.h"
#include "export/text-cells.h"
#include "export/vars-table.h"
#include "table/table.h"

#define LINES_IN_CSV 3

/* --- columns --- */

/* Where columns stand in CSV whose place in JSON is another. */
enum csv_place {
    PLACE_SIZE = 1,
    PLACE_SAMPLES,
    PLACE_FILE,
    PLACE_FUNCTION,
    PLACE_BLOCKS,
    PLACE_LINES,
    PLACE_NODES,
    PLACE_TOUCHES,
    PLACE_CAUSES,
    PLACE_ASIDE,
    PLACE_FIRST_TOUCH_SHARE,
    PLACE_THREADS,
    PLACE_METRICS,
    PLACE_HARDWARE,
    PLACE_PATH
};

#define CAUSE_CELL (CELL_PERCENT | COLUMN_6_DIGITS | COLUMN_PLACE(PLACE_CAUSES))
#define COUNT_CELL (CELL_WORD | COLUMN_LEFT_OUT)
#define VALUE_CELL (CELL_NUMBER | COLUMN_ALL_DIGITS)

static const struct column first_columns[] = {
    VARIABLE_COLUMNS,
    {"samples", NULL, VALUE_CELL | COLUMN_PLACE(PLACE_SAMPLES)},
    {"share", NULL, CELL_PERCENT | COLUMN_6_DIGITS | COLUMN_PLACE(PLACE_SAMPLES)},
    {"value", NULL, VALUE_CELL | COLUMN_PLACE(PLACE_SAMPLES)},
};

/* Percent of all samples, in the rows and in the head. */
static const struct column cause_columns[] = {
    {"memory_share", NULL, CAUSE_CELL},
    {"memory_low", NULL, CAUSE_CELL},
    {"memory_high", NULL, CAUSE_CELL},
    {"execution_share", NULL, CAUSE_CELL},
    {"unverified_share", NULL, CAUSE_CELL},
    {"memory_least", NULL, CAUSE_CELL},
    {"memory_most", NULL, CAUSE_CELL},
    {"first_touch_share", NULL, CELL_PERCENT | COLUMN_6_DIGITS | COLUMN_PLACE(PLACE_FIRST_TOUCH_SHARE)},
};

static const struct column meaning_columns[] = {
    {"aside", NULL, CELL_TEXT | COLUMN_PLACE(PLACE_ASIDE)},
    {"meaning", NULL, CELL_TEXT | COLUMN_NO_CSV},
};

static const struct column variable_columns[] = {
    {"size_bytes", NULL, CELL_WORD | COLUMN_PLACE(PLACE_SIZE)},
    {"n_blocks", NULL, CELL_WORD | COLUMN_PLACE(PLACE_SIZE)},
    {"size_freed_bytes", NULL, COUNT_CELL | COLUMN_NO_CSV},
    {"n_blocks_freed", NULL, COUNT_CELL | COLUMN_NO_CSV},
    {"max_block_bytes", NULL, COUNT_CELL | COLUMN_PLACE(PLACE_BLOCKS)},
    {"inexact_samples", NULL, COUNT_CELL | COLUMN_PLACE(PLACE_BLOCKS)},
    {"n_paths", NULL, COUNT_CELL | COLUMN_PLACE(PLACE_BLOCKS)},
    {"function", NULL, CELL_TEXT | COLUMN_LEFT_OUT | COLUMN_PLACE(PLACE_FUNCTION)},
    {"file", NULL, CELL_TEXT | COLUMN_LEFT_OUT | COLUMN_PLACE(PLACE_FILE)},
    {"line", NULL, COUNT_CELL | COLUMN_PLACE(PLACE_FILE)},
    {"module", NULL, CELL_TEXT | COLUMN_LEFT_OUT | COLUMN_PLACE(PLACE_FUNCTION)},
    {"top_lines", NULL, CELL_TEXT | COLUMN_NO_JSON | COLUMN_PLACE(PLACE_LINES)},
    {"top_loops", NULL, CELL_TEXT | COLUMN_NO_JSON | COLUMN_PLACE(PLACE_LINES)},
    {"node_samples", NULL, CELL_WORDS | COLUMN_LEFT_OUT},
    {"constructs", NULL, CELL_TABLE | COLUMN_LEFT_OUT},
};

static const struct column construct_columns[] = {{"name", NULL, CELL_TEXT}, {"value", NULL, CELL_NUMBER}};

static const struct column path_columns[] = {
    {"path", NULL, CELL_TEXT | COLUMN_NO_JSON | COLUMN_PLACE(PLACE_PATH)},
    {"path", NULL, CELL_TABLE},
};

static const struct column line_columns[] = {
    PLACE_COLUMNS,
    {"value", NULL, CELL_NUMBER},
    {"loop", NULL, CELL_OBJECT | COLUMN_MEMBERS(3)},
    {"file", NULL, CELL_TEXT},
    {"line", NULL, CELL_COUNT},
    {"end_line", NULL, CELL_COUNT},
};

static const struct column type_columns[] = {
    {"type", NULL, CELL_TEXT | COLUMN_NO_CSV},
    {"type_source", NULL, CELL_TEXT | COLUMN_NO_CSV},
    {"element_bytes", NULL, CELL_WORD | COLUMN_NO_CSV},
    {"advice", NULL, CELL_TEXT | COLUMN_NO_CSV},
    {"fields", NULL, CELL_TABLE},
};

static const struct column field_columns[] = {
    {"field", NULL, CELL_TEXT},      {"type", NULL, CELL_TEXT},      {"offset_bytes", NULL, CELL_COUNT},
    {"size_bytes", NULL, CELL_WORD}, {"samples", NULL, CELL_NUMBER}, {"share", NULL, CELL_PERCENT},
    {"typed", NULL, CELL_FLAG},
};

/* Statistics over threads or processes. */
static void add_statistics(struct column_list *list, const char *of)
{
    static const char *const keys[] = {"with_value", "mean", "min", "max", "stddev", "cov"};
    static const uint64_t kinds[] = {CELL_COUNT, VALUE_CELL, VALUE_CELL,
                                     VALUE_CELL, VALUE_CELL, CELL_NUMBER | COLUMN_6_DIGITS};
    column_list_make(list, of, NULL, CELL_OBJECT | COLUMN_LEFT_OUT | COLUMN_MEMBERS(7));
    column_list_make(list, "n", NULL, CELL_COUNT | COLUMN_NO_CSV);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct buf title = {0};
        buf_printf(&title, "%s_%s", of, keys[i]);
        column_list_make(list, keys[i], title.data, kinds[i] | COLUMN_CSV_TITLE | COLUMN_PLACE(PLACE_THREADS));
        list->failed |= title.failed;
        buf_fini(&title);
    }
}

static size_t count_derived(void)
{
    size_t n = 0;
    while (metrics_row(n))
        n++;
    return n;
}

/* What the hardware says: the derived metrics. */
static void add_hardware(struct column_list *list)
{
    column_list_make(list, "derived", NULL, CELL_OBJECT | COLUMN_MEMBERS(count_derived()));
    for (size_t i = 0; metrics_row(i); i++)
        column_list_make(list, metrics_row(i)->name, NULL,
                         CELL_NUMBER | COLUMN_6_DIGITS | COLUMN_PLACE(PLACE_HARDWARE));
}

/* A key of an object in JSON, and a column of its own in CSV: "samples:CYCLES". */
static void add_of_metric(struct column_list *list, const char *key, const char *metric)
{
    struct buf title = {0};
    buf_printf(&title, "%s:%s", key, metric);
    column_list_make(list, key, title.data, VALUE_CELL | COLUMN_CSV_TITLE | COLUMN_PLACE(PLACE_METRICS));
    list->failed |= title.failed;
    buf_fini(&title);
}

static void add_metrics(struct column_list *list, const struct model *model)
{
    size_t n = 0;
    for (size_t m = 0; m < model->n_metrics; m++)
        n += !model->metrics[m].hidden;
    column_list_make(list, "metrics", NULL, CELL_OBJECT | COLUMN_MEMBERS(3 * n));
    for (size_t m = 0; m < model->n_metrics; m++)
        if (!model->metrics[m].hidden) {
            column_list_make(list, model->metrics[m].name, NULL, CELL_OBJECT | COLUMN_MEMBERS(2));
            add_of_metric(list, "samples", model->metrics[m].name);
            add_of_metric(list, "value", model->metrics[m].name);
        }
}

static void add_columns(struct column_list *list, const struct export_job *job, const struct prepared *prepared)
{
    const struct report *report = &prepared->report;
    column_list_add(list, COLUMNS(first_columns));
    if (report->has_causes) {
        column_list_add(list, COLUMNS(cause_columns));
        column_list_add(list, COLUMNS(meaning_columns));
    }
    column_list_add(list, COLUMNS(variable_columns));
    for (uint32_t i = 0; i < job->model->n_numa_nodes; i++) {
        struct buf key = {0};
        buf_printf(&key, "node%u_samples", i);
        column_list_make(list, key.data ? key.data : "", NULL, CELL_WORD | COLUMN_NO_JSON | COLUMN_PLACE(PLACE_NODES));
        buf_fini(&key);
    }
    if (prepared->touches.is_measured) {
        column_list_make(list, "first_touch", NULL, CELL_TEXT | COLUMN_LEFT_OUT | COLUMN_PLACE(PLACE_TOUCHES));
        column_list_make(list, "touched_share", NULL,
                         CELL_PERCENT | COLUMN_6_DIGITS | COLUMN_LEFT_OUT | COLUMN_PLACE(PLACE_FIRST_TOUCH_SHARE));
    }
    if (report->has_hardware) {
        add_metrics(list, job->model);
        add_hardware(list);
    }
    if (job->with_paths)
        column_list_add(list, COLUMNS(path_columns));
    derived_add_columns(&prepared->derived, list);
    column_list_make(list, "lines", NULL, CELL_TABLE);
    if (report->has_fields)
        column_list_add(list, COLUMNS(type_columns));
    if (job->values) {
        add_statistics(list, "threads");
        add_statistics(list, "processes");
    }
    if (!job->with_paths) /* whose rows are parts of things */
        column_list_add(list, &(struct column)ITEM_COLUMN, 1);
}

/* --- rows --- */

/* Where too much is unverified, what is known to have waited for memory says nothing: it is as unknown as in text. */
static void fill_causes(const struct cause_sum *sum, struct table *table)
{
    table_put_number(table, report_is_memory_unknown(sum) ? (double)NAN : sum->memory);
    table_put_number(table, sum->memory_low);
    table_put_number(table, sum->memory_high);
    table_put_number(table, sum->execution);
    table_put_number(table, sum->unverified);
    table_put_number(table, sum->memory_least);
    table_put_number(table, sum->memory_most);
    table_put_number(table, sum->first_touch);
}

static void put_lines(const struct report *report, const struct report_row *row, struct table *table)
{
    struct buf text = {0};
    for (size_t i = 0; i < row->n_lines && i < LINES_IN_CSV; i++) {
        const struct report_line *line = &row->lines[i];
        buf_printf(&text, "%s%s:%u %.2f%%", i ? "; " : "", model_text(report->model, line->file), line->line,
                   100 * line->value / row->value);
    }
    table_put_made(table, &text);
}

static bool same_loop(const struct loop_lines *a, const struct loop_lines *b)
{
    return a->first == b->first && a->file == b->file;
}

/* The loops around the lines, ordered by their hottest lines, each with the share of all lines in it. */
static void put_loops(const struct report *report, const struct report_row *row, struct table *table)
{
    struct buf text = {0};
    size_t n = 0;
    for (size_t i = 0; i < row->n_lines && n < LINES_IN_CSV; i++) {
        const struct loop_lines *loop = &row->lines[i].loop;
        double value = 0;
        size_t before = 0;
        while (before < i && !same_loop(&row->lines[before].loop, loop))
            before++;
        if (!loop->first || before < i)
            continue;
        for (size_t k = i; k < row->n_lines; k++)
            value += same_loop(&row->lines[k].loop, loop) ? row->lines[k].value : 0;
        buf_printf(&text, "%s%s:", n++ ? "; " : "", model_text(report->model, loop->file));
        text_lines(&text, loop->first, loop->last);
        buf_printf(&text, " %.2f%%", 100 * value / row->value);
    }
    table_put_made(table, &text);
}

/* The first n of its lines. */
static void fill_lines(const struct report *report, const struct report_row *row, size_t n, struct table *table)
{
    const struct model *model = report->model;
    for (size_t i = 0; i < n; i++) {
        const struct report_line *line = &row->lines[i];
        table_put_place(table, model_text(model, line->function), model_text(model, line->file), line->line);
        table_put_number(table, line->value);
        if (!line->loop.first) {
            table_put_absents(table, 4);
            continue;
        }
        table_put_flag(table, true);
        table_put_borrowed(table, model_text(model, line->loop.file));
        table_put_count(table, line->loop.first);
        table_put_count(table, line->loop.last);
    }
}

static const char *not_empty(const char *text)
{
    return text && *text ? text : NULL;
}

static void fill_type(const struct report_row *row, struct table *table)
{
    table_put_borrowed(table, not_empty(row->type));
    table_put_borrowed(table, not_empty(row->type) ? row->type_source : NULL);
    table_put_word_if(table, row->element_bytes > 0, row->element_bytes);
    table_put_text(table, row->advice);
    struct table *fields = table_put_table(table, COLUMNS(field_columns));
    for (size_t i = 0; i < row->n_fields; i++) {
        const struct report_field *field = &row->fields[i];
        table_put_text(fields, field->name);
        table_put_borrowed(fields, not_empty(field->type));
        table_put_count(fields, (int64_t)field->offset_bytes);
        table_put_word(fields, field->size_bytes);
        table_put_number(fields, field->samples);
        table_put_number(fields, field->share);
        table_put_flag(fields, !(field->flags & FIELD_UNTYPED));
    }
}

static void fill_derived(const double *values, struct table *table)
{
    table_put_flag(table, true);
    for (size_t i = 0; metrics_row(i); i++)
        table_put_number(table, values ? values[i] : (double)NAN);
}

static void fill_hardware(const struct report *report, const struct report_row *row, struct table *table)
{
    table_put_flag(table, true);
    for (size_t m = 0; m < report->model->n_metrics; m++)
        if (!report->model->metrics[m].hidden) {
            table_put_flag(table, true);
            table_put_number(table, report_samples(report, row, m));
            table_put_number(table, report_value(report, row, m));
        }
    fill_derived(row->derived, table);
}

static int fill_statistics(const struct export_job *job, const struct report *report, const struct report_row *row,
                           struct table *table, struct error *err)
{
    struct row_statistics of[2];
    int code = thread_values_statistics(job->values, report, row, &of[0], &of[1], err);
    for (size_t i = 0; code == 0 && i < 2; i++) {
        if (of[i].n == 0) {
            table_put_absents(table, 8);
            continue;
        }
        table_put_flag(table, true);
        table_put_count(table, (int64_t)of[i].n);
        table_put_count(table, (int64_t)of[i].n_with_value);
        table_put_number(table, of[i].mean);
        table_put_number(table, of[i].least);
        table_put_number(table, of[i].most);
        table_put_number(table, of[i].deviation);
        table_put_number(table, of[i].variation);
    }
    return code;
}

/* What is known of the variable. */
static void fill_variable(const struct report *report, const struct report_row *row, struct table *table)
{
    const struct variable *variable = row->variable;
    if (!variable) {
        table_put_absents(table, 11);
        return;
    }
    table_put_word_if(table, !report_is_special(row), row->size_bytes);
    table_put_word_if(table, !report_is_special(row), row->n_blocks);
    table_put_word(table, variable->size_freed_bytes);
    table_put_word(table, variable->n_blocks_freed);
    table_put_word(table, variable->max_block_bytes);
    table_put_word(table, variable->n_inexact);
    table_put_word(table, row->n_paths);
    table_put_place(table, model_text(report->model, variable->function), model_text(report->model, variable->file),
                    variable->line);
    table_put_name(table, model_text(report->model, variable->module));
}

/* Samples by NUMA node, and what a thread waited for. */
static void fill_nodes(const struct report *report, const struct report_row *row, struct table *table)
{
    uint32_t n = report->model->n_numa_nodes;
    if (row->places)
        table_put_words(table, row->places, n);
    else
        table_put_absent(table);
    if (row->n_constructs) {
        struct table *constructs = table_put_table(table, COLUMNS(construct_columns));
        for (size_t i = 0; i < row->n_constructs; i++) {
            table_put_text(constructs, row->constructs[i].name);
            table_put_number(constructs, row->constructs[i].value);
        }
    } else {
        table_put_absent(table);
    }
    for (uint32_t i = 0; i < n; i++)
        table_put_word_if(table, row->places, row->places ? row->places[i] : 0);
}

/* Who touched it first, if that is known, and what that took. */
static void put_touches(const struct first_touches *touches, const struct report_row *row, struct table *table)
{
    struct buf text = {0};
    if (first_touch_put_sentence(touches, row, &text)) {
        table_put_made(table, &text);
    } else {
        table_put_absent(table);
        buf_fini(&text);
    }
    table_put_number(table, row->touched > 0 ? row->touched : (double)NAN);
}

/* number: of the row in the report; SIZE_MAX: in none. */
static int fill_row(const struct export_job *job, const struct prepared *prepared, const struct report_row *row,
                    size_t number, struct table *table, struct error *err)
{
    const struct report *report = &prepared->report;
    bool has_lists = strcmp(job->form, "csv") != 0; /* CSV has no lists, which are most of the work */
    table_put_variable(table, row->name, row->class, row->site);
    table_put_number(table, row->samples);
    table_put_number(table, row->share);
    table_put_number(table, row->value);
    if (report->has_causes) {
        enum report_cause aside = report_aside(row);
        fill_causes(&row->causes, table);
        table_put_borrowed(table, aside == REPORT_CAUSES ? NULL : report_cause_name(aside));
        table_put_borrowed(table, report_meaning(report, row));
    }
    fill_variable(report, row, table);
    put_lines(report, row, table);
    put_loops(report, row, table);
    fill_nodes(report, row, table);
    if (prepared->touches.is_measured)
        put_touches(&prepared->touches, row, table);
    if (report->has_hardware)
        fill_hardware(report, row, table);
    if (job->with_paths)
        alloc_path_put_row(report, row, table);
    derived_put_row(&prepared->derived, number, table);
    fill_lines(report, row, has_lists ? row->n_lines : 0, table_put_table(table, COLUMNS(line_columns)));
    if (report->has_fields)
        fill_type(row, table);
    int code = job->values ? fill_statistics(job, report, row, table, err) : 0;
    if (!job->with_paths)
        item_put_row_cell(number == SIZE_MAX ? NULL : row, table);
    return code;
}

/* Time in the kernel, for which there are no samples: a row that has a value but no share, if there was any. */
static bool make_kernel_row(const struct report *report, struct report_row *row)
{
    *row = (struct report_row){.name = SPECIAL_KERNEL,
                               .class = "kernel",
                               .site = (char *)(uintptr_t) "system calls and page faults",
                               .value = 1e6 * report->system_s};
    return report_kernel_percent(report) > 0;
}

/* --- fields as CSV --- */

static const struct column csv_field_columns[] = {
    VARIABLE_COLUMNS,
    {"field", NULL, CELL_TEXT},
    {"samples", NULL, VALUE_CELL},
    {"share", NULL, CELL_PERCENT | COLUMN_6_DIGITS},
    {"type", NULL, CELL_TEXT},
    {"offset_bytes", NULL, CELL_COUNT},
    {"size_bytes", NULL, CELL_WORD},
    {"typed", NULL, CELL_FLAG},
    {"element_type", NULL, CELL_TEXT},
    {"element_bytes", NULL, CELL_WORD},
    {"type_source", NULL, CELL_TEXT},
};

/* A row for each field of each variable; samples without a known place are a row without field. */
static void fill_fields(const struct report_row *row, struct table *table)
{
    for (size_t i = 0; i < (row->n_fields ? row->n_fields : 1); i++) {
        const struct report_field *field = row->n_fields ? &row->fields[i] : NULL;
        table_put_variable(table, row->name, row->class, row->site);
        table_put_text(table, field ? field->name : NULL);
        table_put_number(table, field ? field->samples : row->samples);
        table_put_number(table, field ? field->share : row->share);
        table_put_borrowed(table, field ? not_empty(field->type) : NULL);
        table_put_if(table, field, field ? (int64_t)field->offset_bytes : 0);
        table_put_word_if(table, field, field ? field->size_bytes : 0);
        table_put_if(table, field, field && !(field->flags & FIELD_UNTYPED));
        table_put_borrowed(table, not_empty(row->type));
        table_put_word_if(table, row->element_bytes > 0, row->element_bytes);
        table_put_borrowed(table, not_empty(row->type) ? row->type_source : NULL);
    }
}

static int make_fields(const struct export_job *job, struct answer *answer, struct error *err)
{
    struct report_row kernel;
    struct prepared prepared;
    int code = prepared_make(job, PREPARED_ORDER | PREPARED_CHOICE, &prepared, err);
    if (code != 0)
        return code;
    answer_begin(answer, "fields", COLUMNS(csv_field_columns));
    for (size_t i = 0; i < prepared.n_rows; i++)
        fill_fields(&prepared.report.rows[i], &answer->rows);
    if (make_kernel_row(&prepared.report, &kernel))
        fill_fields(&kernel, &answer->rows);
    prepared_fini(&prepared);
    return 0;
}

/* --- what JSON has before the rows --- */

static void add_key(struct answer *head, const char *key, uint64_t kind)
{
    column_list_add(&head->head_columns, &(struct column){key, NULL, kind}, 1);
}

static void head_text(struct answer *head, const char *key, const char *text)
{
    add_key(head, key, CELL_TEXT);
    table_put_borrowed(&head->head, text);
}

static void head_number(struct answer *head, const char *key, double number)
{
    add_key(head, key, CELL_NUMBER);
    table_put_number(&head->head, number);
}

static void head_word(struct answer *head, const char *key, uint64_t word)
{
    add_key(head, key, CELL_WORD);
    table_put_word(&head->head, word);
}

/* Begins an object; returns where, for end_object. */
static size_t begin_object(struct answer *head, const char *key)
{
    add_key(head, key, CELL_OBJECT);
    table_put_flag(&head->head, true);
    return head->head_columns.n;
}

static void end_object(struct answer *head, size_t first)
{
    if (!head->head_columns.failed)
        head->head_columns.items[first - 1].kind |= COLUMN_MEMBERS(head->head_columns.n - first);
}

/* Percent of all CPU time, where that is known; they add up to 100, where memory is not left out as not known. */
static void head_causes(struct answer *head, const struct report *report)
{
    double percents[REPORT_CAUSES];
    bool is_unknown = report_is_memory_unknown(&report->causes);
    report_time_causes(report, percents);
    column_list_add(&head->head_columns, COLUMNS(cause_columns));
    fill_causes(&report->causes, &head->head);
    size_t first = begin_object(head, "causes");
    for (enum report_cause cause = 0; cause < REPORT_CAUSES; cause++)
        head_number(head, report_cause_name(cause), is_unknown && cause == REPORT_MEMORY ? NAN : percents[cause]);
    end_object(head, first);
}

static void head_fates(struct answer *head, const struct event_sum *event)
{
    head_word(head, "taken", event->taken);
    head_word(head, "overflows", event->overflows);
    if (event->has_data_source) {
        head_word(head, "n_no_metric", event->n_no_metric);
        head_word(head, "n_throttles", event->n_throttles);
        head_word(head, "n_truncated", event->n_truncated);
        head_word(head, "n_collisions", event->n_collisions);
    }
    head_word(head, "enabled_ns", event->enabled_ns);
    head_word(head, "running_ns", event->running_ns);
    if (event->n_spared) {
        head_word(head, "n_spared", event->n_spared);
        head_word(head, "sample_cost_ns", event->sample_cost_ns);
    }
    size_t first = begin_object(head, "fates");
    for (int i = 0; i < FATE_MAX; i++)
        if (event->fates[i])
            head_word(head, fate_row(i)->name, event->fates[i]);
    end_object(head, first);
}

/* The times that the shares refer to. */
static void head_times(struct answer *head, const struct report *report)
{
    size_t first = begin_object(head, "cpu_time");
    head_number(head, "user_s", report->user_s);
    head_number(head, "system_s", report->system_s);
    if (report->system_waiting_s > 0)
        head_number(head, "system_waiting_s", report->system_waiting_s);
    head_number(head, "sampled_s", report->sampled_s);
    if (report->model->delay_ns)
        head_number(head, "delay_s", (double)report->model->delay_ns / 1e9);
    if (report->model->unmeasured_ns)
        head_number(head, "unmeasured_s", (double)report->model->unmeasured_ns / 1e9);
    head_number(head, "kernel_percent", 100 * report->system_s / (report->user_s + report->system_s));
    head_text(head, "shares_are_of", report->is_user_only ? "user time" : "CPU time");
    end_object(head, first);
}

/* What the remote costs are relative to, and the derived metrics of all accesses. */
static void head_hardware(struct answer *head, const struct report *report)
{
    size_t first = begin_object(head, "hardware");
    head_text(head, "remote_cost_per", report->is_work_counted ? "instruction" : "load");
    add_hardware(&head->head_columns);
    fill_derived(report->derived, &head->head);
    end_object(head, first);
}

static void fill_head(const struct export_job *job, const struct report *report, struct answer *head)
{
    head_text(head, "plan", job->model->plan);
    head_number(head, "total_value", report->total_value);
    head_number(head, "total_samples", report->total_samples);
    head_number(head, "no_access_percent", report->no_access);
    head_number(head, "recovered_percent", report->recovered);
    head_number(head, "named_percent", report->named);
    if (report->has_causes)
        head_causes(head, report);
    if (report->has_fields)
        head_number(head, "typed_percent", report->typed);
    if (report->event)
        head_fates(head, report->event);
    add_key(head, "has_too_few_samples", CELL_FLAG);
    table_put_flag(&head->head, report->has_too_few);
    if (report->sampled_s > 0 && report->user_s + report->system_s > 0)
        head_times(head, report);
    if (report->has_hardware)
        head_hardware(head, report);
    (void)answer_set_head(head, NULL, 0);
}

int vars_make_answer(const struct export_job *job, struct answer *answer, struct error *err)
{
    struct report_row kernel;
    struct prepared prepared;
    unsigned parts = PREPARED_ORDER | PREPARED_CHOICE | PREPARED_TOUCHES | PREPARED_SHARED_LINES | PREPARED_DERIVED;
    if (job->with_fields && strcmp(job->form, "csv") == 0)
        return make_fields(job, answer, err);
    int code = prepared_make(job, parts, &prepared, err);
    if (code != 0)
        return code;
    add_columns(&answer->columns, job, &prepared);
    answer_begin(answer, "variables", NULL, 0);
    answer->rows.n_more = prepared.n_left;
    for (size_t i = 0; code == 0 && i < prepared.n_rows; i++)
        code = fill_row(job, &prepared, &prepared.report.rows[i], i, &answer->rows, err);
    if (code == 0 && make_kernel_row(&prepared.report, &kernel))
        code = fill_row(job, &prepared, &kernel, SIZE_MAX, &answer->rows, err);
    fill_head(job, &prepared.report, answer);
    prepared_fini(&prepared);
    return code;
}
