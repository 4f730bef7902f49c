/* SPDX-License-Identifier: BSD-3-Clause */
/* To be preloaded under qemu-user, whose timer signals bring the number that the host's kernel has given the timer and
 * not the one that timer_create has returned: puts the thread's own there before the handler sees it. */
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>

#define EXPORT __attribute__((visibility("default")))

typedef void handler_function(int, siginfo_t *, void *);

static _Thread_local int timer_id __attribute__((tls_model("initial-exec")));
static handler_function *handler;

EXPORT long syscall(long number, ...)
{
    static long (*real)(long, long, long, long, long, long, long);
    long arguments[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        arguments[i] = va_arg(list, long);
    va_end(list);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    long result = real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
    if (number == SYS_timer_create && result == 0)
        timer_id = *(int *)arguments[2];
    return result;
}

static void pass_on(int number, siginfo_t *info, void *context)
{
    if (info->si_code == SI_TIMER)
        info->si_timerid = timer_id;
    handler(number, info, context);
}

EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    static int (*real)(int, const struct sigaction *, struct sigaction *);
    struct sigaction copy;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "sigaction");
    if (number == SIGURG && action && action->sa_flags & SA_SIGINFO) {
        copy = *action;
        handler = copy.sa_sigaction;
        copy.sa_sigaction = pass_on;
        action = &copy;
    }
    return real(number, action, old);
}
