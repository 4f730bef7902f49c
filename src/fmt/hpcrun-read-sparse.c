/* SPDX-License-Identifier: BSD-3-Clause */
/* Reader of sparse profiles (04.00): sections found through a footer, values stored only where they are not zero.
 * In memory they become the same dense matrix as in the other versions. Ordinary code. */
#include "fmt/hpcrun-parts.h"

#include <inttypes.h>
#include <stdlib.h>

#define FOOTER_BYTES 112u
#define FOOTER_MAGIC 0x48504352554E736Du /* "HPCRUNsm" */
#define END_NODE 0x656E6421u             /* "end!" */
#define MAX_DENSE_BYTES (UINT64_C(4) << 30)

enum section { HEADER, LOAD_MAP, CALL_TREE, METRICS, ID_KINDS, VALUES, N_SECTIONS };

static const char *const section_names[N_SECTIONS] = {
    "the header", "the load map", "the call tree", "the metric table", "the id dictionary", "the metric values",
};

struct sections {
    uint64_t start[N_SECTIONS], end[N_SECTIONS];
};

static int get_footer(struct wire_in *in, struct sections *sections)
{
    if (in->len_bytes < FOOTER_BYTES + 24)
        return wire_fail(in, ERR_FORMAT, "the file is truncated: no room for the footer");
    size_t footer_start = in->offset = in->len_bytes - FOOTER_BYTES;
    for (int i = 0; i < N_SECTIONS; i++) {
        sections->start[i] = wire_get(in, 8, "the footer");
        sections->end[i] = wire_get(in, 8, "the footer");
    }
    uint64_t own_start = wire_get(in, 8, "the footer");
    if (wire_get(in, 8, "the footer") != FOOTER_MAGIC || own_start != footer_start) {
        in->offset = footer_start;
        return wire_fail(in, ERR_FORMAT, "the file is truncated or damaged: the footer HPCRUNsm is not at its end");
    }
    for (int i = 0; i < N_SECTIONS; i++)
        if (sections->start[i] > sections->end[i] || sections->end[i] > footer_start)
            return wire_fail(in, ERR_FORMAT,
                             "the footer places %s at bytes %" PRIu64 " to %" PRIu64 " of a file of %zu",
                             section_names[i], sections->start[i], sections->end[i], in->len_bytes);
    return in->code;
}

/* A cursor over one section; failures are remembered in it and carried back by leave_section. */
static struct wire_in enter_section(const struct wire_in *in, const struct sections *sections, enum section section)
{
    struct wire_in part = *in;
    part.offset = sections->start[section];
    part.len_bytes = sections->end[section];
    return part;
}

static int leave_section(struct wire_in *in, struct wire_in *part, enum section section)
{
    if (!part->code && part->offset != part->len_bytes)
        wire_fail(part, ERR_FORMAT, "%s ends %zu bytes before its section does", section_names[section],
                  part->len_bytes - part->offset);
    in->code = part->code;
    return in->code;
}

static void get_nodes(struct wire_in *in, struct hpcrun_profile *profile)
{
    static const char what[] = "the call tree";
    uint64_t n_nodes = wire_get(in, 8, what);
    if (!wire_has_items(in, n_nodes, 19, what) || !n_nodes)
        return;
    profile->nodes = calloc(n_nodes, sizeof *profile->nodes);
    if (!profile->nodes) {
        wire_fail(in, ERR_MEMORY, "out of memory in %s", what);
        return;
    }
    profile->n_nodes = profile->cap_nodes = n_nodes;
    for (size_t i = 0; i < n_nodes; i++) {
        struct hpcrun_node *node = &profile->nodes[i];
        node->id = (int32_t)wire_get(in, 4, what);
        node->parent = (int32_t)wire_get(in, 4, what);
        node->module = (uint16_t)wire_get(in, 2, what);
        node->ip = wire_get(in, 8, what);
        node->unwound = (uint8_t)wire_get(in, 1, what);
    }
}

static void get_id_kinds(struct wire_in *in, struct hpcrun_profile *profile)
{
    static const char what[] = "the id dictionary";
    uint64_t n_kinds = wire_get(in, 2, what);
    if (!wire_has_items(in, n_kinds, 6, what) || !n_kinds)
        return;
    profile->id_kinds = calloc(n_kinds, sizeof *profile->id_kinds);
    profile->id_kind_numbers = calloc(n_kinds, sizeof *profile->id_kind_numbers);
    if (!profile->id_kinds || !profile->id_kind_numbers) {
        wire_fail(in, ERR_MEMORY, "out of memory in %s", what);
        return;
    }
    profile->n_id_kinds = n_kinds;
    for (size_t i = 0; i < n_kinds; i++) {
        profile->id_kind_numbers[i] = (uint16_t)wire_get(in, 2, what);
        profile->id_kinds[i] = wire_get_text(in, what);
    }
}

static void get_ids(struct wire_in *in, struct hpcrun_profile *profile)
{
    static const char what[] = "the id tuple";
    uint64_t n_ids = wire_get(in, 2, what);
    if (!wire_has_items(in, n_ids, 18, what) || !n_ids)
        return;
    profile->ids = calloc(n_ids, sizeof *profile->ids);
    if (!profile->ids) {
        wire_fail(in, ERR_MEMORY, "out of memory in %s", what);
        return;
    }
    profile->n_ids = n_ids;
    for (size_t i = 0; i < n_ids; i++) {
        profile->ids[i].kind = (uint16_t)wire_get(in, 2, what);
        profile->ids[i].physical = wire_get(in, 8, what);
        profile->ids[i].logical = wire_get(in, 8, what);
    }
}

struct node_place {
    int32_t id;
    size_t index;
};

static int compare_places(const void *a, const void *b)
{
    int32_t x = ((const struct node_place *)a)->id, y = ((const struct node_place *)b)->id;
    return (x > y) - (x < y);
}

/* The profile's node ids in order, with their places; NULL when out of memory. */
static struct node_place *sort_nodes(const struct hpcrun_profile *profile)
{
    struct node_place *places = calloc(profile->n_nodes + 1, sizeof *places);
    if (!places)
        return NULL;
    for (size_t i = 0; i < profile->n_nodes; i++)
        places[i] = (struct node_place){profile->nodes[i].id, i};
    qsort(places, profile->n_nodes, sizeof *places, compare_places);
    return places;
}

static int alloc_values(struct wire_in *in, struct hpcrun_profile *profile)
{
    if (!profile->n_nodes || !profile->n_metrics)
        return 0;
    if (profile->n_nodes > MAX_DENSE_BYTES / 8 / profile->n_metrics)
        return wire_fail(in, ERR_RANGE, "%zu nodes with %zu metrics are more than this reader holds", profile->n_nodes,
                         profile->n_metrics);
    profile->cap_values = profile->n_nodes * profile->n_metrics;
    profile->values = calloc(profile->cap_values, sizeof *profile->values);
    return profile->values ? 0 : wire_fail(in, ERR_MEMORY, "out of memory in the metric values");
}

/* The values first..last-1 of the node with this id. values: a cursor at the start of all values. */
static void get_node_values(struct wire_in *values, struct hpcrun_profile *profile, const struct node_place *places,
                            int32_t id, uint64_t first, uint64_t last)
{
    static const char what[] = "the metric values";
    struct node_place key = {id, 0};
    const struct node_place *place = bsearch(&key, places, profile->n_nodes, sizeof key, compare_places);
    if (!place) {
        wire_fail(values, ERR_FORMAT, "values are given for node %" PRId32 ", which is not in the call tree", id);
        return;
    }
    for (; first < last && !values->code; first++) {
        uint64_t value = wire_get(values, 8, what);
        uint64_t metric = wire_get(values, 2, what);
        if (!values->code && metric >= profile->n_metrics)
            wire_fail(values, ERR_FORMAT, "a value is given for metric %" PRIu64 " of %zu", metric, profile->n_metrics);
        else if (!values->code)
            profile->values[place->index * profile->n_metrics + metric] = value;
    }
}

/* Walks the index of non-empty nodes (cursor in) and, beside it, their values. The index has one entry more than
 * nodes, so that the end of the last node's values is known too. */
static void scatter_values(struct wire_in *in, struct wire_in *values, struct hpcrun_profile *profile,
                           const struct node_place *places, uint64_t n_rows, uint64_t n_values)
{
    static const char what[] = "the index of the metric values";
    uint32_t id = (uint32_t)wire_get(in, 4, what);
    uint64_t start = wire_get(in, 8, what);
    if (!in->code && start != 0)
        wire_fail(in, ERR_FORMAT, "%s begins with value %" PRIu64, what, start);
    for (; n_rows && !in->code && !values->code; n_rows--) {
        uint32_t next_id = (uint32_t)wire_get(in, 4, what);
        uint64_t next_start = wire_get(in, 8, what);
        if (!in->code && (next_start < start || next_start > n_values))
            wire_fail(in, ERR_FORMAT, "%s goes from value %" PRIu64 " to %" PRIu64 " of %" PRIu64, what, start,
                      next_start, n_values);
        if (!in->code)
            get_node_values(values, profile, places, (int32_t)id, start, next_start);
        id = next_id;
        start = next_start;
    }
    if (!in->code && !values->code && (id != END_NODE || start != n_values))
        wire_fail(in, ERR_FORMAT, "%s does not end with its end mark", what);
}

static void get_values(struct wire_in *in, struct hpcrun_profile *profile)
{
    get_ids(in, profile);
    uint64_t n_values = wire_get(in, 8, "the metric values");
    uint64_t n_rows = wire_get(in, 4, "the metric values");
    if (!wire_has_items(in, n_values, 10, "the metric values"))
        return;
    struct wire_in values = *in;
    in->offset += n_values * 10;
    values.len_bytes = in->offset;
    if (!wire_has_items(in, n_rows + 1, 12, "the index of the metric values") || alloc_values(in, profile))
        return;
    struct node_place *places = sort_nodes(profile);
    if (!places) {
        wire_fail(in, ERR_MEMORY, "out of memory in the metric values");
        return;
    }
    scatter_values(in, &values, profile, places, n_rows, n_values);
    if (!in->code)
        in->code = values.code;
    free(places);
}

int hpcrun_get_sparse(struct wire_in *in, struct hpcrun_profile *profile)
{
    static void (*const readers[N_SECTIONS])(struct wire_in *, struct hpcrun_profile *) = {
        [CALL_TREE] = get_nodes, [ID_KINDS] = get_id_kinds, [VALUES] = get_values};
    static int (*const shared_readers[N_SECTIONS])(struct wire_in *, struct hpcrun_profile *) = {
        [HEADER] = hpcrun_get_header, [LOAD_MAP] = hpcrun_get_modules, [METRICS] = hpcrun_get_metrics};
    struct sections sections;
    if (get_footer(in, &sections))
        return in->code;
    for (enum section i = 0; i < N_SECTIONS && !in->code; i++) {
        struct wire_in part = enter_section(in, &sections, i);
        if (shared_readers[i])
            shared_readers[i](&part, profile);
        else
            readers[i](&part, profile);
        leave_section(in, &part, i);
    }
    return in->code;
}
