/* SPDX-License-Identifier: BSD-3-Clause */
/* The reports of functions and of lines, as text, CSV and JSON: what each costs, and which data it costs that on; and
 * sources with what their lines cost. */
#include "analysis/report/code-table.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "export/database/database.h"
#include "export/exporters.h"
#include "export/text-cells.h"
#include "fmt/json.h"

#define DATA_SHOWN 3
#define DATA_SHARE_MIN 5 /* percent of the row, below which data is not shown */
#define NAME_PART 30     /* percent of the terminal's width */
#define POSITION_PART 20
#define NAME_LEAST 12 /* characters */
#define POSITION_LEAST 10

/* The name of the variable that a row's data is in. */
static const char *data_name(const struct code_table *table, const struct code_data *data)
{
    return model_text(table->model, table->model->variables[data->variable].name);
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

/* "62 % table, 20 % keys": of the row's own value. */
static void put_data(const struct code_table *table, const struct code_row *row, struct buf *text)
{
    for (size_t i = 0; i < row->n_data && i < DATA_SHOWN; i++) {
        double share = percent(row->data[i].value, row->own);
        if (share >= DATA_SHARE_MIN)
            buf_printf(text, "%s%.0f %% %s", i ? ", " : "", share < 100 ? share : 100, data_name(table, &row->data[i]));
    }
}

static size_t name_width(const struct export_job *job)
{
    size_t width = job->columns * NAME_PART / 100;
    return width < NAME_LEAST ? NAME_LEAST : width;
}

static size_t position_width(const struct export_job *job)
{
    size_t width = job->columns * POSITION_PART / 100;
    return width < POSITION_LEAST ? POSITION_LEAST : width;
}

/* Cuts " [module]" off the end of a name where the module stands beside it. */
static void drop_module(struct buf *name, const char *module)
{
    size_t len = strlen(module) + strlen(" []");
    if (!name->data || name->len_bytes <= len)
        return;
    char *end = name->data + name->len_bytes - len;
    if (strncmp(end, " [", 2) == 0 && strncmp(end + 2, module, len - 3) == 0 && end[len - 1] == ']') {
        *end = 0;
        name->len_bytes -= len;
    }
}

static void put_text_row(const struct code_table *table, const struct export_job *job, enum code_kind kind,
                         const struct code_row *row, struct buf *out)
{
    const char *file = path_last(model_text(table->model, row->file));
    const char *module = path_last(model_text(table->model, row->module));
    size_t of_name = name_width(job), of_position = position_width(job), used = of_name + of_position + 22;
    struct buf name = {0}, position = {0}, data = {0};
    text_function(&name, model_text(table->model, row->function));
    if (row->line)
        buf_printf(&position, "%s:%u", file, row->line);
    else
        buf_printf(&position, "%s", *file == '<' ? module : file);
    if (!row->line && *file == '<')
        drop_module(&name, module);
    put_data(table, row, &data);
    buf_printf(out, "%5.1f %%  %5.1f %%  ", percent(row->own, table->total), percent(row->inclusive, table->total));
    text_style(out, job, TEXT_BOLD);
    text_cell(out, job, kind == CODE_FUNCTION ? name.data : position.data,
              kind == CODE_FUNCTION ? of_name : of_position, false);
    text_style(out, job, TEXT_PLAIN);
    buf_printf(out, "  ");
    text_cell(out, job, kind == CODE_FUNCTION ? position.data : name.data,
              kind == CODE_FUNCTION ? of_position : of_name, false);
    buf_printf(out, "  ");
    text_cut(out, job, data.data ? data.data : "", job->columns > used + 2 ? job->columns - used - 2 : 0);
    while (out->len_bytes && out->data[out->len_bytes - 1] == ' ')
        out->data[--out->len_bytes] = 0;
    buf_append(out, "\n", 1);
    buf_fini(&name);
    buf_fini(&position);
    buf_fini(&data);
}

/* Leaves out rows below the least part, with and without what they call, and all but the first ones. Returns how many;
 * *rest receives their own values. */
static size_t leave_out(struct code_table *table, const struct export_job *job, double *rest)
{
    size_t n = 0, n_all = table->n_rows;
    *rest = 0;
    for (size_t i = 0; i < n_all; i++) {
        struct code_row *row = &table->rows[i];
        double most = row->own > row->inclusive ? row->own : row->inclusive;
        if (percent(most, table->total) >= job->least && (job->top == 0 || n < job->top)) {
            table->rows[n++] = *row;
            continue;
        }
        *rest += row->own;
        free(row->data);
    }
    table->n_rows = n;
    return n_all - n;
}

/* Makes the rows that a job asks for. */
static int make_table(const struct export_job *job, enum code_kind kind, struct code_table *table, size_t *n_left,
                      double *rest, struct error *err)
{
    int code = code_table_make(job->model, job->metric, kind, NULL, table, err);
    *n_left = code == 0 ? leave_out(table, job, rest) : 0;
    return code;
}

static int write_text(const struct export_job *job, enum code_kind kind, struct buf *out, struct error *err)
{
    struct code_table table;
    const struct model *model = job->model;
    size_t n_left;
    double rest = 0;
    int code = make_table(job, kind, &table, &n_left, &rest, err);
    if (code != 0)
        return code;
    text_program(out, job);
    text_labelled(out, job, "metric", model->metrics[job->metric].name);
    text_style(out, job, TEXT_BOLD);
    if (kind == CODE_FUNCTION)
        buf_printf(out, "\n    own      all  %-*s  %-*s  on data\n", (int)name_width(job), "function",
                   (int)position_width(job), "begins at");
    else
        buf_printf(out, "\n    own      all  %-*s  %-*s  on data\n", (int)position_width(job), "line",
                   (int)name_width(job), "in");
    text_style(out, job, TEXT_PLAIN);
    for (size_t i = 0; i < table.n_rows; i++)
        put_text_row(&table, job, kind, &table.rows[i], out);
    if (n_left)
        buf_printf(out, "%5.1f %%  %zu more (--top 0 shows all)\n", percent(rest, table.total), n_left);
    code_table_fini(&table);
    return 0;
}

/* All variables with their values in one field. */
static void put_csv_data(const struct code_table *table, const struct code_row *row, struct buf *out)
{
    struct buf data = {0};
    for (size_t k = 0; k < row->n_data; k++)
        buf_printf(&data, "%s%s %.15g", k ? "; " : "", data_name(table, &row->data[k]), row->data[k].value);
    csv_put_text(out, data.data ? data.data : "");
    out->failed = out->failed || data.failed;
    buf_fini(&data);
}

static void put_json_data(const struct code_table *table, const struct code_row *row, struct buf *out)
{
    buf_printf(out, ", \"data\": [");
    for (size_t k = 0; k < row->n_data; k++) {
        buf_printf(out, k ? ", {\"variable\": " : "{\"variable\": ");
        json_put_text(out, data_name(table, &row->data[k]));
        json_put_double_at(out, "value", row->data[k].value);
        buf_append(out, "}", 1);
    }
    buf_append(out, "]", 1);
}

static int write_csv(const struct export_job *job, enum code_kind kind, struct buf *out, struct error *err)
{
    struct code_table table;
    size_t n_left;
    double rest;
    int code = make_table(job, kind, &table, &n_left, &rest, err);
    if (code != 0)
        return code;
    buf_printf(out, "function,file,line,module,own,own_share,inclusive,inclusive_share,data\n");
    for (size_t i = 0; i < table.n_rows; i++) {
        const struct code_row *row = &table.rows[i];
        csv_put_text(out, model_text(job->model, row->function));
        buf_append(out, ",", 1);
        csv_put_text(out, model_text(job->model, row->file));
        buf_printf(out, ",%u,", row->line);
        csv_put_text(out, model_text(job->model, row->module));
        buf_printf(out, ",%.15g,%.6f,%.15g,%.6f,", row->own, percent(row->own, table.total), row->inclusive,
                   percent(row->inclusive, table.total));
        put_csv_data(&table, row, out);
        buf_append(out, "\n", 1);
    }
    code_table_fini(&table);
    return 0;
}

static int write_json(const struct export_job *job, enum code_kind kind, struct buf *out, struct error *err)
{
    struct code_table table;
    size_t n_left;
    double rest;
    int code = make_table(job, kind, &table, &n_left, &rest, err);
    if (code != 0)
        return code;
    buf_printf(out, "{\"program\": ");
    json_put_text(out, job->model->program);
    json_put_text_at(out, "metric", job->model->metrics[job->metric].name);
    json_put_double_at(out, "total", table.total);
    buf_printf(out, ",\n\"%s\": [", kind == CODE_FUNCTION ? "functions" : "lines");
    for (size_t i = 0; i < table.n_rows; i++) {
        const struct code_row *row = &table.rows[i];
        buf_printf(out, i ? ",\n{\"function\": " : "\n{\"function\": ");
        json_put_text(out, model_text(job->model, row->function));
        json_put_text_at(out, "file", model_text(job->model, row->file));
        json_put_word_at(out, "line", row->line);
        json_put_text_at(out, "module", model_text(job->model, row->module));
        json_put_double_at(out, "own", row->own);
        json_put_double_at(out, "inclusive", row->inclusive);
        put_json_data(&table, row, out);
        buf_append(out, "}", 1);
    }
    buf_printf(out, "]}\n");
    code_table_fini(&table);
    return 0;
}

static int functions_text(const struct export_job *job, struct buf *out, struct error *err)
{
    return write_text(job, CODE_FUNCTION, out, err);
}

static int functions_csv(const struct export_job *job, struct buf *out, struct error *err)
{
    return write_csv(job, CODE_FUNCTION, out, err);
}

static int functions_json(const struct export_job *job, struct buf *out, struct error *err)
{
    return write_json(job, CODE_FUNCTION, out, err);
}

static int lines_text(const struct export_job *job, struct buf *out, struct error *err)
{
    return write_text(job, CODE_LINE, out, err);
}

static int lines_csv(const struct export_job *job, struct buf *out, struct error *err)
{
    return write_csv(job, CODE_LINE, out, err);
}

static int lines_json(const struct export_job *job, struct buf *out, struct error *err)
{
    return write_json(job, CODE_LINE, out, err);
}

const struct exporter export_functions_text = {"functions", "text", functions_text};
const struct exporter export_functions_csv = {"functions", "csv", functions_csv};
const struct exporter export_functions_json = {"functions", "json", functions_json};
const struct exporter export_lines_text = {"lines", "text", lines_text};
const struct exporter export_lines_csv = {"lines", "csv", lines_csv};
const struct exporter export_lines_json = {"lines", "json", lines_json};

/* --- annotate --- */

/* The sources of a file or of a function with what each line costs and which variables it touches. One list of lines
 * serves all forms. */

#define CONTEXT_LINES 3
#define HOT_SHARE 0.5 /* percent of everything, from which a line is shown as text */
#define NAMES_SHOWN 5
#define TAB 8

/* A line to be shown. */
struct shown_line {
    const struct code_row *row; /* NULL: it has no samples */
    uint32_t line;              /* of the source; 0: in another file, or nowhere in it */
};

struct annotation {
    const struct export_job *job;
    struct code_table table; /* rows of the file shown first, by line */
    size_t n_in_file;        /* so many rows are in the file shown */
    struct code_functions functions;
    uint32_t *names; /* [n_names] of the functions, when it is about functions; owned */
    size_t n_names, cap_names;
    uint32_t file;     /* string id: whose source is shown */
    uint32_t first;    /* of functions: the first line of the first one, 0 = not known */
    double inclusive;  /* of one function, with what it calls */
    struct buf source; /* newlines have become zeros */
    size_t *starts;    /* [n_lines] of each line */
    size_t n_lines, cap_starts;
    struct shown_line *shown; /* [n_shown] in the order of the source */
    size_t n_shown, cap_shown;
    double rest; /* own value of the lines that are left out */
    size_t n_left;
};

static void annotation_fini(struct annotation *annotation)
{
    code_table_fini(&annotation->table);
    free(annotation->names);
    buf_fini(&annotation->source);
    free(annotation->starts);
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
        code = error_set(err, ERR_MEMORY, "out of memory");
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

/* How well a function goes by this name: 0 with its parameters, if the name has any; 1 without; 2 without what is
 * around it; 3 not at all. */
static unsigned name_distance(const char *function, const char *name)
{
    struct buf text = {0};
    text_function(&text, function);
    const char *plain = text.data ? text.data : "", *last = plain;
    for (const char *at = strstr(plain, "::"); at; at = strstr(at + 2, "::"))
        last = at + 2;
    bool is_whole = strcspn(name, "(.") < strlen(name) && strcmp(function, name) == 0;
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

/* Takes the functions among the rows that go by the name at this distance; *files: where they are. */
static bool take_functions(struct annotation *annotation, const struct code_table *functions, unsigned distance,
                           struct strtab *files)
{
    const struct model *model = annotation->job->model;
    const char *name;
    size_t n_file = split_subject(annotation->job->subject, &name);
    for (size_t i = 0; i < functions->n_rows; i++) {
        const struct code_row *row = &functions->rows[i];
        const char *file = model_text(model, row->file), *known = *file ? file : model_text(model, row->module);
        if (name_distance(model_text(model, row->function), name) != distance)
            continue;
        if (n_file && !is_path(file, annotation->job->subject, n_file))
            continue;
        if (!vec_reserve(&annotation->names, &annotation->cap_names, annotation->n_names + 1, sizeof(uint32_t)) ||
            strtab_intern(files, known) < 0)
            return false;
        annotation->names[annotation->n_names++] = row->function;
        annotation->file = row->file;
        annotation->inclusive += row->inclusive;
        if (row->line && (!annotation->first || row->line < annotation->first))
            annotation->first = row->line;
    }
    return true;
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
        code = error_set(err, ERR_MEMORY, "out of memory");
    else if (annotation->n_names == 0)
        code = error_set(err, ERR_NOT_FOUND,
                         "'%s' is neither a file nor a function with samples; hpcquery lines and "
                         "hpcquery functions list those",
                         job->subject);
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

/* Reads the copy of the source and finds its lines; without one there are none. */
static bool read_source(struct annotation *annotation)
{
    struct buf *source = &annotation->source;
    const char *name = model_text(annotation->job->model, annotation->file);
    if (!*name || *name == '<' || !sources_read(annotation->job->directory, name, source))
        return !source->failed;
    for (size_t at = 0; at < source->len_bytes;) {
        char *end = memchr(source->data + at, '\n', source->len_bytes - at);
        if (!vec_reserve(&annotation->starts, &annotation->cap_starts, annotation->n_lines + 1, sizeof(size_t)))
            return false;
        annotation->starts[annotation->n_lines++] = at;
        at = end ? (size_t)(end - source->data) + 1 : source->len_bytes;
        if (end)
            *end = 0;
    }
    return true;
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
        bool is_shown = percent(most, table->total) >= least && (annotation->job->top == 0 || n < annotation->job->top);
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
    size_t n = annotation->n_in_file, first = 1, end = annotation->n_lines + 1;
    if (annotation->n_names && n) { /* a function's: up to the last line that is known of it */
        first = annotation->first && annotation->first < rows[0].line ? annotation->first : rows[0].line;
        end = (size_t)rows[n - 1].line + 1 < end ? (size_t)rows[n - 1].line + 1 : end;
    }
    for (size_t line = first; annotation->job->with_unused && line < end; line++)
        is_shown[line] = true;
    for (size_t i = 0; i < n; i++) {
        size_t line = rows[i].line, from = line > context ? line - context : 1;
        for (size_t k = from; is_hot[i] && k <= line + context && k <= annotation->n_lines; k++)
            is_shown[k] = true;
    }
}

/* Lists the lines to be shown. */
static bool list_lines(struct annotation *annotation, double least, size_t context)
{
    const struct code_table *table = &annotation->table;
    bool *is_hot = calloc(table->n_rows + 1, sizeof *is_hot), ok = is_hot && find_hot(annotation, least, is_hot);
    bool *is_shown = calloc(annotation->n_lines + 2, sizeof *is_shown);
    size_t at = 0;
    ok = ok && is_shown;
    if (ok)
        mark_lines(annotation, is_hot, context, is_shown);
    for (uint32_t line = 1; ok && line <= annotation->n_lines; line++) {
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

static int annotation_make(struct annotation *annotation, const struct export_job *job, double least, size_t context,
                           struct error *err)
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
    if (code == 0)
        choose_file(annotation);
    if (code == 0 && !(order_rows(annotation) && read_source(annotation) && list_lines(annotation, least, context)))
        code = error_set(err, ERR_MEMORY, "out of memory");
    if (code != 0)
        annotation_fini(annotation);
    return code;
}

/* The text of a shown line, "" where there is none. */
static const char *source_of(const struct annotation *annotation, const struct shown_line *shown)
{
    return shown->line ? annotation->source.data + annotation->starts[shown->line - 1] : "";
}

/* With blanks for tabs, as they would be shown. */
static void put_source(const struct annotation *annotation, const struct shown_line *shown, struct buf *out)
{
    size_t column = 0;
    for (const char *at = source_of(annotation, shown); *at && *at != '\r'; at++) {
        size_t n = *at == '\t' ? TAB - column % TAB : 1;
        buf_append(out, *at == '\t' ? "        " : at, n);
        column += n;
    }
}

static void put_shown(const struct annotation *annotation, const struct shown_line *shown, struct buf *out)
{
    const struct export_job *job = annotation->job;
    const struct code_table *table = &annotation->table;
    const struct code_row *row = shown->row;
    size_t of_data = job->columns / 4, of_source = job->columns - of_data - 29;
    size_t without_data = of_source + of_data + 2;
    struct buf text = {0}, data = {0};
    if (row)
        buf_printf(out, "%5.1f %%  %5.1f %%  ", percent(row->own, table->total), percent(row->inclusive, table->total));
    else
        buf_printf(out, "%18s", "");
    if (shown->line)
        put_source(annotation, shown, &text);
    else if (row)
        buf_printf(&text, "%s",
                   row->file == annotation->file && row->line && annotation->n_lines
                       ? "(behind the end of the copy)"
                       : path_last(model_text(job->model, row->file)));
    if (row)
        put_data(table, row, &data);
    if (shown->line || row->line)
        buf_printf(out, "%6u  ", shown->line ? shown->line : row->line);
    else
        buf_printf(out, "     ?  ");
    text_style(out, job, row ? TEXT_PLAIN : TEXT_DIM);
    text_cell(out, job, text.data ? text.data : "", data.len_bytes ? of_source : without_data, false);
    text_style(out, job, TEXT_PLAIN);
    buf_printf(out, "  ");
    text_cut(out, job, data.data ? data.data : "", of_data);
    while (out->len_bytes && out->data[out->len_bytes - 1] == ' ')
        out->data[--out->len_bytes] = 0;
    buf_append(out, "\n", 1);
    buf_fini(&text);
    buf_fini(&data);
}

static double own_of_all(const struct annotation *annotation)
{
    double own = 0;
    for (size_t i = 0; i < annotation->table.n_rows; i++)
        own += annotation->table.rows[i].own;
    return own;
}

static void put_annotation_head(const struct annotation *annotation, struct buf *out)
{
    const struct export_job *job = annotation->job;
    const struct model *model = job->model;
    const char *file = model_text(model, annotation->file);
    double total = annotation->table.total;
    struct buf text = {0};
    text_program(out, job);
    for (size_t i = 0; i < annotation->n_names && i < NAMES_SHOWN; i++) {
        buf_printf(&text, "%s", i ? ", " : "");
        text_function(&text, model_text(model, annotation->names[i]));
    }
    if (annotation->n_names > NAMES_SHOWN)
        buf_printf(&text, " and %zu more", annotation->n_names - NAMES_SHOWN);
    if (text.len_bytes)
        text_labelled(out, job, annotation->n_names == 1 ? "function" : "functions", text.data);
    buf_fini(&text);
    buf_printf(&text, "%s%s", *file ? file : "not known",
               annotation->n_lines ? "" : ": the database has no copy of it, so that only its lines' numbers follow");
    text_labelled(out, job, "file", text.data ? text.data : "");
    buf_fini(&text);
    buf_printf(&text, "%.1f %% of %s", percent(own_of_all(annotation), total), model->metrics[job->metric].name);
    if (annotation->n_names == 1)
        buf_printf(&text, ", %.1f %% with what it calls", percent(annotation->inclusive, total));
    text_labelled(out, job, "share", text.data ? text.data : "");
    buf_fini(&text);
}

static int annotate_text(const struct export_job *job, struct buf *out, struct error *err)
{
    struct annotation annotation;
    int code = annotation_make(&annotation, job, job->least < 0 ? HOT_SHARE : job->least, CONTEXT_LINES, err);
    if (code != 0)
        return code;
    put_annotation_head(&annotation, out);
    text_style(out, job, TEXT_BOLD);
    buf_printf(out, "\n    own      all    line  %-*s  on data\n", (int)(job->columns - job->columns / 4 - 29),
               annotation.n_lines ? "source" : "file");
    text_style(out, job, TEXT_PLAIN);
    for (size_t i = 0; i < annotation.n_shown; i++) {
        const struct shown_line *shown = &annotation.shown[i];
        if (shown->line && (i ? shown[-1].line : 0) + 1 != shown->line)
            buf_printf(out, "%24s\n", "...");
        put_shown(&annotation, shown, out);
    }
    if (annotation.n_left)
        buf_printf(out, "%5.1f %%  %zu more lines with samples (--%s 0 shows all)\n",
                   percent(annotation.rest, annotation.table.total), annotation.n_left, job->top ? "top" : "min");
    annotation_fini(&annotation);
    return 0;
}

/* What a line costs that may have no samples. */
static struct code_row costs_of(const struct annotation *annotation, const struct shown_line *shown)
{
    return shown->row ? *shown->row : (struct code_row){.file = annotation->file, .line = shown->line};
}

static int annotate_csv(const struct export_job *job, struct buf *out, struct error *err)
{
    struct annotation annotation;
    int code = annotation_make(&annotation, job, job->least, 0, err);
    if (code != 0)
        return code;
    double total = annotation.table.total;
    buf_printf(out, "file,line,own,own_share,inclusive,inclusive_share,data,source\n");
    for (size_t i = 0; i < annotation.n_shown; i++) {
        const struct shown_line *shown = &annotation.shown[i];
        struct code_row row = costs_of(&annotation, shown);
        struct buf source = {0};
        csv_put_text(out, model_text(job->model, row.file));
        buf_printf(out, ",%u,%.15g,%.6f,%.15g,%.6f,", row.line, row.own, percent(row.own, total), row.inclusive,
                   percent(row.inclusive, total));
        put_csv_data(&annotation.table, &row, out);
        buf_append(out, ",", 1);
        put_source(&annotation, shown, &source);
        csv_put_text(out, source.data ? source.data : "");
        buf_append(out, "\n", 1);
        buf_fini(&source);
    }
    annotation_fini(&annotation);
    return 0;
}

static int annotate_json(const struct export_job *job, struct buf *out, struct error *err)
{
    struct annotation annotation;
    int code = annotation_make(&annotation, job, job->least, 0, err);
    if (code != 0)
        return code;
    buf_printf(out, "{\"program\": ");
    json_put_text(out, job->model->program);
    json_put_text_at(out, "metric", job->model->metrics[job->metric].name);
    json_put_double_at(out, "total", annotation.table.total);
    json_put_text_at(out, "file", model_text(job->model, annotation.file));
    buf_printf(out, ", \"has_source\": %s, \"functions\": [", annotation.n_lines ? "true" : "false");
    for (size_t i = 0; i < annotation.n_names; i++) {
        buf_printf(out, "%s", i ? ", " : "");
        json_put_text(out, model_text(job->model, annotation.names[i]));
    }
    buf_append(out, "]", 1);
    json_put_double_at(out, "own", own_of_all(&annotation));
    buf_printf(out, ",\n\"lines\": [");
    for (size_t i = 0; i < annotation.n_shown; i++) {
        const struct shown_line *shown = &annotation.shown[i];
        struct code_row row = costs_of(&annotation, shown);
        struct buf source = {0};
        buf_printf(out, i ? ",\n{\"file\": " : "\n{\"file\": ");
        json_put_text(out, model_text(job->model, row.file));
        json_put_word_at(out, "line", row.line);
        json_put_double_at(out, "own", row.own);
        json_put_double_at(out, "inclusive", row.inclusive);
        put_json_data(&annotation.table, &row, out);
        put_source(&annotation, shown, &source);
        json_put_text_at(out, "source", source.data ? source.data : "");
        buf_append(out, "}", 1);
        buf_fini(&source);
    }
    buf_printf(out, "]}\n");
    annotation_fini(&annotation);
    return 0;
}

const struct exporter export_annotate_text = {"annotate", "text", annotate_text};
const struct exporter export_annotate_csv = {"annotate", "csv", annotate_csv};
const struct exporter export_annotate_json = {"annotate", "json", annotate_json};
