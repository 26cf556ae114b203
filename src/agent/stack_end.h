/* SPDX-License-Identifier: Apache-2.0 */
/* Is a stack whole? The one place that decides it, from what the walk, the placing and the symbols have found out. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "base/base.h"

/* How a stack ended, as windows say it: the reasons of the walk, and what only shows when the whole stack is looked at.
 */
enum stack_end {
	STACK_END_WHOLE = ABI_END_COMPLETE,
	STACK_END_UNPROVEN = ABI_END_UNPROVEN_ROOT,
	STACK_END_GUESSED = ABI_END_COUNT,
	STACK_END_KERNEL_CUT, /* frames are missing between the user part and the leaf */
	STACK_END_RUNTIME,    /* + enum abi_runtime_end: frames of a language runtime are missing, or out of order */
	STACK_END_COUNT = STACK_END_RUNTIME + ABI_RUNTIME_END_COUNT,
};

struct stack_facts {
	uint8_t walk_end; /* enum abi_end */
	bool has_user;    /* there is a user part at all */
	bool root_proven; /* the outermost user frame lies in entry code: symbols_root() */
	bool guessed;     /* a frame was found by a rule that can be wrong */
	bool kernel_cut;
	uint8_t runtime_end; /* enum abi_runtime_end */
};

/**
 * stack_end_of - Return: WHOLE only with a proof and without a guess or a hole; GUESSED without a hole
 *
 * A walk that says COMPLETE met a row that says so of its code (the return address is undefined there), or there is no
 * user stack: that is a proof. A walk that ended for any other reason is proven by the code it ended in, whatever it
 * lacked there. A guess before the root makes the root itself a guess. Missing frames of a language runtime leave a
 * hole, no matter where the native part ended. If all of them are missing, that reason comes first. A stack with a hole
 * is cut, whatever was guessed.
 */
enum stack_end stack_end_of(const struct stack_facts *f);
/** stack_end_name - of a stack that is cut: the reason. */
const char *stack_end_name(enum stack_end end);
/** stack_end_is_cut - neither WHOLE nor GUESSED. */
static inline bool stack_end_is_cut(enum stack_end end)
{
	return end != STACK_END_WHOLE && end != STACK_END_GUESSED;
}
