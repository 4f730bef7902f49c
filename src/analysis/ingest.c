/* SPDX-License-Identifier: BSD-3-Clause */
/* Profiles into the store: see ingest.h. */
#include "analysis/ingest.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

#define PIECE_BYTES (1u << 20)
#define RAW_IN_DATA (1u << 31) /* at or below the root of the data-centric tree; not in the store */

/* A profile on its way. */
struct visit {
    struct ingest *ingest;
    struct ingest_scratch *scratch;
    const struct ingest_reader *reader;
    struct ingested *profile;
    const char *path;
};

static uint32_t absolute(int32_t id)
{
    return id < 0 ? 0u - (uint32_t)id : (uint32_t)id;
}

static size_t slot_of(const struct raw_ids *ids, uint32_t id)
{
    size_t slot = (size_t)(id * 0x9e3779b1u >> 3) & (ids->n_slots - 1);
    while (ids->slots[slot] && ids->ids[ids->slots[slot] - 1] != id)
        slot = (slot + 1) & (ids->n_slots - 1);
    return slot;
}

bool raw_ids_begin(struct raw_ids *ids, size_t n)
{
    size_t n_slots = 1024;
    while (n_slots < 2 * n + 2)
        n_slots *= 2;
    ids->n = 0;
    if (n_slots > ids->n_slots) {
        free(ids->slots);
        ids->slots = malloc(n_slots * sizeof *ids->slots);
        ids->n_slots = ids->slots ? n_slots : 0;
    }
    if (ids->slots)
        memset(ids->slots, 0, ids->n_slots * sizeof *ids->slots);
    return ids->slots && vec_reserve(&ids->ids, &ids->capacity, n + 1, sizeof *ids->ids) &&
           vec_reserve(&ids->nodes, &ids->cap_nodes, n + 1, sizeof *ids->nodes) &&
           vec_reserve(&ids->flags, &ids->cap_flags, n + 1, sizeof *ids->flags);
}

void raw_ids_add(struct raw_ids *ids, uint32_t id, uint32_t node, uint32_t flags)
{
    size_t slot = slot_of(ids, id);
    ids->ids[ids->n] = id;
    ids->nodes[ids->n] = node;
    ids->flags[ids->n++] = flags;
    ids->slots[slot] = (uint32_t)ids->n;
}

void raw_ids_fini(struct raw_ids *ids)
{
    free(ids->slots);
    free(ids->ids);
    free(ids->nodes);
    free(ids->flags);
}

/* Index + 1 of the node with this id, 0 when there is none. */
static uint32_t ids_find(const struct raw_ids *ids, uint32_t id)
{
    return ids->slots ? ids->slots[slot_of(ids, id)] : 0;
}

uint32_t raw_ids_find(const struct raw_ids *ids, uint32_t id)
{
    uint32_t found = ids_find(ids, id);
    return found ? ids->nodes[found - 1] : RAW_NONE;
}

static int no_memory(const struct visit *visit, struct error *err)
{
    return error_set(err, ERR_MEMORY, "out of memory while merging %s", visit->path);
}

/* Index of the metric's name among all; -1 when out of memory or more than fit. */
static int64_t find_metric(struct ingest *ingest, const char *name)
{
    (void)pthread_mutex_lock(&ingest->metrics_mutex);
    int64_t id = strtab_intern(&ingest->metrics, name);
    (void)pthread_mutex_unlock(&ingest->metrics_mutex);
    return id < UINT16_MAX ? id : -1;
}

static bool begin_tables(struct visit *visit, const struct hpcrun_profile *head)
{
    struct ingest_scratch *s = visit->scratch;
    if (!vec_reserve(&s->metrics, &s->cap_metrics, head->n_metrics + 1, sizeof *s->metrics) ||
        !vec_reserve(&s->sums, &s->cap_sums, head->n_metrics + 1, sizeof *s->sums) ||
        !vec_reserve(&s->modules, &s->cap_modules, 65536, sizeof *s->modules))
        return false;
    memset(s->modules, 0, 65536 * sizeof *s->modules);
    for (size_t i = 0; i < head->n_modules; i++)
        if (!(s->modules[head->modules[i].id] = raw_store_module(visit->ingest->store, head->modules[i].path)))
            return false;
    for (size_t i = 0; i < head->n_metrics; i++) {
        int64_t id = find_metric(visit->ingest, head->metrics[i].name);
        if (id < 0)
            return false;
        s->metrics[i] = (uint16_t)id;
        s->sums[i] = 0;
    }
    return true;
}

static int begin_epoch(void *context, const struct hpcrun_profile *head, size_t n_nodes, struct error *err)
{
    struct visit *visit = context;
    visit->scratch->head = head;
    visit->scratch->n_roots = 0;
    return raw_ids_begin(&visit->scratch->ids, n_nodes) && begin_tables(visit, head) ? 0 : no_memory(visit, err);
}

/* Writes the values that are waiting. */
static int flush(struct visit *visit, struct error *err)
{
    struct ingested *profile = visit->profile;
    struct buf *values = &visit->scratch->values;
    if (values->failed ||
        !vec_reserve(&profile->pieces, &profile->cap_pieces, profile->n_pieces + 1, sizeof *profile->pieces))
        return no_memory(visit, err);
    if (values->len_bytes == 0)
        return 0;
    int code =
        spill_append(visit->ingest->spill, values->data, values->len_bytes, &profile->pieces[profile->n_pieces], err);
    profile->n_pieces += code == 0;
    if (code)
        __atomic_store_n(&visit->ingest->is_spill_full, true, __ATOMIC_RELAXED);
    values->len_bytes = 0;
    return code;
}

static int put_value(struct visit *visit, uint32_t node, uint32_t index, double value, struct error *err)
{
    struct ingest_scratch *s = visit->scratch;
    char bytes[INGEST_VALUE_BYTES];
    memcpy(bytes, &node, 4);
    memcpy(bytes + 4, &s->metrics[index], 2);
    memcpy(bytes + 6, &value, 8);
    buf_append(&s->values, bytes, sizeof bytes);
    s->sums[index] += value;
    return s->values.failed || s->values.len_bytes > PIECE_BYTES ? flush(visit, err) : 0;
}

struct ingest_value ingest_value_at(const char *bytes)
{
    struct ingest_value value;
    memcpy(&value.node, bytes, 4);
    memcpy(&value.metric, bytes + 4, 2);
    memcpy(&value.value, bytes + 6, 8);
    return value;
}

static double value_of(const struct hpcrun_metric *metric, uint64_t word)
{
    double raw = metric->flags[2] == HPCRUN_VALUE_REAL ? bytes_double_of(word) : (double)word;
    return raw * (double)(metric->period ? metric->period : 1);
}

/* Passes the node's values on; *flags tells whether it has any. */
static int take_values(struct visit *visit, uint32_t node, const struct hpcrun_value *values, size_t n_values,
                       uint32_t *flags, struct error *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < n_values; i++) {
        const struct hpcrun_metric *metric = &visit->scratch->head->metrics[values[i].metric];
        double value = value_of(metric, values[i].word);
        if (value == 0 || metric->flags[2] == HPCRUN_VALUE_ADDRESS)
            continue;
        if (*flags & RAW_IN_DATA)
            __atomic_store_n(&visit->ingest->data_metrics[visit->scratch->metrics[values[i].metric]], true,
                             __ATOMIC_RELAXED);
        *flags |= RAW_HAS_VALUES;
        code = put_value(visit, node, values[i].metric, value, err);
    }
    return code;
}

static int take_node(void *context, const struct hpcrun_node *node, const struct hpcrun_value *values, size_t n_values,
                     struct error *err)
{
    struct visit *visit = context;
    struct raw_ids *ids = &visit->scratch->ids;
    uint32_t id = absolute(node->id), above = 0, parent = RAW_NONE, module = 0;
    if (ids_find(ids, id))
        return error_set(err, ERR_FORMAT, "%s: two call-tree nodes have the id %u", visit->path, id);
    if (node->parent) {
        above = ids_find(ids, absolute(node->parent));
        if (!above)
            return error_set(err, ERR_FORMAT, "%s: call-tree node %d comes before its parent %d, or that is missing",
                             visit->path, node->id, node->parent);
        parent = ids->nodes[above - 1];
        module = node->module ? visit->scratch->modules[node->module] : 0;
    }
    visit->scratch->n_roots += node->parent == 0;
    uint32_t index = raw_store_child(visit->ingest->store, parent, module, node->parent ? node->ip : 0);
    if (index == RAW_NONE)
        return no_memory(visit, err);
    uint32_t flags = (node->type & 0xffff) | RAW_IS_LIVE;
    if (node->type & HPCRUN_NODE_ROOT || (above && ids->flags[above - 1] & RAW_IN_DATA))
        flags |= RAW_IN_DATA;
    int code = take_values(visit, index, values, n_values, &flags, err);
    raw_ids_add(ids, id, index, flags);
    return code;
}

static int keep_totals(struct visit *visit, struct error *err)
{
    struct ingested *profile = visit->profile;
    const struct ingest_scratch *s = visit->scratch;
    if (!vec_reserve(&profile->totals, &profile->cap_totals, profile->n_totals + s->head->n_metrics + 1,
                     sizeof *profile->totals))
        return no_memory(visit, err);
    for (size_t m = 0; m < s->head->n_metrics; m++)
        if (s->sums[m] != 0)
            profile->totals[profile->n_totals++] = (struct ingest_total){s->metrics[m], s->sums[m]};
    return 0;
}

/* Only here the nodes begin to count: a profile that turns out to be damaged leaves no trace in the tree. */
static int end_epoch(void *context, const struct hpcrun_profile *head, struct error *err)
{
    struct visit *visit = context;
    const struct raw_ids *ids = &visit->scratch->ids;
    if (visit->scratch->n_roots > 1)
        return error_set(err, ERR_FORMAT, "%s: the call tree has %zu roots", visit->path, visit->scratch->n_roots);
    int code = keep_totals(visit, err);
    if (code == 0)
        code = visit->reader->epoch(visit->reader->context, head, ids, err);
    for (size_t i = 0; code == 0 && i < ids->n; i++)
        raw_store_mark(visit->ingest->store, ids->nodes[i], ids->flags[i] & ~RAW_IN_DATA);
    return code;
}

int ingest_profile(struct ingest *ingest, struct ingest_scratch *scratch, const char *path,
                   const struct ingest_reader *reader, struct ingested *profile, struct error *err)
{
    struct visit visit = {.ingest = ingest, .scratch = scratch, .reader = reader, .profile = profile, .path = path};
    const struct hpcrun_visitor visitor = {
        .context = &visit, .epoch = begin_epoch, .node = take_node, .end = end_epoch};
    scratch->values.len_bytes = 0;
    int code = hpcrun_visit(path, &visitor, err);
    return code ? code : flush(&visit, err);
}

void ingested_fini(struct ingested *profile)
{
    free(profile->pieces);
    free(profile->totals);
    free(profile->trace_pieces);
    memset(profile, 0, sizeof *profile);
}

void ingest_scratch_fini(struct ingest_scratch *scratch)
{
    raw_ids_fini(&scratch->ids);
    free(scratch->metrics);
    free(scratch->sums);
    free(scratch->modules);
    buf_fini(&scratch->values);
}
