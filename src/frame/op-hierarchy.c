/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost hierarchy: what belongs to what, whoever called it. Lines belong to functions, these to files and modules;
 * blocks to variables, these to classes. A formula is inherited: at every level it is computed of the sums there. */
#include "frame/ops.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "frame/op-shape.h"

#define MAX_LEVELS 8

/* What a level is, beside the value of an attribute. */
enum level_kind { LEVEL_ATTRIBUTE, LEVEL_FUNCTION, LEVEL_LINE, LEVEL_INSTRUCTION };

struct level {
    char *name;
    enum level_kind kind;
    uint32_t *keys;     /* [n_nodes] ids of texts; 0: the node is in no group of this level */
    uint32_t *group_of; /* [n_nodes] FRAME_NONE: none */
};

/* A group of the result. */
struct group {
    uint32_t parent, key, level;
    uint32_t first; /* node */
};

struct hierarchy {
    struct column_change change; /* first: the callback gets it */
    const struct frame *from;
    struct level levels[MAX_LEVELS];
    size_t n_levels;
    uint32_t *owner_of; /* [n_nodes] the function around, or the node itself */
    struct group *groups;
    size_t n_groups, cap_groups;
    struct slots slots;
    struct node_groups *all, *outer; /* the members of each group; those without another one above them */
};

static uint32_t *numbers(size_t n)
{
    return malloc((n ? n : 1) * sizeof(uint32_t));
}

static uint64_t hash_group(const void *item)
{
    const struct group *group = item;
    uint64_t mixed = ((uint64_t)group->parent << 32 | group->key) * 0x9e3779b97f4a7c15u + group->level;
    return mixed ^ mixed >> 32;
}

static bool is_same_group(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    return x->parent == y->parent && x->key == y->key && x->level == y->level;
}

static const struct slots_kind group_kind = {sizeof(struct group), hash_group, is_same_group};

/* --- levels --- */

/* Splits the names of levels, which blanks separate. */
static int take_levels(struct hierarchy *hierarchy, const char *text, struct error *err)
{
    for (const char *at = text + strspn(text, " "); *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        if (hierarchy->n_levels == MAX_LEVELS)
            return error_set(err, ERR_USAGE, "a hierarchy has at most %d levels", MAX_LEVELS);
        struct level *level = &hierarchy->levels[hierarchy->n_levels++];
        level->name = strndup(at, len);
        level->keys = numbers(hierarchy->from->graph->n);
        level->group_of = numbers(hierarchy->from->graph->n);
        if (!level->name || !level->keys || !level->group_of)
            return error_memory(err);
        level->kind = strcmp(level->name, "function") == 0      ? LEVEL_FUNCTION
                      : strcmp(level->name, "line") == 0        ? LEVEL_LINE
                      : strcmp(level->name, "instruction") == 0 ? LEVEL_INSTRUCTION
                                                                : LEVEL_ATTRIBUTE;
        at += len;
    }
    return hierarchy->n_levels ? 0 : error_set(err, ERR_USAGE, "a hierarchy needs a level, such as function");
}

/* The key of a node by its place: the function around it, its line, or itself. */
static uint32_t key_of_place(const struct hierarchy *hierarchy, const struct level *level, uint32_t node,
                             struct buf *text)
{
    const struct frame_nodes *nodes = hierarchy->from->nodes;
    uint32_t owner = hierarchy->owner_of[node];
    uint8_t kind = nodes->kinds[node];
    if (level->kind == LEVEL_FUNCTION)
        return frame_kind_is_part(nodes->kinds[owner]) ? 0 : nodes->identities[owner];
    if (level->kind == LEVEL_INSTRUCTION)
        return kind == FRAME_INSTRUCTION ? nodes->identities[node] : 0;
    if (!frame_kind_is_part(kind) || kind == FRAME_LOOP || nodes->lines[node] == 0)
        return 0;
    text->len_bytes = 0;
    buf_printf(text, "%s:%u", path_last(nodes->strings->table.strings[nodes->files[node]]), nodes->lines[node]);
    int64_t id = text->failed ? -1 : strtab_intern(&nodes->strings->table, text->data);
    return id < 0 ? FRAME_NONE : (uint32_t)id;
}

static int find_level(struct hierarchy *hierarchy, struct level *level, struct error *err)
{
    struct buf text = {0};
    bool ok = true;
    if (level->kind == LEVEL_ATTRIBUTE)
        return shape_keys(hierarchy->from, level->name, level->keys, err);
    for (uint32_t i = 0; ok && i < hierarchy->from->graph->n; i++) {
        level->keys[i] = key_of_place(hierarchy, level, i, &text);
        ok = level->keys[i] != FRAME_NONE;
    }
    buf_fini(&text);
    return ok ? 0 : error_memory(err);
}

/* --- groups --- */

/* The group of a node at a level, below that of the level before; made when it is new. FRAME_NONE when out of memory.
 */
static uint32_t group_at(struct hierarchy *hierarchy, uint32_t parent, size_t level, uint32_t node)
{
    struct group like = {parent, hierarchy->levels[level].keys[node], (uint32_t)level, node};
    size_t at = slots_put(&hierarchy->slots, &group_kind, &hierarchy->groups, &hierarchy->n_groups,
                          &hierarchy->cap_groups, &like);
    return at == SLOTS_NONE ? FRAME_NONE : (uint32_t)at;
}

static int find_groups(struct hierarchy *hierarchy, struct error *err)
{
    for (uint32_t node = 0; node < hierarchy->from->graph->n; node++) {
        uint32_t parent = FRAME_NONE;
        for (size_t i = 0; i < hierarchy->n_levels; i++) {
            struct level *level = &hierarchy->levels[i];
            level->group_of[node] = FRAME_NONE;
            if (level->keys[node] == 0)
                continue;
            parent = level->group_of[node] = group_at(hierarchy, parent, i, node);
            if (parent == FRAME_NONE)
                return error_memory(err);
        }
    }
    return 0;
}

/* The graph of the groups, by whose numbers they are from then on. *order [n_groups] gets the old ones. */
static int make_graph(struct hierarchy *hierarchy, struct frame_graph **graph, uint32_t **order, struct error *err)
{
    struct edge_list edges = {0};
    uint32_t n = (uint32_t)hierarchy->n_groups, *new_of = numbers(n);
    bool ok = new_of;
    for (uint32_t i = 0; ok && i < n; i++)
        if (hierarchy->groups[i].parent != FRAME_NONE)
            ok = edges_add(&edges, hierarchy->groups[i].parent, i);
    int code = ok ? graph_make(n, edges.items, edges.n, graph, order, err) : error_memory(err);
    for (uint32_t i = 0; code == 0 && i < n; i++)
        new_of[(*order)[i]] = i;
    for (size_t i = 0; code == 0 && i < hierarchy->n_levels; i++)
        for (uint32_t node = 0; node < hierarchy->from->graph->n; node++)
            if (hierarchy->levels[i].group_of[node] != FRAME_NONE)
                hierarchy->levels[i].group_of[node] = new_of[hierarchy->levels[i].group_of[node]];
    free(edges.items);
    free(new_of);
    return code;
}

/* --- what the groups are --- */

/* A group that a node of its own stands for: an attribute's value, or a line. */
static void name_group(const struct hierarchy *hierarchy, const struct group *group, struct frame_nodes *nodes,
                       uint32_t i)
{
    const struct level *level = &hierarchy->levels[group->level];
    bool is_line = level->kind == LEVEL_LINE, is_file = strcmp(level->name, "file") == 0;
    if (level->kind != LEVEL_ATTRIBUTE && !is_line)
        return;
    nodes->names[i] = nodes->identities[i] = group->key;
    if (is_line) {
        nodes->kinds[i] = FRAME_LINE;
        return;
    }
    nodes->kinds[i] = strcmp(level->name, "variable") == 0 ? FRAME_VARIABLE : FRAME_GROUP;
    nodes->files[i] = is_file ? group->key : 0;
    nodes->modules[i] = strcmp(level->name, "module") == 0 || is_file ? nodes->modules[i] : 0;
    nodes->lines[i] = 0;
}

/* The nodes of the groups in order. NULL when out of memory. */
static struct frame_nodes *make_nodes(const struct hierarchy *hierarchy, const uint32_t *order)
{
    uint32_t n = (uint32_t)hierarchy->n_groups, *first_of = numbers(n);
    struct frame_nodes *nodes = NULL;
    for (uint32_t i = 0; first_of && i < n; i++) {
        const struct group *group = &hierarchy->groups[order[i]];
        bool is_function = hierarchy->levels[group->level].kind == LEVEL_FUNCTION;
        first_of[i] = is_function ? hierarchy->owner_of[group->first] : group->first;
    }
    if (first_of)
        nodes = nodes_choose(hierarchy->from->nodes, first_of, n);
    for (uint32_t i = 0; nodes && i < n; i++)
        name_group(hierarchy, &hierarchy->groups[order[i]], nodes, i);
    free(first_of);
    return nodes;
}

/* --- columns --- */

/* The members of all levels together. is_outer: those alone that have no node of the same group above them. */
static struct node_groups *make_members(const struct hierarchy *hierarchy, bool is_outer, struct error *err)
{
    uint32_t n = hierarchy->from->graph->n, n_groups = (uint32_t)hierarchy->n_groups, *outer_of = numbers(n);
    struct node_groups *parts[MAX_LEVELS] = {NULL}, *made = NULL;
    bool ok = outer_of;
    for (size_t i = 0; ok && i < hierarchy->n_levels; i++) {
        const uint32_t *group_of = hierarchy->levels[i].group_of;
        ok = !is_outer || shape_outermost(hierarchy->from->graph, group_of, n_groups, outer_of, err) == 0;
        parts[i] = ok ? groups_of(is_outer ? outer_of : group_of, n, n_groups) : NULL;
        ok = parts[i];
    }
    if (ok)
        made = groups_joined(parts, hierarchy->n_levels);
    for (size_t i = 0; i < hierarchy->n_levels; i++)
        groups_drop(parts[i]);
    free(outer_of);
    return made;
}

/* Costs of the nodes alone become sums, which include those of the levels below. What a call costs belongs to caller
 * and callee: it does not add up over groups. */
static struct frame_column *change_column(struct column_change *change, struct frame_column *column)
{
    const struct hierarchy *hierarchy = (const struct hierarchy *)change;
    const struct frame *from = hierarchy->from;
    struct frame_column *made, *own = NULL;
    for (size_t i = 0, pair; i < from->n_columns; i++)
        if (from->columns[i] == column && (pair = frame_column_pair(from, i)) != SIZE_MAX)
            own = from->columns[pair];
    if (column->sums == FRAME_EXCLUSIVE)
        made = column_grouped(column, hierarchy->all);
    else if (column->sums == FRAME_INCLUSIVE && from->graph->is_tree)
        made = column_grouped(column, hierarchy->outer);
    else if (column->sums == FRAME_INCLUSIVE && own)
        made = column_reached(own, from->graph, hierarchy->all, column->name);
    else
        made = column_sole(column, hierarchy->all);
    if (made)
        made->sums = column->sums == FRAME_EXCLUSIVE ? FRAME_INCLUSIVE : FRAME_PLAIN;
    if (made)
        made->is_hidden = column->is_hidden;
    return made;
}

static int make_frame(struct hierarchy *hierarchy, struct frame **result, struct error *err)
{
    struct frame_graph *graph = NULL;
    uint32_t *order = NULL;
    int code = make_graph(hierarchy, &graph, &order, err);
    if (code != 0)
        return code;
    struct frame_nodes *nodes = make_nodes(hierarchy, order);
    struct frame *made = frame_new(graph, nodes, profiles_keep(hierarchy->from->profiles));
    free(order);
    if (!made)
        return error_memory(err);
    hierarchy->change = (struct column_change){
        .of = change_column, .graph = graph, .nodes = nodes, .profiles = hierarchy->from->profiles};
    hierarchy->all = make_members(hierarchy, false, err);
    hierarchy->outer = hierarchy->from->graph->is_tree ? make_members(hierarchy, true, err) : NULL;
    if (!hierarchy->all || (hierarchy->from->graph->is_tree && !hierarchy->outer))
        code = error_memory(err);
    for (size_t i = 0; code == 0 && i < hierarchy->from->n_columns; i++)
        code = frame_add_column(made, column_changed(&hierarchy->change, hierarchy->from->columns[i]), err);
    if (code != 0)
        frame_close(made);
    else
        *result = made;
    return code;
}

int frame_hierarchy(const struct frame *frame, const char *levels, struct frame **result, struct error *err)
{
    struct hierarchy hierarchy = {.from = frame, .owner_of = numbers(frame->graph->n)};
    int code = hierarchy.owner_of ? take_levels(&hierarchy, levels, err) : error_memory(err);
    if (code == 0)
        shape_owners(frame, hierarchy.owner_of);
    for (size_t i = 0; code == 0 && i < hierarchy.n_levels; i++)
        code = find_level(&hierarchy, &hierarchy.levels[i], err);
    if (code == 0)
        code = find_groups(&hierarchy, err);
    if (code == 0 && hierarchy.n_groups == 0)
        code = error_set(err, ERR_NOT_FOUND, "no node has one of the levels '%.200s'", levels);
    if (code == 0)
        code = make_frame(&hierarchy, result, err);
    for (size_t i = 0; i < hierarchy.n_levels; i++) {
        free(hierarchy.levels[i].name);
        free(hierarchy.levels[i].keys);
        free(hierarchy.levels[i].group_of);
    }
    change_fini(&hierarchy.change);
    groups_drop(hierarchy.all);
    groups_drop(hierarchy.outer);
    free(hierarchy.owner_of);
    free(hierarchy.groups);
    slots_fini(&hierarchy.slots);
    return code;
}
