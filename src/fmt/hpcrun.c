/* SPDX-License-Identifier: BSD-3-Clause */
/* Profiles in memory: building and freeing them, and the writer. The reader is in hpcrun-read.c. */
#include "fmt/hpcrun.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/vec.h"
#include "fmt/file.h"

static int64_t add_pair(struct hpcrun_pair **pairs, size_t *n_pairs, size_t *cap_pairs, const char *name,
                        const char *value)
{
    if (!vec_reserve(pairs, cap_pairs, *n_pairs + 1, sizeof **pairs))
        return -1;
    struct hpcrun_pair pair = {strdup(name ? name : ""), strdup(value ? value : "")};
    if (!pair.name || !pair.value) {
        free(pair.name);
        free(pair.value);
        return -1;
    }
    (*pairs)[*n_pairs] = pair;
    return (int64_t)(*n_pairs)++;
}

int64_t hpcrun_add_pair(struct hpcrun_profile *profile, const char *name, const char *value)
{
    return add_pair(&profile->pairs, &profile->n_pairs, &profile->cap_pairs, name, value);
}

int64_t hpcrun_add_epoch_pair(struct hpcrun_profile *profile, const char *name, const char *value)
{
    return add_pair(&profile->epoch_pairs, &profile->n_epoch_pairs, &profile->cap_epoch_pairs, name, value);
}

static void free_metric(struct hpcrun_metric *metric)
{
    free(metric->name);
    free(metric->description);
    free(metric->formula);
    free(metric->format);
}

int64_t hpcrun_add_metric(struct hpcrun_profile *profile, const char *name, const char *description,
                          enum hpcrun_value_format format, uint64_t period, int show, int show_percent)
{
    if (!vec_reserve(&profile->metrics, &profile->cap_metrics, profile->n_metrics + 1, sizeof *profile->metrics))
        return -1;
    struct hpcrun_metric metric = {.period = period};
    metric.flags[0] = 1; /* raw: measured, not computed */
    metric.flags[2] = (uint8_t)format;
    metric.flags[6] = (uint8_t)show;
    metric.flags[7] = (uint8_t)show_percent;
    metric.name = strdup(name ? name : "");
    metric.description = strdup(description ? description : "");
    metric.formula = strdup("");
    metric.format = strdup("");
    if (!metric.name || !metric.description || !metric.formula || !metric.format) {
        free_metric(&metric);
        return -1;
    }
    profile->metrics[profile->n_metrics] = metric;
    return (int64_t)profile->n_metrics++;
}

int64_t hpcrun_add_module(struct hpcrun_profile *profile, uint16_t id, const char *path, uint64_t flags)
{
    if (!vec_reserve(&profile->modules, &profile->cap_modules, profile->n_modules + 1, sizeof *profile->modules))
        return -1;
    char *copy = strdup(path ? path : "");
    if (!copy)
        return -1;
    profile->modules[profile->n_modules] = (struct hpcrun_module){id, copy, flags};
    return (int64_t)profile->n_modules++;
}

int64_t hpcrun_add_node(struct hpcrun_profile *profile, const struct hpcrun_node *node)
{
    size_t n_values = (profile->n_nodes + 1) * profile->n_metrics;
    if (!vec_reserve(&profile->nodes, &profile->cap_nodes, profile->n_nodes + 1, sizeof *profile->nodes) ||
        !vec_reserve(&profile->values, &profile->cap_values, n_values, sizeof *profile->values))
        return -1;
    profile->nodes[profile->n_nodes] = *node;
    return (int64_t)profile->n_nodes++;
}

const char *hpcrun_pair_value(const struct hpcrun_profile *profile, const char *name)
{
    for (size_t i = 0; i < profile->n_pairs; i++)
        if (strcmp(profile->pairs[i].name, name) == 0)
            return profile->pairs[i].value;
    return NULL;
}

static void free_pairs(struct hpcrun_pair *pairs, size_t n_pairs)
{
    for (size_t i = 0; i < n_pairs; i++) {
        free(pairs[i].name);
        free(pairs[i].value);
    }
    free(pairs);
}

/* Frees what one epoch holds, not the next ones. */
static void free_epoch(struct hpcrun_profile *profile)
{
    free_pairs(profile->pairs, profile->n_pairs);
    free_pairs(profile->epoch_pairs, profile->n_epoch_pairs);
    for (size_t i = 0; i < profile->n_metrics; i++)
        free_metric(&profile->metrics[i]);
    free(profile->metrics);
    for (size_t i = 0; i < profile->n_modules; i++)
        free(profile->modules[i].path);
    free(profile->modules);
    free(profile->nodes);
    free(profile->values);
    for (size_t i = 0; i < profile->n_id_kinds; i++)
        free(profile->id_kinds[i]);
    free(profile->id_kinds);
    free(profile->id_kind_numbers);
    free(profile->ids);
}

void hpcrun_fini(struct hpcrun_profile *profile)
{
    struct hpcrun_profile *next = profile->next;
    free_epoch(profile);
    *profile = (struct hpcrun_profile){0};
    while (next) {
        struct hpcrun_profile *epoch = next;
        next = epoch->next;
        free_epoch(epoch);
        free(epoch);
    }
}

/* --- fields that all versions share --- */

/* Parts that all versions of a profile share: header, metric table, load map. See hpcrun.h. */

const struct hpcrun_layout *hpcrun_layout_of(const char *version)
{
    static const struct hpcrun_layout layouts[] = {
        {"02.00", false, false, true}, {"02.10", false, true, false}, {"03.00", false, false, false},
        {"03.10", false, true, false}, {"04.00", true, false, false},
    };
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        if (strcmp(layouts[i].version, version) == 0)
            return &layouts[i];
    return NULL;
}

size_t hpcrun_node_bytes(const struct hpcrun_layout *layout)
{
    return layout->sparse ? 19 : layout->has_type ? 22 : 18;
}

static int get_header_pair(struct wire_in *in, struct hpcrun_profile *profile)
{
    char *name = wire_get_text(in, "the header");
    char *value = wire_get_text(in, "the header");
    if (!in->code && hpcrun_add_pair(profile, name, value) < 0)
        wire_fail(in, ERR_MEMORY, "out of memory in the header");
    free(name);
    free(value);
    return in->code;
}

int hpcrun_get_header(struct wire_in *in, struct hpcrun_profile *profile)
{
    in->offset = strlen(HPCRUN_MAGIC) + strlen(profile->version);
    uint64_t endian = wire_get(in, 1, "the header");
    if (!in->code && endian != 'b')
        return wire_fail(in, ERR_FORMAT, "byte order 0x%02x is not 'b' (big endian)", (unsigned)endian);
    uint64_t n_pairs = wire_get(in, 4, "the header");
    wire_has_items(in, n_pairs, 8, "the header");
    while (!in->code && n_pairs--)
        get_header_pair(in, profile);
    return in->code;
}

/* The layout from before 2010 packs the flags into 64 bits; the original recognises it by the same signs. */
static void check_flags(struct wire_in *in, const struct hpcrun_profile *profile, const uint8_t flags[16])
{
    static const uint8_t zero[8];
    bool has_move2proc = hpcrun_layout_of(profile->version)->sparse;
    bool known = (flags[0] == 1 || flags[0] == 2) && (flags[3] == 0 || has_move2proc) && !memcmp(flags + 8, zero, 8);
    if (!in->code && !known)
        wire_fail(in, ERR_UNSUPPORTED, "the flags of a metric are damaged or of the layout before 2010");
}

static void get_metric_tail(struct wire_in *in, struct hpcrun_metric *metric)
{
    static const char what[] = "the metric table";
    metric->is_frequency = (uint16_t)wire_get(in, 2, what);
    metric->is_multiplexed = (uint16_t)wire_get(in, 2, what);
    metric->mean_period = bytes_double_of(wire_get(in, 8, what));
    metric->n_samples = wire_get(in, 8, what);
}

static int get_metric(struct wire_in *in, struct hpcrun_profile *profile)
{
    static const char what[] = "the metric table";
    if (!vec_reserve(&profile->metrics, &profile->cap_metrics, profile->n_metrics + 1, sizeof *profile->metrics))
        return wire_fail(in, ERR_MEMORY, "out of memory in %s", what);
    struct hpcrun_metric *metric = &profile->metrics[profile->n_metrics++];
    metric->name = wire_get_text(in, what);
    metric->description = wire_get_text(in, what);
    wire_get_bytes(in, metric->flags, sizeof metric->flags, what);
    check_flags(in, profile, metric->flags);
    metric->period = wire_get(in, 8, what);
    metric->formula = wire_get_text(in, what);
    metric->format = wire_get_text(in, what);
    if (!profile->short_metrics)
        get_metric_tail(in, metric);
    return in->code;
}

int hpcrun_get_metrics(struct wire_in *in, struct hpcrun_profile *profile)
{
    uint64_t n_metrics = wire_get(in, 4, "the metric table");
    wire_has_items(in, n_metrics, profile->short_metrics ? 40 : 60, "the metric table");
    while (!in->code && n_metrics--)
        get_metric(in, profile);
    return in->code;
}

static int get_module(struct wire_in *in, struct hpcrun_profile *profile)
{
    uint16_t id = (uint16_t)wire_get(in, 2, "the load map");
    char *path = wire_get_text(in, "the load map");
    uint64_t flags = wire_get(in, 8, "the load map");
    if (!in->code && hpcrun_add_module(profile, id, path, flags) < 0)
        wire_fail(in, ERR_MEMORY, "out of memory in the load map");
    free(path);
    return in->code;
}

int hpcrun_get_modules(struct wire_in *in, struct hpcrun_profile *profile)
{
    uint64_t n_modules = wire_get(in, 4, "the load map");
    wire_has_items(in, n_modules, 14, "the load map");
    while (!in->code && n_modules--)
        get_module(in, profile);
    return in->code;
}

/* --- writing --- */

/* Writer of dense profiles (02.00 to 03.10). What the format or its readers cannot hold is refused instead of being cut
 * off. */

static int refuse_count(const char *what, size_t count, struct error *err)
{
    return error_set(err, ERR_RANGE, "the profile format cannot hold %zu %s", count, what);
}

/* The original readers take these signs for the layout from before 2010. */
static int check_metric(const struct hpcrun_metric *metric, struct error *err)
{
    static const uint8_t zero[8];
    const uint8_t *flags = metric->flags;
    if ((flags[0] == 1 || flags[0] == 2) && flags[3] == 0 && memcmp(flags + 8, zero, 8) == 0)
        return 0;
    return error_set(err, ERR_RANGE, "the flags of metric '%.200s' cannot be told from those of the layout before 2010",
                     metric->name ? metric->name : "");
}

/* Fields that this version has no place for must not disappear silently. */
static int check_nodes(const struct hpcrun_profile *epoch, const struct hpcrun_layout *layout, struct error *err)
{
    if (epoch->n_ids || epoch->n_id_kinds)
        return error_set(err, ERR_RANGE, "profiles of version %s have no id tuple", layout->version);
    for (size_t i = 0; i < epoch->n_nodes; i++)
        if (epoch->nodes[i].unwound || (epoch->nodes[i].type && !layout->has_type))
            return error_set(err, ERR_RANGE, "profiles of version %s have no %s: node %d cannot be written",
                             layout->version, epoch->nodes[i].unwound ? "unwinding flag" : "node types",
                             epoch->nodes[i].id);
    return 0;
}

static int check_epoch(const struct hpcrun_profile *epoch, const struct hpcrun_layout *layout, struct error *err)
{
    if (epoch->epoch_flags & HPCRUN_EPOCH_FLAG_LOGICAL)
        return error_set(err, ERR_UNSUPPORTED, "profiles with logical (LUSH) unwinding are not supported");
    if (epoch->n_pairs > UINT32_MAX || epoch->n_epoch_pairs > UINT32_MAX)
        return refuse_count("header pairs", epoch->n_pairs, err);
    if (epoch->n_metrics > UINT32_MAX)
        return refuse_count("metrics", epoch->n_metrics, err);
    if (epoch->n_modules > UINT16_MAX)
        return refuse_count("load modules", epoch->n_modules, err);
    for (size_t i = 0; i < epoch->n_metrics; i++)
        if (check_metric(&epoch->metrics[i], err))
            return ERR_RANGE;
    return check_nodes(epoch, layout, err);
}

static void put_pairs(const struct hpcrun_pair *pairs, size_t n_pairs, struct buf *out)
{
    wire_put(out, n_pairs, 4);
    for (size_t i = 0; i < n_pairs; i++) {
        wire_put_text(out, pairs[i].name);
        wire_put_text(out, pairs[i].value);
    }
}

static void put_metric(const struct hpcrun_metric *metric, bool with_tail, struct buf *out)
{
    wire_put_text(out, metric->name);
    wire_put_text(out, metric->description);
    buf_append(out, metric->flags, sizeof metric->flags);
    wire_put(out, metric->period, 8);
    wire_put_text(out, metric->formula);
    wire_put_text(out, metric->format);
    if (!with_tail)
        return;
    wire_put(out, metric->is_frequency, 2);
    wire_put(out, metric->is_multiplexed, 2);
    wire_put(out, bytes_bits_of(metric->mean_period), 8);
    wire_put(out, metric->n_samples, 8);
}

static void put_modules(const struct hpcrun_profile *epoch, struct buf *out)
{
    wire_put(out, epoch->n_modules, 4);
    for (size_t i = 0; i < epoch->n_modules; i++) {
        wire_put(out, epoch->modules[i].id, 2);
        wire_put_text(out, epoch->modules[i].path);
        wire_put(out, epoch->modules[i].flags, 8);
    }
}

/* Encodes one node at bytes, without its values; returns where those begin. */
static char *encode_node(const struct hpcrun_node *node, bool has_type, char *bytes)
{
    if (has_type) {
        bytes_put_be(bytes, node->type, 4);
        bytes += 4;
    }
    bytes_put_be(bytes, (uint32_t)node->id, 4);
    bytes_put_be(bytes + 4, (uint32_t)node->parent, 4);
    bytes_put_be(bytes + 8, node->module, 2);
    bytes_put_be(bytes + 10, node->ip, 8);
    return bytes + 18;
}

static void put_node(const struct hpcrun_node *node, const uint64_t *values, size_t n_values,
                     const struct hpcrun_layout *layout, struct buf *out)
{
    char *bytes = wire_put_room(out, hpcrun_node_bytes(layout) + 8 * n_values);
    if (!bytes)
        return;
    bytes = encode_node(node, layout->has_type, bytes);
    for (size_t k = 0; k < n_values; k++, bytes += 8)
        bytes_put_be(bytes, values[k], 8);
}

static void put_nodes(const struct hpcrun_profile *epoch, const struct hpcrun_layout *layout, struct buf *out)
{
    size_t n_values = epoch->n_metrics;
    wire_put(out, epoch->n_nodes, 8);
    for (size_t i = 0; i < epoch->n_nodes; i++)
        put_node(&epoch->nodes[i], n_values ? epoch->values + i * n_values : NULL, n_values, layout, out);
}

static void put_epoch(const struct hpcrun_profile *epoch, const struct hpcrun_layout *layout, bool with_tail,
                      struct buf *out)
{
    buf_append(out, HPCRUN_EPOCH_MAGIC, strlen(HPCRUN_EPOCH_MAGIC));
    wire_put(out, epoch->epoch_flags, 8);
    wire_put(out, epoch->granularity, 8);
    wire_put(out, epoch->ra_to_callsite, 4);
    put_pairs(epoch->epoch_pairs, epoch->n_epoch_pairs, out);
    wire_put(out, epoch->n_metrics, 4);
    for (size_t i = 0; i < epoch->n_metrics; i++)
        put_metric(&epoch->metrics[i], with_tail, out);
    put_modules(epoch, out);
    put_nodes(epoch, layout, out);
}

int hpcrun_write(const struct hpcrun_profile *profile, struct buf *out, struct error *err)
{
    const struct hpcrun_layout *layout = hpcrun_layout_of(profile->version);
    if (!layout || layout->sparse)
        return error_set(err, ERR_UNSUPPORTED,
                         "profiles of version '%.5s' are not written (02.00, 02.10, 03.00 and 03.10 are)",
                         profile->version);
    if (profile->short_metrics && !layout->may_be_old)
        return error_set(err, ERR_RANGE, "short metric entries exist only in version 02.00");
    for (const struct hpcrun_profile *epoch = profile; epoch; epoch = epoch->next) {
        int code = check_epoch(epoch, layout, err);
        if (code)
            return code;
    }
    buf_printf(out, "%s%.5sb", HPCRUN_MAGIC, profile->version);
    put_pairs(profile->pairs, profile->n_pairs, out);
    for (const struct hpcrun_profile *epoch = profile; epoch; epoch = epoch->next)
        put_epoch(epoch, layout, !profile->short_metrics, out);
    return out->failed ? error_set(err, ERR_MEMORY, "out of memory while writing a profile") : 0;
}

int hpcrun_write_head(const struct hpcrun_profile *profile, size_t n_nodes, struct buf *out, struct error *err)
{
    int code = hpcrun_write(profile, out, err);
    if (!code)
        bytes_put_be(out->data + out->len_bytes - 8, n_nodes, 8);
    return code;
}

void hpcrun_write_node(const struct hpcrun_profile *profile, const struct hpcrun_node *node, const uint64_t *values,
                       struct buf *out)
{
    put_node(node, values, profile->n_metrics, hpcrun_layout_of(profile->version), out);
}

int hpcrun_write_file(const struct hpcrun_profile *profile, const char *path, struct error *err)
{
    struct buf out = {0};
    int code = hpcrun_write(profile, &out, err);
    if (!code)
        code = file_write_new(path, out.data, out.len_bytes, err);
    buf_fini(&out);
    return code;
}
