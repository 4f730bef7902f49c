/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals that start and stop the sampling, and the limit of a life: see control.h. Ordinary code. */
#include "runtime/control.h"

#include <unistd.h>

#include "runtime/arena-writer.h"
#include "runtime/events.h"
#include "runtime/wrap-signal.h"

/* Our handler with what of the program's action concerns the kernel. */
static void install(int number, const struct sigaction *program, struct sigaction *old)
{
    struct sigaction action = {.sa_flags = SA_RESTART | SA_ONSTACK};
    if (program && program->sa_handler != SIG_DFL && program->sa_handler != SIG_IGN)
        action = *program;
    action.sa_sigaction = control_handler_sig;
    action.sa_flags = (action.sa_flags | SA_SIGINFO) & ~SA_RESETHAND;
    sigdelset(&action.sa_mask, EVENTS_SIGNAL);
    (void)wrap_real_sigaction(number, &action, old);
}

static void take_over(int number)
{
    struct sigaction old;
    if (number <= 0 || chain_holds_sig(number) || wrap_real_sigaction(number, NULL, &old) != 0)
        return;
    if (chain_add_sig(number, &old))
        install(number, &old, NULL);
}

void control_set_action(int number, const struct sigaction *action, struct sigaction *old)
{
    chain_set_sig(number, action, old);
    if (action)
        install(number, action, NULL);
}

static void limit_life(void)
{
    if (arena_header_sig()->lifetime_s)
        alarm(arena_header_sig()->lifetime_s);
}

void control_init(void)
{
    take_over((int)arena_header_sig()->start_signal);
    take_over((int)arena_header_sig()->stop_signal);
    limit_life();
}

void control_fork_child(void)
{
    limit_life();
}
