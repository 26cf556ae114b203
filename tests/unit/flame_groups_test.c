/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "query/flame.h"
#include "store/store.h"

static void reads_groups(void **state)
{
	static const struct {
		const char *text, *want; /* want NULL: refused */
		int r;
	} cases[] = { { "", "", 0 },
		      { "thread", "17:", 0 },
		      { "host", "18:host", 0 },
		      { "label:env", "19:env", 0 },
		      { "label:thread,thread,label:a%2Cb%253D+c,host", "19:thread 17: 19:a,b%3D c 18:host", 0 },
		      { "thread,thread,thread,thread,thread,thread,thread,thread",
			"17: 17: 17: 17: 17: 17: 17: 17:", 0 },
		      { "thread,thread,thread,thread,thread,thread,thread,thread,host", NULL, -E2BIG },
		      { "threads", NULL, -EBADMSG },
		      { "thread,", NULL, -EBADMSG },
		      { ",", NULL, -EBADMSG },
		      { "label:", NULL, -EBADMSG },
		      { "label", NULL, -EBADMSG },
		      { "label:%zz", NULL, -EBADMSG },
		      { "process", NULL, -EBADMSG } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cur c = guard_page(cases[i].text, strlen(cases[i].text));
		scoped(flame_groups_release) struct flame_groups g = { 0 };
		scoped(buf_release) struct buf out = BUF_INIT(KIB(4));

		print_message("  %s\n", cases[i].text);
		assert_int_equal(flame_groups_parse(cur_rest(&c), &g), cases[i].r);
		for (size_t k = 0; k < g.count; k++) {
			assert_null(g.items[k].usual.ptr);
			buf_addf(&out, "%s%u:" STR_FMT, k ? " " : "", g.items[k].kind, STR_ARG(g.items[k].label));
		}
		assert_string_equal(buf_cstr(&out), cases[i].want ? cases[i].want : "");
	}
}

static void refuses_long_names(void **state)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(4));
	struct flame_groups g = { 0 };

	(void)state;
	buf_adds(&text, STR("label:"));
	for (size_t i = 0; i < STORE_LABEL_KEY_MAX; i++)
		buf_addc(&text, 'x');
	assert_int_equal(flame_groups_parse(buf_str(&text), &g), 0);
	assert_int_equal(g.items[0].label.len, STORE_LABEL_KEY_MAX);
	flame_groups_release(&g);
	buf_addc(&text, 'x');
	assert_int_equal(flame_groups_parse(buf_str(&text), &g), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(reads_groups), cmocka_unit_test(refuses_long_names) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
