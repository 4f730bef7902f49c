/* SPDX-License-Identifier: BSD-3-Clause */
/* The classes of columns that every operation is made of, and what is kept of their values. */
#include "frame/columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Values for one view. */
struct column_cache {
    struct column_cache *next;
    enum frame_aggregate aggregate;
    double percentile;
    bool is_all;
    size_t n_profiles;
    uint32_t *profiles; /* [n_profiles] */
    double values[];
};

/* --- cells --- */

bool cells_add(struct cells *cells, uint32_t profile, double value)
{
    if (!vec_reserve(&cells->items, &cells->capacity, cells->n + 1, sizeof *cells->items))
        return false;
    cells->items[cells->n++] = (struct frame_cell){profile, value};
    return true;
}

bool cells_merge(struct cells *sum, const struct frame_cell *cells, size_t n, struct cells *scratch)
{
    size_t at = 0;
    scratch->n = 0;
    for (size_t i = 0; i < n; i++) {
        while (at < sum->n && sum->items[at].profile < cells[i].profile) {
            if (!cells_add(scratch, sum->items[at].profile, sum->items[at].value))
                return false;
            at++;
        }
        bool is_both = at < sum->n && sum->items[at].profile == cells[i].profile;
        if (!cells_add(scratch, cells[i].profile, cells[i].value + (is_both ? sum->items[at].value : 0)))
            return false;
        at += is_both;
    }
    for (; at < sum->n; at++)
        if (!cells_add(scratch, sum->items[at].profile, sum->items[at].value))
            return false;
    struct cells swap = *sum;
    *sum = *scratch;
    *scratch = swap;
    return true;
}

void cells_fini(struct cells *cells)
{
    free(cells->items);
    *cells = (struct cells){0};
}

static int compare_values(const void *a, const void *b)
{
    double x = ((const struct frame_cell *)a)->value, y = ((const struct frame_cell *)b)->value;
    return x < y ? -1 : x > y;
}

/* The value that is the i-th in order, of sorted cells and n_zeros zeros. */
static double value_at(const struct cells *sorted, size_t n_zeros, size_t i)
{
    size_t n_below = 0;
    while (n_zeros && n_below < sorted->n && sorted->items[n_below].value < 0)
        n_below++;
    if (i < n_below)
        return sorted->items[i].value;
    return i < n_below + n_zeros ? 0 : sorted->items[i - n_zeros].value;
}

/* The percentile of cells, which are put in order, and n_zeros zeros. */
static double percentile_of(struct cells *cells, size_t n_zeros, double percentile)
{
    size_t n = cells->n + n_zeros;
    double place = percentile / 100 * (double)(n - 1);
    size_t low = (size_t)place;
    qsort(cells->items, cells->n, sizeof *cells->items, compare_values);
    if (low + 1 >= n)
        return value_at(cells, n_zeros, n - 1);
    double below = value_at(cells, n_zeros, low), above = value_at(cells, n_zeros, low + 1);
    return below + (place - (double)low) * (above - below);
}

/* One value of cells and n_zeros zeros. */
static double reduce(struct cells *cells, size_t n_zeros, const struct frame_view *view)
{
    double n = (double)(cells->n + n_zeros), sum = 0, squares = 0;
    double least = n_zeros ? 0 : HUGE_VAL, most = n_zeros ? 0 : -HUGE_VAL;
    for (size_t i = 0; i < cells->n; i++) {
        sum += cells->items[i].value;
        least = fmin(least, cells->items[i].value);
        most = fmax(most, cells->items[i].value);
    }
    switch (view->aggregate) {
    case FRAME_SUM:
        return sum;
    case FRAME_MEAN:
        return sum / n;
    case FRAME_MIN:
        return least;
    case FRAME_MAX:
        return most;
    case FRAME_COUNT:
        return (double)cells->n;
    case FRAME_PERCENTILE:
        return percentile_of(cells, n_zeros, view->percentile);
    default:
        squares = (double)n_zeros * (sum / n) * (sum / n);
        for (size_t i = 0; i < cells->n; i++)
            squares += (cells->items[i].value - sum / n) * (cells->items[i].value - sum / n);
        return sqrt(squares / n);
    }
}

bool cells_aggregate(const struct frame_cell *cells, size_t n, const struct frame_view *view, size_t n_profiles,
                     struct cells *scratch, double *value)
{
    size_t wanted = 0;
    scratch->n = 0;
    for (size_t i = 0; i < n; i++) {
        while (view->profiles && wanted < view->n_profiles && view->profiles[wanted] < cells[i].profile)
            wanted++;
        bool is_wanted = !view->profiles || (wanted < view->n_profiles && view->profiles[wanted] == cells[i].profile);
        if (is_wanted && !isnan(cells[i].value) && !cells_add(scratch, cells[i].profile, cells[i].value))
            return false;
    }
    size_t n_zeros = n_profiles > scratch->n ? n_profiles - scratch->n : 0;
    *value = scratch->n ? reduce(scratch, n_zeros, view) : NAN;
    return true;
}

size_t column_n_counted(const struct frame_column *column, size_t n_profiles)
{
    return column->sums == FRAME_PLAIN ? 0 : n_profiles;
}

/* --- what all columns have --- */

struct frame_column *column_new(const struct column_class *class, size_t column_bytes, const char *name,
                                enum frame_sums sums, uint32_t n_nodes, uint32_t n_profiles)
{
    struct frame_column *column = calloc(1, column_bytes);
    if (!column)
        return NULL;
    column->n_owners = 1;
    column->class = class;
    column->sums = sums;
    column->n_nodes = n_nodes;
    column->n_profiles = n_profiles;
    column->name = strdup(name);
    column->description = strdup("");
    if (!column->name || !column->description) {
        column_drop(column);
        return NULL;
    }
    return column;
}

struct frame_column *column_keep(struct frame_column *column)
{
    column->n_owners++;
    return column;
}

void column_drop(struct frame_column *column)
{
    if (!column || --column->n_owners)
        return;
    if (column->class->fini)
        column->class->fini(column);
    while (column->caches) {
        struct column_cache *cache = column->caches;
        column->caches = cache->next;
        free(cache->profiles);
        free(cache);
    }
    cells_fini(&column->row);
    free(column->name);
    free(column->description);
    free(column);
}

struct frame_column *column_like(const struct column_class *class, size_t column_bytes,
                                 const struct frame_column *source, const char *name, enum frame_sums sums,
                                 uint32_t n_nodes)
{
    struct frame_column *column = column_new(class, column_bytes, name, sums, n_nodes, source->n_profiles);
    char *description = column ? strdup(source->description) : NULL;
    if (!description) {
        column_drop(column);
        return NULL;
    }
    free(column->description);
    column->description = description;
    column->is_hidden = source->is_hidden;
    column_deepen(column, source);
    return column;
}

void column_deepen(struct frame_column *column, const struct frame_column *source)
{
    if (column->depth <= source->depth)
        column->depth = source->depth + 1;
}

/* A formula that operations change as a formula. */
static bool is_remade(const struct frame_column *column)
{
    return column->remake && column->sums == FRAME_PLAIN;
}

struct frame_column *column_changed(struct column_change *change, struct frame_column *column)
{
    for (size_t i = 0; i < change->n_known; i++)
        if (change->known[i].from == column)
            return column_keep(change->known[i].to);
    struct frame_column *to = is_remade(column) ? column->remake(column, change) : change->of(change, column);
    struct error ignored; /* whoever reads the column gets it */
    if (to)
        (void)column_settle(to, &ignored);
    /* the call may have filled and moved the array */
    if (!to || !vec_reserve(&change->known, &change->cap_known, change->n_known + 1, sizeof *change->known)) {
        column_drop(to);
        return NULL;
    }
    change->known[change->n_known++] = (struct changed_column){column_keep(column), column_keep(to)};
    return to;
}

void change_fini(struct column_change *change)
{
    for (size_t i = 0; i < change->n_known; i++) {
        column_drop(change->known[i].from);
        column_drop(change->known[i].to);
    }
    free(change->known);
}

static bool is_for(const struct column_cache *cache, const struct frame_view *view)
{
    return cache->aggregate == view->aggregate && cache->is_all == !view->profiles &&
           (view->aggregate != FRAME_PERCENTILE || cache->percentile == view->percentile) &&
           (cache->is_all || (cache->n_profiles == view->n_profiles &&
                              memcmp(cache->profiles, view->profiles, view->n_profiles * sizeof(uint32_t)) == 0));
}

static struct column_cache *new_cache(const struct frame_column *column, const struct frame_view *view)
{
    struct column_cache *cache = malloc(sizeof *cache + column->n_nodes * sizeof(double));
    size_t n_bytes = view->profiles ? view->n_profiles * sizeof(uint32_t) : 0;
    uint32_t *profiles = malloc(n_bytes ? n_bytes : 1);
    if (!cache || !profiles) {
        free(cache);
        free(profiles);
        return NULL;
    }
    *cache = (struct column_cache){.aggregate = view->aggregate,
                                   .percentile = view->percentile,
                                   .is_all = !view->profiles,
                                   .n_profiles = view->profiles ? view->n_profiles : 0,
                                   .profiles = profiles};
    if (n_bytes)
        memcpy(profiles, view->profiles, n_bytes);
    return cache;
}

/* Values by rows. */
static int values_by_rows(struct frame_column *column, const struct frame_view *view, double *values, struct error *err)
{
    struct cells row = {0}, scratch = {0};
    size_t n_counted = column_n_counted(column, view->profiles ? view->n_profiles : column->n_profiles);
    int code = 0;
    for (uint32_t node = 0; code == 0 && node < column->n_nodes; node++) {
        row.n = 0;
        code = column->class->row(column, node, &row, err);
        if (code == 0 && !cells_aggregate(row.items, row.n, view, n_counted, &scratch, &values[node]))
            code = error_memory(err);
    }
    cells_fini(&row);
    cells_fini(&scratch);
    return code;
}

/* Whether a view names every profile of a column. */
static bool names_all(const struct frame_column *column, const struct frame_view *view)
{
    if (!view->profiles || view->n_profiles != column->n_profiles)
        return false;
    for (uint32_t i = 0; i < column->n_profiles; i++)
        if (view->profiles[i] != i)
            return false;
    return true;
}

int column_values(struct frame_column *column, const struct frame_view *view, const double **values, struct error *err)
{
    struct frame_view wanted = view ? *view : (struct frame_view){0};
    bool done = false;
    if (names_all(column, &wanted)) /* sums of all are known to files, or cheaper */
        wanted.profiles = NULL;
    view = &wanted;
    for (const struct column_cache *cache = column->caches; cache; cache = cache->next)
        if (is_for(cache, view)) {
            *values = cache->values;
            return 0;
        }
    struct column_cache *cache = new_cache(column, view);
    if (!cache)
        return error_memory(err);
    int code = column->class->values ? column->class->values(column, view, cache->values, &done, err) : 0;
    if (code == 0 && !done)
        code = values_by_rows(column, view, cache->values, err);
    if (code != 0) {
        free(cache->profiles);
        free(cache);
        return code;
    }
    cache->next = column->caches;
    column->caches = cache;
    *values = cache->values;
    return 0;
}

int column_cells(struct frame_column *column, uint32_t node, const struct frame_cell **cells, size_t *n,
                 struct error *err)
{
    column->row.n = 0;
    int code = column->class->row(column, node, &column->row, err);
    *cells = column->row.items;
    *n = code == 0 ? column->row.n : 0;
    return code;
}

/* --- cells in memory --- */

struct stored_column {
    struct frame_column base;
    uint64_t *starts;
    struct frame_cell *cells;
};

static int stored_row(struct frame_column *column, uint32_t node, struct cells *row, struct error *err)
{
    const struct stored_column *stored = (const struct stored_column *)column;
    for (uint64_t i = stored->starts[node]; i < stored->starts[node + 1]; i++)
        if (!cells_add(row, stored->cells[i].profile, stored->cells[i].value))
            return error_memory(err);
    return 0;
}

static int stored_values(struct frame_column *column, const struct frame_view *view, double *values, bool *done,
                         struct error *err)
{
    const struct stored_column *stored = (const struct stored_column *)column;
    struct cells scratch = {0};
    size_t n_counted = column_n_counted(column, view->profiles ? view->n_profiles : column->n_profiles);
    bool ok = true;
    *done = true;
    for (uint32_t node = 0; ok && node < column->n_nodes; node++) {
        const struct frame_cell *cells = stored->cells + stored->starts[node];
        uint64_t n = stored->starts[node + 1] - stored->starts[node];
        ok = cells_aggregate(cells, n, view, n_counted, &scratch, &values[node]);
    }
    cells_fini(&scratch);
    return ok ? 0 : error_memory(err);
}

static void stored_fini(struct frame_column *column)
{
    struct stored_column *stored = (struct stored_column *)column;
    free(stored->starts);
    free(stored->cells);
}

static const struct column_class stored_class = {stored_row, stored_values, stored_fini};

struct frame_column *column_stored(const char *name, enum frame_sums sums, uint32_t n_nodes, uint32_t n_profiles,
                                   uint64_t *starts, struct frame_cell *cells)
{
    struct frame_column *column =
        column_new(&stored_class, sizeof(struct stored_column), name, sums, n_nodes, n_profiles);
    if (!column) {
        free(starts);
        free(cells);
        return NULL;
    }
    ((struct stored_column *)column)->starts = starts;
    ((struct stored_column *)column)->cells = cells;
    return column;
}

/* --- cells that have been computed --- */

#define DEPTH_MAX 32           /* of what is computed anew for each value */
#define DEPTH_OF_FORMULAS 1000 /* of what has to be */

static int settled_row(struct frame_column *column, uint32_t node, struct cells *row, struct error *err)
{
    return stored_row(column->settled, node, row, err);
}

static int settled_values(struct frame_column *column, const struct frame_view *view, double *values, bool *done,
                          struct error *err)
{
    return stored_values(column->settled, view, values, done, err);
}

static void settled_fini(struct frame_column *column)
{
    column_drop(column->settled);
}

static const struct column_class settled_class = {settled_row, settled_values, settled_fini};

/* All cells of a column. */
static int compute_cells(struct frame_column *column, struct cells *cells, uint64_t *starts, struct error *err)
{
    struct cells row = {0};
    int code = vec_reserve(&cells->items, &cells->capacity, 1, sizeof *cells->items) ? 0 : error_memory(err);
    for (uint32_t node = 0; code == 0 && node < column->n_nodes; node++) {
        row.n = 0;
        code = column->class->row(column, node, &row, err);
        for (size_t i = 0; code == 0 && i < row.n; i++)
            if (!cells_add(cells, row.items[i].profile, row.items[i].value))
                code = error_memory(err);
        starts[node + 1] = cells->n;
    }
    cells_fini(&row);
    return code;
}

int column_settle(struct frame_column *column, struct error *err)
{
    if (is_remade(column) && column->depth > DEPTH_OF_FORMULAS)
        return error_set(err, ERR_UNSUPPORTED,
                         "'%.200s' is computed from more than %d columns, one from the other: save the result, and go "
                         "on from there",
                         column->name, DEPTH_OF_FORMULAS);
    if (is_remade(column) || column->depth <= DEPTH_MAX)
        return 0;
    struct cells cells = {0};
    uint64_t *starts = calloc((size_t)column->n_nodes + 1, sizeof *starts);
    int code = starts ? compute_cells(column, &cells, starts, err) : error_memory(err);
    if (code != 0) {
        free(starts);
        cells_fini(&cells);
        return code;
    }
    struct frame_column *stored =
        column_stored(column->name, column->sums, column->n_nodes, column->n_profiles, starts, cells.items);
    if (!stored)
        return error_memory(err);
    column->class->fini(column);
    column->class = &settled_class;
    column->settled = stored;
    column->depth = 0;
    column->remake = NULL;
    return 0;
}

/* --- groups of nodes --- */

struct grouped_column {
    struct frame_column base;
    struct frame_column *source;
    struct node_groups *groups;
    struct cells scratch, member;
    struct frame_view view; /* of a pooled one */
};

struct node_groups *groups_keep(struct node_groups *groups)
{
    groups->n_owners++;
    return groups;
}

void groups_drop(struct node_groups *groups)
{
    if (!groups || --groups->n_owners)
        return;
    free(groups->starts);
    free(groups->members);
    free(groups);
}

struct node_groups *groups_of(const uint32_t *group_of, uint32_t n_nodes, uint32_t n_groups)
{
    struct node_groups *groups = calloc(1, sizeof *groups);
    if (!groups)
        return NULL;
    *groups = (struct node_groups){.n_owners = 1,
                                   .n_nodes = n_groups,
                                   .starts = calloc((size_t)n_groups + 1, sizeof(uint32_t)),
                                   .members = malloc((n_nodes ? n_nodes : 1) * sizeof(uint32_t))};
    if (!groups->starts || !groups->members) {
        groups_drop(groups);
        return NULL;
    }
    for (uint32_t i = 0; i < n_nodes; i++)
        if (group_of[i] != FRAME_NONE)
            groups->starts[group_of[i] + 1]++;
    for (uint32_t i = 0; i < n_groups; i++)
        groups->starts[i + 1] += groups->starts[i];
    for (uint32_t i = 0; i < n_nodes; i++)
        if (group_of[i] != FRAME_NONE)
            groups->members[groups->starts[group_of[i]]++] = i;
    memmove(groups->starts + 1, groups->starts, n_groups * sizeof *groups->starts);
    groups->starts[0] = 0;
    return groups;
}

struct node_groups *groups_joined(struct node_groups *const *parts, size_t n)
{
    struct node_groups *groups = calloc(1, sizeof *groups);
    uint32_t n_groups = parts[0]->n_nodes, n_members = 0;
    for (size_t i = 0; i < n; i++)
        n_members += parts[i]->starts[n_groups];
    if (!groups)
        return NULL;
    *groups = (struct node_groups){.n_owners = 1,
                                   .n_nodes = n_groups,
                                   .starts = malloc(((size_t)n_groups + 1) * sizeof(uint32_t)),
                                   .members = malloc((n_members ? n_members : 1) * sizeof(uint32_t))};
    if (!groups->starts || !groups->members) {
        groups_drop(groups);
        return NULL;
    }
    n_members = 0;
    for (uint32_t group = 0; group < n_groups; group++) {
        groups->starts[group] = n_members;
        for (size_t i = 0; i < n; i++)
            for (uint32_t k = parts[i]->starts[group]; k < parts[i]->starts[group + 1]; k++)
                groups->members[n_members++] = parts[i]->members[k];
    }
    groups->starts[n_groups] = n_members;
    return groups;
}

struct node_groups *groups_of_children(const struct frame_graph *graph, const bool *is_member)
{
    uint32_t n_edges = graph->child_starts[graph->n], n = 0;
    struct node_groups *groups = calloc(1, sizeof *groups);
    if (!groups)
        return NULL;
    *groups = (struct node_groups){.n_owners = 1,
                                   .n_nodes = graph->n,
                                   .starts = malloc(((size_t)graph->n + 1) * sizeof(uint32_t)),
                                   .members = malloc((n_edges ? n_edges : 1) * sizeof(uint32_t))};
    if (!groups->starts || !groups->members) {
        groups_drop(groups);
        return NULL;
    }
    for (uint32_t node = 0; node < graph->n; node++) {
        groups->starts[node] = n;
        for (uint32_t i = graph->child_starts[node]; i < graph->child_starts[node + 1]; i++)
            if (!is_member || is_member[graph->children[i]])
                groups->members[n++] = graph->children[i];
    }
    groups->starts[graph->n] = n;
    return groups;
}

static int grouped_row(struct frame_column *column, uint32_t node, struct cells *row, struct error *err)
{
    struct grouped_column *grouped = (struct grouped_column *)column;
    for (uint32_t i = grouped->groups->starts[node]; i < grouped->groups->starts[node + 1]; i++) {
        grouped->member.n = 0;
        int code = grouped->source->class->row(grouped->source, grouped->groups->members[i], &grouped->member, err);
        if (code != 0)
            return code;
        if (!cells_merge(row, grouped->member.items, grouped->member.n, &grouped->scratch))
            return error_memory(err);
    }
    return 0;
}

/* Sums over profiles and sums over nodes may change places; no other aggregate may. */
static int grouped_values(struct frame_column *column, const struct frame_view *view, double *values, bool *done,
                          struct error *err)
{
    struct grouped_column *grouped = (struct grouped_column *)column;
    const double *of_source;
    *done = view->aggregate == FRAME_SUM;
    int code = *done ? column_values(grouped->source, view, &of_source, err) : 0;
    for (uint32_t node = 0; *done && code == 0 && node < column->n_nodes; node++) {
        values[node] = NAN;
        for (uint32_t i = grouped->groups->starts[node]; i < grouped->groups->starts[node + 1]; i++) {
            double value = of_source[grouped->groups->members[i]];
            if (!isnan(value))
                values[node] = isnan(values[node]) ? value : values[node] + value;
        }
    }
    return code;
}

static void grouped_fini(struct frame_column *column)
{
    struct grouped_column *grouped = (struct grouped_column *)column;
    column_drop(grouped->source);
    groups_drop(grouped->groups);
    cells_fini(&grouped->scratch);
    cells_fini(&grouped->member);
}

static const struct column_class grouped_class = {grouped_row, grouped_values, grouped_fini};

/* A sum does not say how many members had a value, so they are counted for each profile beside it. */
static int sole_row(struct frame_column *column, uint32_t node, struct cells *row, struct error *err)
{
    struct grouped_column *grouped = (struct grouped_column *)column;
    const struct node_groups *groups = grouped->groups;
    struct cells counts = {0};
    int code = 0;
    for (uint32_t i = groups->starts[node]; code == 0 && i < groups->starts[node + 1]; i++) {
        grouped->member.n = 0;
        code = grouped->source->class->row(grouped->source, groups->members[i], &grouped->member, err);
        bool ok = code != 0 || cells_merge(row, grouped->member.items, grouped->member.n, &grouped->scratch);
        for (size_t k = 0; ok && k < grouped->member.n; k++)
            grouped->member.items[k].value = 1;
        if (!ok || (code == 0 && !cells_merge(&counts, grouped->member.items, grouped->member.n, &grouped->scratch)))
            code = error_memory(err);
    }
    size_t n = 0;
    for (size_t k = 0; k < row->n; k++)
        if (k < counts.n && counts.items[k].value == 1)
            row->items[n++] = row->items[k];
    row->n = n;
    cells_fini(&counts);
    return code;
}

static const struct column_class sole_class = {sole_row, NULL, grouped_fini};

static struct frame_column *grouped(const struct column_class *class, struct frame_column *source,
                                    struct node_groups *groups)
{
    struct frame_column *column =
        column_like(class, sizeof(struct grouped_column), source, source->name, source->sums, groups->n_nodes);
    if (!column)
        return NULL;
    ((struct grouped_column *)column)->source = column_keep(source);
    ((struct grouped_column *)column)->groups = groups_keep(groups);
    return column;
}

struct frame_column *column_grouped(struct frame_column *source, struct node_groups *groups)
{
    return grouped(&grouped_class, source, groups);
}

struct frame_column *column_sole(struct frame_column *source, struct node_groups *groups)
{
    return grouped(&sole_class, source, groups);
}

static int compare_profiles(const void *a, const void *b)
{
    const struct frame_cell *x = a, *y = b;
    return x->profile < y->profile ? -1 : x->profile > y->profile;
}

static int pooled_row(struct frame_column *column, uint32_t node, struct cells *row, struct error *err)
{
    struct grouped_column *pooled = (struct grouped_column *)column;
    struct cells *all = &pooled->member;
    bool ok = true;
    all->n = 0;
    for (uint32_t i = pooled->groups->starts[node]; ok && i < pooled->groups->starts[node + 1]; i++) {
        const struct frame_cell *cells;
        size_t n;
        int code = column_cells(pooled->source, pooled->groups->members[i], &cells, &n, err);
        if (code != 0)
            return code;
        for (size_t k = 0; ok && k < n; k++)
            ok = cells_add(all, cells[k].profile, cells[k].value);
    }
    if (column->n_profiles > 1)
        qsort(all->items, all->n, sizeof *all->items, compare_profiles);
    for (size_t i = 0, end; ok && i < all->n; i = end) {
        double value;
        for (end = i; end < all->n && all->items[end].profile == all->items[i].profile;)
            end++;
        ok = cells_aggregate(all->items + i, end - i, &pooled->view, 0, &pooled->scratch, &value) &&
             (isnan(value) || cells_add(row, all->items[i].profile, value));
    }
    return ok ? 0 : error_memory(err);
}

static const struct column_class pooled_class = {pooled_row, NULL, grouped_fini};

struct frame_column *column_pooled(struct frame_column *source, struct node_groups *groups,
                                   const struct frame_view *view)
{
    struct frame_column *column = grouped(&pooled_class, source, groups);
    if (column)
        ((struct grouped_column *)column)->view =
            (struct frame_view){.aggregate = view->aggregate, .percentile = view->percentile};
    return column;
}

/* --- one or the other --- */

struct either_column {
    struct frame_column column;
    struct frame_column *one, *other;
    bool *is_other; /* [n_nodes] */
};

static int either_row(struct frame_column *column, uint32_t node, struct cells *row, struct error *err)
{
    const struct either_column *either = (const struct either_column *)column;
    struct frame_column *source = either->is_other[node] ? either->other : either->one;
    return source->class->row(source, node, row, err);
}

static void either_fini(struct frame_column *column)
{
    struct either_column *either = (struct either_column *)column;
    column_drop(either->one);
    column_drop(either->other);
    free(either->is_other);
}

static const struct column_class either_class = {either_row, NULL, either_fini};

struct frame_column *column_either(struct frame_column *one, struct frame_column *other, const bool *is_other)
{
    struct frame_column *made = NULL;
    bool *copy = one && other ? malloc(one->n_nodes ? one->n_nodes : 1) : NULL;
    if (copy)
        made = column_like(&either_class, sizeof(struct either_column), one, one->name, one->sums, one->n_nodes);
    if (!made) {
        free(copy);
        column_drop(one);
        column_drop(other);
        return NULL;
    }
    memcpy(copy, is_other, one->n_nodes);
    column_deepen(made, other);
    struct either_column *either = (struct either_column *)made;
    either->one = one;
    either->other = other;
    either->is_other = copy;
    return made;
}

/* Whether what is left of a sum is no more than the rounding of its summands. */
static bool is_rounding(double left, double sum)
{
    return fabs(left) <= 1e-12 * fabs(sum);
}

/* Takes out the cells of row that are only the rounding of the sums [n] that they were taken from. */
static void drop_rounding(struct cells *row, const struct frame_cell *sums, size_t n)
{
    size_t n_left = 0, at = 0;
    for (size_t i = 0; i < row->n; i++) {
        while (at < n && sums[at].profile < row->items[i].profile)
            at++;
        double sum = at < n && sums[at].profile == row->items[i].profile ? sums[at].value : 0;
        if (!is_rounding(row->items[i].value, sum))
            row->items[n_left++] = row->items[i];
    }
    row->n = n_left;
}

static int own_row(struct frame_column *column, uint32_t node, struct cells *row, struct error *err)
{
    struct grouped_column *own = (struct grouped_column *)column;
    const struct node_groups *groups = own->groups;
    int code = own->source->class->row(own->source, node, row, err);
    for (uint32_t i = groups->starts[node]; code == 0 && i < groups->starts[node + 1]; i++) {
        own->member.n = 0;
        code = own->source->class->row(own->source, groups->members[i], &own->member, err);
        for (size_t k = 0; k < own->member.n; k++)
            own->member.items[k].value *= -1;
        if (code == 0 && !cells_merge(row, own->member.items, own->member.n, &own->scratch))
            code = error_memory(err);
    }
    if (code == 0 && groups->starts[node] < groups->starts[node + 1]) {
        own->member.n = 0;
        code = own->source->class->row(own->source, node, &own->member, err);
        drop_rounding(row, own->member.items, own->member.n);
    }
    return code;
}

static int own_values(struct frame_column *column, const struct frame_view *view, double *values, bool *done,
                      struct error *err)
{
    struct grouped_column *own = (struct grouped_column *)column;
    const struct node_groups *groups = own->groups;
    const double *of_source;
    *done = view->aggregate == FRAME_SUM;
    int code = *done ? column_values(own->source, view, &of_source, err) : 0;
    for (uint32_t node = 0; *done && code == 0 && node < column->n_nodes; node++) {
        double sum = isnan(of_source[node]) ? 0 : of_source[node], left = sum;
        for (uint32_t i = groups->starts[node]; i < groups->starts[node + 1]; i++) {
            double value = of_source[groups->members[i]];
            left -= isnan(value) ? 0 : value;
        }
        bool has_parts = groups->starts[node] < groups->starts[node + 1];
        values[node] = !has_parts ? of_source[node] : is_rounding(left, sum) ? NAN : left;
    }
    return code;
}

static const struct column_class own_class = {own_row, own_values, grouped_fini};

struct frame_column *column_own(struct frame_column *source, struct node_groups *parts, const char *name)
{
    struct frame_column *column =
        column_like(&own_class, sizeof(struct grouped_column), source, name, FRAME_EXCLUSIVE, parts->n_nodes);
    if (!column)
        return NULL;
    ((struct grouped_column *)column)->source = column_keep(source);
    ((struct grouped_column *)column)->groups = groups_keep(parts);
    column->is_hidden = false;
    return column;
}

static struct frame_column *children_remake(struct frame_column *column, struct column_change *change);

static struct frame_column *children_of(struct frame_column *source, struct node_groups *groups)
{
    struct frame_column *column = grouped(&grouped_class, source, groups);
    if (column) {
        column->sums = FRAME_PLAIN;
        column->remake = children_remake;
    }
    return column;
}

static struct frame_column *children_remake(struct frame_column *column, struct column_change *change)
{
    struct grouped_column *children = (struct grouped_column *)column;
    struct frame_column *source = column_changed(change, children->source), *made = NULL;
    if (source)
        made = change->graph ? column_children(source, change->graph) : children_of(source, children->groups);
    column_drop(source);
    return made;
}

struct frame_column *column_children(struct frame_column *source, struct frame_graph *graph)
{
    struct node_groups *groups = groups_of_children(graph, NULL);
    struct frame_column *column = groups ? children_of(source, groups) : NULL;
    groups_drop(groups);
    return column;
}
