/* SPDX-License-Identifier: BSD-3-Clause */
/* Trace files: see trace.h. */
#include "fmt/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/input.h"
#include "base/scratch.h"
#include "fmt/file.h"
#include "fmt/json.h"

#define MAGIC "HPCRUN-trace______"

static size_t record_bytes(uint64_t flags)
{
    return flags & TRACE_FLAG_DATACENTRIC ? 16 : 12;
}

static int get_header(struct wire_in *in, struct trace_file *trace)
{
    if (!wire_accept(in, MAGIC))
        return wire_fail(in, ERR_FORMAT, "not a trace: it does not begin with " MAGIC);
    wire_get_bytes(in, trace->version, 5, "the header");
    bool has_flags = strcmp(trace->version, "01.01") == 0;
    if (!in->code && !has_flags && strcmp(trace->version, "01.00") != 0)
        return wire_fail(in, ERR_UNSUPPORTED, "trace version '%.5s' is not supported (01.00 and 01.01 are)",
                         trace->version);
    uint64_t endian = wire_get(in, 1, "the header");
    if (!in->code && endian != 'b')
        return wire_fail(in, ERR_FORMAT, "byte order 0x%02x is not 'b' (big endian)", (unsigned)endian);
    if (has_flags)
        trace->flags = wire_get(in, 8, "the header");
    if (trace->flags & ~(uint64_t)(TRACE_FLAG_DATACENTRIC | TRACE_FLAG_LCA))
        return wire_fail(in, ERR_UNSUPPORTED, "unknown trace flags 0x%llx", (unsigned long long)trace->flags);
    return in->code;
}

static int get_records(struct wire_in *in, struct trace_file *trace)
{
    static const char what[] = "the last record";
    bool has_metric = trace->flags & TRACE_FLAG_DATACENTRIC;
    size_t n_records = (in->len_bytes - in->offset) / record_bytes(trace->flags);
    trace->records = n_records ? calloc(n_records, sizeof *trace->records) : NULL;
    if (n_records && !trace->records)
        return wire_fail(in, ERR_MEMORY, "out of memory for %zu records", n_records);
    trace->n_records = trace->cap_records = n_records;
    for (size_t i = 0; i < n_records; i++) {
        struct trace_record *record = &trace->records[i];
        record->time = wire_get(in, 8, what);
        record->node = (uint32_t)wire_get(in, 4, what);
        record->metric = has_metric ? (uint32_t)wire_get(in, 4, what) : TRACE_NO_METRIC;
    }
    if (!in->code && in->offset < in->len_bytes)
        wire_has(in, record_bytes(trace->flags), what);
    return in->code;
}

int trace_read_memory(const void *bytes, size_t len_bytes, const char *name, struct trace_file *trace,
                      struct error *err)
{
    struct wire_in in = {.bytes = bytes, .len_bytes = len_bytes, .name = name, .err = err};
    if (get_header(&in, trace) || get_records(&in, trace))
        trace_fini(trace);
    return in.code;
}

int trace_read(const char *path, struct trace_file *trace, struct error *err)
{
    struct buf bytes = {0};
    int code = file_read(path, &bytes, err);
    if (code)
        return code;
    code = trace_read_memory(bytes.data, bytes.len_bytes, path, trace, err);
    buf_fini(&bytes);
    return code;
}

static void put_header(const char *version, uint64_t flags, struct buf *out)
{
    buf_printf(out, "%s%.5sb", MAGIC, version);
    if (strcmp(version, "01.01") == 0)
        wire_put(out, flags, 8);
}

static void put_record(const struct trace_record *record, uint64_t flags, struct buf *out)
{
    wire_put(out, record->time, 8);
    wire_put(out, record->node, 4);
    if (flags & TRACE_FLAG_DATACENTRIC)
        wire_put(out, record->metric, 4);
}

int trace_write(const struct trace_file *trace, struct buf *out, struct error *err)
{
    bool has_flags = strcmp(trace->version, "01.01") == 0;
    if (!has_flags && strcmp(trace->version, "01.00") != 0)
        return error_set(err, ERR_UNSUPPORTED, "traces of version '%.5s' are not written (01.00 and 01.01 are)",
                         trace->version);
    if (!has_flags && trace->flags)
        return error_set(err, ERR_RANGE, "traces of version 01.00 have no flags");
    put_header(trace->version, trace->flags, out);
    for (size_t i = 0; i < trace->n_records; i++)
        put_record(&trace->records[i], trace->flags, out);
    return out->failed ? error_set(err, ERR_MEMORY, "out of memory while writing a trace") : 0;
}

void trace_fini(struct trace_file *trace)
{
    free(trace->records);
    *trace = (struct trace_file){0};
}

int trace_writer_open(struct trace_writer *writer, const char *path, uint64_t flags, struct error *err)
{
    *writer = (struct trace_writer){.fd = -1, .flags = flags, .path = strdup(path)};
    int code = writer->path ? 0 : error_set(err, ERR_MEMORY, "%.600s: out of memory", path);
    if (!code)
        code = file_begin(path, &writer->temporary, &writer->fd, err);
    if (code) {
        trace_writer_abandon(writer);
        return code;
    }
    put_header("01.01", flags, &writer->pending);
    return 0;
}

static int flush(struct trace_writer *writer, struct error *err)
{
    if (writer->pending.failed)
        return error_set(err, ERR_MEMORY, "%.600s: out of memory", writer->path);
    int code = file_append(writer->fd, writer->path, writer->pending.data, writer->pending.len_bytes, err);
    writer->pending.len_bytes = 0;
    return code;
}

int trace_writer_add(struct trace_writer *writer, const struct trace_record *record, struct error *err)
{
    put_record(record, writer->flags, &writer->pending);
    return writer->pending.failed || writer->pending.len_bytes >= 32768 ? flush(writer, err) : 0;
}

int trace_writer_close(struct trace_writer *writer, struct error *err)
{
    int code = flush(writer, err);
    if (!code)
        code = file_end(&writer->fd, &writer->temporary, writer->path, err);
    trace_writer_abandon(writer);
    return code;
}

void trace_writer_abandon(struct trace_writer *writer)
{
    file_abandon(&writer->fd, &writer->temporary);
    free(writer->path);
    buf_fini(&writer->pending);
    *writer = (struct trace_writer){.fd = -1};
}

/* --- a trace record by record --- */

/* Traces of any size piece by piece. */

enum { PIECE_RECORDS = 4096, HEAD_BYTES = 32, OLD_HEAD_BYTES = 24, RECORD_BYTES_MAX = 16 };

struct visit {
    const char *path;
    int fd;
    uint64_t file_bytes, offset;
    size_t record_bytes;
};

/* Reads the header; the records begin at offset. */
static int begin(struct visit *visit, struct error *err)
{
    char head[HEAD_BYTES];
    struct stat info;
    struct trace_file trace = {0};
    visit->fd = input_open(AT_FDCWD, visit->path, 0, &info);
    if (visit->fd < 0)
        return error_set(err, ERR_IO, "%.600s: cannot be read: %s", visit->path, input_reason(errno));
    visit->file_bytes = (uint64_t)info.st_size;
    size_t len = visit->file_bytes < sizeof head ? (size_t)visit->file_bytes : sizeof head;
    int code = spill_read_at(visit->fd, visit->path, 0, head, len, err);
    if (code == 0 && len >= OLD_HEAD_BYTES && memcmp(head + 18, "01.00", 5) == 0)
        len = OLD_HEAD_BYTES;
    if (code == 0)
        code = trace_read_memory(head, len, visit->path, &trace, err);
    visit->offset = len;
    visit->record_bytes = trace.flags & TRACE_FLAG_DATACENTRIC ? RECORD_BYTES_MAX : 12;
    trace_fini(&trace);
    uint64_t rest = (visit->file_bytes - len) % visit->record_bytes;
    if (code == 0 && rest)
        code = error_set(err, ERR_FORMAT, "%.600s: offset %llu: truncated in the last record", visit->path,
                         (unsigned long long)(visit->file_bytes - rest));
    return code;
}

static int visit_records(struct visit *visit, int (*take)(void *, const struct trace_record *, size_t, struct error *),
                         void *context, struct error *err)
{
    char bytes[PIECE_RECORDS * RECORD_BYTES_MAX];
    struct trace_record records[PIECE_RECORDS];
    int code = 0;
    while (code == 0 && visit->offset < visit->file_bytes) {
        uint64_t n = (visit->file_bytes - visit->offset) / visit->record_bytes;
        n = n < PIECE_RECORDS ? n : PIECE_RECORDS;
        code = spill_read_at(visit->fd, visit->path, visit->offset, bytes, n * visit->record_bytes, err);
        for (size_t i = 0; i < n; i++) {
            const char *record = bytes + i * visit->record_bytes;
            records[i] = (struct trace_record){.time = bytes_get_be(record, 8),
                                               .node = (uint32_t)bytes_get_be(record + 8, 4),
                                               .metric = TRACE_NO_METRIC};
            if (visit->record_bytes == RECORD_BYTES_MAX)
                records[i].metric = (uint32_t)bytes_get_be(record + 12, 4);
        }
        visit->offset += n * visit->record_bytes;
        if (code == 0)
            code = take(context, records, n, err);
    }
    return code;
}

int trace_visit(const char *path,
                int (*take)(void *context, const struct trace_record *records, size_t n_records, struct error *err),
                void *context, struct error *err)
{
    struct visit visit = {.path = path, .fd = -1};
    int code = begin(&visit, err);
    if (code == 0)
        code = visit_records(&visit, take, context, err);
    if (visit.fd >= 0)
        (void)close(visit.fd);
    return code;
}

/* --- as text and JSON --- */

/* Trace files as text and as JSON: see trace.h. */

void trace_put_text(const struct trace_file *trace, struct buf *out)
{
    bool has_metric = trace->flags & TRACE_FLAG_DATACENTRIC;
    buf_printf(out, "HPCRUN-trace______\n[hdr:\n  (version: %s)\n  (endian: b)\n", trace->version);
    if (strcmp(trace->version, "01.01") == 0)
        buf_printf(out, "  (flags: 0x%" PRIx64 ")\n", trace->flags);
    buf_printf(out, "]\n[trace: (num-records: %zu)\n", trace->n_records);
    for (size_t i = 0; i < trace->n_records; i++) {
        const struct trace_record *record = &trace->records[i];
        buf_printf(out, "  [(time: %" PRIu64 ") (node: %" PRIu32 ")", record->time, record->node);
        if (has_metric)
            buf_printf(out, " (metric: %" PRIu32 ")", record->metric);
        buf_append(out, "]\n", 2);
    }
    buf_printf(out, "]\n");
}

void trace_put_json(const struct trace_file *trace, struct buf *out)
{
    size_t n_fields = trace->flags & TRACE_FLAG_DATACENTRIC ? 3 : 2;
    buf_printf(out, "{\"format\": \"hpctrace\", \"version\": \"%s\"", trace->version);
    json_put_word_at(out, "flags", trace->flags);
    buf_printf(out, ",\n\"records\": [");
    for (size_t i = 0; i < trace->n_records; i++) {
        const struct trace_record *record = &trace->records[i];
        uint64_t words[3] = {record->time, record->node, record->metric};
        buf_printf(out, i ? ",\n  " : "\n  ");
        json_put_words(out, words, n_fields);
    }
    buf_printf(out, "]}\n");
}

static void take_record(struct json_take *take, const json_t *item, size_t n_fields, struct trace_record *record)
{
    if (json_array_size(item) != n_fields)
        json_take_fail(take, ERR_FORMAT, "a record", "[time, node], with flag 1 also a metric, is expected");
    record->time = json_take_word(take, json_array_get(item, 0), UINT64_MAX, "time");
    record->node = (uint32_t)json_take_word(take, json_array_get(item, 1), UINT32_MAX, "node");
    record->metric = TRACE_NO_METRIC;
    if (n_fields == 3)
        record->metric = (uint32_t)json_take_word(take, json_array_get(item, 2), UINT32_MAX, "metric");
}

int trace_take_json(struct json_take *take, const json_t *root, struct trace_file *trace)
{
    size_t n_records = 0;
    const char *version = json_string_value(json_object_get(root, "version"));
    if (!version || strlen(version) != 5)
        return json_take_fail(take, ERR_FORMAT, "version", "a version such as \"01.01\" is expected");
    memcpy(trace->version, version, 6);
    trace->flags = json_take_word_at(take, root, "flags", TRACE_FLAG_DATACENTRIC | TRACE_FLAG_LCA);
    const json_t *list = json_take_array_at(take, root, "records", &n_records);
    trace->records = json_take_alloc(take, n_records, sizeof *trace->records);
    trace->n_records = trace->cap_records = trace->records ? n_records : 0;
    take->where = "records";
    for (take->index = 0; take->index < trace->n_records && !take->code; take->index++)
        take_record(take, json_array_get(list, take->index), trace->flags & TRACE_FLAG_DATACENTRIC ? 3 : 2,
                    &trace->records[take->index]);
    take->where = NULL;
    json_take_end(take, root, 4);
    if (take->code)
        trace_fini(trace);
    return take->code;
}
