/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/stack_end.h"

static const char *const names[STACK_END_COUNT] = { [STACK_END_GUESSED] = "guessed",
						    [STACK_END_KERNEL_CUT] = "kernel-stack",
#define X(id, name, help) [ABI_END_##id] = name,
						    ABI_ENDS(X)
#undef X
#define X(id, name, help) [STACK_END_RUNTIME + ABI_RUNTIME_END_##id] = name,
							    ABI_RUNTIME_ENDS(X)
#undef X
};

static bool runtime_is_cut(uint8_t end)
{
	return end != ABI_RUNTIME_END_NONE && end != ABI_RUNTIME_END_WHOLE && end != ABI_RUNTIME_END_NO_STATE;
}

const char *stack_end_name(enum stack_end end)
{
	return names[end];
}

enum stack_end stack_end_of(const struct stack_facts *f)
{
	if (f->runtime_end == ABI_RUNTIME_END_NOT_READY)
		return (enum stack_end)(STACK_END_RUNTIME + f->runtime_end);
	if (f->has_user && f->walk_end != ABI_END_COMPLETE && !f->root_proven)
		return (enum stack_end)f->walk_end;
	if (runtime_is_cut(f->runtime_end))
		return (enum stack_end)(STACK_END_RUNTIME + f->runtime_end);
	if (f->kernel_cut)
		return STACK_END_KERNEL_CUT;
	return f->guessed ? STACK_END_GUESSED : STACK_END_WHOLE;
}
