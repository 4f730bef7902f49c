/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls by which programs enter a sandbox: prctl, and seccomp through syscall(2), as libseccomp does. See
 * sandbox.h. Ordinary code of the program's threads. */
#include "runtime/sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/arch.h"
#include "runtime/arena-writer.h"
#include "runtime/process.h"
#include "runtime/thread.h"
#include "runtime/wrap.h"

typedef int prctl_function(int, ...);
typedef long syscall_function(long, ...);

static struct {
    syscall_function *syscall;
    _Atomic bool is_told;
} real;

/* Not at the first call, which may come before libc is ready or in a signal handler. */
__attribute__((constructor)) static void find_real(void)
{
    real.syscall = (syscall_function *)wrap_real("syscall");
}

static void tell(const char *text)
{
    if (!atomic_exchange(&real.is_told, true))
        arena_log_sig(text);
}

/* filter: what the kernel is about to be given; NULL when that is not known. */
static void note_entry(const struct sock_fprog *filter)
{
    int saved_errno = errno;
    if (!process_is_ours_sig())
        return;
    /* A sample ends in this call, which a program without signals need not allow. */
    if (filter && !sandbox_would_allow_sig(filter, SYS_rt_sigreturn)) {
        thread_switch_sig(false);
        tell(
            "the program entered a seccomp sandbox that allows no signal handlers: from then on it is not sampled, and "
            "its end is seen from outside");
    }
    sandbox_enter_sig(filter);
    tell("the program entered a seccomp sandbox: threads started later are not sampled, and its end is seen from "
         "outside");
    errno = saved_errno;
}

/* The mode that knows four system calls also takes the clock of the processor away. */
static void note_strict_mode(void)
{
    if (process_is_ours_sig())
        sandbox_stop_clocks_sig();
    note_entry(NULL);
}

/* Returns whether programs behind the filter must not be measured: what it is given may be gone afterwards. */
static bool note_filter(const struct sock_fprog *filter)
{
    if (!sandbox_is_filter_sig(filter))
        return false;
    note_entry(filter);
    return sandbox_would_end_start_sig(filter);
}

/* result: of the call that installs the filter; positive: a descriptor, or a thread that could not take it over. */
static long note_result(bool is_deadly, long result)
{
    if (is_deadly && result >= 0)
        sandbox_set_deadly_sig();
    return result;
}

static long call_real(long number, const long a[6])
{
    if (real.syscall)
        return real.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    long result = arch_call_sig(number, a);
    if (result >= 0 || result < -4095)
        return result;
    errno = (int)-result;
    return -1;
}

WRAP_EXPORT int prctl(int option, ...)
{
    static prctl_function *real_prctl;
    unsigned long arguments[4];
    va_list list;
    va_start(list, option);
    for (int i = 0; i < 4; i++)
        arguments[i] = va_arg(list, unsigned long);
    va_end(list);
    if (!real_prctl)
        real_prctl = (prctl_function *)wrap_real("prctl");
    if (!real_prctl) {
        errno = ENOSYS;
        return -1;
    }
    bool is_deadly = false;
    if (option == PR_SET_SECCOMP && arguments[0] == SECCOMP_MODE_FILTER)
        is_deadly = note_filter((const struct sock_fprog *)arguments[1]);
    else if (option == PR_SET_SECCOMP && arguments[0] == SECCOMP_MODE_STRICT)
        note_strict_mode();
    else if (option == PR_SET_TSC && arguments[0] == PR_TSC_SIGSEGV && process_is_ours_sig())
        sandbox_stop_clocks_sig();
    int result = real_prctl(option, arguments[0], arguments[1], arguments[2], arguments[3]);
    return (int)note_result(is_deadly, result);
}

/* The flags of a system call that makes a process, CLONE_VM for the others. */
static uint64_t clone_flags(long number, const long a[6])
{
    if (number == SYS_clone)
        return (uint64_t)(arch_call_abi_sig() == AUDIT_ARCH_S390X ? a[1] : a[0]);
    if (number == SYS_clone3 && a[0])
        return *(const uint64_t *)a[0];
#ifdef SYS_fork
    if (number == SYS_fork)
        return 0;
#endif
    return CLONE_VM;
}

/* There is no function of libc for the other call that installs filters. */
WRAP_EXPORT long syscall(long number, ...)
{
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    bool is_deadly = false;
    if (number == SYS_seccomp && a[0] == SECCOMP_SET_MODE_FILTER)
        is_deadly = note_filter((const struct sock_fprog *)a[2]);
    else if (number == SYS_seccomp && a[0] == SECCOMP_SET_MODE_STRICT)
        note_strict_mode();
    long result = note_result(is_deadly, call_real(number, a));
    if (result > 0)
        wrap_note_clone((int)result, clone_flags(number, a));
    return result;
}
