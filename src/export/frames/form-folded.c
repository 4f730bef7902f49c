/* SPDX-License-Identifier: BSD-3-Clause */
/* Folded stacks: a line for each path with a cost of its own, the names from the root on with ; between them, a blank
 * and the value. What flamegraph.pl, inferno, speedscope and others read. Each path is written in full, so that the
 * text grows with depth times paths. Source of the layout:
 * https://www.brendangregg.com/FlameGraphs/cpuflamegraphs.html, "Fold stacks". */
#include <stdlib.h>

#include "export/frames/stacks.h"

extern const struct frame_form form_folded;

/* A name within a path: ; separates names. */
static void put_name(struct buf *out, const char *name)
{
    size_t first = out->len_bytes;
    stacks_put_name(out, name);
    for (size_t i = first; i < out->len_bytes; i++)
        if (out->data[i] == ';')
            out->data[i] = ':';
}

/* The path to an item. path [n] is room for it. */
static void put_path(const struct frame *frame, const struct stacks *stacks, uint32_t item, uint32_t *path,
                     struct buf *out)
{
    size_t n = 0;
    for (; item != FRAME_NONE; item = stacks->items[item].parent)
        path[n++] = item;
    while (n--) {
        put_name(out, frame_name(frame, stacks->items[path[n]].node));
        if (n)
            buf_append(out, ";", 1);
    }
}

static int write_folded(const struct frame_job *job, struct buf *out, struct error *err)
{
    struct stacks stacks;
    uint32_t *path = NULL;
    int code = stacks_make(job, &stacks, err);
    if (code == 0)
        code = stacks_check_length(&stacks, err);
    if (code == 0 && !(path = malloc(((size_t)stacks.n + 1) * sizeof *path)))
        code = error_memory(err);
    for (uint32_t i = 0; code == 0 && i < stacks.n; i++) {
        if (!(stacks.items[i].self > 0))
            continue;
        put_path(job->frame, &stacks, i, path, out);
        buf_printf(out, " %.15g\n", stacks.items[i].self);
    }
    free(path);
    stacks_fini(&stacks);
    return code;
}

const struct frame_form form_folded = {
    .name = "folded", .summary = "stacks, a line each, for flame graph tools", .write = write_folded};
