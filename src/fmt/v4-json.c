/* SPDX-License-Identifier: BSD-3-Clause */
/* Version 4 files as JSON. Tables are lists of lists: what their columns are is said in front of them. */
#include "fmt/json-put.h"
#include "fmt/v4.h"

static void put_next(struct buf *out, size_t i)
{
    buf_printf(out, i ? ",\n  " : "\n  ");
}

static void put_metrics(const struct v4_meta *meta, struct buf *out)
{
    buf_printf(out, ",\n\"scopes\": [");
    for (size_t i = 0; i < meta->n_scopes; i++) {
        put_next(out, i);
        buf_append(out, "[", 1);
        json_put_text(out, meta->scopes[i].name);
        buf_printf(out, ", %u, %u]", meta->scopes[i].type, meta->scopes[i].propagation);
    }
    buf_printf(out, "],\n\"metrics\": [");
    for (size_t i = 0; i < meta->n_metrics; i++) {
        const struct v4_metric *metric = &meta->metrics[i];
        put_next(out, i);
        buf_printf(out, "{\"name\": ");
        json_put_text(out, metric->name);
        buf_printf(out, ", \"instances\": [");
        for (size_t k = 0; k < metric->n_instances; k++)
            buf_printf(out, "%s[%u, %u]", k ? ", " : "", metric->instances[k].scope, metric->instances[k].metric_id);
        buf_printf(out, "], \"summaries\": [");
        for (size_t k = 0; k < metric->n_summaries; k++) {
            buf_printf(out, "%s[%u, ", k ? ", " : "", metric->summaries[k].scope);
            json_put_text(out, metric->summaries[k].formula);
            buf_printf(out, ", %u, %u]", metric->summaries[k].combine, metric->summaries[k].metric_id);
        }
        buf_printf(out, "]}");
    }
    buf_append(out, "]", 1);
}

static void put_paths(const char *key, const struct v4_path *paths, size_t n_paths, struct buf *out)
{
    buf_printf(out, ",\n\"%s\": [", key);
    for (size_t i = 0; i < n_paths; i++) {
        put_next(out, i);
        buf_printf(out, "[%u, ", paths[i].flags);
        json_put_text(out, paths[i].path);
        buf_append(out, "]", 1);
    }
    buf_append(out, "]", 1);
}

static void put_functions(const struct v4_meta *meta, struct buf *out)
{
    buf_printf(out, ",\n\"function_columns\": [\"name\", \"module\", \"offset\", \"file\", \"line\", \"flags\"]");
    buf_printf(out, ",\n\"functions\": [");
    for (size_t i = 0; i < meta->n_functions; i++) {
        const struct v4_function *function = &meta->functions[i];
        put_next(out, i);
        buf_append(out, "[", 1);
        json_put_text(out, function->name);
        buf_printf(out, ", %u, ", function->module);
        json_put_word(out, function->offset);
        buf_printf(out, ", %u, %u, %u]", function->file, function->line, function->flags);
    }
    buf_append(out, "]", 1);
}

/* Id of the context or entry point above; *entry is the entry point of the context before. */
static uint32_t parent_id(const struct v4_meta *meta, size_t i, size_t *entry)
{
    uint32_t parent = meta->contexts[i].parent;
    if (parent)
        return meta->contexts[parent - 1].ctx_id;
    while (i >= (size_t)meta->entries[*entry].first_child + meta->entries[*entry].n_children)
        ++*entry;
    return meta->entries[*entry].ctx_id;
}

static void put_tree(const struct v4_meta *meta, struct buf *out)
{
    buf_printf(out, ",\n\"entry_columns\": [\"id\", \"kind\", \"name\"],\n\"entries\": [");
    for (size_t i = 0; i < meta->n_entries; i++) {
        put_next(out, i);
        buf_printf(out, "[%u, %u, ", meta->entries[i].ctx_id, meta->entries[i].kind);
        json_put_text(out, meta->entries[i].name);
        buf_append(out, "]", 1);
    }
    buf_printf(out, "],\n\"context_columns\": [\"id\", \"parent\", \"flags\", \"relation\", \"lexical\", "
                    "\"propagation\", \"function\", \"file\", \"line\", \"module\", \"offset\"],\n\"contexts\": [");
    for (size_t i = 0, entry = 0; i < meta->n_contexts; i++) {
        const struct v4_context *context = &meta->contexts[i];
        put_next(out, i);
        buf_printf(out, "[%u, %u, %u, %u, %u, %u, %u, %u, %u, %u, ", context->ctx_id, parent_id(meta, i, &entry),
                   context->flags, context->relation, context->lexical, context->propagation, context->function,
                   context->file, context->line, context->module);
        json_put_word(out, context->offset);
        buf_append(out, "]", 1);
    }
    buf_append(out, "]", 1);
}

static void put_meta(const struct v4_meta *meta, struct buf *out)
{
    json_put_text_at(out, "title", meta->title);
    json_put_text_at(out, "description", meta->description);
    buf_printf(out, ",\n\"kinds\": [");
    for (size_t i = 0; i < meta->n_kinds; i++) {
        buf_printf(out, i ? ", " : "");
        json_put_text(out, meta->kinds[i]);
    }
    buf_append(out, "]", 1);
    put_metrics(meta, out);
    put_paths("modules", meta->modules, meta->n_modules, out);
    put_paths("files", meta->files, meta->n_files, out);
    put_functions(meta, out);
    put_tree(meta, out);
}

static void put_cells(const struct v4_cell *cells, size_t n_cells, struct buf *out)
{
    buf_printf(out, "[");
    for (size_t i = 0; i < n_cells; i++) {
        buf_printf(out, "%s[%u, %u, ", i ? ", " : "", cells[i].id, cells[i].metric_id);
        json_put_double(out, cells[i].value);
        buf_append(out, "]", 1);
    }
    buf_append(out, "]", 1);
}

static void put_profiles(const struct v4_file *file, struct buf *out)
{
    buf_printf(out, ",\n\"id_columns\": [\"kind\", \"flags\", \"logical\", \"physical\"]"
                    ",\n\"value_columns\": [\"context\", \"metric\", \"value\"],\n\"profiles\": [");
    for (size_t i = 0; i < file->n_profiles; i++) {
        const struct v4_profile *profile = &file->profiles[i];
        put_next(out, i);
        buf_printf(out, "{\"flags\": %u, \"ids\": [", profile->flags);
        for (size_t k = 0; k < profile->n_ids; k++) {
            const struct v4_id *id = &profile->ids[k];
            buf_printf(out, "%s[%u, %u, %u, ", k ? ", " : "", id->kind, id->flags, id->logical);
            json_put_word(out, id->physical);
            buf_append(out, "]", 1);
        }
        buf_printf(out, "], \"values\": ");
        put_cells(profile->cells, profile->n_cells, out);
        buf_append(out, "}", 1);
    }
    buf_append(out, "]", 1);
}

static void put_traces(const struct v4_file *file, struct buf *out)
{
    json_put_word_at(out, "min_time_ns", file->min_time_ns);
    json_put_word_at(out, "max_time_ns", file->max_time_ns);
    buf_printf(out, ",\n\"traces\": [");
    for (size_t i = 0; i < file->n_traces; i++) {
        const struct v4_trace *trace = &file->traces[i];
        put_next(out, i);
        buf_printf(out, "{\"profile\": %u, \"records\": [", trace->profile);
        for (size_t k = 0; k < trace->n_events; k++) {
            buf_printf(out, k ? ", [" : "[");
            json_put_word(out, trace->events[k].time_ns);
            buf_printf(out, ", %u]", trace->events[k].ctx_id);
        }
        buf_printf(out, "]}");
    }
    buf_append(out, "]", 1);
}

void v4_put_json(const struct v4_file *file, struct buf *out)
{
    buf_printf(out, "{\"format\": \"v4\"");
    json_put_text_at(out, "file", v4_file_name(file->kind));
    if (file->kind == V4_META)
        put_meta(&file->meta, out);
    else if (file->kind == V4_PROFILE)
        put_profiles(file, out);
    else if (file->kind == V4_TRACE)
        put_traces(file, out);
    else
        buf_printf(out, ",\n\"value_columns\": [\"profile\", \"metric\", \"value\"],\n\"contexts\": [");
    for (size_t i = 0; file->kind == V4_CCT && i < file->n_blocks; i++) {
        put_next(out, i);
        put_cells(file->blocks[i].cells, file->blocks[i].n_cells, out);
    }
    buf_printf(out, file->kind == V4_CCT ? "]}\n" : "}\n");
}
