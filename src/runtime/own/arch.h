/* SPDX-License-Identifier: BSD-3-Clause */
/* What the runtime must know of the processor: registers of a signal's context, calls, thread pointer and static TLS.
 * One file per architecture (arch-CPU-sig.c, wrap-dl-CPU.S), chosen by the build; unwind-sig.c walks where calls push
 * the return address, unwind-link-sig.c where they leave it in a register. */
#ifndef LOCUS_RUNTIME_OWN_ARCH_H
#define LOCUS_RUNTIME_OWN_ARCH_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* Number of registers that a walk can start with, by DWARF number (except the link register of POWER, whose DWARF
 * number is 65). */
#if defined(__aarch64__)
enum { UNWIND_FP = 29, UNWIND_LR = 30, UNWIND_SP = 31, UNWIND_REGISTERS = 32 };
#elif defined(__powerpc64__)
enum { UNWIND_SP = 1, UNWIND_FP = 31, UNWIND_LR = 32, UNWIND_REGISTERS = 33 };
#elif defined(__s390x__)
enum { UNWIND_FP = 11, UNWIND_LR = 14, UNWIND_SP = 15, UNWIND_REGISTERS = 16 };
#else
enum { UNWIND_FP = 6, UNWIND_SP = 7, UNWIND_REGISTERS = 16 };
#endif

/* Registers at the start: for a sample those of the ucontext, for a wrapper those of the caller's frame.
 * gpr by DWARF number (x86-64: rax rdx rcx rbx rsi rdi rbp rsp r8-r15); known: bit i set when gpr[i] is valid. */
struct unwind_start {
    uint64_t gpr[UNWIND_REGISTERS];
    uint64_t known;
    uintptr_t pc;
    bool is_interrupted; /* pc is an interrupted instruction (look it up as is); false: a return address (pc - 1) */
};

/* Registers of the interrupted code, pc and all general ones.  ctx: signal handler */
void arch_start_of_context_sig(const ucontext_t *context, struct unwind_start *start);

/* Program counter and stack pointer of the interrupted code.  ctx: signal handler */
uintptr_t arch_pc_of_context_sig(const ucontext_t *context);
uintptr_t arch_sp_of_context_sig(const ucontext_t *context);

/* Whether the signal has ended a system call of the interrupted code, which will find EINTR; now and then also true of
 * other code.  ctx: signal handler */
bool arch_call_is_cut_sig(const ucontext_t *context);

/* Whether the instructions [code, end) can end in a call.  ctx: signal handler */
bool arch_ends_in_call_sig(const uint8_t *code, const uint8_t *end);

/* Thread pointer of the calling thread.  ctx: any */
uintptr_t arch_thread_pointer_sig(void);

/* Upper end of a thread's stack as glibc lays it out: its control block lies there.  ctx: any */
uintptr_t arch_stack_high_sig(uintptr_t thread_pointer);

/* Makes a system call without libc or anything that wraps its functions. Returns the result, or a negative errno.  ctx:
 * any */
long arch_call_sig(long number, const long arguments[6]);

/* The architecture that seccomp filters see with a system call (AUDIT_ARCH_...).  ctx: any */
uint32_t arch_call_abi_sig(void);

/* Whether memory at this distance from the thread pointer, in bytes, can belong to the static TLS of a module.  ctx:
 * any */
bool arch_is_static_tls_sig(int64_t distance);

/* Where the kernel saves the registers when it calls a signal handler, for code that walks from the trampoline that the
 * handler returns to. Used only where calls leave the return address in a register. */
struct arch_signal_frame {
    uint16_t context_offset;   /* of the ucontext from the trampoline's stack pointer, bytes */
    uint16_t other_offset;     /* how much more it is in qemu's frames, bytes */
    uint16_t registers_offset; /* of register 0 in the ucontext, bytes; the others follow, 8 bytes each */
    uint16_t pc, sp, fp, lr;   /* numbers in that array */
};

/* The layout of this architecture.  ctx: signal handler */
const struct arch_signal_frame *arch_signal_frame_sig(void);

/* The address in a saved return address, without the bits with which the processor has signed it.  ctx: signal handler
 */
uintptr_t arch_return_address_sig(uint64_t word);

/* Whether each function, except a leaf, stores the address of its caller's frame at its stack pointer (the back chain).
 * ctx: signal handler */
bool arch_has_back_chain_sig(void);

#endif
