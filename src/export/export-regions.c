/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of variables by region, and rows of variables, types, functions, lines and sources by thread, process,
 * rank, CPU, core, package, NUMA node, region or function: for a terminal, as CSV and as JSON. */
#include "export/annotation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/leaks.h"
#include "answer/item.h"
#include "base/bytes.h"
#include "base/path.h"
#include "database/database.h"
#include "export/prepared.h"
#include "export/text-cells.h"
#include "table/table.h"

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
    text_end_line(out);
}

/* The rows of a region that are shown: the first ones, if they have the least part; lower ones have less. */
static size_t n_shown(const struct export_job *job, const struct region *region)
{
    size_t n = 0;
    while (n < region->n_rows && job_shows(job, region->rows[n].share, n))
        n++;
    return n;
}

static const char *outside(unsigned by)
{
    return by == SPLIT_PHASE ? "outside of all phases" : by == SPLIT_REGION ? "outside of all regions" : "no function";
}

static void put_region(const struct export_job *job, const struct region *region, struct buf *out)
{
    double rest = 0;
    size_t n = n_shown(job, region);
    buf_append(out, "\n", 1);
    text_style(out, job, TEXT_BOLD);
    buf_printf(out, "%5.1f %%           ", region->share);
    bool is_known = strcmp(region->name, REGION_NOT_KNOWN) != 0;
    text_cut(out, job, !is_known ? "not known" : *region->name ? region->name : outside(job->by), job->columns - 19);
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

/* Rows by region, from those of the variables. */
static int make_regions(const struct export_job *job, struct prepared *prepared, struct region_report *regions,
                        struct error *err)
{
    int code = prepared_make(job, PREPARED_USED, prepared, err);
    if (code == 0 && (code = regions_make(&prepared->report, job->by == SPLIT_PHASE, regions, err)) != 0)
        prepared_fini(prepared);
    return code;
}

static int write_text(const struct export_job *job, struct buf *out, struct error *err)
{
    struct prepared prepared;
    struct region_report regions;
    char text[160];
    int code = make_regions(job, &prepared, &regions, err);
    if (code != 0)
        return code;
    (void)snprintf(text, sizeof text, "%.0f of %.64s, by %s", prepared.report.total_samples,
                   job->model->metrics[job->metric].name, split_by_name((enum split_by)job->by));
    text_labelled(out, job, "samples", text);
    for (size_t i = 0; i < regions.n_regions; i++)
        put_region(job, &regions.regions[i], out);
    regions_fini(&regions);
    prepared_fini(&prepared);
    return 0;
}

/* --- CSV and JSON --- */

static const struct column region_columns[] = {
    {"region", NULL, CELL_TEXT},
    {"samples", NULL, CELL_NUMBER | COLUMN_NO_CSV},
    {"share", NULL, CELL_PERCENT | COLUMN_NO_CSV},
    {"value", NULL, CELL_NUMBER | COLUMN_NO_CSV},
    {"variables", NULL, CELL_TABLE | COLUMN_JOINED | COLUMN_NO_EMPTY | COLUMN_LINES},
};

/* The same by phase. */
static const struct column phase_columns[] = {
    {"phase", NULL, CELL_TEXT},
    {"samples", NULL, CELL_NUMBER | COLUMN_NO_CSV},
    {"share", NULL, CELL_PERCENT | COLUMN_NO_CSV},
    {"value", NULL, CELL_NUMBER | COLUMN_NO_CSV},
    {"variables", NULL, CELL_TABLE | COLUMN_JOINED | COLUMN_NO_EMPTY | COLUMN_LINES},
};

/* Of the variables of a region. */
static const struct column in_region_columns[] = {
    VARIABLE_COLUMNS,
    {"samples", NULL, CELL_NUMBER | COLUMN_ALL_DIGITS},
    {"share", NULL, CELL_PERCENT | COLUMN_6_DIGITS},
    {"share_of_region", NULL, CELL_PERCENT | COLUMN_6_DIGITS},
    {"value", NULL, CELL_NUMBER | COLUMN_ALL_DIGITS},
};

static void fill_region(const struct export_job *job, const struct region *region, struct table *table)
{
    table_put_text(table, region->name);
    table_put_number(table, model_samples(job->model, job->metric, region->value));
    table_put_number(table, region->share);
    table_put_number(table, region->value);
    struct table *variables = table_put_table(table, table->joined, table->n_joined);
    for (size_t i = 0; i < n_shown(job, region); i++) {
        const struct region_row *row = &region->rows[i];
        table_put_variable(variables, row->row ? row->row->name : "<not data-centric>",
                           row->row ? row->row->class : model_class_name(CLASS_UNATTRIBUTED),
                           row->row ? row->row->site : NULL);
        table_put_number(variables, model_samples(job->model, job->metric, row->value));
        table_put_number(variables, row->share);
        table_put_number(variables, 100 * row->value / region->value);
        table_put_number(variables, row->value);
    }
}

static const struct column region_head_columns[] = {
    {"total_value", NULL, CELL_NUMBER},
    {"total_samples", NULL, CELL_NUMBER},
};

static int make_of_regions(const struct export_job *job, struct answer *answer, struct error *err)
{
    struct prepared prepared;
    struct region_report regions;
    int code = make_regions(job, &prepared, &regions, err);
    if (code != 0)
        return code;
    if (job->by == SPLIT_PHASE)
        answer_begin(answer, "phases", COLUMNS(phase_columns));
    else
        answer_begin(answer, "regions", COLUMNS(region_columns));
    answer_join(answer, COLUMNS(in_region_columns));
    struct table *head = answer_set_head(answer, COLUMNS(region_head_columns));
    table_put_number(head, prepared.report.total_value);
    table_put_number(head, prepared.report.total_samples);
    for (size_t i = 0; i < regions.n_regions; i++)
        fill_region(job, &regions.regions[i], &answer->rows);
    regions_fini(&regions);
    prepared_fini(&prepared);
    return 0;
}

/* --- by thread, process, rank, CPU, core, package, NUMA node, region or function --- */

/* Text has a column for each where these are few, else the extremes; CSV and JSON have everything that is not zero. */

#define NAME_WIDTH 26
#define NAME_LEAST 10
#define HOT_SHARE 0.5 /* percent of everything, from which a line of a source is shown as text */
#define SOURCE_LEAST 34
#define SOURCE_MOST 80 /* of a line of a source, as far as there is room */
#define CELL_LEAST 9
#define CELL_MOST 14         /* of a thread with a name */
#define LABEL_WIDTH 7        /* of a thread that is named as an extreme ... */
#define LABEL_PROGRAM 9      /* ... and of its program before that, where these differ */
#define EXTREMES_WIDTH 70    /* without the name */
#define PARTS_SHOWN 4        /* regions or functions below a row, in text ... */
#define PART_SHARE 1.0       /* ... of at least so many percent of it */
#define FIELD_SHARE_MIN 0.05 /* percent: anything less would be printed as 0.0 */

enum subject { SUBJECT_VARIABLES, SUBJECT_FUNCTIONS, SUBJECT_LINES, SUBJECT_TYPES, SUBJECT_SOURCE };

/* A report and how it is split. */
struct by_report {
    const struct export_job *job;
    enum subject subject;
    struct prepared prepared;
    struct report *report; /* of variables, or of those of the types */
    struct split_types types;
    struct code_table table; /* of functions and lines; of a source that of the annotation */
    struct annotation annotation;
    struct split split;
    double total;
    size_t name_width, cell_width;
    unsigned char *twins; /* of functions: item_twins */
    bool *is_twin;        /* [n_rows of the split] another row has the same name */
    size_t *rows;         /* [n_rows] those that are shown */
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
        prepared_fini(&by->prepared);
    else if (by->subject == SUBJECT_SOURCE)
        annotation_fini(&by->annotation);
    else
        code_table_fini(&by->table);
    split_types_fini(&by->types);
    split_fini(&by->split);
    free(by->twins);
    free(by->is_twin);
    free(by->rows);
}

static double value_of(const struct by_report *by, size_t row)
{
    if (by->subject == SUBJECT_TYPES)
        return row < by->types.n ? by->types.types[row].value : by->types.fields[row - by->types.n].value;
    return by->subject == SUBJECT_VARIABLES ? by->report->rows[row].value : by->table.rows[row].own;
}

static int make_split(struct by_report *by, const struct value_source *values, struct error *err)
{
    enum split_by key = by->job->by;
    enum code_kind kind = by->subject == SUBJECT_SOURCE  ? CODE_PLACE
                          : by->subject == SUBJECT_LINES ? CODE_LINE
                                                         : CODE_FUNCTION;
    if (by->subject == SUBJECT_TYPES)
        return split_types_make(by->report, key, values, &by->types, &by->split, err);
    return is_about_data(by->subject) ? split_variables(by->report, key, values, NULL, &by->split, err)
                                      : split_code(&by->table, kind, key, values, &by->split, err);
}

/* The text of a line of the source; nothing for one of another file. The caller frees it. */
static struct buf source_of(const struct by_report *by, const struct code_row *row)
{
    struct buf source = {0};
    if (row->file == by->annotation.file)
        source_lines_put(&by->annotation.source, row->line, &source);
    return source;
}

static void put_row_name(const struct by_report *by, size_t row, struct buf *name)
{
    const struct model *model = by->job->model;
    if (by->subject == SUBJECT_TYPES && row >= by->types.n) {
        buf_printf(name, "  %s",
                   *by->types.fields[row - by->types.n].path ? by->types.fields[row - by->types.n].path : "(all)");
        return;
    }
    if (is_about_data(by->subject)) {
        const char *words = by->subject == SUBJECT_TYPES ? by->types.types[row].name : by->report->rows[row].name;
        buf_printf(name, "%s", *words ? words : "type not known");
        return;
    }
    const struct code_row *of = &by->table.rows[row];
    if (by->subject == SUBJECT_SOURCE && of->file == by->annotation.file && of->line) {
        buf_printf(name, "%5u  ", of->line);
        source_lines_put(&by->annotation.source, of->line, name);
    } else if (by->subject == SUBJECT_FUNCTIONS || !of->line)
        text_function(name, model_text(model, of->function));
    else
        buf_printf(name, "%s:%u", path_last(model_text(model, of->file)), of->line);
}

/* Where the row comes from. Rows of the same name may have files of the same last name, and lines functions. */
static void put_row_origin(const struct by_report *by, size_t row, struct buf *origin)
{
    const struct model *model = by->job->model;
    if (by->subject == SUBJECT_TYPES) {
        if (row < by->types.n && by->types.types[row].element_bytes)
            buf_printf(origin, "%llu bytes", (unsigned long long)by->types.types[row].element_bytes);
        return;
    }
    if (by->subject == SUBJECT_VARIABLES) {
        const struct variable *variable = by->report->rows[row].variable;
        char size[16];
        buf_printf(origin, "%s", by->report->rows[row].site);
        bool is_heap = model_is_block(variable);
        if (by->is_twin[row] && is_heap) { /* one site may have rows by size */
            text_size(variable->size_bytes, size);
            buf_printf(origin, ", %llu block%s, %s", (unsigned long long)variable->n_blocks,
                       variable->n_blocks == 1 ? "" : "s", size);
        }
        return;
    }
    const struct code_row *of = &by->table.rows[row];
    if (by->is_twin[row] && by->subject == SUBJECT_LINES) {
        text_function(origin, model_text(model, of->function));
        buf_printf(origin, " ");
    }
    buf_printf(origin, "%s", by->is_twin[row] ? model_text(model, of->file) : path_last(model_text(model, of->file)));
}

/* The rows of the split that are no fields. */
static size_t n_main(const struct by_report *by)
{
    return by->subject == SUBJECT_TYPES ? by->types.n : by->split.n_rows;
}

/* Finds the rows that need more than their names to be told apart. */
static bool find_twins(struct by_report *by)
{
    size_t n = n_main(by);
    char **names = calloc(n + 1, sizeof *names);
    bool ok = names && (by->is_twin = calloc(by->split.n_rows + 1, sizeof *by->is_twin));
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
                       (split_by_is_place(job->by) && (!is_about_data(by->subject) || job->model->n_cpu_counts));
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

/* The lines of a source that are shown, in their order. */
static void choose_lines(struct by_report *by)
{
    const struct annotation *annotation = &by->annotation;
    for (size_t i = 0; i < annotation->n_shown; i++)
        if (annotation->shown[i].row && annotation->shown[i].row->own != 0)
            by->rows[by->n_rows++] = (size_t)(annotation->shown[i].row - annotation->table.rows);
    by->n_left = annotation->n_left;
    by->rest = percent_of(annotation->rest, by->total);
}

/* Chooses the rows that are shown: not those below the least part, and the first ones. */
static bool choose_rows(struct by_report *by)
{
    const struct export_job *job = by->job;
    size_t n = n_main(by);
    by->rows = calloc(n + 1, sizeof *by->rows);
    if (by->rows && by->subject == SUBJECT_SOURCE) {
        choose_lines(by);
        return true;
    }
    for (size_t i = 0; by->rows && i < n; i++) {
        double share = percent_of(value_of(by, i), by->total);
        bool is_shown = value_of(by, i) != 0 && job_shows(job, share, by->n_rows);
        if (is_shown)
            by->rows[by->n_rows++] = i;
        by->n_left += !is_shown && value_of(by, i) != 0;
        by->rest += is_shown ? 0 : share;
    }
    return by->rows != NULL;
}

/* What vars, types and so on split: the first letter tells. */
static enum subject subject_of(const char *report)
{
    static const char letters[] = "vflta";
    const char *found = strchr(letters, report[0]);
    return found ? (enum subject)(found - letters) : SUBJECT_VARIABLES;
}

/* Variables by region are lists of their own: a variable can be large in one and missing in another. */
static bool is_of_regions(const struct export_job *job)
{
    return (job->by == SPLIT_REGION || job->by == SPLIT_PHASE) && subject_of(job->report) == SUBJECT_VARIABLES;
}

static int by_make(struct by_report *by, const struct export_job *job, struct error *err)
{
    enum subject subject = subject_of(job->report);
    *by = (struct by_report){.job = job, .subject = subject, .report = &by->prepared.report};
    enum code_kind kind = subject == SUBJECT_LINES ? CODE_LINE : CODE_FUNCTION;
    int code = is_about_data(subject)      ? prepared_make(job, PREPARED_USED, &by->prepared, err)
               : subject == SUBJECT_SOURCE ? annotation_make(&by->annotation, job, job->least, 0, err)
                                           : code_table_make(job->model, job->metric, kind, NULL, &by->table, err);
    if (code != 0)
        return code;
    if (subject == SUBJECT_SOURCE)
        by->table = by->annotation.table;
    by->total = is_about_data(subject) ? by->report->total_value : by->table.total;
    code = split_report(by, err);
    if (code == 0 && subject == SUBJECT_FUNCTIONS && !(by->twins = item_twins(&by->table, NULL)))
        code = error_memory(err);
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
    if (strcmp(name, SPLIT_NOT_KNOWN) == 0)
        return "not known";
    return *name ? name : outside(by->split.by);
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
    buf_printf(out, "%5.1f %%  ", percent_of(is_sum ? sum_of(by) : value_of(by, row), by->total));
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

static size_t label_width(const struct by_report *by)
{
    return LABEL_WIDTH + (by->split.has_programs ? LABEL_PROGRAM : 0);
}

/* A column that is named as an extreme, behind its program where these differ. */
static void put_label(const struct by_report *by, size_t column, struct buf *text)
{
    if (by->split.has_programs) {
        text_cell(text, by->job, by->split.programs[column], LABEL_PROGRAM - 1, false);
        buf_append(text, " ", 1);
    }
    text_cell(text, by->job, column_name(by, column), LABEL_WIDTH, false);
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
            buf_printf(out, "%*.1f %%", (int)by->cell_width - 2, percent_of(split->cells[at++].value, by->total));
        else
            buf_printf(out, "%*s", (int)by->cell_width, "-");
    }
    put_imbalance(&spread, out);
    text_end_line(out);
    put_twin(by, row, out);
}

/* The extremes: "  0.200 %   0.100 % 0.17    0.800 % 3.2        4.00". */
static void put_extremes_row(const struct by_report *by, size_t row, struct buf *out)
{
    const struct split_spread spread = split_spread_of(&by->split, row);
    struct buf text = {0};
    put_beginning(by, row, out);
    buf_printf(&text, "%6zu%8.3f %%%8.3f %% ", spread.n_with_value, percent_of(spread.mean, by->total),
               percent_of(spread.least, by->total));
    put_label(by, spread.least_at, &text);
    buf_printf(&text, "%8.3f %% ", percent_of(spread.most, by->total));
    put_label(by, spread.most_at, &text);
    put_imbalance(&spread, &text);
    text_cut(out, by->job, text.data ? text.data : "", by->job->columns - 9 - by->name_width);
    text_end_line(out);
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
    text_end_line(out);
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
        buf_printf(out, "%13.1f %%  ", percent_of(cells[n_shown].value, by->total));
        text_cut(out, by->job, name.data ? name.data : "", by->job->columns - 17);
        buf_append(out, "\n", 1);
        shown += cells[n_shown].value;
        buf_fini(&name);
    }
    if (n_shown < n)
        buf_printf(out, "%13.1f %%  %zu more\n", percent_of(all - shown, by->total), n - n_shown);
    free(cells);
    return true;
}

/* A row in the form that has room. */
static bool put_by_row(const struct by_report *by, size_t row, bool is_matrix, struct buf *out)
{
    if (!by->split.is_spread)
        return put_parts_row(by, row, out);
    if (is_matrix)
        put_matrix_row(by, row, out);
    else
        put_extremes_row(by, row, out);
    return true;
}

/* The rows of the fields of a type; nothing where an element has no fields. */
static bool put_fields(const struct by_report *by, size_t row, bool is_matrix, struct buf *out)
{
    bool ok = true;
    for (size_t i = 0; by->subject == SUBJECT_TYPES && row < by->types.n && ok && i < by->types.n_fields; i++) {
        const struct split_field *field = &by->types.fields[i];
        double share = percent_of(field->value, by->total);
        bool is_shown = field->type == row && *field->path && *by->types.types[row].name && share >= FIELD_SHARE_MIN &&
                        share >= by->job->least;
        ok = !is_shown || put_by_row(by, by->types.n + i, is_matrix, out);
    }
    return ok;
}

static const char *const subject_words[] = {"variable", "function", "line", "type", " line  source"};

/* The programs above the columns. */
static void put_programs(const struct by_report *by, struct buf *out)
{
    buf_printf(out, "%9s%-*s", "", (int)by->name_width, "");
    for (uint32_t column = 0; column < by->split.columns.n_strings; column++) {
        buf_append(out, " ", 1);
        text_cell(out, by->job, by->split.programs[column], by->cell_width - 1, true);
    }
    text_end_line(out);
}

static void put_titles(const struct by_report *by, bool is_matrix, struct buf *out)
{
    const struct split *split = &by->split;
    struct buf text = {0};
    buf_append(out, "\n", 1);
    text_style(out, by->job, TEXT_BOLD);
    if (is_matrix && split->has_programs)
        put_programs(by, out);
    buf_printf(out, "  share  %-*s", (int)by->name_width, subject_words[by->subject]);
    for (uint32_t column = 0; is_matrix && column < split->columns.n_strings; column++) {
        buf_append(out, " ", 1);
        text_cell(out, by->job, column_name(by, column), by->cell_width - 1, true);
    }
    if (split->is_spread && !is_matrix)
        buf_printf(&text, "%6s%10s%10s %-*s%10s %-*s", "with", "mean", "least", (int)label_width(by), "in", "most",
                   (int)label_width(by), "in");
    if (split->is_spread)
        buf_printf(&text, " %8s", "max/mean");
    text_cut(out, by->job, text.data ? text.data : "", by->job->columns - 9 - by->name_width);
    buf_fini(&text);
    text_style(out, by->job, TEXT_PLAIN);
    text_end_line(out);
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
    if (split->by == SPLIT_THREAD && model_has_merged_threads(model))
        text_labelled(
            out, by->job, "note",
            "From the 256th thread of a process on, several go on in one profile and have one column: a large "
            "share there, and max/mean, are no imbalance.");
    if (by->subject == SUBJECT_SOURCE)
        text_labelled(out, by->job, "file", model_text(model, by->annotation.file));
}

static int by_text(const struct export_job *job, struct buf *out, struct error *err)
{
    if (is_of_regions(job))
        return write_text(job, out, err);
    enum subject subject = subject_of(job->report);
    struct export_job hot = *job;
    if (subject == SUBJECT_SOURCE && job->least < 0)
        hot.least = HOT_SHARE;
    struct by_report by;
    int code = by_make(&by, &hot, err);
    if (code != 0)
        return code;
    size_t around = 9 + NAME_WIDTH + 9, n = by.split.columns.n_strings;
    by.cell_width = split_title_width(&by.split, CELL_LEAST - 1, CELL_MOST - 1) + 1;
    if (around + by.cell_width * n > job->columns)
        by.cell_width = CELL_LEAST;
    size_t width = around + by.cell_width * n;
    bool is_spread = by.split.is_spread, is_matrix = is_spread && width <= job->columns, ok = true;
    size_t extremes = EXTREMES_WIDTH + (by.split.has_programs ? 2 * LABEL_PROGRAM : 0);
    size_t least = subject == SUBJECT_SOURCE ? SOURCE_LEAST : NAME_LEAST;
    size_t room = job->columns > extremes + least ? job->columns - extremes : least;
    size_t most = subject == SUBJECT_SOURCE ? SOURCE_MOST : NAME_WIDTH;
    if (subject == SUBJECT_SOURCE && (is_matrix || !is_spread))
        room = NAME_WIDTH + job->columns - (is_matrix ? width : job->columns / 2);
    else if (is_matrix || !is_spread)
        room = NAME_WIDTH;
    by.name_width = room < most ? room : most;
    put_head(&by, out);
    put_titles(&by, is_matrix, out);
    for (size_t i = 0; ok && i <= by.n_rows; i++) {
        size_t row = i < by.n_rows ? by.rows[i] : by.split.n_rows;
        if (i == by.n_rows && by.n_left)
            buf_printf(out, "%5.1f %%  %zu more (--top 0 shows all)\n", by.rest, by.n_left);
        ok = put_by_row(&by, row, is_matrix, out) && put_fields(&by, row, is_matrix, out);
    }
    by_fini(&by);
    return ok ? 0 : error_memory(err);
}

/* --- CSV and JSON --- */

#define VALUE_COLUMNS                                                                                                  \
    {"value", NULL, CELL_NUMBER | COLUMN_NO_CSV}, {"share", NULL, CELL_PERCENT | COLUMN_NO_CSV},                       \
        {"max_over_mean", NULL, CELL_NUMBER | COLUMN_LEFT_OUT | COLUMN_NO_CSV},                                        \
    {                                                                                                                  \
        "cells", NULL, CELL_TABLE | COLUMN_JOINED | COLUMN_NO_EMPTY                                                    \
    }

static const struct column variable_columns[] = {VARIABLE_COLUMNS, VALUE_COLUMNS, ITEM_COLUMN};
static const struct column code_columns[] = {PLACE_COLUMNS, {"module", NULL, CELL_TEXT}, VALUE_COLUMNS, ITEM_COLUMN};
static const struct column type_columns[] = {{"type", NULL, CELL_TEXT},
                                             {"size_bytes", NULL, CELL_WORD},
                                             {"field", NULL, CELL_TEXT | COLUMN_NO_JSON},
                                             VALUE_COLUMNS,
                                             {"fields", NULL, CELL_TABLE | COLUMN_FOLLOWS | COLUMN_INDENTED}};
static const struct column field_columns[] = {{"type", NULL, CELL_TEXT | COLUMN_NO_JSON},
                                              {"size_bytes", NULL, CELL_WORD | COLUMN_NO_JSON},
                                              {"field", NULL, CELL_TEXT},
                                              {"offset_bytes", NULL, CELL_WORD | COLUMN_NO_CSV},
                                              VALUE_COLUMNS};
static const struct column source_columns[] = {
    {"file", NULL, CELL_TEXT}, {"line", NULL, CELL_COUNT}, {"source", NULL, CELL_TEXT}, VALUE_COLUMNS, ITEM_COLUMN};
static const struct table tables[] = {
    [SUBJECT_VARIABLES] = TABLE_OF(variable_columns), [SUBJECT_FUNCTIONS] = TABLE_OF(code_columns),
    [SUBJECT_LINES] = TABLE_OF(code_columns),         [SUBJECT_TYPES] = TABLE_OF(type_columns),
    [SUBJECT_SOURCE] = TABLE_OF(source_columns),
};

/* The cells that tell a row. */
static void fill_name(const struct by_report *by, size_t row, struct table *table)
{
    const struct model *model = by->job->model;
    if (by->subject == SUBJECT_VARIABLES) {
        table_put_variable(table, by->report->rows[row].name, by->report->rows[row].class, by->report->rows[row].site);
        return;
    }
    if (by->subject == SUBJECT_TYPES) {
        const struct split_field *field = row < by->types.n ? NULL : &by->types.fields[row - by->types.n];
        const struct split_type *type = &by->types.types[field ? field->type : row];
        table_put_name(table, type->name);
        table_put_word_if(table, type->element_bytes > 0, type->element_bytes);
        table_put_text(table, !field ? NULL : *field->path ? field->path : "(all)");
        if (field)
            table_put_word(table, field->offset_bytes);
        return;
    }
    const struct code_row *of = &by->table.rows[row];
    struct buf source = source_of(by, of);
    if (by->subject != SUBJECT_SOURCE)
        table_put_name(table, model_text(model, of->function));
    table_put_name(table, model_text(model, of->file));
    table_put_if(table, of->line > 0, of->line);
    if (by->subject == SUBJECT_SOURCE)
        table_put_made(table, &source);
    else
        table_put_name(table, model_text(model, of->module));
}

/* The cells that follow. */
static void fill_values(const struct by_report *by, size_t row, struct table *table)
{
    double value = value_of(by, row);
    table_put_number(table, value);
    table_put_number(table, percent_of(value, by->total));
    table_put_number(table, by->split.is_spread ? split_spread_of(&by->split, row).imbalance : (double)NAN);
    split_fill_cells(&by->split, row, by->total, value, table);
}

/* A row, a type with its fields. */
static void fill_by_row(const struct by_report *by, size_t row, struct table *table)
{
    fill_name(by, row, table);
    fill_values(by, row, table);
    if (by->subject == SUBJECT_VARIABLES)
        item_put_row_cell(&by->report->rows[row], table);
    else if (by->subject != SUBJECT_TYPES)
        item_put_code_cell(by->job->model, by->twins, &by->table.rows[row], table);
    if (by->subject != SUBJECT_TYPES)
        return;
    struct table *fields = table_put_table(table, COLUMNS(field_columns));
    fields->joined = table->joined;
    fields->n_joined = table->n_joined;
    for (size_t i = 0; i < by->types.n_fields; i++)
        if (by->types.fields[i].type == row) {
            fill_name(by, by->types.n + i, fields);
            fill_values(by, by->types.n + i, fields);
        }
}

static const struct column word_columns[] = {{"word", NULL, CELL_TEXT}};
static const struct column by_head_columns[] = {
    {"total", NULL, CELL_NUMBER},
    {"by", NULL, CELL_TEXT},
    {"columns", NULL, CELL_TABLE | COLUMN_BARE},
    {"programs", NULL, CELL_TABLE | COLUMN_BARE | COLUMN_LEFT_OUT},
};

static void fill_by_head(const struct by_report *by, struct table *head)
{
    const struct split *split = &by->split;
    table_put_number(head, by->total);
    table_put_text(head, split_by_name(split->by));
    struct table *words = table_put_table(head, COLUMNS(word_columns));
    for (size_t i = 0; i < split->columns.n_strings; i++)
        table_put_text(words, column_name(by, i));
    if (!split->programs) {
        table_put_absent(head);
        return;
    }
    words = table_put_table(head, COLUMNS(word_columns));
    for (size_t i = 0; i < split->columns.n_strings; i++)
        table_put_text(words, split->programs[i]);
}

static int make_answer(const struct export_job *job, struct answer *answer, struct error *err)
{
    if (is_of_regions(job))
        return make_of_regions(job, answer, err);
    struct by_report by;
    int code = by_make(&by, job, err);
    if (code != 0)
        return code;
    split_add_columns(&by.split, 0, &answer->cells);
    answer_begin(answer, "rows", tables[by.subject].columns, tables[by.subject].n_columns);
    answer->rows.n_more = by.n_left;
    for (size_t i = 0; i < by.n_rows; i++)
        fill_by_row(&by, by.rows[i], &answer->rows);
    fill_by_head(&by, answer_set_head(answer, COLUMNS(by_head_columns)));
    by_fini(&by);
    return 0;
}

const struct report_forms by_forms = {.make = make_answer, .text = by_text};
