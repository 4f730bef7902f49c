/* SPDX-License-Identifier: BSD-3-Clause */
/* DATACENTRIC_MIN_BYTES: from which size on a block or variable is recorded. Here because launcher, hpcstruct and
 * hpcfnbounds must agree. Ordinary code (reads the environment). */
#ifndef LOCUS_BASE_MIN_BYTES_H
#define LOCUS_BASE_MIN_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/error.h"

#define MIN_BYTES_DEFAULT 1024

#define MIN_BYTES_ENV "DATACENTRIC_MIN_BYTES"

/* The smallest recorded size in bytes: DATACENTRIC_MIN_BYTES, or the default when it is not set or no number > 0. */
static inline uint64_t min_bytes_of_environment(void)
{
    const char *text = getenv(MIN_BYTES_ENV);
    char *end = NULL;
    unsigned long long value = text && text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
    return end && !*end && value > 0 ? value : MIN_BYTES_DEFAULT;
}

/* Tools refuse what they would otherwise take for the default.  err: ERR_USAGE */
static inline int min_bytes_check(struct error *err)
{
    const char *text = getenv(MIN_BYTES_ENV);
    char *end = NULL;
    bool is_number = text && text[0] >= '0' && text[0] <= '9' && strtoull(text, &end, 10) > 0 && !*end;
    if (!text || !text[0] || is_number)
        return 0;
    return error_set(err, ERR_USAGE, MIN_BYTES_ENV ": '%.64s' is no number of bytes, at least 1.", text);
}

#endif
