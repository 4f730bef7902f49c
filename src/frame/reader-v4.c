/* SPDX-License-Identifier: BSD-3-Clause */
/* Version 4 databases of HPCToolkit, and ours. Opening reads meta.db and the identifiers of profiles; values stay where
 * they are in the mapped files. A sum over all profiles comes from the summary profile, a sum over few from their lists
 * in profile.db, and the cells of a node from cct.db. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/input.h"
#include "base/path.h"
#include "fmt/hpcrun.h"
#include "fmt/locus-db.h"
#include "fmt/v4-map.h"
#include "frame/make.h"
#include "frame/readers.h"

extern const struct frame_reader reader_v4;

/* A file in memory. */
struct mapped {
    char *name;
    void *bytes;
    size_t len_bytes;
};

/* What the columns share: the values of a database. */
struct database {
    unsigned n_owners;
    struct mapped profile_file, context_file;
    struct v4_map by_profile, by_context;
    uint32_t *context_of, *node_of; /* [n_nodes], [n_ids] context ids; FRAME_NONE: no node */
    uint32_t *profile_of;           /* [by_profile.lists.n] the frame's profile; FRAME_NONE: the summary */
    uint32_t *list_of;              /* [n_profiles] the reverse */
    size_t summary;                 /* list of by_profile; SIZE_MAX: none */
    uint16_t *propagation;          /* [n_nodes] bit by bit: whether values of a scope belong to the parent's, too */
    uint32_t n_nodes, n_ids, n_profiles;
};

struct v4_column {
    struct frame_column base;
    struct database *database;
    uint16_t metric_id;
    uint32_t summary_id; /* in the summary profile; FRAME_NONE: the sum is not there */
};

static const char *text_or_none(const char *text)
{
    return text ? text : "";
}

/* --- files in memory --- */

/* A file that is not there is empty, if it may be missing. */
static int map_file(const char *directory, const char *file, bool may_be_missing, struct mapped *mapped,
                    struct error *err)
{
    struct stat info;
    if (asprintf(&mapped->name, "%s/%s", directory, file) < 0) {
        mapped->name = NULL;
        return error_memory(err);
    }
    int fd = input_open(AT_FDCWD, mapped->name, 0, &info);
    if (fd < 0 && errno == ENOENT && may_be_missing)
        return 0;
    if (fd < 0)
        return error_set(err, ERR_IO, "%.600s: cannot open: %s", mapped->name, input_reason(errno));
    void *bytes = info.st_size > 0 ? mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    int number = errno;
    (void)close(fd);
    if (bytes == MAP_FAILED)
        return error_set(err, ERR_IO, "%.600s: cannot map: %s", mapped->name, strerror(number));
    mapped->bytes = bytes;
    mapped->len_bytes = (size_t)info.st_size;
    return 0;
}

static void unmap_file(struct mapped *mapped)
{
    if (mapped->bytes)
        (void)munmap(mapped->bytes, mapped->len_bytes);
    free(mapped->name);
    *mapped = (struct mapped){0};
}

static void drop_database(struct database *database)
{
    if (!database || --database->n_owners)
        return;
    unmap_file(&database->profile_file);
    unmap_file(&database->context_file);
    free(database->context_of);
    free(database->node_of);
    free(database->profile_of);
    free(database->list_of);
    free(database->propagation);
    free(database);
}

/* --- columns --- */

static int compare_cells(const void *a, const void *b)
{
    const struct frame_cell *x = a, *y = b;
    return x->profile < y->profile ? -1 : x->profile > y->profile;
}

static int read_row(struct frame_column *column, uint32_t node, struct cells *row, struct error *err)
{
    const struct v4_column *of = (const struct v4_column *)column;
    struct database *database = of->database;
    struct v4_map *map = &database->by_context;
    struct v4_list list;
    struct v4_run run = {0};
    bool is_sorted = true;
    int code = v4_map_list(map, database->context_of[node], &list, err);
    if (code == 0)
        code = v4_map_find(map, &list, of->metric_id, &run, err);
    for (uint64_t i = run.from; code == 0 && i < run.to; i++) {
        uint32_t id = v4_map_minor(map, &list, i);
        uint32_t profile = id < database->by_profile.lists.n ? database->profile_of[id] : FRAME_NONE;
        if (profile == FRAME_NONE)
            return error_set(err, ERR_FORMAT,
                             "%.600s: offset %ju: a value of profile %u, which profile.db does not have", map->in.name,
                             (uintmax_t)(list.values + 12 * i), id);
        is_sorted &= row->n == 0 || row->items[row->n - 1].profile < profile;
        if (!cells_add(row, profile, v4_map_value(map, &list, i)))
            return error_memory(err);
    }
    if (!is_sorted)
        qsort(row->items, row->n, sizeof *row->items, compare_cells);
    return code;
}

/* Adds the values of one metric in a list of profile.db. */
static int add_list(struct database *database, size_t i, uint32_t metric_id, double *values, struct error *err)
{
    struct v4_map *map = &database->by_profile;
    struct v4_list list;
    int code = v4_map_list(map, i, &list, err);
    for (uint64_t k = 0; code == 0 && k < list.n_indices; k++) {
        struct v4_run run;
        code = v4_map_run(map, &list, k, &run, err);
        uint32_t node = code == 0 && run.major < database->n_ids ? database->node_of[run.major] : FRAME_NONE;
        for (uint64_t at = run.from; node != FRAME_NONE && at < run.to; at++) {
            uint32_t id = v4_map_minor(map, &list, at);
            double value = id == metric_id ? v4_map_value(map, &list, at) : NAN;
            if (!isnan(value))
                values[node] = isnan(values[node]) ? value : values[node] + value;
            if (id >= metric_id) /* they ascend */
                break;
        }
    }
    return code;
}

/* Sums over all profiles, or over so few of them that reading their lists is less than reading the rows of all. */
static int read_values(struct frame_column *column, const struct frame_view *view, double *values, bool *done,
                       struct error *err)
{
    const struct v4_column *of = (const struct v4_column *)column;
    struct database *database = of->database;
    bool is_all = !view->profiles && of->summary_id != FRAME_NONE;
    bool is_few = view->profiles && view->n_profiles <= database->n_profiles / 2;
    int code = 0;
    *done = view->aggregate == FRAME_SUM && (is_all || is_few);
    for (uint32_t i = 0; *done && i < column->n_nodes; i++)
        values[i] = NAN;
    if (*done && is_all)
        code = add_list(database, database->summary, of->summary_id, values, err);
    for (size_t i = 0; *done && is_few && code == 0 && i < view->n_profiles; i++)
        if (view->profiles[i] < database->n_profiles)
            code = add_list(database, database->list_of[view->profiles[i]], of->metric_id, values, err);
    return code;
}

static void drop_column(struct frame_column *column)
{
    drop_database(((struct v4_column *)column)->database);
}

static const struct column_class v4_class = {read_row, read_values, drop_column};

/* The id of a sum over all profiles in a scope. */
static uint32_t summary_of(const struct v4_metric *metric, uint32_t scope)
{
    for (size_t i = 0; i < metric->n_summaries; i++) {
        const struct v4_summary *summary = &metric->summaries[i];
        if (summary->scope == scope && summary->combine == 0 && summary->formula && strcmp(summary->formula, "$$") == 0)
            return summary->metric_id;
    }
    return FRAME_NONE;
}

/* A column with the values of an instance; NULL when out of memory. */
static struct frame_column *instance_column(struct database *database, const struct v4_metric *metric,
                                            const struct v4_instance *instance, const char *name, enum frame_sums sums)
{
    struct frame_column *column =
        column_new(&v4_class, sizeof(struct v4_column), name, sums, database->n_nodes, database->n_profiles);
    struct v4_column *of = (struct v4_column *)column;
    if (!column)
        return NULL;
    database->n_owners++;
    of->database = database;
    of->metric_id = instance->metric_id;
    of->summary_id = database->summary == SIZE_MAX ? FRAME_NONE : summary_of(metric, instance->scope);
    return column;
}

/* The instance of a metric in a scope; NULL when it has none. */
static const struct v4_instance *instance_in(const struct v4_meta *meta, const struct v4_metric *metric,
                                             const char *scope)
{
    for (size_t i = 0; i < metric->n_instances; i++) {
        const char *name = metric->instances[i].scope ? meta->scopes[metric->instances[i].scope - 1].name : NULL;
        if (name && strcmp(name, scope) == 0)
            return &metric->instances[i];
    }
    return NULL;
}

/* Whether the values of a scope are those of the node itself and of what propagates to it. */
static bool propagates(const struct v4_scope *scope)
{
    return scope->type == V4_SCOPE_TRANSITIVE && scope->propagation < 16;
}

/* The cost of each node alone: what is left of `source` without the children that it contains. scope NULL: all. */
static struct frame_column *own_column(const struct frame *frame, const struct database *database,
                                       struct frame_column *source, const struct v4_scope *scope, const char *name)
{
    bool *is_part = calloc((size_t)database->n_nodes + 1, sizeof *is_part);
    struct node_groups *parts = NULL;
    for (uint32_t i = 0; is_part && i < database->n_nodes; i++)
        is_part[i] = !scope || database->propagation[i] >> scope->propagation & 1;
    if (is_part)
        parts = groups_of_children(frame->graph, is_part);
    struct frame_column *column = parts && source ? column_own(source, parts, name) : NULL;
    groups_drop(parts);
    free(is_part);
    return column;
}

/* The columns of a metric: "X", the cost of each node alone; "X (inc)"; and the hidden "X (function)", which is the
 * scope "function". hpcviewer and Hatchet show that as the exclusive cost: a function's value includes its loops and
 * lines. The scope "point" serves only where there is no other: its values are at instructions, most of which are not
 * in the tree. Sizes are hidden as in experiment.xml. */
static int add_metric(struct frame *frame, struct database *database, const struct v4_meta *meta,
                      const struct v4_metric *metric, const char *const names[3], struct error *err)
{
    const struct v4_instance *inclusive = instance_in(meta, metric, "execution");
    const struct v4_instance *function = instance_in(meta, metric, "function");
    const struct v4_instance *point = instance_in(meta, metric, "point");
    const struct v4_scope *scope = function ? &meta->scopes[function->scope - 1] : NULL;
    struct frame_column *columns[3] = {NULL}, *source;
    bool is_size = metric->name && strcmp(metric->name, SIZE_NAME) == 0;
    int code = 0;
    if (inclusive)
        columns[1] = instance_column(database, metric, inclusive, names[1], FRAME_INCLUSIVE);
    if (function)
        columns[2] = instance_column(database, metric, function, names[2], FRAME_PLAIN);
    scope = scope && propagates(scope) ? scope : NULL;
    source = scope ? columns[2] : columns[1];
    if (source)
        columns[0] = own_column(frame, database, source, scope, names[0]);
    else if (point)
        columns[0] = instance_column(database, metric, point, names[0], FRAME_EXCLUSIVE);
    bool failed = (inclusive && !columns[1]) || (function && !columns[2]) || ((point || source) && !columns[0]);
    for (size_t i = 0; i < 3; i++) {
        if (columns[i])
            columns[i]->is_hidden = i == 2 || is_size;
        if (code == 0 && columns[i])
            code = frame_add_column(frame, columns[i], err);
        else
            column_drop(columns[i]);
    }
    return failed && code == 0 ? error_memory(err) : code;
}

static int add_columns(struct frame *frame, struct database *database, const struct v4_meta *meta, struct error *err)
{
    static const char *const suffixes[3] = {"", " (inc)", " (function)"};
    int code = 0;
    for (size_t i = 0; code == 0 && i < meta->n_metrics; i++) {
        const char *metric = text_or_none(meta->metrics[i].name);
        size_t len = strlen(metric);
        double scale;
        const char *stem = hpctoolkit_metric_name(metric, &len, &scale);
        if (scale != 1) { /* this form has seconds alone: another unit stays what the file calls it */
            stem = metric;
            len = strlen(metric);
        }
        struct buf names[3] = {{0}};
        bool ok = true;
        for (size_t k = 0; k < 3; k++) {
            buf_printf(&names[k], "%.*s%s", (int)len, stem, suffixes[k]);
            ok &= !names[k].failed;
        }
        code = ok ? add_metric(frame, database, meta, &meta->metrics[i],
                               (const char *[]){names[0].data, names[1].data, names[2].data}, err)
                  : error_memory(err);
        for (size_t k = 0; k < 3; k++)
            buf_fini(&names[k]);
    }
    return code;
}

/* --- nodes --- */

/* Nodes of the file: entry points first, then contexts. */
struct tree {
    const struct v4_meta *meta;
    const char *name; /* of the file */
    struct frame_maker *maker;
    struct database *database;
    struct hpctoolkit_node *nodes; /* [n] */
    uint32_t *number_of;           /* [n] of the maker */
    size_t n;
    struct buf text;
    struct model variables; /* of our own databases: they alone */
    bool has_points;        /* of some context */
    bool with_fields;
};

/* The path of a file as it was when the program was built: copies lie in the database below "src". */
static const char *file_at(const struct v4_meta *meta, uint32_t file)
{
    const struct v4_path *path = file ? &meta->files[file - 1] : NULL;
    if (!path || !path->path)
        return "";
    return path->flags & V4_FILE_COPIED && strncmp(path->path, "src/", 4) == 0 ? path->path + 3 : path->path;
}

static const char *module_at(const struct v4_meta *meta, uint32_t module)
{
    return module ? text_or_none(meta->modules[module - 1].path) : "";
}

static enum frame_kind kind_of(const struct v4_context *context)
{
    switch (context->lexical) {
    case V4_FUNCTION:
        return context->relation == V4_INLINED ? FRAME_INLINED : FRAME_FUNCTION;
    case V4_LOOP:
        return FRAME_LOOP;
    case V4_LINE:
        return FRAME_LINE;
    case V4_INSTRUCTION:
        return FRAME_INSTRUCTION;
    default:
        return FRAME_OTHER;
    }
}

/* Entry points and contexts with their parents and kinds. */
static bool list_nodes(struct tree *tree)
{
    const struct v4_meta *meta = tree->meta;
    tree->n = meta->n_entries + meta->n_contexts;
    tree->nodes = calloc(tree->n + 1, sizeof *tree->nodes);
    tree->number_of = calloc(tree->n + 1, sizeof *tree->number_of);
    if (!tree->nodes || !tree->number_of)
        return false;
    for (size_t i = 0; i < meta->n_entries; i++) {
        tree->nodes[i] = (struct hpctoolkit_node){
            .name = text_or_none(meta->entries[i].name), .parent = FRAME_NONE, .kind = FRAME_GROUP};
        for (size_t k = 0; k < meta->entries[i].n_children; k++)
            tree->nodes[meta->n_entries + meta->entries[i].first_child + k].parent = (uint32_t)i;
    }
    for (size_t i = 0; i < meta->n_contexts; i++) {
        const struct v4_context *context = &meta->contexts[i];
        struct hpctoolkit_node *node = &tree->nodes[meta->n_entries + i];
        tree->has_points |= context->flags & V4_HAS_POINT;
        node->kind = kind_of(context);
        if (context->parent)
            node->parent = (uint32_t)(meta->n_entries + context->parent - 1);
        if (context->lexical == V4_FUNCTION)
            node->name = context->function ? text_or_none(meta->functions[context->function - 1].name) : "";
    }
    return hpctoolkit_find_kinds(tree->nodes, tree->n);
}

/* An instruction lies in a line, whose place is its own. Its name is the address, with the module where no place is. */
static void describe_instruction(struct tree *tree, const struct v4_context *context, struct made_node *node)
{
    const struct v4_context *above = context->parent ? &tree->meta->contexts[context->parent - 1] : NULL;
    tree->text.len_bytes = 0;
    if (above && above->lexical == V4_LINE && !context->file) {
        node->file = file_at(tree->meta, above->file);
        node->line = above->line;
    }
    if (!*node->file)
        buf_printf(&tree->text, "%s:", path_last(node->module));
    buf_printf(&tree->text, "%#jx", (uintmax_t)context->offset);
    node->name = tree->text.data;
}

/* What the frame says of a context. */
static struct made_node describe(struct tree *tree, const struct v4_context *context,
                                 const struct hpctoolkit_node *from)
{
    const struct v4_meta *meta = tree->meta;
    const struct v4_function *function = context->function ? &meta->functions[context->function - 1] : NULL;
    struct made_node node = {.kind = from->kind,
                             .name = from->name,
                             .file = file_at(meta, context->file),
                             .module = module_at(meta, context->module),
                             .line = context->line};
    if (function && !context->file) {
        node.file = file_at(meta, function->file);
        node.line = function->line;
    }
    if (function && !context->module)
        node.module = module_at(meta, function->module);
    if (from->kind == FRAME_LINE || from->kind == FRAME_LOOP) {
        hpctoolkit_place_name(from->kind, node.file, node.line, &tree->text);
        node.name = tree->text.data;
    } else if (from->kind == FRAME_INSTRUCTION) {
        describe_instruction(tree, context, &node);
    } else if (!node.name || !*node.name) {
        tree->text.len_bytes = 0;
        uint64_t offset = function ? function->offset : context->offset;
        buf_printf(&tree->text, "%s:%#jx", path_last(node.module), (uintmax_t)offset);
        node.name = tree->text.data;
    }
    tree->maker->failed |= tree->text.failed;
    return node;
}

/* Adds node i, an entry point or context, below parent. */
static int add_node(struct tree *tree, uint32_t i, uint32_t parent, uint32_t *number, struct error *err)
{
    const struct v4_meta *meta = tree->meta;
    bool is_entry = i < meta->n_entries;
    const struct v4_context *context = is_entry ? NULL : &meta->contexts[i - meta->n_entries];
    uint32_t id = is_entry ? meta->entries[i].ctx_id : context->ctx_id;
    struct made_node node = is_entry ? (struct made_node){.kind = tree->nodes[i].kind, .name = tree->nodes[i].name}
                                     : describe(tree, context, &tree->nodes[i]);
    if (id >= tree->database->n_ids)
        return error_set(err, ERR_FORMAT, "%.600s: a context has the number %u, and cct.db has those below %u",
                         tree->name, id, tree->database->n_ids);
    if (tree->database->node_of[id] != FRAME_NONE)
        return error_set(err, ERR_FORMAT, "%.600s: two contexts have the number %u", tree->name, id);
    *number = tree->number_of[i] = maker_node(tree->maker, parent, &node);
    maker_number(tree->maker, "id", *number, id);
    const struct v4_function *entered = context && context->function ? &meta->functions[context->function - 1] : NULL;
    if (context && context->flags & V4_HAS_POINT)
        maker_number(tree->maker, "offset", *number, (double)context->offset);
    else if (tree->has_points && entered && entered->offset)
        maker_number(tree->maker, "offset", *number, (double)entered->offset);
    tree->database->context_of[*number] = id;
    tree->database->propagation[*number] = context ? context->propagation : 0;
    tree->database->node_of[id] = *number;
    return tree->maker->failed ? error_memory(err) : 0;
}

/* Adds all nodes in pre-order. */
static int add_nodes(struct tree *tree, struct error *err)
{
    const struct v4_meta *meta = tree->meta;
    struct open {
        uint32_t node, parent;
    } *stack = calloc(tree->n + 1, sizeof *stack);
    size_t n = 0;
    int code = stack ? 0 : error_memory(err);
    for (size_t i = meta->n_entries; stack && i-- > 0;)
        stack[n++] = (struct open){(uint32_t)i, FRAME_NONE};
    while (code == 0 && n > 0) {
        struct open top = stack[--n];
        uint32_t number = 0, first, n_children;
        bool is_entry = top.node < meta->n_entries;
        code = add_node(tree, top.node, top.parent, &number, err);
        first = is_entry ? meta->entries[top.node].first_child : meta->contexts[top.node - meta->n_entries].first_child;
        n_children =
            is_entry ? meta->entries[top.node].n_children : meta->contexts[top.node - meta->n_entries].n_children;
        for (uint32_t k = n_children; k-- > 0;)
            stack[n++] = (struct open){(uint32_t)meta->n_entries + first + k, number};
    }
    free(stack);
    return code;
}

/* Tables of context ids and nodes. */
static bool make_tables(struct database *database, const struct v4_meta *meta)
{
    size_t n_nodes = meta->n_entries + meta->n_contexts;
    database->n_nodes = (uint32_t)n_nodes;
    database->n_ids = (uint32_t)database->by_context.lists.n;
    database->context_of = calloc(n_nodes + 1, sizeof(uint32_t));
    database->propagation = calloc(n_nodes + 1, sizeof *database->propagation);
    database->node_of = malloc(((size_t)database->n_ids + 1) * sizeof(uint32_t));
    if (database->node_of)
        memset(database->node_of, 0xff, ((size_t)database->n_ids + 1) * sizeof(uint32_t));
    return database->context_of && database->node_of && database->propagation;
}

/* --- profiles --- */

/* The number of a host: 0 for the first that is met. Returns -1 when out of memory. */
static int64_t number_host(struct strtab *hosts, uint64_t id)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%ju", (uintmax_t)id);
    return strtab_intern(hosts, text);
}

/* A profile by what identifies it: rank or, without MPI, process, and thread; given: the thread's name, or "". */
static bool add_profile(struct tree *tree, const struct v4_profile *from, const char *given, struct strtab *hosts)
{
    const struct v4_meta *meta = tree->meta;
    struct frame_profile profile = {NULL, -1, -1, -1, -1};
    struct buf name = {0};
    for (size_t i = 0; i < from->n_ids; i++) {
        const struct v4_id *id = &from->ids[i];
        const char *kind = id->kind < meta->n_kinds ? text_or_none(meta->kinds[id->kind]) : "?";
        uint64_t number = id->flags & 1 ? id->physical : id->logical;
        if (strcmp(kind, "NODE") == 0) {
            profile.node = number_host(hosts, number);
            continue;
        }
        bool is_rank = strcmp(kind, "RANK") == 0, is_process = is_rank && id->flags & V4_ID_IS_PROCESS;
        kind = is_process ? "PROCESS" : kind;
        number = is_process ? id->physical : number;
        profile.process = is_process ? (int64_t)number : profile.process;
        if (is_rank)
            profile.rank = is_process ? 0 : (int64_t)number; /* 0: as in hpcquery vars --by rank */
        if (strcmp(kind, "THREAD") == 0)
            profile.thread = (int64_t)number;
        buf_printf(&name, "%s", name.len_bytes ? " " : "");
        for (const char *p = kind; *p; p++)
            buf_printf(&name, "%c", *p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p);
        buf_printf(&name, " %ju", (uintmax_t)number);
    }
    buf_printf(&name, *given ? " (%s)" : "%s", given);
    profile.name = name.data ? name.data : "";
    bool ok = !name.failed;
    if (ok)
        (void)maker_profile(tree->maker, &profile);
    buf_fini(&name);
    return ok && !tree->maker->failed;
}

static int add_profiles(struct tree *tree, struct error *err)
{
    const struct model *named = &tree->variables;
    struct database *database = tree->database;
    size_t n = database->by_profile.lists.n;
    struct strtab hosts = {0};
    database->profile_of = calloc(n + 1, sizeof(uint32_t));
    database->list_of = calloc(n + 1, sizeof(uint32_t));
    database->summary = SIZE_MAX;
    int code = database->profile_of && database->list_of ? 0 : error_memory(err);
    for (size_t i = 0; code == 0 && i < n; i++) {
        struct v4_profile profile;
        code = v4_map_profile(&database->by_profile, i, &profile, err);
        bool is_summary = profile.flags & 1 || profile.n_ids == 0;
        if (code == 0 && is_summary && database->summary == SIZE_MAX)
            database->summary = i;
        database->profile_of[i] = is_summary ? FRAME_NONE : database->n_profiles;
        if (code == 0 && !is_summary) {
            size_t thread = database->n_profiles++;
            database->list_of[thread] = (uint32_t)i;
            bool is_listed = named->has_thread_list && thread < named->n_threads;
            const char *given = is_listed ? model_text(named, named->threads[thread].name) : "";
            code = add_profile(tree, &profile, given, &hosts) ? 0 : error_memory(err);
        }
        free(profile.ids);
    }
    strtab_fini(&hosts);
    return code;
}

/* --- the whole --- */

static int open_values(const char *directory, struct database *database, struct error *err)
{
    int code = map_file(directory, v4_file_name(V4_PROFILE), false, &database->profile_file, err);
    if (code == 0)
        code = map_file(directory, v4_file_name(V4_CCT), false, &database->context_file, err);
    if (code == 0)
        code = v4_map_open(&database->by_profile, V4_PROFILE, database->profile_file.bytes,
                           database->profile_file.len_bytes, database->profile_file.name, err);
    if (code == 0)
        code = v4_map_open(&database->by_context, V4_CCT, database->context_file.bytes,
                           database->context_file.len_bytes, database->context_file.name, err);
    return code;
}

/* What a locus.db says of the variables of nodes, if there is one; of older databases, which have its text, nothing. */
static int read_variables(struct tree *tree, const char *directory, struct error *err)
{
    struct database *database = tree->database;
    const struct v4_meta *meta = tree->meta;
    struct mapped file = {0};
    uint32_t *index_of = malloc(((size_t)database->n_ids + 1) * sizeof *index_of);
    int code = index_of ? map_file(directory, "locus.db", true, &file, err) : error_memory(err);
    const char *text = file.bytes;
    if (code == 0 && text && *text != '{' && (code = model_init(&tree->variables, err)) == 0)
        code = locus_db_read(text, file.len_bytes, file.name, DB_VARIABLES, &tree->variables, err);
    for (uint32_t i = 0; code == 0 && i <= database->n_ids; i++)
        index_of[i] = FRAME_NONE;
    for (size_t i = 0; code == 0 && i < meta->n_contexts; i++)
        if (meta->contexts[i].ctx_id < database->n_ids)
            index_of[meta->contexts[i].ctx_id] = (uint32_t)(meta->n_entries + i);
    if (code == 0 && tree->variables.n_variables)
        code = hpctoolkit_name_variables(tree->nodes, tree->n, &tree->variables, index_of, database->n_ids, file.name,
                                         err);
    unmap_file(&file);
    free(index_of);
    return code;
}

/* Opens the values, and reads nodes and profiles into the maker. */
static int read_tree(struct tree *tree, const char *directory, struct error *err)
{
    int code = open_values(directory, tree->database, err);
    if (code == 0 && (!make_tables(tree->database, tree->meta) || !list_nodes(tree)))
        code = error_memory(err);
    if (code == 0)
        code = read_variables(tree, directory, err);
    if (code == 0)
        code = add_profiles(tree, err);
    if (code == 0)
        code = add_nodes(tree, err);
    if (code == 0) {
        hpctoolkit_set_data(tree->maker, tree->nodes, tree->n, tree->number_of);
        hpctoolkit_set_variables(tree->maker, &tree->variables, tree->database->node_of);
        if (tree->with_fields && tree->variables.n_field_counts) { /* the attributes are there, and filled later */
            maker_text(tree->maker, "field", 0, "");
            maker_text(tree->maker, "field_type", 0, "");
        }
    }
    return code;
}

static int read_meta(const char *directory, const struct mapped *file, bool with_fields, struct frame **frame,
                     struct error *err)
{
    struct database *database = calloc(1, sizeof *database);
    struct v4_file meta = {0};
    struct frame_maker maker;
    if (!database)
        return error_memory(err);
    database->n_owners = 1;
    maker_init(&maker);
    struct tree tree = {
        .meta = &meta.meta, .name = file->name, .maker = &maker, .database = database, .with_fields = with_fields};
    int code = v4_read_memory(file->bytes, file->len_bytes, file->name, &meta, err);
    if (code == 0 && meta.kind != V4_META)
        code = error_set(err, ERR_FORMAT, "%.600s: offset 10: this is a %s", file->name, v4_file_name(meta.kind));
    if (code == 0)
        code = read_tree(&tree, directory, err);
    struct frame *made = NULL;
    if (code == 0)
        code = frame_made(&maker, &made, NULL, err);
    else
        maker_fini(&maker);
    if (code == 0)
        code = add_columns(made, database, &meta.meta, err);
    if (code == 0)
        code = hpctoolkit_split_variables(&made, &tree.variables, database->node_of, database->n_ids, with_fields, err);
    if (code == 0)
        *frame = made;
    else
        frame_close(made);
    free(tree.nodes);
    free(tree.number_of);
    buf_fini(&tree.text);
    model_fini(&tree.variables);
    v4_fini(&meta);
    drop_database(database);
    return code;
}

static int read_v4(const struct frame_input *input, struct frame **frame, struct error *err)
{
    struct mapped meta = {0};
    char *directory = readers_directory(input);
    int code = directory ? map_file(directory, v4_file_name(V4_META), false, &meta, err) : error_memory(err);
    if (code == 0)
        code = read_meta(directory, &meta, input->with_fields, frame, err);
    unmap_file(&meta);
    free(directory);
    return code;
}

static bool fits_v4(const struct frame_input *input)
{
    if (input->is_directory)
        return readers_begins(input->path, v4_file_name(V4_META), V4_BEGINS);
    return strncmp(input->head.data, V4_BEGINS, strlen(V4_BEGINS)) == 0;
}

const struct frame_reader reader_v4 = {"a database of HPCToolkit (meta.db, profile.db and cct.db)", fits_v4, read_v4};
