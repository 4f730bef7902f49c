/* SPDX-License-Identifier: BSD-3-Clause */
/* Metric files as text and as JSON: see metric-db-text.h. Rows are numbered as the database numbers its nodes. */
#include "fmt/metric-db-text.h"

#include <inttypes.h>
#include <string.h>

#include "fmt/json-put.h"

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
