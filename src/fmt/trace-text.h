/* SPDX-License-Identifier: BSD-3-Clause */
/* Trace files as text and as JSON, for people and for tests. Ordinary code. */
#ifndef LOCUS_FMT_TRACE_TEXT_H
#define LOCUS_FMT_TRACE_TEXT_H

#include "base/vec.h"
#include "fmt/json-take.h"
#include "fmt/trace.h"

/* Appends the trace as text, or as JSON from which the same file can be made again. Sets out->failed when out of
 * memory. */
void trace_put_text(const struct trace_file *trace, struct buf *out);
void trace_put_json(const struct trace_file *trace, struct buf *out);

/* Makes a trace of such JSON; *trace must be empty and is left empty on failure. Returns take->code. */
int trace_take_json(struct json_take *take, const json_t *root, struct trace_file *trace);

#endif
