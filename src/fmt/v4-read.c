/* SPDX-License-Identifier: BSD-3-Clause */
/* Reader of version 4 files: the tree of contexts and the tables of meta.db, then profile.db, cct.db and trace.db. */
#include "fmt/v4.h"

#include <stdlib.h>
#include <string.h>

enum {
    SECTION_GENERAL,
    SECTION_KINDS,
    SECTION_METRICS,
    SECTION_TREE,
    SECTION_TEXTS,
    SECTION_MODULES,
    SECTION_FILES,
    SECTION_FUNCTIONS
};

/* --- the tree of contexts --- */

/* Reading the tree of contexts in meta.db, breadth first and without recursion: siblings lie next to each other in the
 * file, and the list of contexts read so far is the queue of those whose children come next. */

enum { CONTEXT_BYTES = 32, ENTRY_BYTES = 32 };

struct reading {
    struct v4_in *in;
    const struct v4_table *modules, *files, *functions;
    size_t capacity, n_max; /* contexts; no file holds more than n_max */
    uint64_t *places;       /* [cap_places] where each context is */
    size_t cap_places;
};

/* Takes the fields that the flags say are there. */
static void read_flex(const struct reading *reading, uint64_t at, uint64_t n_words, struct v4_context *context)
{
    static const unsigned n_of[] = {[V4_HAS_FUNCTION] = 1, [V4_HAS_SOURCE] = 2, [V4_HAS_POINT] = 2};
    struct v4_in *in = reading->in;
    unsigned n_needed = 0;
    for (unsigned bit = 1; bit <= V4_HAS_POINT; bit *= 2)
        n_needed += context->flags & bit ? n_of[bit] : 0;
    if (!in->code && n_needed > n_words)
        v4_fail(in, at, ERR_FORMAT, "a context has %u words of fields, its flags need %u", (unsigned)n_words, n_needed);
    at += CONTEXT_BYTES;
    if (context->flags & V4_HAS_FUNCTION) {
        context->function = v4_get_index(in, v4_get(in, at, 8), reading->functions, "the function of a context");
        at += 8;
    }
    if (context->flags & V4_HAS_SOURCE) {
        context->file = v4_get_index(in, v4_get(in, at, 8), reading->files, "the file of a context");
        context->line = (uint32_t)v4_get(in, at + 8, 4);
        at += 16;
    }
    if (context->flags & V4_HAS_POINT) {
        context->module = v4_get_index(in, v4_get(in, at, 8), reading->modules, "the module of a context");
        context->offset = v4_get(in, at + 8, 8);
    }
}

static bool make_room(struct reading *reading, uint64_t at)
{
    struct v4_in *in = reading->in;
    struct v4_meta *meta = &in->file->meta;
    if (meta->n_contexts >= reading->n_max)
        v4_fail(in, at, ERR_FORMAT, "there are more contexts than the file has room for: some are their own parents");
    else if (!vec_reserve(&meta->contexts, &reading->capacity, meta->n_contexts + 1, sizeof *meta->contexts) ||
             !vec_reserve(&reading->places, &reading->cap_places, meta->n_contexts + 1, sizeof *reading->places))
        v4_fail(in, at, ERR_MEMORY, "out of memory for %zu contexts", meta->n_contexts);
    return !in->code;
}

/* Reads the contexts in len_bytes at place, children of parent. */
static uint32_t read_list(struct reading *reading, uint64_t place, uint64_t len_bytes, uint32_t parent)
{
    struct v4_in *in = reading->in;
    struct v4_meta *meta = &in->file->meta;
    uint32_t n = 0;
    if (!v4_has(in, place, len_bytes, 1, "the children of a context"))
        return 0;
    for (uint64_t at = place, end = place + len_bytes; !in->code && at < end; n++) {
        uint64_t n_words = v4_get(in, at + 23, 1), n_bytes = CONTEXT_BYTES + 8 * n_words;
        if (n_bytes > end - at)
            v4_fail(in, at, ERR_FORMAT, "a context of %u bytes is longer than its list", (unsigned)n_bytes);
        if (in->code || !make_room(reading, at))
            break;
        struct v4_context *context = &meta->contexts[meta->n_contexts];
        *context = (struct v4_context){.ctx_id = (uint32_t)v4_get(in, at + 16, 4), .parent = parent};
        context->flags = (uint8_t)v4_get(in, at + 20, 1);
        context->relation = (uint8_t)v4_get(in, at + 21, 1);
        context->lexical = (uint8_t)v4_get(in, at + 22, 1);
        context->propagation = (uint16_t)v4_get(in, at + 24, 2);
        read_flex(reading, at, n_words, context);
        reading->places[meta->n_contexts++] = at;
        at += n_bytes;
    }
    return n;
}

static void read_entries(struct reading *reading)
{
    struct v4_in *in = reading->in;
    struct v4_meta *meta = &in->file->meta;
    struct v4_section section = v4_get_section(in, SECTION_TREE, 11, "Context Tree");
    uint64_t list = v4_get(in, section.offset, 8), n = v4_get(in, section.offset + 8, 2);
    uint64_t stride = v4_get(in, section.offset + 10, 1);
    reading->n_max = in->len_bytes / CONTEXT_BYTES;
    if (!in->code && n && stride < ENTRY_BYTES)
        v4_fail(in, section.offset + 10, ERR_FORMAT, "entry points of %u bytes, at least 32 are needed",
                (unsigned)stride);
    if (v4_has(in, list, n, stride, "entry points"))
        meta->entries = v4_alloc(in, n, sizeof *meta->entries);
    meta->n_entries = meta->entries ? n : 0;
    for (size_t i = 0; i < meta->n_entries; i++) {
        uint64_t at = list + i * stride;
        struct v4_entry *entry = &meta->entries[i];
        entry->ctx_id = (uint32_t)v4_get(in, at + 16, 4);
        entry->kind = (uint16_t)v4_get(in, at + 20, 2);
        entry->name = v4_get_text(in, v4_get(in, at + 24, 8), "the name of an entry point");
        entry->first_child = (uint32_t)meta->n_contexts;
        entry->n_children = read_list(reading, v4_get(in, at + 8, 8), v4_get(in, at, 8), 0);
    }
}

static void v4_read_tree(struct v4_in *in, const struct v4_table *modules, const struct v4_table *files,
                         const struct v4_table *functions)
{
    struct v4_meta *meta = &in->file->meta;
    struct reading reading = {.in = in, .modules = modules, .files = files, .functions = functions};
    read_entries(&reading);
    for (size_t i = 0; !in->code && i < meta->n_contexts; i++) {
        uint64_t at = reading.places[i];
        uint32_t first = (uint32_t)meta->n_contexts;
        uint32_t n = read_list(&reading, v4_get(in, at + 8, 8), v4_get(in, at, 8), (uint32_t)i + 1);
        meta->contexts[i].first_child = first;
        meta->contexts[i].n_children = n;
    }
    free(reading.places);
}

/* --- the tables of meta.db --- */

static void read_general(struct v4_in *in)
{
    struct v4_section at = v4_get_section(in, SECTION_GENERAL, 16, "General Properties");
    in->file->meta.title = v4_get_text(in, v4_get(in, at.offset, 8), "the title");
    in->file->meta.description = v4_get_text(in, v4_get(in, at.offset + 8, 8), "the description");
}

static void read_kinds(struct v4_in *in)
{
    struct v4_meta *meta = &in->file->meta;
    struct v4_section at = v4_get_section(in, SECTION_KINDS, 9, "Identifier Names");
    uint64_t names = v4_get(in, at.offset, 8), n = v4_get(in, at.offset + 8, 1);
    if (v4_has(in, names, n, 8, "the names of identifiers"))
        meta->kinds = v4_alloc(in, n, sizeof *meta->kinds);
    for (uint64_t i = 0; meta->kinds && i < n; i++)
        meta->kinds[i] = v4_get_text(in, v4_get(in, names + 8 * i, 8), "the name of an identifier");
    meta->n_kinds = meta->kinds ? n : 0;
}

static struct v4_table read_scopes(struct v4_in *in, uint64_t at)
{
    struct v4_meta *meta = &in->file->meta;
    struct v4_table table = {v4_get(in, at + 16, 8), v4_get(in, at + 26, 1), v4_get(in, at + 24, 2)};
    if (!in->code && table.n && table.stride_bytes < 16)
        v4_fail(in, at + 26, ERR_FORMAT, "scopes of %u bytes, at least 16 are needed", (unsigned)table.stride_bytes);
    if (v4_has(in, table.offset, table.n, table.stride_bytes, "scopes"))
        meta->scopes = v4_alloc(in, table.n, sizeof *meta->scopes);
    meta->n_scopes = meta->scopes ? table.n : 0;
    for (size_t i = 0; i < meta->n_scopes; i++) {
        uint64_t scope = table.offset + i * table.stride_bytes;
        meta->scopes[i].name = v4_get_text(in, v4_get(in, scope, 8), "the name of a scope");
        meta->scopes[i].type = (uint8_t)v4_get(in, scope + 8, 1);
        meta->scopes[i].propagation = (uint8_t)v4_get(in, scope + 9, 1);
    }
    return table;
}

/* Where the metrics section begins, and how long its instances and summaries are. */
struct metric_layout {
    uint64_t instance_bytes, summary_bytes;
    struct v4_table scopes;
};

static void read_instances(struct v4_in *in, uint64_t at, const struct metric_layout *layout, struct v4_metric *metric)
{
    uint64_t list = v4_get(in, at + 8, 8), n = v4_get(in, at + 24, 2);
    if (v4_has(in, list, n, layout->instance_bytes, "the scopes of a metric"))
        metric->instances = v4_alloc(in, n, sizeof *metric->instances);
    metric->n_instances = metric->instances ? (uint16_t)n : 0;
    for (size_t i = 0; i < metric->n_instances; i++) {
        uint64_t one = list + i * layout->instance_bytes;
        metric->instances[i].scope = v4_get_index(in, v4_get(in, one, 8), &layout->scopes, "the scope of a metric");
        metric->instances[i].metric_id = (uint16_t)v4_get(in, one + 8, 2);
    }
}

static void read_summaries(struct v4_in *in, uint64_t at, const struct metric_layout *layout, struct v4_metric *metric)
{
    uint64_t list = v4_get(in, at + 16, 8), n = v4_get(in, at + 26, 2);
    if (v4_has(in, list, n, layout->summary_bytes, "the summaries of a metric"))
        metric->summaries = v4_alloc(in, n, sizeof *metric->summaries);
    metric->n_summaries = metric->summaries ? (uint16_t)n : 0;
    for (size_t i = 0; i < metric->n_summaries; i++) {
        uint64_t one = list + i * layout->summary_bytes;
        struct v4_summary *summary = &metric->summaries[i];
        summary->scope = v4_get_index(in, v4_get(in, one, 8), &layout->scopes, "the scope of a summary");
        summary->formula = v4_get_text(in, v4_get(in, one + 8, 8), "the formula of a summary");
        summary->combine = (uint8_t)v4_get(in, one + 16, 1);
        summary->metric_id = (uint16_t)v4_get(in, one + 18, 2);
    }
}

static void read_metrics(struct v4_in *in)
{
    struct v4_meta *meta = &in->file->meta;
    uint64_t at = v4_get_section(in, SECTION_METRICS, 27, "Performance Metrics").offset;
    struct v4_table table = v4_get_table(in, at, at + 12, 1, 28, "metrics");
    struct metric_layout layout = {v4_get(in, at + 13, 1), v4_get(in, at + 14, 1), read_scopes(in, at)};
    if (!in->code && table.n && (layout.instance_bytes < 10 || layout.summary_bytes < 20))
        v4_fail(in, at + 13, ERR_FORMAT, "the scopes or summaries of a metric are too short");
    meta->metrics = v4_alloc(in, table.n, sizeof *meta->metrics);
    meta->n_metrics = meta->metrics ? table.n : 0;
    for (size_t i = 0; i < meta->n_metrics; i++) {
        uint64_t one = table.offset + i * table.stride_bytes;
        meta->metrics[i].name = v4_get_text(in, v4_get(in, one, 8), "the name of a metric");
        read_instances(in, one, &layout, &meta->metrics[i]);
        read_summaries(in, one, &layout, &meta->metrics[i]);
    }
}

static struct v4_table read_paths(struct v4_in *in, unsigned section, const char *what, struct v4_path **paths,
                                  size_t *n_paths)
{
    uint64_t at = v4_get_section(in, section, 14, what).offset;
    struct v4_table table = v4_get_table(in, at, at + 12, 2, 16, what);
    *paths = v4_alloc(in, table.n, sizeof **paths);
    *n_paths = *paths ? table.n : 0;
    for (size_t i = 0; i < *n_paths; i++) {
        uint64_t one = table.offset + i * table.stride_bytes;
        (*paths)[i].flags = (uint32_t)v4_get(in, one, 4);
        (*paths)[i].path = v4_get_text(in, v4_get(in, one + 8, 8), what);
    }
    return table;
}

static struct v4_table read_functions(struct v4_in *in, const struct v4_table *modules, const struct v4_table *files)
{
    struct v4_meta *meta = &in->file->meta;
    uint64_t at = v4_get_section(in, SECTION_FUNCTIONS, 14, "Functions").offset;
    struct v4_table table = v4_get_table(in, at, at + 12, 2, 40, "Functions");
    meta->functions = v4_alloc(in, table.n, sizeof *meta->functions);
    meta->n_functions = meta->functions ? table.n : 0;
    for (size_t i = 0; i < meta->n_functions; i++) {
        uint64_t one = table.offset + i * table.stride_bytes;
        struct v4_function *function = &meta->functions[i];
        function->name = v4_get_text(in, v4_get(in, one, 8), "the name of a function");
        function->module = v4_get_index(in, v4_get(in, one + 8, 8), modules, "the module of a function");
        function->offset = v4_get(in, one + 16, 8);
        function->file = v4_get_index(in, v4_get(in, one + 24, 8), files, "the file of a function");
        function->line = (uint32_t)v4_get(in, one + 32, 4);
        function->flags = (uint32_t)v4_get(in, one + 36, 4);
    }
    return table;
}

void v4_read_meta(struct v4_in *in)
{
    struct v4_meta *meta = &in->file->meta;
    read_general(in);
    read_kinds(in);
    read_metrics(in);
    struct v4_table modules = read_paths(in, SECTION_MODULES, "Load Modules", &meta->modules, &meta->n_modules);
    struct v4_table files = read_paths(in, SECTION_FILES, "Source Files", &meta->files, &meta->n_files);
    struct v4_table functions = read_functions(in, &modules, &files);
    (void)v4_get_section(in, SECTION_TEXTS, 0, "Common Strings");
    v4_read_tree(in, &modules, &files, &functions);
}

/* --- profile.db, cct.db and trace.db --- */

/* Reading the values: profile.db, cct.db, which hold the same ones in two orders, and trace.db. */

/* A list of values and its index, of either order. In profile.db a value is (metric, value), an index (context, start);
 * in cct.db a value is (profile, value), an index (metric, start). */
struct list {
    uint64_t n_values, values, n_indices, indices;
    unsigned major_bytes, minor_bytes; /* of the ids in an index and in a value */
};

/* Fills cells of one index entry; false when the ids do not ascend. */
static void read_run(struct v4_in *in, const struct list *list, uint64_t major, uint64_t from, uint64_t to,
                     struct v4_cell *cells)
{
    unsigned value_bytes = list->minor_bytes + 8;
    uint64_t before = 0;
    for (uint64_t i = from; !in->code && i < to; i++) {
        uint64_t at = list->values + i * value_bytes, minor = v4_get(in, at, list->minor_bytes);
        bool by_profile = list->minor_bytes == 2;
        if (i > from && minor <= before)
            v4_fail(in, at, ERR_FORMAT, "the values are not in ascending order");
        before = minor;
        cells[i].id = (uint32_t)(by_profile ? major : minor);
        cells[i].metric_id = (uint16_t)(by_profile ? minor : major);
        cells[i].value = v4_get_double(in, at + list->minor_bytes);
    }
}

static struct v4_cell *read_cells(struct v4_in *in, const struct list *list)
{
    unsigned value_bytes = list->minor_bytes + 8, index_bytes = list->major_bytes + 8;
    if (!v4_has(in, list->values, list->n_values, value_bytes, "values") ||
        !v4_has(in, list->indices, list->n_indices, index_bytes, "the index of values"))
        return NULL;
    if (list->n_values && !list->n_indices)
        v4_fail(in, list->indices, ERR_FORMAT, "there are values, but no index of them");
    struct v4_cell *cells = v4_alloc(in, list->n_values, sizeof *cells);
    uint64_t before = 0, major_before = 0;
    for (uint64_t i = 0; !in->code && i < list->n_indices; i++) {
        uint64_t at = list->indices + i * index_bytes, major = v4_get(in, at, list->major_bytes);
        uint64_t from = v4_get(in, at + list->major_bytes, 8);
        uint64_t to = i + 1 < list->n_indices ? v4_get(in, at + index_bytes + list->major_bytes, 8) : list->n_values;
        if (from != before || to < from || to > list->n_values || (i && major <= major_before))
            v4_fail(in, at, ERR_FORMAT, "the index of values is not in ascending order or leads beyond them");
        else
            read_run(in, list, major, from, to, cells);
        before = to;
        major_before = major;
    }
    return cells;
}

static void read_ids(struct v4_in *in, uint64_t at, struct v4_profile *profile)
{
    uint64_t n = at ? v4_get(in, at, 2) : 0;
    if (v4_has(in, at + 8, n, 16, "the identifiers of a profile") && n)
        profile->ids = v4_alloc(in, n, sizeof *profile->ids);
    profile->n_ids = profile->ids ? (uint16_t)n : 0;
    for (size_t i = 0; i < profile->n_ids; i++) {
        uint64_t one = at + 8 + 16 * i;
        profile->ids[i].kind = (uint8_t)v4_get(in, one, 1);
        profile->ids[i].flags = (uint16_t)v4_get(in, one + 2, 2);
        profile->ids[i].logical = (uint32_t)v4_get(in, one + 4, 4);
        profile->ids[i].physical = v4_get(in, one + 8, 8);
    }
}

void v4_read_profile_info(struct v4_in *in, uint64_t offset, struct v4_profile *profile)
{
    read_ids(in, v4_get(in, offset + 32, 8), profile);
    profile->flags = (uint32_t)v4_get(in, offset + 40, 4);
}

void v4_read_profiles(struct v4_in *in)
{
    struct v4_file *file = in->file;
    uint64_t at = v4_get_section(in, 0, 13, "Profile Infos").offset;
    (void)v4_get_section(in, 1, 0, "Identifier Tuples");
    struct v4_table table = v4_get_table(in, at, at + 12, 1, 44, "profiles");
    file->profiles = v4_alloc(in, table.n, sizeof *file->profiles);
    file->n_profiles = file->profiles ? table.n : 0;
    for (size_t i = 0; i < file->n_profiles && !in->code; i++) {
        uint64_t one = table.offset + i * table.stride_bytes;
        struct list list = {
            v4_get(in, one, 8), v4_get(in, one + 8, 8), v4_get(in, one + 16, 4), v4_get(in, one + 24, 8), 4, 2};
        v4_read_profile_info(in, one, &file->profiles[i]);
        file->profiles[i].cells = read_cells(in, &list);
        file->profiles[i].n_cells = file->profiles[i].cells ? list.n_values : 0;
    }
}

void v4_read_blocks(struct v4_in *in)
{
    struct v4_file *file = in->file;
    uint64_t at = v4_get_section(in, 0, 13, "Context Infos").offset;
    struct v4_table table = v4_get_table(in, at, at + 12, 1, 32, "contexts");
    file->blocks = v4_alloc(in, table.n, sizeof *file->blocks);
    file->n_blocks = file->blocks ? table.n : 0;
    for (size_t i = 0; i < file->n_blocks && !in->code; i++) {
        uint64_t one = table.offset + i * table.stride_bytes;
        struct list list = {
            v4_get(in, one, 8), v4_get(in, one + 8, 8), v4_get(in, one + 16, 2), v4_get(in, one + 24, 8), 2, 4};
        file->blocks[i].cells = read_cells(in, &list);
        file->blocks[i].n_cells = file->blocks[i].cells ? list.n_values : 0;
    }
}

static void read_events(struct v4_in *in, uint64_t from, uint64_t to, struct v4_trace *trace)
{
    if (!in->code && (to < from || (to - from) % 12))
        v4_fail(in, from, ERR_FORMAT, "a trace ends where none of its records does");
    uint64_t n = in->code ? 0 : (to - from) / 12;
    if (v4_has(in, from, n, 12, "the records of a trace"))
        trace->events = v4_alloc(in, n, sizeof *trace->events);
    trace->n_events = trace->events ? n : 0;
    for (size_t i = 0; i < trace->n_events; i++) {
        trace->events[i].time_ns = v4_get(in, from + 12 * i, 8);
        trace->events[i].ctx_id = (uint32_t)v4_get(in, from + 12 * i + 8, 4);
    }
}

void v4_read_traces(struct v4_in *in)
{
    struct v4_file *file = in->file;
    uint64_t at = v4_get_section(in, 0, 32, "Context Trace Headers").offset;
    struct v4_table table = v4_get_table(in, at, at + 12, 1, 24, "traces");
    file->min_time_ns = v4_get(in, at + 16, 8);
    file->max_time_ns = v4_get(in, at + 24, 8);
    file->traces = v4_alloc(in, table.n, sizeof *file->traces);
    file->n_traces = file->traces ? table.n : 0;
    for (size_t i = 0; i < file->n_traces && !in->code; i++) {
        uint64_t one = table.offset + i * table.stride_bytes;
        file->traces[i].profile = (uint32_t)v4_get(in, one, 4);
        read_events(in, v4_get(in, one + 8, 8), v4_get(in, one + 16, 8), &file->traces[i]);
    }
}
