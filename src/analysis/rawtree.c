/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of merged nodes. */
#include "analysis/rawtree.h"

#include <stdlib.h>
#include <string.h>

/* A node to be placed. */
struct item {
    uint64_t ip;
    uint32_t parent, rank, id; /* parent and id in the store; rank of the module's path */
};

struct ordering {
    const struct raw_store *store;
    struct item *items; /* [n] */
    size_t n;
    uint32_t *ranks;   /* [modules + 1] of a module of the store, by path */
    uint32_t *modules; /* [modules + 1] symbolizer id */
    uint32_t *first;   /* [n_ids] first item below the node with this id, RAW_NONE for none */
};

void raw_tree_fini(struct raw_tree *tree)
{
    free(tree->nodes);
    free(tree->index_of);
    memset(tree, 0, sizeof *tree);
}

static int compare_paths(const void *a, const void *b, void *context)
{
    char **paths = context;
    return strcmp(paths[*(const uint32_t *)a], paths[*(const uint32_t *)b]);
}

static bool rank_modules(struct ordering *o, struct symbolizer *symbolizer)
{
    const struct strtab *paths = &o->store->modules;
    size_t n = paths->n_strings;
    uint32_t *order = calloc(n + 1, sizeof *order);
    o->ranks = calloc(n + 1, sizeof *o->ranks);
    o->modules = calloc(n + 1, sizeof *o->modules);
    bool ok = order && o->ranks && o->modules;
    for (uint32_t i = 0; ok && i < n; i++)
        order[i] = i;
    if (ok && n > 1)
        qsort_r(order, n, sizeof *order, compare_paths, paths->strings);
    for (uint32_t i = 0; ok && i < n; i++) {
        o->ranks[order[i] + 1] = i + 1;
        o->modules[order[i] + 1] = symbolizer_module(symbolizer, paths->strings[order[i]]);
        ok = o->modules[order[i] + 1] != 0;
    }
    free(order);
    return ok;
}

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->ip < y->ip ? -1 : x->ip > y->ip;
}

/* Lists the live nodes, sorted by their parents' ids and then by key. */
static bool list_items(struct ordering *o, struct raw_tree *tree)
{
    size_t n = 0;
    for (uint32_t s = 0; s < RAW_SHARDS; s++) {
        size_t end = (size_t)raw_store_count(o->store, s) * RAW_SHARDS;
        n += raw_store_count(o->store, s);
        tree->n_ids = end > tree->n_ids ? end : tree->n_ids;
    }
    o->items = calloc(n + 1, sizeof *o->items);
    for (uint32_t s = 0; o->items && s < RAW_SHARDS; s++)
        for (uint32_t i = 0; i < raw_store_count(o->store, s); i++) {
            uint32_t id = i * RAW_SHARDS + s;
            const struct raw_entry *entry = raw_store_entry(o->store, id);
            if (entry->flags & RAW_IS_LIVE)
                o->items[o->n++] = (struct item){entry->ip, entry->parent, o->ranks[entry->module], id};
        }
    if (o->items && o->n > 1)
        qsort(o->items, o->n, sizeof *o->items, compare_items);
    return o->items != NULL;
}

/* Appends the items from `at` on that have this parent. */
static void place_children(const struct ordering *o, struct raw_tree *tree, size_t at, uint32_t parent, uint32_t above)
{
    for (; at < o->n && o->items[at].parent == parent; at++) {
        const struct raw_entry *entry = raw_store_entry(o->store, o->items[at].id);
        tree->index_of[o->items[at].id] = (uint32_t)tree->n_nodes;
        tree->nodes[tree->n_nodes++] = (struct raw_node){.ip = entry->ip,
                                                         .parent = above,
                                                         .module = o->modules[entry->module],
                                                         .type = entry->flags & 0xffff,
                                                         .has_values = entry->flags & RAW_HAS_VALUES,
                                                         .is_traced = entry->flags & RAW_IS_TRACED,
                                                         .variable = RAW_NONE};
        if (above != RAW_NONE)
            tree->nodes[above].has_children = true;
    }
}

/* Level by level. ids [n]: of the nodes placed. */
static void place(const struct ordering *o, struct raw_tree *tree, uint32_t *ids)
{
    size_t root = 0; /* its parent's id sorts last */
    while (root < o->n && o->items[root].parent != RAW_NONE)
        root++;
    place_children(o, tree, root, RAW_NONE, RAW_NONE);
    if (tree->n_nodes)
        ids[0] = o->items[root].id;
    for (size_t i = 0; i < tree->n_nodes; i++) {
        size_t first = o->first[ids[i]], before = tree->n_nodes;
        if (first == RAW_NONE)
            continue;
        place_children(o, tree, first, ids[i], (uint32_t)i);
        for (size_t k = before; k < tree->n_nodes; k++)
            ids[k] = o->items[first + k - before].id;
    }
}

static bool arrange(struct ordering *o, struct raw_tree *tree)
{
    uint32_t *ids = calloc(o->n + 1, sizeof *ids);
    o->first = malloc((tree->n_ids + 1) * sizeof *o->first);
    tree->index_of = malloc((tree->n_ids + 1) * sizeof *tree->index_of);
    tree->nodes = calloc(o->n + 1, sizeof *tree->nodes);
    bool ok = ids && o->first && tree->index_of && tree->nodes;
    if (ok) {
        memset(o->first, 0xff, (tree->n_ids + 1) * sizeof *o->first);
        memset(tree->index_of, 0xff, (tree->n_ids + 1) * sizeof *tree->index_of);
        for (size_t i = o->n; i-- > 0;)
            if (o->items[i].parent != RAW_NONE)
                o->first[o->items[i].parent] = (uint32_t)i;
        place(o, tree, ids);
    }
    free(ids);
    return ok;
}

int raw_tree_make(const struct raw_store *store, struct symbolizer *symbolizer, struct raw_tree *tree,
                  struct error *err)
{
    struct ordering o = {.store = store};
    memset(tree, 0, sizeof *tree);
    bool ok = rank_modules(&o, symbolizer) && list_items(&o, tree) && arrange(&o, tree);
    free(o.items);
    free(o.ranks);
    free(o.modules);
    free(o.first);
    if (ok)
        return 0;
    raw_tree_fini(tree);
    return error_set(err, ERR_MEMORY, "out of memory for the call tree");
}
