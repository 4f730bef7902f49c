/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's own actions for the signals that have a handler of ours: see chain.h. */
#include "runtime/chain.h"

#include <stddef.h>

#include "base/sigsafe.h"

#define SIGNALS_MAX 3 /* of overflows, to start, to stop */

struct chained {
    int number; /* 0: free */
    struct sigaction program;
};

static struct {
    struct chained signals[SIGNALS_MAX];
} chain;

static struct chained *find_sig(int number)
{
    for (int i = 0; i < SIGNALS_MAX; i++)
        if (chain.signals[i].number == number)
            return &chain.signals[i];
    return NULL;
}

bool chain_add_sig(int number, const struct sigaction *action)
{
    struct chained *chained = find_sig(number);
    if (!chained)
        chained = find_sig(0);
    if (!chained)
        return false;
    *chained = (struct chained){.number = number, .program = *action};
    return true;
}

bool chain_holds_sig(int number)
{
    return number > 0 && find_sig(number);
}

bool chain_get_sig(int number, struct sigaction *action)
{
    const struct chained *chained = number > 0 ? find_sig(number) : NULL;
    if (chained)
        *action = chained->program;
    return chained;
}

void chain_set_sig(int number, const struct sigaction *action, struct sigaction *old)
{
    struct chained *chained = find_sig(number);
    if (chained && old)
        *old = chained->program;
    if (chained && action)
        chained->program = *action;
}

void chain_call_sig(int number, siginfo_t *info, void *context)
{
    struct chained *chained = find_sig(number);
    if (!chained)
        return;
    struct sigaction action = chained->program;
    if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)
        return;
    if (action.sa_flags & SA_RESETHAND)
        chained->program.sa_handler = SIG_DFL;
    if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction(number, info, context);
    else
        action.sa_handler(number);
}
