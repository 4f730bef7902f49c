/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for the readers of frames: whatever a file or database holds, it is refused with a sentence
 * or becomes a frame that keeps the promises of frame.h. The first byte says what the input is: 0 one file, 1 meta.db,
 * profile.db and cct.db, 2 experiment.xml and a metric-db file; before each part but the last come four bytes of its
 * length. Seeds: frame-seeds.py. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frame/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

static const char *const files[3][3] = {
    {"x", NULL, NULL}, {"meta.db", "profile.db", "cct.db"}, {"experiment.xml", "1.x-000000-000-a-1-0.metric-db", NULL}};

static void broken(const char *what)
{
    (void)fprintf(stderr, "A frame was made, but %s.\n", what);
    abort();
}

static void write_part(const char *directory, const char *name, const uint8_t *data, size_t len_bytes)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, len_bytes) != (ssize_t)len_bytes)
        abort();
    (void)close(fd);
}

/* Writes the parts of the input. */
static void write_parts(const char *directory, unsigned kind, const uint8_t *data, size_t len_bytes)
{
    for (unsigned i = 0; i < 3 && files[kind][i]; i++) {
        bool is_last = i == 2 || !files[kind][i + 1];
        uint32_t len = (uint32_t)len_bytes;
        if (!is_last && len_bytes >= 4) {
            memcpy(&len, data, 4);
            data += 4;
            len_bytes -= 4;
        }
        len = len < len_bytes ? len : (uint32_t)len_bytes;
        write_part(directory, files[kind][i], data, len);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    static char directory[64], path[80];
    struct frame *frame;
    struct error err = {0};
    unsigned kind = len_bytes > 0 ? data[0] % 3 : 0;
    (void)snprintf(directory, sizeof directory, "/dev/shm/frame-fuzz-%d", (int)getpid());
    (void)snprintf(path, sizeof path, kind == 0 ? "%s/x" : "%s", directory);
    (void)mkdir(directory, 0700);
    write_parts(directory, kind, data + (len_bytes > 0), len_bytes - (len_bytes > 0));
    if (frame_open(path, &frame, &err) == 0) {
        check_nodes(frame);
        check_values(frame);
        frame_close(frame);
    } else if (!err.text[0]) {
        broken("it was refused without a word");
    }
    for (unsigned i = 0; i < 3 && files[kind][i]; i++) {
        char name[160];
        (void)snprintf(name, sizeof name, "%s/%s", directory, files[kind][i]);
        (void)unlink(name);
    }
    (void)rmdir(directory);
    return 0;
}
