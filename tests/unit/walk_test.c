/* SPDX-License-Identifier: Apache-2.0 */
/* The native step over made-up memory: a page of code with calls in it, and a stack. */
#include "support.h"

#include <linux/types.h>

#include "walk/walk_native.h"

#define CODE UINT64_C(0x400000)
#define STACK UINT64_C(0x7ffd00000000)
#define STACK_WORDS 4096
#define UC_RBP 120 /* in the ucontext that a signal leaves on the stack */
#define UC_RSP 160 /* rip follows */
#ifdef WALK_X86_64
#define CALL 0xe8          /* call rel32 */
#define RET (CODE + 0x105) /* behind the call at CODE + 0x100 */
#else
#define CALL 0x94 /* bl, the last byte of four */
#define RET (CODE + 0x104)
#endif

struct memory {
	uint8_t code[4096];
	uint64_t stack[STACK_WORDS];
	struct walk_world world;
	struct walk walk;
};

static int memory_read(void *self, void *dst, __u32 size, __u64 at)
{
	const struct memory *m = self;

	if (at >= CODE && at - CODE <= sizeof(m->code) - size)
		memcpy(dst, m->code + (at - CODE), size);
	else if (at >= STACK && at - STACK <= sizeof(m->stack) - size)
		memcpy(dst, (const uint8_t *)m->stack + (at - STACK), size);
	else
		return -EFAULT;
	return 0;
}

static struct memory *memory_new(void)
{
	struct memory *m = calloc(1, sizeof(*m));

	must(m);
	memset(m->code, 0xcc, sizeof(m->code));
#ifdef WALK_X86_64
	m->code[0x100] = CALL;
#else
	m->code[0x103] = CALL;
#endif
	m->world = (struct walk_world){ .read = memory_read, .self = m };
	m->walk.world = &m->world;
	m->walk.mode = WALK_FP;
	m->walk.leaf[WALK_REG_PC] = CODE + 0x10;
	m->walk.leaf[WALK_REG_SP] = STACK;
	return m;
}

static void put_word(struct memory *m, uint64_t at, uint64_t value)
{
	m->stack[(at - STACK) / 8] = value;
}

/* A frame record at @at. */
static void put_record(struct memory *m, uint64_t at, uint64_t fp, uint64_t ret)
{
	put_word(m, at, fp);
	put_word(m, at + 8, ret);
}

static uint32_t run(struct memory *m, uint64_t fp, bool is_return)
{
	m->walk.leaf[WALK_REG_FP] = fp;
	m->walk.count = 0;
	walk_native_start(&m->walk, is_return);
	for (int turn = 0; turn < 2 * ABI_FRAMES_MAX; turn++) {
		if (walk_native_step(&m->walk) != WALK_MORE)
			return m->walk.count;
	}
	fail_msg("the walk does not end");
	return 0;
}

static void walks_a_chain(void **state)
{
	struct memory *m = memory_new();

	(void)state;
	put_record(m, STACK + 0x20, STACK + 0x60, RET);
	put_record(m, STACK + 0x60, STACK + 0x1000, RET); /* beyond the window */
	put_record(m, STACK + 0x1000, 0, RET);
	assert_int_equal(run(m, STACK + 0x20, false), 4);
	assert_int_equal(m->walk.frames[0].a, CODE + 0x10);
	assert_int_equal(m->walk.frames[0].flags, 0);
	for (int i = 1; i < 4; i++) {
		assert_int_equal(m->walk.frames[i].a, RET);
		assert_int_equal(m->walk.frames[i].kind, ABI_FRAME_USER);
		assert_int_equal(m->walk.frames[i].flags, ABI_FRAME_RETURN);
	}
	assert_int_equal(m->walk.end, ABI_END_UNPROVEN_ROOT);
	assert_int_equal(run(m, STACK + 0x20, true), 4);
	assert_int_equal(m->walk.frames[0].flags, ABI_FRAME_RETURN);
	free(m);
}

struct broken_case {
	const char *name;
	uint64_t fp;        /* at the leaf */
	uint64_t next, ret; /* the record there */
	uint32_t count;
	enum abi_end end;
	uint8_t flags; /* of the last frame */
};

static void broken_chains_end(void **state)
{
	static const struct broken_case cases[] = {
		{ "zero", 0, 0, 0, 1, ABI_END_UNPROVEN_ROOT, 0 },
		{ "misaligned", STACK + 0x21, 0, 0, 1, ABI_END_NO_FRAME_POINTER, 0 },
		{ "small number", 8, 0, 0, 1, ABI_END_NO_FRAME_POINTER, 0 },
		{ "not canonical", UINT64_C(0x8000000000000000), 0, 0, 1, ABI_END_NO_FRAME_POINTER, 0 },
		{ "top of memory", UINT64_C(0xfffffffffffffff8), 0, 0, 1, ABI_END_NO_FRAME_POINTER, 0 },
		{ "below the stack pointer", STACK - 16, 0, 0, 1, ABI_END_NO_FRAME_POINTER, 0 },
		{ "unmapped", STACK + 0x100000, 0, 0, 1, ABI_END_READ_FAILED, 0 },
		{ "half a record", STACK + STACK_WORDS * 8 - 8, 0, 0, 1, ABI_END_READ_FAILED, 0 },
		{ "last record of the stack", STACK + STACK_WORDS * 8 - 16, 0, RET, 2, ABI_END_UNPROVEN_ROOT, 1 },
		{ "itself", STACK + 0x20, STACK + 0x20, RET, 2, ABI_END_NO_PROGRESS, 1 },
		{ "backwards", STACK + 0x20, STACK, RET, 2, ABI_END_NO_PROGRESS, 1 },
		{ "overlapping", STACK + 0x20, STACK + 0x28, RET, 2, ABI_END_NO_PROGRESS, 1 },
		{ "no caller", STACK + 0x20, STACK + 0x40, 0, 1, ABI_END_UNPROVEN_ROOT, 0 },
		{ "caller in page zero", STACK + 0x20, STACK + 0x40, 1, 1, ABI_END_NO_FRAME_POINTER, 0 },
		{ "caller not behind a call", STACK + 0x20, STACK + 0x40, CODE + 0x200, 1, ABI_END_NO_FRAME_POINTER,
		  0 },
		{ "caller on the stack", STACK + 0x20, 0, STACK + 0x200, 1, ABI_END_NO_FRAME_POINTER, 0 },
		{ "caller's code not in memory", STACK + 0x20, 0, CODE + 0x9000, 2, ABI_END_UNPROVEN_ROOT, 3 },
		{ "libc's leftover 1", STACK + 0x20, 1, RET, 2, ABI_END_NO_FRAME_POINTER, 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct broken_case *c = &cases[i];
		struct memory *m = memory_new();

		print_message("  %s\n", c->name);
		if (c->fp - STACK < sizeof(m->stack) - 8 && !(c->fp & 7))
			put_record(m, c->fp, c->next, c->ret);
		assert_int_equal(run(m, c->fp, false), c->count);
		assert_int_equal(m->walk.end, c->end);
		assert_int_equal(m->walk.frames[c->count - 1].flags, c->flags);
		free(m);
	}
}

static void deep_chains_fill_the_record(void **state)
{
	struct memory *m = memory_new();

	(void)state;
	for (uint64_t i = 0; i + 3 < STACK_WORDS; i += 2)
		put_record(m, STACK + i * 8, STACK + (i + 2) * 8, RET);
	assert_int_equal(run(m, STACK, false), ABI_FRAMES_MAX);
	assert_int_equal(m->walk.end, ABI_END_FRAME_LIMIT);
	free(m);
}

#ifdef WALK_X86_64
struct leaf_case {
	const char *name, *code;
	uint64_t at_sp, above; /* words at sp and sp + 8 */
	bool skips;            /* the caller's frame record is taken for the own one */
};

/* Where the frame is not set up, the instruction says where the return address is. */
static void leaf_instructions(void **state)
{
	static const struct leaf_case cases[] = {
		{ "first instruction", "\x55\x48\x89\xe5", RET, 0, false },
		{ "first instruction behind a landing pad", "\xf3\x0f\x1e\xfa\x55", RET, 0, false },
		{ "behind the push", "\x48\x89\xe5\x90", STACK + 0x20, RET, false },
		{ "return", "\xc3\x90\x90\x90", RET, 0, false },
		{ "another push", "\x55\x53\x90\x90", RET, 0, true },
		{ "a move of another push", "\x48\x89\xe5\x90", STACK + 0x28, RET, true },
		{ "return to no call", "\xc3\x90\x90\x90", CODE + 0x200, 0, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct leaf_case *c = &cases[i];
		struct memory *m = memory_new();
		size_t length = strlen(c->code);

		print_message("  %s\n", c->name);
		memcpy(m->code + 0x10, c->code, length);
		m->code[0x180] = 0xe8;
		put_word(m, STACK, c->at_sp);
		put_word(m, STACK + 8, c->above);
		put_record(m, STACK + 0x20, 0, CODE + 0x185);
		assert_int_equal(run(m, STACK + 0x20, false), c->skips ? 2 : 3);
		assert_int_equal(m->walk.frames[1].a, c->skips ? CODE + 0x185 : RET);
		assert_int_equal(m->walk.frames[1].flags, ABI_FRAME_RETURN);
		free(m);
	}
}

/* The function at CODE + 0x400, called at CODE + 0x100 by call rel32, set up no frame. */
struct frameless_case {
	const char *name;
	size_t at; /* where the code bytes are put */
	const char *code;
	size_t size;
	size_t pc;
	uint64_t target; /* of the call in front of the word at sp */
	size_t slot;     /* words between sp and the return address */
	bool found;
};

static void put_call(struct memory *m, uint64_t ret, uint64_t target)
{
	uint32_t distance = (uint32_t)(target - ret);

	m->code[ret - CODE - 5] = 0xe8;
	memcpy(m->code + (ret - CODE - 4), &distance, 4);
}

static void functions_without_frames(void **state)
{
	static const struct frameless_case cases[] = {
		{ "leaf", 0x400, "\x31\xc0", 2, 0x420, CODE + 0x400, 0, true },
		{ "its first instruction", 0x400, "\x31\xc0", 2, 0x400, CODE + 0x400, 0, true },
		{ "with a frame", 0x400, "\x55\x48\x89\xe5", 4, 0x420, CODE + 0x400, 0, false },
		{ "with a frame, other encoding", 0x400, "\x55\x48\x8b\xec", 4, 0x420, CODE + 0x400, 0, false },
		{ "with room on the stack", 0x400, "\x48\x83\xec\x18", 4, 0x420, CODE + 0x400, 0, false },
		{ "another function", 0x400, "\x31\xc0", 2, 0x420, CODE + 0x430, 0, false },
		{ "too far", 0x400, "\x31\xc0", 2, 0x810, CODE + 0x400, 0, false },
		{ "between push and move", 0x400, "\x55\xb9\x64\0\0\0\x48\x89\xe5", 9, 0x401, CODE + 0x400, 1, true },
		{ "through the PLT", 0x300, "\xff\x25\xfa\x01\0\0", 6, 0x420, CODE + 0x300, 0, true },
		{ "through the PLT with a landing pad", 0x300, "\xf3\x0f\x1e\xfa\xff\x25\xf6\x01\0\0", 10, 0x420,
		  CODE + 0x300, 0, true },
		{ "through the PLT with a bound prefix", 0x300, "\xf3\x0f\x1e\xfa\xf2\xff\x25\xf5\x01\0\0", 11, 0x420,
		  CODE + 0x300, 0, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct frameless_case *c = &cases[i];
		struct memory *m = memory_new();
		uint64_t function = CODE + 0x400, outer = CODE + 0x145;

		print_message("  %s\n", c->name);
		memcpy(m->code + c->at, c->code, c->size);
		memcpy(m->code + 0x500, &function, 8); /* the slot of the PLT */
		put_call(m, RET, c->target);
		put_call(m, outer, CODE + 0x80);
		m->walk.leaf[WALK_REG_PC] = CODE + c->pc;
		put_word(m, STACK, c->slot ? STACK + 0x20 : RET);
		put_word(m, STACK + 8, RET);
		put_record(m, STACK + 0x20, 0, outer);
		assert_int_equal(run(m, STACK + 0x20, false), c->found ? 3 : 2);
		assert_int_equal(m->walk.frames[1].a, c->found ? RET : outer);
		assert_int_equal(m->walk.frames[m->walk.count - 1].a, outer);
		free(m);
	}
}

/* pop %rbp, more instructions, ret: the frame record at rbp is the caller's. */
static void behind_the_pop(void **state)
{
	struct memory *m = memory_new();

	(void)state;
	memcpy(m->code + 0x400, "\x55\x48\x89\xe5\x5d\x31\xc0\x31\xd2\xc3", 10);
	put_call(m, RET, CODE + 0x400);
	put_call(m, CODE + 0x145, CODE + 0x80);
	m->walk.leaf[WALK_REG_PC] = CODE + 0x405;
	put_word(m, STACK, RET);
	put_record(m, STACK + 0x20, 0, CODE + 0x145);
	assert_int_equal(run(m, STACK + 0x20, false), 3);
	assert_int_equal(m->walk.frames[1].a, RET);
	put_call(m, CODE + 0x145, CODE + 0x400); /* a stale word: the record is this function's own */
	assert_int_equal(run(m, STACK + 0x20, false), 2);
	assert_int_equal(m->walk.frames[1].a, CODE + 0x145);
	free(m);
}

/* A handler on a stack of its own: its frame, the return point, then the interrupted function without a gap. */
static void signal_handlers(void **state)
{
	static const uint8_t restore[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	struct memory *m = memory_new();

	(void)state;
	memcpy(m->code + 0x600, restore, sizeof(restore));
	m->walk.leaf[WALK_REG_SP] = STACK + 0x1000;
	put_record(m, STACK + 0x1020, 77, CODE + 0x600);
	put_word(m, STACK + 0x1030 + UC_RBP, STACK + 0x40);
	put_record(m, STACK + 0x1030 + UC_RSP, STACK + 0x10, CODE + 0x700);
	put_record(m, STACK + 0x40, 0, RET);
	assert_int_equal(run(m, STACK + 0x1020, false), 4);
	assert_int_equal(m->walk.frames[1].a, CODE + 0x600);
	assert_int_equal(m->walk.frames[1].flags, 0);
	assert_int_equal(m->walk.frames[2].a, CODE + 0x700);
	assert_int_equal(m->walk.frames[2].flags, 0);
	assert_int_equal(m->walk.frames[3].a, RET);
	assert_int_equal(m->walk.frames[3].flags, ABI_FRAME_RETURN);
	put_record(m, STACK + 0x1030 + UC_RSP, STACK + 0x10, 0);
	assert_int_equal(run(m, STACK + 0x1020, false), 2);
	assert_int_equal(m->walk.end, ABI_END_NO_REGISTERS);
	free(m);
}

static void call_forms(void **state)
{
	static const struct {
		const char *name, *bytes; /* the last of eight */
		int want;
	} cases[] = {
		{ "call rel32", "e800000000", 1 },
		{ "call *%rax", "ffd0", 1 },
		{ "call *%r11", "41ffd3", 1 },
		{ "call *(%rbx)", "ff13", 1 },
		{ "call *8(%rax)", "ff5008", 1 },
		{ "call *(%rax,%rbx,8)", "ff14d8", 1 },
		{ "call *8(%rsp)", "ff542408", 1 },
		{ "call *x(%rip)", "ff1500000000", 1 },
		{ "call *x(%rbp)", "ff9500000000", 1 },
		{ "call *x(%rsp)", "ff942400000000", 1 },
		{ "call *x(,%rax,8)", "ff14c500000000", 1 },
		{ "no-op", "90", 1 },
		{ "jmp *%rax", "ffe0", 0 },
		{ "jmp rel32", "e900000000", 0 },
		{ "push (%rax)", "ff30", 0 },
		{ "text", "2f62696e2f736800", 0 },
		{ "zeros", "0000000000000000", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cur in = guard_page_hex(cases[i].bytes);
		uint8_t bytes[8] = { 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc };
		size_t size = cur_left(&in);
		uint64_t code;

		print_message("  %s\n", cases[i].name);
		memcpy(bytes + 8 - size, cur_bytes(&in, size), size);
		memcpy(&code, bytes, 8);
		assert_int_equal(walk_ends_in_call(code), cases[i].want);
	}
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walks_a_chain),
		cmocka_unit_test(broken_chains_end),
		cmocka_unit_test(deep_chains_fill_the_record),
#ifdef WALK_X86_64
		cmocka_unit_test(leaf_instructions),
		cmocka_unit_test(functions_without_frames),
		cmocka_unit_test(behind_the_pop),
		cmocka_unit_test(signal_handlers),
		cmocka_unit_test(call_forms),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
