/* SPDX-License-Identifier: Apache-2.0 */
/* Since when no class was unloaded: what is known of it when walks over copied stacks ask. */
#include "runtime/java/unloads.h"
#include "support.h"

static const struct program one = { .pid = 4242, .exec_id = 7, .start_ns = 1000 };

static void none_at_all_is_none_since(void **state)
{
	(void)state;
	assert_true(java_unloads_none_since(&one, 0, 10, 20));
	assert_true(java_unloads_none_since(&one, 0, 0, 20));
}

static void a_count_is_known_from_the_first_question_on(void **state)
{
	(void)state;
	assert_false(java_unloads_none_since(&one, 5, 100, 200)); /* what was before it, nobody knows */
	assert_false(java_unloads_none_since(&one, 5, 199, 300));
	assert_true(java_unloads_none_since(&one, 5, 200, 300));
	assert_true(java_unloads_none_since(&one, 5, 400, 500));
	assert_false(java_unloads_none_since(&one, 5, 150, 600));
}

static void another_count_begins_anew(void **state)
{
	(void)state;
	assert_false(java_unloads_none_since(&one, 6, 700, 800));
	assert_false(java_unloads_none_since(&one, 6, 750, 900));
	assert_true(java_unloads_none_since(&one, 6, 850, 900));
}

static void programs_are_told_apart(void **state)
{
	struct program other = one;

	(void)state;
	assert_false(java_unloads_none_since(&one, 9, 1000, 1100));
	other.exec_id++; /* the same process after an exec */
	assert_false(java_unloads_none_since(&other, 9, 1200, 1300));
	assert_true(java_unloads_none_since(&other, 9, 1400, 1500));
	other.pid += 256; /* one that takes its place */
	assert_false(java_unloads_none_since(&other, 9, 1600, 1700));
	assert_false(java_unloads_none_since(&one, 9, 1800, 1900));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(none_at_all_is_none_since),
		cmocka_unit_test(a_count_is_known_from_the_first_question_on),
		cmocka_unit_test(another_count_begins_anew),
		cmocka_unit_test(programs_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
