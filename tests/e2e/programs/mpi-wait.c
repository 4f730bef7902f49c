/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ranks of which the first one works while the other waits: for 400 ms at a barrier, then for 200 ms in a receive.
 * Both then say what CPU time the second one has used. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define N (1u << 18)

static volatile unsigned sink;

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void work(unsigned *table, double seconds)
{
    double end = cpu_s() + seconds;
    unsigned sum = 0;
    do
        for (unsigned i = 0; i < N; i++)
            sum += table[i * 4099u & (N - 1)];
    while (cpu_s() < end);
    sink = sum;
}

int main(int argc, char **argv)
{
    int rank, message = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    unsigned *table = calloc(N, sizeof *table);
    double start = cpu_s();
    if (rank == 0)
        work(table, 0.4);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        work(table, 0.2);
        MPI_Send(&message, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&message, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("{\"waited_s\": %f}\n", cpu_s() - start);
    }
    free(table);
    MPI_Finalize();
    return 0;
}
