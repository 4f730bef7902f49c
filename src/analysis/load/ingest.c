/* SPDX-License-Identifier: BSD-3-Clause */
/* Merges profiles by address: the store of nodes, the tree that is made of it, traces, and the reading of a profile.
 * See ingest.h. */
#include "analysis/load/ingest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "fmt/trace.h"

struct raw_store *raw_store_new(void)
{
    struct raw_store *store = calloc(1, sizeof *store);
    for (size_t i = 0; store && i < RAW_SHARDS; i++)
        (void)pthread_mutex_init(&store->shards[i].mutex, NULL);
    if (store)
        (void)pthread_mutex_init(&store->modules_mutex, NULL);
    return store;
}

void raw_store_free(struct raw_store *store)
{
    if (!store)
        return;
    for (size_t i = 0; i < RAW_SHARDS; i++) {
        for (size_t b = 0; b < RAW_BLOCKS; b++)
            free(store->shards[i].blocks[b]);
        free(store->shards[i].slots);
        (void)pthread_mutex_destroy(&store->shards[i].mutex);
    }
    (void)pthread_mutex_destroy(&store->modules_mutex);
    strtab_fini(&store->modules);
    free(store);
}

uint32_t raw_store_module(struct raw_store *store, const char *path)
{
    (void)pthread_mutex_lock(&store->modules_mutex);
    int64_t id = strtab_intern(&store->modules, path);
    (void)pthread_mutex_unlock(&store->modules_mutex);
    return id < 0 ? 0 : (uint32_t)id + 1;
}

static uint64_t hash_of(uint32_t parent, uint32_t module, uint64_t ip)
{
    uint64_t hash = (ip ^ (uint64_t)module << 40) * 0x9e3779b97f4a7c15u + parent * 0xff51afd7ed558ccdu;
    return hash ^ hash >> 29;
}

/* Block and place in it of the shard's node n. */
static uint32_t block_of(uint32_t n, uint32_t *place)
{
    uint32_t block = 31u - (uint32_t)__builtin_clz(n / RAW_FIRST_BLOCK + 1);
    *place = n - RAW_FIRST_BLOCK * ((1u << block) - 1);
    return block;
}

static struct raw_entry *entry_at(const struct raw_shard *shard, uint32_t n)
{
    uint32_t place, block = block_of(n, &place);
    return &shard->blocks[block][place];
}

struct raw_entry *raw_store_entry(const struct raw_store *store, uint32_t id)
{
    return entry_at(&store->shards[id % RAW_SHARDS], id / RAW_SHARDS);
}

static size_t slot_of(const struct raw_shard *shard, uint64_t hash, uint32_t parent, uint32_t module, uint64_t ip)
{
    size_t slot = (size_t)(hash >> 6) & (shard->n_slots - 1);
    for (; shard->slots[slot]; slot = (slot + 1) & (shard->n_slots - 1)) {
        const struct raw_entry *node = entry_at(shard, shard->slots[slot] - 1);
        if (node->parent == parent && node->module == module && node->ip == ip)
            break;
    }
    return slot;
}

static bool grow_slots(struct raw_shard *shard)
{
    if (shard->n_nodes * 2 < shard->n_slots)
        return true;
    size_t n_slots = shard->n_slots ? shard->n_slots * 2 : 256;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return false;
    free(shard->slots);
    shard->slots = slots;
    shard->n_slots = n_slots;
    for (uint32_t i = 0; i < shard->n_nodes; i++) {
        const struct raw_entry *node = entry_at(shard, i);
        slots[slot_of(shard, hash_of(node->parent, node->module, node->ip), node->parent, node->module, node->ip)] =
            i + 1;
    }
    return true;
}

/* Room for one more node of the shard. */
static struct raw_entry *new_entry(struct raw_shard *shard)
{
    uint32_t place, block = block_of(shard->n_nodes, &place);
    if (block >= RAW_BLOCKS || shard->n_nodes >= RAW_NONE / RAW_SHARDS)
        return NULL;
    if (!shard->blocks[block])
        shard->blocks[block] = calloc((size_t)RAW_FIRST_BLOCK << block, sizeof(struct raw_entry));
    return shard->blocks[block] ? &shard->blocks[block][place] : NULL;
}

/* Returns the node's number in the shard; RAW_NONE when out of memory. */
static uint32_t find_or_add(struct raw_shard *shard, uint64_t hash, uint32_t parent, uint32_t module, uint64_t ip)
{
    if (!grow_slots(shard))
        return RAW_NONE;
    size_t slot = slot_of(shard, hash, parent, module, ip);
    if (shard->slots[slot])
        return shard->slots[slot] - 1;
    struct raw_entry *entry = new_entry(shard);
    if (!entry)
        return RAW_NONE;
    *entry = (struct raw_entry){.ip = ip, .parent = parent, .module = module};
    shard->slots[slot] = ++shard->n_nodes;
    return shard->n_nodes - 1;
}

uint32_t raw_store_child(struct raw_store *store, uint32_t parent, uint32_t module, uint64_t ip)
{
    uint64_t hash = hash_of(parent, module, ip);
    uint32_t number = (uint32_t)hash % RAW_SHARDS;
    struct raw_shard *shard = &store->shards[number];
    (void)pthread_mutex_lock(&shard->mutex);
    uint32_t n = find_or_add(shard, hash, parent, module, ip);
    (void)pthread_mutex_unlock(&shard->mutex);
    return n == RAW_NONE ? RAW_NONE : n * RAW_SHARDS + number;
}

void raw_store_mark(struct raw_store *store, uint32_t id, uint32_t flags)
{
    uint32_t *word = &raw_store_entry(store, id)->flags;
    if ((__atomic_load_n(word, __ATOMIC_RELAXED) & flags) != flags)
        (void)__atomic_fetch_or(word, flags, __ATOMIC_RELAXED);
}

/* --- the merged tree --- */

/* The order of merged nodes. */

/* A node to be numbered. */
struct item {
    uint64_t ip;
    uint32_t parent, rank, id; /* parent and id in the store; rank of the module's path */
};

struct ordering {
    const struct raw_store *store;
    struct item *items; /* [n] */
    size_t n;
    uint32_t *ranks;   /* [modules + 1] of a module of the store, by path */
    uint32_t *modules; /* [modules + 1] symbolizer id */
    uint32_t *first;   /* [n_ids] first item below the node with this id, RAW_NONE for none */
};

void raw_tree_fini(struct raw_tree *tree)
{
    free(tree->nodes);
    free(tree->index_of);
    memset(tree, 0, sizeof *tree);
}

static int compare_paths(const void *a, const void *b, void *context)
{
    char **paths = context;
    return strcmp(paths[*(const uint32_t *)a], paths[*(const uint32_t *)b]);
}

static bool rank_modules(struct ordering *o, struct symbolizer *symbolizer)
{
    const struct strtab *paths = &o->store->modules;
    size_t n = paths->n_strings;
    uint32_t *order = calloc(n + 1, sizeof *order);
    o->ranks = calloc(n + 1, sizeof *o->ranks);
    o->modules = calloc(n + 1, sizeof *o->modules);
    bool ok = order && o->ranks && o->modules;
    for (uint32_t i = 0; ok && i < n; i++)
        order[i] = i;
    if (ok && n > 1)
        qsort_r(order, n, sizeof *order, compare_paths, paths->strings);
    for (uint32_t i = 0; ok && i < n; i++) {
        o->ranks[order[i] + 1] = i + 1;
        o->modules[order[i] + 1] = symbolizer_module(symbolizer, paths->strings[order[i]]);
        ok = o->modules[order[i] + 1] != 0;
    }
    free(order);
    return ok;
}

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->ip < y->ip ? -1 : x->ip > y->ip;
}

/* Lists the live nodes, sorted by their parents' ids and then by key. */
static bool list_items(struct ordering *o, struct raw_tree *tree)
{
    size_t n = 0;
    for (uint32_t s = 0; s < RAW_SHARDS; s++) {
        size_t end = (size_t)raw_store_count(o->store, s) * RAW_SHARDS;
        n += raw_store_count(o->store, s);
        tree->n_ids = end > tree->n_ids ? end : tree->n_ids;
    }
    o->items = calloc(n + 1, sizeof *o->items);
    for (uint32_t s = 0; o->items && s < RAW_SHARDS; s++)
        for (uint32_t i = 0; i < raw_store_count(o->store, s); i++) {
            uint32_t id = i * RAW_SHARDS + s;
            const struct raw_entry *entry = raw_store_entry(o->store, id);
            if (entry->flags & RAW_IS_LIVE)
                o->items[o->n++] = (struct item){entry->ip, entry->parent, o->ranks[entry->module], id};
        }
    if (o->items && o->n > 1)
        qsort(o->items, o->n, sizeof *o->items, compare_items);
    return o->items != NULL;
}

/* Appends the items from `at` on that have this parent. */
static void number_children(const struct ordering *o, struct raw_tree *tree, size_t at, uint32_t parent, uint32_t above)
{
    for (; at < o->n && o->items[at].parent == parent; at++) {
        const struct raw_entry *entry = raw_store_entry(o->store, o->items[at].id);
        tree->index_of[o->items[at].id] = (uint32_t)tree->n_nodes;
        tree->nodes[tree->n_nodes++] = (struct raw_node){.ip = entry->ip,
                                                         .parent = above,
                                                         .module = o->modules[entry->module],
                                                         .type = entry->flags & 0xffff,
                                                         .has_values = entry->flags & RAW_HAS_VALUES,
                                                         .is_traced = entry->flags & RAW_IS_TRACED,
                                                         .variable = RAW_NONE};
        if (above != RAW_NONE)
            tree->nodes[above].has_children = true;
    }
}

/* Numbers the nodes level by level. ids [n]: the old ids of the numbered nodes. */
static void number_nodes(const struct ordering *o, struct raw_tree *tree, uint32_t *ids)
{
    size_t root = 0; /* it sorts last, by its parent's id */
    while (root < o->n && o->items[root].parent != RAW_NONE)
        root++;
    number_children(o, tree, root, RAW_NONE, RAW_NONE);
    if (tree->n_nodes)
        ids[0] = o->items[root].id;
    for (size_t i = 0; i < tree->n_nodes; i++) {
        size_t first = o->first[ids[i]], before = tree->n_nodes;
        if (first == RAW_NONE)
            continue;
        number_children(o, tree, first, ids[i], (uint32_t)i);
        for (size_t k = before; k < tree->n_nodes; k++)
            ids[k] = o->items[first + k - before].id;
    }
}

static bool arrange(struct ordering *o, struct raw_tree *tree)
{
    uint32_t *ids = calloc(o->n + 1, sizeof *ids);
    o->first = malloc((tree->n_ids + 1) * sizeof *o->first);
    tree->index_of = malloc((tree->n_ids + 1) * sizeof *tree->index_of);
    tree->nodes = calloc(o->n + 1, sizeof *tree->nodes);
    bool ok = ids && o->first && tree->index_of && tree->nodes;
    if (ok) {
        memset(o->first, 0xff, (tree->n_ids + 1) * sizeof *o->first);
        memset(tree->index_of, 0xff, (tree->n_ids + 1) * sizeof *tree->index_of);
        for (size_t i = o->n; i-- > 0;)
            if (o->items[i].parent != RAW_NONE)
                o->first[o->items[i].parent] = (uint32_t)i;
        number_nodes(o, tree, ids);
    }
    free(ids);
    return ok;
}

int raw_tree_make(const struct raw_store *store, struct symbolizer *symbolizer, struct raw_tree *tree,
                  struct error *err)
{
    struct ordering o = {.store = store};
    memset(tree, 0, sizeof *tree);
    bool ok = rank_modules(&o, symbolizer) && list_items(&o, tree) && arrange(&o, tree);
    free(o.items);
    free(o.ranks);
    free(o.modules);
    free(o.first);
    if (ok)
        return 0;
    raw_tree_fini(tree);
    return error_set(err, ERR_MEMORY, "out of memory for the call tree");
}

/* --- traces --- */

/* The trace beside a profile: its records stay in the temporary file until the scopes of their nodes are known. */

enum { RECORDS_PIECE_BYTES = 1 << 18 };

struct taking {
    struct ingest *ingest;
    const struct raw_ids *ids;
    struct ingested *profile;
    uint64_t ns_per_tick, before_ns;
    struct buf waiting;
};

static int flush_records(struct taking *taking, struct error *err)
{
    struct ingested *profile = taking->profile;
    struct buf *waiting = &taking->waiting;
    if (waiting->failed || !vec_reserve(&profile->trace_pieces, &profile->cap_trace_pieces, profile->n_trace_pieces + 1,
                                        sizeof *profile->trace_pieces))
        return error_set(err, ERR_MEMORY, "out of memory for a trace");
    int code = spill_append(taking->ingest->spill, waiting->data, waiting->len_bytes,
                            &profile->trace_pieces[profile->n_trace_pieces], err);
    profile->n_trace_pieces += code == 0;
    waiting->len_bytes = 0;
    if (code)
        __atomic_store_n(&taking->ingest->is_spill_full, true, __ATOMIC_RELAXED);
    return code;
}

static int take_records(void *context, const struct trace_record *records, size_t n_records, struct error *err)
{
    struct taking *taking = context;
    struct ingested *profile = taking->profile;
    for (size_t i = 0; i < n_records; i++) {
        struct ingest_event event = {records[i].time * taking->ns_per_tick, raw_ids_find(taking->ids, records[i].node)};
        if (event.node != RAW_NONE)
            raw_store_mark(taking->ingest->store, event.node, RAW_IS_TRACED);
        char bytes[INGEST_EVENT_BYTES];
        memcpy(bytes, &event.time_ns, 8);
        memcpy(bytes + 8, &event.node, 4);
        buf_append(&taking->waiting, bytes, sizeof bytes);
        if (profile->n_events == 0 || event.time_ns < profile->min_time_ns)
            profile->min_time_ns = event.time_ns;
        if (event.time_ns > profile->max_time_ns)
            profile->max_time_ns = event.time_ns;
        profile->is_disordered |= event.time_ns < taking->before_ns;
        taking->before_ns = event.time_ns;
        profile->n_events++;
    }
    return taking->waiting.failed || taking->waiting.len_bytes > RECORDS_PIECE_BYTES ? flush_records(taking, err) : 0;
}

int ingest_trace(struct ingest *ingest, const char *profile_path, const struct hpcrun_profile *head,
                 const struct raw_ids *ids, struct ingested *profile, struct error *err)
{
    char path[4400];
    size_t len = strlen(profile_path);
    if (len < 7 || strcmp(profile_path + len - 7, ".hpcrun") != 0 || len + 10 > sizeof path)
        return 0;
    (void)snprintf(path, sizeof path, "%.*s.hpctrace", (int)(len - 7), profile_path);
    if (access(path, F_OK) != 0)
        return 0;
    /* profiles before version 03 have times in microseconds */
    struct taking taking = {.ingest = ingest, .ids = ids, .profile = profile};
    taking.ns_per_tick = strcmp(head->version, "03") < 0 ? 1000 : 1;
    int code = trace_visit(path, take_records, &taking, err);
    if (code == 0 && taking.waiting.len_bytes)
        code = flush_records(&taking, err);
    buf_fini(&taking.waiting);
    if (code) {
        profile->n_events = profile->n_trace_pieces = 0;
    }
    return code;
}

/* --- profiles --- */

/* Profiles into the store: see ingest.h. */

#define VALUES_PIECE_BYTES (1u << 20)
#define RAW_IN_DATA (1u << 31) /* at or below the root of the data-centric tree; not in the store */

/* A profile being read. */
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

static size_t id_slot(const struct raw_ids *ids, uint32_t id)
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
    size_t slot = id_slot(ids, id);
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
    return ids->slots ? ids->slots[id_slot(ids, id)] : 0;
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

/* Writes the buffered values. */
static int flush_values(struct visit *visit, struct error *err)
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
    return s->values.failed || s->values.len_bytes > VALUES_PIECE_BYTES ? flush_values(visit, err) : 0;
}

struct ingest_value ingest_value_at(const char *bytes)
{
    struct ingest_value value;
    memcpy(&value.node, bytes, 4);
    memcpy(&value.metric, bytes + 4, 2);
    memcpy(&value.value, bytes + 6, 8);
    return value;
}

#define VALUE_MOST 1e200 /* sums of as many as there can be are finite */

static double value_of(const struct hpcrun_metric *metric, uint64_t word)
{
    double raw = metric->flags[2] == HPCRUN_VALUE_REAL ? bytes_double_of(word) : (double)word;
    return raw * (double)(metric->period ? metric->period : 1);
}

/* Passes the node's values on; *flags gets RAW_HAS_VALUES if it has any. */
static int take_values(struct visit *visit, uint32_t node, const struct hpcrun_value *values, size_t n_values,
                       uint32_t *flags, struct error *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < n_values; i++) {
        const struct hpcrun_metric *metric = &visit->scratch->head->metrics[values[i].metric];
        double value = value_of(metric, values[i].word);
        if (value == 0 || metric->flags[2] == HPCRUN_VALUE_ADDRESS)
            continue;
        if (!(fabs(value) <= VALUE_MOST))
            return error_set(err, ERR_FORMAT, "%.600s: the value of %.100s at a node is not finite, or too large",
                             visit->path, metric->name);
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

/* Only here do the nodes begin to count, so that a damaged profile leaves nothing in the tree. */
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
    return code ? code : flush_values(&visit, err);
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
