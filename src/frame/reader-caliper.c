/* SPDX-License-Identifier: BSD-3-Clause */
/* Caliper's json-split: "data" has rows, "columns" and "column_metadata" what their cells are, "nodes" the tree of
 * regions or functions and the values of columns that are no numbers. A row belongs to the node in its column of paths;
 * one without belongs to no node and is passed over. Rows of one node and rank are added up; those without a rank,
 * where others have one, are a profile of their own. All other members describe the run. Names of columns are those
 * that Hatchet gives them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame/make.h"
#include "frame/readers.h"

extern const struct frame_reader reader_caliper;

#define PATH "path"

struct column {
    uint32_t name; /* text */
    bool is_value;
    size_t number; /* of the maker */
    double scale;
};

struct node {
    uint32_t label, column; /* texts */
    uint32_t parent;        /* FRAME_NONE: none */
    uint32_t made;          /* of the maker; FRAME_NONE: not on a path */
};

struct reading {
    struct json_in in;
    struct strtab texts;
    struct column *columns; /* [n_columns] */
    size_t n_columns, cap_columns, n_described;
    struct node *nodes; /* [n_nodes] */
    size_t n_nodes, cap_nodes;
    double *cells; /* [n_cells] of all rows; NAN for null */
    size_t n_cells, cap_cells;
    size_t *rows; /* [n_rows] their first cells */
    size_t n_rows, cap_rows;
};

static int64_t intern(struct reading *reading)
{
    return strtab_intern(&reading->texts, reading->in.value.data);
}

/* --- the text --- */

/* Lists of cells. A text is a number that counts the texts, and belongs to no value. */
static int read_data(struct reading *reading, struct error *err)
{
    int piece, code = json_in_expect(&reading->in, JSON_IN_LIST, "\"data\" is a list", err);
    while (code == 0 && (piece = json_in_next(&reading->in, err)) != JSON_IN_LIST_END) {
        if (piece != JSON_IN_LIST)
            return piece < 0 ? piece : json_in_fail(&reading->in, "a row is a list", err);
        if (!vec_reserve(&reading->rows, &reading->cap_rows, reading->n_rows + 2, sizeof *reading->rows))
            return error_memory(err);
        reading->rows[reading->n_rows++] = reading->n_cells;
        while ((piece = json_in_next(&reading->in, err)) != JSON_IN_LIST_END) {
            if (piece < 0 || (piece != JSON_IN_NUMBER && piece != JSON_IN_NULL && piece != JSON_IN_TEXT))
                return piece < 0 ? piece : json_in_fail(&reading->in, "a cell is a number, a text or null", err);
            if (!vec_reserve(&reading->cells, &reading->cap_cells, reading->n_cells + 1, sizeof *reading->cells))
                return error_memory(err);
            char *end = NULL;
            double number = piece == JSON_IN_TEXT ? plain_number(reading->in.value.data, &end) : reading->in.number;
            bool is_number = piece == JSON_IN_NUMBER || (end && end != reading->in.value.data && !*end);
            reading->cells[reading->n_cells++] = is_number ? number : NAN;
        }
        reading->rows[reading->n_rows] = reading->n_cells;
    }
    return code;
}

static int reserve_column(struct reading *reading, size_t n, struct error *err)
{
    if (!vec_reserve(&reading->columns, &reading->cap_columns, n, sizeof *reading->columns))
        return error_memory(err);
    return 0;
}

static int read_columns(struct reading *reading, struct error *err)
{
    int piece, code = json_in_expect(&reading->in, JSON_IN_LIST, "\"columns\" is a list", err);
    while (code == 0 && (piece = json_in_next(&reading->in, err)) != JSON_IN_LIST_END) {
        if (piece != JSON_IN_TEXT)
            return piece < 0 ? piece : json_in_fail(&reading->in, "the name of a column is a text", err);
        int64_t name = intern(reading);
        code = name < 0 ? error_memory(err) : reserve_column(reading, reading->n_columns + 1, err);
        if (code == 0)
            reading->columns[reading->n_columns++].name = (uint32_t)name;
    }
    return code;
}

static int read_descriptions(struct reading *reading, struct error *err)
{
    int piece, code = json_in_expect(&reading->in, JSON_IN_LIST, "\"column_metadata\" is a list", err);
    while (code == 0 && (piece = json_in_next(&reading->in, err)) != JSON_IN_LIST_END) {
        if (piece != JSON_IN_OBJECT)
            return piece < 0 ? piece : json_in_fail(&reading->in, "a column is described by an object", err);
        code = reserve_column(reading, reading->n_described + 1, err);
        while (code == 0 && (piece = json_in_next(&reading->in, err)) != JSON_IN_OBJECT_END) {
            bool is_value = piece == JSON_IN_KEY && strcmp(reading->in.value.data, "is_value") == 0;
            piece = piece < 0 ? piece : json_in_next(&reading->in, err);
            if (is_value && piece == JSON_IN_NUMBER)
                reading->columns[reading->n_described].is_value = reading->in.number != 0;
            code = json_in_skip(&reading->in, piece, err);
        }
        reading->n_described++;
    }
    return code;
}

static int read_node(struct reading *reading, struct error *err)
{
    struct node node = {.parent = FRAME_NONE, .made = FRAME_NONE};
    int piece, code = 0;
    while (code == 0 && (piece = json_in_next(&reading->in, err)) != JSON_IN_OBJECT_END) {
        if (piece < 0)
            return piece;
        bool is_label = strcmp(reading->in.value.data, "label") == 0;
        bool is_column = strcmp(reading->in.value.data, "column") == 0;
        bool is_parent = strcmp(reading->in.value.data, "parent") == 0;
        piece = json_in_next(&reading->in, err);
        int64_t text = piece == JSON_IN_TEXT && (is_label || is_column) ? intern(reading) : 0;
        if (text < 0)
            return error_memory(err);
        if (is_label)
            node.label = (uint32_t)text;
        if (is_column)
            node.column = (uint32_t)text;
        if (is_parent && piece == JSON_IN_NUMBER) {
            if (!(reading->in.number >= 0 && reading->in.number < (double)reading->n_nodes))
                return json_in_fail(&reading->in, "the parent of a node does not precede it", err);
            node.parent = (uint32_t)reading->in.number;
        }
        code = json_in_skip(&reading->in, piece, err);
    }
    if (code == 0 && !vec_reserve(&reading->nodes, &reading->cap_nodes, reading->n_nodes + 1, sizeof node))
        return error_memory(err);
    if (code == 0)
        reading->nodes[reading->n_nodes++] = node;
    return code;
}

static int read_nodes(struct reading *reading, struct error *err)
{
    int piece, code = json_in_expect(&reading->in, JSON_IN_LIST, "\"nodes\" is a list", err);
    while (code == 0 && (piece = json_in_next(&reading->in, err)) != JSON_IN_LIST_END) {
        if (piece != JSON_IN_OBJECT)
            return piece < 0 ? piece : json_in_fail(&reading->in, "a node is an object", err);
        code = read_node(reading, err);
    }
    return code;
}

static int read_members(struct reading *reading, struct error *err)
{
    static const struct {
        const char *key;
        int (*read)(struct reading *reading, struct error *err);
    } members[] = {
        {"data", read_data}, {"columns", read_columns}, {"column_metadata", read_descriptions}, {"nodes", read_nodes}};
    int piece, code = json_in_expect(&reading->in, JSON_IN_OBJECT, "the text is an object", err);
    while (code == 0 && (piece = json_in_next(&reading->in, err)) == JSON_IN_KEY) {
        size_t i = 0, n = sizeof members / sizeof *members;
        while (i < n && strcmp(members[i].key, reading->in.value.data) != 0)
            i++;
        code = i < n ? members[i].read(reading, err) : json_in_skip(&reading->in, json_in_next(&reading->in, err), err);
    }
    if (code == 0)
        code = piece < 0 ? piece : json_in_expect(&reading->in, JSON_IN_END, "something follows the end", err);
    if (code == 0 && reading->n_columns != reading->n_described)
        code = json_in_fail(&reading->in, "\"columns\" and \"column_metadata\" have different lengths", err);
    for (size_t i = 0; code == 0 && i < reading->n_rows; i++)
        if (reading->rows[i + 1] - reading->rows[i] != reading->n_columns)
            code = json_in_fail(&reading->in, "a row of \"data\" has not as many cells as there are columns", err);
    return code;
}

/* --- the frame --- */

static const char *text_at(const struct reading *reading, uint32_t id)
{
    return reading->texts.strings[id];
}

/* The column of that name; SIZE_MAX. */
static size_t find_column(const struct reading *reading, const char *name)
{
    for (size_t i = 0; i < reading->n_columns; i++)
        if (strcmp(text_at(reading, reading->columns[i].name), name) == 0)
            return i;
    return SIZE_MAX;
}

/* The same for the first whose name is of a sort. */
static size_t find_like(const struct reading *reading, bool (*is_it)(const char *name))
{
    size_t i = 0;
    while (i < reading->n_columns && !is_it(text_at(reading, reading->columns[i].name)))
        i++;
    return i < reading->n_columns ? i : SIZE_MAX;
}

/* The tree: those nodes that are on paths. */
static void add_nodes(struct reading *reading, const char *path, struct frame_maker *maker)
{
    enum frame_kind kind = strcmp(path, PATH) == 0 ? FRAME_GROUP : FRAME_FUNCTION;
    for (size_t i = 0; i < reading->n_nodes; i++) {
        struct node *node = &reading->nodes[i];
        const char *label = text_at(reading, node->label);
        uint32_t parent = node->parent == FRAME_NONE ? FRAME_NONE : reading->nodes[node->parent].made;
        char unknown[32];
        if (strcmp(text_at(reading, node->column), path) != 0)
            continue;
        (void)snprintf(unknown, sizeof unknown, "UNKNOWN %zu", i);
        node->made = maker_node(maker, parent, &(struct made_node){.kind = kind, .name = *label ? label : unknown});
    }
}

/* The operators before a name ("sum#inclusive#sum#"), which is what this returns. */
static const char *take_operators(const char *name, bool *is_sum, bool *is_inclusive, bool *is_scaled)
{
    static const char *const sums[] = {"sum", "inclusive", "scale"};
    *is_sum = *is_inclusive = *is_scaled = false;
    if (strncmp(name, "sum#avg#", 8) == 0) /* Hatchet takes these for sums */
        name += 8;
    *is_sum = strncmp(name, "avg#", 4) != 0;
    for (const char *end; (end = strchr(name, '#')); name = end + 1) {
        size_t len = (size_t)(end - name), i = 0;
        while (i < sizeof sums / sizeof *sums && (strlen(sums[i]) != len || strncmp(sums[i], name, len) != 0))
            i++;
        *is_sum &= i < sizeof sums / sizeof *sums;
        *is_inclusive |= i == 1;
        *is_scaled |= i == 2;
    }
    return name;
}

size_t caliper_column(struct frame_maker *maker, const char *name, double *scale)
{
    bool is_sum, is_inclusive, is_scaled;
    const char *end = take_operators(name, &is_sum, &is_inclusive, &is_scaled);
    bool is_time = strcmp(end, "time.duration") == 0, is_ns = strcmp(end, "time.duration.ns") == 0;
    bool is_plain = strncmp(name, "avg#", 4) == 0 || strncmp(name, "min#", 4) == 0 || strncmp(name, "max#", 4) == 0;
    const char *known = is_inclusive ? "time (inc)" : "time";
    bool is_new = is_sum && end != name && (is_time || is_ns);
    for (size_t i = 0; is_new && i < maker->n_columns; i++)
        is_new = strcmp(maker->columns[i].name, known) != 0;
    *scale = is_new && is_ns && !is_scaled ? 1e-9 : 1;
    return maker_column(maker, is_new ? known : name,
                        is_inclusive ? FRAME_INCLUSIVE
                        : is_plain   ? FRAME_PLAIN
                                     : FRAME_EXCLUSIVE);
}

static bool ends_with(const char *name, const char *end)
{
    size_t len = strlen(name), n = strlen(end);
    return len >= n && strcmp(name + len - n, end) == 0;
}

bool caliper_is_rank(const char *name)
{
    return ends_with(name, "mpi.rank") || strcmp(name, "rank") == 0;
}

bool caliper_is_place(const char *name)
{
    return strncmp(name, "sourceloc#", 10) == 0;
}

static int compare_ranks(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The node of the maker that a row belongs to; FRAME_NONE. */
static uint32_t node_at(const struct reading *reading, size_t row, size_t path)
{
    double at = reading->cells[reading->rows[row] + path];
    return at >= 0 && at < (double)reading->n_nodes ? reading->nodes[(size_t)at].made : FRAME_NONE;
}

/* The ranks of all rows in ascending order, each once, as profiles, and one for rows without a rank; [*n], the
 * caller's. column SIZE_MAX: there are none. NULL when out of memory. */
static double *add_profiles(const struct reading *reading, size_t column, size_t path, struct frame_maker *maker,
                            size_t *n)
{
    double *ranks = calloc(reading->n_rows + 1, sizeof *ranks);
    bool has_others = false;
    *n = 0;
    for (size_t i = 0; i < reading->n_rows && column != SIZE_MAX; i++)
        has_others |= isnan(reading->cells[reading->rows[i] + column]) && node_at(reading, i, path) != FRAME_NONE;
    for (size_t i = 0; ranks && column != SIZE_MAX && i < reading->n_rows; i++)
        if (!isnan(reading->cells[reading->rows[i] + column]))
            ranks[(*n)++] = reading->cells[reading->rows[i] + column];
    size_t n_all = *n;
    if (n_all > 1)
        qsort(ranks, n_all, sizeof *ranks, compare_ranks);
    *n = 0;
    for (size_t i = 0; i < n_all; i++) {
        if (*n > 0 && ranks[*n - 1] == ranks[i])
            continue;
        char name[48];
        int64_t rank = fabs(ranks[i]) < 1e15 ? (int64_t)ranks[i] : -1;
        (void)snprintf(name, sizeof name, "rank %.15g", ranks[i]);
        (void)maker_profile(maker, &(struct frame_profile){name, rank, -1, -1, -1});
        ranks[(*n)++] = ranks[i];
    }
    if (has_others && *n > 0)
        (void)maker_profile(maker, &(struct frame_profile){"no rank", -1, -1, -1, -1});
    return ranks;
}

/* What the rows are made into. */
struct filling {
    struct frame_maker *maker;
    size_t path, rank, place; /* columns; SIZE_MAX: there is none */
    double *ranks;            /* [n_ranks] */
    size_t n_ranks;
    struct frame_paths lines;
};

/* The value of a column that is no number; NULL when the row has none. */
static const char *label_at(const struct reading *reading, const double *cells, size_t column)
{
    double i = column == SIZE_MAX ? NAN : cells[column];
    return i >= 0 && i < (double)reading->n_nodes ? text_at(reading, reading->nodes[(size_t)i].label) : NULL;
}

uint32_t caliper_line(struct frame_paths *paths, struct frame_maker *maker, uint32_t node, uint32_t like,
                      const char *place)
{
    struct buf text = {0}, file = {0};
    const char *colon = strrchr(place, ':');
    uint32_t line = colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0;
    buf_append(&file, place, colon ? (size_t)(colon - place) : strlen(place));
    hpctoolkit_place_name(FRAME_LINE, file.data ? file.data : "", line, &text);
    maker->failed |= file.failed || text.failed;
    struct made_node made = {.kind = FRAME_LINE, .name = text.data, .file = file.data, .line = line};
    uint32_t found = maker->failed ? 0 : paths_node(paths, maker, node, like, &made);
    buf_fini(&text);
    buf_fini(&file);
    return found;
}

static void add_row(struct reading *reading, size_t row, struct filling *filling)
{
    struct frame_maker *maker = filling->maker;
    const double *cells = &reading->cells[reading->rows[row]];
    const char *place = label_at(reading, cells, filling->place);
    uint32_t node = node_at(reading, row, filling->path), profile = 0;
    if (node == FRAME_NONE)
        return;
    if (place)
        node = caliper_line(&filling->lines, maker, node, reading->nodes[(size_t)cells[filling->place]].label, place);
    if (filling->rank != SIZE_MAX && filling->n_ranks > 0) {
        const double *found = isnan(cells[filling->rank]) ? NULL
                                                          : bsearch(&cells[filling->rank], filling->ranks,
                                                                    filling->n_ranks, sizeof *found, compare_ranks);
        profile = (uint32_t)(found ? (size_t)(found - filling->ranks) : filling->n_ranks);
    }
    for (size_t i = 0; i < reading->n_columns; i++) {
        const struct column *column = &reading->columns[i];
        if (column->is_value && i != filling->rank && !isnan(cells[i]))
            maker_value(maker, column->number, node, profile, cells[i] * column->scale);
        const char *label =
            column->is_value || i == filling->path || i == filling->place ? NULL : label_at(reading, cells, i);
        if (label)
            maker_text(maker, text_at(reading, column->name), node, label);
    }
}

static int make_frame(struct reading *reading, struct frame **frame, struct error *err)
{
    struct frame_maker maker;
    struct filling filling = {.maker = &maker, .path = find_column(reading, CALIPER_CALL_PATH)};
    if (filling.path == SIZE_MAX)
        filling.path = find_column(reading, PATH);
    if (filling.path == SIZE_MAX)
        return json_in_fail(&reading->in, "there is no column of paths", err);
    int code = readers_check_size(reading->in.name, reading->n_nodes, reading->n_columns,
                                  (size_t)(reading->in.end - reading->in.text), err);
    if (code != 0)
        return code;
    filling.rank = find_like(reading, caliper_is_rank);
    filling.place = find_like(reading, caliper_is_place);
    maker_init(&maker);
    add_nodes(reading, text_at(reading, reading->columns[filling.path].name), &maker);
    for (size_t i = 0; i < reading->n_columns; i++)
        if (reading->columns[i].is_value && i != filling.rank)
            reading->columns[i].number =
                caliper_column(&maker, text_at(reading, reading->columns[i].name), &reading->columns[i].scale);
    filling.ranks = add_profiles(reading, filling.rank, filling.path, &maker, &filling.n_ranks);
    maker.failed |= !filling.ranks;
    for (size_t i = 0; i < reading->n_rows && !maker.failed; i++)
        add_row(reading, i, &filling);
    free(filling.ranks);
    paths_fini(&filling.lines);
    return frame_made(&maker, frame, NULL, err);
}

static int read_caliper(const struct frame_input *input, struct frame **frame, struct error *err)
{
    struct reading reading = {0};
    struct buf text = {0};
    int code = readers_json(input, &text, &reading.texts, &reading.in, err);
    if (code == 0)
        code = read_members(&reading, err);
    if (code == 0)
        code = make_frame(&reading, frame, err);
    json_in_fini(&reading.in);
    strtab_fini(&reading.texts);
    free(reading.columns);
    free(reading.nodes);
    free(reading.cells);
    free(reading.rows);
    buf_fini(&text);
    return code;
}

/* An object with one of the members near its begin: "data" comes first. */
static bool fits_caliper(const struct frame_input *input)
{
    const char *at = input->head.data;
    at += strspn(at, " \t\r\n");
    return *at == '{' && (strstr(at, "\"data\"") || strstr(at, "\"column_metadata\""));
}

const struct frame_reader reader_caliper = {"Caliper's json-split", fits_caliper, read_caliper};
