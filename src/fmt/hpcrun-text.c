/* SPDX-License-Identifier: BSD-3-Clause */
/* Profiles as text: see hpcrun-text.h. */
#include "fmt/hpcrun-text.h"

#include <inttypes.h>

#include "base/bytes.h"
#include "fmt/hpcrun-parts.h"
#include "fmt/json-put.h"

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
