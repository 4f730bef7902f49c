/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing meta.db. All texts are in one section, each once; whatever is pointed to lies before what points to it, but
 * for the contexts, whose places follow from the lengths of those before them. */
#include <stdlib.h>

#include "fmt/v4-write.h"

enum { SECTION_GENERAL, SECTION_KINDS, SECTION_METRICS, SECTION_TREE, SECTION_TEXTS, SECTION_MODULES, SECTION_FILES,
       SECTION_FUNCTIONS };

/* Where things are in the file that grows. */
struct writing {
    const struct v4_meta *meta;
    struct buf *out;
    struct strtab texts;
    uint64_t *text_places; /* [texts.n_strings] */
    uint64_t scopes, modules, files, functions;
    bool failed; /* out of memory */
};

static void note(struct writing *w, const char *text)
{
    w->failed = (text && strtab_intern(&w->texts, text) < 0) || w->failed;
}

static void put_pointer(struct writing *w, const char *text)
{
    int64_t i = text ? strtab_find(&w->texts, text) : -1;
    v4_put(w->out, i < 0 ? 0 : w->text_places[i], 8);
}

/* Pointer to element i - 1 of an array; null for 0. */
static void put_element(struct writing *w, uint64_t array, uint64_t stride_bytes, uint32_t i)
{
    v4_put(w->out, i ? array + (i - 1) * stride_bytes : 0, 8);
}

static void note_texts(struct writing *w)
{
    const struct v4_meta *meta = w->meta;
    note(w, meta->title);
    note(w, meta->description);
    for (size_t i = 0; i < meta->n_kinds; i++)
        note(w, meta->kinds[i]);
    for (size_t i = 0; i < meta->n_scopes; i++)
        note(w, meta->scopes[i].name);
    for (size_t i = 0; i < meta->n_metrics; i++) {
        note(w, meta->metrics[i].name);
        for (size_t k = 0; k < meta->metrics[i].n_summaries; k++)
            note(w, meta->metrics[i].summaries[k].formula);
    }
    for (size_t i = 0; i < meta->n_modules; i++)
        note(w, meta->modules[i].path);
    for (size_t i = 0; i < meta->n_files; i++)
        note(w, meta->files[i].path);
    for (size_t i = 0; i < meta->n_functions; i++)
        note(w, meta->functions[i].name);
    for (size_t i = 0; i < meta->n_entries; i++)
        note(w, meta->entries[i].name);
}

static void write_texts(struct writing *w)
{
    uint64_t at = v4_align(w->out);
    note_texts(w);
    w->text_places = calloc(w->texts.n_strings + 1, sizeof *w->text_places);
    w->failed = w->failed || !w->text_places;
    for (size_t i = 0; !w->failed && i < w->texts.n_strings; i++) {
        w->text_places[i] = w->out->len_bytes;
        buf_printf(w->out, "%s", w->texts.strings[i]);
        buf_append(w->out, "", 1);
    }
    v4_put_section(w->out, SECTION_TEXTS, at);
}

static void write_general(struct writing *w)
{
    uint64_t at = v4_align(w->out);
    put_pointer(w, w->meta->title);
    put_pointer(w, w->meta->description);
    v4_put_section(w->out, SECTION_GENERAL, at);
    at = v4_align(w->out);
    v4_put(w->out, at + 16, 8);
    v4_put(w->out, w->meta->n_kinds, 8);
    for (size_t i = 0; i < w->meta->n_kinds; i++)
        put_pointer(w, w->meta->kinds[i]);
    v4_put_section(w->out, SECTION_KINDS, at);
}

static void put_lists(struct writing *w, const struct v4_metric *metric)
{
    for (size_t i = 0; i < metric->n_instances; i++) {
        put_element(w, w->scopes, 16, metric->instances[i].scope);
        v4_put(w->out, metric->instances[i].metric_id, 8);
    }
    for (size_t i = 0; i < metric->n_summaries; i++) {
        put_element(w, w->scopes, 16, metric->summaries[i].scope);
        put_pointer(w, metric->summaries[i].formula);
        v4_put(w->out, metric->summaries[i].combine, 2);
        v4_put(w->out, metric->summaries[i].metric_id, 6);
    }
}

/* Header, scopes, metrics, then the lists of each metric. */
static void write_metrics(struct writing *w)
{
    const struct v4_meta *meta = w->meta;
    uint64_t at = v4_align(w->out), lists;
    w->scopes = at + 32;
    v4_put(w->out, w->scopes + 16 * meta->n_scopes, 8);
    v4_put(w->out, meta->n_metrics, 4);
    v4_put(w->out, 32 | 16 << 8 | 24 << 16, 4);
    v4_put(w->out, w->scopes, 8);
    v4_put(w->out, meta->n_scopes, 2);
    v4_put(w->out, 16, 6);
    for (size_t i = 0; i < meta->n_scopes; i++) {
        put_pointer(w, meta->scopes[i].name);
        v4_put(w->out, meta->scopes[i].type, 1);
        v4_put(w->out, meta->scopes[i].propagation, 7);
    }
    lists = w->scopes + 16 * meta->n_scopes + 32 * meta->n_metrics;
    for (size_t i = 0; i < meta->n_metrics; i++) {
        const struct v4_metric *metric = &meta->metrics[i];
        uint64_t summaries = lists + 16 * (uint64_t)metric->n_instances;
        put_pointer(w, metric->name);
        v4_put(w->out, lists, 8);
        v4_put(w->out, summaries, 8);
        v4_put(w->out, metric->n_instances, 2);
        v4_put(w->out, metric->n_summaries, 6);
        lists = summaries + 24 * (uint64_t)metric->n_summaries;
    }
    for (size_t i = 0; i < meta->n_metrics; i++)
        put_lists(w, &meta->metrics[i]);
    v4_put_section(w->out, SECTION_METRICS, at);
}

/* Header of a table: it follows at once. */
static uint64_t put_table(struct writing *w, size_t n, unsigned stride_bytes)
{
    uint64_t at = v4_align(w->out);
    v4_put(w->out, at + 16, 8);
    v4_put(w->out, n, 4);
    v4_put(w->out, stride_bytes, 4);
    return at;
}

static uint64_t write_paths(struct writing *w, const struct v4_path *paths, size_t n_paths, unsigned section)
{
    uint64_t at = put_table(w, n_paths, 16);
    for (size_t i = 0; i < n_paths; i++) {
        v4_put(w->out, paths[i].flags, 8);
        put_pointer(w, paths[i].path);
    }
    v4_put_section(w->out, section, at);
    return at + 16;
}

static void write_functions(struct writing *w)
{
    uint64_t at = put_table(w, w->meta->n_functions, 40);
    w->functions = at + 16;
    for (size_t i = 0; i < w->meta->n_functions; i++) {
        const struct v4_function *function = &w->meta->functions[i];
        put_pointer(w, function->name);
        put_element(w, w->modules, 16, function->module);
        v4_put(w->out, function->offset, 8);
        put_element(w, w->files, 16, function->file);
        v4_put(w->out, function->line, 4);
        v4_put(w->out, function->flags, 4);
    }
    v4_put_section(w->out, SECTION_FUNCTIONS, at);
}

static unsigned n_flex_words(const struct v4_context *context)
{
    return (context->flags & V4_HAS_FUNCTION ? 1u : 0) + (context->flags & V4_HAS_SOURCE ? 2u : 0) +
           (context->flags & V4_HAS_POINT ? 2u : 0);
}

/* places [n_contexts + 1]. */
static void put_children(struct writing *w, const uint64_t *places, uint32_t first, uint32_t n)
{
    v4_put(w->out, n ? places[first + n] - places[first] : 0, 8);
    v4_put(w->out, n ? places[first] : 0, 8);
}

static void put_context(struct writing *w, const uint64_t *places, const struct v4_context *context)
{
    put_children(w, places, context->first_child, context->n_children);
    v4_put(w->out, context->ctx_id, 4);
    v4_put(w->out, context->flags, 1);
    v4_put(w->out, context->relation, 1);
    v4_put(w->out, context->lexical, 1);
    v4_put(w->out, n_flex_words(context), 1);
    v4_put(w->out, context->propagation, 8);
    if (context->flags & V4_HAS_FUNCTION)
        put_element(w, w->functions, 40, context->function);
    if (context->flags & V4_HAS_SOURCE) {
        put_element(w, w->files, 16, context->file);
        v4_put(w->out, context->line, 8);
    }
    if (context->flags & V4_HAS_POINT) {
        put_element(w, w->modules, 16, context->module);
        v4_put(w->out, context->offset, 8);
    }
}

static void write_tree(struct writing *w)
{
    const struct v4_meta *meta = w->meta;
    uint64_t at = v4_align(w->out);
    uint64_t *places = calloc(meta->n_contexts + 1, sizeof *places);
    w->failed = w->failed || !places;
    if (!places)
        return;
    places[0] = at + 16 + 32 * meta->n_entries;
    for (size_t i = 0; i < meta->n_contexts; i++)
        places[i + 1] = places[i] + 32 + 8 * (uint64_t)n_flex_words(&meta->contexts[i]);
    v4_put(w->out, at + 16, 8);
    v4_put(w->out, meta->n_entries, 2);
    v4_put(w->out, 32, 6);
    for (size_t i = 0; i < meta->n_entries; i++) {
        put_children(w, places, meta->entries[i].first_child, meta->entries[i].n_children);
        v4_put(w->out, meta->entries[i].ctx_id, 4);
        v4_put(w->out, meta->entries[i].kind, 4);
        put_pointer(w, meta->entries[i].name);
    }
    for (size_t i = 0; i < meta->n_contexts; i++)
        put_context(w, places, &meta->contexts[i]);
    free(places);
    v4_put_section(w->out, SECTION_TREE, at);
}

int v4_write_meta(const struct v4_meta *meta, struct buf *out, struct error *err)
{
    struct writing w = {.meta = meta, .out = out};
    if (meta->n_kinds > UINT8_MAX || meta->n_scopes > UINT16_MAX || meta->n_entries > UINT16_MAX ||
        meta->n_metrics > UINT32_MAX || meta->n_contexts > UINT32_MAX || meta->n_functions > UINT32_MAX)
        return error_set(err, ERR_RANGE, "A meta.db cannot hold that many metrics, functions or contexts");
    write_texts(&w);
    if (!w.failed) {
        write_general(&w);
        write_metrics(&w);
        w.modules = write_paths(&w, meta->modules, meta->n_modules, SECTION_MODULES);
        w.files = write_paths(&w, meta->files, meta->n_files, SECTION_FILES);
        write_functions(&w);
        write_tree(&w);
    }
    strtab_fini(&w.texts);
    free(w.text_places);
    return w.failed ? error_set(err, ERR_MEMORY, "out of memory while writing a meta.db") : 0;
}
