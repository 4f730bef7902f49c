/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls by which programs enter a sandbox: prctl, and libseccomp's seccomp_load, which goes through syscall(2).
 * See sandbox.h. Ordinary code of the program's threads. */
#include "runtime/sandbox.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "runtime/arena-writer.h"
#include "runtime/mask.h"
#include "runtime/process.h"
#include "runtime/wrap.h"
#include "runtime/zone.h"

typedef int prctl_function(int, ...);
typedef int load_function(const void *);

static struct {
    _Atomic bool is_entered;
} sandbox;

bool sandbox_is_entered_sig(void)
{
    return atomic_load_explicit(&sandbox.is_entered, memory_order_relaxed);
}

static void note_entry(void)
{
    if (!process_is_ours_sig() || atomic_exchange(&sandbox.is_entered, true))
        return;
    zone_reach_all_sig(); /* what comes later might be refused */
    mask_enter_sandbox_sig();
    shield_forbid_sig();
    arena_log_sig("the program entered a seccomp sandbox: threads started later are not sampled, and its end is seen "
                  "from outside");
}

WRAP_EXPORT int prctl(int option, ...)
{
    static prctl_function *real;
    unsigned long arguments[4];
    va_list list;
    va_start(list, option);
    for (int i = 0; i < 4; i++)
        arguments[i] = va_arg(list, unsigned long);
    va_end(list);
    if (!real)
        real = (prctl_function *)wrap_real("prctl");
    if (!real) {
        errno = ENOSYS;
        return -1;
    }
    if (option == PR_SET_SECCOMP)
        note_entry();
    return real(option, arguments[0], arguments[1], arguments[2], arguments[3]);
}

WRAP_EXPORT int seccomp_load(const void *filter);
WRAP_EXPORT int seccomp_load(const void *filter)
{
    load_function *real = (load_function *)wrap_real("seccomp_load");
    if (!real)
        return -ENOSYS;
    note_entry();
    return real(filter);
}
