// SPDX-License-Identifier: Apache-2.0
/* The native step as it is on aarch64, run on any machine: rows, x30, signed return addresses, signals. */
#define WALK_AARCH64 1
#include "support.h"

#include "table_sample.h"
#include "walk/walk_native.h"

#define CODE UINT64_C(0x400000)
#define CODE_SIZE 0x2000
#define STACK UINT64_C(0xffffd0000000)
#define STACK_WORDS 1024
#define CALL(n) (CODE + 0x1000 + (n)*16) /* a return address: each of them stands behind a BL */
#define SIGNED(address) ((address) | UINT64_C(0x5a2f) << 48)
#define SIGNAL_X0 312 /* from the stack pointer of the return point on */

struct memory {
	uint32_t code[CODE_SIZE / 4];
	uint64_t stack[STACK_WORDS];
	union abi_element *table;
	struct walk_world world;
	struct walk walk;
};

static int memory_read(void *self, void *dst, __u32 size, __u64 at)
{
	const struct memory *m = self;

	if (at >= CODE && at - CODE <= sizeof(m->code) - size)
		memcpy(dst, (const uint8_t *)m->code + (at - CODE), size);
	else if (at >= STACK && at - STACK <= sizeof(m->stack) - size)
		memcpy(dst, (const uint8_t *)m->stack + (at - STACK), size);
	else
		return -EFAULT;
	return 0;
}

static int memory_map(void *self, __u64 pc, struct abi_map *out)
{
	const struct memory *m = self;

	*out = (struct abi_map){
		.start = CODE,
		.end = CODE + CODE_SIZE,
		.file_base = CODE,
		.pages = m->table[0].head.pages,
		.kind = ABI_MAP_FILE,
	};
	return pc >= CODE && pc < CODE + CODE_SIZE ? 0 : -ENOENT;
}

static const void *memory_table(void *self, __u32 number)
{
	const struct memory *m = self;

	return number ? NULL : m->table;
}

static const union abi_element *memory_element(void *self, const void *table, __u32 index)
{
	const union abi_element *elements = table;

	(void)self;
	return index < elements[0].head.size ? &elements[index] : NULL;
}

static struct memory *memory_new(const struct row_sample *rows, size_t count)
{
	struct memory *m = calloc(1, sizeof(*m));

	must(m);
	for (size_t i = 0x1000 / 4; i < CODE_SIZE / 4; i += 4)
		m->code[i - 1] = 0x94000001; /* bl */
	m->table = table_sample(rows, count, NULL, 0);
	m->world = (struct walk_world){ memory_read, memory_map, memory_table, memory_element, m };
	m->walk.world = &m->world;
	m->walk.leaf[WALK_REG_SP] = STACK;
	return m;
}

static void memory_free(struct memory *m)
{
	free(m->table);
	free(m);
}

static void put_word(struct memory *m, uint64_t at, uint64_t value)
{
	m->stack[(at - STACK) / 8] = value;
}

static uint32_t run(struct memory *m, uint64_t pc, uint8_t mode)
{
	m->walk.leaf[WALK_REG_PC] = pc;
	m->walk.mode = mode;
	m->walk.count = 0;
	walk_native_start(&m->walk, 0);
	for (int turn = 0; turn < 2 * ABI_FRAMES_MAX; turn++) {
		if (walk_native_step(&m->walk) != WALK_MORE)
			return m->walk.count;
	}
	fail_msg("the walk does not end");
	return 0;
}

#define AT(address) ((uint32_t)((address)-CODE))
#define ROWS(...)                                                \
	static const struct row_sample rows[] = { __VA_ARGS__ }; \
	struct memory *m = memory_new(rows, ARRAY_SIZE(rows))

/* A leaf that uses no stack, the pair of x29 and x30, x30 alone: signed and not. */
static void walks_by_rows(void **state)
{
	ROWS({ AT(CODE), ABI_CFA_SP, ABI_SAVED_SAME, 0, 0 }, { AT(CALL(1) - 1), ABI_CFA_SP, ABI_SAVED_PAIR, 4, -4 },
	     { AT(CALL(2) - 1), ABI_CFA_FP, ABI_SAVED_PAIR, 2, -2 },
	     { AT(CALL(3) - 1), ABI_CFA_SP, ABI_SAVED_RETURN, 2, -2 }, { AT(CALL(4) - 1), ABI_CFA_STOP, 0, 0, 0 });
	static const uint64_t want[] = { CODE + 8, CALL(1), CALL(2), CALL(3), CALL(4) };

	(void)state;
	m->walk.leaf[WALK_REG_LR] = SIGNED(CALL(1));
	put_word(m, STACK, STACK + 0x100);
	put_word(m, STACK + 8, SIGNED(CALL(2)));
	put_word(m, STACK + 0x100, 77);
	put_word(m, STACK + 0x108, CALL(3));
	put_word(m, STACK + 0x110, SIGNED(CALL(4)));
	assert_int_equal(run(m, CODE + 8, WALK_TABLE), ARRAY_SIZE(want));
	assert_int_equal(m->walk.end, ABI_END_COMPLETE);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		assert_int_equal(m->walk.frames[i].b, want[i] - CODE);
	assert_int_equal(m->walk.fp, 77);
	memory_free(m);
}

/* x30 was overwritten by a function that the frame called. */
static void x30_is_the_top_frames_only(void **state)
{
	ROWS({ AT(CODE), ABI_CFA_SP, ABI_SAVED_SAME, 0, 0 }, { AT(CALL(1) - 1), ABI_CFA_SP, ABI_SAVED_AT, 2, -2 },
	     { AT(CALL(2) - 1), ABI_CFA_SP, ABI_SAVED_UNDEFINED, 2, 0 });

	(void)state;
	for (uint64_t i = 1; i <= 2; i++) {
		m->walk.leaf[WALK_REG_LR] = CALL(i);
		assert_int_equal(run(m, CODE + 8, WALK_AUTO), 2);
		assert_int_equal(m->walk.end, ABI_END_UNSUPPORTED);
	}
	m->walk.leaf[WALK_REG_LR] = CODE + 8;
	assert_int_equal(run(m, CODE + 8, WALK_AUTO), 1); /* to itself, without a frame */
	assert_int_equal(m->walk.end, ABI_END_NO_PROGRESS);
	memory_free(m);
}

/* Behind a signal frame all registers are those of the interrupted code: x30, too. */
static void signal_frames(void **state)
{
	ROWS({ AT(CODE), ABI_CFA_SP, ABI_SAVED_SAME, 0, 0 }, { AT(CODE + 0x7ff), ABI_CFA_SIGNAL, 0, 0, 0 },
	     { AT(CODE + 0x810), ABI_CFA_SP, ABI_SAVED_SAME, 0, 0 }, { AT(CALL(1) - 1), ABI_CFA_STOP, 0, 0, 0 });

	(void)state;
	m->walk.leaf[WALK_REG_LR] = CODE + 0x800;
	for (uint64_t i = 0; i < WALK_REGS; i++)
		put_word(m, STACK + SIGNAL_X0 + i * 8, 0x1000 + i);
	put_word(m, STACK + SIGNAL_X0 + WALK_REG_LR * 8, CALL(1));
	put_word(m, STACK + SIGNAL_X0 + WALK_REG_SP * 8, STACK + 0x800);
	put_word(m, STACK + SIGNAL_X0 + WALK_REG_PC * 8, CODE + 0x900);
	assert_int_equal(run(m, CODE + 8, WALK_TABLE), 4);
	assert_int_equal(m->walk.end, ABI_END_COMPLETE);
	assert_int_equal(m->walk.frames[1].flags, 0);
	assert_int_equal(m->walk.frames[2].b, 0x900);
	assert_int_equal(m->walk.frames[2].flags, 0);
	assert_int_equal(m->walk.frames[3].flags, ABI_FRAME_RETURN);
	assert_int_equal(m->walk.leaf[19], 0x1013);
	memory_free(m);
}

static void guesses(void **state)
{
	ROWS({ AT(CODE), ABI_CFA_INVALID, 0, 0, 0 }, { AT(CALL(1) - 1), ABI_CFA_STOP, 0, 0, 0 });

	(void)state;
	m->walk.leaf[WALK_REG_FP] = STACK + 0x20;
	put_word(m, STACK + 0x28, SIGNED(CALL(1)));
	assert_int_equal(run(m, CODE + 8, WALK_AUTO), 2);
	assert_int_equal(m->walk.end, ABI_END_COMPLETE);
	assert_int_equal(m->walk.frames[1].flags, ABI_FRAME_RETURN | ABI_FRAME_GUESSED);
	m->walk.leaf[WALK_REG_FP] = 3; /* the last resort: x30 */
	m->walk.leaf[WALK_REG_LR] = SIGNED(CALL(1));
	assert_int_equal(run(m, CODE + 8, WALK_AUTO), 2);
	assert_int_equal(m->walk.frames[1].flags, ABI_FRAME_RETURN | ABI_FRAME_GUESSED);
	m->walk.leaf[WALK_REG_LR] = CODE + 0x100; /* no call */
	assert_int_equal(run(m, CODE + 8, WALK_AUTO), 1);
	assert_int_equal(m->walk.end, ABI_END_NO_FRAME_POINTER);
	assert_int_equal(run(m, CODE + 8, WALK_TABLE), 1);
	assert_int_equal(m->walk.end, ABI_END_NO_RULE);
	memory_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walks_by_rows),
		cmocka_unit_test(x30_is_the_top_frames_only),
		cmocka_unit_test(signal_frames),
		cmocka_unit_test(guesses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
