/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading side files. */
#include "analysis/load-sides.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fmt/objects.h"

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
    if (topology->n_nodes > sides->model->n_numa_nodes)
        sides->model->n_numa_nodes = topology->n_nodes;
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
}

static void copy_offsets(struct side_row *row, const struct objects_variable *from)
{
    if (from->n_stack_offsets == 0)
        return;
    row->stack_offsets = calloc(from->n_stack_offsets, 2 * sizeof *row->stack_offsets);
    if (!row->stack_offsets)
        return;
    memcpy(row->stack_offsets, from->stack_offsets, from->n_stack_offsets * 2 * sizeof *row->stack_offsets);
    row->n_stack_offsets = from->n_stack_offsets;
}

static void copy_samples(const struct model *model, struct side_row *row, const struct objects_variable *from,
                         const struct hpcrun_profile *profile)
{
    row->samples = from->n_samples ? calloc(from->n_samples, sizeof *row->samples) : NULL;
    for (size_t i = 0; row->samples && i < from->n_samples; i++) {
        uint32_t index = from->samples[i].metric;
        int64_t metric = index < profile->n_metrics ? model_metric(model, profile->metrics[index].name) : -1;
        if (metric >= 0)
            row->samples[row->n_samples++] = (struct side_samples){(uint32_t)metric, from->samples[i].count};
    }
}

/* events: the model's events by index of the side file's, UINT32_MAX for none. */
static void copy_latencies(struct side_row *row, const struct objects_variable *from, const uint32_t *events,
                           size_t n_events)
{
    _Static_assert(LATENCY_BINS == OBJECTS_LATENCY_BINS, "the model holds the bins of side files");
    row->latencies = from->n_latencies ? calloc(from->n_latencies, sizeof *row->latencies) : NULL;
    for (size_t i = 0; row->latencies && i < from->n_latencies; i++) {
        const struct objects_latency *latency = &from->latencies[i];
        if (latency->event >= n_events || events[latency->event] == UINT32_MAX)
            continue;
        struct variable_latency *copy = &row->latencies[row->n_latencies++];
        *copy = (struct variable_latency){.event = events[latency->event],
                                          .sum = {.n_samples = latency->n_samples,
                                                  .cycles = latency->cycles,
                                                  .n_remote = latency->n_remote,
                                                  .remote_cycles = latency->remote_cycles}};
        memcpy(copy->sum.bins, latency->bins, sizeof copy->sum.bins);
    }
}

/* NULL when out of memory, or when the node is unknown. */
static struct side_row *add_variable(struct load_sides *sides, const struct objects_variable *from,
                                     const struct hpcrun_profile *profile, const struct raw_id *ids,
                                     const struct topology *topology)
{
    uint32_t node = raw_find_id(ids, profile->n_nodes, from->node);
    if (node == RAW_NONE ||
        !vec_reserve(&sides->rows.rows, &sides->rows.capacity, sides->rows.n + 1, sizeof *sides->rows.rows))
        return NULL;
    struct side_row *row = &sides->rows.rows[sides->rows.n++];
    *row = (struct side_row){.node = node,
                             .kind = from->kind,
                             .name = model_string(sides->model, from->name),
                             .n_blocks = from->n_blocks,
                             .bytes = from->bytes,
                             .n_blocks_freed = from->n_blocks_freed,
                             .bytes_freed = from->bytes_freed,
                             .max_block_bytes = from->max_block_bytes,
                             .n_inexact = from->n_inexact};
    copy_offsets(row, from);
    for (size_t i = 0; topology && i < from->n_cpus; i++) {
        const struct objects_count *count = &from->cpus[i];
        int64_t metric =
            count->metric < profile->n_metrics ? model_metric(sides->model, profile->metrics[count->metric].name) : -1;
        uint32_t numa_node = topology_node(topology, count->cpu);
        if (metric >= 0 && numa_node != UINT32_MAX)
            add_place(row, (uint32_t)metric, numa_node, count->count);
    }
    copy_samples(sides->model, row, from, profile);
    return row;
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
    model->n_frames += file->n_frames;
    model->n_killed += file->state && strcmp(file->state, "complete") != 0;
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

static void add_kernel(struct load_sides *sides, const struct objects_file *file, const struct hpcrun_profile *profile)
{
    for (size_t m = 0; m < profile->n_modules; m++) {
        uint32_t module = symbolizer_module(sides->symbolizer, profile->modules[m].path);
        if (!symbolizer_is_kernel(sides->symbolizer, module))
            continue;
        for (size_t i = 0; i < file->n_kernel; i++)
            if (file->kernel[i].name)
                symbolizer_add_function(sides->symbolizer, module, file->kernel[i].start, file->kernel[i].end,
                                        file->kernel[i].name);
    }
}

static void add_rows(struct load_sides *sides, const struct objects_file *file, const struct hpcrun_profile *profile,
                     const struct raw_id *ids, const struct topology *topology)
{
    uint32_t *events = calloc(file->n_events + 1, sizeof *events);
    for (size_t i = 0; events && i < file->n_events; i++)
        events[i] = add_event(sides->model, &file->events[i]);
    for (size_t i = 0; i < file->n_variables; i++) {
        struct side_row *row = add_variable(sides, &file->variables[i], profile, ids, topology);
        if (row && events)
            copy_latencies(row, &file->variables[i], events, file->n_events);
    }
    free(events);
}

void load_sides_add(struct load_sides *sides, const char *path, const struct hpcrun_profile *profile,
                    const struct raw_id *ids)
{
    char name[4400];
    size_t len = strlen(path);
    if (len < 7 || strcmp(path + len - 7, ".hpcrun") != 0 || len + 8 > sizeof name)
        return;
    (void)snprintf(name, sizeof name, "%.*s.objects", (int)(len - 7), path);
    if (access(name, F_OK) != 0)
        return;
    struct objects_file file = {0};
    struct error err;
    if (objects_read(name, &file, &err) != 0) {
        model_note(sides->model, "%s: sizes, places and fates of this thread are missing.", err.text);
        return;
    }
    const struct topology *topology = find_topology(sides, path, file.topology);
    add_placeholders(sides, &file, profile);
    add_kernel(sides, &file, profile);
    add_rows(sides, &file, profile, ids, topology);
    add_head(sides->model, &file);
    sides->n_files++;
    sides->n_with_samples += file.version > 1;
    objects_fini(&file);
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
    for (size_t i = 0; i < sides->topology_paths.n_strings; i++)
        topology_fini(&sides->topologies[i]);
    free(sides->topologies);
    strtab_fini(&sides->topology_paths);
}
