/* SPDX-License-Identifier: BSD-3-Clause */
/* Source files as the debug information names them, read when first asked for, and the statement around a line.
 * Ordinary code. */
#ifndef LOCUS_STRUCTURE_SOURCE_TEXT_H
#define LOCUS_STRUCTURE_SOURCE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct source_text;

/* Where to look: as source_find_new (structure/source-find.h). Both lists are borrowed and NULL-terminated, or NULL.
 * Returns NULL when out of memory. */
struct source_text *source_text_new(const char *const *search, const char *const *replace);
void source_text_free(struct source_text *source);

/* Line of a file, from 1, without its newline; borrowed. NULL when the file or line cannot be read. */
const char *source_text_line(struct source_text *source, const char *path, uint32_t line);

/* Appends the statement that line belongs to, with its lines joined by blanks and without comments: from after the last
 * end of a statement up to the next, a few lines at most. *offset is where column (from 1; 0 = start of the line's
 * text) of that line went. Returns false when the line cannot be read. */
bool source_text_statement(struct source_text *source, const char *path, uint32_t line, uint32_t column,
                           struct buf *statement, size_t *offset);

#endif
