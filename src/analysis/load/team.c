/* SPDX-License-Identifier: BSD-3-Clause */
/* Loading by a team: what its members send as bytes (digests), how their trees become one, and how the leader makes the
 * model from both. See team.h.
 * A digest: [n_bytes, number, code, n_epochs, n_totals] as 64-bit numbers; the problem and a 0, that of the trace and a
 * 0; epochs; totals. An epoch: [len_head, n_nodes], the head, the nodes. A total: the metric's name and a 0, the value.
 */
#include "analysis/load/team.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/load/load.h"
#include "base/bytes.h"

static void put_node(uint32_t id, const struct raw_ids *ids, struct buf *nodes)
{
    const struct digest_node node = {id, raw_ids_find(ids, id)};
    if (node.node != RAW_NONE)
        buf_append(nodes, &node, sizeof node);
}

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
        put_node(side->variables[i].node, ids, &nodes);
        for (size_t k = 0; k < side->variables[i].n_touches; k++)
            put_node(side->variables[i].touches[k].node, ids, &nodes);
        for (size_t k = 0; k < side->variables[i].n_meetings; k++)
            put_node(side->variables[i].meetings[k].node, ids, &nodes);
    }
    pack_number(epochs, text.len_bytes);
    pack_number(epochs, nodes.len_bytes / sizeof(struct digest_node));
    buf_append(epochs, text.data, text.len_bytes);
    buf_append(epochs, nodes.data, nodes.len_bytes);
    if (code == 0 && (nodes.failed || epochs->failed))
        code = error_memory(err);
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

static struct digest_epoch digest_next_epoch(struct profile_digest *digest)
{
    struct digest_epoch epoch;
    epoch.len_head = unpack_number(&digest->epochs);
    epoch.n_nodes = unpack_number(&digest->epochs);
    epoch.head = digest->epochs;
    epoch.nodes = epoch.head + epoch.len_head;
    digest->epochs += epoch.len_head + epoch.n_nodes * sizeof(struct digest_node);
    return epoch;
}

/* Reads the digest at *at and moves *at past it; false at the end. */
static bool digest_next(const char **at, const char *end, struct profile_digest *digest)
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

static struct digest_total digest_next_total(struct profile_digest *digest)
{
    struct digest_total total = {.metric = digest->totals};
    digest->totals += strlen(total.metric) + 1;
    total.value = bytes_double_of(unpack_number(&digest->totals));
    return total;
}

/* Replaces the nodes of all digests in bytes [n_bytes] by what map [n_ids] says. */
static void digest_translate(char *bytes, size_t n_bytes, const uint32_t *map, size_t n_ids)
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

/* --- the trees become one --- */

/* Trees as messages. A tree that could not be made is sent as an empty one, so that nobody waits in vain. */

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

/* An upper bound of the ids, exclusive. */
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

/* Merges one node, after the nodes above it; false when out of memory. nodes [n_ids] by id, those not sent with
 * id RAW_NONE. */
static bool merge_node(struct raw_store *store, const struct sent_node *nodes, const uint32_t *modules, uint32_t id,
                       uint32_t *map)
{
    uint32_t path[1024], n = 0;
    while (map[id] == RAW_NONE) { /* up the path as far as there is room; the rest in later rounds */
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

/* Translates the other member's metrics and modules into this one's. */
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

/* Collective: merges the stores, metrics and digests of all members. Members that have sent their tree to another are
 * left with empty digests.  err: ERR_MEMORY, ERR_USAGE (another failed) */
static int team_tree_gather(const struct team *team, struct ingest *ingest, struct buf *digests, struct team_tree *tree,
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

/* Collective: the leader's scopes [n_scopes], by id in its store, become every member's own, malloc'ed.
 * err: ERR_MEMORY, ERR_USAGE */
static int team_tree_return(const struct team *team, const struct team_tree *tree, uint32_t **scopes, size_t *n_scopes,
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

/* --- loading together --- */

/* Loading by a team: each member reads some profiles of the list into a tree of its own; the leader replays the
 * members' digests in the order of the list, so that its model is the one that it would make alone. */

static void put_list(const struct profile_list *list, struct buf *out)
{
    pack_number(out, list->n_profiles);
    for (size_t i = 0; i < list->n_profiles; i++) {
        pack_number(out, list->profiles[i].directory);
        pack_text(out, list->profiles[i].path);
    }
}

static bool take_list(struct profile_list *list, const char *at)
{
    size_t n = unpack_number(&at);
    if (!vec_reserve(&list->profiles, &list->cap_profiles, n + 1, sizeof *list->profiles))
        return false;
    for (size_t i = 0; i < n; i++) {
        size_t directory = unpack_number(&at);
        char *path = strdup(unpack_text(&at));
        if (!path)
            return false;
        list->profiles[list->n_profiles++] = (struct profile_path){path, directory};
    }
    return true;
}

int load_team_begin(struct load *load, int code, struct error *err)
{
    const struct team *team = load->options->job->team;
    struct buf list = {0};
    code = team_agree(team, code, err);
    if (code != 0)
        return code;
    if (team_leads(team))
        put_list(&load->list, &list);
    team->broadcast(team, &list);
    bool ok = !list.failed && (team_leads(team) || take_list(&load->list, list.data));
    buf_fini(&list);
    load->n_mine = team_count(team, load->list.n_profiles);
    return team_agree(team, ok ? 0 : error_set(err, ERR_MEMORY, "out of memory for the list of profiles"), err);
}

struct replay {
    struct load *load;
    struct profile_digest *digests; /* [n] */
    size_t n, capacity;
};

static int replay_epoch(struct reading *reading, const struct digest_epoch *epoch, struct error *err)
{
    struct hpcrun_profile head = {0};
    struct raw_ids ids = {0};
    int code = hpcrun_read_memory(epoch->head, epoch->len_head, reading->path, &head, err);
    if (code == 0 && !raw_ids_begin(&ids, epoch->n_nodes))
        code = error_set(err, ERR_MEMORY, "out of memory while merging %s", reading->path);
    for (size_t i = 0; code == 0 && i < epoch->n_nodes; i++) {
        struct digest_node node;
        memcpy(&node, epoch->nodes + i * sizeof node, sizeof node);
        if (raw_ids_find(&ids, node.id) == RAW_NONE)
            raw_ids_add(&ids, node.id, node.node, 0);
    }
    if (code == 0)
        code = load_take_epoch(reading, &head, &ids, err);
    hpcrun_fini(&head);
    raw_ids_fini(&ids);
    return code;
}

static int replay_totals(struct load *load, struct profile_digest *digest, struct error *err)
{
    struct ingested *profile = &load->values->profiles[digest->number];
    profile->n_totals = 0;
    if (!vec_reserve(&profile->totals, &profile->cap_totals, digest->n_totals + 1, sizeof *profile->totals))
        return error_memory(err);
    for (size_t i = 0; i < digest->n_totals; i++) {
        struct digest_total total = digest_next_total(digest);
        int64_t metric = strtab_find(&load->ingest.metrics, total.metric);
        if (metric >= 0)
            profile->totals[profile->n_totals++] = (struct ingest_total){(uint16_t)metric, total.value};
    }
    return 0;
}

static int replay_profile(void *context, struct workers *workers, size_t worker, size_t i, struct error *err)
{
    struct replay *replay = context;
    struct load *load = replay->load;
    struct profile_digest *digest = &replay->digests[i];
    const struct profile_path *path = &load->list.profiles[digest->number];
    struct reading reading = {
        .load = load, .workers = workers, .number = digest->number, .task = i, .path = path->path};
    struct error problem = {.code = digest->code};
    int code = 0;
    (void)worker;
    if (digest->code == 0)
        load_sides_read(path->path, &reading.side);
    if (!workers_turn(workers, i))
        code = error_set(err, ERR_USAGE, "interrupted");
    struct error trace_problem = {0};
    if (digest->trace_problem[0])
        (void)error_set(&trace_problem, ERR_FORMAT, "%s", digest->trace_problem);
    for (size_t e = 0; code == 0 && e < digest->n_epochs; e++) {
        load_note_trace(load, &trace_problem, e == 0);
        struct digest_epoch epoch = digest_next_epoch(digest);
        code = replay_epoch(&reading, &epoch, err);
    }
    if (code == 0 && digest->code) {
        (void)error_set(&problem, digest->code, "%s", digest->problem);
        code = profile_list_skip(&load->list, &problem, err);
    } else if (code == 0) {
        code = replay_totals(load, digest, err);
        code = code ? code : load_take_thread(&reading, load->prior.directories[path->directory], err);
    }
    load_sides_drop(&reading.side);
    free(reading.program);
    return code;
}

static int compare_numbers(const void *a, const void *b)
{
    const struct profile_digest *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

static int replay_all(struct load *load, struct error *err)
{
    struct replay replay = {.load = load};
    struct workers workers = {
        .job = load->options->job, .phase = "reading side files", .task = replay_profile, .context = &replay};
    const char *at = load->digests.data, *end = at + load->digests.len_bytes;
    struct profile_digest digest;
    bool ok = true;
    while (ok && at != end && digest_next(&at, end, &digest)) {
        ok = vec_reserve(&replay.digests, &replay.capacity, replay.n + 1, sizeof *replay.digests);
        if (ok)
            replay.digests[replay.n++] = digest;
    }
    if (replay.n > 1)
        qsort(replay.digests, replay.n, sizeof *replay.digests, compare_numbers);
    workers.n_tasks = replay.n;
    int code = ok ? workers_run(&workers, err) : error_memory(err);
    free(replay.digests);
    buf_fini(&load->digests);
    return code;
}

int load_team_gather(struct load *load, int code, struct error *err)
{
    const struct team *team = load->options->job->team;
    code = team_agree(team, code, err);
    if (code == 0)
        code = team_tree_gather(team, &load->ingest, &load->digests, &load->branches, err);
    if (!team_leads(team)) {
        raw_store_free(load->ingest.store);
        load->ingest.store = NULL;
    }
    return code == 0 && team_leads(team) ? replay_all(load, err) : code;
}

/* The part of the model that writing values needs. */
static void put_model(const struct model *model, struct buf *out)
{
    pack_number(out, model->n_scopes);
    for (size_t i = 0; i < model->n_scopes; i++) {
        buf_append(out, &model->scopes[i].parent, 4);
        buf_append(out, &model->scopes[i].kind, 1);
        buf_append(out, &model->scopes[i].role, 1);
    }
    pack_number(out, model->n_metrics);
    for (size_t i = 0; i < model->n_metrics; i++) {
        pack_number(out, model->metrics[i].is_integer);
        pack_text(out, model->metrics[i].name);
    }
    pack_number(out, model->n_threads);
    for (size_t i = 0; i < model->n_threads; i++)
        pack_number(out, model->threads[i].profile);
}

static void put_splits(const struct value_splits *splits, struct buf *out)
{
    pack_number(out, splits->n_metrics);
    pack_number(out, splits->n_rows);
    buf_append(out, splits->metrics, splits->n_metrics * sizeof *splits->metrics);
    buf_append(out, splits->rows, splits->n_rows * splits->n_metrics * VALUE_PARTS * sizeof *splits->rows);
}

static bool take_splits(struct value_splits *splits, const char *at)
{
    splits->n_metrics = unpack_number(&at);
    splits->n_rows = unpack_number(&at);
    size_t n_numbers = splits->n_rows * splits->n_metrics * VALUE_PARTS;
    splits->metrics = calloc(splits->n_metrics + 1, sizeof *splits->metrics);
    splits->rows = calloc(n_numbers + 1, sizeof *splits->rows);
    if (!splits->metrics || !splits->rows)
        return false;
    memcpy(splits->metrics, at, splits->n_metrics * sizeof *splits->metrics);
    memcpy(splits->rows, at + splits->n_metrics * sizeof *splits->metrics, n_numbers * sizeof *splits->rows);
    return true;
}

static bool take_model(struct model *model, struct value_splits *splits, const char *at)
{
    size_t n_scopes = unpack_number(&at);
    if (!vec_reserve(&model->scopes, &model->cap_scopes, n_scopes + 1, sizeof *model->scopes))
        return false;
    for (model->n_scopes = 0; model->n_scopes < n_scopes; model->n_scopes++, at += 6) {
        struct scope *scope = &model->scopes[model->n_scopes];
        *scope = (struct scope){.kind = (uint8_t)at[4], .role = (uint8_t)at[5]};
        memcpy(&scope->parent, at, 4);
    }
    size_t n_metrics = unpack_number(&at);
    if (!vec_reserve(&model->metrics, &model->cap_metrics, n_metrics + 1, sizeof *model->metrics))
        return false;
    for (model->n_metrics = 0; model->n_metrics < n_metrics;) {
        struct metric *metric = &model->metrics[model->n_metrics++];
        *metric = (struct metric){.is_integer = unpack_number(&at) != 0};
        if (!(metric->name = strdup(unpack_text(&at))))
            return false;
    }
    size_t n_threads = unpack_number(&at);
    if (!vec_reserve(&model->threads, &model->cap_threads, n_threads + 1, sizeof *model->threads))
        return false;
    for (model->n_threads = 0; model->n_threads < n_threads; model->n_threads++)
        model->threads[model->n_threads] = (struct thread){.profile = unpack_number(&at)};
    return take_splits(splits, at);
}

/* Sends the scopes of values and of traces, and how the values are split. */
static int return_scopes(struct load *load, struct error *err)
{
    const struct team *team = load->options->job->team;
    struct spilled_values *values = load->values;
    int code = team_tree_return(team, &load->branches, &values->scopes, &values->n_scopes, err);
    if (code == 0)
        code = team_tree_return(team, &load->branches, &values->traced, &values->n_scopes, err);
    return code ? code : team_tree_return(team, &load->branches, &values->splits.row_of, &values->n_scopes, err);
}

int load_team_return(struct load *load, int code, struct error *err)
{
    const struct team *team = load->options->job->team;
    struct buf text = {0};
    code = team_agree(team, code, err);
    if (code != 0)
        return code;
    if (team_leads(team))
        put_model(load->model, &text);
    if (team_leads(team))
        put_splits(&load->values->splits, &text);
    team->broadcast(team, &text);
    bool ok = !text.failed && (team_leads(team) || take_model(load->model, &load->values->splits, text.data));
    buf_fini(&text);
    code = team_agree(team, ok ? 0 : error_set(err, ERR_MEMORY, "out of memory for the merged tree"), err);
    if (code == 0)
        code = return_scopes(load, err);
    if (code == 0 && !team_leads(team))
        code = load_map_metrics(load, err);
    return team_agree(team, code, err);
}
