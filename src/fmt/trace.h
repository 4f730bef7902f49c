/* SPDX-License-Identifier: BSD-3-Clause */
/* Trace files (.hpctrace): when which call path ran. Versions 01.00 and 01.01 are read and written; new ones are 01.01.
 * Layout: FORMAT.md. Ordinary code. */
#ifndef LOCUS_FMT_TRACE_H
#define LOCUS_FMT_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "fmt/json.h"

#define TRACE_FLAG_DATACENTRIC 1u /* records carry a metric id */
#define TRACE_FLAG_LCA 2u
#define TRACE_NO_METRIC 0x7fffffffu

/* time: nanoseconds since 1970 in files that belong to profiles of version 03.00 and later, microseconds before.
 * node: id of the call path, odd (HPCToolkit keeps those). metric: TRACE_NO_METRIC when the file has none. */
struct trace_record {
    uint64_t time;
    uint32_t node;
    uint32_t metric;
};

/* A whole file. All zero is empty. */
struct trace_file {
    char version[6];              /* "01.01" */
    uint64_t flags;               /* 0 in version 01.00 */
    struct trace_record *records; /* [n_records] */
    size_t n_records, cap_records;
};

/* Reads a whole file; *trace must be empty and is left empty on failure. _memory: name is used in messages.
 * err: ERR_IO, ERR_FORMAT (file, offset, reason), ERR_UNSUPPORTED (version), ERR_MEMORY */
int trace_read(const char *path, struct trace_file *trace, struct error *err);
int trace_read_memory(const void *bytes, size_t len_bytes, const char *name, struct trace_file *trace,
                      struct error *err);

/* Passes the records of a file of any size to take, some at a time; what it returns ends the visit unless it is 0.
 * err: as trace_read, and take's */
int trace_visit(const char *path,
                int (*take)(void *context, const struct trace_record *records, size_t n_records, struct error *err),
                void *context, struct error *err);

/* Appends the file's bytes to out.  err: ERR_UNSUPPORTED (version), ERR_RANGE (flags in 01.00), ERR_MEMORY */
int trace_write(const struct trace_file *trace, struct buf *out, struct error *err);

/* Frees everything and makes the trace empty. */
void trace_fini(struct trace_file *trace);

/* Writing record by record, in a few kilobytes of memory: the file appears under its name when it is closed. */
struct trace_writer {
    int fd;
    uint64_t flags;
    char *path, *temporary;
    struct buf pending;
};

/* Begins path, which must not exist, with the header of version 01.01.  err: ERR_IO, ERR_MEMORY */
int trace_writer_open(struct trace_writer *writer, const char *path, uint64_t flags, struct error *err);

/* Adds a record; metric counts only when flags have TRACE_FLAG_DATACENTRIC.  err: ERR_IO, ERR_MEMORY */
int trace_writer_add(struct trace_writer *writer, const struct trace_record *record, struct error *err);

/* Finishes the file; the writer is empty afterwards, on failure too (nothing is left then).  err: ERR_IO */
int trace_writer_close(struct trace_writer *writer, struct error *err);

/* Gives up and removes what was written. */
void trace_writer_abandon(struct trace_writer *writer);

/* --- as text and JSON --- */

/* Trace files as text and as JSON, for people and for tests. Ordinary code. */

/* Appends the trace as text, or as JSON from which the same file can be made again. Sets out->failed when out of
 * memory. */
void trace_put_text(const struct trace_file *trace, struct buf *out);
void trace_put_json(const struct trace_file *trace, struct buf *out);

/* Makes a trace of such JSON; *trace must be empty and is left empty on failure. Returns take->code. */
int trace_take_json(struct json_take *take, const json_t *root, struct trace_file *trace);

#endif
