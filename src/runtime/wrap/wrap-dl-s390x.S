/* SPDX-License-Identifier: BSD-3-Clause */
/* dlopen, dlmopen and dlclose: note that the load map changes, then JUMP to the real function. A call would hide the
 * caller, whose return address the loader uses to find its RUNPATH. The arguments lie on the stack meanwhile, where
 * wrap_dl_target may change them. */
        .text

        .macro STUB name, index
        .globl \name
        .type \name, @function
        .p2align 4
\name:
        .cfi_startproc
        stmg    %r2, %r15, 16(%r15)
        .cfi_offset 14, -48
        .cfi_offset 15, -40
        aghi    %r15, -160
        .cfi_def_cfa_offset 320
        lghi    %r2, \index
        la      %r3, 176(%r15)
        lgr     %r4, %r14
        brasl   %r14, wrap_dl_target
        lgr     %r1, %r2
        aghi    %r15, 160
        .cfi_def_cfa_offset 160
        lmg     %r2, %r14, 16(%r15)
        .cfi_restore 14
        .cfi_restore 15
        br      %r1
        .cfi_endproc
        .size \name, . - \name
        .endm

        STUB dlopen, 0
        STUB dlmopen, 1
        STUB dlclose, 2

        .section .note.GNU-stack, "", @progbits
