/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations that put nodes of all places together: by attribute, by function, as graph of callers and callees, and
 * upside down. */
#include "frame/ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/spelling.h"
#include "frame/op-shape.h"

#define MAX_STEPS (1u << 25)

static uint32_t *numbers(size_t n)
{
    return malloc((n ? n : 1) * sizeof(uint32_t));
}

/* Turns keys [n], which are less than n_keys, into group numbers in order of first use; how many there are. first_of
 * [n] gets the first node of each. */
static bool number_keys(uint32_t *keys, uint32_t n, size_t n_keys, uint32_t *first_of, uint32_t *n_groups)
{
    uint32_t *group_of_key = numbers(n_keys);
    *n_groups = 0;
    if (!group_of_key)
        return false;
    memset(group_of_key, 0xff, n_keys * sizeof *group_of_key);
    for (uint32_t i = 0; i < n; i++) {
        if (group_of_key[keys[i]] == FRAME_NONE) {
            first_of[*n_groups] = i;
            group_of_key[keys[i]] = (*n_groups)++;
        }
        keys[i] = group_of_key[keys[i]];
    }
    free(group_of_key);
    return true;
}

/* The frame of groups without edges. nodes is taken over, also on failure. */
static int make_flat(const struct frame *frame, const uint32_t *group_of, uint32_t n_groups, struct frame_nodes *nodes,
                     struct frame **result, struct error *err)
{
    struct frame_graph *graph = NULL;
    uint32_t *old_of = NULL;
    int code = nodes ? graph_make(n_groups, NULL, 0, &graph, &old_of, err) : error_memory(err);
    free(old_of);
    if (code != 0) {
        nodes_drop(nodes);
        return code;
    }
    return regroup_frame(frame, group_of, REGROUP_FLAT, graph, nodes, result, err);
}

/* --- by attribute --- */

static uint32_t intern(struct frame_nodes *nodes, const char *text)
{
    int64_t id = strtab_intern(&nodes->strings->table, text);
    return id < 0 ? FRAME_NONE : (uint32_t)id;
}

/* Numbers as texts, so that they can be names. */
static bool number_names(const struct frame *frame, const double *values, const uint32_t *lines, uint32_t *keys)
{
    struct buf text = {0};
    bool ok = true;
    for (uint32_t i = 0; ok && i < frame->graph->n; i++) {
        double value = values ? values[i] : lines[i];
        text.len_bytes = 0;
        if (!isnan(value))
            buf_printf(&text, "%.15g", value);
        ok = !text.failed && (keys[i] = intern(frame->nodes, text.len_bytes ? text.data : "")) != FRAME_NONE;
    }
    buf_fini(&text);
    return ok;
}

static int no_attribute(const struct frame_nodes *nodes, const char *name, struct error *err)
{
    static const char *const usual[] = {"name", "file", "module", "line", "kind"};
    size_t n = sizeof usual / sizeof *usual;
    const char **names = malloc((n + nodes->n_attributes) * sizeof *names);
    struct buf text = {0};
    if (!names)
        return error_memory(err);
    memcpy(names, usual, sizeof usual);
    for (size_t i = 0; i < nodes->n_attributes; i++)
        names[n++] = nodes->attributes[i].name;
    spelling_suggest(&text, name, names, n);
    int code = text.failed ? error_memory(err)
                           : error_set(err, ERR_NOT_FOUND, "there is no attribute '%.200s'%.600s", name, text.data);
    buf_fini(&text);
    free(names);
    return code;
}

int shape_keys(const struct frame *frame, const char *attribute, uint32_t *keys, struct error *err)
{
    struct frame_nodes *nodes = frame->nodes;
    const struct frame_attribute *found = NULL; /* what a file calls by our name is meant first */
    size_t n_bytes = nodes->n * sizeof *keys;
    bool ok = true;
    for (size_t i = 0; i < nodes->n_attributes; i++)
        if (strcmp(nodes->attributes[i].name, attribute) == 0)
            found = &nodes->attributes[i];
    if (found && found->texts) {
        memcpy(keys, found->texts, n_bytes);
    } else if (found) {
        ok = number_names(frame, found->numbers, NULL, keys);
    } else if (strcmp(attribute, "name") == 0) {
        memcpy(keys, nodes->names, n_bytes);
    } else if (strcmp(attribute, "file") == 0) {
        memcpy(keys, nodes->files, n_bytes);
    } else if (strcmp(attribute, "module") == 0) {
        memcpy(keys, nodes->modules, n_bytes);
    } else if (strcmp(attribute, "line") == 0) {
        ok = number_names(frame, NULL, nodes->lines, keys);
    } else if (strcmp(attribute, "kind") == 0) {
        for (uint32_t i = 0; ok && i < nodes->n; i++)
            ok = (keys[i] = intern(nodes, frame_kind_name(nodes->kinds[i]))) != FRAME_NONE;
    } else {
        return no_attribute(nodes, attribute, err);
    }
    return ok ? 0 : error_memory(err);
}

/* A node for each group, known by its key; what the nodes have in common of kind, file, module and line stays. */
static struct frame_nodes *group_nodes(const struct frame *frame, const uint32_t *group_of, const uint32_t *first_of,
                                       uint32_t n_groups, const uint32_t *keys)
{
    struct frame_nodes *nodes = nodes_choose(frame->nodes, first_of, n_groups);
    for (uint32_t i = 0; nodes && i < frame->graph->n; i++) {
        uint32_t group = group_of[i];
        if (nodes->files[group] != frame->nodes->files[i])
            nodes->files[group] = 0;
        if (nodes->modules[group] != frame->nodes->modules[i])
            nodes->modules[group] = 0;
        if (nodes->kinds[group] != frame->nodes->kinds[i])
            nodes->kinds[group] = FRAME_GROUP;
        nodes->lines[group] = nodes->lines[group] == frame->nodes->lines[i] ? nodes->lines[group] : 0;
    }
    for (uint32_t i = 0; nodes && i < n_groups; i++)
        nodes->identities[i] = keys[first_of[i]];
    return nodes;
}

/* Ends a frame of groups: as `how` says, in place of sums. */
static int end_groups(int code, const struct frame *frame, const uint32_t *group_of, const struct frame_view *how,
                      struct frame **result, struct error *err)
{
    if (code == 0 && (code = regroup_columns(frame, group_of, how, *result, err)) != 0) {
        frame_close(*result);
        *result = NULL;
    }
    return code;
}

int shape_group(const struct frame *frame, const uint32_t *keys, const uint32_t *names, const struct frame_view *how,
                struct frame **result, struct error *err)
{
    uint32_t n = frame->graph->n, n_groups, *group_of = numbers(n), *first_of = numbers(n);
    bool ok = group_of && first_of;
    if (ok) {
        memcpy(group_of, keys, n * sizeof *keys);
        ok = number_keys(group_of, n, frame->nodes->strings->table.n_strings, first_of, &n_groups);
    }
    struct frame_nodes *nodes = ok ? group_nodes(frame, group_of, first_of, n_groups, keys) : NULL;
    for (uint32_t i = 0; nodes && i < n_groups; i++)
        nodes->names[i] = names[first_of[i]];
    int code = ok ? make_flat(frame, group_of, n_groups, nodes, result, err) : error_memory(err);
    code = end_groups(code, frame, group_of, how, result, err);
    free(group_of);
    free(first_of);
    return code;
}

int frame_group_by(const struct frame *frame, const char *attribute, const struct frame_view *how,
                   struct frame **result, struct error *err)
{
    uint32_t *keys = numbers(frame->graph->n);
    int code = keys ? shape_keys(frame, attribute, keys, err) : error_memory(err);
    if (code == 0)
        code = shape_group(frame, keys, keys, how, result, err);
    free(keys);
    return code;
}

/* Every edge of a graph between two groups. */
static bool group_edges(const struct frame_graph *graph, const uint32_t *group_of, struct edge_list *edges)
{
    for (uint32_t node = 0; node < graph->n; node++)
        for (uint32_t i = graph->child_starts[node]; i < graph->child_starts[node + 1]; i++)
            if (group_of[node] != group_of[graph->children[i]] && !edges_add(edges, node, graph->children[i]))
                return false;
    return true;
}

int frame_group_graph(const struct frame *frame, const char *attribute, const struct frame_view *how,
                      struct frame **result, struct error *err)
{
    uint32_t n = frame->graph->n, n_groups, *keys = numbers(n), *group_of = numbers(n), *first_of = numbers(n);
    struct edge_list edges = {0};
    struct frame_graph *graph = NULL;
    int code = keys && group_of && first_of ? shape_keys(frame, attribute, keys, err) : error_memory(err);
    if (code == 0) {
        memcpy(group_of, keys, n * sizeof *keys);
        if (!number_keys(group_of, n, frame->nodes->strings->table.n_strings, first_of, &n_groups) ||
            !group_edges(frame->graph, group_of, &edges))
            code = error_memory(err);
    }
    free(first_of);
    first_of = NULL;
    if (code == 0)
        code = shape_graph(n, &edges, group_of, n_groups, &graph, &first_of, err);
    struct frame_nodes *nodes = code == 0 ? group_nodes(frame, group_of, first_of, n_groups, keys) : NULL;
    if (code == 0 && !nodes)
        code = error_memory(err);
    for (uint32_t i = 0; code == 0 && i < n_groups; i++)
        nodes->names[i] = keys[first_of[i]];
    if (code == 0)
        code = end_groups(regroup_frame(frame, group_of, REGROUP_FLAT, graph_keep(graph), nodes, result, err), frame,
                          group_of, how, result, err);
    graph_drop(graph);
    free(keys);
    free(group_of);
    free(first_of);
    free(edges.items);
    return code;
}

/* --- by function --- */

/* The parent of a node that was visited before it; FRAME_NONE for a root. */
static uint32_t first_parent(const struct frame_graph *graph, uint32_t node)
{
    for (uint32_t i = graph->parent_starts[node]; i < graph->parent_starts[node + 1]; i++)
        if (graph->parents[i] < node)
            return graph->parents[i];
    return FRAME_NONE;
}

void shape_owners(const struct frame *frame, uint32_t *owner_of)
{
    for (uint32_t node = 0; node < frame->graph->n; node++) {
        uint32_t parent = frame_kind_is_part(frame->nodes->kinds[node]) ? first_parent(frame->graph, node) : FRAME_NONE;
        owner_of[node] = parent == FRAME_NONE ? node : owner_of[parent];
    }
}

/* The number attribute that is part of identities in some files: where a function was called. NULL: there is none. */
static const struct frame_attribute *find_call_lines(const struct frame_nodes *nodes)
{
    for (size_t i = 0; i < nodes->n_attributes; i++)
        if (nodes->attributes[i].numbers && strcmp(nodes->attributes[i].name, "call_line") == 0)
            return &nodes->attributes[i];
    return NULL;
}

/* Identities [n], where a function is the same wherever it was called, and another one in another module, if its file
 * is not known; NULL when out of memory. */
static uint32_t *function_ids(const struct frame *frame)
{
    struct frame_nodes *nodes = frame->nodes;
    const struct frame_attribute *call_lines = find_call_lines(nodes);
    uint32_t *ids = numbers(nodes->n);
    struct buf text = {0};
    if (ids)
        memcpy(ids, nodes->identities, nodes->n * sizeof *ids);
    for (uint32_t i = 0; ids && i < nodes->n; i++) {
        const char *file = frame_file(frame, i), *module = *file ? "" : path_last(frame_module(frame, i));
        bool has_call_line = call_lines && !isnan(call_lines->numbers[i]);
        if ((!has_call_line && !*module) || frame_kind_is_part(nodes->kinds[i]))
            continue;
        text.len_bytes = 0;
        if (has_call_line)
            buf_printf(&text, "%s\x1f%s\x1f%s", frame_kind_name(nodes->kinds[i]), frame_name(frame, i), file);
        else
            buf_printf(&text, "%s", frame_identity(frame, i));
        if (*module)
            buf_printf(&text, "\x1f%s", module);
        if (text.failed || (ids[i] = intern(nodes, text.data)) == FRAME_NONE) {
            free(ids);
            ids = NULL;
        }
    }
    buf_fini(&text);
    return ids;
}

/* The nodes first_of [n_groups] as functions, wherever these were called. */
static struct frame_nodes *choose_functions(const struct frame *frame, const uint32_t *ids, const uint32_t *first_of,
                                            uint32_t n_groups)
{
    struct frame_nodes *nodes = nodes_choose(frame->nodes, first_of, n_groups);
    const struct frame_attribute *call_lines = nodes ? find_call_lines(nodes) : NULL;
    for (uint32_t i = 0; nodes && i < n_groups; i++) {
        nodes->identities[i] = ids[first_of[i]];
        if (call_lines)
            call_lines->numbers[i] = NAN;
    }
    return nodes;
}

/* The line around each instruction; of other nodes, the node itself. */
static void line_owners(const struct frame *frame, uint32_t *owner_of)
{
    for (uint32_t node = 0; node < frame->graph->n; node++) {
        bool is_instruction = frame->nodes->kinds[node] == FRAME_INSTRUCTION;
        uint32_t parent = is_instruction ? first_parent(frame->graph, node) : FRAME_NONE;
        owner_of[node] = parent != FRAME_NONE && frame->nodes->kinds[parent] == FRAME_LINE ? parent : node;
    }
}

/* Groups nodes by the identity ids [n] of their owner, a function or line: first_of [n] gets the first owner. */
static int group_owners(const struct frame *frame, void (*find_owners)(const struct frame *, uint32_t *),
                        const uint32_t *ids, uint32_t *group_of, uint32_t *first_of, uint32_t *n_groups,
                        struct error *err)
{
    uint32_t n = frame->graph->n, *owner_of = numbers(n);
    if (!owner_of)
        return error_memory(err);
    find_owners(frame, owner_of);
    for (uint32_t i = 0; i < n; i++)
        group_of[i] = ids[owner_of[i]];
    bool ok = number_keys(group_of, n, frame->nodes->strings->table.n_strings, first_of, n_groups);
    for (uint32_t i = 0; ok && i < *n_groups; i++)
        first_of[i] = owner_of[first_of[i]];
    free(owner_of);
    return ok ? 0 : error_memory(err);
}

static int flatten(const struct frame *frame, void (*find_owners)(const struct frame *, uint32_t *),
                   struct frame **result, struct error *err)
{
    uint32_t n = frame->graph->n, n_groups, *group_of = numbers(n), *first_of = numbers(n), *ids = function_ids(frame);
    int code = group_of && first_of && ids ? group_owners(frame, find_owners, ids, group_of, first_of, &n_groups, err)
                                           : error_memory(err);
    if (code == 0)
        code = make_flat(frame, group_of, n_groups, choose_functions(frame, ids, first_of, n_groups), result, err);
    free(ids);
    free(group_of);
    free(first_of);
    return code;
}

int frame_flat(const struct frame *frame, struct frame **result, struct error *err)
{
    return flatten(frame, shape_owners, result, err);
}

int frame_lines(const struct frame *frame, struct frame **result, struct error *err)
{
    return flatten(frame, line_owners, result, err);
}

/* --- callers and callees --- */

/* Replaces the components of a graph by the numbers of circles: from 1 in order of their first nodes, 0: none. */
static bool find_circles(const struct frame_graph *graph, uint32_t *circle_of)
{
    uint32_t n_components = graph_components(graph, circle_of), n_circles = 0;
    uint32_t *sizes = n_components == FRAME_NONE ? NULL : calloc((size_t)n_components + 1, sizeof *sizes);
    uint32_t *numbers_of = sizes ? calloc((size_t)n_components + 1, sizeof *numbers_of) : NULL;
    for (uint32_t i = 0; numbers_of && i < graph->n; i++)
        sizes[circle_of[i]]++;
    for (uint32_t i = 0; numbers_of && i < graph->n; i++) {
        uint32_t component = circle_of[i];
        if (sizes[component] > 1 && numbers_of[component] == 0)
            numbers_of[component] = ++n_circles;
        circle_of[i] = numbers_of[component];
    }
    bool ok = numbers_of;
    free(sizes);
    free(numbers_of);
    return ok;
}

/* An edge for every pair of functions one of whose nodes is below one of the other. */
static bool call_edges(const struct frame_graph *graph, const uint8_t *kinds, const uint32_t *group_of,
                       struct edge_list *edges)
{
    for (uint32_t node = 0; node < graph->n; node++)
        for (uint32_t i = graph->child_starts[node]; i < graph->child_starts[node + 1]; i++)
            if (!frame_kind_is_part(kinds[graph->children[i]]) &&
                !edges_add(edges, group_of[node], group_of[graph->children[i]]))
                return false;
    return true;
}

/* Adds the attribute "cycle"; circle_of by node. */
static bool add_cycles(struct frame_nodes *nodes, const uint32_t *circle_of)
{
    double *values = malloc((nodes->n ? nodes->n : 1) * sizeof *values);
    char *name = strdup("cycle");
    if (!values || !name ||
        !vec_reserve(&nodes->attributes, &nodes->cap_attributes, nodes->n_attributes + 1, sizeof *nodes->attributes)) {
        free(values);
        free(name);
        return false;
    }
    for (uint32_t i = 0; i < nodes->n; i++)
        values[i] = circle_of[i] ? (double)circle_of[i] : (double)NAN;
    nodes->attributes[nodes->n_attributes++] = (struct frame_attribute){.name = name, .numbers = values};
    return true;
}

/* What is known of functions that become nodes of the result. */
struct calls {
    uint32_t *group_of, *first_of, n; /* by node; by function */
    struct edge_list edges;
    struct frame_graph *graph;
    uint32_t *circle_of; /* by node of graph */
    uint32_t *tags;      /* by function: the circle that it is, 0: none; NULL before that is known */
};

/* Makes the graph of the functions and renumbers them by it. */
static int calls_graph(uint32_t n_nodes, struct calls *calls, struct error *err)
{
    uint32_t *old_of, *new_of, *first_of, *tags;
    graph_drop(calls->graph);
    calls->graph = NULL;
    int code = graph_make(calls->n, calls->edges.items, calls->edges.n, &calls->graph, &old_of, err);
    if (code != 0)
        return code;
    new_of = numbers(calls->n);
    first_of = numbers(calls->n);
    tags = numbers(calls->n);
    bool ok = new_of && first_of && tags;
    for (uint32_t i = 0; ok && i < calls->n; i++) {
        new_of[old_of[i]] = i;
        first_of[i] = calls->first_of[old_of[i]];
        tags[i] = calls->tags ? calls->tags[old_of[i]] : 0;
    }
    free(old_of);
    for (uint32_t i = 0; ok && i < n_nodes; i++)
        calls->group_of[i] = new_of[calls->group_of[i]];
    for (size_t i = 0; ok && i < calls->edges.n; i++)
        calls->edges.items[i] =
            (struct frame_edge){new_of[calls->edges.items[i].parent], new_of[calls->edges.items[i].child]};
    for (uint32_t i = 0; ok && i < calls->n; i++) {
        calls->first_of[i] = first_of[i];
        if (calls->tags)
            calls->tags[i] = tags[i];
    }
    code = ok ? 0 : error_memory(err);
    free(new_of);
    free(first_of);
    free(tags);
    free(calls->circle_of);
    calls->circle_of = numbers(calls->n);
    if (code == 0 && (!calls->circle_of || !find_circles(calls->graph, calls->circle_of)))
        code = error_memory(err);
    return code;
}

/* Makes one node of each circle, at the place of its first function. */
static int collapse(uint32_t n_nodes, struct calls *calls, struct error *err)
{
    uint32_t n = 0, *to = numbers(calls->n), *first_in = calloc((size_t)calls->n + 1, sizeof *first_in);
    uint32_t *circles = numbers(calls->n);
    if (!to || !first_in || !circles) {
        free(to);
        free(first_in);
        free(circles);
        return error_memory(err);
    }
    for (uint32_t i = 0; i < calls->n; i++) {
        uint32_t circle = calls->circle_of[i];
        if (circle && first_in[circle]) {
            to[i] = first_in[circle] - 1;
            continue;
        }
        circles[n] = circle;
        calls->first_of[n] = calls->first_of[i];
        to[i] = n++;
        first_in[circle] = n;
    }
    size_t n_edges = 0;
    for (uint32_t i = 0; i < n_nodes; i++)
        calls->group_of[i] = to[calls->group_of[i]];
    for (size_t i = 0; i < calls->edges.n; i++) {
        struct frame_edge edge = {to[calls->edges.items[i].parent], to[calls->edges.items[i].child]};
        if (edge.parent != edge.child || !circles[edge.parent])
            calls->edges.items[n_edges++] = edge;
    }
    calls->edges.n = n_edges;
    calls->n = n;
    free(to);
    free(first_in);
    calls->tags = circles;
    return 0;
}

/* Gives the nodes of circles their names. */
static bool name_circles(struct frame_nodes *nodes, const uint32_t *circle_of)
{
    for (uint32_t i = 0; i < nodes->n; i++) {
        char name[40];
        if (!circle_of[i])
            continue;
        (void)snprintf(name, sizeof name, "<cycle %u>", circle_of[i]);
        nodes->names[i] = nodes->identities[i] = intern(nodes, name);
        nodes->kinds[i] = FRAME_GROUP;
        nodes->files[i] = nodes->modules[i] = nodes->lines[i] = 0;
        if (nodes->names[i] == FRAME_NONE)
            return false;
    }
    return true;
}

int frame_callgraph(const struct frame *frame, bool is_collapsed, struct frame **result, struct error *err)
{
    uint32_t n = frame->graph->n, *ids = function_ids(frame);
    struct calls calls = {.group_of = numbers(n), .first_of = numbers(n)};
    struct frame_nodes *nodes = NULL;
    int code = calls.group_of && calls.first_of && ids
                   ? group_owners(frame, shape_owners, ids, calls.group_of, calls.first_of, &calls.n, err)
                   : error_memory(err);
    if (code == 0 && !call_edges(frame->graph, frame->nodes->kinds, calls.group_of, &calls.edges))
        code = error_memory(err);
    if (code == 0)
        code = calls_graph(n, &calls, err);
    if (code == 0 && is_collapsed) {
        code = collapse(n, &calls, err);
        if (code == 0)
            code = calls_graph(n, &calls, err);
    }
    if (code == 0)
        nodes = choose_functions(frame, ids, calls.first_of, calls.n);
    if (code == 0 && (!nodes || !(is_collapsed ? name_circles(nodes, calls.tags) : add_cycles(nodes, calls.circle_of))))
        code = error_memory(err);
    if (code == 0)
        code =
            regroup_frame(frame, calls.group_of, REGROUP_FLAT, graph_keep(calls.graph), nodes_keep(nodes), result, err);
    nodes_drop(nodes);
    graph_drop(calls.graph);
    free(ids);
    free(calls.group_of);
    free(calls.first_of);
    free(calls.edges.items);
    free(calls.circle_of);
    free(calls.tags);
    return code;
}

/* --- upside down --- */

/* Chains of callers: a tree, whose nodes are found by parent and identity. */
struct chain_node {
    uint32_t parent, identity, node; /* node: of the source, the first one of this function there */
};

static uint64_t hash_chain(const void *item)
{
    const struct chain_node *chain = item;
    uint64_t mixed = ((uint64_t)chain->parent << 32 | chain->identity) * 0x9e3779b97f4a7c15u;
    return mixed ^ mixed >> 32;
}

static bool is_same_chain(const void *a, const void *b)
{
    const struct chain_node *x = a, *y = b;
    return x->parent == y->parent && x->identity == y->identity;
}

static const struct slots_kind chain_kind = {sizeof(struct chain_node), hash_chain, is_same_chain};

struct chains {
    struct chain_node *items;
    size_t n, capacity;
    struct slots slots;
};

/* The node for a function below another one; FRAME_NONE when out of memory. */
static uint32_t chain_below(struct chains *chains, const struct chain_node *like)
{
    size_t at = slots_put(&chains->slots, &chain_kind, &chains->items, &chains->n, &chains->capacity, like);
    return at == SLOTS_NONE ? FRAME_NONE : (uint32_t)at;
}

/* Refuses chains with very many parts in all, before they are made. */
static int check_chains(const struct frame *frame, const uint32_t *owner_of, uint32_t max_depth, struct error *err)
{
    uint32_t n = frame->graph->n, *lengths = numbers(n);
    size_t n_steps = 0;
    if (!lengths)
        return error_memory(err);
    for (uint32_t node = 0; node < n; node++) {
        uint32_t parent = first_parent(frame->graph, node), owner = owner_of[node];
        if (owner != node) {
            lengths[node] = lengths[owner];
            continue;
        }
        uint32_t length = parent == FRAME_NONE ? 0 : lengths[owner_of[parent]];
        lengths[node] = max_depth && length >= max_depth ? max_depth : length + 1;
        n_steps += lengths[node];
    }
    free(lengths);
    if (n_steps > MAX_STEPS)
        return error_set(err, ERR_RANGE, "more than %u chains of callers and their parts; give a depth to end them at",
                         MAX_STEPS);
    return 0;
}

/* Enters the callers of every function; end_of [n] gets the last node of each chain. */
static int find_chains(const struct frame *frame, const uint32_t *ids, const uint32_t *owner_of, uint32_t max_depth,
                       struct chains *chains, uint32_t *end_of, struct error *err)
{
    for (uint32_t node = 0; node < frame->graph->n; node++) {
        uint32_t at = FRAME_NONE, depth = 0;
        if (owner_of[node] != node) {
            end_of[node] = end_of[owner_of[node]];
            continue;
        }
        for (uint32_t owner = node; owner != FRAME_NONE && (max_depth == 0 || depth < max_depth); depth++) {
            at = chain_below(chains, &(struct chain_node){at, ids[owner], owner});
            if (at == FRAME_NONE)
                return error_memory(err);
            uint32_t parent = first_parent(frame->graph, owner);
            owner = parent == FRAME_NONE ? FRAME_NONE : owner_of[parent];
        }
        end_of[node] = at;
    }
    return 0;
}

struct upside {
    struct column_change change;
    struct node_groups *ends, *none;
};

static struct frame_column *upside_column(struct column_change *change, struct frame_column *column)
{
    struct upside *upside = (struct upside *)change;
    if (column->sums != FRAME_EXCLUSIVE)
        return column_grouped(column, upside->none);
    struct frame_column *ends = column_grouped(column, upside->ends);
    struct frame_column *made = ends ? column_inclusive(ends, change->graph, column->name) : NULL;
    column_drop(ends);
    return made;
}

/* The columns of a frame along chains, whose nodes end_of names. */
static int turn_columns(const struct frame *frame, const uint32_t *end_of, struct frame *to, struct error *err)
{
    uint32_t n = frame->graph->n, *none_of = numbers(n);
    if (!none_of)
        return error_memory(err);
    memset(none_of, 0xff, n * sizeof *none_of);
    struct upside upside = {.change = {upside_column, to->graph, to->nodes, to->profiles, NULL, 0, 0},
                            .ends = groups_of(end_of, n, to->graph->n),
                            .none = groups_of(none_of, n, to->graph->n)};
    int code = upside.ends && upside.none ? 0 : error_memory(err);
    for (size_t i = 0; code == 0 && i < frame->n_columns; i++) {
        struct frame_column *column = frame->columns[i];
        if (column->sums == FRAME_EXCLUSIVE || (column->sums == FRAME_PLAIN && column->remake))
            code = frame_add_column(to, column_changed(&upside.change, column), err);
    }
    change_fini(&upside.change);
    groups_drop(upside.ends);
    groups_drop(upside.none);
    free(none_of);
    return code;
}

/* The frame of chains; end_of gets their numbers in it. */
static int make_upside(const struct frame *frame, const uint32_t *ids, const struct chains *chains, uint32_t *end_of,
                       struct frame **result, struct error *err)
{
    uint32_t n = (uint32_t)chains->n, *old_of = NULL, *new_of = numbers(n), *first_of = numbers(n);
    struct edge_list edges = {0};
    struct frame_graph *graph = NULL;
    struct frame *made = NULL;
    bool ok = new_of && first_of;
    for (uint32_t i = 0; ok && i < n; i++)
        if (chains->items[i].parent != FRAME_NONE)
            ok = edges_add(&edges, chains->items[i].parent, i);
    int code = ok ? graph_make(n, edges.items, edges.n, &graph, &old_of, err) : error_memory(err);
    for (uint32_t i = 0; code == 0 && i < n; i++) {
        new_of[old_of[i]] = i;
        first_of[i] = chains->items[old_of[i]].node;
    }
    for (uint32_t i = 0; code == 0 && i < frame->graph->n; i++)
        end_of[i] = new_of[end_of[i]];
    if (code == 0) {
        made = frame_new(graph, choose_functions(frame, ids, first_of, n), profiles_keep(frame->profiles));
        code = made ? turn_columns(frame, end_of, made, err) : error_memory(err);
    }
    free(old_of);
    free(new_of);
    free(first_of);
    free(edges.items);
    if (code != 0)
        frame_close(made);
    else
        *result = made;
    return code;
}

int frame_bottom_up(const struct frame *frame, uint32_t max_depth, struct frame **result, struct error *err)
{
    uint32_t n = frame->graph->n, *owner_of = numbers(n), *end_of = numbers(n), *ids = function_ids(frame);
    struct chains chains = {0};
    int code = owner_of && end_of && ids ? 0 : error_memory(err);
    if (code == 0) {
        shape_owners(frame, owner_of);
        code = check_chains(frame, owner_of, max_depth, err);
    }
    if (code == 0)
        code = find_chains(frame, ids, owner_of, max_depth, &chains, end_of, err);
    if (code == 0)
        code = make_upside(frame, ids, &chains, end_of, result, err);
    free(ids);
    free(owner_of);
    free(end_of);
    free(chains.items);
    slots_fini(&chains.slots);
    return code;
}
