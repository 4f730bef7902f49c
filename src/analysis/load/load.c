/* SPDX-License-Identifier: BSD-3-Clause */
/* From measurements to the model: what an older database already has, then all profiles, merged and symbolized. See
 * load.h. */
#include "analysis/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/build/build.h"
#include "analysis/build/placeholders.h"
#include "analysis/load/load.h"
#include "analysis/load/profile-list.h"
#include "analysis/load/team.h"

/* --- what a database already has --- */

/* Records the model's size; process_keys receives its processes by number.  err: ERR_MEMORY */
static int prior_init(struct prior_database *prior, const struct model *model, struct strtab *process_keys,
                      struct error *err)
{
    bool ok = true;
    *prior = (struct prior_database){.n_threads = model->n_threads,
                                     .n_scopes = model->n_scopes,
                                     .n_metrics = model->n_metrics,
                                     .n_numa_nodes = model->n_numa_nodes,
                                     .has_samples = model->n_threads == 0 || model->has_samples};
    for (size_t i = 0; ok && i < model->n_processes; i++) {
        char key[PROCESS_KEY_BYTES];
        processes_key(&model->processes[i], key);
        ok = strtab_intern(process_keys, key) == (int64_t)i;
        if (model->processes[i].directory >= prior->n_directories)
            prior->n_directories = model->processes[i].directory + 1;
    }
    for (size_t t = 0; ok && t < model->n_threads; t++) {
        char key[40];
        (void)snprintf(key, sizeof key, "%x/%x", model->threads[t].process, model->threads[t].thread_id);
        ok = strtab_intern(&prior->threads, key) >= 0;
    }
    return ok ? 0 : error_set(err, ERR_MEMORY, "out of memory, or the database names a process twice");
}

static void prior_fini(struct prior_database *prior)
{
    strtab_fini(&prior->threads);
    free(prior->directories);
}

/* True when the database has the profile, as one of this directory of the database. */
static bool is_known(const struct prior_database *prior, const struct strtab *process_keys, const char *path,
                     uint32_t directory)
{
    struct names_file id;
    char key[PROCESS_KEY_BYTES], host[16];
    if (names_parse(path, &id, NULL) != 0)
        return false;
    (void)snprintf(host, sizeof host, "%08x", id.host_id);
    const struct process process = {.exe = id.exe,
                                    .host_id = host,
                                    .rank = id.rank,
                                    .pid = id.pid,
                                    .generation = (uint32_t)id.generation,
                                    .directory = directory};
    processes_key(&process, key);
    int64_t known = strtab_find(process_keys, key);
    (void)snprintf(key, sizeof key, "%x/%x", (unsigned)known, id.thread);
    return known >= 0 && strtab_find(&prior->threads, key) >= 0;
}

/* The number of a directory of the list in the database: that of the directory whose profiles it has, else a new
 * one. */
static uint32_t number_of(const struct prior_database *prior, const struct strtab *process_keys,
                          const struct profile_list *list, size_t directory, uint32_t *next)
{
    for (uint32_t d = 0; d < prior->n_directories; d++)
        for (size_t i = 0; i < list->n_profiles; i++)
            if (list->profiles[i].directory == directory && is_known(prior, process_keys, list->profiles[i].path, d))
                return d;
    return (*next)++;
}

/* Numbers the directories of the list and drops the profiles that are already in the database. Returns how many; -1
 * when out of memory. */
static int64_t prior_drop_known(struct prior_database *prior, const struct strtab *process_keys,
                                struct profile_list *list)
{
    uint32_t next = prior->n_directories;
    size_t n = 0, n_before = list->n_profiles;
    prior->directories = calloc(list->directories.n_strings + 1, sizeof *prior->directories);
    if (!prior->directories)
        return -1;
    for (size_t d = 0; d < list->directories.n_strings; d++)
        prior->directories[d] = number_of(prior, process_keys, list, d, &next);
    for (size_t i = 0; i < n_before; i++) {
        if (is_known(prior, process_keys, list->profiles[i].path, prior->directories[list->profiles[i].directory]))
            free(list->profiles[i].path);
        else
            list->profiles[n++] = list->profiles[i];
    }
    list->n_profiles = n;
    return (int64_t)(n_before - n);
}

/* Key of a heap variable: the functions and lines of its allocation path, outermost first, from its scopes. */
static void append_path(const struct model *model, uint32_t scope, struct buf *key)
{
    size_t n = 0, n_kept = 0, capacity = 0;
    uint32_t *path = NULL, line = 0;
    for (uint32_t up = model->scopes[scope].parent; up && model->scopes[up].role != ROLE_HEAP;
         up = model->scopes[up].parent) {
        const struct scope *s = &model->scopes[up];
        bool is_function = s->kind == SCOPE_PROC || s->kind == SCOPE_INLINED;
        if (s->kind == SCOPE_CALL || (s->kind == SCOPE_POSITION && s->line))
            line = s->line;
        if (is_function && vec_reserve(&path, &capacity, 2 * n + 2, sizeof *path)) {
            path[2 * n] = s->name;
            path[2 * n++ + 1] = line;
        }
    }
    uint32_t *kept = calloc(2 * n + 2, sizeof *kept);
    for (size_t i = n; kept && i-- > 0;) {
        for (size_t j = 0; j < n_kept; j++)
            if (kept[2 * j] == path[2 * i])
                n_kept = j;
        memcpy(&kept[2 * n_kept++], &path[2 * i], 2 * sizeof *kept);
    }
    for (size_t i = 0; kept && i < n_kept; i++)
        buf_printf(key, "/%x:%x", kept[2 * i], kept[2 * i + 1]);
    free(kept);
    free(path);
}

/* Makes the same key as variables.c. */
static void append_key(const struct model *model, const struct variable *variable, struct buf *key)
{
    const char *name = model_text(model, variable->name);
    size_t len = strlen(name);
    if (model_is_block(variable)) {
        buf_printf(key, "%d/%s", variable->class, name);
        if (variable->n_scopes)
            append_path(model, variable->scopes[0], key);
    } else if (variable->class == CLASS_UNKNOWN || variable->class == CLASS_UNATTRIBUTED ||
               variable->class == CLASS_WAITING) {
        buf_printf(key, "%d/%.*s", variable->class, len > 2 ? (int)len - 2 : 0, name + (len > 0)); /* without <> */
    } else {
        buf_printf(key, "%d/%x/%x/%x/%x", variable->class, variable->name, variable->module, variable->file,
                   variable->line);
    }
}

/* Copies a table [old_rows][old_columns] into a wider one. */
static bool widen(uint64_t **table, size_t old_rows, size_t old_columns, size_t rows, size_t columns)
{
    if (!*table || (rows == old_rows && columns == old_columns))
        return true;
    uint64_t *wider = calloc(rows * columns + 1, sizeof *wider);
    for (size_t i = 0; wider && i < old_rows; i++)
        memcpy(wider + i * columns, *table + i * old_columns, old_columns * sizeof *wider);
    if (!wider)
        return false;
    free(*table);
    *table = wider;
    return true;
}

bool prior_variables(const struct prior_database *prior, struct build *build)
{
    struct model *model = build->model;
    bool ok = true;
    for (size_t v = 0; ok && v < model->n_variables; v++) {
        struct variable *variable = &model->variables[v];
        struct buf key = {0};
        append_key(model, variable, &key);
        if (!key.data || strtab_find(&build->keys, key.data) >= 0)
            buf_printf(&key, "#%zu", v); /* variables with the same key are not found again */
        ok = !key.failed && strtab_intern(&build->keys, key.data) == (int64_t)v &&
             widen(&variable->places, prior->n_metrics, prior->n_numa_nodes, model->n_metrics, model->n_numa_nodes) &&
             widen(&variable->samples, prior->n_metrics, 1, model->n_metrics, 1);
        buf_fini(&key);
    }
    return ok;
}

/* --- what became of nodes --- */

void load_places_fini(struct load_places *places)
{
    for (size_t i = 0; i < places->n; i++) {
        free(places->profiles[i].path);
        free(places->profiles[i].places);
    }
    free(places->profiles);
    *places = (struct load_places){0};
}

/* Notes the nodes of a profile: variable and scope are ids in the store as yet. False when out of memory. */
static bool note_places(struct load_places *places, const char *path, const struct raw_ids *ids)
{
    struct load_profile profile = {.path = strdup(path), .places = calloc(ids->n + 1, sizeof *profile.places)};
    bool ok = profile.path && profile.places &&
              vec_reserve(&places->profiles, &places->capacity, places->n + 1, sizeof *places->profiles);
    if (!ok) {
        free(profile.path);
        free(profile.places);
        return false;
    }
    for (; profile.n < ids->n; profile.n++)
        profile.places[profile.n] =
            (struct load_place){ids->ids[profile.n], ids->nodes[profile.n], ids->nodes[profile.n]};
    places->profiles[places->n++] = profile;
    return true;
}

static int compare_places(const void *a, const void *b)
{
    const struct load_place *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* Turns ids in the store into what the tree's nodes have become. */
static void settle_places(struct load_places *places, const struct raw_tree *tree, const struct build_scopes *scopes)
{
    for (size_t i = 0; i < places->n; i++) {
        struct load_profile *profile = &places->profiles[i];
        for (size_t j = 0; j < profile->n; j++) {
            uint32_t id = profile->places[j].variable, node = id < tree->n_ids ? tree->index_of[id] : RAW_NONE;
            profile->places[j].variable = node == RAW_NONE ? RAW_NONE : tree->nodes[node].variable;
            profile->places[j].scope = node == RAW_NONE ? 0 : scopes->own[node];
        }
        if (profile->n)
            qsort(profile->places, profile->n, sizeof *profile->places, compare_places);
    }
}

/* --- measurements into the model --- */

/* Adds a metric of a profile to the model, or only its samples if the model has the metric. */
static bool import_metric(struct model *model, const struct hpcrun_metric *from)
{
    int64_t index = model_metric(model, from->name);
    if (index >= 0) {
        model->metrics[index].n_samples += from->n_samples;
        model->metrics[index].is_multiplexed |= from->is_multiplexed != 0;
        return true;
    }
    if (!vec_reserve(&model->metrics, &model->cap_metrics, model->n_metrics + 1, sizeof *model->metrics))
        return false;
    struct metric *metric = &model->metrics[model->n_metrics];
    metric->name = strdup(from->name);
    metric->description = strdup(from->description);
    if (!metric->name || !metric->description)
        return false;
    metric->is_integer = from->flags[2] == HPCRUN_VALUE_INT;
    metric->per_sample = metric->is_integer && from->period ? (double)from->period : 1;
    metric->period = metric->per_sample;
    metric->n_samples = from->n_samples;
    metric->is_multiplexed = from->is_multiplexed;
    metric->hidden = from->flags[6] == 0 || from->flags[6] == 4 || strstr(from->name, "(byte)");
    model->n_metrics++;
    return true;
}

int load_take_epoch(struct reading *reading, const struct hpcrun_profile *head, const struct raw_ids *ids,
                    struct error *err)
{
    struct load *load = reading->load;
    bool ok = true;
    for (size_t i = 0; ok && i < head->n_metrics; i++)
        ok = import_metric(load->model, &head->metrics[i]);
    for (size_t i = 0; ok && i < head->n_modules; i++)
        ok = symbolizer_module(load->symbolizer, head->modules[i].path) != 0;
    if (ok)
        load_sides_add(&load->sides, reading->path, load->prior.n_threads + reading->number, &reading->side, head, ids);
    ok = ok && !load->sides.failed;
    if (ok && load->options->places)
        ok = note_places(load->options->places, reading->path, ids);
    if (ok && !reading->is_identified) {
        const char *program = hpcrun_pair_value(head, "program-path");
        processes_identify(reading->path, head, &reading->id);
        reading->is_identified = true;
        reading->program = strdup(program && *program ? program : reading->id.exe);
        ok = reading->program != NULL;
    }
    return ok ? 0 : error_set(err, ERR_MEMORY, "out of memory while merging %s", reading->path);
}

void load_note_trace(struct load *load, const struct error *problem, bool is_first)
{
    if (is_first && problem->code)
        model_note(load->model, "%s: the trace of this thread is missing.", problem->text);
}

static int take_epoch(void *context, const struct hpcrun_profile *head, const struct raw_ids *ids, struct error *err)
{
    struct reading *reading = context;
    struct load *load = reading->load;
    bool is_first = reading->n_epochs++ == 0;
    int code = is_first ? ingest_trace(&load->ingest, reading->path, head, ids,
                                       &load->values->profiles[reading->number], &reading->trace_problem)
                        : 0;
    if (code == ERR_MEMORY || load->ingest.is_spill_full)
        return error_set(err, code, "%s", reading->trace_problem.text);
    if (team_is_several(load->options->job->team)) {
        const struct objects_file *side = reading->side.state == SIDE_READ ? &reading->side.file : NULL;
        return digest_put_epoch(&reading->epochs, head, ids, side, err);
    }
    if (!workers_turn(reading->workers, reading->task))
        return error_set(err, ERR_USAGE, "interrupted");
    load_note_trace(load, &reading->trace_problem, is_first);
    return load_take_epoch(reading, head, ids, err);
}

int load_take_thread(struct reading *reading, uint32_t directory, struct error *err)
{
    struct load *load = reading->load;
    struct model *model = load->model;
    int64_t process = processes_find(model, &load->process_keys, &reading->id, directory);
    if (process < 0 || !vec_reserve(&model->threads, &model->cap_threads, model->n_threads + 1, sizeof *model->threads))
        return error_memory(err);
    model->threads[model->n_threads++] = (struct thread){.process = (uint32_t)process,
                                                         .thread_id = reading->id.thread,
                                                         .profile = load->prior.n_threads + reading->number};
    if (reading->side.state == SIDE_READ) {
        model->processes[process].birth = reading->side.file.birth;
        model->threads[model->n_threads - 1].name = model_string(model, reading->side.file.thread_name);
    }
    if (!model->processes[process].path) {
        model->processes[process].path = reading->program;
        reading->program = NULL;
    }
    load->n_read++;
    if (!load_sides_add_machine(&load->sides, reading->path, &reading->side, model->processes[process].host_id))
        return error_memory(err);
    return 0;
}

/* Adds what was read to the digests, or why it was not. */
static int put_digest(struct reading *reading, const struct error *problem, struct error *err)
{
    struct load *load = reading->load;
    (void)pthread_mutex_lock(&load->ingest.metrics_mutex);
    digest_put(&load->digests, reading->number, problem, &reading->trace_problem, &reading->epochs, reading->n_epochs,
               &load->values->profiles[reading->number], &load->ingest.metrics);
    (void)pthread_mutex_unlock(&load->ingest.metrics_mutex);
    return load->digests.failed ? error_memory(err) : 0;
}

static int read_profile(void *context, struct workers *workers, size_t worker, size_t i, struct error *err)
{
    struct load *load = context;
    const struct team *team = load->options->job->team;
    size_t number = team_is_several(team) ? team_item(team, i) : i;
    const struct profile_path *path = &load->list.profiles[number];
    struct reading reading = {.load = load, .workers = workers, .number = number, .task = i, .path = path->path};
    const struct ingest_reader reader = {.context = &reading, .epoch = take_epoch};
    struct error problem = {0};
    load_sides_read(path->path, &reading.side);
    int code = ingest_profile(&load->ingest, &load->scratch[worker], path->path, &reader,
                              &load->values->profiles[number], &problem);
    bool is_fatal = code == ERR_MEMORY || code == ERR_USAGE || load->ingest.is_spill_full;
    if (code && is_fatal)
        (void)error_set(err, code, "%s", problem.text);
    else if (!workers_turn(workers, i))
        code = error_set(err, ERR_USAGE, "interrupted");
    else if (team_is_several(team))
        code = put_digest(&reading, code ? &problem : NULL, err);
    else if (code)
        code = profile_list_skip(&load->list, &problem, err);
    else
        code = load_take_thread(&reading, load->prior.directories[path->directory], err);
    load_sides_drop(&reading.side);
    buf_fini(&reading.epochs);
    free(reading.program);
    return code;
}

static int read_profiles(struct load *load, struct error *err)
{
    struct workers workers = {.job = load->options->job,
                              .phase = "reading profiles",
                              .n_tasks = load->n_mine,
                              .task = read_profile,
                              .context = load};
    return workers_run(&workers, err);
}

/* Reports what was left out; fails unless a profile has been read. */
static int judge_profiles(const struct load *load, struct error *err)
{
    const struct strtab *skipped = &load->list.skipped;
    if (load->n_read == 0 && skipped->n_strings)
        return error_set(err, load->list.first_skip,
                         skipped->n_strings == 1 ? "%s" : "None of the profiles can be read; the first: %s",
                         skipped->strings[0]);
    for (size_t i = 0; load->options->message && i < skipped->n_strings; i++)
        load->options->message(load->options->context, skipped->strings[i]);
    return 0;
}

/* Chooses the program that the report is named after. */
static int choose_program(struct load *load, struct error *err)
{
    struct model *model = load->model;
    const struct ingest *ingest = &load->ingest;
    double *sums = calloc(model->n_processes + 1, sizeof *sums);
    if (!sums)
        return error_memory(err);
    for (size_t i = 0; i < load->values->n_metrics; i++)
        model->metrics[load->values->metrics[i]].used_by_data |= ingest->data_metrics[i];
    int64_t metric = model_choose_metric(model, NULL);
    for (size_t t = 0; t < model->n_threads; t++) {
        if (model->threads[t].profile < load->prior.n_threads)
            continue;
        const struct ingested *profile = &load->values->profiles[model->threads[t].profile - load->prior.n_threads];
        for (size_t i = 0; i < profile->n_totals; i++)
            if (load->values->metrics[profile->totals[i].metric] == metric)
                sums[model->threads[t].process] += profile->totals[i].value;
    }
    processes_choose_program(model, sums);
    free(sums);
    return 0;
}

int load_map_metrics(struct load *load, struct error *err)
{
    struct spilled_values *values = load->values;
    values->n_metrics = load->ingest.metrics.n_strings;
    values->metrics = calloc(values->n_metrics + 1, sizeof *values->metrics);
    for (size_t i = 0; values->metrics && i < values->n_metrics; i++) {
        /* a profile that was left out may have had other metrics */
        int64_t metric = model_metric(load->model, load->ingest.metrics.strings[i]);
        values->metrics[i] = metric < 0 ? 0 : (uint32_t)metric;
    }
    return values->metrics ? 0 : error_memory(err);
}

/* Maps the store's ids in the values that were written to scopes, through the merged tree. */
static int map_scopes(struct load *load, const struct build_scopes *scopes, struct error *err)
{
    struct spilled_values *values = load->values;
    uint32_t *row_of = scopes->splits->row_of;
    values->n_scopes = load->tree.n_ids;
    values->scopes = load->tree.index_of;
    load->tree.index_of = NULL;
    values->traced = calloc(values->n_scopes + 1, sizeof *values->traced);
    values->splits.row_of = calloc(values->n_scopes + 1, sizeof *row_of);
    if (!values->traced || !values->splits.row_of) {
        free(row_of);
        return error_memory(err);
    }
    for (size_t i = 0; i < values->n_scopes; i++) {
        uint32_t node = values->scopes[i];
        values->scopes[i] = node == RAW_NONE ? 0 : scopes->own[node];
        values->traced[i] = node == RAW_NONE ? 0 : scopes->traced[node];
        values->splits.row_of[i] = node == RAW_NONE ? 0 : row_of[node];
    }
    free(row_of);
    return load_map_metrics(load, err);
}

static int build_all(struct load *load, struct error *err)
{
    struct source_text *source = source_text_new(load->options->search, load->options->replace);
    struct build_scopes scopes = {.splits = &load->values->splits};
    struct build build = {.model = load->model,
                          .tree = &load->tree,
                          .symbolizer = load->symbolizer,
                          .source = source,
                          .sides = &load->sides.rows,
                          .accesses = &load->sides.accesses,
                          .causes = &load->sides.causes,
                          .keeps_instructions = load->options->keeps_instructions,
                          .shows_interpreter = load->options->shows_interpreter,
                          .prior = &load->prior};
    if (!source)
        return error_memory(err);
    job_begin(load->options->job, "looking up sources");
    placeholders_assign(&load->tree, load->symbolizer);
    int code = build_model(&build, &scopes, err);
    source_text_free(source);
    if (code == 0 && load->options->places)
        settle_places(load->options->places, &load->tree, &scopes);
    if (code == 0)
        code = map_scopes(load, &scopes, err);
    if (load->prior.n_threads && load->sides.n_cpus && build.model->n_cpu_counts == 0)
        model_note(build.model, "Samples by CPU are those of the measurements that were added: the database had none.");
    if (code == 0)
        code = load_sides_apply_cpus(&load->sides, &load->tree, err);
    if (code == 0)
        code = load_sides_apply_drops(&load->sides, err);
    if (code == 0)
        code = load_sides_apply_touches(&load->sides, &load->tree, &scopes, err);
    if (code == 0)
        code = load_sides_apply_meetings(&load->sides, &load->tree, &scopes, err);
    if (code == 0)
        code = load_sides_apply_reaches(&load->sides, &load->tree, err);
    if (code == 0)
        code = load_sides_apply_homes(&load->sides, &load->tree, err);
    free(scopes.own);
    free(scopes.traced);
    load->prior_scopes = scopes.prior;
    for (size_t i = 0; code == 0 && i < load->sides.causes.n_spots; i++)
        symbolizer_count(load->symbolizer, load->sides.causes.spots[i].module,
                         (double)load->sides.causes.spots[i].n_samples);
    if (code == 0)
        symbolizer_note_missing(load->symbolizer);
    return code;
}

static int make_tree(struct load *load, struct error *err)
{
    job_begin(load->options->job, "ordering the call tree");
    int code = raw_tree_make(load->ingest.store, load->symbolizer, &load->tree, err);
    if (code == 0)
        load_sides_renumber(&load->sides, &load->tree);
    raw_store_free(load->ingest.store);
    load->ingest.store = NULL;
    return code;
}

static int load_init(struct load *load, struct error *err)
{
    size_t n_threads = load->options->job->n_threads;
    (void)pthread_mutex_init(&load->ingest.metrics_mutex, NULL);
    load->list = (struct profile_list){.model = load->model, .wait_ms = load->options->wait_ms};
    load->symbolizer = symbolizer_new(load->model);
    if (load->symbolizer)
        symbolizer_use_files(load->symbolizer, load->options->structures);
    load->sides.model = load->model;
    load->sides.symbolizer = load->symbolizer;
    load->ingest.store = raw_store_new();
    load->scratch = calloc(n_threads + 1, sizeof *load->scratch);
    load->values = calloc(1, sizeof *load->values);
    if (!load->symbolizer || !load->ingest.store || !load->scratch || !load->values)
        return error_memory(err);
    load->values->spill.fd = -1;
    load->ingest.spill = &load->values->spill;
    return spill_open(&load->values->spill, load->options->job->scratch, err);
}

static void load_fini(struct load *load)
{
    raw_tree_fini(&load->tree);
    raw_store_free(load->ingest.store);
    load_sides_fini(&load->sides);
    symbolizer_free(load->symbolizer);
    for (size_t i = 0; load->scratch && i < load->options->job->n_threads; i++)
        ingest_scratch_fini(&load->scratch[i]);
    free(load->scratch);
    strtab_fini(&load->ingest.metrics);
    (void)pthread_mutex_destroy(&load->ingest.metrics_mutex);
    strtab_fini(&load->process_keys);
    prior_fini(&load->prior);
    buf_fini(&load->digests);
    team_tree_fini(&load->branches);
    profile_list_fini(&load->list);
}

/* Adds a metric for the first event with addresses if it has none because all its samples were dropped, or none was
 * taken: a report should be about that event, not about one that happens to have values. */
static int add_first_metric(struct model *model, struct error *err)
{
    for (size_t i = 0; i < model->n_events; i++) {
        const struct event_sum *event = &model->events[i];
        if (!event->has_address)
            continue;
        if (model_metric(model, event->metric) >= 0)
            return 0;
        if (!vec_reserve(&model->metrics, &model->cap_metrics, model->n_metrics + 1, sizeof *model->metrics))
            return error_memory(err);
        struct metric *metric = &model->metrics[model->n_metrics];
        *metric = (struct metric){.name = strdup(event->metric),
                                  .description = strdup("no samples were recorded"),
                                  .per_sample = event->scale,
                                  .period = event->scale};
        model->n_metrics++;
        return metric->name && metric->description ? 0 : error_memory(err);
    }
    return 0;
}

/* From all profiles to the model. */
static int make_model(struct load *load, struct error *err)
{
    int code = judge_profiles(load, err);
    if (code == 0)
        code = processes_order(load->model, err);
    load->model->has_thread_list = code == 0;
    load->model->has_samples = code == 0 && load->prior.has_samples &&
                               load->sides.n_with_samples >= load->model->n_threads - load->prior.n_threads;
    if (code == 0)
        code = add_first_metric(load->model, err);
    if (code == 0)
        code = cause_metrics_add(load->model, &load->sides.causes, err);
    if (code == 0)
        code = make_tree(load, err);
    if (code == 0)
        code = job_goes_on(load->options->job, err) ? build_all(load, err) : ERR_USAGE;
    return code == 0 ? choose_program(load, err) : code;
}

static int list_profiles(struct load *load, const char *const *paths, size_t n_paths, struct error *err)
{
    int code = prior_init(&load->prior, load->model, &load->process_keys, err);
    if (code == 0)
        code = profile_list_make(&load->list, paths, n_paths, err);
    int64_t n_known = code == 0 ? prior_drop_known(&load->prior, &load->process_keys, &load->list) : 0;
    if (n_known < 0)
        return error_memory(err);
    if (load->options->n_known)
        *load->options->n_known = (size_t)n_known;
    return code;
}

static int load_all(struct load *load, const char *const *paths, size_t n_paths, struct error *err)
{
    const struct team *team = load->options->job->team;
    int code = team_leads(team) ? list_profiles(load, paths, n_paths, err) : 0;
    load->n_mine = load->list.n_profiles;
    if (team_is_several(team))
        code = load_team_begin(load, code, err);
    if (code != 0)
        return code;
    load->values->profiles = calloc(load->list.n_profiles + 1, sizeof *load->values->profiles);
    load->values->n_profiles = load->values->profiles ? load->list.n_profiles : 0;
    code = load->values->profiles ? read_profiles(load, err) : error_memory(err);
    if (team_is_several(team))
        code = load_team_gather(load, code, err);
    if (code == 0 && team_leads(team))
        code = make_model(load, err);
    if (team_is_several(team))
        code = load_team_return(load, code, err);
    return code;
}

int load_measurements(const char *const *paths, size_t n_paths, const struct load_options *options, struct model *model,
                      struct value_source *values, size_t *n_skipped, struct error *err)
{
    struct load load = {.options = options, .model = model};
    int code = load_init(&load, err);
    if (code == 0)
        code = load_all(&load, paths, n_paths, err);
    *n_skipped = load.list.skipped.n_strings;
    struct value_source spilled = {0};
    if (load.values)
        spilled = values_spilled(load.values);
    if (code == 0 && options->prior) {
        code = values_join(options->prior, load.prior.n_threads, load.prior_scopes, load.prior.n_scopes, &spilled,
                           values, err);
    } else {
        free(load.prior_scopes);
        *values = spilled;
    }
    load_fini(&load);
    if (code != 0)
        values_free(values);
    return code;
}
