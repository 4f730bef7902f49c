/* SPDX-License-Identifier: BSD-3-Clause */
/* Assembly without unwind information, in the manners of numerical libraries, for the unwinder's test: each function
 * calls callback() from the middle of its frame. asm_silent has a frame description that never mentions its pushes. */
    .text

    .p2align 4
    .globl asm_pushes
    .type asm_pushes, @function
asm_pushes:
    push %rbx
    push %rbp
    push %r12
    mov %rdi, %rbp
    mov $3, %ebx
1:  sub $16, %rsp
    call *%rbp
    add $16, %rsp
    dec %ebx
    jnz 1b
    pop %r12
    pop %rbp
    pop %rbx
    ret
    .size asm_pushes, . - asm_pushes

    .p2align 4
    .globl asm_slots
    .type asm_slots, @function
asm_slots:
    sub $104, %rsp
    mov %rbx, (%rsp)
    mov %rbp, 8(%rsp)
    mov %r12, 16(%rsp)
    mov %rdi, %rbx
    test %rdi, %rdi
    jz 2f
    xor %ebp, %ebp
    call *%rbx
2:  mov (%rsp), %rbx
    mov 8(%rsp), %rbp
    mov 16(%rsp), %r12
    add $104, %rsp
    ret
    .size asm_slots, . - asm_slots

    .p2align 4
    .globl asm_aligned
    .type asm_aligned, @function
asm_aligned:
    push %rbx
    push %r13
    mov %rsp, %rbx
    mov %rdi, %r13
    sub $512, %rsp
    and $-256, %rsp
    call *%r13
    mov %rbx, %rsp
    pop %r13
    pop %rbx
    ret
    .size asm_aligned, . - asm_aligned

    .p2align 4
    .globl asm_framed
    .type asm_framed, @function
asm_framed:
    push %rbp
    mov %rsp, %rbp
    push %rdi
    and $-64, %rsp
    sub $64, %rsp
    call *-8(%rbp)
    leave
    ret
    .size asm_framed, . - asm_framed

    .p2align 4
    .globl asm_silent
    .type asm_silent, @function
asm_silent:
    .cfi_startproc
    push %rbx
    push %rbp
    push %r14
    sub $256, %rsp
    mov %rdi, %rbp
    lea 8(%rsp), %r14
    call *%rbp
    lea -8(%r14), %rsp
    add $256, %rsp
    pop %r14
    pop %rbp
    pop %rbx
    ret
    .cfi_endproc
    .size asm_silent, . - asm_silent

    .section .note.GNU-stack, "", @progbits
