/* SPDX-License-Identifier: BSD-3-Clause */
/* Classes of columns that sum up what lies below nodes, and the reverse. */
#include "frame/columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The strongly connected components of a graph: the nodes of one reach the same, so that a circle of any size is summed
 * up once. An edge between two leads to the smaller number. */
struct components {
    uint32_t n;
    uint32_t *component_of;      /* [n_nodes] */
    struct node_groups *members; /* of each component */
    uint32_t *starts, *children; /* [n + 1], [starts[n]] the other components that edges lead to, each once */
    bool *is_apart;              /* [n] what it reaches is reached through it alone: its children's sums add up */
    uint32_t *seen_in, *open;    /* [n] of walks: the number of the last one, and what it has found */
    uint32_t n_walks;
    struct cells *own, *rows; /* [n] sums of the members, and of all that is reached; NULL until asked for */
    bool *has_row;            /* [n] whether rows has the sum */
};

struct summed_column {
    struct frame_column base;
    struct frame_column *source;
    struct frame_graph *graph;
    struct node_groups *groups;    /* NULL: every node is a group */
    struct cells *rows;            /* [n_nodes] of all nodes of a tree, NULL until asked for */
    struct components *components; /* of what is no tree, or has groups; NULL until asked for */
    struct cells scratch, member;
};

/* --- components --- */

static void rows_free(struct cells **rows, uint32_t n)
{
    for (uint32_t i = 0; *rows && i < n; i++)
        cells_fini(&(*rows)[i]);
    free(*rows);
    *rows = NULL;
}

static void components_free(struct components *components)
{
    if (!components)
        return;
    rows_free(&components->own, components->n);
    rows_free(&components->rows, components->n);
    groups_drop(components->members);
    free(components->component_of);
    free(components->starts);
    free(components->children);
    free(components->is_apart);
    free(components->seen_in);
    free(components->open);
    free(components->has_row);
    free(components);
}

/* Fills what edges between components lead to, and which are apart. n_parents [n] is all zero. */
static void condense(struct components *components, const struct frame_graph *graph, uint32_t *n_parents)
{
    const struct node_groups *members = components->members;
    uint32_t n_edges = 0;
    for (uint32_t c = 0; c < components->n; c++) {
        components->starts[c] = n_edges;
        components->n_walks++;
        for (uint32_t m = members->starts[c]; m < members->starts[c + 1]; m++) {
            uint32_t node = members->members[m];
            for (uint32_t i = graph->child_starts[node]; i < graph->child_starts[node + 1]; i++) {
                uint32_t child = components->component_of[graph->children[i]];
                if (child == c || components->seen_in[child] == components->n_walks)
                    continue;
                components->seen_in[child] = components->n_walks;
                components->children[n_edges++] = child;
                n_parents[child]++;
            }
        }
    }
    components->starts[components->n] = n_edges;
    for (uint32_t c = 0; c < components->n; c++) {
        components->is_apart[c] = true;
        for (uint32_t i = components->starts[c]; i < components->starts[c + 1]; i++) {
            uint32_t child = components->children[i];
            components->is_apart[c] &= n_parents[child] == 1 && components->is_apart[child];
        }
    }
}

static bool components_init(struct components *components, const struct frame_graph *graph)
{
    uint32_t n_edges = graph->child_starts[graph->n];
    components->component_of = malloc((graph->n ? graph->n : 1) * sizeof(uint32_t));
    uint32_t n = components->component_of ? graph_components(graph, components->component_of) : FRAME_NONE;
    if (n == FRAME_NONE)
        return false;
    components->n = n;
    components->members = groups_of(components->component_of, graph->n, n);
    components->starts = malloc(((size_t)n + 1) * sizeof(uint32_t));
    components->children = malloc((n_edges ? n_edges : 1) * sizeof(uint32_t));
    components->is_apart = calloc((size_t)n + 1, sizeof(bool));
    components->has_row = calloc((size_t)n + 1, sizeof(bool));
    components->seen_in = calloc((size_t)n + 1, sizeof(uint32_t));
    components->open = malloc(((size_t)n + 1) * sizeof(uint32_t));
    uint32_t *n_parents = calloc((size_t)n + 1, sizeof(uint32_t));
    bool ok = components->members && components->starts && components->children && components->is_apart &&
              components->has_row && components->seen_in && components->open && n_parents;
    if (ok)
        condense(components, graph, n_parents);
    free(n_parents);
    return ok;
}

static bool make_components(struct summed_column *summed)
{
    struct components *made = summed->components ? NULL : calloc(1, sizeof *made);
    if (made && components_init(made, summed->graph))
        summed->components = made;
    else
        components_free(made);
    return summed->components;
}

/* Adds a component to those of the walk. */
static void find(struct components *components, uint32_t component, uint32_t *n)
{
    if (components->seen_in[component] == components->n_walks)
        return;
    components->seen_in[component] = components->n_walks;
    components->open[(*n)++] = component;
}

/* Adds what the first n components of the walk reach, and returns how many there are then. Where it begins at one, what
 * lies below those that are apart is left to them. */
static uint32_t walk(struct components *components, uint32_t n)
{
    bool is_one = n == 1;
    for (uint32_t at = 0; at < n; at++) {
        uint32_t component = components->open[at];
        if (is_one && components->is_apart[component])
            continue;
        for (uint32_t i = components->starts[component]; i < components->starts[component + 1]; i++)
            find(components, components->children[i], &n);
    }
    return n;
}

/* Begins a walk at the components of a node, or of the members of a group, and returns how many they are. */
static uint32_t begin_walk(struct summed_column *summed, uint32_t node)
{
    struct components *components = summed->components;
    const struct node_groups *groups = summed->groups;
    uint32_t n = 0;
    components->n_walks++;
    if (!groups)
        find(components, components->component_of[node], &n);
    for (uint32_t i = groups ? groups->starts[node] : 0; groups && i < groups->starts[node + 1]; i++)
        find(components, components->component_of[groups->members[i]], &n);
    return n;
}

/* --- sums over all profiles --- */

struct totals {
    double *own, *all; /* [n_components] of the members, and of all that is reached */
    bool *is_known;    /* [n_components] whether all has it */
};

static double plus(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : a + b;
}

static bool totals_init(struct totals *totals, const struct components *components, const double *of_nodes)
{
    const struct node_groups *members = components->members;
    size_t n = (size_t)components->n + 1;
    *totals = (struct totals){malloc(n * sizeof(double)), malloc(n * sizeof(double)), calloc(n, sizeof(bool))};
    if (!totals->own || !totals->all || !totals->is_known)
        return false;
    for (uint32_t c = 0; c < components->n; c++) {
        totals->own[c] = NAN;
        for (uint32_t i = members->starts[c]; i < members->starts[c + 1]; i++)
            totals->own[c] = plus(totals->own[c], of_nodes[members->members[i]]);
        totals->all[c] = totals->own[c];
        totals->is_known[c] = components->is_apart[c];
        for (uint32_t i = components->starts[c]; components->is_apart[c] && i < components->starts[c + 1]; i++)
            totals->all[c] = plus(totals->all[c], totals->all[components->children[i]]);
    }
    return true;
}

static void totals_fini(struct totals *totals)
{
    free(totals->own);
    free(totals->all);
    free(totals->is_known);
}

static double total_of(struct summed_column *summed, struct totals *totals, uint32_t node)
{
    struct components *components = summed->components;
    uint32_t n_first = begin_walk(summed, node), first = n_first ? components->open[0] : FRAME_NONE;
    double total = NAN;
    if (n_first == 1 && totals->is_known[first])
        return totals->all[first];
    uint32_t n = walk(components, n_first);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t component = components->open[i];
        bool is_all = n_first == 1 && components->is_apart[component];
        total = plus(total, is_all ? totals->all[component] : totals->own[component]);
    }
    if (n_first == 1) {
        totals->all[first] = total;
        totals->is_known[first] = true;
    }
    return total;
}

static int inclusive_values(struct frame_column *column, const struct frame_view *view, double *values, bool *done,
                            struct error *err)
{
    struct summed_column *summed = (struct summed_column *)column;
    const struct frame_graph *graph = summed->graph;
    const double *own;
    *done = view->aggregate == FRAME_SUM;
    int code = *done ? column_values(summed->source, view, &own, err) : 0;
    if (!*done || code != 0)
        return code;
    if (graph->is_tree && !summed->groups) {
        for (uint32_t node = column->n_nodes; node-- > 0;) {
            values[node] = own[node];
            for (uint32_t i = graph->child_starts[node]; i < graph->child_starts[node + 1]; i++)
                values[node] = plus(values[node], values[graph->children[i]]);
        }
        return 0;
    }
    struct totals totals = {0};
    bool ok = make_components(summed) && totals_init(&totals, summed->components, own);
    for (uint32_t node = 0; ok && node < column->n_nodes; node++)
        values[node] = total_of(summed, &totals, node);
    totals_fini(&totals);
    return ok ? 0 : error_memory(err);
}

/* --- rows --- */

/* The rows of a tree, from the last node to the first. */
static int make_rows(struct summed_column *summed, struct error *err)
{
    const struct frame_graph *graph = summed->graph;
    struct cells *rows = calloc(graph->n ? graph->n : 1, sizeof *rows);
    int code = rows ? 0 : error_memory(err);
    for (uint32_t node = graph->n; code == 0 && node-- > 0;) {
        code = summed->source->class->row(summed->source, node, &rows[node], err);
        for (uint32_t i = graph->child_starts[node]; code == 0 && i < graph->child_starts[node + 1]; i++) {
            const struct cells *child = &rows[graph->children[i]];
            code = cells_merge(&rows[node], child->items, child->n, &summed->scratch) ? 0 : error_memory(err);
        }
    }
    if (code != 0)
        rows_free(&rows, graph->n);
    else
        summed->rows = rows;
    return code;
}

static bool add_cells(struct summed_column *summed, struct cells *sum, const struct cells *cells)
{
    return cells_merge(sum, cells->items, cells->n, &summed->scratch);
}

/* The rows of components: of the members of each, and of all that is reached by those that are apart. */
static int make_component_rows(struct summed_column *summed, struct error *err)
{
    struct components *components = summed->components;
    const struct node_groups *members = components->members;
    int code = 0;
    components->own = calloc((size_t)components->n + 1, sizeof *components->own);
    components->rows = calloc((size_t)components->n + 1, sizeof *components->rows);
    bool ok = components->own && components->rows;
    for (uint32_t c = 0; ok && c < components->n; c++) {
        for (uint32_t i = members->starts[c]; ok && i < members->starts[c + 1]; i++) {
            summed->member.n = 0;
            code = summed->source->class->row(summed->source, members->members[i], &summed->member, err);
            ok = code == 0 && add_cells(summed, &components->own[c], &summed->member);
        }
        if (!components->is_apart[c])
            continue;
        ok = ok && add_cells(summed, &components->rows[c], &components->own[c]);
        for (uint32_t i = components->starts[c]; ok && i < components->starts[c + 1]; i++)
            ok = add_cells(summed, &components->rows[c], &components->rows[components->children[i]]);
        components->has_row[c] = true;
    }
    if (ok)
        return 0;
    rows_free(&components->own, components->n);
    rows_free(&components->rows, components->n);
    memset(components->has_row, 0, components->n * sizeof *components->has_row);
    return code ? code : error_memory(err);
}

/* Adds to row what the components of the walk reach: the first n are where it begins. */
static bool add_reached(struct summed_column *summed, uint32_t n_first, struct cells *row)
{
    struct components *components = summed->components;
    uint32_t n = walk(components, n_first);
    bool ok = true;
    for (uint32_t i = 0; ok && i < n; i++) {
        uint32_t component = components->open[i];
        bool is_all = n_first == 1 && components->is_apart[component];
        ok = add_cells(summed, row, is_all ? &components->rows[component] : &components->own[component]);
    }
    return ok;
}

static int component_row(struct summed_column *summed, uint32_t node, struct cells *row, struct error *err)
{
    int code = !make_components(summed)  ? error_memory(err)
               : summed->components->own ? 0
                                         : make_component_rows(summed, err);
    if (code != 0)
        return code;
    struct components *components = summed->components;
    uint32_t n_first = begin_walk(summed, node), first = n_first ? components->open[0] : FRAME_NONE;
    if (n_first != 1)
        return add_reached(summed, n_first, row) ? 0 : error_memory(err);
    if (!components->has_row[first]) {
        struct cells made = {0};
        if (!add_reached(summed, n_first, &made)) {
            cells_fini(&made);
            return error_memory(err);
        }
        components->rows[first] = made;
        components->has_row[first] = true;
    }
    return add_cells(summed, row, &components->rows[first]) ? 0 : error_memory(err);
}

static int inclusive_row(struct frame_column *column, uint32_t node, struct cells *row, struct error *err)
{
    struct summed_column *summed = (struct summed_column *)column;
    if (!summed->graph->is_tree || summed->groups)
        return component_row(summed, node, row, err);
    int code = summed->rows ? 0 : make_rows(summed, err);
    return code == 0 && !add_cells(summed, row, &summed->rows[node]) ? error_memory(err) : code;
}

static void summed_fini(struct frame_column *column)
{
    struct summed_column *summed = (struct summed_column *)column;
    rows_free(&summed->rows, summed->rows ? summed->graph->n : 0);
    components_free(summed->components);
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
            code = error_memory(err);
    }
    return code;
}

static const struct column_class exclusive_class = {exclusive_row, NULL, summed_fini};

struct frame_column *column_exclusive(struct frame_column *source, struct frame_graph *graph, const char *name)
{
    return summed_column(&exclusive_class, source, graph, name, FRAME_EXCLUSIVE);
}
