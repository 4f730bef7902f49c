/* SPDX-License-Identifier: BSD-3-Clause */
/* What several of our programs must read alike in the environment: the threshold of small blocks
 * (DATACENTRIC_MIN_BYTES, the smallest size of a block or variable that is recorded), which launcher, hpcstruct and
 * hpcfnbounds share; what tests take away from a machine (LOCUS_LACKS);
 * the MPI rank; the mark of static programs. Ordinary code (reads the environment). */
#ifndef LOCUS_BASE_ENVIRONMENT_H
#define LOCUS_BASE_ENVIRONMENT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define MIN_BYTES_DEFAULT 1024

#define MIN_BYTES_ENV "DATACENTRIC_MIN_BYTES"
#define MIN_BYTES_MAX ((uint64_t)1 << 62)

/* Reads a size: a number of bytes > 0, which k, m or g may follow (powers of 1024, either case). False when text is
 * none, or above most; *bytes is then unchanged.  ctx: ordinary */
static inline bool size_of_text(const char *text, uint64_t most, uint64_t *bytes)
{
    static const char suffixes[] = "kKmMgG";
    char *end = NULL;
    if (text[0] < '0' || text[0] > '9')
        return false;
    int saved_errno = errno;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    bool is_read = !errno;
    errno = saved_errno;
    const char *suffix = *end ? strchr(suffixes, *end) : NULL;
    unsigned shift = suffix ? 10 * (unsigned)((suffix - suffixes) / 2 + 1) : 0;
    if (!is_read || (*end && (!suffix || end[1])) || value == 0 || value > most >> shift)
        return false;
    *bytes = (uint64_t)value << shift;
    return true;
}

/* The smallest recorded size in bytes: DATACENTRIC_MIN_BYTES, or the default when that is unset or no size. */
static inline uint64_t min_bytes_of_environment(void)
{
    const char *text = getenv(MIN_BYTES_ENV);
    uint64_t bytes = MIN_BYTES_DEFAULT;
    (void)(text && size_of_text(text, MIN_BYTES_MAX, &bytes));
    return bytes;
}

/* Refuses a value that min_bytes_of_environment would silently replace by the default.  err: ERR_USAGE */
static inline int min_bytes_check(struct error *err)
{
    const char *text = getenv(MIN_BYTES_ENV);
    uint64_t bytes;
    if (!text || !text[0] || size_of_text(text, MIN_BYTES_MAX, &bytes))
        return 0;
    return error_set(err, ERR_USAGE,
                     MIN_BYTES_ENV ": '%.64s' is not a size: a number of bytes, at least 1, which k, m or g may follow",
                     text);
}

/* --- what tests take away from a machine --- */

#define LACKS_ENV "LOCUS_LACKS"

/* Whether LOCUS_LACKS, names with commas between, has this one: for tests a machine then behaves as if it were without
 * (src/sampling/probe.h has the names). */
static inline bool environment_lacks(const char *name)
{
    const char *at = getenv(LACKS_ENV);
    size_t n = strlen(name);
    for (; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, name, n) == 0 && (at[n] == ',' || !at[n]))
            return true;
    return false;
}

/* --- the MPI rank --- */

/* The MPI rank of a process, from the variables that MPI launchers set: the runtime puts it into file names, hpcrun
 * chooses processes by it. Header only, because the runtime reads its environment in its own way. */

/* As atoi, but without libc, which the runtime cannot ask yet where it needs the rank.  ctx: any */
static inline int mpi_rank_of_text(const char *text)
{
    int rank = 0;
    bool is_negative = *text == '-';
    for (text += is_negative; *text >= '0' && *text <= '9' && rank < INT32_MAX / 10; text++)
        rank = rank * 10 + (*text - '0');
    return is_negative ? -rank : rank;
}

/* The rank in an environment whose variables get returns (NULL when not set); -1 when there is none. The batch system's
 * own number comes last: all ranks that an MPI launcher starts within one task share it.  ctx: ordinary */
static inline int mpi_rank_of_environment(const char *(*get)(const char *name))
{
    static const char *const names[] = {
        "PMI_RANK",    "PMIX_RANK",      "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "MVP_COMM_WORLD_RANK",
        "PALS_RANKID", "FLUX_TASK_RANK", "ALPS_APP_PE",          "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = get(names[i]);
        if (value && value[0])
            return mpi_rank_of_text(value);
    }
    return -1;
}

/* --- static programs --- */

/* What hpclink and the runtime inside a static program agree on. */

/* Stands in the runtime's data: hpclink writes the path of hpcrun after it, and hpcrun recognises the program by it. */
#define STATIC_PROGRAM_MARK "Locus runtime inside, launched by:"
#define STATIC_PROGRAM_PATH_BYTES 4096

/* Set in the environment by a program that replaces itself with hpcrun; value: its process id. */
#define STATIC_PROGRAM_ENV "HPCRUN_SELF_LAUNCHED"

#endif
