/* SPDX-License-Identifier: BSD-3-Clause */
/* dlopen, dlmopen and dlclose: note that the load map changes, then JUMP to the real function. A call would hide the
 * caller, whose return address the loader uses to find its RUNPATH. The arguments lie on the stack meanwhile, where
 * wrap_dl_target may change them. */
        .text

        .macro STUB name, index
        .globl \name
        .type \name, @function
\name:
        .cfi_startproc
        endbr64
        pushq   %rdx
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        movl    $\index, %edi
        movq    %rsp, %rsi
        movq    24(%rsp), %rdx
        call    wrap_dl_target
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdx
        .cfi_adjust_cfa_offset -8
        jmp     *%rax
        .cfi_endproc
        .size \name, . - \name
        .endm

        STUB dlopen, 0
        STUB dlmopen, 1
        STUB dlclose, 2

        .section .note.GNU-stack, "", @progbits
