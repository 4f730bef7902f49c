/* SPDX-License-Identifier: BSD-3-Clause */
/* Version 4 databases: meta.db, the description of the metrics, and the writing of all four files. In meta.db
 * functions, inlined functions, variables and placeholders are function contexts; statements, call sites and positions
 * are line contexts; instructions are a module and an offset. */
#include "database/v4.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/build/build.h"
#include "fmt/file.h"

static const char *const kind_names[] = {"SUMMARY", "NODE", "RANK", "THREAD"};

enum { N_KINDS = sizeof kind_names / sizeof *kind_names, N_SCOPES = V4_IDS_PER_METRIC };

struct meta_maker {
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

/* The text as the format allows it: UTF-8, or ASCII where some readers go byte by byte. */
static const char *clean(struct meta_maker *maker, const char *text, bool ascii)
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

static void *make(struct meta_maker *maker, size_t n_items, size_t item_bytes)
{
    void *memory = calloc(n_items + 1, item_bytes);
    maker->failed = maker->failed || !memory;
    return memory;
}

static void make_general(struct meta_maker *maker, const struct columns *columns, const char *title)
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
    meta->scopes[V4_ID_LEXICAL] = (struct v4_scope){"lex_aware", V4_SCOPE_CUSTOM, UINT8_MAX};
    meta->scopes[V4_ID_FUNCTION] = (struct v4_scope){"function", V4_SCOPE_TRANSITIVE, 0};
    meta->scopes[V4_ID_EXECUTION] = (struct v4_scope){"execution", V4_SCOPE_EXECUTION, UINT8_MAX};
    meta->n_scopes = N_SCOPES;
}

static const char *v4_export_name(const struct column_pair *pair)
{
    return strcmp(pair->name, "CPUTIME (usec)") == 0 ? "CPUTIME (sec)" : pair->name;
}

static void make_metrics(struct meta_maker *maker, const struct columns *columns)
{
    struct v4_meta *meta = maker->meta;
    for (size_t i = 0; !maker->failed && i < columns->n_pairs; i++) {
        struct v4_metric *metric = &meta->metrics[meta->n_metrics++];
        metric->name = clean(maker, v4_export_name(&columns->pairs[i]), true);
        metric->instances = make(maker, N_SCOPES, sizeof *metric->instances);
        metric->summaries = make(maker, N_SCOPES, sizeof *metric->summaries);
        for (uint16_t k = 0; !maker->failed && k < N_SCOPES; k++) {
            uint16_t id = (uint16_t)(V4_IDS_PER_METRIC * i + k);
            metric->instances[k] = (struct v4_instance){k + 1u, id};
            metric->summaries[k] = (struct v4_summary){k + 1u, "$$", V4_COMBINE_SUM, id};
            metric->n_instances = metric->n_summaries = (uint16_t)(k + 1);
        }
    }
}

/* Turns the strings that are marked into a table, in their order. copies: of these paths, NULL = none. */
static void make_paths(struct meta_maker *maker, uint32_t *used, const char *nameless,
                       const struct source_copies *copies, struct v4_path **paths, size_t *n_paths)
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

static void make_tables(struct meta_maker *maker)
{
    const struct model *model = maker->model;
    for (uint32_t i = 1; i < model->n_scopes; i++) {
        const struct scope *scope = &model->scopes[i];
        if (model_is_procedure(scope)) {
            maker->modules[scope->module] |= scope->module != 0;
            maker->files[scope->file] |= scope->file != 0;
        } else if (scope->kind == SCOPE_INSTRUCTION) {
            maker->modules[scope->module] = 1;
        } else {
            maker->files[model_file_of(model, i)] = 1;
            maker->modules[scope->module] |= scope->kind == SCOPE_CALL && scope->end_line;
        }
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

/* Where a function begins: variables have an address of another kind. */
static uint64_t entry_of(const struct scope *scope)
{
    return scope->role == ROLE_VARIABLE ? 0 : scope->vaddr;
}

static int compare_functions(const void *a, const void *b, void *context)
{
    const struct model *model = context;
    const struct scope *x = &model->scopes[*(const uint32_t *)a], *y = &model->scopes[*(const uint32_t *)b];
    int order = compare_texts(model, x->name, y->name);
    order = order ? order : compare_texts(model, x->module, y->module);
    order = order ? order : compare_texts(model, x->file, y->file);
    order = order ? order : compare_words(x->line, y->line);
    return order ? order : compare_words(entry_of(x), entry_of(y));
}

static void make_functions(struct meta_maker *maker)
{
    const struct model *model = maker->model;
    struct v4_meta *meta = maker->meta;
    uint32_t *scopes = make(maker, model->n_scopes, sizeof *scopes), n = 0;
    meta->functions = make(maker, model->n_scopes, sizeof *meta->functions);
    for (uint32_t i = 1; !maker->failed && i < model->n_scopes; i++)
        if (model_is_procedure(&model->scopes[i]))
            scopes[n++] = i;
    if (n)
        qsort_r(scopes, n, sizeof *scopes, compare_functions, (void *)(uintptr_t)model);
    for (uint32_t i = 0; i < n; i++) {
        const struct scope *scope = &model->scopes[scopes[i]];
        if (i == 0 || compare_functions(&scopes[i], &scopes[i - 1], (void *)(uintptr_t)model) != 0)
            meta->functions[meta->n_functions++] =
                (struct v4_function){.name = clean(maker, model_text(model, scope->name), false),
                                     .module = maker->modules[scope->module],
                                     .offset = entry_of(scope),
                                     .file = scope->file ? maker->files[scope->file] : 0,
                                     .line = scope->line};
        maker->functions[scopes[i]] = (uint32_t)meta->n_functions;
    }
    free(scopes);
}

/* Appends the children of scope, except the data-centric root; returns how many. parent: context + 1. */
static uint32_t add_children(struct meta_maker *maker, uint32_t scope, uint32_t parent)
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
        if (model_is_procedure(child)) {
            context->flags = V4_HAS_FUNCTION;
            context->relation = child->kind == SCOPE_INLINED ? V4_INLINED : V4_CALL;
            context->lexical = V4_FUNCTION;
            context->function = maker->functions[i];
        } else if (child->kind == SCOPE_INSTRUCTION) {
            context->flags = V4_HAS_POINT;
            context->lexical = V4_INSTRUCTION;
            context->propagation = 1;
            context->module = maker->modules[child->module];
            context->offset = child->vaddr;
        } else {
            context->flags = V4_HAS_SOURCE;
            context->lexical = child->kind == SCOPE_LOOP ? V4_LOOP : V4_LINE;
            context->propagation = 1;
            context->file = maker->files[model_file_of(model, i)];
            context->line = child->line;
            if (child->kind == SCOPE_CALL && child->end_line) { /* where the instruction begins */
                context->flags |= V4_HAS_POINT;
                context->module = maker->modules[child->module];
                context->offset = child->vaddr + 1 - child->end_line;
            }
        }
        maker->scope_of[meta->n_contexts++] = i;
        n++;
    }
    return n;
}

static void add_entry(struct meta_maker *maker, const char *name, uint16_t kind, uint32_t scope, uint32_t ctx_id)
{
    struct v4_meta *meta = maker->meta;
    struct v4_entry entry = {.name = name, .ctx_id = ctx_id, .kind = kind};
    entry.first_child = (uint32_t)meta->n_contexts;
    entry.n_children = add_children(maker, scope, 0);
    meta->entries[meta->n_entries++] = entry;
}

static void make_tree(struct meta_maker *maker)
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

/* Makes the parts of meta.db. Contexts have the numbers of scopes; the entry point of code has the number after the
 * last scope; 0 is the total. texts owns what *file borrows; v4_fini and strtab_fini free all.  err: ERR_RANGE,
 * ERR_MEMORY */
static int v4_export_meta(const struct model *model, const struct columns *columns, const char *title,
                          const struct source_copies *copies, struct strtab *texts, struct v4_file *file,
                          struct error *err)
{
    struct meta_maker maker = {.model = model, .copies = copies, .texts = texts, .meta = &file->meta};
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

/* --- default.yaml --- */

/* metrics/default.yaml: what viewers show of each metric, the sum over all threads, inclusive and exclusive. Its form
 * is that of HPCToolkit's own databases. hpcviewer hides exclusive values that are not of the scope "lex_aware";
 * Hatchet takes those that are called "standard". */

/* A double-quoted scalar; names are ASCII by now. */
static void put_quoted(struct buf *out, const char *text)
{
    buf_append(out, "\"", 1);
    for (const char *p = text; *p; p++)
        if (*p == '"' || *p == '\\')
            buf_printf(out, "\\%c", *p);
        else if ((unsigned char)*p < ' ' || *p == 0x7f)
            buf_printf(out, "\\x%02x", (unsigned)*p);
        else
            buf_append(out, p, 1);
    buf_append(out, "\"\n", 2);
}

static void put_input(struct buf *out, const struct v4_meta *meta, size_t i, size_t scope)
{
    const char *name = meta->scopes[scope].name;
    buf_printf(out, "  - &m%zu-%s\n    metric: ", i, name);
    put_quoted(out, meta->metrics[i].name);
    buf_printf(out, "    scope: %s\n    formula: $$\n    combine: sum\n", name);
}

static void put_root(struct buf *out, const struct v4_meta *meta, size_t i, bool is_hidden)
{
    buf_printf(out, "  - name: ");
    put_quoted(out, meta->metrics[i].name);
    buf_printf(out, "    description: ");
    put_quoted(out, meta->metrics[i].name);
    buf_printf(out, "    variants:\n      Sum:\n        render: [number, percent%s]\n        formula:\n",
               is_hidden ? ", hidden" : "");
    buf_printf(out, "          inclusive:\n            standard: *m%zu-%s\n", i, meta->scopes[V4_ID_EXECUTION].name);
    buf_printf(out, "          exclusive:\n            custom: *m%zu-%s\n            standard: *m%zu-%s\n", i,
               meta->scopes[V4_ID_LEXICAL].name, i, meta->scopes[V4_ID_FUNCTION].name);
}

/* Appends metrics/default.yaml: how viewers present the metrics. */
static void v4_export_yaml(const struct v4_meta *meta, const bool *is_hidden, struct buf *out)
{
    buf_printf(out, "version: 0\ninputs:%s\n", meta->n_metrics ? "" : " []");
    for (size_t i = 0; i < meta->n_metrics; i++)
        for (size_t scope = meta->n_scopes; scope-- > 0;)
            put_input(out, meta, i, scope);
    buf_printf(out, "roots:%s\n", meta->n_metrics ? "" : " []");
    for (size_t i = 0; i < meta->n_metrics; i++)
        put_root(out, meta, i, is_hidden[i]);
}

/* --- the four files --- */

/* Writes the files of the version 4 form into a directory. */

double v4_export_scale(const struct column_pair *pair)
{
    return strcmp(pair->name, "CPUTIME (usec)") == 0 ? 1e-6 : 1;
}

static int put_file(const char *directory, const char *name, const struct buf *text, struct error *err)
{
    char *path = NULL;
    if (text->failed || asprintf(&path, "%s/%s", directory, name) < 0)
        return error_memory(err);
    int code = file_write_new(path, text->data, text->len_bytes, err);
    free(path);
    return code;
}

int v4_put_file(const char *directory, const struct v4_file *file, struct error *err)
{
    struct buf out = {0};
    int code = v4_write(file, &out, err);
    if (code == 0)
        code = put_file(directory, v4_file_name(file->kind), &out, err);
    buf_fini(&out);
    return code;
}

int v4_put_notes(const char *directory, const struct v4_meta *meta, const bool *is_hidden, struct error *err)
{
    char *path = NULL;
    struct buf yaml = {0}, example = {0}, formats = {0};
    int code = 0;
    if (asprintf(&path, "%s/" V4_METRICS_DIRECTORY, directory) < 0)
        return error_memory(err);
    if (mkdir(path, 0755) != 0)
        code = error_set(err, ERR_IO, "the directory %s cannot be made: %s", path, strerror(errno));
    v4_export_yaml(meta, is_hidden, &yaml);
    v4_put_metrics_example(&example);
    v4_put_formats(&formats);
    if (code == 0)
        code = put_file(path, V4_METRICS_YAML, &yaml, err);
    if (code == 0)
        code = put_file(path, V4_METRICS_EXAMPLE, &example, err);
    if (code == 0)
        code = put_file(directory, V4_FORMATS, &formats, err);
    buf_fini(&yaml);
    buf_fini(&example);
    buf_fini(&formats);
    free(path);
    return code;
}

static int put_meta(const struct model *model, const struct columns *columns, const char *directory, const char *title,
                    const struct source_copies *copies, struct error *err)
{
    struct strtab texts = {0};
    struct v4_file file = {.kind = V4_META};
    int code = v4_export_meta(model, columns, title, copies, &texts, &file, err);
    if (code == 0)
        code = v4_put_file(directory, &file, err);
    bool *is_hidden = calloc(columns->n_pairs + 1, sizeof *is_hidden);
    for (size_t i = 0; is_hidden && i < columns->n_pairs; i++)
        is_hidden[i] = model->metrics[columns->pairs[i].metric].hidden;
    if (code == 0)
        code = is_hidden ? v4_put_notes(directory, &file.meta, is_hidden, err) : error_memory(err);
    free(is_hidden);
    v4_fini(&file);
    strtab_fini(&texts);
    return code;
}

/* Sends the metrics and scales of the columns from the leader to the others. */
static int share_columns(struct v4_values *values, uint32_t *metrics, double *scales, struct error *err)
{
    const struct team *team = values->job->team;
    size_t n = values->columns->n_pairs;
    struct buf text = {0};
    for (size_t k = 0; team_leads(team) && k < n; k++) {
        metrics[k] = (uint32_t)values->columns->pairs[k].metric;
        scales[k] = v4_export_scale(&values->columns->pairs[k]);
        buf_append(&text, &metrics[k], sizeof *metrics);
        buf_append(&text, &scales[k], sizeof *scales);
    }
    if (team_is_several(team))
        team->broadcast(team, &text);
    bool ok = !text.failed;
    for (size_t k = 0; ok && !team_leads(team) && k < n; k++) {
        const char *at = text.data + k * (sizeof *metrics + sizeof *scales);
        memcpy(&metrics[k], at, sizeof *metrics);
        memcpy(&scales[k], at + sizeof *metrics, sizeof *scales);
    }
    buf_fini(&text);
    values->metrics = metrics;
    values->scales = scales;
    return ok ? 0 : error_memory(err);
}

/* is_new: creates it. */
static int open_file(const char *directory, enum v4_kind kind, bool is_new, char **path, int *fd, struct error *err)
{
    if (!*path && asprintf(path, "%s/%s", directory, v4_file_name(kind)) < 0) {
        *path = NULL;
        return error_memory(err);
    }
    *fd = open(*path, is_new ? O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC : O_RDWR | O_CLOEXEC, 0644);
    return *fd < 0 ? error_set(err, ERR_IO, "%.600s: cannot %s: %s", *path, is_new ? "create" : "open", strerror(errno))
                   : 0;
}

static int close_file(const char *path, int fd, int code, struct error *err)
{
    if (fd >= 0 && close(fd) != 0 && code == 0)
        return error_set(err, ERR_IO, "%.600s: cannot write: %s", path, strerror(errno));
    return code;
}

static int open_files(struct v4_values *values, const char *directory, bool is_new, struct error *err)
{
    int code = open_file(directory, V4_PROFILE, is_new, &values->profile_path, &values->profile_fd, err);
    return code ? code : open_file(directory, V4_CCT, is_new, &values->context_path, &values->context_fd, err);
}

/* Opens the files again, in a team: what others have written is sure to be seen in files that are opened afterwards. */
static int reopen(struct v4_values *values, const char *directory, struct error *err)
{
    int code = close_file(values->profile_path, values->profile_fd, 0, err);
    values->profile_fd = -1;
    code = team_agree(values->job->team, code, err);
    return code ? code : open_file(directory, V4_PROFILE, false, &values->profile_path, &values->profile_fd, err);
}

static int write_values(struct v4_values *values, const char *directory, struct error *err)
{
    const struct team *team = values->job->team;
    int code = team_leads(team) ? open_files(values, directory, true, err) : 0;
    code = team_agree(team, code, err);
    if (code == 0 && !team_leads(team))
        code = open_files(values, directory, false, err);
    code = team_agree(team, code, err);
    if (code == 0)
        code = v4_values_by_profile(values, err);
    if (code == 0 && team_is_several(team))
        code = reopen(values, directory, err);
    code = team_agree(team, code, err);
    if (code == 0)
        code = v4_values_by_context(values, err);
    code = close_file(values->profile_path, values->profile_fd, code, err);
    code = close_file(values->context_path, values->context_fd, code, err);
    free(values->profile_path);
    free(values->context_path);
    return team_agree(team, code, err);
}

/* The values of all threads, by profile and by context; in a team each member writes those of its own threads. */
static int put_values(struct model *model, const struct columns *columns, const struct value_source *source,
                      const struct job *job, const char *directory, struct error *err)
{
    const struct team *team = job->team;
    size_t n_pairs = columns->n_pairs;
    struct v4_values values = {.model = model,
                               .columns = columns,
                               .source = source,
                               .job = job,
                               .profile_fd = -1,
                               .context_fd = -1,
                               .n_contexts = (uint32_t)model->n_scopes + 1,
                               .n_ids = (uint32_t)(V4_IDS_PER_METRIC * n_pairs)};
    uint32_t *metrics = calloc(n_pairs + 1, sizeof *metrics);
    double *scales = calloc(n_pairs + 1, sizeof *scales);
    values.places = calloc(values.model->n_threads + 1, sizeof *values.places);
    values.n_values = calloc(values.n_contexts, sizeof *values.n_values);
    values.layout.n_words = values.n_ids / 64 + 1;
    if (team_is_several(team))
        values.layout.present = calloc(values.n_contexts * values.layout.n_words, sizeof(uint64_t));
    bool ok =
        metrics && scales && values.places && values.n_values && (!team_is_several(team) || values.layout.present);
    int code = ok ? 0 : error_memory(err);
    code = team_agree(team, code, err);
    if (code == 0)
        code = share_columns(&values, metrics, scales, err);
    code = team_agree(team, code, err);
    if (code == 0)
        code = write_values(&values, directory, err);
    free(metrics);
    free(scales);
    free(values.places);
    free(values.n_values);
    free(values.layout.present);
    buf_fini(&values.head);
    return code;
}

/* What the leader sends before values are written: the directory and the number of columns; or that there is nothing to
 * do. */
static int announce(const struct job *job, const char *directory, size_t n_pairs, int code, struct error *err)
{
    struct buf text = {0};
    if (!team_is_several(job->team))
        return code;
    uint64_t n = n_pairs;
    char *path = code == 0 ? realpath(directory, NULL) : NULL;
    buf_append(&text, &n, sizeof n);
    if (path)
        buf_append(&text, path, strlen(path) + 1);
    if (code == 0 && (!path || text.failed))
        code = error_set(err, ERR_IO, "%s: cannot be shared: %s", directory, strerror(errno));
    if (code != 0)
        text.len_bytes = 0;
    free(path);
    job->team->broadcast(job->team, &text);
    buf_fini(&text);
    return team_agree(job->team, code, err);
}

int v4_give_up(const struct job *job, int code, struct error *err)
{
    return announce(job, "", 0, code, err);
}

static int join(struct model *model, const struct value_source *source, const struct job *job, const struct buf *text,
                struct error *err)
{
    uint64_t n_pairs;
    memcpy(&n_pairs, text->data, sizeof n_pairs);
    struct columns columns = {.n_pairs = n_pairs};
    const char *directory = text->data + sizeof n_pairs;
    int code = put_values(model, &columns, source, job, directory, err);
    return code ? code : v4_export_traces(model, source, job, directory, err);
}

int v4_join(struct model *model, const struct value_source *source, const struct job *job, struct error *err)
{
    struct buf text = {0};
    job->team->broadcast(job->team, &text);
    bool ok = !text.failed;
    int code = team_agree(job->team, ok ? 0 : error_memory(err), err);
    if (code == 0)
        code = join(model, source, job, &text, err);
    buf_fini(&text);
    return code;
}

int v4_export(struct model *model, const struct value_source *source, const struct job *job, const char *directory,
              const char *title, const struct source_copies *copies, struct error *err)
{
    struct columns columns;
    /* the numbers in these files are copied as they are in memory */
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        return error_set(err, ERR_UNSUPPORTED,
                         "databases are written by little-endian machines only: run "
                         "hpcprof on one of those, which can read this machine's measurements");
    int code = columns_make(model, &columns, err);
    size_t n_ids = V4_IDS_PER_METRIC * columns.n_pairs;
    if (code == 0 && (n_ids > UINT16_MAX || model->n_scopes >= UINT32_MAX))
        code = error_set(err, ERR_RANGE, "A version 4 database cannot hold %zu metrics of %zu contexts",
                         columns.n_pairs, model->n_scopes);
    if (code == 0) {
        job_begin(job, "writing the call tree");
        code = put_meta(model, &columns, directory, title, copies, err);
    }
    code = announce(job, directory, columns.n_pairs, code, err);
    if (code == 0)
        code = put_values(model, &columns, source, job, directory, err);
    if (code == 0)
        code = v4_export_traces(model, source, job, directory, err);
    if (code == 0)
        code = build_sums(model, err);
    columns_fini(&columns);
    return code;
}
