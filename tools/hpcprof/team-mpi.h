/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks of an MPI program as a team. */
#ifndef LOCUS_HPCPROF_MPI_TEAM_MPI_H
#define LOCUS_HPCPROF_MPI_TEAM_MPI_H

#include "base/workers.h"

/* All ranks of MPI_COMM_WORLD; MPI must have been initialised. What MPI cannot do ends all ranks with its message. */
struct team team_mpi(void);

#endif
