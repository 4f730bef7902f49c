/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole model as JSON. Scopes and values are arrays of numbers, one per line, since there are many. */
#include "database/database.h"
#include "answer/answer.h"
#include "export/vars-table.h"
#include "fmt/json.h"

static void put_head(const struct model *model, struct buf *out)
{
    buf_printf(out, "{\"format\": \"locus-database\", \"version\": 1");
    json_put_text_at(out, "program", model->program);
    json_put_text_at(out, "command", model->command);
    json_put_text_at(out, "plan", model->plan);
    json_put_text_at(out, "skid", model->skid);
    json_put_text_at(out, "topology", model->topology);
    json_put_word_at(out, "n_numa_nodes", model->n_numa_nodes);
    json_put_word_at(out, "cpu_time_ns", model->cpu_time_ns);
    if (model->user_ns || model->system_ns) {
        json_put_word_at(out, "user_ns", model->user_ns);
        json_put_word_at(out, "system_ns", model->system_ns);
    }
    if (model->unmeasured_ns)
        json_put_word_at(out, "unmeasured_ns", model->unmeasured_ns);
    json_put_word_at(out, "start_ns", model->start_ns);
    json_put_word_at(out, "end_ns", model->end_ns);
    if (model->min_bytes) {
        json_put_word_at(out, "min_bytes", model->min_bytes);
        json_put_word_at(out, "sample_bytes", model->sample_bytes);
        json_put_word_at(out, "mark_ns", model->mark_ns);
    }
    json_put_word_at(out, "n_killed", model->n_killed);
    json_put_word_at(out, "has_samples", model->has_samples);
    json_put_word_at(out, "n_threads", model->n_threads);
    json_put_word_at(out, "n_frames", model->n_frames);
    json_put_key(out, "unwind_stops", 0);
    json_put_words(out, model->unwind_stops, 16);
}

/* Between the rows of a list: a comma, and a new line each. */
static void next_row(struct buf *out, size_t i)
{
    buf_printf(out, i ? ",\n" : "\n");
}

static void put_notes(const struct model *model, struct buf *out)
{
    buf_printf(out, ",\n\"notes\": [");
    for (size_t i = 0; i < model->n_notes; i++) {
        next_row(out, i);
        json_put_text(out, model->notes[i]);
    }
    if (model->runs.n_strings) {
        buf_printf(out, "],\n\"runs\": [");
        for (size_t i = 0; i < model->runs.n_strings; i++) {
            next_row(out, i);
            json_put_text(out, model->runs.strings[i]);
        }
    }
    buf_printf(out, "],\n\"strings\": [");
    for (size_t i = 0; i < model->strings.n_strings; i++) {
        next_row(out, i);
        json_put_text(out, model->strings.strings[i]);
    }
    buf_printf(out, "]");
}

static void put_metrics(const struct model *model, struct buf *out)
{
    buf_printf(out, ",\n\"metrics\": [");
    for (size_t i = 0; i < model->n_metrics; i++) {
        const struct metric *metric = &model->metrics[i];
        next_row(out, i);
        buf_printf(out, "{\"name\": ");
        json_put_text(out, metric->name);
        json_put_text_at(out, "description", metric->description);
        json_put_double_at(out, "per_sample", metric->per_sample);
        json_put_word_at(out, "hidden", metric->hidden);
        json_put_double_at(out, "period", metric->period);
        json_put_word_at(out, "is_integer", metric->is_integer);
        json_put_word_at(out, "is_multiplexed", metric->is_multiplexed);
        json_put_word_at(out, "n_samples", metric->n_samples);
        buf_printf(out, "}");
    }
    buf_printf(out, "]");
}

static void put_processes(const struct model *model, struct buf *out)
{
    buf_printf(out, ",\n\"processes\": [");
    for (size_t i = 0; i < model->n_processes; i++) {
        const struct process *process = &model->processes[i];
        next_row(out, i);
        buf_printf(out, "{\"exe\": ");
        json_put_text(out, process->exe);
        json_put_text_at(out, "host_id", process->host_id);
        json_put_word_at(out, "rank", process->rank);
        json_put_word_at(out, "pid", process->pid);
        json_put_word_at(out, "generation", process->generation);
        json_put_word_at(out, "n_threads", process->n_threads);
        json_put_word_at(out, "directory", process->directory);
        if (process->birth)
            json_put_word_at(out, "birth", process->birth);
        buf_printf(out, "}");
    }
    buf_printf(out, "]");
}

static void put_threads(const struct model *model, struct buf *out)
{
    buf_printf(out, ",\n\"threads\": [");
    for (size_t i = 0; i < model->n_threads; i++) {
        const struct thread *thread = &model->threads[i];
        buf_printf(out, "%s[%u,%u", i ? "," : "", thread->process, thread->thread_id);
        if (thread->name) {
            buf_append(out, ",", 1);
            json_put_text(out, model_text(model, thread->name));
        }
        buf_append(out, "]", 1);
    }
    buf_printf(out, "]");
}

static void put_fates(const struct event_sum *event, struct buf *out)
{
    int n = 0;
    json_put_key(out, "fates", 0);
    buf_printf(out, "{");
    for (int i = 0; i < FATE_MAX; i++)
        if (event->fates[i]) {
            json_put_key(out, fate_row(i)->name, n++ == 0);
            json_put_word(out, event->fates[i]);
        }
    buf_printf(out, "}");
}

static void put_events(const struct model *model, struct buf *out)
{
    buf_printf(out, ",\n\"events\": [");
    for (size_t i = 0; i < model->n_events; i++) {
        const struct event_sum *event = &model->events[i];
        next_row(out, i);
        buf_printf(out, "{\"metric\": ");
        json_put_text(out, event->metric);
        json_put_text_at(out, "name", event->name);
        json_put_double_at(out, "scale", event->scale);
        json_put_word_at(out, "taken", event->taken);
        json_put_word_at(out, "overflows", event->overflows);
        put_fates(event, out);
        json_put_word_at(out, "enabled_ns", event->enabled_ns);
        json_put_word_at(out, "running_ns", event->running_ns);
        json_put_word_at(out, "n_throttles", event->n_throttles);
        json_put_word_at(out, "n_no_metric", event->n_no_metric);
        json_put_word_at(out, "n_truncated", event->n_truncated);
        json_put_word_at(out, "n_collisions", event->n_collisions);
        json_put_word_at(out, "has_data_source", event->has_data_source);
        if (event->has_address)
            json_put_word_at(out, "has_address", event->has_address);
        if (event->is_user_only)
            json_put_word_at(out, "is_user_only", event->is_user_only);
        if (event->n_spared) {
            json_put_word_at(out, "n_spared", event->n_spared);
            json_put_word_at(out, "sample_cost_ns", event->sample_cost_ns);
        }
        buf_printf(out, "}");
    }
    buf_printf(out, "]");
}

static void put_latency(const struct variable_latency *latency, struct buf *out)
{
    const uint64_t words[] = {latency->event, latency->sum.n_samples, latency->sum.cycles, latency->sum.n_remote,
                              latency->sum.remote_cycles};
    buf_printf(out, "[");
    json_put_words(out, words, sizeof words / sizeof words[0]);
    buf_printf(out, ", ");
    json_put_words(out, latency->sum.bins, LATENCY_BINS);
    buf_printf(out, "]");
}

/* [event, part (their number: of the whole), name, type, flags, offset, size, samples] */
static void put_fields(const struct variable *variable, struct buf *out)
{
    if (variable->type_source) {
        json_put_word_at(out, "type", variable->type);
        json_put_word_at(out, "type_source", variable->type_source);
        json_put_word_at(out, "element_bytes", variable->element_bytes);
    }
    for (size_t i = 0; i < variable->n_fields; i++) {
        const struct variable_field *field = &variable->fields[i];
        const uint64_t words[] = {field->event,      field->part == FIELD_NO_PART ? variable->n_parts : field->part,
                                  field->name,       field->type,
                                  field->flags,      field->offset_bytes,
                                  field->size_bytes, field->samples};
        if (i == 0)
            json_put_key(out, "fields", 0);
        buf_printf(out, i ? ", " : "[");
        json_put_words(out, words, sizeof words / sizeof words[0]);
        buf_printf(out, i + 1 < variable->n_fields ? "" : "]");
    }
}

/* Adds what variables have only in measurements that count their samples. */
static void put_samples(const struct model *model, const struct variable *variable, struct buf *out)
{
    if (variable->samples) {
        json_put_key(out, "samples", 0);
        json_put_words(out, variable->samples, model->n_metrics);
    }
    for (size_t i = 0; i < variable->n_causes; i++) {
        const struct cause_sum *sum = &variable->causes[i].sum;
        const double values[] = {sum->memory,   sum->memory_low,   sum->memory_high, sum->execution, sum->unverified,
                                 sum->resident, sum->memory_least, sum->memory_most, sum->longer};
        size_t n_values = sizeof values / sizeof *values - (sum->longer == 0);
        if (i == 0)
            json_put_key(out, "causes", 0);
        buf_printf(out, i ? ", [%u" : "[[%u", variable->causes[i].event);
        for (size_t k = 0; k < n_values; k++) {
            buf_printf(out, ", ");
            json_put_double(out, values[k]);
        }
        buf_printf(out, i + 1 < variable->n_causes ? "]" : "]]");
    }
    for (size_t i = 0; i < variable->n_walks; i++) {
        const struct variable_walk *walk = &variable->walks[i];
        if (i == 0)
            json_put_key(out, "walks", 0);
        buf_printf(out, "%s[%u, %u, %u, ", i ? ", " : "[", walk->event, walk->kind, walk->stride_bytes);
        json_put_double(out, walk->samples);
        buf_printf(out, ", ");
        json_put_double(out, walk->memory);
        buf_printf(out, i + 1 < variable->n_walks ? "]" : "]]");
    }
    for (size_t i = 0; i < variable->n_latencies; i++) {
        if (i == 0)
            json_put_key(out, "latencies", 0);
        buf_printf(out, i ? ", " : "[");
        put_latency(&variable->latencies[i], out);
        buf_printf(out, i + 1 < variable->n_latencies ? "" : "]");
    }
}

static void put_variable(const struct model *model, const struct variable *variable, struct buf *out)
{
    buf_printf(out, "{\"name\": %u", variable->name);
    json_put_word_at(out, "class", variable->class);
    json_put_word_at(out, "function", variable->function);
    json_put_word_at(out, "file", variable->file);
    json_put_word_at(out, "line", variable->line);
    json_put_word_at(out, "module", variable->module);
    json_put_word_at(out, "size_bytes", variable->size_bytes);
    json_put_word_at(out, "n_blocks", variable->n_blocks);
    json_put_word_at(out, "size_freed_bytes", variable->size_freed_bytes);
    json_put_word_at(out, "n_blocks_freed", variable->n_blocks_freed);
    json_put_word_at(out, "max_block_bytes", variable->max_block_bytes);
    json_put_word_at(out, "n_inexact", variable->n_inexact);
    if (model->mark_ns) {
        json_put_word_at(out, "n_blocks_marked", variable->n_blocks_marked);
        json_put_word_at(out, "size_marked_bytes", variable->size_marked_bytes);
    }
    json_put_key(out, "scopes", 0);
    buf_printf(out, "[");
    for (size_t i = 0; i < variable->n_scopes; i++)
        buf_printf(out, i ? ", %u" : "%u", variable->scopes[i]);
    buf_printf(out, "]");
    for (size_t i = 0; i < variable->n_parts; i++) {
        const struct variable_part *part = &variable->parts[i];
        buf_printf(out, "%s[%u, %u, %u, %llu, ", i ? ", " : ", \"parts\": [", part->name, part->file, part->line,
                   (unsigned long long)part->size_bytes);
        json_put_double(out, part->fraction);
        buf_printf(out, ", %u, %llu", part->type, (unsigned long long)part->element_bytes);
        buf_printf(out, i + 1 < variable->n_parts ? "]" : "]]");
    }
    for (size_t i = 0; i < variable->n_part_lines; i++) {
        const struct part_line *line = &variable->part_lines[i];
        const uint64_t words[] = {line->part,    line->function,  line->file,       line->line,
                                  line->samples, line->loop.file, line->loop.first, line->loop.last};
        buf_printf(out, i ? ", " : ", \"part_lines\": [");
        json_put_words(out, words, sizeof words / sizeof words[0]);
        buf_printf(out, i + 1 < variable->n_part_lines ? "" : "]");
    }
    if (variable->places) {
        json_put_key(out, "places", 0);
        json_put_words(out, variable->places, model->n_metrics * model->n_numa_nodes);
    }
    put_fields(variable, out);
    put_samples(model, variable, out);
    buf_printf(out, "}");
}

static void put_tree(const struct model *model, struct buf *out)
{
    size_t n = 0;
    buf_printf(out, ",\n\"scopes\": [");
    for (size_t i = 1; i < model->n_scopes; i++) {
        const struct scope *s = &model->scopes[i];
        next_row(out, i - 1);
        buf_printf(out, "[%u,%u,%u,%u,%u,%u,%u,%u,\"0x%llx\"", s->parent, s->kind, s->role, s->node_type, s->name,
                   s->file, s->module, s->line, (unsigned long long)s->vaddr);
        if (s->end_line)
            buf_printf(out, ",%u", s->end_line);
        buf_printf(out, "]");
    }
    buf_printf(out, "],\n\"values\": [");
    for (size_t i = 0; i < model->n_scopes; i++)
        for (size_t m = 0; m < model->n_metrics; m++) {
            double value = model->own[i * model->n_metrics + m];
            if (value == 0)
                continue;
            next_row(out, n++);
            buf_printf(out, "[%zu,%zu,", i, m);
            json_put_double(out, value);
            buf_printf(out, "]");
        }
    buf_printf(out, "]");
}

static void put_builds(const struct model *model, struct buf *out)
{
    for (size_t i = 0; i < model->n_builds; i++)
        buf_printf(out, "%s[%u, \"0x%llx\"]", i ? ", " : ",\n\"builds\": [", model->builds[i].module,
                   (unsigned long long)model->builds[i].build);
    buf_append(out, "]", model->n_builds > 0);
}

static void put_place(struct buf *out, uint32_t place)
{
    if (place == PLACE_UNKNOWN)
        buf_printf(out, ",null");
    else
        buf_printf(out, ",%u", place);
}

static void put_machines(const struct model *model, struct buf *out)
{
    for (size_t i = 0; i < model->n_machines; i++) {
        const struct machine *machine = &model->machines[i];
        buf_printf(out, i ? ",\n{\"host_id\": " : ",\n\"machines\": [\n{\"host_id\": ");
        json_put_text(out, machine->host_id);
        buf_printf(out, ", \"cpus\": [");
        for (size_t k = 0; k < machine->n_cpus; k++) {
            const struct machine_cpu *cpu = &machine->cpus[k];
            buf_printf(out, k ? ",[%u" : "[%u", cpu->cpu);
            put_place(out, cpu->core);
            put_place(out, cpu->package);
            put_place(out, cpu->node);
            buf_append(out, "]", 1);
        }
        buf_append(out, "]", 1);
        for (uint32_t k = 0; k < machine->n_distances * machine->n_distances; k++)
            buf_printf(out, k ? ",%u" : ", \"distances\": [%u", machine->distances[k]);
        buf_printf(out, machine->n_distances ? "]}" : "}");
    }
    buf_append(out, "]", model->n_machines > 0);
}

static void put_cpu_counts(const struct model *model, struct buf *out)
{
    for (size_t i = 0; i < model->n_cpu_counts; i++) {
        const struct cpu_count *count = &model->cpu_counts[i];
        buf_printf(out, "%s\n[%u,%u,%u,%u,", i ? "," : ",\n\"cpu_counts\": [", count->variable, count->thread,
                   count->metric, count->cpu);
        json_put_word(out, count->n_samples);
        buf_append(out, "]", 1);
    }
    buf_append(out, "]", model->n_cpu_counts > 0);
}

/* [variable, thread, strided, irregular, [reach], [[line] ...], [offset, samples ...]] */
static void put_reaches(const struct model *model, struct buf *out)
{
    for (size_t i = 0; i < model->n_reaches; i++) {
        const struct reach_row *row = &model->reaches[i];
        buf_printf(out, "%s[%u, %u, %llu, %llu, ", i ? ",\n" : ",\n\"reaches\": [\n", row->variable, row->thread,
                   (unsigned long long)row->n_strided, (unsigned long long)row->n_irregular);
        reach_put(out, &row->sum);
        buf_printf(out, ", [");
        for (size_t k = 0; k < row->n_lines; k++) {
            buf_printf(out, "%s", k ? ", " : "");
            reach_line_put(out, &row->lines[k]);
        }
        buf_printf(out, "], [");
        for (size_t k = 0; k < row->offsets.n; k++) {
            buf_printf(out, "%s", k ? ", " : "");
            json_put_word(out, row->offsets.entries[k].offset);
            buf_printf(out, ", ");
            json_put_word(out, row->offsets.entries[k].count);
        }
        buf_printf(out, "]]");
    }
    buf_append(out, "]", model->n_reaches > 0);
}

static void put_meetings(const struct model *model, struct buf *out)
{
    for (size_t i = 0; i < model->n_meetings; i++) {
        const struct meeting *meeting = &model->meetings[i];
        const uint64_t words[] = {meeting->variable,   meeting->thread,   meeting->scope,   meeting->accesses,
                                  meeting->is_watcher, meeting->key,      meeting->address, meeting->n_bytes,
                                  meeting->n_same,     meeting->n_beside, meeting->n_none};
        buf_printf(out, i ? ",\n" : ",\n\"meetings\": [\n");
        json_put_words(out, words, sizeof words / sizeof *words);
    }
    buf_append(out, "]", model->n_meetings > 0);
}

static void put_drops(const struct model *model, struct buf *out)
{
    for (size_t i = 0; i < model->n_drops; i++) {
        const struct drop_count *drop = &model->drops[i];
        buf_printf(out, i ? ",\n" : ",\n\"drops\": [\n");
        buf_printf(out, "[%u, %u, ", drop->thread, drop->event);
        json_put_text(out, fate_row((int)drop->fate)->name);
        buf_printf(out, ", %llu]", (unsigned long long)drop->n_samples);
    }
    buf_append(out, "]", model->n_drops > 0);
}

static void put_touches(const struct model *model, struct buf *out)
{
    for (size_t i = 0; i < model->n_touches; i++) {
        const struct touch *touch = &model->touches[i];
        const uint64_t words[] = {touch->variable, touch->thread,   touch->scope,     touch->n_samples,
                                  touch->n_faults, touch->first_ns, touch->low_bytes, touch->high_bytes};
        buf_printf(out, i ? ",\n" : ",\n\"touches\": [\n");
        json_put_words(out, words, touch->low_bytes <= touch->high_bytes ? 8 : 6);
    }
    buf_append(out, "]", model->n_touches > 0);
}

static void put_home_counts(const struct model *model, struct buf *out)
{
    for (size_t i = 0; i < model->n_home_counts; i++) {
        const struct home_count *count = &model->home_counts[i];
        buf_printf(out, "%s\n[%u,%u,%u,%u", i ? "," : ",\n\"home_counts\": [", count->variable, count->thread,
                   count->metric, count->cpu);
        put_place(out, count->home);
        buf_append(out, ",", 1);
        json_put_word(out, count->n_samples);
        buf_append(out, "]", 1);
    }
    buf_append(out, "]", model->n_home_counts > 0);
}

static void put_pages(const struct model *model, struct buf *out)
{
    for (size_t i = 0; i < model->n_pages; i++) {
        const struct variable_pages *pages = &model->pages[i];
        buf_printf(out, "%s\n{\"variable\": %u", i ? "," : ",\n\"pages\": [", pages->variable);
        json_put_word_at(out, "n_moved", pages->n_moved);
        json_put_word_at(out, "n_pages", pages->n_pages);
        json_put_word_at(out, "n_asked", pages->n_asked);
        json_put_word_at(out, "n_none", pages->n_none);
        if (pages->huge_bytes != UINT64_MAX)
            json_put_word_at(out, "huge_bytes", pages->huge_bytes);
        json_put_key(out, "n_on", 0);
        json_put_words(out, pages->n_on, HOMES_MAX);
        buf_append(out, "}", 1);
    }
    buf_append(out, "]", model->n_pages > 0);
}

static void put_field_counts(const struct model *model, struct buf *out)
{
    for (size_t i = 0; i < model->n_field_counts; i++) {
        const struct field_count *count = &model->field_counts[i];
        const uint64_t words[] = {count->variable, count->scope, count->field, count->n_samples};
        buf_printf(out, i ? ",\n" : ",\n\"field_counts\": [\n");
        json_put_words(out, words, sizeof words / sizeof *words);
    }
    buf_append(out, "]", model->n_field_counts > 0);
}

static void put_nest_counts(const struct model *model, struct buf *out)
{
    for (size_t i = 0; i < model->n_nest_counts; i++) {
        const struct nest_count *count = &model->nest_counts[i];
        const uint64_t words[] = {count->variable, count->event,      count->file,         count->line,
                                  count->end_line, count->outer_file, count->outer_line,   count->verdict,
                                  count->move,     count->is_around,  count->stride_bytes, count->outer_bytes,
                                  count->n_samples};
        buf_printf(out, i ? ",\n" : ",\n\"nests\": [\n");
        json_put_words(out, words, sizeof words / sizeof *words);
    }
    buf_append(out, "]", model->n_nest_counts > 0);
}

static int write_json(const struct export_job *job, struct buf *out, struct error *err)
{
    const struct model *model = job->model;
    put_head(model, out);
    put_notes(model, out);
    put_metrics(model, out);
    put_processes(model, out);
    if (model->has_thread_list)
        put_threads(model, out);
    put_events(model, out);
    buf_printf(out, ",\n\"variables\": [");
    for (size_t i = 0; i < model->n_variables; i++) {
        next_row(out, i);
        put_variable(model, &model->variables[i], out);
    }
    buf_printf(out, "]");
    put_tree(model, out);
    put_builds(model, out);
    put_machines(model, out);
    put_cpu_counts(model, out);
    put_touches(model, out);
    put_meetings(model, out);
    put_reaches(model, out);
    put_home_counts(model, out);
    put_pages(model, out);
    put_field_counts(model, out);
    put_nest_counts(model, out);
    put_drops(model, out);
    buf_printf(out, "}\n");
    return out->failed ? error_set(err, ERR_MEMORY,
                                   "out of memory while writing "
                                   "JSON")
                       : 0;
}

const struct report_forms database_forms = {.json = write_json, .has_page = true};
