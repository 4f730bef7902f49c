/* SPDX-License-Identifier: BSD-3-Clause */
/* A frame as an indented tree, the largest first: what each node costs with all below it, and without what it calls,
 * its lines and loops included, as in `hpcquery tree`. Callers that only pass on what one callee costs share its line.
 * A node with several parents is below each of them, but what is below it is printed once. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "base/path.h"
#include "export/frames/forms.h"
#include "export/text-cells.h"
#include "frame/ops.h"

extern const struct frame_form form_tree;

#define SHOWN_PERCENT 0.05 /* what is less is 0.0 % */

struct tree_item {
    uint32_t node, depth;
};

struct tree_walk {
    const struct frame_job *job;
    struct frame *frame;
    const double *with; /* [n_nodes] inclusive */
    double *without;    /* [n_nodes] what a node and its lines and loops cost; NULL when that is not known */
    double total;       /* 0: no percentages */
    double least;
    double *weights;         /* [n_nodes] the largest amount of `with` at a node and below it */
    bool *is_done;           /* [n_nodes] what is below it has been printed */
    struct tree_item *stack; /* [n_stack] still to be printed, the next one last */
    size_t n_stack, cap_stack;
    size_t n_lines, n_left; /* printed, and more than --top allows */
    struct buf *out;
};

/* --- values --- */

/* Takes the frame of the job, or one more that has inclusive values. */
static int take_columns(struct tree_walk *walk, struct error *err)
{
    const struct frame_job *job = walk->job;
    size_t with, without, column = job->column;
    frames_find_columns(job->frame, column, &with, &without);
    walk->frame = frame_keep(job->frame);
    const double *own = NULL;
    int code = 0;
    if (with == without) {
        frame_close(walk->frame);
        walk->frame = NULL;
        code = frame_sum_up(job->frame, &walk->frame, err);
        column = code == 0 ? frame_find_column(walk->frame, frame_column_name(job->frame, column), NULL) : 0;
        if (code == 0)
            frames_find_columns(walk->frame, column, &with, &without);
    }
    if (code == 0)
        code = frame_values(walk->frame, with, &job->view, &walk->with, err);
    if (code == 0 && without != SIZE_MAX)
        code = frame_values(walk->frame, without, &job->view, &own, err);
    if (own)
        code = (walk->without = frames_with_lines(walk->frame, own)) ? 0 : error_memory(err);
    if (code == 0) {
        struct frame_job of = *job;
        of.frame = walk->frame;
        code = frame_job_total(&of, with, &walk->total, err);
    }
    return code;
}

/* Fills the weights, children before parents. */
static int weigh(struct tree_walk *walk, struct error *err)
{
    size_t n = frame_n_nodes(walk->frame), n_children;
    const uint32_t *order = frame_post_order(walk->frame);
    walk->weights = calloc(n + 1, sizeof *walk->weights);
    walk->is_done = calloc(n + 1, sizeof *walk->is_done);
    if (!order || !walk->weights || !walk->is_done)
        return error_memory(err);
    for (size_t i = 0; i < n; i++) {
        uint32_t node = order[i];
        double weight = isnan(walk->with[node]) ? 0 : fabs(walk->with[node]);
        const uint32_t *children = frame_children(walk->frame, node, &n_children);
        for (size_t k = 0; k < n_children; k++)
            weight = weight < walk->weights[children[k]] ? walk->weights[children[k]] : weight;
        walk->weights[node] = weight;
    }
    return 0;
}

static bool is_visible(const struct tree_walk *walk, uint32_t node)
{
    return walk->weights[node] > 0 && walk->weights[node] >= walk->least;
}

/* --- lines --- */

static void put_value(const struct tree_walk *walk, double value)
{
    if (walk->total > 0)
        buf_printf(walk->out, "%6.1f %%", isnan(value) ? 0 : 100 * value / walk->total);
    else if (isnan(value))
        buf_printf(walk->out, "%12s", "-");
    else
        buf_printf(walk->out, "%12.6g", value);
}

static void put_name(const struct tree_walk *walk, uint32_t node)
{
    struct buf name = {0};
    text_short_function(&name, frame_name(walk->frame, node));
    printable_put(walk->out, name.len_bytes ? name.data : "?");
    walk->out->failed |= name.failed;
    buf_fini(&name);
    if (frame_kind(walk->frame, node) == FRAME_INLINED)
        buf_printf(walk->out, " [inlined]");
}

/* Where a function is, which its name does not say. */
static void put_place(const struct tree_walk *walk, uint32_t node, struct buf *place)
{
    enum frame_kind kind = frame_kind(walk->frame, node);
    const char *file = path_last(frame_file(walk->frame, node));
    if (!*file || *file == '<' || kind == FRAME_LINE || kind == FRAME_LOOP ||
        strstr(frame_name(walk->frame, node), file))
        return;
    buf_printf(place, "  ");
    printable_put(place, file);
    if (frame_line(walk->frame, node))
        buf_printf(place, ":%u", frame_line(walk->frame, node));
}

/* The only child that will be printed; FRAME_NONE when there are none or several. */
static uint32_t sole_child(const struct tree_walk *walk, uint32_t node)
{
    size_t n;
    uint32_t found = FRAME_NONE;
    const uint32_t *children = frame_children(walk->frame, node, &n);
    for (size_t i = 0; i < n; i++) {
        if (!is_visible(walk, children[i]))
            continue;
        if (found != FRAME_NONE)
            return FRAME_NONE;
        found = children[i];
    }
    return found;
}

/* The callee that the line of `first` goes on with behind node: the only one, which costs the same as far as it is
 * shown. */
static uint32_t next_in_line(const struct tree_walk *walk, uint32_t first, uint32_t node)
{
    double least = SHOWN_PERCENT / 100 * walk->total;
    uint32_t child = walk->total > 0 ? sole_child(walk, node) : FRAME_NONE;
    if (child == FRAME_NONE || walk->is_done[child] || frame_kind(walk->frame, node) == FRAME_VARIABLE ||
        !(fabs(walk->with[child] - walk->with[first]) < least) || (walk->without && fabs(walk->without[node]) >= least))
        return FRAME_NONE;
    return child;
}

/* Whether a node is a place of which neither file nor line is known: it says no more than the function that it is in.
 */
static bool is_nowhere(const struct tree_walk *walk, uint32_t node)
{
    return frame_kind(walk->frame, node) == FRAME_LINE && !frame_line(walk->frame, node) &&
           *frame_file(walk->frame, node) == '<';
}

/* Appends the names of a node and of what its line goes on with; returns the last node. What does not fit into the
 * terminal is left out in the middle, and so are places that say nothing. */
static uint32_t put_names(struct tree_walk *walk, uint32_t node)
{
    const char *arrow = walk->job->unicode ? " \xe2\x80\xba " : " > ";
    uint32_t last = node, next;
    size_t n_left_out = 0, begin = walk->out->len_bytes;
    bool has_name = !is_nowhere(walk, node) || next_in_line(walk, node, node) == FRAME_NONE;
    if (has_name)
        put_name(walk, node);
    while (!walk->is_done[last] && (next = next_in_line(walk, node, last)) != FRAME_NONE) {
        walk->is_done[last] = true;
        last = next;
        if (is_nowhere(walk, last) && (has_name || next_in_line(walk, node, last) != FRAME_NONE))
            continue;
        if (walk->out->len_bytes - begin > walk->job->columns / 2 && next_in_line(walk, node, last) != FRAME_NONE) {
            n_left_out++;
            continue;
        }
        if (n_left_out)
            buf_printf(walk->out, "%s(%zu more)", arrow, n_left_out);
        n_left_out = 0;
        buf_printf(walk->out, "%s", has_name ? arrow : "");
        put_name(walk, last);
        has_name = true;
    }
    if (n_left_out) /* and then a place that says nothing */
        buf_printf(walk->out, "%s(%zu more)", arrow, n_left_out);
    return last;
}

/* Ends a line with names and, if it fits, their place in dim letters; what is wider than the terminal is wrapped. */
static void put_wrapped(const struct tree_walk *walk, struct buf *names, struct buf *place, size_t at)
{
    struct export_job look = {.color = walk->job->color, .unicode = walk->job->unicode, .columns = walk->job->columns};
    const char *text = names->data ? names->data : "", *behind = place->data ? place->data : "";
    if (at + text_width(text) + text_width(behind) > look.columns) {
        buf_printf(names, "%s", behind);
        text_wrapped(walk->out, &look, names->data ? names->data : "", at, at + 2);
    } else {
        buf_printf(walk->out, "%s", text);
        text_style(walk->out, &look, *behind ? TEXT_DIM : TEXT_PLAIN);
        buf_printf(walk->out, "%s", behind);
        text_style(walk->out, &look, TEXT_PLAIN);
        buf_printf(walk->out, "\n");
    }
    walk->out->failed |= names->failed || place->failed;
}

/* Prints a node's line and what it goes on with; returns the last node in it, the only one that may cost something
 * without what it calls. was_done: what lies below is printed already. */
static uint32_t put_line(struct tree_walk *walk, const struct tree_item *item, bool was_done)
{
    struct buf names = {0}, place = {0}, *out = walk->out;
    unsigned most = walk->job->columns / 3, indent = 2 * item->depth;
    size_t begin = out->len_bytes;
    walk->out = &names;
    uint32_t last = put_names(walk, item->node);
    walk->out = out;
    put_place(walk, last, &place);
    if (was_done && sole_child(walk, last) != FRAME_NONE)
        buf_printf(&place, "  (as above)");
    put_value(walk, walk->with[item->node]);
    if (walk->without) {
        buf_printf(out, " ");
        put_value(walk, walk->without[last]);
    }
    buf_printf(out, "  ");
    if (indent > most)
        buf_printf(out, "%*s[%u] ", (int)most, "", item->depth);
    else
        buf_printf(out, "%*s", (int)indent, "");
    put_wrapped(walk, &names, &place, out->len_bytes - begin);
    buf_fini(&names);
    buf_fini(&place);
    return last;
}

/* --- the walk --- */

static int compare_items(const void *a, const void *b, void *context)
{
    const struct tree_item *x = a, *y = b;
    const struct tree_walk *walk = context;
    if (walk->weights[x->node] != walk->weights[y->node])
        return walk->weights[x->node] < walk->weights[y->node] ? -1 : 1;
    return x->node > y->node ? -1 : x->node < y->node;
}

static bool append(struct tree_walk *walk, const uint32_t *nodes, size_t n, uint32_t depth, bool is_below_function)
{
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        size_t n_children;
        if (!is_visible(walk, nodes[i]))
            continue;
        if (is_below_function && is_nowhere(walk, nodes[i])) { /* the function has its costs */
            const uint32_t *children = frame_children(walk->frame, nodes[i], &n_children);
            ok = append(walk, children, n_children, depth, false);
            continue;
        }
        ok = vec_reserve(&walk->stack, &walk->cap_stack, walk->n_stack + 1, sizeof *walk->stack);
        if (ok)
            walk->stack[walk->n_stack++] = (struct tree_item){nodes[i], depth};
    }
    return ok;
}

/* Puts nodes [n] onto the stack, the largest last. */
static bool push(struct tree_walk *walk, const uint32_t *nodes, size_t n, uint32_t depth)
{
    size_t first = walk->n_stack;
    if (!append(walk, nodes, n, depth, depth && walk->without))
        return false;
    if (walk->n_stack > first)
        qsort_r(&walk->stack[first], walk->n_stack - first, sizeof *walk->stack, compare_items, walk);
    return true;
}

/* Prints a node; false when out of memory. */
static bool visit(struct tree_walk *walk, const struct tree_item *item)
{
    if (walk->job->top && walk->n_lines >= walk->job->top) {
        walk->n_left++;
        return true;
    }
    walk->n_lines++;
    bool was_done = walk->is_done[item->node];
    uint32_t last = put_line(walk, item, was_done);
    size_t n;
    const uint32_t *children = frame_children(walk->frame, last, &n);
    walk->is_done[last] = true;
    if (was_done || (walk->job->depth && item->depth + 1 >= walk->job->depth))
        return true;
    return push(walk, children, n, item->depth + 1);
}

static void put_head(const struct tree_walk *walk)
{
    printable_put(walk->out, frame_column_name(walk->job->frame, walk->job->column));
    if (walk->total > 0) {
        buf_printf(walk->out, ": %.6g", walk->total);
        if (walk->job->min_percent > 0)
            buf_printf(walk->out, "   (nodes below %g %% are left out)", walk->job->min_percent);
        buf_printf(walk->out, walk->without ? "\n   with     without   what is called\n" : "\n   cost   of\n");
    } else {
        buf_printf(walk->out, walk->without ? "\n        with      without  what is called\n" : "\n       value  of\n");
    }
}

static int write_tree(const struct frame_job *job, struct buf *out, struct error *err)
{
    struct tree_walk walk = {.job = job, .out = out};
    int code = take_columns(&walk, err);
    if (code == 0)
        code = weigh(&walk, err);
    if (code == 0) {
        size_t n;
        const uint32_t *roots = frame_roots(walk.frame, &n);
        walk.least = job->min_percent / 100 * walk.total;
        put_head(&walk);
        bool ok = push(&walk, roots, n, 0);
        while (ok && walk.n_stack > 0 && !out->failed) {
            struct tree_item item = walk.stack[--walk.n_stack];
            ok = visit(&walk, &item);
        }
        if (ok && walk.n_lines == 0)
            buf_printf(out, "no node has a value of its own, and nothing lies below them\n");
        if (walk.n_left)
            buf_printf(out, "more (--top 0 shows all)\n");
        code = ok ? 0 : error_memory(err);
    }
    free(walk.without);
    free(walk.weights);
    free(walk.is_done);
    free(walk.stack);
    frame_close(walk.frame);
    return code;
}

const struct frame_form form_tree = {
    .name = "tree", .summary = "an indented tree, the largest first", .min_percent = 1, .write = write_tree};
