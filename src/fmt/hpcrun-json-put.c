/* SPDX-License-Identifier: BSD-3-Clause */
/* Profiles as JSON: everything the file holds, one line per metric, module and node. Metric values are the raw 64-bit
 * words, whatever the metric's value format. Back again: hpcrun-json-take.c. */
#include "fmt/hpcrun-text.h"

#include "fmt/hpcrun-parts.h"
#include "fmt/json-put.h"

static void put_pairs(struct buf *out, const char *key, const struct hpcrun_pair *pairs, size_t n_pairs)
{
    buf_printf(out, ",\n\"%s\": [", key);
    for (size_t i = 0; i < n_pairs; i++) {
        buf_printf(out, i ? ",\n  [" : "\n  [");
        json_put_text(out, pairs[i].name);
        buf_append(out, ", ", 2);
        json_put_text(out, pairs[i].value);
        buf_append(out, "]", 1);
    }
    buf_append(out, "]", 1);
}

static void put_metric(struct buf *out, const struct hpcrun_metric *metric, bool has_tail)
{
    json_put_text(out, metric->name);
    json_put_text_at(out, "description", metric->description);
    json_put_key(out, "flags", 0);
    for (size_t i = 0; i < sizeof metric->flags; i++)
        buf_printf(out, i ? ", %u" : "[%u", metric->flags[i]);
    buf_append(out, "]", 1);
    json_put_word_at(out, "period", metric->period);
    json_put_text_at(out, "formula", metric->formula);
    json_put_text_at(out, "format", metric->format);
    if (!has_tail)
        return;
    json_put_word_at(out, "is_frequency", metric->is_frequency);
    json_put_word_at(out, "is_multiplexed", metric->is_multiplexed);
    json_put_double_at(out, "mean_period", metric->mean_period);
    json_put_word_at(out, "n_samples", metric->n_samples);
}

static void put_tables(struct buf *out, const struct hpcrun_profile *epoch)
{
    buf_printf(out, ",\n\"metrics\": [");
    for (size_t i = 0; i < epoch->n_metrics; i++) {
        buf_printf(out, i ? ",\n  {\"name\": " : "\n  {\"name\": ");
        put_metric(out, &epoch->metrics[i], !epoch->short_metrics);
        buf_append(out, "}", 1);
    }
    buf_printf(out, "],\n\"modules\": [");
    for (size_t i = 0; i < epoch->n_modules; i++) {
        buf_printf(out, i ? ",\n  {\"id\": %u" : "\n  {\"id\": %u", epoch->modules[i].id);
        json_put_text_at(out, "path", epoch->modules[i].path);
        json_put_word_at(out, "flags", epoch->modules[i].flags);
        buf_append(out, "}", 1);
    }
    buf_append(out, "]", 1);
}

static void put_nodes(struct buf *out, const struct hpcrun_profile *epoch, const struct hpcrun_layout *layout)
{
    buf_printf(out, ",\n\"nodes\": [");
    for (size_t i = 0; i < epoch->n_nodes; i++) {
        const struct hpcrun_node *node = &epoch->nodes[i];
        buf_printf(out, "%s{\"id\": %d, \"parent\": %d", i ? ",\n  " : "\n  ", node->id, node->parent);
        if (layout->has_type)
            json_put_word_at(out, "type", node->type);
        json_put_word_at(out, "module", node->module);
        json_put_word_at(out, "ip", node->ip);
        if (layout->sparse)
            json_put_word_at(out, "unwound", node->unwound);
        json_put_key(out, "values", 0);
        json_put_words(out, epoch->n_metrics ? &epoch->values[i * epoch->n_metrics] : NULL, epoch->n_metrics);
        buf_append(out, "}", 1);
    }
    buf_append(out, "]", 1);
}

static void put_ids(struct buf *out, const struct hpcrun_profile *epoch)
{
    buf_printf(out, ",\n\"id_kinds\": [");
    for (size_t i = 0; i < epoch->n_id_kinds; i++) {
        buf_printf(out, i ? ", {\"number\": %u" : "{\"number\": %u", epoch->id_kind_numbers[i]);
        json_put_text_at(out, "name", epoch->id_kinds[i]);
        buf_append(out, "}", 1);
    }
    buf_printf(out, "],\n\"ids\": [");
    for (size_t i = 0; i < epoch->n_ids; i++) {
        buf_printf(out, i ? ", {\"kind\": %u" : "{\"kind\": %u", epoch->ids[i].kind);
        json_put_word_at(out, "physical", epoch->ids[i].physical);
        json_put_word_at(out, "logical", epoch->ids[i].logical);
        buf_append(out, "}", 1);
    }
    buf_append(out, "]", 1);
}

static void put_epoch(struct buf *out, const struct hpcrun_profile *epoch, const struct hpcrun_layout *layout)
{
    buf_printf(out, "{\"flags\": ");
    json_put_word(out, epoch->epoch_flags);
    json_put_word_at(out, "granularity", epoch->granularity);
    json_put_word_at(out, "ra_to_callsite", epoch->ra_to_callsite);
    put_pairs(out, "pairs", epoch->epoch_pairs, epoch->n_epoch_pairs);
    put_tables(out, epoch);
    if (layout->sparse)
        put_ids(out, epoch);
    put_nodes(out, epoch, layout);
    buf_append(out, "}", 1);
}

void hpcrun_put_json(const struct hpcrun_profile *profile, struct buf *out)
{
    const struct hpcrun_layout *layout = hpcrun_layout_of(profile->version);
    buf_printf(out, "{\"format\": \"hpcrun\", \"version\": \"%s\"", profile->version);
    json_put_word_at(out, "short_metrics", profile->short_metrics);
    put_pairs(out, "header", profile->pairs, profile->n_pairs);
    buf_printf(out, ",\n\"epochs\": [\n");
    for (const struct hpcrun_profile *epoch = profile; epoch; epoch = epoch->next) {
        if (epoch != profile)
            buf_append(out, ",\n", 2);
        put_epoch(out, epoch, layout);
    }
    buf_printf(out, "]}\n");
}
