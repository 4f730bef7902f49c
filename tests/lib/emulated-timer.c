/* SPDX-License-Identifier: BSD-3-Clause */
/* To be preloaded under qemu-user, whose timer signals bring the number that the host's kernel has given the timer and
 * not the one that timer_create has returned: puts that there before the handler sees it. It is qemu's mark and the
 * place in qemu's table, which begins anew with each program, where the host goes on counting: the main thread's timer
 * is the first. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#define QEMU_MARK 0x0caf0000

#define EXPORT __attribute__((visibility("default")))

typedef void handler_function(int, siginfo_t *, void *);

static handler_function *handler;
static _Atomic int first_id = -1;

static void pass_on(int number, siginfo_t *info, void *context)
{
    if (info->si_code == SI_TIMER && first_id < 0 && gettid() == getpid())
        first_id = info->si_timerid;
    if (info->si_code == SI_TIMER)
        info->si_timerid = QEMU_MARK | (info->si_timerid - first_id);
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
