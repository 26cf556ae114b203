/* SPDX-License-Identifier: Apache-2.0 */
/* The native walk's step across code of Ruby's compiler, over a stack and code that are the input: it moves towards the
 * stack's beginning or not at all, to an address behind a call in the interpreter's file. Layout: flags (a byte: 1
 * leaf, 2 guessed before), bytes of code (a byte, eight for each), the code, then the stack. */
#include "fuzz.h"

#include <linux/types.h>

#include "base/cur.h"
#include "walk/walk_ruby.h"

#define CODE 0x7f56b5833000ULL
#define STACK 0x7ffd00000000ULL
#define COMPILED 0x7f56c5e6c100ULL

struct memory {
	const uint8_t *code, *stack;
	size_t code_size, stack_size;
};

static int memory_read(void *self, void *dst, __u32 size, __u64 at)
{
	const struct memory *m = self;

	if (at - CODE < m->code_size && size <= m->code_size - (at - CODE))
		memcpy(dst, m->code + (at - CODE), size);
	else if (at - STACK < m->stack_size && size <= m->stack_size - (at - STACK))
		memcpy(dst, m->stack + (at - STACK), size);
	else
		return -EFAULT;
	return 0;
}

/* Calls that end at @at of the code: near ones by a displacement, and those by a register or an operand in memory.
 * Source: Intel's manual, volume 2A, CALL. */
static bool is_behind_call(const struct memory *m, uint64_t at)
{
	if ((at >= 5 && m->code[at - 5] == 0xe8) || (at && m->code[at - 1] == 0x90))
		return true;
	for (uint64_t size = 2; size <= 7 && size <= at; size++)
		if (m->code[at - size] == 0xff && (m->code[at - size + 1] >> 3 & 7) == 2)
			return true;
	return false;
}

static void check_moved(const struct walk *w, const struct memory *m)
{
	must(w->pc - CODE < m->code_size && is_behind_call(m, w->pc - CODE));
	must(w->sp > STACK && w->sp <= STACK + 8 * (WALK_RUBY_SAVED_MAX + 1ULL));
	must(w->is_return && !w->is_leaf && !w->count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cur in = cur_of(data, size);
	const uint8_t *head = cur_bytes(&in, 2);
	struct memory m = { 0 };
	struct walk_world world = { .read = memory_read, .self = &m };
	struct walk *w = calloc(1, sizeof(*w));
	struct abi_ruby info = { .code_low = CODE };
	enum walk_next next;

	must(w);
	if (head)
		m.code_size = 8 * (size_t)head[1];
	m.code = cur_bytes(&in, m.code_size);
	if (head && m.code) {
		m.stack = in.pos;
		m.stack_size = (size_t)(in.end - in.pos);
		info.code_size = m.code_size;
		w->world = &world;
		w->pc = COMPILED;
		w->sp = STACK;
		w->is_leaf = head[0] & 1;
		w->is_return = !w->is_leaf;
		w->guessed = (head[0] & 2) != 0;
		next = walk_ruby_compiled_step(w, &info);
		must(next == WALK_MORE || next == WALK_DONE || next == WALK_SWITCH);
		if (next == WALK_MORE)
			check_moved(w, &m);
		else
			must(w->pc == COMPILED && w->sp == STACK);
		/* What the entry saved is no guess, unless it was one before. */
		if (next == WALK_MORE && w->sp == STACK + 8 * (WALK_RUBY_SAVED + 1))
			must(w->guessed == ((head[0] & 2) != 0));
	}
	free(w);
	return 0;
}
