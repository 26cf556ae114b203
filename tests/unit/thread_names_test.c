/* SPDX-License-Identifier: Apache-2.0 */
/* Names of threads: who is asked for when, and what a name holds for. */
#include "support.h"

#include "base/clock.h"
#include "runtime/thread_names.h"

static const struct program jvm = { .pid = 10, .exec_id = 1, .start_ns = 5 }, other = { .pid = 11, .start_ns = 6 };

static struct thread_names *opened(void)
{
	struct thread_names *n = NULL;

	assert_int_equal(thread_names_new(&n), 0);
	return n;
}

static bool want(struct thread_names *n, const struct program *p, uint32_t tid, const char *comm, uint64_t second)
{
	return thread_names_want(n, p, tid, str_of(comm), second * NSEC_PER_SEC);
}

static size_t wanted(struct thread_names *n, const struct program *p)
{
	static struct thread_wanted out[THREAD_NAMES_WANTED_MAX];

	return thread_names_wanted(n, p, out);
}

/* All that are wanted of @p get the name @name. */
static void put_all(struct thread_names *n, const struct program *p, const char *name, uint64_t second)
{
	static struct thread_wanted out[THREAD_NAMES_WANTED_MAX];
	size_t count = thread_names_wanted(n, p, out);

	for (size_t i = 0; i < count; i++)
		assert_int_equal(thread_names_put(n, &out[i], str_of(name), second * NSEC_PER_SEC), 0);
}

static const char *find(struct thread_names *n, const struct program *p, uint32_t tid, const char *comm)
{
	static char room[64];
	struct str name;

	if (thread_names_find(n, p, tid, str_of(comm), &name) < 0)
		return NULL;
	snprintf(room, sizeof(room), STR_FMT, STR_ARG(name));
	return room;
}

static void a_name_is_of_number_and_kernels_name(void **state)
{
	struct thread_names *n = opened();

	(void)state;
	assert_true(want(n, &jvm, 20, "pool-1-thread-1", 1));
	assert_null(find(n, &jvm, 20, "pool-1-thread-1"));
	put_all(n, &jvm, "pool-1-thread-17", 1);
	assert_string_equal(find(n, &jvm, 20, "pool-1-thread-1"), "pool-1-thread-17");
	assert_null(find(n, &jvm, 21, "pool-1-thread-1"));
	assert_null(find(n, &jvm, 20, "java"));
	assert_null(find(n, &other, 20, "pool-1-thread-1"));
	thread_names_free(n);
}

static void a_program_is_asked_once_a_second(void **state)
{
	struct thread_names *n = opened();

	(void)state;
	assert_true(want(n, &jvm, 20, "a", 1));
	assert_false(want(n, &jvm, 20, "a", 1));
	assert_false(want(n, &jvm, 21, "b", 1)); /* it waits */
	assert_true(want(n, &other, 30, "c", 1));
	assert_int_equal(wanted(n, &jvm), 2);
	assert_true(want(n, &jvm, 20, "a", 2)); /* nobody has answered */
	put_all(n, &jvm, "name", 2);
	assert_int_equal(wanted(n, &jvm), 0);
	assert_false(want(n, &jvm, 20, "a", 9));
	assert_int_equal(wanted(n, &other), 1);
	thread_names_free(n);
}

static void a_name_is_read_again_after_a_minute(void **state)
{
	struct thread_names *n = opened();

	(void)state;
	assert_true(want(n, &jvm, 20, "a", 1));
	put_all(n, &jvm, "first", 1);
	assert_false(want(n, &jvm, 20, "a", 60));
	assert_true(want(n, &jvm, 20, "a", 61));
	assert_string_equal(find(n, &jvm, 20, "a"), "first"); /* until then */
	put_all(n, &jvm, "second", 61);
	assert_string_equal(find(n, &jvm, 20, "a"), "second");
	thread_names_free(n);
}

static void a_full_name_may_be_another_ones_soon(void **state)
{
	struct thread_names *n = opened();

	(void)state;
	assert_true(want(n, &jvm, 20, "pool-1-thread-1", 1)); /* 15 bytes: what the kernel keeps of it */
	put_all(n, &jvm, "pool-1-thread-17", 1);
	assert_false(want(n, &jvm, 20, "pool-1-thread-1", 2));
	assert_true(want(n, &jvm, 20, "pool-1-thread-1", 3));
	put_all(n, &jvm, "pool-1-thread-18", 3);
	assert_string_equal(find(n, &jvm, 20, "pool-1-thread-1"), "pool-1-thread-18");
	thread_names_free(n);
}

static void what_cannot_be_read_again_keeps_its_name(void **state)
{
	struct thread_names *n = opened();

	(void)state;
	assert_true(want(n, &jvm, 20, "main", 1));
	put_all(n, &jvm, "main", 1);
	assert_true(want(n, &jvm, 20, "main", 62));
	put_all(n, &jvm, "", 62);
	assert_string_equal(find(n, &jvm, 20, "main"), "main");
	assert_false(want(n, &jvm, 20, "main", 64));
	thread_names_free(n);
}

static void what_has_no_name_is_not_asked_for_all_the_time(void **state)
{
	static const uint64_t seconds[] = { 1, 2, 3, 5, 9, 17, 33, 65 };
	struct thread_names *n = opened();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(seconds); i++) {
		assert_true(i < 2 || !want(n, &jvm, 20, "GC Thread#0", seconds[i] - 1));
		assert_true(want(n, &jvm, 20, "GC Thread#0", seconds[i]));
		put_all(n, &jvm, "", seconds[i]);
		assert_null(find(n, &jvm, 20, "GC Thread#0"));
	}
	assert_false(want(n, &jvm, 20, "GC Thread#0", 65 + 59));
	assert_true(want(n, &jvm, 20, "GC Thread#0", 65 + 60));
	thread_names_free(n);
}

static void what_gets_its_name_late_has_it_soon(void **state)
{
	struct thread_names *n = opened();

	(void)state;
	assert_true(want(n, &jvm, 20, "java", 1));
	put_all(n, &jvm, "", 1);
	assert_true(want(n, &jvm, 20, "java", 2));
	put_all(n, &jvm, "main", 2);
	assert_string_equal(find(n, &jvm, 20, "java"), "main");
	assert_false(want(n, &jvm, 20, "java", 61));
	assert_true(want(n, &jvm, 20, "java", 62));
	thread_names_free(n);
}

/* A process that calls its threads ever new names takes its own room, and no more than there is. */
static void when_full_the_largest_begins_anew(void **state)
{
	static struct thread_wanted before[THREAD_NAMES_WANTED_MAX];
	struct thread_names *n = opened();

	(void)state;
	assert_true(want(n, &jvm, 20, "a", 1));
	put_all(n, &jvm, "mine", 1);
	assert_true(want(n, &other, 0, "b", 1));
	assert_int_equal(thread_names_wanted(n, &other, before), 1);
	for (uint32_t i = 1; i < THREAD_NAMES_MAX; i++)
		want(n, &other, i, "b", 1);
	assert_int_equal(wanted(n, &other), 1);                                          /* the last */
	assert_int_equal(thread_names_put(n, &before[0], STR("late"), NSEC_PER_SEC), 0); /* in vain */
	assert_null(find(n, &other, 0, "b"));
	assert_null(find(n, &other, THREAD_NAMES_MAX - 1, "b"));
	assert_string_equal(find(n, &jvm, 20, "a"), "mine");
	put_all(n, &other, "again", 2);
	assert_string_equal(find(n, &other, THREAD_NAMES_MAX - 1, "b"), "again");
	for (uint32_t round = 0; round < 3; round++) /* any number of times */
		for (uint32_t i = 0; i < THREAD_NAMES_MAX; i++)
			want(n, &other, i, round % 2 ? "c" : "d", 3);
	assert_string_equal(find(n, &jvm, 20, "a"), "mine");
	thread_names_free(n);
}

static void names_take_so_many_bytes_and_no_more(void **state)
{
	struct thread_names *n = opened();
	uint32_t count = THREAD_NAMES_BYTES / 1000 + 1;
	char name[1001];

	(void)state;
	memset(name, 'x', 1000);
	name[1000] = 0;
	want(n, &other, 1, "a", 1);
	put_all(n, &other, "mine", 1);
	for (uint32_t i = 0; i < count; i++) {
		assert_true(!i || find(n, &jvm, 0, "a"));
		want(n, &jvm, i, "a", 1);
		put_all(n, &jvm, name, 1);
	}
	assert_null(find(n, &jvm, 0, "a"));
	assert_string_equal(find(n, &other, 1, "a"), "mine");
	thread_names_free(n);
}

static void of_too_many_programs_all_are_forgotten(void **state)
{
	struct thread_names *n = opened();

	(void)state;
	for (uint32_t i = 0; i < THREAD_NAMES_PROGRAMS_MAX; i++) {
		const struct program p = { .pid = i + 100, .start_ns = 1 };

		assert_true(want(n, &p, 1, "a", 1));
		put_all(n, &p, "name", 1);
	}
	assert_true(want(n, &jvm, 20, "a", 1));
	assert_null(find(n, &(struct program){ .pid = 100, .start_ns = 1 }, 1, "a"));
	put_all(n, &jvm, "mine", 1);
	assert_string_equal(find(n, &jvm, 20, "a"), "mine");
	thread_names_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_of_number_and_kernels_name),
		cmocka_unit_test(a_program_is_asked_once_a_second),
		cmocka_unit_test(a_name_is_read_again_after_a_minute),
		cmocka_unit_test(a_full_name_may_be_another_ones_soon),
		cmocka_unit_test(what_cannot_be_read_again_keeps_its_name),
		cmocka_unit_test(what_has_no_name_is_not_asked_for_all_the_time),
		cmocka_unit_test(what_gets_its_name_late_has_it_soon),
		cmocka_unit_test(when_full_the_largest_begins_anew),
		cmocka_unit_test(names_take_so_many_bytes_and_no_more),
		cmocka_unit_test(of_too_many_programs_all_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
