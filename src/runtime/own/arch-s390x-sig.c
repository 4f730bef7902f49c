/* SPDX-License-Identifier: BSD-3-Clause */
/* IBM Z: see arch.h. The thread pointer, kept in two access registers, points to glibc's data of the thread, which lies
 * above its static TLS and its stack. Signal context.
 * src: z/Architecture Principles of Operation (BASR, BRAS, BRASL), s390x ELF ABI (registers, TLS), Linux asm/ptrace.h
 */
#include "runtime/own/arch.h"

#include <errno.h>
#include <linux/audit.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "base/sigsafe.h"

#define STATIC_TLS_MAX_BYTES ((int64_t)16 << 20)

/* A context from getcontext() has no program counter: we take the address that getcontext() returns to. */
void arch_start_of_context_sig(const ucontext_t *context, struct unwind_start *start)
{
    for (int i = 0; i < UNWIND_REGISTERS; i++)
        start->gpr[i] = context->uc_mcontext.gregs[i];
    start->known = ((uint64_t)1 << UNWIND_REGISTERS) - 1;
    start->pc = context->uc_mcontext.psw.addr;
    if (!start->pc)
        start->pc = start->gpr[UNWIND_LR];
    start->is_interrupted = true;
}

uintptr_t arch_pc_of_context_sig(const ucontext_t *context)
{
    return context->uc_mcontext.psw.addr;
}

uintptr_t arch_sp_of_context_sig(const ucontext_t *context)
{
    return context->uc_mcontext.gregs[UNWIND_SP];
}

bool arch_call_is_cut_sig(const ucontext_t *context)
{
    return (int64_t)context->uc_mcontext.gregs[2] == -EINTR;
}

/* BASR (2 bytes), BRAS and BAS (4 bytes), BRASL (6 bytes), with the link register r14. */
__attribute__((no_sanitize("address"))) bool arch_ends_in_call_sig(const uint8_t *code, const uint8_t *end)
{
    ptrdiff_t n = end - code;
    return (n >= 2 && end[-2] == 0x0d && end[-1] >> 4 == UNWIND_LR) ||
           (n >= 4 && (end[-4] == 0x4d || (end[-4] == 0xa7 && (end[-3] & 15) == 5)) && end[-3] >> 4 == UNWIND_LR) ||
           (n >= 6 && end[-6] == 0xc0 && end[-5] == (UNWIND_LR << 4 | 5));
}

uintptr_t arch_thread_pointer_sig(void)
{
    return (uintptr_t)__builtin_thread_pointer();
}

uintptr_t arch_stack_high_sig(uintptr_t thread_pointer)
{
    return thread_pointer;
}

bool arch_is_static_tls_sig(int64_t distance)
{
    return distance < 0 && distance >= -STATIC_TLS_MAX_BYTES;
}

uint32_t arch_call_abi_sig(void)
{
    return AUDIT_ARCH_S390X;
}

/* Code that a sanitizer inserts between loading the registers and the call would change them. */
__attribute__((no_sanitize("thread", "address", "undefined"))) long arch_call_sig(long number, const long arguments[6])
{
    register long which __asm__("r1") = number;
    register long first __asm__("r2") = number == SYS_mmap ? (long)arguments : arguments[0]; /* takes them in memory */
    register long second __asm__("r3") = arguments[1];
    register long third __asm__("r4") = arguments[2];
    register long fourth __asm__("r5") = arguments[3];
    register long fifth __asm__("r6") = arguments[4];
    register long sixth __asm__("r7") = arguments[5];
    __asm__ volatile("svc 0"
                     : "+d"(first)
                     : "d"(which), "d"(second), "d"(third), "d"(fourth), "d"(fifth), "d"(sixth)
                     : "memory", "cc");
    return first;
}
