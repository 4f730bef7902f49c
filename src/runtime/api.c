/* SPDX-License-Identifier: BSD-3-Clause */
/* The public API of the original: starting and stopping the sampling from the program. */
#include "runtime/hpctoolkit.h"

#include <errno.h>

#include "runtime/control.h"
#include "runtime/events.h"
#include "runtime/process.h"
#include "runtime/sample.h"
#include "runtime/wrap.h"

WRAP_EXPORT void hpctoolkit_sampling_start(void)
{
    if (!process_is_ours_sig())
        return;
    int saved_errno = errno;
    control_start_sig();
    if (thread_self_sig() && sample_is_active_sig())
        events_replay(thread_self_sig());
    errno = saved_errno;
}

WRAP_EXPORT void hpctoolkit_sampling_stop(void)
{
    int saved_errno = errno;
    if (process_is_ours_sig())
        thread_switch_sig(false);
    errno = saved_errno;
}

WRAP_EXPORT int hpctoolkit_sampling_is_active(void)
{
    return process_is_ours_sig() && sample_is_active_sig();
}
