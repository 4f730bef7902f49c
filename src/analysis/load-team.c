/* SPDX-License-Identifier: BSD-3-Clause */
/* Loading by a team: each member reads some profiles of the list into a tree of its own; the leader takes in
 * what they tell of them in the order of the list, so that its model is the one that it would make alone. */
#include <stdlib.h>
#include <string.h>

#include "analysis/load-internal.h"
#include "analysis/profile-digest.h"
#include "base/bytes.h"

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
        return error_set(err, ERR_MEMORY, "out of memory");
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
        code = code ? code : load_take_thread(&reading, load->older.directories[path->directory], err);
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
    int code = ok ? workers_run(&workers, err) : error_set(err, ERR_MEMORY, "out of memory");
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

/* As much of the model as writing values takes. */
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

/* The scopes of values and those of traces, and how the values are split. */
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
