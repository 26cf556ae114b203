/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of WebAssembly: names in a module's bytes, and which function a piece of code is, in made-up memory. */
#include "support.h"

#include <linux/types.h>

#include "runtime/nodejs/nodejs_int.h"
#include "walk/walk_nodejs.h"

#define HEAD "\0asm\1\0\0\0"
#define TYPES "\1\4\1\x60\0\0"                       /* a section that says nothing of names */
#define OTHER "\0\6\5other"                          /* a custom one */
#define MODULE_NAME "\0\4\3mod"                      /* subsection 0 */
#define FUNCTIONS "\1\x0d\3\0\1a\2\3two\7\2\xc3\xbc" /* subsection 1: 0: a, 2: two, 7: u with two dots */
#define NAMES "\0\x1a\4name" MODULE_NAME FUNCTIONS

static struct nodejs_wasm_names read_names(struct str bytes, uint32_t index, struct buf *room, int want)
{
	const struct reader in = reader_of(bytes.ptr, bytes.len);
	struct nodejs_wasm_names out;

	buf_clear(room);
	assert_int_equal(nodejs_wasm_names_read(&in, index, room, &out), want);
	return out;
}

static struct str text(const struct buf *room, struct nodejs_wasm_text t)
{
	return str_n(room->ptr + t.at, t.len);
}

static void names(void **state)
{
	static const struct {
		struct str bytes;
		uint32_t index;
		const char *module, *function;
	} cases[] = {
		{ STR(HEAD TYPES OTHER NAMES), 0, "mod", "a" },
		{ STR(HEAD TYPES OTHER NAMES), 2, "mod", "two" },
		{ STR(HEAD TYPES OTHER NAMES), 7, "mod", "\xc3\xbc" },
		{ STR(HEAD TYPES OTHER NAMES), 1, "mod", "" },
		{ STR(HEAD TYPES OTHER NAMES), 8, "mod", "" },
		{ STR(HEAD NAMES TYPES), 2, "mod", "two" },
		{ STR(HEAD TYPES OTHER), 0, "", "" },
		{ STR(HEAD), 0, "", "" },
		{ STR(HEAD "\0\x14\4name" FUNCTIONS), 2, "", "two" },
		{ STR(HEAD "\0\x0b\4name" MODULE_NAME), 2, "mod", "" },
		{ STR(HEAD "\0\x0b\4name"
			   "\1\4\1\0\1\xff"),
		  0, "", "" }, /* not UTF-8 */
		{ STR(HEAD "\0\xff\xff\xff\xff\xff\1\4name" FUNCTIONS), 2, "", "" },
		{ STR(HEAD "\0\x14\4name"
			   "\1\x0d\xff\xff\xff\xff\x0f\0\1a\2\3two\7\2\xc3\xbc"),
		  9, "", "" },
	};
	scoped(buf_release) struct buf room = BUF_INIT(KIB(64));

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct nodejs_wasm_names n = read_names(cases[i].bytes, cases[i].index, &room, 0);

		print_message("  case %zu\n", i);
		assert_true(str_eq(text(&room, n.module), str_of(cases[i].module)));
		assert_true(str_eq(text(&room, n.function), str_of(cases[i].function)));
	}
	ignore(read_names(STR("\0asn\1\0\0\0" NAMES), 0, &room, -EBADMSG).module.len);
	for (size_t size = 0; size < sizeof(HEAD NAMES) - 1; size++) {
		struct str all = STR(HEAD NAMES);
		struct nodejs_wasm_names n =
			read_names(str_first(all, size), 7, &room, size < sizeof(HEAD) - 1 ? -EBADMSG : 0);

		assert_int_equal(n.function.len, 0); /* the section is not whole */
	}
}

static void long_names(void **state)
{
	scoped(buf_release) struct buf room = BUF_INIT(KIB(64)), bytes = BUF_INIT(KIB(64));
	const size_t size = NODEJS_TEXT_MAX + 100;
	struct nodejs_wasm_names n;

	(void)state;
	buf_adds(&bytes, STR(HEAD));
	buf_addc(&bytes, 0);
	nodejs_varint_add(&bytes, size + 12);
	buf_adds(&bytes, STR("\4name\1"));
	nodejs_varint_add(&bytes, size + 4);
	buf_adds(&bytes, STR("\1\5"));
	nodejs_varint_add(&bytes, size);
	buf_addc(&bytes, 'x');
	while (bytes.len < 8 + 1 + 2 + 5 + 1 + 2 + 2 + 2 + size)
		buf_adds(&bytes, STR("\xc3\xa9"));
	n = read_names(buf_str(&bytes), 5, &room, 0);
	assert_true(n.function.is_cut);
	assert_int_equal(n.function.len, NODEJS_TEXT_MAX - 1); /* half a letter would be behind it */
}

/* ---- V8's objects ---- */

#define MEMORY 0x10000ULL
#define MANAGER 0x100 /* places in it */
#define NODE 0x200
#define MODULE 0x300
#define CODES 0x500
#define CODE 0x600
#define BYTES_AT 0x700
#define BYTES 0x720
#define FRESH 0x780
#define START 0x40000ULL /* of the code */

struct memory {
	uint8_t bytes[2048];
};

static int memory_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	const struct memory *m = self;

	at -= MEMORY;
	if (at > sizeof(m->bytes) || size > sizeof(m->bytes) - at)
		return -EFAULT;
	memcpy(dst, m->bytes + at, size);
	return 0;
}

static void put(struct memory *m, uint64_t at, uint64_t word)
{
	memcpy(m->bytes + at, &word, sizeof(word));
}

static void put_node(struct memory *m, uint64_t at, uint64_t key, uint64_t first, uint64_t second)
{
	put(m, at + 32, key);
	put(m, at + 40, first);
	if (second)
		put(m, at + 48, second);
}

static void fill(struct memory *m, const struct nodejs_wasm *w, bool is_fresh)
{
	static const char bytes[] = HEAD TYPES NAMES;

	memset(m, 0, sizeof(*m));
	put(m, 0, MEMORY + MANAGER);
	put(m, MANAGER + w->manager_modules, MEMORY + NODE);
	put_node(m, NODE, START - 0x1000, START + 0x1000, MEMORY + MODULE);
	put(m, MODULE + w->module_codes, is_fresh ? 0 : MEMORY + CODES);
	put_node(m, CODES, START, MEMORY + CODE, 0);
	put(m, FRESH, MEMORY + CODE);
	put(m, MODULE + w->module_fresh, MEMORY + FRESH);
	put(m, MODULE + w->module_fresh + 8, MEMORY + FRESH + (is_fresh ? 8 : 0));
	put(m, MODULE + w->module_bytes, MEMORY + BYTES_AT);
	put(m, BYTES_AT, MEMORY + BYTES);
	put(m, BYTES_AT + 8, sizeof(bytes) - 1);
	memcpy(m->bytes + BYTES, bytes, sizeof(bytes) - 1);
	put(m, CODE + w->code_size, 64);
	put(m, CODE + w->code_index, 2);
	memcpy(m->bytes + CODE + w->code_module, &(uint64_t){ MEMORY + MODULE }, 8);
	memcpy(m->bytes + CODE + w->code_start, &(uint64_t){ START }, 8);
}

static void functions(void **state)
{
	static struct memory m;
	const struct runtime_target target = { .read = memory_read, .self = &m };
	struct nodejs_process *p = calloc(1, sizeof(*p));
	const struct nodejs_heap h = { .target = &target, .layout = &p->layout, .process = p };
	const struct nodejs_wasm *w = &p->layout.version.wasm;
	static const struct {
		const char *what;
		uint64_t pc, at, word; /* @at: from MEMORY on, is @word; 0: nothing is */
		int want;
	} cases[] = {
		{ "its first byte", START, 0, 0, 0 },
		{ "its last byte", START + 63, 0, 0, 0 },
		{ "behind it", START + 64, 0, 0, -ENOENT },
		{ "in front of it", START - 1, 0, 0, -ENOENT },
		{ "behind the memory", START + 0x1000, 0, 0, -ENOENT },
		{ "in front of the memory", START - 0x1001, 0, 0, -ENOENT },
		{ "another module's", START, CODE, MEMORY, -ENOENT },
		{ "no function", START, CODE + 0x28, UINT64_MAX, -ENOENT },
		{ "no module's bytes", START, BYTES, 0, -EBADMSG },
		{ "a node that leads to itself", START, NODE + 24, MEMORY + NODE, 0 },
		{ "no memory", START, NODE + 24, 8, -EFAULT },
	};

	(void)state;
	assert_non_null(p);
	p->layout.version = *nodejs_version_find(11, 3);
	p->layout.wasm_manager = MEMORY;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		const typeof(cases[0]) *c = &cases[i / 2];
		scoped(buf_release) struct buf room = BUF_INIT(KIB(64));
		struct nodejs_wasm_names n;
		uint32_t index = 0;
		uint64_t size = 0;

		print_message("  %s\n", c->what);
		fill(&m, w, i % 2);
		if (c->at)
			put(&m, c->at, c->word);
		assert_int_equal(nodejs_wasm_read(&h, c->pc, &room, &n, &index, &size), c->want);
		if (c->want)
			continue;
		assert_int_equal(index, 2);
		assert_true(str_eq(text(&room, n.function), STR("two")));
		assert_true(str_eq(text(&room, n.module), STR("mod")));
	}
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(long_names),
		cmocka_unit_test(functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
