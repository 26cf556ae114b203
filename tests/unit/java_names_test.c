/* SPDX-License-Identifier: Apache-2.0 */
/* What HotSpot says of its methods: numbers, line tables, names, performance counters, debug information. */
#include "support.h"

#include "base/io.h"
#include "fuzz/java_memory.h"
#include "runtime/java/code.h"
#include "runtime/java/flags.h"
#include "runtime/java/lines.h"
#include "runtime/java/perf.h"
#include "runtime/java/scopes.h"
#include "runtime/java/text.h"
#include "runtime/java/threads.h"
#include "walk/walk_java.h"

static void read_seed(const char *name, struct buf *out)
{
	const char *root = getenv("HEARTH_SOURCE_ROOT");
	char path[1024];

	snprintf(path, sizeof(path), "%s/tests/corpus/%s", root ? root : ".", name);
	assert_int_equal(io_read_file(path, out), 0);
}

#define LONG_16 "abcdefghijklmnop"
#define LONG_TEXT LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16           /* ABI_JAVA_TEXT_BYTES */
#define LONG_LESS LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 "abcdefghijklmno" /* one byte less */

/* ---- numbers ---- */

static void numbers(void **state)
{
	static const struct {
		const char *hex;
		bool no_zero;
		uint32_t value;
		size_t size; /* 0: it is bad */
	} cases[] = {
		{ "00", false, 0, 1 },
		{ "bf", false, 191, 1 },
		{ "c000", false, 192, 2 },
		{ "c001", false, 256, 2 },
		{ "ff03", false, 447, 2 },
		{ "ffffffffff", false, 255 + (255U << 6) + (255U << 12) + (255U << 18) + (255U << 24), 5 },
		{ "01", true, 0, 1 },
		{ "bf", true, 190, 1 },
		{ "c001", true, 191, 2 },
		{ "00", true, 0, 0 },
		{ "c000", true, 0, 0 },
		{ "c0", false, 0, 0 },
		{ "", false, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cur c = guard_page_hex(cases[i].hex), start = c;

		print_message("  %s\n", cases[i].hex);
		assert_int_equal(java_number(&c, cases[i].no_zero), cases[i].value);
		assert_int_equal(c.bad, !cases[i].size);
		if (cases[i].size)
			assert_int_equal(c.pos - start.pos, cases[i].size);
	}
}

static void signs(void **state)
{
	static const struct {
		const char *hex;
		int32_t value;
	} cases[] = { { "00", 0 }, { "01", -1 }, { "02", 1 }, { "03", -2 }, { "c001", 128 }, { "c101", -129 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cur c = guard_page_hex(cases[i].hex);

		assert_int_equal(java_signed(&c, false), cases[i].value);
	}
}

/* Bytecode 1 is line 4, 6 is 7; then far: 6 + 40 is 7 - 3; the last is before it: 46 - 1 is 14. */
static void lines(void **state)
{
	static const struct {
		uint32_t index;
		int32_t line;
	} cases[] = { { 0, 0 }, { 1, 4 }, { 5, 4 }, { 6, 7 }, { 44, 7 }, { 45, 14 }, { 46, 4 }, { 9999, 4 } };
	struct cur c = guard_page_hex("0c2bff5005ff011400"), open = guard_page_hex("0c2bff50"),
		   empty = guard_page_hex("00");
	int32_t first = 77;

	(void)state;
	assert_int_equal(java_lines_size(c, false, &first), 9);
	assert_int_equal(first, 4);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(java_lines_find(c, false, cases[i].index), cases[i].line);
	assert_int_equal(java_lines_size(empty, false, &first), 1);
	assert_int_equal(first, 0);
	first = 77;
	assert_int_equal(java_lines_size(open, false, &first), 0);
	assert_int_equal(first, 77);
}

/* ---- texts ---- */

static void classes(void **state)
{
	static const struct {
		const char *symbol, *name;
	} cases[] = {
		{ "com/acme/Db", "com/acme/Db" },
		{ "Main$$Lambda$14+0x00007c02a000", "Main$$Lambda" },
		{ "Main$$Lambda+0x00007c02a000", "Main$$Lambda" },
		{ "Main$$Lambda/0x00007c02a000", "Main$$Lambda" },
		{ "Main$$Lambda$14", "Main$$Lambda" },
		{ "java/lang/invoke/LambdaForm$MH+0x800c03000", "java/lang/invoke/LambdaForm$MH" },
		{ "jdk/internal/reflect/GeneratedMethodAccessor12", "jdk/internal/reflect/GeneratedMethodAccessor" },
		{ "GeneratedConstructorAccessor1", "GeneratedConstructorAccessor" },
		{ "Generated12", "Generated12" },
		{ "com/acme/Outer$1", "com/acme/Outer$1" },
		{ "jdk/proxy2/$Proxy12", "jdk/proxy2/$Proxy12" },
		{ "+0x", "+0x" },
		{ "0x12", "0x12" },
		{ "", "" },
		{ "a\xc0\x80z", "a\xef\xbf\xbdz" },
		{ "\xed\xa0\xbd\xed\xb8\x80", "\xf0\x9f\x98\x80" },
		{ "\xed\xa0\xbd!", "\xef\xbf\xbd!" },
		{ "\xed\xb8\x80\xed\xa0\xbd", "\xef\xbf\xbd\xef\xbf\xbd" },
		{ "caf\xc3\xa9", "caf\xc3\xa9" },
		{ "\xff", "\xef\xbf\xbd" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(1024);
		struct cur symbol = guard_page(cases[i].symbol, strlen(cases[i].symbol));

		java_class_add(&out, str_n((const char *)symbol.pos, cur_left(&symbol)));
		assert_string_equal(buf_cstr(&out), cases[i].name);
	}
}

static void readable(void **state)
{
	static const struct {
		const char *name, *readable;
	} cases[] = {
		{ "com/acme/Db.get(Ljava/lang/String;)V", "com.acme.Db.get" },
		{ "private static com/acme/Db.get(Ljava/lang/String;)V", "com.acme.Db.get" },
		{ "Main.<init>()V", "Main.<init>" },
		{ "no signature", "no signature" },
		{ "(I)V", "(I)V" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(1024);

		java_readable(str_of(cases[i].name), &out);
		assert_string_equal(buf_cstr(&out), cases[i].readable);
	}
}

/* ---- methods ---- */

/* Memory of tests/corpus/java_method, with one number replaced. */
static int read_with(size_t at, uint64_t value, size_t size, bool with_modifiers, struct buf *room,
		     struct java_method *m)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(KIB(64));
	struct java_process p = { { java_block_read, NULL }, &java_layout_17, 0 };
	struct cur block;

	read_seed("java_method/method", &bytes);
	memcpy(bytes.ptr + at, &value, size);
	block = guard_page(bytes.ptr, bytes.len);
	p.memory.self = &block;
	return java_method_read(&p, JAVA_BASE, with_modifiers, room, m);
}

static void methods(void **state)
{
	scoped(buf_release) struct buf room = BUF_INIT(KIB(64));
	struct java_method m;

	(void)state;
	assert_int_equal(read_with(0, 0, 1, false, &room, &m), 0);
	assert_int_equal(m.const_method, JAVA_BASE + 96);
	assert_true(str_eq(str_n(room.ptr, m.name), STR("com/acme/Db.get(Ljava/lang/String;)V")));
	assert_true(str_eq(str_n(room.ptr + m.name, m.file), STR("Db.java")));
	assert_int_equal(m.lines, 6);
	assert_int_equal(m.first_line, 4);
	assert_int_equal(m.code_size, 20);
	assert_false(m.is_cut);
	buf_clear(&room);
	assert_int_equal(read_with(0, 0, 1, true, &room, &m), 0);
	assert_true(str_starts(buf_str(&room), STR("public static final com/acme/Db.get(")));
}

static void hostile_methods(void **state)
{
	static const struct {
		const char *name;
		size_t at;
		uint64_t value;
		size_t size;
		int want;
	} cases[] = {
		{ "no ConstMethod", 8, 0, 8, -EBADMSG },
		{ "a crooked ConstMethod", 8, JAVA_BASE + 97, 8, -EBADMSG },
		{ "a ConstMethod elsewhere", 8, 0x7fffffff0000, 8, -EFAULT },
		{ "a ConstMethod of 16 MiB", 96 + 24, MIB(2), 4, -EBADMSG },
		{ "a negative size", 96 + 24, UINT32_MAX, 4, -EBADMSG },
		{ "no pool", 96 + 8, 0, 8, -EBADMSG },
		{ "a name behind the pool", 96 + 34, 4, 2, -EBADMSG },
		{ "no name", 96 + 34, 0, 2, -EBADMSG },
		{ "a signature behind the pool", 96 + 36, 999, 2, -EBADMSG },
		{ "a pool without entries", 256 + 60, 0, 4, -EBADMSG },
		{ "a pool of 2 GiB", 256 + 60, INT32_MAX, 4, -EBADMSG },
		{ "no class", 256 + 24, 0, 8, -EFAULT },
		{ "a crooked class", 256 + 24, JAVA_BASE + 401, 8, -EBADMSG },
		{ "a symbol longer than memory", 512 + 4, 65535, 2, -EFAULT },
		{ "an entry that is no symbol", 256 + 72 + 8, 7, 8, -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf room = BUF_INIT(KIB(64));
		struct java_method m = { .code_size = 7 };

		print_message("  %s\n", cases[i].name);
		assert_int_equal(read_with(cases[i].at, cases[i].value, cases[i].size, false, &room, &m),
				 cases[i].want);
		assert_int_equal(m.code_size, 7);
	}
}

/* A number that nobody wrote, and a pool of three entries, as what links method handles has. */
static void no_source_file(void **state)
{
	static const struct {
		size_t at;
		uint64_t value;
		size_t size;
	} cases[] = { { 256 + 54, 0, 2 }, { 256 + 54, 77, 2 }, { 256 + 54, UINT16_MAX, 2 }, { 256 + 60, 3, 4 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf room = BUF_INIT(KIB(64));
		struct java_method m;

		assert_int_equal(read_with(cases[i].at, cases[i].value, cases[i].size, false, &room, &m), 0);
		assert_int_equal(m.file, 0);
		assert_true(m.name > 0);
	}
}

/* ---- long texts ---- */

#define LONG_AT (JAVA_BASE + MIB(1)) /* a Symbol of 64 KiB, less a byte */
#define LONG_SIZE UINT16_MAX

struct long_symbol {
	struct cur block;
	uint8_t bytes[8 + LONG_SIZE];
};

static int long_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	const struct long_symbol *s = self;

	if (at < LONG_AT)
		return java_block_read(&(struct cur){ s->block.pos, s->block.end, false }, dst, size, at);
	if (at - LONG_AT > sizeof(s->bytes) || size > sizeof(s->bytes) - (at - LONG_AT))
		return -EFAULT;
	memcpy(dst, s->bytes + (at - LONG_AT), size);
	return 0;
}

/* A name that is not whole says so, and has no half of a character. */
static void long_names(void **state)
{
	static const struct {
		const char *what;
		size_t entry; /* where the Symbol's address lies */
		struct str before, behind;
	} cases[] = {
		{ "a class", 400 + 24, { "", 0 }, { ".get(Ljava/lang/String;)V", 25 } },
		{ "a method", 256 + 72 + 8, { "com/acme/Db.", 12 }, { "(Ljava/lang/String;)V", 21 } },
		{ "a signature", 256 + 72 + 16, { "com/acme/Db.get", 15 }, { "", 0 } },
	};
	scoped(buf_release) struct buf bytes = BUF_INIT(KIB(64));
	struct long_symbol *s = calloc(1, sizeof(*s));
	const uint16_t size = LONG_SIZE;
	const uint64_t at = LONG_AT;

	(void)state;
	must(s);
	memcpy(s->bytes + 4, &size, sizeof(size));
	memset(s->bytes + 6, 'x', LONG_SIZE);
	memcpy(s->bytes + 6 + JAVA_TEXT_MAX - 1, "\xc3\xa9", 2);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf room = BUF_INIT(KIB(64));
		struct java_process p = { { long_read, s }, &java_layout_17, 0, 0 };
		struct java_method m;
		struct str name;

		print_message("  %s\n", cases[i].what);
		buf_clear(&bytes);
		read_seed("java_method/method", &bytes);
		memcpy(bytes.ptr + cases[i].entry, &at, sizeof(at));
		s->block = guard_page(bytes.ptr, bytes.len);
		assert_int_equal(java_method_read(&p, JAVA_BASE, false, &room, &m), 0);
		name = str_n(room.ptr, m.name);
		assert_true(m.is_cut);
		assert_true(str_starts(name, cases[i].before) && str_ends(name, cases[i].behind));
		name = str_skip(str_first(name, name.len - cases[i].behind.len), cases[i].before.len);
		assert_int_equal(name.len, JAVA_TEXT_MAX - 1 + 3);
		assert_true(str_ends(name, STR("xxx...")));
	}
	free(s);
}

/* ---- which method it is ---- */

#define CLASS_NAME_AT 632 /* its Symbol */

static int walk_block_read(void *self, void *dst, __u32 size, __u64 at)
{
	return java_block_read(self, dst, size, at);
}

/* As the walk does. */
static void identify(const struct cur *block, uint64_t *key, uint64_t *cookie)
{
	const struct java_layout *l = &java_layout_17;
	const struct abi_java info = { .const_pool = l->const_pool,
				       .const_name = l->const_name,
				       .const_signature = l->const_signature,
				       .pool_holder = l->pool_holder,
				       .pool_size = l->pool_header,
				       .class_name = l->class_name,
				       .symbol_hash = l->symbol_hash,
				       .symbol_length = (uint8_t)l->symbol_length,
				       .symbol_body = (uint8_t)l->symbol_body };
	const struct walk_world world = { .read = walk_block_read, .self = (void *)(uintptr_t)block };
	struct walk *w = calloc(1, sizeof(*w));

	must(w);
	w->world = &world;
	memcpy(w->info, &info, sizeof(info));
	w->scratch[WALK_JAVA_KEY] = JAVA_BASE;
	w->scratch[WALK_JAVA_PLACE] = JAVA_BASE + 96;
	assert_int_equal(walk_java_identify(w), 0);
	*key = w->scratch[WALK_JAVA_KEY];
	*cookie = w->scratch[WALK_JAVA_PLACE];
	free(w);
}

/* The class's Symbol lies where another one's has lain, with the same number, and only the text is another. */
static void texts_tell_classes_apart(void **state)
{
	static const struct {
		const char *what;
		uint16_t length;
		size_t at; /* which byte of the text is another */
		bool is_same;
	} cases[] = {
		{ "the last byte", 11, 10, false },         { "the eighth from its end", 11, 3, false },
		{ "the last of a short one", 3, 2, false }, { "behind a short one", 3, 3, true },
		{ "the first of eight", 8, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf bytes = BUF_INIT(KIB(64)), room = BUF_INIT(KIB(64));
		struct java_layout l = java_layout_17;
		const struct abi_java info = { .epoch_at = 0 };
		struct runtime_target target = { .read = java_block_read, .of_process = &l };
		uint64_t key, cookie, other;
		struct runtime_function f;
		struct cur block;

		print_message("  %s\n", cases[i].what);
		read_seed("java_method/method", &bytes);
		memcpy(bytes.ptr + CLASS_NAME_AT + l.symbol_length, &cases[i].length, sizeof(cases[i].length));
		block = guard_page(bytes.ptr, bytes.len);
		target.self = &block;
		identify(&block, &key, &cookie);
		assert_true(cookie & ABI_JAVA_FULL);
		assert_int_equal(java_read_name(&target, &info, key, cookie, &room, &f), 0);
		bytes.ptr[CLASS_NAME_AT + l.symbol_body + cases[i].at] ^= 1;
		block = guard_page(bytes.ptr, bytes.len);
		identify(&block, &key, &other);
		assert_int_equal(other == cookie, cases[i].is_same);
		assert_int_equal(java_read_name(&target, &info, key, cookie, &room, &f),
				 cases[i].is_same ? 0 : -ESTALE);
		/* nobody could tell what lay there */
		assert_int_equal(java_read_name(&target, &info, key, 0, &room, &f), -ESTALE);
	}
}

static void no_lines(void **state)
{
	scoped(buf_release) struct buf room = BUF_INIT(KIB(64));
	struct java_method m;

	(void)state;
	assert_int_equal(read_with(96 + 28, 0, 2, false, &room, &m), 0);
	assert_int_equal(m.lines, 0);
	assert_int_equal(m.first_line, 0);
	buf_clear(&room);
	assert_int_equal(read_with(96 + 32, 60000, 2, false, &room, &m), 0); /* bytecode that ends behind the whole */
	assert_int_equal(m.lines, 0);
}

/* ---- threads ---- */

struct told {
	struct buf text;
	size_t count;
};

static int tell(void *ctx, uint32_t tid, struct str name)
{
	struct told *t = ctx;

	t->count++;
	buf_addf(&t->text, "%u=" STR_FMT " ", tid, STR_ARG(name));
	return 0;
}

/* Memory of tests/corpus/java_threads, with one number replaced. */
static int threads_with(const char *seed, size_t at, uint64_t value, size_t size, struct told *out)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(KIB(64));
	struct java_layout layout = java_layout_17;
	struct java_process p = { { java_block_read, NULL }, &layout, 0 };
	struct cur block;

	if (!strcmp(seed, "java_threads/streamed"))
		layout.class_field_count = JAVA_NONE;
	read_seed(seed, &bytes);
	memcpy(bytes.ptr + at, &value, size);
	block = guard_page(bytes.ptr, bytes.len);
	p.memory.self = &block;
	ignore(java_threads_learn(&p, &layout) < 0);
	return java_threads_each(&p, tell, out);
}

static void threads(void **state)
{
	static const char *const seeds[] = { "java_threads/packed", "java_threads/streamed" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++) {
		scoped(buf_release) struct buf text = BUF_INIT(KIB(4));
		struct told told = { text, 0 };

		assert_int_equal(threads_with(seeds[i], 8, 0, 8, &told), 0);
		assert_string_equal(buf_cstr(&told.text), "11=caf\xc3\xa9 worker 12=\xe6\x97\xa5\xf0\x9f\x98\x80 ");
		text = told.text;
	}
}

/* A JVM that can be walked already and has not loaded Thread yet, then String. */
static void threads_before_their_class(void **state)
{
	static const uint64_t places[] = { 24, 32 };
	scoped(buf_release) struct buf bytes = BUF_INIT(KIB(64));
	struct java_layout layout = java_layout_17;
	struct runtime_target target = { .read = java_block_read, .of_process = &layout };
	struct java_process p = { { java_block_read, NULL }, &layout, 0 };
	struct told told = { BUF_INIT(KIB(4)), 0 };
	struct cur block;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		buf_clear(&bytes);
		read_seed("java_threads/packed", &bytes);
		memset(bytes.ptr + places[i], 0, 8);
		block = guard_page(bytes.ptr, bytes.len);
		target.self = p.memory.self = &block;
		assert_int_equal(java_threads_learn(&p, &layout), -EAGAIN);
		assert_int_equal(java_thread_names(&target, NULL, tell, &told), -EAGAIN);
	}
	assert_int_equal(told.count, 0);
	buf_clear(&bytes);
	read_seed("java_threads/packed", &bytes);
	block = guard_page(bytes.ptr, bytes.len);
	assert_int_equal(java_thread_names(&target, NULL, tell, &told), 0);
	assert_int_equal(told.count, 2);
	layout = java_layout_17;
	layout.thread_class = 0; /* a version that does not tell */
	assert_int_equal(java_thread_names(&target, NULL, tell, &told), -ENOTSUP);
	buf_release(&told.text);
}

/* What is wrong costs the thread that it is of, or all names, and never makes one up. */
static void hostile_threads(void **state)
{
	static const struct {
		const char *name;
		size_t at;
		uint64_t value;
		size_t size;
		int want;
		size_t count;
	} cases[] = {
		{ "no list", 0, 0, 8, -EFAULT, 0 },
		{ "a list of 2^32 threads", 64, UINT32_MAX, 4, -EFAULT, 2 },
		{ "a thread elsewhere", 96, 0x7fffffff0000, 8, 0, 1 },
		{ "no thread object", 264, 0, 8, 0, 1 },
		{ "a coloured reference", 264, 0x00f0000000010000, 8, 0, 1 },
		{ "a crooked name", 332, JAVA_BASE + 385, 4, 0, 1 },
		{ "no number", 256, 0, 4, 0, 1 },
		{ "a coder that is none", 400, 7, 1, 0, 1 },
		{ "a negative length", 460, UINT32_MAX, 4, 0, 1 },
		{ "half a unit", 492, 5, 4, 0, 1 },
		{ "a shift of 40", 16, 40, 4, -EBADMSG, 0 },
		{ "a class without fields", 536, 0, 2, -ENOTSUP, 0 },
		{ "a class of more fields than it has", 536, 200, 2, -ENOTSUP, 0 },
		{ "fields of 2 GiB", 640, INT32_MAX, 4, -ENOTSUP, 0 },
		{ "a pool without entries", 1024 + 60, 0, 4, -ENOTSUP, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct told told = { BUF_INIT(KIB(4)), 0 };

		print_message("  %s\n", cases[i].name);
		assert_int_equal(threads_with("java_threads/packed", cases[i].at, cases[i].value, cases[i].size, &told),
				 cases[i].want);
		assert_int_equal(told.count, cases[i].count);
		buf_release(&told.text);
	}
}

/* ---- performance counters ---- */

static void counters(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(KIB(64));
	scoped(java_perf_release) struct java_perf perf = { 0 };
	int64_t value;
	uint64_t at;

	(void)state;
	read_seed("java_perf/three", &bytes);
	assert_int_equal(java_perf_parse(&bytes, JAVA_BASE, &perf), 0);
	assert_int_equal(java_perf_number(&perf, "java.cls.unloadedClasses", &value, &at), 0);
	assert_int_equal(value, 7);
	assert_int_equal(java_u64(perf.bytes.ptr, at - JAVA_BASE), 7);
	assert_int_equal(java_perf_number(&perf, "sun.rt.javaCommand", NULL, NULL), -ENOENT); /* a text */
	assert_int_equal(java_perf_number(&perf, "no.such", NULL, NULL), -ENOENT);
}

static void hostile_counters(void **state)
{
	static const struct {
		const char *name;
		size_t at;
		uint32_t value;
		int parses, finds;
	} cases[] = {
		{ "another file", 0, 0x464c457f, -EBADMSG, 0 },
		{ "entries elsewhere", 24, UINT32_MAX, 0, -ENOENT },
		{ "no entries", 28, 0, 0, -ENOENT },
		{ "an entry of no length", 32, 0, 0, -ENOENT },
		{ "an entry longer than all", 32, UINT32_MAX, 0, -ENOENT },
		{ "a name elsewhere", 36, UINT32_MAX, 0, -ENOENT },
		{ "a number elsewhere", 32 + 16, 0x7fffffff, 0, -ENOENT },
		{ "a number at the end", 32 + 16, 52, 0, -ENOENT },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf bytes = BUF_INIT(KIB(64));
		scoped(java_perf_release) struct java_perf perf = { 0 };

		print_message("  %s\n", cases[i].name);
		read_seed("java_perf/three", &bytes);
		memcpy(bytes.ptr + cases[i].at, &cases[i].value, sizeof(cases[i].value));
		assert_int_equal(java_perf_parse(&bytes, JAVA_BASE, &perf), cases[i].parses);
		if (!cases[i].parses)
			assert_int_equal(java_perf_number(&perf, "java.cls.unloadedClasses", NULL, NULL),
					 cases[i].finds);
	}
}

/* ---- debug information ---- */

static const struct java_layout pc_layout = { .pc_desc_size = 16, .pc_desc_pc = 0, .pc_desc_scope = 4 };

static struct cur pcs_of(const uint32_t (*pairs)[2], size_t count)
{
	uint32_t words[16][4] = { 0 };

	assert_true(count <= ARRAY_SIZE(words));
	for (size_t i = 0; i < count; i++) {
		words[i][0] = pairs[i][0];
		words[i][1] = pairs[i][1];
	}
	return guard_page(words, count * 16);
}

/* At 1: method 1, bytecode 4. At 4: method 2, bytecode 9, inlined into it. At 7: it is its own sender. At 10: cut off.
 */
static void scopes(void **state)
{
	static const uint32_t pairs[][2] = { { UINT32_MAX, 0 }, { 10, 4 },  { 20, 4 }, { 30, 1 },       { 31, 0 },
					     { 40, 7 },         { 50, 10 }, { 45, 1 }, { INT32_MAX, 1 } };
	static const struct java_position want[] = { { 20, 1 }, { 30, 0 }, { 50, UINT32_MAX }, { INT32_MAX, 0 } };
	struct cur data = guard_page_hex("00"
					 "000105"
					 "01020a"
					 "070101"
					 "01c0");
	struct java_scopes s;

	(void)state;
	assert_int_equal(java_scopes_parse(&pc_layout, pcs_of(pairs, ARRAY_SIZE(pairs)), data, &s), 0);
	assert_int_equal(s.scope_count, 2);
	assert_int_equal(s.scopes[0].sender, 0);
	assert_int_equal(s.scopes[0].method, 1);
	assert_int_equal(s.scopes[0].index, 4);
	assert_int_equal(s.scopes[1].sender, 1);
	assert_int_equal(s.scopes[1].method, 2);
	assert_int_equal(s.scopes[1].index, 9);
	assert_int_equal(s.position_count, ARRAY_SIZE(want));
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		assert_int_equal(s.positions[i].pc, want[i].pc);
		assert_int_equal(s.positions[i].scope, want[i].scope);
	}
	java_scopes_release(&s);
}

/* Two methods, an inlined pair up to 20, the outer one up to 40. */
static const char form_hex[] = "02000000"
			       "02000000"
			       "02000000"
			       "0a000000"
			       "0200"
			       "0100"
			       "412e"
			       "46"
			       "14000000"
			       "0300"
			       "0000"
			       "422e63"
			       "00000000"
			       "0000"
			       "0400"
			       "0b000000"
			       "01000000"
			       "0100"
			       "ffff"
			       "00000000"
			       "14000000"
			       "01000000"
			       "28000000"
			       "00000000";

static void expands(void **state)
{
	static const struct {
		uint32_t position;
		bool is_return;
		size_t count;
		const char *leaf;
	} cases[] = {
		{ 0, false, 2, "B.c" }, { 19, false, 2, "B.c" }, { 20, true, 2, "B.c" }, { 20, false, 1, "A." },
		{ 40, true, 1, "A." },  { 40, false, 0, NULL },  { 41, true, 0, NULL },  { UINT32_MAX, false, 0, NULL },
	};
	struct cur form = guard_page_hex(form_hex);
	struct java_shown shown[RUNTIME_EXPAND_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t count =
			java_scopes_expand(form, cases[i].position, cases[i].is_return, RUNTIME_EXPAND_MAX, shown);

		assert_int_equal(count, cases[i].count);
		if (count)
			assert_true(str_eq(shown[0].name, str_of(cases[i].leaf)));
	}
	assert_int_equal(java_scopes_expand(form, 0, false, RUNTIME_EXPAND_MAX, shown), 2);
	assert_int_equal(shown[0].first_line, 20);
	assert_int_equal(shown[0].line, 0);
	assert_int_equal(shown[0].index, JAVA_NO_INDEX);
	assert_int_equal(shown[1].line, 11);
	assert_int_equal(shown[1].index, 4);
	assert_true(str_eq(shown[1].file, STR("F")));
	/* There is room for one: the method that was compiled. */
	assert_int_equal(java_scopes_expand(form, 0, false, 1, shown), 1);
	assert_true(str_eq(shown[0].name, STR("A.")));
}

/* Every cut of it, and every byte of it changed, gives at most nonsense. */
static void hostile_forms(void **state)
{
	struct cur form = guard_page_hex(form_hex);
	struct java_shown shown[RUNTIME_EXPAND_MAX];
	size_t size = cur_left(&form);
	uint8_t bytes[sizeof(form_hex) / 2];
	size_t lost = 0;

	(void)state;
	for (size_t cut = 0; cut < size; cut++)
		assert_int_equal(java_scopes_expand(guard_page(form.pos, cut), 0, false, RUNTIME_EXPAND_MAX, shown), 0);
	for (size_t at = 0; at < size; at++) {
		memcpy(bytes, form.pos, size);
		bytes[at] = 0xff;
		size_t count = java_scopes_expand(guard_page(bytes, size), 0, false, RUNTIME_EXPAND_MAX, shown);

		assert_true(count <= 2 || count == JAVA_SHOWN_LOST);
		lost += count == JAVA_SHOWN_LOST;
	}
	assert_true(lost > 0); /* a scope whose method is none: that of the other one is not shown alone */
}

static int parse_once(void *ctx)
{
	const struct buf *seed = ctx;
	struct cur c = cur_of(seed->ptr, seed->len), pcs;
	struct java_layout l = pc_layout;
	struct java_scopes s;
	size_t pcs_size;
	int r;

	l.flags = cur_u8(&c) ? JAVA_LAYOUT_NO_ZERO : 0;
	pcs_size = cur_le16(&c);
	ignore(cur_le16(&c)); /* the rest is scopes */
	pcs = cur_sub(&c, pcs_size);
	r = java_scopes_parse(&l, pcs, c, &s);
	if (r < 0)
		return r;
	assert_true(s.scope_count > 20 && s.position_count > 20);
	java_scopes_release(&s);
	return 0;
}

static void recorded_scopes(void **state)
{
	static const char *const names[] = { "java_scopes/jdk17", "java_scopes/jdk25" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		scoped(buf_release) struct buf seed = BUF_INIT(KIB(64));

		read_seed(names[i], &seed);
		for_each_failing_allocation(parse_once, &seed);
	}
}

/* ---- out of memory that was made by hand ---- */

static void codes(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(KIB(64)), room = BUF_INIT(MIB(1));
	struct java_process p = { { java_block_read, NULL }, &java_layout_17, 0, 0 };
	struct java_shown shown[4];
	struct java_code code;
	struct java_method m;
	struct cur block, form;
	size_t size;

	(void)state;
	read_seed("java_code/nmethod", &bytes);
	block = guard_page(bytes.ptr, bytes.len);
	p.memory.self = &block;
	assert_int_equal(java_code_read(&p, JAVA_BASE, &code), 0);
	assert_int_equal(code.compile_id, 77);
	assert_int_equal(code.level, 4);
	assert_int_equal(java_code_scopes(&p, &code, &room, &m, &size), 0);
	assert_true(str_eq(str_n(room.ptr, m.name), STR("com/acme/Db.get(Ljava/lang/String;)V")));
	form = cur_of(room.ptr + room.len - size, size);
	assert_int_equal(java_scopes_expand(form, 8, true, 4, shown), 2);
	assert_int_equal(shown[0].index, 9);
	assert_int_equal(shown[1].index, 4);
	assert_int_equal(shown[1].line, 4);
	assert_true(str_eq(shown[1].file, STR("Db.java")));
	assert_int_equal(java_scopes_expand(form, 8, false, 4, shown), 1);
	buf_clear(&room);
	p.only_loader = 1; /* another one than the class has */
	assert_int_equal(java_code_scopes(&p, &code, &room, &m, &size), -ESTALE);
	assert_int_equal(java_code_read(&p, JAVA_BASE + 4, &code), -EBADMSG);
	assert_int_equal(java_code_read(&p, JAVA_BASE + 512, &code), -EBADMSG);
}

/* ---- code that may be gone ---- */

#define STATE_AT 309 /* in the header, where 17 has nothing else */

struct used_code {
	struct cur block;
	uint8_t used, state; /* of the block of the heap; of the code */
};

static int used_code_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	struct used_code *c = self;

	if (size == 1 && (at == JAVA_BASE - 8 || at == JAVA_BASE + STATE_AT)) {
		*(uint8_t *)dst = at < JAVA_BASE ? c->used : c->state;
		return 0;
	}
	return java_block_read(&c->block, dst, size, at);
}

/* What was freed still has its bytes. */
static void code_that_is_gone(void **state)
{
	static const struct {
		const char *what;
		uint8_t version, used, state;
		uint32_t number;
		int want;
	} cases[] = {
		{ "in use", 17, 1, 0, 77, 0 },
		{ "not entered any more", 17, 1, 2, 77, 0 },
		{ "not installed yet", 17, 1, 0xff, 77, 0 },
		{ "zombie or unloaded", 17, 1, 3, 77, -ESTALE },
		{ "8: not entered any more", 8, 1, 1, 77, 0 },
		{ "8: zombie", 8, 1, 2, 77, -ESTALE },
		{ "25 has no more states", 25, 1, 3, 77, 0 },
		{ "freed", 17, 0, 0, 77, -ESTALE },
		{ "another compilation's", 17, 1, 0, 78, -ESTALE },
	};
	scoped(buf_release) struct buf bytes = BUF_INIT(KIB(64));

	(void)state;
	read_seed("java_code/nmethod", &bytes);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf room = BUF_INIT(KIB(64));
		struct used_code c = { guard_page(bytes.ptr, bytes.len), cases[i].used, cases[i].state };
		struct java_layout l = java_layout_17;
		const struct runtime_target target = { .read = used_code_read, .self = &c, .of_process = &l };
		const struct abi_java info = { .epoch_at = 0 };
		struct runtime_function f;

		print_message("  %s\n", cases[i].what);
		l.version = cases[i].version;
		l.heap_block_size = 16;
		l.heap_block_used = 8;
		l.nm_state = STATE_AT;
		assert_int_equal(
			java_read_code(&target, &info, JAVA_BASE, ABI_JAVA_COMPILED | cases[i].number, &room, &f),
			cases[i].want);
	}
}

/* As the kernel side sends them, by bpf/java.h. */
static void names_from_records(void **state)
{
	static const struct {
		const char *texts[ABI_JAVA_TEXTS];
		size_t lack; /* bytes that the record lacks at its end */
		const char *want;
	} cases[] = {
		{ { "com/acme/Db", "get", "(Ljava/lang/String;)V" }, 0, "com/acme/Db.get(Ljava/lang/String;)V" },
		{ { "Main$$Lambda$14+0x7c02a000", "run", "()V" }, 0, "Main$$Lambda.run()V" },
		{ { LONG_TEXT "is cut", "run", "()V" }, 0, LONG_TEXT "..." },
		{ { "A", LONG_TEXT "is cut", "()V" }, 0, "A." LONG_TEXT "..." },
		{ { "A", "run", LONG_TEXT ")V" }, 0, "A.run" LONG_TEXT "..." },
		{ { "A", "run", LONG_TEXT }, 0, "A.run" LONG_TEXT },
		{ { LONG_LESS "\xc3\xa9 is cut", "run", "()V" }, 0, LONG_LESS "..." },
		{ { LONG_LESS "+0x7c02a000", "run", "()V" }, 0, LONG_LESS "..." },
		{ { "A", LONG_LESS "\xc3\xa9 is cut", "()V" }, 0, "A." LONG_LESS "..." },
		{ { "A", LONG_LESS "+ is cut", "()V" }, 0, "A." LONG_LESS "+..." },
		{ { "A", "run", "()V" }, 1, NULL },
		{ { "A", "run", "()V" }, 28, NULL },
		{ { "A", "", "()V" }, 0, NULL },
		{ { "", "run", "()V" }, 0, NULL },
		{ { "A", "run", "" }, 0, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf bytes = BUF_INIT(KIB(4)), room = BUF_INIT(KIB(4));
		struct runtime_function f = { 0 };
		struct abi_java_name head = { 0 };
		struct cur in;

		for (size_t k = 0; k < ABI_JAVA_TEXTS; k++)
			head.sizes[k] = (uint16_t)strlen(cases[i].texts[k]);
		buf_add(&bytes, &head, sizeof(head));
		for (size_t k = 0; k < ABI_JAVA_TEXTS; k++) {
			static const char zeros[8];
			size_t sent = MIN((size_t)head.sizes[k], (size_t)ABI_JAVA_TEXT_BYTES);

			buf_add(&bytes, cases[i].texts[k], sent);
			buf_add(&bytes, zeros, align_up(sent, 8) - sent);
		}
		in = guard_page(bytes.ptr, bytes.len - cases[i].lack);
		print_message("  %s\n", cases[i].want ? cases[i].want : "none");
		assert_int_equal(java_decode_name(in.pos, cur_left(&in), &room, &f), cases[i].want ? 0 : -EBADMSG);
		if (!cases[i].want)
			continue;
		assert_true(str_eq(f.name, str_of(cases[i].want)));
		assert_true(f.is_cut && !f.first_line && !f.lines.size);
	}
}

#define FLAG_NAME_AT 128 /* "UseG1GC" */

static void flags(void **state)
{
	static const struct {
		const char *which, *json;
	} cases[] = {
		{ "default",
		  "[{\"name\": \"MaxHeapSize\", \"type\": \"size_t\", \"value\": \"1073741824\", "
		  "\"origin\": \"ergonomic\", \"kind\": [\"product\"]}, {\"name\": \"UnlockDiagnosticVMOptions\", "
		  "\"type\": \"bool\", \"value\": \"true\", \"origin\": \"command line\", \"kind\": "
		  "[\"diagnostic\"]}, {\"name\": \"UseG1GC\", \"type\": \"bool\", \"value\": \"true\", \"origin\": "
		  "\"ergonomic\", \"kind\": [\"product\"]}]" },
		{ "MaxHeapSize, NoSuch",
		  "[{\"name\": \"MaxHeapSize\", \"type\": \"size_t\", \"value\": \"1073741824\", "
		  "\"origin\": \"ergonomic\", \"kind\": [\"product\"]}]" },
		{ "none", "[]" },
	};
	scoped(buf_release) struct buf bytes = BUF_INIT(KIB(64));
	struct java_process p = { { java_block_read, NULL }, &java_layout_17, 0, 0 };
	bool values[4] = { false };
	const struct java_flag wanted[] = { { "UseG1GC", &values[0] },
					    { "UnlockDiagnosticVMOptions", &values[1] },
					    { "MaxHeapSize", &values[2] },
					    { "UseG1", &values[3] } };
	struct java_layout layout;
	struct cur block;

	(void)state;
	read_seed("java_flags/three", &bytes);
	block = guard_page(bytes.ptr, bytes.len);
	p.memory.self = &block;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf json = BUF_INIT(KIB(64));
		struct json_out out = { .out = &json };

		assert_int_equal(java_flags_add(&p, str_of(cases[i].which), &out), 0);
		assert_string_equal(buf_cstr(&json), cases[i].json);
	}
	assert_int_equal(java_flags_read(&p, wanted, ARRAY_SIZE(wanted)), 0);
	assert_true(values[0] && values[1]);
	assert_false(values[2] || values[3]); /* a number; there is no such flag */
	memcpy(&layout, &java_layout_17, sizeof(layout));
	java_flags_learn(&p, &layout);
	assert_false(layout.by_jvmci || layout.exact_lines);
	memcpy(bytes.ptr + FLAG_NAME_AT, "UseJVMCICompiler", sizeof("UseJVMCICompiler"));
	block = guard_page(bytes.ptr, bytes.len);
	java_flags_learn(&p, &layout);
	assert_true(layout.by_jvmci);
	memset(bytes.ptr, 0xff, 8); /* no flags there */
	block = guard_page(bytes.ptr, bytes.len);
	layout.by_jvmci = false;
	assert_int_equal(java_flags_read(&p, wanted, ARRAY_SIZE(wanted)), -EFAULT);
	java_flags_learn(&p, &layout);
	assert_false(layout.by_jvmci);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(signs),
		cmocka_unit_test(lines),
		cmocka_unit_test(classes),
		cmocka_unit_test(readable),
		cmocka_unit_test(methods),
		cmocka_unit_test(hostile_methods),
		cmocka_unit_test(threads),
		cmocka_unit_test(threads_before_their_class),
		cmocka_unit_test(hostile_threads),
		cmocka_unit_test(no_source_file),
		cmocka_unit_test(no_lines),
		cmocka_unit_test(long_names),
		cmocka_unit_test(texts_tell_classes_apart),
		cmocka_unit_test(counters),
		cmocka_unit_test(hostile_counters),
		cmocka_unit_test(scopes),
		cmocka_unit_test(expands),
		cmocka_unit_test(hostile_forms),
		cmocka_unit_test(recorded_scopes),
		cmocka_unit_test(codes),
		cmocka_unit_test(flags),
		cmocka_unit_test(code_that_is_gone),
		cmocka_unit_test(names_from_records),
	};

	return cmocka_run_group_tests_name("java_names", tests, NULL, NULL);
}
