/* SPDX-License-Identifier: BSD-3-Clause */
/* From nodes to the text of a query that finds them: by the way to them, where that leads nowhere else. */
#include <stdlib.h>
#include <string.h>

#include "frame/expression.h"
#include "frame/query.h"

#define MAX_NODES 100
#define MAX_LEVELS 1000

/* What is written so far. */
struct selecting {
    const struct frame *frame;
    bool *is_selected; /* [n_nodes] and not written yet */
    bool *is_whole;    /* [n_nodes] by the way to them: all nodes of that way are selected */
    struct buf text;
};

static uint32_t parent_of(const struct frame *frame, uint32_t node)
{
    size_t n;
    const uint32_t *parents = frame_parents(frame, node, &n);
    return n ? parents[0] : FRAME_NONE;
}

/* The class of each node of a tree: that of its parent, and what put_conditions asks of itself. NULL when out of
 * memory. */
static uint32_t *find_classes(const struct frame *frame)
{
    size_t n = frame_n_nodes(frame);
    uint32_t *classes = malloc((n ? n : 1) * sizeof *classes);
    struct strtab known = {0};
    struct buf key = {0};
    bool ok = classes;
    for (uint32_t i = 0; ok && i < n; i++) {
        uint32_t parent = parent_of(frame, i);
        key.len_bytes = 0;
        buf_printf(&key, "%u\x1f%d\x1f%s\x1f%s\x1f%u", parent == FRAME_NONE ? FRAME_NONE : classes[parent],
                   (int)frame_kind(frame, i), frame_name(frame, i), frame_file(frame, i),
                   frame_kind_is_part(frame_kind(frame, i)) ? frame_line(frame, i) : 0);
        int64_t id = key.failed ? -1 : strtab_intern(&known, key.data);
        classes[i] = (uint32_t)id;
        ok = id >= 0;
    }
    strtab_fini(&known);
    buf_fini(&key);
    if (!ok) {
        free(classes);
        return NULL;
    }
    return classes;
}

/* What a node must be like at a place of the pattern. */
static void put_conditions(const struct frame *frame, uint32_t node, size_t place, struct buf *to)
{
    uint32_t line = frame_line(frame, node);
    buf_printf(to, " AND p%zu.\"kind\" = \"%s\" AND p%zu.\"name\" = ", place, frame_kind_name(frame_kind(frame, node)),
               place);
    expression_quote(to, '"', frame_name(frame, node));
    buf_printf(to, " AND p%zu.\"file\" = ", place);
    expression_quote(to, '"', frame_file(frame, node));
    if (frame_kind_is_part(frame_kind(frame, node)) && line)
        buf_printf(to, " AND p%zu.\"line\" = %u", place, line);
    else if (frame_kind_is_part(frame_kind(frame, node)))
        buf_printf(to, " AND p%zu.\"line\" IS NONE", place);
}

/* Begins one more set of the text. */
static void put_or(struct buf *to)
{
    buf_printf(to, "%s", to->len_bytes ? " OR " : "");
}

/* The pattern of the way to a node, of which only the node itself is wanted. */
static void put_path(const struct frame *frame, uint32_t node, size_t depth, struct buf *to)
{
    uint32_t path[MAX_LEVELS];
    for (size_t i = depth + 1; i-- > 0; node = parent_of(frame, node))
        path[i] = node;
    put_or(to);
    buf_printf(to, "{MATCH ");
    for (size_t i = 0; i <= depth; i++)
        buf_printf(to, "%s(\".\", p%zu)", i ? "->" : "", i);
    buf_printf(to, " WHERE p0.\"depth\" = 0");
    for (size_t i = 0; i <= depth; i++)
        put_conditions(frame, path[i], i, to);
    buf_printf(to, "}");
    if (depth)
        buf_printf(to, " AND {MATCH (\".\", p) WHERE p.\"depth\" = %zu}", depth);
}

/* The selected nodes that are left, by their numbers. */
static void put_numbers(struct selecting *selecting)
{
    size_t n = frame_n_nodes(selecting->frame);
    bool is_first = true;
    for (size_t i = 0; i < n; i++) {
        size_t end = i;
        while (end < n && selecting->is_selected[end])
            end++;
        if (end == i)
            continue;
        if (is_first)
            put_or(&selecting->text);
        buf_printf(&selecting->text, is_first ? "{MATCH (\".\", p) WHERE " : " OR ");
        if (end == i + 1)
            buf_printf(&selecting->text, "p.\"node_id\" = %zu", i);
        else
            buf_printf(&selecting->text, "(p.\"node_id\" >= %zu AND p.\"node_id\" <= %zu)", i, end - 1);
        is_first = false;
        i = end;
    }
    if (!is_first)
        buf_printf(&selecting->text, "}");
}

/* Writes the ways to nodes, and takes those out of the selection that they find. */
static int put_paths(struct selecting *selecting, struct error *err)
{
    const struct frame *frame = selecting->frame;
    size_t n = frame_n_nodes(frame);
    const uint32_t *depths = frame_depths(frame);
    uint32_t *classes = find_classes(frame);
    bool *is_written = calloc(n ? n : 1, sizeof *is_written);
    if (!depths || !classes || !is_written) {
        free(classes);
        free(is_written);
        return error_memory(err);
    }
    for (size_t i = 0; i < n; i++)
        selecting->is_whole[i] = true;
    for (size_t i = 0; i < n; i++)
        selecting->is_whole[classes[i]] &= selecting->is_selected[i];
    for (uint32_t i = 0; i < n; i++) {
        if (!selecting->is_selected[i] || !selecting->is_whole[classes[i]] || depths[i] >= MAX_LEVELS)
            continue;
        if (!is_written[classes[i]])
            put_path(frame, i, depths[i], &selecting->text);
        is_written[classes[i]] = true;
        selecting->is_selected[i] = false;
    }
    free(classes);
    free(is_written);
    return 0;
}

int query_select(const struct frame *frame, const uint32_t *nodes, size_t n, enum query_by by, char **text,
                 struct error *err)
{
    size_t n_nodes = frame_n_nodes(frame);
    struct selecting selecting = {.frame = frame,
                                  .is_selected = calloc(n_nodes ? n_nodes : 1, sizeof(bool)),
                                  .is_whole = calloc(n_nodes ? n_nodes : 1, sizeof(bool))};
    int code = selecting.is_selected && selecting.is_whole ? 0 : error_memory(err);
    if (code == 0 && n == 0)
        code = error_set(err, ERR_RANGE, "a query cannot name no nodes");
    for (size_t i = 0; code == 0 && i < n; i++) {
        if (nodes[i] >= n_nodes)
            code = error_set(err, ERR_RANGE, "there is no node %u: the frame has %zu", nodes[i], n_nodes);
        else
            selecting.is_selected[nodes[i]] = true;
    }
    if (code == 0 && by == QUERY_BY_PATH && n <= MAX_NODES && frame_is_tree(frame))
        code = put_paths(&selecting, err);
    if (code == 0)
        put_numbers(&selecting);
    if (code == 0 && selecting.text.failed)
        code = error_memory(err);
    if (code == 0)
        *text = selecting.text.data;
    else
        buf_fini(&selecting.text);
    free(selecting.is_selected);
    free(selecting.is_whole);
    return code;
}
