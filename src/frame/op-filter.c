/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations that keep some nodes or profiles, and those that add columns. */
#include "frame/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frame/expression.h"
#include "frame/op-shape.h"

/* --- nodes --- */

/* Kept nodes by their number among these, the edges between them, and the roots. */
struct kept {
    uint32_t n;
    uint32_t *number_of; /* [of all], FRAME_NONE: goes */
    struct edge_list edges;
    uint32_t *roots;
    size_t n_roots;
};

/* Of a tree: the nearest kept ancestor of each node is found from the roots on. above [n] is scratch. */
static bool adopt_in_tree(const struct frame_graph *graph, struct kept *kept, uint32_t *above)
{
    for (uint32_t node = 0; node < graph->n; node++) {
        bool is_root = graph->parent_starts[node] == graph->parent_starts[node + 1];
        uint32_t parent = is_root ? FRAME_NONE : above[graph->parents[graph->parent_starts[node]]];
        uint32_t number = kept->number_of[node];
        above[node] = number == FRAME_NONE ? parent : number;
        if (number == FRAME_NONE)
            continue;
        if (parent == FRAME_NONE)
            kept->roots[kept->n_roots++] = number;
        else if (!edges_add(&kept->edges, parent, number))
            return false;
    }
    return true;
}

/* Of a graph: from each kept node through those that go. seen_by, open [n] and more are scratch. */
static bool adopt_in_graph(const struct frame_graph *graph, struct kept *kept, uint32_t *seen_by,
                           struct edge_list *open)
{
    memset(seen_by, 0xff, graph->n * sizeof *seen_by);
    for (uint32_t from = 0; from < graph->n; from++) {
        if (kept->number_of[from] == FRAME_NONE)
            continue;
        open->n = 0;
        for (uint32_t i = graph->child_starts[from + 1]; i-- > graph->child_starts[from];)
            if (!edges_add(open, 0, graph->children[i]))
                return false;
        while (open->n) {
            uint32_t node = open->items[--open->n].child;
            if (seen_by[node] == from)
                continue;
            seen_by[node] = from;
            if (kept->number_of[node] != FRAME_NONE) {
                if (!edges_add(&kept->edges, kept->number_of[from], kept->number_of[node]))
                    return false;
                continue;
            }
            for (uint32_t i = graph->child_starts[node + 1]; i-- > graph->child_starts[node];)
                if (!edges_add(open, 0, graph->children[i]))
                    return false;
        }
    }
    return true;
}

/* The roots of what is kept of a graph: where a walk has to begin. */
static int find_roots(struct kept *kept, struct error *err)
{
    struct frame_graph *graph;
    uint32_t *old_of;
    int code = graph_make(kept->n, kept->edges.items, kept->edges.n, &graph, &old_of, err);
    if (code != 0)
        return code;
    for (size_t i = 0; i < graph->n_roots; i++)
        kept->roots[kept->n_roots++] = old_of[graph->roots[i]];
    free(old_of);
    graph_drop(graph);
    return 0;
}

static int find_kept(const struct frame_graph *graph, const bool *keep, struct kept *kept, struct error *err)
{
    size_t n = graph->n ? graph->n : 1;
    uint32_t *scratch = malloc(n * sizeof *scratch);
    struct edge_list open = {0};
    *kept = (struct kept){.number_of = malloc(n * sizeof(uint32_t)), .roots = malloc(n * sizeof(uint32_t))};
    bool ok = scratch && kept->number_of && kept->roots;
    for (uint32_t i = 0; ok && i < graph->n; i++)
        kept->number_of[i] = keep[i] ? kept->n++ : FRAME_NONE;
    if (ok && graph->is_tree)
        ok = adopt_in_tree(graph, kept, scratch);
    else if (ok)
        ok = adopt_in_graph(graph, kept, scratch, &open);
    free(scratch);
    free(open.items);
    if (ok && kept->n == 0)
        return error_set(err, ERR_NOT_FOUND, "no node is left");
    if (!ok)
        return error_memory(err);
    return graph->is_tree ? 0 : find_roots(kept, err);
}

/* Merges what is kept and puts the classes into group_of [graph->n]. */
static int merge_kept(const struct frame *frame, struct kept *kept, uint32_t *group_of, struct frame_graph **graph,
                      uint32_t **first_of, struct error *err)
{
    uint32_t n_classes, *class_of = malloc(kept->n * sizeof *class_of),
                        *identities = malloc(kept->n * sizeof *class_of);
    int code = class_of && identities ? 0 : error_memory(err);
    for (uint32_t i = 0; code == 0 && i < frame->graph->n; i++)
        if (kept->number_of[i] != FRAME_NONE)
            identities[kept->number_of[i]] = frame->nodes->identities[i];
    if (code == 0)
        code = shape_merge(kept->n, &kept->edges, identities, kept->roots, kept->n_roots, class_of, &n_classes, err);
    if (code == 0)
        code = shape_graph(kept->n, &kept->edges, class_of, n_classes, graph, first_of, err);
    for (uint32_t i = frame->graph->n; code == 0 && i-- > 0;) {
        uint32_t number = kept->number_of[i];
        group_of[i] = number == FRAME_NONE ? FRAME_NONE : class_of[number];
        if (number != FRAME_NONE)
            (*first_of)[group_of[i]] = i;
    }
    free(class_of);
    free(identities);
    return code;
}

static int squash(const struct frame *frame, const bool *keep, enum regroup_kind kind, struct frame **result,
                  struct error *err)
{
    struct kept kept;
    struct frame_graph *graph = NULL;
    uint32_t *first_of = NULL, *group_of = malloc((frame->graph->n ? frame->graph->n : 1) * sizeof *group_of);
    int code = find_kept(frame->graph, keep, &kept, err);
    if (code == 0 && !group_of)
        code = error_memory(err);
    if (code == 0)
        code = merge_kept(frame, &kept, group_of, &graph, &first_of, err);
    if (code == 0) {
        struct frame_nodes *nodes = nodes_choose(frame->nodes, first_of, graph->n);
        code = regroup_frame(frame, group_of, kind, graph, nodes, result, err);
    }
    free(first_of);
    free(group_of);
    free(kept.number_of);
    free(kept.roots);
    free(kept.edges.items);
    return code;
}

int frame_squash(const struct frame *frame, const bool *keep, struct frame **result, struct error *err)
{
    return squash(frame, keep, REGROUP_ANEW, result, err);
}

int frame_trees(const struct frame *frame, const bool *keep, struct frame **result, struct error *err)
{
    size_t n_parents, n = frame_n_nodes(frame);
    if (!frame_is_tree(frame))
        return error_set(err, ERR_UNSUPPORTED, "only trees can be chosen by their roots, and this is a graph");
    bool *is_kept = malloc(n + 1);
    if (!is_kept)
        return error_memory(err);
    for (uint32_t i = 0; i < n; i++) { /* parents come first */
        const uint32_t *parents = frame_parents(frame, i, &n_parents);
        is_kept[i] = n_parents ? is_kept[parents[0]] : keep[i];
    }
    int code = squash(frame, is_kept, REGROUP_SAME, result, err);
    free(is_kept);
    return code;
}

int frame_choose_tree(const struct frame *frame, const char *tree, struct frame **result, struct error *err)
{
    size_t n = frame_n_nodes(frame), n_kept = 0, attribute = 0;
    while (attribute < frame_n_attributes(frame) &&
           (strcmp(frame_attribute_name(frame, attribute), "tree") != 0 || !frame_attribute_is_text(frame, attribute)))
        attribute++;
    bool *keep = malloc(n + 1);
    if (!keep)
        return error_memory(err);
    for (uint32_t i = 0; attribute < frame_n_attributes(frame) && i < n; i++)
        n_kept += keep[i] = strcmp(frame_attribute_text(frame, attribute, i), tree) == 0;
    int code = 0;
    if (n_kept && n_kept < n)
        code = frame_trees(frame, keep, result, err);
    else
        *result = frame_keep(frame);
    free(keep);
    return code;
}

int frame_test(const struct frame *frame, const char *condition, const struct frame_view *view, bool **found,
               struct error *err)
{
    struct formula *formula;
    int code = expression_compile(frame, condition, EXPRESSION_CONDITION, &formula, err);
    if (code != 0)
        return code;
    *found = NULL;
    code = expression_test(formula, view, found, err);
    formula_free(formula);
    return code;
}

int frame_filter(const struct frame *frame, const char *condition, const struct frame_view *view, struct frame **result,
                 struct error *err)
{
    bool *keep;
    int code = frame_test(frame, condition, view, &keep, err);
    if (code != 0)
        return code;
    code = frame_squash(frame, keep, result, err);
    free(keep);
    return code;
}

static struct frame_column *mask_column(struct column_change *change, struct frame_column *column)
{
    return column_grouped(column, ((struct regroup *)change)->groups);
}

int frame_mask(const struct frame *frame, const bool *keep, struct frame **result, struct error *err)
{
    uint32_t *group_of = malloc((frame->graph->n ? frame->graph->n : 1) * sizeof *group_of);
    struct frame *made = frame_without_columns(frame);
    struct regroup regroup;
    int code = group_of && made ? 0 : error_memory(err);
    for (uint32_t i = 0; code == 0 && i < frame->graph->n; i++)
        group_of[i] = keep[i] ? i : FRAME_NONE;
    if (code == 0)
        code = regroup_init(&regroup, frame, group_of, REGROUP_SAME, frame->graph, frame->nodes, err);
    if (code == 0) {
        regroup.change.of = mask_column;
        for (size_t i = 0; code == 0 && i < frame->n_columns; i++)
            code = frame_add_column(made, mask_column(&regroup.change, frame->columns[i]), err);
        regroup_fini(&regroup);
    }
    free(group_of);
    if (code != 0)
        frame_close(made);
    else
        *result = made;
    return code;
}

/* --- columns --- */

/* Copies the columns of a frame except those named `but`; NULL: all. */
static int copy_columns(const struct frame *from, const char *but, struct frame *to, struct error *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < from->n_columns; i++)
        if (!but || strcmp(from->columns[i]->name, but) != 0)
            code = frame_add_column(to, column_keep(from->columns[i]), err);
    return code;
}

/* The frame with one more column, which is taken over and replaces the one of its name; NULL: out of memory. */
static int with_column(const struct frame *frame, struct frame_column *column, const char *name, struct frame **result,
                       struct error *err)
{
    struct frame *made = frame_without_columns(frame);
    int code = made ? copy_columns(frame, name, made, err) : error_memory(err);
    if (code == 0) {
        code = frame_add_column(made, column, err);
        column = NULL;
    }
    column_drop(column);
    if (code != 0)
        frame_close(made);
    else
        *result = made;
    return code;
}

int frame_derive(const struct frame *frame, const char *name, const char *expression, struct frame **result,
                 struct error *err)
{
    struct formula *formula;
    if (!*name)
        return error_set(err, ERR_USAGE, "a column has a name");
    int code = expression_compile(frame, expression, EXPRESSION_NUMBER, &formula, err);
    if (code != 0)
        return code;
    return with_column(frame, column_formula(formula, name, FRAME_PLAIN), name, result, err);
}

/* The cells of values [n], by node and then by profile; starts [n_nodes + 1] says where those of a node begin. Returns
 * how many there are; SIZE_MAX when out of memory. */
static size_t sort_values(const struct frame *frame, const uint32_t *nodes, const uint32_t *profiles,
                          const double *values, size_t n, uint64_t *starts, struct frame_cell *cells)
{
    size_t n_nodes = frame->graph->n, n_profiles = frame->profiles->n, n_made = 0;
    uint64_t *at = calloc((n_nodes > n_profiles ? n_nodes : n_profiles) + 2, sizeof *at);
    size_t *by_profile = malloc((n ? n : 1) * sizeof *by_profile), *by_node = malloc((n ? n : 1) * sizeof *by_node);
    if (!at || !by_profile || !by_node)
        n_made = SIZE_MAX;
    for (size_t i = 0; n_made == 0 && i < n; i++)
        at[profiles[i] + 1]++;
    for (size_t i = 0; n_made == 0 && i < n_profiles; i++)
        at[i + 1] += at[i];
    for (size_t i = 0; n_made == 0 && i < n; i++)
        by_profile[at[profiles[i]]++] = i;
    if (n_made == 0)
        memset(at, 0, (n_nodes + 2) * sizeof *at);
    for (size_t i = 0; n_made == 0 && i < n; i++)
        at[nodes[i] + 1]++;
    for (size_t i = 0; n_made == 0 && i < n_nodes; i++)
        at[i + 1] += at[i];
    for (size_t i = 0; n_made == 0 && i < n; i++)
        by_node[at[nodes[by_profile[i]]]++] = by_profile[i];
    for (size_t i = 0, node = 0; n_made != SIZE_MAX && node < n_nodes; node++) {
        starts[node] = n_made;
        for (; i < n && nodes[by_node[i]] == node; i++) {
            struct frame_cell cell = {profiles[by_node[i]], values[by_node[i]]};
            if (isnan(cell.value))
                continue;
            if (n_made > starts[node] && cells[n_made - 1].profile == cell.profile)
                cells[n_made - 1].value += cell.value;
            else
                cells[n_made++] = cell;
        }
    }
    if (n_made != SIZE_MAX)
        starts[n_nodes] = n_made;
    free(at);
    free(by_profile);
    free(by_node);
    return n_made;
}

int frame_put_column(const struct frame *frame, const char *name, enum frame_sums sums, const uint32_t *nodes,
                     const uint32_t *profiles, const double *values, size_t n, struct frame **result, struct error *err)
{
    size_t n_nodes = frame->graph->n, n_profiles = frame->profiles->n;
    if (!*name)
        return error_set(err, ERR_USAGE, "a column has a name");
    for (size_t i = 0; i < n; i++)
        if (nodes[i] >= n_nodes || profiles[i] >= n_profiles)
            return error_set(err, ERR_RANGE, "value %zu is of node %u in profile %u; there are %zu nodes, %zu profiles",
                             i, nodes[i], profiles[i], n_nodes, n_profiles);
    uint64_t *starts = calloc(n_nodes + 1, sizeof *starts);
    struct frame_cell *cells = malloc((n ? n : 1) * sizeof *cells);
    if (!starts || !cells || sort_values(frame, nodes, profiles, values, n, starts, cells) == SIZE_MAX) {
        free(starts);
        free(cells);
        return error_memory(err);
    }
    return with_column(frame, column_stored(name, sums, (uint32_t)n_nodes, (uint32_t)n_profiles, starts, cells), name,
                       result, err);
}

/* The column beside `from` with the other kind of sums; NULL when out of memory. */
static struct frame_column *compute_pair(const struct frame *frame, size_t from, enum frame_sums sums)
{
    struct frame_column *source = frame->columns[from], *made = NULL;
    size_t pair = frame_column_pair(frame, from);
    size_t n = strlen(source->name), n_word = strlen(" (inc)");
    struct buf name = {0};
    if (pair == SIZE_MAX && sums == FRAME_EXCLUSIVE && n > n_word && strcmp(source->name + n - n_word, " (inc)") == 0) {
        buf_append(&name, source->name, n - n_word);
        for (size_t i = 0; !name.failed && i < frame->n_columns; i++)
            if (strcmp(frame->columns[i]->name, name.data) == 0) { /* it says something else */
                buf_printf(&name, " (exc)");
                break;
            }
    } else {
        buf_printf(&name, "%s%s", pair == SIZE_MAX ? source->name : frame->columns[pair]->name,
                   pair != SIZE_MAX          ? ""
                   : sums == FRAME_INCLUSIVE ? " (inc)"
                                             : " (exc)");
    }
    if (!name.failed)
        made = sums == FRAME_INCLUSIVE ? column_inclusive(source, frame->graph, name.data)
                                       : column_exclusive(source, frame->graph, name.data);
    buf_fini(&name);
    return made;
}

/* Columns that are not computed stay; formulas over computed ones are made again, over these. */
static struct frame_column *keep_column(struct column_change *change, struct frame_column *column)
{
    (void)change;
    return column_keep(column);
}

/* Computes the columns with these sums; change knows each one that replaces a column of the frame. */
static int replace_pairs(const struct frame *frame, enum frame_sums sums, struct column_change *change,
                         struct frame_column **computed, struct error *err)
{
    for (size_t i = 0; i < frame->n_columns; i++) {
        size_t pair = frame_column_pair(frame, i);
        if (frame->columns[i]->sums == FRAME_PLAIN || frame->columns[i]->sums == sums)
            continue;
        computed[i] = compute_pair(frame, i, sums);
        if (!computed[i] ||
            !vec_reserve(&change->known, &change->cap_known, change->n_known + 1, sizeof *change->known))
            return error_memory(err);
        if (pair != SIZE_MAX)
            change->known[change->n_known++] =
                (struct changed_column){column_keep(frame->columns[pair]), column_keep(computed[i])};
    }
    return 0;
}

/* A frame with all columns, of which those with these sums are computed from their pairs. */
static int compute_pairs(const struct frame *frame, enum frame_sums sums, struct frame **result, struct error *err)
{
    struct frame *made = frame_without_columns(frame);
    struct frame_column **computed = calloc(frame->n_columns + 1, sizeof *computed);
    struct column_change change = {.of = keep_column};
    int code = made && computed ? replace_pairs(frame, sums, &change, computed, err) : error_memory(err);
    for (size_t i = 0; code == 0 && i < frame->n_columns; i++) {
        size_t pair = frame_column_pair(frame, i);
        bool is_computed = pair != SIZE_MAX && computed[pair] && frame_column_pair(frame, pair) == i;
        code = frame_add_column(
            made, is_computed ? column_keep(computed[pair]) : column_changed(&change, frame->columns[i]), err);
        if (code == 0 && computed[i] && pair == SIZE_MAX)
            code = frame_add_column(made, column_keep(computed[i]), err);
    }
    for (size_t i = 0; computed && i < frame->n_columns; i++)
        column_drop(computed[i]);
    free(computed);
    change_fini(&change);
    if (code != 0)
        frame_close(made);
    else
        *result = made;
    return code;
}

int frame_sum_up(const struct frame *frame, struct frame **result, struct error *err)
{
    return compute_pairs(frame, FRAME_INCLUSIVE, result, err);
}

int frame_take_apart(const struct frame *frame, struct frame **result, struct error *err)
{
    if (!frame->graph->is_tree)
        return error_set(err, ERR_UNSUPPORTED, "nodes with several parents: what a node has of its own is not known");
    return compute_pairs(frame, FRAME_EXCLUSIVE, result, err);
}

/* --- profiles --- */

static struct frame_profiles *copy_profiles(const struct frame_profiles *from, const struct profile_map *map)
{
    struct frame_profiles *to = calloc(1, sizeof *to);
    if (!to || !vec_reserve(&to->items, &to->capacity, map->n_new ? map->n_new : 1, sizeof *to->items)) {
        free(to);
        return NULL;
    }
    to->n_owners = 1;
    to->n = map->n_new;
    bool ok = true;
    for (size_t i = 0; ok && i < from->n; i++) {
        struct frame_profile *item = map->new_of[i] == FRAME_NONE ? NULL : &to->items[map->new_of[i]];
        if (!item || item->name)
            continue;
        *item = from->items[i];
        ok = (item->name = strdup(from->items[i].name));
    }
    if (!ok)
        profiles_drop(to);
    return ok ? to : NULL;
}

int frame_find_profiles(const struct frame *frame, const char *condition, uint32_t **profiles, size_t *n,
                        struct error *err)
{
    struct formula *formula;
    uint32_t n_all = (uint32_t)frame->profiles->n;
    int code = expression_compile_profiles(frame, condition, &formula, err);
    if (code != 0)
        return code;
    double *is_true = malloc((n_all ? n_all : 1) * sizeof *is_true);
    uint32_t *found = malloc((n_all ? n_all : 1) * sizeof *found);
    code = is_true && found ? formula_of_profiles(formula, is_true, err) : error_memory(err);
    *n = 0;
    for (uint32_t i = 0; code == 0 && i < n_all; i++)
        if (!isnan(is_true[i]) && is_true[i] != 0)
            found[(*n)++] = i;
    formula_free(formula);
    free(is_true);
    if (code == 0 && *n == 0)
        code = error_set(err, ERR_NOT_FOUND, "no profile is left");
    if (code != 0)
        free(found);
    else
        *profiles = found;
    return code;
}

int frame_choose(const struct frame *frame, const char *condition, struct frame **result, struct error *err)
{
    uint32_t *profiles;
    size_t n;
    int code = frame_find_profiles(frame, condition, &profiles, &n, err);
    if (code != 0)
        return code;
    struct profile_map *map = profile_map_new((uint32_t)frame->profiles->n, 0);
    struct frame *made = NULL;
    for (size_t i = 0; map && i < n; i++)
        map->new_of[profiles[i]] = map->n_new++;
    free(profiles);
    if (map)
        made = frame_new(graph_keep(frame->graph), nodes_keep(frame->nodes), copy_profiles(frame->profiles, map));
    code = made ? 0 : error_memory(err);
    for (size_t i = 0; code == 0 && i < frame->n_columns; i++)
        code = frame_add_column(made, column_moved(frame->columns[i], map), err);
    profile_map_drop(map);
    if (code != 0)
        frame_close(made);
    else
        *result = made;
    return code;
}

int frame_section(const struct frame *frame, const char *condition, struct frame **result, struct error *err)
{
    struct frame *chosen;
    int code = frame_choose(frame, condition, &chosen, err);
    if (code != 0 || chosen->profiles->n == 1) {
        *result = code == 0 ? chosen : *result;
        return code;
    }
    code = frame_aggregate(chosen, "all", NULL, result, err);
    frame_close(chosen);
    char *name = code == 0 ? strdup(condition) : NULL;
    if (code == 0 && !name) {
        frame_close(*result);
        return error_memory(err);
    }
    if (code == 0) {
        free((char *)(uintptr_t)(*result)->profiles->items[0].name);
        (*result)->profiles->items[0].name = name;
    }
    return code;
}

static const struct profile_key {
    const char *name;
    size_t offset; /* of the number in struct frame_profile; SIZE_MAX: all are the same */
} profile_keys[] = {
    {"rank", offsetof(struct frame_profile, rank)},
    {"thread", offsetof(struct frame_profile, thread)},
    {"process", offsetof(struct frame_profile, process)},
    {"host", offsetof(struct frame_profile, node)},
    {"all", SIZE_MAX},
};

static int64_t key_of(const struct frame_profile *profile, size_t offset)
{
    int64_t value = 0;
    if (offset != SIZE_MAX)
        memcpy(&value, (const char *)profile + offset, sizeof value);
    return value;
}

struct keyed_profile {
    int64_t key;
    uint32_t profile;
};

static int compare_keys(const void *a, const void *b)
{
    const struct keyed_profile *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->profile < y->profile ? -1 : x->profile > y->profile;
}

/* Profiles of the same key become one, in the order of the keys. */
static struct profile_map *map_by_key(const struct frame_profiles *profiles, size_t offset)
{
    struct keyed_profile *keyed = malloc((profiles->n ? profiles->n : 1) * sizeof *keyed);
    struct profile_map *map = profile_map_new((uint32_t)profiles->n, 0);
    for (uint32_t i = 0; keyed && i < profiles->n; i++)
        keyed[i] = (struct keyed_profile){key_of(&profiles->items[i], offset), i};
    if (keyed)
        qsort(keyed, profiles->n, sizeof *keyed, compare_keys);
    for (size_t i = 0; keyed && map && i < profiles->n; i++) {
        map->n_new += i == 0 || keyed[i].key != keyed[i - 1].key;
        map->new_of[keyed[i].profile] = map->n_new - 1;
    }
    if (!keyed) {
        profile_map_drop(map);
        map = NULL;
    }
    free(keyed);
    return map;
}

/* Names profiles by their key, and forgets what they no longer have in common. */
static struct frame_profiles *name_profiles(const struct frame_profiles *from, const struct profile_map *map,
                                            const struct profile_key *key)
{
    struct frame_profiles *to = copy_profiles(from, map);
    for (size_t i = 0; to && i < to->n; i++) {
        struct frame_profile was = to->items[i], *item = &to->items[i];
        struct buf name = {0};
        int64_t value = key_of(&was, key->offset);
        buf_printf(&name, key->offset == SIZE_MAX || value < 0 ? "%s" : "%s %lld", key->name, (long long)value);
        free((char *)(uintptr_t)was.name);
        *item = (struct frame_profile){name.data, -1, -1, -1, -1};
        if (key->offset != SIZE_MAX)
            memcpy((char *)item + key->offset, &value, sizeof value);
        if (name.failed) {
            profiles_drop(to);
            return NULL;
        }
    }
    return to;
}

struct aggregation {
    struct column_change change;
    struct profile_map *map;
    const struct frame_view *view;
};

static struct frame_column *aggregate_column(struct column_change *change, struct frame_column *column)
{
    struct aggregation *aggregation = (struct aggregation *)change;
    return column_aggregated(column, aggregation->map, aggregation->view->aggregate, aggregation->view->percentile,
                             column->name);
}

int frame_aggregate(const struct frame *frame, const char *by, const struct frame_view *view, struct frame **result,
                    struct error *err)
{
    static const struct frame_view sums = {0};
    const struct profile_key *key = NULL;
    for (size_t i = 0; i < sizeof profile_keys / sizeof *profile_keys; i++)
        if (strcmp(profile_keys[i].name, by) == 0)
            key = &profile_keys[i];
    if (!key)
        return error_set(err, ERR_USAGE,
                         "profiles are not put together by '%.100s', but by rank, thread, process, host, "
                         "all",
                         by);
    struct profile_map *map = map_by_key(frame->profiles, key->offset);
    struct frame *made =
        map ? frame_new(graph_keep(frame->graph), nodes_keep(frame->nodes), name_profiles(frame->profiles, map, key))
            : NULL;
    struct aggregation aggregation = {.map = map, .view = view ? view : &sums};
    int code = made ? 0 : error_memory(err);
    if (made)
        aggregation.change = (struct column_change){
            .of = aggregate_column, .graph = made->graph, .nodes = made->nodes, .profiles = made->profiles};
    for (size_t i = 0; code == 0 && i < frame->n_columns; i++) {
        struct frame_column *column = frame->columns[i];
        code =
            frame_add_column(made,
                             aggregation.view->aggregate == FRAME_SUM ? column_changed(&aggregation.change, column)
                                                                      : aggregate_column(&aggregation.change, column),
                             err);
    }
    change_fini(&aggregation.change);
    profile_map_drop(map);
    if (code != 0)
        frame_close(made);
    else
        *result = made;
    return code;
}
