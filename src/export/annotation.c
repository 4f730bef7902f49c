/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds a file or functions by name, their lines and the source: see annotation.h. */
#include "export/annotation.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/spelling.h"
#include "database/database.h"
#include "export/text-cells.h"

#define DATA_SHOWN 3
#define DATA_SHARE_MIN 5 /* percent of the row, below which data is not shown */
#define NAMES_SHOWN 5
#define TAB 8

/* --- the data of a row --- */

/* The name of the variable that a row's data is in. */
static const char *data_name(const struct code_table *table, const struct code_data *data)
{
    return model_variable_name(table->model, &table->model->variables[data->variable]);
}

void code_put_data(const struct code_table *table, const struct code_row *row, struct buf *text)
{
    for (size_t i = 0; i < row->n_data && i < DATA_SHOWN; i++) {
        double share = percent_of(row->data[i].value, row->own);
        if (share >= DATA_SHARE_MIN)
            buf_printf(text, "%s%.0f %% %s", i ? ", " : "", share < 100 ? share : 100, data_name(table, &row->data[i]));
    }
}

const char *code_data_title(const struct model *model)
{
    return model->code ? "" : "on data";
}

const struct column code_cost_columns[CODE_COSTS + CODE_DATA] = {
    {"own", NULL, CELL_NUMBER | COLUMN_ALL_DIGITS},       {"own_share", NULL, CELL_PERCENT | COLUMN_6_DIGITS},
    {"inclusive", NULL, CELL_NUMBER | COLUMN_ALL_DIGITS}, {"inclusive_share", NULL, CELL_PERCENT | COLUMN_6_DIGITS},
    {"data", NULL, CELL_TEXT | COLUMN_NO_JSON},           {"data", NULL, CELL_TABLE},
};

static const struct column data_columns[] = {{"variable", NULL, CELL_TEXT}, {"value", NULL, CELL_NUMBER}};

void code_fill_costs(const struct code_table *table, const struct code_row *row, struct table *rows)
{
    table_put_number(rows, row->own);
    table_put_number(rows, percent_of(row->own, table->total));
    table_put_number(rows, row->inclusive);
    table_put_number(rows, percent_of(row->inclusive, table->total));
}

void code_fill_data(const struct code_table *table, const struct code_row *row, struct table *rows)
{
    struct buf text = {0};
    for (size_t k = 0; k < row->n_data; k++)
        buf_printf(&text, "%s%s %.15g", k ? "; " : "", data_name(table, &row->data[k]), row->data[k].value);
    table_put_made(rows, &text);
    struct table *data = table_put_table(rows, COLUMNS(data_columns));
    for (size_t k = 0; k < row->n_data; k++) {
        table_put_text(data, data_name(table, &row->data[k]));
        table_put_number(data, row->data[k].value);
    }
}

/* --- a source --- */

bool source_lines_read(const char *directory, const char *name, struct source_lines *lines)
{
    struct buf *text = &lines->text;
    if (!*name || *name == '<' || !sources_read(directory, name, text))
        return !text->failed;
    for (size_t at = 0; at < text->len_bytes;) {
        char *end = memchr(text->data + at, '\n', text->len_bytes - at);
        if (!vec_reserve(&lines->starts, &lines->capacity, lines->n + 1, sizeof *lines->starts))
            return false;
        lines->starts[lines->n++] = at;
        at = end ? (size_t)(end - text->data) + 1 : text->len_bytes;
        if (end)
            *end = 0;
    }
    return true;
}

void source_lines_fini(struct source_lines *lines)
{
    buf_fini(&lines->text);
    free(lines->starts);
    *lines = (struct source_lines){0};
}

void source_lines_put(const struct source_lines *lines, uint32_t line, struct buf *out)
{
    size_t column = 0;
    const char *text = line && line <= lines->n ? lines->text.data + lines->starts[line - 1] : "";
    for (const char *at = text; *at && *at != '\r'; at++) {
        size_t n = *at == '\t' ? TAB - column % TAB : 1;
        buf_append(out, *at == '\t' ? "        " : at, n);
        column += n;
    }
}

/* --- what the name stands for --- */

void annotation_fini(struct annotation *annotation)
{
    code_table_fini(&annotation->table);
    free(annotation->names);
    source_lines_fini(&annotation->source);
    free(annotation->shown);
}

/* Whether path is called name, or ends in it from a slash on. */
static bool is_path(const char *path, const char *name, size_t len)
{
    size_t n = strlen(path);
    return n >= len && len > 0 && strncmp(path + n - len, name, len) == 0 &&
           (n == len || path[n - len - 1] == '/' || name[0] == '/');
}

static int refuse_several(const struct annotation *annotation, const char *what, const char *more,
                          const struct strtab *found, struct error *err)
{
    struct buf text = {0};
    for (size_t i = 0; i < found->n_strings && i < NAMES_SHOWN; i++)
        buf_printf(&text, "%s%s", i ? ", " : "", found->strings[i]);
    if (found->n_strings > NAMES_SHOWN)
        buf_printf(&text, " and %zu more", found->n_strings - NAMES_SHOWN);
    int code = error_set(err, ERR_NOT_FOUND, "'%s' is in %zu %s: %s; %s", annotation->job->subject, found->n_strings,
                         what, text.data ? text.data : "", more);
    buf_fini(&text);
    return code;
}

/* Looks among the files that have samples. *file: what is found, 0 = none. */
static int find_file(const struct annotation *annotation, uint32_t *file, struct error *err)
{
    const struct model *model = annotation->job->model;
    const char *name = annotation->job->subject;
    struct strtab found = {0};
    bool ok = true;
    int code = 0;
    for (size_t i = 0; ok && i < annotation->table.n_rows; i++) {
        uint32_t id = annotation->table.rows[i].file;
        const char *path = model_text(model, id);
        if (*path == '<' || !is_path(path, name, strlen(name)))
            continue;
        bool is_exact = strcmp(path, name) == 0;
        if (is_exact)
            strtab_fini(&found);
        ok = strtab_intern(&found, path) >= 0;
        *file = id;
        if (is_exact)
            break;
    }
    if (!ok)
        code = error_memory(err);
    else if (found.n_strings > 1)
        code = refuse_several(annotation, "files", "give more of the path", &found, err);
    strtab_fini(&found);
    return code;
}

/* Whether text is a function called name, in a module or not, or what the compiler made of it: "work [app]",
 * "work._omp_fn.0", "work.cold". */
static bool is_made_of(const char *text, const char *name)
{
    size_t len = strlen(name);
    return len > 0 && strncmp(text, name, len) == 0 && (text[len] == 0 || text[len] == '.' || text[len] == ' ');
}

/* How well this name fits a function: 0 with its parameters, if the name has any; 1 without; 2 without what is
 * around it; 3 not at all. *failed: out of memory. */
static unsigned name_distance(const char *function, const char *name, bool *failed)
{
    struct buf text = {0};
    text_function(&text, function);
    const char *plain = text.data ? text.data : "", *last = plain;
    for (const char *at = strstr(plain, "::"); at; at = strstr(at + 2, "::"))
        last = at + 2;
    bool is_whole = strcspn(name, "(.") < strlen(name) && strcmp(function, name) == 0;
    *failed |= text.failed;
    unsigned distance = is_whole ? 0 : is_made_of(plain, name) ? 1 : is_made_of(last, name) ? 2 : 3;
    buf_fini(&text);
    return distance;
}

/* Splits FILE:FUNCTION: the length of the file's name, 0 without one, and the function's name. */
static size_t split_subject(const char *subject, const char **function)
{
    const char *slash = strrchr(subject, '/'), *from = slash ? slash : subject, *colon = strchr(from, ':');
    bool is_split = colon && colon > subject && colon[1] && colon[1] != ':';
    *function = is_split ? colon + 1 : subject;
    return is_split ? (size_t)(colon - subject) : 0;
}

static bool has_name(const struct annotation *annotation, uint32_t name)
{
    size_t i = 0;
    while (i < annotation->n_names && annotation->names[i] != name)
        i++;
    return i < annotation->n_names;
}

/* Takes the functions among the rows that go by the name at this distance; *files: where they are. */
static bool take_functions(struct annotation *annotation, const struct code_table *functions, unsigned distance,
                           struct strtab *files)
{
    const struct model *model = annotation->job->model;
    const char *name;
    size_t n_file = split_subject(annotation->job->subject, &name);
    bool failed = false;
    for (size_t i = 0; i < functions->n_rows; i++) {
        const struct code_row *row = &functions->rows[i];
        const char *file = model_text(model, row->file), *known = *file ? file : model_text(model, row->module);
        if (name_distance(model_text(model, row->function), name, &failed) != distance)
            continue;
        if (n_file && !is_path(file, annotation->job->subject, n_file))
            continue;
        if (!vec_reserve(&annotation->names, &annotation->cap_names, annotation->n_names + 1, sizeof(uint32_t)) ||
            strtab_intern(files, known) < 0)
            return false;
        if (!has_name(annotation, row->function)) /* several modules may have it */
            annotation->names[annotation->n_names++] = row->function;
        annotation->file = row->file;
        annotation->inclusive += row->inclusive;
        if (row->line && (!annotation->first || row->line < annotation->first))
            annotation->first = row->line;
    }
    return !failed;
}

/* Says which functions and files the subject is like. */
static int refuse_subject(const struct annotation *annotation, const struct code_table *functions, struct error *err)
{
    const struct model *model = annotation->job->model;
    struct buf text = {0};
    size_t n = 0;
    const char **names = calloc(2 * functions->n_rows + 1, sizeof *names);
    if (!names)
        return error_memory(err);
    for (size_t i = 0; i < functions->n_rows; i++) {
        names[n++] = model_text(model, functions->rows[i].function);
        names[n++] = path_last(model_text(model, functions->rows[i].file));
    }
    spelling_suggest(&text, annotation->job->subject, names, n);
    bool is_like = text.data && strncmp(text.data, "; did", 5) == 0;
    int code =
        error_set(err, ERR_NOT_FOUND, "'%.200s' is neither a file nor a function with samples%.700s",
                  annotation->job->subject, is_like ? text.data : "; hpcquery lines and hpcquery functions list those");
    buf_fini(&text);
    free(names);
    return code;
}

static int find_functions(struct annotation *annotation, struct error *err)
{
    const struct export_job *job = annotation->job;
    struct code_table functions;
    struct strtab files = {0};
    int code = code_table_make(job->model, job->metric, CODE_FUNCTION, NULL, &functions, err);
    if (code != 0)
        return code;
    bool ok = true;
    for (unsigned distance = 0; ok && distance < 3 && annotation->n_names == 0; distance++)
        ok = take_functions(annotation, &functions, distance, &files);
    if (!ok)
        code = error_memory(err);
    else if (annotation->n_names == 0)
        code = refuse_subject(annotation, &functions, err);
    else if (files.n_strings > 1)
        code = refuse_several(annotation, "files", "give FILE:FUNCTION", &files, err);
    strtab_fini(&files);
    code_table_fini(&functions);
    return code;
}

static int compare_positions(const void *a, const void *b, void *context)
{
    const struct code_row *x = a, *y = b;
    const struct annotation *annotation = context;
    bool x_is_in = x->file == annotation->file && x->line, y_is_in = y->file == annotation->file && y->line;
    if (x_is_in != y_is_in)
        return x_is_in ? -1 : 1;
    if (x->file != y->file)
        return strcmp(model_text(annotation->job->model, x->file), model_text(annotation->job->model, y->file));
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return x->function < y->function ? -1 : x->function > y->function;
}

/* Adds a row to the one before, which is of the same line of another function. */
static bool merge_rows(struct code_row *into, const struct code_row *from)
{
    if (!vec_reserve(&into->data, &into->cap_data, into->n_data + from->n_data, sizeof *into->data))
        return false;
    into->own += from->own;
    into->inclusive += from->inclusive;
    for (size_t i = 0; i < from->n_data; i++) {
        size_t k = 0;
        while (k < into->n_data && into->data[k].variable != from->data[i].variable)
            k++;
        if (k == into->n_data)
            into->data[into->n_data++] = (struct code_data){from->data[i].variable, 0};
        into->data[k].value += from->data[i].value;
    }
    return true;
}

/* Leaves out rows of other files when it is about a file, puts the rest in order, one row for each line. */
static bool order_rows(struct annotation *annotation)
{
    struct code_table *table = &annotation->table;
    size_t n = 0;
    bool ok = true;
    for (size_t i = 0; i < table->n_rows; i++)
        if (annotation->n_names || table->rows[i].file == annotation->file)
            table->rows[n++] = table->rows[i];
        else
            free(table->rows[i].data);
    table->n_rows = n;
    qsort_r(table->rows, n, sizeof *table->rows, compare_positions, annotation);
    n = 0;
    for (size_t i = 0; i < table->n_rows; i++) {
        struct code_row *row = &table->rows[i], *last = n ? &table->rows[n - 1] : NULL;
        if (last && last->file == row->file && last->line == row->line) {
            ok = ok && merge_rows(last, row);
            free(row->data);
        } else {
            table->rows[n++] = *row;
        }
    }
    table->n_rows = n;
    while (annotation->n_in_file < n && table->rows[annotation->n_in_file].file == annotation->file &&
           table->rows[annotation->n_in_file].line)
        annotation->n_in_file++;
    return ok;
}

/* Functions may have all their lines in other files than the one they are declared in: then the costliest is shown. */
static void choose_file(struct annotation *annotation)
{
    const struct code_table *table = &annotation->table;
    for (size_t i = 0; i < table->n_rows; i++)
        if (table->rows[i].file == annotation->file && table->rows[i].line)
            return;
    if (table->n_rows)
        annotation->file = table->rows[0].file;
    annotation->first = 0;
}

static int compare_costs(const void *a, const void *b)
{
    const struct code_row *x = *(const struct code_row *const *)a, *y = *(const struct code_row *const *)b;
    if (x->own != y->own)
        return x->own < y->own ? 1 : -1;
    if (x->inclusive != y->inclusive)
        return x->inclusive < y->inclusive ? 1 : -1;
    return x < y ? -1 : x > y;
}

/* is_hot [n_rows]: the rows that cost the least part and are among the first ones. */
static bool find_hot(struct annotation *annotation, double least, bool *is_hot)
{
    const struct code_table *table = &annotation->table;
    const struct code_row **by_cost = calloc(table->n_rows + 1, sizeof *by_cost);
    size_t n = 0;
    if (!by_cost)
        return false;
    for (size_t i = 0; i < table->n_rows; i++)
        by_cost[i] = &table->rows[i];
    qsort(by_cost, table->n_rows, sizeof *by_cost, compare_costs);
    for (size_t i = 0; i < table->n_rows; i++) {
        const struct code_row *row = by_cost[i];
        double most = row->own > row->inclusive ? row->own : row->inclusive;
        bool is_shown =
            percent_of(most, table->total) >= least && (annotation->job->top == 0 || n < annotation->job->top);
        is_hot[row - table->rows] = is_shown;
        n += is_shown;
        annotation->n_left += !is_shown;
        annotation->rest += is_shown ? 0 : row->own;
    }
    free(by_cost);
    return true;
}

static bool add_shown(struct annotation *annotation, const struct code_row *row, uint32_t line)
{
    if (!vec_reserve(&annotation->shown, &annotation->cap_shown, annotation->n_shown + 1, sizeof *annotation->shown))
        return false;
    annotation->shown[annotation->n_shown++] = (struct shown_line){row, line};
    return true;
}

/* Marks the lines of the source that are shown: those that are hot, context lines around them, or all. */
static void mark_lines(const struct annotation *annotation, const bool *is_hot, size_t context, bool *is_shown)
{
    const struct code_row *rows = annotation->table.rows;
    size_t n = annotation->n_in_file, first = 1, end = annotation->source.n + 1;
    if (annotation->n_names && n) { /* a function's: up to the last line that is known of it */
        first = annotation->first && annotation->first < rows[0].line ? annotation->first : rows[0].line;
        end = (size_t)rows[n - 1].line + 1 < end ? (size_t)rows[n - 1].line + 1 : end;
    }
    for (size_t line = first; annotation->job->with_unused && line < end; line++)
        is_shown[line] = true;
    for (size_t i = 0; i < n; i++) {
        size_t line = rows[i].line, from = line > context ? line - context : 1;
        for (size_t k = from; is_hot[i] && k <= line + context && k <= annotation->source.n; k++)
            is_shown[k] = true;
    }
}

/* Lists the lines to be shown. */
static bool list_lines(struct annotation *annotation, double least, size_t context)
{
    const struct code_table *table = &annotation->table;
    bool *is_hot = calloc(table->n_rows + 1, sizeof *is_hot), ok = is_hot && find_hot(annotation, least, is_hot);
    bool *is_shown = calloc(annotation->source.n + 2, sizeof *is_shown);
    size_t at = 0;
    ok = ok && is_shown;
    if (ok)
        mark_lines(annotation, is_hot, context, is_shown);
    for (uint32_t line = 1; ok && line <= annotation->source.n; line++) {
        bool has_row = at < annotation->n_in_file && table->rows[at].line == line;
        const struct code_row *row = has_row ? &table->rows[at++] : NULL;
        bool is_small = row && !is_hot[row - table->rows];
        if (is_shown[line] && (context || annotation->job->with_unused || !is_small)) {
            ok = add_shown(annotation, row, line);
            if (is_small) {
                annotation->n_left--;
                annotation->rest -= row->own;
            }
        }
    }
    for (; ok && at < table->n_rows; at++) /* the source is missing, or these are not in it */
        if (is_hot[at])
            ok = add_shown(annotation, &table->rows[at], 0);
    free(is_hot);
    free(is_shown);
    return ok;
}

int annotation_find(struct annotation *annotation, const struct export_job *job, struct error *err)
{
    *annotation = (struct annotation){.job = job};
    struct code_table *table = &annotation->table;
    int code = code_table_make(job->model, job->metric, CODE_PLACE, NULL, table, err);
    if (code == 0)
        code = find_file(annotation, &annotation->file, err);
    if (code == 0 && !annotation->file) {
        code_table_fini(table);
        code = find_functions(annotation, err);
        annotation->functions = (struct code_functions){annotation->names, annotation->n_names, annotation->file};
        if (code == 0)
            code = code_table_make(job->model, job->metric, CODE_LINE, &annotation->functions, table, err);
    }
    if (code != 0)
        annotation_fini(annotation);
    return code;
}

static bool read_source(struct annotation *annotation)
{
    const char *name = model_text(annotation->job->model, annotation->file);
    return source_lines_read(annotation->job->directory, name, &annotation->source);
}

int annotation_make(struct annotation *annotation, const struct export_job *job, double least, size_t context,
                    struct error *err)
{
    int code = annotation_find(annotation, job, err);
    if (code != 0)
        return code;
    choose_file(annotation);
    if (!(order_rows(annotation) && read_source(annotation) && list_lines(annotation, least, context))) {
        annotation_fini(annotation);
        return error_memory(err);
    }
    return 0;
}

void annotation_put_functions(const struct annotation *annotation, struct buf *out)
{
    const struct model *model = annotation->job->model;
    struct strtab names = {0}; /* without parameters: overloaded functions have one */
    for (size_t i = 0; i < annotation->n_names; i++) {
        struct buf name = {0};
        text_function(&name, model_text(model, annotation->names[i]));
        (void)strtab_intern(&names, name.data ? name.data : "");
        buf_fini(&name);
    }
    for (size_t i = 0; i < names.n_strings && i < NAMES_SHOWN; i++)
        buf_printf(out, "%s%s", i ? ", " : "", names.strings[i]);
    if (names.n_strings > NAMES_SHOWN)
        buf_printf(out, " and %zu more", names.n_strings - NAMES_SHOWN);
    if (annotation->n_names > names.n_strings)
        buf_printf(out, " (%zu functions)", annotation->n_names);
    strtab_fini(&names);
}
