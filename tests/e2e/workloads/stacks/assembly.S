/* SPDX-License-Identifier: Apache-2.0 */
/* By hand, with CFI: pushes and pops around burning loops, two ways out with remembered states, a frame register that is
 * not rbp for a while, and data between the functions. */
	.text
	.macro burn
	mov	$400000, %ecx
9:	dec	%ecx
	jnz	9b
	.endm

	.globl	by_hand
	.type	by_hand, @function
by_hand:
	.cfi_startproc
	burn
	push	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	burn
	push	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	xor	%ebp, %ebp		/* no frame pointer: any number */
	burn
	sub	$1000, %rsp
	.cfi_adjust_cfa_offset 1000
	call	by_hand_inner
	burn
	test	$1, %edi
	jz	1f
	.cfi_remember_state
	add	$1000, %rsp
	.cfi_adjust_cfa_offset -1000
	pop	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	burn
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	.cfi_restore_state
1:	burn
	add	$1000, %rsp
	.cfi_adjust_cfa_offset -1000
	pop	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	burn
	ret
	.cfi_endproc
	.size	by_hand, . - by_hand

	.zero	100

	.type	by_hand_inner, @function
by_hand_inner:
	.cfi_startproc
	enter	$64, $0
	.cfi_def_cfa %rbp, 16
	.cfi_offset %rbp, -16
	burn
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	burn
	ret
	.cfi_endproc
	.size	by_hand_inner, . - by_hand_inner
	.section .note.GNU-stack, "", @progbits
