/* SPDX-License-Identifier: Apache-2.0 */
/* What is read of Node.js without a process: tables of source positions, lists of inlined functions, where code lies.
 */
#include "support.h"

#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/io.h"
#include "runtime/nodejs/nodejs_int.h"
#include "walk/walk_nodejs.h"

static void positions(void **state)
{
	/* differences of offset and position: (3, 10), (5, -4) as an expression: -5 - 1 */
	static const uint8_t table[] = { 6, 20, 11, 7 };
	uint64_t position = 0;

	(void)state;
	assert_false(nodejs_position_at(nodejs_version_find(10, 2), cur_of(table, sizeof(table)), 1, &position));
	assert_true(nodejs_position_at(nodejs_version_find(10, 2), cur_of(table, sizeof(table)), 2, &position));
	assert_int_equal(position, 10);
	assert_true(nodejs_position_at(nodejs_version_find(10, 2), cur_of(table, sizeof(table)), 6, &position));
	assert_int_equal(position, 10);
	assert_true(nodejs_position_at(nodejs_version_find(10, 2), cur_of(table, sizeof(table)), 7, &position));
	assert_int_equal(position, 6);
}

static void broken_positions(void **state)
{
	static const uint8_t endless[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2 };
	static const uint8_t half[] = { 6, 0x80 };
	uint64_t position = 7;

	(void)state;
	assert_false(nodejs_position_at(nodejs_version_find(10, 2), cur_of(endless, sizeof(endless)), 100, &position));
	assert_false(nodejs_position_at(nodejs_version_find(10, 2), cur_of(half, sizeof(half)), 100, &position));
	assert_false(nodejs_position_at(nodejs_version_find(10, 2), cur_of(half, 0), 100, &position));
	assert_int_equal(position, 7);
}

/* Bits of a position: script offset + 1 from bit 1, inlining id + 1 from bit 31. */
static void position_fields(void **state)
{
	uint64_t p = (uint64_t)(100 + 1) << 1 | (uint64_t)(5 + 1) << 31;

	(void)state;
	assert_int_equal(NODEJS_POSITION(p), 100);
	assert_int_equal(NODEJS_INLINING(p), 5);
	assert_int_equal(NODEJS_POSITION(0), -1);
	assert_int_equal(NODEJS_INLINING(0), -1);
}

static void assert_place(struct nodejs_place got, int line, int column)
{
	assert_int_equal(got.line, line);
	assert_int_equal(got.column, column);
}

static void lines(void **state)
{
	static uint32_t ends[] = { 4, 4 + 1, 20 };
	const struct nodejs_lines lines = { .length = 30, .count = 3, .ends = ends };

	(void)state;
	assert_place(nodejs_place_of(&lines, 0), 1, 1);
	assert_place(nodejs_place_of(&lines, 4), 1, 5);
	assert_place(nodejs_place_of(&lines, 5), 2, 1);
	assert_place(nodejs_place_of(&lines, 6), 3, 1);
	assert_place(nodejs_place_of(&lines, 20), 3, 15);
	assert_place(nodejs_place_of(&lines, 30), 4, 10);
	assert_place(nodejs_place_of(&lines, 31), 0, 0);
	assert_place(nodejs_place_of(NULL, 0), 0, 0);
}

static void bytecode_lines(void **state)
{
	/* 0: 10, column 3; 8: 12, column 1; 12: 10, column 65 */
	static const uint8_t table[] = { 0, 20, 6, 8, 4, 3, 4, 3, 0x80, 1 };
	const struct runtime_function f = { .first_line = 9, .first_column = 2, .lines = { table, sizeof(table) } };

	(void)state;
	assert_int_equal(nodejs_line(&f, 0), 10);
	assert_int_equal(nodejs_column(&f, 0), 3);
	assert_int_equal(nodejs_line(&f, 7), 10);
	assert_int_equal(nodejs_line(&f, 8), 12);
	assert_int_equal(nodejs_column(&f, 8), 1);
	assert_int_equal(nodejs_line(&f, 1000), 10);
	assert_int_equal(nodejs_column(&f, 1000), 65);
	assert_int_equal(nodejs_line(&f, ABI_NODEJS_NOWHERE), 9);
	assert_int_equal(nodejs_column(&f, ABI_NODEJS_NOWHERE), 2);
}

static void line_writer(void **state)
{
	scoped(buf_release) struct buf out = BUF_INIT(64);
	struct nodejs_line_writer w = { .out = &out };
	struct runtime_function f = { .first_line = 77 };

	(void)state;
	nodejs_line_add(&w, 0, (struct nodejs_place){ 10, 3 });
	nodejs_line_add(&w, 2, (struct nodejs_place){ 10, 3 }); /* the same */
	nodejs_line_add(&w, 3, (struct nodejs_place){ 0, 3 });  /* not known */
	assert_int_equal(out.len, 3);
	nodejs_line_add(&w, 4, (struct nodejs_place){ 10, 9000 });
	nodejs_line_add(&w, 9, (struct nodejs_place){ 2, 1 });
	f.lines = (struct runtime_lines){ (const uint8_t *)out.ptr, (uint32_t)out.len };
	assert_int_equal(nodejs_line(&f, 3), 10);
	assert_int_equal(nodejs_column(&f, 3), 3);
	assert_int_equal(nodejs_column(&f, 4), 9000);
	assert_int_equal(nodejs_line(&f, 9), 2);
	assert_int_equal(nodejs_column(&f, 9), 1);
}

static void expands(void **state)
{
	static const uint8_t lists[] = {
		2, 7,  70, 5,  50, 9, 45, 1, 2,   'f', 'i', 'n', /* as a return address */
		3, 30, 1,  10, 0,  0, 1,  3, 'f', 'o', 'u', 't', 1, 4, 40, 1, 10, 0, 0, 1, 3, 'f', 'o', 'u', 't',
	};
	const struct runtime_function code = { .lines = { lists, sizeof(lists) } };
	static struct runtime_shown out[RUNTIME_EXPAND_MAX];

	(void)state;
	assert_int_equal(nodejs_expand(&code, 0, true, out), 2);
	assert_int_equal(out[0].line, 7);
	assert_int_equal(out[0].column, 70);
	assert_int_equal(out[0].function.first_line, 5);
	assert_int_equal(out[0].function.first_column, 50);
	assert_int_equal(out[0].function.map_id, 9);
	assert_int_equal(out[0].function.name_column, 45);
	assert_int_equal(out[1].function.map_id, 0);
	assert_true(str_eq(out[0].function.name, STR("in")));
	assert_true(str_eq(out[1].function.name, STR("out")));
	assert_int_equal(nodejs_expand(&code, 0, false, out), 1);
	assert_int_equal(out[0].line, 4);
	assert_int_equal(nodejs_expand(&code, 1, false, out), 0);
	for (uint32_t size = 0; size < sizeof(lists); size++) {
		const struct runtime_function cut = { .lines = { lists, size } };

		assert_int_equal(nodejs_expand(&cut, 0, false, out), 0);
	}
}

/* Bytecodes of 1, 3 (with a prefix) and 2 bytes, at 0, 1 and 4; code in front of them 10 bytes, of them 4, 5 and 6. */
static void baseline_lines(void **state)
{
	static const struct nodejs_layout layout = { .version = { .positions_from = -1 },
						     .bytecode_count = 6,
						     .bytecode_sizes = { { 1, 1, 1, 1, 1, 2 }, { 0, 0, 0, 0, 2 } } };
	static const uint8_t bytecode[] = { 3, 0, 4, 9, 5, 9 }, lengths[] = { 10, 4, 5, 6 };
	/* (0, 2): line 1; (1, 4): line 2; (4, 26): line 4; positions are in bits 1 to 30, plus 1 */
	static const uint8_t positions[] = { 2, 3 << 2, 2, 2 << 2, 6, 22 << 2 & 0x7f };
	static uint32_t ends[] = { 3, 9, 12 };
	const struct nodejs_lines lines = { .length = 40, .count = ARRAY_SIZE(ends), .ends = ends };
	struct buf out = BUF_INIT(64);
	struct runtime_function f = { .first_line = 77 };

	(void)state;
	assert_int_equal(nodejs_baseline_lines(&layout, cur_of(bytecode, sizeof(bytecode)),
					       cur_of(lengths, sizeof(lengths)), cur_of(positions, sizeof(positions)),
					       &lines, &out),
			 0);
	f.lines = (struct runtime_lines){ (const uint8_t *)out.ptr, (uint32_t)out.len };
	assert_int_equal(nodejs_line(&f, 0), 77);
	assert_int_equal(nodejs_line(&f, 9), 77);
	assert_int_equal(nodejs_line(&f, 10), 1);
	assert_int_equal(nodejs_line(&f, 13), 1);
	assert_int_equal(nodejs_line(&f, 14), 2);
	assert_int_equal(nodejs_line(&f, 18), 2);
	assert_int_equal(nodejs_line(&f, 19), 4);
	buf_release(&out);
}

static void broken_bytecode(void **state)
{
	static const struct nodejs_layout layout = { .bytecode_count = 4, .bytecode_sizes = { { 1, 1, 1, 2 } } };
	static const struct {
		const char *name, *bytes;
		size_t size, count;
	} cases[] = {
		{ "no such bytecode", "\x02\x04", 2, 1 }, { "a prefix alone", "\x02\x00", 2, 1 },
		{ "not wide", "\x02\x01\x03", 3, 1 },     { "cut", "\x02\x03", 2, 1 },
		{ "whole", "\x02\x03\x09", 3, 2 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct nodejs_bytecodes b = { .in = cur_of(cases[i].bytes, cases[i].size) };
		size_t count = 0;

		print_message("  %s\n", cases[i].name);
		while (nodejs_bytecodes_next(&b, &layout))
			count++;
		assert_int_equal(count, cases[i].count);
	}
}

/* Up to V8 7 offsets count from 0; from 14 on a difference has a bit more. */
static void positions_of_versions(void **state)
{
	static const uint8_t table[] = { 4 * 2, 20 };
	uint64_t position = 0;

	(void)state;
	assert_false(nodejs_position_at(nodejs_version_find(7, 8), cur_of(table, sizeof(table)), 3, &position));
	assert_true(nodejs_position_at(nodejs_version_find(7, 8), cur_of(table, sizeof(table)), 4, &position));
	assert_true(nodejs_position_at(nodejs_version_find(13, 6), cur_of(table, sizeof(table)), 3, &position));
	assert_false(nodejs_position_at(nodejs_version_find(14, 6), cur_of(table, sizeof(table)), 0, &position));
	assert_true(nodejs_position_at(nodejs_version_find(14, 6), cur_of(table, sizeof(table)), 1, &position));
	assert_int_equal(position, 10);
}

#define PROGRAM                                                                                           \
	"00b72000-025fe000 r-xp 00772000 fe:00 7 /usr/bin/node\n0563e000-0565d000 rw-p 0523d000 fe:00 7 " \
	"/usr/bin/node\n"
#define ISOLATE(at)                                                                                              \
	at "0000000-" at "0002000 rw-p 00000000 00:00 0\n" at "0002000-" at "0003000 ---p 00000000 00:00 0\n" at \
	   "0003000-" at "003f000 rwxp 00000000 00:00 0\n" at "003f000-" at "9e40000 ---p 00000000 00:00 0\n" at \
	   "9e40000-" at "9fd2000 r-xp 014c4000 fe:00 7 /usr/bin/node\n" at "9fd2000-" at                        \
	   "a000000 ---p 00000000 00:00 0\n"
#define HALF_COPY(at)                                                       \
	at "0000000-" at "003f000 rwxp 00000000 00:00 0\n" at "003f000-" at \
	   "013f000 r-xp 014c4000 fe:00 7 /usr/bin/node\n"
#define LIBRARY(at) at "f000000-" at "f001000 r-xp 00000000 fe:00 9 /lib/x.so\n"
#define ARENA "7fe500000000-7fe500021000 rw-p 00000000 00:00 0\n"
#define BUILTINS UINT64_C(0x18c4000)
#define BUILTINS_SIZE UINT64_C(0x192000)
#define DATA 0x5650b34ULL

static void where_code_lies(void **state)
{
	static const struct {
		const char *maps;
		size_t ranges, builtins;
	} cases[] = {
		{ PROGRAM ARENA, 1, 1 },
		{ PROGRAM ISOLATE("7fe51"), 2, 2 },
		{ PROGRAM ISOLATE("7fe51") ISOLATE("7fe52") ISOLATE("7fe53"), 4, 4 },
		{ PROGRAM ISOLATE("7fe51") ISOLATE("7fe52") ISOLATE("7fe53") ISOLATE("7fe54"), 4, 5 },
		{ PROGRAM ISOLATE("7fe51") LIBRARY("7fe51") ISOLATE("7fe52") ISOLATE("7fe53") ISOLATE("7fe54"), 4, 5 },
		{ PROGRAM ISOLATE("7fe51") ISOLATE("7fe52") ISOLATE("7ff11") ISOLATE("7ffe1"), 4, 5 }, /* far apart */
		{ PROGRAM ISOLATE("7fe51") ISOLATE("7ff11") ISOLATE("7ff81") ISOLATE("7ffe1"), 4, 5 }, /* all are */
		{ PROGRAM ISOLATE("7fe51") HALF_COPY("7fe52") ISOLATE("7fe53"), 4, 3 },
		{ ARENA ISOLATE("7fe51"), 0, 1 }, /* another file's */
		{ "", 0, 1 },
		{ PROGRAM "7fe", 1, 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct nodejs_maps out;

		print_message("  case %zu\n", i);
		nodejs_maps_read(str_of(cases[i].maps), BUILTINS, BUILTINS_SIZE, DATA, &out);
		assert_int_equal(out.range_count, cases[i].ranges);
		assert_int_equal(out.builtin_count, cases[i].builtins);
		assert_int_equal(out.builtins_size, BUILTINS_SIZE);
		if (out.range_count)
			assert_int_equal(out.ranges[0].low, BUILTINS);
		if (out.range_count > 1) {
			assert_int_equal(out.ranges[1].low, 0x7fe510000000);
			assert_true(out.ranges[1].size >= 0xa000000);
		}
	}
}

#define FAR UINT64_C(0x550000000000)  /* where the program is */
#define RESERVED UINT64_C(0x20000000) /* each isolate */
#define BELOW (FAR - 64 * RESERVED)   /* half of them */
#define COPY_AT UINT64_C(0x1fe40000)  /* of the built-in code in it */

static uint64_t isolate_at(size_t i)
{
	return i % 2 ? FAR + (1 + i) * RESERVED : BELOW + i * RESERVED;
}

static void add_isolate(struct buf *maps, uint64_t at)
{
	buf_addf(maps, "%" PRIx64 "-%" PRIx64 " rwxp 00000000 00:00 0\n", at, at + COPY_AT);
	buf_addf(maps, "%" PRIx64 "-%" PRIx64 " r-xp 014c4000 fe:00 7 /usr/bin/node\n", at + COPY_AT,
		 at + COPY_AT + BUILTINS_SIZE);
}

/* @is_known: or its place was another one's. */
static void judge_copy(const struct abi_nodejs *info, uint64_t low, bool is_known)
{
	assert_false(walk_nodejs_is_builtin(info, low - 1));
	assert_int_equal(walk_nodejs_is_builtin(info, low), is_known);
	assert_int_equal(walk_nodejs_is_builtin(info, low + BUILTINS_SIZE / 2), is_known);
	assert_int_equal(walk_nodejs_is_builtin(info, low + BUILTINS_SIZE - 1), is_known);
	assert_false(walk_nodejs_is_builtin(info, low + BUILTINS_SIZE));
}

/* Each worker thread has an isolate, and that a copy of the built-in code, below or above the file's own. */
static void many_isolates(void **state)
{
	static const size_t counts[] = { 0, 1, 2, 17, ABI_NODEJS_BUILTINS - 1, ABI_NODEJS_BUILTINS, 60 };

	(void)state;
	for (size_t n = 0; n < ARRAY_SIZE(counts); n++) {
		scoped(buf_release) struct buf maps = BUF_INIT(MIB(1));
		struct nodejs_maps out;
		struct abi_nodejs info;
		size_t known = 1;

		print_message("  %zu isolates\n", counts[n]);
		for (size_t i = 0; i < counts[n]; i += 2)
			add_isolate(&maps, isolate_at(i));
		buf_addf(&maps, "%" PRIx64 "-%" PRIx64 " r-xp 00772000 fe:00 7 /usr/bin/node\n", FAR + 0xb72000,
			 FAR + 0x25fe000);
		for (size_t i = 1; i < counts[n]; i += 2)
			add_isolate(&maps, isolate_at(i));
		nodejs_maps_read(buf_str(&maps), FAR + BUILTINS, BUILTINS_SIZE - 100, FAR + 0xb73000, &out);
		assert_int_equal(out.builtin_count, MIN(counts[n] + 1, (size_t)ABI_NODEJS_BUILTINS));
		nodejs_take_builtins(&out, &info);
		judge_copy(&info, FAR + BUILTINS, true);
		for (size_t i = 0; i < counts[n]; i += 2)
			judge_copy(&info, isolate_at(i) + COPY_AT, ++known <= ABI_NODEJS_BUILTINS);
		for (size_t i = 1; i < counts[n]; i += 2)
			judge_copy(&info, isolate_at(i) + COPY_AT, ++known <= ABI_NODEJS_BUILTINS);
	}
}

/* A file without .symtab: where its built-in code lies, a copy of it tells. */
static void where_code_lies_unsaid(void **state)
{
	struct nodejs_maps out;

	(void)state;
	nodejs_maps_read(STR(PROGRAM ISOLATE("7fe51")), 0, 0, DATA, &out);
	assert_int_equal(out.range_count, 2);
	assert_int_equal(out.ranges[0].low, BUILTINS & ~0xfffULL);
	assert_int_equal(out.ranges[0].size, BUILTINS_SIZE);
	assert_int_equal(out.builtin_count, 2);
	nodejs_maps_read(STR(PROGRAM ARENA), 0, 0, DATA, &out);
	assert_int_equal(out.range_count, 0);
	assert_int_equal(out.builtin_count, 0);
}

/* Up to V8 10.2: an isolate out of the file's reach, and one whose code is as large as a copy would be. */
#define FAR_ISOLATE(at)                                                                                          \
	at "0000000-" at "0002000 rw-p 00000000 00:00 0\n" at "0002000-" at "0003000 ---p 00000000 00:00 0\n" at \
	   "0003000-" at "0032000 r-xp 00000000 00:00 0\n" at "0032000-" at "9e40000 ---p 00000000 00:00 0\n" at \
	   "9e40000-" at "9fd2000 r-xp 00000000 00:00 0\n" at "9fd2000-" at "a000000 ---p 00000000 00:00 0\n"

struct copied {
	uint64_t odd; /* of what lies at this one some byte is another one's */
	uint64_t lost;
};

static int copied_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	const struct copied *c = self;
	uint64_t base = at - BUILTINS < BUILTINS_SIZE ? BUILTINS : (at & ~UINT64_C(0xfffffff)) | 0x9e40000;

	if (base == c->lost || at - base > BUILTINS_SIZE - size)
		return -EFAULT;
	for (size_t i = 0; i < size; i++)
		((uint8_t *)dst)[i] = (uint8_t)((at - base + i) * 7 >> 3);
	if (base == c->odd && at - base > BUILTINS_SIZE / 2)
		((uint8_t *)dst)[size - 1] ^= 1;
	return 0;
}

static void copies_in_other_memory(void **state)
{
	static const struct {
		const char *name;
		struct copied copied;
		size_t builtins;
	} cases[] = {
		{ "two", { 0, 0 }, 3 },
		{ "one, and code of that size", { 0x7fe529e40000, 0 }, 2 },
		{ "one is gone", { 0, 0x7fe519e40000 }, 2 },
		{ "the file's own cannot be read", { 0, BUILTINS }, 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct copied copied = cases[i].copied;
		struct runtime_target target = { .self = &copied, .read = copied_read };
		struct nodejs_maps out;

		print_message("  %s\n", cases[i].name);
		nodejs_maps_read(STR(PROGRAM FAR_ISOLATE("7fe51") FAR_ISOLATE("7fe52")), BUILTINS, BUILTINS_SIZE - 100,
				 DATA, &out);
		assert_int_equal(out.range_count, 3);
		assert_int_equal(out.builtin_count, 1);
		assert_int_equal(out.maybe_count, 2);
		nodejs_maps_prove(&target, BUILTINS, &out);
		assert_int_equal(out.builtin_count, cases[i].builtins);
		assert_int_equal(out.builtins[0], BUILTINS);
	}
}

/* ---- objects in a process ---- */

#define MEMORY 0x10800ULL /* what is there ends where a page does */
#define TYPE_SCRIPT 200
#define TYPE_SCOPE 261
#define TYPE_MAP 250

struct memory {
	uint8_t bytes[2048];
	size_t reads;
	size_t change_after; /* reads, then a word is another one; 0: none is */
	uint64_t change_at, change_to;
};

static int memory_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	struct memory *m = self;

	m->reads++;
	at -= MEMORY;
	if (at > sizeof(m->bytes) || size > sizeof(m->bytes) - at)
		return -EFAULT;
	if (m->change_after && m->reads > m->change_after)
		memcpy(m->bytes + m->change_at, &m->change_to, sizeof(m->change_to));
	memcpy(dst, m->bytes + at, size);
	return 0;
}

static void budget(void **state)
{
	static struct memory m;
	static uint8_t bytes[KIB(8)];
	const struct runtime_target target = { .read = memory_read, .self = &m };
	uint64_t left = 2, word;
	const struct nodejs_heap h = { .target = &target, .left = &left };

	(void)state;
	assert_int_equal(nodejs_word(&h, MEMORY, &word), 0);
	assert_int_equal(nodejs_word(&h, 1, &word), -EFAULT); /* it was a read as well */
	assert_int_equal(nodejs_word(&h, MEMORY, &word), -E2BIG);
	assert_int_equal(m.reads, 2);
	left = 2;
	assert_int_equal(nodejs_read(&h, bytes, sizeof(bytes), MEMORY), -E2BIG); /* 3 */
	assert_int_equal(left, 0);
	assert_int_equal(m.reads, 2);
}

static void put(struct memory *m, uint64_t at, uint64_t word)
{
	memcpy(m->bytes + at, &word, sizeof(word));
}

static void put_source(struct memory *m, uint64_t at, const char *text)
{
	put(m, at, MEMORY + 0x140 + ABI_NODEJS_TAG);
	put(m, at + 8, (uint64_t)strlen(text) << 32);
	memcpy(m->bytes + at + 16, text, strlen(text));
}

/* How strings lie: all that reads one needs this. */
static const struct nodejs_layout layout_of_strings = { .string_length = 12,
							.string_chars = 16,
							.map_type = 12,
							.first_nonstring = 128,
							.representation_mask = 7,
							.encoding_mask = 8,
							.one_byte = 8,
							.tag_cons = 1,
							.tag_external = 2,
							.tag_sliced = 3,
							.tag_thin = 5 };

/* A string may come to lie where another one was. */
static void script_lines(void **state)
{
	static struct memory m;
	const struct runtime_target target = { .read = memory_read, .self = &m };
	struct nodejs_layout layout = layout_of_strings;
	struct nodejs_process *p = calloc(1, sizeof(*p));
	const struct nodejs_heap h = { .target = &target, .layout = &layout, .process = p };
	const uint64_t script = MEMORY + 0x200 + ABI_NODEJS_TAG;
	size_t reads;

	(void)state;
	assert_non_null(p);
	layout.script_source = 8;
	layout.type_script = TYPE_SCRIPT;
	put(&m, 0x108, (uint64_t)TYPE_SCRIPT << 32);
	put(&m, 0x148, 8ULL << 32);
	put(&m, 0x200, MEMORY + 0x100 + ABI_NODEJS_TAG);
	put(&m, 0x208, MEMORY + 0x300 + ABI_NODEJS_TAG);
	put_source(&m, 0x300, "a\nb\r\nc");
	assert_int_equal(nodejs_place_of(nodejs_script_lines(&h, script), 5).line, 3);
	reads = m.reads;
	assert_int_equal(nodejs_place_of(nodejs_script_lines(&h, script), 2).line, 2);
	assert_true(m.reads - reads < 6); /* kept */
	put_source(&m, 0x300, "\n\n\n");
	assert_int_equal(nodejs_place_of(nodejs_script_lines(&h, script), 2).line, 3);
	assert_int_equal(nodejs_place_of(nodejs_script_lines(&h, script), 5).line, 0);
	assert_true(p->scanned == 9 || p->scanned == 3); /* 3: a new second has begun */
	nodejs_unlearn(p);
}

/* Functions named by their scope. */
static struct nodejs_layout layout_of_scopes(uint8_t major, uint8_t minor)
{
	struct nodejs_layout layout = layout_of_strings;

	layout.sfi_name = 16;
	layout.sfi_script = 32;
	layout.scope_locals = 2;
	layout.scope_first = 3;
	layout.type_map = TYPE_MAP;
	layout.type_scope = TYPE_SCOPE;
	layout.version = *nodejs_version_find(major, minor);
	return layout;
}

/* A function's name whose memory is another object's by now is not known; that is not the same as having none. */
static void names_gone(void **state)
{
	static const struct {
		uint8_t major, minor;
		uint64_t first; /* of what stands behind the local variables */
		int result;
		const char *name;
	} cases[] = {
		{ 11, 3, MEMORY + 0x300 + ABI_NODEJS_TAG, 0, "outer" },
		{ 11, 3, 7ULL << 32, 0, "(anonymous)" }, /* where it begins */
		{ 11, 3, MEMORY + 0x200 + ABI_NODEJS_TAG, -ESTALE, NULL },
		{ 13, 6, MEMORY + 0x300 + ABI_NODEJS_TAG, 0, "outer" },
		{ 13, 6, MEMORY + 0x400 + ABI_NODEJS_TAG, 0, "(anonymous)" }, /* the scope around it */
		{ 13, 6, MEMORY + 0x200 + ABI_NODEJS_TAG, -ESTALE, NULL },
	};
	static struct memory m;
	const struct runtime_target target = { .read = memory_read, .self = &m };

	(void)state;
	put(&m, 0x108, (uint64_t)TYPE_SCRIPT << 32); /* maps: of scripts, strings, scopes */
	put(&m, 0x148, 8ULL << 32);
	put(&m, 0x188, (uint64_t)TYPE_SCOPE << 32);
	put(&m, 0x200, MEMORY + 0x100 + ABI_NODEJS_TAG);
	put_source(&m, 0x300, "outer");
	put(&m, 0x400, MEMORY + 0x180 + ABI_NODEJS_TAG);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct nodejs_layout layout = layout_of_scopes(cases[i].major, cases[i].minor);
		const struct nodejs_heap h = { .target = &target, .layout = &layout };
		const __u64 words[ABI_NODEJS_SFI_WORDS] = { 0, 0, MEMORY + 0x400 + ABI_NODEJS_TAG };
		scoped(buf_release) struct buf room = BUF_INIT(KIB(8));
		struct nodejs_function f;

		put(&m, 0x400 + 8 + 24, cases[i].first);
		assert_int_equal(nodejs_function_read(&h, words, &room, &f), cases[i].result);
		if (cases[i].name)
			assert_true(str_eq(str_n(room.ptr + f.name_at, f.name_len), str_of(cases[i].name)));
	}
}

/* A name stands behind the local variables, however many there are. */
static void names_behind_many_variables(void **state)
{
	static const struct {
		uint8_t major, minor;
		uint64_t locals, at; /* words behind the count of them */
	} cases[] = { { 9, 4, 74, 148 }, { 9, 4, 80, 160 }, { 10, 2, 74, 148 }, { 10, 2, 80, 81 } };
	const struct runtime_target target = { .read = memory_read };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct nodejs_layout layout = layout_of_scopes(cases[i].major, cases[i].minor);
		const __u64 words[ABI_NODEJS_SFI_WORDS] = { 0, 0, MEMORY + ABI_NODEJS_TAG };
		const uint64_t scope = layout.version.scope_words;
		scoped(buf_release) struct buf room = BUF_INIT(KIB(8));
		struct memory m = { 0 };
		struct runtime_target of_case = target;
		const struct nodejs_heap h = { .target = &of_case, .layout = &layout };
		struct nodejs_function f;

		of_case.self = &m;
		put(&m, 0, MEMORY + 0x780 + ABI_NODEJS_TAG); /* maps: of scopes, strings */
		put(&m, 0x788, (uint64_t)TYPE_SCOPE << 32);
		put(&m, 0x148, 8ULL << 32);
		put_source(&m, 0x700, "outer");
		put(&m, scope + layout.scope_locals * 8, cases[i].locals << 32);
		put(&m, scope + (layout.scope_first + cases[i].at) * 8, MEMORY + 0x700 + ABI_NODEJS_TAG);
		assert_int_equal(nodejs_function_read(&h, words, &room, &f), 0);
		assert_true(str_eq(str_n(room.ptr + f.name_at, f.name_len), STR("outer")));
	}
}

/* What is mapped ends behind the scope, as it does at the end of a page of V8's heap. */
static void scopes_at_the_end(void **state)
{
	static const struct {
		size_t count;
		uint64_t words[4]; /* what stands behind the local variables */
		int result, line;  /* where it begins; 0: not known */
		const char *name;
	} cases[] = {
		{ 4, { MEMORY + 0x300 + ABI_NODEJS_TAG, 7ULL << 32, 2ULL << 32, 3ULL << 32 }, 0, 2, "outer" },
		{ 3, { MEMORY + 0x300 + ABI_NODEJS_TAG, 2ULL << 32, 3ULL << 32 }, 0, 2, "outer" }, /* inferred */
		{ 2, { 2ULL << 32, 3ULL << 32 }, 0, 2, "(anonymous)" },
		{ 1, { MEMORY + 0x300 + ABI_NODEJS_TAG }, 0, 0, "outer" },
		{ 1, { MEMORY + 0x2000 + ABI_NODEJS_TAG }, -EFAULT, 0, NULL },
		{ 0, { 0 }, -ESTALE, 0, NULL }, /* these versions have something there */
	};
	static struct memory m;
	const struct runtime_target target = { .read = memory_read, .self = &m };
	struct nodejs_layout layout = layout_of_scopes(11, 3);
	struct nodejs_process *p = calloc(1, sizeof(*p));
	const struct nodejs_heap h = { .target = &target, .layout = &layout, .process = p };

	(void)state;
	assert_non_null(p);
	layout.script_source = 8;
	layout.script_name = 16;
	layout.type_script = TYPE_SCRIPT;
	put(&m, 0x108, (uint64_t)TYPE_SCRIPT << 32); /* maps: of scripts, strings, scopes, maps */
	put(&m, 0x148, 8ULL << 32);
	put(&m, 0x180, MEMORY + 0x1c0 + ABI_NODEJS_TAG);
	put(&m, 0x188, (uint64_t)TYPE_SCOPE << 32);
	put(&m, 0x1c8, (uint64_t)TYPE_MAP << 32);
	put(&m, 0x200, MEMORY + 0x100 + ABI_NODEJS_TAG);
	put(&m, 0x208, MEMORY + 0x280 + ABI_NODEJS_TAG);
	put(&m, 0x210, MEMORY + 0x180 + ABI_NODEJS_TAG); /* its name is no string */
	put_source(&m, 0x280, "a\nb\nc");
	put_source(&m, 0x300, "outer");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t scope = sizeof(m.bytes) - 8 * cases[i].count - 8 - 24;
		const __u64 words[ABI_NODEJS_SFI_WORDS] = { 0, 0, MEMORY + scope + ABI_NODEJS_TAG, 0,
							    MEMORY + 0x200 + ABI_NODEJS_TAG };
		scoped(buf_release) struct buf room = BUF_INIT(KIB(8));
		struct nodejs_function f;

		put(&m, scope, MEMORY + 0x180 + ABI_NODEJS_TAG);
		for (size_t k = 0; k < 3; k++)
			put(&m, scope + 8 + 8 * k, 0);
		for (size_t k = 0; k < cases[i].count; k++)
			put(&m, scope + 8 + 24 + 8 * k, cases[i].words[k]);
		assert_int_equal(nodejs_function_read(&h, words, &room, &f), cases[i].result);
		if (!cases[i].name)
			continue;
		assert_true(str_eq(str_n(room.ptr + f.name_at, f.name_len), str_of(cases[i].name)));
		assert_int_equal(f.first.line, cases[i].line);
	}
	nodejs_unlearn(p);
}

/* A string whose memory is changed after so many reads. Return: as nodejs_text(). */
static int read_changing(size_t change_after, uint64_t at, uint64_t to, struct buf *text)
{
	struct memory m = { .change_after = change_after, .change_at = at, .change_to = to };
	const struct runtime_target target = { .read = memory_read, .self = &m };
	const struct nodejs_heap h = { .target = &target, .layout = &layout_of_strings };
	bool is_cut;

	put(&m, 0x148, 8ULL << 32);
	put(&m, 0x188, 0); /* a map of strings with two bytes a character */
	put_source(&m, 0x300, "outer");
	if (!change_after)
		put(&m, at, to);
	return nodejs_text(&h, MEMORY + 0x300 + ABI_NODEJS_TAG, text, &is_cut);
}

/* Another string comes to lie there meanwhile, with wide characters or shorter: one of the two is read, or none. */
static void texts_that_change(void **state)
{
	static const struct {
		uint64_t at, to;
	} changes[] = { { 0x300, MEMORY + 0x180 + ABI_NODEJS_TAG }, { 0x308, 2ULL << 32 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		scoped(buf_release) struct buf other = BUF_INIT(KIB(8));
		bool was_not = false, was_other = false;

		assert_int_equal(read_changing(0, changes[i].at, changes[i].to, &other), 0);
		assert_false(str_eq(buf_str(&other), STR("outer")));
		for (size_t after = 1; after < 20; after++) {
			scoped(buf_release) struct buf text = BUF_INIT(KIB(8));
			int r = read_changing(after, changes[i].at, changes[i].to, &text);
			bool is_other = r == 0 && str_eq(buf_str(&text), buf_str(&other));

			assert_true(r == -ESTALE || is_other || str_eq(buf_str(&text), STR("outer")));
			was_not |= r == -ESTALE;
			was_other |= is_other;
		}
		assert_true(was_not && was_other);
	}
}

/* ---- long and hostile strings ---- */

#define STRINGS_SIZE MIB(3)

struct strings { /* a large memory, and how much of it was read */
	uint8_t *bytes;
	uint64_t reads, read_bytes;
};

static int read_strings(void *self, void *dst, uint32_t size, uint64_t at)
{
	struct strings *s = self;

	s->reads++;
	s->read_bytes += size;
	at -= MEMORY;
	if (at > STRINGS_SIZE || size > STRINGS_SIZE - at)
		return -EFAULT;
	memcpy(dst, s->bytes + at, size);
	return 0;
}

static void put_word(struct strings *s, uint64_t at, uint64_t word)
{
	memcpy(s->bytes + at, &word, sizeof(word));
}

/* A string whose map says @type: two words behind its length. */
static uint64_t put_string(struct strings *s, uint64_t at, uint64_t type, uint64_t length, uint64_t first,
			   uint64_t second)
{
	put_word(s, 0x100 + type * 64, 0);
	put_word(s, 0x100 + type * 64 + 8, type << 32);
	put_word(s, at, MEMORY + 0x100 + type * 64 + ABI_NODEJS_TAG);
	put_word(s, at + 8, length << 32);
	put_word(s, at + 16, first);
	put_word(s, at + 24, second);
	return MEMORY + at + ABI_NODEJS_TAG;
}

/* One byte each: 8, of a form: + 1 cons, + 2 external, + 3 sliced, + 5 thin; two bytes each: the forms alone. */
#define TAGGED(at) (MEMORY + (at) + ABI_NODEJS_TAG)

static void hostile_strings(void **state)
{
	static const struct {
		const char *name;
		uint64_t type, length, first, second;
		int result;
		size_t size; /* of the text, when it is read */
		bool is_cut;
	} cases[] = {
		{ "a name of 1 MB", 8, MIB(1), 0x6161616161616161, 0x6161616161616161, 0, NODEJS_TEXT_MAX, true },
		{ "... of two bytes each", 0, MIB(1), 0x6161616161616161, 0x6161616161616161, 0, 0, true },
		{ "exactly what fits", 8, NODEJS_TEXT_MAX, 0x6161616161616161, 0x6161616161616161, 0, NODEJS_TEXT_MAX,
		  false },
		{ "one more", 8, NODEJS_TEXT_MAX + 1, 0x6161616161616161, 0x6161616161616161, 0, NODEJS_TEXT_MAX,
		  true },
		{ "longer than any", 8, 0xffffffff, 0, 0, -EBADMSG, 0, false },
		{ "a slice of itself", 8 + 3, 20, TAGGED(0x2000), 0, -EBADMSG, 0, false },
		{ "a slice far behind its parent", 8 + 3, 20, TAGGED(0x3000), 1000ULL << 32, -EBADMSG, 0, false },
		{ "... so far that it wraps", 8 + 3, 20, TAGGED(0x3000), 0xffffffffULL << 32, -EBADMSG, 0, false },
		{ "thin, of itself", 8 + 5, 20, TAGGED(0x2000), 0, -EBADMSG, 0, false },
		{ "both halves are itself", 8 + 1, 20, TAGGED(0x2000), TAGGED(0x2000), -EBADMSG, 0, false },
		{ "a half that is no object", 8 + 1, 20, TAGGED(0x3000), 6, -EBADMSG, 0, false },
		{ "a half in no memory", 8 + 1, 20, TAGGED(0x3000), TAGGED(1ULL << 40), -EFAULT, 0, false },
		{ "a form that is none", 8 + 4, 20, 0, 0, -EBADMSG, 0, false },
		{ "no string", 128, 20, 0, 0, -EBADMSG, 0, false },
		{ "characters elsewhere, in no memory", 8 + 2, 20, 0, 1ULL << 40, -EFAULT, 0, false },
	};
	struct nodejs_layout layout = layout_of_strings;

	(void)state;
	layout.string_first = layout.string_parent = layout.string_actual = layout.string_resource = 16;
	layout.string_second = layout.string_offset = 24;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct strings s = { .bytes = calloc(1, STRINGS_SIZE) };
		const struct runtime_target target = { .read = read_strings, .self = &s };
		const struct nodejs_heap h = { .target = &target, .layout = &layout };
		scoped(buf_release) struct buf text = BUF_INIT(MIB(1));
		bool is_cut = false;
		uint64_t object;
		int r;

		print_message("  %s\n", cases[i].name);
		assert_non_null(s.bytes);
		memset(s.bytes + 0x2000, 'a', STRINGS_SIZE - 0x2000);
		put_string(&s, 0x3000, 8, 10, 0x6161616161616161, 0x6161616161616161);
		object = put_string(&s, 0x2000, cases[i].type, cases[i].length, cases[i].first, cases[i].second);
		r = nodejs_text(&h, object, &text, &is_cut);
		assert_int_equal(r, cases[i].result);
		assert_true(s.reads < 20000 && s.read_bytes < MIB(1));
		if (r == 0)
			assert_int_equal(is_cut, cases[i].is_cut);
		if (cases[i].size)
			assert_int_equal(text.len, cases[i].size);
		assert_true(text.len <= 4 * NODEJS_TEXT_MAX && !text.error);
		if (r < 0)
			assert_int_equal(text.len, 0);
		free(s.bytes);
	}
}

/* ES modules are named by URLs. */
static void paths_of_urls(void **state)
{
	static const struct {
		const char *url, *want;
	} cases[] = {
		{ "file:///srv/my%20app/x.mjs", "/srv/my app/x.mjs" },
		{ "file:///a.mjs?v=1", "/a.mjs" },
		{ "file:///a.mjs#b?c", "/a.mjs" },
		{ "file:///a%3F%23%25.mjs?%zz", "/a?#%.mjs" },
		{ "file:///%c3%A9t%C3%a9.mjs", "/\xc3\xa9t\xc3\xa9.mjs" },
		{ "file:///%E6%BC%A2.mjs", "/\xe6\xbc\xa2.mjs" },
		{ "file:///", "/" },
		/* as it is written */
		{ "file:///a%00b.mjs", "/a%00b.mjs" },
		{ "file:///a%2Fb%20c.mjs", "/a%2Fb%20c.mjs" },
		{ "file:///a%2fb", "/a%2fb" },
		{ "file:///a%", "/a%" },
		{ "file:///a%2", "/a%2" },
		{ "file:///a%2g%20", "/a%2g%20" },
		{ "file:///a%20b%", "/a%20b%" },
		{ "file:///a%C3.mjs", "/a%C3.mjs" }, /* half a character */
		{ "file:///a%FF?b", "/a%FF?b" },
		/* no URL of a file */
		{ "file://host/a%20b", "file://host/a%20b" },
		{ "file:/a%20b", "file:/a%20b" },
		{ "/srv/a%20b.js", "/srv/a%20b.js" },
		{ "node:internal/main", "node:internal/main" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf text = BUF_INIT(KIB(8));

		print_message("  %s\n", cases[i].url);
		buf_adds(&text, STR("before file:///%20"));
		nodejs_path_of_url(&text, text.len);
		buf_adds(&text, str_of(cases[i].url));
		nodejs_path_of_url(&text, 18);
		assert_true(str_eq(str_first(buf_str(&text), 18), STR("before file:///%20")));
		assert_true(str_eq(str_skip(buf_str(&text), 18), str_of(cases[i].want)));
	}
}

/* ---- source maps ---- */

/* How far in front of a function its name begins; its position is at the end of the text. */
static void names_in_front(void **state)
{
	static const struct {
		const char *text, *name;
		size_t want;
	} cases[] = {
		{ ";function e", "e", 1 },
		{ ";async function e", "e", 1 },
		{ ";function*e", "e", 1 },
		{ ";function e ", "e", 2 },
		{ ",e=", "e", 2 },
		{ ",e = ", "e", 4 },
		{ ",e=async ", "e", 8 },
		{ ",e=async", "e", 7 },
		{ ",e=function", "e", 10 },
		{ ",e=async function", "e", 16 },
		{ ",e=function*", "e", 11 },
		{ ",e:function", "e", 10 },
		{ "}static e", "e", 1 },
		{ "e.run=function", "e.run", 12 },
		{ "e.run=function", "run", 12 },
		{ "e.prototype.run=", "e.run", 4 },
		{ ",\xc3\xa9t\xc3\xa9=", "\xc3\xa9t\xc3\xa9", 0 }, /* not looked for */
		/* another's name stands there */
		{ "r.each(n,(function", "(anonymous)", 0 },
		{ "r(n,function", "(anonymous)", 0 },
		{ "r.replace(/[0-9]+/g,", "(anonymous)", 0 },
		{ "f(n,u,t)}", "stop", 0 },
		{ "e.run=function", "e", 0 },
		{ ",ee=", "e", 0 },
		{ ",$e=function", "e", 0 },
		{ ",e==", "e", 0 },
		{ ",e=>", "e", 0 },
		{ ",e=g(function", "e", 0 },
		{ "functione", "e", 0 },
		{ "e=", "e", 0 }, /* what is in front of it is not known */
		{ "=", "e", 0 },
		{ "", "e", 0 },
		{ "x=", "", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint16_t units[NODEJS_BEFORE];
		size_t count = strlen(cases[i].text);
		struct cur exact;

		print_message("  %s\n", cases[i].text);
		for (size_t k = 0; k < count; k++)
			units[k] = (uint8_t)cases[i].text[k];
		exact = guard_page(units, 2 * count);
		assert_int_equal(
			nodejs_name_before((const uint16_t *)(const void *)exact.pos, count, str_of(cases[i].name)),
			cases[i].want);
	}
}

static void write_in(const char *folder, const char *name, const char *text)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(io_replace_file(path, text, strlen(text)), 0);
}

/* A map counts when the script beside it is as long as the text that runs. /proc of this process: its root is ours. */
static void source_maps(void **state)
{
	static const struct {
		const char *name, *file;
		uint64_t size; /* of the text */
		bool want;
	} cases[] = {
		{ "as long", "a.js", 5, true },       { "with a mark in front", "marked.js", 5, true },
		{ "another text", "a.js", 6, false }, { "no map", "b.js", 5, false },
		{ "no script", "c.js", 5, false },    { "no path", NULL, 5, false },
	};
	char folder[] = "/tmp/nodejs_test.XXXXXX", command[64];
	struct runtime_target target = { .proc_dir = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC) };

	(void)state;
	assert_non_null(mkdtemp(folder));
	write_in(folder, "a.js", "12345");
	write_in(folder, "a.js.map", "{}");
	write_in(folder, "marked.js",
		 "\xef\xbb\xbf"
		 "12345");
	write_in(folder, "marked.js.map", "{}");
	write_in(folder, "b.js", "12345");
	write_in(folder, "c.js.map", "{}");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct nodejs_lines lines = { .size = cases[i].size };
		char path[128] = "node:internal/main";
		uint64_t got;

		print_message("  %s\n", cases[i].name);
		if (cases[i].file)
			(void)snprintf(path, sizeof(path), "%s/%s", folder, cases[i].file);
		got = nodejs_source_map(&target, &lines, str_of(path));
		assert_int_equal(got != 0, cases[i].want);
		lines.size = 77; /* it is looked for once a script */
		assert_int_equal(nodejs_source_map(&target, &lines, str_of(path)), got);
	}
	close(target.proc_dir);
	(void)snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

/* ---- the version of Node.js ---- */

struct version_memory {
	uint64_t chars;
	const char *text;
	size_t size; /* bytes that can be read at chars */
};

static int read_version_memory(void *self, void *dst, uint32_t size, uint64_t at)
{
	const struct version_memory *m = self;

	if (at == 4096 && size == sizeof(m->chars)) {
		memcpy(dst, &m->chars, size);
		return 0;
	}
	if (at < m->chars || at - m->chars > m->size || size > m->size - (at - m->chars))
		return -EFAULT;
	memcpy(dst, m->text + (at - m->chars), size);
	return 0;
}

static void node_version(void **state)
{
	static const char *const right[] = { "20.20.2", "12.22.12", "21.0.0-nightly2023.1+a", "0.0.0" };
	static const char *const wrong[] = { "",      "20.20",    "20.20.",    "v20.20.2",   "20.20.2 x",
					     "20..2", "20.20.2x", "20.20.2\n", "20.20.2-\"", "12345.1.1" };
	char text[128], out[NODEJS_VERSION_MAX];
	struct version_memory m = { .chars = 8192, .text = text, .size = sizeof(text) };
	struct runtime_target target = { .read = read_version_memory, .self = &m };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
		memset(text, 'x', sizeof(text));
		memcpy(text, right[i], strlen(right[i]) + 1);
		assert_int_equal(nodejs_version_read(&target, 4096, out), 0);
		assert_string_equal(out, right[i]);
		m.size = strlen(right[i]) / 8 * 8; /* its memory ends too early */
		assert_int_equal(nodejs_version_read(&target, 4096, out), -EFAULT);
		m.size = sizeof(text);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		memset(text, 0, sizeof(text));
		memcpy(text, wrong[i], strlen(wrong[i]) + 1);
		assert_int_equal(nodejs_version_read(&target, 4096, out), -EBADMSG);
	}
	memset(text, '1', sizeof(text)); /* no end */
	assert_int_equal(nodejs_version_read(&target, 4096, out), -EBADMSG);
	m.chars = 0;
	m.size = 0;
	assert_int_equal(nodejs_version_read(&target, 4096, out), -EFAULT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(positions),
		cmocka_unit_test(broken_positions),
		cmocka_unit_test(position_fields),
		cmocka_unit_test(lines),
		cmocka_unit_test(positions_of_versions),
		cmocka_unit_test(baseline_lines),
		cmocka_unit_test(broken_bytecode),
		cmocka_unit_test(bytecode_lines),
		cmocka_unit_test(line_writer),
		cmocka_unit_test(expands),
		cmocka_unit_test(where_code_lies),
		cmocka_unit_test(many_isolates),
		cmocka_unit_test(where_code_lies_unsaid),
		cmocka_unit_test(copies_in_other_memory),
		cmocka_unit_test(budget),
		cmocka_unit_test(script_lines),
		cmocka_unit_test(names_gone),
		cmocka_unit_test(names_behind_many_variables),
		cmocka_unit_test(scopes_at_the_end),
		cmocka_unit_test(texts_that_change),
		cmocka_unit_test(hostile_strings),
		cmocka_unit_test(paths_of_urls),
		cmocka_unit_test(source_maps),
		cmocka_unit_test(names_in_front),
		cmocka_unit_test(node_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
