/* SPDX-License-Identifier: BSD-3-Clause */
/* Trace files: see trace.h. */
#include "fmt/trace.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fmt/file.h"
#include "fmt/wire.h"

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
