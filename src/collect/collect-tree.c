/* SPDX-License-Identifier: BSD-3-Clause */
/* The tree of a profile while it is built: children found by hash, values as raw sums. Ordinary code. */
#include <stdlib.h>

#include "collect/collect-internal.h"

static uint32_t hash_of(uint32_t parent, uint16_t module, uint64_t ip)
{
    uint64_t hash = (ip ^ (uint64_t)module << 48) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 29 ^ parent) * 0xbf58476d1ce4e5b9u;
    return (uint32_t)(hash >> 28);
}

static void put_slot(struct tree_slot *slots, size_t n_slots, struct tree_slot entry)
{
    size_t slot = entry.hash & (n_slots - 1);
    while (slots[slot].node)
        slot = (slot + 1) & (n_slots - 1);
    slots[slot] = entry;
}

static bool grow_slots(struct tree *tree)
{
    if (tree->n_nodes * 2 < tree->n_slots)
        return true;
    size_t n_slots = tree->n_slots ? tree->n_slots * 2 : 1024;
    struct tree_slot *slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < tree->n_slots; i++)
        if (tree->slots[i].node)
            put_slot(slots, n_slots, tree->slots[i]);
    free(tree->slots);
    tree->slots = slots;
    tree->n_slots = n_slots;
    return true;
}

static uint32_t add_node(struct tree *tree, const struct tree_node *node)
{
    if (tree->n_nodes >= INT32_MAX || !grow_slots(tree) ||
        !vec_reserve(&tree->nodes, &tree->cap_nodes, tree->n_nodes + 1, sizeof *tree->nodes)) {
        tree->failed = true;
        return TREE_NONE;
    }
    tree->nodes[tree->n_nodes] = *node;
    return (uint32_t)tree->n_nodes++;
}

void tree_init(struct tree *tree, size_t n_metrics)
{
    *tree = (struct tree){.n_metrics = n_metrics};
    (void)add_node(tree, &(struct tree_node){0});
    (void)tree_child(tree, TREE_ROOT, 0, 1, 0);
}

void tree_fini(struct tree *tree)
{
    free(tree->nodes);
    free(tree->values);
    free(tree->slots);
    *tree = (struct tree){0};
}

uint32_t tree_child(struct tree *tree, uint32_t parent, uint16_t module, uint64_t ip, uint32_t type)
{
    if (parent >= tree->n_nodes)
        return TREE_NONE;
    uint32_t hash = hash_of(parent, module, ip);
    for (size_t slot = hash & (tree->n_slots - 1); tree->slots[slot].node; slot = (slot + 1) & (tree->n_slots - 1)) {
        struct tree_node *node = &tree->nodes[tree->slots[slot].node - 1];
        if (tree->slots[slot].hash == hash && node->parent == parent && node->module == module && node->ip == ip) {
            node->type |= (uint16_t)type;
            return tree->slots[slot].node - 1;
        }
    }
    struct tree_node node = {.parent = parent, .module = module, .type = (uint16_t)type, .ip = ip};
    uint32_t index = add_node(tree, &node);
    if (index != TREE_NONE) {
        put_slot(tree->slots, tree->n_slots, (struct tree_slot){.hash = hash, .node = index + 1});
        tree->nodes[parent].has_child = true;
    }
    return index;
}

void tree_add(struct tree *tree, uint32_t node, int metric, uint64_t value)
{
    if (node >= tree->n_nodes || metric < 0 || !value)
        return;
    if (!tree->nodes[node].row) {
        size_t n_values = (tree->n_rows + 1) * tree->n_metrics;
        if (!vec_reserve(&tree->values, &tree->cap_values, n_values, sizeof *tree->values)) {
            tree->failed = true;
            return;
        }
        tree->nodes[node].row = (uint32_t)++tree->n_rows;
    }
    tree->values[(tree->nodes[node].row - 1) * tree->n_metrics + (size_t)metric] += value;
}

const uint64_t *tree_values(const struct tree *tree, uint32_t node)
{
    uint32_t row = tree->nodes[node].row;
    return row ? &tree->values[(row - 1) * tree->n_metrics] : NULL;
}
