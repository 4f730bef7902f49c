/* SPDX-License-Identifier: BSD-3-Clause */
/* Classes of columns that sum up what lies below nodes, and the reverse. */
#include "frame/columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int out_of_memory(struct error *err)
{
    return error_set(err, ERR_MEMORY, "out of memory");
}

struct summed_column {
    struct frame_column base;
    struct frame_column *source;
    struct frame_graph *graph;
    struct node_groups *groups; /* NULL: every node is a group */
    struct cells *rows;         /* [n_nodes] of all nodes, NULL until asked for */
    uint32_t *seen_by, *open;   /* of a graph that is no tree: [n_nodes] each */
    struct cells scratch, member;
};

/* What can be reached from a node, or from the members of a group: open[0 .. n); n. */
static uint32_t reach(struct summed_column *summed, uint32_t node)
{
    const struct frame_graph *graph = summed->graph;
    const struct node_groups *groups = summed->groups;
    uint32_t n = 0, n_first = groups ? groups->starts[node + 1] - groups->starts[node] : 1;
    const uint32_t *first = groups ? groups->members + groups->starts[node] : &node;
    for (uint32_t i = 0; i < n_first; i++)
        if (summed->seen_by[first[i]] != node) {
            summed->seen_by[first[i]] = node;
            summed->open[n++] = first[i];
        }
    for (uint32_t at = 0; at < n; at++)
        for (uint32_t i = graph->child_starts[summed->open[at]]; i < graph->child_starts[summed->open[at] + 1]; i++)
            if (summed->seen_by[graph->children[i]] != node) {
                summed->seen_by[graph->children[i]] = node;
                summed->open[n++] = graph->children[i];
            }
    return n;
}

static bool can_reach(struct summed_column *summed)
{
    size_t n = summed->graph->n ? summed->graph->n : 1;
    if (!summed->seen_by) {
        summed->seen_by = malloc(n * sizeof *summed->seen_by);
        summed->open = malloc(n * sizeof *summed->open);
        if (summed->seen_by)
            memset(summed->seen_by, 0xff, n * sizeof *summed->seen_by);
    }
    return summed->seen_by && summed->open;
}

static int inclusive_values(struct frame_column *column, const struct frame_view *view, double *values, bool *done,
                            struct error *err)
{
    struct summed_column *summed = (struct summed_column *)column;
    const struct frame_graph *graph = summed->graph;
    const double *own;
    *done = view->aggregate == FRAME_SUM;
    if (!*done)
        return 0;
    bool by_children = graph->is_tree && !summed->groups;
    int code = column_values(summed->source, view, &own, err);
    if (code == 0 && !by_children && !can_reach(summed))
        code = out_of_memory(err);
    for (uint32_t node = column->n_nodes; code == 0 && node-- > 0;) {
        double sum = by_children ? own[node] : NAN;
        uint32_t n = by_children ? graph->child_starts[node + 1] - graph->child_starts[node] : reach(summed, node);
        for (uint32_t i = 0; i < n; i++) {
            double value = by_children ? values[graph->children[graph->child_starts[node] + i]] : own[summed->open[i]];
            if (!isnan(value))
                sum = isnan(sum) ? value : sum + value;
        }
        values[node] = sum;
        for (uint32_t i = 0; !by_children && i < n; i++)
            summed->seen_by[summed->open[i]] = FRAME_NONE;
    }
    return code;
}

/* The rows of a tree, from the last node to the first. */
static int make_rows(struct summed_column *summed, struct error *err)
{
    const struct frame_graph *graph = summed->graph;
    struct cells *rows = calloc(graph->n ? graph->n : 1, sizeof *rows);
    int code = rows ? 0 : out_of_memory(err);
    for (uint32_t node = graph->n; code == 0 && node-- > 0;) {
        code = summed->source->class->row(summed->source, node, &rows[node], err);
        for (uint32_t i = graph->child_starts[node]; code == 0 && i < graph->child_starts[node + 1]; i++) {
            const struct cells *child = &rows[graph->children[i]];
            code = cells_merge(&rows[node], child->items, child->n, &summed->scratch) ? 0 : out_of_memory(err);
        }
    }
    for (uint32_t i = 0; rows && code != 0 && i < graph->n; i++)
        cells_fini(&rows[i]);
    if (code != 0)
        free(rows);
    else
        summed->rows = rows;
    return code;
}

static int inclusive_row(struct frame_column *column, uint32_t node, struct cells *row, struct error *err)
{
    struct summed_column *summed = (struct summed_column *)column;
    int code = 0;
    if (summed->graph->is_tree && !summed->groups) {
        code = summed->rows ? 0 : make_rows(summed, err);
        for (size_t i = 0; code == 0 && i < summed->rows[node].n; i++)
            if (!cells_add(row, summed->rows[node].items[i].profile, summed->rows[node].items[i].value))
                code = out_of_memory(err);
        return code;
    }
    if (!can_reach(summed))
        return out_of_memory(err);
    uint32_t n = reach(summed, node);
    for (uint32_t i = 0; code == 0 && i < n; i++) {
        summed->member.n = 0;
        code = summed->source->class->row(summed->source, summed->open[i], &summed->member, err);
        if (code == 0 && !cells_merge(row, summed->member.items, summed->member.n, &summed->scratch))
            code = out_of_memory(err);
    }
    for (uint32_t i = 0; i < n; i++)
        summed->seen_by[summed->open[i]] = FRAME_NONE;
    return code;
}

static void summed_fini(struct frame_column *column)
{
    struct summed_column *summed = (struct summed_column *)column;
    for (uint32_t i = 0; summed->rows && i < summed->graph->n; i++)
        cells_fini(&summed->rows[i]);
    free(summed->rows);
    free(summed->seen_by);
    free(summed->open);
    column_drop(summed->source);
    graph_drop(summed->graph);
    groups_drop(summed->groups);
    cells_fini(&summed->scratch);
    cells_fini(&summed->member);
}

static const struct column_class inclusive_class = {inclusive_row, inclusive_values, summed_fini};

static struct frame_column *summed_column(const struct column_class *class, struct frame_column *source,
                                          struct frame_graph *graph, const char *name, enum frame_sums sums)
{
    struct frame_column *column = column_like(class, sizeof(struct summed_column), source, name, sums, graph->n);
    if (!column)
        return NULL;
    ((struct summed_column *)column)->source = column_keep(source);
    ((struct summed_column *)column)->graph = graph_keep(graph);
    return column;
}

struct frame_column *column_inclusive(struct frame_column *source, struct frame_graph *graph, const char *name)
{
    return summed_column(&inclusive_class, source, graph, name, FRAME_INCLUSIVE);
}

struct frame_column *column_reached(struct frame_column *source, struct frame_graph *graph, struct node_groups *groups,
                                    const char *name)
{
    struct frame_column *column = column_inclusive(source, graph, name);
    if (column) {
        column->n_nodes = groups->n_nodes;
        ((struct summed_column *)column)->groups = groups_keep(groups);
    }
    return column;
}

/* A node's cells less those of its children. */
static int exclusive_row(struct frame_column *column, uint32_t node, struct cells *row, struct error *err)
{
    struct summed_column *summed = (struct summed_column *)column;
    const struct frame_graph *graph = summed->graph;
    int code = summed->source->class->row(summed->source, node, row, err);
    for (uint32_t i = graph->child_starts[node]; code == 0 && i < graph->child_starts[node + 1]; i++) {
        summed->member.n = 0;
        code = summed->source->class->row(summed->source, graph->children[i], &summed->member, err);
        for (size_t k = 0; k < summed->member.n; k++)
            summed->member.items[k].value *= -1;
        if (code == 0 && !cells_merge(row, summed->member.items, summed->member.n, &summed->scratch))
            code = out_of_memory(err);
    }
    return code;
}

static const struct column_class exclusive_class = {exclusive_row, NULL, summed_fini};

struct frame_column *column_exclusive(struct frame_column *source, struct frame_graph *graph, const char *name)
{
    return summed_column(&exclusive_class, source, graph, name, FRAME_EXCLUSIVE);
}
