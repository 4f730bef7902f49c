/* SPDX-License-Identifier: BSD-3-Clause */
/* x86-64: see arch.h. TLS lies below the thread pointer, which is the thread's control block at the upper end of its
 * stack. Signal context. */
#include "runtime/own/arch.h"

#include <errno.h>
#include <linux/audit.h>
#include <stddef.h>

#include "base/sigsafe.h"

#define STATIC_TLS_MAX_BYTES ((int64_t)16 << 20)

void arch_start_of_context_sig(const ucontext_t *context, struct unwind_start *start)
{
    static const uint8_t dwarf_order[UNWIND_REGISTERS] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                                          REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                                          REG_R12, REG_R13, REG_R14, REG_R15};
    for (int i = 0; i < UNWIND_REGISTERS; i++)
        start->gpr[i] = (uint64_t)context->uc_mcontext.gregs[dwarf_order[i]];
    start->known = 0xffff;
    start->pc = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    start->is_interrupted = true;
}

uintptr_t arch_pc_of_context_sig(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
}

uintptr_t arch_sp_of_context_sig(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
}

bool arch_call_is_cut_sig(const ucontext_t *context)
{
    return context->uc_mcontext.gregs[REG_RAX] == -EINTR;
}

/* Length of an indirect call (opcode ff /2) with this ModRM byte, including its operand bytes. */
static unsigned call_length(uint8_t modrm, uint8_t sib)
{
    unsigned mod = modrm >> 6, rm = modrm & 7;
    if ((modrm >> 3 & 7) != 2)
        return 0;
    if (mod == 3)
        return 2;
    unsigned length = 2 + (rm == 4);
    if (mod == 1)
        return length + 1;
    if (mod == 2 || rm == 5 || (rm == 4 && (sib & 7) == 5))
        return length + 4;
    return length;
}

__attribute__((no_sanitize("address"))) bool arch_ends_in_call_sig(const uint8_t *code, const uint8_t *end)
{
    if (end - code >= 5 && end[-5] == 0xe8)
        return true;
    for (unsigned n = 2; n <= 7 && n <= (size_t)(end - code); n++)
        if (end[-(int)n] == 0xff && call_length(end[1 - (int)n], n > 2 ? end[2 - (int)n] : 0) == n)
            return true;
    return false;
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
    return AUDIT_ARCH_X86_64;
}

/* Code that a sanitizer inserts between loading the registers and the call would change them. */
__attribute__((no_sanitize("thread", "address", "undefined"))) long arch_call_sig(long number, const long arguments[6])
{
    register long fourth __asm__("r10") = arguments[3];
    register long fifth __asm__("r8") = arguments[4];
    register long sixth __asm__("r9") = arguments[5];
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(arguments[0]), "S"(arguments[1]), "d"(arguments[2]), "r"(fourth), "r"(fifth),
                       "r"(sixth)
                     : "rcx", "r11", "memory");
    return result;
}
