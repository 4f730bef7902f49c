/* SPDX-License-Identifier: BSD-3-Clause */
/* What hpcprof and hpcprof-mpi have in common: the whole program, and what it shows meanwhile. */
#ifndef LOCUS_HPCPROF_HPCPROF_H
#define LOCUS_HPCPROF_HPCPROF_H

#include "progress.h"
#include "settings.h"

/* The whole program; team: the processes that share the work, NULL for hpcprof. Returns the exit status. */
int hpcprof_main(int argc, char **argv, const struct team *team);

#endif
