/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of any tree at any size, with little memory; sums of reports. */
#include "support.h"

#include "render/png.h"
#include "render/profile_sum.h"

/* fontconfig keeps what it read of fonts until the program ends. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libfontconfig";
}

static void tree_of(const char *text, struct tree *out)
{
	uint64_t bad_line;

	assert_int_equal(tree_from_folded(str_of(text), NULL, out, &bad_line), 0);
}

static const char odd_names[] =
	"a;b;c 3\na;\xff\xfe\x01;\xe2\x80\xae\xe2\x80\xae 100\n\xf0\x9f\x94\xa5\xf0\x9f\x94\xa5\xf0\x9f\x94\xa5 1000\n";

static void odd_trees_are_drawn(void **state)
{
	scoped(buf_release) struct buf deep = BUF_INIT(MIB(1));
	struct tree trees[3] = { 0 };

	(void)state;
	if (!render_png_possible()) {
		print_message("this build has no pictures\n");
		skip();
	}
	for (int i = 0; i < 5000; i++)
		buf_addf(&deep, "f%d;", i % 7);
	buf_addf(&deep, "leaf 9223372036854775807\n");
	tree_of(odd_names, &trees[0]);
	tree_of(buf_cstr(&deep), &trees[1]);
	for (uint32_t width = RENDER_PNG_SIDE_LEAST; width < 800; width += 207)
		for (size_t i = 0; i < ARRAY_SIZE(trees); i++) {
			const struct render_png_config cfg = { .width = width, .height = 864 - width };
			scoped(buf_release) struct buf one = BUF_INIT(MIB(64)), two = BUF_INIT(MIB(64));

			assert_int_equal(render_png(i < 2 ? &trees[i] : NULL, &cfg, &one), 0);
			assert_int_equal(render_png(i < 2 ? &trees[i] : NULL, &cfg, &two), 0);
			assert_true(str_eq(buf_str(&one), buf_str(&two)));
			assert_true(str_starts(buf_str(&one), STR("\x89PNG\r\n\x1a\n")));
		}
	tree_release(&trees[0]);
	tree_release(&trees[1]);
}

/* go-profile's colours move: from picture to picture, and come back after twenty. */
static void colours_move_when_they_shall(void **state)
{
	struct tree t = { 0 };
	struct buf pictures[3] = { BUF_INIT(MIB(64)), BUF_INIT(MIB(64)), BUF_INIT(MIB(64)) };

	(void)state;
	if (!render_png_possible())
		skip();
	tree_of(odd_names, &t);
	for (size_t i = 0; i < ARRAY_SIZE(pictures); i++) {
		const struct render_png_config cfg = { .width = 640, .height = 480, .shimmer = i < 2 ? 1 + i : 21 };

		assert_int_equal(render_png(&t, &cfg, &pictures[i]), 0);
	}
	assert_false(str_eq(buf_str(&pictures[0]), buf_str(&pictures[1])));
	assert_true(str_eq(buf_str(&pictures[0]), buf_str(&pictures[2])));
	for (size_t i = 0; i < ARRAY_SIZE(pictures); i++)
		buf_release(&pictures[i]);
	tree_release(&t);
}

static void a_small_buffer_is_said(void **state)
{
	const struct render_png_config cfg = { .width = 640, .height = 480 };
	scoped(buf_release) struct buf out = BUF_INIT(100);
	struct tree t = { 0 };

	(void)state;
	tree_of(odd_names, &t);
	if (render_png_possible())
		assert_int_equal(render_png(&t, &cfg, &out), -E2BIG);
	tree_release(&t);
}

static void reports_are_added_up(void **state)
{
	scoped(profile_sum_release) struct profile_sum s;
	scoped(buf_release) struct buf out = BUF_INIT(KIB(4));

	(void)state;
	profile_sum_init(&s, true);
	assert_int_equal(profile_sum_add(&s, STR("one;a b 2\none;c 1\n")), 0);
	assert_int_equal(profile_sum_add(&s, STR("one;c 5\ntwo;d 3\n")), 0);
	assert_int_equal(profile_sum_write(&s, &out), 0);
	assert_true(str_eq(buf_str(&out), STR("one;a b 2\ntwo;d 3\none;c 6\n")));
	buf_clear(&out);
	assert_int_equal(profile_sum_write(&s, &out), 0);
	assert_int_equal(out.len, 0);
	profile_sum_release(&s);
	profile_sum_init(&s, false);
	assert_int_equal(profile_sum_add(&s, STR("    f+0x1 [m]\n    -                a (1)\n        2\n\n    g\n    - "
						 "               b (2)\n        7\n\n")),
			 0);
	assert_int_equal(profile_sum_add(&s, STR("    f+0x1 [m]\n    -                a (1)\n        6\n\n")), 0);
	assert_int_equal(profile_sum_write(&s, &out), 0);
	assert_true(str_eq(buf_str(&out), STR("    g\n    -                b (2)\n        7\n\n    f+0x1 [m]\n    -    "
					      "            a (1)\n        8\n\n")));
}

static int sum_with_little_memory(void *ctx)
{
	scoped(profile_sum_release) struct profile_sum s;
	scoped(buf_release) struct buf out = BUF_INIT(KIB(4));
	int r;

	profile_sum_init(&s, true);
	r = profile_sum_add(&s, str_of(ctx));
	return r ? r : profile_sum_write(&s, &out);
}

static void memory_may_fail(void **state)
{
	(void)state;
	for_each_failing_allocation(sum_with_little_memory, "a;b 1\nc 2\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(odd_trees_are_drawn),    cmocka_unit_test(colours_move_when_they_shall),
		cmocka_unit_test(a_small_buffer_is_said), cmocka_unit_test(reports_are_added_up),
		cmocka_unit_test(memory_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
