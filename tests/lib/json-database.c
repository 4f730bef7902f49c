/* SPDX-License-Identifier: BSD-3-Clause */
/* See json-database.h. */
#include "json-database.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/build/symbolize.h"
#include "base/access-pattern.h"
#include "analysis/load/values.h"
#include "fmt/json.h"

static void *zeroed(struct json_take *take, size_t n, size_t item_bytes)
{
    return json_take_alloc(take, n, item_bytes);
}

/* Turns to the list under key, which may only be missing where older databases, or those of other measurements, have
 * none; *items gets as many zeroed items, *n_items their number. */
static const json_t *begin_list(struct json_take *take, const json_t *root, const char *key, bool may_miss, void *items,
                                size_t item_bytes, size_t *n_items)
{
    size_t n = 0;
    bool is_missing = may_miss && !json_object_get(root, key);
    take->where = key;
    const json_t *list = is_missing ? NULL : json_take_array_at(take, root, key, &n);
    void *made = zeroed(take, n, item_bytes);
    memcpy(items, &made, sizeof made);
    *n_items = made ? n : 0;
    return list;
}

/* Refuses a list whose items would name what the model has none of. */
static void need(struct json_take *take, size_t n, bool is_there, const char *what)
{
    char why[64];
    (void)snprintf(why, sizeof why, "there are no %s", what);
    if (n && !take->code && !is_there)
        (void)json_take_fail(take, ERR_FORMAT, "list", why);
}

static bool has_threads(const struct model *model)
{
    return model->has_thread_list && model->n_threads;
}

static uint32_t take_index(struct json_take *take, const json_t *object, const char *key, size_t n)
{
    return (uint32_t)json_take_word_at(take, object, key, n ? n - 1 : 0);
}

/* A number that older databases do not have. */
static uint64_t take_optional(struct json_take *take, const json_t *object, const char *key)
{
    return json_object_get(object, key) ? json_take_word_at(take, object, key, UINT64_MAX) : 0;
}

static void take_head(struct json_take *take, const json_t *root, struct model *model)
{
    model->program = json_take_text_at(take, root, "program");
    model->command = json_take_text_at(take, root, "command");
    model->plan = json_take_text_at(take, root, "plan");
    model->skid = json_take_text_at(take, root, "skid");
    model->topology = json_take_text_at(take, root, "topology");
    model->n_numa_nodes = (uint32_t)json_take_word_at(take, root, "n_numa_nodes", NUMA_NODES_MAX);
    model->cpu_time_ns = json_take_word_at(take, root, "cpu_time_ns", UINT64_MAX);
    model->user_ns = take_optional(take, root, "user_ns");
    model->system_ns = take_optional(take, root, "system_ns");
    model->unmeasured_ns = take_optional(take, root, "unmeasured_ns");
    model->start_ns = json_take_word_at(take, root, "start_ns", UINT64_MAX);
    model->end_ns = json_take_word_at(take, root, "end_ns", UINT64_MAX);
    model->min_bytes = take_optional(take, root, "min_bytes");
    model->sample_bytes = take_optional(take, root, "sample_bytes");
    model->mark_ns = take_optional(take, root, "mark_ns");
    model->n_killed = (uint32_t)json_take_word_at(take, root, "n_killed", UINT32_MAX);
    model->has_samples = take_optional(take, root, "has_samples") != 0;
    model->n_threads = json_take_word_at(take, root, "n_threads", 1 << 24);
    model->n_frames = json_take_word_at(take, root, "n_frames", UINT64_MAX);
    json_take_words_at(take, root, "unwind_stops", model->unwind_stops, 16);
}

static void take_texts(struct json_take *take, const json_t *root, struct model *model)
{
    size_t n = 0;
    take->where = "notes";
    const json_t *list = json_take_array_at(take, root, "notes", &n);
    for (take->index = 0; list && take->index < n; take->index++) {
        char *note = json_take_text(take, json_array_get(list, take->index), "note");
        if (note)
            model_note(model, "%s", note);
        free(note);
    }
    take->where = "runs";
    list = json_object_get(root, "runs") ? json_take_array_at(take, root, "runs", &n) : NULL;
    for (take->index = 0; list && take->index < n; take->index++) {
        char *run = json_take_text(take, json_array_get(list, take->index), "run");
        if (run && strtab_intern(&model->runs, run) < 0)
            (void)json_take_fail(take, ERR_MEMORY, "run", "out of memory");
        free(run);
    }
    take->where = "strings";
    list = json_take_array_at(take, root, "strings", &n);
    for (take->index = 0; list && take->index < n; take->index++) {
        char *text = json_take_text(take, json_array_get(list, take->index), "string");
        if (text && strtab_intern(&model->strings, text) != (int64_t)take->index)
            (void)json_take_fail(take, ERR_FORMAT, "string", "it occurs twice");
        free(text);
    }
}

static void take_metrics(struct json_take *take, const json_t *root, struct model *model)
{
    const json_t *list =
        begin_list(take, root, "metrics", false, &model->metrics, sizeof *model->metrics, &model->n_metrics);
    for (take->index = 0; take->index < model->n_metrics; take->index++) {
        const json_t *row = json_array_get(list, take->index);
        struct metric *metric = &model->metrics[take->index];
        metric->name = json_take_text_needed_at(take, row, "name");
        metric->description = json_take_text_at(take, row, "description");
        metric->per_sample = json_take_double_at(take, row, "per_sample");
        metric->hidden = json_take_word_at(take, row, "hidden", 1);
        metric->period = json_object_get(row, "period") ? json_take_double_at(take, row, "period") : metric->per_sample;
        metric->is_integer = take_optional(take, row, "is_integer") != 0;
        metric->is_multiplexed = take_optional(take, row, "is_multiplexed") != 0;
        metric->n_samples = take_optional(take, row, "n_samples");
    }
}

static void take_processes(struct json_take *take, const json_t *root, struct model *model)
{
    const json_t *list =
        begin_list(take, root, "processes", false, &model->processes, sizeof *model->processes, &model->n_processes);
    for (take->index = 0; take->index < model->n_processes; take->index++) {
        const json_t *row = json_array_get(list, take->index);
        struct process *process = &model->processes[take->index];
        process->exe = json_take_text_needed_at(take, row, "exe");
        process->host_id = json_take_text_needed_at(take, row, "host_id");
        process->rank = (uint32_t)json_take_word_at(take, row, "rank", UINT32_MAX);
        process->pid = (uint32_t)json_take_word_at(take, row, "pid", UINT32_MAX);
        process->generation = (uint32_t)json_take_word_at(take, row, "generation", UINT32_MAX);
        process->n_threads = (uint32_t)json_take_word_at(take, row, "n_threads", UINT32_MAX);
        process->directory = (uint32_t)take_optional(take, row, "directory");
        process->birth = take_optional(take, row, "birth");
    }
}

/* Older databases have only their number. */
static void take_threads(struct json_take *take, const json_t *root, struct model *model)
{
    size_t n = 0;
    take->where = "threads";
    if (!json_object_get(root, "threads"))
        return;
    const json_t *list = json_take_array_at(take, root, "threads", &n);
    if (!take->code && (n != model->n_threads || (n && !model->n_processes)))
        (void)json_take_fail(take, ERR_FORMAT, "list", "it has another length than there are threads");
    model->threads = zeroed(take, n, sizeof *model->threads);
    for (take->index = 0; !take->code && take->index < n; take->index++) {
        const json_t *row = json_array_get(list, take->index);
        struct thread *thread = &model->threads[take->index];
        thread->process = (uint32_t)json_take_word(take, json_array_get(row, 0), model->n_processes - 1, "process");
        thread->thread_id = (uint32_t)json_take_word(take, json_array_get(row, 1), UINT32_MAX, "thread");
        thread->profile = take->index;
        thread->name = model_string(model, json_string_value(json_array_get(row, 2)));
    }
    model->has_thread_list = true;
}

static void take_events(struct json_take *take, const json_t *root, struct model *model)
{
    const json_t *list =
        begin_list(take, root, "events", false, &model->events, sizeof *model->events, &model->n_events);
    for (take->index = 0; take->index < model->n_events; take->index++) {
        const json_t *row = json_array_get(list, take->index);
        struct event_sum *event = &model->events[take->index];
        event->metric = json_take_text_needed_at(take, row, "metric");
        event->name = json_take_text_needed_at(take, row, "name");
        event->scale = json_take_double_at(take, row, "scale");
        event->taken = json_take_word_at(take, row, "taken", UINT64_MAX);
        event->overflows = json_take_word_at(take, row, "overflows", UINT64_MAX);
        event->enabled_ns = take_optional(take, row, "enabled_ns");
        event->running_ns = take_optional(take, row, "running_ns");
        event->n_throttles = take_optional(take, row, "n_throttles");
        event->n_no_metric = take_optional(take, row, "n_no_metric");
        event->n_truncated = take_optional(take, row, "n_truncated");
        event->n_collisions = take_optional(take, row, "n_collisions");
        event->has_data_source = take_optional(take, row, "has_data_source") != 0;
        event->has_address = take_optional(take, row, "has_address") != 0;
        event->is_user_only = take_optional(take, row, "is_user_only") != 0;
        event->n_spared = take_optional(take, row, "n_spared");
        event->sample_cost_ns = take_optional(take, row, "sample_cost_ns");
        const json_t *fates = json_object_get(row, "fates");
        for (int i = 0; i < FATE_MAX; i++)
            if (json_object_get(fates, fate_row(i)->name))
                event->fates[i] = json_take_word_at(take, fates, fate_row(i)->name, UINT64_MAX);
    }
}

static void take_parts(struct json_take *take, const json_t *row, size_t n_strings, struct variable *variable)
{
    size_t n = 0;
    if (!json_object_get(row, "parts"))
        return;
    const json_t *list = json_take_array_at(take, row, "parts", &n);
    variable->parts = zeroed(take, n, sizeof *variable->parts);
    variable->n_parts = variable->parts ? n : 0;
    for (size_t i = 0; i < variable->n_parts; i++) {
        const json_t *words = json_array_get(list, i);
        struct variable_part *part = &variable->parts[i];
        part->name = (uint32_t)json_take_word(take, json_array_get(words, 0), n_strings - 1, "name");
        part->file = (uint32_t)json_take_word(take, json_array_get(words, 1), n_strings - 1, "file");
        part->line = (uint32_t)json_take_word(take, json_array_get(words, 2), UINT32_MAX, "line");
        part->size_bytes = json_take_word(take, json_array_get(words, 3), UINT64_MAX, "size");
        part->fraction = json_number_value(json_array_get(words, 4));
        if (json_array_size(words) > 6) {
            part->type = (uint32_t)json_take_word(take, json_array_get(words, 5), n_strings - 1, "type");
            part->element_bytes = json_take_word(take, json_array_get(words, 6), UINT64_MAX, "size");
        }
    }
}

/* [part, function, file, line, samples, file of the loop, its first line, its last], where the last three may be
 * missing */
static void take_part_lines(struct json_take *take, const json_t *row, size_t n_strings, struct variable *variable)
{
    size_t n = 0;
    if (!json_object_get(row, "part_lines") || !variable->n_parts)
        return;
    const json_t *list = json_take_array_at(take, row, "part_lines", &n);
    variable->part_lines = zeroed(take, n, sizeof *variable->part_lines);
    variable->n_part_lines = variable->part_lines ? n : 0;
    for (size_t i = 0; i < variable->n_part_lines && !take->code; i++) {
        const json_t *words = json_array_get(list, i);
        struct part_line *line = &variable->part_lines[i];
        line->part = (uint32_t)json_take_word(take, json_array_get(words, 0), variable->n_parts - 1, "part");
        line->function = (uint32_t)json_take_word(take, json_array_get(words, 1), n_strings - 1, "function");
        line->file = (uint32_t)json_take_word(take, json_array_get(words, 2), n_strings - 1, "file");
        line->line = (uint32_t)json_take_word(take, json_array_get(words, 3), UINT32_MAX, "line");
        line->samples = json_take_word(take, json_array_get(words, 4), UINT64_MAX, "samples");
        if (json_array_size(words) < 8)
            continue;
        line->loop.file = (uint32_t)json_take_word(take, json_array_get(words, 5), n_strings - 1, "file");
        line->loop.first = (uint32_t)json_take_word(take, json_array_get(words, 6), UINT32_MAX, "line");
        line->loop.last = (uint32_t)json_take_word(take, json_array_get(words, 7), UINT32_MAX, "line");
    }
}

static void take_field(struct json_take *take, const json_t *row, const struct model *model,
                       const struct variable *variable, struct variable_field *field)
{
    size_t n_strings = model->strings.n_strings;
    const uint64_t limits[] = {model->n_events ? model->n_events - 1 : 0,
                               variable->n_parts,
                               n_strings - 1,
                               n_strings - 1,
                               UINT32_MAX,
                               UINT64_MAX,
                               UINT64_MAX,
                               UINT64_MAX};
    uint64_t words[8] = {0};
    for (size_t i = 0; i < 8 && !take->code; i++)
        words[i] = json_take_word(take, json_array_get(row, i), limits[i], "fields");
    *field = (struct variable_field){.event = (uint32_t)words[0],
                                     .part = words[1] == variable->n_parts ? FIELD_NO_PART : (uint32_t)words[1],
                                     .name = (uint32_t)words[2],
                                     .type = (uint32_t)words[3],
                                     .flags = (uint32_t)words[4],
                                     .offset_bytes = words[5],
                                     .size_bytes = words[6],
                                     .samples = words[7]};
}

static void take_fields(struct json_take *take, const json_t *row, const struct model *model, struct variable *variable)
{
    size_t n = 0;
    if (json_object_get(row, "type")) {
        variable->type = take_index(take, row, "type", model->strings.n_strings);
        variable->type_source = (uint8_t)json_take_word_at(take, row, "type_source", TYPE_SOURCES - 1);
        variable->element_bytes = json_take_word_at(take, row, "element_bytes", UINT64_MAX);
    }
    if (!json_object_get(row, "fields"))
        return;
    const json_t *list = json_take_array_at(take, row, "fields", &n);
    variable->fields = zeroed(take, n, sizeof *variable->fields);
    variable->n_fields = variable->cap_fields = variable->fields ? n : 0;
    for (size_t i = 0; i < variable->n_fields && !take->code; i++)
        take_field(take, json_array_get(list, i), model, variable, &variable->fields[i]);
}

static void take_words(struct json_take *take, const json_t *list, uint64_t *words, size_t n)
{
    if (json_array_size(list) != n)
        (void)json_take_fail(take, ERR_FORMAT, "latencies", "a list of other length is expected");
    for (size_t i = 0; i < n && !take->code; i++)
        words[i] = json_take_word(take, json_array_get(list, i), UINT64_MAX, "latencies");
}

static void take_latency(struct json_take *take, const json_t *item, struct latency_sum *sum)
{
    uint64_t words[5] = {0};
    take_words(take, json_array_get(item, 0), words, 5);
    take_words(take, json_array_get(item, 1), sum->bins, LATENCY_BINS);
    sum->n_samples = words[1];
    sum->cycles = words[2];
    sum->n_remote = words[3];
    sum->remote_cycles = words[4];
}

static void take_cause(struct json_take *take, const json_t *item, struct cause_sum *sum)
{
    double *values[] = {&sum->memory,    &sum->memory_low, &sum->memory_high,
                        &sum->execution, &sum->unverified, &sum->resident};
    for (size_t k = 0; k < sizeof values / sizeof *values; k++)
        *values[k] = json_take_double(take, json_array_get(item, 1 + k), "causes");
    bool has_range = json_array_size(item) > 8;
    sum->memory_least = has_range ? json_take_double(take, json_array_get(item, 7), "causes") : sum->memory_low;
    sum->memory_most = has_range ? json_take_double(take, json_array_get(item, 8), "causes") : sum->memory_high;
    sum->longer = json_array_size(item) > 9 ? json_take_double(take, json_array_get(item, 9), "causes") : 0;
}

/* Reads the list under key, which has an item for each event: makes zeroed items that begin with the index of their
 * event, which is checked and filled in; *list is where the caller reads the rest. Returns their number. */
static size_t take_by_event(struct json_take *take, const json_t *row, const char *key, const struct model *model,
                            size_t item_bytes, void **items, const json_t **list)
{
    size_t n = 0;
    *list = json_object_get(row, key) ? json_take_array_at(take, row, key, &n) : NULL;
    *items = zeroed(take, n, item_bytes);
    for (size_t i = 0; *items && i < n && !take->code; i++) {
        const json_t *event = json_array_get(json_array_get(*list, i), 0);
        event = json_is_array(event) ? json_array_get(event, 0) : event; /* for latencies it is the first of the
                                                                          * words */
        uint64_t index = json_take_word(take, event, UINT32_MAX, key);
        if (index >= model->n_events)
            (void)json_take_fail(take, ERR_FORMAT, key, "there is no such event");
        *(uint32_t *)(void *)((char *)*items + i * item_bytes) = (uint32_t)index;
    }
    return *items ? n : 0;
}

static void take_walk(struct json_take *take, const json_t *item, struct variable_walk *walk)
{
    walk->kind = (uint8_t)json_take_word(take, json_array_get(item, 1), PATTERN_CHAINED, "walks");
    walk->stride_bytes = (uint32_t)json_take_word(take, json_array_get(item, 2), WALK_STRIDE_MOST, "walks");
    walk->samples = json_take_double(take, json_array_get(item, 3), "walks");
    walk->memory = json_take_double(take, json_array_get(item, 4), "walks");
}

static void take_sums(struct json_take *take, const json_t *row, const struct model *model, struct variable *variable)
{
    _Static_assert(offsetof(struct variable_latency, event) == 0 && offsetof(struct variable_cause, event) == 0 &&
                       offsetof(struct variable_walk, event) == 0,
                   "an item for an event begins with its index");
    const json_t *list;
    void *items;
    variable->n_latencies = take_by_event(take, row, "latencies", model, sizeof *variable->latencies, &items, &list);
    variable->latencies = items;
    for (size_t i = 0; i < variable->n_latencies && !take->code; i++)
        take_latency(take, json_array_get(list, i), &variable->latencies[i].sum);
    variable->n_causes = take_by_event(take, row, "causes", model, sizeof *variable->causes, &items, &list);
    variable->causes = items;
    for (size_t i = 0; i < variable->n_causes && !take->code; i++)
        take_cause(take, json_array_get(list, i), &variable->causes[i].sum);
    variable->n_walks = take_by_event(take, row, "walks", model, sizeof *variable->walks, &items, &list);
    variable->walks = items;
    for (size_t i = 0; i < variable->n_walks && !take->code; i++)
        take_walk(take, json_array_get(list, i), &variable->walks[i]);
}

/* A list of n words, NULL when there is none; memory is allocated only once the list is known to exist. */
static uint64_t *take_table(struct json_take *take, const json_t *row, const char *key, size_t n)
{
    const json_t *list = json_object_get(row, key);
    if (!list || n == 0)
        return NULL;
    if (json_array_size(list) != n)
        (void)json_take_fail(take, ERR_FORMAT, key, "a list of other length is expected");
    uint64_t *words = zeroed(take, n, sizeof *words);
    if (words)
        json_take_words_at(take, row, key, words, n);
    return words;
}

static void take_samples(struct json_take *take, const json_t *row, const struct model *model,
                         struct variable *variable)
{
    variable->samples = take_table(take, row, "samples", model->n_metrics);
    variable->places = take_table(take, row, "places", model->n_metrics * model->n_numa_nodes);
}

static void take_variable(struct json_take *take, const json_t *row, struct model *model, struct variable *variable)
{
    size_t n_strings = model->strings.n_strings, n = 0;
    variable->name = take_index(take, row, "name", n_strings);
    variable->class = (uint8_t)json_take_word_at(take, row, "class", CLASS_COUNT - 1);
    variable->function = take_index(take, row, "function", n_strings);
    variable->file = take_index(take, row, "file", n_strings);
    variable->line = (uint32_t)json_take_word_at(take, row, "line", UINT32_MAX);
    variable->module = take_index(take, row, "module", n_strings);
    variable->size_bytes = json_take_word_at(take, row, "size_bytes", UINT64_MAX);
    variable->n_blocks = json_take_word_at(take, row, "n_blocks", UINT64_MAX);
    variable->size_freed_bytes = json_take_word_at(take, row, "size_freed_bytes", UINT64_MAX);
    variable->n_blocks_freed = json_take_word_at(take, row, "n_blocks_freed", UINT64_MAX);
    variable->max_block_bytes = json_take_word_at(take, row, "max_block_bytes", UINT64_MAX);
    variable->n_inexact = json_take_word_at(take, row, "n_inexact", UINT64_MAX);
    variable->n_blocks_marked = take_optional(take, row, "n_blocks_marked");
    variable->size_marked_bytes = take_optional(take, row, "size_marked_bytes");
    const json_t *list = json_take_array_at(take, row, "scopes", &n);
    variable->scopes = zeroed(take, n, sizeof *variable->scopes);
    variable->n_scopes = variable->scopes ? n : 0;
    for (size_t i = 0; i < variable->n_scopes; i++)
        variable->scopes[i] = (uint32_t)json_take_word(take, json_array_get(list, i), model->n_scopes - 1, "scope");
    take_parts(take, row, n_strings, variable);
    take_part_lines(take, row, n_strings, variable);
    take_fields(take, row, model, variable);
    take_samples(take, row, model, variable);
    take_sums(take, row, model, variable);
}

static void take_variables(struct json_take *take, const json_t *root, struct model *model)
{
    const json_t *list =
        begin_list(take, root, "variables", false, &model->variables, sizeof *model->variables, &model->n_variables);
    for (take->index = 0; take->index < model->n_variables; take->index++)
        take_variable(take, json_array_get(list, take->index), model, &model->variables[take->index]);
}

static void take_scope(struct json_take *take, const json_t *row, size_t index, const struct model *model,
                       struct scope *scope)
{
    size_t n_strings = model->strings.n_strings;
    uint64_t limits[10] = {index ? index - 1 : 0, SCOPE_INSTRUCTION, ROLE_COUNT - 1, UINT16_MAX, n_strings - 1,
                           n_strings - 1,         n_strings - 1,     UINT32_MAX,     UINT64_MAX, UINT32_MAX};
    uint64_t words[10] = {0};
    for (size_t i = 0; i < (json_array_size(row) > 9 ? 10 : 9); i++)
        words[i] = json_take_word(take, json_array_get(row, i), limits[i], "field");
    *scope = (struct scope){.parent = (uint32_t)words[0],
                            .kind = (uint8_t)words[1],
                            .role = (uint8_t)words[2],
                            .node_type = (uint16_t)words[3],
                            .name = (uint32_t)words[4],
                            .file = (uint32_t)words[5],
                            .module = (uint32_t)words[6],
                            .line = (uint32_t)words[7],
                            .vaddr = words[8],
                            .end_line = (uint32_t)words[9]};
}

static void take_tree(struct json_take *take, const json_t *root, struct model *model)
{
    size_t n = 0;
    take->where = "scopes";
    const json_t *list = json_take_array_at(take, root, "scopes", &n);
    if (!vec_reserve(&model->scopes, &model->cap_scopes, n + 1, sizeof *model->scopes)) {
        (void)json_take_fail(take, ERR_MEMORY, "list", "out of memory");
        return;
    }
    model->n_scopes = n + 1;
    for (take->index = 0; take->index < n; take->index++) {
        take_scope(take, json_array_get(list, take->index), take->index + 1, model, &model->scopes[take->index + 1]);
        if (!take->code && !model_scope_fits(model, (uint32_t)take->index + 1))
            (void)json_take_fail(take, ERR_FORMAT, "kind", "an instruction is not in a statement, or has parts");
    }
    model_link_scopes(model);
    take->where = "values";
    list = json_take_array_at(take, root, "values", &n);
    model->own = zeroed(take, model->n_scopes * model->n_metrics + 1, sizeof *model->own);
    for (take->index = 0; model->own && list && take->index < n && !take->code; take->index++) {
        const json_t *row = json_array_get(list, take->index);
        uint64_t scope = json_take_word(take, json_array_get(row, 0), model->n_scopes - 1, "scope");
        uint64_t metric =
            json_take_word(take, json_array_get(row, 1), model->n_metrics ? model->n_metrics - 1 : 0, "metric");
        if (!take->code)
            model->own[scope * model->n_metrics + metric] = json_number_value(json_array_get(row, 2));
    }
}

/* Only databases with instructions have builds. */
static void take_builds(struct json_take *take, const json_t *root, struct model *model)
{
    size_t n = 0;
    take->where = "builds";
    const json_t *list = json_object_get(root, "builds") ? json_take_array_at(take, root, "builds", &n) : NULL;
    for (take->index = 0; list && take->index < n && !take->code; take->index++) {
        const json_t *row = json_array_get(list, take->index);
        uint64_t module = json_take_word(take, json_array_get(row, 0), model->strings.n_strings - 1, "module");
        uint64_t build = json_take_word(take, json_array_get(row, 1), UINT64_MAX, "build");
        if (!take->code && !model_add_build(model, (uint32_t)module, build))
            (void)json_take_fail(take, ERR_MEMORY, "list", "out of memory");
    }
}

static uint32_t take_place(struct json_take *take, const json_t *value, const char *what)
{
    return json_is_null(value) ? PLACE_UNKNOWN : (uint32_t)json_take_word(take, value, PLACE_UNKNOWN - 1, what);
}

static void take_cpus(struct json_take *take, const json_t *row, struct machine *machine)
{
    size_t n = 0;
    const json_t *list = json_take_array_at(take, row, "cpus", &n);
    machine->cpus = zeroed(take, n, sizeof *machine->cpus);
    machine->n_cpus = machine->cpus ? n : 0;
    for (size_t i = 0; i < machine->n_cpus && !take->code; i++) {
        const json_t *item = json_array_get(list, i);
        machine->cpus[i] = (struct machine_cpu){
            .cpu = (uint32_t)json_take_word(take, json_array_get(item, 0), PLACE_UNKNOWN - 1, "CPU"),
            .core = take_place(take, json_array_get(item, 1), "core"),
            .package = take_place(take, json_array_get(item, 2), "package"),
            .node = take_place(take, json_array_get(item, 3), "node")};
        if (i && !take->code && machine->cpus[i].cpu <= machine->cpus[i - 1].cpu)
            (void)json_take_fail(take, ERR_FORMAT, "cpus", "the numbers do not ascend");
    }
}

static void take_distances(struct json_take *take, const json_t *row, struct machine *machine)
{
    size_t n = 0;
    uint32_t n_nodes = 1;
    const json_t *list = json_object_get(row, "distances") ? json_take_array_at(take, row, "distances", &n) : NULL;
    while (n_nodes < HOMES_MAX && n_nodes * n_nodes < n)
        n_nodes++;
    if (!list || take->code)
        return;
    if (n_nodes * n_nodes != n) {
        (void)json_take_fail(take, ERR_FORMAT, "distances", "they are no square");
        return;
    }
    machine->distances = zeroed(take, n, sizeof *machine->distances);
    machine->n_distances = machine->distances ? n_nodes : 0;
    for (size_t i = 0; machine->distances && i < n; i++)
        machine->distances[i] = (uint32_t)json_take_word(take, json_array_get(list, i), UINT32_MAX, "distance");
}

/* Only databases of measurements with topologies have machines. */
static void take_machines(struct json_take *take, const json_t *root, struct model *model)
{
    const json_t *list =
        begin_list(take, root, "machines", true, &model->machines, sizeof *model->machines, &model->n_machines);
    for (take->index = 0; take->index < model->n_machines && !take->code; take->index++) {
        const json_t *row = json_array_get(list, take->index);
        model->machines[take->index].host_id = json_take_text_needed_at(take, row, "host_id");
        take_cpus(take, row, &model->machines[take->index]);
        take_distances(take, row, &model->machines[take->index]);
    }
}

static void take_cpu_counts(struct json_take *take, const json_t *root, struct model *model)
{
    const json_t *list =
        begin_list(take, root, "cpu_counts", true, &model->cpu_counts, sizeof *model->cpu_counts, &model->n_cpu_counts);
    need(take, model->n_cpu_counts, model->n_variables && model->n_metrics && has_threads(model),
         "variables, metrics or threads");
    for (take->index = 0; take->index < model->n_cpu_counts && !take->code; take->index++) {
        const json_t *row = json_array_get(list, take->index);
        model->cpu_counts[take->index] = (struct cpu_count){
            .variable = (uint32_t)json_take_word(take, json_array_get(row, 0), model->n_variables - 1, "variable"),
            .thread = (uint32_t)json_take_word(take, json_array_get(row, 1), model->n_threads - 1, "thread"),
            .metric = (uint32_t)json_take_word(take, json_array_get(row, 2), model->n_metrics - 1, "metric"),
            .cpu = (uint32_t)json_take_word(take, json_array_get(row, 3), UINT32_MAX, "CPU"),
            .n_samples = json_take_word(take, json_array_get(row, 4), UINT64_MAX, "samples")};
    }
}

static void take_meetings(struct json_take *take, const json_t *root, struct model *model)
{
    const json_t *list =
        begin_list(take, root, "meetings", true, &model->meetings, sizeof *model->meetings, &model->n_meetings);
    need(take, model->n_meetings, model->n_variables && has_threads(model), "variables or threads");
    for (take->index = 0; take->index < model->n_meetings && !take->code; take->index++) {
        const json_t *row = json_array_get(list, take->index);
        struct meeting *meeting = &model->meetings[take->index];
        uint64_t *const words[] = {&meeting->key,    &meeting->address,  &meeting->n_bytes,
                                   &meeting->n_same, &meeting->n_beside, &meeting->n_none};
        meeting->variable = (uint32_t)json_take_word(take, json_array_get(row, 0), model->n_variables - 1, "variable");
        meeting->thread = (uint32_t)json_take_word(take, json_array_get(row, 1), model->n_threads - 1, "thread");
        meeting->scope = (uint32_t)json_take_word(take, json_array_get(row, 2), model->n_scopes - 1, "scope");
        meeting->accesses = (uint32_t)json_take_word(take, json_array_get(row, 3), 3, "meetings");
        meeting->is_watcher = json_take_word(take, json_array_get(row, 4), 1, "meetings");
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            *words[k] = json_take_word(take, json_array_get(row, 5 + k), UINT64_MAX, "meetings");
    }
}

static void take_touches(struct json_take *take, const json_t *root, struct model *model)
{
    const json_t *list =
        begin_list(take, root, "touches", true, &model->touches, sizeof *model->touches, &model->n_touches);
    need(take, model->n_touches, model->n_variables && has_threads(model), "variables or threads");
    for (take->index = 0; take->index < model->n_touches && !take->code; take->index++) {
        const json_t *row = json_array_get(list, take->index);
        struct touch *touch = &model->touches[take->index];
        uint64_t *const words[] = {&touch->n_samples, &touch->n_faults, &touch->first_ns, &touch->low_bytes,
                                   &touch->high_bytes};
        touch->variable = (uint32_t)json_take_word(take, json_array_get(row, 0), model->n_variables - 1, "variable");
        touch->thread = (uint32_t)json_take_word(take, json_array_get(row, 1), model->n_threads - 1, "thread");
        touch->scope = (uint32_t)json_take_word(take, json_array_get(row, 2), model->n_scopes - 1, "scope");
        touch->low_bytes = 1;
        for (size_t k = 0; k < (json_array_size(row) > 6 ? 5 : 3); k++)
            *words[k] = json_take_word(take, json_array_get(row, 3 + k), UINT64_MAX, "touches");
    }
}

static void take_drops(struct json_take *take, const json_t *root, struct model *model)
{
    const json_t *list = begin_list(take, root, "drops", true, &model->drops, sizeof *model->drops, &model->n_drops);
    need(take, model->n_drops, model->n_events && has_threads(model), "events or threads");
    for (take->index = 0; take->index < model->n_drops && !take->code; take->index++) {
        const json_t *row = json_array_get(list, take->index);
        struct drop_count *drop = &model->drops[take->index];
        drop->thread = (uint32_t)json_take_word(take, json_array_get(row, 0), model->n_threads - 1, "thread");
        drop->event = (uint32_t)json_take_word(take, json_array_get(row, 1), model->n_events - 1, "event");
        drop->fate = model_drop_named(json_string_value(json_array_get(row, 2)));
        drop->n_samples = json_take_word(take, json_array_get(row, 3), UINT64_MAX, "drops");
        if (drop->fate == FATE_MAX)
            *drop = (struct drop_count){.fate = FATE_DROP_REENTERED};
    }
}

static void take_reach_row(struct json_take *take, const json_t *item, struct reach_row *row)
{
    const json_t *lines = json_array_get(item, 5), *offsets = json_array_get(item, 6);
    row->n_strided = json_take_word(take, json_array_get(item, 2), UINT64_MAX, "reaches");
    row->n_irregular = json_take_word(take, json_array_get(item, 3), UINT64_MAX, "reaches");
    reach_take(take, json_array_get(item, 4), &row->sum);
    if (!json_is_array(lines) || !json_is_array(offsets) || json_array_size(offsets) % 2)
        (void)json_take_fail(take, ERR_FORMAT, "reaches", "lists of lines and of offsets are expected");
    row->lines = zeroed(take, json_array_size(lines), sizeof *row->lines);
    row->n_lines = row->lines ? json_array_size(lines) : 0;
    for (size_t i = 0; i < row->n_lines && !take->code; i++)
        reach_line_take(take, json_array_get(lines, i), &row->lines[i]);
    row->offsets.entries = zeroed(take, json_array_size(offsets) / 2, sizeof *row->offsets.entries);
    row->offsets.n = row->offsets.capacity = row->offsets.entries ? json_array_size(offsets) / 2 : 0;
    for (size_t i = 0; i < row->offsets.n && !take->code; i++) {
        struct spread_entry *entry = &row->offsets.entries[i];
        entry->offset = json_take_word(take, json_array_get(offsets, 2 * i), UINT64_MAX, "reaches");
        entry->count = json_take_word(take, json_array_get(offsets, 2 * i + 1), UINT64_MAX, "reaches");
    }
}

static void take_reaches(struct json_take *take, const json_t *root, struct model *model)
{
    const json_t *list =
        begin_list(take, root, "reaches", true, &model->reaches, sizeof *model->reaches, &model->n_reaches);
    need(take, model->n_reaches, model->n_variables && has_threads(model), "variables or threads");
    for (take->index = 0; take->index < model->n_reaches && !take->code; take->index++) {
        const json_t *row = json_array_get(list, take->index);
        struct reach_row *into = &model->reaches[take->index];
        into->variable = (uint32_t)json_take_word(take, json_array_get(row, 0), model->n_variables - 1, "variable");
        into->thread = (uint32_t)json_take_word(take, json_array_get(row, 1), model->n_threads - 1, "thread");
        take_reach_row(take, row, into);
    }
}

static void take_home_counts(struct json_take *take, const json_t *root, struct model *model)
{
    const json_t *list = begin_list(take, root, "home_counts", true, &model->home_counts, sizeof *model->home_counts,
                                    &model->n_home_counts);
    need(take, model->n_home_counts, model->n_variables && model->n_metrics && has_threads(model),
         "variables, metrics or threads");
    for (take->index = 0; take->index < model->n_home_counts && !take->code; take->index++) {
        const json_t *row = json_array_get(list, take->index), *home = json_array_get(row, 4);
        model->home_counts[take->index] = (struct home_count){
            .variable = (uint32_t)json_take_word(take, json_array_get(row, 0), model->n_variables - 1, "variable"),
            .thread = (uint32_t)json_take_word(take, json_array_get(row, 1), model->n_threads - 1, "thread"),
            .metric = (uint32_t)json_take_word(take, json_array_get(row, 2), model->n_metrics - 1, "metric"),
            .cpu = (uint32_t)json_take_word(take, json_array_get(row, 3), UINT32_MAX, "CPU"),
            .home = json_is_null(home) ? PLACE_UNKNOWN : (uint32_t)json_take_word(take, home, HOMES_MAX - 1, "home"),
            .n_samples = json_take_word(take, json_array_get(row, 5), UINT64_MAX, "samples")};
    }
}

static void take_pages(struct json_take *take, const json_t *root, struct model *model)
{
    const json_t *list = begin_list(take, root, "pages", true, &model->pages, sizeof *model->pages, &model->n_pages);
    need(take, model->n_pages, model->n_variables, "variables");
    for (take->index = 0; take->index < model->n_pages && !take->code; take->index++) {
        const json_t *row = json_array_get(list, take->index);
        struct variable_pages *pages = &model->pages[take->index];
        pages->variable = (uint32_t)json_take_word_at(take, row, "variable", model->n_variables - 1);
        pages->n_moved = json_take_word_at(take, row, "n_moved", UINT64_MAX);
        pages->n_pages = json_take_word_at(take, row, "n_pages", UINT64_MAX);
        pages->n_asked = json_take_word_at(take, row, "n_asked", UINT64_MAX);
        pages->n_none = json_take_word_at(take, row, "n_none", UINT64_MAX);
        pages->huge_bytes = json_object_get(row, "huge_bytes")
                                ? json_take_word_at(take, row, "huge_bytes", UINT64_MAX - 1)
                                : UINT64_MAX;
        json_take_words_at(take, row, "n_on", pages->n_on, HOMES_MAX);
    }
}

static void take_field_counts(struct json_take *take, const json_t *root, struct model *model)
{
    const json_t *list = begin_list(take, root, "field_counts", true, &model->field_counts, sizeof *model->field_counts,
                                    &model->n_field_counts);
    need(take, model->n_field_counts, model->n_variables, "variables");
    for (take->index = 0; take->index < model->n_field_counts && !take->code; take->index++) {
        const json_t *row = json_array_get(list, take->index);
        struct field_count *count = &model->field_counts[take->index];
        count->variable = (uint32_t)json_take_word(take, json_array_get(row, 0), model->n_variables - 1, "variable");
        count->scope = (uint32_t)json_take_word(take, json_array_get(row, 1), model->n_scopes - 1, "scope");
        uint64_t n_fields = model->variables[count->variable].n_fields;
        count->field = (uint32_t)json_take_word(take, json_array_get(row, 2), n_fields - (n_fields > 0), "field");
        if (!n_fields && !take->code)
            (void)json_take_fail(take, ERR_FORMAT, "field", "the variable has no fields");
        count->n_samples = json_take_word(take, json_array_get(row, 3), UINT64_MAX, "samples");
    }
}

static void take_nest_counts(struct json_take *take, const json_t *root, struct model *model)
{
    const json_t *list =
        begin_list(take, root, "nests", true, &model->nest_counts, sizeof *model->nest_counts, &model->n_nest_counts);
    need(take, model->n_nest_counts, model->n_variables, "variables");
    need(take, model->n_nest_counts, model->n_events, "events");
    for (take->index = 0; take->index < model->n_nest_counts && !take->code; take->index++) {
        const json_t *row = json_array_get(list, take->index);
        struct nest_count *count = &model->nest_counts[take->index];
        uint32_t *const words[] = {&count->variable, &count->event,      &count->file,       &count->line,
                                   &count->end_line, &count->outer_file, &count->outer_line, &count->verdict,
                                   &count->move,     &count->is_around};
        uint64_t *const numbers[] = {&count->stride_bytes, &count->outer_bytes, &count->n_samples};
        const size_t n_words = sizeof words / sizeof *words, last_string = model->strings.n_strings - 1;
        const uint64_t most[] = {model->n_variables - 1,
                                 model->n_events - 1,
                                 last_string,
                                 UINT32_MAX,
                                 UINT32_MAX,
                                 last_string,
                                 UINT32_MAX,
                                 NEST_TILE,
                                 NEST_UNKNOWN,
                                 1};
        for (size_t k = 0; k < n_words; k++)
            *words[k] = (uint32_t)json_take_word(take, json_array_get(row, k), most[k], "nests");
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            *numbers[k] = json_take_word(take, json_array_get(row, n_words + k), UINT64_MAX, "nests");
    }
}

int json_database_read(const char *text, size_t len_bytes, const char *name, struct model *model, struct error *err)
{
    struct json_take take = {.name = name, .err = err};
    json_t *root = json_take_parse(&take, text, len_bytes);
    if (!root)
        return take.code;
    char *format = json_take_text_at(&take, root, "format");
    if (!format || strcmp(format, "locus-database") != 0)
        take.code = error_set(err, ERR_FORMAT, "%s is not a database of Locus", name);
    else if (json_take_word_at(&take, root, "version", UINT32_MAX) != 1)
        take.code = error_set(err, ERR_UNSUPPORTED, "%s has a version that this program does not know", name);
    free(format);
    if (!take.code) {
        take_head(&take, root, model);
        take_texts(&take, root, model);
        take_metrics(&take, root, model);
        take_processes(&take, root, model);
        take_threads(&take, root, model);
        take_events(&take, root, model);
        take_tree(&take, root, model);
        take_variables(&take, root, model);
        take_builds(&take, root, model);
        take_machines(&take, root, model);
        take_cpu_counts(&take, root, model);
        take_touches(&take, root, model);
        take_meetings(&take, root, model);
        take_reaches(&take, root, model);
        take_home_counts(&take, root, model);
        take_pages(&take, root, model);
        take_field_counts(&take, root, model);
        take_nest_counts(&take, root, model);
        take_drops(&take, root, model);
    }
    json_decref(root);
    model_set_capacities(model);
    return take.code ? take.code : model_sum(model, err);
}
