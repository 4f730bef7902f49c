/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs are two lists of neighbours in one array each, without pointers: a million nodes are four arrays. Every walk
 * has a stack of its own, so that no depth is too deep. */
#include "frame/graph.h"

#include <stdlib.h>
#include <string.h>

#include "frame/frame.h"

#define UNSEEN UINT32_MAX

/* A walk in depth-first order: the nodes that are open, and which child comes next at each. */
struct descent {
    uint32_t *nodes, *cursors;
    size_t n;
};

static uint32_t *numbers(size_t n)
{
    return malloc((n ? n : 1) * sizeof(uint32_t));
}

static bool descent_init(struct descent *descent, uint32_t n)
{
    *descent = (struct descent){numbers(n), numbers(n), 0};
    return descent->nodes && descent->cursors;
}

static void descent_fini(struct descent *descent)
{
    free(descent->nodes);
    free(descent->cursors);
}

static void descend(struct descent *descent, uint32_t node, const uint32_t *starts)
{
    descent->nodes[descent->n] = node;
    descent->cursors[descent->n++] = starts[node];
}

/* Fills starts [n + 1] and neighbours [n_edges] of one side of the edges, in their order. */
static void list_edges(const struct frame_edge *edges, size_t n_edges, uint32_t n, bool by_child, uint32_t *starts,
                       uint32_t *neighbours)
{
    memset(starts, 0, (n + 1) * sizeof *starts);
    for (size_t i = 0; i < n_edges; i++)
        starts[(by_child ? edges[i].child : edges[i].parent) + 1]++;
    for (uint32_t i = 0; i < n; i++)
        starts[i + 1] += starts[i];
    for (size_t i = 0; i < n_edges; i++) {
        uint32_t node = by_child ? edges[i].child : edges[i].parent;
        neighbours[starts[node]++] = by_child ? edges[i].parent : edges[i].child;
    }
    memmove(starts + 1, starts, n * sizeof *starts);
    starts[0] = 0;
}

/* Takes out neighbours that a node has twice; last [n] is scratch. */
static void unite(uint32_t n, uint32_t *starts, uint32_t *neighbours, uint32_t *last)
{
    uint32_t kept = 0, begin = 0;
    memset(last, 0xff, n * sizeof *last);
    for (uint32_t node = 0; node < n; node++) {
        uint32_t end = starts[node + 1];
        for (uint32_t i = begin; i < end; i++)
            if (last[neighbours[i]] != node) {
                last[neighbours[i]] = node;
                neighbours[kept++] = neighbours[i];
            }
        begin = end;
        starts[node + 1] = kept;
    }
}

/* Visits what is reachable from root and not seen yet: new_of and old_of get the numbers in pre-order. */
static uint32_t visit(struct descent *descent, uint32_t root, const uint32_t *starts, const uint32_t *children,
                      uint32_t *new_of, uint32_t *old_of, uint32_t n_seen)
{
    new_of[root] = n_seen;
    old_of[n_seen++] = root;
    descend(descent, root, starts);
    while (descent->n) {
        uint32_t node = descent->nodes[descent->n - 1], *cursor = &descent->cursors[descent->n - 1];
        if (*cursor == starts[node + 1]) {
            descent->n--;
            continue;
        }
        uint32_t child = children[(*cursor)++];
        if (new_of[child] != UNSEEN)
            continue;
        new_of[child] = n_seen;
        old_of[n_seen++] = child;
        descend(descent, child, starts);
    }
    return n_seen;
}

/* Renumbers: fills the graph's lists from those of the old numbers. */
static void renumber(struct frame_graph *graph, const uint32_t *starts, const uint32_t *children,
                     const uint32_t *new_of, const uint32_t *old_of, struct frame_edge *edges)
{
    uint32_t at = 0;
    for (uint32_t node = 0; node < graph->n; node++) {
        graph->child_starts[node] = at;
        for (uint32_t i = starts[old_of[node]]; i < starts[old_of[node] + 1]; i++) {
            edges[at] = (struct frame_edge){node, new_of[children[i]]};
            graph->children[at++] = new_of[children[i]];
        }
    }
    graph->child_starts[graph->n] = at;
    list_edges(edges, at, graph->n, true, graph->parent_starts, graph->parents);
}

static bool make_room(struct frame_graph *graph, uint32_t n, size_t n_edges)
{
    *graph = (struct frame_graph){.n_owners = 1, .n = n};
    graph->child_starts = numbers((size_t)n + 1);
    graph->parent_starts = numbers((size_t)n + 1);
    graph->children = numbers(n_edges);
    graph->parents = numbers(n_edges);
    graph->roots = numbers(n);
    return graph->child_starts && graph->parent_starts && graph->children && graph->parents && graph->roots;
}

/* What the numbering needs, by old numbers. */
struct numbering {
    uint32_t *starts, *children, *new_of, *old_of;
    struct descent descent;
    struct frame_edge *edges;
};

static bool numbering_init(struct numbering *work, uint32_t n, size_t n_edges)
{
    *work = (struct numbering){.starts = numbers((size_t)n + 1),
                               .children = numbers(n_edges),
                               .new_of = numbers(n),
                               .old_of = numbers(n),
                               .edges = malloc((n_edges ? n_edges : 1) * sizeof *work->edges)};
    return descent_init(&work->descent, n) && work->starts && work->children && work->new_of && work->old_of &&
           work->edges;
}

static void numbering_fini(struct numbering *work)
{
    free(work->starts);
    free(work->children);
    free(work->new_of);
    free(work->edges);
    descent_fini(&work->descent);
}

/* Numbers the nodes from the roots on; a cycle without entry begins at its first node. */
static void number_nodes(struct frame_graph *graph, struct numbering *work, const struct frame_edge *edges,
                         size_t n_edges)
{
    uint32_t n_seen = 0, n = graph->n;
    list_edges(edges, n_edges, n, true, graph->parent_starts, graph->parents);
    list_edges(edges, n_edges, n, false, work->starts, work->children);
    unite(n, work->starts, work->children, work->new_of);
    memset(work->new_of, 0xff, n * sizeof *work->new_of);
    for (int without_parent = 1; without_parent >= 0; without_parent--)
        for (uint32_t i = 0; i < n && n_seen < n; i++) {
            bool is_root = graph->parent_starts[i] == graph->parent_starts[i + 1] || !without_parent;
            if (!is_root || work->new_of[i] != UNSEEN)
                continue;
            graph->roots[graph->n_roots++] = n_seen;
            n_seen = visit(&work->descent, i, work->starts, work->children, work->new_of, work->old_of, n_seen);
        }
}

int graph_make(uint32_t n, const struct frame_edge *edges, size_t n_edges, struct frame_graph **graph,
               uint32_t **old_of, struct error *err)
{
    struct numbering work;
    struct frame_graph *made = malloc(sizeof *made);
    bool ok = made && make_room(made, n, n_edges);
    ok = numbering_init(&work, n, n_edges) && ok;
    if (ok) {
        number_nodes(made, &work, edges, n_edges);
        renumber(made, work.starts, work.children, work.new_of, work.old_of, work.edges);
        made->is_tree = true;
        for (uint32_t i = 0; i < n; i++)
            made->is_tree &= made->parent_starts[i + 1] - made->parent_starts[i] <= 1;
        for (size_t i = 0; i < made->n_roots; i++)
            made->is_tree &= made->parent_starts[made->roots[i]] == made->parent_starts[made->roots[i] + 1];
        *graph = made;
        *old_of = work.old_of;
    } else {
        free(work.old_of);
        graph_drop(made);
    }
    numbering_fini(&work);
    return ok ? 0 : error_memory(err);
}

int graph_make_tree(uint32_t n, const uint32_t *parents, struct frame_graph **graph, struct error *err)
{
    struct frame_graph *made = malloc(sizeof *made);
    if (!made || !make_room(made, n, n)) {
        graph_drop(made);
        return error_memory(err);
    }
    uint32_t at = 0;
    made->is_tree = true;
    memset(made->child_starts, 0, ((size_t)n + 1) * sizeof *made->child_starts);
    for (uint32_t i = 0; i < n; i++) {
        made->parent_starts[i] = at;
        if (parents[i] == FRAME_NONE) {
            made->roots[made->n_roots++] = i;
            continue;
        }
        made->parents[at++] = parents[i];
        made->child_starts[parents[i] + 1]++;
    }
    made->parent_starts[n] = at;
    for (uint32_t i = 0; i < n; i++)
        made->child_starts[i + 1] += made->child_starts[i];
    for (uint32_t i = 0; i < n; i++)
        if (parents[i] != FRAME_NONE)
            made->children[made->child_starts[parents[i]]++] = i;
    memmove(made->child_starts + 1, made->child_starts, n * sizeof *made->child_starts);
    made->child_starts[0] = 0;
    *graph = made;
    return 0;
}

struct frame_graph *graph_keep(struct frame_graph *graph)
{
    graph->n_owners++;
    return graph;
}

void graph_drop(struct frame_graph *graph)
{
    if (!graph || --graph->n_owners)
        return;
    free(graph->child_starts);
    free(graph->children);
    free(graph->parent_starts);
    free(graph->parents);
    free(graph->roots);
    free(graph->post_order);
    free(graph->depths);
    free(graph);
}

uint32_t graph_subtree_end(const struct frame_graph *graph, uint32_t node)
{
    while (graph->child_starts[node] != graph->child_starts[node + 1])
        node = graph->children[graph->child_starts[node + 1] - 1];
    return node + 1;
}

/* Post-order by a walk from every root. */
static bool walk_post_order(const struct frame_graph *graph, uint32_t *order)
{
    struct descent descent;
    char *seen = calloc(graph->n ? graph->n : 1, 1);
    bool ok = descent_init(&descent, graph->n) && seen;
    uint32_t n = 0;
    for (size_t r = 0; ok && r < graph->n_roots; r++) {
        seen[graph->roots[r]] = 1;
        descend(&descent, graph->roots[r], graph->child_starts);
        while (descent.n) {
            uint32_t node = descent.nodes[descent.n - 1], *cursor = &descent.cursors[descent.n - 1];
            if (*cursor == graph->child_starts[node + 1]) {
                order[n++] = node;
                descent.n--;
                continue;
            }
            uint32_t child = graph->children[(*cursor)++];
            if (!seen[child]) {
                seen[child] = 1;
                descend(&descent, child, graph->child_starts);
            }
        }
    }
    descent_fini(&descent);
    free(seen);
    return ok;
}

const uint32_t *graph_post_order(struct frame_graph *graph)
{
    if (graph->post_order)
        return graph->post_order;
    uint32_t *order = numbers(graph->n);
    if (order && !walk_post_order(graph, order)) {
        free(order);
        order = NULL;
    }
    return graph->post_order = order;
}

const uint32_t *graph_depths(struct frame_graph *graph)
{
    if (graph->depths)
        return graph->depths;
    uint32_t *depths = numbers(graph->n), *queue = numbers(graph->n);
    size_t first = 0, end = 0;
    if (!depths || !queue) {
        free(depths);
        free(queue);
        return NULL;
    }
    memset(depths, 0xff, graph->n * sizeof *depths);
    for (size_t i = 0; i < graph->n_roots; i++) {
        depths[graph->roots[i]] = 0;
        queue[end++] = graph->roots[i];
    }
    while (first < end) {
        uint32_t node = queue[first++];
        for (uint32_t i = graph->child_starts[node]; i < graph->child_starts[node + 1]; i++)
            if (depths[graph->children[i]] == UNSEEN) {
                depths[graph->children[i]] = depths[node] + 1;
                queue[end++] = graph->children[i];
            }
    }
    free(queue);
    return graph->depths = depths;
}

uint32_t graph_components(const struct frame_graph *graph, uint32_t *component_of)
{
    uint32_t n = graph->n, n_found = 0, n_seen = 0;
    uint32_t *low = numbers(n), *order = numbers(n), *open = numbers(n), *path = numbers(n), *cursors = numbers(n);
    size_t n_open = 0, n_path = 0;
    bool ok = low && order && open && path && cursors;
    if (ok)
        memset(order, 0xff, n * sizeof *order);
    memset(component_of, 0xff, n * sizeof *component_of);
    for (uint32_t root = 0; ok && root < n; root++) {
        if (order[root] != FRAME_NONE)
            continue;
        path[n_path++] = root;
        while (n_path) {
            uint32_t node = path[n_path - 1];
            if (order[node] == FRAME_NONE) {
                order[node] = low[node] = n_seen++;
                open[n_open++] = node;
                cursors[node] = graph->child_starts[node];
            }
            if (cursors[node] < graph->child_starts[node + 1]) {
                uint32_t child = graph->children[cursors[node]++];
                if (order[child] == FRAME_NONE)
                    path[n_path++] = child;
                else if (component_of[child] == FRAME_NONE && order[child] < low[node])
                    low[node] = order[child];
                continue;
            }
            n_path--;
            if (n_path && low[node] < low[path[n_path - 1]])
                low[path[n_path - 1]] = low[node];
            if (low[node] != order[node])
                continue;
            while (open[n_open - 1] != node)
                component_of[open[--n_open]] = n_found;
            component_of[open[--n_open]] = n_found++;
        }
    }
    free(low);
    free(order);
    free(open);
    free(path);
    free(cursors);
    return ok ? n_found : FRAME_NONE;
}
