/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be said of a file that is no database of ours: which reports it has, what it is, and the nodes of its frame.
 * What it knows of code is asked as that of a database is (foreign-model.c). Columns are those of the questions of the
 * same names, so that a viewer needs no other words for them. Ordinary code. */
#include "config.h"

#include "session/questions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frame/ops.h"

/* What is about code alone: reports, and questions of viewers. */
static const char *const of_code[] = {"functions", "lines", "annotate", "items", "nodes", "session", "source"};

static const struct column head_columns[] = {
    {"total", NULL, CELL_NUMBER}, {"calls", NULL, CELL_TABLE}, /* of graphs */
};

/* The column of costs that a metric names, NULL: the default one. SIZE_MAX with *err set: there is none. */
static size_t foreign_column(const struct frame *frame, const char *metric, struct error *err)
{
    size_t column = metric ? frame_find_column(frame, metric, err) : frame_default_column(frame);
    if (column == SIZE_MAX && !metric)
        error_set(err, ERR_NOT_FOUND, "there are no costs in it");
    return column;
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
    uint32_t *row_of; /* [n_nodes] 1 + the row of a node; 0: it is not listed */
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
    if (frame_kind_is_function(kind))
        buf_printf(&item, "function:%s", frame_name(frame, node));
    else if ((kind == FRAME_LINE || kind == FRAME_CALL) && frame_line(frame, node) > 0)
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
    listing->row_of[node] = listing->n_rows;
}

/* What nodes cost with all that is listed below them: in a graph that is not what they cost with all that they call,
 * since what several call is listed once. [n_nodes], malloc'ed. */
static double *listed_sums(const struct frame *frame, const double *own, const uint32_t *depths)
{
    size_t n = frame_n_nodes(frame);
    double *sums = malloc((n + 1) * sizeof *sums), *below = calloc(n + 2, sizeof *below); /* of each depth, so far */
    for (size_t i = n; sums && below && i-- > 0;) {
        sums[i] = (isnan(own[i]) ? 0 : own[i]) + below[depths[i] + 1];
        below[depths[i] + 1] = 0;
        below[depths[i]] += sums[i];
    }
    if (!below) {
        free(sums);
        sums = NULL;
    }
    free(below);
    return sums;
}

static const struct column call_columns[] = {{"caller", NULL, CELL_COUNT}, {"callee", NULL, CELL_COUNT}};

/* The calls that the tree of rows does not have, where both are rows. */
static void put_other_calls(const struct listing *listing, struct table *calls)
{
    for (uint32_t i = 0; i < frame_n_nodes(listing->frame); i++) {
        size_t n;
        const uint32_t *parents = frame_parents(listing->frame, i, &n);
        for (size_t k = 0; listing->row_of[i] && n > 1 && k < n; k++)
            if (listing->row_of[parents[k]]) {
                table_put_count(calls, listing->row_of[parents[k]] - 1);
                table_put_count(calls, listing->row_of[i] - 1);
            }
    }
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

/* In a graph a node is listed below the parent that was visited first, and other calls of it are in the head. */
static int make_nodes(const struct foreign *foreign, const struct request *request, struct answer *answer,
                      struct error *err)
{
    struct frame *frame = foreign_frame(foreign);
    size_t column = foreign_column(frame, request->metric, err), pair, n_nodes = frame_n_nodes(frame);
    struct listing listing = {.frame = frame, .rows = &answer->rows};
    double *sums = NULL;
    if (column == SIZE_MAX)
        return err->code;
    pair = frame_column_pair(frame, column);
    int code = frame_values(frame, column, NULL, &listing.own, err);
    if (code == 0)
        code = frame_values(frame, pair == SIZE_MAX ? column : pair, NULL, &listing.value, err);
    const uint32_t *depths = code == 0 ? frame_depths(frame) : NULL;
    listing.open = malloc((n_nodes + 1) * sizeof *listing.open);
    listing.row_of = calloc(n_nodes + 1, sizeof *listing.row_of);
    bool is_tree = frame_is_tree(frame);
    if (code == 0 && depths && !is_tree)
        listing.value = sums = listed_sums(frame, listing.own, depths);
    if (code == 0 && (!depths || !listing.open || !listing.row_of || !listing.value))
        code = error_memory(err);
    if (code == 0) {
        double total = total_of(frame, listing.value);
        listing.least = request->has_least ? total * request->least / 100 : 0;
        answer_begin(answer, "nodes", node_columns, NODE_COLUMNS);
        struct table *head = answer_set_head(answer, head_columns, is_tree ? 1 : 2);
        table_put_number(head, total);
        for (uint32_t i = 0; i < n_nodes; i++)
            list_node(&listing, i, depths[i]);
        close_listed(&listing, 0);
        if (!is_tree)
            put_other_calls(&listing, table_put_table(head, COLUMNS(call_columns)));
    }
    free(sums);
    free(listing.row_of);
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

static int make_session(const struct foreign *foreign, const struct request *request, struct answer *answer,
                        struct error *err)
{
    const struct model *model = foreign_model(foreign);
    (void)request;
    (void)err;
    answer_begin(answer, "reports", COLUMNS(report_columns));
    for (size_t i = 0; i < sizeof of_code / sizeof *of_code; i++) {
        const struct report_kind *kind = report_find(of_code[i]);
        if (!kind)
            continue; /* a question of viewers */
        table_put_borrowed(&answer->rows, kind->name);
        table_put_borrowed(&answer->rows, kind->summary);
    }
    struct table *head = answer_set_head(answer, COLUMNS(session_head));
    table_put_text(head, PACKAGE_VERSION);
    table_put_name(head, answer->program);
    table_put_name(head, answer->program);
    struct table *metrics = table_put_table(head, COLUMNS(metric_columns));
    for (size_t i = 0; i < model->n_metrics; i++)
        table_put_text(metrics, model->metrics[i].name);
    return 0;
}

int foreign_check(const char *path, const struct request *request, struct error *err)
{
    if (request->by)
        return error_set(err, ERR_UNSUPPORTED, "%s does not say which %s a cost is of: it is no database of hpcprof",
                         path, request->by);
    for (size_t i = 0; i < sizeof of_code / sizeof *of_code; i++)
        if (strcmp(of_code[i], request->report) == 0)
            return 0;
    return error_set(err, ERR_UNSUPPORTED, "%s has no data accesses: it is no database of hpcprof", path);
}

static const struct {
    const char *name;
    int (*make)(const struct foreign *foreign, const struct request *request, struct answer *answer, struct error *err);
} questions[] = {{"nodes", make_nodes}, {"session", make_session}};

bool foreign_has(const char *question)
{
    return strcmp(question, questions[0].name) == 0 || strcmp(question, questions[1].name) == 0;
}

int foreign_answer(const struct foreign *foreign, const char *path, const struct request *request,
                   struct answer *answer, struct error *err)
{
    size_t column = foreign_column(foreign_frame(foreign), request->metric, err);
    size_t question = strcmp(request->report, questions[0].name) != 0;
    *answer = (struct answer){.program = path};
    if (column == SIZE_MAX)
        return err->code;
    answer->metric = frame_column_name(foreign_frame(foreign), column);
    int code = questions[question].make(foreign, request, answer, err);
    if (code == 0 && (answer->head.failed || answer->rows.failed))
        code = error_memory(err);
    if (code != 0)
        answer_fini(answer);
    return code;
}
