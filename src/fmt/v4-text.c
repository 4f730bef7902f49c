/* SPDX-License-Identifier: BSD-3-Clause */
/* Version 4 files as text, one line for each thing. Contexts are indented below their parents. */
#include "fmt/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fmt/v4.h"

static const char *or_none(const char *text)
{
    return text ? text : "(none)";
}

static const char *scope_name(const struct v4_meta *meta, uint32_t scope)
{
    return scope ? or_none(meta->scopes[scope - 1].name) : "(none)";
}

static void put_metric(const struct v4_meta *meta, const struct v4_metric *metric, struct buf *out)
{
    static const char *const ways[] = {"sum", "min", "max"};
    buf_printf(out, "  %s\n", or_none(metric->name));
    for (size_t i = 0; i < metric->n_instances; i++)
        buf_printf(out, "    value #%u: scope %s\n", metric->instances[i].metric_id,
                   scope_name(meta, metric->instances[i].scope));
    for (size_t i = 0; i < metric->n_summaries; i++) {
        const struct v4_summary *summary = &metric->summaries[i];
        buf_printf(out, "    summary #%u: %s of '%s', scope %s\n", summary->metric_id,
                   summary->combine < 3 ? ways[summary->combine] : "unknown combination", or_none(summary->formula),
                   scope_name(meta, summary->scope));
    }
}

static void put_tables(const struct v4_meta *meta, struct buf *out)
{
    static const char *const types[] = {"custom", "point", "execution", "transitive"};
    buf_printf(out, "[identifiers: %zu]\n", meta->n_kinds);
    for (size_t i = 0; i < meta->n_kinds; i++)
        buf_printf(out, "  %zu: %s\n", i, or_none(meta->kinds[i]));
    buf_printf(out, "[scopes: %zu]\n", meta->n_scopes);
    for (size_t i = 0; i < meta->n_scopes; i++)
        buf_printf(out, "  %s: %s, propagation %u\n", or_none(meta->scopes[i].name),
                   meta->scopes[i].type < 4 ? types[meta->scopes[i].type] : "unknown", meta->scopes[i].propagation);
    buf_printf(out, "[metrics: %zu]\n", meta->n_metrics);
    for (size_t i = 0; i < meta->n_metrics; i++)
        put_metric(meta, &meta->metrics[i], out);
    buf_printf(out, "[modules: %zu]\n", meta->n_modules);
    for (size_t i = 0; i < meta->n_modules; i++)
        buf_printf(out, "  %zu: %s (flags %u)\n", i + 1, or_none(meta->modules[i].path), meta->modules[i].flags);
    buf_printf(out, "[files: %zu]\n", meta->n_files);
    for (size_t i = 0; i < meta->n_files; i++)
        buf_printf(out, "  %zu: %s (flags %u)\n", i + 1, or_none(meta->files[i].path), meta->files[i].flags);
    buf_printf(out, "[functions: %zu]\n", meta->n_functions);
    for (size_t i = 0; i < meta->n_functions; i++) {
        const struct v4_function *function = &meta->functions[i];
        buf_printf(out, "  %zu: %s (module %u offset 0x%" PRIx64 ", file %u line %u, flags %u)\n", i + 1,
                   or_none(function->name), function->module, function->offset, function->file, function->line,
                   function->flags);
    }
}

/* Names by number only: a text that many contexts share would be printed many times. */
static void put_context(const struct v4_context *context, uint32_t depth, struct buf *out)
{
    static const char *const relations[] = {"lexical", "call", "inlined call"};
    static const char *const types[] = {"function", "loop", "line", "instruction"};
    buf_printf(out, "%*s#%u: %s %s", (int)(depth < 100 ? 2 * depth : 200), "", context->ctx_id,
               context->relation < 3 ? relations[context->relation] : "unknown",
               context->lexical < 4 ? types[context->lexical] : "unknown");
    if (context->flags & V4_HAS_FUNCTION)
        buf_printf(out, " function %u", context->function);
    if (context->flags & V4_HAS_SOURCE)
        buf_printf(out, " file %u line %u", context->file, context->line);
    if (context->flags & V4_HAS_POINT)
        buf_printf(out, " module %u offset 0x%" PRIx64, context->module, context->offset);
    if (context->propagation)
        buf_printf(out, " propagation 0x%x", context->propagation);
    buf_append(out, "\n", 1);
}

/* The context after i in pre-order below [first, first + n): down, else aside, else up; n_contexts at the end. */
static size_t next_of(const struct v4_meta *meta, const struct v4_entry *entry, size_t i, uint32_t *depth)
{
    const struct v4_context *context = &meta->contexts[i];
    if (context->n_children) {
        ++*depth;
        return context->first_child;
    }
    for (;; i = context->parent - 1, context = &meta->contexts[i], --*depth) {
        const struct v4_context *parent = context->parent ? &meta->contexts[context->parent - 1] : NULL;
        uint32_t first = parent ? parent->first_child : entry->first_child;
        if (i + 1 < first + (parent ? parent->n_children : entry->n_children))
            return i + 1;
        if (!parent)
            return meta->n_contexts;
    }
}

static void put_tree(const struct v4_meta *meta, struct buf *out)
{
    static const char *const kinds[] = {"unknown", "main thread", "thread"};
    buf_printf(out, "[contexts: %zu]\n", meta->n_contexts);
    for (size_t k = 0; k < meta->n_entries; k++) {
        const struct v4_entry *entry = &meta->entries[k];
        uint32_t depth = 2;
        buf_printf(out, "  #%u: entry point %s (%s)\n", entry->ctx_id, or_none(entry->name),
                   entry->kind < 3 ? kinds[entry->kind] : "unknown");
        for (size_t i = entry->n_children ? entry->first_child : meta->n_contexts; i < meta->n_contexts;) {
            put_context(&meta->contexts[i], depth, out);
            i = next_of(meta, entry, i, &depth);
        }
    }
}

static void put_meta(const struct v4_meta *meta, struct buf *out)
{
    buf_printf(out, "[general:\n  (title: %s)\n  (description: %s)\n]\n", or_none(meta->title),
               or_none(meta->description));
    put_tables(meta, out);
    put_tree(meta, out);
}

static void put_cells(const struct v4_cell *cells, size_t n_cells, const char *id, struct buf *out)
{
    for (size_t i = 0; i < n_cells; i++) {
        char text[40];
        json_double_text(cells[i].value, text, sizeof text);
        buf_printf(out, "  %s %u metric %u: %s\n", id, cells[i].id, cells[i].metric_id, text);
    }
}

static void put_profiles(const struct v4_file *file, struct buf *out)
{
    for (size_t i = 0; i < file->n_profiles; i++) {
        const struct v4_profile *profile = &file->profiles[i];
        buf_printf(out, "[profile %zu:%s %zu values, flags %u", i, profile->flags & 1 ? " summary," : "",
                   profile->n_cells, profile->flags);
        for (size_t k = 0; k < profile->n_ids; k++) {
            const struct v4_id *id = &profile->ids[k];
            buf_printf(out, "; kind %u logical %u", id->kind, id->logical);
            if (id->flags & 1)
                buf_printf(out, " physical 0x%" PRIx64, id->physical);
        }
        buf_printf(out, "]\n");
        put_cells(profile->cells, profile->n_cells, "context", out);
    }
}

static void put_traces(const struct v4_file *file, struct buf *out)
{
    buf_printf(out, "[traces: %zu, times %" PRIu64 " to %" PRIu64 "]\n", file->n_traces, file->min_time_ns,
               file->max_time_ns);
    for (size_t i = 0; i < file->n_traces; i++) {
        const struct v4_trace *trace = &file->traces[i];
        buf_printf(out, "[profile %u: %zu records]\n", trace->profile, trace->n_events);
        for (size_t k = 0; k < trace->n_events; k++)
            buf_printf(out, "  %" PRIu64 ": context %u\n", trace->events[k].time_ns, trace->events[k].ctx_id);
    }
}

void v4_put_text(const struct v4_file *file, struct buf *out)
{
    buf_printf(out, V4_BEGINS " %s\n", v4_file_name(file->kind));
    if (file->kind == V4_META)
        put_meta(&file->meta, out);
    else if (file->kind == V4_PROFILE)
        put_profiles(file, out);
    else if (file->kind == V4_TRACE)
        put_traces(file, out);
    for (size_t i = 0; file->kind == V4_CCT && i < file->n_blocks; i++) {
        buf_printf(out, "[context %zu: %zu values]\n", i, file->blocks[i].n_cells);
        put_cells(file->blocks[i].cells, file->blocks[i].n_cells, "profile", out);
    }
}

/* --- as JSON --- */

/* Version 4 files as JSON. Tables are lists of lists; the names of their columns stand in front of them. */

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

static void put_tree_json(const struct v4_meta *meta, struct buf *out)
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

static void put_meta_json(const struct v4_meta *meta, struct buf *out)
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
    put_tree_json(meta, out);
}

static void put_cells_json(const struct v4_cell *cells, size_t n_cells, struct buf *out)
{
    buf_printf(out, "[");
    for (size_t i = 0; i < n_cells; i++) {
        buf_printf(out, "%s[%u, %u, ", i ? ", " : "", cells[i].id, cells[i].metric_id);
        json_put_double(out, cells[i].value);
        buf_append(out, "]", 1);
    }
    buf_append(out, "]", 1);
}

static void put_profiles_json(const struct v4_file *file, struct buf *out)
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
        put_cells_json(profile->cells, profile->n_cells, out);
        buf_append(out, "}", 1);
    }
    buf_append(out, "]", 1);
}

static void put_traces_json(const struct v4_file *file, struct buf *out)
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
        put_meta_json(&file->meta, out);
    else if (file->kind == V4_PROFILE)
        put_profiles_json(file, out);
    else if (file->kind == V4_TRACE)
        put_traces_json(file, out);
    else
        buf_printf(out, ",\n\"value_columns\": [\"profile\", \"metric\", \"value\"],\n\"contexts\": [");
    for (size_t i = 0; file->kind == V4_CCT && i < file->n_blocks; i++) {
        put_next(out, i);
        put_cells_json(file->blocks[i].cells, file->blocks[i].n_cells, out);
    }
    buf_printf(out, file->kind == V4_CCT ? "]}\n" : "}\n");
}

/* --- from JSON --- */

/* Version 4 files out of the JSON that v4-text.c writes. Tables refer to each other by numbers, which are checked. */

/* A text that lives as long as the file. */
static const char *take_text(struct json_take *take, const json_t *value, const char *what, struct v4_file *file)
{
    char *text = json_take_text(take, value, what);
    int64_t id = text ? strtab_intern(&file->texts, text) : 0;
    const char *kept = text && id >= 0 ? file->texts.strings[id] : NULL;
    if (id < 0)
        json_take_fail(take, ERR_MEMORY, what, "out of memory");
    free(text);
    return kept;
}

static uint32_t take_u32(struct json_take *take, const json_t *row, size_t column, uint64_t max, const char *what)
{
    return (uint32_t)json_take_word(take, json_array_get(row, column), max, what);
}

/* Whether row is a list of n_columns; a failure is remembered. */
static bool is_row(struct json_take *take, const json_t *row, size_t n_columns, const char *what)
{
    if (!json_is_array(row) || json_array_size(row) != n_columns)
        json_take_fail(take, ERR_FORMAT, what, "a list of as many values as there are columns is expected");
    return !take->code;
}

/* The list under key, one item of item_bytes for each element; *n_items: how many. */
static void *take_table(struct json_take *take, const json_t *root, const char *key, size_t item_bytes,
                        const json_t **list, size_t *n_items)
{
    *list = json_take_array_at(take, root, key, n_items);
    void *items = json_take_alloc(take, *n_items, item_bytes);
    if (!items)
        *n_items = 0;
    take->where = key;
    take->index = 0;
    return items;
}

/* The list of columns must be ours: those of another version may mean something else. */
static void check_columns(struct json_take *take, const json_t *root, const char *key, const char *wanted)
{
    const json_t *list = json_object_get(root, key);
    struct buf found = {0};
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        buf_printf(&found, "%s%s", i ? " " : "", name ? name : "?");
    }
    take->where = NULL;
    if (found.failed || !found.data || strcmp(found.data, wanted) != 0)
        json_take_fail(take, ERR_FORMAT, key, "other columns than those that are written");
    buf_fini(&found);
}

static void take_scopes(struct json_take *take, const json_t *root, struct v4_file *file)
{
    const json_t *list, *row;
    struct v4_meta *meta = &file->meta;
    meta->kinds = take_table(take, root, "kinds", sizeof *meta->kinds, &list, &meta->n_kinds);
    for (; take->index < meta->n_kinds && !take->code; take->index++)
        meta->kinds[take->index] = take_text(take, json_array_get(list, take->index), "name", file);
    take->where = NULL;
    meta->scopes = take_table(take, root, "scopes", sizeof *meta->scopes, &list, &meta->n_scopes);
    for (; take->index < meta->n_scopes && !take->code; take->index++) {
        row = json_array_get(list, take->index);
        if (is_row(take, row, 3, "scope"))
            meta->scopes[take->index] = (struct v4_scope){take_text(take, json_array_get(row, 0), "name", file),
                                                          (uint8_t)take_u32(take, row, 1, UINT8_MAX, "type"),
                                                          (uint8_t)take_u32(take, row, 2, UINT8_MAX, "propagation")};
    }
    take->where = NULL;
}

static void take_instances(struct json_take *take, const json_t *object, const struct v4_meta *meta,
                           struct v4_metric *metric)
{
    const json_t *list = json_object_get(object, "instances");
    size_t n = json_array_size(list);
    if (n > UINT16_MAX)
        json_take_fail(take, ERR_RANGE, "instances", "more than the format can hold");
    metric->instances = json_take_alloc(take, n, sizeof *metric->instances);
    for (; metric->instances && metric->n_instances < n && !take->code; metric->n_instances++) {
        const json_t *row = json_array_get(list, metric->n_instances);
        if (is_row(take, row, 2, "instance"))
            metric->instances[metric->n_instances] =
                (struct v4_instance){take_u32(take, row, 0, meta->n_scopes, "scope"),
                                     (uint16_t)take_u32(take, row, 1, UINT16_MAX, "metric")};
    }
}

static void take_summaries(struct json_take *take, const json_t *object, struct v4_file *file, struct v4_metric *metric)
{
    const json_t *list = json_object_get(object, "summaries");
    size_t n = json_array_size(list);
    if (n > UINT16_MAX)
        json_take_fail(take, ERR_RANGE, "summaries", "more than the format can hold");
    metric->summaries = json_take_alloc(take, n, sizeof *metric->summaries);
    for (; metric->summaries && metric->n_summaries < n && !take->code; metric->n_summaries++) {
        const json_t *row = json_array_get(list, metric->n_summaries);
        if (is_row(take, row, 4, "summary"))
            metric->summaries[metric->n_summaries] =
                (struct v4_summary){take_u32(take, row, 0, file->meta.n_scopes, "scope"),
                                    take_text(take, json_array_get(row, 1), "formula", file),
                                    (uint8_t)take_u32(take, row, 2, UINT8_MAX, "combine"),
                                    (uint16_t)take_u32(take, row, 3, UINT16_MAX, "metric")};
    }
}

static void take_metrics(struct json_take *take, const json_t *root, struct v4_file *file)
{
    const json_t *list;
    struct v4_meta *meta = &file->meta;
    meta->metrics = take_table(take, root, "metrics", sizeof *meta->metrics, &list, &meta->n_metrics);
    for (; take->index < meta->n_metrics && !take->code; take->index++) {
        const json_t *object = json_array_get(list, take->index);
        struct v4_metric *metric = &meta->metrics[take->index];
        metric->name = take_text(take, json_object_get(object, "name"), "name", file);
        take_instances(take, object, meta, metric);
        take_summaries(take, object, file, metric);
        json_take_end(take, object, 3);
    }
    take->where = NULL;
}

static struct v4_path *take_paths(struct json_take *take, const json_t *root, const char *key, struct v4_file *file,
                                  size_t *n_paths)
{
    const json_t *list;
    struct v4_path *paths = take_table(take, root, key, sizeof *paths, &list, n_paths);
    for (; take->index < *n_paths && !take->code; take->index++) {
        const json_t *row = json_array_get(list, take->index);
        if (is_row(take, row, 2, "path"))
            paths[take->index] = (struct v4_path){.flags = take_u32(take, row, 0, UINT32_MAX, "flags"),
                                                  .path = take_text(take, json_array_get(row, 1), "path", file)};
    }
    take->where = NULL;
    return paths;
}

static void take_functions(struct json_take *take, const json_t *root, struct v4_file *file)
{
    const json_t *list;
    struct v4_meta *meta = &file->meta;
    check_columns(take, root, "function_columns", "name module offset file line flags");
    meta->functions = take_table(take, root, "functions", sizeof *meta->functions, &list, &meta->n_functions);
    for (; take->index < meta->n_functions && !take->code; take->index++) {
        const json_t *row = json_array_get(list, take->index);
        if (is_row(take, row, 6, "function"))
            meta->functions[take->index] =
                (struct v4_function){.name = take_text(take, json_array_get(row, 0), "name", file),
                                     .module = take_u32(take, row, 1, meta->n_modules, "module"),
                                     .offset = json_take_word(take, json_array_get(row, 2), UINT64_MAX, "offset"),
                                     .file = take_u32(take, row, 3, meta->n_files, "file"),
                                     .line = take_u32(take, row, 4, UINT32_MAX, "line"),
                                     .flags = take_u32(take, row, 5, UINT32_MAX, "flags")};
    }
    take->where = NULL;
}

static void take_context(struct json_take *take, const json_t *row, const struct v4_meta *meta,
                         struct v4_context *context)
{
    *context = (struct v4_context){
        .ctx_id = take_u32(take, row, 0, UINT32_MAX, "id"),
        .flags = (uint8_t)take_u32(take, row, 2, V4_HAS_FUNCTION | V4_HAS_SOURCE | V4_HAS_POINT, "flags"),
        .relation = (uint8_t)take_u32(take, row, 3, UINT8_MAX, "relation"),
        .lexical = (uint8_t)take_u32(take, row, 4, UINT8_MAX, "lexical"),
        .propagation = (uint16_t)take_u32(take, row, 5, UINT16_MAX, "propagation"),
        .function = take_u32(take, row, 6, meta->n_functions, "function"),
        .file = take_u32(take, row, 7, meta->n_files, "file"),
        .line = take_u32(take, row, 8, UINT32_MAX, "line"),
        .module = take_u32(take, row, 9, meta->n_modules, "module"),
        .offset = json_take_word(take, json_array_get(row, 10), UINT64_MAX, "offset")};
}

/* What may have children, in the order in which these follow each other: entry points, then contexts. */
static uint32_t id_of(const struct v4_meta *meta, size_t i)
{
    return i < meta->n_entries ? meta->entries[i].ctx_id : meta->contexts[i - meta->n_entries].ctx_id;
}

/* Makes context i a child of the next one with this id, from *at on. */
static void add_child(struct json_take *take, struct v4_meta *meta, uint32_t i, uint32_t id, size_t *at)
{
    while (*at < meta->n_entries + i && id_of(meta, *at) != id)
        ++*at;
    if (*at >= meta->n_entries + i) {
        json_take_fail(take, ERR_FORMAT, "parent", "contexts do not go down the tree level by level");
        return;
    }
    bool is_entry = *at < meta->n_entries;
    uint32_t *first = is_entry ? &meta->entries[*at].first_child : &meta->contexts[*at - meta->n_entries].first_child;
    uint32_t *n = is_entry ? &meta->entries[*at].n_children : &meta->contexts[*at - meta->n_entries].n_children;
    if (*n == 0)
        *first = i;
    ++*n;
    meta->contexts[i].parent = is_entry ? 0 : (uint32_t)(*at - meta->n_entries + 1);
}

static void take_tree(struct json_take *take, const json_t *root, struct v4_file *file)
{
    const json_t *list, *row;
    struct v4_meta *meta = &file->meta;
    size_t at = 0;
    check_columns(take, root, "entry_columns", "id kind name");
    check_columns(take, root, "context_columns",
                  "id parent flags relation lexical propagation function file line module offset");
    meta->entries = take_table(take, root, "entries", sizeof *meta->entries, &list, &meta->n_entries);
    for (; take->index < meta->n_entries && !take->code; take->index++) {
        row = json_array_get(list, take->index);
        if (is_row(take, row, 3, "entry point"))
            meta->entries[take->index] =
                (struct v4_entry){.ctx_id = take_u32(take, row, 0, UINT32_MAX, "id"),
                                  .kind = (uint16_t)take_u32(take, row, 1, UINT16_MAX, "kind"),
                                  .name = take_text(take, json_array_get(row, 2), "name", file)};
    }
    take->where = NULL;
    meta->contexts = take_table(take, root, "contexts", sizeof *meta->contexts, &list, &meta->n_contexts);
    for (; take->index < meta->n_contexts && !take->code; take->index++) {
        row = json_array_get(list, take->index);
        if (!is_row(take, row, 11, "context"))
            break;
        take_context(take, row, meta, &meta->contexts[take->index]);
        add_child(take, meta, (uint32_t)take->index, take_u32(take, row, 1, UINT32_MAX, "parent"), &at);
    }
    take->where = NULL;
}

static void take_meta(struct json_take *take, const json_t *root, struct v4_file *file)
{
    file->meta.title = take_text(take, json_object_get(root, "title"), "title", file);
    file->meta.description = take_text(take, json_object_get(root, "description"), "description", file);
    take_scopes(take, root, file);
    take_metrics(take, root, file);
    file->meta.modules = take_paths(take, root, "modules", file, &file->meta.n_modules);
    file->meta.files = take_paths(take, root, "files", file, &file->meta.n_files);
    take_functions(take, root, file);
    take_tree(take, root, file);
    json_take_end(take, root, 15);
}

static struct v4_cell *take_cells(struct json_take *take, const json_t *list, size_t *n_cells)
{
    size_t n = json_array_size(list);
    if (!json_is_array(list))
        json_take_fail(take, ERR_FORMAT, "values", "a list is expected");
    struct v4_cell *cells = json_take_alloc(take, n, sizeof *cells);
    for (*n_cells = 0; cells && *n_cells < n && !take->code; ++*n_cells) {
        const json_t *row = json_array_get(list, *n_cells);
        if (is_row(take, row, 3, "value"))
            cells[*n_cells] = (struct v4_cell){take_u32(take, row, 0, UINT32_MAX, "id"),
                                               (uint16_t)take_u32(take, row, 1, UINT16_MAX, "metric"),
                                               json_take_double(take, json_array_get(row, 2), "value")};
    }
    return cells;
}

static void take_ids(struct json_take *take, const json_t *object, struct v4_profile *profile)
{
    const json_t *list = json_object_get(object, "ids");
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > UINT16_MAX)
        json_take_fail(take, ERR_RANGE, "ids", "a list of fewer than 65536 is expected");
    profile->ids = json_take_alloc(take, n, sizeof *profile->ids);
    for (; profile->ids && profile->n_ids < n && !take->code; profile->n_ids++) {
        const json_t *row = json_array_get(list, profile->n_ids);
        if (is_row(take, row, 4, "id"))
            profile->ids[profile->n_ids] =
                (struct v4_id){.kind = (uint8_t)take_u32(take, row, 0, UINT8_MAX, "kind"),
                               .flags = (uint16_t)take_u32(take, row, 1, UINT16_MAX, "flags"),
                               .logical = take_u32(take, row, 2, UINT32_MAX, "logical"),
                               .physical = json_take_word(take, json_array_get(row, 3), UINT64_MAX, "physical")};
    }
}

static void take_profiles(struct json_take *take, const json_t *root, struct v4_file *file)
{
    const json_t *list;
    check_columns(take, root, "id_columns", "kind flags logical physical");
    check_columns(take, root, "value_columns", "context metric value");
    file->profiles = take_table(take, root, "profiles", sizeof *file->profiles, &list, &file->n_profiles);
    for (; take->index < file->n_profiles && !take->code; take->index++) {
        const json_t *object = json_array_get(list, take->index);
        struct v4_profile *profile = &file->profiles[take->index];
        profile->flags = (uint32_t)json_take_word_at(take, object, "flags", UINT32_MAX);
        take_ids(take, object, profile);
        profile->cells = take_cells(take, json_object_get(object, "values"), &profile->n_cells);
        json_take_end(take, object, 3);
    }
    take->where = NULL;
    json_take_end(take, root, 5);
}

static void take_blocks(struct json_take *take, const json_t *root, struct v4_file *file)
{
    const json_t *list;
    check_columns(take, root, "value_columns", "profile metric value");
    file->blocks = take_table(take, root, "contexts", sizeof *file->blocks, &list, &file->n_blocks);
    for (; take->index < file->n_blocks && !take->code; take->index++) {
        struct v4_block *block = &file->blocks[take->index];
        block->cells = take_cells(take, json_array_get(list, take->index), &block->n_cells);
    }
    take->where = NULL;
    json_take_end(take, root, 4);
}

static void take_events(struct json_take *take, const json_t *object, struct v4_trace *trace)
{
    const json_t *list = json_object_get(object, "records");
    size_t n = json_array_size(list);
    if (!json_is_array(list))
        json_take_fail(take, ERR_FORMAT, "records", "a list is expected");
    trace->events = json_take_alloc(take, n, sizeof *trace->events);
    for (; trace->events && trace->n_events < n && !take->code; trace->n_events++) {
        const json_t *row = json_array_get(list, trace->n_events);
        if (is_row(take, row, 2, "record"))
            trace->events[trace->n_events] =
                (struct v4_event){json_take_word(take, json_array_get(row, 0), UINT64_MAX, "time"),
                                  take_u32(take, row, 1, UINT32_MAX, "context")};
    }
}

static void take_traces(struct json_take *take, const json_t *root, struct v4_file *file)
{
    const json_t *list;
    file->min_time_ns = json_take_word_at(take, root, "min_time_ns", UINT64_MAX);
    file->max_time_ns = json_take_word_at(take, root, "max_time_ns", UINT64_MAX);
    file->traces = take_table(take, root, "traces", sizeof *file->traces, &list, &file->n_traces);
    for (; take->index < file->n_traces && !take->code; take->index++) {
        const json_t *object = json_array_get(list, take->index);
        file->traces[take->index].profile = (uint32_t)json_take_word_at(take, object, "profile", UINT32_MAX);
        take_events(take, object, &file->traces[take->index]);
        json_take_end(take, object, 2);
    }
    take->where = NULL;
    json_take_end(take, root, 5);
}

int v4_take_json(struct json_take *take, const json_t *root, struct v4_file *file)
{
    static void (*const parts[V4_KINDS])(struct json_take *, const json_t *, struct v4_file *) = {
        [V4_META] = take_meta, [V4_PROFILE] = take_profiles, [V4_CCT] = take_blocks, [V4_TRACE] = take_traces};
    const char *name = json_string_value(json_object_get(root, "file"));
    enum v4_kind kind = V4_META;
    while (kind < V4_KINDS && (!name || strcmp(name, v4_file_name(kind)) != 0))
        kind++;
    if (kind == V4_KINDS)
        return json_take_fail(take, ERR_FORMAT, "file", "one of meta.db, profile.db, cct.db and trace.db is expected");
    file->kind = kind;
    parts[kind](take, root, file);
    if (take->code)
        v4_fini(file);
    return take->code;
}
