/* SPDX-License-Identifier: BSD-3-Clause */
/* Profiles from the JSON of hpcrun-json-put.c. Every key is needed and no other is accepted, so that a changed value
 * either arrives in the file or is refused. */
#include "fmt/hpcrun-text.h"

#include <stdlib.h>
#include <string.h>

#include "fmt/hpcrun-parts.h"

static void take_pair(struct json_take *take, const json_t *item, struct hpcrun_profile *epoch,
                      int64_t (*add)(struct hpcrun_profile *, const char *, const char *))
{
    if (json_array_size(item) != 2)
        json_take_fail(take, ERR_FORMAT, "a pair", "[name, value] is expected");
    char *name = json_take_text(take, json_array_get(item, 0), "the name of a pair");
    char *value = json_take_text(take, json_array_get(item, 1), "the value of a pair");
    if (!take->code && add(epoch, name, value) < 0)
        json_take_fail(take, ERR_MEMORY, "a pair", "out of memory");
    free(name);
    free(value);
}

static void take_pairs(struct json_take *take, const json_t *object, const char *key, struct hpcrun_profile *epoch,
                       int64_t (*add)(struct hpcrun_profile *, const char *, const char *))
{
    size_t n_pairs = 0;
    const json_t *list = json_take_array_at(take, object, key, &n_pairs);
    take->where = key;
    for (take->index = 0; take->index < n_pairs && !take->code; take->index++)
        take_pair(take, json_array_get(list, take->index), epoch, add);
    take->where = NULL;
}

static void take_metric(struct json_take *take, const json_t *item, struct hpcrun_metric *metric, bool has_tail)
{
    uint64_t flags[sizeof metric->flags] = {0};
    metric->name = json_take_text_needed_at(take, item, "name");
    metric->description = json_take_text_needed_at(take, item, "description");
    json_take_words_at(take, item, "flags", flags, sizeof metric->flags);
    for (size_t i = 0; i < sizeof metric->flags; i++) {
        if (flags[i] > UINT8_MAX)
            json_take_fail(take, ERR_FORMAT, "flags", "bytes are expected");
        metric->flags[i] = (uint8_t)flags[i];
    }
    metric->period = json_take_word_at(take, item, "period", UINT64_MAX);
    metric->formula = json_take_text_needed_at(take, item, "formula");
    metric->format = json_take_text_needed_at(take, item, "format");
    if (has_tail) {
        metric->is_frequency = (uint16_t)json_take_word_at(take, item, "is_frequency", UINT16_MAX);
        metric->is_multiplexed = (uint16_t)json_take_word_at(take, item, "is_multiplexed", UINT16_MAX);
        metric->mean_period = json_take_double_at(take, item, "mean_period");
        metric->n_samples = json_take_word_at(take, item, "n_samples", UINT64_MAX);
    }
    json_take_end(take, item, has_tail ? 10 : 6);
}

static void take_metrics(struct json_take *take, const json_t *object, struct hpcrun_profile *epoch)
{
    size_t n_metrics = 0;
    const json_t *list = json_take_array_at(take, object, "metrics", &n_metrics);
    epoch->metrics = json_take_alloc(take, n_metrics, sizeof *epoch->metrics);
    epoch->n_metrics = epoch->cap_metrics = epoch->metrics ? n_metrics : 0;
    take->where = "metrics";
    for (take->index = 0; take->index < epoch->n_metrics && !take->code; take->index++)
        take_metric(take, json_array_get(list, take->index), &epoch->metrics[take->index], !epoch->short_metrics);
    take->where = NULL;
}

static void take_modules(struct json_take *take, const json_t *object, struct hpcrun_profile *epoch)
{
    size_t n_modules = 0;
    const json_t *list = json_take_array_at(take, object, "modules", &n_modules);
    epoch->modules = json_take_alloc(take, n_modules, sizeof *epoch->modules);
    epoch->n_modules = epoch->cap_modules = epoch->modules ? n_modules : 0;
    take->where = "modules";
    for (take->index = 0; take->index < epoch->n_modules && !take->code; take->index++) {
        const json_t *item = json_array_get(list, take->index);
        struct hpcrun_module *module = &epoch->modules[take->index];
        module->id = (uint16_t)json_take_word_at(take, item, "id", UINT16_MAX);
        module->path = json_take_text_needed_at(take, item, "path");
        module->flags = json_take_word_at(take, item, "flags", UINT64_MAX);
        json_take_end(take, item, 3);
    }
    take->where = NULL;
}

static void take_node(struct json_take *take, const json_t *item, const struct hpcrun_layout *layout,
                      struct hpcrun_node *node)
{
    node->id = json_take_int32_at(take, item, "id");
    node->parent = json_take_int32_at(take, item, "parent");
    if (layout->has_type)
        node->type = (uint32_t)json_take_word_at(take, item, "type", UINT32_MAX);
    node->module = (uint16_t)json_take_word_at(take, item, "module", UINT16_MAX);
    node->ip = json_take_word_at(take, item, "ip", UINT64_MAX);
    if (layout->sparse)
        node->unwound = (uint8_t)json_take_word_at(take, item, "unwound", UINT8_MAX);
    json_take_end(take, item, 5 + layout->has_type + layout->sparse);
}

static void take_nodes(struct json_take *take, const json_t *object, const struct hpcrun_layout *layout,
                       struct hpcrun_profile *epoch)
{
    size_t n_nodes = 0, n_metrics = epoch->n_metrics;
    const json_t *list = json_take_array_at(take, object, "nodes", &n_nodes);
    epoch->nodes = json_take_alloc(take, n_nodes, sizeof *epoch->nodes);
    epoch->values = json_take_alloc(take, n_nodes, n_metrics * sizeof *epoch->values);
    epoch->n_nodes = epoch->cap_nodes = epoch->nodes ? n_nodes : 0;
    epoch->cap_values = epoch->values ? n_nodes * n_metrics : 0;
    take->where = "nodes";
    for (take->index = 0; take->index < epoch->n_nodes && !take->code; take->index++) {
        const json_t *item = json_array_get(list, take->index);
        take_node(take, item, layout, &epoch->nodes[take->index]);
        json_take_words_at(take, item, "values", n_metrics ? &epoch->values[take->index * n_metrics] : NULL, n_metrics);
    }
    take->where = NULL;
}

static void take_id_kinds(struct json_take *take, const json_t *object, struct hpcrun_profile *epoch)
{
    size_t n_kinds = 0;
    const json_t *list = json_take_array_at(take, object, "id_kinds", &n_kinds);
    epoch->id_kinds = json_take_alloc(take, n_kinds, sizeof *epoch->id_kinds);
    epoch->id_kind_numbers = json_take_alloc(take, n_kinds, sizeof *epoch->id_kind_numbers);
    epoch->n_id_kinds = epoch->id_kinds && epoch->id_kind_numbers ? n_kinds : 0;
    for (size_t i = 0; i < epoch->n_id_kinds && !take->code; i++) {
        const json_t *item = json_array_get(list, i);
        epoch->id_kind_numbers[i] = (uint16_t)json_take_word_at(take, item, "number", UINT16_MAX);
        epoch->id_kinds[i] = json_take_text_needed_at(take, item, "name");
    }
}

static void take_ids(struct json_take *take, const json_t *object, struct hpcrun_profile *epoch)
{
    size_t n_ids = 0;
    const json_t *list = json_take_array_at(take, object, "ids", &n_ids);
    epoch->ids = json_take_alloc(take, n_ids, sizeof *epoch->ids);
    epoch->n_ids = epoch->ids ? n_ids : 0;
    for (size_t i = 0; i < epoch->n_ids && !take->code; i++) {
        const json_t *item = json_array_get(list, i);
        epoch->ids[i].kind = (uint16_t)json_take_word_at(take, item, "kind", UINT16_MAX);
        epoch->ids[i].physical = json_take_word_at(take, item, "physical", UINT64_MAX);
        epoch->ids[i].logical = json_take_word_at(take, item, "logical", UINT64_MAX);
    }
}

static void take_epoch(struct json_take *take, const json_t *object, const struct hpcrun_layout *layout,
                       struct hpcrun_profile *epoch)
{
    epoch->epoch_flags = json_take_word_at(take, object, "flags", UINT64_MAX);
    epoch->granularity = json_take_word_at(take, object, "granularity", UINT64_MAX);
    epoch->ra_to_callsite = (uint32_t)json_take_word_at(take, object, "ra_to_callsite", UINT32_MAX);
    take_pairs(take, object, "pairs", epoch, hpcrun_add_epoch_pair);
    take_metrics(take, object, epoch);
    take_modules(take, object, epoch);
    if (layout->sparse) {
        take_id_kinds(take, object, epoch);
        take_ids(take, object, epoch);
    }
    take_nodes(take, object, layout, epoch);
    json_take_end(take, object, layout->sparse ? 9 : 7);
}

static struct hpcrun_profile *next_epoch(struct json_take *take, struct hpcrun_profile *epoch)
{
    epoch->next = json_take_alloc(take, 1, sizeof *epoch->next);
    if (epoch->next) {
        memcpy(epoch->next->version, epoch->version, sizeof epoch->version);
        epoch->next->short_metrics = epoch->short_metrics;
    }
    return epoch->next;
}

static void take_epochs(struct json_take *take, const json_t *root, const struct hpcrun_layout *layout,
                        struct hpcrun_profile *profile)
{
    size_t n_epochs = 0;
    const json_t *list = json_take_array_at(take, root, "epochs", &n_epochs);
    if (!n_epochs || (layout->sparse && n_epochs > 1))
        json_take_fail(take, ERR_FORMAT, "epochs", "one epoch, or in dense files more, is expected");
    struct hpcrun_profile *epoch = profile;
    for (size_t i = 0; i < n_epochs && !take->code; i++) {
        if (i)
            epoch = next_epoch(take, epoch);
        if (epoch)
            take_epoch(take, json_array_get(list, i), layout, epoch);
    }
}

int hpcrun_take_json(struct json_take *take, const json_t *root, struct hpcrun_profile *profile)
{
    const char *version = json_string_value(json_object_get(root, "version"));
    const struct hpcrun_layout *layout = version ? hpcrun_layout_of(version) : NULL;
    if (!layout)
        return json_take_fail(take, ERR_FORMAT, "version", "a known version of profiles is expected");
    memcpy(profile->version, layout->version, sizeof profile->version);
    profile->short_metrics = (uint8_t)json_take_word_at(take, root, "short_metrics", 1);
    take_pairs(take, root, "header", profile, hpcrun_add_pair);
    take_epochs(take, root, layout, profile);
    json_take_end(take, root, 5);
    if (take->code)
        hpcrun_fini(profile);
    return take->code;
}
