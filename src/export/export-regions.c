/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of variables by region, and rows of variables, functions and lines by thread, process, rank, CPU,
 * core, package, NUMA node, region or function: for a terminal, as CSV and as JSON. */
#include "analysis/report/code-table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/leaks.h"
#include "base/bytes.h"
#include "base/path.h"
#include "export/database/database.h"
#include "export/exporters.h"
#include "export/text-cells.h"
#include "fmt/json.h"

static void put_row(const struct export_job *job, const struct region_row *row, struct buf *out)
{
    const struct report_row *of = row->row;
    buf_printf(out, "%5.1f %% ", row->share);
    text_bar(out, job, row->share, 8);
    buf_printf(out, "  ");
    text_cell(out, job, of ? of->name : "<not data-centric>", 26, false);
    buf_append(out, " ", 1);
    text_cell(out, job, of ? of->class : model_class_name(CLASS_UNATTRIBUTED), 14, false);
    if (of && strcmp(of->site, of->name) != 0)
        text_cut(out, job, of->site, job->columns - 60);
    while (out->len_bytes && out->data[out->len_bytes - 1] == ' ')
        out->data[--out->len_bytes] = 0;
    buf_append(out, "\n", 1);
}

/* The rows of a region that are shown: the first ones, if they have the least part; lower ones have less. */
static size_t n_shown(const struct export_job *job, const struct region *region)
{
    size_t n = 0;
    while (n < region->n_rows && (job->top == 0 || n < job->top) && region->rows[n].share >= job->least)
        n++;
    return n;
}

static void put_region(const struct export_job *job, const struct region *region, struct buf *out)
{
    double rest = 0;
    size_t n = n_shown(job, region);
    buf_append(out, "\n", 1);
    text_style(out, job, TEXT_BOLD);
    buf_printf(out, "%5.1f %%           ", region->share);
    text_cut(out, job, *region->name ? region->name : "outside of all regions", job->columns - 19);
    text_style(out, job, TEXT_PLAIN);
    buf_append(out, "\n", 1);
    for (size_t i = 0; i < region->n_rows; i++)
        if (i < n)
            put_row(job, &region->rows[i], out);
        else
            rest += region->rows[i].share;
    if (n < region->n_rows)
        buf_printf(out, "%5.1f %%           %zu more (--top 0 shows all)\n", rest, region->n_rows - n);
}

static int write_text(const struct export_job *job, struct buf *out, struct error *err)
{
    struct report report;
    struct region_report regions;
    char text[160];
    int code = report_make(job->model, job->metric, false, job->with_paths, &report, err);
    if (code != 0)
        return code;
    code = regions_make(&report, &regions, err);
    if (code == 0) {
        (void)snprintf(text, sizeof text, "%.0f of %.64s, by region", report.total_samples,
                       job->model->metrics[job->metric].name);
        text_labelled(out, job, "samples", text);
        for (size_t i = 0; i < regions.n_regions; i++)
            put_region(job, &regions.regions[i], out);
        regions_fini(&regions);
    }
    report_fini(&report);
    return code;
}

const struct exporter export_regions_text = {"regions", "text", write_text};

/* --- CSV --- */

/* The table of variables by region as comma-separated values (RFC 4180): one row for a region and variable. */

static void put_field(struct buf *out, const char *text)
{
    csv_put_text(out, text);
    buf_printf(out, ",");
}

static void put_csv_row(const struct export_job *job, const struct region *region, const struct region_row *row,
                        struct buf *out)
{
    const struct report_row *of = row->row;
    put_field(out, region->name);
    put_field(out, of ? of->name : "<not data-centric>");
    put_field(out, of ? of->class : model_class_name(CLASS_UNATTRIBUTED));
    put_field(out, of ? of->site : "");
    buf_printf(out, "%.15g,%.6f,%.6f,%.15g\n", model_samples(job->model, job->metric, row->value), row->share,
               100 * row->value / region->value, row->value);
}

static int write_csv(const struct export_job *job, struct buf *out, struct error *err)
{
    struct report report;
    struct region_report regions;
    int code = report_make(job->model, job->metric, false, job->with_paths, &report, err);
    if (code != 0)
        return code;
    code = regions_make(&report, &regions, err);
    if (code == 0) {
        buf_printf(out, "region,variable,class,alloc_site,samples,share,share_of_region,value\n");
        for (size_t i = 0; i < regions.n_regions; i++) {
            const struct region *region = &regions.regions[i];
            for (size_t k = 0; k < n_shown(job, region); k++)
                put_csv_row(job, region, &region->rows[k], out);
        }
        regions_fini(&regions);
    }
    report_fini(&report);
    return code;
}

const struct exporter export_regions_csv = {"regions", "csv", write_csv};

/* --- JSON --- */

/* The table of variables by region as JSON. */

static void put_json_row(const struct export_job *job, const struct region_row *row, struct buf *out)
{
    const struct report_row *of = row->row;
    buf_printf(out, "{\"variable\": ");
    json_put_text(out, of ? of->name : "<not data-centric>");
    json_put_text_at(out, "class", of ? of->class : model_class_name(CLASS_UNATTRIBUTED));
    json_put_text_at(out, "alloc_site", of ? of->site : "");
    json_put_double_at(out, "samples", model_samples(job->model, job->metric, row->value));
    json_put_double_at(out, "share", row->share);
    json_put_double_at(out, "value", row->value);
    buf_printf(out, "}");
}

static void put_json_region(const struct export_job *job, const struct region *region, struct buf *out)
{
    buf_printf(out, "{\"region\": ");
    json_put_text(out, region->name);
    json_put_double_at(out, "samples", model_samples(job->model, job->metric, region->value));
    json_put_double_at(out, "share", region->share);
    json_put_double_at(out, "value", region->value);
    json_put_key(out, "variables", 0);
    buf_printf(out, "[");
    for (size_t i = 0; i < n_shown(job, region); i++) {
        buf_printf(out, i ? ",\n" : "\n");
        put_json_row(job, &region->rows[i], out);
    }
    buf_printf(out, "]}");
}

static int write_json(const struct export_job *job, struct buf *out, struct error *err)
{
    struct report report;
    struct region_report regions;
    int code = report_make(job->model, job->metric, false, job->with_paths, &report, err);
    if (code != 0)
        return code;
    code = regions_make(&report, &regions, err);
    if (code == 0) {
        buf_printf(out, "{\"program\": ");
        json_put_text(out, job->model->program);
        json_put_text_at(out, "metric", job->model->metrics[job->metric].name);
        json_put_double_at(out, "total_value", report.total_value);
        json_put_double_at(out, "total_samples", report.total_samples);
        buf_printf(out, ",\n\"regions\": [");
        for (size_t i = 0; i < regions.n_regions; i++) {
            buf_printf(out, i ? ",\n" : "\n");
            put_json_region(job, &regions.regions[i], out);
        }
        buf_printf(out, "]}\n");
        regions_fini(&regions);
    }
    report_fini(&report);
    return code;
}

const struct exporter export_regions_json = {"regions", "json", write_json};

/* --- by thread, process, rank, CPU, core, package, NUMA node, region or function --- */

/* Text has a column for each where these are few, else the extremes; CSV and JSON have everything that is not zero. */

#define NAME_WIDTH 26
#define NAME_LEAST 10
#define CELL_WIDTH 9
#define LABEL_WIDTH 7     /* of a thread that is named as an extreme */
#define EXTREMES_WIDTH 70 /* without the name */
#define PARTS_SHOWN 4     /* regions or functions below a row, in text ... */
#define PART_SHARE 1.0    /* ... of at least so many percent of it */

enum subject { SUBJECT_VARIABLES, SUBJECT_FUNCTIONS, SUBJECT_LINES, SUBJECT_TYPES };

/* The variables whose elements are of one type. */
struct by_type {
    const char *name; /* "" = not known */
    uint64_t element_bytes;
    double value;
    size_t number; /* in the order of the report */
};

/* A report and how it is split. */
struct by_report {
    const struct export_job *job;
    enum subject subject;
    struct report report;  /* of variables, or of those of the types */
    struct by_type *types; /* [n_types] by value, highest first */
    size_t n_types, cap_types;
    struct code_table table; /* of functions and lines */
    struct split split;
    double total;
    size_t name_width;
    bool *is_twin; /* [n_rows of the split] another row has the same name */
    size_t *rows;  /* [n_rows] those that are shown */
    size_t n_rows;
    size_t n_left;
    double rest; /* of these, percent */
};

static bool is_about_data(enum subject subject)
{
    return subject == SUBJECT_VARIABLES || subject == SUBJECT_TYPES;
}

static void by_fini(struct by_report *by)
{
    if (is_about_data(by->subject))
        report_fini(&by->report);
    else
        code_table_fini(&by->table);
    free(by->types);
    split_fini(&by->split);
    free(by->is_twin);
    free(by->rows);
}

static double value_of(const struct by_report *by, size_t row)
{
    if (by->subject == SUBJECT_TYPES)
        return by->types[row].value;
    return by->subject == SUBJECT_VARIABLES ? by->report.rows[row].value : by->table.rows[row].own;
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static uint64_t hash_of_type(const void *item)
{
    const struct by_type *type = item;
    return bytes_hash_text(BYTES_HASH_START ^ type->element_bytes, type->name);
}

static bool is_same_type(const void *one, const void *other)
{
    const struct by_type *a = one, *b = other;
    return a->element_bytes == b->element_bytes && strcmp(a->name, b->name) == 0;
}

static const struct slots_kind type_kind = {sizeof(struct by_type), hash_of_type, is_same_type};

static int compare_types(const void *a, const void *b)
{
    const struct by_type *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* The type of the row of the report, with its value added, 1 + its number; 0 when out of memory. */
static uint32_t add_to_type(struct by_report *by, struct slots *slots, const struct report_row *row)
{
    bool is_known = row->type && *row->type;
    const struct by_type like = {
        .name = is_known ? row->type : "", .element_bytes = is_known ? row->element_bytes : 0, .number = by->n_types};
    size_t index = slots_put(slots, &type_kind, &by->types, &by->n_types, &by->cap_types, &like);
    if (index == SLOTS_NONE)
        return 0;
    by->types[index].value += row->value;
    return (uint32_t)index + 1;
}

/* The type that each row of the report counts for [n_rows], 1 + its number by value; 0: it is not data. */
static bool find_types(struct by_report *by, uint32_t *type_of)
{
    struct slots slots = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < by->report.n_rows; i++) {
        const struct report_row *row = &by->report.rows[i];
        bool is_data = row->variable && row->variable->class <= CLASS_STACK && !report_is_special(row);
        type_of[i] = is_data ? add_to_type(by, &slots, row) : 0;
        ok = !is_data || type_of[i];
    }
    slots_fini(&slots);
    if (by->n_types)
        qsort(by->types, by->n_types, sizeof *by->types, compare_types);
    uint32_t *place_of = calloc(by->n_types + 1, sizeof *place_of);
    for (size_t i = 0; place_of && i < by->n_types; i++)
        place_of[by->types[i].number] = (uint32_t)i + 1;
    for (size_t i = 0; ok && place_of && i < by->report.n_rows; i++)
        type_of[i] = type_of[i] ? place_of[type_of[i] - 1] : 0;
    ok = ok && place_of;
    free(place_of);
    return ok;
}

/* Adds the rows of variables up to rows of types. */
static int join_types(struct by_report *by, struct error *err)
{
    uint32_t *type_of = calloc(by->report.n_rows + 1, sizeof *type_of);
    int code =
        type_of && find_types(by, type_of) ? split_join_rows(&by->split, type_of, by->n_types, err) : error_memory(err);
    free(type_of);
    return code;
}

static int make_split(struct by_report *by, const struct value_source *values, struct error *err)
{
    enum split_by key = by->job->by;
    enum code_kind kind = by->subject == SUBJECT_LINES ? CODE_LINE : CODE_FUNCTION;
    return is_about_data(by->subject) ? split_variables(&by->report, key, values, &by->split, err)
                                      : split_code(&by->table, kind, key, values, &by->split, err);
}

static void put_row_name(const struct by_report *by, size_t row, struct buf *name)
{
    const struct model *model = by->job->model;
    if (is_about_data(by->subject)) {
        const char *words = by->subject == SUBJECT_TYPES ? by->types[row].name : by->report.rows[row].name;
        buf_printf(name, "%s", *words ? words : "type not known");
        return;
    }
    const struct code_row *of = &by->table.rows[row];
    if (by->subject == SUBJECT_FUNCTIONS || !of->line)
        text_function(name, model_text(model, of->function));
    else
        buf_printf(name, "%s:%u", path_last(model_text(model, of->file)), of->line);
}

/* Where the row comes from. Rows of the same name may have files of the same last name, and lines functions. */
static void put_row_origin(const struct by_report *by, size_t row, struct buf *origin)
{
    const struct model *model = by->job->model;
    if (by->subject == SUBJECT_TYPES) {
        if (by->types[row].element_bytes)
            buf_printf(origin, "%llu bytes", (unsigned long long)by->types[row].element_bytes);
        return;
    }
    if (by->subject == SUBJECT_VARIABLES) {
        buf_printf(origin, "%s", by->report.rows[row].site);
        return;
    }
    const struct code_row *of = &by->table.rows[row];
    if (by->is_twin[row] && by->subject == SUBJECT_LINES) {
        text_function(origin, model_text(model, of->function));
        buf_printf(origin, " ");
    }
    buf_printf(origin, "%s", by->is_twin[row] ? model_text(model, of->file) : path_last(model_text(model, of->file)));
}

/* Finds the rows that need more than their names to be told apart. */
static bool find_twins(struct by_report *by)
{
    size_t n = by->split.n_rows;
    char **names = calloc(n + 1, sizeof *names);
    bool ok = names && (by->is_twin = calloc(n + 1, sizeof *by->is_twin));
    for (size_t i = 0; ok && i < n; i++) {
        struct buf name = {0};
        put_row_name(by, i, &name);
        ok = !name.failed;
        names[i] = name.data;
    }
    ok = ok && report_find_twins(names, n, by->is_twin);
    for (size_t i = 0; names && i < n; i++)
        free(names[i]);
    free(names);
    return ok;
}

/* Opens the values of the threads where they are needed. */
static int split_report(struct by_report *by, struct error *err)
{
    const struct export_job *job = by->job;
    struct value_source values = {0};
    bool has_threads = job->by == SPLIT_THREAD || job->by == SPLIT_PROCESS || job->by == SPLIT_RANK ||
                       (split_by_is_place(job->by) && !is_about_data(by->subject));
    int code = 0;
    if (has_threads && !job->model->has_thread_list)
        return error_set(err, ERR_UNSUPPORTED, "%s was made by an older version: it does not know its threads",
                         job->directory);
    if (has_threads)
        code = database_values_open(job->directory, job->model, &values, err);
    if (code == 0)
        code = make_split(by, &values, err);
    values_free(&values);
    return code;
}

/* Chooses the rows that are shown: not those below the least part, and the first ones. */
static bool choose_rows(struct by_report *by)
{
    const struct export_job *job = by->job;
    size_t n = by->split.n_rows;
    by->rows = calloc(n + 1, sizeof *by->rows);
    for (size_t i = 0; by->rows && i < n; i++) {
        double share = percent(value_of(by, i), by->total);
        bool is_shown = value_of(by, i) != 0 && share >= job->least && (job->top == 0 || by->n_rows < job->top);
        if (is_shown)
            by->rows[by->n_rows++] = i;
        by->n_left += !is_shown && value_of(by, i) != 0;
        by->rest += is_shown ? 0 : share;
    }
    return by->rows != NULL;
}

static int by_make(struct by_report *by, const struct export_job *job, enum subject subject, struct error *err)
{
    *by = (struct by_report){.job = job, .subject = subject};
    enum code_kind kind = subject == SUBJECT_LINES ? CODE_LINE : CODE_FUNCTION;
    int code = is_about_data(subject) ? report_make(job->model, job->metric, false, job->with_paths, &by->report, err)
                                      : code_table_make(job->model, job->metric, kind, NULL, &by->table, err);
    if (code != 0)
        return code;
    by->total = is_about_data(subject) ? by->report.total_value : by->table.total;
    code = split_report(by, err);
    if (code == 0 && subject == SUBJECT_TYPES)
        code = join_types(by, err);
    if (code == 0 && (!find_twins(by) || !choose_rows(by)))
        code = error_memory(err);
    if (code != 0)
        by_fini(by);
    return code;
}

static const char *column_name(const struct by_report *by, size_t column)
{
    return by->split.columns.strings[column];
}

/* --- text --- */

static const char *column_words(const struct by_report *by, size_t column)
{
    const char *name = column_name(by, column);
    return *name ? name : by->split.by == SPLIT_REGION ? "outside of all regions" : "no function";
}

static void end_line(struct buf *out)
{
    while (out->len_bytes && out->data[out->len_bytes - 1] == ' ')
        out->data[--out->len_bytes] = 0;
    buf_append(out, "\n", 1);
}

/* Of all samples that are in a column. */
static double sum_of(const struct by_report *by)
{
    const struct split *split = &by->split;
    double sum = 0;
    for (size_t i = split->first[split->n_rows]; i < split->first[split->n_rows + 1]; i++)
        sum += split->cells[i].value;
    return sum;
}

static void put_beginning(const struct by_report *by, size_t row, struct buf *out)
{
    struct buf name = {0};
    bool is_sum = row == by->split.n_rows;
    if (!is_sum)
        put_row_name(by, row, &name);
    buf_printf(out, "%5.1f %%  ", percent(is_sum ? sum_of(by) : value_of(by, row), by->total));
    text_style(out, by->job, is_sum ? TEXT_PLAIN : TEXT_BOLD);
    text_cell(out, by->job, is_sum ? "all" : name.data ? name.data : "", by->name_width - 1, false);
    buf_append(out, " ", 1);
    text_style(out, by->job, TEXT_PLAIN);
    buf_fini(&name);
}

/* A line of its own for where a row comes from that its name does not tell from another one. */
static void put_twin(const struct by_report *by, size_t row, struct buf *out)
{
    struct buf origin = {0};
    if (row < by->split.n_rows && by->is_twin[row])
        put_row_origin(by, row, &origin);
    if (origin.data && *origin.data) {
        buf_printf(out, "%9s", "");
        text_style(out, by->job, TEXT_DIM);
        text_wrapped(out, by->job, origin.data, 9, 9);
        text_style(out, by->job, TEXT_PLAIN);
    }
    buf_fini(&origin);
}

static void put_imbalance(const struct split_spread *spread, struct buf *out)
{
    if (spread->mean > 0)
        buf_printf(out, " %8.2f", spread->imbalance);
    else
        buf_printf(out, " %8s", "-");
}

/* A column for each. */
static void put_matrix_row(const struct by_report *by, size_t row, struct buf *out)
{
    const struct split *split = &by->split;
    struct split_spread spread = split_spread_of(split, row);
    size_t at = split->first[row];
    put_beginning(by, row, out);
    for (uint32_t column = 0; column < split->columns.n_strings; column++) {
        bool has_cell = at < split->first[row + 1] && split->cells[at].column == column;
        if (has_cell)
            buf_printf(out, "%*.1f %%", CELL_WIDTH - 2, percent(split->cells[at++].value, by->total));
        else
            buf_printf(out, "%*s", CELL_WIDTH, "-");
    }
    put_imbalance(&spread, out);
    end_line(out);
    put_twin(by, row, out);
}

/* The extremes: "  0.200 %   0.100 % 0.17    0.800 % 3.2        4.00". */
static void put_extremes_row(const struct by_report *by, size_t row, struct buf *out)
{
    const struct split_spread spread = split_spread_of(&by->split, row);
    struct buf text = {0};
    put_beginning(by, row, out);
    buf_printf(&text, "%6zu%8.3f %%%8.3f %% ", spread.n_with_value, percent(spread.mean, by->total),
               percent(spread.least, by->total));
    text_cell(&text, by->job, column_name(by, spread.least_at), LABEL_WIDTH, false);
    buf_printf(&text, "%8.3f %% ", percent(spread.most, by->total));
    text_cell(&text, by->job, column_name(by, spread.most_at), LABEL_WIDTH, false);
    put_imbalance(&spread, &text);
    text_cut(out, by->job, text.data ? text.data : "", by->job->columns - 9 - by->name_width);
    end_line(out);
    put_twin(by, row, out);
    buf_fini(&text);
}

static int compare_cells(const void *a, const void *b)
{
    const struct split_cell *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->column < y->column ? -1 : x->column > y->column;
}

/* A row and below it the regions or functions that have the most of it. */
static bool put_parts_row(const struct by_report *by, size_t row, struct buf *out)
{
    const struct split *split = &by->split;
    size_t n = split->first[row + 1] - split->first[row], n_shown = 0;
    struct split_cell *cells = calloc(n + 1, sizeof *cells);
    struct buf origin = {0};
    double all = 0, shown = 0;
    if (!cells)
        return false;
    memcpy(cells, &split->cells[split->first[row]], n * sizeof *cells);
    if (n)
        qsort(cells, n, sizeof *cells, compare_cells);
    put_beginning(by, row, out);
    if (row < split->n_rows)
        put_row_origin(by, row, &origin);
    size_t room = by->job->columns - by->name_width - 9;
    bool is_below = row < split->n_rows && by->is_twin[row] && text_width(origin.data ? origin.data : "") > room;
    text_cut(out, by->job, is_below || !origin.data ? "" : origin.data, room);
    buf_fini(&origin);
    end_line(out);
    if (is_below)
        put_twin(by, row, out);
    for (size_t i = 0; i < n; i++)
        all += cells[i].value;
    for (; n_shown < n && n_shown < PARTS_SHOWN; n_shown++) {
        struct buf name = {0};
        if (n_shown && cells[n_shown].value < all * PART_SHARE / 100)
            break;
        if (split->by == SPLIT_FUNCTION)
            text_function(&name, column_words(by, cells[n_shown].column));
        else
            buf_printf(&name, "%s", column_words(by, cells[n_shown].column));
        buf_printf(out, "%13.1f %%  ", percent(cells[n_shown].value, by->total));
        text_cut(out, by->job, name.data ? name.data : "", by->job->columns - 17);
        buf_append(out, "\n", 1);
        shown += cells[n_shown].value;
        buf_fini(&name);
    }
    if (n_shown < n)
        buf_printf(out, "%13.1f %%  %zu more\n", percent(all - shown, by->total), n - n_shown);
    free(cells);
    return true;
}

static const char *const subject_words[] = {"variable", "function", "line", "type"};

static void put_titles(const struct by_report *by, bool is_matrix, struct buf *out)
{
    const struct split *split = &by->split;
    struct buf text = {0};
    buf_append(out, "\n", 1);
    text_style(out, by->job, TEXT_BOLD);
    buf_printf(out, "  share  %-*s", (int)by->name_width, subject_words[by->subject]);
    for (uint32_t column = 0; is_matrix && column < split->columns.n_strings; column++) {
        buf_append(out, " ", 1);
        text_cell(out, by->job, column_name(by, column), CELL_WIDTH - 1, true);
    }
    if (split->is_spread && !is_matrix)
        buf_printf(&text, "%6s%10s%10s %-*s%10s %-*s", "with", "mean", "least", LABEL_WIDTH, "in", "most", LABEL_WIDTH,
                   "in");
    if (split->is_spread)
        buf_printf(&text, " %8s", "max/mean");
    text_cut(out, by->job, text.data ? text.data : "", by->job->columns - 9 - by->name_width);
    buf_fini(&text);
    text_style(out, by->job, TEXT_PLAIN);
    end_line(out);
}

static void put_head(const struct by_report *by, struct buf *out)
{
    const struct model *model = by->job->model;
    const struct split *split = &by->split;
    struct buf text = {0};
    text_program(out, by->job);
    buf_printf(&text, "%s%s, by %s", model->metrics[by->job->metric].name,
               is_about_data(by->subject) ? "" : " without callees", split->key);
    if (split->is_spread)
        buf_printf(&text, " (%zu)", split->columns.n_strings);
    text_labelled(out, by->job, "metric", text.data ? text.data : "");
    buf_fini(&text);
}

static int by_text(const struct export_job *job, enum subject subject, struct buf *out, struct error *err)
{
    struct by_report by;
    int code = by_make(&by, job, subject, err);
    if (code != 0)
        return code;
    size_t width = 9 + NAME_WIDTH + CELL_WIDTH * by.split.columns.n_strings + 9;
    bool is_spread = by.split.is_spread, is_matrix = is_spread && width <= job->columns, ok = true;
    size_t room = job->columns > EXTREMES_WIDTH + NAME_LEAST ? job->columns - EXTREMES_WIDTH : NAME_LEAST;
    by.name_width = is_spread && !is_matrix && room < NAME_WIDTH ? room : NAME_WIDTH;
    put_head(&by, out);
    put_titles(&by, is_matrix, out);
    for (size_t i = 0; ok && i <= by.n_rows; i++) {
        size_t row = i < by.n_rows ? by.rows[i] : by.split.n_rows;
        if (i == by.n_rows && by.n_left)
            buf_printf(out, "%5.1f %%  %zu more (--top 0 shows all)\n", by.rest, by.n_left);
        if (i == by.n_rows && split_by_is_place(by.split.by) && is_about_data(by.subject)) /* of variables alone */
            break;
        if (is_matrix)
            put_matrix_row(&by, row, out);
        else if (is_spread)
            put_extremes_row(&by, row, out);
        else
            ok = put_parts_row(&by, row, out);
    }
    by_fini(&by);
    return ok ? 0 : error_memory(err);
}

/* --- CSV --- */

static void put_csv_row_name(const struct by_report *by, size_t row, struct buf *out)
{
    const struct model *model = by->job->model;
    if (by->subject == SUBJECT_VARIABLES) {
        put_field(out, by->report.rows[row].name);
        put_field(out, by->report.rows[row].class);
        put_field(out, by->report.rows[row].site);
        return;
    }
    if (by->subject == SUBJECT_TYPES) {
        put_field(out, by->types[row].name);
        buf_printf(out, "%llu,", (unsigned long long)by->types[row].element_bytes);
        return;
    }
    const struct code_row *of = &by->table.rows[row];
    put_field(out, model_text(model, of->function));
    put_field(out, model_text(model, of->file));
    buf_printf(out, "%u,", of->line);
    put_field(out, model_text(model, of->module));
}

static int by_csv(const struct export_job *job, enum subject subject, struct buf *out, struct error *err)
{
    struct by_report by;
    int code = by_make(&by, job, subject, err);
    if (code != 0)
        return code;
    buf_printf(out, "%s,%s,value,share,share_of_row\n",
               subject == SUBJECT_VARIABLES ? "variable,class,alloc_site"
               : subject == SUBJECT_TYPES   ? "type,size_bytes"
                                            : "function,file,line,module",
               split_by_name(by.split.by));
    for (size_t i = 0; i < by.n_rows; i++) {
        size_t row = by.rows[i];
        for (size_t k = by.split.first[row]; k < by.split.first[row + 1]; k++) {
            const struct split_cell *cell = &by.split.cells[k];
            put_csv_row_name(&by, row, out);
            put_field(out, column_name(&by, cell->column));
            buf_printf(out, "%.15g,%.6f,%.6f\n", cell->value, percent(cell->value, by.total),
                       percent(cell->value, value_of(&by, row)));
        }
    }
    by_fini(&by);
    return 0;
}

/* --- JSON --- */

static void put_json_row_name(const struct by_report *by, size_t row, struct buf *out)
{
    const struct model *model = by->job->model;
    if (by->subject == SUBJECT_VARIABLES) {
        buf_printf(out, "{\"variable\": ");
        json_put_text(out, by->report.rows[row].name);
        json_put_text_at(out, "class", by->report.rows[row].class);
        json_put_text_at(out, "alloc_site", by->report.rows[row].site);
        return;
    }
    if (by->subject == SUBJECT_TYPES) {
        buf_printf(out, "{\"type\": ");
        json_put_text(out, by->types[row].name);
        json_put_word_at(out, "size_bytes", by->types[row].element_bytes);
        return;
    }
    const struct code_row *of = &by->table.rows[row];
    buf_printf(out, "{\"function\": ");
    json_put_text(out, model_text(model, of->function));
    json_put_text_at(out, "file", model_text(model, of->file));
    json_put_word_at(out, "line", of->line);
    json_put_text_at(out, "module", model_text(model, of->module));
}

static void put_json_by_row(const struct by_report *by, size_t row, struct buf *out)
{
    struct split_spread spread = split_spread_of(&by->split, row);
    put_json_row_name(by, row, out);
    json_put_double_at(out, "value", value_of(by, row));
    json_put_double_at(out, "share", percent(value_of(by, row), by->total));
    if (by->split.is_spread)
        json_put_double_at(out, "max_over_mean", spread.imbalance);
    buf_printf(out, ", \"cells\": [");
    for (size_t k = by->split.first[row]; k < by->split.first[row + 1]; k++) {
        const struct split_cell *cell = &by->split.cells[k];
        buf_printf(out, k > by->split.first[row] ? ", {\"%s\": " : "{\"%s\": ", split_by_name(by->split.by));
        json_put_text(out, column_name(by, cell->column));
        json_put_double_at(out, "value", cell->value);
        json_put_double_at(out, "share", percent(cell->value, by->total));
        buf_append(out, "}", 1);
    }
    buf_printf(out, "]}");
}

static int by_json(const struct export_job *job, enum subject subject, struct buf *out, struct error *err)
{
    struct by_report by;
    int code = by_make(&by, job, subject, err);
    if (code != 0)
        return code;
    buf_printf(out, "{\"program\": ");
    json_put_text(out, job->model->program);
    json_put_text_at(out, "metric", job->model->metrics[job->metric].name);
    json_put_double_at(out, "total", by.total);
    json_put_text_at(out, "by", split_by_name(by.split.by));
    buf_printf(out, ",\n\"columns\": [");
    for (size_t i = 0; i < by.split.columns.n_strings; i++) {
        buf_printf(out, "%s", i ? ", " : "");
        json_put_text(out, column_name(&by, i));
    }
    buf_printf(out, "],\n\"rows\": [");
    for (size_t i = 0; i < by.n_rows; i++) {
        buf_printf(out, i ? ",\n" : "\n");
        put_json_by_row(&by, by.rows[i], out);
    }
    buf_printf(out, "]}\n");
    by_fini(&by);
    return 0;
}

static int vars_text(const struct export_job *job, struct buf *out, struct error *err)
{
    return by_text(job, SUBJECT_VARIABLES, out, err);
}

static int vars_csv(const struct export_job *job, struct buf *out, struct error *err)
{
    return by_csv(job, SUBJECT_VARIABLES, out, err);
}

static int vars_json(const struct export_job *job, struct buf *out, struct error *err)
{
    return by_json(job, SUBJECT_VARIABLES, out, err);
}

static int functions_text(const struct export_job *job, struct buf *out, struct error *err)
{
    return by_text(job, SUBJECT_FUNCTIONS, out, err);
}

static int functions_csv(const struct export_job *job, struct buf *out, struct error *err)
{
    return by_csv(job, SUBJECT_FUNCTIONS, out, err);
}

static int functions_json(const struct export_job *job, struct buf *out, struct error *err)
{
    return by_json(job, SUBJECT_FUNCTIONS, out, err);
}

static int lines_text(const struct export_job *job, struct buf *out, struct error *err)
{
    return by_text(job, SUBJECT_LINES, out, err);
}

static int lines_csv(const struct export_job *job, struct buf *out, struct error *err)
{
    return by_csv(job, SUBJECT_LINES, out, err);
}

static int lines_json(const struct export_job *job, struct buf *out, struct error *err)
{
    return by_json(job, SUBJECT_LINES, out, err);
}

static int types_text(const struct export_job *job, struct buf *out, struct error *err)
{
    return by_text(job, SUBJECT_TYPES, out, err);
}

static int types_csv(const struct export_job *job, struct buf *out, struct error *err)
{
    return by_csv(job, SUBJECT_TYPES, out, err);
}

static int types_json(const struct export_job *job, struct buf *out, struct error *err)
{
    return by_json(job, SUBJECT_TYPES, out, err);
}

const struct exporter export_types_by_text = {"types by", "text", types_text};
const struct exporter export_types_by_csv = {"types by", "csv", types_csv};
const struct exporter export_types_by_json = {"types by", "json", types_json};
const struct exporter export_vars_by_text = {"vars by", "text", vars_text};
const struct exporter export_vars_by_csv = {"vars by", "csv", vars_csv};
const struct exporter export_vars_by_json = {"vars by", "json", vars_json};
const struct exporter export_functions_by_text = {"functions by", "text", functions_text};
const struct exporter export_functions_by_csv = {"functions by", "csv", functions_csv};
const struct exporter export_functions_by_json = {"functions by", "json", functions_json};
const struct exporter export_lines_by_text = {"lines by", "text", lines_text};
const struct exporter export_lines_by_csv = {"lines by", "csv", lines_csv};
const struct exporter export_lines_by_json = {"lines by", "json", lines_json};
