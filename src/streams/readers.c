/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of readers, and the choice among them: the content decides, never the name. */
#include "streams/readers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/input.h"

extern const struct stream_reader stream_reader_events, stream_reader_perf, stream_reader_trace_dat;

static const struct stream_reader *const readers[] = {
    &stream_reader_trace_dat,
    &stream_reader_perf,
    &stream_reader_events,
};

const struct stream_reader *stream_readers_at(size_t i)
{
    return i < sizeof readers / sizeof *readers ? readers[i] : NULL;
}

/* What path is: a directory, or a file with a first part, which goes into head [STREAM_HEAD_BYTES + 1]. */
static int look_at(const char *path, struct stream_input *input, unsigned char *head, struct error *err)
{
    struct stat info;
    *input = (struct stream_input){.path = path, .head = head};
    if (stat(path, &info) != 0)
        return error_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%.600s: cannot open: %s", path,
                         strerror(errno));
    input->is_directory = S_ISDIR(info.st_mode);
    int fd = input->is_directory ? -1 : input_open(AT_FDCWD, path, 0, NULL), code = 0;
    if (!input->is_directory && fd < 0)
        return error_set(err, ERR_IO, "%.600s: cannot open: %s", path, input_reason(errno));
    for (ssize_t n = 1; fd >= 0 && n != 0 && input->n_head < STREAM_HEAD_BYTES;) {
        n = read(fd, head + input->n_head, STREAM_HEAD_BYTES - input->n_head);
        if (n < 0 && errno != EINTR) {
            code = error_set(err, ERR_IO, "%.600s: cannot read: %s", path, strerror(errno));
            break;
        }
        input->n_head += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0)
        (void)close(fd);
    head[input->n_head] = 0;
    return code;
}

static int not_known(const char *path, struct error *err)
{
    struct buf known = {0};
    for (size_t i = 0; stream_readers_at(i); i++)
        buf_printf(&known, "%s%s", i ? ", " : "", stream_readers_at(i)->name);
    int code = error_set(err, ERR_UNSUPPORTED, "%.300s: not a recording that can be read; these can: %s", path,
                         known.data ? known.data : "none");
    buf_fini(&known);
    return code;
}

int stream_open(const char *path, const struct stream_options *options, struct stream **stream, struct error *err)
{
    static const struct stream_options none;
    unsigned char head[STREAM_HEAD_BYTES + 1];
    struct stream_input input;
    int code = look_at(path, &input, head, err);
    size_t i = 0;
    options = options ? options : &none;
    while (code == 0 && stream_readers_at(i) && !stream_readers_at(i)->fits(&input))
        i++;
    if (code != 0 || !stream_readers_at(i))
        return code ? code : not_known(path, err);
    struct stream *opened = calloc(1, sizeof *opened);
    if (!opened)
        return error_memory(err);
    opened->reader = stream_readers_at(i);
    opened->kind = opened->reader->name;
    opened->path = strdup(path);
    code = opened->path ? opened->reader->read(&input, options, opened, err) : error_memory(err);
    if (code == 0)
        code = stream_finish(opened, options->couplebreak, err);
    if (code != 0)
        stream_close(opened);
    else
        *stream = opened;
    return code;
}
