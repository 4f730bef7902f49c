/* SPDX-License-Identifier: BSD-3-Clause */
/* Folded stacks: a line for each node with a cost of its own, the names from the root to it with ; between them, a
 * blank and the value. What flamegraph.pl, inferno, speedscope and others read. Source of the layout:
 * https://www.brendangregg.com/FlameGraphs/cpuflamegraphs.html, "Fold stacks". */
#include <math.h>
#include <stdlib.h>

#include "export/frames/forms.h"

extern const struct frame_form form_folded;

/* A name in a line of its own kind: ; separates names, and a line break ends the stack. */
static void put_name(struct buf *out, const char *name)
{
    for (const char *c = *name ? name : "?"; *c; c++)
        buf_append(out, *c == ';' ? ":" : *c == '\n' || *c == '\r' ? " " : c, 1);
}

/* The path to a node, each with its names, from the root on. path [n_nodes] is room for it. */
static void put_stack(const struct frame *frame, uint32_t node, uint32_t *path, struct buf *out)
{
    size_t n = 0, n_parents = 1;
    while (n_parents) {
        path[n++] = node;
        const uint32_t *parents = frame_parents(frame, node, &n_parents);
        node = n_parents ? parents[0] : node;
    }
    while (n--) {
        put_name(out, frame_name(frame, path[n]));
        if (n)
            buf_append(out, ";", 1);
    }
}

static int write_folded(const struct frame_job *job, struct buf *out, struct error *err)
{
    size_t n_nodes = frame_n_nodes(job->frame);
    const double *values;
    if (!frame_is_tree(job->frame))
        return error_set(err, ERR_UNSUPPORTED, "folded stacks need a tree, and a node of this graph has two parents");
    int code = frame_values(job->frame, job->column, &job->view, &values, err);
    uint32_t *path = code == 0 ? malloc((n_nodes ? n_nodes : 1) * sizeof *path) : NULL;
    if (code == 0 && !path)
        code = error_set(err, ERR_MEMORY, "out of memory");
    for (uint32_t node = 0; code == 0 && node < n_nodes; node++) {
        if (!(values[node] > 0))
            continue;
        put_stack(job->frame, node, path, out);
        buf_printf(out, " %.15g\n", values[node]);
    }
    free(path);
    return code;
}

const struct frame_form form_folded = {
    .name = "folded", .summary = "stacks, a line each, for flame graph tools", .write = write_folded};
