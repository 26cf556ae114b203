/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that nothing calls because a coroutine begins with them. Ruby makes the stacks of its fibers and, from 3.3
 * on, of Ractors' and M:N threads so (coroutine/amd64/Context.h, coroutine_initialize(), the same from 2.7 to 3.4):
 *
 *	and  $-16,%A              the end of the new stack
 *	movq $0,-8(%A)            the caller's address of the function: none
 *	mov  %D,-8(%B)            its own address, by lea function(%rip),%D, for the return of the first switch
 *
 * Compilers put other instructions between these. Such code lies near the function, in the same source file. */
#pragma once

#include "object/elf.h"

#define COROUTINE_REACH KIB(256) /* bytes of code looked at before the function and behind it */

/**
 * coroutine_begins - does a coroutine begin with the function at @address?
 * @address: the file's own; of a byte that is the function's by .eh_frame_hdr
 *
 * It is a proof only of a frame without a caller: where 0 stands in its place. Other code may put 0 and an address side
 * by side, too. x86-64 only. Return: 1, 0, -ENOMEM or the reader's error. Cost: one pass over 2 * COROUTINE_REACH.
 */
int coroutine_begins(const struct elf *elf, uint64_t address) warn_unused;
