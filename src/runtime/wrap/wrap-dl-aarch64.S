/* SPDX-License-Identifier: BSD-3-Clause */
/* dlopen, dlmopen and dlclose: note that the load map changes, then JUMP to the real function. A call would hide the
 * caller, whose return address the loader uses to find its RUNPATH. The arguments lie on the stack meanwhile, where
 * wrap_dl_target may change them. */
        .text

        .macro STUB name, index
        .globl \name
        .type \name, %function
        .p2align 2
\name:
        .cfi_startproc
        hint    #34                     /* bti c */
        stp     x29, x30, [sp, #-48]!
        .cfi_def_cfa_offset 48
        .cfi_offset 29, -48
        .cfi_offset 30, -40
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        str     x2, [sp, #32]
        mov     w0, #\index
        add     x1, sp, #16
        mov     x2, x30
        bl      wrap_dl_target
        mov     x16, x0
        ldp     x0, x1, [sp, #16]
        ldr     x2, [sp, #32]
        ldp     x29, x30, [sp], #48
        .cfi_restore 29
        .cfi_restore 30
        .cfi_def_cfa_offset 0
        br      x16
        .cfi_endproc
        .size \name, . - \name
        .endm

        STUB dlopen, 0
        STUB dlmopen, 1
        STUB dlclose, 2

        .section .note.GNU-stack, "", %progbits
