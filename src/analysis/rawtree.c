/* SPDX-License-Identifier: BSD-3-Clause */
/* Merging of profiles by address. */
#include "analysis/rawtree.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

void raw_fini(struct raw_tree *tree)
{
    free(tree->nodes);
    free(tree->slots);
    memset(tree, 0, sizeof *tree);
}

static size_t slot_of(const struct raw_tree *tree, uint32_t parent, uint32_t module, uint64_t ip)
{
    uint64_t hash = (ip ^ (uint64_t)module << 40) * 0x9e3779b97f4a7c15u + parent * 0xff51afd7ed558ccdu;
    size_t slot = (size_t)(hash ^ hash >> 29) & (tree->n_slots - 1);
    for (; tree->slots[slot]; slot = (slot + 1) & (tree->n_slots - 1)) {
        const struct raw_node *node = &tree->nodes[tree->slots[slot] - 1];
        if (node->parent == parent && node->module == module && node->ip == ip)
            break;
    }
    return slot;
}

static bool grow_slots(struct raw_tree *tree)
{
    if (tree->n_nodes * 2 < tree->n_slots)
        return true;
    size_t n_slots = tree->n_slots ? tree->n_slots * 2 : 4096;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return false;
    free(tree->slots);
    tree->slots = slots;
    tree->n_slots = n_slots;
    for (size_t i = 0; i < tree->n_nodes; i++) {
        const struct raw_node *node = &tree->nodes[i];
        tree->slots[slot_of(tree, node->parent, node->module, node->ip)] = (uint32_t)i + 1;
    }
    return true;
}

/* The child of parent with this key, added when new; RAW_NONE when out of memory. */
static uint32_t find_or_add(struct raw_tree *tree, uint32_t parent, uint32_t module, uint64_t ip)
{
    if (!grow_slots(tree))
        return RAW_NONE;
    size_t slot = slot_of(tree, parent, module, ip);
    if (tree->slots[slot])
        return tree->slots[slot] - 1;
    if (!vec_reserve(&tree->nodes, &tree->cap_nodes, tree->n_nodes + 1, sizeof *tree->nodes))
        return RAW_NONE;
    uint32_t index = (uint32_t)tree->n_nodes++;
    tree->nodes[index] =
        (struct raw_node){.ip = ip, .parent = parent, .module = module, .variable = RAW_NONE};
    tree->slots[slot] = index + 1;
    if (parent != RAW_NONE)
        tree->nodes[parent].has_children = true;
    return index;
}

static uint32_t absolute(int32_t id)
{
    return id < 0 ? 0u - (uint32_t)id : (uint32_t)id;
}

static int compare_ids(const void *a, const void *b)
{
    const struct raw_id *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static const struct raw_id *find_entry(const struct raw_id *ids, size_t n, uint32_t id)
{
    struct raw_id key = {.id = id};
    return n ? bsearch(&key, ids, n, sizeof key, compare_ids) : NULL;
}

uint32_t raw_find_id(const struct raw_id *ids, size_t n, uint32_t id)
{
    const struct raw_id *entry = find_entry(ids, n, id);
    return entry ? entry->node : RAW_NONE;
}

/* Fills ids with the profile's own node indices, sorted, after checking that they form one tree. */
static int check_tree(const struct hpcrun_profile *profile, const char *name, struct raw_id *ids, struct error *err)
{
    size_t n = profile->n_nodes, n_roots = 0;
    for (size_t i = 0; i < n; i++)
        ids[i] = (struct raw_id){.id = absolute(profile->nodes[i].id), .node = (uint32_t)i};
    if (n)
        qsort(ids, n, sizeof *ids, compare_ids);
    for (size_t i = 1; i < n; i++)
        if (ids[i].id == ids[i - 1].id)
            return error_set(err, ERR_FORMAT, "%s: two call-tree nodes have the id %u", name, ids[i].id);
    for (size_t i = 0; i < n; i++) {
        const struct hpcrun_node *node = &profile->nodes[i];
        const struct raw_id *parent = node->parent ? find_entry(ids, n, absolute(node->parent)) : NULL;
        n_roots += node->parent == 0;
        if (node->parent && (!parent || parent->node >= i))
            return error_set(err, ERR_FORMAT, "%s: call-tree node %d comes before its parent %d, or that is missing",
                             name, node->id, node->parent);
    }
    if (n_roots > 1)
        return error_set(err, ERR_FORMAT, "%s: the call tree has %zu roots", name, n_roots);
    return 0;
}

/* The model's metric for one of the profile, added when new; -1 when out of memory. */
static int64_t import_metric(struct model *model, const struct hpcrun_metric *from)
{
    int64_t index = model_metric(model, from->name);
    if (index >= 0) {
        model->metrics[index].n_samples += from->n_samples;
        model->metrics[index].is_multiplexed |= from->is_multiplexed;
        return index;
    }
    if (!vec_reserve(&model->metrics, &model->cap_metrics, model->n_metrics + 1, sizeof *model->metrics))
        return -1;
    struct metric *metric = &model->metrics[model->n_metrics];
    metric->name = strdup(from->name);
    metric->description = strdup(from->description);
    if (!metric->name || !metric->description)
        return -1;
    metric->is_integer = from->flags[2] == HPCRUN_VALUE_INT;
    metric->per_sample = metric->is_integer && from->period ? (double)from->period : 1;
    metric->n_samples = from->n_samples;
    metric->is_multiplexed = from->is_multiplexed;
    metric->hidden = from->flags[6] == 0 || from->flags[6] == 4 || strstr(from->name, "(byte)");
    return (int64_t)model->n_metrics++;
}

/* Metric and module ids of the profile in the model; [n] and [65536]. */
struct import {
    int64_t *metrics;
    uint32_t *modules;
};

static bool fill_import(struct import *import, struct symbolizer *symbolizer, struct model *model,
                        const struct hpcrun_profile *profile)
{
    import->metrics = calloc(profile->n_metrics + 1, sizeof *import->metrics);
    import->modules = calloc(65536, sizeof *import->modules);
    if (!import->metrics || !import->modules)
        return false;
    for (size_t i = 0; i < profile->n_metrics; i++)
        if ((import->metrics[i] = import_metric(model, &profile->metrics[i])) < 0)
            return false;
    for (size_t i = 0; i < profile->n_modules; i++) {
        uint32_t id = symbolizer_module(symbolizer, profile->modules[i].path);
        if (id == 0)
            return false;
        import->modules[profile->modules[i].id] = id;
    }
    return true;
}

static double value_of(const struct hpcrun_metric *metric, uint64_t word)
{
    double raw = metric->flags[2] == HPCRUN_VALUE_REAL ? bytes_double_of(word) : (double)word;
    return raw * (double)(metric->period ? metric->period : 1);
}

/* Appends the values of the profile's node i as cells of raw node index. */
static bool add_cells(struct raw_tree *tree, const struct hpcrun_profile *profile, const struct import *import,
                      size_t i, uint32_t index, struct thread *thread)
{
    for (size_t m = 0; m < profile->n_metrics; m++) {
        const struct hpcrun_metric *metric = &profile->metrics[m];
        double value = value_of(metric, profile->values[i * profile->n_metrics + m]);
        if (value == 0 || metric->flags[2] == HPCRUN_VALUE_ADDRESS)
            continue;
        if (!vec_reserve(&thread->cells, &thread->cap_cells, thread->n_cells + 1, sizeof *thread->cells))
            return false;
        thread->cells[thread->n_cells++] =
            (struct cell){.scope = index, .metric = (uint32_t)import->metrics[m], .value = value};
        tree->nodes[index].has_values = true;
    }
    return true;
}

/* Second pass: of_index [n_nodes] receives the merged node of each node in file order. */
static bool merge_nodes(struct raw_tree *tree, const struct hpcrun_profile *profile, const struct import *import,
                        struct raw_id *ids, uint32_t *of_index, struct thread *thread)
{
    for (size_t i = 0; i < profile->n_nodes; i++) {
        const struct hpcrun_node *node = &profile->nodes[i];
        uint32_t index;
        if (node->parent == 0) {
            index = find_or_add(tree, RAW_NONE, 0, 0);
        } else {
            const struct raw_id *parent = find_entry(ids, profile->n_nodes, absolute(node->parent));
            uint32_t module = node->module ? import->modules[node->module] : 0;
            index = find_or_add(tree, of_index[parent->node], module, node->ip);
        }
        if (index == RAW_NONE || !add_cells(tree, profile, import, i, index, thread))
            return false;
        tree->nodes[index].type |= node->type;
        of_index[i] = index;
    }
    for (size_t i = 0; i < profile->n_nodes; i++)
        ids[i].node = of_index[ids[i].node];
    return true;
}

int raw_merge(struct raw_tree *tree, struct symbolizer *symbolizer, struct model *model,
              const struct hpcrun_profile *profile, const char *name, struct thread *thread, struct raw_id **out,
              struct error *err)
{
    struct import import = {0};
    struct raw_id *ids = calloc(profile->n_nodes + 1, sizeof *ids);
    uint32_t *of_index = calloc(profile->n_nodes + 1, sizeof *of_index);
    int code = ids && of_index ? 0 : ERR_MEMORY;
    if (code == 0)
        code = check_tree(profile, name, ids, err);
    if (code == 0 && (!fill_import(&import, symbolizer, model, profile) ||
                      !merge_nodes(tree, profile, &import, ids, of_index, thread)))
        code = ERR_MEMORY;
    free(import.metrics);
    free(import.modules);
    free(of_index);
    if (code == 0) {
        *out = ids;
        return 0;
    }
    free(ids);
    return code == ERR_MEMORY ? error_set(err, code, "out of memory while merging %s", name) : code;
}
