/* SPDX-License-Identifier: Apache-2.0 */
/* The shape of greenlet's code that unwind_greenlet_test.c looks for, without anything else of it. Built as shared
 * libraries, NAMED as from 2.0 on, otherwise as before; BARE: the result of g_switchstack is not compared with 1; INIT:
 * the name of the module's function. Labels that begin with at_ are what the test asks for.
 *
 * tests/corpus/cfi/greenlet_aarch64: aarch64-linux-gnu-gcc -shared -nostdlib -s -Wl,-z,noseparate-code
 * -Wl,-z,max-page-size=4096 -Wl,--hash-style=gnu -Wl,--build-id=none; greenlet_x86: the same with -DNAMED for x86-64,
 * greenlet_old_x86: without it. The first byte of a seed says what it is: fuzz_cfi.c. */

#ifndef INIT
#define INIT PyInit__greenlet
#endif
#define ENTRY _ZN8greenlet12UserGreenlet15inner_bootstrapEP9_greenletP7_object

.macro LABEL name
	.globl \name
\name:
.endm

.macro FUNCTION name
	.p2align 4
	.type \name, @function
\name:
	.cfi_startproc
.endm

.macro END name
	.cfi_endproc
	.size \name, . - \name
.endm

	.section .note.GNU-stack, "", %progbits
	.text

#ifdef __x86_64__
FUNCTION slp_save_state
	xorl %eax, %eax
	ret
END slp_save_state

FUNCTION slp_restore_state
	ret
END slp_restore_state

FUNCTION slp_switch
	pushq %rbp
	.cfi_adjust_cfa_offset 8
	movq %rsp, %rdi
	call slp_save_state
	testl %eax, %eax
	jne 1f
LABEL at_move
	addq %rax, %rsp
LABEL at_moved
	addq %rax, %rbp
	call slp_restore_state
LABEL at_restored
	xorq %rax, %rax
	popq %rbp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_adjust_cfa_offset 8
LABEL at_not_saved
1:	movl $-1, %eax
	popq %rbp
	.cfi_adjust_cfa_offset -8
	ret
END slp_switch

#ifdef NAMED
	.globl g_switchstack
#endif
FUNCTION g_switchstack
	pushq %rbx
	.cfi_adjust_cfa_offset 8
LABEL at_switch
	call slp_switch
LABEL at_switched
	testl %eax, %eax
	popq %rbx
	.cfi_adjust_cfa_offset -8
	ret
END g_switchstack

#ifdef NAMED
	.globl ENTRY
FUNCTION ENTRY
	pushq %rbx
	.cfi_adjust_cfa_offset 8
	call *%rsi
LABEL at_entry_end
	hlt
END ENTRY
#endif

FUNCTION g_initialstub
	pushq %rbx
	.cfi_adjust_cfa_offset 8
	testq %rdi, %rdi
	je 2f
LABEL at_before
	call *%rdi
	call g_switchstack@PLT
LABEL at_switched_to
#ifndef BARE
	movl %eax, %ebx
	cmpl $1, %eax
	je 3f
#endif
LABEL at_parent
	call *%rdi
2:	popq %rbx
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_adjust_cfa_offset 8
LABEL at_new
3:
#ifdef NAMED
	call *%rdi
LABEL at_call
	call ENTRY@PLT
LABEL at_called
#else
	call *%rdi
4:	call *%rsi
LABEL at_again
	jmp 4b
#endif
	hlt
END g_initialstub

FUNCTION g_switch
	call g_switchstack
LABEL at_other
	ret
END g_switch

	.globl INIT
FUNCTION INIT
	ret
END INIT
#elif defined(__aarch64__)
FUNCTION slp_save_state
	mov w0, #0
	ret
END slp_save_state

FUNCTION slp_restore_state
	ret
END slp_restore_state

FUNCTION slp_switch
	stp x29, x30, [sp, #-16]!
	.cfi_adjust_cfa_offset 16
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	bl slp_save_state
	cbnz w0, 1f
LABEL at_move
	add sp, sp, x19
LABEL at_moved
	add x29, x29, x19
	bl slp_restore_state
LABEL at_restored
	mov w0, #0
	ldp x29, x30, [sp], #16
	.cfi_adjust_cfa_offset -16
	ret
	.cfi_adjust_cfa_offset 16
LABEL at_not_saved
1:	mov w0, #-1
	ldp x29, x30, [sp], #16
	.cfi_adjust_cfa_offset -16
	ret
END slp_switch

FUNCTION g_switchstack
	stp x29, x30, [sp, #-16]!
	.cfi_adjust_cfa_offset 16
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
LABEL at_switch
	bl slp_switch
LABEL at_switched
	ldp x29, x30, [sp], #16
	.cfi_adjust_cfa_offset -16
	ret
END g_switchstack

FUNCTION g_initialstub
	stp x29, x30, [sp, #-16]!
	.cfi_adjust_cfa_offset 16
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	tbz w1, #3, 2f
LABEL at_before
	blr x1
	bl g_switchstack
LABEL at_switched_to
	cmp w0, #1
	b.ne 2f
LABEL at_new
	blr x1
4:	blr x2
	b 4b
LABEL at_parent
2:	ldp x29, x30, [sp], #16
	.cfi_adjust_cfa_offset -16
	ret
END g_initialstub

FUNCTION g_switch
	b g_switchstack
END g_switch

	.globl INIT
FUNCTION INIT
	ret
END INIT
#endif
