/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcprof-mpi: the ranks of an MPI program combine measurements together. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hpcprof.h"
#include "team-mpi.h"

/* Questions that the option table answers need no MPI, and work without its launcher. */
static int is_question(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "--help", 6) == 0 || strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--version") == 0 ||
            strcmp(argv[i], "-V") == 0)
            return 1;
    return 0;
}

/* How many processes a launcher says that it has started, 1 when none says anything. */
static unsigned long launched(void)
{
    static const char *const names[] = {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE",
                                        "SLURM_STEP_NUM_TASKS"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        unsigned long n = value ? strtoul(value, NULL, 10) : 0;
        if (n > 1)
            return n;
    }
    return 1;
}

int main(int argc, char **argv)
{
    int granted = 0;
    if (is_question(argc, argv)) {
        const struct team alone = {.n_ranks = 1};
        return hpcprof_main(argc, argv, &alone);
    }
    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &granted) != MPI_SUCCESS) {
        (void)fprintf(stderr, "hpcprof-mpi: MPI cannot be started.\n");
        return 1;
    }
    struct team team = team_mpi();
    team.any_thread = granted >= MPI_THREAD_SERIALIZED;
    int status = 1;
    if (team.n_ranks == 1 && launched() > 1)
        (void)fprintf(stderr,
                      "hpcprof-mpi: a launcher has started %lu processes, which know nothing of each other: it is the "
                      "launcher of another MPI than the one that hpcprof-mpi was built with.\n",
                      launched());
    else
        status = hpcprof_main(argc, argv, &team);
    (void)MPI_Finalize();
    return status;
}
