/* SPDX-License-Identifier: BSD-3-Clause */
/* The only way to open a file for reading: whatever its name leads to, opening it neither blocks nor has an effect, and
 * only regular files are read. Ordinary code. */
#ifndef LOCUS_BASE_INPUT_H
#define LOCUS_BASE_INPUT_H

#include <stdio.h>
#include <sys/stat.h>

#include "base/vec.h"

/* Opens name, relative to the directory dir_fd (or AT_FDCWD), for reading, close-on-exec; flags are added to those of
 * open(2) (O_NOFOLLOW, or 0). What has been opened is checked, not its name: a pipe, device, socket or directory is
 * refused. info, when not NULL, receives the file's fstat.
 * Returns the descriptor, or -1 with errno set, which input_reason explains. */
int input_open(int dir_fd, const char *name, int flags, struct stat *info);

/* The same as a stream; NULL on failure. */
FILE *input_stream(const char *name);

/* The reason for the errno of one of the two: "not a regular file", or what strerror says. */
const char *input_reason(int number);

/* --- text that is safe to print --- */

/* Text from programs, for people: names of files and of variables may hold any byte. Ordinary code. */

/* Length in bytes of the UTF-8 character at text, 0 when there is none (overlong forms and surrogates are none). */
size_t printable_utf8(const char *text);

/* Appends text in a form that is safe in a terminal and in a UTF-8 table. Control characters, including those above 127
 * and those that change the direction of writing, and bytes that are not UTF-8 become \xNN, byte by byte. text
 * NULL, as of a buffer that ran out of memory: nothing. */
void printable_put(struct buf *out, const char *text);

/* Number of characters of a text that printable_put has made. */
size_t printable_chars(const char *text);

#endif
