/* SPDX-License-Identifier: BSD-3-Clause */
/* Fields of comma-separated values (RFC 4180). Ordinary code. */
#ifndef LOCUS_FMT_CSV_H
#define LOCUS_FMT_CSV_H

#include "base/vec.h"

/* Appends a text as one field, in quotes if necessary (csv_put_quoted: always). Bytes that are not text are escaped
 * (base/input.h). */
void csv_put_text(struct buf *out, const char *text);
void csv_put_quoted(struct buf *out, const char *text);

/* Appends lines of fields [len], as these functions make them, so that a spreadsheet takes none for a formula: a field
 * that begins with = + - or @ and is no number gets an apostrophe before it. */
void csv_put_guarded(struct buf *out, const char *lines, size_t len);

#endif
