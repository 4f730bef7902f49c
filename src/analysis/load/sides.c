/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads side files: see load.h. */
#include "analysis/load/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arena/arena.h"
#include "base/search.h"

/* The topology file beside the profile, read once; NULL when there is none. */
static const struct topology *find_topology(struct load_sides *sides, const char *profile_path, const char *name)
{
    char path[4400];
    const char *slash = strrchr(profile_path, '/');
    int len = slash ? (int)(slash - profile_path) : 1;
    if (!name || snprintf(path, sizeof path, "%.*s/%s", len, slash ? profile_path : ".", name) >= (int)sizeof path)
        return NULL;
    int64_t known = strtab_find(&sides->topology_paths, path);
    if (known >= 0)
        return &sides->topologies[known];
    if (!vec_reserve(&sides->topologies, &sides->cap_topologies, sides->topology_paths.n_strings + 1,
                     sizeof *sides->topologies) ||
        (known = strtab_intern(&sides->topology_paths, path)) < 0)
        return NULL;
    struct error err;
    struct topology *topology = &sides->topologies[known];
    if (topology_read(path, topology, &err) != 0)
        model_note(sides->model, "%s, so no NUMA nodes are known for its host.", err.text);
    if (topology_count_os_nodes(topology) > sides->model->n_numa_nodes)
        sides->model->n_numa_nodes = topology_count_os_nodes(topology);
    if (!sides->model->topology && topology->summary[0])
        sides->model->topology = strdup(topology->summary);
    return topology;
}

static void add_place(struct side_row *row, uint32_t metric, uint32_t numa_node, uint64_t count)
{
    for (size_t i = 0; i < row->n_places; i++)
        if (row->places[i].metric == metric && row->places[i].numa_node == numa_node) {
            row->places[i].count += count;
            return;
        }
    if (vec_reserve(&row->places, &row->cap_places, row->n_places + 1, sizeof *row->places))
        row->places[row->n_places++] = (struct side_place){metric, numa_node, count};
    else
        row->is_short = true;
}

/* For the search of the stack offsets below a distance; they are signed. */
struct offsets_below {
    const int64_t *offsets;
    int64_t distance;
};

static bool is_offset_below(const void *context, size_t i)
{
    const struct offsets_below *below = context;
    return below->offsets[2 * i] < below->distance;
}

static int64_t *find_offset(struct side_row *row, int64_t distance)
{
    const struct offsets_below below = {row->stack_offsets, distance};
    size_t low = search_where(row->n_stack_offsets, is_offset_below, &below);
    int64_t *at = row->stack_offsets + 2 * low;
    if (low < row->n_stack_offsets && at[0] == distance)
        return at;
    if (!vec_reserve(&row->stack_offsets, &row->cap_stack_offsets, row->n_stack_offsets + 1,
                     2 * sizeof *row->stack_offsets))
        return NULL;
    at = row->stack_offsets + 2 * low;
    memmove(at + 2, at, (row->n_stack_offsets++ - low) * 2 * sizeof *at);
    at[0] = distance;
    at[1] = 0;
    return at;
}

static void add_offsets(struct side_row *row, const struct objects_variable *from)
{
    for (size_t i = 0; i < from->n_stack_offsets; i++) {
        int64_t *offset = find_offset(row, from->stack_offsets[2 * i]);
        row->is_short = row->is_short || !offset;
        if (offset)
            offset[1] += from->stack_offsets[2 * i + 1];
    }
}

static void add_samples(struct side_row *row, uint32_t metric, uint64_t count)
{
    for (size_t i = 0; i < row->n_samples; i++)
        if (row->samples[i].metric == metric) {
            row->samples[i].count += count;
            return;
        }
    if (vec_reserve(&row->samples, &row->cap_samples, row->n_samples + 1, sizeof *row->samples))
        row->samples[row->n_samples++] = (struct side_samples){metric, count};
    else
        row->is_short = true;
}

/* The row's latencies of an event, added when new; NULL when out of memory. */
static struct latency_sum *find_latency(struct side_row *row, uint32_t event)
{
    for (size_t i = 0; i < row->n_latencies; i++)
        if (row->latencies[i].event == event)
            return &row->latencies[i].sum;
    if (!vec_reserve(&row->latencies, &row->cap_latencies, row->n_latencies + 1, sizeof *row->latencies))
        return NULL;
    row->latencies[row->n_latencies] = (struct variable_latency){.event = event};
    return &row->latencies[row->n_latencies++].sum;
}

/* events: the model's events by index of the side file's, UINT32_MAX for none. */
static void add_latencies(struct side_row *row, const struct objects_variable *from, const uint32_t *events,
                          size_t n_events)
{
    _Static_assert(LATENCY_BINS == OBJECTS_LATENCY_BINS, "the model holds the bins of side files");
    for (size_t i = 0; i < from->n_latencies; i++) {
        const struct objects_latency *latency = &from->latencies[i];
        bool known = latency->event < n_events && events[latency->event] != UINT32_MAX;
        struct latency_sum *sum = known ? find_latency(row, events[latency->event]) : NULL;
        row->is_short = row->is_short || (known && !sum);
        if (!sum)
            continue;
        sum->n_samples += latency->n_samples;
        sum->cycles += latency->cycles;
        sum->n_remote += latency->n_remote;
        sum->remote_cycles += latency->remote_cycles;
        for (size_t b = 0; b < LATENCY_BINS; b++)
            sum->bins[b] += latency->bins[b];
    }
}

static bool is_same_node(const void *a, const void *b)
{
    return ((const struct side_row *)a)->node == ((const struct side_row *)b)->node;
}

static uint64_t hash_node(const void *item)
{
    return ((const struct side_row *)item)->node;
}

static const struct slots_kind by_node = {sizeof(struct side_row), hash_node, is_same_node};

/* The row of a node, added when new; NULL when out of memory. */
static struct side_row *find_row(struct load_sides *sides, uint32_t node, uint32_t kind)
{
    struct side_rows *rows = &sides->rows;
    const struct side_row like = {.node = node, .kind = kind};
    if (!slots_reserve(&sides->slots, &by_node, rows->rows, rows->n) ||
        !vec_reserve(&rows->rows, &rows->capacity, rows->n + 1, sizeof *rows->rows))
        return NULL;
    size_t index = slots_find(&sides->slots, &by_node, rows->rows, &like);
    if (index == SLOTS_NONE) {
        index = rows->n++;
        rows->rows[index] = like;
        slots_add(&sides->slots, &by_node, rows->rows, index);
    }
    return &rows->rows[index];
}

/* The model's metric for one of the profile, -1 when there is none. */
static int64_t metric_of(const struct model *model, const struct hpcrun_profile *head, uint32_t metric)
{
    return metric < head->n_metrics ? model_metric(model, head->metrics[metric].name) : -1;
}

/* What a profile has beside it. */
struct beside {
    size_t profile; /* as in struct thread */
    const struct hpcrun_profile *head;
    const struct raw_ids *ids;
    const struct topology *topology; /* NULL = not known */
    struct cause_caches caches;
};

static void add_cpu(struct load_sides *sides, uint32_t node, size_t profile, uint32_t metric,
                    const struct objects_count *from)
{
    if (vec_reserve(&sides->cpus, &sides->cap_cpus, sides->n_cpus + 1, sizeof *sides->cpus))
        sides->cpus[sides->n_cpus++] = (struct cpu_count){.variable = node,
                                                          .thread = (uint32_t)profile,
                                                          .metric = metric,
                                                          .cpu = from->cpu,
                                                          .n_samples = from->count};
    else
        sides->failed = true;
}

static void add_homes(struct load_sides *sides, uint32_t node, const struct objects_variable *from,
                      const struct beside *beside)
{
    const struct hpcrun_profile *head = beside->head;
    int64_t *metrics = from->n_homes ? malloc((head->n_metrics + 1) * sizeof *metrics) : NULL;
    sides->failed = sides->failed || (from->n_homes && !metrics);
    for (uint32_t i = 0; metrics && i < head->n_metrics; i++)
        metrics[i] = metric_of(sides->model, head, i);
    load_sides_add_homes(sides, node, beside->profile, from, metrics, metrics ? head->n_metrics : 0);
    free(metrics);
}

static void add_counts(struct load_sides *sides, struct side_row *row, const struct objects_variable *from,
                       const struct beside *beside)
{
    const struct hpcrun_profile *head = beside->head;
    for (size_t i = 0; i < from->n_cpus; i++) {
        int64_t metric = metric_of(sides->model, head, from->cpus[i].metric);
        uint32_t numa_node = beside->topology ? topology_node(beside->topology, from->cpus[i].cpu) : PLACE_UNKNOWN;
        if (metric >= 0)
            add_cpu(sides, row->node, beside->profile, (uint32_t)metric, &from->cpus[i]);
        if (metric >= 0 && numa_node != PLACE_UNKNOWN)
            add_place(row, (uint32_t)metric, numa_node, from->cpus[i].count);
    }
    for (size_t i = 0; i < from->n_samples; i++) {
        int64_t metric = metric_of(sides->model, head, from->samples[i].metric);
        if (metric >= 0)
            add_samples(row, (uint32_t)metric, from->samples[i].count);
    }
}

/* NULL when out of memory, or when the node is unknown. */
static struct side_row *add_variable(struct load_sides *sides, const struct objects_variable *from,
                                     const struct beside *beside)
{
    uint32_t node = raw_ids_find(beside->ids, from->node);
    struct side_row *row = node == RAW_NONE ? NULL : find_row(sides, node, from->kind);
    if (!row) {
        sides->failed = sides->failed || node != RAW_NONE;
        return NULL;
    }
    if (!row->name)
        row->name = model_string(sides->model, from->name);
    row->n_blocks += from->n_blocks;
    row->bytes += from->bytes;
    row->n_blocks_freed += from->n_blocks_freed;
    row->bytes_freed += from->bytes_freed;
    row->n_inexact += from->n_inexact;
    row->n_blocks_marked += from->n_blocks_marked;
    row->bytes_marked += from->bytes_marked;
    if (from->bytes > row->most_bytes)
        row->most_bytes = from->bytes;
    if (from->max_block_bytes > row->max_block_bytes)
        row->max_block_bytes = from->max_block_bytes;
    if (from->max_small_bytes && (!row->max_small_bytes || from->min_small_bytes < row->min_small_bytes))
        row->min_small_bytes = from->min_small_bytes;
    if (from->max_small_bytes > row->max_small_bytes)
        row->max_small_bytes = from->max_small_bytes;
    add_offsets(row, from);
    add_counts(sides, row, from, beside);
    add_homes(sides, node, from, beside);
    return row;
}

static void add_touches(struct load_sides *sides, uint32_t node, const struct objects_variable *from,
                        const struct beside *beside)
{
    for (size_t i = 0; i < from->n_touches; i++) {
        const struct objects_touch *touch = &from->touches[i];
        uint32_t leaf = raw_ids_find(beside->ids, touch->node);
        if (leaf == RAW_NONE)
            continue;
        if (!vec_reserve(&sides->touches, &sides->cap_touches, sides->n_touches + 1, sizeof *sides->touches)) {
            sides->failed = true;
            return;
        }
        sides->touches[sides->n_touches++] = (struct touch){.variable = node,
                                                            .thread = (uint32_t)beside->profile,
                                                            .scope = leaf,
                                                            .n_samples = touch->n_samples,
                                                            .n_faults = touch->n_faults,
                                                            .first_ns = touch->first_ns,
                                                            .low_bytes = touch->low_bytes,
                                                            .high_bytes = touch->high_bytes};
    }
}

static void add_meetings(struct load_sides *sides, uint32_t node, const struct objects_variable *from,
                         const struct beside *beside)
{
    for (size_t i = 0; i < from->n_meetings; i++) {
        const struct objects_meeting *meeting = &from->meetings[i];
        uint32_t leaf = raw_ids_find(beside->ids, meeting->node);
        if (leaf == RAW_NONE)
            continue;
        if (!vec_reserve(&sides->meetings, &sides->cap_meetings, sides->n_meetings + 1, sizeof *sides->meetings)) {
            sides->failed = true;
            return;
        }
        sides->meetings[sides->n_meetings++] = (struct meeting){.variable = node,
                                                                .thread = (uint32_t)beside->profile,
                                                                .scope = leaf,
                                                                .is_watcher = meeting->is_watcher,
                                                                .accesses = meeting->accesses,
                                                                .key = meeting->key,
                                                                .address = meeting->address,
                                                                .n_bytes = meeting->n_bytes,
                                                                .n_same = meeting->n_same,
                                                                .n_beside = meeting->n_beside,
                                                                .n_none = meeting->n_none};
    }
}

/* Index of the model's event, UINT32_MAX when there is none. */
static uint32_t add_event(struct model *model, const struct objects_event *from)
{
    struct event_sum *event = NULL;
    for (size_t i = 0; i < model->n_events && from->metric; i++)
        if (strcmp(model->events[i].metric, from->metric) == 0)
            event = &model->events[i];
    if (!event) {
        if (!from->metric ||
            !vec_reserve(&model->events, &model->cap_events, model->n_events + 1, sizeof *model->events))
            return UINT32_MAX;
        event = &model->events[model->n_events++];
        *event = (struct event_sum){.metric = strdup(from->metric),
                                    .name = strdup(from->name ? from->name : from->metric),
                                    .scale = from->scale};
        if (!event->metric || !event->name) {
            free(event->metric);
            free(event->name);
            model->n_events--;
            return UINT32_MAX;
        }
    }
    event->taken += from->taken;
    event->overflows += from->overflows;
    for (int i = 0; i < FATE_MAX; i++)
        event->fates[i] += from->fates[i];
    event->enabled_ns += from->enabled_ns;
    event->running_ns += from->running_ns;
    event->n_throttles += from->n_throttles;
    event->n_no_metric += from->n_no_metric;
    event->n_truncated += from->n_truncated;
    event->n_collisions += from->n_collisions;
    event->has_data_source |= from->has_data_source != 0;
    event->has_address |= from->has_address != 0;
    event->is_user_only |= from->is_user_only != 0;
    event->n_spared += from->n_spared;
    if (from->sample_cost_ns > event->sample_cost_ns)
        event->sample_cost_ns = from->sample_cost_ns;
    return (uint32_t)(event - model->events);
}

static void keep_text(char **target, const char *text)
{
    if (!*target && text && *text)
        *target = strdup(text);
}

static void add_head(struct model *model, const struct objects_file *file)
{
    keep_text(&model->plan, file->plan);
    keep_text(&model->skid, file->skid);
    model->cpu_time_ns += file->cpu_time_ns;
    model->user_ns += file->user_ns;
    model->system_ns += file->system_ns;
    model->unmeasured_ns += file->unmeasured_ns;
    model->delay_ns += file->delay_ns;
    model->n_page_faults += file->n_page_faults;
    if (file->note)
        model_note(model, "%s", file->note);
    if (file->sharing_note)
        model_note(model, "%s", file->sharing_note);
    model->n_frames += file->n_frames;
    model->n_killed += file->state && strcmp(file->state, "complete") != 0;
    if (file->min_bytes > model->min_bytes)
        model->min_bytes = file->min_bytes;
    if (file->sample_bytes > model->sample_bytes)
        model->sample_bytes = file->sample_bytes;
    if (file->mark_ns > model->mark_ns)
        model->mark_ns = file->mark_ns;
    if (file->start_ns && (!model->start_ns || file->start_ns < model->start_ns))
        model->start_ns = file->start_ns;
    if (file->end_ns > model->end_ns)
        model->end_ns = file->end_ns;
    for (size_t i = 0; i < 16; i++)
        model->unwind_stops[i] += file->unwind_stops[i];
}

/* The module that holds the placeholder functions: the runtime's library, or the static program that it was linked
 * into. 0 when the profile lists neither. */
static uint32_t runtime_module(const struct load_sides *sides, const struct hpcrun_profile *profile)
{
    const char *program = hpcrun_pair_value(profile, "program-path");
    uint32_t found = 0;
    for (size_t m = 0; m < profile->n_modules; m++) {
        uint32_t module = symbolizer_module(sides->symbolizer, profile->modules[m].path);
        if (symbolizer_is_runtime(sides->symbolizer, module))
            return module;
        if (program && !strcmp(program, profile->modules[m].path))
            found = module;
    }
    return found;
}

static void add_placeholders(struct load_sides *sides, const struct objects_file *file,
                             const struct hpcrun_profile *profile)
{
    uint32_t module = runtime_module(sides, profile);
    for (size_t i = 0; module && i < file->n_placeholders; i++)
        if (file->placeholders[i].name)
            symbolizer_add_placeholder(sides->symbolizer, module, file->placeholders[i].ip, file->placeholders[i].name);
}

static void add_named(struct load_sides *sides, uint32_t module, const struct objects_function *functions, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (functions[i].name)
            symbolizer_add_function(sides->symbolizer, module, functions[i].start, functions[i].end, functions[i].name);
}

/* Adds functions that are in no ELF file: those of the kernel, of generated code, and regions. */
static void add_functions(struct load_sides *sides, const struct objects_file *file,
                          const struct hpcrun_profile *profile)
{
    for (size_t m = 0; m < profile->n_modules; m++) {
        uint32_t module = symbolizer_module(sides->symbolizer, profile->modules[m].path);
        if (symbolizer_is_kernel(sides->symbolizer, module))
            add_named(sides, module, file->kernel, file->n_kernel);
        else if (symbolizer_is_jit(sides->symbolizer, module))
            add_named(sides, module, file->jit, file->n_jit);
        else if (symbolizer_is_region(sides->symbolizer, module) || symbolizer_is_python(sides->symbolizer, module))
            add_named(sides, module, file->regions, file->n_regions);
    }
}

/* The symbolizer's id of a module of the profile's load map; 0 when there is none. */
static uint32_t module_of(const struct load_sides *sides, const struct hpcrun_profile *profile, uint16_t id)
{
    for (size_t m = 0; m < profile->n_modules; m++)
        if (profile->modules[m].id == id)
            return symbolizer_module(sides->symbolizer, profile->modules[m].path);
    return 0;
}

/* How many lines the data can have in which a variable's samples lie: those that most of the samples cover or, where
 * that is not known, those of the blocks that the thread knows; if there is only one, the offsets kept of all samples
 * tell as well. */
static uint64_t most_lines_of(const struct objects_variable *from, const struct objects_access *access)
{
    const struct objects_lines *lines = access->lines;
    uint64_t n_placed = 0, first = UINT64_MAX, last = 0;
    for (unsigned i = 0; i < PATTERN_SLOTS; i++)
        n_placed += lines->slots[i];
    uint64_t spanned = lines->n_spanned >= n_placed / 2 ? lines->n_lines : 0;
    for (size_t i = 0; i < access->offsets.n; i++) {
        first = access->offsets.entries[i].offset < first ? access->offsets.entries[i].offset : first;
        last = access->offsets.entries[i].offset > last ? access->offsets.entries[i].offset : last;
    }
    uint64_t kept = from->n_blocks == 1 && access->offsets.n > 1 ? (last - first) / PATTERN_LINE_BYTES + 1 : 0;
    if (spanned || kept)
        return spanned > kept ? spanned : kept;
    return from->bytes / PATTERN_LINE_BYTES + (from->bytes ? from->n_blocks : 0);
}

static void add_causes(struct load_sides *sides, uint32_t node, const struct objects_variable *from,
                       const struct objects_access *access, uint32_t event, uint32_t module,
                       const struct beside *beside)
{
    struct cause_access like = {.node = node,
                                .event = event,
                                .module = module,
                                .vaddr = access->ip,
                                .pattern = access->pattern,
                                .n_samples = access->n_samples};
    if (access->lines) {
        like.slots = access->lines->slots;
        like.n_bins = access->lines->n_bins;
        like.n_followed = access->lines->n_followed;
        like.n_paced = access->lines->n_paced;
        like.most_lines = most_lines_of(from, access);
        like.all_lines = from->bytes / PATTERN_LINE_BYTES + (from->bytes ? from->n_blocks : 0);
        like.pool_id = sides->n_variables;
        like.thread = (uint32_t)beside->profile;
        like.hashes = access->lines->hashes;
        like.n_hashes = access->lines->n_hashes;
        like.hash_bits = access->lines->hash_bits;
        like.n_steps = from->reach ? from->reach->sum.n_steps : 0;
        like.n_forward = from->reach ? from->reach->sum.n_forward : 0;
    }
    sides->failed = !causes_add(&sides->causes, &like, &beside->caches) || sides->failed;
}

#define VIRTUAL_L3_MOST_KIB 32768 /* of a virtual machine whose caches were not measured */

static void lower(uint64_t *lines, double kib)
{
    uint64_t measured = kib > 0 ? (uint64_t)(kib * 1024 / PATTERN_LINE_BYTES) : 0;
    if (measured && measured < *lines)
        *lines = measured;
}

void causes_caches_measured(struct cause_caches *caches, const char *skid)
{
    json_t *figures = skid ? json_loads(skid, 0, NULL) : NULL;
    const json_t *measured = json_object_get(figures, "caches");
    const json_t *levels = json_object_get(measured, "effective_kib");
    const char *hypervisor = json_string_value(json_object_get(figures, "hypervisor"));
    bool is_virtual = hypervisor && strcmp(hypervisor, "none") != 0 && strcmp(hypervisor, "unknown") != 0;
    lower(&caches->l1_lines, json_number_value(json_array_get(levels, 0)));
    lower(&caches->l2_lines, json_number_value(json_array_get(levels, 1)));
    lower(&caches->l3_lines, json_number_value(json_array_get(levels, 2)));
    lower(&caches->l3_lines, json_number_value(json_object_get(measured, "all_kib")));
    if (!measured && is_virtual)
        lower(&caches->l3_lines, VIRTUAL_L3_MOST_KIB);
    json_decref(figures);
}

/* What the figures say of the caches: read once for all threads that have the same. */
static const struct cause_caches *measured_caches(struct load_sides *sides, const char *skid)
{
    if (sides->skid && skid && strcmp(sides->skid, skid) == 0)
        return &sides->measured;
    free(sides->skid);
    sides->skid = skid ? strdup(skid) : NULL;
    sides->measured = (struct cause_caches){UINT64_MAX, UINT64_MAX, UINT64_MAX};
    causes_caches_measured(&sides->measured, skid);
    return &sides->measured;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What the machine of a profile has, as it claims and as it was measured. */
static struct cause_caches caches_of(struct load_sides *sides, const struct topology *topology, const char *skid)
{
    const struct cause_caches *measured = measured_caches(sides, skid);
    struct cause_caches caches = {CAUSES_L1_LINES, CAUSES_L2_LINES, CAUSES_L3_LINES};
    if (topology && topology->l1_bytes)
        caches.l1_lines = topology->l1_bytes / PATTERN_LINE_BYTES;
    if (topology && topology->l2_bytes)
        caches.l2_lines = topology->l2_bytes / PATTERN_LINE_BYTES;
    if (topology && topology->l3_bytes)
        caches.l3_lines = topology->l3_bytes / PATTERN_LINE_BYTES;
    caches.l1_lines = least(caches.l1_lines, measured->l1_lines);
    caches.l2_lines = least(caches.l2_lines, measured->l2_lines);
    caches.l3_lines = least(caches.l3_lines, measured->l3_lines);
    return caches;
}

static void add_accesses(struct load_sides *sides, const struct side_row *row, const struct objects_variable *from,
                         const struct beside *beside, const uint32_t *events, size_t n_events)
{
    sides->n_variables++;
    for (size_t i = 0; i < from->n_accesses; i++) {
        const struct objects_access *access = &from->accesses[i];
        struct node_access like = {.node = row->node,
                                   .vaddr = access->ip,
                                   .module = module_of(sides, beside->head, access->module),
                                   .n_samples = access->n_samples};
        if (access->event >= n_events || events[access->event] == UINT32_MAX)
            continue;
        like.event = events[access->event];
        add_causes(sides, row->node, from, access, like.event, like.module, beside);
        if (from->kind > VAR_STACK)
            continue; /* not in an object that has places */
        (void)accesses_add(&sides->accesses, &like, &access->offsets);
    }
}

static void add_builds(struct load_sides *sides, const struct objects_file *file)
{
    for (size_t i = 0; i < file->n_modules; i++)
        if (file->modules[i].path)
            symbolizer_expect(sides->symbolizer, symbolizer_module(sides->symbolizer, file->modules[i].path),
                              file->modules[i].id);
}

/* Notes how many samples of an event the profile's thread took that were dropped. */
static void add_drops(struct load_sides *sides, size_t profile, uint32_t event, const struct objects_event *from)
{
    for (uint32_t fate = FATE_DROP_REENTERED; event != UINT32_MAX && fate < FATE_TAKEN_MAX; fate++) {
        if (!from->fates[fate])
            continue;
        if (!vec_reserve(&sides->drops, &sides->cap_drops, sides->n_drops + 1, sizeof *sides->drops)) {
            sides->failed = true;
            return;
        }
        sides->drops[sides->n_drops++] = (struct drop_count){
            .thread = (uint32_t)profile, .event = event, .fate = fate, .n_samples = from->fates[fate]};
    }
}

static void add_rows(struct load_sides *sides, const struct objects_file *file, const struct beside *beside)
{
    uint32_t *events = calloc(file->n_events + 1, sizeof *events);
    for (size_t i = 0; events && i < file->n_events; i++) {
        if ((events[i] = add_event(sides->model, &file->events[i])) == UINT32_MAX && file->events[i].metric)
            sides->failed = true;
        add_drops(sides, beside->profile, events[i], &file->events[i]);
    }
    sides->failed = sides->failed || !events;
    for (size_t i = 0; i < file->n_variables; i++) {
        struct side_row *row = add_variable(sides, &file->variables[i], beside);
        if (!row || !events)
            continue;
        add_latencies(row, &file->variables[i], events, file->n_events);
        add_accesses(sides, row, &file->variables[i], beside, events, file->n_events);
        add_touches(sides, row->node, &file->variables[i], beside);
        add_meetings(sides, row->node, &file->variables[i], beside);
        if (!load_sides_add_reach(sides, row->node, beside->profile, &file->variables[i]))
            sides->failed = true;
        sides->failed = sides->failed || row->is_short;
    }
    free(events);
}

void load_sides_read(const char *path, struct side_file *side)
{
    char name[4400];
    size_t len = strlen(path);
    memset(side, 0, sizeof *side);
    if (len < 7 || strcmp(path + len - 7, ".hpcrun") != 0 || len + 8 > sizeof name)
        return;
    (void)snprintf(name, sizeof name, "%.*s.objects", (int)(len - 7), path);
    if (access(name, F_OK) == 0)
        side->state = objects_read(name, &side->file, &side->err) == 0 ? SIDE_READ : SIDE_BAD;
}

void load_sides_drop(struct side_file *side)
{
    objects_fini(&side->file);
    side->state = SIDE_NONE;
}

void load_sides_add(struct load_sides *sides, const char *path, size_t number, const struct side_file *side,
                    const struct hpcrun_profile *head, const struct raw_ids *ids)
{
    const struct objects_file *file = &side->file;
    if (side->state == SIDE_BAD)
        model_note(sides->model, "%s: sizes, places and fates of this thread are missing.", side->err.text);
    if (side->state != SIDE_READ)
        return;
    const struct topology *topology = find_topology(sides, path, file->topology);
    const struct beside beside = {number, head, ids, topology, caches_of(sides, topology, file->skid)};
    add_placeholders(sides, file, head);
    add_functions(sides, file, head);
    add_builds(sides, file);
    add_rows(sides, file, &beside);
    add_head(sides->model, file);
    sides->n_files++;
    sides->n_with_samples += file->version > 1;
}

bool load_sides_add_machine(struct load_sides *sides, const char *path, const struct side_file *side,
                            const char *host_id)
{
    bool is_read = side->state == SIDE_READ;
    const struct topology *topology = is_read ? find_topology(sides, path, side->file.topology) : NULL;
    return !topology || topology->n_cpus == 0 || machines_add(sides->model, host_id, topology);
}

void load_sides_renumber(struct load_sides *sides, const struct raw_tree *tree)
{
    for (size_t i = 0; i < sides->rows.n; i++)
        sides->rows.rows[i].node = tree->index_of[sides->rows.rows[i].node];
    for (size_t i = 0; i < sides->accesses.n; i++)
        sides->accesses.items[i].node = tree->index_of[sides->accesses.items[i].node];
    for (size_t i = 0; i < sides->n_cpus; i++)
        sides->cpus[i].variable = tree->index_of[sides->cpus[i].variable];
    for (size_t i = 0; i < sides->n_touches; i++) {
        sides->touches[i].variable = tree->index_of[sides->touches[i].variable];
        sides->touches[i].scope = tree->index_of[sides->touches[i].scope];
    }
    for (size_t i = 0; i < sides->n_meetings; i++) {
        sides->meetings[i].variable = tree->index_of[sides->meetings[i].variable];
        sides->meetings[i].scope = tree->index_of[sides->meetings[i].scope];
    }
    for (size_t i = 0; i < sides->n_reaches; i++)
        sides->reaches[i].variable = tree->index_of[sides->reaches[i].variable];
    for (size_t i = 0; i < sides->n_homes; i++)
        sides->homes[i].variable = tree->index_of[sides->homes[i].variable];
    for (size_t i = 0; i < sides->n_pages; i++)
        sides->pages[i].variable = tree->index_of[sides->pages[i].variable];
    causes_renumber(&sides->causes, tree->index_of);
}

void load_sides_fini(struct load_sides *sides)
{
    for (size_t i = 0; i < sides->rows.n; i++) {
        free(sides->rows.rows[i].places);
        free(sides->rows.rows[i].stack_offsets);
        free(sides->rows.rows[i].samples);
        free(sides->rows.rows[i].latencies);
    }
    free(sides->rows.rows);
    slots_fini(&sides->slots);
    accesses_fini(&sides->accesses);
    causes_fini(&sides->causes);
    for (size_t i = 0; i < sides->topology_paths.n_strings; i++)
        topology_fini(&sides->topologies[i]);
    free(sides->topologies);
    free(sides->cpus);
    free(sides->touches);
    free(sides->meetings);
    for (size_t i = 0; i < sides->n_reaches; i++)
        reach_row_fini(&sides->reaches[i]);
    free(sides->reaches);
    free(sides->homes);
    free(sides->pages);
    free(sides->drops);
    free(sides->skid);
    strtab_fini(&sides->topology_paths);
}
