/* SPDX-License-Identifier: BSD-3-Clause */
/* Profiles node by node: see hpcrun-visit.h. */
#include "fmt/hpcrun-visit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/input.h"
#include "fmt/hpcrun-parts.h"

#define PIECE_BYTES (256u << 10)
#define HEAD_BYTES_MAX (64u << 20)

struct stream {
    int fd;
    const struct hpcrun_layout *layout;
    unsigned char *bytes; /* [capacity] a piece of the file; the first holds the whole head */
    size_t capacity, len_bytes, offset;
    uint64_t file_bytes;
    struct hpcrun_profile head;
    uint64_t n_nodes;
    size_t node_bytes;
    struct hpcrun_value *values; /* [head.n_metrics] of a node */
};

/* Appends up to what fits to the piece; false at the end of the file and on failure. */
static bool read_more(struct stream *s)
{
    ssize_t n;
    do
        n = read(s->fd, s->bytes + s->len_bytes, s->capacity - s->len_bytes);
    while (n < 0 && errno == EINTR);
    s->len_bytes += n > 0 ? (size_t)n : 0;
    return n > 0;
}

static bool fill(struct stream *s)
{
    while (s->len_bytes < s->capacity)
        if (!read_more(s))
            return false;
    return true;
}

/* Takes what comes before the nodes from the piece; false when it is not all there, or not sound. */
static bool take_head(struct stream *s)
{
    struct error err;
    struct wire_in in = {.bytes = s->bytes, .len_bytes = s->len_bytes, .name = "", .err = &err};
    char version[6] = "";
    if (!wire_accept(&in, HPCRUN_MAGIC))
        return false;
    wire_get_bytes(&in, version, 5, "");
    s->layout = in.code ? NULL : hpcrun_layout_of(version);
    if (!s->layout || s->layout->sparse || s->layout->may_be_old)
        return false;
    memcpy(s->head.version, s->layout->version, sizeof s->head.version);
    if (hpcrun_get_header(&in, &s->head) || hpcrun_get_epoch_head(&in, &s->head))
        return false;
    s->n_nodes = wire_get(&in, 8, "");
    s->offset = in.offset;
    s->node_bytes = hpcrun_node_bytes(s->layout) + 8 * s->head.n_metrics;
    return !in.code;
}

/* True when the file is one that can be walked through: dense, of one epoch, and complete. */
static bool begin(struct stream *s, const char *path)
{
    struct stat st;
    s->fd = input_open(AT_FDCWD, path, 0, &st);
    if (s->fd < 0)
        return false;
    s->file_bytes = (uint64_t)st.st_size;
    for (s->capacity = PIECE_BYTES; s->capacity <= HEAD_BYTES_MAX; s->capacity *= 2) {
        unsigned char *bytes = realloc(s->bytes, s->capacity);
        if (!bytes)
            return false;
        s->bytes = bytes;
        bool more = fill(s);
        if (take_head(s))
            break;
        hpcrun_fini(&s->head);
        if (!more || !s->layout || s->layout->sparse || s->layout->may_be_old)
            return false;
    }
    if (!s->node_bytes || s->offset > s->file_bytes || s->n_nodes != (s->file_bytes - s->offset) / s->node_bytes ||
        s->n_nodes * s->node_bytes != s->file_bytes - s->offset)
        return false;
    s->values = calloc(s->head.n_metrics + 1, sizeof *s->values);
    return s->values != NULL;
}

/* Makes the bytes of the next node be there. */
static int need_node(struct stream *s, const char *path, struct error *err)
{
    if (s->len_bytes - s->offset >= s->node_bytes)
        return 0;
    memmove(s->bytes, s->bytes + s->offset, s->len_bytes - s->offset);
    s->len_bytes -= s->offset;
    s->offset = 0;
    if (s->capacity < s->node_bytes) {
        unsigned char *bytes = realloc(s->bytes, s->node_bytes);
        if (!bytes)
            return error_set(err, ERR_MEMORY, "out of memory while reading %.600s", path);
        s->bytes = bytes;
        s->capacity = s->node_bytes;
    }
    while (s->len_bytes < s->node_bytes)
        if (!read_more(s))
            return error_set(err, ERR_IO, "%.600s: the file became shorter while it was read", path);
    (void)fill(s);
    return 0;
}

/* Values that are not zero of the n_metrics words at bytes. */
static size_t take_values(const unsigned char *bytes, size_t n_metrics, struct hpcrun_value *values)
{
    size_t n = 0;
    for (size_t m = 0; m < n_metrics; m++) {
        uint64_t word;
        memcpy(&word, bytes + 8 * m, 8);
        if (word)
            values[n++] = (struct hpcrun_value){(uint32_t)m, bytes_get_be(bytes + 8 * m, 8)};
    }
    return n;
}

static int visit_nodes(struct stream *s, const char *path, const struct hpcrun_visitor *visitor, struct error *err)
{
    int code = 0;
    for (uint64_t i = 0; code == 0 && i < s->n_nodes; i++) {
        struct hpcrun_node node = {0};
        code = need_node(s, path, err);
        if (code)
            break;
        const unsigned char *bytes = hpcrun_decode_node(s->bytes + s->offset, s->layout->has_type, &node);
        size_t n = take_values(bytes, s->head.n_metrics, s->values);
        s->offset += s->node_bytes;
        code = visitor->node(visitor->context, &node, s->values, n, err);
    }
    return code;
}

/* The same of a profile in memory. */
static int visit_epoch(const struct hpcrun_profile *epoch, const struct hpcrun_visitor *visitor, struct error *err)
{
    struct hpcrun_value *values = calloc(epoch->n_metrics + 1, sizeof *values);
    int code = values ? visitor->epoch(visitor->context, epoch, epoch->n_nodes, err)
                      : error_set(err, ERR_MEMORY, "out of memory");
    for (size_t i = 0; code == 0 && i < epoch->n_nodes; i++) {
        size_t n = 0;
        for (size_t m = 0; m < epoch->n_metrics; m++)
            if (epoch->values[i * epoch->n_metrics + m])
                values[n++] = (struct hpcrun_value){(uint32_t)m, epoch->values[i * epoch->n_metrics + m]};
        code = visitor->node(visitor->context, &epoch->nodes[i], values, n, err);
    }
    free(values);
    return code ? code : visitor->end(visitor->context, epoch, err);
}

static int visit_whole(const char *path, const struct hpcrun_visitor *visitor, struct error *err)
{
    struct hpcrun_profile profile = {0};
    int code = hpcrun_read(path, &profile, err);
    for (const struct hpcrun_profile *epoch = &profile; code == 0 && epoch; epoch = epoch->next)
        code = visit_epoch(epoch, visitor, err);
    hpcrun_fini(&profile);
    return code;
}

int hpcrun_visit(const char *path, const struct hpcrun_visitor *visitor, struct error *err)
{
    struct stream stream = {.fd = -1};
    bool walks = begin(&stream, path);
    int code = 0;
    if (walks) {
        code = visitor->epoch(visitor->context, &stream.head, stream.n_nodes, err);
        if (code == 0)
            code = visit_nodes(&stream, path, visitor, err);
        if (code == 0)
            code = visitor->end(visitor->context, &stream.head, err);
    }
    if (stream.fd >= 0)
        (void)close(stream.fd);
    hpcrun_fini(&stream.head);
    free(stream.bytes);
    free(stream.values);
    return walks ? code : visit_whole(path, visitor, err);
}
