/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of HotSpot: recorded ones of real versions, and what is wrong with hostile ones. */
#include "support.h"

#include "base/io.h"
#include "fuzz/java_image.h"
#include "runtime/java/layout.h"

struct opened {
	struct buf bytes;
	struct java_image image;
	struct java_memory memory;
};

static void open_image(const char *name, struct opened *o)
{
	const char *root = getenv("HEARTH_SOURCE_ROOT");
	char path[1024];

	*o = (struct opened){ .bytes = BUF_INIT(MIB(1)) };
	snprintf(path, sizeof(path), "%s/tests/corpus/java_tables/%s", root ? root : ".", name);
	assert_int_equal(io_read_file(path, &o->bytes), 0);
	assert_true(java_image_open(cur_of(o->bytes.ptr, o->bytes.len), &o->image));
	o->memory = (struct java_memory){ .read = java_image_read, .self = &o->image };
}

static void closed(struct opened *o)
{
	buf_release(&o->bytes);
}

/* Figures that tests/runtime/java_tables.py reads of each version. */
static void versions(void **state)
{
	static const struct {
		const char *name;
		uint8_t version;
		uint32_t flags;
		uint16_t nmethod, blob, block, nm_method, const_name, symbol_hash, list_threads, pool_source;
	} cases[] = {
		{ "jdk8", 8,
		  JAVA_LAYOUT_RELATIVE | JAVA_LAYOUT_ONE_HEAP | JAVA_LAYOUT_THREAD_CHAIN | JAVA_LAYOUT_SOURCE_IN_CLASS |
			  JAVA_LAYOUT_FLAG_TYPE_TEXT,
		  296, 64, 16, 64, 34, 4, 560, 258 },
		{ "jdk11", 11, JAVA_LAYOUT_THREAD_CHAIN | JAVA_LAYOUT_SOURCE_IN_CLASS | JAVA_LAYOUT_FLAG_TYPE_TEXT, 376,
		  104, 16, 112, 42, 4, 784, 298 },
		{ "jdk17", 17, JAVA_LAYOUT_OOP_HANDLES, 352, 104, 16, 112, 34, 2, 16, 54 },
		{ "jdk21", 21, JAVA_LAYOUT_NO_ZERO | JAVA_LAYOUT_WIDE_FLAGS | JAVA_LAYOUT_OOP_HANDLES, 344, 96, 16, 112,
		  36, 2, 16, 54 },
		{ "jdk25", 25,
		  JAVA_LAYOUT_RELATIVE | JAVA_LAYOUT_IMMUTABLE | JAVA_LAYOUT_MUTABLE | JAVA_LAYOUT_NO_ZERO |
			  JAVA_LAYOUT_SHORT_COMPLETE | JAVA_LAYOUT_WIDE_FLAGS | JAVA_LAYOUT_OOP_HANDLES,
		  224, 64, 8, 80, 36, 2, 16, 54 },
		{ "jdk26", 26,
		  JAVA_LAYOUT_RELATIVE | JAVA_LAYOUT_IMMUTABLE | JAVA_LAYOUT_MUTABLE | JAVA_LAYOUT_NO_ZERO |
			  JAVA_LAYOUT_SHORT_COMPLETE | JAVA_LAYOUT_WIDE_FLAGS | JAVA_LAYOUT_OOP_HANDLES,
		  224, 64, 8, 80, 36, 2, 16, 62 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(java_tables_freep) struct java_tables *tables = NULL;
		scoped(closed) struct opened o;
		struct java_layout l;
		char why[96] = "";

		print_message("  %s\n", cases[i].name);
		open_image(cases[i].name, &o);
		assert_int_equal(java_tables_read(&o.memory, o.image.symbols, 0, &tables), 0);
		assert_int_equal(java_layout_fill(&o.memory, tables, 0, &l, why), 0);
		assert_string_equal(why, "");
		assert_int_equal(l.version, cases[i].version);
		assert_int_equal(l.flags, cases[i].flags);
		assert_int_equal(l.nmethod_header_size, cases[i].nmethod);
		assert_int_equal(l.blob_header_size, cases[i].blob);
		assert_int_equal(l.heap_block_size, cases[i].block);
		assert_int_equal(l.nm_method, cases[i].nm_method);
		assert_int_equal(l.const_name, cases[i].const_name);
		assert_int_equal(l.symbol_hash, cases[i].symbol_hash);
		assert_int_equal(l.list_threads, cases[i].list_threads);
		assert_int_equal(l.pool_source, cases[i].pool_source);
		assert_int_equal(l.const_has_lines, 1);
	}
}

/* The word at a symbol of the image is replaced by @value. */
static int with_word(enum java_symbol symbol, uint64_t value)
{
	scoped(java_tables_freep) struct java_tables *tables = NULL;
	scoped(closed) struct opened o;

	open_image("jdk17", &o);
	memcpy(o.bytes.ptr + 8 * (1 + JAVA_SYMBOL_COUNT) + (o.image.symbols[symbol] - o.image.base), &value,
	       sizeof(value));
	return java_tables_read(&o.memory, o.image.symbols, 0, &tables);
}

static void hostile(void **state)
{
	static const struct {
		const char *name;
		enum java_symbol symbol;
		uint64_t value;
		int want;
	} cases[] = {
		{ "no stride", JAVA_SYMBOL_STRUCT_STRIDE, 0, -EBADMSG },
		{ "a huge stride", JAVA_SYMBOL_STRUCT_STRIDE, UINT64_MAX, -EBADMSG },
		{ "a stride within an entry", JAVA_SYMBOL_STRUCT_STRIDE, 16, -EBADMSG },
		{ "a member far away", JAVA_SYMBOL_STRUCT_FIELD, UINT64_MAX - 3, -EBADMSG },
		{ "names are addresses elsewhere", JAVA_SYMBOL_TYPE_NAME, 32, -EFAULT },
		{ "tables elsewhere", JAVA_SYMBOL_INTS, 0x7fff00000000, -EFAULT },
		{ "a table at the end of addresses", JAVA_SYMBOL_INTS, UINT64_MAX - 7, -EFAULT },
		{ "no table", JAVA_SYMBOL_INTS, 0, -EFAULT },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s\n", cases[i].name);
		assert_int_equal(with_word(cases[i].symbol, cases[i].value), cases[i].want);
	}
}

/* Longs are filled last: while they are empty, the other tables may be half of what they will be. */
static void is_loading(void **state)
{
	scoped(closed) struct opened o;
	uint64_t empty;

	(void)state;
	open_image("jdk17", &o);
	empty = o.image.base + cur_left(&o.image.memory); /* zeros */
	assert_int_equal(with_word(JAVA_SYMBOL_LONGS, empty), -EAGAIN);
}

static void missing_symbol(void **state)
{
	scoped(java_tables_freep) struct java_tables *tables = NULL;
	scoped(closed) struct opened o;

	(void)state;
	open_image("jdk25", &o);
	o.image.symbols[JAVA_SYMBOL_LONG_VALUE] = 0;
	assert_int_equal(java_tables_read(&o.memory, o.image.symbols, 0, &tables), -EBADMSG);
}

/* One name in the image is written over: the field has gone, and is named. */
static void missing_field(void **state)
{
	static const struct {
		const char *text, *instead, *why;
	} cases[] = {
		{ "_segmap", "_sagmap", "CodeHeap::_segmap is not there" },
		{ "_vm_major_version", "_xm_major_version", "OpenJDK before 8" },
		{ "_scopes_pcs_offset", "_scopes_pcs_offsat", "nmethod::_scopes_pcs_offset is not there" },
		{ "_java_thread_list", "_java_thread_lest", "Threads::_thread_list is not there" },
		{ "_log2_segment_size", "_log2_segment_saze", "CodeHeap::_log2_segment_size is not there" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(java_tables_freep) struct java_tables *tables = NULL;
		scoped(closed) struct opened o;
		struct java_layout l = { .version = 1 };
		char why[96] = "", *at;

		print_message("  %s\n", cases[i].text);
		open_image("jdk17", &o);
		at = memmem(o.bytes.ptr, o.bytes.len, cases[i].text, strlen(cases[i].text) + 1);
		assert_non_null(at);
		memcpy(at, cases[i].instead, strlen(cases[i].instead));
		assert_int_equal(java_tables_read(&o.memory, o.image.symbols, 0, &tables), 0);
		assert_int_equal(java_layout_fill(&o.memory, tables, 0, &l, why), -ENOTSUP);
		assert_string_equal(why, cases[i].why);
		assert_int_equal(l.version, 1); /* untouched */
	}
}

static void unknown_version(void **state)
{
	scoped(java_tables_freep) struct java_tables *tables = NULL;
	scoped(closed) struct opened o;
	struct java_field field;
	struct java_layout l;
	char why[96] = "";

	(void)state;
	open_image("jdk25", &o);
	assert_int_equal(java_tables_read(&o.memory, o.image.symbols, 0, &tables), 0);
	assert_int_equal(java_tables_field(tables, "Abstract_VM_Version", "_vm_major_version", &field), 0);
	o.bytes.ptr[8 * (1 + JAVA_SYMBOL_COUNT) + (field.address - o.image.base)] = 24;
	assert_int_equal(java_layout_fill(&o.memory, tables, 0, &l, why), -ENOTSUP);
	assert_string_equal(why, "version 24 is not known");
}

static void widths(void **state)
{
	(void)state;
	assert_int_equal(java_width(STR("CodeHeap*")), 8);
	assert_int_equal(java_width(STR("JavaThread *const *const")), 8);
	assert_int_equal(java_width(STR("int16_t")), 2);
	assert_int_equal(java_width(STR("u4")), 4);
	assert_int_equal(java_width(STR("VirtualSpace")), 0);
	assert_int_equal(java_width(STR("")), 0);
}

static int read_once(void *ctx)
{
	scoped(java_tables_freep) struct java_tables *tables = NULL;
	struct opened *o = ctx;

	return java_tables_read(&o->memory, o->image.symbols, 0, &tables);
}

static void out_of_memory(void **state)
{
	scoped(closed) struct opened o;

	(void)state;
	open_image("jdk17", &o);
	for_each_failing_allocation(read_once, &o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions),       cmocka_unit_test(hostile),       cmocka_unit_test(is_loading),
		cmocka_unit_test(missing_symbol), cmocka_unit_test(missing_field), cmocka_unit_test(unknown_version),
		cmocka_unit_test(widths),         cmocka_unit_test(out_of_memory),
	};

	return cmocka_run_group_tests_name("java_tables", tests, NULL, NULL);
}
