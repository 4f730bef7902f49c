/* SPDX-License-Identifier: BSD-3-Clause */
/* The directory of a launch: one measurement is one run. A launch gets a directory of its own, unless it is asked to
 * add to the one there is, or belongs to what has begun there: the ranks of one MPI program or Slurm step, and hpcruns
 * that a measured program starts. Nothing is ever removed. Ordinary code of the launcher. */
#ifndef LOCUS_HPCRUN_RUN_DIRECTORY_H
#define LOCUS_HPCRUN_RUN_DIRECTORY_H

#include <stdbool.h>

#include "base/error.h"
#include "measurement/runs.h"

#define LAUNCH_ENV "HPCRUN_LAUNCH" /* the id of the launch, for the hpcruns that its programs start */

struct run_directory {
    bool adds;           /* to the measurement that is there: no directory of its own is wanted */
    bool is_inherited;   /* the name is that of the launch that this one was started in, if it was */
    bool allows_foreign; /* as names_directory_make */
};

/* Makes the directory name for this launch. An earlier measurement there is moved to name.1, or name.2 and so on, the
 * lowest number being the oldest. Where it cannot be moved, because it is still being written or other files lie in it,
 * the new one takes the number.
 * Writes the real path, malloc'ed, to *real_path, the launch to *run, and to note [n_note] a sentence for the user when
 * the measurement is not where it was wanted, else "".  err: ERR_IO, ERR_MEMORY */
int run_directory_make(const char *name, const struct run_directory *how, char **real_path, struct run *run, char *note,
                       size_t n_note, struct error *err);

/* The rank that this process's environment tells, -1 when it tells none. */
int launch_rank(void);

#endif
