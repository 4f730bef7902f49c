/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI program of four ranks: rank r spends 70 % of its time in the r-th of four arrays and 10 % in each of the
 * others. usage: ranks [SECONDS [WAY]], CPU seconds of each rank; WAY "kill2": rank 2 kills itself at the end, "told":
 * each prints its rank. */
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include "kernel.h"

#define N (UINT64_C(1) << 18)

static uint64_t *north, *east, *south, *west;

static uint64_t walk_north(uint64_t n_turns)
{
    return kernel_walk(north, N, n_turns);
}

static uint64_t walk_east(uint64_t n_turns)
{
    return kernel_walk(east, N, n_turns);
}

static uint64_t walk_south(uint64_t n_turns)
{
    return kernel_walk(south, N, n_turns);
}

static uint64_t walk_west(uint64_t n_turns)
{
    return kernel_walk(west, N, n_turns);
}

/* The others are gone when one is killed: they would wait for it in MPI_Finalize. */
static void end_early(int is_killed)
{
    const struct timespec second = {.tv_sec = 1};
    if (!is_killed)
        _exit(0);
    nanosleep(&second, NULL);
    raise(SIGKILL);
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    struct kernel_options options = {0, argc > 1 ? atof(argv[1]) : 1};
    const char *way = argc > 2 ? argv[2] : "";
    north = kernel_check(malloc(N * sizeof *north));
    east = kernel_check(malloc(N * sizeof *east));
    south = kernel_check(malloc(N * sizeof *south));
    west = kernel_check(malloc(N * sizeof *west));
    kernel_fill(north, N);
    kernel_fill(east, N);
    kernel_fill(south, N);
    kernel_fill(west, N);
    struct kernel_phase phases[4] = {{"north", walk_north, 10, 0},
                                     {"east", walk_east, 10, 0},
                                     {"south", walk_south, 10, 0},
                                     {"west", walk_west, 10, 0}};
    phases[rank % 4].weight = 70;
    kernel_run_phases(&options, phases, 4);
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(way, "kill2") == 0)
        end_early(rank == 2);
    if (strcmp(way, "told") == 0)
        printf("rank %d of %d\n", rank, size);
    MPI_Finalize();
    return 0;
}
