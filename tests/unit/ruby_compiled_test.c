/* SPDX-License-Identifier: Apache-2.0 */
/* Code of Ruby's compiler: where it is, by what /proc/PID/maps says, and the step across it. */
#include "support.h"

#include "runtime/ruby/ruby_int.h"
#include "walk/walk_ruby.h"

#define LIBRARY \
	"7f56b5833000-7f56b5a8d000 r-xp 00033000 fe:00 15631006                   /usr/lib/libruby-3.1.so.3.1.2\n"
#define HEAP "560e33a4f000-560e33ffe000 rw-p 00000000 00:00 0                          [heap]\n"
#define WHOLE "7f56b5e6c000-7f56c5e6c000 r-xp 00000000 00:00 0 \n"
#define NAMED "                          [anon:Ruby:rb_yjit_reserve_addr_space]\n"

static void ranges(void **state)
{
	static const struct {
		const char *name, *maps;
		int want;
		uint64_t low, size;
	} cases[] = {
		{ "one piece", HEAP WHOLE LIBRARY, 1, 0x7f56b5e6c000, 0x10000000 },
		{ "page by page, where memory has names",
		  "7f0000000000-7f0000010000 r-xp 00000000 00:00 0" NAMED
		  "7f0000010000-7f0000011000 rw-p 00000000 00:00 0" NAMED
		  "7f0000011000-7f0004000000 ---p 00000000 00:00 0" NAMED LIBRARY,
		  1, 0x7f0000000000, 0x4000000 },
		{ "not executable yet", "7f0000000000-7f0004000000 ---p 00000000 00:00 0" NAMED, 0, 0, 0 },
		{ "as it is being written", "7f56b5e6c000-7f56c5e6c000 rw-p 00000000 00:00 0 \n", -EAGAIN, 0, 0 },
		{ "not so another's", "7f56b5e6c000-7f56c5e6c000 rw-p 00000000 00:00 0    [heap]\n", 0, 0, 0 },
		{ "a page of it is being written",
		  "7f0000000000-7f0000080000 r-xp 00000000 00:00 0 \n7f0000080000-7f0000081000 rw-p 00000000 00:00 0 \n"
		  "7f0000081000-7f0000180000 r-xp 00000000 00:00 0 \n7f0000180000-7f0000190000 rw-p 00000000 00:00 0 "
		  "\n",
		  1, 0x7f0000000000, 0x180000 },
		{ "much data lies between two",
		  "7f0000000000-7f0000100000 r-xp 00000000 00:00 0 \n7f0000100000-7f0000200000 rw-p 00000000 00:00 0 \n"
		  "7f0000200000-7f0000210000 r-xp 00000000 00:00 0 \n",
		  1, 0x7f0000000000, 0x100000 },
		{ "a small one is another's", "7f56b5e6c000-7f56b5e6d000 r-xp 00000000 00:00 0 \n" LIBRARY, 0, 0, 0 },
		{ "what can be written at the same time, too", "7f56b5e6c000-7f56c5e6c000 rwxp 00000000 00:00 0 \n", 0,
		  0, 0 },
		{ "no compiler", HEAP LIBRARY, 0, 0, 0 },
		{ "malformed lines", "x\n" WHOLE "7f56b5e6", 1, 0x7f56b5e6c000, 0x10000000 },
		{ "nothing", "", 0, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct abi_code_range out[ABI_CODE_RANGES] = { 0 };

		print_message("  %s\n", cases[i].name);
		assert_int_equal(ruby_compiled_ranges(str_of(cases[i].maps), out), cases[i].want);
		assert_int_equal(out[0].low, cases[i].low);
		assert_int_equal(out[0].size, cases[i].size);
	}
}

#define STACK 0x7ffd00000000ULL
#define STACK_WORDS 128
#define CODE 0x7f56b5833000ULL
#define CALLED (CODE + 16) /* behind a call of a register */
#define COMPILED 0x7f56b5e6c100ULL

struct memory {
	uint64_t stack[STACK_WORDS];
	uint8_t code[64];
};

static int memory_read(void *self, void *dst, __u32 size, __u64 at)
{
	const struct memory *m = self;

	if (at - STACK < sizeof(m->stack) && size <= sizeof(m->stack) - (at - STACK))
		memcpy(dst, (const char *)m->stack + (at - STACK), size);
	else if (at - CODE < sizeof(m->code) && size <= sizeof(m->code) - (at - CODE))
		memcpy(dst, m->code + (at - CODE), size);
	else
		return -EFAULT;
	return 0;
}

static void crosses_by_what_the_entry_saved(void **state)
{
	static const struct {
		const char *what;
		bool is_leaf, found, guessed;
		uint32_t at; /* of the return address, in words */
	} cases[] = {
		{ "as it runs", true, true, false, 3 },
		{ "in a call", false, true, false, 3 },
		{ "in the entry, before anything is saved", true, true, true, 0 },
		{ "one is saved", true, true, true, 1 },
		{ "a call where something else is on the stack", false, true, true, 4 },
		{ "too far away", true, false, false, 8 },
	};
	static struct walk w;
	const struct abi_ruby info = { .code_low = CODE, .code_size = 64 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct memory m = { .code = { [14] = 0xff, [15] = 0xd0 } };
		struct walk_world world = { .read = memory_read, .self = &m };

		print_message("  %s\n", cases[i].what);
		for (size_t k = 0; k < 8; k++)
			m.stack[8 + k] = k % 2 ? CODE + 32 : STACK + 512; /* of the library, but behind no call */
		m.stack[8 + cases[i].at] = CALLED;
		memset(&w, 0, sizeof(w));
		w.world = &world;
		w.pc = COMPILED;
		w.sp = STACK + 64;
		w.fp = 4711;
		w.is_leaf = cases[i].is_leaf;
		w.is_return = !cases[i].is_leaf;
		assert_int_equal(walk_ruby_compiled_step(&w, &info), cases[i].found ? WALK_MORE : WALK_SWITCH);
		assert_int_equal(w.count, 0); /* it stands for the loop */
		if (!cases[i].found)
			continue;
		assert_int_equal(w.guessed, cases[i].guessed);
		assert_int_equal(w.pc, CALLED);
		assert_int_equal(w.sp, STACK + 64 + 8 * (cases[i].at + 1));
		assert_int_equal(w.fp, 4711);
		assert_true(w.is_return && !w.is_leaf);
	}
}

static void ends_where_the_stack_does(void **state)
{
	static struct walk w;
	struct memory m = { 0 };
	struct walk_world world = { .read = memory_read, .self = &m };
	const struct abi_ruby info = { .code_low = CODE, .code_size = 64 };

	(void)state;
	w.world = &world;
	w.pc = COMPILED;
	w.is_leaf = 1;
	for (uint64_t left = 0; left < 8; left++) {
		w.sp = STACK + sizeof(m.stack) - 8 * left;
		assert_int_equal(walk_ruby_compiled_step(&w, &info), WALK_DONE);
		assert_int_equal(w.end, ABI_END_READ_FAILED);
	}
	w.sp = STACK + 1;
	assert_int_equal(walk_ruby_compiled_step(&w, &info), WALK_DONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges),
		cmocka_unit_test(crosses_by_what_the_entry_saved),
		cmocka_unit_test(ends_where_the_stack_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
