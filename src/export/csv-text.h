/* SPDX-License-Identifier: BSD-3-Clause */
/* Fields of comma-separated values (RFC 4180). Ordinary code. */
#ifndef LOCUS_EXPORT_CSV_TEXT_H
#define LOCUS_EXPORT_CSV_TEXT_H

#include "base/vec.h"

/* Appends a text as one field, in quotes where it needs them (csv_put_quoted: always). Bytes that are no text are
 * escaped (base/input.h). */
void csv_put_text(struct buf *out, const char *text);
void csv_put_quoted(struct buf *out, const char *text);

#endif
