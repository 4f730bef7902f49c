/* SPDX-License-Identifier: BSD-3-Clause */
/* 64-bit POWER, little endian: see arch.h. The thread pointer is 0x7000 bytes beyond the control block, at which TLS
 * begins; glibc's own data of the thread lies below, then its stack. Signal context.
 * src: Power ISA (bl, bctrl, blrl), 64-bit ELF V2 ABI (stack frame, TLS), Linux asm/sigcontext.h, asm/ptrace.h */
#include "runtime/own/arch.h"

#include <errno.h>
#include <linux/audit.h>
#include <stddef.h>
#include <string.h>

#include "base/sigsafe.h"

#define STATIC_TLS_MAX_BYTES ((int64_t)16 << 20)
#define THREAD_POINTER_BYTES 0x7000
#define SIGNAL_FRAME_BYTES 128 /* the frame that the kernel puts below its record, for the call of the handler */
enum { GP_NIP = 32, GP_LNK = 36 };

void arch_start_of_context_sig(const ucontext_t *context, struct unwind_start *start)
{
    for (int i = 0; i < UNWIND_LR; i++)
        start->gpr[i] = context->uc_mcontext.gp_regs[i];
    start->gpr[UNWIND_LR] = context->uc_mcontext.gp_regs[GP_LNK];
    start->known = ((uint64_t)1 << UNWIND_REGISTERS) - 1;
    start->pc = context->uc_mcontext.gp_regs[GP_NIP];
    start->is_interrupted = true;
}

uintptr_t arch_pc_of_context_sig(const ucontext_t *context)
{
    return context->uc_mcontext.gp_regs[GP_NIP];
}

uintptr_t arch_sp_of_context_sig(const ucontext_t *context)
{
    return context->uc_mcontext.gp_regs[UNWIND_SP];
}

/* sc returns the errno with a bit of the condition register set, scv its negative. */
bool arch_call_is_cut_sig(const ucontext_t *context)
{
    int64_t result = (int64_t)context->uc_mcontext.gp_regs[3];
    return result == EINTR || result == -EINTR;
}

/* Any branch that sets the link register: b, bc, and the branches to the link, count and target registers. */
__attribute__((no_sanitize("address"))) bool arch_ends_in_call_sig(const uint8_t *code, const uint8_t *end)
{
    uint32_t instruction;
    if (end - code < 4)
        return false;
    memcpy(&instruction, end - 4, sizeof instruction);
    unsigned opcode = instruction >> 26, extended = instruction >> 1 & 0x3ff;
    if (!(instruction & 1))
        return false;
    return opcode == 18 || opcode == 16 || (opcode == 19 && (extended == 16 || extended == 528 || extended == 560));
}

uintptr_t arch_thread_pointer_sig(void)
{
    uintptr_t value;
    __asm__("mr %0, 13" : "=r"(value));
    return value;
}

uintptr_t arch_stack_high_sig(uintptr_t thread_pointer)
{
    return thread_pointer - THREAD_POINTER_BYTES;
}

bool arch_is_static_tls_sig(int64_t distance)
{
    return distance >= -THREAD_POINTER_BYTES && distance <= STATIC_TLS_MAX_BYTES;
}

const struct arch_signal_frame *arch_signal_frame_sig(void)
{
    static const struct arch_signal_frame frame = {
        SIGNAL_FRAME_BYTES, 16, offsetof(ucontext_t, uc_mcontext.gp_regs), GP_NIP, UNWIND_SP, UNWIND_FP, GP_LNK};
    return &frame;
}

uintptr_t arch_return_address_sig(uint64_t word)
{
    return word;
}

bool arch_has_back_chain_sig(void)
{
    return true;
}

uint32_t arch_call_abi_sig(void)
{
    return AUDIT_ARCH_PPC64LE;
}

/* Code that a sanitizer inserts between loading the registers and the call would change them. */
__attribute__((no_sanitize("thread", "address", "undefined"))) long arch_call_sig(long number, const long arguments[6])
{
    register long which __asm__("r0") = number;
    register long first __asm__("r3") = arguments[0];
    register long second __asm__("r4") = arguments[1];
    register long third __asm__("r5") = arguments[2];
    register long fourth __asm__("r6") = arguments[3];
    register long fifth __asm__("r7") = arguments[4];
    register long sixth __asm__("r8") = arguments[5];
    /* On an error the kernel sets a bit of the condition register and returns a positive number. */
    __asm__ volatile("sc; bns+ 1f; neg 3, 3; 1:"
                     : "+r"(which), "+r"(first), "+r"(second), "+r"(third), "+r"(fourth), "+r"(fifth), "+r"(sixth)
                     :
                     : "r9", "r10", "r11", "r12", "cr0", "ctr", "memory");
    return first;
}
