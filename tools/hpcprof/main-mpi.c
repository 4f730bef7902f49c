/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcprof-mpi: the ranks of an MPI program combine measurements together. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hpcprof.h"

/* --- the ranks as a team --- */

/* Messages of any length over MPI, whose counts are ints: the length first, then pieces. */

#define PIECE_BYTES (UINT64_C(1) << 30)
#define PIECE_NUMBERS (PIECE_BYTES / sizeof(int64_t))

enum { TAG = 1 };

static void send_bytes(const struct team *team, size_t to, const void *bytes, size_t len_bytes)
{
    uint64_t len = len_bytes;
    const char *at = bytes;
    (void)team;
    (void)MPI_Send(&len, 1, MPI_UINT64_T, (int)to, TAG, MPI_COMM_WORLD);
    for (uint64_t n; len > 0; at += n, len -= n) {
        n = len < PIECE_BYTES ? len : PIECE_BYTES;
        (void)MPI_Send(at, (int)n, MPI_BYTE, (int)to, TAG, MPI_COMM_WORLD);
    }
}

/* Room for len more bytes behind *out; without memory for them nothing can go on. */
static char *make_room(struct buf *out, uint64_t len)
{
    if (!vec_reserve(&out->data, &out->capacity, out->len_bytes + len + 1, 1))
        MPI_Abort(MPI_COMM_WORLD, 1);
    char *at = out->data + out->len_bytes;
    out->len_bytes += len;
    out->data[out->len_bytes] = '\0';
    return at;
}

static void receive_bytes(const struct team *team, size_t from, struct buf *out)
{
    uint64_t len = 0;
    (void)team;
    (void)MPI_Recv(&len, 1, MPI_UINT64_T, (int)from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    char *at = make_room(out, len);
    for (uint64_t n; len > 0; at += n, len -= n) {
        n = len < PIECE_BYTES ? len : PIECE_BYTES;
        (void)MPI_Recv(at, (int)n, MPI_BYTE, (int)from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void combine_numbers(const struct team *team, int64_t *numbers, size_t n, enum team_operation operation)
{
    MPI_Op op = operation == TEAM_SUM ? MPI_SUM : operation == TEAM_OR ? MPI_BOR : MPI_MIN;
    (void)team;
    for (size_t piece; n > 0; numbers += piece, n -= piece) {
        piece = n < PIECE_NUMBERS ? n : PIECE_NUMBERS;
        (void)MPI_Allreduce(MPI_IN_PLACE, numbers, (int)piece, MPI_INT64_T, op, MPI_COMM_WORLD);
    }
}

static void broadcast_text(const struct team *team, struct buf *text)
{
    uint64_t len = text->len_bytes;
    (void)MPI_Bcast(&len, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    char *at = team->rank == 0 ? text->data : make_room(text, len);
    for (uint64_t n; len > 0; at += n, len -= n) {
        n = len < PIECE_BYTES ? len : PIECE_BYTES;
        (void)MPI_Bcast(at, (int)n, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
}

/* All ranks of MPI_COMM_WORLD; MPI must have been initialised. What MPI cannot do ends all ranks with its message. */
static struct team team_mpi(void)
{
    int rank = 0, n_ranks = 1;
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    (void)MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    return (struct team){.rank = (size_t)rank,
                         .n_ranks = (size_t)n_ranks,
                         .send = send_bytes,
                         .receive = receive_bytes,
                         .combine = combine_numbers,
                         .broadcast = broadcast_text};
}

/* --- the program --- */

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
        return tool_error("hpcprof-mpi", "MPI cannot be started");
    }
    struct team team = team_mpi();
    team.any_thread = granted >= MPI_THREAD_SERIALIZED;
    int status = 1;
    if (team.n_ranks == 1 && launched() > 1)
        (void)tool_error("hpcprof-mpi",
                         "a launcher has started %lu processes, which know nothing of each other: it is the "
                         "launcher of another MPI than the one that hpcprof-mpi was built with",
                         launched());
    else
        status = hpcprof_main(argc, argv, &team);
    (void)MPI_Finalize();
    return status;
}
