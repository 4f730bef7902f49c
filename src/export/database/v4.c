/* SPDX-License-Identifier: BSD-3-Clause */
/* meta.db of a model: functions, inlined functions, variables and placeholders are function contexts; statements, call
 * sites and positions are line contexts. */
#include "export/v4-export.h"

#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {"SUMMARY", "NODE", "RANK", "THREAD"};

enum { N_KINDS = sizeof kind_names / sizeof *kind_names, N_SCOPES = 2 };

struct maker {
    const struct model *model;
    const struct source_copies *copies;
    struct strtab *texts;
    struct v4_meta *meta;
    uint32_t *modules, *files; /* [n_strings] index + 1, 0 = not used; string 0 of files: not known */
    uint32_t *functions;       /* [n_scopes] index + 1 */
    uint32_t *scope_of;        /* [n_contexts] */
    bool failed;               /* out of memory */
};

/* Length of the UTF-8 character at p, 0 when there is none. */
static size_t utf8_len(const char *p)
{
    const unsigned char *c = (const unsigned char *)p;
    size_t n = c[0] < 0x80                   ? 1
               : c[0] >= 0xc2 && c[0] < 0xe0 ? 2
               : (c[0] & 0xf0) == 0xe0       ? 3
               : (c[0] & 0xf8) == 0xf0       ? 4
                                             : 0;
    for (size_t i = 1; i < n; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xf0 && c[1] < 0x90);
    bool beyond = (c[0] == 0xed && c[1] >= 0xa0) || (c[0] == 0xf4 && c[1] >= 0x90) || c[0] > 0xf4;
    return overlong || beyond ? 0 : n;
}

/* The text as the format can hold it: UTF-8, or ASCII for what some readers take byte by byte. */
static const char *clean(struct maker *maker, const char *text, bool ascii)
{
    struct buf out = {0};
    for (const char *p = text; *p;) {
        size_t n = utf8_len(p);
        bool fits = n == 1 || (n && !ascii);
        buf_append(&out, fits ? p : "?", fits ? n : 1);
        p += n ? n : 1;
    }
    int64_t i = out.failed ? -1 : strtab_intern(maker->texts, out.data ? out.data : "");
    buf_fini(&out);
    maker->failed = maker->failed || i < 0;
    return i < 0 ? NULL : maker->texts->strings[i];
}

static void *make(struct maker *maker, size_t n_items, size_t item_bytes)
{
    void *memory = calloc(n_items + 1, item_bytes);
    maker->failed = maker->failed || !memory;
    return memory;
}

static bool is_procedure(const struct scope *scope)
{
    return scope->kind == SCOPE_PROC || scope->kind == SCOPE_INLINED;
}

/* String id of the file that a line context lies in. */
static uint32_t file_of(const struct model *model, uint32_t i)
{
    while (i && !is_procedure(&model->scopes[i]) && model->scopes[i].kind != SCOPE_PLACE &&
           model->scopes[i].kind != SCOPE_LOOP)
        i = model->scopes[i].parent;
    return model->scopes[i].file;
}

static void make_general(struct maker *maker, const struct columns *columns, const char *title)
{
    struct v4_meta *meta = maker->meta;
    meta->title = clean(maker, title, true);
    meta->description = "";
    meta->kinds = make(maker, N_KINDS, sizeof *meta->kinds);
    meta->scopes = make(maker, N_SCOPES, sizeof *meta->scopes);
    meta->metrics = make(maker, columns->n_pairs, sizeof *meta->metrics);
    if (maker->failed)
        return;
    for (meta->n_kinds = 0; meta->n_kinds < N_KINDS; meta->n_kinds++)
        meta->kinds[meta->n_kinds] = kind_names[meta->n_kinds];
    meta->scopes[V4_ID_FUNCTION] = (struct v4_scope){"function", V4_SCOPE_TRANSITIVE, 0};
    meta->scopes[V4_ID_EXECUTION] = (struct v4_scope){"execution", V4_SCOPE_EXECUTION, UINT8_MAX};
    meta->n_scopes = N_SCOPES;
}

/* combine: 0 sum, 1 min, 2 max */
static const struct {
    const char *formula;
    uint8_t combine;
} statistics[V4_STATISTICS] = {
    [V4_SUM] = {"$$", 0},  [V4_MIN] = {"$$", 1},         [V4_MAX] = {"$$", 2},
    [V4_COUNT] = {"1", 0}, [V4_SQUARES] = {"($$^2)", 0},
};

static void make_metrics(struct maker *maker, const struct columns *columns)
{
    struct v4_meta *meta = maker->meta;
    size_t n_ids = V4_IDS_PER_METRIC * columns->n_pairs;
    for (size_t i = 0; !maker->failed && i < columns->n_pairs; i++) {
        struct v4_metric *metric = &meta->metrics[meta->n_metrics++];
        metric->name = clean(maker, v4_export_name(&columns->pairs[i]), true);
        metric->instances = make(maker, N_SCOPES, sizeof *metric->instances);
        metric->summaries = make(maker, N_SCOPES * V4_STATISTICS, sizeof *metric->summaries);
        for (uint16_t k = 0; !maker->failed && k < N_SCOPES; k++) {
            uint16_t id = (uint16_t)(V4_IDS_PER_METRIC * i + k);
            metric->instances[k] = (struct v4_instance){k + 1u, id};
            metric->n_instances = (uint16_t)(k + 1);
            for (size_t i_stat = 0; i_stat < V4_STATISTICS; i_stat++)
                metric->summaries[metric->n_summaries++] =
                    (struct v4_summary){k + 1u, statistics[i_stat].formula, statistics[i_stat].combine,
                                        (uint16_t)(i_stat * n_ids + id)};
        }
    }
}

/* Turns the strings that are marked into a table, in their order. copies: of these paths, NULL = none. */
static void make_paths(struct maker *maker, uint32_t *used, const char *nameless, const struct source_copies *copies,
                       struct v4_path **paths, size_t *n_paths)
{
    *paths = make(maker, maker->model->strings.n_strings, sizeof **paths);
    for (uint32_t i = 0; !maker->failed && i < maker->model->strings.n_strings; i++)
        if (used[i]) {
            struct buf name = {0};
            sources_name(copies, maker->model, i, "", &name);
            (*paths)[*n_paths].flags = copies && copies->is_copied && copies->is_copied[i] ? V4_FILE_COPIED : 0;
            (*paths)[*n_paths].path = clean(maker, i ? (name.data ? name.data : "") : nameless, false);
            maker->failed = maker->failed || name.failed;
            used[i] = (uint32_t)++ * n_paths;
            buf_fini(&name);
        }
}

static void make_tables(struct maker *maker)
{
    const struct model *model = maker->model;
    for (uint32_t i = 1; i < model->n_scopes; i++) {
        const struct scope *scope = &model->scopes[i];
        if (is_procedure(scope)) {
            maker->modules[scope->module] |= scope->module != 0;
            maker->files[scope->file] |= scope->file != 0;
        } else
            maker->files[file_of(model, i)] = 1;
    }
    make_paths(maker, maker->modules, "", NULL, &maker->meta->modules, &maker->meta->n_modules);
    make_paths(maker, maker->files, "<unknown file>", maker->copies, &maker->meta->files, &maker->meta->n_files);
}

static int compare_words(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_texts(const struct model *model, uint32_t a, uint32_t b)
{
    return a == b ? 0 : strcmp(model_text(model, a), model_text(model, b));
}

static int compare_functions(const void *a, const void *b, void *context)
{
    const struct model *model = context;
    const struct scope *x = &model->scopes[*(const uint32_t *)a], *y = &model->scopes[*(const uint32_t *)b];
    int order = compare_texts(model, x->name, y->name);
    order = order ? order : compare_texts(model, x->module, y->module);
    order = order ? order : compare_texts(model, x->file, y->file);
    order = order ? order : compare_words(x->line, y->line);
    return order ? order : compare_words(x->vaddr, y->vaddr);
}

static void make_functions(struct maker *maker)
{
    const struct model *model = maker->model;
    struct v4_meta *meta = maker->meta;
    uint32_t *scopes = make(maker, model->n_scopes, sizeof *scopes), n = 0;
    meta->functions = make(maker, model->n_scopes, sizeof *meta->functions);
    for (uint32_t i = 1; !maker->failed && i < model->n_scopes; i++)
        if (is_procedure(&model->scopes[i]))
            scopes[n++] = i;
    if (n)
        qsort_r(scopes, n, sizeof *scopes, compare_functions, (void *)(uintptr_t)model);
    for (uint32_t i = 0; i < n; i++) {
        const struct scope *scope = &model->scopes[scopes[i]];
        if (i == 0 || compare_functions(&scopes[i], &scopes[i - 1], (void *)(uintptr_t)model) != 0)
            meta->functions[meta->n_functions++] =
                (struct v4_function){.name = clean(maker, model_text(model, scope->name), false),
                                     .module = maker->modules[scope->module],
                                     .offset = scope->vaddr,
                                     .file = scope->file ? maker->files[scope->file] : 0,
                                     .line = scope->line};
        maker->functions[scopes[i]] = (uint32_t)meta->n_functions;
    }
    free(scopes);
}

/* Appends the children of scope, but for the data-centric root; returns how many. parent: context + 1. */
static uint32_t add_children(struct maker *maker, uint32_t scope, uint32_t parent)
{
    const struct model *model = maker->model;
    struct v4_meta *meta = maker->meta;
    uint32_t n = 0, data = model_data_root(model);
    for (uint32_t i = model->scopes[scope].first_child; i; i = model->scopes[i].next_sibling) {
        const struct scope *child = &model->scopes[i];
        struct v4_context *context = &meta->contexts[meta->n_contexts];
        if (scope == 0 && i == data)
            continue;
        *context = (struct v4_context){.ctx_id = i, .parent = parent};
        if (is_procedure(child)) {
            context->flags = V4_HAS_FUNCTION;
            context->relation = child->kind == SCOPE_INLINED ? V4_INLINED : V4_CALL;
            context->lexical = V4_FUNCTION;
            context->function = maker->functions[i];
        } else {
            context->flags = V4_HAS_SOURCE;
            context->lexical = child->kind == SCOPE_LOOP ? V4_LOOP : V4_LINE;
            context->propagation = 1;
            context->file = maker->files[file_of(model, i)];
            context->line = child->line;
        }
        maker->scope_of[meta->n_contexts++] = i;
        n++;
    }
    return n;
}

static void add_entry(struct maker *maker, const char *name, uint16_t kind, uint32_t scope, uint32_t ctx_id)
{
    struct v4_meta *meta = maker->meta;
    struct v4_entry entry = {.name = name, .ctx_id = ctx_id, .kind = kind};
    entry.first_child = (uint32_t)meta->n_contexts;
    entry.n_children = add_children(maker, scope, 0);
    meta->entries[meta->n_entries++] = entry;
}

static void make_tree(struct maker *maker)
{
    const struct model *model = maker->model;
    struct v4_meta *meta = maker->meta;
    uint32_t data = model_data_root(model);
    const char *data_name = clean(maker, model_text(model, model->scopes[data].name), false);
    meta->entries = make(maker, 2, sizeof *meta->entries);
    meta->contexts = make(maker, model->n_scopes, sizeof *meta->contexts);
    if (maker->failed)
        return;
    add_entry(maker, "main thread", V4_ENTRY_MAIN, 0, (uint32_t)model->n_scopes);
    if (data)
        add_entry(maker, data_name, V4_ENTRY_UNKNOWN, data, data);
    for (uint32_t i = 0; i < meta->n_contexts; i++) {
        uint32_t first = (uint32_t)meta->n_contexts, n = add_children(maker, maker->scope_of[i], i + 1);
        meta->contexts[i].first_child = first;
        meta->contexts[i].n_children = n;
    }
}

int v4_export_meta(const struct model *model, const struct columns *columns, const char *title,
                   const struct source_copies *copies, struct strtab *texts, struct v4_file *file, struct error *err)
{
    struct maker maker = {.model = model, .copies = copies, .texts = texts, .meta = &file->meta};
    maker.modules = make(&maker, model->strings.n_strings, sizeof *maker.modules);
    maker.files = make(&maker, model->strings.n_strings, sizeof *maker.files);
    maker.functions = make(&maker, model->n_scopes, sizeof *maker.functions);
    maker.scope_of = make(&maker, model->n_scopes, sizeof *maker.scope_of);
    make_general(&maker, columns, title);
    make_metrics(&maker, columns);
    if (!maker.failed)
        make_tables(&maker);
    if (!maker.failed)
        make_functions(&maker);
    if (!maker.failed)
        make_tree(&maker);
    free(maker.modules);
    free(maker.files);
    free(maker.functions);
    free(maker.scope_of);
    return maker.failed ? error_set(err, ERR_MEMORY, "out of memory for the tree of a database") : 0;
}
