/* SPDX-License-Identifier: BSD-3-Clause */
/* One variable: what it is, who uses which part of it, and from where. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/path.h"
#include "face/term/screen.h"

#define LEAST_PATH 0.01 /* percent of the total: paths of allocation below that are never listed */

static const struct view_column columns[] = {
    {NULL, "of it", 7, true, false},
    {NULL, "", 9, false, false},
    {NULL, "what", 28, false, false},
    {NULL, "where", 0, false, true},
};

/* A row: a part of the variable's share, under a heading. */
struct part {
    const char *section;
    double share;             /* percent of the variable's; NAN: not known */
    char *name, *rest;        /* owned */
    char *item;               /* that it leads to; NULL: to none */
    const struct table *bins; /* how often parts of it were used, from its first byte to its last; NULL: none */
    double most;              /* of all bins */
};

struct parts {
    struct part *items; /* [n] */
    size_t n, cap, row; /* row: of the table of variables */
    size_t n_added;     /* of what follows later */
};

static void close_parts(void *own)
{
    struct parts *parts = own;
    for (size_t i = 0; i < parts->n; i++) {
        free(parts->items[i].name);
        free(parts->items[i].rest);
        free(parts->items[i].item);
    }
    free(parts->items);
    free(parts);
}

/* A new part; a scratch one where memory lacks. */
static struct part *add_part(struct parts *parts, const char *section, double share, const char *name)
{
    static struct part scratch;
    if (!vec_reserve(&parts->items, &parts->cap, parts->n + 1, sizeof *parts->items)) {
        free(scratch.rest);
        free(scratch.item);
        scratch = (struct part){0};
        return &scratch;
    }
    struct part *part = &parts->items[parts->n++];
    *part = (struct part){.section = section, .share = share, .name = strdup(name)};
    return part;
}

static void put_place(struct part *part, const char *file, double line, const char *more)
{
    struct buf text = {0}, item = {0};
    char place[512];
    buf_printf(&text, "%s%s", place_text(file, line, place, sizeof place), more);
    part->rest = text.data;
    if (line > 0)
        buf_printf(&item, "line:%s:%.0f", file, line);
    part->item = item.data;
}

static void add_lines(struct parts *parts, const struct table *vars)
{
    const struct table *lines = cell_table(vars, parts->row, "lines");
    double value = cell_number(vars, parts->row, "value");
    for (size_t i = 0; i < rows_of(lines); i++) {
        struct part *part = add_part(parts, i ? "" : "used by", 100 * cell_number(lines, i, "value") / value,
                                     cell_text(lines, i, "function"));
        double loop = cell_number_in(lines, i, "loop", "line");
        char more[40] = "";
        if (loop > 0)
            (void)snprintf(more, sizeof more, " in loop %.0f-%.0f", loop, cell_number_in(lines, i, "loop", "end_line"));
        put_place(part, cell_text(lines, i, "file"), cell_number(lines, i, "line"), more);
    }
}

static void add_fields(struct parts *parts, const struct table *vars)
{
    const struct table *fields = cell_table(vars, parts->row, "fields");
    double share = cell_number(vars, parts->row, "share");
    for (size_t i = 0; i < rows_of(fields); i++) {
        struct part *part = add_part(parts, i ? "" : "fields", 100 * cell_number(fields, i, "share") / share,
                                     cell_text(fields, i, "field"));
        struct buf text = {0};
        double offset = cell_number(fields, i, "offset_bytes");
        buf_printf(&text, "%s", cell_text(fields, i, "type"));
        if (!isnan(offset))
            buf_printf(&text, " at byte %.0f", offset);
        if (!isnan(cell_number(fields, i, "size_bytes")))
            buf_printf(&text, ", %.0f bytes", cell_number(fields, i, "size_bytes"));
        part->rest = text.data;
    }
}

/* Whether a row of a report is about the variable. */
static bool is_about(const struct table *table, size_t row, const struct table *vars, size_t variable)
{
    return strcmp(cell_text(table, row, "variable"), cell_text(vars, variable, "variable")) == 0 &&
           (column_of(table, "alloc_site") == SIZE_MAX ||
            strcmp(cell_text(table, row, "alloc_site"), cell_text(vars, variable, "alloc_site")) == 0);
}

/* The first row of a report about the variable, SIZE_MAX: it has none. */
static size_t find_about(const struct table *table, const struct table *vars, size_t variable)
{
    for (size_t i = 0; i < rows_of(table); i++)
        if (is_about(table, i, vars, variable))
            return i;
    return SIZE_MAX;
}

static const struct table *rows_asked(struct screen *screen, const char *report, const char *by)
{
    struct error ignored;
    const struct answer *answer = ask_report(screen, report, by, &ignored);
    return answer ? answer_rows(answer) : NULL;
}

static void add_threads(struct screen *screen, struct parts *parts, const struct table *vars)
{
    const struct table *rows = rows_asked(screen, "vars", "thread");
    size_t row = find_about(rows, vars, parts->row);
    const struct table *cells = row == SIZE_MAX ? NULL : cell_table(rows, row, "cells");
    for (size_t i = 0; i < rows_of(cells); i++) {
        struct buf name = {0}, item = {0};
        buf_printf(&name, "thread %s", cell_text(cells, i, "thread"));
        buf_printf(&item, "thread:%s", cell_text(cells, i, "thread"));
        add_part(parts, i ? "" : "threads", cell_number(cells, i, "share_of_row"), name.data ? name.data : "")->item =
            item.data;
        buf_fini(&name);
    }
}

static double most_of(const struct table *threads)
{
    double most = 1;
    for (size_t i = 0; i < rows_of(threads); i++) {
        const struct table *bins = cell_table(threads, i, "bins");
        for (size_t k = 0; k < rows_of(bins); k++) {
            double n = NAN;
            (void)table_get_numbers(bins, 0, k, 1, &n);
            most = n > most ? n : most;
        }
    }
    return most;
}

static void add_pattern(struct screen *screen, struct parts *parts, const struct table *vars)
{
    const struct table *rows = rows_asked(screen, "patterns", NULL);
    size_t row = find_about(rows, vars, parts->row);
    const struct table *threads = row == SIZE_MAX ? NULL : cell_table(rows, row, "threads");
    char loads[NUMBER_BYTES], stores[NUMBER_BYTES];
    struct buf text = {0};
    if (row == SIZE_MAX)
        return;
    struct part *part = add_part(parts, "pattern", NAN, cell_text(rows, row, "used_as"));
    buf_printf(&text, "%s, %s loads, %s stores", cell_text(rows, row, "order"),
               short_text(cell_number(rows, row, "loads"), loads),
               short_text(cell_number(rows, row, "stores"), stores));
    part->rest = text.data;
    for (size_t i = 0; i < rows_of(threads); i++) {
        struct buf name = {0};
        if (!rows_of(cell_table(threads, i, "bins")))
            continue;
        buf_printf(&name, "thread %.0f by offset", cell_number(threads, i, "thread"));
        part = add_part(parts, "", NAN, name.data ? name.data : "");
        part->bins = cell_table(threads, i, "bins");
        part->most = most_of(threads);
        buf_fini(&name);
    }
}

static void add_sharing(struct screen *screen, struct parts *parts, const struct table *vars)
{
    const struct table *rows = rows_asked(screen, "sharing", NULL);
    bool is_first = true;
    for (size_t i = 0; i < rows_of(rows); i++) {
        struct buf text = {0}, name = {0};
        if (!is_about(rows, i, vars, parts->row))
            continue;
        buf_printf(&name, "cache line at byte %.0f", cell_number(rows, i, "offset"));
        buf_printf(&text, "%s: %.0f threads, %.0f write", cell_text(rows, i, "sharing"),
                   cell_number(rows, i, "threads"), cell_number(rows, i, "writers"));
        add_part(parts, is_first ? "shared" : "", NAN, name.data ? name.data : "")->rest = text.data;
        buf_fini(&name);
        is_first = false;
    }
}

static void add_touchers(struct screen *screen, struct parts *parts, const struct table *vars)
{
    const struct table *rows = rows_asked(screen, "first-touch", NULL);
    size_t row = find_about(rows, vars, parts->row);
    const struct table *touchers = row == SIZE_MAX ? NULL : cell_table(rows, row, "touchers");
    for (size_t i = 0; i < rows_of(touchers); i++) {
        struct buf name = {0};
        buf_printf(&name, "thread %s, %s", cell_text(touchers, i, "thread"), cell_text(touchers, i, "function"));
        struct part *part = add_part(parts, i ? "" : "touched", NAN, name.data ? name.data : "");
        put_place(part, cell_text(touchers, i, "file"), cell_number(touchers, i, "line"), "");
        buf_fini(&name);
    }
}

/* The tree of data, with its columns found once: it may have very many nodes. */
struct data_tree {
    const struct table *nodes;
    size_t parent, kind, name, item, value, module;
};

enum { DEEPEST = 64 };

/* A part of a path, innermost function first. */
struct names {
    const char *names[DEEPEST];
    size_t n;
};

static void add_name(struct names *part, const char *name)
{
    if (part->n < DEEPEST)
        part->names[part->n++] = name;
}

static void put_names(const struct names *part, struct buf *out)
{
    for (size_t i = part->n; i-- > 0;)
        buf_printf(out, "%s%s", out->len_bytes ? " > " : "", part->names[i]);
}

/* The functions from the root to a node of the tree, in one line. Below native code stands the Python code that the
 * interpreter ran: the interpreter's functions are left out, and what Python code called comes last if it has names. */
static void put_path(const struct data_tree *tree, size_t node, struct buf *out)
{
    struct names outer = {.n = 0}, code = {.n = 0}, inner = {.n = 0};
    bool has_python = false, is_outside = false;
    for (double above = cell_number_at(tree->nodes, node, tree->parent); above >= 0;
         above = cell_number_at(tree->nodes, (size_t)above, tree->parent)) {
        const char *kind = cell_text_at(tree->nodes, (size_t)above, tree->kind);
        const char *name = cell_text_at(tree->nodes, (size_t)above, tree->name);
        const char *module = cell_text_at(tree->nodes, (size_t)above, tree->module);
        if (!strstr(kind, "function") && strcmp(kind, "inlined") != 0)
            continue;
        has_python = has_python || (code.n == 0 && strcmp(module, PYTHON_MODULE) == 0);
        if (!has_python || strcmp(module, PYTHON_MODULE) == 0) {
            add_name(&code, name);
        } else if (path_is_python(module)) {
            is_outside = true;
            outer.n = 0;
        } else if (!text_begins(name, "func_0x")) {
            add_name(is_outside ? &outer : &inner, name);
        }
    }
    put_names(is_outside ? &outer : &inner, out);
    put_names(&code, out);
    if (is_outside)
        put_names(&inner, out);
}

/* Percent of the total below which a path is left out: a hundredth of the variable at most. Powers of ten, so that
 * variables that are alike take the same answer. */
static double least_of(double share)
{
    double least = share > 0 ? pow(10, floor(log10(share / 100))) : 0;
    return least > LEAST_PATH ? least : LEAST_PATH;
}

static void add_allocations(struct screen *screen, struct parts *parts, const struct table *vars)
{
    enum { PATHS_MOST = 4 };
    const struct request request = {.report = "nodes",
                                    .tree = "data",
                                    .least = least_of(cell_number(vars, parts->row, "share")),
                                    .has_least = true};
    struct error ignored;
    const struct answer *answer = ask(screen, &request, &ignored);
    const struct table *nodes = answer ? answer_rows(answer) : NULL;
    const struct data_tree tree = {nodes,
                                   column_of(nodes, "parent"),
                                   column_of(nodes, "kind"),
                                   column_of(nodes, "name"),
                                   column_of(nodes, "item"),
                                   column_of(nodes, "value"),
                                   column_of(nodes, "module")};
    const char *item = cell_text(vars, parts->row, "item");
    double value = cell_number(vars, parts->row, "value");
    size_t n = 0;
    for (size_t i = 0; i < rows_of(nodes) && n < PATHS_MOST; i++) {
        struct buf path = {0};
        if (strcmp(cell_text_at(nodes, i, tree.item), item) != 0)
            continue;
        put_path(&tree, i, &path);
        if (path.len_bytes)
            add_part(parts, n++ ? "" : "allocated", 100 * cell_number_at(nodes, i, tree.value) / value, "")->rest =
                path.data;
        else
            buf_fini(&path);
    }
}

/* Who uses it how, and where its memory comes from, takes longer than what the table says: it follows when that is on
 * the screen, piece by piece, so that a key waits for one piece at most. */
static void add_rest(struct screen *screen)
{
    static void (*const add[])(struct screen * screen, struct parts * parts, const struct table *vars) = {
        add_threads, add_pattern, add_sharing, add_touchers, add_allocations};
    enum { N_ADD = sizeof add / sizeof *add, PIECE_MS = 2 }; /* what takes less is drawn with what comes next */
    struct parts *parts = screen->pane.own;
    uint64_t begin = clock_now_ns(CLOCK_MONOTONIC);
    do
        add[parts->n_added++](screen, parts, vars_table(screen));
    while (parts->n_added < N_ADD && clock_now_ns(CLOCK_MONOTONIC) - begin < PIECE_MS * CLOCK_MS_NS);
    screen->pane.n_all = parts->n;
    if (parts->n_added < N_ADD)
        screen->pane.later = add_rest;
}

static int open_variable(struct screen *screen, struct error *err)
{
    const struct table *vars = vars_table(screen);
    const char *why, *item = stand_in(screen, "variable", &why);
    struct parts *parts = calloc(1, sizeof *parts);
    if (!parts)
        return error_memory(err);
    screen->pane.own = parts;
    screen->pane.close = close_parts;
    if (!rows_of(vars))
        return error_set(err, ERR_NOT_FOUND, "Nothing was sampled at data: hpcrun -e datacentric measures it.");
    parts->row = item ? row_of_item(vars, item) : 0;
    if (!item && *look_get(&screen->now, LOOK_ACTIVE))
        return error_set(err, ERR_NOT_FOUND, "%s: %s", look_get(&screen->now, LOOK_ACTIVE),
                         *why ? why : "no variable stands for it");
    if (parts->row == SIZE_MAX)
        return error_set(err, ERR_NOT_FOUND, "%s is not in the table of variables", item);
    struct part *first = add_part(parts, "variable", NAN, cell_text(vars, parts->row, "variable"));
    first->rest = strdup(cell_text(vars, parts->row, "alloc_site"));
    add_lines(parts, vars);
    add_fields(parts, vars);
    screen->pane.later = add_rest;
    screen->pane.n_all = parts->n;
    (void)snprintf(screen->pane.note, sizeof screen->pane.note, "%s", cell_text(vars, parts->row, "variable"));
    return 0;
}

static const struct part *part_at(const struct screen *screen, size_t row)
{
    return &((const struct parts *)screen->pane.own)->items[row];
}

static void put_bins(const struct part *part, struct line *line)
{
    size_t n = rows_of(part->bins), room = line->width - line->at;
    size_t group = room ? (n + room - 1) / room : n;
    for (size_t i = 0; group && i < n; i += group) {
        double most = 0, each;
        for (size_t k = i; k < n && k < i + group; k++)
            if (table_get_numbers(part->bins, 0, k, 1, &each) && each > most)
                most = each;
        line_put_shade(line, most / part->most);
    }
}

static void put_cell(struct screen *screen, size_t row, size_t column, struct line *line)
{
    const struct part *part = part_at(screen, row);
    char text[NUMBER_BYTES];
    if (column == 0 && !isnan(part->share))
        line_put_right(line, TONE_PLAIN, percent_text(part->share, text), columns[0].width);
    else if (column == 1)
        line_put(line, TONE_DIM, part->section);
    else if (column == 2)
        line_put_in(line, row ? TONE_PLAIN : TONE_STRONG, part->name ? part->name : "", columns[2].width);
    else if (column == 3 && part->bins)
        put_bins(part, line);
    else if (column == 3)
        line_put_in(line, TONE_PLAIN, part->rest ? part->rest : "", line->width - line->at);
}

static void put_words(struct screen *screen, size_t row, struct buf *out)
{
    const struct part *part = part_at(screen, row);
    buf_printf(out, "%s %s %s", part->section, part->name ? part->name : "", part->rest ? part->rest : "");
}

/* --- everything about a variable --- */

void tell_spread(const struct table *vars, size_t row, struct buf *out)
{
    static const char *const words[][2] = {{"processes", "processes"}, {"threads", "threads"}};
    for (size_t i = 0; i < 2; i++) {
        double n = cell_number_in(vars, row, words[i][0], "n"),
               used = cell_number_in(vars, row, words[i][0], "with_value");
        double mean = cell_number_in(vars, row, words[i][0], "mean"),
               most = cell_number_in(vars, row, words[i][0], "max");
        if (!(n > 1) || !(used > 0))
            continue;
        double ratio = most / (mean * n / used);
        buf_printf(out, "%.0f of %.0f %s use it", used, n, words[i][1]);
        if (used > 1 && ratio < 1.2)
            buf_printf(out, ", evenly");
        else if (used > 1)
            buf_printf(out, ", one %.1f times as much as the mean", ratio);
        return;
    }
}

static void tell_causes(const struct table *vars, size_t row, struct lines *lines)
{
    static const char *const causes[][2] = {{"memory_share", "memory"},
                                            {"execution_share", "compute"},
                                            {"unverified_share", "unknown"},
                                            {"first_touch_share", "first touch"}};
    struct buf text = {0};
    char number[NUMBER_BYTES];
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
        double share = cell_number(vars, row, causes[i][0]);
        if (share >= 0.05)
            buf_printf(&text, "%s%s %s", text.len_bytes ? ", " : "", causes[i][1], percent_text(share, number));
    }
    lines_label(lines, "time", text.data);
    buf_fini(&text);
}

static void tell_blocks(const struct table *vars, size_t row, struct lines *lines)
{
    double blocks = cell_number(vars, row, "n_blocks"), element = cell_number(vars, row, "element_bytes");
    char size[NUMBER_BYTES], n[NUMBER_BYTES];
    struct buf text = {0};
    if (!(blocks > 0))
        return;
    buf_printf(&text, "%s in %s block%s", bytes_text(cell_number(vars, row, "size_bytes"), size), short_text(blocks, n),
               blocks == 1 ? "" : "s");
    if (element > 0)
        buf_printf(&text, ", elements of %.0f bytes", element);
    lines_label(lines, "size", text.data);
    buf_fini(&text);
}

void tell_variable(struct screen *screen, size_t row, struct lines *lines)
{
    const struct table *vars = vars_table(screen);
    char number[NUMBER_BYTES];
    struct buf spread = {0};
    double share = cell_number(vars, row, "share");
    lines_wrap(lines, TONE_STRONG, 0, cell_text(vars, row, "variable"));
    struct line *bar = lines_add(lines);
    if (bar)
        put_cause_bar(vars, row, share > 0 ? share : 100, lines->width > 40 ? 40 : lines->width, bar);
    lines_label(lines, "share", percent_text(share, number));
    tell_causes(vars, row, lines);
    lines_label(lines, "samples", short_text(cell_number(vars, row, "samples"), number));
    lines_label(lines, "class", cell_text(vars, row, "class"));
    lines_label(lines, "comes from", cell_text(vars, row, "alloc_site"));
    lines_label(lines, "type", cell_text(vars, row, "type"));
    tell_blocks(vars, row, lines);
    lines_label(lines, "first touch", cell_text(vars, row, "first_touch"));
    tell_spread(vars, row, &spread);
    lines_label(lines, "threads", spread.data);
    lines_label(lines, "means", cell_text(vars, row, "meaning"));
    lines_label(lines, "to do", cell_text(vars, row, "advice"));
    buf_fini(&spread);
}

static void tell(struct screen *screen, size_t row, struct lines *lines)
{
    const struct part *part = part_at(screen, row);
    if (row && part->item && strncmp(part->item, "line:", 5) == 0)
        tell_source(screen, part->item, lines);
    else if (row && (part->rest || part->bins)) {
        lines_wrap(lines, TONE_STRONG, 0, part->name ? part->name : "");
        lines_wrap(lines, TONE_PLAIN, 0,
                   part->bins ? "Columns from its first byte to its last; the darker, the more samples." : part->rest);
    } else
        tell_variable(screen, ((const struct parts *)screen->pane.own)->row, lines);
}

static bool take_key(struct screen *screen, int key)
{
    size_t row = pane_row(screen);
    const struct part *part = row == SIZE_MAX ? NULL : part_at(screen, row);
    if (key != KEYS_ENTER || !part || !part->item || strncmp(part->item, "line:", 5) != 0)
        return false;
    char *item = strdup(part->item); /* the pane is closed meanwhile */
    if (item)
        go_to(screen, &view_source, item);
    free(item);
    return true;
}

static void put_command(struct screen *screen, struct buf *out)
{
    const struct table *vars = vars_table(screen);
    const struct request request = {.report = "items",
                                    .subject = cell_text(vars, ((const struct parts *)screen->pane.own)->row, "item")};
    request_put_words(screen, &request, out);
}

const struct view view_variable = {
    .name = "items",
    .title = "Variable",
    .columns = columns,
    .n_columns = sizeof columns / sizeof *columns,
    .keys = "Enter  the source of that line",
    .open = open_variable,
    .cell = put_cell,
    .words = put_words,
    .detail = tell,
    .key = take_key,
    .command = put_command,
};
