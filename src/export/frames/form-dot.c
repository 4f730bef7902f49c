/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs for Graphviz, with labels as gprof2dot writes them: module, name, "12.50%" with and "(2.50%)" without what is
 * called. Of a tree each call path is a box, and an edge has the cost of the call; of a graph each node is one, and an
 * edge has a cost where what it calls has one caller only. Source: the DOT language and the attributes of Graphviz. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "export/frames/stacks.h"
#include "export/text-cells.h"

extern const struct frame_form form_dot;

/* Graphviz reads no text of 16384 bytes. */
enum { LABEL_CHARACTERS = 80, TOOLTIP_NAME_CHARACTERS = 12000, TOOLTIP_FILE_CHARACTERS = 1000 };

struct drawing {
    const struct frame_job *job;
    double total;
    struct buf *out;
};

static void begin_dot(const struct drawing *drawing)
{
    buf_printf(drawing->out, "digraph \"frames\" {\n"
                             "graph [fontname=\"Helvetica\", nodesep=0.15, ranksep=0.35];\n"
                             "node [shape=box, style=filled, fontname=\"Helvetica\", penwidth=0.5];\n"
                             "edge [fontname=\"Helvetica\", fontsize=9];\n");
}

/* Whether Graphviz takes what follows an & for the name of a character. */
static bool is_entity(const char *at)
{
    size_t n = at[1] == '#' ? 2 : 1;
    while (isalnum((unsigned char)at[n]))
        n++;
    return n > 1 && at[n] == ';';
}

static void put_character(struct buf *out, const char *at, size_t len)
{
    if (*at == '"' || *at == '\\')
        buf_append(out, "\\", 1);
    if (*at == '&' && is_entity(at))
        buf_printf(out, "&amp;");
    else
        buf_append(out, at, len);
}

/* Appends a text within quotes, at most max characters of it. */
static void put_text(struct buf *out, const char *text, size_t max)
{
    stacks_put_cut(out, text, max, put_character);
}

/* From white over yellow to red. */
static void put_color(struct buf *out, double share)
{
    double warm = sqrt(share < 0 ? 0 : share > 1 ? 1 : share);
    buf_printf(out, "#%02x%02x%02x", 255, (unsigned)(250 - 150 * warm), (unsigned)(240 - 170 * warm));
}

static void put_node(const struct drawing *drawing, uint32_t id, uint32_t node, double self, double total)
{
    const struct frame *frame = drawing->job->frame;
    struct buf *out = drawing->out;
    double share = drawing->total > 0 ? total / drawing->total : 0;
    double of_self = drawing->total > 0 ? self / drawing->total : 0;
    struct buf name = {0};
    bool is_within = frame_kind(frame, node) == FRAME_LINE || frame_kind(frame, node) == FRAME_LOOP;
    buf_printf(out, "n%" PRIu32 " [label=\"", id);
    if (*frame_module(frame, node) && !is_within) {
        put_text(out, path_last(frame_module(frame, node)), LABEL_CHARACTERS);
        buf_printf(out, "\\n");
    }
    text_short_function(&name, frame_name(frame, node));
    put_text(out, name.data ? name.data : "", LABEL_CHARACTERS);
    out->failed |= name.failed;
    buf_fini(&name);
    buf_printf(out, "\\n%.2f%%\\n(%.2f%%)\", tooltip=\"", 100 * share, 100 * of_self);
    put_text(out, frame_name(frame, node), TOOLTIP_NAME_CHARACTERS);
    if (*frame_file(frame, node)) {
        buf_printf(out, " ");
        put_text(out, frame_file(frame, node), TOOLTIP_FILE_CHARACTERS);
        buf_printf(out, ":%" PRIu32, frame_line(frame, node));
    }
    buf_printf(out, "\", fontsize=%.1f, fillcolor=\"", 8 + 10 * sqrt(of_self < 0 ? 0 : of_self > 1 ? 1 : of_self));
    put_color(out, share);
    buf_printf(out, "\"];\n");
}

/* An edge; cost NAN: it is not known. */
static void put_edge(const struct drawing *drawing, uint32_t from, uint32_t to, double cost)
{
    buf_printf(drawing->out, "n%" PRIu32 " -> n%" PRIu32, from, to);
    if (!isnan(cost) && drawing->total > 0)
        buf_printf(drawing->out, " [label=\"%.4g\", penwidth=%.2f]", cost,
                   0.5 + 4 * fmax(0, fmin(1, cost / drawing->total)));
    buf_printf(drawing->out, ";\n");
}

static int draw_tree(struct drawing *drawing, struct error *err)
{
    struct stacks stacks;
    int code = stacks_make(drawing->job, &stacks, err);
    drawing->total = stacks.total;
    if (code == 0)
        begin_dot(drawing);
    for (uint32_t i = 0; code == 0 && i < stacks.n; i++)
        put_node(drawing, i, stacks.items[i].node, stacks.items[i].self, stacks.items[i].total);
    for (uint32_t i = 0; code == 0 && i < stacks.n; i++)
        if (stacks.items[i].parent != FRAME_NONE)
            put_edge(drawing, stacks.items[i].parent, i, stacks.items[i].total);
    stacks_fini(&stacks);
    return code;
}

/* --- graphs --- */

/* The values of an exclusive and of an inclusive column; NULL where there is none. */
static int find_values(const struct frame_job *job, const double **self, const double **total, struct error *err)
{
    size_t pair = frame_column_pair(job->frame, job->column);
    bool is_inclusive = frame_column_sums(job->frame, job->column) == FRAME_INCLUSIVE;
    size_t own = is_inclusive ? pair : job->column, all = is_inclusive ? job->column : pair;
    int code = 0;
    *self = *total = NULL;
    if (own != SIZE_MAX)
        code = frame_values(job->frame, own, &job->view, self, err);
    if (code == 0 && all != SIZE_MAX)
        code = frame_values(job->frame, all, &job->view, total, err);
    return code;
}

static double value_of(const double *values, uint32_t node)
{
    return values && values[node] > 0 && isfinite(values[node]) ? values[node] : 0;
}

/* Nodes that are large enough, and the edges between them. */
static void draw_nodes(struct drawing *drawing, const double *self, const double *total)
{
    const struct frame *frame = drawing->job->frame;
    uint32_t n = (uint32_t)frame_n_nodes(frame);
    double least = drawing->job->min_percent / 100 * drawing->total;
    for (uint32_t node = 0; node < n; node++)
        if (value_of(total, node) >= least)
            put_node(drawing, node, node, value_of(self, node), value_of(total, node));
    for (uint32_t node = 0; node < n; node++) {
        size_t n_children, n_parents;
        const uint32_t *children = frame_children(frame, node, &n_children);
        for (size_t k = 0; value_of(total, node) >= least && k < n_children; k++) {
            (void)frame_parents(frame, children[k], &n_parents);
            if (value_of(total, children[k]) >= least)
                put_edge(drawing, node, children[k], n_parents == 1 ? value_of(total, children[k]) : NAN);
        }
    }
}

static int draw_graph(struct drawing *drawing, struct error *err)
{
    uint32_t n = (uint32_t)frame_n_nodes(drawing->job->frame);
    const double *self, *total;
    int code = find_values(drawing->job, &self, &total, err);
    if (code != 0)
        return code;
    for (uint32_t node = 0; node < n; node++)
        drawing->total = self ? drawing->total + value_of(self, node) : fmax(drawing->total, value_of(total, node));
    begin_dot(drawing);
    draw_nodes(drawing, self ? self : total, total ? total : self);
    return 0;
}

static int write_dot(const struct frame_job *job, struct buf *out, struct error *err)
{
    struct drawing drawing = {.job = job, .out = out};
    int code = frame_is_tree(job->frame) ? draw_tree(&drawing, err) : draw_graph(&drawing, err);
    buf_printf(out, "}\n");
    return code;
}

const struct frame_form form_dot = {.name = "dot",
                                    .summary = "a graph for Graphviz: what calls what, and its share",
                                    .min_percent = 1,
                                    .write = write_dot};
