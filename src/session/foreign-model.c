/* SPDX-License-Identifier: BSD-3-Clause */
/* A frame that another tool's file gave, as a model of which code is known alone: its metrics, and the rows of
 * functions, lines and instructions, from which all reports about code are made. There is one way for all files: what a
 * frame has as nodes, it has as rows here. Ordinary code. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model.h"
#include "analysis/report/code-table.h"
#include "frame/ops.h"
#include "session/questions.h"

/* What a node is a part of, as string ids of the model. */
struct place {
    uint32_t function, declared_in, module; /* of the function around it */
    uint32_t file, line;                    /* line 0: not known */
    uint32_t call_line;                     /* of a function: the line that calls it, 0: not known */
    uint64_t vaddr;                         /* in code_module; 0: it is no instruction */
    uint32_t code_module;
    bool is_of_function; /* it is one, or a part of one */
    bool is_in_function; /* it is a part */
    bool is_place;       /* it is a line or an instruction that is known */
};

struct foreign {
    struct code_source source; /* first: the callback gets it */
    const char *path;
    struct model *model;
    struct frame *frame;  /* functions where the file has no more */
    struct frame *parts;  /* with lines and instructions */
    struct frame *flat;   /* functions, each once */
    struct place *places; /* [n_nodes of parts] */
    bool has_lines;
};

struct frame *foreign_frame(const struct foreign *foreign)
{
    return foreign->frame;
}

const struct model *foreign_model(const struct foreign *foreign)
{
    return foreign->model;
}

/* --- rows --- */

static double known(const double *values, size_t i)
{
    return !values || isnan(values[i]) ? 0 : values[i];
}

/* The values of a metric without and with callees; NULL: it has no such ones.  err: as frame_values */
static int values_of(struct frame *frame, const char *metric, const double **own, const double **inclusive,
                     struct error *err)
{
    size_t column = frame_find_column(frame, metric, err);
    *own = *inclusive = NULL;
    if (column == SIZE_MAX)
        return err->code;
    if (frame_column_sums(frame, column) == FRAME_INCLUSIVE)
        return frame_values(frame, column, NULL, inclusive, err);
    size_t pair = frame_column_pair(frame, column);
    int code = frame_values(frame, column, NULL, own, err);
    return code || pair == SIZE_MAX ? code : frame_values(frame, pair, NULL, inclusive, err);
}

/* The costs of all nodes, or, where costs are known with callees alone, of the roots. */
static double total_of(const struct frame *frame, const double *own, const double *inclusive)
{
    double total = 0;
    size_t n = frame_n_nodes(frame);
    const uint32_t *roots = own ? NULL : frame_roots(frame, &n);
    for (size_t i = 0; i < n; i++)
        total += known(own ? own : inclusive, roots ? roots[i] : i);
    return total;
}

static bool add_functions(const struct foreign *foreign, const double *own, const double *inclusive,
                          struct code_table *table)
{
    const struct frame *flat = foreign->flat;
    for (uint32_t i = 0; i < frame_n_nodes(flat); i++) {
        if (!frame_kind_is_function(frame_kind(flat, i)))
            continue;
        const struct code_row like = {.function = model_string(foreign->model, frame_name(flat, i)),
                                      .file = model_string(foreign->model, frame_file(flat, i)),
                                      .module = model_string(foreign->model, frame_module(flat, i)),
                                      .line = frame_line(flat, i)};
        struct code_row *row = code_table_put(table, CODE_FUNCTION, &like);
        if (!row)
            return false;
        row->own += known(own, i);
        row->inclusive += inclusive ? known(inclusive, i) : known(own, i);
    }
    return true;
}

#define NO_ROW UINT32_MAX

/* The rows that nodes are in. */
struct walk {
    const struct foreign *foreign;
    const struct frame *frame;
    struct code_table *table;
    enum code_kind kind;
    const double *own, *inclusive;
    uint32_t *row_of;  /* [n_nodes] NO_ROW: it is not asked for */
    uint32_t *call_of; /* [n_nodes] of a function the line that calls it */
    uint32_t *n_open;  /* [n_rows] how many nodes of the row are around, with recursion */
    uint32_t *stack;   /* [n_nodes] the nodes around */
};

static uint32_t put_row(struct walk *walk, const struct place *place, const struct code_row *like, bool *ok)
{
    if (!*ok || !code_table_wants(walk->table, place->function, place->declared_in))
        return NO_ROW;
    const struct code_row *row = code_table_put(walk->table, walk->kind, like);
    *ok = row != NULL;
    return row ? (uint32_t)(row - walk->table->rows) : NO_ROW;
}

/* Whether a node has costs of what is called there. What a function or loop costs beside its lines is at none. */
static bool has_calls(const struct walk *walk, uint32_t node)
{
    const struct place *place = &walk->foreign->places[node];
    bool is_in_row = walk->kind == CODE_FUNCTION ? !place->is_in_function : place->is_place;
    return walk->inclusive && is_in_row;
}

/* Finds the rows; false when out of memory. */
static bool find_rows(struct walk *walk)
{
    size_t n_parents;
    bool ok = true;
    for (uint32_t i = 0; ok && i < frame_n_nodes(walk->frame); i++) {
        const struct place *place = &walk->foreign->places[i];
        const uint32_t *parents = frame_parents(walk->frame, i, &n_parents);
        const struct place *caller = place->call_line && n_parents ? &walk->foreign->places[parents[0]] : NULL;
        struct code_row like = {.function = place->function,
                                .file = place->declared_in,
                                .module = place->module,
                                .line = place->is_in_function ? 0 : frame_line(walk->frame, i)};
        if (walk->kind != CODE_FUNCTION) {
            like.file = place->file;
            like.line = place->line;
            like.vaddr = walk->kind == CODE_INSTRUCTION ? place->vaddr : 0;
            like.module = like.vaddr ? place->code_module : place->module;
        }
        walk->row_of[i] = walk->call_of[i] = NO_ROW;
        if (walk->kind != CODE_FUNCTION || place->is_of_function)
            walk->row_of[i] = put_row(walk, place, &like, &ok);
        const struct code_row call = {caller ? caller->function : 0, caller ? caller->file : 0,
                                      caller ? caller->module : 0, .line = place->call_line};
        if (caller && (walk->kind == CODE_LINE || walk->kind == CODE_PLACE))
            walk->call_of[i] = put_row(walk, caller, &call, &ok);
    }
    return ok;
}

static void open_row(struct walk *walk, uint32_t row, double inclusive)
{
    if (row != NO_ROW && walk->n_open[row]++ == 0)
        walk->table->rows[row].inclusive += inclusive;
}

static void close_node(struct walk *walk, uint32_t node)
{
    if (walk->row_of[node] != NO_ROW && has_calls(walk, node))
        walk->n_open[walk->row_of[node]]--;
    if (walk->call_of[node] != NO_ROW)
        walk->n_open[walk->call_of[node]]--;
}

/* Adds what nodes of a tree cost: with callees, those that lie in no other node of the row. */
static void add_tree(struct walk *walk)
{
    const uint32_t *depths = frame_depths(walk->frame);
    size_t n_stack = 0;
    for (uint32_t i = 0; i < frame_n_nodes(walk->frame); i++) {
        uint32_t row = walk->row_of[i];
        double own = known(walk->own, i), inclusive = walk->inclusive ? known(walk->inclusive, i) : own;
        while (n_stack && depths[walk->stack[n_stack - 1]] >= depths[i])
            close_node(walk, walk->stack[--n_stack]);
        walk->stack[n_stack++] = i;
        open_row(walk, walk->call_of[i], inclusive);
        if (row == NO_ROW)
            continue;
        walk->table->rows[row].own += own;
        if (has_calls(walk, i))
            open_row(walk, row, inclusive);
        else if (walk->n_open[row] == 0)
            walk->table->rows[row].inclusive += own;
    }
}

/* The same for the parts of functions of a graph, which alone are known to lie in other nodes. */
static void add_graph(struct walk *walk)
{
    for (uint32_t i = 0; i < frame_n_nodes(walk->frame); i++) {
        size_t n, k = 0;
        const uint32_t *parents = frame_parents(walk->frame, i, &n);
        uint32_t row = walk->row_of[i];
        if (row == NO_ROW)
            continue;
        while (k < n && walk->row_of[parents[k]] != row)
            k++;
        walk->table->rows[row].own += known(walk->own, i);
        if (!has_calls(walk, i))
            walk->table->rows[row].inclusive += known(walk->own, i);
        else if (k == n)
            walk->table->rows[row].inclusive += known(walk->inclusive, i);
    }
}

static bool add_nodes(const struct foreign *foreign, enum code_kind kind, const double *own, const double *inclusive,
                      struct code_table *table)
{
    size_t n = frame_n_nodes(foreign->parts) + 1;
    struct walk walk = {foreign,
                        foreign->parts,
                        table,
                        kind,
                        own,
                        inclusive,
                        .row_of = malloc(n * sizeof(uint32_t)),
                        .call_of = malloc(n * sizeof(uint32_t)),
                        .stack = malloc(n * sizeof(uint32_t))};
    bool ok = walk.row_of && walk.call_of && walk.stack && frame_depths(walk.frame) && find_rows(&walk) &&
              (walk.n_open = calloc(table->n_rows + 1, sizeof(uint32_t)));
    if (ok && frame_is_tree(walk.frame))
        add_tree(&walk);
    else if (ok)
        add_graph(&walk);
    free(walk.row_of);
    free(walk.call_of);
    free(walk.n_open);
    free(walk.stack);
    return ok;
}

/* Whether functions are those of the flat graph, where what calls what may be a circle. */
static bool is_flat(const struct foreign *foreign, enum code_kind kind)
{
    return kind == CODE_FUNCTION && !frame_is_tree(foreign->frame);
}

static int fill(const struct code_source *source, enum code_kind kind, struct code_table *table, struct error *err)
{
    const struct foreign *foreign = (const struct foreign *)source;
    struct frame *frame = is_flat(foreign, kind) ? foreign->flat : foreign->parts;
    const double *own, *inclusive;
    if (kind == CODE_LINE && !table->only && !foreign->has_lines)
        return error_set(err, ERR_NOT_FOUND, "%s has no lines of sources: its costs are known by function alone",
                         foreign->path);
    int code = values_of(frame, table->model->metrics[table->metric].name, &own, &inclusive, err);
    if (code != 0)
        return code;
    table->total = total_of(frame, own, inclusive);
    bool ok = is_flat(foreign, kind) ? add_functions(foreign, own, inclusive, table)
                                     : add_nodes(foreign, kind, own, inclusive, table);
    return ok ? 0 : error_memory(err);
}

/* --- opening --- */

static bool add_metric(struct model *model, const char *name)
{
    char *copy = strdup(name);
    if (!copy || !vec_reserve(&model->metrics, &model->cap_metrics, model->n_metrics + 1, sizeof *model->metrics)) {
        free(copy);
        return false;
    }
    model->metrics[model->n_metrics++] = (struct metric){.name = copy};
    return true;
}

/* Adds a metric for each column that is shown, the usual one first: those of what nodes cost alone, and of what they
 * cost with callees where that is all there is; else those that do not add up. */
static int add_metrics(struct foreign *foreign, struct error *err)
{
    const struct frame *frame = foreign->frame;
    struct model *model = foreign->model;
    size_t usual = frame_default_column(frame), n = frame_n_columns(frame);
    bool ok = usual == SIZE_MAX || add_metric(model, frame_column_name(frame, usual));
    for (size_t i = 0; ok && i < n; i++) {
        enum frame_sums sums = frame_column_sums(frame, i);
        bool is_own = sums == FRAME_EXCLUSIVE || (sums == FRAME_INCLUSIVE && frame_column_pair(frame, i) == SIZE_MAX);
        if (i != usual && is_own && !frame_column_is_hidden(frame, i))
            ok = add_metric(model, frame_column_name(frame, i));
    }
    if (!ok)
        return error_memory(err);
    return model->n_metrics ? 0 : error_set(err, ERR_NOT_FOUND, "%s: there are no costs in it", foreign->path);
}

/* Numbers of further attributes; SIZE_MAX: there is none. */
struct numbers {
    size_t offsets, call_lines;
};

static double number_of(const struct frame *frame, size_t attribute, uint32_t node)
{
    double number = attribute == SIZE_MAX ? (double)NAN : frame_attribute_number(frame, attribute, node);
    return number > 0 ? number : 0;
}

static void set_place(struct foreign *foreign, uint32_t node, const struct numbers *numbers)
{
    const struct frame *frame = foreign->parts;
    struct place *place = &foreign->places[node];
    enum frame_kind kind = frame_kind(frame, node);
    size_t n;
    const uint32_t *parents = frame_parents(frame, node, &n);
    bool is_part = frame_kind_is_part(kind) || kind == FRAME_JUMP;
    const struct place *around = is_part && n && parents[0] < node ? &foreign->places[parents[0]] : NULL;
    place->function = around ? around->function : model_string(foreign->model, frame_name(frame, node));
    place->module = around ? around->module : model_string(foreign->model, frame_module(frame, node));
    place->file = around ? around->file : model_string(foreign->model, frame_file(frame, node));
    place->declared_in = around ? around->declared_in : place->file;
    place->is_of_function = around ? around->is_of_function : frame_kind_is_function(kind);
    place->is_in_function = is_part;
    if (!is_part) {
        place->call_line = (uint32_t)number_of(frame, numbers->call_lines, node);
        foreign->has_lines |= place->call_line > 0;
        return;
    }
    place->line = around ? around->line : 0;
    if (frame_line(frame, node) && kind != FRAME_LOOP) {
        place->file = model_string(foreign->model, frame_file(frame, node));
        place->line = frame_line(frame, node);
    }
    place->vaddr = kind == FRAME_INSTRUCTION ? (uint64_t)number_of(frame, numbers->offsets, node) : 0;
    if (place->vaddr && *frame_module(frame, node))
        place->code_module = model_string(foreign->model, frame_module(frame, node));
    else
        place->code_module = place->module;
    place->is_place = kind != FRAME_LOOP && (place->line || place->vaddr);
    foreign->has_lines |= place->line > 0;
    foreign->source.has_instructions |= place->vaddr > 0;
}

static int set_places(struct foreign *foreign, struct error *err)
{
    size_t n = frame_n_nodes(foreign->parts);
    const struct numbers numbers = {frame_find_number(foreign->parts, "offset"),
                                    frame_find_number(foreign->parts, "call_line")};
    foreign->places = calloc(n + 1, sizeof *foreign->places);
    if (!foreign->places)
        return error_memory(err);
    for (uint32_t i = 0; i < n; i++)
        set_place(foreign, i, &numbers);
    return 0;
}

/* Adds what inclusive columns are missing, and leaves out what databases have as data once more. */
static int complete(struct frame **frame, struct error *err)
{
    struct frame *made;
    bool lacks = false;
    int code = frame_choose_tree(*frame, "code", &made, err);
    if (code != 0)
        return code;
    frame_close(*frame);
    *frame = made;
    for (size_t i = 0; i < frame_n_columns(made); i++)
        lacks |= frame_column_sums(made, i) == FRAME_EXCLUSIVE && !frame_column_is_hidden(made, i) &&
                 frame_column_pair(made, i) == SIZE_MAX;
    code = lacks ? frame_sum_up(*frame, &made, err) : 0;
    if (lacks && code == 0) {
        frame_close(*frame);
        *frame = made;
    }
    return code;
}

/* Opens the frames. Only where lines are apart from functions is the file read twice. */
static int open_frames(struct foreign *foreign, struct error *err)
{
    int code = frame_open_parts(foreign->path, &foreign->parts, err);
    if (code == 0 && frame_find_number(foreign->parts, "target_line") != SIZE_MAX)
        code = frame_open(foreign->path, &foreign->frame, err);
    else if (code == 0)
        code = complete(&foreign->parts, err);
    if (code == 0 && !foreign->frame)
        foreign->frame = frame_keep(foreign->parts);
    return code || frame_is_tree(foreign->frame) ? code : frame_flat(foreign->frame, &foreign->flat, err);
}

int foreign_open(const char *path, struct model *model, struct foreign **foreign, struct error *err)
{
    struct foreign *made = calloc(1, sizeof *made);
    *foreign = NULL;
    if (!made)
        return error_memory(err);
    *made = (struct foreign){.source = {.fill = fill}, .path = path, .model = model};
    int code = open_frames(made, err);
    if (code == 0)
        code = add_metrics(made, err);
    if (code == 0)
        code = model_sum(model, err);
    if (code == 0)
        code = set_places(made, err);
    if (code == 0 && !(model->program = strdup(path)))
        code = error_memory(err);
    if (code != 0) {
        foreign_close(made);
        return code;
    }
    model->code = &made->source;
    *foreign = made;
    return 0;
}

void foreign_close(struct foreign *foreign)
{
    if (!foreign)
        return;
    frame_close(foreign->frame);
    frame_close(foreign->parts);
    frame_close(foreign->flat);
    free(foreign->places);
    free(foreign);
}
