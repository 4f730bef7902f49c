/* SPDX-License-Identifier: BSD-3-Clause */
/* Version 4 files as text, one line for each thing. Contexts are indented below their parents. */
#include <inttypes.h>

#include "fmt/json-put.h"
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
