/* SPDX-License-Identifier: BSD-3-Clause */
/* Signal masks and actions: a program that blocks our signal would lose samples silently, so it is taken out of every
 * mask set through libc while the program is told that it is in; and a handler that the program installs for it is kept
 * aside and called for signals that are not ours. Before the profiler runs, everything is passed through. */
#include "runtime/wrap-signal.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "runtime/control.h"
#include "runtime/events.h"
#include "runtime/process.h"
#include "runtime/thread.h"
#include "runtime/wrap.h"

typedef int action_function(int, const struct sigaction *, struct sigaction *);
typedef int mask_function(int, const sigset_t *, sigset_t *);
typedef int suspend_function(const sigset_t *);
typedef int ppoll_function(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
typedef int pselect_function(int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *);
typedef int epoll_pwait_function(int, struct epoll_event *, int, int, const sigset_t *);
typedef sighandler_t signal_function(int, sighandler_t);

int wrap_real_sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    static action_function *real;
    if (!real)
        real = (action_function *)wrap_real("sigaction");
    return real ? real(number, action, old) : -1;
}

/* Copy of a set without our signal; had tells whether it was in. */
static const sigset_t *without_ours(const sigset_t *set, sigset_t *copy, bool *had)
{
    *had = false;
    if (!set || !process_is_ours_sig())
        return set;
    *had = sigismember(set, EVENTS_SIGNAL) == 1;
    if (!*had)
        return set;
    *copy = *set;
    sigdelset(copy, EVENTS_SIGNAL);
    return copy;
}

/* Keeps what the program believes of our signal in its mask, and shows it in the old mask. */
static void note_mask(int how, const sigset_t *set, bool had, sigset_t *old)
{
    struct thread_state *self = thread_self_sig();
    if (!self || !process_is_ours_sig())
        return;
    if (old && self->wants_signal_blocked)
        sigaddset(old, EVENTS_SIGNAL);
    if (!set)
        return;
    if (how == SIG_SETMASK)
        self->wants_signal_blocked = had;
    else if (had)
        self->wants_signal_blocked = how == SIG_BLOCK;
}

static int change_mask(mask_function *real, int how, const sigset_t *set, sigset_t *old)
{
    sigset_t copy;
    bool had;
    const sigset_t *asked = set;
    int result = real(how, without_ours(set, &copy, &had), old);
    if (result == 0)
        note_mask(how, asked, had, old);
    return result;
}

WRAP_EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    static mask_function *real;
    if (!real)
        real = (mask_function *)wrap_real("sigprocmask");
    return change_mask(real, how, set, old);
}

WRAP_EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    static mask_function *real;
    if (!real)
        real = (mask_function *)wrap_real("pthread_sigmask");
    return change_mask(real, how, set, old);
}

/* A signal that has a handler of ours. */
static void set_held(int number, const struct sigaction *action, struct sigaction *old)
{
    struct sigaction before;
    chain_set_sig(number, NULL, &before);
    if (number == EVENTS_SIGNAL)
        chain_set_sig(number, action, NULL);
    else
        control_set_action(number, action, NULL);
    if (old)
        *old = before;
}

WRAP_EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    struct sigaction copy;
    if (!process_is_ours_sig())
        return wrap_real_sigaction(number, action, old);
    if (chain_holds_sig(number)) {
        set_held(number, action, old);
        return 0;
    }
    if (action && sigismember(&action->sa_mask, EVENTS_SIGNAL) == 1) {
        copy = *action;
        sigdelset(&copy.sa_mask, EVENTS_SIGNAL);
        action = &copy;
    }
    return wrap_real_sigaction(number, action, old);
}

WRAP_EXPORT sighandler_t signal(int number, sighandler_t handler)
{
    static signal_function *real;
    if (!real)
        real = (signal_function *)wrap_real("signal");
    if (!chain_holds_sig(number) || !process_is_ours_sig())
        return real(number, handler);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
    set_held(number, &action, &old);
    return old.sa_handler;
}

WRAP_EXPORT int sigsuspend(const sigset_t *set)
{
    static suspend_function *real;
    sigset_t copy;
    bool had;
    if (!real)
        real = (suspend_function *)wrap_real("sigsuspend");
    return real(without_ours(set, &copy, &had));
}

WRAP_EXPORT int ppoll(struct pollfd *fds, nfds_t n_fds, const struct timespec *timeout, const sigset_t *set)
{
    static ppoll_function *real;
    sigset_t copy;
    bool had;
    if (!real)
        real = (ppoll_function *)wrap_real("ppoll");
    return real(fds, n_fds, timeout, without_ours(set, &copy, &had));
}

WRAP_EXPORT int pselect(int n, fd_set *read_fds, fd_set *write_fds, fd_set *except_fds,
                        const struct timespec *timeout, const sigset_t *set)
{
    static pselect_function *real;
    sigset_t copy;
    bool had;
    if (!real)
        real = (pselect_function *)wrap_real("pselect");
    return real(n, read_fds, write_fds, except_fds, timeout, without_ours(set, &copy, &had));
}

WRAP_EXPORT int epoll_pwait(int fd, struct epoll_event *events, int n, int timeout, const sigset_t *set)
{
    static epoll_pwait_function *real;
    sigset_t copy;
    bool had;
    if (!real)
        real = (epoll_pwait_function *)wrap_real("epoll_pwait");
    return real(fd, events, n, timeout, without_ours(set, &copy, &had));
}
