/* SPDX-License-Identifier: BSD-3-Clause */
/* The one way in which a file is opened for reading: whatever lies under its name, opening neither waits nor has an
 * effect, and what is read is a regular file. Ordinary code. */
#ifndef LOCUS_BASE_INPUT_H
#define LOCUS_BASE_INPUT_H

#include <stdio.h>
#include <sys/stat.h>

#include "base/vec.h"

/* Opens name, relative to the directory dir_fd (or AT_FDCWD), for reading, close-on-exec; flags are added to those of
 * open(2) (O_NOFOLLOW, or 0). What is open is judged, not its name: a pipe, device, socket or directory is refused.
 * info, when not NULL, receives what fstat says of the file.
 * Returns the descriptor, or -1 with errno set, which input_reason explains. */
int input_open(int dir_fd, const char *name, int flags, struct stat *info);

/* The same as a stream; NULL on failure. */
FILE *input_stream(const char *name);

/* Words for errno after one of the two has failed: "not a regular file", or those of strerror. */
const char *input_reason(int number);

/* --- text that may be shown --- */

/* Text that programs have made, for people: names of files and of variables hold any byte. Ordinary code. */

/* Length in bytes of the UTF-8 character at text, 0 when there is none (overlong forms and surrogates are none). */
size_t printable_utf8(const char *text);

/* Appends text as a terminal may show it and a table in UTF-8 may hold it: control characters, those above 127 and the
 * ones that turn the direction of writing included, and bytes that are no UTF-8 are written \xNN, byte by byte. */
void printable_put(struct buf *out, const char *text);

#endif
