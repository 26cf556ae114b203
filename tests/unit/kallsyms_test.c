/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "object/kallsyms.h"

#define assert_str(s, wanted) assert_true(str_eq((s), STR(wanted)))

static int feed(struct kallsyms *k, const char *text)
{
	struct cur in = guard_page(text, strlen(text));

	kallsyms_init(k);
	kallsyms_feed(k, in.pos, cur_left(&in));
	return kallsyms_finish(k);
}

static void finds_functions(void **state)
{
	scoped(kallsyms_release) struct kallsyms k;
	struct kallsyms_hit hit = { 0 };

	(void)state;
	assert_int_equal(feed(&k, "0000000000000000 A irq_stack\n"
				  "ffffffff81000000 T _text\n"
				  "ffffffff81000000 T startup_64\n"
				  "ffffffff81000ff0 t __pfx_inner\n"
				  "ffffffff81001000 t inner\n"
				  "ffffffff81001000 t __inner_alias\n"
				  "ffffffff81002000 D some_data\n"
				  "ffffffffc0000000 t read_block\t[ext4]\n"
				  "ffffffffc0000040 T write_block\t[ext4]\n"
				  "ffffffffc0900000 t bpf_prog_6deef7357e7b4530_x\t[bpf]"),
			 0);
	assert_int_equal(kallsyms_find(&k, 0xffffffff81000fffULL, &hit), 0);
	assert_str(hit.name, "startup_64");
	assert_int_equal(hit.module.len, 0);
	assert_int_equal(kallsyms_find(&k, 0xffffffff81001000ULL, &hit), 0);
	assert_str(hit.name, "inner");
	assert_int_equal(hit.start, 0xffffffff81001000ULL);
	assert_int_equal(kallsyms_find(&k, 0xffffffffc000003fULL, &hit), 0);
	assert_str(hit.name, "read_block");
	assert_str(hit.module, "[ext4]");
	assert_int_equal(kallsyms_find(&k, 0xffffffffc0900010ULL, &hit), 0);
	assert_str(hit.name, "bpf_prog_6deef7357e7b4530_x");
	assert_str(hit.module, "[bpf]");
	assert_int_equal(kallsyms_find(&k, 0xffffffff80ffffffULL, &hit), -ENOENT);
	assert_int_equal(kallsyms_find(&k, 0xffffffffb0000000ULL, &hit), -ENOENT); /* too far behind the last before */
	assert_int_equal(kallsyms_find(&k, 0x1000, &hit), -ENOENT);
}

static void judges_lists(void **state)
{
	static const struct {
		const char *name, *text;
		int want;
		size_t bad;
	} cases[] = {
		{ "empty", "", -ENOENT, 0 },
		{ "only data", "ffffffff81000000 D x\n", -ENOENT, 0 },
		{ "restricted", "0000000000000000 T _text\n0000000000000000 t y\n", -EACCES, 0 },
		{ "no address", "T x\nffffffff81000000 T y\n", 0, 1 },
		{ "no name", "ffffffff81000000 T \nffffffff81000000 T y\n", 0, 1 },
		{ "address too long", "1ffffffff81000000 T x\nffffffff81000000 T y\n", 0, 1 },
		{ "module without bracket", "ffffffff81000000 T x\text4\nffffffff81000000 T y\n", 0, 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(kallsyms_release) struct kallsyms k;

		print_message("  %s\n", cases[i].name);
		assert_int_equal(feed(&k, cases[i].text), cases[i].want);
		assert_int_equal(k.bad_lines, cases[i].bad);
	}
}

static void skips_overlong_lines(void **state)
{
	scoped(kallsyms_release) struct kallsyms k;
	char piece[700];

	(void)state;
	memset(piece, 'x', sizeof(piece));
	kallsyms_init(&k);
	kallsyms_feed(&k, "ffffffff81000000 T ", 19);
	for (int i = 0; i < 1000; i++)
		kallsyms_feed(&k, piece, sizeof(piece));
	kallsyms_feed(&k, "\nffffffff81000100 T kept\n", 25);
	assert_int_equal(kallsyms_finish(&k), 0);
	assert_int_equal(k.count, 1);
	assert_int_equal(k.bad_lines, 1);
}

static int load(void *ctx)
{
	scoped(kallsyms_release) struct kallsyms k;
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
	const char *bytes;

	(void)ctx;
	for (int i = 0; i < 500; i++)
		buf_addf(&text, "ffffffff81%06x T name%d%s\n", i * 16, i, i > 250 ? "\t[mod]" : "");
	bytes = buf_cstr(&text);
	kallsyms_init(&k);
	if (text.error)
		return text.error;
	kallsyms_feed(&k, bytes, text.len);
	return kallsyms_finish(&k);
}

static void survives_failing_allocations(void **state)
{
	(void)state;
	for_each_failing_allocation(load, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_functions),
		cmocka_unit_test(judges_lists),
		cmocka_unit_test(skips_overlong_lines),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
