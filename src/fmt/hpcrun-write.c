/* SPDX-License-Identifier: BSD-3-Clause */
/* Writer of dense profiles (02.00 to 03.10). What the format or its readers could not take back is refused instead of
 * being cut. Ordinary code. */
#include "fmt/hpcrun.h"

#include <string.h>

#include "base/bytes.h"
#include "fmt/file.h"
#include "fmt/hpcrun-parts.h"

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
