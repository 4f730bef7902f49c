/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be said of a file that is no database of ours: a frame that another tool's file gave. Columns are those of
 * the reports and questions of the same names, so that a viewer needs no other words for them. Ordinary code. */
#include "config.h"

#include "session/questions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "frame/ops.h"

static const struct column columns[] = {
    PLACE_COLUMNS,
    {"module", NULL, CELL_TEXT},
    {"own", NULL, CELL_NUMBER},
    {"own_share", NULL, CELL_PERCENT},
    {"inclusive", NULL, CELL_NUMBER},
    {"inclusive_share", NULL, CELL_PERCENT},
    ITEM_COLUMN,
};
static const struct column head_columns[] = {
    {"total", NULL, CELL_NUMBER},
};

/* A frame with its costs at hand. */
struct costs {
    struct frame *frame;           /* flat, or lines */
    const double *own, *inclusive; /* [n_nodes]; inclusive may be NULL */
    double total;
    uint32_t *order; /* [n] nodes, the largest own cost first */
    size_t n;
};

/* The column of costs that a metric names, NULL: the default one. SIZE_MAX with *err set: there is none. */
static size_t foreign_column(const struct frame *frame, const char *metric, struct error *err)
{
    size_t column = metric ? frame_find_column(frame, metric, err) : frame_default_column(frame);
    if (column == SIZE_MAX && !metric)
        error_set(err, ERR_NOT_FOUND, "there are no costs in it");
    return column;
}

static int compare_costs(const void *a, const void *b, void *context)
{
    const struct costs *costs = context;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    double x = costs->own[i], y = costs->own[j];
    if (x != y)
        return (isnan(x) ? -1 : x) < (isnan(y) ? -1 : y) ? 1 : -1;
    return (i > j) - (i < j);
}

/* Whether a node of the shape is a thing of the report: functions have a name, lines a number. */
static bool is_thing(const struct frame *frame, uint32_t node, bool of_lines)
{
    enum frame_kind kind = frame_kind(frame, node);
    if (of_lines)
        return (kind == FRAME_LINE || kind == FRAME_CALL) && frame_line(frame, node) > 0;
    return kind == FRAME_FUNCTION || kind == FRAME_INLINED || kind == FRAME_OTHER;
}

/* Finds the costs and the order of the nodes.  err: as frame_values */
static int costs_make(struct costs *costs, const char *metric, bool of_lines, struct error *err)
{
    struct frame *frame = costs->frame;
    size_t column = foreign_column(frame, metric, err), pair, n_nodes = frame_n_nodes(frame);
    if (column == SIZE_MAX)
        return err->code;
    pair = frame_column_pair(frame, column);
    int code = frame_values(frame, column, NULL, &costs->own, err);
    if (code == 0 && pair != SIZE_MAX)
        code = frame_values(frame, pair, NULL, &costs->inclusive, err);
    costs->order = code == 0 ? malloc((n_nodes + 1) * sizeof *costs->order) : NULL;
    if (code == 0 && !costs->order)
        code = error_memory(err);
    for (uint32_t i = 0; code == 0 && i < n_nodes; i++) {
        costs->total += isnan(costs->own[i]) ? 0 : costs->own[i];
        if (is_thing(frame, i, of_lines))
            costs->order[costs->n++] = i;
    }
    if (code == 0)
        qsort_r(costs->order, costs->n, sizeof *costs->order, compare_costs, costs);
    return code;
}

/* "function:even", "line:/src/a.c:12": of functions with one name all but the first add their file or module. */
static void put_item(const struct frame *frame, uint32_t node, bool of_lines, struct strtab *names, struct table *rows)
{
    struct buf item = {0};
    const char *file = frame_file(frame, node), *module = frame_module(frame, node);
    if (of_lines) {
        buf_printf(&item, "line:%s:%u", file, frame_line(frame, node));
    } else {
        buf_printf(&item, "function:%s", frame_name(frame, node));
        if (item.data && strtab_find(names, item.data) >= 0)
            buf_printf(&item, " (%s)", path_last(file && *file ? file : module ? module : ""));
        if (item.data && strtab_intern(names, item.data) < 0)
            table_fail(rows);
    }
    table_put_made(rows, &item);
}

static void put_share(struct table *rows, double value, double total)
{
    table_put_number(rows, value);
    table_put_number(rows, total > 0 ? 100 * value / total : (double)NAN);
}

/* The name of the function around a node of lines is not known: a line may be of several. */
static void put_row(const struct costs *costs, uint32_t node, bool of_lines, struct strtab *names, struct table *rows)
{
    const struct frame *frame = costs->frame;
    table_put_name(rows, of_lines ? "" : frame_name(frame, node));
    table_put_name(rows, frame_file(frame, node));
    table_put_if(rows, frame_line(frame, node) > 0, frame_line(frame, node));
    table_put_name(rows, frame_module(frame, node));
    put_share(rows, costs->own[node], costs->total);
    put_share(rows, costs->inclusive ? costs->inclusive[node] : (double)NAN, costs->total);
    put_item(frame, node, of_lines, names, rows);
}

/* The frame's lines, or, where it has functions alone, those that its file has. */
static int find_lines(struct frame *frame, const char *path, struct frame **lines, struct error *err)
{
    struct frame *parts = NULL;
    bool has_lines = false;
    for (size_t i = 0; i < frame_n_nodes(frame) && !has_lines; i++)
        has_lines = is_thing(frame, (uint32_t)i, true);
    if (has_lines)
        return frame_lines(frame, lines, err);
    int code = frame_open_parts(path, &parts, err);
    if (code == 0)
        code = frame_lines(parts, lines, err);
    frame_close(parts);
    return code;
}

/* Functions, or lines. */
static int make_code(struct frame *frame, const struct request *request, struct answer *answer, struct error *err)
{
    bool of_lines = strcmp(request->report, "lines") == 0;
    struct costs costs = {0};
    struct strtab names = {0};
    int code = of_lines ? find_lines(frame, answer->program, &costs.frame, err) : frame_flat(frame, &costs.frame, err);
    if (code == 0)
        code = costs_make(&costs, request->metric, of_lines, err);
    if (code == 0) {
        answer_begin(answer, of_lines ? "lines" : "functions", COLUMNS(columns)); /* the request may go first */
        table_put_number(answer_set_head(answer, COLUMNS(head_columns)), costs.total);
        for (size_t i = 0; i < costs.n && (request->top == 0 || i < request->top); i++)
            put_row(&costs, costs.order[i], of_lines, &names, &answer->rows);
        answer->rows.n_more = request->top && costs.n > request->top ? costs.n - request->top : 0;
    }
    strtab_fini(&names);
    free(costs.order);
    frame_close(costs.frame);
    return code;
}

/* --- nodes --- */

/* A node whose subtree is being listed, and what of it is too small to be listed. */
struct listed {
    uint32_t row, depth;
    double small;
    size_t n_small;
};

struct listing {
    struct frame *frame;
    const double *own, *value; /* [n_nodes] value: with what is below */
    double least;
    struct listed *open; /* [n_open] from the root on; room for the deepest node */
    size_t n_open;
    struct table *rows;
    uint32_t n_rows;
};

static void close_listed(struct listing *listing, uint32_t depth)
{
    while (listing->n_open && listing->open[listing->n_open - 1].depth >= depth) {
        const struct listed *last = &listing->open[--listing->n_open];
        if (!last->n_small)
            continue;
        node_put_small(listing->rows, last->row, last->n_small, last->small);
        listing->n_rows++;
    }
}

/* The thing that a node is: a function by its name, a line by its place. */
static void put_node_item(const struct frame *frame, uint32_t node, struct table *rows)
{
    enum frame_kind kind = frame_kind(frame, node);
    struct buf item = {0};
    if (kind == FRAME_FUNCTION || kind == FRAME_INLINED || kind == FRAME_OTHER)
        buf_printf(&item, "function:%s", frame_name(frame, node));
    else if (is_thing(frame, node, true))
        buf_printf(&item, "line:%s:%u", frame_file(frame, node), frame_line(frame, node));
    table_put_made(rows, &item);
}

static void list_node(struct listing *listing, uint32_t node, uint32_t depth)
{
    const struct frame *frame = listing->frame;
    close_listed(listing, depth);
    struct listed *above = listing->n_open ? &listing->open[listing->n_open - 1] : NULL;
    double value = isnan(listing->value[node]) ? 0 : listing->value[node];
    if (depth > 0 && (!above || above->depth != depth - 1))
        return; /* what it is below is folded */
    if (above && (value <= 0 || value < listing->least)) {
        above->small += value;
        above->n_small += value > 0;
        return;
    }
    table_put_if(listing->rows, above, above ? above->row : 0);
    table_put_count(listing->rows, node);
    table_put_borrowed(listing->rows, frame_kind_name(frame_kind(frame, node)));
    table_put_text(listing->rows, frame_name(frame, node));
    table_put_name(listing->rows, frame_file(frame, node));
    table_put_if(listing->rows, frame_line(frame, node) > 0, frame_line(frame, node));
    table_put_name(listing->rows, frame_module(frame, node));
    table_put_number(listing->rows, value);
    table_put_number(listing->rows, listing->own[node]);
    put_node_item(frame, node, listing->rows);
    listing->open[listing->n_open++] = (struct listed){listing->n_rows++, depth, 0, 0};
}

/* The costs of all roots. */
static double total_of(const struct frame *frame, const double *value)
{
    double total = 0;
    size_t n;
    const uint32_t *roots = frame_roots(frame, &n);
    for (size_t i = 0; i < n; i++)
        total += isnan(value[roots[i]]) ? 0 : value[roots[i]];
    return total;
}

/* In a graph a node is listed below the parent that was visited first. */
static int make_nodes(struct frame *frame, const struct request *request, struct answer *answer, struct error *err)
{
    size_t column = foreign_column(frame, request->metric, err), pair, n_nodes = frame_n_nodes(frame);
    struct listing listing = {.frame = frame, .rows = &answer->rows};
    if (column == SIZE_MAX)
        return err->code;
    pair = frame_column_pair(frame, column);
    int code = frame_values(frame, column, NULL, &listing.own, err);
    if (code == 0)
        code = frame_values(frame, pair == SIZE_MAX ? column : pair, NULL, &listing.value, err);
    if (code == 0 && !(listing.open = malloc((n_nodes + 1) * sizeof *listing.open)))
        code = error_memory(err);
    if (code == 0) {
        const uint32_t *depths = frame_depths(frame);
        double total = total_of(frame, listing.value);
        listing.least = request->has_least ? total * request->least / 100 : 0;
        answer_begin(answer, "nodes", node_columns, NODE_COLUMNS);
        table_put_number(answer_set_head(answer, COLUMNS(head_columns)), total);
        for (uint32_t i = 0; i < n_nodes; i++)
            list_node(&listing, i, depths[i]);
        close_listed(&listing, 0);
    }
    free(listing.open);
    return code;
}

/* --- what it is --- */

static const struct column report_columns[] = {{"report", NULL, CELL_TEXT}, {"summary", NULL, CELL_TEXT}};
static const struct column session_head[] = {
    {"version", NULL, CELL_TEXT},
    {"command", NULL, CELL_TEXT},
    {"path", NULL, CELL_TEXT},
    {"metrics", NULL, CELL_TABLE},
};
static const struct column metric_columns[] = {{"name", NULL, CELL_TEXT}};

static int make_session(struct frame *frame, const struct request *request, struct answer *answer, struct error *err)
{
    (void)request;
    (void)err;
    answer_begin(answer, "reports", COLUMNS(report_columns));
    table_put_borrowed(&answer->rows, "functions");
    table_put_borrowed(&answer->rows, "what each function costs");
    table_put_borrowed(&answer->rows, "lines");
    table_put_borrowed(&answer->rows, "what each line costs");
    struct table *head = answer_set_head(answer, COLUMNS(session_head));
    table_put_text(head, PACKAGE_VERSION);
    table_put_name(head, answer->program);
    table_put_name(head, answer->program);
    struct table *metrics = table_put_table(head, COLUMNS(metric_columns));
    for (size_t i = 0; i < frame_n_columns(frame); i++)
        if (!frame_column_is_hidden(frame, i) && frame_column_sums(frame, i) == FRAME_EXCLUSIVE)
            table_put_text(metrics, frame_column_name(frame, i));
    return 0;
}

static const struct {
    const char *name;
    int (*make)(struct frame *frame, const struct request *request, struct answer *answer, struct error *err);
} kinds[] = {
    {"functions", make_code}, {"lines", make_code}, {"nodes", make_nodes}, {"session", make_session}, {NULL, NULL},
};

int foreign_answer(struct frame *frame, const char *path, const struct request *request, struct answer *answer,
                   struct error *err)
{
    size_t column = foreign_column(frame, request->metric, err);
    *answer = (struct answer){.program = path};
    if (column == SIZE_MAX)
        return err->code;
    answer->metric = frame_column_name(frame, column);
    for (size_t i = 0; kinds[i].name; i++)
        if (strcmp(kinds[i].name, request->report) == 0) {
            int code = kinds[i].make(frame, request, answer, err);
            if (code == 0 && (answer->head.failed || answer->rows.failed))
                code = error_memory(err);
            if (code != 0)
                answer_fini(answer);
            return code;
        }
    return error_set(err, ERR_UNSUPPORTED, "%s has no data accesses: it is no database of hpcprof", path);
}
