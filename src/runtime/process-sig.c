/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose arena it is: asked by every entry point, signal handler included, before it touches anything of ours. And what
 * keeps signals from an entry point that must not be interrupted. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/process-internal.h"
#include "base/sigsafe.h"

static struct {
    volatile uint32_t *owner_word; /* pid; the kernel wipes its page in a child of fork */
    _Atomic bool is_running;
    _Atomic bool is_unshielded;
} owner;

bool process_is_ours_sig(void)
{
    return owner.is_running && owner.owner_word && *owner.owner_word;
}

bool process_is_lent_sig(void)
{
    return process_is_ours_sig() && *owner.owner_word != (uint32_t)getpid();
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

void shield_raise_sig(struct shield *shield)
{
    static const uint64_t all = UINT64_MAX;
    shield->saved_errno = errno;
    shield->is_up = !atomic_load_explicit(&owner.is_unshielded, memory_order_relaxed);
    if (shield->is_up)
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &shield->blocked, sizeof all);
}

void shield_lower_sig(const struct shield *shield)
{
    if (shield->is_up)
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &shield->blocked, NULL, sizeof shield->blocked);
    errno = shield->saved_errno;
}

void shield_forbid_sig(void)
{
    atomic_store_explicit(&owner.is_unshielded, true, memory_order_relaxed);
}
