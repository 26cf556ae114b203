/* SPDX-License-Identifier: Apache-2.0 */
/* Functions whose frame no unwind row can hold while they call others: it begins at what rax or rbx says, or at what an
 * expression finds in memory; and one whose rule is no longer true while it calls. */
	.text
	.macro burn
	mov	$400000, %ecx
9:	dec	%ecx
	jnz	9b
	.endm
	.macro function name
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc
	.endm
	.macro end name
	.cfi_endproc
	.size	\name, . - \name
	.endm

	/* As OpenSSL's AES-GCM: what it calls leaves rax alone. */
	function by_rax
	lea	8(%rsp), %rax
	.cfi_def_cfa %rax, 0
	push	%rbx
	.cfi_offset %rbx, -16
	and	$-128, %rsp
	xor	%ebx, %ebx
	call	keeps_rax
	mov	-16(%rax), %rbx
	.cfi_restore %rbx
	lea	-8(%rax), %rsp
	.cfi_def_cfa %rsp, 8
	ret
	end	by_rax

	function keeps_rax
	sub	$40, %rsp
	.cfi_adjust_cfa_offset 40
	burn
	add	$40, %rsp
	.cfi_adjust_cfa_offset -40
	ret
	end	keeps_rax

	/* As the loader's _dl_runtime_resolve: what it calls saves rbx somewhere. */
	function by_rbx
	push	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	mov	%rsp, %rbx
	.cfi_def_cfa_register %rbx
	and	$-64, %rsp
	sub	$512, %rsp
	call	saves_rbx
	mov	%rbx, %rsp
	.cfi_def_cfa_register %rsp
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	end	by_rbx

	function saves_rbx
	push	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	mov	$1, %ebx
	burn
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	leaf
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	burn
	ret
	end	saves_rbx

	/* CFA = *(rsp + 8 + r12 * 8) + 8 */
	function by_expression
	mov	%rsp, %rdx
	.cfi_def_cfa_register %rdx
	push	%r12
	.cfi_offset %r12, -16
	sub	$32, %rsp
	mov	$1, %r12d
	mov	%rdx, 8(%rsp, %r12, 8)
	.cfi_escape 0x0f, 10, 0x7c, 0, 0x33, 0x24, 0x77, 8, 0x22, 0x06, 0x23, 8
	call	leaf
	burn
	mov	8(%rsp, %r12, 8), %rdx
	.cfi_def_cfa %rdx, 8
	mov	-8(%rdx), %r12
	.cfi_restore %r12
	mov	%rdx, %rsp
	.cfi_def_cfa_register %rsp
	ret
	end	by_expression

	/* It says rax, and calls what changes rax: nobody can follow that, and none may say he did. */
	function by_lie
	lea	8(%rsp), %rax
	.cfi_def_cfa %rax, 0
	sub	$72, %rsp
	mov	%rax, 64(%rsp)
	call	changes_rax
	mov	64(%rsp), %rax
	lea	-8(%rax), %rsp
	.cfi_def_cfa %rsp, 8
	ret
	end	by_lie

	function changes_rax
	lea	24(%rsp), %rax
	burn
	ret
	end	changes_rax
	.section .note.GNU-stack, "", @progbits
