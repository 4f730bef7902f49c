/* SPDX-License-Identifier: BSD-3-Clause */
/* Local variables in place of their stack frame, in frames of databases of ours: the tree of data has the frame alone,
 * and locus.db says how its samples fell on the variables. What accesses the frame is copied for each of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frame/readers.h"

#define COPIES_TIMES                                                                                                   \
    16 /* a frame becomes so many times as large at most, or so large: a damaged file may say anything */
#define COPIES_LEAST 65536

/* Copies of nodes, each with a fraction of its original's own values: of a line, as its samples fell on the parts. */
struct copies {
    unsigned n_owners;
    uint32_t n;
    uint32_t *old_of;  /* [n] */
    uint32_t *parents; /* [n] */
    uint32_t *ends;    /* [n] of copies of a stack frame: the first node behind the subtree; 0: it is none */
    double *factors;   /* [n] */
};

struct copied_column {
    struct frame_column base;
    struct frame_column *source;
    struct frame_column *own; /* of an inclusive column: the exclusive one, whose sums copies have; NULL: not used */
    struct copies *copies;
};

static void copies_drop(struct copies *copies)
{
    if (!copies || --copies->n_owners)
        return;
    free(copies->old_of);
    free(copies->parents);
    free(copies->ends);
    free(copies->factors);
    free(copies);
}

/* Adds the cells of a node, times a factor. */
static int add_scaled(struct frame_column *source, uint32_t node, double factor, struct cells *row, struct error *err)
{
    const struct frame_cell *cells;
    struct cells scaled = {0}, scratch = {0};
    size_t n = 0;
    int code = factor > 0 ? column_cells(source, node, &cells, &n, err) : 0;
    bool ok = true;
    for (size_t i = 0; ok && code == 0 && i < n; i++)
        ok = cells_add(&scaled, cells[i].profile, cells[i].value * factor);
    if (ok && code == 0 && scaled.n)
        ok = cells_merge(row, scaled.items, scaled.n, &scratch);
    cells_fini(&scaled);
    cells_fini(&scratch);
    return ok ? code : error_memory(err);
}

static int copied_row(struct frame_column *column, uint32_t node, struct cells *row, struct error *err)
{
    const struct copied_column *of = (const struct copied_column *)column;
    const struct copies *copies = of->copies;
    int code = 0;
    if (!of->own || !copies->ends[node])
        return add_scaled(of->source, copies->old_of[node], copies->factors[node], row, err);
    for (uint32_t i = node; code == 0 && i < copies->ends[node]; i++)
        code = add_scaled(of->own, copies->old_of[i], copies->factors[i], row, err);
    return code;
}

/* Adds up what the copies of stack frames have of own values, children before their parents. */
static void sum_copies(const struct copies *copies, const double *own, double *values)
{
    for (uint32_t i = copies->n; i-- > 0;) {
        double value = copies->ends[i] ? own[copies->old_of[i]] * copies->factors[i] : NAN;
        uint32_t parent = copies->parents[i];
        if (!copies->ends[i])
            continue;
        if (!isnan(value) && copies->factors[i] > 0)
            values[i] = isnan(values[i]) ? value : values[i] + value;
        if (!isnan(values[i]) && parent != FRAME_NONE && copies->ends[parent])
            values[parent] = isnan(values[parent]) ? values[i] : values[parent] + values[i];
    }
}

static int copied_values(struct frame_column *column, const struct frame_view *view, double *values, bool *done,
                         struct error *err)
{
    const struct copied_column *of = (const struct copied_column *)column;
    const struct copies *copies = of->copies;
    const double *all, *own = NULL;
    bool is_linear = view->aggregate == FRAME_SUM || view->aggregate == FRAME_MEAN;
    *done = is_linear;
    int code = *done ? column_values(of->source, view, &all, err) : 0;
    if (*done && code == 0 && of->own)
        code = column_values(of->own, view, &own, err);
    for (uint32_t i = 0; *done && code == 0 && i < column->n_nodes; i++)
        values[i] =
            (own && copies->ends[i]) || copies->factors[i] <= 0 ? NAN : all[copies->old_of[i]] * copies->factors[i];
    if (*done && code == 0 && own)
        sum_copies(copies, own, values);
    return code;
}

static void copied_fini(struct frame_column *column)
{
    struct copied_column *of = (struct copied_column *)column;
    column_drop(of->source);
    column_drop(of->own);
    copies_drop(of->copies);
}

static const struct column_class copied_class = {copied_row, copied_values, copied_fini};

/* own: the exclusive column of an inclusive one, NULL: there is none. */
static struct frame_column *copied_column(struct frame_column *source, struct frame_column *own, struct copies *copies)
{
    struct frame_column *column =
        column_like(&copied_class, sizeof(struct copied_column), source, source->name, source->sums, copies->n);
    struct copied_column *of = (struct copied_column *)column;
    if (!column)
        return NULL;
    of->source = column_keep(source);
    of->own = own ? column_keep(own) : NULL;
    if (own)
        column_deepen(column, own);
    of->copies = copies;
    copies->n_owners++;
    return column;
}

/* The variable of the parts [n], if it is a stack frame with some that are known; variable_of [n_nodes] receives 1 +
 * the index of the variable whose subtree begins at a node. Returns how many nodes the copies have in all. */
static uint64_t find_stacks(const struct frame *frame, const struct db_variables *variables, const uint32_t *node_of,
                            uint32_t *variable_of)
{
    uint64_t n_all = frame_n_nodes(frame);
    for (size_t i = 0; i < variables->n; i++) {
        const struct db_variable *variable = &variables->items[i];
        for (size_t k = 0; variable->n_parts > 0 && k < variable->n_scopes; k++) {
            uint32_t node = node_of[variables->scopes[variable->first_scope + k]];
            if (node == FRAME_NONE || variable_of[node])
                continue;
            variable_of[node] = (uint32_t)i + 1;
            n_all += (variable->n_parts - 1) * (uint64_t)(graph_subtree_end(frame->graph, node) - node);
        }
    }
    return n_all;
}

static void put_copy(struct copies *copies, uint32_t old, uint32_t parent, uint32_t end, double factor)
{
    copies->old_of[copies->n] = old;
    copies->parents[copies->n] = parent;
    copies->ends[copies->n] = end;
    copies->factors[copies->n++] = factor;
}

/* The fraction of a node's own values that falls on a part: as the samples of its line, if some are known. */
static double factor_of(const struct frame *frame, uint32_t node, const struct db_variables *variables,
                        const struct db_variable *variable, size_t part, double fraction)
{
    const char *file = frame_file(frame, node);
    uint32_t line = frame_line(frame, node);
    double all = 0, here = 0;
    enum frame_kind kind = frame_kind(frame, node);
    for (size_t i = 0; (kind == FRAME_LINE || kind == FRAME_INSTRUCTION) && line && i < variable->n_lines; i++) {
        const struct db_part_line *of = &variables->lines[variable->first_line + i];
        if (of->line != line || strcmp(of->file, file) != 0)
            continue;
        all += (double)of->n_samples;
        here += of->part == part ? (double)of->n_samples : 0;
    }
    return all > 0 ? here / all : fraction;
}

/* A copy of the subtree [first, end) below parent, for a part of the variable. */
static void copy_subtree(struct copies *copies, const struct frame *frame, uint32_t first, uint32_t end,
                         uint32_t parent, const struct db_variables *variables, const struct db_variable *variable,
                         size_t part, double fraction)
{
    uint32_t begin = copies->n;
    for (uint32_t i = first; i < end; i++) {
        size_t n;
        const uint32_t *parents = frame_parents(frame, i, &n);
        put_copy(copies, i, i == first ? parent : begin + parents[0] - first,
                 begin + graph_subtree_end(frame->graph, i) - first,
                 factor_of(frame, i, variables, variable, part, fraction));
    }
}

/* Lists all nodes in pre-order, where stack frames are copied part by part. new_of [n_nodes] is room. */
static void list_copies(struct copies *copies, const struct frame *frame, const struct db_variables *variables,
                        const uint32_t *variable_of, uint32_t *new_of)
{
    for (uint32_t i = 0; i < frame_n_nodes(frame);) {
        size_t n;
        const uint32_t *parents = frame_parents(frame, i, &n);
        uint32_t parent = n ? new_of[parents[0]] : FRAME_NONE, end = graph_subtree_end(frame->graph, i);
        new_of[i] = copies->n;
        if (!variable_of[i]) {
            put_copy(copies, i++, parent, 0, 1);
            continue;
        }
        const struct db_variable *variable = &variables->items[variable_of[i] - 1];
        double rest = 1;
        for (size_t k = 0; k < variable->n_parts; k++) {
            double fraction = variables->parts[variable->first_part + k].fraction;
            copy_subtree(copies, frame, i, end, parent, variables, variable, k,
                         k + 1 < variable->n_parts ? fraction : rest);
            rest = rest > fraction ? rest - fraction : 0;
        }
        i = end;
    }
}

static bool set_text(struct frame_nodes *nodes, const char *attribute, uint32_t node, const char *text)
{
    int64_t id = strtab_intern(&nodes->strings->table, text);
    for (size_t i = 0; i < nodes->n_attributes; i++)
        if (id >= 0 && nodes->attributes[i].texts && strcmp(nodes->attributes[i].name, attribute) == 0)
            nodes->attributes[i].texts[node] = (uint32_t)id;
    return id >= 0;
}

static void set_number(struct frame_nodes *nodes, const char *attribute, uint32_t node, uint64_t number)
{
    for (size_t i = 0; i < nodes->n_attributes; i++)
        if (nodes->attributes[i].numbers && strcmp(nodes->attributes[i].name, attribute) == 0)
            nodes->attributes[i].numbers[node] = number ? (double)number : NAN;
}

/* Says what a copy of a stack frame is, and all below it [first, end). */
static bool name_part(struct frame_nodes *nodes, uint32_t first, uint32_t end, const struct db_variable *variable,
                      const struct db_part *part)
{
    struct buf text = {0};
    const struct db_variable like = {.function = variable->function, .file = part->file, .line = part->line};
    const char *name = *part->name ? part->name : variable->name;
    const struct made_node node = {
        .kind = FRAME_VARIABLE, .name = name, .file = nodes->strings->table.strings[nodes->files[first]]};
    made_node_put_identity(&node, &text);
    int64_t id = text.failed ? -1 : strtab_intern(&nodes->strings->table, name),
            identity = text.failed ? -1 : strtab_intern(&nodes->strings->table, text.data);
    bool ok = id >= 0 && identity >= 0;
    for (uint32_t i = first; ok && i < end; i++)
        ok = set_text(nodes, "variable", i, name) && set_text(nodes, "element_type", i, part->type);
    hpctoolkit_print_site(&like, &text);
    ok = ok && !text.failed && set_text(nodes, "site", first, text.data ? text.data : "");
    if (ok) {
        nodes->names[first] = (uint32_t)id;
        nodes->identities[first] = (uint32_t)identity;
        set_number(nodes, "size", first, part->size_bytes);
        set_number(nodes, "element_size", first, part->element_bytes);
    }
    buf_fini(&text);
    return ok;
}

static bool name_copies(struct frame_nodes *nodes, const struct copies *copies, const struct frame *frame,
                        const struct db_variables *variables, const uint32_t *variable_of)
{
    bool ok = true;
    for (uint32_t i = 0, part = 0, last = FRAME_NONE; ok && i < copies->n; i++) {
        uint32_t old = copies->old_of[i];
        if (!variable_of[old])
            continue;
        part = old == last ? part + 1 : 0;
        last = old;
        const struct db_variable *variable = &variables->items[variable_of[old] - 1];
        uint32_t n = graph_subtree_end(frame->graph, old) - old;
        ok = name_part(nodes, i, i + n, variable, &variables->parts[variable->first_part + part]);
    }
    return ok;
}

/* The frame with the copies in place of the stack frames. */
static int make_copied(const struct frame *from, struct copies *copies, const struct db_variables *variables,
                       const uint32_t *variable_of, struct frame **frame, struct error *err)
{
    struct frame_graph *graph = NULL;
    struct frame_nodes *nodes = nodes_choose(from->nodes, copies->old_of, copies->n);
    int code = nodes && name_copies(nodes, copies, from, variables, variable_of) ? 0 : error_memory(err);
    if (code == 0)
        code = graph_make_tree(copies->n, copies->parents, &graph, err);
    if (code != 0) {
        nodes_drop(nodes);
        return code;
    }
    struct frame *made = frame_new(graph, nodes, profiles_keep(from->profiles));
    if (!made)
        return error_memory(err);
    for (size_t i = 0; code == 0 && i < from->n_columns; i++) {
        size_t pair = frame_column_sums(from, i) == FRAME_INCLUSIVE ? frame_column_pair(from, i) : SIZE_MAX;
        struct frame_column *own = pair == SIZE_MAX ? NULL : from->columns[pair];
        code = frame_add_column(made, copied_column(from->columns[i], own, copies), err);
    }
    if (code == 0)
        *frame = made;
    else
        frame_close(made);
    return code;
}

int hpctoolkit_split_stacks(struct frame **frame, const struct db_variables *variables, const uint32_t *node_of,
                            struct error *err)
{
    if (variables->n_parts == 0)
        return 0;
    size_t n = frame_n_nodes(*frame);
    struct copies *copies = calloc(1, sizeof *copies);
    uint32_t *variable_of = calloc(n + 1, sizeof *variable_of), *new_of = calloc(n + 1, sizeof *new_of);
    uint64_t n_all = variable_of ? find_stacks(*frame, variables, node_of, variable_of) : 0;
    bool ok = copies && variable_of && new_of, is_small = n_all <= COPIES_TIMES * (uint64_t)n + COPIES_LEAST;
    if (copies)
        copies->n_owners = 1;
    if (ok && is_small) {
        copies->old_of = calloc(n_all + 1, sizeof *copies->old_of);
        copies->parents = calloc(n_all + 1, sizeof *copies->parents);
        copies->factors = calloc(n_all + 1, sizeof *copies->factors);
        copies->ends = calloc(n_all + 1, sizeof *copies->ends);
        ok = copies->old_of && copies->parents && copies->factors && copies->ends;
    }
    struct frame *made = NULL;
    int code = ok ? 0 : error_memory(err);
    if (code == 0 && is_small) {
        list_copies(copies, *frame, variables, variable_of, new_of);
        code = make_copied(*frame, copies, variables, variable_of, &made, err);
    }
    if (code == 0 && made) {
        frame_close(*frame);
        *frame = made;
    }
    free(variable_of);
    free(new_of);
    copies_drop(copies);
    return code;
}
