/* SPDX-License-Identifier: BSD-3-Clause */
/* What a frame is asked for, and the parts that it is put together from. */
#include "frame/frame.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fmt/hpcrun.h"
#include "base/spelling.h"
#include "frame/make.h"

static const char *const kind_names[FRAME_KINDS] = {
    [FRAME_OTHER] = "other",
    [FRAME_FUNCTION] = "function",
    [FRAME_INLINED] = "inlined",
    [FRAME_LOOP] = "loop",
    [FRAME_LINE] = "line",
    [FRAME_CALL] = "call",
    [FRAME_INSTRUCTION] = "instruction",
    [FRAME_VARIABLE] = "variable",
    [FRAME_GROUP] = "group",
    [FRAME_FIELD] = "field",
    [FRAME_JUMP] = "jump",
};

/* --- parts --- */

static void strings_drop(struct frame_strings *strings)
{
    if (!strings || --strings->n_owners)
        return;
    strtab_fini(&strings->table);
    free(strings);
}

struct frame_nodes *nodes_keep(struct frame_nodes *nodes)
{
    nodes->n_owners++;
    return nodes;
}

struct frame_profiles *profiles_keep(struct frame_profiles *profiles)
{
    profiles->n_owners++;
    return profiles;
}

void nodes_drop(struct frame_nodes *nodes)
{
    if (!nodes || --nodes->n_owners)
        return;
    strings_drop(nodes->strings);
    for (size_t i = 0; i < nodes->n_attributes; i++) {
        free(nodes->attributes[i].name);
        free(nodes->attributes[i].texts);
        free(nodes->attributes[i].numbers);
    }
    free(nodes->attributes);
    free(nodes->kinds);
    free(nodes->names);
    free(nodes->files);
    free(nodes->modules);
    free(nodes->lines);
    free(nodes->identities);
    free(nodes);
}

void profiles_drop(struct frame_profiles *profiles)
{
    if (!profiles || --profiles->n_owners)
        return;
    for (size_t i = 0; i < profiles->n; i++)
        free((char *)(uintptr_t)profiles->items[i].name);
    free(profiles->items);
    free(profiles);
}

/* Array [n] whose element i is that of `from` at old_of[i]; NULL when out of memory. */
static void *choose(const void *from, size_t elem_bytes, const uint32_t *old_of, uint32_t n)
{
    char *to = malloc((n ? n : 1) * elem_bytes);
    for (uint32_t i = 0; to && i < n; i++)
        memcpy(to + i * elem_bytes, (const char *)from + old_of[i] * elem_bytes, elem_bytes);
    return to;
}

static bool choose_attribute(struct frame_nodes *nodes, const struct frame_attribute *from, const uint32_t *old_of)
{
    if (!vec_reserve(&nodes->attributes, &nodes->cap_attributes, nodes->n_attributes + 1, sizeof *nodes->attributes))
        return false;
    struct frame_attribute *to = &nodes->attributes[nodes->n_attributes++];
    *to = (struct frame_attribute){.name = strdup(from->name)};
    if (from->texts)
        to->texts = choose(from->texts, sizeof *from->texts, old_of, nodes->n);
    else
        to->numbers = choose(from->numbers, sizeof *from->numbers, old_of, nodes->n);
    return to->name && (to->texts || to->numbers);
}

struct frame_nodes *nodes_choose(const struct frame_nodes *from, const uint32_t *old_of, uint32_t n)
{
    struct frame_nodes *nodes = calloc(1, sizeof *nodes);
    if (!nodes)
        return NULL;
    *nodes = (struct frame_nodes){.n_owners = 1,
                                  .n = n,
                                  .strings = from->strings,
                                  .kinds = choose(from->kinds, sizeof *from->kinds, old_of, n),
                                  .names = choose(from->names, sizeof *from->names, old_of, n),
                                  .files = choose(from->files, sizeof *from->files, old_of, n),
                                  .modules = choose(from->modules, sizeof *from->modules, old_of, n),
                                  .lines = choose(from->lines, sizeof *from->lines, old_of, n),
                                  .identities = choose(from->identities, sizeof *from->identities, old_of, n)};
    nodes->strings->n_owners++;
    bool ok = nodes->kinds && nodes->names && nodes->files && nodes->modules && nodes->lines && nodes->identities;
    for (size_t i = 0; ok && i < from->n_attributes; i++)
        ok = choose_attribute(nodes, &from->attributes[i], old_of);
    if (!ok) {
        nodes_drop(nodes);
        return NULL;
    }
    return nodes;
}

struct frame *frame_new(struct frame_graph *graph, struct frame_nodes *nodes, struct frame_profiles *profiles)
{
    struct frame *frame = graph && nodes && profiles ? calloc(1, sizeof *frame) : NULL;
    if (!frame) {
        graph_drop(graph);
        nodes_drop(nodes);
        profiles_drop(profiles);
        return NULL;
    }
    *frame = (struct frame){.n_owners = 1, .graph = graph, .nodes = nodes, .profiles = profiles};
    return frame;
}

int frame_add_column(struct frame *frame, struct frame_column *column, struct error *err)
{
    if (!column || !vec_reserve(&frame->columns, &frame->cap_columns, frame->n_columns + 1, sizeof *frame->columns)) {
        column_drop(column);
        return error_memory(err);
    }
    frame->columns[frame->n_columns++] = column;
    return column_settle(column, err);
}

struct frame *frame_keep(const struct frame *frame)
{
    struct frame *kept = (struct frame *)(uintptr_t)frame;
    kept->n_owners++;
    return kept;
}

void frame_close(struct frame *frame)
{
    if (!frame || --frame->n_owners)
        return;
    for (size_t i = 0; i < frame->n_columns; i++)
        column_drop(frame->columns[i]);
    free(frame->columns);
    graph_drop(frame->graph);
    nodes_drop(frame->nodes);
    profiles_drop(frame->profiles);
    free(frame);
}

/* --- nodes --- */

size_t frame_n_nodes(const struct frame *frame)
{
    return frame->graph->n;
}

bool frame_is_tree(const struct frame *frame)
{
    return frame->graph->is_tree;
}

const uint32_t *frame_roots(const struct frame *frame, size_t *n)
{
    *n = frame->graph->n_roots;
    return frame->graph->roots;
}

const uint32_t *frame_children(const struct frame *frame, uint32_t node, size_t *n)
{
    const struct frame_graph *graph = frame->graph;
    *n = graph->child_starts[node + 1] - graph->child_starts[node];
    return graph->children + graph->child_starts[node];
}

const uint32_t *frame_parents(const struct frame *frame, uint32_t node, size_t *n)
{
    const struct frame_graph *graph = frame->graph;
    *n = graph->parent_starts[node + 1] - graph->parent_starts[node];
    return graph->parents + graph->parent_starts[node];
}

const uint32_t *frame_post_order(const struct frame *frame)
{
    return graph_post_order(frame->graph);
}

const uint32_t *frame_depths(const struct frame *frame)
{
    return graph_depths(frame->graph);
}

static const char *text_of(const struct frame *frame, uint32_t id)
{
    return frame->nodes->strings->table.strings[id];
}

enum frame_kind frame_kind(const struct frame *frame, uint32_t node)
{
    return frame->nodes->kinds[node];
}

const char *frame_kind_name(enum frame_kind kind)
{
    return kind_names[kind];
}

bool frame_kind_is_part(enum frame_kind kind)
{
    return kind == FRAME_LOOP || kind == FRAME_LINE || kind == FRAME_CALL || kind == FRAME_INSTRUCTION ||
           kind == FRAME_JUMP;
}

bool frame_kind_is_function(enum frame_kind kind)
{
    return kind == FRAME_FUNCTION || kind == FRAME_INLINED || kind == FRAME_OTHER;
}

const char *frame_name(const struct frame *frame, uint32_t node)
{
    return text_of(frame, frame->nodes->names[node]);
}

const char *frame_file(const struct frame *frame, uint32_t node)
{
    return text_of(frame, frame->nodes->files[node]);
}

const char *frame_module(const struct frame *frame, uint32_t node)
{
    return text_of(frame, frame->nodes->modules[node]);
}

uint32_t frame_line(const struct frame *frame, uint32_t node)
{
    return frame->nodes->lines[node];
}

const char *frame_identity(const struct frame *frame, uint32_t node)
{
    return text_of(frame, frame->nodes->identities[node]);
}

size_t frame_n_attributes(const struct frame *frame)
{
    return frame->nodes->n_attributes;
}

const char *frame_attribute_name(const struct frame *frame, size_t attribute)
{
    return frame->nodes->attributes[attribute].name;
}

bool frame_attribute_is_text(const struct frame *frame, size_t attribute)
{
    return frame->nodes->attributes[attribute].texts;
}

const char *frame_attribute_text(const struct frame *frame, size_t attribute, uint32_t node)
{
    const struct frame_attribute *of = &frame->nodes->attributes[attribute];
    return of->texts ? text_of(frame, of->texts[node]) : "";
}

double frame_attribute_number(const struct frame *frame, size_t attribute, uint32_t node)
{
    const struct frame_attribute *of = &frame->nodes->attributes[attribute];
    return of->numbers ? of->numbers[node] : NAN;
}

/* --- profiles and columns --- */

size_t frame_n_profiles(const struct frame *frame)
{
    return frame->profiles->n;
}

const struct frame_profile *frame_profile(const struct frame *frame, uint32_t profile)
{
    return &frame->profiles->items[profile];
}

size_t frame_n_columns(const struct frame *frame)
{
    return frame->n_columns;
}

const char *frame_column_name(const struct frame *frame, size_t column)
{
    return frame->columns[column]->name;
}

enum frame_sums frame_column_sums(const struct frame *frame, size_t column)
{
    return frame->columns[column]->sums;
}

bool frame_column_is_hidden(const struct frame *frame, size_t column)
{
    return frame->columns[column]->is_hidden;
}

size_t frame_find_number(const struct frame *frame, const char *name)
{
    for (size_t i = 0; i < frame_n_attributes(frame); i++)
        if (!frame_attribute_is_text(frame, i) && strcmp(frame_attribute_name(frame, i), name) == 0)
            return i;
    return SIZE_MAX;
}

size_t frame_find_column(const struct frame *frame, const char *name, struct error *err)
{
    for (size_t i = 0; i < frame->n_columns; i++)
        if (strcmp(frame->columns[i]->name, name) == 0)
            return i;
    (void)frame_unknown(frame, NULL, 0, "there is no column", name, err);
    return SIZE_MAX;
}

int frame_unknown(const struct frame *frame, const char *const *others, size_t n_others, const char *what,
                  const char *name, struct error *err)
{
    const char **names = malloc((frame->n_columns + n_others + 1) * sizeof *names);
    size_t n = 0;
    struct buf text = {0};
    if (!names)
        return error_memory(err);
    for (size_t i = 0; i < frame->n_columns; i++)
        if (!frame->columns[i]->is_hidden)
            names[n++] = frame->columns[i]->name;
    for (size_t i = 0; i < n_others; i++)
        names[n++] = others[i];
    spelling_suggest(&text, name, names, n);
    int code =
        text.failed ? error_memory(err) : error_set(err, ERR_NOT_FOUND, "%s '%.300s'%.600s", what, name, text.data);
    buf_fini(&text);
    free(names);
    return code;
}

/* How likely a report is about a column: what waits for memory comes before time, and bytes come last. */
static unsigned interest_of(const struct frame_column *column)
{
    unsigned interest = column->sums == FRAME_EXCLUSIVE ? 4 : 0;
    if (strcmp(column->name, MEM_LATENCY_NAME) == 0)
        return interest + 3;
    if (strcmp(column->name, "time") == 0)
        return interest + 2;
    bool is_bytes = strcmp(column->name, SIZE_NAME) == 0 ||
                    strncmp(column->name, LEAK_NAMES_PREFIX, strlen(LEAK_NAMES_PREFIX)) == 0;
    return interest + !is_bytes;
}

size_t frame_default_column(const struct frame *frame)
{
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < frame->n_columns; i++)
        if (!frame->columns[i]->is_hidden &&
            (found == SIZE_MAX || interest_of(frame->columns[i]) > interest_of(frame->columns[found])))
            found = i;
    return found;
}

/* "time" for "time (inc)"; the length of the name without the suffix. */
static size_t stem_of(const char *name)
{
    static const char *const suffixes[] = {" (inc)", " (I)", " (E)", " (exc)"};
    size_t len = strlen(name);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t n = strlen(suffixes[i]);
        if (len > n && strcmp(name + len - n, suffixes[i]) == 0)
            return len - n;
    }
    return len;
}

size_t frame_column_pair(const struct frame *frame, size_t column)
{
    const char *name = frame->columns[column]->name;
    size_t len = stem_of(name);
    for (size_t i = 0; i < frame->n_columns; i++) {
        const struct frame_column *other = frame->columns[i];
        bool is_other_sum = other->sums != FRAME_PLAIN && frame->columns[column]->sums != FRAME_PLAIN &&
                            other->sums != frame->columns[column]->sums;
        if (is_other_sum && stem_of(other->name) == len && strncmp(other->name, name, len) == 0)
            return i;
    }
    return SIZE_MAX;
}

int frame_values(struct frame *frame, size_t column, const struct frame_view *view, const double **values,
                 struct error *err)
{
    return column_values(frame->columns[column], view, values, err);
}

int frame_cells(struct frame *frame, size_t column, uint32_t node, const struct frame_cell **cells, size_t *n,
                struct error *err)
{
    return column_cells(frame->columns[column], node, cells, n, err);
}

/* --- many at once --- */

void frame_get_nodes(const struct frame *frame, enum frame_kind *kinds, const char **names, const char **files,
                     const char **modules, uint32_t *lines, uint32_t *parents)
{
    size_t n_parents = 0;
    for (uint32_t i = 0; i < frame_n_nodes(frame); i++) {
        const uint32_t *above = parents ? frame_parents(frame, i, &n_parents) : NULL;
        if (kinds)
            kinds[i] = frame_kind(frame, i);
        if (names)
            names[i] = frame_name(frame, i);
        if (files)
            files[i] = frame_file(frame, i);
        if (modules)
            modules[i] = frame_module(frame, i);
        if (lines)
            lines[i] = frame_line(frame, i);
        if (parents)
            parents[i] = n_parents ? above[0] : FRAME_NONE;
    }
}

void frame_get_texts(const struct frame *frame, size_t attribute, const char **texts)
{
    for (uint32_t i = 0; i < frame_n_nodes(frame); i++)
        texts[i] = frame_attribute_text(frame, attribute, i);
}

void frame_get_numbers(const struct frame *frame, size_t attribute, double *numbers)
{
    for (uint32_t i = 0; i < frame_n_nodes(frame); i++)
        numbers[i] = frame_attribute_number(frame, attribute, i);
}

int frame_entries(struct frame *frame, size_t column, struct frame_entry **entries, size_t *n, struct error *err)
{
    size_t n_cells, capacity = 0;
    const struct frame_cell *cells;
    int code = 0;
    *entries = NULL;
    *n = 0;
    for (uint32_t node = 0; code == 0 && node < frame_n_nodes(frame); node++) {
        code = frame_cells(frame, column, node, &cells, &n_cells, err);
        if (code == 0 && !vec_reserve(entries, &capacity, *n + n_cells, sizeof **entries))
            code = error_memory(err);
        for (size_t i = 0; code == 0 && i < n_cells; i++)
            (*entries)[(*n)++] = (struct frame_entry){node, cells[i].profile, cells[i].value};
    }
    if (code != 0) {
        free(*entries);
        *entries = NULL;
    }
    return code;
}

/* Rows on their way: those of all columns, and the cells of the node that is next. */
struct rows {
    size_t n, capacity, n_columns;
    uint32_t *nodes, *profiles; /* [capacity] */
    double **values;            /* [n_columns][capacity] */
    struct cells *cells;        /* [n_columns] */
    size_t *at;                 /* [n_columns] the next one of them */
};

/* More room in an array, which is not touched where it is not needed; false when out of memory. */
static bool widen(void *array, size_t n, size_t size)
{
    void **of = array, *wider = realloc(*of, n * size);
    if (wider)
        *of = wider;
    return wider;
}

static bool rows_reserve(struct rows *rows, size_t n)
{
    size_t n_new = rows->capacity ? rows->capacity : 1024;
    if (n <= rows->capacity)
        return true;
    while (n_new < n)
        n_new *= 2;
    bool ok = widen(&rows->nodes, n_new, sizeof *rows->nodes) && widen(&rows->profiles, n_new, sizeof *rows->profiles);
    for (size_t i = 0; ok && i < rows->n_columns; i++)
        ok = widen(&rows->values[i], n_new, sizeof(double));
    rows->capacity = ok ? n_new : rows->capacity;
    return ok;
}

/* Whether all columns have cells of the same profiles, as most do. */
static bool are_alike(const struct rows *rows)
{
    for (size_t i = 1; i < rows->n_columns; i++) {
        if (rows->cells[i].n != rows->cells[0].n)
            return false;
        for (size_t k = 0; k < rows->cells[0].n; k++)
            if (rows->cells[i].items[k].profile != rows->cells[0].items[k].profile)
                return false;
    }
    return rows->n_columns > 0;
}

/* Adds the rows of a node whose columns are alike. */
static void rows_add_alike(struct rows *rows, uint32_t node)
{
    size_t n = rows->cells[0].n;
    for (size_t k = 0; k < n; k++) {
        rows->nodes[rows->n + k] = node;
        rows->profiles[rows->n + k] = rows->cells[0].items[k].profile;
    }
    for (size_t i = 0; i < rows->n_columns; i++)
        for (size_t k = 0; k < n; k++)
            rows->values[i][rows->n + k] = rows->cells[i].items[k].value;
    rows->n += n;
}

/* Adds the rows of a node from the cells of the columns. */
static bool rows_add(struct rows *rows, uint32_t node)
{
    size_t n_most = 0;
    for (size_t i = 0; i < rows->n_columns; i++) {
        n_most += rows->cells[i].n;
        rows->at[i] = 0;
    }
    if (!rows_reserve(rows, rows->n + n_most))
        return false;
    if (are_alike(rows)) {
        rows_add_alike(rows, node);
        return true;
    }
    for (;; rows->n++) {
        uint32_t profile = FRAME_NONE;
        for (size_t i = 0; i < rows->n_columns; i++)
            if (rows->at[i] < rows->cells[i].n && rows->cells[i].items[rows->at[i]].profile < profile)
                profile = rows->cells[i].items[rows->at[i]].profile;
        if (profile == FRAME_NONE)
            return true;
        rows->nodes[rows->n] = node;
        rows->profiles[rows->n] = profile;
        for (size_t i = 0; i < rows->n_columns; i++) {
            const struct frame_cell *cell = &rows->cells[i].items[rows->at[i]];
            bool has_cell = rows->at[i] < rows->cells[i].n && cell->profile == profile;
            rows->values[i][rows->n] = has_cell ? cell->value : (double)NAN;
            rows->at[i] += has_cell;
        }
    }
}

static int rows_take(struct rows *rows, struct frame *frame, const size_t *columns, struct error *err)
{
    int code = rows_reserve(rows, 1) ? 0 : error_memory(err);
    for (uint32_t node = 0; code == 0 && node < frame_n_nodes(frame); node++) {
        for (size_t i = 0; code == 0 && i < rows->n_columns; i++) {
            const struct frame_cell *found;
            struct cells *to = &rows->cells[i];
            code = frame_cells(frame, columns[i], node, &found, &to->n, err);
            if (code == 0 && !vec_reserve(&to->items, &to->capacity, to->n, sizeof *found))
                code = error_memory(err);
            if (code == 0 && to->n)
                memcpy(to->items, found, to->n * sizeof *found);
        }
        if (code == 0 && !rows_add(rows, node))
            code = error_memory(err);
    }
    return code;
}

int frame_get_rows(struct frame *frame, const size_t *columns, size_t n_columns, uint32_t **nodes, uint32_t **profiles,
                   double **values, size_t *n, struct error *err)
{
    struct rows rows = {.n_columns = n_columns,
                        .values = values,
                        .cells = calloc(n_columns + 1, sizeof *rows.cells),
                        .at = calloc(n_columns + 1, sizeof *rows.at)};
    for (size_t i = 0; i < n_columns; i++)
        values[i] = NULL;
    int code = rows.cells && rows.at ? rows_take(&rows, frame, columns, err) : error_memory(err);
    size_t n_kept = rows.n ? rows.n : 1;
    for (size_t i = 0; rows.cells && i < n_columns; i++)
        cells_fini(&rows.cells[i]);
    free(rows.cells);
    free(rows.at);
    for (size_t i = 0; i < n_columns; i++) {
        if (code == 0) {
            (void)widen(&values[i], n_kept, sizeof(double));
            continue;
        }
        free(values[i]);
        values[i] = NULL;
    }
    if (code == 0) {
        (void)widen(&rows.nodes, n_kept, sizeof *rows.nodes);
        (void)widen(&rows.profiles, n_kept, sizeof *rows.profiles);
    } else {
        free(rows.nodes);
        free(rows.profiles);
        rows.nodes = rows.profiles = NULL;
    }
    *nodes = rows.nodes;
    *profiles = rows.profiles;
    *n = rows.n;
    return code;
}
