/* SPDX-License-Identifier: BSD-3-Clause */
/* Hatchet's literals, as JSON: a list of {"frame", "metrics", "children"}. A frame has what tells nodes apart; what
 * else is known of a node is in "attributes", which Hatchet passes over and our reader takes. A node that has been
 * before is there again with its number alone, so that graphs with several parents and cycles are whole.
 * Source: Hatchet's user guide, "Data Structures", from_literal. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "export/frames/stacks.h"
#include "fmt/json.h"

extern const struct frame_form form_literal;

struct writing {
    const struct frame *frame;
    const double **columns; /* [n_columns] NULL: it is not shown */
    size_t n_columns;
    bool is_tree;
    bool *is_written; /* [n_nodes] */
    struct buf *out;
};

/* A text; bytes that are not UTF-8 are \xNN. */
static void put_text(struct buf *out, const char *text)
{
    const char *at = text;
    size_t len;
    for (; *at && (len = printable_utf8(at)) > 0; at += len)
        ;
    if (!*at) {
        json_put_text(out, text);
        return;
    }
    struct buf plain = {0};
    printable_put(&plain, text);
    json_put_text(out, plain.data ? plain.data : "");
    buf_fini(&plain);
}

static void put_text_at(struct buf *out, const char *key, const char *text, bool *is_first)
{
    buf_printf(out, *is_first ? "" : ", ");
    put_text(out, key);
    buf_append(out, ": ", 2);
    put_text(out, text);
    *is_first = false;
}

static void put_number_at(struct buf *out, const char *key, const char *suffix, double value, bool *is_first)
{
    struct buf name = {0};
    char text[40];
    json_double_text(value, text, sizeof text);
    buf_printf(&name, "%s%s", key, suffix);
    buf_printf(out, *is_first ? "" : ", ");
    put_text(out, name.data ? name.data : key);
    buf_printf(out, ": %s", text);
    buf_fini(&name);
    *is_first = false;
}

/* Whether a node's line tells it apart: the reader takes it for that in a frame. */
static bool has_line_in_frame(enum frame_kind kind)
{
    return kind == FRAME_LOOP || kind == FRAME_LINE;
}

static void put_frame(const struct writing *writing, uint32_t node)
{
    const struct frame *frame = writing->frame;
    enum frame_kind kind = frame_kind(frame, node);
    bool is_first = true;
    buf_printf(writing->out, "{\"frame\": {");
    put_text_at(writing->out, "name", frame_name(frame, node), &is_first);
    put_text_at(writing->out, "type", kind == FRAME_OTHER ? "None" : frame_kind_name(kind), &is_first);
    if (*frame_file(frame, node))
        put_text_at(writing->out, "file", frame_file(frame, node), &is_first);
    if (has_line_in_frame(kind))
        put_number_at(writing->out, "line", "", frame_line(frame, node), &is_first);
    buf_append(writing->out, "}", 1);
}

/* Whether readers find the module of a line or loop by themselves: it is that of the node above. */
static bool has_module_from_above(const struct frame *frame, uint32_t node)
{
    size_t n_parents;
    const uint32_t *parents = frame_parents(frame, node, &n_parents);
    enum frame_kind kind = frame_kind(frame, node);
    return (kind == FRAME_LINE || kind == FRAME_LOOP) && n_parents == 1 &&
           strcmp(frame_module(frame, node), frame_module(frame, parents[0])) == 0;
}

static void put_attributes(const struct writing *writing, uint32_t node)
{
    const struct frame *frame = writing->frame;
    size_t begin = writing->out->len_bytes;
    bool is_first = true;
    buf_printf(writing->out, ", \"attributes\": {");
    if (*frame_module(frame, node) && !has_module_from_above(frame, node))
        put_text_at(writing->out, "module", frame_module(frame, node), &is_first);
    if (frame_line(frame, node) && !has_line_in_frame(frame_kind(frame, node)))
        put_number_at(writing->out, "line", "", frame_line(frame, node), &is_first);
    if (!frame_identity_is_usual(frame, node))
        put_text_at(writing->out, "identity", frame_identity(frame, node), &is_first);
    for (size_t i = 0; i < frame_n_attributes(frame); i++) {
        const char *name = frame_attribute_name(frame, i), *text = frame_attribute_text(frame, i, node);
        double number = frame_attribute_number(frame, i, node);
        if (frame_attribute_is_text(frame, i) && *text)
            put_text_at(writing->out, name, text, &is_first);
        else if (!frame_attribute_is_text(frame, i) && isfinite(number))
            put_number_at(writing->out, name, "", number, &is_first);
    }
    if (is_first)
        writing->out->len_bytes = begin;
    else
        buf_append(writing->out, "}", 1);
}

/* Hatchet knows inclusive columns by "(inc)". */
static void put_metrics(const struct writing *writing, uint32_t node, bool is_again)
{
    const struct frame *frame = writing->frame;
    bool is_first = true;
    buf_printf(writing->out, ", \"metrics\": {");
    if (!writing->is_tree)
        put_number_at(writing->out, "_hatchet_nid", "", node, &is_first);
    for (size_t i = 0; !is_again && i < writing->n_columns; i++) {
        const char *name = frame_column_name(frame, i);
        bool lacks_inc = frame_column_sums(frame, i) == FRAME_INCLUSIVE && !strstr(name, "(inc)");
        if (writing->columns[i] && isfinite(writing->columns[i][node]))
            put_number_at(writing->out, name, lacks_inc ? " (inc)" : "", writing->columns[i][node], &is_first);
    }
    buf_append(writing->out, "}", 1);
}

/* All of a node but its children and its end. Returns whether these come now. */
static bool begin_node(struct writing *writing, uint32_t node)
{
    bool is_again = writing->is_written[node];
    writing->is_written[node] = true;
    put_frame(writing, node);
    if (is_again)
        buf_printf(writing->out, ", \"duplicate\": true");
    else
        put_attributes(writing, node);
    put_metrics(writing, node, is_again);
    buf_printf(writing->out, ", \"children\": [");
    if (is_again)
        buf_printf(writing->out, "]}");
    return !is_again;
}

/* A node whose children are being written. */
struct open_node {
    uint32_t node;
    size_t next;
};

/* A node and all below it. open [n_nodes] is room. */
static void put_subtree(struct writing *writing, uint32_t root, struct open_node *open)
{
    size_t n_open = 0;
    if (begin_node(writing, root))
        open[n_open++] = (struct open_node){root, 0};
    while (n_open > 0) {
        struct open_node *top = &open[n_open - 1];
        size_t n;
        const uint32_t *children = frame_children(writing->frame, top->node, &n);
        if (top->next == n) {
            buf_printf(writing->out, "]}");
            n_open--;
            continue;
        }
        uint32_t child = children[top->next];
        buf_printf(writing->out, top->next++ ? ",\n" : "\n");
        if (begin_node(writing, child))
            open[n_open++] = (struct open_node){child, 0};
    }
}

static int find_columns(const struct frame_job *job, struct writing *writing, struct error *err)
{
    int code = 0;
    writing->n_columns = frame_n_columns(job->frame);
    writing->columns = calloc(writing->n_columns + 1, sizeof *writing->columns);
    if (!writing->columns)
        return error_memory(err);
    for (size_t i = 0; code == 0 && i < writing->n_columns; i++)
        if (stacks_shows(job, i))
            code = frame_values(job->frame, i, &job->view, &writing->columns[i], err);
    return code;
}

static int write_literal(const struct frame_job *job, struct buf *out, struct error *err)
{
    struct writing writing = {.frame = job->frame, .is_tree = frame_is_tree(job->frame), .out = out};
    size_t n = frame_n_nodes(job->frame), n_roots;
    const uint32_t *roots = frame_roots(job->frame, &n_roots);
    struct open_node *open = malloc((n + 1) * sizeof *open);
    writing.is_written = calloc(n + 1, sizeof *writing.is_written);
    int code = open && writing.is_written ? find_columns(job, &writing, err) : error_memory(err);
    buf_append(out, "[", 1);
    for (size_t i = 0; code == 0 && i < n_roots; i++) {
        buf_printf(out, i ? ",\n" : "");
        put_subtree(&writing, roots[i], open);
    }
    buf_printf(out, "]\n");
    free(open);
    free(writing.is_written);
    free(writing.columns);
    return code;
}

const struct frame_form form_literal = {
    .name = "literal", .summary = "a literal of Hatchet, for GraphFrame.from_literal", .write = write_literal};
