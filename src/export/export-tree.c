/* SPDX-License-Identifier: BSD-3-Clause */
/* The call tree, and the tree of data: classes, allocation paths, variables and the paths that access them. They are
 * walked without recursion, since call chains can be very deep. */
#include "analysis/report/code-table.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "database/database.h"
#include "export/prepared.h"
#include "answer/answer.h"
#include "export/text-cells.h"
#include "table/table.h"

/* One visible node. */
#define COSTS_WIDTH 19 /* of the values with and without callees, in text */

struct tree_node {
    uint32_t scope, parent; /* parent: visible scope, 0 = none */
    uint32_t depth;
    double inclusive, own;         /* own: of the statements in a function or loop */
    uint32_t call_file, call_line; /* where it was called, 0 = not known */
};

struct visible_walk {
    const struct export_job *job;
    bool is_data; /* the tree of data */
    double least;
    struct tree_node *stack; /* [n_stack] still to be visited, the next one last */
    size_t n_stack, cap_stack;
    struct tree_node *nodes; /* [n_nodes] result */
    size_t n_nodes, cap_nodes;
};

/* Total that percentages refer to. */
static double tree_total(const struct export_job *job)
{
    uint32_t root = model_data_root(job->model);
    double total = model_value(job->model, 0, job->metric);
    double data = root ? model_value(job->model, root, job->metric) : 0;
    return total > data ? total : data;
}

static bool is_visible(const struct scope *scope)
{
    return scope->kind == SCOPE_PROC || scope->kind == SCOPE_INLINED || scope->kind == SCOPE_LOOP ||
           scope->kind == SCOPE_LINE;
}

static int compare_nodes(const void *a, const void *b)
{
    const struct tree_node *x = a, *y = b;
    if (x->inclusive != y->inclusive)
        return x->inclusive < y->inclusive ? -1 : 1;
    return x->scope > y->scope ? -1 : x->scope < y->scope;
}

/* Pushes the visible children below scope, which may be a call site or place of the visible node above. */
static bool push_children(struct visible_walk *walk, uint32_t scope, const struct tree_node *above, uint32_t call_file,
                          uint32_t call_line)
{
    const struct model *model = walk->job->model;
    for (uint32_t i = model->scopes[scope].first_child; i; i = model->scopes[i].next_sibling) {
        const struct scope *child = &model->scopes[i];
        double value = model_value(model, i, walk->job->metric);
        if (value == 0 || value < walk->least || (scope == 0 && (child->role == ROLE_DATACENTRIC) != walk->is_data))
            continue;
        if (!is_visible(child)) {
            if (!push_children(walk, i, above, child->file, child->line))
                return false;
            continue;
        }
        if (!vec_reserve(&walk->stack, &walk->cap_stack, walk->n_stack + 1, sizeof *walk->stack))
            return false;
        walk->stack[walk->n_stack++] = (struct tree_node){.scope = i,
                                                          .parent = above->scope,
                                                          .depth = above->scope ? above->depth + 1 : 0,
                                                          .inclusive = value,
                                                          .call_file = call_file,
                                                          .call_line = call_line};
    }
    return true;
}

/* Value of the scope's statements, including those in its loops and in parts of it from other files. The recursion is
 * only as deep as these nest in the source. */
static double own_value(const struct model *model, uint32_t scope, size_t metric)
{
    double own = model->own[scope * model->n_metrics + metric];
    for (uint32_t i = model->scopes[scope].first_child; i; i = model->scopes[i].next_sibling)
        if (model_is_lexical(&model->scopes[i]))
            own += own_value(model, i, metric);
    return own;
}

static bool visit(struct visible_walk *walk, const struct tree_node *node)
{
    size_t first = walk->n_stack;
    if (!push_children(walk, node->scope, node, 0, 0))
        return false;
    if (walk->n_stack > first)
        qsort(&walk->stack[first], walk->n_stack - first, sizeof *walk->stack, compare_nodes);
    return true;
}

/* Lists all visible nodes in depth-first order, siblings by inclusive value, highest first; nodes below least are left
 * out. *nodes is malloc'ed, the caller frees it.  err: ERR_MEMORY */
static int tree_walk(const struct export_job *job, bool is_data, double least, struct tree_node **nodes,
                     size_t *n_nodes, struct error *err)
{
    struct visible_walk walk = {.job = job, .is_data = is_data, .least = least};
    struct tree_node top = {0};
    bool ok = visit(&walk, &top);
    while (ok && walk.n_stack > 0) {
        struct tree_node node = walk.stack[--walk.n_stack];
        node.own = own_value(job->model, node.scope, job->metric);
        ok = vec_reserve(&walk.nodes, &walk.cap_nodes, walk.n_nodes + 1, sizeof *walk.nodes);
        if (ok) {
            walk.nodes[walk.n_nodes++] = node;
            ok = visit(&walk, &node);
        }
    }
    free(walk.stack);
    *nodes = walk.nodes;
    *n_nodes = walk.n_nodes;
    if (ok)
        return 0;
    free(walk.nodes);
    *nodes = NULL;
    return error_memory(err);
}

struct ranked {
    double value;
    size_t index;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Marks the top largest of n items, all for 0; of equal ones the first. is_chosen [n]. A node is never larger than the
 * one above, which comes before it, so that a chosen node's parents are chosen, too. */
static void choose_largest(struct ranked *items, size_t n, size_t top, bool *is_chosen)
{
    if (n)
        qsort(items, n, sizeof *items, compare_ranked);
    for (size_t i = 0; i < n && (top == 0 || i < top); i++)
        is_chosen[items[i].index] = true;
}

/* Leaves the largest nodes of the list, in its order. */
static int keep_largest(const struct export_job *job, struct tree_node *nodes, size_t *n_nodes, struct error *err)
{
    size_t n = *n_nodes, n_kept = 0;
    if (job->top == 0 || n <= job->top)
        return 0;
    struct ranked *ranked = calloc(n, sizeof *ranked);
    bool *is_chosen = calloc(n, sizeof *is_chosen), ok = ranked && is_chosen;
    for (size_t i = 0; ok && i < n; i++)
        ranked[i] = (struct ranked){nodes[i].inclusive, i};
    if (ok)
        choose_largest(ranked, n, job->top, is_chosen);
    for (size_t i = 0; ok && i < n; i++)
        if (is_chosen[i])
            nodes[n_kept++] = nodes[i];
    free(ranked);
    free(is_chosen);
    *n_nodes = ok ? n_kept : n;
    return ok ? 0 : error_memory(err);
}

/* The nodes that CSV and JSON list. */
static int list_nodes(const struct export_job *job, bool is_data, struct tree_node **nodes, size_t *n_nodes,
                      struct error *err)
{
    int code = tree_walk(job, is_data, tree_total(job) * job->least / 100, nodes, n_nodes, err);
    if (code == 0 && (code = keep_largest(job, *nodes, n_nodes, err)) != 0)
        free(*nodes);
    return code;
}

/* --- derived columns --- */

struct listed {
    const struct model *model;
    const struct tree_node *nodes;
};

static double metric_of_node(const void *context, size_t row, size_t metric, bool is_inclusive)
{
    const struct listed *listed = context;
    uint32_t scope = listed->nodes[row].scope;
    return is_inclusive ? model_value(listed->model, scope, metric) : own_value(listed->model, scope, metric);
}

static int derive_nodes(const struct export_job *job, const struct tree_node *nodes, size_t n_nodes,
                        struct derived *derived, struct error *err)
{
    const struct listed listed = {job->model, nodes};
    return derived_make(job, n_nodes, metric_of_node, &listed, derived, err);
}

/* --- by thread, process, rank, place, region or function --- */

/* Splits the nodes as the job asks for; nothing when it does not. */
static int split_nodes(const struct export_job *job, const struct tree_node *nodes, size_t n_nodes, struct split *split,
                       struct error *err)
{
    struct value_source values = {0};
    *split = (struct split){0};
    if (!job->by)
        return 0;
    uint32_t *scopes = calloc(n_nodes + 1, sizeof *scopes);
    for (size_t i = 0; scopes && i < n_nodes; i++)
        scopes[i] = nodes[i].scope;
    bool is_known = split_by_is_code((enum split_by)job->by) || job->model->has_thread_list;
    int code = scopes ? 0 : error_memory(err);
    if (code == 0 && !is_known)
        code = error_set(err, ERR_UNSUPPORTED, "%s was made by an older version: it does not know its threads",
                         job->directory);
    if (code == 0)
        code = database_values_open(job->directory, job->model, &values, err);
    if (code == 0)
        code = split_scopes(job->model, job->metric, scopes, n_nodes, (enum split_by)job->by, &values, split, err);
    values_free(&values);
    free(scopes);
    return code;
}

/* Values in text: as many as there are columns, or the greatest one and where it is. */
struct tree_columns {
    struct split split;
    struct derived derived;
    const struct tree_node *nodes; /* [n_rows] of the split */
    bool is_matrix;
    size_t name_width; /* of the one with the greatest value */
    size_t width;      /* of all of them */
    size_t cell_width;
};

#define CELL_LEAST 7
#define CELL_MOST 13    /* of a thread with a name */
#define COLUMNS_NAME 40 /* what must be left for the names of nodes */
#define SPREAD_WIDTH 10 /* of max/mean */
#define MOST_WIDTH 10   /* of the greatest value, and of its column: */
#define MOST_NAME 10
#define MOST_PROGRAM 20  /* with its program, where these differ */
#define MOST_FUNCTION 24 /* of a function or region */

static void tree_columns_fini(struct tree_columns *columns)
{
    split_fini(&columns->split);
    derived_fini(&columns->derived);
}

static void columns_init(struct tree_columns *columns, const struct export_job *job, const struct tree_node *nodes)
{
    size_t cell_width = split_title_width(&columns->split, CELL_LEAST, CELL_MOST);
    size_t n = columns->split.columns.n_strings, around = COSTS_WIDTH + SPREAD_WIDTH + COLUMNS_NAME;
    columns->cell_width = around + n * (cell_width + 2) <= job->columns ? cell_width : CELL_LEAST;
    size_t width = n * (columns->cell_width + 2);
    columns->nodes = nodes;
    columns->is_matrix = columns->split.is_spread && around + width <= job->columns;
    columns->name_width = !columns->split.is_spread     ? MOST_FUNCTION
                          : columns->split.has_programs ? MOST_PROGRAM
                                                        : MOST_NAME;
    columns->width = !job->by ? 0
                              : (columns->split.is_spread ? SPREAD_WIDTH : 0) +
                                    (columns->is_matrix ? width : MOST_WIDTH + columns->name_width);
    columns->width += derived_width(&columns->derived); /* there is one of both at most */
}

/* The programs above the columns, where these differ. */
static void put_programs(const struct tree_columns *columns, const struct export_job *job, struct buf *out)
{
    if (!columns->is_matrix || !columns->split.has_programs)
        return;
    buf_printf(out, "%*s", COSTS_WIDTH, "");
    for (size_t i = 0; i < columns->split.columns.n_strings; i++) {
        text_cell(out, job, columns->split.programs[i], columns->cell_width, true);
        buf_printf(out, "  ");
    }
    buf_append(out, "\n", 1);
}

static void put_column_titles(const struct tree_columns *columns, const struct export_job *job, struct buf *out)
{
    derived_put_titles(&columns->derived, job, out);
    if (!job->by)
        return;
    for (size_t i = 0; columns->is_matrix && i < columns->split.columns.n_strings; i++) {
        text_cell(out, job, columns->split.columns.strings[i], columns->cell_width, true);
        buf_printf(out, "  ");
    }
    if (!columns->is_matrix)
        buf_printf(out, "%7s  %-*s ", "most", (int)columns->name_width, "in");
    if (columns->split.is_spread)
        buf_printf(out, "%8s  ", "max/mean");
}

/* The column with the most of a row, the first of equal ones. What lies in no function, or in the profiler, does not
 * hide the largest function. */
static struct split_cell most_of(const struct split *split, size_t row)
{
    struct split_cell most = {0};
    bool most_is_aside = true;
    for (size_t at = split->first[row]; at < split->first[row + 1]; at++) {
        const struct split_cell *cell = &split->cells[at];
        const char *name = split->columns.strings[cell->column];
        bool is_aside = split->by == SPLIT_FUNCTION && (!*name || special_rows_find(name));
        if (is_aside == most_is_aside ? cell->value > most.value : most_is_aside) {
            most = *cell;
            most_is_aside = is_aside;
        }
    }
    return most;
}

static void put_columns(const struct tree_columns *columns, const struct export_job *job, const struct tree_node *node,
                        double total, struct buf *out)
{
    const struct split *split = &columns->split;
    if (!job->by)
        return;
    size_t row = (size_t)(node - columns->nodes), at = split->first[row];
    struct split_spread spread = split_spread_of(split, row);
    for (uint32_t column = 0; columns->is_matrix && column < split->columns.n_strings; column++) {
        bool has_cell = at < split->first[row + 1] && split->cells[at].column == column;
        if (has_cell)
            buf_printf(out, "%*.1f %%  ", (int)columns->cell_width - 2, 100 * split->cells[at++].value / total);
        else
            buf_printf(out, "%*s  ", (int)columns->cell_width, "-");
    }
    if (!columns->is_matrix) {
        const struct split_cell most = most_of(split, row);
        const char *name = split->columns.n_strings ? split->columns.strings[most.column] : "";
        struct buf words = {0};
        if (split->has_programs)
            buf_printf(&words, "%s ", split->programs[most.column]);
        buf_printf(&words, "%s",
                   *name                       ? name
                   : split->by == SPLIT_REGION ? "outside of all regions"
                   : split->by == SPLIT_PHASE  ? "outside of all phases"
                                               : "no function");
        buf_printf(out, "%5.1f %%  ", 100 * most.value / total);
        text_cell(out, job, words.data ? words.data : "", columns->name_width, false);
        buf_append(out, " ", 1);
        buf_fini(&words);
    }
    if (split->is_spread)
        buf_printf(out, "%8.2f  ", spread.imbalance);
}

/* --- text --- */

/* The tree for a terminal: percent with and without callees, and indented names. A node whose one child has all of its
 * value shares a line with it. */

#define INDENT_MAX 60
#define LEAST_SHOWN 1.0 /* percent */
#define CHAIN_MAX 9     /* names in a line, unless paths are to be complete */
#define CHAIN_FIRST 3   /* of longer chains, so many names at the beginning ... */
#define CHAIN_LAST 5    /* ... and at the end */

static void put_loop(struct buf *text, const char *file, const struct scope *scope)
{
    buf_printf(text, "loop at %s:", file);
    text_lines(text, scope->line, scope->end_line);
}

static void put_name(const struct model *model, const struct tree_node *node, struct buf *text)
{
    const struct scope *scope = &model->scopes[node->scope];
    const char *file = path_last(model_text(model, scope->file));
    if (scope->kind == SCOPE_LINE && scope->line)
        buf_printf(text, "%s:%u", file, scope->line);
    else if (scope->kind == SCOPE_LOOP)
        put_loop(text, file, scope);
    else
        text_short_function(text, model_text(model, scope->name));
    if (scope->kind == SCOPE_INLINED)
        buf_printf(text, " [inlined]");
}

/* Whether a node shares the line of its parent: it has all of its value. Statements and what lies between allocation,
 * variable and access begin lines of their own. */
static bool is_in_chain(const struct model *model, const struct tree_node *above, const struct tree_node *node)
{
    const struct scope *scope = &model->scopes[node->scope], *parent = &model->scopes[above->scope];
    return node->parent == above->scope && node->inclusive == above->inclusive && scope->kind != SCOPE_LINE &&
           scope->role != ROLE_VARIABLE && scope->role != ROLE_ACCESS && parent->role != ROLE_VARIABLE;
}

static void put_chain(const struct export_job *job, const struct tree_node *nodes, size_t n, struct buf *text)
{
    const struct tree_node *last = &nodes[n - 1];
    for (size_t i = 0; i < n; i++) {
        buf_printf(text, "%s", i ? " > " : "");
        if (n > CHAIN_MAX && i == CHAIN_FIRST && !job->with_paths) {
            size_t n_left = n - CHAIN_FIRST - CHAIN_LAST;
            buf_printf(text, "(%zu more) > ", n_left);
            i += n_left;
        }
        put_name(job->model, &nodes[i], text);
    }
    if (job->model->scopes[last->scope].kind != SCOPE_LINE && last->call_line)
        buf_printf(text, "  from %s:%u", path_last(model_text(job->model, last->call_file)), last->call_line);
}

/* Puts n nodes in one line; depth: of this line. */
static void put_nodes(const struct export_job *job, const struct tree_columns *columns, const struct tree_node *nodes,
                      size_t n, uint32_t depth, double total, struct buf *out)
{
    bool is_line = job->model->scopes[nodes->scope].kind == SCOPE_LINE;
    struct buf text = {0};
    size_t indent = 2 * (size_t)depth < INDENT_MAX ? 2 * (size_t)depth : INDENT_MAX;
    size_t at = COSTS_WIDTH + columns->width + indent;
    if (2 * (size_t)depth > INDENT_MAX)
        buf_printf(&text, "[%u] ", depth);
    put_chain(job, nodes, n, &text);
    buf_printf(out, "%6.1f %% %6.1f %%  ", 100 * nodes->inclusive / total, 100 * nodes[n - 1].own / total);
    derived_put_cells(&columns->derived, (size_t)(&nodes[n - 1] - columns->nodes), out);
    put_columns(columns, job, nodes, total, out);
    buf_printf(out, "%*s", (int)indent, "");
    if (is_line)
        text_style(out, job, TEXT_DIM);
    if (n > 1 && job->columns > at + 20) {
        text_wrapped(out, job, text.data ? text.data : "", at, at + 2);
    } else {
        text_cut(out, job, text.data ? text.data : "", job->columns > at ? job->columns - at : 1);
        buf_append(out, "\n", 1);
    }
    if (is_line)
        text_style(out, job, TEXT_PLAIN);
    buf_fini(&text);
}

/* Nodes that share a line. */
struct tree_line {
    size_t first, n;
    uint32_t depth;
};

/* Joins nodes to lines. depths [deepest + 1] is scratch: the depth of the line that the last node of each depth is in.
 * lines [n_nodes]; returns how many there are. */
static size_t list_lines(const struct model *model, const struct tree_node *nodes, size_t n_nodes, uint32_t *depths,
                         struct tree_line *lines)
{
    size_t n_lines = 0;
    for (size_t i = 0; i < n_nodes; i++) {
        const struct scope *scope = &model->scopes[nodes[i].scope];
        uint32_t depth = nodes[i].depth ? depths[nodes[i].depth - 1] : 0;
        bool is_joined = n_lines && lines[n_lines - 1].first + lines[n_lines - 1].n == i &&
                         is_in_chain(model, &nodes[i - 1], &nodes[i]);
        depths[nodes[i].depth] = is_joined ? depth : nodes[i].depth ? depth + 1 : 0;
        if (is_joined)
            lines[n_lines - 1].n++;
        else if (scope->kind != SCOPE_LINE || scope->line)
            lines[n_lines++] = (struct tree_line){i, 1, depths[nodes[i].depth]};
    }
    return n_lines;
}

/* Puts the largest lines. */
static int put_lines(const struct export_job *job, const struct tree_columns *columns, const struct tree_node *nodes,
                     size_t n_nodes, double total, struct buf *out, struct error *err)
{
    uint32_t deepest = 0;
    for (size_t i = 0; i < n_nodes; i++)
        deepest = nodes[i].depth > deepest ? nodes[i].depth : deepest;
    uint32_t *depths = calloc((size_t)deepest + 1, sizeof *depths);
    struct tree_line *lines = calloc(n_nodes + 1, sizeof *lines);
    struct ranked *ranked = calloc(n_nodes + 1, sizeof *ranked);
    bool *is_chosen = calloc(n_nodes + 1, sizeof *is_chosen), ok = depths && lines && ranked && is_chosen;
    size_t n_lines = ok ? list_lines(job->model, nodes, n_nodes, depths, lines) : 0;
    for (size_t i = 0; i < n_lines; i++)
        ranked[i] = (struct ranked){nodes[lines[i].first].inclusive, i};
    if (ok)
        choose_largest(ranked, n_lines, job->top, is_chosen);
    for (size_t i = 0; i < n_lines; i++)
        if (is_chosen[i])
            put_nodes(job, columns, &nodes[lines[i].first], lines[i].n, lines[i].depth, total, out);
    if (job->top && job->top < n_lines)
        buf_printf(out, "%zu more lines (--top 0 shows all)\n", n_lines - job->top);
    free(depths);
    free(lines);
    free(ranked);
    free(is_chosen);
    return ok ? 0 : error_memory(err);
}

static bool is_datatree(const struct export_job *job)
{
    return strcmp(job->report, "datatree") == 0;
}

static int write_text(const struct export_job *job, struct buf *out, struct error *err)
{
    bool is_data = is_datatree(job);
    struct tree_node *nodes;
    size_t n_nodes;
    double total = tree_total(job), least = job->least < 0 ? LEAST_SHOWN : job->least;
    int code = tree_walk(job, is_data, total * least / 100, &nodes, &n_nodes, err);
    struct tree_columns columns = {0};
    if (code != 0)
        return code;
    code = split_nodes(job, nodes, n_nodes, &columns.split, err);
    if (code == 0)
        code = derive_nodes(job, nodes, n_nodes, &columns.derived, err);
    if (code != 0) {
        tree_columns_fini(&columns);
        free(nodes);
        return code;
    }
    columns_init(&columns, job, nodes);
    text_style(out, job, TEXT_BOLD);
    buf_printf(out, "%s: %.15g", job->model->metrics[job->metric].name, total);
    text_style(out, job, TEXT_PLAIN);
    buf_printf(out, "   (nodes below %.2g %% are left out)\n", least);
    put_programs(&columns, job, out);
    buf_printf(out, "   with     without   ");
    put_column_titles(&columns, job, out);
    buf_printf(out, "what is %s\n", is_data ? "accessed, and by what" : "called");
    code = put_lines(job, &columns, nodes, n_nodes, total > 0 ? total : 1, out, err);
    tree_columns_fini(&columns);
    free(nodes);
    return code;
}

/* --- CSV and JSON --- */

/* A row for each node, parents first; with --by CSV has one for each column that it has a value in. */

static const struct column node_columns[] = {
    {"id", NULL, CELL_COUNT},
    {"parent", NULL, CELL_COUNT},
    {"depth", NULL, CELL_COUNT},
    {"kind", NULL, CELL_TEXT},
    {"inlined", NULL, CELL_FLAG | COLUMN_NO_CSV},
    {"variable", NULL, CELL_FLAG | COLUMN_NO_CSV},
    {"name", NULL, CELL_TEXT | COLUMN_QUOTED},
    {"file", NULL, CELL_TEXT | COLUMN_QUOTED},
    {"line", NULL, CELL_COUNT},
    {"end_line", NULL, CELL_COUNT | COLUMN_PLACE(1)},
    {"module", NULL, CELL_TEXT | COLUMN_QUOTED},
    {"call_line", NULL, CELL_COUNT},
    {"inclusive", NULL, CELL_NUMBER | COLUMN_ALL_DIGITS},
    {"exclusive", NULL, CELL_NUMBER | COLUMN_ALL_DIGITS},
    {"percent", NULL, CELL_PERCENT | COLUMN_6_DIGITS},
};

static void fill_node(const struct model *model, const struct tree_node *node, double total, struct table *table)
{
    const struct scope *scope = &model->scopes[node->scope];
    table_put_count(table, node->scope);
    table_put_count(table, node->parent);
    table_put_count(table, node->depth);
    table_put_borrowed(table, frame_kind_name(node_kind(scope)));
    table_put_flag(table, scope->kind == SCOPE_INLINED);
    table_put_flag(table, scope->role == ROLE_VARIABLE);
    table_put_place(table, model_text(model, scope->name), model_text(model, scope->file), scope->line);
    table_put_if(table, scope->end_line > 0, scope->end_line);
    table_put_name(table, model_text(model, scope->module));
    table_put_if(table, node->call_line > 0, node->call_line);
    table_put_number(table, node->inclusive);
    table_put_number(table, node->own);
    table_put_number(table, total > 0 ? 100 * node->inclusive / total : 0);
}

static const struct column head_columns[] = {{"total", NULL, CELL_NUMBER}};

/* Fills the rows with the nodes [n_nodes]. */
static void fill_nodes(const struct export_job *job, const struct tree_columns *columns, const struct tree_node *nodes,
                       size_t n_nodes, struct answer *answer)
{
    double total = tree_total(job);
    column_list_add(&answer->columns, COLUMNS(node_columns));
    if (job->by) {
        column_list_make(&answer->columns, "cells", NULL,
                         CELL_TABLE | COLUMN_JOINED | COLUMN_NO_EMPTY | COLUMN_PLACE(2));
        split_add_columns(&columns->split, COLUMN_QUOTED, &answer->cells);
    }
    derived_add_columns(&columns->derived, &answer->columns);
    answer_begin(answer, "nodes", NULL, 0);
    table_put_number(answer_set_head(answer, COLUMNS(head_columns)), total);
    for (size_t i = 0; i < n_nodes && !answer->rows.failed; i++) {
        fill_node(job->model, &nodes[i], total, &answer->rows);
        if (job->by)
            split_fill_cells(&columns->split, i, total, nodes[i].inclusive, &answer->rows);
        derived_put_row(&columns->derived, i, &answer->rows);
    }
}

static int make_answer(const struct export_job *job, struct answer *answer, struct error *err)
{
    struct tree_columns columns = {0};
    struct tree_node *nodes;
    size_t n_nodes;
    int code = list_nodes(job, is_datatree(job), &nodes, &n_nodes, err);
    if (code != 0)
        return code;
    code = split_nodes(job, nodes, n_nodes, &columns.split, err);
    if (code == 0)
        code = derive_nodes(job, nodes, n_nodes, &columns.derived, err);
    if (code == 0)
        fill_nodes(job, &columns, nodes, n_nodes, answer);
    tree_columns_fini(&columns);
    free(nodes);
    return code;
}

static const struct ask_note notes[] = {
    {ASK_PATHS, "Complete paths in text."},
    {ASK_BY,
     "A column for each of these, in text of regions and functions the one with the most, in CSV a row for each "
     "node and column."},
    {ASK_MIN, "Default in text: 1."},
    {0, NULL},
};

#define TREE_MANUAL                                                                                                    \
    " In text a chain of calls without branch is one line, and of long ones the middle is left out unless --paths is " \
    "given."

const struct report_kind answer_tree = {
    .name = "tree",
    .operands = "DB",
    .summary = "the call tree",
    .manual = "tree prints the call tree. Regions that the program names (locus.h, ITT tasks, NVTX ranges) stand above "
              "the call paths." TREE_MANUAL,
    .example = "tree --metric FAULTS hpctoolkit-app-database",
    .options = ASK_ROWS | ASK(PATHS) | ASK(BY) | ASK(DERIVE),
    .options_by = ASK_ROWS | ASK(PATHS) | ASK(BY),
    .by = BY_THREAD | BY(FUNCTION),
    .notes = notes,
    .shows_all = true,
    .forms = {.make = make_answer, .text = write_text},
};

const struct report_kind answer_datatree = {
    .name = "datatree",
    .operands = "DB",
    .summary = "the tree of data: classes, allocation paths, variables, and who accesses them",
    .manual = "datatree prints the tree of data: classes, allocation paths, variables, and below each the paths that "
              "access it." TREE_MANUAL,
    .example = "datatree --by node hpctoolkit-app-database",
    .options = ASK_ROWS | ASK(PATHS) | ASK(BY) | ASK(DERIVE),
    .options_by = ASK_ROWS | ASK(PATHS) | ASK(BY),
    .by = BY_THREAD | BY(FUNCTION),
    .notes = notes,
    .shows_all = true,
    .forms = {.make = make_answer, .text = write_text},
};
