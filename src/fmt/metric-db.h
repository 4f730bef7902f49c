/* SPDX-License-Identifier: BSD-3-Clause */
/* Metric files of a database in the XML form (.metric-db): one matrix of doubles per thread. Layout: FORMAT.md.
 * Ordinary code. */
#ifndef LOCUS_FMT_METRIC_DB_H
#define LOCUS_FMT_METRIC_DB_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "fmt/json.h"

/* Row r belongs to the node numbered r + 1 of the database. All zero is empty. */
struct metric_db {
    uint32_t n_nodes, n_metrics;
    double *values; /* [n_nodes][n_metrics] */
};

/* Reads a whole file; *db must be empty and is left empty on failure. _memory: name is used in messages.
 * err: ERR_IO, ERR_FORMAT (file, offset, reason), ERR_UNSUPPORTED (version), ERR_MEMORY */
int metric_db_read_memory(const void *bytes, size_t len_bytes, const char *name, struct metric_db *db,
                          struct error *err);

/* Appends the file's bytes to out, or writes a new file that must not exist.  err: ERR_RANGE (more than the signed
 * 32-bit counts of the format hold), ERR_IO, ERR_MEMORY */
int metric_db_write(const struct metric_db *db, struct buf *out, struct error *err);
int metric_db_write_file(const struct metric_db *db, const char *path, struct error *err);

/* Frees the values and makes the struct empty. */
void metric_db_fini(struct metric_db *db);

/* --- as text and JSON --- */

/* Metric files as text and as JSON, for people and for tests. Ordinary code. */

/* Appends the metric file as text, or as JSON from which the same file can be made again. Sets out->failed when out of
 * memory. */
void metric_db_put_text(const struct metric_db *db, struct buf *out);
void metric_db_put_json(const struct metric_db *db, struct buf *out);

/* Makes a metric file of such JSON; *db must be empty and is left empty on failure. Returns take->code. */
int metric_db_take_json(struct json_take *take, const json_t *root, struct metric_db *db);

#endif
