/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of any length over MPI, whose counts are ints: the length first, then pieces. */
#include "team-mpi.h"

#include <mpi.h>

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

struct team team_mpi(void)
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
