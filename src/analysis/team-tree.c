/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees as messages. One that could not be made is sent as an empty one: nobody waits in vain. */
#include "analysis/team-tree.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/profile-digest.h"
#include "base/bytes.h"

/* A node in a message. */
struct sent_node {
    uint64_t ip;
    uint32_t id, parent, module, flags;
};

static void put_strings(struct buf *out, const struct strtab *strings)
{
    pack_number(out, strings->n_strings);
    for (size_t i = 0; i < strings->n_strings; i++)
        pack_text(out, strings->strings[i]);
}

/* 1 + the greatest id of a store. */
static size_t count_ids(const struct raw_store *store)
{
    size_t n = 0;
    for (uint32_t s = 0; s < RAW_SHARDS; s++)
        if (raw_store_count(store, s) > n)
            n = raw_store_count(store, s);
    return n * RAW_SHARDS;
}

static void put_nodes(struct buf *out, const struct raw_store *store)
{
    size_t at = out->len_bytes;
    uint64_t n_nodes = 0;
    pack_number(out, 0);
    for (uint32_t s = 0; s < RAW_SHARDS; s++)
        for (uint32_t i = 0; i < raw_store_count(store, s); i++) {
            uint32_t id = s + RAW_SHARDS * i;
            const struct raw_entry *entry = raw_store_entry(store, id);
            struct sent_node node = {entry->ip, id, entry->parent, entry->module, entry->flags};
            if (!(entry->flags & RAW_IS_LIVE))
                continue;
            buf_append(out, &node, sizeof node);
            n_nodes++;
        }
    if (!out->failed)
        memcpy(out->data + at, &n_nodes, sizeof n_nodes);
}

static void put_all(struct buf *out, const struct ingest *ingest, const struct buf *digests)
{
    put_strings(out, &ingest->store->modules);
    put_strings(out, &ingest->metrics);
    for (size_t i = 0; i < ingest->metrics.n_strings; i++)
        buf_append(out, ingest->data_metrics[i] ? "1" : "0", 1);
    pack_number(out, count_ids(ingest->store));
    put_nodes(out, ingest->store);
    pack_number(out, digests->len_bytes);
    buf_append(out, digests->data, digests->len_bytes);
    out->failed |= digests->failed;
}

/* Merges one node, after those above it; false when out of memory. nodes [n_ids] by id, those not sent with
 * id RAW_NONE. */
static bool merge_node(struct raw_store *store, const struct sent_node *nodes, const uint32_t *modules, uint32_t id,
                       uint32_t *map)
{
    uint32_t path[1024], n = 0;
    while (map[id] == RAW_NONE) { /* as far up as the path goes; the rest in later rounds */
        path[n % 1024] = id;
        n++;
        if (nodes[id].parent == RAW_NONE)
            break;
        id = nodes[id].parent;
    }
    for (uint32_t last = n > 1024 ? 1024 : n; last > 0; last--, n--) {
        uint32_t at = path[(n - 1) % 1024];
        const struct sent_node *node = &nodes[at];
        uint32_t parent = node->parent == RAW_NONE ? RAW_NONE : map[node->parent];
        uint32_t module = node->module ? modules[node->module - 1] : 0;
        map[at] = raw_store_child(store, parent, module, node->ip);
        if (map[at] == RAW_NONE)
            return false;
        raw_store_mark(store, map[at], node->flags);
    }
    return true;
}

static bool merge_nodes(struct raw_store *store, const char *sent, size_t n_sent, const uint32_t *modules,
                        struct team_branch *branch)
{
    struct sent_node *nodes = calloc(branch->n_ids + 1, sizeof *nodes);
    bool ok = nodes != NULL;
    for (size_t i = 0; ok && i < n_sent; i++) {
        struct sent_node node;
        memcpy(&node, sent + i * sizeof node, sizeof node);
        nodes[node.id] = node;
    }
    for (size_t i = 0; ok && i < branch->n_ids; i++)
        while (ok && nodes[i].flags && branch->map[i] == RAW_NONE)
            ok = merge_node(store, nodes, modules, (uint32_t)i, branch->map);
    free(nodes);
    return ok;
}

/* The other member's metrics and modules, by its numbers, in this one's. */
static bool merge_strings(struct ingest *ingest, const char **at, uint32_t **modules)
{
    size_t n_modules = unpack_number(at);
    bool ok = (*modules = calloc(n_modules + 1, sizeof **modules)) != NULL;
    for (size_t i = 0; ok && i < n_modules; i++)
        ok = ((*modules)[i] = raw_store_module(ingest->store, unpack_text(at))) != 0;
    size_t n_metrics = ok ? unpack_number(at) : 0;
    const char *names = *at;
    for (size_t i = 0; i < n_metrics; i++)
        (void)unpack_text(at);
    for (size_t i = 0; ok && i < n_metrics; i++) {
        int64_t metric = strtab_intern(&ingest->metrics, unpack_text(&names));
        ok = metric >= 0 && metric < UINT16_MAX;
        if (ok && (*at)[i] == '1')
            ingest->data_metrics[metric] = true;
    }
    *at += n_metrics;
    return ok;
}

static bool merge_all(struct ingest *ingest, char *message, struct buf *digests, struct team_branch *branch)
{
    const char *at = message;
    uint32_t *modules = NULL;
    bool ok = merge_strings(ingest, &at, &modules);
    if (ok) {
        branch->n_ids = unpack_number(&at);
        branch->map = malloc((branch->n_ids + 1) * sizeof *branch->map);
        ok = branch->map != NULL;
    }
    if (ok) {
        memset(branch->map, 0xff, branch->n_ids * sizeof *branch->map);
        size_t n_nodes = unpack_number(&at);
        ok = merge_nodes(ingest->store, at, n_nodes, modules, branch);
        at += n_nodes * sizeof(struct sent_node);
    }
    if (ok) {
        size_t len_digests = unpack_number(&at);
        digest_translate(message + (at - message), len_digests, branch->map, branch->n_ids);
        buf_append(digests, at, len_digests);
        ok = !digests->failed;
    }
    free(modules);
    return ok;
}

static bool take_branch(const struct team *team, size_t rank, struct ingest *ingest, struct buf *digests,
                        struct team_tree *tree)
{
    struct buf message = {0};
    struct team_branch *branch = &tree->branches[tree->n_branches++];
    *branch = (struct team_branch){.rank = rank};
    team->receive(team, rank, &message);
    bool ok = !message.failed && message.len_bytes > 0 && merge_all(ingest, message.data, digests, branch);
    buf_fini(&message);
    return ok;
}

int team_tree_gather(const struct team *team, struct ingest *ingest, struct buf *digests, struct team_tree *tree,
                     struct error *err)
{
    bool ok = true;
    for (size_t step = 1; step < team->n_ranks; step *= 2) {
        if (team->rank & step) {
            struct buf message = {0};
            if (ok)
                put_all(&message, ingest, digests);
            ok = ok && !message.failed;
            team->send(team, team->rank - step, message.data, ok ? message.len_bytes : 0);
            buf_fini(&message);
            buf_fini(digests);
            break;
        }
        if (team->rank + step < team->n_ranks)
            ok = take_branch(team, team->rank + step, ingest, digests, tree) && ok;
    }
    return team_agree(team, ok ? 0 : error_set(err, ERR_MEMORY, "out of memory while putting the call trees together"),
                      err);
}

static bool send_scopes(const struct team *team, const struct team_branch *branch, const uint32_t *scopes,
                        size_t n_scopes)
{
    uint32_t *sent = scopes ? calloc(branch->n_ids + 1, sizeof *sent) : NULL;
    for (size_t i = 0; sent && i < branch->n_ids; i++)
        sent[i] = branch->map[i] < n_scopes ? scopes[branch->map[i]] : 0;
    team->send(team, branch->rank, sent, sent ? (branch->n_ids + 1) * sizeof *sent : 0);
    bool ok = sent != NULL;
    free(sent);
    return ok;
}

int team_tree_return(const struct team *team, const struct team_tree *tree, uint32_t **scopes, size_t *n_scopes,
                     struct error *err)
{
    bool ok = true;
    if (team->rank > 0) {
        struct buf message = {0};
        team->receive(team, team->rank & (team->rank - 1), &message);
        *scopes = message.failed || message.len_bytes == 0 ? NULL : (uint32_t *)(void *)message.data;
        *n_scopes = *scopes ? message.len_bytes / sizeof **scopes - 1 : 0;
        ok = *scopes != NULL;
        if (!ok)
            buf_fini(&message);
    }
    for (size_t i = tree->n_branches; i-- > 0;)
        ok = send_scopes(team, &tree->branches[i], *scopes, *n_scopes) && ok;
    return team_agree(team, ok ? 0 : error_set(err, ERR_MEMORY, "out of memory for the places of values"), err);
}

void team_tree_fini(struct team_tree *tree)
{
    for (size_t i = 0; i < tree->n_branches; i++)
        free(tree->branches[i].map);
    tree->n_branches = 0;
}
