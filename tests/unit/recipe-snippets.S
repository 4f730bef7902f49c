/* SPDX-License-Identifier: BSD-3-Clause */
/* Code with known answers for the recipe tests. BEGIN/END bound a function, AT names a pc inside it. */
    .text
    .macro BEGIN name
    .balign 16
    .globl \name
    .hidden \name
\name:
    .endm
    .macro END name
    .globl \name\()_end
    .hidden \name\()_end
\name\()_end:
    .endm
    .macro AT name
    .globl \name
    .hidden \name
\name:
    .endm

BEGIN rc_direct
    mov 16(%rdi,%rsi,8), %rax
AT rc_direct_load
    movl $1, -4(%rdx)
AT rc_direct_store
    addq $1, (%rcx)
AT rc_direct_rmw
    lea 8(%rdi), %r8
AT rc_direct_lea
    prefetcht0 (%rdi)
AT rc_direct_prefetch
    mov rc_direct(%rip), %eax
AT rc_direct_rip
    mov %fs:0x28, %rax
AT rc_direct_tls
    mov (%edi), %eax
AT rc_direct_addr32
    cmpq $0, 24(%rbx)
    jne 1f
AT rc_direct_fused
    mov (%rsi), %ecx
    nopw 0(%rax,%rax,1)
AT rc_direct_nop
1:  ret
END rc_direct

BEGIN rc_undo
    mov (%rdi), %eax
    add $8, %rdi
AT rc_undo_add
    mov 8(%rsi), %rsi
AT rc_undo_lost
    mov %rdx, %r9
    mov 8(%rdx), %rdx
AT rc_undo_copy
    mov 4(%r10), %eax
    add $16, %r10
    dec %r10
    imul %eax, %eax
AT rc_undo_chain
    movsd (%rcx), %xmm0
    lea -32(%rcx), %rcx
    mulsd %xmm0, %xmm0
AT rc_undo_lea
    movsd 8(%r11), %xmm1
    add %r8, %r11
    addsd %xmm1, %xmm0
AT rc_undo_stride
    mov (%rbx,%rdi,4), %eax
    add $1, %rdi
    imul %eax, %eax
AT rc_undo_index
    movsd 8(%r10,%rax), %xmm1
    add %r9, %r10
    addsd %xmm1, %xmm0
AT rc_undo_moved
    ret
END rc_undo

BEGIN rc_index
    mov %rbx, %rax
    shl $4, %rax
    mov 8(%r10,%rax,1), %rax
AT rc_index_shift
    movslq %edi, %rdi
    mov %edx, %ecx
    mov (%rsi,%rcx,4), %ecx
AT rc_index_extended
    imul $24, %r8, %r9
    movzbl 3(%r11,%r9), %r9d
AT rc_index_product
    lea 2(%r8,%r8,4), %r9
    mov (%r11,%r9,8), %r9
AT rc_index_lea
    and $15, %eax
    movzbl (%rdi,%rax), %eax
AT rc_index_dropped
    movzbl (%rax,%rdi), %eax
AT rc_index_left
    mov %rdx, %rcx
    and %rsi, %rcx
    mov 8(%rdi,%rcx,8), %rcx
AT rc_index_masked
    ret
END rc_index

BEGIN rc_field
    mov %rdx, %rcx
    and $0xff0, %ecx
    mov 8(%rdi,%rcx,8), %rcx
AT rc_field_mask
    mov %rax, %rdx
    shr $20, %rdx
    and $0xfff, %edx
    mov (%rsi,%rdx,4), %edx
AT rc_field_shift
    mov %eax, %edx
    movzbl %dl, %edx
    add %rsi, %rdx
    movzbl (%rdx), %edx
AT rc_field_sum
    mov %rax, %rdx
    and $0xff0, %edx
    shr $4, %edx
    mov (%rsi,%rdx,4), %edx
AT rc_field_within
    shr %cl, %rax
    lea 4(%rbx,%rax,2), %rcx
    movzbl (%rcx), %eax
    movzbl 1(%rcx), %ecx
AT rc_field_start
    ret
END rc_field

BEGIN rc_stack
    push %rbx
AT rc_stack_push
    pop %rbx
AT rc_stack_pop
    call rc_direct
AT rc_stack_call
    push 8(%rdi)
AT rc_stack_push_memory
    leave
AT rc_stack_leave
    ret
END rc_stack

BEGIN rc_syscall
AT rc_syscall_entry
    mov $39, %eax
AT rc_syscall_constant
    syscall
AT rc_syscall_after
    ret
END rc_syscall

BEGIN rc_string
    rep movsq
AT rc_string_after_movs
    rep stosb
AT rc_string_after_stos
    movsb
AT rc_string_single
    ret
END rc_string

BEGIN rc_chase
1:  mov 8(%rdi), %rdi
AT rc_chase_next
    add %rdi, %rax
    dec %rsi
    jnz 1b
    ret
END rc_chase

BEGIN rc_unrolled
1:  mov 8(%rdi), %rdi
AT rc_unrolled_first
    mov 8(%rdi), %rdi
AT rc_unrolled_second
    mov 8(%rdi), %rdi
    mov 8(%rdi), %rdi
AT rc_unrolled_last
    add $-4, %rsi
    jnz 1b
    ret
END rc_unrolled

BEGIN rc_tree
1:  test %rdi, %rdi
AT rc_tree_test
    je 3f
    cmp %rsi, 32(%rdi)
    jl 2f
    mov 24(%rdi), %rdi
AT rc_tree_right
    jmp 1b
2:  mov 16(%rdi), %rdi
AT rc_tree_left
    jmp 1b
3:  ret
END rc_tree

BEGIN rc_other_object
    mov 8(%rdi), %rdi
AT rc_other_object_after
    mov (%rdi,%rsi,8), %rsi
AT rc_other_object_index
    ret
END rc_other_object

/* An addition by compare and exchange, whose second try lies apart, and a maximum that tries again at once. */
BEGIN rc_retry
    mov (%rsi), %rdx
AT rc_retry_try
    movq %rdx, %xmm1
    mov %rdx, %rax
    addsd %xmm0, %xmm1
    movq %xmm1, %r8
    lock cmpxchg %r8, (%rsi)
AT rc_retry_done
    jne 2f
    mov (%rdi), %rax
AT rc_retry_compare
    cmp %rcx, %rax
    jge 3f
    lock cmpxchg %rcx, (%rdi)
    jne rc_retry_compare
3: ret
2: mov %rax, %rdx
    jmp rc_retry_try
END rc_retry

BEGIN rc_loop
    mov (%r8), %r9
1:
AT rc_loop_head
    mov %rax, %rcx
    and $255, %ecx
AT rc_loop_compute
    add $8, %rdx
    cmp (%rdx), %rcx
    jne 1b
    ret
END rc_loop

BEGIN rc_depend
1:  movsd (%rdi,%rax,8), %xmm0
    mulsd %xmm1, %xmm0
    add $1, %rax
    addsd %xmm0, %xmm2
AT rc_depend_add
    cmp %rax, %rsi
    jne 1b
    ret
END rc_depend

BEGIN rc_gather
    vgatherdps %ymm2, 4(%rax,%ymm1,4), %ymm0
AT rc_gather_dps
    vgatherqpd %ymm2, (%rax,%ymm3,8), %ymm0
AT rc_gather_qpd
    ret
END rc_gather

BEGIN rc_switch
    cmp $2, %edi
    ja 3f
    mov %edi, %edi
    lea 9f(%rip), %rdx
    movslq (%rdx,%rdi,4), %rax
    add %rdx, %rax
    jmp *%rax
1:
AT rc_switch_case
    mov (%rsi), %eax
    ret
2:  xor %eax, %eax
    ret
3:  mov $3, %eax
    ret
END rc_switch
    .section .rodata
    .balign 4
9:  .long 1b - 9b, 2b - 9b, 1b - 9b
    .text

BEGIN rc_frame
    mov -8(%rbp), %rax
    mov 4(%rax), %eax
AT rc_frame_pointer
    mov -16(%rbp), %rdx
    lea 0(,%rdx,8), %rcx
    mov -24(%rbp), %rax
    add %rcx, %rax
    mov (%rax), %rax
AT rc_frame_element
    ret
END rc_frame

BEGIN rc_garbage
    jmp 1f
    .byte 0x06, 0x07
1:  mov (%rdi), %rax
AT rc_garbage_after
    ud2
AT rc_garbage_dead
    nop
    ret
END rc_garbage

/* Loops for real sampling: one access misses, the others around it always hit.
 * chase(node rdi, n rsi, small rdx), random(seed rdi, n rsi, big rdx, mask rcx, small r8), store likewise */
BEGIN rs_chase
1:  mov (%rdx), %r8
    mov 8(%rdi), %rdi
    mov 16(%rdx), %r9
    add %rdi, %rax
    add %r8, %r9
    dec %rsi
    jnz 1b
    mov %rdi, %rax
    ret
END rs_chase

BEGIN rs_random
1:  imul $1664525, %rdi, %rdi
    add $1013904223, %rdi
    mov %rdi, %r10
    shr $20, %r10
    and %rcx, %r10
    mov (%r8), %r9
    mov 8(%rdx,%r10), %r11
    mov 8(%r8), %r9
    xor %r9, %rax
    dec %rsi
    jnz 1b
    mov %rdi, %rax
    ret
END rs_random

BEGIN rs_store
1:  imul $1664525, %rdi, %rdi
    add $1013904223, %rdi
    mov %rdi, %r10
    shr $20, %r10
    and %rcx, %r10
    mov (%r8), %r9
    movq $1, (%rdx,%r10)
    xor %r9, %rax
    dec %rsi
    jnz 1b
    mov %rdi, %rax
    ret
END rs_store

/* Nested loops: the heads of the inner ones are reached from a load as well as round the loop. */
BEGIN rc_entry
1:  mov (%rbx), %rbx
    mov $4, %edx
    add 8(%rbx), %rsi
2:
AT rc_entry_constant
    imul $3, %rcx, %rcx
    sub $1, %edx
    jne 2b
    mov %r9, %r10
    add 24(%rbx), %rsi
3:
AT rc_entry_copy
    imul $3, %rcx, %rcx
    add $8, %r10
    cmp %r11, %r10
    jne 3b
    add 32(%rbx), %rsi
4:
AT rc_entry_unguarded
    imul $3, %rcx, %rcx
    cmp %r11, %rcx
    jne 4b
    dec %rdi
    jnz 1b
    ret
END rc_entry

    .section .note.GNU-stack,"",@progbits
