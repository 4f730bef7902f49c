/* SPDX-License-Identifier: BSD-3-Clause */
/* Own file descriptors: see descriptors.h. Raw system calls, because the program may wrap the library functions. */
#include "runtime/descriptors.h"
#include "runtime/own-call.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/sigsafe.h"

#define LEAST 256 /* programs that may open fewer count on each of them */
#define TOP 4096  /* numbers: higher ones would make the table that every fork copies longer than programs need */

/* What the program may open, as far as numbers count for us. */
static uint64_t top_sig(void)
{
    struct rlimit limit = {0};
    if (own_call_sig(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit) != 0)
        return 0;
    return limit.rlim_cur < TOP ? limit.rlim_cur : TOP;
}

/* The kernel gives the lowest free number above a given one: from quarter to quarter downwards, the room that programs
 * use first is used last. Beyond TOP the soft limit alone ends it. */
int descriptors_move_up_sig(int fd, enum descriptor_use use)
{
    if (fd < 0)
        return -1;
    uint64_t top = top_sig(), lowest = use == DESCRIPTOR_EVENT ? top / 2 : top / 4;
    int moved = -1;
    for (uint64_t from = top / 4 * 3; top >= LEAST && moved < 0 && from >= lowest; from -= top / 4)
        moved = (int)own_call_sig(SYS_fcntl, fd, F_DUPFD_CLOEXEC, from);
    own_call_sig(SYS_close, fd);
    return moved < 0 ? -1 : moved;
}

uint64_t descriptors_event_id_sig(int fd)
{
    uint64_t id = 0;
    return fd >= 0 && own_call_sig(SYS_ioctl, fd, PERF_EVENT_IOC_ID, &id) == 0 ? id : 0;
}
