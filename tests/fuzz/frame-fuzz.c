/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for the readers of frames: whatever a file or database holds, it is refused with a sentence
 * or becomes a frame that keeps the promises of frame.h, through an operation and in a form. The first byte says what
 * the input is (files below), and what is done with the frame; before each part but the last come four bytes of its
 * length. Seeds: frame-seeds.py. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/frames/forms.h"
#include "frame/ops.h"

#include "scratch-dir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

enum { KINDS = 5, PARTS = 4 };

static const char *const files[KINDS][PARTS] = {{"x"},
                                                {"meta.db", "profile.db", "cct.db"},
                                                {"experiment.xml", "1.x-000000-000-a-1-0.metric-db"},
                                                {"frame.db"},
                                                {"meta.db", "profile.db", "cct.db", "locus.db"}};

static void broken(const char *what)
{
    (void)fprintf(stderr, "A frame was made, but %s.\n", what);
    abort();
}

/* Writes the parts of the input; path [SCRATCH_PATH_MAX]: the last one's. */
static void write_parts(unsigned kind, const uint8_t *data, size_t len_bytes, char *path)
{
    for (unsigned i = 0; i < PARTS && files[kind][i]; i++) {
        bool is_last = i + 1 == PARTS || !files[kind][i + 1];
        uint32_t len = (uint32_t)len_bytes;
        if (!is_last && len_bytes >= 4) {
            memcpy(&len, data, 4);
            data += 4;
            len_bytes -= 4;
        }
        len = len < len_bytes ? len : (uint32_t)len_bytes;
        scratch_file(files[kind][i], data, len, path);
        data += len;
        len_bytes -= len;
    }
}

static void check_nodes(const struct frame *frame)
{
    size_t n_nodes = frame_n_nodes(frame), n;
    if (!frame_post_order(frame) || !frame_depths(frame))
        broken("it has no orders");
    for (uint32_t node = 0; node < n_nodes; node++) {
        const uint32_t *children = frame_children(frame, node, &n);
        for (size_t i = 0; i < n; i++)
            if (children[i] >= n_nodes || (frame_is_tree(frame) && children[i] <= node))
                broken("a child is no node, or precedes its parent in a tree");
        if (!frame_name(frame, node) || !frame_identity(frame, node) || frame_kind(frame, node) >= FRAME_KINDS)
            broken("a node has no name, identity or kind");
    }
}

/* Errors are allowed: values are read late. */
static void check_values(struct frame *frame)
{
    const uint32_t first = 0;
    const struct frame_view views[] = {{0}, {.profiles = &first, .n_profiles = 1}, {.aggregate = FRAME_STD}};
    for (size_t column = 0; column < frame_n_columns(frame); column++) {
        const double *values;
        for (size_t i = 0; i < sizeof views / sizeof *views; i++)
            (void)frame_values(frame, column, &views[i], &values, NULL);
        for (uint32_t node = 0; node < frame_n_nodes(frame); node++) {
            const struct frame_cell *cells;
            size_t n;
            if (frame_cells(frame, column, node, &cells, &n, NULL) != 0)
                break;
            for (size_t i = 0; i < n; i++)
                if (cells[i].profile >= frame_n_profiles(frame) || (i > 0 && cells[i].profile < cells[i - 1].profile))
                    broken("a cell is of no profile, or cells are out of order");
        }
    }
}

/* The frame in one of the forms: refused with a sentence, or printed. */
static void check_form(struct frame *frame, unsigned which)
{
    size_t n;
    const struct frame_form *const *forms = frame_forms(&n);
    struct frame_job job = {.frame = frame, .column = frame_default_column(frame), .title = "x", .columns = 80};
    struct buf out = {0};
    struct error err = {0};
    if (job.column != SIZE_MAX && forms[which % n]->write(&job, &out, &err) != 0 && !err.text[0])
        broken("a form refused it without a word");
    buf_fini(&out);
}

/* What one of the operations makes of it. */
static void check_operation(struct frame *frame, unsigned which)
{
    static const struct {
        const char *name, *texts[2];
        size_t n_texts;
    } runs[] = {{"filter", {"leaf = 1 or line > 3"}, 1},
                {"query", {"[\"*\", {\"depth\": \"> 1\"}]"}, 1},
                {"inclusive", {0}, 0},
                {"exclusive", {0}, 0},
                {"aggregate", {"rank", "p50"}, 2},
                {"group", {"name"}, 1},
                {"hierarchy", {"module file function line"}, 1},
                {"flat", {0}, 0},
                {"callers", {"3"}, 1},
                {"callgraph", {"collapsed"}, 1},
                {"hotpath", {0}, 0},
                {"union", {0}, 0},
                {"add", {0}, 0},
                {"divide", {0}, 0}};
    size_t n = sizeof runs / sizeof *runs;
    bool is_of_two = strcmp(runs[which % n].name, "add") == 0 || strcmp(runs[which % n].name, "divide") == 0;
    struct frame *frames[] = {frame, frame}, *result = NULL;
    struct error err = {0};
    if (frame_run(runs[which % n].name, frames, is_of_two ? 2 : 1, runs[which % n].texts, runs[which % n].n_texts,
                  &result, &err) != 0) {
        if (!err.text[0])
            broken("an operation refused it without a word");
        return;
    }
    check_nodes(result);
    check_values(result);
    check_form(result, which / 14);
    frame_close(result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    char path[SCRATCH_PATH_MAX] = "";
    struct frame *frame;
    struct error err = {0};
    unsigned kind = len_bytes > 0 ? data[0] % KINDS : 0, which = len_bytes > 0 ? data[0] / KINDS : 0;
    const char *directory = scratch_directory();
    int descriptor = scratch_descriptor();
    write_parts(kind, data + (len_bytes > 0), len_bytes - (len_bytes > 0), path);
    int (*open)(const char *, struct frame **, struct error *) = frame_open;
    if (which % 2)
        open = kind == KINDS - 1 ? frame_open_fields : kind == 0 ? frame_open_parts : frame_open;
    if (open(kind == 0 ? path : directory, &frame, &err) == 0) {
        check_nodes(frame);
        check_values(frame);
        if (frame_n_nodes(frame) < 2000)
            check_operation(frame, which + (unsigned)len_bytes);
        check_form(frame, which);
        frame_close(frame);
    } else if (!err.text[0]) {
        broken("it was refused without a word");
    }
    check(scratch_descriptor() == descriptor, "a file is left open");
    return 0;
}
