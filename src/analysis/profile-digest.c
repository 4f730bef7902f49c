/* SPDX-License-Identifier: BSD-3-Clause */
/* Digests as bytes: [n_bytes, number, code, n_epochs, n_totals] as 64-bit numbers; the problem and a 0,
 * that of the trace and a 0; epochs; totals.
 * An epoch: [len_head, n_nodes], the head, the nodes. A total: the metric's name and a 0, the value. */
#include "analysis/profile-digest.h"

#include <string.h>

#include "base/bytes.h"

int digest_put_epoch(struct buf *epochs, const struct hpcrun_profile *head, const struct raw_ids *ids,
                     const struct objects_file *side, struct error *err)
{
    struct hpcrun_profile tables = *head;
    struct buf text = {0}, nodes = {0};
    tables.n_nodes = 0;
    tables.next = NULL;
    strcpy(tables.version, "03.10");
    tables.short_metrics = 0;
    int code = hpcrun_write(&tables, &text, err);
    for (size_t i = 0; side && i < side->n_variables; i++) {
        struct digest_node node = {side->variables[i].node, raw_ids_find(ids, side->variables[i].node)};
        if (node.node != RAW_NONE)
            buf_append(&nodes, &node, sizeof node);
    }
    pack_number(epochs, text.len_bytes);
    pack_number(epochs, nodes.len_bytes / sizeof(struct digest_node));
    buf_append(epochs, text.data, text.len_bytes);
    buf_append(epochs, nodes.data, nodes.len_bytes);
    if (code == 0 && (nodes.failed || epochs->failed))
        code = error_set(err, ERR_MEMORY, "out of memory");
    buf_fini(&text);
    buf_fini(&nodes);
    return code;
}

void digest_put(struct buf *out, size_t number, const struct error *problem, const struct error *trace_problem,
                const struct buf *epochs, size_t n_epochs, const struct ingested *profile, const struct strtab *metrics)
{
    size_t start = out->len_bytes;
    pack_number(out, 0);
    pack_number(out, number);
    pack_number(out, (uint64_t)(int64_t)(problem ? problem->code : 0));
    pack_number(out, problem ? 0 : n_epochs);
    pack_number(out, problem ? 0 : profile->n_totals);
    pack_text(out, problem ? problem->text : "");
    pack_text(out, trace_problem->code ? trace_problem->text : "");
    if (!problem) {
        buf_append(out, epochs->data, epochs->len_bytes);
        for (size_t i = 0; i < profile->n_totals; i++) {
            pack_text(out, metrics->strings[profile->totals[i].metric]);
            pack_number(out, bytes_bits_of(profile->totals[i].value));
        }
    }
    uint64_t n_bytes = out->len_bytes - start;
    if (!out->failed)
        memcpy(out->data + start, &n_bytes, sizeof n_bytes);
}

bool digest_next(const char **at, const char *end, struct profile_digest *digest)
{
    const char *p = *at;
    if (p == end)
        return false;
    *at += unpack_number(&p);
    digest->number = unpack_number(&p);
    digest->code = (int)(int64_t)unpack_number(&p);
    digest->n_epochs = unpack_number(&p);
    digest->n_totals = unpack_number(&p);
    digest->problem = p;
    digest->trace_problem = p + strlen(p) + 1;
    digest->epochs = digest->trace_problem + strlen(digest->trace_problem) + 1;
    digest->end = *at;
    digest->totals = digest->epochs;
    struct profile_digest walk = *digest;
    for (size_t i = 0; i < digest->n_epochs; i++)
        (void)digest_next_epoch(&walk);
    digest->totals = walk.epochs;
    return true;
}

struct digest_epoch digest_next_epoch(struct profile_digest *digest)
{
    struct digest_epoch epoch;
    epoch.len_head = unpack_number(&digest->epochs);
    epoch.n_nodes = unpack_number(&digest->epochs);
    epoch.head = digest->epochs;
    epoch.nodes = epoch.head + epoch.len_head;
    digest->epochs += epoch.len_head + epoch.n_nodes * sizeof(struct digest_node);
    return epoch;
}

struct digest_total digest_next_total(struct profile_digest *digest)
{
    struct digest_total total = {.metric = digest->totals};
    digest->totals += strlen(total.metric) + 1;
    total.value = bytes_double_of(unpack_number(&digest->totals));
    return total;
}

void digest_translate(char *bytes, size_t n_bytes, const uint32_t *map, size_t n_ids)
{
    const char *at = bytes;
    struct profile_digest digest;
    while (digest_next(&at, bytes + n_bytes, &digest))
        for (size_t e = 0; e < digest.n_epochs; e++) {
            struct digest_epoch epoch = digest_next_epoch(&digest);
            char *nodes = bytes + (epoch.nodes - bytes);
            for (size_t i = 0; i < epoch.n_nodes; i++) {
                struct digest_node node;
                memcpy(&node, nodes + i * sizeof node, sizeof node);
                node.node = node.node < n_ids ? map[node.node] : RAW_NONE;
                memcpy(nodes + i * sizeof node, &node, sizeof node);
            }
        }
}
