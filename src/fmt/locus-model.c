/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a model, and what its parts are called: see locus-db.h. */
#include "fmt/locus-db.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int model_init(struct model *model, struct error *err)
{
    memset(model, 0, sizeof *model);
    if (strtab_intern(&model->strings, "") != 0 ||
        !vec_reserve(&model->scopes, &model->cap_scopes, 1, sizeof *model->scopes)) {
        model_fini(model);
        return error_memory(err);
    }
    model->n_scopes = 1;
    return 0;
}

void reach_row_fini(struct reach_row *row)
{
    free(row->lines);
    spread_fini(&row->offsets);
}

static void free_rows(struct model *model)
{
    for (size_t i = 0; i < model->n_metrics; i++) {
        free(model->metrics[i].name);
        free(model->metrics[i].description);
    }
    for (size_t i = 0; i < model->n_processes; i++) {
        free(model->processes[i].exe);
        free(model->processes[i].host_id);
        free(model->processes[i].path);
    }
    for (size_t i = 0; i < model->n_variables; i++) {
        free(model->variables[i].scopes);
        free(model->variables[i].places);
        free(model->variables[i].parts);
        free(model->variables[i].part_lines);
        free(model->variables[i].samples);
        free(model->variables[i].latencies);
        free(model->variables[i].causes);
        free(model->variables[i].walks);
        free(model->variables[i].fields);
    }
    free(model->is_left_out);
    for (size_t i = 0; i < model->n_events; i++) {
        free(model->events[i].metric);
        free(model->events[i].name);
    }
    for (size_t i = 0; i < model->n_notes; i++)
        free(model->notes[i]);
    for (size_t i = 0; i < model->n_machines; i++) {
        free(model->machines[i].host_id);
        free(model->machines[i].cpus);
        free(model->machines[i].distances);
    }
    for (size_t i = 0; i < model->n_reaches; i++)
        reach_row_fini(&model->reaches[i]);
}

void model_fini(struct model *model)
{
    free_rows(model);
    void *owned[] = {model->scopes,   model->metrics,    model->own,          model->inclusive, model->processes,
                     model->threads,  model->variables,  model->events,       model->topology,  model->program,
                     model->command,  model->plan,       model->skid,         model->notes,     model->builds,
                     model->machines, model->cpu_counts, model->home_counts,  model->pages,     model->touches,
                     model->reaches,  model->meetings,   model->field_counts, model->drops,     model->nest_counts};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    strtab_fini(&model->strings);
    strtab_fini(&model->runs);
    memset(model, 0, sizeof *model);
}

void model_set_capacities(struct model *model)
{
    model->cap_metrics = model->n_metrics;
    model->cap_processes = model->n_processes;
    model->cap_threads = model->n_threads;
    model->cap_events = model->n_events;
    model->cap_builds = model->n_builds;
    model->cap_machines = model->n_machines;
    model->cap_cpu_counts = model->n_cpu_counts;
    model->cap_touches = model->n_touches;
    model->cap_reaches = model->n_reaches;
    model->cap_meetings = model->n_meetings;
    model->cap_field_counts = model->n_field_counts;
    model->cap_nest_counts = model->n_nest_counts;
    model->cap_home_counts = model->n_home_counts;
    model->cap_pages = model->n_pages;
    model->cap_drops = model->n_drops;
    model->cap_variables = model->n_variables;
    for (size_t i = 0; i < model->n_variables; i++) {
        struct variable *variable = &model->variables[i];
        variable->cap_scopes = variable->n_scopes;
        variable->cap_parts = variable->n_parts;
        variable->cap_fields = variable->n_fields;
        variable->cap_part_lines = variable->n_part_lines;
        variable->cap_latencies = variable->n_latencies;
        variable->cap_causes = variable->n_causes;
        variable->cap_walks = variable->n_walks;
    }
}

uint32_t model_drop_named(const char *name)
{
    uint32_t fate = FATE_DROP_REENTERED;
    while (fate < FATE_TAKEN_MAX && !(name && strcmp(fate_row((int)fate)->name, name) == 0))
        fate++;
    return fate < FATE_TAKEN_MAX ? fate : FATE_MAX;
}

uint32_t model_string(struct model *model, const char *text)
{
    int64_t id = text && *text ? strtab_intern(&model->strings, text) : 0;
    return id < 0 ? 0 : (uint32_t)id;
}

const char *model_text(const struct model *model, uint32_t id)
{
    return id < model->strings.n_strings ? model->strings.strings[id] : "";
}

void model_note(struct model *model, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    if (len < 0)
        return;
    for (size_t i = 0; i < model->n_notes; i++)
        if (strcmp(model->notes[i], text) == 0) {
            free(text);
            return;
        }
    if (vec_reserve(&model->notes, &model->cap_notes, model->n_notes + 1, sizeof *model->notes))
        model->notes[model->n_notes++] = text;
    else
        free(text);
}

bool variable_shares_field(const struct variable *variable, const struct variable_field *field)
{
    return !variable->n_parts || field->part != FIELD_NO_PART;
}

size_t model_counts_end(const struct model *model, size_t first)
{
    const struct field_count *counts = model->field_counts;
    size_t end = first;
    while (end < model->n_field_counts && counts[end].variable == counts[first].variable &&
           counts[end].scope == counts[first].scope)
        end++;
    return end;
}

double variable_part_fraction(const struct variable *variable, uint32_t part, uint32_t event)
{
    double all = 0, here = 0;
    for (size_t i = 0; i < variable->n_fields; i++) {
        const struct variable_field *field = &variable->fields[i];
        if (field->event != event || field->part == FIELD_NO_PART)
            continue;
        all += (double)field->samples;
        here += field->part == part ? (double)field->samples : 0;
    }
    return all > 0 ? here / all : -1;
}

bool model_scope_fits(const struct model *model, uint32_t scope)
{
    const struct scope *at = &model->scopes[scope], *above = &model->scopes[at->parent];
    return above->kind != SCOPE_INSTRUCTION && (at->kind != SCOPE_INSTRUCTION || above->kind == SCOPE_LINE);
}

const char *model_class_name(enum variable_class class)
{
    static const char *const names[CLASS_COUNT] = {"heap", "mmap",    "static",       "thread-local", "stack",
                                                   "file", "unknown", "unattributed", "waiting",      "dropped"};
    return class < CLASS_COUNT ? names[class] : "unknown";
}

void model_link_scopes(struct model *model)
{
    for (size_t i = 0; i < model->n_scopes; i++) {
        model->scopes[i].first_child = model->scopes[i].next_sibling = 0;
        model->scopes[i].end = (uint32_t)i + 1;
    }
    for (size_t i = model->n_scopes; i-- > 1;) {
        struct scope *parent = &model->scopes[model->scopes[i].parent];
        model->scopes[i].next_sibling = parent->first_child;
        if (!parent->first_child)
            parent->end = model->scopes[i].end; /* its last child */
        parent->first_child = (uint32_t)i;
    }
}
