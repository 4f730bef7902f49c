/* SPDX-License-Identifier: BSD-3-Clause */
/* Own file descriptors: see descriptors.h. Ordinary code; raw system calls, because the program may wrap the library
 * functions. */
#include "runtime/descriptors.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENOUGH 65536   /* descriptors: some for every thread */
#define STILL_AWAY 256 /* programs that are allowed fewer descriptors count on each of them */

static struct {
    _Atomic int lock;
    bool is_raised;
    struct rlimit limit; /* the program's, while it is raised */
} descriptors;

static bool change_limit(const struct rlimit *new, struct rlimit *old)
{
    return syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, new, old) == 0;
}

void descriptors_widen(void)
{
    while (atomic_exchange(&descriptors.lock, 1))
        syscall(SYS_sched_yield);
    if (!change_limit(NULL, &descriptors.limit))
        return;
    struct rlimit raised = descriptors.limit;
    raised.rlim_cur = raised.rlim_max < ENOUGH ? raised.rlim_max : ENOUGH;
    descriptors.is_raised = raised.rlim_cur > descriptors.limit.rlim_cur && change_limit(&raised, NULL);
}

void descriptors_narrow(void)
{
    if (descriptors.is_raised)
        (void)change_limit(&descriptors.limit, NULL);
    descriptors.is_raised = false;
    atomic_store(&descriptors.lock, 0);
}

void descriptors_fork_child(void)
{
    descriptors_narrow();
}

int descriptors_move_up(int fd, int lowest)
{
    if (fd < 0)
        return -1;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, lowest);
    if (moved < 0)
        moved = fcntl(fd, F_DUPFD_CLOEXEC, STILL_AWAY);
    close(fd);
    return moved;
}

uint64_t descriptors_event_id(int fd)
{
    uint64_t id = 0;
    return fd >= 0 && ioctl(fd, PERF_EVENT_IOC_ID, &id) == 0 ? id : 0;
}
