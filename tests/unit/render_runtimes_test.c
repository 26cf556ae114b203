/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of lines that are only near. */
#include "support.h"

#include "render/runtimes.h"

static void near_lines_are_told(void **state)
{
	static const struct {
		const char *name, *want;
		uint64_t frames, vague;
	} cases[] = {
		{ "java",
		  "25.0 % of their lines are those of the next safepoint (exact with "
		  "-XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints)",
		  400, 100 },
		{ "java", "", 400, 0 },
		{ "other", "50.0 % of their lines are those of the next place that is described", 2, 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(window_release) struct window w = { 0 };
		scoped(buf_release) struct buf text = BUF_INIT(KIB(1));
		struct runtime_shares shares = { 0 };
		struct str name = str_of(cases[i].name);
		char counter[64];

		snprintf(counter, sizeof(counter), "runtime_frames_%s", cases[i].name);
		assert_int_equal(window_set_counter(&w, str_of(counter), cases[i].frames), 0);
		snprintf(counter, sizeof(counter), "runtime_vague_frames_%s", cases[i].name);
		assert_int_equal(window_set_counter(&w, str_of(counter), cases[i].vague), 0);
		runtime_shares_add(&shares, &w, name);
		runtime_shares_add_vague(&shares, name, &text);
		assert_true(str_eq(buf_str(&text), str_of(cases[i].want)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(near_lines_are_told) };

	return cmocka_run_group_tests_name("render_runtimes", tests, NULL, NULL);
}
