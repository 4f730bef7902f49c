/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading meta.db: names, metrics and tables; the tree is in v4-read-tree.c. */
#include <stdlib.h>

#include "fmt/v4-wire.h"

enum { SECTION_GENERAL, SECTION_KINDS, SECTION_METRICS, SECTION_TREE, SECTION_TEXTS, SECTION_MODULES, SECTION_FILES,
       SECTION_FUNCTIONS };

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
