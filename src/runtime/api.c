/* SPDX-License-Identifier: BSD-3-Clause */
/* The public API of the original: starting and stopping the sampling from the program. */
#include "runtime/hpctoolkit.h"

#include "runtime/process.h"
#include "runtime/sample.h"
#include "runtime/thread.h"
#include "runtime/wrap.h"

WRAP_EXPORT void hpctoolkit_sampling_start(void)
{
    sample_set_active_sig(true);
    if (process_is_ours_sig())
        thread_enable_all(true);
}

WRAP_EXPORT void hpctoolkit_sampling_stop(void)
{
    sample_set_active_sig(false);
    if (process_is_ours_sig())
        thread_enable_all(false);
}

WRAP_EXPORT int hpctoolkit_sampling_is_active(void)
{
    return process_is_ours_sig() && sample_is_active_sig();
}
