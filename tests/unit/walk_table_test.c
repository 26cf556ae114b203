// SPDX-License-Identifier: Apache-2.0
/* The native step by unwind rows, over made-up memory: a file of code, a JIT page, a stack and a signal stack below. */
#include "support.h"

#include "table_sample.h"
#include "walk/walk_native.h"

#define CODE UINT64_C(0x400000)
#define OFFSET UINT64_C(0x2000) /* of CODE in its file */
#define CODE_SIZE 0x3000
#define JIT UINT64_C(0x7f0000000000)
#define BARE UINT64_C(0x7f0000100000)
#define STACK UINT64_C(0x7ffd00000000)
#define STACK_WORDS 4096
#define FILE_ID 7
#define TABLE 3
#define CALL(n) (CODE + 0x1000 + (n)*16) /* a return address: each of them stands behind a call */

struct memory {
	uint8_t code[CODE_SIZE], jit[4096];
	uint64_t stack[STACK_WORDS];
	union abi_element *table; /* NULL: not loaded */
	bool unmapped;
	unsigned int map_asks, table_asks;
	struct walk_world world;
	struct walk walk;
};

static int memory_read(void *self, void *dst, __u32 size, __u64 at)
{
	const struct memory *m = self;

	if (at >= CODE && at - CODE <= sizeof(m->code) - size)
		memcpy(dst, m->code + (at - CODE), size);
	else if (at >= JIT && at - JIT <= sizeof(m->jit) - size)
		memcpy(dst, m->jit + (at - JIT), size);
	else if (at >= BARE && at - BARE <= sizeof(m->jit) - size)
		memcpy(dst, m->jit + (at - BARE), size);
	else if (at >= STACK && at - STACK <= sizeof(m->stack) - size)
		memcpy(dst, (const uint8_t *)m->stack + (at - STACK), size);
	else
		return -EFAULT;
	return 0;
}

static int memory_find_map(void *self, __u64 pc, struct abi_map *out)
{
	struct memory *m = self;

	m->map_asks++;
	*out = (struct abi_map){ .file = FILE_ID, .table = TABLE, .kind = ABI_MAP_FILE };
	if (m->unmapped)
		return -ENOENT;
	if (pc >= CODE && pc < CODE + CODE_SIZE) {
		out->start = CODE;
		out->end = CODE + CODE_SIZE;
		out->file_base = CODE - OFFSET;
		out->first_page = m->table ? m->table[0].head.first_page : 0;
		out->pages = m->table ? m->table[0].head.pages : 16;
		return 0;
	}
	out->start = pc & ~UINT64_C(0xfff);
	out->end = out->start + 4096;
	out->file_base = out->start;
	out->kind = out->start == JIT ? ABI_MAP_JIT : ABI_MAP_BARE;
	return out->start == JIT || out->start == BARE ? 0 : -ENOENT;
}

static const void *memory_table(void *self, __u32 number)
{
	struct memory *m = self;

	m->table_asks++;
	return number == TABLE ? m->table : NULL;
}

static const union abi_element *memory_element(void *self, const void *table, __u32 index)
{
	const union abi_element *elements = table;

	(void)self;
	return index < elements[0].head.size ? &elements[index] : NULL;
}

static struct memory *memory_new(void)
{
	struct memory *m = calloc(1, sizeof(*m));

	must(m);
	memset(m->code, 0xcc, sizeof(m->code));
	memset(m->jit, 0xcc, sizeof(m->jit));
	for (size_t i = 0x1000; i < 0x2000; i += 16)
		m->code[i - 5] = 0xe8;
	m->jit[0x100 - 5] = 0xe8;
	m->world = (struct walk_world){ .read = memory_read,
					.find_map = memory_find_map,
					.table = memory_table,
					.element = memory_element,
					.self = m };
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

static void use_rows(struct memory *m, const struct row_sample *rows, size_t count, const struct abi_rule *rules,
		     size_t rule_count)
{
	free(m->table);
	m->table = table_sample(rows, count, rules, rule_count);
}

static uint32_t go_on(struct memory *m)
{
	for (int turn = 0; turn < 2 * ABI_FRAMES_MAX; turn++) {
		if (walk_native_step(&m->walk) != WALK_MORE)
			return m->walk.count;
	}
	fail_msg("the walk does not end");
	return 0;
}

static uint32_t run(struct memory *m, uint64_t pc, uint8_t mode)
{
	m->walk.leaf[WALK_REG_PC] = pc;
	m->walk.mode = mode;
	m->walk.count = 0;
	walk_native_start(&m->walk, 0);
	return go_on(m);
}

static void expect_frame(const struct memory *m, uint32_t i, uint8_t kind, uint8_t flags, uint64_t pc)
{
	const struct abi_frame *frame = &m->walk.frames[i];

	assert_int_equal(frame->kind, kind);
	assert_int_equal(frame->flags, flags);
	if (kind == ABI_FRAME_NATIVE && pc >= CODE && pc < CODE + CODE_SIZE) {
		assert_int_equal(frame->a, FILE_ID);
		assert_int_equal(frame->b, pc - CODE + OFFSET);
	} else if (kind == ABI_FRAME_NATIVE) {
		assert_int_equal(frame->a, FILE_ID);
		assert_int_equal(frame->b, pc & 0xfff);
	} else {
		assert_int_equal(frame->a, pc);
		assert_int_equal(frame->b, 0);
	}
}

#define SP WALK_REG_SP
#define FP WALK_REG_FP
#define NATIVE ABI_FRAME_NATIVE
#define RETURN ABI_FRAME_RETURN
#define GUESSED ABI_FRAME_GUESSED
#define AT(address) ((uint32_t)((address)-CODE + OFFSET)) /* offset in the file */
#define ROWS(m, ...)                                                     \
	do {                                                             \
		static const struct row_sample rows[] = { __VA_ARGS__ }; \
		use_rows(m, rows, ARRAY_SIZE(rows), NULL, 0);            \
	} while (0)

/* Many rows, so that every way through the search is taken: the row of any offset is the one before it. */
static void rows_are_found(void **state)
{
	enum { COUNT = 900 };
	struct row_sample *rows = calloc(COUNT, sizeof(*rows));
	struct memory *m = memory_new();

	(void)state;
	must(rows);
	for (uint32_t i = 0; i < COUNT; i++) /* more and more of them a page: 1, 2, 3 ... */
		rows[i] = (struct row_sample){ .cfa = ABI_CFA_SP,
					       .cfa_off = (uint16_t)i,
					       .offset = i < 4     ? i * 4096
							 : i < 20  ? 4 * 4096 + (i - 4) * 200
							 : i < 100 ? 5 * 4096 + (i - 20) * 51
								   : 6 * 4096 + (i - 100) * 5 };
	use_rows(m, rows, COUNT, NULL, 0);
	walk_native_start(&m->walk, 0);
	m->walk.map.first_page = m->table[0].head.first_page;
	m->walk.map.pages = m->table[0].head.pages;
	m->walk.map.table = TABLE;
	for (uint32_t offset = 0, want = 0; offset < 7 * 4096; offset++) {
		struct abi_row row = { .cfa = ABI_CFA_INVALID };

		while (want + 1 < COUNT && rows[want + 1].offset <= offset)
			want++;
		assert_int_equal(walk_find_row(&m->walk, offset, &row), 0);
		assert_int_equal(row.cfa, ABI_CFA_SP);
		assert_int_equal(row.cfa_off, want);
	}
	struct abi_row row = { .cfa = ABI_CFA_INVALID };

	assert_int_equal(walk_find_row(&m->walk, 7 * 4096, &row), 0);
	assert_int_equal(row.cfa, ABI_CFA_INVALID);
	free(rows);
	memory_free(m);
}

#ifdef WALK_X86_64
/* sp + n, rbp saved and not, rbp as the CFA, the root. */
static void walks_by_rows(void **state)
{
	struct memory *m = memory_new();

	(void)state;
	ROWS(m, { AT(CODE), ABI_CFA_SP, ABI_SAVED_SAME, 1, 0 }, { AT(CODE + 0x10), ABI_CFA_SP, ABI_SAVED_AT, 4, -3 },
	     { AT(CALL(1) - 1), ABI_CFA_FP, ABI_SAVED_AT, 2, -2 },
	     { AT(CALL(2) - 1), ABI_CFA_SP, ABI_SAVED_UNDEFINED, 200, 0 }, { AT(CALL(3) - 1), ABI_CFA_STOP, 0, 0, 0 });
	put_word(m, STACK + 8, STACK + 0x100); /* rbp, in the frame of 4 words */
	put_word(m, STACK + 24, CALL(1));
	put_word(m, STACK + 0x100, 5); /* rbp */
	put_word(m, STACK + 0x108, CALL(2));
	put_word(m, STACK + 0x110 + 199 * 8, CALL(3));
	assert_int_equal(run(m, CODE + 0x20, WALK_TABLE), 4);
	assert_int_equal(m->walk.end, ABI_END_COMPLETE);
	expect_frame(m, 0, NATIVE, 0, CODE + 0x20);
	expect_frame(m, 1, NATIVE, RETURN, CALL(1));
	expect_frame(m, 2, NATIVE, RETURN, CALL(2));
	expect_frame(m, 3, NATIVE, RETURN, CALL(3));
	assert_int_equal(m->walk.fp, 0);
	assert_int_equal(m->map_asks, 1); /* one mapping, one look-up */
	assert_int_equal(m->table_asks, 4);
	m->walk.mode = WALK_AUTO;
	assert_int_equal(run(m, CODE + 0x20, WALK_AUTO), 4);
	assert_int_equal(m->walk.end, ABI_END_COMPLETE);
	memory_free(m);
}

/* Behind the pops, compilers' rules still say where rbp was saved: below sp, which a copied stack does not have. */
static void saved_below_the_stack_pointer(void **state)
{
	struct memory *m = memory_new();

	(void)state;
	ROWS(m, { AT(CODE), ABI_CFA_SP, ABI_SAVED_AT, 1, -2 }, { AT(CALL(1) - 1), ABI_CFA_STOP, 0, 0, 0 });
	put_word(m, STACK, CALL(1));
	m->walk.leaf[FP] = 5;
	assert_int_equal(run(m, CODE + 0x20, WALK_TABLE), 2); /* the page below is not there */
	assert_int_equal(m->walk.end, ABI_END_COMPLETE);
	assert_int_equal(m->walk.fp, 5);
	put_word(m, STACK, 77);
	put_word(m, STACK + 8, CALL(1));
	m->walk.leaf[SP] = STACK + 8;
	assert_int_equal(run(m, CODE + 0x20, WALK_TABLE), 2);
	assert_int_equal(m->walk.fp, 77);
	memory_free(m);
}

/* A return address at the first byte of a function belongs to the one before it. */
static void calls_that_end_a_function(void **state)
{
	struct memory *m = memory_new();

	(void)state;
	ROWS(m, { AT(CODE), ABI_CFA_SP, 0, 1, 0 }, { AT(CALL(0)), ABI_CFA_SP, 0, 2, 0 },
	     { AT(CALL(1)), ABI_CFA_STOP, 0, 0, 0 }, { AT(CALL(2)), ABI_CFA_INVALID, 0, 0, 0 });
	put_word(m, STACK, CALL(1));
	put_word(m, STACK + 16, CALL(2));
	assert_int_equal(run(m, CODE, WALK_TABLE), 3);
	assert_int_equal(m->walk.end, ABI_END_COMPLETE);
	m->walk.count = 0;
	m->walk.leaf[WALK_REG_PC] = CALL(2); /* interrupted in a system call there */
	walk_native_start(&m->walk, 1);
	assert_int_equal(go_on(m), 1);
	assert_int_equal(m->walk.end, ABI_END_COMPLETE);
	expect_frame(m, 0, NATIVE, RETURN, CALL(2));
	memory_free(m);
}

/* Behind the system call of clone both go on, each on its own stack; what lies on the child's is not its caller. */
static void clones_child_has_no_caller(void **state)
{
	struct memory *m = memory_new();

	(void)state;
	ROWS(m, { AT(CODE), ABI_CFA_FORKED, 0, 1, 0 }, { AT(CALL(1) - 1), ABI_CFA_STOP, 0, 0, 0 });
	put_word(m, STACK, CALL(1));
	m->walk.leaf[0] = 1234;
	assert_int_equal(run(m, CODE + 4, WALK_AUTO), 2);
	assert_int_equal(m->walk.end, ABI_END_COMPLETE);
	m->walk.leaf[0] = 0;
	assert_int_equal(run(m, CODE + 4, WALK_AUTO), 1);
	assert_int_equal(m->walk.end, ABI_END_COMPLETE);
	memory_free(m);
}

static void plt_entries(void **state)
{
	struct memory *m = memory_new();

	(void)state;
	ROWS(m, { AT(CODE), ABI_CFA_PLT, 0, 11, 0 }, { AT(CALL(1) - 1), ABI_CFA_STOP, 0, 0, 0 });
	put_word(m, STACK, 0x77);
	put_word(m, STACK + 8, CALL(1));
	assert_int_equal(run(m, CODE + 0x3b, WALK_TABLE), 2); /* behind the push */
	assert_int_equal(m->walk.end, ABI_END_COMPLETE);
	put_word(m, STACK, CALL(1));
	assert_int_equal(run(m, CODE + 0x3a, WALK_TABLE), 2);
	assert_int_equal(m->walk.end, ABI_END_COMPLETE);
	assert_int_equal(m->walk.sp, STACK + 8);
	memory_free(m);
}

struct rule_case {
	const char *name;
	struct abi_rule rule;
	uint64_t fp;   /* the caller's, when it gets there */
	bool top_only; /* needs registers that only the top frame has */
	enum abi_end end;
	uint32_t count;
};

#define VALUE(reg, n)                      \
	{                                  \
		ABI_PLACE_VALUE, reg, 0, n \
	}
#define MEMORY(reg, n)                      \
	{                                   \
		ABI_PLACE_MEMORY, reg, 0, n \
	}
#define CFA ABI_BASE_CFA
#define SAME                            \
	{                               \
		ABI_PLACE_SAME, 0, 0, 0 \
	}
#define UNDEFINED                            \
	{                                    \
		ABI_PLACE_UNDEFINED, 0, 0, 0 \
	}

/* The frame lies at FRAME; its CFA is FRAME + 0x40, which the word at FRAME + 8 and rdx hold, too. */
#define FRAME (STACK + 0x100)

static const struct rule_case rule_cases[] = {
	{ "realigned", { MEMORY(SP, 8), SAME, SAME, 0, 0 }, FRAME + 0x18, false, ABI_END_COMPLETE, 3 },
	{ "realigned, with an addend",
	  { MEMORY(SP, 8), SAME, MEMORY(CFA, -8), 16, 0 },
	  FRAME + 0x18,
	  false,
	  ABI_END_COMPLETE,
	  3 },
	{ "rbp relative to itself",
	  { VALUE(SP, 0x40), MEMORY(FP, 8), MEMORY(CFA, -8), 0, 0 },
	  77,
	  false,
	  ABI_END_COMPLETE,
	  3 },
	{ "rbp is the cfa", { VALUE(SP, 0x40), VALUE(CFA, -8), SAME, 0, 0 }, FRAME + 0x38, false, ABI_END_COMPLETE, 3 },
	{ "rbp lost", { VALUE(SP, 0x40), UNDEFINED, SAME, 0, 0 }, 0, false, ABI_END_COMPLETE, 3 },
	{ "cfa in a register", { VALUE(1, 0), SAME, SAME, 0, 0 }, FRAME + 0x18, true, ABI_END_COMPLETE, 3 },
	{ "return address in a register",
	  { VALUE(SP, 0x40), SAME, VALUE(5, 1), 0, 0 },
	  FRAME + 0x18,
	  true,
	  ABI_END_COMPLETE,
	  3 },
	{ "root", { VALUE(SP, 0x40), SAME, UNDEFINED, 0, 0 }, FRAME + 0x18, false, ABI_END_COMPLETE, 2 },
	{ "no such register", { VALUE(17, 0), SAME, SAME, 0, 0 }, 0, false, ABI_END_UNSUPPORTED, 2 },
	{ "cfa the same", { SAME, SAME, SAME, 0, 0 }, 0, false, ABI_END_UNSUPPORTED, 2 },
	{ "cfa from itself", { VALUE(CFA, 8), SAME, SAME, 0, 0 }, 0, false, ABI_END_UNSUPPORTED, 2 },
	{ "not aligned", { VALUE(SP, 0x41), SAME, SAME, 0, 0 }, 0, false, ABI_END_UNSUPPORTED, 2 },
	{ "no memory", { MEMORY(SP, 1 << 30), SAME, SAME, 0, 0 }, 0, false, ABI_END_READ_FAILED, 2 },
};

/* Each in a top frame, and below one that changes no register. */
static void rules_of_their_own(void **state)
{
	static const struct row_sample rows[] = {
		{ AT(CODE), ABI_CFA_RULE, 0, 0, 0 },
		{ AT(CALL(1) - 1), ABI_CFA_RULE, 0, 1, 0 },
		{ AT(CALL(2)), ABI_CFA_SP, 0, 1, 0 },
		{ AT(CALL(3) - 1), ABI_CFA_STOP, 0, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rule_cases); i++) {
		const struct rule_case *c = &rule_cases[i];
		const struct abi_rule rules[] = { c->rule, c->rule };
		struct memory *m = memory_new();

		print_message("  %s\n", c->name);
		use_rows(m, rows, ARRAY_SIZE(rows), rules, ARRAY_SIZE(rules));
		put_word(m, FRAME - 8, CALL(1));
		put_word(m, FRAME + 8, c->rule.cfa_add ? FRAME + 0x40 - (uint64_t)c->rule.cfa_add : FRAME + 0x40);
		put_word(m, FRAME + 0x20, 77);
		put_word(m, FRAME + 0x38, CALL(3));
		m->walk.leaf[FP] = FRAME + 0x18;
		m->walk.leaf[1] = FRAME + 0x40;
		m->walk.leaf[5] = CALL(3) - 1;
		m->walk.leaf[SP] = FRAME;
		assert_int_equal(run(m, CODE + 4, WALK_TABLE), c->count - 1);
		assert_int_equal(m->walk.end, c->end);
		if (c->count == 3)
			assert_int_equal(m->walk.fp, c->fp);
		m->walk.leaf[SP] = FRAME - 8;
		assert_int_equal(run(m, CALL(2) + 4, WALK_TABLE), c->top_only ? 2 : c->count);
		assert_int_equal(m->walk.end, c->top_only ? ABI_END_UNSUPPORTED : c->end);
		memory_free(m);
	}
}

/* The registers behind a signal frame are those of the interrupted code, all of them. */
static void signal_frames(void **state)
{
	static const uint8_t order[] = { 8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16 }; /* ucontext's */
	const struct abi_rule rule = { VALUE(12, 0), SAME, SAME, 0, 0 };
	struct row_sample rows[] = {
		{ AT(CODE), ABI_CFA_SP, 0, 2, 0 },
		{ AT(CODE + 0x5ff), ABI_CFA_SIGNAL, 0, 0, 0 }, /* one byte before it */
		{ AT(CODE + 0x610), ABI_CFA_INVALID, 0, 0, 0 },
		{ AT(CODE + 0x700), ABI_CFA_RULE, 0, 0, 0 }, /* r12: known here only */
		{ AT(CALL(1) - 1), ABI_CFA_STOP, 0, 0, 0 },
	};
	struct memory *m = memory_new();
	uint64_t regs[17];

	(void)state;
	use_rows(m, rows, ARRAY_SIZE(rows), &rule, 1);
	for (uint64_t i = 0; i < 17; i++)
		regs[i] = 0x1000 + i;
	regs[SP] = STACK + 0x10; /* the handler has a stack of its own, above */
	regs[16] = CODE + 0x700;
	regs[12] = STACK + 0x30;
	put_word(m, STACK + 0x28, CALL(1));
	m->walk.leaf[SP] = STACK + 0x1000;
	put_word(m, STACK + 0x1008, CODE + 0x600);
	for (size_t i = 0; i < 17; i++)
		put_word(m, STACK + 0x1010 + 40 + i * 8, regs[order[i]]);
	assert_int_equal(run(m, CODE + 0x20, WALK_TABLE), 4);
	assert_int_equal(m->walk.end, ABI_END_COMPLETE);
	expect_frame(m, 1, NATIVE, 0, CODE + 0x600);
	expect_frame(m, 2, NATIVE, 0, CODE + 0x700);
	expect_frame(m, 3, NATIVE, RETURN, CALL(1));
	for (size_t i = 0; i < 17; i++)
		assert_int_equal(m->walk.leaf[i], regs[i]);
	/* The same code without a row: its bytes say what it is. */
	memcpy(m->code + 0x600, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9);
	rows[1].cfa = ABI_CFA_INVALID;
	use_rows(m, rows, ARRAY_SIZE(rows), &rule, 1);
	m->walk.leaf[SP] = STACK + 0x1000;
	assert_int_equal(run(m, CODE + 0x20, WALK_TABLE), 4);
	assert_int_equal(m->walk.end, ABI_END_COMPLETE);
	memory_free(m);
}

/* Two signal frames that lead to each other; one that leads to itself. */
static void signal_frames_do_not_loop(void **state)
{
	struct memory *m = memory_new();

	(void)state;
	ROWS(m, { AT(CODE), ABI_CFA_SIGNAL, 0, 0, 0 });
	put_word(m, STACK + 160, STACK + 0x400);
	put_word(m, STACK + 168, CODE + 8);
	put_word(m, STACK + 0x400 + 160, STACK);
	put_word(m, STACK + 0x400 + 168, CODE);
	assert_in_range(run(m, CODE, WALK_TABLE), 3, 2 * WALK_FALLS_MAX + 2);
	assert_int_equal(m->walk.end, ABI_END_NO_PROGRESS);
	put_word(m, STACK + 160, STACK);
	put_word(m, STACK + 168, CODE);
	assert_int_equal(run(m, CODE, WALK_TABLE), 1);
	assert_int_equal(m->walk.end, ABI_END_NO_PROGRESS);
	memory_free(m);
}

static void bad_rows_end(void **state)
{
	static const struct {
		const char *name;
		struct row_sample row;
		uint64_t ret, fp;
		enum abi_end end;
	} cases[] = {
		{ "no rule", { 0, ABI_CFA_INVALID, 0, 0, 0 }, CALL(1), 0, ABI_END_NO_RULE },
		{ "unsupported", { 0, ABI_CFA_UNSUPPORTED, 0, 0, 0 }, CALL(1), 0, ABI_END_UNSUPPORTED },
		{ "unknown cfa", { 0, 77, 0, 1, 0 }, CALL(1), 0, ABI_END_UNSUPPORTED },
		{ "unknown saved", { 0, ABI_CFA_SP, 77, 1, 0 }, CALL(1), 0, ABI_END_UNSUPPORTED },
		{ "aarch64's pair", { 0, ABI_CFA_SP, ABI_SAVED_PAIR, 1, 0 }, CALL(1), 0, ABI_END_UNSUPPORTED },
		{ "rule without rules", { 0, ABI_CFA_RULE, 0, 0, 0 }, CALL(1), 0, ABI_END_UNSUPPORTED },
		{ "no return address", { 0, ABI_CFA_SP, 0, 1, 0 }, 0, 0, ABI_END_UNPROVEN_ROOT },
		{ "return to page 0", { 0, ABI_CFA_SP, 0, 1, 0 }, 8, 0, ABI_END_UNSUPPORTED },
		{ "return to the kernel", { 0, ABI_CFA_SP, 0, 1, 0 }, UINT64_MAX - 5, 0, ABI_END_UNSUPPORTED },
		{ "frame pointer odd", { 0, ABI_CFA_FP, 0, 2, 0 }, CALL(1), STACK + 1, ABI_END_UNSUPPORTED },
		{ "frame pointer 0", { 0, ABI_CFA_FP, 0, 2, 0 }, CALL(1), 0, ABI_END_READ_FAILED },
		{ "frame of no words", { 0, ABI_CFA_SP, 0, 0, 0 }, CALL(1), 0, ABI_END_READ_FAILED },
		{ "beyond the stack", { 0, ABI_CFA_SP, 0, 0xffff, 0 }, CALL(1), 0, ABI_END_READ_FAILED },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct row_sample row = cases[i].row;
		struct memory *m = memory_new();

		print_message("  %s\n", cases[i].name);
		row.offset = (uint32_t)OFFSET;
		use_rows(m, &row, 1, NULL, 0);
		put_word(m, STACK, cases[i].ret);
		m->walk.leaf[FP] = cases[i].fp;
		assert_int_equal(run(m, CODE + 4, WALK_TABLE), 1);
		assert_int_equal(m->walk.end, cases[i].end);
		memory_free(m);
	}
}

/* A frame pointer may lead down to another stack, but not round and round. */
static void stacks_switch_a_few_times(void **state)
{
	struct memory *m = memory_new();

	(void)state;
	ROWS(m, { AT(CODE), ABI_CFA_FP, ABI_SAVED_AT, 2, -2 }, { AT(CALL(9) - 1), ABI_CFA_STOP, 0, 0, 0 });
	put_word(m, STACK + 0x800, STACK + 0x20);
	put_word(m, STACK + 0x808, CALL(1));
	put_word(m, STACK + 0x28, CALL(9));
	m->walk.leaf[SP] = STACK + 0x700;
	m->walk.leaf[FP] = STACK + 0x800;
	assert_int_equal(run(m, CODE + 4, WALK_TABLE), 3);
	assert_int_equal(m->walk.end, ABI_END_COMPLETE);
	put_word(m, STACK + 0x20, STACK + 0x800);
	put_word(m, STACK + 0x28, CALL(2));
	assert_in_range(run(m, CODE + 4, WALK_TABLE), 4, 2 * WALK_FALLS_MAX + 3);
	assert_int_equal(m->walk.end, ABI_END_NO_PROGRESS);
	ROWS(m, { AT(CODE), ABI_CFA_FRAME_RECORD, 0, 0, 0 }, { AT(CALL(9) - 1), ABI_CFA_STOP, 0, 0, 0 });
	assert_in_range(run(m, CODE + 4, WALK_AUTO), 4, 2 * WALK_FALLS_MAX + 3);
	assert_int_equal(m->walk.end, ABI_END_NO_PROGRESS);
	put_word(m, STACK + 0x28, CALL(9));
	assert_int_equal(run(m, CODE + 4, WALK_TABLE), 3);
	assert_int_equal(m->walk.end, ABI_END_COMPLETE);
	expect_frame(m, 2, NATIVE, RETURN, CALL(9));
	memory_free(m);
}

/* Code without rows: frame pointers in AUTO, marked; the end in TABLE. JIT code and bare files, too. */
static void guesses(void **state)
{
	static const uint64_t starts[] = { CODE + 4, JIT + 4, BARE + 4 };
	static const uint8_t kinds[] = { NATIVE, ABI_FRAME_JIT, NATIVE };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
		struct memory *m = memory_new();

		ROWS(m, { AT(CODE), ABI_CFA_INVALID, 0, 0, 0 }, { AT(CALL(1) - 1), ABI_CFA_SP, 0, 2, 0 },
		     { AT(CALL(2) - 1), ABI_CFA_STOP, 0, 0, 0 });
		put_word(m, STACK + 0x20, STACK + 0x60);
		put_word(m, STACK + 0x28, CALL(1));
		put_word(m, STACK + 0x38, CALL(2));
		m->walk.leaf[FP] = STACK + 0x20;
		assert_int_equal(run(m, starts[i], WALK_AUTO), 3);
		assert_int_equal(m->walk.end, ABI_END_COMPLETE);
		expect_frame(m, 0, kinds[i], 0, starts[i]);
		expect_frame(m, 1, NATIVE, RETURN | GUESSED, CALL(1));
		expect_frame(m, 2, NATIVE, RETURN, CALL(2));
		assert_int_equal(run(m, starts[i], WALK_TABLE), 1);
		assert_int_equal(m->walk.end, ABI_END_NO_RULE);
		m->walk.leaf[FP] = 0;
		assert_int_equal(run(m, starts[i], WALK_AUTO), 1);
		assert_int_equal(m->walk.end, ABI_END_UNPROVEN_ROOT);
		put_word(m, STACK, CALL(2)); /* the last resort */
		assert_int_equal(run(m, starts[i], WALK_AUTO), 2);
		assert_int_equal(m->walk.end, ABI_END_COMPLETE);
		expect_frame(m, 1, NATIVE, RETURN | GUESSED, CALL(2));
		assert_int_equal(m->walk.sp, STACK + 8);
		memory_free(m);
	}
}

/* What can be mended leaves everything as it was, so that the host goes on where the kernel stopped. */
static void walks_can_be_resumed(void **state)
{
	struct memory *m = memory_new();
	struct abi_raw raw = { 0 };

	(void)state;
	put_word(m, STACK, JIT + 0x100);
	put_word(m, STACK + 0x20, 0);
	put_word(m, STACK + 0x28, CALL(2));
	m->walk.leaf[FP] = STACK + 0x20;
	m->walk.leaf[3] = 99;
	m->unmapped = true;
	assert_int_equal(run(m, CODE + 4, WALK_AUTO), 0);
	assert_int_equal(m->walk.end, ABI_END_NO_MAPPING);
	m->unmapped = false;
	assert_int_equal(run(m, CODE + 4, WALK_AUTO), 0);
	assert_int_equal(m->walk.end, ABI_END_NO_TABLE);
	for (int i = 0; i < WALK_REGS; i++)
		raw.regs[i] = m->walk.leaf[i];
	raw.pc = m->walk.pc;
	raw.sp = m->walk.sp;
	raw.fp = m->walk.fp;
	raw.is_leaf = m->walk.is_leaf;
	assert_int_equal(raw.pc, CODE + 4);
	assert_true(raw.is_leaf);
	ROWS(m, { AT(CODE), ABI_CFA_SP, 0, 1, 0 });
	m->table[0].head.pages = 1; /* CALL() lies in another page: no row there */
	memset(m->walk.leaf, 0, sizeof(m->walk.leaf));
	walk_native_resume(&m->walk, &raw);
	assert_int_equal(m->walk.leaf[3], 99);
	assert_int_equal(go_on(m), 3); /* by the row, then by the frame pointer out of JIT code */
	expect_frame(m, 1, ABI_FRAME_JIT, RETURN, JIT + 0x100);
	expect_frame(m, 2, NATIVE, RETURN | GUESSED, CALL(2));
	assert_int_equal(m->walk.end, ABI_END_UNPROVEN_ROOT);
	memory_free(m);
}

/* Tables that lie: a directory that points nowhere, one that points at itself. */
static void broken_tables(void **state)
{
	struct memory *m = memory_new();

	(void)state;
	ROWS(m, { AT(CODE), ABI_CFA_SP, 0, 1, 0 });
	put_word(m, STACK, CALL(1));
	m->table[1].pages[0].first = UINT32_MAX;
	assert_int_equal(run(m, CODE + 4, WALK_TABLE), 0);
	assert_int_equal(m->walk.end, ABI_END_NO_TABLE);
	m->table[1].pages[0] = (struct abi_page){ .first = UINT32_MAX - 3, .count = UINT16_MAX };
	run(m, CODE + 4, WALK_TABLE);
	m->table[1].pages[0] = (struct abi_page){ .first = 0, .count = UINT16_MAX };
	run(m, CODE + 4, WALK_TABLE);
	m->table[0].head.pages = UINT32_MAX;
	m->table[0].head.first_page = 0;
	run(m, CODE + 4, WALK_TABLE);
	m->table[0].head.size = 0; /* evicted */
	assert_int_equal(run(m, CODE + 4, WALK_AUTO), 0);
	assert_int_equal(m->walk.end, ABI_END_NO_TABLE);
	memory_free(m);
}

static void full_records(void **state)
{
	struct memory *m = memory_new();

	(void)state;
	ROWS(m, { AT(CODE), ABI_CFA_SP, 0, 1, 0 });
	for (uint64_t i = 0; i < STACK_WORDS; i++)
		put_word(m, STACK + i * 8, CODE + 0x10);
	assert_int_equal(run(m, CODE + 4, WALK_TABLE), ABI_FRAMES_MAX);
	assert_int_equal(m->walk.end, ABI_END_FRAME_LIMIT);
	memory_free(m);
}
#else
/* A leaf's x30, a frame record elsewhere than at sp, x30 alone, the root. */
static void walks_by_rows(void **state)
{
	struct memory *m = memory_new();

	(void)state;
	ROWS(m, { AT(CODE), ABI_CFA_SP, ABI_SAVED_SAME, 2, 0 }, { AT(CALL(1) - 4), ABI_CFA_SP, ABI_SAVED_PAIR, 4, -4 },
	     { AT(CALL(2) - 4), ABI_CFA_FP, ABI_SAVED_RETURN, 6, -5 }, { AT(CALL(3) - 4), ABI_CFA_STOP, 0, 0, 0 });
	m->walk.leaf[WALK_REG_LR] = CALL(1) | UINT64_C(0x7b) << 56; /* signed */
	put_word(m, STACK + 16, STACK + 0x100);
	put_word(m, STACK + 24, CALL(2));
	put_word(m, STACK + 0x108, CALL(3));
	assert_int_equal(run(m, CODE + 0x20, WALK_TABLE), 4);
	assert_int_equal(m->walk.end, ABI_END_COMPLETE);
	expect_frame(m, 0, NATIVE, 0, CODE + 0x20);
	expect_frame(m, 1, NATIVE, RETURN, CALL(1));
	expect_frame(m, 2, NATIVE, RETURN, CALL(2));
	expect_frame(m, 3, NATIVE, RETURN, CALL(3));
	assert_int_equal(m->walk.sp, STACK + 0x100 + 48);
	assert_int_equal(m->walk.fp, STACK + 0x100);
	memory_free(m);
}

/* Below the top frame x30 is the called one's: a row that still counts on it is wrong. */
static void link_register_of_the_top_only(void **state)
{
	struct memory *m = memory_new();

	(void)state;
	ROWS(m, { AT(CODE), ABI_CFA_SP, ABI_SAVED_SAME, 0, 0 }, { AT(CALL(1) - 4), ABI_CFA_SP, ABI_SAVED_SAME, 2, 0 });
	m->walk.leaf[WALK_REG_LR] = CALL(1);
	assert_int_equal(run(m, CODE + 0x20, WALK_TABLE), 2);
	assert_int_equal(m->walk.end, ABI_END_UNSUPPORTED);
	memory_free(m);
}

/* The return point of a handler in memory without rows, known by its instructions; what it interrupted is a leaf again.
 */
static void signal_frames(void **state)
{
	static const uint32_t sigreturn[] = { 0xd2801168, 0xd4000001 };
	struct memory *m = memory_new();
	uint64_t registers = STACK + 0x40 + 312, other = STACK + 0x1000;

	(void)state;
	ROWS(m, { AT(CODE), ABI_CFA_SP, ABI_SAVED_SAME, 8, 0 }, { AT(CODE + 0x100), ABI_CFA_SP, ABI_SAVED_SAME, 0, 0 },
	     { AT(CALL(3) - 4), ABI_CFA_STOP, 0, 0, 0 });
	memcpy(m->jit + 0x100, sigreturn, sizeof(sigreturn));
	m->walk.leaf[WALK_REG_LR] = JIT + 0x100;
	put_word(m, registers + 29 * 8, 77);
	put_word(m, registers + 30 * 8, CALL(3));
	put_word(m, registers + 31 * 8, other);
	put_word(m, registers + 32 * 8, CODE + 0x100); /* the first instruction of its function */
	assert_int_equal(run(m, CODE + 0x20, WALK_AUTO), 4);
	assert_int_equal(m->walk.end, ABI_END_COMPLETE);
	expect_frame(m, 1, ABI_FRAME_JIT, 0, JIT + 0x100);
	expect_frame(m, 2, NATIVE, 0, CODE + 0x100);
	expect_frame(m, 3, NATIVE, RETURN, CALL(3));
	assert_int_equal(m->walk.sp, other);
	assert_int_equal(m->walk.fp, 77);
	memory_free(m);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_found),
#ifdef WALK_X86_64
		cmocka_unit_test(walks_by_rows),
		cmocka_unit_test(saved_below_the_stack_pointer),
		cmocka_unit_test(calls_that_end_a_function),
		cmocka_unit_test(clones_child_has_no_caller),
		cmocka_unit_test(plt_entries),
		cmocka_unit_test(rules_of_their_own),
		cmocka_unit_test(signal_frames),
		cmocka_unit_test(signal_frames_do_not_loop),
		cmocka_unit_test(bad_rows_end),
		cmocka_unit_test(stacks_switch_a_few_times),
		cmocka_unit_test(guesses),
		cmocka_unit_test(walks_can_be_resumed),
		cmocka_unit_test(broken_tables),
		cmocka_unit_test(full_records),
#else
		cmocka_unit_test(walks_by_rows),
		cmocka_unit_test(link_register_of_the_top_only),
		cmocka_unit_test(signal_frames),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
