/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops whose stalling instruction is known: uint64_t f(position rdi, n_turns rsi, memory rdx, mask rcx). */
    .text
    .macro BEGIN name
    .balign 64
    .globl skid_\name
    .hidden skid_\name
    .type skid_\name, @function
skid_\name:
    .endm
    .macro AT name
    .globl skid_\name
    .hidden skid_\name
skid_\name:
    .endm

/* Each load gets its address from the previous one. */
BEGIN chase
    add $1, %rsi
AT chase_from
1:  nop
AT chase_stall
    mov (%rdi), %rdi
AT chase_next
    add $1, %rax
    imul $3, %rcx, %rcx
    dec %rsi
    jnz 1b
AT chase_to
    mov %rdi, %rax
    ret
    .size skid_chase, . - skid_chase

/* The same, among loads that always hit; the slow load's result is used late. */
BEGIN mixed
    add $1, %rsi
AT mixed_from
1:  mov (%rdx), %r8
    mov 8(%rdx), %r9
AT mixed_stall
    mov (%rdi), %rdi
AT mixed_next
    mov 16(%rdx), %r8
    mov 24(%rdx), %r9
    add %r8, %r9
    add %rdi, %rax
    mov 32(%rdx), %r8
    dec %rsi
    jnz 1b
AT mixed_to
    mov %rdi, %rax
    ret
    .size skid_mixed, . - skid_mixed

/* Random stores, whose addresses are known long before. */
BEGIN store
    add $1, %rsi
AT store_from
1:  imul $1664525, %rdi, %rdi
    add $1013904223, %rdi
    mov %rdi, %r10
    shr $20, %r10
    and %rcx, %r10
AT store_stall
    movq $1, 8(%rdx,%r10)
AT store_next
    add $1, %r11
    xor %r8, %rax
    dec %rsi
    jnz 1b
AT store_to
    mov %rdi, %rax
    ret
    .size skid_store, . - skid_store

/* Random loads that do not depend on each other. */
BEGIN random
    add $1, %rsi
AT random_from
1:  imul $1664525, %rdi, %rdi
    add $1013904223, %rdi
    mov %rdi, %r10
    shr $20, %r10
    and %rcx, %r10
AT random_stall
    mov 8(%rdx,%r10), %r11
AT random_next
    mov (%rdx), %r8
    xor %r8, %rax
    dec %rsi
    jnz 1b
AT random_to
    mov %rdi, %rax
    ret
    .size skid_random, . - skid_random

    .section .note.GNU-stack,"",@progbits
