/* SPDX-License-Identifier: BSD-3-Clause */
/* A file of any of our kinds, for tools that take whatever they are given: recognised by its content, dumped as text or
 * JSON, and made again from JSON. One row per kind in any.c. Ordinary code.
 *
 * The room: any.c is the table of kinds and may call all others: perf-data.c with its records and text, and topology.c.
 */
#ifndef LOCUS_IMPORT_ANY_H
#define LOCUS_IMPORT_ANY_H

#include "base/error.h"
#include "base/vec.h"
#include "fmt/events.h"
#include "fmt/hpcrun.h"
#include "fmt/log.h"
#include "fmt/metric-db.h"
#include "fmt/objects.h"
#include "fmt/sched.h"
#include "fmt/trace.h"
#include "fmt/v4.h"
#include "import/perf-data.h"

struct any_row;

/* A file in memory; row tells which member holds it. All zero is empty. */
struct any_file {
    const struct any_row *row;
    union {
        struct hpcrun_profile profile;
        struct trace_file trace;
        struct events_file events;
        struct metric_db metric_db;
        struct log_summary log;
        struct objects_file objects;
        struct perf_data perf;
        struct sched_file sched;
        struct v4_file v4;
    } as;
};

/* Reads a file of any kind; *file must be empty and is left empty on failure. _memory: name is used in messages and,
 * for logs and side files, for its suffix.
 * err: ERR_IO, ERR_FORMAT (file, offset, reason), ERR_UNSUPPORTED (a kind or version not read here, named), ERR_MEMORY
 */
int any_read(const char *path, struct any_file *file, struct error *err);
int any_read_memory(const char *bytes, size_t len_bytes, const char *name, struct any_file *file, struct error *err);

/* Reads the JSON that any_put_json makes.  err: as any_read */
int any_read_json(const char *path, struct any_file *file, struct error *err);
int any_read_json_memory(const char *bytes, size_t len_bytes, const char *name, struct any_file *file,
                         struct error *err);

/* Appends the file as text or JSON to out. Sets out->failed when out of memory. */
void any_put_text(const struct any_file *file, struct buf *out);
void any_put_json(const struct any_file *file, struct buf *out);

/* Appends the file's own bytes; a file of a version 4 database is laid out anew.
 * err: ERR_RANGE, ERR_UNSUPPORTED (04.00 profiles, logs), ERR_MEMORY */
int any_write(const struct any_file *file, struct buf *out, struct error *err);

/* Frees everything and makes the file empty. */
void any_fini(struct any_file *file);

#endif
