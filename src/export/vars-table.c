/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns of the table of variables, and how they share the terminal's width. */
#include "export/vars-table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/report.h"
#include "arena/arena.h"
#include "base/input.h"
#include "base/path.h"
#include "export/text-cells.h"
#include "structure/names/assign-name.h"

#define WIDE 95             /* from so many columns on there is room for bars */
#define VERY_WIDE 120       /* ... and for all parts of a share */
#define NAME_WIDTH 8        /* least width of a column that wraps */
#define TEXT_ROOM 44        /* for name and origin: with less the origin goes into a line of its own */
#define LEAST_ROOM 12       /* for the name alone: with less the class goes there too */
#define CELL_LINES 4        /* lines that a cell may take when wrapped ... */
#define SCREEN_CELL_LINES 2 /* ... where the report fits one screen */
#define PATH_FUNCTIONS 4
#define WORDS_WIDTH 40 /* least room for words */
#define NO_CALLERS "callers not known"
#define GAP 2
#define NARROW_GAP 1

static bool has_shares(const struct report *report, const struct export_job *job)
{
    (void)job;
    return !report->has_too_few;
}

static bool has_counts(const struct report *report, const struct export_job *job)
{
    return !has_shares(report, job);
}

static bool has_bars(const struct report *report, const struct export_job *job)
{
    return has_shares(report, job) && job->columns >= WIDE;
}

static bool has_causes(const struct report *report, const struct export_job *job)
{
    return has_shares(report, job) && report->has_causes;
}

static bool has_all_causes(const struct report *report, const struct export_job *job)
{
    return has_causes(report, job) && job->columns >= VERY_WIDE;
}

static bool has_levels(const struct report *report, const struct export_job *job)
{
    (void)job;
    return report->is_hardware;
}

static bool has_sizes(const struct report *report, const struct export_job *job)
{
    return !has_levels(report, job);
}

static void put_samples(const struct table_row *row, struct buf *cell)
{
    if (isnan(row->row->samples))
        buf_printf(cell, "-");
    else
        buf_printf(cell, "%.0f", row->row->samples);
}

static void put_share(const struct table_row *row, struct buf *cell)
{
    buf_printf(cell, "%.1f %%", row->row->share);
}

/* A part of the share; a dash in rows that are a share of another total, or a cause of their own. */
static void put_part(const struct report_row *row, double part, struct buf *cell)
{
    const struct cause_sum *sum = &row->causes;
    if (report_aside(row) == REPORT_CAUSES && sum->memory + sum->execution + sum->unverified > 0)
        buf_printf(cell, "%.1f %%", part);
    else
        buf_printf(cell, "-");
}

static void put_memory(const struct table_row *row, struct buf *cell)
{
    if (report_is_memory_unknown(&row->row->causes))
        buf_printf(cell, "unknown");
    else
        put_part(row->row, row->row->causes.memory, cell);
}

static void put_execution(const struct table_row *row, struct buf *cell)
{
    put_part(row->row, row->row->causes.execution, cell);
}

static void put_unverified(const struct table_row *row, struct buf *cell)
{
    put_part(row->row, row->row->causes.unverified, cell);
}

static void put_bar(const struct table_row *row, struct buf *cell)
{
    text_bar(cell, row->job, row->row->share, 8);
}

static void put_name(const struct table_row *row, struct buf *cell)
{
    if (row->job->is_verbose)
        text_origin(cell, row->row->name);
    else
        text_short_name(cell, row->row->name);
}

/* Special rows have no class: their names say what they are. */
static void put_class(const struct table_row *row, struct buf *cell)
{
    buf_printf(cell, "%s", report_is_special(row->row) ? "-" : row->row->class);
}

/* Numbers from the hardware, with as many digits as are meaningful. */
static void put_derived(const struct table_row *row, struct buf *cell)
{
    double value = row->row->derived ? row->row->derived[row->derived] : (double)NAN;
    buf_printf(cell, metrics_is_beyond(metrics_row(row->derived), value) ? "> " : "");
    text_number(cell, value);
}

void vars_table_put_size(const struct report_row *row, struct buf *text)
{
    char size[16];
    text_size(report_is_turned_over(row) ? row->size_bytes / row->n_blocks : row->size_bytes, size);
    buf_printf(text, "%s", size);
}

void vars_table_put_blocks(const struct report_row *row, struct buf *text)
{
    if (row->n_blocks)
        buf_printf(text, "%s%llu", report_is_turned_over(row) ? "x " : "", (unsigned long long)row->n_blocks);
    else
        buf_printf(text, "-");
}

static void put_asked(const struct table_row *row, struct buf *cell)
{
    derived_put_cell(row->asked, (size_t)(row->row - row->report->rows), row->derived, cell);
}

static void put_size(const struct table_row *row, struct buf *cell)
{
    vars_table_put_size(row->row, cell);
}

static void put_blocks(const struct table_row *row, struct buf *cell)
{
    vars_table_put_blocks(row->row, cell);
}

static void put_origin(const struct table_row *row, struct buf *cell)
{
    vars_table_put_origin(row->report, row->row, cell);
}

/* To add a column, add its row here. */
static const struct table_column columns[] = {
    {"samples", 7, COLUMN_RIGHT, has_counts, put_samples},
    {"share", 7, COLUMN_RIGHT, has_shares, put_share},
    {"memory", 7, COLUMN_RIGHT, has_causes, put_memory},
    {"execution", 7, COLUMN_RIGHT, has_all_causes, put_execution},
    {"unverified", 7, COLUMN_RIGHT, has_all_causes, put_unverified},
    {"", 8, 0, has_bars, put_bar},
    {"variable", NAME_WIDTH, COLUMN_BOLD | COLUMN_WRAPS, NULL, put_name},
    {"class", 5, COLUMN_BELOW_LAST, NULL, put_class},
    {NULL, 5, COLUMN_RIGHT | COLUMN_DERIVED, has_levels, put_derived},
    {NULL, 5, COLUMN_RIGHT | COLUMN_ASKED, NULL, put_asked},
    {"size", 8, COLUMN_RIGHT | COLUMN_BELOW, has_sizes, put_size},
    {"blocks", 6, COLUMN_RIGHT | COLUMN_BELOW, has_sizes, put_blocks},
    {"comes from", NAME_WIDTH, COLUMN_WRAPS | COLUMN_BELOW, has_sizes, put_origin},
};

/* The functions on the costliest allocation path, innermost first, without the one that is the site; for Python code
 * the Python functions. */
static void put_path(const struct report *report, const struct report_row *row, struct buf *text)
{
    const struct model *model = report->model;
    size_t n = 0;
    uint32_t at = row->variable->n_scopes ? row->variable->scopes[0] : 0;
    bool is_python = strcmp(model_text(model, row->variable->module), PYTHON_MODULE) == 0;
    struct buf path = {0};
    while (at && (at = model->scopes[at].parent)) {
        const struct scope *scope = &model->scopes[at];
        bool is_function = scope->kind == SCOPE_PROC || scope->kind == SCOPE_INLINED;
        if (scope->role != ROLE_NONE ||
            (is_python && is_function && strcmp(model_text(model, scope->module), PYTHON_MODULE) != 0))
            break;
        if (!is_function || (n == 0 && scope->name == row->variable->function))
            continue;
        buf_printf(&path, n == PATH_FUNCTIONS ? " < ..." : n ? " < " : "");
        if (n++ == PATH_FUNCTIONS)
            break;
        text_function(&path, model_text(model, scope->name));
    }
    const char *outermost = model_text(model, row->variable->function);
    bool is_unknown = n == 0 && !is_python && strcmp(outermost, "main") != 0 && strcmp(outermost, "MAIN__") != 0;
    if ((n || is_unknown) && row->n_paths > 1)
        buf_printf(text, "1 of %zu paths: ", row->n_paths);
    else if (n)
        buf_printf(text, "path: ");
    buf_printf(text, "%s", n ? path.data : is_unknown ? NO_CALLERS : "");
    text->failed = text->failed || path.failed;
    buf_fini(&path);
}

/* Puts a function without parameters, return type and template arguments. */
static void put_bare(struct buf *out, const char *function)
{
    char qualified[256];
    if (strchr(function, '<'))
        (void)assign_name_function(function, qualified, sizeof qualified);
    text_function(out, strchr(function, '<') ? qualified : function);
}

/* Whether the site is the function that is already in the name: "_sdsnewlen" of "blocks of 22 B from _sdsnewlen",
 * "Array<int>::grow" of "Array::grow", and the function without a name of "note_uses > func_0x10 [app]". */
static bool is_site_in_name(const struct report_row *row)
{
    uint64_t place;
    if (report_place(row->name, &place))
        return strchr(row->site, '(') == NULL; /* else it says which call it is */
    const char *from = strstr(row->name, " from "), *inner = strstr(row->name, " > ");
    struct buf name = {0}, site = {0};
    bool is_small = strncmp(row->name, "blocks of ", 10) == 0 && from;
    put_bare(&name, inner ? inner + 3 : is_small ? from + 6 : row->name);
    put_bare(&site, row->site);
    bool is_same = name.data && site.data && strcmp(name.data, site.data) == 0;
    buf_fini(&name);
    buf_fini(&site);
    return is_same;
}

/* Puts how many bytes went through a file and where it is, or that it is mapped. */
static void put_file(const struct report *report, const struct report_row *row, struct buf *text)
{
    char size[16];
    const char *path = model_text(report->model, row->variable->module);
    int n_folder = (int)(path_last(path) - path);
    text_size((uint64_t)row->value, size);
    if (!metrics_is_io(report->model->metrics[report->metric].name))
        buf_printf(text, "a mapped file");
    else
        buf_printf(text, "%s%s%.*s", size, n_folder ? "  " : "", n_folder, path);
}

/* Puts where the row's variable comes from; false when that is no place but a path or words. */
static bool put_place_or_words(const struct report *report, const struct report_row *row, struct buf *text)
{
    const struct special_row *special = special_rows_find(row->name);
    const struct variable *variable = row->variable;
    size_t before = text->len_bytes;
    bool is_block = model_is_block(variable);
    bool has_site = *row->site && strcmp(row->site, row->name) != 0 && !(is_block && is_site_in_name(row));
    if (row->n_constructs > 1)
        buf_append(text, row->site, strcspn(row->site, ":")); /* for what it waited stands below */
    else if (has_site)
        text_origin(text, row->site);
    else if (special && special->origin)
        buf_printf(text, "%s", special->origin);
    else if (is_block)
        put_path(report, row, text);
    else if (variable && variable->class == CLASS_FILE)
        put_file(report, row, text);
    else if (variable && variable->class == CLASS_STACK && !*row->site)
        buf_printf(text, "used by other threads");
    bool is_empty = text->len_bytes == before;
    if (is_empty)
        buf_printf(text, "%s", *row->site ? row->site : "-");
    return variable && !special && (has_site || (is_empty && *row->site));
}

void vars_table_put_origin(const struct report *report, const struct report_row *row, struct buf *text)
{
    (void)put_place_or_words(report, row, text);
}

static void put_cell(const struct vars_table *table, size_t i, const struct report_row *row, struct buf *cell)
{
    const struct table_row of = {table->report, table->job, row, table->shown[i].derived, table->asked};
    struct buf raw = {0};
    table->shown[i].column->put(&of, &raw);
    printable_put(cell, raw.data ? raw.data : "");
    cell->failed = cell->failed || raw.failed;
    buf_fini(&raw);
}

static const char *title_of(const struct vars_table *table, size_t i)
{
    const struct table_column *column = table->shown[i].column;
    if (column->flags & COLUMN_ASKED)
        return table->asked->names[table->shown[i].derived];
    return column->flags & COLUMN_DERIVED ? metrics_row(table->shown[i].derived)->title : column->title;
}

static void add_column(struct vars_table *table, const struct table_column *column, size_t derived)
{
    if (table->n_columns == TABLE_COLUMNS_MAX)
        return;
    size_t i = table->n_columns++, width = column->width;
    table->shown[i].column = column;
    table->shown[i].derived = derived;
    if (strlen(title_of(table, i)) > width)
        width = strlen(title_of(table, i));
    if (column->put == put_name && width < sizeof "user code" - 1)
        width = sizeof "user code" - 1; /* of the rows of vars_table_put_words, which are never cut */
    for (size_t r = 0; r < table->n_rows; r++) {
        struct buf cell = {0};
        put_cell(table, i, &table->report->rows[r], &cell);
        size_t n = text_width(cell.data ? cell.data : "");
        width = n > width ? n : width;
        table->failed |= cell.failed;
        buf_fini(&cell);
    }
    table->shown[i].width = width;
}

static void choose_columns(struct vars_table *table)
{
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        const struct table_column *column = &columns[i];
        if (column->is_shown && !column->is_shown(table->report, table->job))
            continue;
        if (!(column->flags & (COLUMN_DERIVED | COLUMN_ASKED)))
            add_column(table, column, 0);
        for (size_t k = 0; column->flags & COLUMN_ASKED && k < table->asked->n; k++)
            add_column(table, column, k);
        for (size_t m = 0; column->flags & COLUMN_DERIVED && metrics_row(m); m++)
            if (metrics_row(m)->title)
                add_column(table, column, m);
    }
}

static bool is_below(const struct vars_table *table, size_t i)
{
    return table->shown[i].column->flags & table->flags_below;
}

/* The width that is left by the columns that do not wrap. */
static size_t room_of(const struct vars_table *table, size_t *wanted, size_t *n_wrapped)
{
    size_t used = 0, n_columns = 0;
    *wanted = *n_wrapped = 0;
    for (size_t i = 0; i < table->n_columns; i++) {
        bool wraps = table->shown[i].column->flags & COLUMN_WRAPS;
        if (is_below(table, i))
            continue;
        used += wraps ? 0 : table->shown[i].width;
        *wanted += wraps ? table->shown[i].width : 0;
        *n_wrapped += wraps;
        n_columns++;
    }
    used += n_columns ? table->gap * (n_columns - 1) : 0;
    return table->job->columns > used ? table->job->columns - used : 0;
}

/* Columns that wrap share the width that is left: those that need less than their part get what they need. */
static void share_room(struct vars_table *table)
{
    size_t wanted, n, room = room_of(table, &wanted, &n);
    for (bool is_new = true; is_new && wanted > room;) {
        is_new = false;
        for (size_t i = 0; i < table->n_columns && n > 0; i++) {
            size_t width = table->shown[i].width;
            bool wraps = table->shown[i].column->flags & COLUMN_WRAPS && !is_below(table, i);
            if (!wraps || table->shown[i].at || width > room / n)
                continue;
            table->shown[i].at = 1; /* settled */
            room -= width;
            wanted -= width;
            n--;
            is_new = true;
        }
    }
    for (size_t i = 0; i < table->n_columns && wanted > room; i++)
        if (table->shown[i].column->flags & COLUMN_WRAPS && !is_below(table, i) && !table->shown[i].at) {
            table->shown[i].width = room / n > NAME_WIDTH ? room / n : NAME_WIDTH;
            room -= table->shown[i].width < room ? table->shown[i].width : room;
            n -= n > 1;
        }
}

/* Chooses what goes below the rows. */
static void choose_lines(struct vars_table *table)
{
    size_t wanted, n, room = room_of(table, &wanted, &n);
    if (table->report->is_hardware || (wanted > room && room < TEXT_ROOM))
        table->flags_below = COLUMN_BELOW;
    room = room_of(table, &wanted, &n);
    if (table->flags_below && wanted > room && room < LEAST_ROOM)
        table->flags_below |= COLUMN_BELOW_LAST;
}

void vars_table_init(struct vars_table *table, const struct report *report, const struct export_job *job,
                     const struct derived *asked, size_t n_rows)
{
    size_t at = 0;
    *table = (struct vars_table){
        .report = report, .job = job, .asked = asked, .n_rows = n_rows, .gap = job->columns < WIDE ? NARROW_GAP : GAP};
    choose_columns(table);
    choose_lines(table);
    share_room(table);
    for (size_t i = 0; i < table->n_columns; i++) {
        table->shown[i].at = at;
        if (table->shown[i].column->put == put_name)
            table->indent = at + 2;
        at += is_below(table, i) ? 0 : table->shown[i].width + table->gap;
    }
}

void vars_table_put_titles(const struct vars_table *table, struct buf *out)
{
    out->failed = out->failed || table->failed;
    text_style(out, table->job, TEXT_BOLD);
    for (size_t i = 0; i < table->n_columns; i++) {
        if (is_below(table, i))
            continue;
        buf_printf(out, "%*s", table->shown[i].at ? (int)table->gap : 0, "");
        text_cell(out, table->job, title_of(table, i), table->shown[i].width,
                  table->shown[i].column->flags & COLUMN_RIGHT);
    }
    text_end_line(out);
    text_style(out, table->job, TEXT_PLAIN);
}

/* Puts one line of a row, taken from what remains of the cells. */
static void put_line(const struct vars_table *table, const char **rests, bool is_last, struct buf *out)
{
    const struct export_job *job = table->job;
    for (size_t i = 0; i < table->n_columns; i++) {
        size_t width = table->shown[i].width, flags = table->shown[i].column->flags;
        if (is_below(table, i))
            continue;
        buf_printf(out, "%*s", table->shown[i].at ? (int)table->gap : 0, "");
        char *line = is_last ? strdup(rests[i]) : text_take_line(&rests[i], width);
        out->failed |= !line;
        if (flags & COLUMN_BOLD)
            text_style(out, job, TEXT_BOLD);
        text_cell(out, job, line ? line : "", width, flags & COLUMN_RIGHT);
        if (flags & COLUMN_BOLD)
            text_style(out, job, TEXT_PLAIN);
        free(line);
    }
    text_end_line(out);
}

/* Leaves the template arguments of a place out, where it has no room in a line with them. */
static void shorten_place(const struct vars_table *table, struct buf *place)
{
    struct buf name = {0};
    if (!place->data || table->indent + printable_chars(place->data) <= table->job->columns)
        return;
    text_short_name(&name, place->data);
    name.failed = name.failed || place->failed;
    buf_fini(place);
    *place = name;
}

/* Puts what has no room beside the name, if the terminal is narrow or the numbers from the hardware take the room. */
static void put_below(const struct vars_table *table, const struct report_row *row, size_t most, struct buf *out)
{
    struct buf text = {0}, origin = {0};
    bool is_data = row->variable && !special_rows_find(row->name);
    if (table->flags_below & COLUMN_BELOW_LAST && !report_is_special(row))
        buf_printf(&text, "%s: ", row->class);
    if (row->size_bytes) {
        vars_table_put_size(row, &text);
        buf_append(&text, " ", 1);
    }
    if (report_is_turned_over(row)) {
        vars_table_put_blocks(row, &text);
        buf_append(&text, " ", 1);
    } else if (row->n_blocks > 1) {
        buf_printf(&text, "in %llu blocks ", (unsigned long long)row->n_blocks);
    }
    bool is_place = put_place_or_words(table->report, row, &origin);
    if (origin.data && strcmp(origin.data, "-") == 0)
        buf_fini(&origin);
    if (is_place)
        shorten_place(table, &origin);
    if (!is_place && is_data && row->size_bytes && origin.data)
        text.data[text.len_bytes - 1] = ',';
    buf_printf(&text, "%s%s",
               is_place                     ? "from "
               : is_data && row->size_bytes ? " "
                                            : "",
               origin.data ? origin.data : "");
    text.failed = text.failed || origin.failed;
    buf_fini(&origin);
    buf_printf(out, "%*s", (int)table->indent, "");
    (void)text_wrapped_most(out, table->job, text.data ? text.data : "", table->indent, table->indent, most);
    out->failed = out->failed || text.failed;
    buf_fini(&text);
}

/* Of "function (file:line)", in a cell that has no room for it, the file and line; other text as it is. */
static const char *fitting_origin(struct buf *cell, size_t width, size_t n_lines)
{
    const char *rest = cell->data ? cell->data : "", *text = rest;
    size_t len = strlen(text), n = 0;
    char *open = len && text[len - 1] == ')' ? strrchr(cell->data, '(') : NULL;
    for (bool is_there = open && strchr(open, ':'); is_there && *rest && n <= n_lines; n++)
        free(text_take_line(&rest, width));
    if (n <= n_lines)
        return text;
    cell->data[len - 1] = 0;
    return open + 1;
}

void vars_table_put_row(const struct vars_table *table, const struct report_row *row, struct buf *out)
{
    struct buf cells[TABLE_COLUMNS_MAX] = {{0}};
    const char *rests[TABLE_COLUMNS_MAX];
    bool goes_on = true, is_screen = table->job->fits_screen;
    int n = 0, most = is_screen ? SCREEN_CELL_LINES : CELL_LINES;
    for (size_t i = 0; i < table->n_columns; i++) {
        if (!is_below(table, i))
            put_cell(table, i, row, &cells[i]);
        rests[i] = cells[i].data ? cells[i].data : "";
        if (is_screen && table->shown[i].column->put == put_origin)
            rests[i] = fitting_origin(&cells[i], table->shown[i].width, (size_t)most);
    }
    while (goes_on) {
        put_line(table, rests, ++n == most, out);
        goes_on = false;
        for (size_t i = 0; i < table->n_columns && n < most; i++)
            goes_on |= *rests[i] != 0;
    }
    for (size_t i = 0; i < table->n_columns; i++) {
        out->failed = out->failed || cells[i].failed;
        buf_fini(&cells[i]);
    }
    if (table->flags_below)
        put_below(table, row, is_screen ? (size_t)(SCREEN_ROW_LINES - n) : SIZE_MAX, out);
}

void vars_table_put_words(const struct vars_table *table, double share, const char *name, const char *words,
                          struct buf *out)
{
    const struct report_row row = {
        .share = share, .samples = NAN, .name = name, .class = "", .site = (char *)(uintptr_t) ""};
    bool is_named = false;
    size_t at = 0;
    for (size_t i = 0; i < table->n_columns && !is_named; i++) {
        struct buf cell = {0};
        put_cell(table, i, &row, &cell);
        buf_printf(out, "%*s", table->shown[i].at ? (int)table->gap : 0, "");
        text_cell(out, table->job, cell.data ? cell.data : "", table->shown[i].width,
                  table->shown[i].column->flags & COLUMN_RIGHT);
        at = table->shown[i].at + table->shown[i].width + table->gap;
        is_named = table->shown[i].column->put == put_name;
        buf_fini(&cell);
    }
    bool has_room = at + text_width(words) <= table->job->columns || at + WORDS_WIDTH <= table->job->columns;
    if (!has_room)
        text_end_line(out);
    at = has_room ? at : table->indent;
    buf_printf(out, "%*s", has_room ? (int)table->gap : (int)at, "");
    text_wrapped(out, table->job, words, at, table->indent);
}
