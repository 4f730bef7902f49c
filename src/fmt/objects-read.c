/* SPDX-License-Identifier: BSD-3-Clause */
/* Reader of the side file of a profile: see objects.h. */
#include "fmt/objects.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fmt/file.h"
#include "fmt/json.h"

static void take_skid(struct json_take *take, const json_t *root, struct objects_file *file)
{
    const json_t *skid = json_object_get(root, "skid");
    if (!skid || json_is_null(skid))
        return;
    file->skid = json_is_string(skid) ? strdup(json_string_value(skid))
                                      : json_dumps(skid, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    if (!file->skid)
        json_take_fail(take, ERR_MEMORY, "skid", "out of memory");
}

static void take_head(struct json_take *take, const json_t *root, struct objects_file *file)
{
    const char *format = json_string_value(json_object_get(root, "format"));
    if (!format || strcmp(format, OBJECTS_FORMAT) != 0)
        json_take_fail(take, ERR_FORMAT, "format", "this is not a side file: \"" OBJECTS_FORMAT "\" is expected");
    uint64_t version = json_take_word_at(take, root, "version", UINT64_MAX);
    file->version = (uint32_t)version;
    if (version < 1 || version > OBJECTS_VERSION)
        json_take_fail(take, ERR_UNSUPPORTED, "version", "this version of the side file is not supported");
    file->state = json_take_text_at(take, root, "state");
    file->host = json_take_text_at(take, root, "host");
    file->exe = json_take_text_at(take, root, "exe");
    file->pid = (uint32_t)json_take_word_at(take, root, "pid", UINT32_MAX);
    file->tid = (uint32_t)json_take_word_at(take, root, "tid", UINT32_MAX);
    file->thread_id = (uint32_t)json_take_word_at(take, root, "thread_id", UINT32_MAX);
    file->rank = (uint32_t)json_take_word_at(take, root, "rank", UINT32_MAX);
    if (json_object_get(root, "thread_name"))
        file->thread_name = json_take_text_at(take, root, "thread_name");
    file->start_ns = json_take_word_at(take, root, "start_ns", UINT64_MAX);
    file->end_ns = json_take_word_at(take, root, "end_ns", UINT64_MAX);
    file->cpu_time_ns = json_take_word_at(take, root, "cpu_time_ns", UINT64_MAX);
    file->plan = json_take_text_at(take, root, "plan");
    file->topology = json_take_text_at(take, root, "topology");
    take_skid(take, root, file);
    file->n_frames = json_take_word_at(take, root, "n_frames", UINT64_MAX);
    json_take_words_at(take, root, "unwind_stops", file->unwind_stops,
                       sizeof file->unwind_stops / sizeof file->unwind_stops[0]);
    if (version < 3)
        return;
    file->min_bytes = json_take_word_at(take, root, "min_bytes", UINT64_MAX);
    file->sample_bytes = json_take_word_at(take, root, "sample_bytes", UINT64_MAX);
    file->mark_ns = json_take_word_at(take, root, "mark_ns", UINT64_MAX);
    if (version < 5)
        return;
    file->user_ns = json_take_word_at(take, root, "user_ns", UINT64_MAX);
    file->system_ns = json_take_word_at(take, root, "system_ns", UINT64_MAX);
    if (json_object_get(root, "delay_ns"))
        file->delay_ns = json_take_word_at(take, root, "delay_ns", UINT64_MAX);
    if (json_object_get(root, "page_faults"))
        file->n_page_faults = json_take_word_at(take, root, "page_faults", UINT64_MAX);
    if (json_object_get(root, "unmeasured_ns"))
        file->unmeasured_ns = json_take_word_at(take, root, "unmeasured_ns", UINT64_MAX);
    file->note = json_take_text_at(take, root, "note");
    if (json_object_get(root, "sharing_note"))
        file->sharing_note = json_take_text_at(take, root, "sharing_note");
    if (json_object_get(root, "birth"))
        file->birth = json_take_word_at(take, root, "birth", UINT64_MAX);
}

static void take_placeholders(struct json_take *take, const json_t *root, struct objects_file *file)
{
    size_t n_items = 0;
    const json_t *list = json_take_array_at(take, root, "placeholders", &n_items);
    file->placeholders = json_take_alloc(take, n_items, sizeof *file->placeholders);
    file->n_placeholders = file->placeholders ? n_items : 0;
    take->where = "placeholders";
    for (take->index = 0; take->index < file->n_placeholders; take->index++) {
        const json_t *item = json_array_get(list, take->index);
        file->placeholders[take->index].ip = json_take_word_at(take, item, "ip", UINT64_MAX);
        file->placeholders[take->index].name = json_take_text_at(take, item, "name");
    }
    take->where = NULL;
}

/* Only profiles with samples in the kernel, in generated code, or in regions have them. */
static void take_functions(struct json_take *take, const json_t *root, const char *key,
                           struct objects_function **functions, size_t *n)
{
    size_t n_items = 0;
    if (!json_object_get(root, key))
        return;
    const json_t *list = json_take_array_at(take, root, key, &n_items);
    *functions = json_take_alloc(take, n_items, sizeof **functions);
    *n = *functions ? n_items : 0;
    take->where = key;
    for (take->index = 0; take->index < *n; take->index++) {
        const json_t *item = json_array_get(list, take->index);
        (*functions)[take->index].start = json_take_word_at(take, item, "start", UINT64_MAX);
        (*functions)[take->index].end = json_take_word_at(take, item, "end", UINT64_MAX);
        (*functions)[take->index].name = json_take_text_at(take, item, "name");
    }
    take->where = NULL;
}

/* Older files lack them. */
static void take_modules(struct json_take *take, const json_t *root, struct objects_file *file)
{
    size_t n_items = 0;
    if (!json_object_get(root, "modules"))
        return;
    const json_t *list = json_take_array_at(take, root, "modules", &n_items);
    file->modules = json_take_alloc(take, n_items, sizeof *file->modules);
    file->n_modules = file->modules ? n_items : 0;
    take->where = "modules";
    for (take->index = 0; take->index < file->n_modules; take->index++) {
        const json_t *item = json_array_get(list, take->index);
        file->modules[take->index].id = json_take_word_at(take, item, "id", UINT64_MAX);
        file->modules[take->index].path = json_take_text_at(take, item, "path");
    }
    take->where = NULL;
}

/* Every name must be known: a fate that is dropped would make the sums wrong. */
static void take_fates(struct json_take *take, const json_t *item, uint64_t fates[FATE_MAX])
{
    json_t *object = json_object_get(item, "fates");
    const char *name;
    json_t *value;
    if (!json_is_object(object))
        json_take_fail(take, ERR_FORMAT, "fates", "an object is expected");
    json_object_foreach(object, name, value)
    {
        int fate = 0;
        while (fate < FATE_MAX && strcmp(fate_row(fate)->name, name) != 0)
            fate++;
        if (fate == FATE_MAX)
            json_take_fail(take, ERR_FORMAT, name, "no such fate of a sample is known");
        else
            fates[fate] = json_take_word(take, value, UINT64_MAX, name);
    }
}

static void take_counters(struct json_take *take, const json_t *item, struct objects_event *event)
{
    event->enabled_ns = json_take_word_at(take, item, "enabled_ns", UINT64_MAX);
    event->running_ns = json_take_word_at(take, item, "running_ns", UINT64_MAX);
    event->n_throttles = json_take_word_at(take, item, "n_throttles", UINT64_MAX);
    event->n_no_metric = json_take_word_at(take, item, "n_no_metric", UINT64_MAX);
    event->n_truncated = json_take_word_at(take, item, "n_truncated", UINT64_MAX);
    event->n_collisions = json_take_word_at(take, item, "n_collisions", UINT64_MAX);
    event->has_data_source = (uint32_t)json_take_word_at(take, item, "has_data_source", UINT32_MAX);
}

static void take_events(struct json_take *take, const json_t *root, struct objects_file *file)
{
    size_t n_items = 0;
    const json_t *list = json_take_array_at(take, root, "events", &n_items);
    file->events = json_take_alloc(take, n_items, sizeof *file->events);
    file->n_events = file->events ? n_items : 0;
    take->where = "events";
    for (take->index = 0; take->index < file->n_events; take->index++) {
        const json_t *item = json_array_get(list, take->index);
        struct objects_event *event = &file->events[take->index];
        event->metric = json_take_text_at(take, item, "metric");
        event->name = json_take_text_at(take, item, "name");
        event->scale = json_take_double_at(take, item, "scale");
        event->taken = json_take_word_at(take, item, "taken", UINT64_MAX);
        event->overflows = json_take_word_at(take, item, "overflows", UINT64_MAX);
        take_fates(take, item, event->fates);
        if (file->version > 1)
            take_counters(take, item, event);
        else if (json_object_get(item, "enabled_ns"))
            json_take_fail(take, ERR_FORMAT, "enabled_ns", "version 1 of the side file has no such key");
        if (file->version > 4) {
            event->has_address = (uint32_t)json_take_word_at(take, item, "has_address", UINT32_MAX);
            event->is_user_only = (uint32_t)json_take_word_at(take, item, "is_user_only", UINT32_MAX);
        }
        if (json_object_get(item, "n_spared")) {
            event->n_spared = json_take_word_at(take, item, "n_spared", UINT64_MAX);
            event->sample_cost_ns = json_take_word_at(take, item, "sample_cost_ns", UINT64_MAX);
        }
    }
    take->where = NULL;
}

static void take_cpus(struct json_take *take, const json_t *item, struct objects_variable *variable)
{
    size_t n_items = 0;
    const json_t *list = json_take_array_at(take, item, "cpus", &n_items);
    variable->cpus = json_take_alloc(take, n_items, sizeof *variable->cpus);
    variable->n_cpus = variable->cpus ? n_items : 0;
    for (size_t i = 0; i < variable->n_cpus && !take->code; i++) {
        const json_t *row = json_array_get(list, i);
        variable->cpus[i].cpu = (uint32_t)json_take_word(take, json_array_get(row, 0), UINT32_MAX, "cpus");
        variable->cpus[i].metric = (uint32_t)json_take_word(take, json_array_get(row, 1), UINT32_MAX, "cpus");
        variable->cpus[i].count = json_take_word(take, json_array_get(row, 2), UINT64_MAX, "cpus");
    }
}

static void take_stack_offsets(struct json_take *take, const json_t *item, struct objects_variable *variable)
{
    size_t n_items = 0;
    const json_t *list = json_take_array_at(take, item, "stack_offsets", &n_items);
    variable->stack_offsets = json_take_alloc(take, n_items, 2 * sizeof *variable->stack_offsets);
    variable->n_stack_offsets = variable->stack_offsets ? n_items : 0;
    for (size_t i = 0; i < 2 * variable->n_stack_offsets; i++) {
        const json_t *value = json_array_get(json_array_get(list, i / 2), i % 2);
        if (!json_is_integer(value))
            json_take_fail(take, ERR_FORMAT, "stack_offsets", "pairs of integers are expected");
        variable->stack_offsets[i] = json_integer_value(value);
    }
}

static void take_samples(struct json_take *take, const json_t *item, struct objects_variable *variable)
{
    size_t n_items = 0;
    const json_t *list = json_take_array_at(take, item, "samples", &n_items);
    variable->samples = json_take_alloc(take, n_items, sizeof *variable->samples);
    variable->n_samples = variable->samples ? n_items : 0;
    for (size_t i = 0; i < variable->n_samples && !take->code; i++) {
        const json_t *row = json_array_get(list, i);
        variable->samples[i].metric = (uint32_t)json_take_word(take, json_array_get(row, 0), UINT32_MAX, "samples");
        variable->samples[i].count = json_take_word(take, json_array_get(row, 1), UINT64_MAX, "samples");
    }
}

/* [event, samples, cycles, remote samples, remote cycles, [[bin, samples]...]] */
static void take_latency(struct json_take *take, const json_t *row, struct objects_latency *latency)
{
    uint64_t *const words[] = {&latency->n_samples, &latency->cycles, &latency->n_remote, &latency->remote_cycles};
    const json_t *bins = json_array_get(row, 5);
    latency->event = (uint32_t)json_take_word(take, json_array_get(row, 0), UINT32_MAX, "latencies");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        *words[i] = json_take_word(take, json_array_get(row, i + 1), UINT64_MAX, "latencies");
    if (!json_is_array(bins))
        json_take_fail(take, ERR_FORMAT, "latencies", "a list of pairs is expected");
    for (size_t i = 0; i < json_array_size(bins) && !take->code; i++) {
        const json_t *pair = json_array_get(bins, i);
        uint64_t bin = json_take_word(take, json_array_get(pair, 0), OBJECTS_LATENCY_BINS - 1, "latencies");
        latency->bins[bin] = json_take_word(take, json_array_get(pair, 1), UINT64_MAX, "latencies");
    }
}

static void take_latencies(struct json_take *take, const json_t *item, struct objects_variable *variable)
{
    size_t n_items = 0;
    const json_t *list = json_take_array_at(take, item, "latencies", &n_items);
    variable->latencies = json_take_alloc(take, n_items, sizeof *variable->latencies);
    variable->n_latencies = variable->latencies ? n_items : 0;
    for (size_t i = 0; i < variable->n_latencies && !take->code; i++)
        take_latency(take, json_array_get(list, i), &variable->latencies[i]);
}

/* The hashes of lines: [bits, first, distance from it, ...] */
static void take_hashes(struct json_take *take, const json_t *list, struct objects_lines *lines)
{
    size_t n = json_array_size(list);
    uint64_t bits = json_take_word(take, json_array_get(list, 0), PATTERN_FINE_BITS, "accesses"), hash = 0;
    if (!n || n > OBJECTS_HASHES_MAX + 1 || (bits != PATTERN_FINE_BITS && bits != PATTERN_HASH_BITS))
        json_take_fail(take, ERR_FORMAT, "accesses", "a short list of the hashes of lines is expected");
    lines->hashes = json_take_alloc(take, n ? n - 1 : 0, sizeof *lines->hashes);
    lines->n_hashes = lines->hashes ? n - 1 : 0;
    lines->hash_bits = (uint32_t)bits;
    for (size_t i = 0; i < lines->n_hashes && !take->code; i++) {
        hash += json_take_word(take, json_array_get(list, 1 + i), (UINT64_C(1) << bits) - 1 - hash, "accesses");
        lines->hashes[i] = (uint32_t)hash;
    }
}

/* The pattern and lines of an access, where its row has them. */
static void take_lines(struct json_take *take, const json_t *row, struct objects_access *access)
{
    const json_t *list = json_array_get(row, 6);
    if (json_array_size(row) > 5)
        access->pattern = json_take_word(take, json_array_get(row, 5), UINT64_MAX, "accesses");
    if (!list)
        return;
    bool has_hashes = json_array_size(list) == 6 + PATTERN_SLOTS;
    bool has_order = json_array_size(list) == 5 + PATTERN_SLOTS || has_hashes;
    if ((json_array_size(list) != 3 + PATTERN_SLOTS && !has_order) || !access->pattern)
        json_take_fail(take, ERR_FORMAT, "accesses", "19 or 21 numbers about lines and their slots are expected");
    access->lines = json_take_alloc(take, 1, sizeof *access->lines);
    if (!access->lines)
        return;
    access->lines->n_bins = json_take_word(take, json_array_get(list, 0), 1u << PATTERN_HASH_BITS, "accesses");
    access->lines->n_lines = json_take_word(take, json_array_get(list, 1), UINT64_MAX, "accesses");
    access->lines->n_spanned = json_take_word(take, json_array_get(list, 2), UINT64_MAX, "accesses");
    for (size_t i = 0; i < PATTERN_SLOTS; i++)
        access->lines->slots[i] = json_take_word(take, json_array_get(list, 3 + i), UINT64_MAX, "accesses");
    if (!has_order)
        return;
    access->lines->n_followed = json_take_word(take, json_array_get(list, 3 + PATTERN_SLOTS), UINT64_MAX, "accesses");
    access->lines->n_paced =
        json_take_word(take, json_array_get(list, 4 + PATTERN_SLOTS), access->lines->n_followed, "accesses");
    if (has_hashes)
        take_hashes(take, json_array_get(list, 5 + PATTERN_SLOTS), access->lines);
}

/* [event, module, ip, samples, [offset, samples ...]] and, from version 6 on, lines */
static void take_access(struct json_take *take, const json_t *row, uint32_t version, struct objects_access *access)
{
    const json_t *list = json_array_get(row, 4);
    size_t n_words = json_array_size(list);
    access->event = (uint32_t)json_take_word(take, json_array_get(row, 0), UINT32_MAX, "accesses");
    access->module = (uint16_t)json_take_word(take, json_array_get(row, 1), UINT16_MAX, "accesses");
    access->ip = json_take_word(take, json_array_get(row, 2), UINT64_MAX, "accesses");
    access->n_samples = json_take_word(take, json_array_get(row, 3), UINT64_MAX, "accesses");
    if (!json_is_array(list) || n_words % 2 || n_words > 2 * SPREAD_MAX)
        json_take_fail(take, ERR_FORMAT, "accesses", "a short list of offsets and samples is expected");
    access->offsets.entries = json_take_alloc(take, n_words / 2, sizeof *access->offsets.entries);
    access->offsets.n = access->offsets.capacity = access->offsets.entries ? n_words / 2 : 0;
    for (size_t i = 0; i < access->offsets.n; i++) {
        struct spread_entry *entry = &access->offsets.entries[i];
        entry->offset = json_take_word(take, json_array_get(list, 2 * i), UINT64_MAX, "accesses");
        entry->count = json_take_word(take, json_array_get(list, 2 * i + 1), UINT64_MAX, "accesses");
    }
    if (version > 5)
        take_lines(take, row, access);
}

static void take_accesses(struct json_take *take, const json_t *item, uint32_t version,
                          struct objects_variable *variable)
{
    size_t n_items = 0;
    const json_t *list = json_take_array_at(take, item, "accesses", &n_items);
    variable->accesses = json_take_alloc(take, n_items, sizeof *variable->accesses);
    variable->n_accesses = variable->accesses ? n_items : 0;
    for (size_t i = 0; i < variable->n_accesses && !take->code; i++)
        take_access(take, json_array_get(list, i), version, &variable->accesses[i]);
}

/* [event, node, samples, faults, first_ns] and, where they are known, from and to which byte */
static void take_touches(struct json_take *take, const json_t *item, struct objects_variable *variable)
{
    size_t n_items = 0;
    if (!json_object_get(item, "touches"))
        return;
    const json_t *list = json_take_array_at(take, item, "touches", &n_items);
    variable->touches = json_take_alloc(take, n_items, sizeof *variable->touches);
    variable->n_touches = variable->touches ? n_items : 0;
    for (size_t i = 0; i < variable->n_touches && !take->code; i++) {
        const json_t *row = json_array_get(list, i);
        struct objects_touch *touch = &variable->touches[i];
        bool has_place = json_array_size(row) > 5;
        uint64_t *const words[] = {&touch->n_samples, &touch->n_faults, &touch->first_ns, &touch->low_bytes,
                                   &touch->high_bytes};
        touch->event = (uint32_t)json_take_word(take, json_array_get(row, 0), UINT32_MAX, "touches");
        touch->node = (uint32_t)json_take_word(take, json_array_get(row, 1), UINT32_MAX, "touches");
        touch->low_bytes = 1;
        for (size_t k = 0; k < (has_place ? 5 : 3); k++)
            *words[k] = json_take_word(take, json_array_get(row, 2 + k), UINT64_MAX, "touches");
    }
}

/* [key, node, is_watcher, address, bytes, accesses, same, beside, none] */
static void take_meetings(struct json_take *take, const json_t *item, struct objects_variable *variable)
{
    size_t n_items = 0;
    if (!json_object_get(item, "meetings"))
        return;
    const json_t *list = json_take_array_at(take, item, "meetings", &n_items);
    variable->meetings = json_take_alloc(take, n_items, sizeof *variable->meetings);
    variable->n_meetings = variable->meetings ? n_items : 0;
    for (size_t i = 0; i < variable->n_meetings && !take->code; i++) {
        const json_t *row = json_array_get(list, i);
        struct objects_meeting *meeting = &variable->meetings[i];
        uint64_t words[9];
        for (size_t k = 0; k < 9; k++)
            words[k] = json_take_word(take, json_array_get(row, k),
                                      k == 1   ? UINT32_MAX
                                      : k == 2 ? 1
                                      : k == 5 ? 3
                                               : UINT64_MAX,
                                      "meetings");
        *meeting = (struct objects_meeting){.key = words[0],
                                            .node = (uint32_t)words[1],
                                            .is_watcher = words[2],
                                            .address = words[3],
                                            .n_bytes = words[4],
                                            .accesses = (uint32_t)words[5],
                                            .n_same = words[6],
                                            .n_beside = words[7],
                                            .n_none = words[8]};
    }
}

static void take_reach(struct json_take *take, const json_t *item, struct objects_variable *variable)
{
    size_t n_lines = 0;
    if (!json_object_get(item, "reach"))
        return;
    const json_t *lines = json_take_array_at(take, item, "lines", &n_lines);
    variable->reach = json_take_alloc(take, 1, sizeof *variable->reach);
    if (!variable->reach)
        return;
    reach_take(take, json_object_get(item, "reach"), &variable->reach->sum);
    if (n_lines > REACH_LINES)
        json_take_fail(take, ERR_FORMAT, "lines", "there are more than 8");
    for (size_t i = 0; i < n_lines && !take->code; i++)
        reach_line_take(take, json_array_get(lines, i), &variable->reach->lines[variable->reach->n_lines++]);
}

static void take_kind(struct json_take *take, const json_t *item, struct objects_variable *variable)
{
    const char *name = json_string_value(json_object_get(item, "kind"));
    int kind = name ? objects_kind_of(name) : -1;
    if (kind < 0)
        json_take_fail(take, ERR_FORMAT, "kind", "no such kind of variable is known");
    variable->kind = (uint32_t)kind;
}

/* A number of a list in which -1 stands for UINT64_MAX. */
static uint64_t take_or_none(struct json_take *take, const json_t *value, uint64_t most, const char *key)
{
    return json_is_integer(value) && json_integer_value(value) == -1 ? UINT64_MAX
                                                                     : json_take_word(take, value, most, key);
}

/* [[cpu, metric, home, samples]...]; only machines with several memory nodes have them. */
static void take_homes(struct json_take *take, const json_t *item, struct objects_variable *variable)
{
    size_t n_items = 0;
    if (!json_object_get(item, "homes"))
        return;
    const json_t *list = json_take_array_at(take, item, "homes", &n_items);
    variable->homes = json_take_alloc(take, n_items, sizeof *variable->homes);
    variable->n_homes = variable->homes ? n_items : 0;
    for (size_t i = 0; i < variable->n_homes && !take->code; i++) {
        const json_t *row = json_array_get(list, i);
        struct objects_home *home = &variable->homes[i];
        home->cpu = (uint32_t)json_take_word(take, json_array_get(row, 0), UINT32_MAX, "homes");
        home->metric = (uint32_t)json_take_word(take, json_array_get(row, 1), UINT32_MAX, "homes");
        home->home = (uint32_t)take_or_none(take, json_array_get(row, 2), OBJECTS_NODES - 1, "homes");
        home->count = json_take_word(take, json_array_get(row, 3), UINT64_MAX, "homes");
    }
    variable->n_moved = json_take_word_at(take, item, "n_moved", UINT64_MAX);
}

static void take_pages(struct json_take *take, const json_t *item, struct objects_variable *variable)
{
    const json_t *list = json_object_get(item, "pages");
    size_t n = json_array_size(list);
    if (!list)
        return;
    if (n < 4 || n % 2 || n > 4 + 2 * (size_t)OBJECTS_NODES)
        json_take_fail(take, ERR_FORMAT, "pages", "four numbers and pairs of a node and its pages are expected");
    struct objects_pages *pages = take->code ? NULL : json_take_alloc(take, 1, sizeof *pages);
    variable->pages = pages;
    if (!pages)
        return;
    pages->n_pages = json_take_word(take, json_array_get(list, 0), UINT64_MAX, "pages");
    pages->n_asked = json_take_word(take, json_array_get(list, 1), UINT64_MAX, "pages");
    pages->n_none = json_take_word(take, json_array_get(list, 2), UINT64_MAX, "pages");
    pages->huge_bytes = take_or_none(take, json_array_get(list, 3), UINT64_MAX, "pages");
    for (size_t i = 4; i < n && !take->code; i += 2) {
        uint64_t node = json_take_word(take, json_array_get(list, i), OBJECTS_NODES - 1, "pages");
        pages->n_on[node] = json_take_word(take, json_array_get(list, i + 1), UINT64_MAX, "pages");
    }
}

static void take_variable(struct json_take *take, const json_t *item, uint32_t version,
                          struct objects_variable *variable)
{
    variable->node = (uint32_t)json_take_word_at(take, item, "node", UINT32_MAX);
    take_kind(take, item, variable);
    variable->name = json_take_text_at(take, item, "name");
    variable->n_blocks = json_take_word_at(take, item, "n_blocks", UINT64_MAX);
    variable->bytes = json_take_word_at(take, item, "bytes", UINT64_MAX);
    variable->n_blocks_freed = json_take_word_at(take, item, "n_blocks_freed", UINT64_MAX);
    variable->bytes_freed = json_take_word_at(take, item, "bytes_freed", UINT64_MAX);
    variable->max_block_bytes = json_take_word_at(take, item, "max_block_bytes", UINT64_MAX);
    if (json_object_get(item, "max_small_bytes")) {
        variable->min_small_bytes = json_take_word_at(take, item, "min_small_bytes", UINT64_MAX);
        variable->max_small_bytes = json_take_word_at(take, item, "max_small_bytes", UINT64_MAX);
    }
    json_take_words_at(take, item, "classes", variable->classes,
                       sizeof variable->classes / sizeof variable->classes[0]);
    variable->n_inexact = json_take_word_at(take, item, "n_inexact", UINT64_MAX);
    take_cpus(take, item, variable);
    take_stack_offsets(take, item, variable);
    if (version > 1) {
        take_samples(take, item, variable);
        take_latencies(take, item, variable);
    }
    if (version > 2) {
        variable->n_blocks_marked = json_take_word_at(take, item, "n_blocks_marked", UINT64_MAX);
        variable->bytes_marked = json_take_word_at(take, item, "bytes_marked", UINT64_MAX);
    }
    if (version > 3)
        take_accesses(take, item, version, variable);
    else if (json_object_get(item, "accesses"))
        json_take_fail(take, ERR_FORMAT, "accesses", "this version of the side file has no such key");
    take_homes(take, item, variable);
    take_pages(take, item, variable);
    take_touches(take, item, variable);
    take_meetings(take, item, variable);
    take_reach(take, item, variable);
}

static void take_variables(struct json_take *take, const json_t *root, struct objects_file *file)
{
    size_t n_items = 0;
    const json_t *list = json_take_array_at(take, root, "variables", &n_items);
    file->variables = json_take_alloc(take, n_items, sizeof *file->variables);
    file->n_variables = file->variables ? n_items : 0;
    take->where = "variables";
    for (take->index = 0; take->index < file->n_variables && !take->code; take->index++)
        take_variable(take, json_array_get(list, take->index), file->version, &file->variables[take->index]);
    take->where = NULL;
}

int objects_take_json(struct json_take *take, const json_t *root, struct objects_file *file)
{
    take_head(take, root, file);
    take_placeholders(take, root, file);
    take_functions(take, root, "kernel_functions", &file->kernel, &file->n_kernel);
    take_functions(take, root, "jit_functions", &file->jit, &file->n_jit);
    take_functions(take, root, "regions", &file->regions, &file->n_regions);
    take_modules(take, root, file);
    take_events(take, root, file);
    take_variables(take, root, file);
    if (take->code)
        objects_fini(file);
    return take->code;
}

int objects_read_memory(const char *bytes, size_t len_bytes, const char *name, struct objects_file *file,
                        struct error *err)
{
    struct json_take take = {.name = name, .err = err};
    json_t *root = json_take_parse(&take, bytes, len_bytes);
    if (!root)
        return take.code;
    objects_take_json(&take, root, file);
    json_decref(root);
    return take.code;
}

int objects_read(const char *path, struct objects_file *file, struct error *err)
{
    struct buf bytes = {0};
    int code = file_read(path, &bytes, err);
    if (code)
        return code;
    code = objects_read_memory(bytes.data, bytes.len_bytes, path, file, err);
    buf_fini(&bytes);
    return code;
}
