/* SPDX-License-Identifier: BSD-3-Clause */
/* What the arena's header says of the process. Ordinary code, without malloc and stdio. */
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#include "base/mpi-rank.h"
#include "runtime/arena-writer.h"
#include "runtime/own-call.h"
#include "runtime/placeholders.h"
#include "runtime/process-internal.h"

static struct {
    bool is_told; /* by MPI itself */
    int rank;
} mpi;

/* Programs write over their arguments: a child of fork is called as its parent was at the start. */
static struct {
    char name[sizeof((struct arena_header *)0)->argv0];
} described;

int process_rank(void)
{
    return mpi.is_told ? mpi.rank : mpi_rank_of_environment(process_environment);
}

void process_take_rank(int rank, int size)
{
    bool is_alone = size == 1 && mpi_rank_of_environment(process_environment) >= 0;
    if (rank < 0 || size <= rank || is_alone)
        return;
    mpi.is_told = true;
    mpi.rank = rank;
    atomic_store(&arena_header_sig()->rank, (uint32_t)rank);
}

void process_describe(void)
{
    struct arena_header *header = arena_header_sig();
    ssize_t len = readlink("/proc/self/exe", header->exe, sizeof header->exe - 1);
    header->exe[len < 0 ? 0 : len] = '\0';
    const char *name = process_argument() && process_argument()[0] ? process_argument() : header->exe;
    if (strrchr(name, '/'))
        name = strrchr(name, '/') + 1;
    if (!described.name[0])
        memcpy(described.name, name, strnlen(name, sizeof described.name - 1));
    memset(header->argv0, 0, sizeof header->argv0);
    memcpy(header->argv0, described.name, strnlen(described.name, sizeof header->argv0 - 1));
    header->pid = own_pid_sig();
    header->parent_pid = (uint32_t)getppid();
    header->uid = (uint32_t)getuid();
    header->start_ns = own_clock_ns_sig(CLOCK_REALTIME);
    header->page_bytes = (uint32_t)getauxval(AT_PAGESZ);
    placeholders_fill(header->placeholders);
    int rank = process_rank();
    atomic_store(&header->rank, (uint32_t)(rank < 0 ? 0 : rank));
}
