/* SPDX-License-Identifier: BSD-3-Clause */
/* A frame as a version 4 database, for viewers and Hatchet: functions, loops and lines, profiles, and the columns that
 * add up. Other kinds of nodes become functions, and further attributes are left out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "database/v4.h"
#include "export/frames/forms.h"
#include "frame/ops.h"

enum { MAX_ENTRIES = 16 };

/* A value of a context in a profile, and of which scope of which metric. */
struct saved_cell {
    uint32_t context, profile;
    uint16_t metric_id;
    double value;
};

struct v4_saving {
    struct frame *frame, *summed, *apart;    /* and with all inclusive, and all exclusive columns; NULL: not needed */
    struct strtab texts;                     /* what *meta borrows */
    struct strtab files, modules, functions; /* numbered as in meta; a function by all that is known of it */
    struct v4_file meta, values[2];          /* values: profile.db and cct.db */
    uint32_t *node_of;                       /* [n_contexts] */
    struct saved_cell *cells;                /* [n_cells] */
    size_t n_cells, cap_cells;
    bool *is_hidden;      /* [n_metrics] */
    uint32_t n_processes; /* of the profiles so far, where there is no MPI */
    bool failed;          /* out of memory */
};

/* A metric's columns, each of the frame that has it. */
struct pair {
    struct frame *own_frame, *all_frame;
    size_t own, all;
};

static void *make(struct v4_saving *saving, size_t n, size_t item_bytes)
{
    void *memory = calloc(n + 1, item_bytes);
    saving->failed |= !memory;
    return memory;
}

/* The text as the format allows it: UTF-8, or ASCII where some readers go byte by byte. */
static const char *clean(struct v4_saving *saving, const char *text, bool is_ascii)
{
    struct buf out = {0};
    printable_put(&out, text);
    for (size_t i = 0; is_ascii && i < out.len_bytes; i++)
        if ((unsigned char)out.data[i] >= 0x80)
            out.data[i] = '?';
    int64_t i = out.failed ? -1 : strtab_intern(&saving->texts, out.data ? out.data : "");
    buf_fini(&out);
    saving->failed |= i < 0;
    return i < 0 ? "" : saving->texts.strings[i];
}

/* --- meta.db --- */

static void make_general(struct v4_saving *saving, const char *title)
{
    static const char *const kinds[] = {"SUMMARY", "NODE", "RANK", "THREAD"};
    struct v4_meta *meta = &saving->meta.meta;
    meta->title = clean(saving, title, true);
    meta->description = "";
    meta->kinds = make(saving, sizeof kinds / sizeof *kinds, sizeof *meta->kinds);
    meta->scopes = make(saving, V4_IDS_PER_METRIC, sizeof *meta->scopes);
    if (saving->failed)
        return;
    for (; meta->n_kinds < sizeof kinds / sizeof *kinds; meta->n_kinds++)
        meta->kinds[meta->n_kinds] = kinds[meta->n_kinds];
    meta->scopes[V4_ID_LEXICAL] = (struct v4_scope){"lex_aware", V4_SCOPE_CUSTOM, UINT8_MAX};
    meta->scopes[V4_ID_FUNCTION] = (struct v4_scope){"function", V4_SCOPE_TRANSITIVE, 0};
    meta->scopes[V4_ID_EXECUTION] = (struct v4_scope){"execution", V4_SCOPE_EXECUTION, UINT8_MAX};
    meta->n_scopes = V4_IDS_PER_METRIC;
}

/* What a node is in a database: a function, a loop or a line. An instruction is a line here: what is saved may have
 * lost the line around it. */
static enum v4_lexical lexical_of(const struct frame *frame, uint32_t node)
{
    enum frame_kind kind = frame_kind(frame, node);
    bool is_place = kind == FRAME_LINE || kind == FRAME_CALL || kind == FRAME_INSTRUCTION;
    return kind == FRAME_LOOP ? V4_LOOP : is_place ? V4_LINE : V4_FUNCTION;
}

/* Number + 1 of a path; 0: out of memory. */
static uint32_t number_path(struct v4_saving *saving, struct strtab *paths, const char *path)
{
    int64_t i = strtab_intern(paths, clean(saving, path, false));
    saving->failed |= i < 0;
    return (uint32_t)(i + 1);
}

/* Fills a table of paths from their texts. */
static void take_paths(struct v4_saving *saving, const struct strtab *paths, struct v4_path **table, size_t *n)
{
    *table = make(saving, paths->n_strings, sizeof **table);
    for (; !saving->failed && *n < paths->n_strings; ++*n)
        (*table)[*n].path = paths->strings[*n];
}

/* Number + 1 of the function of a node; 0: out of memory. */
static uint32_t number_function(struct v4_saving *saving, uint32_t node)
{
    struct v4_meta *meta = &saving->meta.meta;
    const char *name = frame_name(saving->frame, node), *file = frame_file(saving->frame, node);
    const char *module = frame_module(saving->frame, node);
    uint32_t line = frame_line(saving->frame, node);
    struct buf key = {0};
    buf_printf(&key, "%s\n%s\n%s\n%u", name, file, module, line);
    int64_t i = key.failed ? -1 : strtab_intern(&saving->functions, key.data);
    buf_fini(&key);
    saving->failed |= i < 0;
    if (i == (int64_t)meta->n_functions)
        meta->functions[meta->n_functions++] =
            (struct v4_function){.name = clean(saving, *name ? name : "?", false),
                                 .file = *file ? number_path(saving, &saving->files, file) : 0,
                                 .module = *module ? number_path(saving, &saving->modules, module) : 0,
                                 .line = line};
    return (uint32_t)(i + 1);
}

static void add_context(struct v4_saving *saving, uint32_t node, uint32_t parent)
{
    struct v4_meta *meta = &saving->meta.meta;
    struct v4_context *context = &meta->contexts[meta->n_contexts];
    const char *file = frame_file(saving->frame, node);
    *context = (struct v4_context){.ctx_id = node + 1, .parent = parent};
    context->lexical = (uint8_t)lexical_of(saving->frame, node);
    if (context->lexical == V4_FUNCTION) {
        context->flags = V4_HAS_FUNCTION;
        context->relation = frame_kind(saving->frame, node) == FRAME_INLINED ? V4_INLINED : V4_CALL;
        context->function = number_function(saving, node);
    } else {
        context->flags = V4_HAS_SOURCE;
        context->propagation = 1;
        context->file = number_path(saving, &saving->files, *file ? file : "<unknown file>");
        context->line = frame_line(saving->frame, node);
    }
    saving->node_of[meta->n_contexts++] = node;
}

/* Adds the entry points: the roots themselves where they are groups, else one that all roots are below. */
static void add_entries(struct v4_saving *saving, const char *title)
{
    struct v4_meta *meta = &saving->meta.meta;
    size_t n_roots, n_children;
    const uint32_t *roots = frame_roots(saving->frame, &n_roots);
    bool are_groups = n_roots <= MAX_ENTRIES;
    for (size_t i = 0; i < n_roots; i++)
        are_groups &= frame_kind(saving->frame, roots[i]) == FRAME_GROUP;
    for (size_t i = 0; i < (are_groups ? n_roots : 1); i++) {
        const char *name = are_groups ? frame_name(saving->frame, roots[i]) : title;
        const uint32_t *children = are_groups ? frame_children(saving->frame, roots[i], &n_children) : roots;
        n_children = are_groups ? n_children : n_roots;
        meta->entries[meta->n_entries++] =
            (struct v4_entry){.name = clean(saving, name, false),
                              .ctx_id = are_groups ? roots[i] + 1 : (uint32_t)frame_n_nodes(saving->frame) + 1,
                              .kind = i ? V4_ENTRY_UNKNOWN : V4_ENTRY_MAIN,
                              .first_child = (uint32_t)meta->n_contexts,
                              .n_children = (uint32_t)n_children};
        for (size_t k = 0; k < n_children; k++)
            add_context(saving, children[k], 0);
    }
}

/* Names, places and the tree, level by level. */
static void make_tree(struct v4_saving *saving, const char *title)
{
    struct v4_meta *meta = &saving->meta.meta;
    size_t n = frame_n_nodes(saving->frame), n_children;
    meta->entries = make(saving, MAX_ENTRIES, sizeof *meta->entries);
    meta->contexts = make(saving, n, sizeof *meta->contexts);
    meta->functions = make(saving, n, sizeof *meta->functions);
    saving->node_of = make(saving, n, sizeof *saving->node_of);
    if (saving->failed)
        return;
    add_entries(saving, title);
    for (uint32_t i = 0; i < meta->n_contexts; i++) {
        const uint32_t *children = frame_children(saving->frame, saving->node_of[i], &n_children);
        meta->contexts[i].first_child = (uint32_t)meta->n_contexts;
        meta->contexts[i].n_children = (uint32_t)n_children;
        for (size_t k = 0; k < n_children; k++)
            add_context(saving, children[k], i + 1);
    }
    take_paths(saving, &saving->files, &meta->files, &meta->n_files);
    take_paths(saving, &saving->modules, &meta->modules, &meta->n_modules);
}

/* --- values --- */

static void put_cell(struct v4_saving *saving, struct saved_cell cell)
{
    if (!vec_reserve(&saving->cells, &saving->cap_cells, saving->n_cells + 1, sizeof *saving->cells))
        saving->failed = true;
    else
        saving->cells[saving->n_cells++] = cell;
}

static void add_cell(struct v4_saving *saving, struct saved_cell cell)
{
    if (cell.value != 0 && !isnan(cell.value))
        put_cell(saving, cell);
}

/* What a node has in a profile, with the lines and loops in it. */
struct saved_sum {
    uint32_t profile;
    double own, direct; /* with and without what the loops in it have */
};

/* Of one node, from what lies below it on. */
struct saved_sums {
    struct saved_sum *items; /* [n] in any order, several of a profile */
    size_t n, capacity;
};

static void add_sum(struct v4_saving *saving, struct saved_sums *sums, struct saved_sum sum)
{
    if (!vec_reserve(&sums->items, &sums->capacity, sums->n + 1, sizeof *sums->items))
        saving->failed = true;
    else
        sums->items[sums->n++] = sum;
}

static int compare_sums(const void *a, const void *b)
{
    const struct saved_sum *x = a, *y = b;
    return x->profile < y->profile ? -1 : x->profile > y->profile;
}

/* Makes one of what is of the same profile. */
static void merge_sums(struct saved_sums *sums)
{
    size_t n = 0;
    if (sums->n)
        qsort(sums->items, sums->n, sizeof *sums->items, compare_sums);
    for (size_t i = 0; i < sums->n; i++) {
        if (n == 0 || sums->items[n - 1].profile != sums->items[i].profile) {
            sums->items[n++] = sums->items[i];
            continue;
        }
        sums->items[n - 1].own += sums->items[i].own;
        sums->items[n - 1].direct += sums->items[i].direct;
    }
    sums->n = n;
}

/* The values of a node in the function's scope, and those of loops without the loops in them, zeros too: see v4.h. */
static void put_sums(struct v4_saving *saving, uint32_t node, const struct saved_sums *sums, size_t metric)
{
    bool is_loop = lexical_of(saving->frame, node) == V4_LOOP;
    for (size_t i = 0; i < sums->n; i++) {
        const struct saved_sum *sum = &sums->items[i];
        struct saved_cell cell = {.context = node + 1,
                                  .profile = sum->profile + 1,
                                  .metric_id = (uint16_t)(V4_IDS_PER_METRIC * metric + V4_ID_FUNCTION),
                                  .value = sum->own};
        add_cell(saving, cell);
        cell.metric_id = (uint16_t)(V4_IDS_PER_METRIC * metric + V4_ID_LEXICAL);
        cell.value = sum->direct;
        if (is_loop && sum->own != 0)
            put_cell(saving, cell);
    }
}

/* Adds what lines and loops have to what is around them; to its direct part, nothing of a loop. */
static void hand_up(struct v4_saving *saving, uint32_t node, const struct saved_sums *from, struct saved_sums *sums)
{
    size_t n_parents;
    const uint32_t *parents = frame_parents(saving->frame, node, &n_parents);
    enum v4_lexical lexical = lexical_of(saving->frame, node);
    for (size_t i = 0; n_parents && lexical != V4_FUNCTION && i < from->n; i++) {
        struct saved_sum sum = from->items[i];
        sum.direct = lexical == V4_LOOP ? 0 : sum.direct;
        add_sum(saving, &sums[parents[0]], sum);
    }
}

/* The values of nodes alone, those below a node before its own. */
static int add_own(struct v4_saving *saving, const struct pair *pair, size_t metric, struct error *err)
{
    const struct frame_cell *cells;
    size_t n_cells, n = frame_n_nodes(saving->frame);
    struct saved_sums *sums = make(saving, n, sizeof *sums);
    int code = sums ? 0 : error_memory(err);
    for (uint32_t node = (uint32_t)n; code == 0 && node-- > 0;) {
        code = frame_cells(pair->own_frame, pair->own, node, &cells, &n_cells, err);
        for (size_t i = 0; code == 0 && i < n_cells; i++)
            add_sum(saving, &sums[node], (struct saved_sum){cells[i].profile, cells[i].value, cells[i].value});
        merge_sums(&sums[node]);
        put_sums(saving, node, &sums[node], metric);
        hand_up(saving, node, &sums[node], sums);
        free(sums[node].items);
        sums[node] = (struct saved_sums){0};
        code = code == 0 && saving->failed ? error_memory(err) : code;
    }
    for (size_t i = 0; sums && i < n; i++)
        free(sums[i].items);
    free(sums);
    return code;
}

/* The inclusive values of nodes, and of what stands for several roots: of the total, and of the entry point that was
 * made for them, which has the number behind those of the nodes. */
static int add_inclusive(struct v4_saving *saving, const struct pair *pair, size_t metric, struct error *err)
{
    const struct frame_cell *cells;
    size_t n_cells, n_roots, n_parents, n = frame_n_nodes(saving->frame), n_profiles = frame_n_profiles(saving->frame);
    const struct v4_meta *meta = &saving->meta.meta;
    bool is_made = meta->n_entries == 1 && meta->entries[0].ctx_id > n;
    double *totals = make(saving, n_profiles, sizeof *totals);
    struct saved_cell cell = {.metric_id = (uint16_t)(V4_IDS_PER_METRIC * metric + V4_ID_EXECUTION)};
    int code = totals ? 0 : error_memory(err);
    (void)frame_roots(saving->frame, &n_roots);
    for (uint32_t node = 0; code == 0 && node < n; node++) {
        code = frame_cells(pair->all_frame, pair->all, node, &cells, &n_cells, err);
        (void)frame_parents(saving->frame, node, &n_parents);
        bool counts = n_parents == 0 && (n_roots == 1 || !frames_is_data(saving->frame, node));
        cell.context = node + 1;
        for (size_t i = 0; code == 0 && i < n_cells; i++) {
            cell.profile = cells[i].profile + 1;
            cell.value = cells[i].value;
            add_cell(saving, cell);
            totals[cells[i].profile] += counts ? cells[i].value : 0;
        }
    }
    for (uint32_t p = 0; code == 0 && p < n_profiles; p++) {
        cell.profile = p + 1;
        cell.value = totals[p];
        cell.context = 0;
        add_cell(saving, cell);
        cell.context = (uint32_t)n + 1;
        if (is_made)
            add_cell(saving, cell);
    }
    free(totals);
    return code == 0 && saving->failed ? error_memory(err) : code;
}

static void add_metric(struct v4_saving *saving, const char *name, bool is_hidden)
{
    struct v4_meta *meta = &saving->meta.meta;
    struct v4_metric *metric = &meta->metrics[meta->n_metrics];
    saving->is_hidden[meta->n_metrics] = is_hidden;
    metric->name = clean(saving, strcmp(name, "time") == 0 ? "CPUTIME (sec)" : name, true);
    metric->instances = make(saving, V4_IDS_PER_METRIC, sizeof *metric->instances);
    metric->summaries = make(saving, V4_IDS_PER_METRIC, sizeof *metric->summaries);
    for (uint16_t k = 0; !saving->failed && k < V4_IDS_PER_METRIC; k++) {
        uint16_t id = (uint16_t)(V4_IDS_PER_METRIC * meta->n_metrics + k);
        metric->instances[k] = (struct v4_instance){k + 1u, id};
        metric->summaries[k] = (struct v4_summary){k + 1u, "$$", 0, id};
        metric->n_instances = metric->n_summaries = (uint16_t)(k + 1);
    }
    meta->n_metrics++;
}

/* The columns of the metric that a column belongs to. False: it is the second one of a pair, or no sum. */
static bool pair_of(const struct v4_saving *saving, size_t column, struct pair *pair)
{
    struct frame *frame = saving->frame;
    enum frame_sums sums = frame_column_sums(frame, column);
    size_t other = frame_column_pair(frame, column);
    struct frame *more = other != SIZE_MAX ? frame : sums == FRAME_EXCLUSIVE ? saving->summed : saving->apart;
    if (sums == FRAME_PLAIN || (sums == FRAME_INCLUSIVE && other != SIZE_MAX) || !more)
        return false;
    if (more != frame) {
        size_t same = frame_find_column(more, frame_column_name(frame, column), NULL);
        other = same == SIZE_MAX ? SIZE_MAX : frame_column_pair(more, same);
    }
    *pair =
        sums == FRAME_EXCLUSIVE ? (struct pair){frame, more, column, other} : (struct pair){more, frame, other, column};
    return other != SIZE_MAX;
}

/* The metrics with all their values. */
static int take_metrics(struct v4_saving *saving, struct error *err)
{
    struct v4_meta *meta = &saving->meta.meta;
    size_t n = frame_n_columns(saving->frame);
    int code = frame_sum_up(saving->frame, &saving->summed, err);
    if (code == 0)
        code = frame_take_apart(saving->frame, &saving->apart, err);
    meta->metrics = make(saving, n, sizeof *meta->metrics);
    saving->is_hidden = make(saving, n, sizeof *saving->is_hidden);
    for (size_t i = 0; code == 0 && !saving->failed && i < n; i++) {
        struct pair pair;
        if (!pair_of(saving, i, &pair))
            continue;
        code = add_inclusive(saving, &pair, meta->n_metrics, err);
        if (code == 0)
            code = add_own(saving, &pair, meta->n_metrics, err);
        add_metric(saving, frame_column_name(pair.own_frame, pair.own), frame_column_is_hidden(saving->frame, i));
    }
    return code == 0 && saving->failed ? error_memory(err) : code;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_by_context(const void *a, const void *b)
{
    const struct saved_cell *x = a, *y = b;
    int order = compare_numbers(x->context, y->context);
    order = order ? order : compare_numbers(x->metric_id, y->metric_id);
    return order ? order : compare_numbers(x->profile, y->profile);
}

static int compare_by_profile(const void *a, const void *b)
{
    const struct saved_cell *x = a, *y = b;
    int order = compare_numbers(x->profile, y->profile);
    return order ? order : compare_by_context(a, b);
}

/* Adds the sums over all profiles as those of profile 0. */
static void add_summary(struct v4_saving *saving)
{
    size_t n = saving->n_cells;
    for (size_t i = 0; i < n;) {
        struct saved_cell sum = saving->cells[i];
        size_t k = i + 1;
        for (; k < n && saving->cells[k].context == sum.context && saving->cells[k].metric_id == sum.metric_id; k++)
            sum.value += saving->cells[k].value;
        sum.profile = 0;
        put_cell(saving, sum);
        if (sum.metric_id % V4_IDS_PER_METRIC == V4_ID_FUNCTION &&
            lexical_of(saving->frame, sum.context - 1) != V4_LOOP) {
            sum.metric_id -= V4_ID_FUNCTION;
            put_cell(saving, sum);
        }
        i = k;
    }
}

/* cct.db: for each context the cells [n], which are in this order. */
static void make_blocks(struct v4_saving *saving)
{
    struct v4_file *file = &saving->values[1];
    file->kind = V4_CCT;
    file->n_blocks = frame_n_nodes(saving->frame) + 2;
    file->blocks = make(saving, file->n_blocks, sizeof *file->blocks);
    for (size_t i = 0; !saving->failed && i < saving->n_cells;) {
        uint32_t context = saving->cells[i].context;
        struct v4_block *block = &file->blocks[context];
        size_t end = i;
        while (end < saving->n_cells && saving->cells[end].context == context)
            end++;
        block->cells = make(saving, end - i, sizeof *block->cells);
        for (; block->cells && i < end; i++)
            block->cells[block->n_cells++] =
                (struct v4_cell){saving->cells[i].profile, saving->cells[i].metric_id, saving->cells[i].value};
    }
}

/* The number of a profile's process, from 0: profiles of one process follow each other. */
static uint32_t next_process(struct v4_saving *saving, uint32_t number)
{
    const struct frame_profile *one = number ? frame_profile(saving->frame, number - 1) : NULL;
    const struct frame_profile *next = frame_profile(saving->frame, number);
    saving->n_processes += !one || one->process != next->process || one->node != next->node;
    return saving->n_processes - 1;
}

static void make_ids(struct v4_saving *saving, uint32_t number, struct v4_profile *to)
{
    const struct frame_profile *profile = frame_profile(saving->frame, number);
    int64_t thread = profile->thread >= 0 || profile->rank >= 0 ? profile->thread : number;
    to->ids = make(saving, 3, sizeof *to->ids);
    if (!to->ids)
        return;
    if (profile->node >= 0)
        to->ids[to->n_ids++] = (struct v4_id){V4_ID_NODE, 1, 0, (uint64_t)profile->node};
    if (profile->process >= 0 && profile->rank <= 0)
        to->ids[to->n_ids++] =
            (struct v4_id){V4_ID_RANK, V4_ID_IS_PROCESS, next_process(saving, number), (uint64_t)profile->process};
    else if (profile->rank >= 0)
        to->ids[to->n_ids++] = (struct v4_id){V4_ID_RANK, 0, (uint32_t)profile->rank, (uint64_t)profile->rank};
    if (thread >= 0)
        to->ids[to->n_ids++] = (struct v4_id){V4_ID_THREAD, 0, (uint32_t)thread, (uint64_t)thread};
}

/* profile.db: the same cells by profile, the summary first. */
static void make_profiles(struct v4_saving *saving)
{
    struct v4_file *file = &saving->values[0];
    size_t at = 0;
    file->kind = V4_PROFILE;
    file->n_profiles = frame_n_profiles(saving->frame) + 1;
    file->profiles = make(saving, file->n_profiles, sizeof *file->profiles);
    for (uint32_t p = 0; !saving->failed && p < file->n_profiles; p++) {
        struct v4_profile *profile = &file->profiles[p];
        size_t end = at;
        while (end < saving->n_cells && saving->cells[end].profile == p)
            end++;
        profile->cells = make(saving, end - at, sizeof *profile->cells);
        for (; profile->cells && at < end; at++)
            profile->cells[profile->n_cells++] =
                (struct v4_cell){saving->cells[at].context, saving->cells[at].metric_id, saving->cells[at].value};
        profile->flags = p == 0;
        if (p > 0)
            make_ids(saving, p - 1, profile);
    }
}

static int make_values(struct v4_saving *saving, struct error *err)
{
    int code = take_metrics(saving, err);
    if (code != 0)
        return code;
    if (saving->n_cells)
        qsort(saving->cells, saving->n_cells, sizeof *saving->cells, compare_by_context);
    make_blocks(saving);
    add_summary(saving);
    if (saving->n_cells)
        qsort(saving->cells, saving->n_cells, sizeof *saving->cells, compare_by_profile);
    make_profiles(saving);
    return saving->failed ? error_memory(err) : 0;
}

int frames_save_v4(struct frame *frame, const char *directory, const char *title, struct error *err)
{
    struct v4_saving saving = {.frame = frame, .meta = {.kind = V4_META}};
    make_general(&saving, title);
    if (!saving.failed)
        make_tree(&saving, title);
    int code = saving.failed ? error_memory(err) : make_values(&saving, err);
    if (code == 0)
        code = v4_put_file(directory, &saving.meta, err);
    for (size_t i = 0; code == 0 && i < 2; i++)
        code = v4_put_file(directory, &saving.values[i], err);
    if (code == 0)
        code = v4_put_notes(directory, &saving.meta.meta, saving.is_hidden, err);
    v4_fini(&saving.meta);
    v4_fini(&saving.values[0]);
    v4_fini(&saving.values[1]);
    frame_close(saving.summed);
    frame_close(saving.apart);
    strtab_fini(&saving.texts);
    strtab_fini(&saving.files);
    strtab_fini(&saving.modules);
    strtab_fini(&saving.functions);
    free(saving.node_of);
    free(saving.cells);
    free(saving.is_hidden);
    return code;
}
