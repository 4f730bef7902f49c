/* SPDX-License-Identifier: BSD-3-Clause */
/* Names that somebody may have meant. Ordinary code. */
#ifndef LOCUS_BASE_SPELLING_H
#define LOCUS_BASE_SPELLING_H

#include <stddef.h>

#include "base/vec.h"

#define SPELLING_MAX_BYTES 64

/* How many letters must be added, left out or replaced to make one text of the other, in any case; SIZE_MAX when one
 * has more than SPELLING_MAX_BYTES.  src: V. I. Levenshtein, 1966 */
size_t spelling_distance(const char *a, size_t n_a, const char *b, size_t n_b);

/* Appends what a message says after a name that is unknown: "; did you mean 'time' or 'time (inc)'?" with the names [n]
 * that are like word (at most three), or, when none is, those that there are: "; there are: 'a', 'b' and 12 more". */
void spelling_suggest(struct buf *out, const char *word, const char *const *names, size_t n);

#endif
