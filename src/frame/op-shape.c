/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes that become one are found by closing a relation: siblings with the same identity are the same, and so are then
 * their children with the same identity. The smaller of two classes is entered into the larger one, so that no edge is
 * entered more than log(edges) times. */
#include "frame/op-shape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

static uint32_t *numbers(size_t n)
{
    return malloc((n ? n : 1) * sizeof(uint32_t));
}

bool edges_add(struct edge_list *edges, uint32_t parent, uint32_t child)
{
    if (!vec_reserve(&edges->items, &edges->capacity, edges->n + 1, sizeof *edges->items))
        return false;
    edges->items[edges->n++] = (struct frame_edge){parent, child};
    return true;
}

/* --- merging --- */

/* The child of a class with an identity. */
struct known_child {
    uint32_t class, identity, child;
};

static uint64_t hash_known(const void *item)
{
    const struct known_child *known = item;
    uint64_t mixed = ((uint64_t)known->class << 32 | known->identity) * 0x9e3779b97f4a7c15u;
    return mixed ^ mixed >> 32;
}

static bool is_same_known(const void *a, const void *b)
{
    const struct known_child *x = a, *y = b;
    return x->class == y->class && x->identity == y->identity;
}

static const struct slots_kind known_kind = {sizeof(struct known_child), hash_known, is_same_known};

struct merging {
    const uint32_t *identities;
    uint32_t *above;          /* [n + 1] towards the node that stands for the class */
    uint32_t *first, *last;   /* [n + 1] edges of a class, linked by next [n_edges] */
    uint32_t *next, *targets; /* [n_edges] */
    uint32_t *n_edges;        /* [n + 1] of a class */
    struct known_child *known;
    size_t n_known, cap_known;
    struct slots slots;
    struct edge_list open; /* pairs that are one */
};

static uint32_t find(struct merging *merging, uint32_t node)
{
    while (merging->above[node] != node) {
        merging->above[node] = merging->above[merging->above[node]];
        node = merging->above[node];
    }
    return node;
}

static bool merging_init(struct merging *merging, uint32_t n, size_t n_edges, const uint32_t *identities)
{
    *merging = (struct merging){.identities = identities,
                                .above = numbers((size_t)n + 1),
                                .first = numbers((size_t)n + 1),
                                .last = numbers((size_t)n + 1),
                                .n_edges = calloc((size_t)n + 1, sizeof(uint32_t)),
                                .next = numbers(n_edges),
                                .targets = numbers(n_edges)};
    if (!merging->above || !merging->first || !merging->last || !merging->n_edges || !merging->next ||
        !merging->targets)
        return false;
    for (uint32_t i = 0; i <= n; i++)
        merging->above[i] = i;
    memset(merging->first, 0xff, ((size_t)n + 1) * sizeof(uint32_t));
    memset(merging->last, 0xff, ((size_t)n + 1) * sizeof(uint32_t));
    return true;
}

static void merging_fini(struct merging *merging)
{
    free(merging->above);
    free(merging->first);
    free(merging->last);
    free(merging->n_edges);
    free(merging->next);
    free(merging->targets);
    free(merging->known);
    free(merging->open.items);
    slots_fini(&merging->slots);
}

static void append_edges(struct merging *merging, uint32_t class, uint32_t first, uint32_t last, uint32_t n)
{
    if (first == FRAME_NONE)
        return;
    if (merging->first[class] == FRAME_NONE)
        merging->first[class] = first;
    else
        merging->next[merging->last[class]] = first;
    merging->last[class] = last;
    merging->n_edges[class] += n;
}

/* Enters the child of an edge below a class: another one of the same identity is the same. */
static bool enter(struct merging *merging, uint32_t class, uint32_t child)
{
    struct known_child like = {class, merging->identities[child], child};
    size_t n = merging->n_known,
           at = slots_put(&merging->slots, &known_kind, &merging->known, &merging->n_known, &merging->cap_known, &like);
    if (at == SLOTS_NONE || at == n)
        return at == n;
    return find(merging, merging->known[at].child) == find(merging, child) ||
           edges_add(&merging->open, merging->known[at].child, child);
}

/* Makes one of all pairs that are open, and of those that this opens. */
static bool close_pairs(struct merging *merging)
{
    while (merging->open.n) {
        struct frame_edge pair = merging->open.items[--merging->open.n];
        uint32_t large = find(merging, pair.parent), small = find(merging, pair.child);
        if (large == small)
            continue;
        if (merging->n_edges[large] < merging->n_edges[small]) {
            uint32_t swap = large;
            large = small;
            small = swap;
        }
        merging->above[small] = large;
        for (uint32_t edge = merging->first[small]; edge != FRAME_NONE; edge = merging->next[edge])
            if (!enter(merging, large, merging->targets[edge]))
                return false;
        append_edges(merging, large, merging->first[small], merging->last[small], merging->n_edges[small]);
    }
    return true;
}

static bool merge_all(struct merging *merging, uint32_t n, const struct edge_list *edges, const uint32_t *roots,
                      size_t n_roots)
{
    bool ok = true;
    for (size_t i = 0; i < edges->n + n_roots; i++) {
        struct frame_edge edge = i < edges->n ? edges->items[i] : (struct frame_edge){n, roots[i - edges->n]};
        merging->targets[i] = edge.child;
        merging->next[i] = FRAME_NONE;
        append_edges(merging, edge.parent, (uint32_t)i, (uint32_t)i, 1);
    }
    for (size_t i = 0; ok && i < edges->n + n_roots; i++) {
        uint32_t parent = i < edges->n ? edges->items[i].parent : n;
        ok = enter(merging, find(merging, parent), merging->targets[i]) && close_pairs(merging);
    }
    return ok;
}

int shape_merge(uint32_t n, const struct edge_list *edges, const uint32_t *identities, const uint32_t *roots,
                size_t n_roots, uint32_t *class_of, uint32_t *n_classes, struct error *err)
{
    struct merging merging;
    uint32_t *number_of = numbers(n);
    bool ok = merging_init(&merging, n, edges->n + n_roots, identities) && number_of &&
              merge_all(&merging, n, edges, roots, n_roots);
    *n_classes = 0;
    if (ok) {
        memset(number_of, 0xff, n * sizeof *number_of);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t class = find(&merging, i);
            if (number_of[class] == FRAME_NONE)
                number_of[class] = (*n_classes)++;
            class_of[i] = number_of[class];
        }
    }
    merging_fini(&merging);
    free(number_of);
    return ok ? 0 : error_memory(err);
}

int shape_graph(uint32_t n, struct edge_list *edges, uint32_t *class_of, uint32_t n_classes, struct frame_graph **graph,
                uint32_t **first_of, struct error *err)
{
    uint32_t *old_of, *new_of, *first = numbers(n_classes);
    for (size_t i = 0; i < edges->n; i++)
        edges->items[i] = (struct frame_edge){class_of[edges->items[i].parent], class_of[edges->items[i].child]};
    if (!first)
        return error_memory(err);
    int code = graph_make(n_classes, edges->items, edges->n, graph, &old_of, err);
    if (code != 0) {
        free(first);
        return code;
    }
    new_of = numbers(n_classes);
    if (!new_of) {
        free(first);
        free(old_of);
        graph_drop(*graph);
        return error_memory(err);
    }
    for (uint32_t i = 0; i < n_classes; i++)
        new_of[old_of[i]] = i;
    for (uint32_t i = n; i-- > 0;)
        if (class_of[i] != FRAME_NONE) {
            class_of[i] = new_of[class_of[i]];
            first[class_of[i]] = i;
        }
    free(old_of);
    free(new_of);
    *first_of = first;
    return 0;
}

/* --- columns in another shape --- */

static struct frame_column *regroup_inclusive(struct regroup *regroup, struct frame_column *column)
{
    const struct frame *from = regroup->from;
    bool is_tree = from->graph->is_tree;
    struct frame_column *own = NULL, *made = NULL, *changed;
    for (size_t i = 0, pair; i < from->n_columns; i++)
        if (from->columns[i] == column && (pair = frame_column_pair(from, i)) != SIZE_MAX)
            own = from->columns[pair];
    if (is_tree && regroup->kind != REGROUP_ANEW)
        return column_grouped(column, regroup->kind == REGROUP_FLAT ? regroup->outer : regroup->groups);
    if (regroup->kind == REGROUP_FLAT)
        return column_either(column_grouped(column, regroup->outer),
                             own ? column_reached(own, from->graph, regroup->groups, column->name)
                                 : column_sole(column, regroup->groups),
                             regroup->has_several);
    if (own && regroup->kind != REGROUP_ANEW)
        return column_reached(own, from->graph, regroup->groups, column->name);
    if (!own) /* nothing says what a node that went has cost alone */
        return column_grouped(column, regroup->groups);
    own = column_keep(own);
    changed = column_changed(&regroup->change, own);
    if (changed)
        made = column_inclusive(changed, regroup->change.graph, column->name);
    if (made)
        made->is_hidden = column->is_hidden;
    column_drop(own);
    column_drop(changed);
    return made;
}

static struct frame_column *regroup_column(struct column_change *change, struct frame_column *column)
{
    struct regroup *regroup = (struct regroup *)change;
    if (column->sums == FRAME_EXCLUSIVE)
        return column_grouped(column, regroup->groups);
    return column->sums == FRAME_PLAIN ? column_sole(column, regroup->groups) : regroup_inclusive(regroup, column);
}

int shape_outermost(const struct frame_graph *graph, const uint32_t *group_of, uint32_t n_groups, uint32_t *outer_of,
                    struct error *err)
{
    uint32_t *n_open = calloc(n_groups ? n_groups : 1, sizeof *n_open), *open = numbers(graph->n), n = 0;
    if (!n_open || !open) {
        free(n_open);
        free(open);
        return error_memory(err);
    }
    for (uint32_t node = 0; node < graph->n; node++) {
        bool is_root = graph->parent_starts[node] == graph->parent_starts[node + 1];
        while (n && (is_root || open[n - 1] != graph->parents[graph->parent_starts[node]]))
            if (group_of[open[--n]] != FRAME_NONE)
                n_open[group_of[open[n]]]--;
        open[n++] = node;
        outer_of[node] = FRAME_NONE;
        if (group_of[node] != FRAME_NONE && n_open[group_of[node]]++ == 0)
            outer_of[node] = group_of[node];
    }
    free(n_open);
    free(open);
    return 0;
}

/* The same in a graph, where only parts of functions are known to be below another node. What a function or line costs
 * with its calls the file says, and lines of several functions are added. Where several functions are one, or one and
 * parts of others, it is found anew, as they may call each other. */
static void graph_outermost(const struct frame *from, const uint32_t *group_of, uint32_t *outer_of, bool *has_one,
                            bool *has_several, uint32_t n_groups)
{
    const struct frame_graph *graph = from->graph;
    bool *has_part = has_one + n_groups;
    for (uint32_t node = 0; node < graph->n; node++) {
        uint32_t group = outer_of[node] = group_of[node], at = graph->parent_starts[node];
        if (group == FRAME_NONE)
            continue;
        while (at < graph->parent_starts[node + 1] && group_of[graph->parents[at]] != group)
            at++;
        if (!frame_kind_is_part(from->nodes->kinds[node])) {
            has_several[group] |= has_one[group];
            has_one[group] = true;
        } else if (at < graph->parent_starts[node + 1]) {
            outer_of[node] = FRAME_NONE;
        } else {
            has_part[group] = true;
        }
    }
    for (uint32_t i = 0; i < n_groups; i++)
        has_several[i] |= has_one[i] && has_part[i];
}

/* Fills in what inclusive columns of REGROUP_FLAT need. */
static int find_outer(struct regroup *regroup, const uint32_t *group_of, uint32_t n_groups, struct error *err)
{
    const struct frame_graph *graph = regroup->from->graph;
    uint32_t *outer_of = numbers(graph->n);
    bool *has_one = calloc(2 * (size_t)n_groups + 1, sizeof *has_one);
    int code = outer_of && has_one ? 0 : error_memory(err);
    if (code == 0 && graph->is_tree)
        code = shape_outermost(graph, group_of, n_groups, outer_of, err);
    else if (code == 0 && (regroup->has_several = calloc((size_t)n_groups + 1, sizeof *has_one)))
        graph_outermost(regroup->from, group_of, outer_of, has_one, regroup->has_several, n_groups);
    else if (code == 0)
        code = error_memory(err);
    if (code == 0 && !(regroup->outer = groups_of(outer_of, graph->n, n_groups)))
        code = error_memory(err);
    free(outer_of);
    free(has_one);
    return code;
}

int regroup_init(struct regroup *regroup, const struct frame *from, const uint32_t *group_of, enum regroup_kind kind,
                 struct frame_graph *graph, struct frame_nodes *nodes, struct error *err)
{
    *regroup =
        (struct regroup){.change = {.of = regroup_column, .graph = graph, .nodes = nodes, .profiles = from->profiles},
                         .from = from,
                         .kind = kind,
                         .groups = groups_of(group_of, from->graph->n, graph->n)};
    if (!regroup->groups)
        return error_memory(err);
    int code = kind == REGROUP_FLAT ? find_outer(regroup, group_of, graph->n, err) : 0;
    if (code != 0)
        regroup_fini(regroup);
    return code;
}

void regroup_fini(struct regroup *regroup)
{
    change_fini(&regroup->change);
    groups_drop(regroup->groups);
    groups_drop(regroup->outer);
    free(regroup->has_several);
}

int regroup_frame(const struct frame *from, const uint32_t *group_of, enum regroup_kind kind, struct frame_graph *graph,
                  struct frame_nodes *nodes, struct frame **result, struct error *err)
{
    struct regroup regroup;
    struct frame *made = frame_new(graph, nodes, profiles_keep(from->profiles));
    int code = made ? regroup_init(&regroup, from, group_of, kind, graph, nodes, err) : error_memory(err);
    if (code == 0) {
        for (size_t i = 0; code == 0 && i < from->n_columns; i++)
            code = frame_add_column(made, column_changed(&regroup.change, from->columns[i]), err);
        regroup_fini(&regroup);
    }
    if (code != 0)
        frame_close(made);
    else
        *result = made;
    return code;
}

int regroup_columns(const struct frame *from, const uint32_t *group_of, const struct frame_view *how,
                    struct frame *made, struct error *err)
{
    struct node_groups *groups = how ? groups_of(group_of, from->graph->n, made->graph->n) : NULL;
    int code = how && !groups ? error_memory(err) : 0;
    for (size_t i = 0; how && code == 0 && i < made->n_columns; i++) {
        struct frame_column *column = column_pooled(from->columns[i], groups, how);
        if (!column) {
            code = error_memory(err);
            continue;
        }
        column_drop(made->columns[i]);
        made->columns[i] = column;
    }
    groups_drop(groups);
    return code;
}

struct frame_attribute *shape_attribute(struct frame_nodes *nodes, const char *name, bool is_text, bool *ok)
{
    for (size_t i = 0; i < nodes->n_attributes; i++)
        if (strcmp(nodes->attributes[i].name, name) == 0)
            return (nodes->attributes[i].texts != NULL) == is_text ? &nodes->attributes[i] : NULL;
    *ok = vec_reserve(&nodes->attributes, &nodes->cap_attributes, nodes->n_attributes + 1, sizeof *nodes->attributes);
    if (!*ok)
        return NULL;
    struct frame_attribute *made = &nodes->attributes[nodes->n_attributes++];
    *made = (struct frame_attribute){.name = strdup(name)};
    if (is_text)
        made->texts = calloc(nodes->n ? nodes->n : 1, sizeof *made->texts);
    else
        made->numbers = malloc((nodes->n ? nodes->n : 1) * sizeof *made->numbers);
    for (uint32_t i = 0; made->numbers && i < nodes->n; i++)
        made->numbers[i] = NAN;
    *ok = made->name && (made->texts || made->numbers);
    return *ok ? made : NULL;
}

struct frame *frame_without_columns(const struct frame *frame)
{
    return frame_new(graph_keep(frame->graph), nodes_keep(frame->nodes), profiles_keep(frame->profiles));
}
