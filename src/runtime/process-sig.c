/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose arena it is: asked by every entry point, signal handler included, before it touches anything of ours. And what
 * keeps signals from an entry point that must not be interrupted. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "runtime/process-internal.h"
#include "runtime/own-call.h"
#include "runtime/sandbox.h"
#include "base/sigsafe.h"

static struct {
    volatile uint32_t *owner_word; /* pid; the kernel wipes its page in a child of fork */
    _Atomic bool is_running;
} owner;

bool process_is_ours_sig(void)
{
    return owner.is_running && owner.owner_word && *owner.owner_word;
}

bool process_is_lent_sig(void)
{
    return process_is_ours_sig() && *owner.owner_word != own_pid_sig();
}

void process_set_running_sig(bool is_running)
{
    owner.is_running = is_running;
}

void *process_owner_page_sig(void)
{
    return (void *)(uintptr_t)owner.owner_word;
}

void process_set_owner_sig(void *page, uint32_t pid)
{
    owner.owner_word = page;
    *owner.owner_word = pid;
}

uint32_t own_pid_sig(void)
{
    int saved_errno = errno;
    long pid = own_call_sig(SYS_getpid);
    errno = saved_errno;
    if (pid > 0)
        return (uint32_t)pid;
    return owner.owner_word ? *owner.owner_word : 0;
}

void shield_raise_sig(struct shield *shield)
{
    static const uint64_t all = UINT64_MAX;
    shield->saved_errno = errno;
    shield->is_up = !sandbox_is_entered_sig();
    if (shield->is_up)
        own_call_sig(SYS_rt_sigprocmask, SIG_SETMASK, &all, &shield->blocked, sizeof all);
}

void shield_lower_sig(const struct shield *shield)
{
    if (shield->is_up)
        own_call_sig(SYS_rt_sigprocmask, SIG_SETMASK, &shield->blocked, NULL, sizeof shield->blocked);
    errno = shield->saved_errno;
}
