/* SPDX-License-Identifier: BSD-3-Clause */
/* The MPI rank of a process as the launchers of MPI programs tell it: the runtime names files by it, hpcrun chooses
 * processes by it. Header only, because the runtime reads its environment in its own way. */
#ifndef LOCUS_BASE_MPI_RANK_H
#define LOCUS_BASE_MPI_RANK_H

#include <stddef.h>
#include <stdlib.h>

/* The rank in an environment whose variables get returns (NULL when not set); -1 when there is none. A batch system's
 * own number comes last: all ranks that a launcher of MPI starts within one of its tasks share it.  ctx: ordinary */
static inline int mpi_rank_of_environment(const char *(*get)(const char *name))
{
    static const char *const names[] = {
        "PMI_RANK",    "PMIX_RANK",      "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "MVP_COMM_WORLD_RANK",
        "PALS_RANKID", "FLUX_TASK_RANK", "ALPS_APP_PE",          "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = get(names[i]);
        if (value && value[0])
            return atoi(value);
    }
    return -1;
}

#endif
