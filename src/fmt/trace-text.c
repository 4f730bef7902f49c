/* SPDX-License-Identifier: BSD-3-Clause */
/* Trace files as text and as JSON: see trace-text.h. */
#include "fmt/trace-text.h"

#include <inttypes.h>
#include <string.h>

#include "fmt/json-put.h"

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
