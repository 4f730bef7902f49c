/* SPDX-License-Identifier: BSD-3-Clause */
/* Text that programs have made, for people: names of files and of variables hold any byte. Ordinary code. */
#ifndef LOCUS_BASE_PRINTABLE_H
#define LOCUS_BASE_PRINTABLE_H

#include "base/vec.h"

/* Length in bytes of the UTF-8 character at text, 0 when there is none (overlong forms and surrogates are none). */
size_t printable_utf8(const char *text);

/* Appends text as a terminal may show it and a table in UTF-8 may hold it: control characters, those above 127 and the
 * ones that turn the direction of writing included, and bytes that are no UTF-8 are written \xNN, byte by byte. */
void printable_put(struct buf *out, const char *text);

#endif
