/* SPDX-License-Identifier: BSD-3-Clause */
/* Classes of columns whose profiles are not those of their source: some of them, several as one, those of several
 * frames one after the other. */
#include "frame/columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct profile_map *profile_map_new(uint32_t n_old, uint32_t n_new)
{
    struct profile_map *map = malloc(sizeof *map + n_old * sizeof(uint32_t));
    if (!map)
        return NULL;
    *map = (struct profile_map){.n_owners = 1, .n_old = n_old, .n_new = n_new};
    memset(map->new_of, 0xff, n_old * sizeof(uint32_t));
    return map;
}

struct profile_map *profile_map_keep(struct profile_map *map)
{
    map->n_owners++;
    return map;
}

void profile_map_drop(struct profile_map *map)
{
    if (map && !--map->n_owners)
        free(map);
}

/* Both classes have this behind the column. */
struct mapped_column {
    struct frame_column base;
    struct frame_column *source;
    struct profile_map *map;
    struct frame_view view; /* of the old profiles that become one */
    uint32_t *n_merged;     /* [n_new] how many become each; NULL: each is one */
    struct cells from, scratch;
};

static void mapped_fini(struct frame_column *column)
{
    struct mapped_column *mapped = (struct mapped_column *)column;
    column_drop(mapped->source);
    profile_map_drop(mapped->map);
    free(mapped->n_merged);
    cells_fini(&mapped->from);
    cells_fini(&mapped->scratch);
}

static struct frame_column *mapped_column(const struct column_class *class, struct frame_column *source,
                                          struct profile_map *map, const char *name)
{
    struct frame_column *column =
        column_like(class, sizeof(struct mapped_column), source, name, source->sums, source->n_nodes);
    if (!column)
        return NULL;
    struct mapped_column *mapped = (struct mapped_column *)column;
    column->n_profiles = map->n_new;
    mapped->source = column_keep(source);
    mapped->map = profile_map_keep(map);
    return column;
}

static int compare_profiles(const void *a, const void *b)
{
    uint32_t x = ((const struct frame_cell *)a)->profile, y = ((const struct frame_cell *)b)->profile;
    return x < y ? -1 : x > y;
}

/* The cells of the source that stay, with their new profiles, in order. */
static int take_mapped(struct mapped_column *mapped, uint32_t node, struct cells *cells, struct error *err)
{
    bool is_sorted = true;
    mapped->from.n = cells->n = 0;
    int code = mapped->source->class->row(mapped->source, node, &mapped->from, err);
    for (size_t i = 0; code == 0 && i < mapped->from.n; i++) {
        uint32_t profile = mapped->map->new_of[mapped->from.items[i].profile];
        if (profile == FRAME_NONE)
            continue;
        is_sorted &= cells->n == 0 || cells->items[cells->n - 1].profile <= profile;
        if (!cells_add(cells, profile, mapped->from.items[i].value))
            code = error_memory(err);
    }
    if (code == 0 && !is_sorted)
        qsort(cells->items, cells->n, sizeof *cells->items, compare_profiles);
    return code;
}

static int moved_row(struct frame_column *column, uint32_t node, struct cells *row, struct error *err)
{
    return take_mapped((struct mapped_column *)column, node, row, err);
}

/* The same view of the source: the old numbers of the profiles. */
static int moved_values(struct frame_column *column, const struct frame_view *view, double *values, bool *done,
                        struct error *err)
{
    struct mapped_column *mapped = (struct mapped_column *)column;
    const struct profile_map *map = mapped->map;
    struct frame_view of_source = *view;
    uint32_t *profiles = malloc((map->n_old ? map->n_old : 1) * sizeof *profiles);
    char *is_wanted = calloc(map->n_new ? map->n_new : 1, 1);
    const double *found;
    int code = profiles && is_wanted ? 0 : error_memory(err);
    of_source.profiles = profiles;
    of_source.n_profiles = 0;
    for (size_t i = 0; code == 0 && view->profiles && i < view->n_profiles; i++)
        if (view->profiles[i] < map->n_new)
            is_wanted[view->profiles[i]] = 1;
    for (uint32_t i = 0; code == 0 && i < map->n_old; i++)
        if (map->new_of[i] != FRAME_NONE && (!view->profiles || is_wanted[map->new_of[i]]))
            profiles[of_source.n_profiles++] = i;
    /* profiles that the source does not have count, too, where one without a value is 0 */
    size_t n_wanted = view->profiles ? view->n_profiles : map->n_new;
    *done = column_n_counted(column, n_wanted) <= of_source.n_profiles || view->aggregate == FRAME_SUM ||
            view->aggregate == FRAME_COUNT;
    if (code == 0 && *done)
        code = column_values(mapped->source, &of_source, &found, err);
    if (code == 0 && *done)
        memcpy(values, found, column->n_nodes * sizeof *values);
    free(profiles);
    free(is_wanted);
    return code;
}

static const struct column_class moved_class = {moved_row, moved_values, mapped_fini};

struct moving {
    struct column_change change;
    struct profile_map *map;
};

/* column_change.of: the column with its profiles where the map has them. */
static struct frame_column *move(struct column_change *change, struct frame_column *column)
{
    return mapped_column(&moved_class, column, ((struct moving *)change)->map, column->name);
}

struct frame_column *column_moved(struct frame_column *source, struct profile_map *map)
{
    struct moving moving = {.change = {.of = move}, .map = map};
    struct frame_column *made = column_changed(&moving.change, source);
    change_fini(&moving.change);
    if (made)
        made->n_profiles = map->n_new;
    return made;
}

static int aggregated_row(struct frame_column *column, uint32_t node, struct cells *row, struct error *err)
{
    struct mapped_column *mapped = (struct mapped_column *)column;
    struct cells all = {0};
    int code = take_mapped(mapped, node, &all, err);
    for (size_t i = 0, end; code == 0 && i < all.n; i = end) {
        for (end = i; end < all.n && all.items[end].profile == all.items[i].profile;)
            end++;
        double value;
        size_t n_counted = column_n_counted(mapped->source, mapped->n_merged[all.items[i].profile]);
        if (!cells_aggregate(all.items + i, end - i, &mapped->view, n_counted, &mapped->scratch, &value) ||
            (!isnan(value) && !cells_add(row, all.items[i].profile, value)))
            code = error_memory(err);
    }
    cells_fini(&all);
    return code;
}

static const struct column_class aggregated_class = {aggregated_row, NULL, mapped_fini};

struct frame_column *column_aggregated(struct frame_column *source, struct profile_map *map,
                                       enum frame_aggregate aggregate, double percentile, const char *name)
{
    struct frame_column *column = mapped_column(&aggregated_class, source, map, name);
    uint32_t *n_merged = calloc((size_t)map->n_new + 1, sizeof *n_merged);
    if (!column || !n_merged) {
        column_drop(column);
        free(n_merged);
        return NULL;
    }
    for (uint32_t i = 0; i < map->n_old; i++)
        if (map->new_of[i] != FRAME_NONE)
            n_merged[map->new_of[i]]++;
    ((struct mapped_column *)column)->view = (struct frame_view){.aggregate = aggregate, .percentile = percentile};
    ((struct mapped_column *)column)->n_merged = n_merged;
    return column;
}

struct appended_column {
    struct frame_column base;
    struct frame_column **sources; /* [n] */
    size_t n;
    struct cells part, scratch;
};

static int appended_row(struct frame_column *column, uint32_t node, struct cells *row, struct error *err)
{
    struct appended_column *appended = (struct appended_column *)column;
    for (size_t i = 0; i < appended->n; i++) {
        appended->part.n = 0;
        int code = appended->sources[i]->class->row(appended->sources[i], node, &appended->part, err);
        if (code != 0)
            return code;
        if (!cells_merge(row, appended->part.items, appended->part.n, &appended->scratch))
            return error_memory(err);
    }
    return 0;
}

static int appended_values(struct frame_column *column, const struct frame_view *view, double *values, bool *done,
                           struct error *err)
{
    struct appended_column *appended = (struct appended_column *)column;
    *done = view->aggregate == FRAME_SUM;
    for (uint32_t node = 0; *done && node < column->n_nodes; node++)
        values[node] = NAN;
    for (size_t i = 0; *done && i < appended->n; i++) {
        const double *part;
        int code = column_values(appended->sources[i], view, &part, err);
        if (code != 0)
            return code;
        for (uint32_t node = 0; node < column->n_nodes; node++)
            if (!isnan(part[node]))
                values[node] = isnan(values[node]) ? part[node] : values[node] + part[node];
    }
    return 0;
}

static void appended_fini(struct frame_column *column)
{
    struct appended_column *appended = (struct appended_column *)column;
    for (size_t i = 0; i < appended->n; i++)
        column_drop(appended->sources[i]);
    free(appended->sources);
    cells_fini(&appended->part);
    cells_fini(&appended->scratch);
}

static struct frame_column *appended_remake(struct frame_column *column, struct column_change *change)
{
    const struct appended_column *appended = (const struct appended_column *)column;
    struct frame_column **changed = calloc(appended->n, sizeof *changed), *made = NULL;
    bool ok = changed;
    for (size_t i = 0; ok && i < appended->n; i++)
        ok = (changed[i] = column_changed(change, appended->sources[i]));
    if (ok)
        made = column_appended(changed, appended->n);
    for (size_t i = 0; changed && i < appended->n; i++)
        column_drop(changed[i]);
    free(changed);
    return made;
}

static const struct column_class appended_class = {appended_row, appended_values, appended_fini};

struct frame_column *column_appended(struct frame_column *const *sources, size_t n)
{
    const struct frame_column *first = NULL;
    for (size_t i = n; i-- > 0;)
        first = sources[i] ? sources[i] : first;
    struct frame_column *column = first ? column_like(&appended_class, sizeof(struct appended_column), first,
                                                      first->name, first->sums, first->n_nodes)
                                        : NULL;
    struct appended_column *appended = (struct appended_column *)column;
    if (column && !(appended->sources = malloc(n * sizeof(struct frame_column *)))) {
        column_drop(column);
        return NULL;
    }
    if (column)
        column->remake = appended_remake;
    for (size_t i = 0; column && i < n; i++)
        if (sources[i]) {
            appended->sources[appended->n++] = column_keep(sources[i]);
            column_deepen(column, sources[i]);
            column->sums = sources[i]->sums == column->sums ? column->sums : FRAME_PLAIN;
        }
    return column;
}
