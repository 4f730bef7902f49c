/* SPDX-License-Identifier: BSD-3-Clause */
/* Metric files of a database: see metric-db.h. */
#include "fmt/metric-db.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "fmt/file.h"
#include "fmt/json.h"

#define MAGIC "HPCPROF-metricdb__"
#define VERSION "00.10"

static int get_header(struct wire_in *in, struct metric_db *db)
{
    char version[6] = "";
    if (!wire_accept(in, MAGIC))
        return wire_fail(in, ERR_FORMAT, "not a metric file: it does not begin with " MAGIC);
    wire_get_bytes(in, version, 5, "the header");
    if (!in->code && strcmp(version, VERSION) != 0)
        return wire_fail(in, ERR_UNSUPPORTED, "metric file version '%.5s' is not supported (" VERSION " is)", version);
    uint64_t endian = wire_get(in, 1, "the header");
    if (!in->code && endian != 'b')
        return wire_fail(in, ERR_FORMAT, "byte order 0x%02x is not 'b' (big endian)", (unsigned)endian);
    db->n_nodes = (uint32_t)wire_get(in, 4, "the header");
    db->n_metrics = (uint32_t)wire_get(in, 4, "the header");
    return in->code;
}

static int get_values(struct wire_in *in, struct metric_db *db)
{
    size_t n_values = (size_t)db->n_nodes * db->n_metrics;
    if (!wire_has_items(in, n_values, 8, "the values"))
        return in->code;
    if (in->len_bytes - in->offset != n_values * 8)
        return wire_fail(in, ERR_FORMAT, "%zu bytes follow the %zu values", in->len_bytes - in->offset - n_values * 8,
                         n_values);
    db->values = n_values ? malloc(n_values * sizeof *db->values) : NULL;
    if (n_values && !db->values)
        return wire_fail(in, ERR_MEMORY, "out of memory for %zu values", n_values);
    for (size_t i = 0; i < n_values; i++)
        db->values[i] = bytes_double_of(wire_get(in, 8, "the values"));
    return in->code;
}

int metric_db_read_memory(const void *bytes, size_t len_bytes, const char *name, struct metric_db *db,
                          struct error *err)
{
    struct wire_in in = {.bytes = bytes, .len_bytes = len_bytes, .name = name, .err = err};
    if (get_header(&in, db) || get_values(&in, db))
        metric_db_fini(db);
    return in.code;
}

int metric_db_write(const struct metric_db *db, struct buf *out, struct error *err)
{
    if (db->n_nodes > INT32_MAX || db->n_metrics > INT32_MAX)
        return error_set(err, ERR_RANGE, "a metric file cannot hold %u nodes with %u metrics", db->n_nodes,
                         db->n_metrics);
    size_t n_values = (size_t)db->n_nodes * db->n_metrics;
    buf_append(out, MAGIC VERSION "b", 24);
    wire_put(out, db->n_nodes, 4);
    wire_put(out, db->n_metrics, 4);
    for (size_t i = 0; i < n_values; i++)
        wire_put(out, bytes_bits_of(db->values[i]), 8);
    return out->failed ? error_set(err, ERR_MEMORY, "out of memory while writing a metric file") : 0;
}

int metric_db_write_file(const struct metric_db *db, const char *path, struct error *err)
{
    struct buf out = {0};
    int code = metric_db_write(db, &out, err);
    if (!code)
        code = file_write_new(path, out.data, out.len_bytes, err);
    buf_fini(&out);
    return code;
}

void metric_db_fini(struct metric_db *db)
{
    free(db->values);
    *db = (struct metric_db){0};
}

/* --- as text and JSON --- */

/* Metric files as text and as JSON: see metric-db.h. Rows are numbered as the database numbers its nodes. */

void metric_db_put_text(const struct metric_db *db, struct buf *out)
{
    const double *value = db->values;
    buf_printf(out,
               "HPCPROF-metricdb__\n[hdr:\n  (version: 00.10)\n  (endian: b)\n  (num-nodes: %" PRIu32
               ")\n  (num-metrics: %" PRIu32 ")\n]\n[metrics:\n",
               db->n_nodes, db->n_metrics);
    for (uint32_t row = 0; row < db->n_nodes; row++) {
        buf_printf(out, "  [(node: %" PRIu32 ") (metrics:", row + 1);
        for (uint32_t k = 0; k < db->n_metrics; k++) {
            char text[40];
            json_double_text(*value++, text, sizeof text);
            buf_printf(out, k ? "  %s" : " %s", text);
        }
        buf_printf(out, ")]\n");
    }
    buf_printf(out, "]\n");
}

void metric_db_put_json(const struct metric_db *db, struct buf *out)
{
    const double *value = db->values;
    buf_printf(out, "{\"format\": \"metric-db\", \"version\": \"00.10\"");
    json_put_word_at(out, "n_metrics", db->n_metrics);
    buf_printf(out, ",\n\"values\": [");
    for (uint32_t row = 0; row < db->n_nodes; row++) {
        buf_printf(out, row ? ",\n  [" : "\n  [");
        for (uint32_t k = 0; k < db->n_metrics; k++) {
            if (k)
                buf_append(out, ", ", 2);
            json_put_double(out, *value++);
        }
        buf_append(out, "]", 1);
    }
    buf_printf(out, "]}\n");
}

static void take_row(struct json_take *take, const json_t *row, uint32_t n_metrics, double *values)
{
    if (json_array_size(row) != n_metrics)
        json_take_fail(take, ERR_FORMAT, "a row", "the list has the wrong length");
    for (uint32_t k = 0; k < n_metrics && !take->code; k++)
        values[k] = json_take_double(take, json_array_get(row, k), "a value");
}

int metric_db_take_json(struct json_take *take, const json_t *root, struct metric_db *db)
{
    size_t n_nodes = 0;
    const char *version = json_string_value(json_object_get(root, "version"));
    if (!version || strcmp(version, "00.10") != 0)
        json_take_fail(take, ERR_FORMAT, "version", "\"00.10\" is expected");
    const json_t *list = json_take_array_at(take, root, "values", &n_nodes);
    db->n_metrics = (uint32_t)json_take_word_at(take, root, "n_metrics", INT32_MAX);
    if (n_nodes > INT32_MAX)
        json_take_fail(take, ERR_FORMAT, "values", "too many rows");
    db->values = json_take_alloc(take, n_nodes, db->n_metrics * sizeof *db->values);
    db->n_nodes = (uint32_t)n_nodes;
    take->where = "values";
    for (take->index = 0; take->index < n_nodes && !take->code; take->index++)
        take_row(take, json_array_get(list, take->index), db->n_metrics,
                 db->values ? &db->values[take->index * db->n_metrics] : NULL);
    take->where = NULL;
    json_take_end(take, root, 4);
    if (take->code)
        metric_db_fini(db);
    return take->code;
}
