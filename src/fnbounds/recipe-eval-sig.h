/* SPDX-License-Identifier: BSD-3-Clause */
/* Evaluation of recipes: registers of an interrupted thread + operand -> data address. Used by the signal handler. */
#ifndef LOCUS_FNBOUNDS_RECIPE_EVAL_SIG_H
#define LOCUS_FNBOUNDS_RECIPE_EVAL_SIG_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "fnbounds/recipe.h"

/* Registers of the interrupted thread. */
struct recipe_regs {
    uint64_t gpr[16]; /* x86 encoding order: rax rcx rdx rbx rsp rbp rsi rdi r8-r15 */
    uint64_t rip;
    uint64_t fs_base, gs_base;
    /* The thread's stack (not from rsp on: words of the red zone below it count too); equal: nothing may be read. */
    uint64_t stack_low, stack_high;
    uint64_t vec_low[32]; /* lowest 64 bits of xmm/ymm/zmm 0-31 */
    uint32_t vec_known;   /* bit i: vec_low[i] is valid */
};

/* The recipe that applies with these registers: the given one, or that of the loop's entry when its guard holds.
 * ctx: any */
const struct recipe *recipe_choose_sig(const struct recipe *recipe, const struct recipe_regs *regs);

/* Computes the data address of the operand. Returns false, *address untouched, when it needs a register that is not
 * known or a stack word outside the bounds.
 * ctx: signal handler; reads memory only inside [stack_low, stack_high) and from the red zone below rsp upwards */
bool recipe_address_sig(const struct recipe_operand *operand, const struct recipe_regs *regs, uint64_t *address);

/* How the instruction walks through memory (base/access-pattern.h), with its step where that is a register's value.
 * ctx: any */
uint64_t recipe_pattern_sig(const struct recipe *recipe, const struct recipe_regs *regs);

/* Asks the processor once where signal frames hold zmm16-31; without it those stay unknown. Slow under a hypervisor, so
 * to be called before sampling starts.  ctx: any   src: Intel SDM vol. 1 ch. 13, CPUID leaf 0DH */
void recipe_eval_init_sig(void);

/* Fills gpr, rip and the vector registers from a signal's context; fs_base is this thread's own, gs_base and the stack
 * bounds are set to 0: the caller sets the bounds.  ctx: signal handler (x86-64 only, elsewhere all zero)
 * src: Linux sigcontext.h, Intel SDM vol. 1 ch. 13 (XSAVE layout) */
void recipe_regs_of_ucontext_sig(const ucontext_t *context, struct recipe_regs *regs);

#endif
