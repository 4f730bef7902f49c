/* SPDX-License-Identifier: BSD-3-Clause */
/* Choosing processes: see fraction.h. */
#include "companion/fraction.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mpi-rank.h"

#define SLACK 1e-9 /* 1/3 is not exact */

int fraction_parse(const char *option, const char *text, double *part, struct error *err)
{
    char *end;
    double value = strtod(text, &end);
    if (end != text && *end == '/') {
        const char *below = end + 1;
        double divisor = strtod(below, &end);
        value = end != below && divisor > 0 ? value / divisor : -1;
    }
    if (end == text || *end || !(value > 0) || value > 1)
        return error_set(err, ERR_USAGE, "%s: '%s' is no fraction between 0 and 1, such as 0.1 or 1/10.", option,
                         text);
    *part = value;
    return 0;
}

bool fraction_chooses(double part, int rank, pid_t pid)
{
    if (!(part > 0) || part >= 1)
        return true;
    if (rank >= 0)
        return rank == 0 || floor(rank * part + SLACK) > floor((rank - 1) * part + SLACK);
    uint64_t hash = (uint64_t)pid * UINT64_C(0x9e3779b97f4a7c15);
    return (double)(hash >> 11) * 0x1p-53 < part;
}

void fraction_explain(char *text, size_t n_text, int rank)
{
    if (rank >= 0)
        (void)snprintf(text, n_text, "rank %d is outside of the fraction that was asked for", rank);
    else
        (void)snprintf(text, n_text, "outside of the fraction that was asked for");
}

static const char *environment(const char *name)
{
    return getenv(name);
}

int fraction_rank(void)
{
    return mpi_rank_of_environment(environment);
}
