/* SPDX-License-Identifier: BSD-3-Clause */
/* Metric files as text and as JSON, for people and for tests. Ordinary code. */
#ifndef LOCUS_FMT_METRIC_DB_TEXT_H
#define LOCUS_FMT_METRIC_DB_TEXT_H

#include "base/vec.h"
#include "fmt/json-take.h"
#include "fmt/metric-db.h"

/* Appends the metric file as text, or as JSON from which the same file can be made again. Sets out->failed when out of
 * memory. */
void metric_db_put_text(const struct metric_db *db, struct buf *out);
void metric_db_put_json(const struct metric_db *db, struct buf *out);

/* Makes a metric file of such JSON; *db must be empty and is left empty on failure. Returns take->code. */
int metric_db_take_json(struct json_take *take, const json_t *root, struct metric_db *db);

#endif
