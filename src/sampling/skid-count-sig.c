/* SPDX-License-Identifier: BSD-3-Clause */
/* The self-test's signal handler: counts samples of the running loop by the instruction that they point to. */
#include "sampling/skid.h"

#include <stddef.h>
#include <ucontext.h>

#include "base/sigsafe.h"

static struct {
    const struct skid_loop *loop;
    struct skid_kernel *kernel; /* NULL: not counting */
    volatile uint32_t n_handled;
} counting;

uint32_t skid_n_handled_sig(void)
{
    return counting.n_handled;
}

void skid_count_sig(const struct skid_loop *loop, struct skid_kernel *kernel)
{
    counting.kernel = NULL;
    __asm__ volatile("" ::: "memory");
    counting.loop = loop;
    __asm__ volatile("" ::: "memory");
    counting.kernel = kernel;
}

#if defined(__x86_64__)

void skid_sample_sig(int signo, siginfo_t *info, void *context)
{
    const ucontext_t *frame = context;
    const char *pc = (const char *)frame->uc_mcontext.gregs[REG_RIP];
    struct skid_kernel *kernel = counting.kernel;
    (void)signo;
    (void)info;
    counting.n_handled = counting.n_handled + 1;
    if (!kernel || pc < counting.loop->from || pc >= counting.loop->to)
        return;
    if (pc == counting.loop->stall)
        kernel->n_at++;
    else if (pc == counting.loop->next)
        kernel->n_next++;
    else
        kernel->n_elsewhere++;
}

#else

void skid_sample_sig(int signo, siginfo_t *info, void *context)
{
    (void)signo;
    (void)info;
    (void)context;
}

#endif
