/* SPDX-License-Identifier: BSD-3-Clause */
/* What stands out: the way of the largest costs, and profiles that differ from the others. */
#include "frame/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frame/formula.h"
#include "frame/op-shape.h"

/* The first of the largest of nodes [n]; FRAME_NONE where none has a value. */
static uint32_t largest(const uint32_t *nodes, size_t n, const double *values)
{
    uint32_t found = FRAME_NONE;
    for (size_t i = 0; i < n; i++)
        if (!isnan(values[nodes[i]]) && (found == FRAME_NONE || values[nodes[i]] > values[found]))
            found = nodes[i];
    return found;
}

int frame_hot_path(const struct frame *frame, size_t column, const struct frame_view *view, uint32_t from, double share,
                   uint32_t **path, size_t *n, struct error *err)
{
    const double *values;
    const struct frame_graph *graph = frame->graph;
    bool *is_on = calloc(graph->n ? graph->n : 1, sizeof *is_on), goes_on = true;
    size_t capacity = 0;
    uint32_t *made = NULL;
    int code = is_on ? column_values(frame->columns[column], view, &values, err) : error_memory(err);
    *n = 0;
    uint32_t node = code != 0 ? FRAME_NONE : from == FRAME_NONE ? largest(graph->roots, graph->n_roots, values) : from;
    while (code == 0 && node != FRAME_NONE && !is_on[node]) {
        if (!vec_reserve(&made, &capacity, *n + 1, sizeof *made)) {
            code = error_memory(err);
            break;
        }
        made[(*n)++] = node;
        is_on[node] = true;
        uint32_t child = !goes_on ? FRAME_NONE
                                  : largest(graph->children + graph->child_starts[node],
                                            graph->child_starts[node + 1] - graph->child_starts[node], values);
        goes_on = child != FRAME_NONE && values[child] >= share * values[node];
        node = child;
    }
    free(is_on);
    if (code != 0)
        free(made);
    else
        *path = made;
    return code;
}

int shape_hot_path(const struct frame *frame, size_t column, double share, struct frame **result, struct error *err)
{
    uint32_t *path = NULL;
    size_t n = 0;
    int code = frame_hot_path(frame, column, NULL, FRAME_NONE, share, &path, &n, err);
    if (code == 0 && n == 0)
        code = error_set(err, ERR_NOT_FOUND, "no node has a value of %.200s", frame->columns[column]->name);
    uint32_t *group_of = malloc((frame->graph->n + 1) * sizeof *group_of), *parents = malloc((n + 1) * sizeof *parents);
    struct frame_graph *graph = NULL;
    if (code == 0 && !(group_of && parents))
        code = error_memory(err);
    for (uint32_t i = 0; code == 0 && i < frame->graph->n; i++)
        group_of[i] = FRAME_NONE;
    for (uint32_t i = 0; code == 0 && i < n; i++) {
        group_of[path[i]] = i;
        parents[i] = i ? i - 1 : FRAME_NONE;
    }
    if (code == 0)
        code = graph_make_tree((uint32_t)n, parents, &graph, err);
    if (code == 0) {
        struct frame_nodes *nodes = nodes_choose(frame->nodes, path, (uint32_t)n);
        code = regroup_frame(frame, group_of, REGROUP_SAME, graph, nodes, result, err);
    }
    free(parents);
    free(group_of);
    free(path);
    return code;
}

/* Adds the column "NAME what" of an aggregate over all profiles. */
static int add_aggregate(struct frame_column *from, struct profile_map *map, enum frame_aggregate aggregate,
                         const char *what, struct frame *to, struct error *err)
{
    struct buf name = {0};
    buf_printf(&name, "%s %s", from->name, what);
    struct frame_column *column = name.failed ? NULL : column_aggregated(from, map, aggregate, 0, name.data);
    buf_fini(&name);
    if (column)
        column->sums = FRAME_PLAIN;
    return frame_add_column(to, column, err);
}

/* Adds the largest value divided by the mean. */
static int add_imbalance(const struct frame_column *from, struct frame *to, struct error *err)
{
    struct formula *formula = formula_new(to);
    struct buf name = {0};
    bool ok = formula;
    for (uint32_t i = 0; ok && i < 2; i++)
        ok = formula_slot(formula, &(struct formula_slot){.from = FROM_COLUMN, .column = to->columns[1 - i]}) == i &&
             formula_step(formula, DO_SLOT, i, 0);
    ok = ok && formula_step(formula, DO_DIVIDE, 0, 0);
    buf_printf(&name, "%s imbalance", from->name);
    struct frame_column *column = NULL;
    if (ok && !name.failed)
        column = column_formula(formula, name.data, FRAME_PLAIN);
    else
        formula_free(formula);
    buf_fini(&name);
    return frame_add_column(to, column, err);
}

static int compare_cells(const void *a, const void *b)
{
    const struct frame_cell *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->profile < y->profile ? -1 : x->profile > y->profile;
}

/* The cells of a node, the largest first. */
static int sort_cells(struct frame_column *column, uint32_t node, struct cells *sorted, struct error *err)
{
    sorted->n = 0;
    int code = column->class->row(column, node, sorted, err);
    if (code == 0 && sorted->n)
        qsort(sorted->items, sorted->n, sizeof *sorted->items, compare_cells);
    return code;
}

static void put_outlier(const struct frame_profiles *profiles, const struct frame_cell *cell, struct buf *text)
{
    const char *name = profiles->items[cell->profile].name;
    buf_printf(text, "%s", text->len_bytes ? ", " : "");
    if (*name)
        buf_printf(text, "%s", name);
    else
        buf_printf(text, "profile %u", cell->profile);
    buf_printf(text, ": %.6g", cell->value);
}

/* Fills the attribute with the profiles whose values are above the mean, the largest first, at most max of them. */
static int name_outliers(const struct frame *frame, struct frame_column *column, const double *means, size_t max,
                         struct frame_nodes *nodes, uint32_t *texts, struct error *err)
{
    struct cells sorted = {0};
    struct buf text = {0};
    int code = 0;
    for (uint32_t node = 0; code == 0 && node < nodes->n; node++) {
        code = sort_cells(column, node, &sorted, err);
        text.len_bytes = 0;
        for (size_t i = 0; code == 0 && i < max && i < sorted.n && sorted.items[i].value > means[node]; i++)
            put_outlier(frame->profiles, &sorted.items[i], &text);
        int64_t id = text.len_bytes == 0 ? 0 : text.failed ? -1 : strtab_intern(&nodes->strings->table, text.data);
        if (code == 0 && id < 0)
            code = error_memory(err);
        texts[node] = code == 0 ? (uint32_t)id : 0;
    }
    cells_fini(&sorted);
    buf_fini(&text);
    return code;
}

/* The nodes once more, with the attribute "outliers"; means [n_nodes]. */
static int add_outliers(const struct frame *frame, struct frame_column *column, size_t max, struct frame *made,
                        struct error *err)
{
    const double *means;
    uint32_t n = frame->graph->n, *same = malloc(((size_t)n + 1) * sizeof *same);
    int code = column_values(made->columns[0], NULL, &means, err);
    for (uint32_t i = 0; same && i < n; i++)
        same[i] = i;
    struct frame_nodes *nodes = same ? nodes_choose(frame->nodes, same, n) : NULL;
    bool ok = nodes;
    struct frame_attribute *attribute = nodes ? shape_attribute(nodes, "outliers", true, &ok) : NULL;
    if (code == 0 && !ok)
        code = error_memory(err);
    if (code == 0 && attribute)
        code = name_outliers(frame, column, means, max, nodes, attribute->texts, err);
    free(same);
    if (code != 0) {
        nodes_drop(nodes);
        return code;
    }
    nodes_drop(made->nodes);
    made->nodes = nodes;
    return 0;
}

/* One profile that stands for all. NULL when out of memory. */
static struct frame_profiles *profile_of_all(void)
{
    struct frame_profiles *profiles = calloc(1, sizeof *profiles);
    char *name = strdup("all");
    if (!profiles || !name || !vec_reserve(&profiles->items, &profiles->capacity, 1, sizeof *profiles->items)) {
        free(profiles);
        free(name);
        return NULL;
    }
    profiles->n_owners = 1;
    profiles->items[profiles->n++] = (struct frame_profile){name, -1, -1, -1, -1};
    return profiles;
}

int frame_imbalance(const struct frame *frame, const char *column, size_t max_outliers, struct frame **result,
                    struct error *err)
{
    size_t at = frame_find_column(frame, column, err);
    if (at == SIZE_MAX)
        return ERR_NOT_FOUND;
    uint32_t n = (uint32_t)frame->profiles->n;
    struct frame_column *from = frame->columns[at];
    struct profile_map *map = profile_map_new(n, 1);
    struct frame *made = map ? frame_new(graph_keep(frame->graph), nodes_keep(frame->nodes), profile_of_all()) : NULL;
    int code = made ? 0 : error_memory(err);
    if (map)
        memset(map->new_of, 0, n * sizeof(uint32_t));
    if (code == 0)
        code = add_aggregate(from, map, FRAME_MEAN, "mean", made, err);
    if (code == 0)
        code = add_aggregate(from, map, FRAME_MAX, "max", made, err);
    if (code == 0)
        code = add_imbalance(from, made, err);
    if (code == 0)
        code = add_outliers(frame, from, max_outliers, made, err);
    profile_map_drop(map);
    if (code != 0)
        frame_close(made);
    else
        *result = made;
    return code;
}

int frame_outliers(struct frame *frame, size_t column, uint32_t node, size_t max, uint32_t *profiles, size_t *n,
                   struct error *err)
{
    struct cells sorted = {0};
    int code = sort_cells(frame->columns[column], node, &sorted, err);
    *n = 0;
    for (; code == 0 && *n < max && *n < sorted.n; ++*n)
        profiles[*n] = sorted.items[*n].profile;
    cells_fini(&sorted);
    return code;
}
