/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of code by its bytes alone, where tables say nothing: entry code and the child side of clone, which
 * have no caller, and what signal handlers return to. */
#pragma once

#include <linux/types.h>

#include "base/str.h"

#define CODE_BEFORE 32 /* bytes in front of a place and behind it */
#define CODE_AFTER 16
#define CODE_ENTRY_SIZE 96

/**
 * code_is_clone_child - is @at behind the call of a new thread's function?
 * @at: CODE_BEFORE bytes in front of it and CODE_AFTER from it on are readable, zero where the file has none
 */
bool code_is_clone_child(uint16_t machine, const uint8_t *at);

/**
 * code_fork_size - does the system call of clone stand in front of the child's code?
 * @child: CODE_BEFORE bytes in front of it and 2 from it on are readable
 * Return: bytes from behind the code that leads to the system call up to @child; in them the child has no caller, and
 * the parent is as it was before. 0: it does not. Source: glibc 2.36, sysdeps/unix/sysv/linux/x86_64/clone{,3}.S;
 * musl 1.2.3, src/thread/x86_64/clone.s.
 */
size_t code_fork_size(uint16_t machine, const uint8_t *child);

/** code_find_sigreturn - where in @size bytes the call of rt_sigreturn begins, or -1. */
ptrdiff_t code_find_sigreturn(uint16_t machine, const uint8_t *code, size_t size);

/**
 * code_entry_size - how much of the code at a program's entry point is proven to have no caller
 * @entry: CODE_ENTRY_SIZE bytes, zero where the file has none
 *
 * Known are glibc's _start and ld.so's, musl's _start and _dlstart. Return: bytes from the entry point on, up to behind
 * the last call; 0: nothing is proven. Sources: glibc 2.36 sysdeps/{x86_64,aarch64}/start.S and dl-machine.h
 * (RTLD_START); musl 1.2.3 arch/{x86_64,aarch64}/crt_arch.h.
 */
size_t code_entry_size(uint16_t machine, const uint8_t entry[CODE_ENTRY_SIZE]);

/** code_is_glibc_entry - does @entry start as glibc's programs do, and not as ld.so's or musl's? */
bool code_is_glibc_entry(uint16_t machine, const uint8_t entry[CODE_ENTRY_SIZE]);

/** code_musl_entry_size - does @entry start as musl's programs do? Return: bytes up to behind its call, or 0. */
size_t code_musl_entry_size(uint16_t machine, const uint8_t entry[CODE_ENTRY_SIZE]);

/**
 * code_exit_call_size - is @code, CODE_START_SIZE bytes, musl's libc_start_main_stage2?
 * That is: main is called through a register and exit with what it returned, and before that nothing returns.
 * Return: bytes up to behind the last call, or 0. Source: musl 1.2.3, src/env/__libc_start_main.c.
 */
size_t code_exit_call_size(uint16_t machine, const uint8_t *code, size_t size);
#define CODE_START_SIZE 128

#define CODE_RETURN_X86 0xc3
#define CODE_CALL_X86 0xe8    /* call rel32 */
#define CODE_CONTEXT_SIZE 128 /* bytes of a function that hold all of glibc's __start_context */

/**
 * code_start_context_size - is @code, CODE_CONTEXT_SIZE bytes, glibc's __start_context?
 * Return: its size, or 0. code_find_start_context() says where in @size bytes one may begin, or -1.
 */
size_t code_start_context_size(uint16_t machine, const uint8_t code[CODE_CONTEXT_SIZE]);
ptrdiff_t code_find_start_context(uint16_t machine, const uint8_t *code, size_t size);

/**
 * code_fcontext_start - does the end of Boost's make_fcontext lie around @at, the return address of every coroutine?
 * @at: CODE_BEFORE bytes in front of it and CODE_AFTER from it on are readable
 *
 * Return: how many bytes before @at the code begins that calls a coroutine's function, and with *size how many from
 * there on have no caller; 0: it is something else. Source: Boost 1.74 to 1.83,
 * libs/context/src/asm/make_x86_64_sysv_elf_gas.S.
 */
size_t code_fcontext_start(uint16_t machine, const uint8_t *at, size_t *size);

/** code_is_root_name - functions that nothing calls: entry code of programs and loaders, Go's entry and stack roots. */
bool code_is_root_name(struct str name);
