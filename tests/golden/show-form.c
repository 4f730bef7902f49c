/* SPDX-License-Identifier: BSD-3-Clause */
/* show-form FORM FILE [COLUMN [MIN_PERCENT]] prints a file or database in a form of frames; show-form --graph FORM
 * ... first makes a call graph of it; show-form --equal A B says in what the frames of two files differ, and --chain N
 * FORM prints a chain of N nodes of which the last has a cost. Exit status 1 and one sentence on failure. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/frames/forms.h"
#include "frame/make.h"
#include "frame/ops.h"

static int print_form(struct frame *frame, int argc, char **argv, struct error *err)
{
    struct buf out = {0};
    const struct frame_form *form = frame_form_find(argv[0], err);
    if (!form)
        return ERR_NOT_FOUND;
    struct frame_job job = {.frame = frame, .title = "a <test> & more", .unicode = true, .columns = 80};
    job.column = argc > 2 ? frame_find_column(frame, argv[2], err) : frame_default_column(frame);
    job.is_named = argc > 2;
    job.min_percent = argc > 3 ? strtod(argv[3], NULL) : 0;
    if (job.column == SIZE_MAX)
        return error_set(err, ERR_NOT_FOUND, "there is no such column");
    int code = form->write(&job, &out, err);
    if (code == 0 && out.failed)
        code = error_set(err, ERR_MEMORY, "out of memory");
    if (code == 0)
        (void)fwrite(out.data, 1, out.len_bytes, stdout);
    buf_fini(&out);
    return code;
}

static int print_chain(int argc, char **argv, struct error *err)
{
    struct frame_maker maker;
    struct frame *frame = NULL;
    uint32_t n = (uint32_t)strtoul(argv[0], NULL, 10), parent = FRAME_NONE;
    maker_init(&maker);
    size_t own = maker_column(&maker, "cost", FRAME_EXCLUSIVE),
           all = maker_column(&maker, "cost (inc)", FRAME_INCLUSIVE);
    for (uint32_t i = 0; i < n; i++) {
        struct made_node node = {.kind = FRAME_FUNCTION, .name = i % 2 ? "ping" : "pong", .file = "chain.c", .line = 1};
        parent = maker_node(&maker, parent, &node);
        maker_value(&maker, all, parent, 0, 7);
    }
    maker_value(&maker, own, parent, 0, 7);
    int code = frame_made(&maker, &frame, NULL, err);
    if (code == 0)
        code = print_form(frame, argc - 1, argv + 1, err);
    frame_close(frame);
    return code;
}

static int compare(char **argv, struct error *err)
{
    struct frame *a = NULL, *b = NULL;
    char difference[1024] = "";
    bool is_equal = false;
    int code = frame_open(argv[0], &a, err);
    if (code == 0)
        code = frame_open(argv[1], &b, err);
    if (code == 0)
        code = frame_equal(a, b, 1e-12, &is_equal, difference, err);
    if (code == 0 && !is_equal)
        code = error_set(err, ERR_FORMAT, "%.1000s", difference);
    frame_close(a);
    frame_close(b);
    return code;
}

static int print_file(bool is_graph, int argc, char **argv, struct error *err)
{
    struct frame *frame = NULL, *graph = NULL;
    int code = frame_open(argv[1], &frame, err);
    if (code == 0 && is_graph)
        code = frame_callgraph(frame, false, &graph, err);
    if (code == 0)
        code = print_form(is_graph ? graph : frame, argc, argv, err);
    frame_close(graph);
    frame_close(frame);
    return code;
}

int main(int argc, char **argv)
{
    struct error err = {0};
    int code;
    if (argc == 4 && strcmp(argv[1], "--equal") == 0)
        code = compare(argv + 2, &err);
    else if (argc >= 4 && strcmp(argv[1], "--chain") == 0)
        code = print_chain(argc - 2, argv + 2, &err);
    else if (argc >= 4 && strcmp(argv[1], "--graph") == 0)
        code = print_file(true, argc - 2, argv + 2, &err);
    else if (argc >= 3)
        code = print_file(false, argc - 1, argv + 1, &err);
    else
        code = error_set(&err, ERR_USAGE, "show-form [--graph] FORM FILE [COLUMN [MIN_PERCENT]]");
    if (code != 0)
        (void)fprintf(stderr, "%s\n", err.text);
    return code != 0;
}
