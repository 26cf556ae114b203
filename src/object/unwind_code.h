/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of code by its bytes alone, where tables say nothing: entry code and the child side of clone, which
 * have no caller, and what signal handlers return to. */
#pragma once

#include <linux/types.h>

#include "base/base.h"

#define CODE_BEFORE 32 /* bytes in front of a place and behind it */
#define CODE_AFTER 16

/**
 * code_is_clone_child - is @at behind the call of a new thread's function?
 * @at: CODE_BEFORE bytes in front of it and CODE_AFTER from it on are readable, zero where the file has none
 */
bool code_is_clone_child(uint16_t machine, const uint8_t *at);

/** code_find_sigreturn - where in @size bytes the call of rt_sigreturn begins, or -1. */
ptrdiff_t code_find_sigreturn(uint16_t machine, const uint8_t *code, size_t size);
