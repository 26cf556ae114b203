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

/** code_is_root_name - functions that nothing calls: entry code of programs and loaders, Go's entry and stack roots. */
bool code_is_root_name(struct str name);
