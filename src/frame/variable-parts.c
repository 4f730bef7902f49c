/* SPDX-License-Identifier: BSD-3-Clause */
/* What variables consist of, in frames of databases of ours, where the tree of data has the variables alone: local
 * variables in place of their stack frame, and fields between a variable and what accesses it. locus.db says how the
 * samples of each scope fell on them. What accesses the variable is copied for each part, with its share of the values.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fmt/locus-db.h"
#include "frame/readers.h"

#define COPIES_TIMES                                                                                                   \
    16 /* a frame becomes so many times as large at most, or so large: a damaged file may say anything */
#define COPIES_LEAST 65536
#define FUNCTION_SUFFIX " (function)"
#define WHOLE "(all)" /* the only field of a variable without any */

/* Copies of nodes, each with a fraction of its original's own values: of those of an event as its samples fell. */
struct copies {
    unsigned n_owners;
    uint32_t n, n_rows;
    uint32_t n_events; /* a row of factors has one more, for what is of no event */
    uint32_t *old_of;  /* [n] */
    uint32_t *parents; /* [n] */
    uint32_t *ends;    /* [n] of copies of what accesses a variable: the first node behind the subtree; 0: it is none */
    uint32_t *rows;    /* [n] of these: their row of factors */
    bool *is_within;   /* [n] a part of the function above */
    double *factors;   /* [n_rows][n_events + 1] */
    size_t cap_old_of, cap_parents, cap_ends, cap_rows, cap_is_within, cap_factors;
};

struct copied_column {
    struct frame_column base;
    struct frame_column *source;
    struct frame_column *own; /* of an inclusive column: the exclusive one, whose sums copies have; NULL: not used */
    bool is_of_function;      /* sums end where another function begins */
    uint32_t event;
    struct copies *copies;
};

static void copies_drop(struct copies *copies)
{
    if (!copies || --copies->n_owners)
        return;
    free(copies->old_of);
    free(copies->parents);
    free(copies->ends);
    free(copies->rows);
    free(copies->is_within);
    free(copies->factors);
    free(copies);
}

static double factor_at(const struct copies *copies, uint32_t node, uint32_t event)
{
    return copies->ends[node] ? copies->factors[(size_t)copies->rows[node] * (copies->n_events + 1) + event] : 1;
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
        return add_scaled(of->source, copies->old_of[node], factor_at(copies, node, of->event), row, err);
    for (uint32_t i = node; code == 0 && i < copies->ends[node];) {
        bool is_other = of->is_of_function && i != node && !copies->is_within[i];
        if (!is_other)
            code = add_scaled(of->own, copies->old_of[i], factor_at(copies, i, of->event), row, err);
        i = is_other ? copies->ends[i] : i + 1;
    }
    return code;
}

/* Adds up what the copies have of own values, children before their parents. */
static void sum_copies(const struct copied_column *of, const double *own, double *values)
{
    const struct copies *copies = of->copies;
    for (uint32_t i = copies->n; i-- > 0;) {
        double factor = factor_at(copies, i, of->event);
        double value = copies->ends[i] ? own[copies->old_of[i]] * factor : NAN;
        uint32_t parent = copies->parents[i];
        if (!copies->ends[i])
            continue;
        if (!isnan(value) && factor > 0)
            values[i] = isnan(values[i]) ? value : values[i] + value;
        bool counts = parent != FRAME_NONE && copies->ends[parent] && (!of->is_of_function || copies->is_within[i]);
        if (!isnan(values[i]) && counts)
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
    for (uint32_t i = 0; *done && code == 0 && i < column->n_nodes; i++) {
        double factor = factor_at(copies, i, of->event);
        values[i] = (own && copies->ends[i]) || factor <= 0 ? NAN : all[copies->old_of[i]] * factor;
    }
    if (*done && code == 0 && own)
        sum_copies(of, own, values);
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

/* own: the exclusive column of an inclusive one, or of one of functions; NULL: there is none. */
static struct frame_column *copied_column(struct frame_column *source, struct frame_column *own, bool is_of_function,
                                          uint32_t event, struct copies *copies)
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
    of->is_of_function = is_of_function;
    of->event = event;
    of->copies = copies;
    copies->n_owners++;
    return column;
}

/* --- how samples fell --- */

/* A copy that stands for a part of a variable, or for a field: it and all below it [at, end) are of these. */
struct label {
    uint32_t at, end;
    uint32_t variable;
    uint32_t part;  /* index into its parts; FRAME_NONE: it has none */
    uint32_t field; /* index into its fields; FRAME_NONE: the part itself */
};

/* What a copy of the code below a variable is about. */
enum piece_kind {
    PIECE_PART,  /* all samples on the part */
    PIECE_FIELD, /* those on the field */
    PIECE_REST   /* those on the part of which no field is known */
};

struct piece {
    enum piece_kind kind;
    uint32_t variable, part, field; /* as in struct label */
};

struct splitting {
    const struct frame *frame;
    const struct model *model;
    const uint32_t *node_of; /* [n_ids] */
    uint32_t n_ids;
    bool with_fields;
    uint32_t *variable_of; /* [n_nodes] 1 + the variable whose subtree begins there */
    uint32_t *counts_of;   /* [n_nodes] 1 + the first count of the scope */
    uint32_t *new_of;      /* [n_nodes] the last copy */
    uint32_t *stamps;      /* [n_nodes] the last piece that the node was listed for */
    size_t *first_field;   /* [n_variables + 1] where the fields of each begin in same_as */
    uint32_t *same_as;     /* [n_fields of all variables] the first of the fields that differ in their event alone */
    uint32_t *order;       /* [n_fields of all variables] room */
    double *all, *here;    /* [n_events + 1] room */
    double *fractions;     /* [n_events + 1] of the part, where its scopes say nothing */
    struct copies *copies;
    struct label *labels; /* [n_labels] */
    size_t n_labels, cap_labels;
    struct touched {
        uint32_t field, node;
    } * touched; /* [n_touched] the scopes of a variable, by field */
    size_t n_touched, cap_touched;
    uint32_t *listed; /* [n_listed] nodes to copy */
    size_t n_listed, cap_listed;
    uint32_t stamp;
    uint64_t most;   /* nodes */
    bool is_too_big; /* it would have more */
    bool failed;     /* out of memory */
};

static const struct variable_field *field_of(const struct splitting *splitting, const struct field_count *count)
{
    return &splitting->model->variables[count->variable].fields[count->field];
}

/* The first of the fields that differ from that of a count in their event alone. */
static uint32_t same_as(const struct splitting *splitting, const struct field_count *count)
{
    return splitting->same_as[splitting->first_field[count->variable] + count->field];
}

/* The event of a column, by the name of its metric: the event's own, or what cause metrics add a word to. */
static uint32_t event_of_column(const struct model *model, const char *name)
{
    static const char *const suffixes[] = {" (inc)", FUNCTION_SUFFIX};
    size_t len = strlen(name);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t n = strlen(suffixes[i]);
        if (len > n && strcmp(name + len - n, suffixes[i]) == 0) {
            len -= n;
            break;
        }
    }
    bool is_time = len == strlen("time") && memcmp(name, "time", len) == 0;
    for (uint32_t e = 0; e < model->n_events; e++) {
        const char *metric = model->events[e].metric, *unit = strrchr(metric, '(');
        size_t len_unit = unit ? strlen(unit) : 0, len_stem = unit && unit > metric ? (size_t)(unit - metric) - 1 : 0;
        bool is_same = strlen(metric) == len && memcmp(metric, name, len) == 0;
        bool is_part = len_stem && len > len_stem + len_unit && memcmp(metric, name, len_stem + 1) == 0 &&
                       memcmp(name + len - len_unit, unit, len_unit) == 0;
        if (is_same || is_part || (is_time && unit && (!strcmp(unit, "(usec)") || !strcmp(unit, "(sec)"))))
            return e;
    }
    return (uint32_t)model->n_events;
}

/* The counts of a node on a variable, from *first to what is returned; none: both are the same. */
static size_t counts_at(const struct splitting *splitting, uint32_t node, uint32_t variable, size_t *first)
{
    uint32_t count = splitting->counts_of[node];
    *first = count ? count - 1 : 0;
    bool is_of_it = count && splitting->model->field_counts[*first].variable == variable;
    return is_of_it ? model_counts_end(splitting->model, *first) : *first;
}

/* Whether counted samples are of the piece. */
static bool is_of_piece(const struct splitting *splitting, const struct piece *piece, const struct field_count *count)
{
    if (piece->kind == PIECE_FIELD)
        return same_as(splitting, count) == piece->field;
    return piece->kind == PIECE_PART && field_of(splitting, count)->part == piece->part;
}

/* What falls on a part where the scope has no counts: as the samples of its line, in older databases, else of all. */
static double fraction_of(const struct splitting *splitting, uint32_t node, const struct piece *piece, uint32_t event)
{
    const struct model *model = splitting->model;
    const struct variable *variable = &model->variables[piece->variable];
    const char *file = frame_file(splitting->frame, node);
    uint32_t line = frame_line(splitting->frame, node);
    double all = 0, here = 0;
    enum frame_kind kind = frame_kind(splitting->frame, node);
    if (piece->kind == PIECE_FIELD || piece->part == FRAME_NONE)
        return piece->kind != PIECE_FIELD;
    for (size_t i = 0; (kind == FRAME_LINE || kind == FRAME_INSTRUCTION) && line && i < variable->n_part_lines; i++) {
        const struct part_line *of = &variable->part_lines[i];
        if (of->line != line || strcmp(model_text(model, of->file), file) != 0)
            continue;
        all += (double)of->samples;
        here += of->part == piece->part ? (double)of->samples : 0;
    }
    return all > 0 ? here / all : splitting->fractions[event];
}

/* The factors of a node's own values in a piece, [n_events + 1]: as the samples of each event fell there; those of
 * events without samples there, and what is of no event, as those of the first one with some. */
static void find_factors(struct splitting *splitting, uint32_t node, const struct piece *piece, double *factors)
{
    const struct variable *variable = &splitting->model->variables[piece->variable];
    const struct field_count *counts = splitting->model->field_counts;
    const uint32_t n = (uint32_t)splitting->model->n_events;
    uint32_t first = n;
    memset(splitting->all, 0, (n + 1) * sizeof *splitting->all);
    memset(splitting->here, 0, (n + 1) * sizeof *splitting->here);
    for (size_t i, end = counts_at(splitting, node, piece->variable, &i); i < end; i++) {
        const struct variable_field *field = field_of(splitting, &counts[i]);
        if (!variable_shares_field(variable, field))
            continue;
        splitting->all[field->event] += (double)counts[i].n_samples;
        if (is_of_piece(splitting, piece, &counts[i]))
            splitting->here[field->event] += (double)counts[i].n_samples;
    }
    while (first > 0 && splitting->all[n - first] <= 0)
        first--;
    first = n - first;
    for (uint32_t e = 0; e <= n; e++) {
        uint32_t like = splitting->all[e] > 0 ? e : first;
        factors[e] = like < n ? splitting->here[like] / splitting->all[like] : fraction_of(splitting, node, piece, e);
    }
}

/* --- copies --- */

/* Appends a node of the new frame. piece NULL: it is the node itself, with all its values. */
static void put_node(struct splitting *splitting, uint32_t old, uint32_t parent, const struct piece *piece)
{
    struct copies *copies = splitting->copies;
    size_t n = (size_t)copies->n + 1, width = (size_t)copies->n_events + 1;
    splitting->is_too_big = splitting->is_too_big || n > splitting->most;
    if (splitting->is_too_big || splitting->failed)
        return;
    bool ok = vec_reserve(&copies->old_of, &copies->cap_old_of, n, sizeof *copies->old_of) &&
              vec_reserve(&copies->parents, &copies->cap_parents, n, sizeof *copies->parents) &&
              vec_reserve(&copies->ends, &copies->cap_ends, n, sizeof *copies->ends) &&
              vec_reserve(&copies->rows, &copies->cap_rows, n, sizeof *copies->rows) &&
              vec_reserve(&copies->is_within, &copies->cap_is_within, n, sizeof *copies->is_within) &&
              vec_reserve(&copies->factors, &copies->cap_factors, (copies->n_rows + 1) * width, sizeof(double));
    if (!ok) {
        splitting->failed = true;
        return;
    }
    copies->old_of[copies->n] = old;
    copies->parents[copies->n] = parent;
    copies->ends[copies->n] = piece ? (uint32_t)n : 0;
    copies->rows[copies->n] = copies->n_rows;
    copies->is_within[copies->n] = frame_kind_is_part(frame_kind(splitting->frame, old));
    if (piece)
        find_factors(splitting, old, piece, &copies->factors[copies->n_rows++ * width]);
    copies->n++;
}

static void add_label(struct splitting *splitting, const struct label *label)
{
    if (vec_reserve(&splitting->labels, &splitting->cap_labels, splitting->n_labels + 1, sizeof *label))
        splitting->labels[splitting->n_labels++] = *label;
    else
        splitting->failed = true;
}

static void list_node(struct splitting *splitting, uint32_t node)
{
    if (vec_reserve(&splitting->listed, &splitting->cap_listed, splitting->n_listed + 1, sizeof node))
        splitting->listed[splitting->n_listed++] = node;
    else
        splitting->failed = true;
    splitting->stamps[node] = splitting->stamp;
}

/* Lists a node and all above it up to `first`, which is not listed. */
static void list_path(struct splitting *splitting, uint32_t node, uint32_t first)
{
    while (node != first && splitting->stamps[node] != splitting->stamp) {
        size_t n;
        list_node(splitting, node);
        node = frame_parents(splitting->frame, node, &n)[0];
    }
}

static int compare_numbers(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* Copies the listed nodes, which lie below `first`, below `parent`. */
static void copy_listed(struct splitting *splitting, uint32_t first, uint32_t parent, const struct piece *piece)
{
    if (splitting->n_listed)
        qsort(splitting->listed, splitting->n_listed, sizeof *splitting->listed, compare_numbers);
    for (size_t i = 0; i < splitting->n_listed; i++) {
        size_t n;
        uint32_t node = splitting->listed[i], above = frame_parents(splitting->frame, node, &n)[0];
        splitting->new_of[node] = splitting->copies->n;
        put_node(splitting, node, above == first ? parent : splitting->new_of[above], piece);
    }
    splitting->n_listed = 0;
    splitting->stamp++;
}

static int compare_touched(const void *a, const void *b)
{
    const struct touched *x = a, *y = b;
    if (x->field != y->field)
        return x->field < y->field ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* The scopes of a variable within [first, end) and the fields that they touch, of one part. */
static void list_touched(struct splitting *splitting, const struct piece *part, uint32_t first, uint32_t end)
{
    const struct field_count *counts = splitting->model->field_counts;
    splitting->n_touched = 0;
    for (uint32_t node = first + 1; node < end; node++) {
        for (size_t i, n = counts_at(splitting, node, part->variable, &i); i < n; i++) {
            bool is_other = part->part != FRAME_NONE && field_of(splitting, &counts[i])->part != part->part;
            if (!counts[i].n_samples || is_other)
                continue;
            if (!vec_reserve(&splitting->touched, &splitting->cap_touched, splitting->n_touched + 1,
                             sizeof *splitting->touched)) {
                splitting->failed = true;
                return;
            }
            splitting->touched[splitting->n_touched++] = (struct touched){same_as(splitting, &counts[i]), node};
        }
    }
    if (splitting->n_touched)
        qsort(splitting->touched, splitting->n_touched, sizeof *splitting->touched, compare_touched);
}

/* Whether samples of the variable are counted at a node, on its parts where it has any. */
static bool has_counts(const struct splitting *splitting, uint32_t node, const struct piece *piece)
{
    const struct variable *variable = &splitting->model->variables[piece->variable];
    const struct field_count *counts = splitting->model->field_counts;
    for (size_t i, end = counts_at(splitting, node, piece->variable, &i); i < end; i++)
        if (counts[i].n_samples && variable_shares_field(variable, field_of(splitting, &counts[i])))
            return true;
    return false;
}

/* What lies in [first, end) below a copy of `first`, one field after the other, and then what has no field. */
static void copy_by_field(struct splitting *splitting, const struct piece *part, uint32_t first, uint32_t end,
                          uint32_t parent)
{
    struct piece piece = {PIECE_REST, part->variable, part->part, FRAME_NONE};
    list_touched(splitting, part, first, end);
    for (size_t i = 0, n = splitting->n_touched; i < n && !splitting->is_too_big && !splitting->failed;) {
        struct piece of_field = {PIECE_FIELD, part->variable, part->part, splitting->touched[i].field};
        uint32_t at = splitting->copies->n;
        put_node(splitting, first, parent, &of_field);
        for (; i < n && splitting->touched[i].field == of_field.field; i++)
            list_path(splitting, splitting->touched[i].node, first);
        copy_listed(splitting, first, at, &of_field);
        const struct label label = {at, splitting->copies->n, part->variable, part->part, of_field.field};
        add_label(splitting, &label);
    }
    for (uint32_t node = first + 1; node < end; node++)
        if (graph_subtree_end(splitting->frame->graph, node) == node + 1 && !has_counts(splitting, node, part))
            list_path(splitting, node, first);
    copy_listed(splitting, first, parent, &piece);
}

/* A copy of the subtree [first, end) for a part of the variable. */
static void copy_part(struct splitting *splitting, const struct piece *part, uint32_t first, uint32_t end,
                      uint32_t parent)
{
    uint32_t at = splitting->copies->n;
    put_node(splitting, first, parent, part);
    splitting->new_of[first] = at;
    if (splitting->with_fields) {
        copy_by_field(splitting, part, first, end, at);
    } else {
        for (uint32_t node = first + 1; node < end; node++)
            list_node(splitting, node);
        copy_listed(splitting, first, at, part);
    }
    const struct label label = {at, splitting->copies->n, part->variable, part->part, FRAME_NONE};
    add_label(splitting, &label);
}

/* The fractions of the values of a whole stack frame that fall on a part: as all samples of each event did. */
static void find_fractions(struct splitting *splitting, const struct variable *variable, uint32_t part, double fraction)
{
    for (uint32_t e = 0; e <= splitting->model->n_events; e++) {
        double of_event = variable_part_fraction(variable, part, e);
        splitting->fractions[e] = of_event >= 0 ? of_event : fraction;
    }
}

static void copy_variable(struct splitting *splitting, uint32_t index, uint32_t first, uint32_t end, uint32_t parent)
{
    const struct variable *variable = &splitting->model->variables[index];
    struct piece piece = {PIECE_PART, index, FRAME_NONE, FRAME_NONE};
    double rest = 1;
    if (variable->n_parts == 0)
        copy_part(splitting, &piece, first, end, parent);
    for (size_t k = 0; k < variable->n_parts && !splitting->is_too_big && !splitting->failed; k++) {
        double fraction = variable->parts[k].fraction;
        piece.part = (uint32_t)k;
        find_fractions(splitting, variable, piece.part, k + 1 < variable->n_parts ? fraction : rest);
        copy_part(splitting, &piece, first, end, parent);
        rest = rest > fraction ? rest - fraction : 0;
    }
}

/* Lists all nodes in pre-order, those of variables part by part. */
static void list_copies(struct splitting *splitting)
{
    const struct frame *frame = splitting->frame;
    struct copies *copies = splitting->copies;
    for (uint32_t i = 0; i < frame_n_nodes(frame) && !splitting->is_too_big && !splitting->failed;) {
        size_t n;
        const uint32_t *parents = frame_parents(frame, i, &n);
        uint32_t parent = n ? splitting->new_of[parents[0]] : FRAME_NONE, end = graph_subtree_end(frame->graph, i);
        splitting->new_of[i] = copies->n;
        if (splitting->variable_of[i]) {
            copy_variable(splitting, splitting->variable_of[i] - 1, i, end, parent);
            i = end;
        } else {
            put_node(splitting, i++, parent, NULL);
        }
    }
    for (uint32_t i = copies->n; i-- > 0;) {
        uint32_t parent = copies->parents[i];
        if (parent != FRAME_NONE && copies->ends[parent] && copies->ends[i] > copies->ends[parent])
            copies->ends[parent] = copies->ends[i];
    }
}

/* --- names --- */

static struct frame_attribute *find_attribute(const struct frame_nodes *nodes, const char *name)
{
    for (size_t i = 0; i < nodes->n_attributes; i++)
        if (strcmp(nodes->attributes[i].name, name) == 0)
            return &nodes->attributes[i];
    return NULL;
}

static bool set_texts(struct frame_nodes *nodes, const char *attribute, uint32_t first, uint32_t end, const char *text)
{
    int64_t id = strtab_intern(&nodes->strings->table, text);
    const struct frame_attribute *of = find_attribute(nodes, attribute);
    for (uint32_t i = first; id >= 0 && of && of->texts && i < end; i++)
        of->texts[i] = (uint32_t)id;
    return id >= 0;
}

static void set_number(struct frame_nodes *nodes, const char *attribute, uint32_t node, uint64_t number)
{
    const struct frame_attribute *of = find_attribute(nodes, attribute);
    if (of && of->numbers)
        of->numbers[node] = number ? (double)number : NAN;
}

static bool name_node(struct frame_nodes *nodes, uint32_t i, enum frame_kind kind, const char *name)
{
    struct buf text = {0};
    const struct made_node node = {.kind = kind,
                                   .name = name,
                                   .file = nodes->strings->table.strings[nodes->files[i]],
                                   .module = nodes->strings->table.strings[nodes->modules[i]]};
    made_node_put_identity(&node, &text);
    int64_t id = text.failed ? -1 : strtab_intern(&nodes->strings->table, name),
            identity = text.failed ? -1 : strtab_intern(&nodes->strings->table, text.data);
    buf_fini(&text);
    if (id < 0 || identity < 0)
        return false;
    nodes->kinds[i] = (uint8_t)kind;
    nodes->names[i] = (uint32_t)id;
    nodes->identities[i] = (uint32_t)identity;
    return true;
}

/* Says what a copy of a stack frame is, and all below it. */
static bool name_part(struct frame_nodes *nodes, const struct label *label, const struct model *model)
{
    struct buf site = {0};
    const struct variable *variable = &model->variables[label->variable];
    const struct variable_part *part = &variable->parts[label->part];
    const char *name = model_text(model, part->name ? part->name : variable->name);
    hpctoolkit_print_site(model_text(model, variable->function), model_text(model, part->file), part->line, &site);
    bool ok = !site.failed && name_node(nodes, label->at, FRAME_VARIABLE, name) &&
              set_texts(nodes, "variable", label->at, label->end, name) &&
              set_texts(nodes, "element_type", label->at, label->end, model_text(model, part->type)) &&
              set_texts(nodes, "site", label->at, label->at + 1, site.data ? site.data : "");
    set_number(nodes, "size", label->at, part->size_bytes);
    set_number(nodes, "element_size", label->at, part->element_bytes);
    buf_fini(&site);
    return ok;
}

/* The same of a field. */
static bool name_field(struct frame_nodes *nodes, const struct label *label, const struct model *model)
{
    const struct variable_field *field = &model->variables[label->variable].fields[label->field];
    const char *name = field->name ? model_text(model, field->name) : WHOLE;
    bool ok = name_node(nodes, label->at, FRAME_FIELD, name) &&
              set_texts(nodes, "field", label->at, label->end, name) &&
              set_texts(nodes, "field_type", label->at, label->end, model_text(model, field->type)) &&
              set_texts(nodes, "site", label->at, label->at + 1, "");
    set_number(nodes, "size", label->at, field->size_bytes);
    set_number(nodes, "element_size", label->at, 0);
    set_number(nodes, "blocks", label->at, 0);
    return ok;
}

static bool name_copies(const struct splitting *splitting, struct frame_nodes *nodes)
{
    bool ok = true;
    for (size_t i = 0; ok && i < splitting->n_labels; i++) {
        const struct label *label = &splitting->labels[i];
        if (label->field != FRAME_NONE)
            ok = name_field(nodes, label, splitting->model);
        else if (label->part != FRAME_NONE)
            ok = name_part(nodes, label, splitting->model);
    }
    return ok;
}

/* --- the new frame --- */

/* The exclusive column whose sums a column has at copies: of an inclusive one, or of one of functions. */
static struct frame_column *own_of(const struct frame *frame, size_t column, bool *is_of_function)
{
    const char *name = frame_column_name(frame, column);
    size_t len = strlen(name), n = strlen(FUNCTION_SUFFIX), pair = SIZE_MAX;
    *is_of_function =
        frame_column_sums(frame, column) == FRAME_PLAIN && len > n && strcmp(name + len - n, FUNCTION_SUFFIX) == 0;
    if (frame_column_sums(frame, column) == FRAME_INCLUSIVE)
        pair = frame_column_pair(frame, column);
    for (size_t i = 0; *is_of_function && pair == SIZE_MAX && i < frame->n_columns; i++) {
        const char *other = frame_column_name(frame, i);
        if (frame_column_sums(frame, i) == FRAME_EXCLUSIVE && strlen(other) == len - n &&
            memcmp(other, name, len - n) == 0)
            pair = i;
    }
    *is_of_function &= pair != SIZE_MAX;
    return pair == SIZE_MAX ? NULL : frame->columns[pair];
}

/* The frame with the copies in place of what they are copies of. */
static int make_copied(const struct splitting *splitting, struct frame **frame, struct error *err)
{
    const struct frame *from = splitting->frame;
    struct copies *copies = splitting->copies;
    struct frame_graph *graph = NULL;
    struct frame_nodes *nodes = nodes_choose(from->nodes, copies->old_of, copies->n);
    int code = nodes && name_copies(splitting, nodes) ? 0 : error_memory(err);
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
        bool is_of_function;
        struct frame_column *own = own_of(from, i, &is_of_function);
        uint32_t event = event_of_column(splitting->model, frame_column_name(from, i));
        code = frame_add_column(made, copied_column(from->columns[i], own, is_of_function, event, copies), err);
    }
    if (code == 0)
        *frame = made;
    else
        frame_close(made);
    return code;
}

static int compare_fields(const void *a, const void *b, void *context)
{
    const uint32_t *x = a, *y = b;
    const struct variable_field *fields = context, *one = &fields[*x], *other = &fields[*y];
    if (one->part != other->part)
        return one->part < other->part ? -1 : 1;
    if (one->name != other->name)
        return one->name < other->name ? -1 : 1;
    return *x < *y ? -1 : *x > *y;
}

/* Finds the fields of a variable that differ in their event alone. */
static void find_same(struct splitting *splitting, size_t index)
{
    const struct variable *variable = &splitting->model->variables[index];
    const struct variable_field *fields = variable->fields;
    uint32_t *same = &splitting->same_as[splitting->first_field[index]], *order = splitting->order;
    for (uint32_t k = 0; k < variable->n_fields; k++)
        order[k] = k;
    qsort_r(order, variable->n_fields, sizeof *order, compare_fields, variable->fields);
    for (size_t k = 0; k < variable->n_fields; k++) {
        const struct variable_field *field = &fields[order[k]], *before = k ? &fields[order[k - 1]] : NULL;
        bool is_same = before && field->part == before->part && field->name == before->name;
        same[order[k]] = is_same ? same[order[k - 1]] : order[k];
    }
}

/* Finds the variables that are to be split, and the counts of each node. Returns whether there is any. */
static bool find_variables(struct splitting *splitting)
{
    const struct model *model = splitting->model;
    bool found = false;
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct variable *variable = &model->variables[i];
        bool is_split = variable->n_parts > 0 || (splitting->with_fields && variable->n_fields > 0);
        for (size_t k = 0; is_split && k < variable->n_scopes; k++) {
            uint32_t node = splitting->node_of[variable->scopes[k]];
            if (node != FRAME_NONE && !splitting->variable_of[node])
                splitting->variable_of[node] = (uint32_t)i + 1;
            found |= node != FRAME_NONE;
        }
        if (splitting->with_fields && variable->n_fields)
            find_same(splitting, i);
    }
    for (size_t i = model->n_field_counts; i-- > 0;) {
        uint32_t scope = model->field_counts[i].scope;
        uint32_t node = scope < splitting->n_ids ? splitting->node_of[scope] : FRAME_NONE;
        if (node != FRAME_NONE)
            splitting->counts_of[node] = (uint32_t)i + 1;
    }
    return found;
}

static bool splitting_init(struct splitting *splitting, const struct frame *frame)
{
    const struct model *model = splitting->model;
    size_t n = frame_n_nodes(frame) + 1, n_events = model->n_events, n_fields = 0;
    splitting->frame = frame;
    splitting->stamp = 1;
    splitting->most = COPIES_TIMES * (uint64_t)n + COPIES_LEAST;
    splitting->variable_of = calloc(n, sizeof *splitting->variable_of);
    splitting->counts_of = calloc(n, sizeof *splitting->counts_of);
    splitting->new_of = calloc(n, sizeof *splitting->new_of);
    splitting->stamps = calloc(n, sizeof *splitting->stamps);
    splitting->first_field = calloc(model->n_variables + 1, sizeof *splitting->first_field);
    for (size_t i = 0; splitting->first_field && i < model->n_variables; n_fields += model->variables[i++].n_fields)
        splitting->first_field[i] = n_fields;
    splitting->same_as = calloc(n_fields + 1, sizeof *splitting->same_as);
    splitting->order = calloc(n_fields + 1, sizeof *splitting->order);
    splitting->all = calloc(n_events + 1, sizeof *splitting->all);
    splitting->here = calloc(n_events + 1, sizeof *splitting->here);
    splitting->fractions = calloc(n_events + 1, sizeof *splitting->fractions);
    splitting->copies = calloc(1, sizeof *splitting->copies);
    if (splitting->copies)
        *splitting->copies = (struct copies){.n_owners = 1, .n_events = (uint32_t)n_events};
    return splitting->variable_of && splitting->counts_of && splitting->new_of && splitting->stamps &&
           splitting->first_field && splitting->same_as && splitting->order && splitting->all && splitting->here &&
           splitting->fractions && splitting->copies;
}

static void splitting_fini(struct splitting *splitting)
{
    free(splitting->variable_of);
    free(splitting->counts_of);
    free(splitting->new_of);
    free(splitting->stamps);
    free(splitting->first_field);
    free(splitting->same_as);
    free(splitting->order);
    free(splitting->all);
    free(splitting->here);
    free(splitting->fractions);
    free(splitting->labels);
    free(splitting->touched);
    free(splitting->listed);
    copies_drop(splitting->copies);
}

int hpctoolkit_split_variables(struct frame **frame, const struct model *model, const uint32_t *node_of, uint32_t n_ids,
                               bool with_fields, struct error *err)
{
    struct splitting splitting = {
        .model = model, .node_of = node_of, .n_ids = n_ids, .with_fields = with_fields && model->n_field_counts};
    struct frame *made = NULL;
    bool has_parts = false;
    for (size_t i = 0; i < model->n_variables; i++)
        has_parts |= model->variables[i].n_parts > 0;
    if (!has_parts && !splitting.with_fields)
        return 0;
    int code = splitting_init(&splitting, *frame) ? 0 : error_memory(err);
    if (code == 0 && find_variables(&splitting)) {
        list_copies(&splitting);
        code = splitting.failed ? error_memory(err) : 0;
        if (code == 0 && !splitting.is_too_big)
            code = make_copied(&splitting, &made, err);
    }
    if (code == 0 && made) {
        frame_close(*frame);
        *frame = made;
    }
    splitting_fini(&splitting);
    return code;
}
