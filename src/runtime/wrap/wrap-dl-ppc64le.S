/* SPDX-License-Identifier: BSD-3-Clause */
/* dlopen, dlmopen and dlclose: note that the load map changes, then JUMP to the real function. A call would hide the
 * caller, whose return address the loader uses to find its RUNPATH. The arguments lie on the stack meanwhile, where
 * wrap_dl_target may change them. The caller's TOC pointer is where its own call has
 * put it, and r12 holds the address of what is entered (ELF V2 ABI). */
        .abiversion 2
        .text

        .macro STUB name, index
        .globl \name
        .type \name, @function
        .p2align 4
\name:
        .cfi_startproc
        addis   2, 12, .TOC. - \name@ha
        addi    2, 2, .TOC. - \name@l
        .localentry \name, . - \name
        mflr    0
        std     0, 16(1)
        stdu    1, -64(1)
        .cfi_def_cfa_offset 64
        .cfi_offset 65, 16
        std     3, 32(1)
        std     4, 40(1)
        std     5, 48(1)
        li      3, \index
        addi    4, 1, 32
        mr      5, 0
        bl      wrap_dl_target
        nop
        mr      12, 3
        ld      3, 32(1)
        ld      4, 40(1)
        ld      5, 48(1)
        addi    1, 1, 64
        .cfi_def_cfa_offset 0
        ld      0, 16(1)
        mtlr    0
        .cfi_restore 65
        mtctr   12
        bctr
        .cfi_endproc
        .size \name, . - \name
        .endm

        STUB dlopen, 0
        STUB dlmopen, 1
        STUB dlclose, 2

        .section .note.GNU-stack, "", @progbits
