/* SPDX-License-Identifier: BSD-3-Clause */
/* A frame node by node: nodes and values in the order in which a file has them become sorted arrays at the end. */
#include "frame/make.h"

#include "base/path.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY ".so" /* ends the name of a shared library, before its version */

void maker_init(struct frame_maker *maker)
{
    *maker =
        (struct frame_maker){.nodes = calloc(1, sizeof *maker->nodes), .profiles = calloc(1, sizeof *maker->profiles)};
    struct frame_strings *strings = calloc(1, sizeof *strings);
    if (!maker->nodes || !maker->profiles || !strings || strtab_intern(&strings->table, "") != 0) {
        free(strings);
        maker->failed = true;
        return;
    }
    strings->n_owners = maker->nodes->n_owners = maker->profiles->n_owners = 1;
    maker->nodes->strings = strings;
}

static uint32_t intern(struct frame_maker *maker, const char *text)
{
    int64_t id = !text || !*text ? 0 : strtab_intern(&maker->nodes->strings->table, text);
    maker->failed |= id < 0;
    return id < 0 ? 0 : (uint32_t)id;
}

/* Makes room for one node more in every array of the nodes and their attributes; new elements are zero, numbers NAN. */
static bool reserve_node(struct frame_maker *maker)
{
    struct frame_nodes *nodes = maker->nodes;
    void *arrays[] = {&nodes->names, &nodes->files, &nodes->modules, &nodes->lines, &nodes->identities};
    size_t n = (size_t)nodes->n + 1, capacity = maker->cap_nodes;
    if (n <= capacity)
        return true;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        capacity = maker->cap_nodes;
        if (!vec_reserve(arrays[i], &capacity, n, sizeof(uint32_t)))
            return false;
    }
    size_t of_kinds = maker->cap_nodes;
    if (!vec_reserve(&nodes->kinds, &of_kinds, capacity, sizeof *nodes->kinds))
        return false;
    for (size_t i = 0; i < nodes->n_attributes; i++) {
        struct frame_attribute *attribute = &nodes->attributes[i];
        size_t of_attribute = maker->cap_nodes;
        if (attribute->texts ? !vec_reserve(&attribute->texts, &of_attribute, capacity, sizeof *attribute->texts)
                             : !vec_reserve(&attribute->numbers, &of_attribute, capacity, sizeof *attribute->numbers))
            return false;
        for (size_t k = maker->cap_nodes; attribute->numbers && k < capacity; k++)
            attribute->numbers[k] = NAN;
    }
    maker->cap_nodes = capacity;
    return true;
}

const char *made_node_library(const char *module, int *len)
{
    const char *name = path_last(module), *end = strstr(name, LIBRARY);
    size_t n = strlen(LIBRARY);
    while (end && end[n] && end[n] != '.')
        end = strstr(end + 1, LIBRARY);
    *len = end ? (int)(end - name) : 0;
    return name;
}

/* The end of an identity: the line of what is a place in the source, and else the library. */
static void put_end(const struct made_node *node, struct buf *out)
{
    int len = 0;
    const char *library = node->module && *node->module ? made_node_library(node->module, &len) : "";
    if (frame_kind_is_part(node->kind)) {
        buf_append(out, "\x1f", 1);
        buf_put_word(out, node->line);
    } else if (len && node->kind != FRAME_GROUP) {
        buf_append(out, "\x1f", 1);
        buf_append(out, library, (size_t)len);
    }
}

void made_node_put_identity(const struct made_node *node, struct buf *out)
{
    const char *parts[] = {frame_kind_name(node->kind), node->name, node->file};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (i)
            buf_append(out, "\x1f", 1);
        buf_append(out, parts[i] ? parts[i] : "", parts[i] ? strlen(parts[i]) : 0);
    }
    put_end(node, out);
}

static uint32_t identity_of(struct frame_maker *maker, const struct made_node *node)
{
    struct buf *text = &maker->text;
    if (node->identity)
        return intern(maker, node->identity);
    text->len_bytes = 0;
    made_node_put_identity(node, text);
    maker->failed |= text->failed;
    return text->failed ? 0 : intern(maker, text->data);
}

bool frame_identity_is_usual(const struct frame *frame, uint32_t node)
{
    struct made_node like = {.kind = frame_kind(frame, node),
                             .name = frame_name(frame, node),
                             .file = frame_file(frame, node),
                             .module = frame_module(frame, node),
                             .line = frame_line(frame, node)};
    const char *identity = frame_identity(frame, node), *parts[] = {frame_kind_name(like.kind), like.name, like.file};
    struct buf end = {0};
    for (size_t i = 0; i < 3; i++) {
        size_t n = strlen(parts[i]);
        if (strncmp(identity, parts[i], n) != 0)
            return false;
        identity += n;
        if (i < 2 && *identity++ != '\x1f')
            return false;
    }
    put_end(&like, &end);
    bool is_same = !end.failed && strcmp(identity, end.data ? end.data : "") == 0;
    buf_fini(&end);
    return is_same;
}

/* A line or loop lies in the module of the function around it, which formats do not repeat. */
static uint32_t module_of(struct frame_maker *maker, uint32_t parent, const struct made_node *node)
{
    bool is_within = node->kind == FRAME_LINE || node->kind == FRAME_LOOP;
    if (is_within && !(node->module && *node->module) && parent != FRAME_NONE)
        return maker->nodes->modules[parent];
    return intern(maker, node->module);
}

uint32_t maker_node(struct frame_maker *maker, uint32_t parent, const struct made_node *node)
{
    struct frame_nodes *nodes = maker->nodes;
    if (maker->failed || nodes->n == FRAME_NONE - 1 || !reserve_node(maker)) {
        maker->failed = true;
        return 0;
    }
    uint32_t number = nodes->n++;
    nodes->kinds[number] = (uint8_t)node->kind;
    nodes->names[number] = intern(maker, node->name);
    nodes->files[number] = intern(maker, node->file);
    nodes->modules[number] = module_of(maker, parent, node);
    nodes->lines[number] = node->line;
    nodes->identities[number] = identity_of(maker, node);
    if (parent != FRAME_NONE)
        maker_edge(maker, parent, number);
    return number;
}

void maker_edge(struct frame_maker *maker, uint32_t parent, uint32_t child)
{
    if (maker->failed || !vec_reserve(&maker->edges, &maker->cap_edges, maker->n_edges + 1, sizeof *maker->edges)) {
        maker->failed = true;
        return;
    }
    maker->edges[maker->n_edges++] = (struct frame_edge){parent, child};
}

/* The attribute of this name, added when new; NULL when out of memory, or when it is of the other type. */
static struct frame_attribute *attribute_of(struct frame_maker *maker, const char *name, bool is_text)
{
    struct frame_nodes *nodes = maker->nodes;
    for (size_t i = 0; !maker->failed && i < nodes->n_attributes; i++)
        if (strcmp(nodes->attributes[i].name, name) == 0)
            return is_text == (nodes->attributes[i].texts != NULL) ? &nodes->attributes[i] : NULL;
    if (maker->failed ||
        !vec_reserve(&nodes->attributes, &nodes->cap_attributes, nodes->n_attributes + 1, sizeof *nodes->attributes)) {
        maker->failed = true;
        return NULL;
    }
    struct frame_attribute *made = &nodes->attributes[nodes->n_attributes];
    *made = (struct frame_attribute){.name = strdup(name)};
    size_t n = maker->cap_nodes ? maker->cap_nodes : 1;
    if (is_text)
        made->texts = calloc(n, sizeof *made->texts);
    else
        made->numbers = malloc(n * sizeof *made->numbers);
    for (size_t i = 0; made->numbers && i < n; i++)
        made->numbers[i] = NAN;
    if (!made->name || (!made->texts && !made->numbers)) {
        free(made->name);
        free(made->texts);
        free(made->numbers);
        maker->failed = true;
        return NULL;
    }
    nodes->n_attributes++;
    return made;
}

void maker_text(struct frame_maker *maker, const char *attribute, uint32_t node, const char *text)
{
    struct frame_attribute *of = attribute_of(maker, attribute, true);
    if (of && of->texts)
        of->texts[node] = intern(maker, text);
}

void maker_number(struct frame_maker *maker, const char *attribute, uint32_t node, double number)
{
    struct frame_attribute *of = attribute_of(maker, attribute, false);
    if (of && of->numbers)
        of->numbers[node] = number;
}

uint32_t maker_profile(struct frame_maker *maker, const struct frame_profile *profile)
{
    struct frame_profiles *profiles = maker->profiles;
    char *name = maker->failed ? NULL : strdup(profile->name ? profile->name : "");
    if (!name || !vec_reserve(&profiles->items, &profiles->capacity, profiles->n + 1, sizeof *profiles->items)) {
        free(name);
        maker->failed = true;
        return 0;
    }
    profiles->items[profiles->n] = *profile;
    profiles->items[profiles->n].name = name;
    return (uint32_t)profiles->n++;
}

size_t maker_column(struct frame_maker *maker, const char *name, enum frame_sums sums)
{
    char *copy = maker->failed ? NULL : strdup(name);
    if (!copy || !vec_reserve(&maker->columns, &maker->cap_columns, maker->n_columns + 1, sizeof *maker->columns)) {
        free(copy);
        maker->failed = true;
        return 0;
    }
    maker->columns[maker->n_columns] = (struct made_column){.name = copy, .sums = sums};
    return maker->n_columns++;
}

void maker_value(struct frame_maker *maker, size_t column, uint32_t node, uint32_t profile, double value)
{
    struct made_column *of = maker->failed ? NULL : &maker->columns[column];
    if (isnan(value))
        return;
    if (!of || !vec_reserve(&of->values, &of->cap_values, of->n_values + 1, sizeof *of->values)) {
        maker->failed = true;
        return;
    }
    of->values[of->n_values++] = (struct made_value){node, profile, value};
}

static int compare_values(const void *a, const void *b)
{
    const struct made_value *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return x->profile < y->profile ? -1 : x->profile > y->profile;
}

/* Puts the values of a column in order: by node and profile, one for each. */
static struct frame_column *sort_column(struct made_column *from, const uint32_t *new_of, uint32_t n_nodes,
                                        uint32_t n_profiles)
{
    bool is_sorted = true;
    size_t n = 0;
    for (size_t i = 0; i < from->n_values; i++) {
        from->values[i].node = new_of[from->values[i].node];
        is_sorted &= i == 0 || compare_values(&from->values[i - 1], &from->values[i]) <= 0;
    }
    if (!is_sorted)
        qsort(from->values, from->n_values, sizeof *from->values, compare_values);
    uint64_t *starts = calloc((size_t)n_nodes + 1, sizeof *starts);
    struct frame_cell *cells = malloc((from->n_values ? from->n_values : 1) * sizeof *cells);
    if (!starts || !cells) {
        free(starts);
        free(cells);
        return NULL;
    }
    for (size_t i = 0; i < from->n_values; i++) {
        const struct made_value *value = &from->values[i];
        if (i > 0 && compare_values(value - 1, value) == 0) {
            cells[n - 1].value += value->value;
            continue;
        }
        cells[n++] = (struct frame_cell){value->profile, value->value};
        starts[value->node + 1]++;
    }
    for (uint32_t i = 0; i < n_nodes; i++)
        starts[i + 1] += starts[i];
    struct frame_column *column = column_stored(from->name, from->sums, n_nodes, n_profiles, starts, cells);
    if (column)
        column->is_hidden = from->is_hidden;
    return column;
}

/* Whether the nodes are in pre-order already, each below one parent: the most frequent case. parents [n] is filled. */
static bool is_tree_in_order(const struct frame_maker *maker, uint32_t *parents)
{
    uint32_t n = maker->nodes->n, last = FRAME_NONE;
    memset(parents, 0xff, n * sizeof *parents);
    for (size_t i = 0; i < maker->n_edges; i++) {
        uint32_t child = maker->edges[i].child, parent = maker->edges[i].parent;
        if (parent >= child || parents[child] != FRAME_NONE || (i > 0 && child <= maker->edges[i - 1].child))
            return false;
        parents[child] = parent;
    }
    for (uint32_t i = 0; i < n; i++) { /* the parent is on the path to the node before */
        while (last != FRAME_NONE && last != parents[i])
            last = parents[last];
        if (last != parents[i])
            return false;
        last = i;
    }
    return true;
}

static int make_graph(const struct frame_maker *maker, struct frame_graph **graph, uint32_t **old_of, struct error *err)
{
    uint32_t n = maker->nodes->n;
    uint32_t *parents = malloc((n ? n : 1) * sizeof *parents);
    if (!parents)
        return error_memory(err);
    int code = 0;
    *old_of = NULL;
    if (is_tree_in_order(maker, parents))
        code = graph_make_tree(n, parents, graph, err);
    else
        code = graph_make(n, maker->edges, maker->n_edges, graph, old_of, err);
    free(parents);
    return code;
}

/* The frame of the parts, which it takes over. old_of NULL: the nodes keep their numbers. */
static int put_together(struct frame_maker *maker, struct frame_graph *graph, const uint32_t *old_of, uint32_t *new_of,
                        struct frame **frame, struct error *err)
{
    struct frame_nodes *nodes = old_of ? nodes_choose(maker->nodes, old_of, graph->n) : nodes_keep(maker->nodes);
    struct frame *made = frame_new(graph, nodes, profiles_keep(maker->profiles));
    int code = made ? 0 : error_memory(err);
    for (uint32_t i = 0; i < maker->nodes->n; i++)
        new_of[old_of ? old_of[i] : i] = i;
    for (size_t i = 0; code == 0 && i < maker->n_columns; i++)
        code = frame_add_column(
            made, sort_column(&maker->columns[i], new_of, maker->nodes->n, (uint32_t)maker->profiles->n), err);
    if (code != 0)
        frame_close(made);
    else
        *frame = made;
    return code;
}

int frame_made(struct frame_maker *maker, struct frame **frame, uint32_t **new_of, struct error *err)
{
    static const struct frame_profile nowhere = {"", -1, -1, -1, -1};
    struct frame_graph *graph = NULL;
    uint32_t *old_of = NULL, *numbers = NULL;
    if (!maker->failed && maker->profiles->n == 0)
        (void)maker_profile(maker, &nowhere);
    if (!maker->failed && maker->nodes->n == 0) /* also a frame without nodes has arrays to copy from */
        maker->failed = !reserve_node(maker);
    if (!maker->failed)
        numbers = malloc((maker->nodes->n ? maker->nodes->n : 1) * sizeof *numbers);
    int code = numbers ? make_graph(maker, &graph, &old_of, err) : error_memory(err);
    if (code == 0)
        code = put_together(maker, graph, old_of, numbers, frame, err);
    if (code == 0 && new_of) {
        *new_of = numbers;
        numbers = NULL;
    }
    free(numbers);
    free(old_of);
    maker_fini(maker);
    return code;
}

void maker_fini(struct frame_maker *maker)
{
    for (size_t i = 0; i < maker->n_columns; i++) {
        free(maker->columns[i].name);
        free(maker->columns[i].values);
    }
    free(maker->columns);
    free(maker->edges);
    buf_fini(&maker->text);
    nodes_drop(maker->nodes);
    profiles_drop(maker->profiles);
    *maker = (struct frame_maker){.failed = true};
}
