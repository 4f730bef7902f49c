/* SPDX-License-Identifier: BSD-3-Clause */
/* 64-bit Arm: see arch.h. TLS begins after the 16 bytes of the control block that the thread pointer points to; glibc's
 * own data of the thread lies below it, then its stack. Signal context.
 * src: Linux asm/sigcontext.h, Arm Architecture Reference Manual (BL, BLR, BLRAA), AAPCS64 */
#include "runtime/own/arch.h"

#include <errno.h>
#include <linux/audit.h>
#include <stddef.h>
#include <string.h>

#include "base/sigsafe.h"

#define STATIC_TLS_MAX_BYTES ((int64_t)16 << 20)
#define SIGINFO_BYTES 128
#define ADDRESS_BITS 48

void arch_start_of_context_sig(const ucontext_t *context, struct unwind_start *start)
{
    for (int i = 0; i < UNWIND_SP; i++)
        start->gpr[i] = context->uc_mcontext.regs[i];
    start->gpr[UNWIND_SP] = context->uc_mcontext.sp;
    start->known = ((uint64_t)1 << UNWIND_REGISTERS) - 1;
    start->pc = context->uc_mcontext.pc;
    start->is_interrupted = true;
}

uintptr_t arch_pc_of_context_sig(const ucontext_t *context)
{
    return context->uc_mcontext.pc;
}

uintptr_t arch_sp_of_context_sig(const ucontext_t *context)
{
    return context->uc_mcontext.sp;
}

bool arch_call_is_cut_sig(const ucontext_t *context)
{
    return (int64_t)context->uc_mcontext.regs[0] == -EINTR;
}

/* BL, BLR, and the forms of BLR that authenticate the target. */
__attribute__((no_sanitize("address"))) bool arch_ends_in_call_sig(const uint8_t *code, const uint8_t *end)
{
    uint32_t instruction;
    if (end - code < 4)
        return false;
    memcpy(&instruction, end - 4, sizeof instruction);
    return (instruction & 0xfc000000u) == 0x94000000u || (instruction & 0xfefff000u) == 0xd63f0000u;
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
    return distance >= 16 && distance <= STATIC_TLS_MAX_BYTES;
}

const struct arch_signal_frame *arch_signal_frame_sig(void)
{
    static const struct arch_signal_frame frame = {
        SIGINFO_BYTES, 0, offsetof(ucontext_t, uc_mcontext.regs), 32, 31, UNWIND_FP, UNWIND_LR};
    _Static_assert(offsetof(mcontext_t, sp) - offsetof(mcontext_t, regs) == 31 * 8 &&
                       offsetof(mcontext_t, pc) - offsetof(mcontext_t, regs) == 32 * 8,
                   "sp and pc follow the registers");
    return &frame;
}

uintptr_t arch_return_address_sig(uint64_t word)
{
    return word & (((uint64_t)1 << ADDRESS_BITS) - 1);
}

bool arch_has_back_chain_sig(void)
{
    return false;
}

uint32_t arch_call_abi_sig(void)
{
    return AUDIT_ARCH_AARCH64;
}

/* Code that a sanitizer inserts between loading the registers and the call would change them. */
__attribute__((no_sanitize("thread", "address", "undefined"))) long arch_call_sig(long number, const long arguments[6])
{
    register long which __asm__("x8") = number;
    register long first __asm__("x0") = arguments[0];
    register long second __asm__("x1") = arguments[1];
    register long third __asm__("x2") = arguments[2];
    register long fourth __asm__("x3") = arguments[3];
    register long fifth __asm__("x4") = arguments[4];
    register long sixth __asm__("x5") = arguments[5];
    __asm__ volatile("svc 0"
                     : "+r"(first)
                     : "r"(which), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "memory");
    return first;
}
