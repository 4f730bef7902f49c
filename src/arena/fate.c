/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of sample fates: see fate.h. */
#include "arena/fate.h"

#include <stddef.h>

static const struct fate_row rows[FATE_MAX] = {
    [FATE_NAMED] = {"named", "address found in a known variable"},
    [FATE_UNKNOWN_DATA] = {"unknown-data", "address found, but in no known variable"},
    [FATE_NO_ADDRESS_COMPUTE] = {"compute", "stalled on computation, not on data"},
    [FATE_NO_ADDRESS_LOST] = {"address-lost", "a memory instruction whose address cannot be recovered"},
    [FATE_NO_ADDRESS_SYSCALL] = {"system-call", "returning from a system call"},
    [FATE_NO_ADDRESS_SOURCE] = {"no-address-source", "the event carries no data address"},
    [FATE_NO_ADDRESS_NO_ACCESS] = {"no-access", "the sampled instruction neither loads nor stores"},
    [FATE_NO_ADDRESS_WAITING] = {"waiting", "in a loop that only waits for another thread"},
    [FATE_DROP_REENTERED] = {"dropped-reentered", "arrived inside the profiler"},
    [FATE_DROP_NO_THREAD] = {"dropped-no-thread", "arrived on a thread that is not registered"},
    [FATE_DROP_ARENA_FULL] = {"dropped-arena-full", "no room left in the arena"},
    [FATE_DROP_NO_RECIPE] = {"dropped-no-recipe", "the analysis of its function never came"},
    [FATE_DROP_RAW_FULL] = {"dropped-raw-full", "too many samples waited for analysis"},
    [FATE_DROP_STOPPED] = {"dropped-stopped", "sampling was being switched off"},
    [FATE_DROP_FORKED] = {"dropped-forked", "arrived in a forked child before the profiler restarted"},
    [FATE_DROP_BAD_RECORD] = {"dropped-bad-record", "the kernel's record of it makes no sense"},
    [FATE_DROP_MAX_SIZE] = {"dropped-max-size", "of threads whose files did not fit into the largest size"},
    [FATE_NOT_DELIVERED] = {"not-delivered", "lost while the program blocked the signal"},
    [FATE_IN_KERNEL] = {"in-kernel", "elapsed inside the kernel"},
    [FATE_OWN_FAULT] = {"own-fault", "page faults of the profiler itself while it took a sample"},
};

const struct fate_row *fate_row(int fate)
{
    return fate >= 0 && fate < FATE_MAX ? &rows[fate] : NULL;
}

int fate_is_recorded(int fate)
{
    return fate >= FATE_NAMED && fate <= FATE_NO_ADDRESS_WAITING;
}
