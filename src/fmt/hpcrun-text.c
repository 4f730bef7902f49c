/* SPDX-License-Identifier: BSD-3-Clause */
/* Profiles as text: see hpcrun.h. */
#include "fmt/hpcrun.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "fmt/json.h"

static void put_pairs(const struct hpcrun_pair *pairs, size_t n_pairs, struct buf *out)
{
    for (size_t i = 0; i < n_pairs; i++)
        buf_printf(out, "  [nv-pair: '%s', '%s']\n", pairs[i].name, pairs[i].value);
}

static void put_header(const struct hpcrun_profile *profile, struct buf *out)
{
    buf_printf(out, HPCRUN_MAGIC "\n[hdr:\n  (version: %s)\n  (endian: b)\n", profile->version);
    if (profile->short_metrics)
        buf_printf(out, "  (metric entries: short)\n");
    put_pairs(profile->pairs, profile->n_pairs, out);
    buf_printf(out, "]\n");
}

static void put_epoch_header(const struct hpcrun_profile *epoch, struct buf *out)
{
    buf_printf(out,
               HPCRUN_EPOCH_MAGIC "\n[epoch-hdr:\n  (flags: 0x%" PRIx64 ")\n  (measurement-granularity: %" PRIu64 ")\n",
               epoch->epoch_flags, epoch->granularity);
    if (epoch->ra_to_callsite)
        buf_printf(out, "  (ra-to-callsite: %" PRIu32 ")\n", epoch->ra_to_callsite);
    put_pairs(epoch->epoch_pairs, epoch->n_epoch_pairs, out);
    buf_printf(out, "]\n");
}

static void put_metric(const struct hpcrun_metric *metric, bool has_tail, struct buf *out)
{
    const uint8_t *flags = metric->flags;
    unsigned partner = flags[4] | (unsigned)flags[5] << 8;
    buf_printf(out,
               "  [(nm: %s) (desc: %s) ((ty: %u) (val-ty: %u) (val-fmt: %u) (partner: %u) (show: %u) "
               "(showPercent: %u)) (period: %" PRIu64 ") (formula: %s) (format: %s)",
               metric->name, metric->description, flags[0], flags[1], flags[2], partner, flags[6], flags[7],
               metric->period, metric->formula, metric->format);
    if (flags[3])
        buf_printf(out, " (move-to-proc: %u)", flags[3]);
    if (has_tail)
        buf_printf(out, "\n    (frequency: %u) (multiplexed: %u) (period-mean: %f) (num-samples: %" PRIu64 ")",
                   metric->is_frequency, metric->is_multiplexed, metric->mean_period, metric->n_samples);
    buf_printf(out, "]\n");
}

static void put_tables(const struct hpcrun_profile *epoch, struct buf *out)
{
    buf_printf(out, "[metric-tbl: (num-entries: %zu)\n", epoch->n_metrics);
    for (size_t i = 0; i < epoch->n_metrics; i++)
        put_metric(&epoch->metrics[i], !epoch->short_metrics, out);
    buf_printf(out, "]\n[loadmap: (num-entries: %zu)\n", epoch->n_modules);
    for (size_t i = 0; i < epoch->n_modules; i++)
        buf_printf(out, "  [(id: %u) (nm: %s) (flg: 0x%" PRIx64 ")]\n", epoch->modules[i].id, epoch->modules[i].path,
                   epoch->modules[i].flags);
    buf_printf(out, "]\n");
}

static void put_value(uint64_t word, uint8_t format, struct buf *out)
{
    char text[40];
    if (format == HPCRUN_VALUE_REAL) {
        json_double_text(bytes_double_of(word), text, sizeof text);
        buf_printf(out, "%s", text);
    } else
        buf_printf(out, format == HPCRUN_VALUE_ADDRESS ? "0x%" PRIx64 : "%" PRIu64, word);
}

static void put_node(const struct hpcrun_profile *epoch, size_t i, bool sparse, struct buf *out)
{
    const struct hpcrun_node *node = &epoch->nodes[i];
    buf_printf(out, "  [node: (id: %" PRId32 ") (id-parent: %" PRId32 ")", node->id, node->parent);
    if (hpcrun_layout_of(epoch->version)->has_type)
        buf_printf(out, " (type: %" PRIu32 ")", node->type);
    buf_printf(out, " (lm-id: %u) (lm-ip: 0x%" PRIx64 ") ", node->module, node->ip);
    if (sparse)
        buf_printf(out, "(flags: 0x%x) ", node->unwound);
    buf_printf(out, "\n  (metrics: ");
    for (size_t k = 0; k < epoch->n_metrics; k++) {
        if (k)
            buf_append(out, "  ", 2);
        put_value(epoch->values[i * epoch->n_metrics + k], epoch->metrics[k].flags[2], out);
    }
    buf_printf(out, ")\n  ]\n");
}

static void put_nodes(const struct hpcrun_profile *epoch, struct buf *out)
{
    bool sparse = hpcrun_layout_of(epoch->version)->sparse;
    buf_printf(out, "[cct: (num-nodes: %zu)\n", epoch->n_nodes);
    for (size_t i = 0; i < epoch->n_nodes; i++)
        put_node(epoch, i, sparse, out);
    buf_printf(out, "]\n");
}

/* 04.00: the id tuple, kinds by their names. */
static void put_ids(const struct hpcrun_profile *profile, struct buf *out)
{
    static const char *const interpretations[] = {"", ", logical local", ", logical global", ", logical only"};
    if (!profile->n_id_kinds && !profile->n_ids)
        return;
    buf_printf(out, "[id-tuple-dict: (num-entries: %zu)\n", profile->n_id_kinds);
    for (size_t i = 0; i < profile->n_id_kinds; i++)
        buf_printf(out, "  [(kind: %u) (nm: %s)]\n", profile->id_kind_numbers[i], profile->id_kinds[i]);
    buf_printf(out, "]\n[id-tuple: (num-entries: %zu)\n", profile->n_ids);
    for (size_t i = 0; i < profile->n_ids; i++)
        buf_printf(out, "  [(kind: %u%s) (physical: 0x%" PRIx64 ") (logical: %" PRIu64 ")]\n",
                   profile->ids[i].kind & 0x3fffu, interpretations[profile->ids[i].kind >> 14],
                   profile->ids[i].physical, profile->ids[i].logical);
    buf_printf(out, "]\n");
}

void hpcrun_put_text(const struct hpcrun_profile *profile, struct buf *out)
{
    size_t n_epochs = 0;
    put_header(profile, out);
    for (const struct hpcrun_profile *epoch = profile; epoch; epoch = epoch->next, n_epochs++) {
        if (!hpcrun_layout_of(profile->version)->sparse)
            put_epoch_header(epoch, out);
        put_tables(epoch, out);
        put_ids(epoch, out);
        put_nodes(epoch, out);
    }
    buf_printf(out, "\n[end: (num-epochs: %zu)]\n", n_epochs);
}

/* --- as JSON --- */

/* Profiles as JSON: everything the file holds, one line per metric, module and node. Metric values are the raw 64-bit
 * words, whatever the metric's value format. The way back follows below. */

static void put_pairs_json(struct buf *out, const char *key, const struct hpcrun_pair *pairs, size_t n_pairs)
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

static void put_metric_json(struct buf *out, const struct hpcrun_metric *metric, bool has_tail)
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

static void put_tables_json(struct buf *out, const struct hpcrun_profile *epoch)
{
    buf_printf(out, ",\n\"metrics\": [");
    for (size_t i = 0; i < epoch->n_metrics; i++) {
        buf_printf(out, i ? ",\n  {\"name\": " : "\n  {\"name\": ");
        put_metric_json(out, &epoch->metrics[i], !epoch->short_metrics);
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

static void put_nodes_json(struct buf *out, const struct hpcrun_profile *epoch, const struct hpcrun_layout *layout)
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

static void put_ids_json(struct buf *out, const struct hpcrun_profile *epoch)
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
    put_pairs_json(out, "pairs", epoch->epoch_pairs, epoch->n_epoch_pairs);
    put_tables_json(out, epoch);
    if (layout->sparse)
        put_ids_json(out, epoch);
    put_nodes_json(out, epoch, layout);
    buf_append(out, "}", 1);
}

void hpcrun_put_json(const struct hpcrun_profile *profile, struct buf *out)
{
    const struct hpcrun_layout *layout = hpcrun_layout_of(profile->version);
    buf_printf(out, "{\"format\": \"hpcrun\", \"version\": \"%s\"", profile->version);
    json_put_word_at(out, "short_metrics", profile->short_metrics);
    put_pairs_json(out, "header", profile->pairs, profile->n_pairs);
    buf_printf(out, ",\n\"epochs\": [\n");
    for (const struct hpcrun_profile *epoch = profile; epoch; epoch = epoch->next) {
        if (epoch != profile)
            buf_append(out, ",\n", 2);
        put_epoch(out, epoch, layout);
    }
    buf_printf(out, "]}\n");
}

/* --- from JSON --- */

/* Profiles from the same JSON. Every key is needed and no other is accepted, so that a changed value either arrives in
 * the file or is refused. */

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
        json_take_fail(take, ERR_FORMAT, "epochs", "one epoch is expected, in dense files one or more");
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
