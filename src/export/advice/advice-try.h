/* SPDX-License-Identifier: BSD-3-Clause */
/* From the advice of a database to what can be tried of it. Ordinary code. */
#ifndef LOCUS_EXPORT_ADVICE_ADVICE_TRY_H
#define LOCUS_EXPORT_ADVICE_ADVICE_TRY_H

#include <stddef.h>

#include "base/error.h"

struct trial_wish;

/* What the advice of a database has that can be tried without the program's source, what may gain most first; or, if
 * something is asked for, ACTION:VARIABLE, that. The caller frees wishes [n], on failure too (trial_wish_fini).
 * err: ERR_NOT_FOUND, ERR_USAGE, those of database_read and advices_make */
int advice_wishes(const char *database, const char *const *asked, size_t n_asked, struct trial_wish **wishes, size_t *n,
                  struct error *err);

#endif
