/* SPDX-License-Identifier: BSD-3-Clause */
/* Databases of HPCToolkit in the XML form: experiment.xml has the nodes and, as M elements, sums over all profiles; a
 * metric-db file has the matrix of one profile, which stays mapped until values are asked for. Without such files the
 * sums are all there is. What is 0 in a matrix counts as not there: the matrices are dense, what they hold is not.
 *
 * An exclusive value in the file is that of a scope: of a function with its statements, loops, and in some files with
 * what is inlined there; of a loop with or without those in it. A node's own value is what its statements and, by the
 * inclusive values, its other children leave of that. (Hatchet takes statements away alone, and counts loops twice.)
 * Call sites (C) are no nodes; their line is the attribute call_line of what is called, and part of its identity. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/input.h"
#include "base/xml.h"
#include "fmt/file.h"
#include "frame/make.h"
#include "frame/readers.h"

extern const struct frame_reader reader_experiment;

#define METRIC_DB_TAG "HPCPROF-metricdb__"

enum { METRIC_DB_HEAD_BYTES = 32, METRIC_DB_COUNTS_AT = 24 };

/* What is less than this part of an inclusive value is nothing: sums of doubles, and of numbers of six digits. */
#define MATRIX_PRECISION 1e-9
#define SUM_PRECISION 1e-5

/* --- metric-db files --- */

/* A metric-db file in memory. */
struct matrix {
    char *name, *path;
    int64_t rank, thread, process;
    char host[32];
    const unsigned char *bytes;
    size_t len_bytes;
};

/* What the columns share. */
struct matrices {
    unsigned n_owners;
    struct matrix *items; /* [n], one for each profile */
    size_t n, capacity;
    uint32_t n_rows, n_metrics;
    uint32_t *row_of; /* [n_nodes] row + 1; 0: none */
    bool *is_taken;   /* [n_nodes] a statement whose exclusive values are taken from its parent's */
};

static void drop_matrices(struct matrices *matrices)
{
    if (!matrices || --matrices->n_owners)
        return;
    for (size_t i = 0; i < matrices->n; i++) {
        if (matrices->items[i].bytes)
            (void)munmap((void *)(uintptr_t)matrices->items[i].bytes, matrices->items[i].len_bytes);
        free(matrices->items[i].name);
        free(matrices->items[i].path);
    }
    free(matrices->items);
    free(matrices->row_of);
    free(matrices->is_taken);
    free(matrices);
}

/* Rank, thread, host and process of a name that ends "-RANK-THREAD-HOST-PID-GENERATION.metric-db". */
static void take_place(struct matrix *matrix)
{
    const char *at = matrix->name + strlen(matrix->name);
    long long rank, thread, process;
    for (int n = 0; at > matrix->name && n < 6; n += *at == '-') /* the suffix has one, too */
        at--;
    if (sscanf(at, "-%lld-%lld-%31[0-9A-Za-z_]-%lld-", &rank, &thread, matrix->host, &process) == 4) {
        matrix->rank = rank;
        matrix->thread = thread;
        matrix->process = process;
    }
}

static int compare_matrices(const void *a, const void *b)
{
    const struct matrix *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Lists the files of a directory, in order of rank and thread. */
static int list_matrices(const char *directory, struct matrices *matrices, struct error *err)
{
    static const char suffix[] = ".metric-db";
    DIR *dir = opendir(directory);
    int code = dir ? 0 : error_set(err, ERR_IO, "%.600s: cannot open: %s", directory, strerror(errno));
    const struct dirent *entry;
    while (code == 0 && (entry = readdir(dir))) {
        size_t len = strlen(entry->d_name), n = strlen(suffix);
        if (len < n || strcmp(entry->d_name + len - n, suffix) != 0)
            continue;
        if (!vec_reserve(&matrices->items, &matrices->capacity, matrices->n + 1, sizeof *matrices->items)) {
            code = error_memory(err);
            break;
        }
        struct matrix *matrix = &matrices->items[matrices->n++];
        *matrix = (struct matrix){.name = strdup(entry->d_name), .rank = -1, .thread = -1, .process = -1};
        if (!matrix->name || asprintf(&matrix->path, "%s/%s", directory, matrix->name) < 0) {
            matrix->path = NULL;
            code = error_memory(err);
            break;
        }
        take_place(matrix);
    }
    if (dir)
        (void)closedir(dir);
    if (code == 0 && matrices->n > 1)
        qsort(matrices->items, matrices->n, sizeof *matrices->items, compare_matrices);
    return code;
}

/* Maps a file and checks its head: all files of a database have the same shape. */
static int map_matrix(struct matrix *matrix, struct matrices *matrices, struct error *err)
{
    struct stat info;
    int fd = input_open(AT_FDCWD, matrix->path, 0, &info);
    if (fd < 0)
        return error_set(err, ERR_IO, "%.600s: cannot open: %s", matrix->path, input_reason(errno));
    void *bytes = info.st_size > 0 ? mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    int number = errno;
    (void)close(fd);
    if (bytes == MAP_FAILED)
        return error_set(err, ERR_IO, "%.600s: cannot map: %s", matrix->path, strerror(number));
    matrix->bytes = bytes;
    matrix->len_bytes = (size_t)info.st_size;
    if (matrix->len_bytes < METRIC_DB_HEAD_BYTES || memcmp(bytes, METRIC_DB_TAG, strlen(METRIC_DB_TAG)) != 0)
        return error_set(err, ERR_FORMAT, "%.600s: offset 0: not a metric-db file", matrix->path);
    if (matrix->bytes[METRIC_DB_COUNTS_AT - 1] != 'b')
        return error_set(err, ERR_UNSUPPORTED, "%.600s: offset 23: only big-endian files are known", matrix->path);
    uint32_t n_rows = (uint32_t)bytes_get_be(matrix->bytes + METRIC_DB_COUNTS_AT, 4);
    uint32_t n_metrics = (uint32_t)bytes_get_be(matrix->bytes + METRIC_DB_COUNTS_AT + 4, 4);
    size_t n_doubles = (matrix->len_bytes - METRIC_DB_HEAD_BYTES) / 8;
    if (n_metrics != matrices->n_metrics)
        return error_set(err, ERR_FORMAT, "%.600s: offset 28: %u metrics, and experiment.xml has %u", matrix->path,
                         n_metrics, matrices->n_metrics);
    if ((uint64_t)n_rows * n_metrics > n_doubles)
        return error_set(err, ERR_FORMAT, "%.600s: offset 24: %u nodes of %u metrics are not in a file of %zu bytes",
                         matrix->path, n_rows, n_metrics, matrix->len_bytes);
    if (matrix != matrices->items && n_rows != matrices->n_rows)
        return error_set(err, ERR_FORMAT, "%.600s: offset 24: %u nodes, and the other files have %u", matrix->path,
                         n_rows, matrices->n_rows);
    matrices->n_rows = n_rows;
    return 0;
}

/* --- columns --- */

struct matrix_column {
    struct frame_column base;
    struct matrices *matrices;
    struct frame_graph *graph;
    uint32_t metric, partner; /* the inclusive one beside an exclusive one; FRAME_NONE */
    double scale;             /* as in struct metric */
};

/* A node's own value. own: its exclusive value without those of its statements; inclusive: its inclusive value, and
 * rest what its children leave of it, both rounded to a part of precision. What is less than nothing was rounded. */
static double own_value(double own, double inclusive, double rest, double precision)
{
    if (own <= 0 || rest >= own)
        return own;
    return rest > precision * inclusive ? rest : 0;
}

/* The value of a node in a profile, as the file has it. */
static double cell_at(const struct matrices *matrices, size_t profile, uint32_t metric, uint32_t node)
{
    const unsigned char *bytes = matrices->items[profile].bytes + METRIC_DB_HEAD_BYTES;
    uint32_t row = matrices->row_of[node];
    if (row == 0 || row > matrices->n_rows)
        return 0;
    return bytes_double_of(bytes_get_be(bytes + 8 * ((size_t)(row - 1) * matrices->n_metrics + metric), 8));
}

/* The same, or in an exclusive column its own value, in the unit of the file. */
static double value_at(const struct matrix_column *column, size_t profile, uint32_t node)
{
    const struct matrices *matrices = column->matrices;
    const struct frame_graph *graph = column->graph;
    double value = cell_at(matrices, profile, column->metric, node);
    if (column->base.sums != FRAME_EXCLUSIVE)
        return value;
    uint32_t end = graph->child_starts[node + 1];
    for (uint32_t i = graph->child_starts[node]; i < end; i++)
        if (matrices->is_taken[graph->children[i]])
            value -= cell_at(matrices, profile, column->metric, graph->children[i]);
    if (value == 0 || column->partner == FRAME_NONE)
        return value;
    double inclusive = cell_at(matrices, profile, column->partner, node), rest = inclusive;
    for (uint32_t i = graph->child_starts[node]; i < end; i++)
        rest -= cell_at(matrices, profile, column->partner, graph->children[i]);
    return own_value(value, inclusive, rest, MATRIX_PRECISION);
}

static int read_row(struct frame_column *column, uint32_t node, struct cells *row, struct error *err)
{
    const struct matrix_column *of = (const struct matrix_column *)column;
    for (size_t i = 0; i < of->matrices->n; i++) {
        double value = value_at(of, i, node) * of->scale;
        if (value != 0 && !cells_add(row, (uint32_t)i, value))
            return error_memory(err);
    }
    return 0;
}

static void drop_column(struct frame_column *column)
{
    drop_matrices(((struct matrix_column *)column)->matrices);
    graph_drop(((struct matrix_column *)column)->graph);
}

static const struct column_class matrix_class = {read_row, NULL, drop_column};

/* --- what experiment.xml says --- */

/* Texts by their numbers in the file. */
struct table {
    struct strtab ids;
    const char **texts; /* [ids.n_strings] borrowed from the file's text */
    size_t capacity;
};

/* A metric: of MetricTable, or of MetricDBTable. */
struct metric {
    const char *id, *name;
    bool is_hidden;
    size_t column; /* of the maker, when there are no metric-db files */
    double scale;  /* from the values of the file to those of the column */
    enum frame_sums sums;
};

struct metrics {
    struct metric *items; /* [n] */
    size_t n, capacity;
};

enum tag { TAG_OTHER = 0, TAG_PROCEDURE, TAG_LOOP, TAG_STATEMENT, TAG_CALL };

/* A node as it comes; node: what hpctoolkit_find_kinds needs. */
struct made {
    const char *file, *module;
    uint32_t line, call_line, row;
    bool is_taken;
};

/* An open element below SecCallPathProfileData. */
struct level {
    enum tag tag;
    uint32_t node; /* that it is, or lies in; FRAME_NONE: none */
    bool is_node;
    const char *file;
    uint32_t call_line; /* for procedures below it */
};

struct reading {
    struct xml_in xml;
    struct table modules, files, procedures;
    struct metrics sums, dbs;
    struct hpctoolkit_node *nodes; /* [n_nodes] */
    struct made *made;             /* [n_nodes] */
    size_t n_nodes, cap_nodes, cap_made;
    struct level *levels; /* [n_levels] */
    size_t n_levels, cap_levels;
    bool is_data; /* inside SecCallPathProfileData */
    bool is_experiment;
    struct sum {
        uint32_t node, metric;
        double value;
    } * values; /* [n_values] M elements */
    size_t n_values, cap_values;
    bool failed; /* out of memory */
};

static const char *attribute(const struct reading *reading, const char *name)
{
    const char *value = xml_attribute(&reading->xml, name);
    return value ? value : "";
}

static void take_text(struct reading *reading, struct table *table)
{
    int64_t id = strtab_intern(&table->ids, attribute(reading, "i"));
    if (id < 0 || !vec_reserve(&table->texts, &table->capacity, (size_t)id + 1, sizeof *table->texts)) {
        reading->failed = true;
        return;
    }
    table->texts[id] = attribute(reading, "n");
}

/* The text that an attribute names; "" when there is no such attribute, and an error when there is no such text. */
static int find_text(struct reading *reading, const struct table *table, const char *name, const char **text,
                     struct error *err)
{
    const char *id = xml_attribute(&reading->xml, name);
    int64_t i = id ? strtab_find(&table->ids, id) : -1;
    *text = i >= 0 ? table->texts[i] : "";
    if (id && i < 0 && strcmp(id, "0") != 0) {
        char reason[128];
        (void)snprintf(reason, sizeof reason, "%s=\"%.40s\" is in no table", name, id);
        return xml_fail(&reading->xml, reason, err);
    }
    return 0;
}

static void take_metric(struct reading *reading, struct metrics *metrics)
{
    if (!vec_reserve(&metrics->items, &metrics->capacity, metrics->n + 1, sizeof *metrics->items)) {
        reading->failed = true;
        return;
    }
    const char *name = attribute(reading, "n");
    size_t len = strlen(name);
    enum frame_sums sums = FRAME_PLAIN;
    if (len > 4 && strcmp(name + len - 4, " (I)") == 0)
        sums = FRAME_INCLUSIVE;
    if (len > 4 && strcmp(name + len - 4, " (E)") == 0)
        sums = FRAME_EXCLUSIVE;
    metrics->items[metrics->n++] = (struct metric){.id = attribute(reading, "i"),
                                                   .name = name,
                                                   .is_hidden = strcmp(attribute(reading, "show"), "0") == 0,
                                                   .sums = sums};
}

/* The name of a column: "time (inc)" for "CPUTIME (usec):Sum (I)". Returns its scale. */
static double column_name(const struct metric *metric, struct buf *out)
{
    double scale;
    size_t len = strlen(metric->name) - (metric->sums == FRAME_PLAIN ? 0 : strlen(" (I)"));
    if (len > 4 && memcmp(metric->name + len - 4, ":Sum", 4) == 0)
        len -= 4;
    const char *stem = hpctoolkit_metric_name(metric->name, &len, &scale);
    out->len_bytes = 0;
    buf_printf(out, "%.*s%s", (int)len, stem, metric->sums == FRAME_INCLUSIVE ? " (inc)" : "");
    return scale;
}

/* The inclusive metric of the same name: writers put it beside the exclusive one. FRAME_NONE: there is none. */
static uint32_t partner_of(const struct metrics *metrics, size_t metric)
{
    const char *name = metrics->items[metric].name;
    for (size_t i = metric ? metric - 1 : 0; i < metrics->n && i <= metric + 1; i++) {
        const struct metric *other = &metrics->items[i];
        if (metrics->items[metric].sums == FRAME_EXCLUSIVE && other->sums == FRAME_INCLUSIVE &&
            strlen(name) == strlen(other->name) && strncmp(name, other->name, strlen(name) - strlen("(E)")) == 0)
            return (uint32_t)i;
    }
    return FRAME_NONE;
}

static uint32_t take_number(const struct reading *reading, const char *name)
{
    unsigned long value = strtoul(attribute(reading, name), NULL, 10);
    return value < UINT32_MAX ? (uint32_t)value : 0;
}

/* Appends a node for the element just opened, which the level belongs to. */
static int take_node(struct reading *reading, struct level *level, enum frame_kind kind, const char *name,
                     struct error *err)
{
    struct made made = {.file = level->file,
                        .module = "",
                        .line = take_number(reading, "l"),
                        .row = take_number(reading, "i"),
                        .call_line = level->tag == TAG_PROCEDURE ? level->call_line : 0};
    int code = level->tag == TAG_PROCEDURE ? find_text(reading, &reading->modules, "lm", &made.module, err) : 0;
    if (!vec_reserve(&reading->nodes, &reading->cap_nodes, reading->n_nodes + 1, sizeof *reading->nodes) ||
        !vec_reserve(&reading->made, &reading->cap_made, reading->n_nodes + 1, sizeof *reading->made))
        return error_memory(err);
    made.is_taken = kind == FRAME_LINE && reading->n_levels > 0 && reading->levels[reading->n_levels - 1].is_node;
    reading->made[reading->n_nodes] = made;
    reading->nodes[reading->n_nodes] = (struct hpctoolkit_node){.name = name, .parent = level->node, .kind = kind};
    level->node = (uint32_t)reading->n_nodes++;
    level->is_node = true;
    level->call_line = 0;
    return code;
}

/* An element of the tree: what it is, and the node that it makes. */
static int open_element(struct reading *reading, struct error *err)
{
    const char *element = reading->xml.element, *name = "";
    struct level level = {.node = FRAME_NONE, .file = ""};
    int code = 0;
    bool is_inlined = strcmp(element, "Pr") == 0;
    if (reading->n_levels > 0)
        level = reading->levels[reading->n_levels - 1];
    level.tag = TAG_OTHER;
    level.is_node = false;
    if (strcmp(element, "PF") == 0 || is_inlined) {
        level.tag = TAG_PROCEDURE;
        code = find_text(reading, &reading->files, "f", &level.file, err);
        code = code ? code : find_text(reading, &reading->procedures, "n", &name, err);
        if (code == 0 && is_inlined && !*name) /* stands for the place of a call */
            level.call_line = take_number(reading, "l");
        else if (code == 0)
            code = take_node(reading, &level, is_inlined ? FRAME_INLINED : FRAME_FUNCTION, name, err);
    } else if (strcmp(element, "L") == 0) {
        level.tag = TAG_LOOP;
        if (xml_attribute(&reading->xml, "f"))
            code = find_text(reading, &reading->files, "f", &level.file, err);
        code = code ? code : take_node(reading, &level, FRAME_LOOP, NULL, err);
    } else if (strcmp(element, "S") == 0) {
        level.tag = TAG_STATEMENT;
        code = take_node(reading, &level, FRAME_LINE, NULL, err);
    } else if (strcmp(element, "C") == 0) {
        level.tag = TAG_CALL;
        level.call_line = take_number(reading, "l");
    }
    if (!vec_reserve(&reading->levels, &reading->cap_levels, reading->n_levels + 1, sizeof *reading->levels))
        return error_memory(err);
    reading->levels[reading->n_levels++] = level;
    return code;
}

/* M: a sum of the element around it. */
static int take_sum(struct reading *reading, struct error *err)
{
    const struct level *level = reading->n_levels > 0 ? &reading->levels[reading->n_levels - 1] : NULL;
    const char *id = attribute(reading, "n");
    uint32_t metric = 0;
    while (metric < reading->sums.n && strcmp(reading->sums.items[metric].id, id) != 0)
        metric++;
    if (!level || !level->is_node || metric == reading->sums.n)
        return 0;
    if (!vec_reserve(&reading->values, &reading->cap_values, reading->n_values + 1, sizeof *reading->values))
        return error_memory(err);
    char *end;
    const char *text = attribute(reading, "v");
    double value = plain_number(text, &end);
    if (end == text || *end)
        return xml_fail(&reading->xml, "a value is no number", err);
    reading->values[reading->n_values++] = (struct sum){level->node, metric, value};
    return 0;
}

/* The begin of an element outside the tree. */
static void open_table(struct reading *reading)
{
    const char *element = reading->xml.element;
    reading->is_experiment |= strcmp(element, "HPCToolkitExperiment") == 0;
    if (strcmp(element, "LoadModule") == 0)
        take_text(reading, &reading->modules);
    else if (strcmp(element, "File") == 0)
        take_text(reading, &reading->files);
    else if (strcmp(element, "Procedure") == 0)
        take_text(reading, &reading->procedures);
    else if (strcmp(element, "Metric") == 0)
        take_metric(reading, &reading->sums);
    else if (strcmp(element, "MetricDB") == 0)
        take_metric(reading, &reading->dbs);
    else if (strcmp(element, "SecCallPathProfileData") == 0)
        reading->is_data = true;
}

static int close_element(struct reading *reading, struct error *err)
{
    const char *element = reading->xml.element;
    if (!reading->is_data || strcmp(element, "M") == 0)
        return 0;
    if (reading->n_levels > 0)
        reading->n_levels--;
    else if (strcmp(element, "SecCallPathProfileData") == 0)
        reading->is_data = false;
    else
        return xml_fail(&reading->xml, "an element ends that has not begun", err);
    return 0;
}

static int read_elements(struct reading *reading, struct error *err)
{
    int event, code = 0;
    while (code == 0 && !reading->failed && (event = xml_next(&reading->xml, err)) != XML_END_OF_TEXT) {
        if (event < 0)
            return event;
        if (event == XML_CLOSE)
            code = close_element(reading, err);
        else if (!reading->is_data)
            open_table(reading);
        else if (strcmp(reading->xml.element, "M") == 0)
            code = take_sum(reading, err);
        else
            code = open_element(reading, err);
    }
    if (code == 0 && reading->failed)
        return error_memory(err);
    if (code == 0 && !reading->is_experiment)
        return xml_fail(&reading->xml, "there is no HPCToolkitExperiment", err);
    if (code == 0 && (reading->is_data || reading->n_levels > 0))
        return xml_fail(&reading->xml, "the text ends within the call path profile", err);
    return code;
}

/* --- the frame --- */

static void add_nodes(struct reading *reading, struct frame_maker *maker)
{
    struct buf text = {0}, identity = {0};
    for (size_t i = 0; i < reading->n_nodes; i++) {
        const struct hpctoolkit_node *from = &reading->nodes[i];
        const struct made *made = &reading->made[i];
        struct made_node node = {from->kind, from->name, made->file, made->module, made->line, NULL};
        if (!from->name) {
            hpctoolkit_place_name(from->kind, made->file, made->line, &text);
            node.name = text.data;
        }
        if (made->call_line) {
            identity.len_bytes = 0;
            buf_printf(&identity, "%s\x1f%s\x1f%s\x1f%u", frame_kind_name(from->kind), node.name, made->file,
                       made->call_line);
            node.identity = identity.data;
        }
        uint32_t number = maker_node(maker, from->parent, &node);
        if (made->call_line)
            maker_number(maker, "call_line", number, made->call_line);
        maker_number(maker, "id", number, made->row);
    }
    hpctoolkit_set_data(maker, reading->nodes, reading->n_nodes, NULL);
    maker->failed |= text.failed || identity.failed;
    buf_fini(&text);
    buf_fini(&identity);
}

/* Puts the sums in order of metrics: starts [sums.n + 1] is where each begins. */
static bool order_sums(struct reading *reading, size_t *starts)
{
    struct sum *sorted = malloc((reading->n_values + 1) * sizeof *sorted);
    if (!sorted)
        return false;
    for (size_t i = 0; i < reading->n_values; i++)
        starts[reading->values[i].metric]++;
    for (size_t i = 0, n = 0; i <= reading->sums.n; i++) {
        size_t n_before = n;
        n += i < reading->sums.n ? starts[i] : 0;
        starts[i] = n_before;
    }
    for (size_t i = 0; i < reading->n_values; i++)
        sorted[starts[reading->values[i].metric]++] = reading->values[i];
    for (size_t i = reading->sums.n; i > 0; i--)
        starts[i] = starts[i - 1];
    starts[0] = 0;
    free(reading->values);
    reading->values = sorted;
    return true;
}

/* Hands out the number of a node, if there is any, and leaves 0 there. */
static void give_own(double *own, uint32_t node, const struct metric *metric, struct frame_maker *maker)
{
    if (own[node] != 0)
        maker_value(maker, metric->column, node, 0, own[node] * metric->scale);
    own[node] = 0;
}

/* The values of an exclusive metric. own, rest [n_nodes]: space, all 0 before and after. */
static void add_own_sums(const struct reading *reading, const size_t *starts, size_t metric, double *own, double *rest,
                         struct frame_maker *maker)
{
    const struct sum *sums = reading->values;
    uint32_t partner = partner_of(&reading->sums, metric);
    const struct metric *of = &reading->sums.items[metric];
    size_t begin = partner == FRAME_NONE ? 0 : starts[partner], end = partner == FRAME_NONE ? 0 : starts[partner + 1];
    for (size_t i = starts[metric]; i < starts[metric + 1]; i++) {
        own[sums[i].node] += sums[i].value;
        if (reading->made[sums[i].node].is_taken)
            own[reading->nodes[sums[i].node].parent] -= sums[i].value;
    }
    for (size_t i = begin; i < end; i++) {
        uint32_t parent = reading->nodes[sums[i].node].parent;
        rest[sums[i].node] += sums[i].value;
        if (parent != FRAME_NONE)
            rest[parent] -= sums[i].value;
    }
    for (size_t i = begin; i < end; i++)
        own[sums[i].node] = own_value(own[sums[i].node], sums[i].value, rest[sums[i].node], SUM_PRECISION);
    for (size_t i = begin; i < end; i++) {
        uint32_t parent = reading->nodes[sums[i].node].parent;
        rest[sums[i].node] = 0;
        if (parent != FRAME_NONE)
            rest[parent] = 0;
    }
    for (size_t i = starts[metric]; i < starts[metric + 1]; i++) {
        give_own(own, sums[i].node, of, maker);
        if (reading->made[sums[i].node].is_taken)
            give_own(own, reading->nodes[sums[i].node].parent, of, maker);
    }
}

static void add_sum_columns(struct reading *reading, struct frame_maker *maker)
{
    size_t *starts = calloc(reading->sums.n + 1, sizeof *starts);
    double *own = calloc(reading->n_nodes + 1, sizeof *own), *rest = calloc(reading->n_nodes + 1, sizeof *rest);
    maker->failed |= !starts || !own || !rest || !order_sums(reading, starts);
    for (size_t metric = 0; !maker->failed && metric < reading->sums.n; metric++) {
        const struct metric *of = &reading->sums.items[metric];
        if (of->sums == FRAME_EXCLUSIVE)
            add_own_sums(reading, starts, metric, own, rest, maker);
        else
            for (size_t i = starts[metric]; i < starts[metric + 1]; i++)
                maker_value(maker, of->column, reading->values[i].node, 0, reading->values[i].value * of->scale);
    }
    free(starts);
    free(own);
    free(rest);
}

/* The sums of the M elements, of one profile without a name. */
static void add_sums(struct reading *reading, struct frame_maker *maker)
{
    struct buf name = {0};
    for (size_t i = 0; i < reading->sums.n; i++) {
        struct metric *metric = &reading->sums.items[i];
        metric->scale = column_name(metric, &name);
        metric->column = maker_column(maker, name.failed ? "" : name.data, metric->sums);
        if (!maker->failed)
            maker->columns[metric->column].is_hidden = metric->is_hidden;
    }
    add_sum_columns(reading, maker);
    maker->failed |= name.failed;
    buf_fini(&name);
}

static void add_profiles(const struct matrices *matrices, struct frame_maker *maker)
{
    struct strtab hosts = {0};
    for (size_t i = 0; i < matrices->n; i++) {
        const struct matrix *matrix = &matrices->items[i];
        struct frame_profile profile = {matrix->name, matrix->rank, matrix->thread, matrix->process, -1};
        char name[96];
        if (matrix->rank >= 0) {
            (void)snprintf(name, sizeof name, "rank %jd thread %jd", (intmax_t)matrix->rank, (intmax_t)matrix->thread);
            profile.name = name;
            profile.node = strtab_intern(&hosts, matrix->host);
        }
        (void)maker_profile(maker, &profile);
    }
    strtab_fini(&hosts);
}

/* Whether a report shows the metric: MetricDB does not say, its sum in MetricTable does. */
static bool is_hidden(const struct reading *reading, const char *column)
{
    struct buf name = {0};
    bool found = false;
    for (size_t i = 0; i < reading->sums.n && !found && !name.failed; i++) {
        (void)column_name(&reading->sums.items[i], &name);
        found = reading->sums.items[i].is_hidden && strcmp(name.data, column) == 0;
    }
    buf_fini(&name);
    return found;
}

static int add_columns(const struct reading *reading, struct matrices *matrices, struct frame *frame, struct error *err)
{
    struct buf name = {0};
    int code = 0;
    for (size_t i = 0; code == 0 && i < reading->dbs.n; i++) {
        const struct metric *metric = &reading->dbs.items[i];
        double scale = column_name(metric, &name);
        struct frame_column *column = name.failed ? NULL
                                                  : column_new(&matrix_class, sizeof(struct matrix_column), name.data,
                                                               metric->sums, frame->graph->n, (uint32_t)matrices->n);
        if (column) {
            struct matrix_column *of = (struct matrix_column *)column;
            matrices->n_owners++;
            of->matrices = matrices;
            of->graph = graph_keep(frame->graph);
            of->metric = (uint32_t)i;
            of->partner = partner_of(&reading->dbs, i);
            of->scale = scale;
            column->is_hidden = is_hidden(reading, name.data);
        }
        code = frame_add_column(frame, column, err);
    }
    buf_fini(&name);
    return code;
}

/* What the columns need of each node. */
static bool make_rows(const struct reading *reading, struct matrices *matrices)
{
    matrices->row_of = calloc(reading->n_nodes + 1, sizeof *matrices->row_of);
    matrices->is_taken = calloc(reading->n_nodes + 1, sizeof *matrices->is_taken);
    for (size_t i = 0; matrices->row_of && matrices->is_taken && i < reading->n_nodes; i++) {
        matrices->row_of[i] = reading->made[i].row;
        matrices->is_taken[i] = reading->made[i].is_taken;
    }
    return matrices->row_of && matrices->is_taken;
}

static int open_matrices(const struct reading *reading, const char *directory, struct matrices *matrices,
                         struct error *err)
{
    int code = reading->dbs.n ? list_matrices(directory, matrices, err) : 0;
    matrices->n_metrics = (uint32_t)reading->dbs.n;
    for (size_t i = 0; code == 0 && i < matrices->n; i++)
        code = map_matrix(&matrices->items[i], matrices, err);
    if (code == 0 && !make_rows(reading, matrices))
        code = error_memory(err);
    return code;
}

static int make_frame(struct reading *reading, const char *directory, struct frame **frame, struct error *err)
{
    struct matrices *matrices = calloc(1, sizeof *matrices);
    if (!matrices || !hpctoolkit_find_kinds(reading->nodes, reading->n_nodes)) {
        free(matrices);
        return error_memory(err);
    }
    matrices->n_owners = 1;
    int code = readers_check_size(reading->xml.name, reading->n_nodes, reading->sums.n,
                                  (size_t)(reading->xml.end - reading->xml.text), err);
    if (code == 0)
        code = open_matrices(reading, directory, matrices, err);
    struct frame *made = NULL;
    if (code == 0) {
        struct frame_maker maker;
        maker_init(&maker);
        add_nodes(reading, &maker);
        if (matrices->n > 0)
            add_profiles(matrices, &maker);
        else
            add_sums(reading, &maker);
        code = frame_made(&maker, &made, NULL, err);
    }
    if (code == 0 && matrices->n > 0)
        code = add_columns(reading, matrices, made, err);
    if (code == 0)
        *frame = made;
    else
        frame_close(made);
    drop_matrices(matrices);
    return code;
}

static void fini_table(struct table *table)
{
    strtab_fini(&table->ids);
    free(table->texts);
}

/* path: of experiment.xml */
static int read_experiment(const char *path, const char *directory, struct frame **frame, struct error *err)
{
    struct reading reading = {0};
    struct buf text = {0};
    int code = file_read(path, &text, err);
    if (code == 0) {
        buf_append(&text, "", 0);
        reading.xml =
            (struct xml_in){.text = text.data, .at = text.data, .end = text.data + text.len_bytes, .name = path};
        code = text.data ? read_elements(&reading, err)
                         : error_set(err, ERR_FORMAT, "%.600s: offset 0: it is empty", path);
    }
    if (code == 0)
        code = make_frame(&reading, directory, frame, err);
    fini_table(&reading.modules);
    fini_table(&reading.files);
    fini_table(&reading.procedures);
    free(reading.sums.items);
    free(reading.dbs.items);
    free(reading.nodes);
    free(reading.made);
    free(reading.levels);
    free(reading.values);
    buf_fini(&text);
    return code;
}

static int read_xml(const struct frame_input *input, struct frame **frame, struct error *err)
{
    char *path = NULL, *directory = readers_directory(input);
    if (!directory || asprintf(&path, "%s/experiment.xml", directory) < 0) {
        free(directory);
        return error_memory(err);
    }
    int code = read_experiment(input->is_directory ? path : input->path, directory, frame, err);
    free(path);
    free(directory);
    return code;
}

static bool fits_xml(const struct frame_input *input)
{
    if (input->is_directory)
        return readers_begins(input->path, "experiment.xml", "<");
    return input->head.data[0] == '<' && strstr(input->head.data, "HPCToolkitExperiment");
}

const struct frame_reader reader_experiment = {"one in the XML form (experiment.xml)", fits_xml, read_xml};
