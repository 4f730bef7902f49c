/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of a report that are no variables: what each of them means and what to do about it. The one table that the
 * report's legend, the man page and the guide are made from. Ordinary code. */
#ifndef LOCUS_ANALYSIS_SPECIAL_ROWS_H
#define LOCUS_ANALYSIS_SPECIAL_ROWS_H

#include <stddef.h>

#define SPECIAL_KERNEL "<kernel>" /* of CPU time, not of samples; also addresses in the kernel, which are samples */

struct special_row {
    const char *name;   /* as the row is called: "<compute>" */
    const char *origin; /* what stands in the column "comes from"; NULL: each row has words of its own there */
    const char *means;  /* what was sampled: words that follow the name and a colon */
    const char *advice; /* a sentence: what to do about it */
};

/* Row i of the table, NULL behind the last one. */
const struct special_row *special_rows_at(size_t i);

/* The row of this name, NULL when it is a variable's. */
const struct special_row *special_rows_find(const char *name);

#endif
