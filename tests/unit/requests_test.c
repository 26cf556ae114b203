/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "agent/requests.h"

static struct abi_request request(uint32_t pid, uint64_t key, const char *path)
{
	struct abi_request r = { .pid = pid, .exec_id = 3, .process_start_ns = 5, .key = key, .script = "/srv/a.php" };

	must(strlen(path) < sizeof(r.path));
	memcpy(r.path, path, strlen(path));
	return r;
}

static void put(struct requests *r, uint32_t pid, uint64_t key, const char *path)
{
	struct abi_request record = request(pid, key, path);

	assert_int_equal(requests_put(r, &record), 0);
}

/* @path: NULL: it is not known */
static void expect(struct requests *r, uint32_t pid, uint32_t exec_id, uint64_t key, const char *path)
{
	const struct program program = { .pid = pid, .exec_id = exec_id, .start_ns = 5 };
	struct str script, found;

	assert_int_equal(requests_find(r, &program, key, &script, &found), path != NULL);
	if (!path)
		return;
	assert_true(str_eq(script, STR("/srv/a.php")));
	assert_true(str_eq(found, str_of(path)));
}

static void of_its_own_program(void **state)
{
	struct requests *r;

	(void)state;
	assert_int_equal(requests_new(&r), 0);
	put(r, 7, 1, "/a");
	put(r, 7, 2, "/b");
	put(r, 8, 1, "/c"); /* another process may have the same number for something else */
	expect(r, 7, 3, 1, "/a");
	expect(r, 7, 3, 2, "/b");
	expect(r, 8, 3, 1, "/c");
	assert_false(requests_want_recall(r));
	expect(r, 8, 3, 2, NULL);
	expect(r, 7, 4, 1, NULL); /* another program took its place */
	assert_true(requests_want_recall(r));
	assert_false(requests_want_recall(r));
	requests_free(r);
	requests_free(NULL);
}

/* A worker that is asked for ever new paths does not make us forget what is used, nor grow without end. */
static void what_is_used_stays(void **state)
{
	struct requests *r;

	(void)state;
	assert_int_equal(requests_new(&r), 0);
	put(r, 7, 1, "/always");
	put(r, 7, 2, "/once");
	for (uint64_t i = 0; i < 5 * REQUESTS_HALF; i++) {
		put(r, 8, 10 + i, "/x");
		if (i % 100 == 0)
			expect(r, 7, 3, 1, "/always");
	}
	expect(r, 7, 3, 2, NULL);
	expect(r, 8, 3, 10, NULL);
	expect(r, 8, 3, 10 + 5 * REQUESTS_HALF - 1, "/x");
	requests_free(r);
}

static int learn_and_find(void *ctx)
{
	const struct program program = { .pid = 7, .exec_id = 3, .start_ns = 5 };
	struct requests *r;
	int result = requests_new(&r);

	(void)ctx;
	if (result < 0)
		return result;
	for (uint64_t key = 1; key < 300 && result == 0; key++) {
		struct abi_request record = request(7, key, "/a");
		struct str script = STR("before"), path = STR("before");

		result = requests_put(r, &record);
		if (result == 0 && !requests_find(r, &program, key, &script, &path))
			result = -ENOMEM;
		assert_true(result < 0 || (str_eq(script, STR("/srv/a.php")) && str_eq(path, STR("/a"))));
	}
	requests_free(r);
	return result;
}

/* One that is in the older half is found also where there is no memory to take it over. */
static int take_over(void *ctx)
{
	const struct program program = { .pid = 7, .exec_id = 3, .start_ns = 5 };
	struct str script, path;
	struct requests *r;
	int result = requests_new(&r);

	(void)ctx;
	if (result < 0)
		return result;
	for (uint64_t key = 1; key <= REQUESTS_HALF + 1 && result == 0; key++) {
		struct abi_request record = request(7, key, "/a");

		result = requests_put(r, &record);
	}
	for (int i = 0; i < 2 && result == 0; i++)
		if (!requests_find(r, &program, 1, &script, &path))
			result = -ENOMEM;
	if (result == 0)
		assert_true(str_eq(path, STR("/a")));
	requests_free(r);
	return result;
}

static void survives_failing_allocations(void **state)
{
	(void)state;
	for_each_failing_allocation(learn_and_find, NULL);
	for_each_failing_allocation(take_over, NULL);
}

static void texts_are_safe(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "/shop/1", "/shop/1" },
		{ "", "" },
		{ "/a\nb\x7f\x1b", "/a%0Ab%7F%1B" },
		{ "/\xff\xc3", "/%FF%C3" },
		{ "/\xc3\xa9", "/\xc3\xa9" },
		{ "/\xc2\x85", "/%C2%85" },
		{ "/\xe2\x80\xae/\xe2\x80\x8b", "/%E2%80%AE/%E2%80%8B" }, /* right to left, without a width */
		{ "/\xe2\x80\xa8\xe2\x80\xa9", "/%E2%80%A8%E2%80%A9" },
		{ "/\xf3\xa0\x81\x81", "/%F3%A0%81%81" }, /* a tag */
		{ "http://me:secret@host/path", "/path" },
		{ "http://me:secret@host", "" },
		{ "://", "" },
		{ "*", "*" },
		{ "shop", "shop" },
		{ "/to/http://x", "/to/http://x" },
	};
	char full[ABI_REQUEST_TEXT_SIZE] = { 0 };
	scoped(buf_release) struct buf out = BUF_INIT(KIB(1));

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct abi_request record = request(7, 1, cases[i].text);

		buf_clear(&out);
		requests_path(record.path, &out);
		assert_string_equal(buf_cstr(&out), cases[i].want);
	}
	memset(full, 'x', sizeof(full) - 1);
	memcpy(full + sizeof(full) - 3, "\xe2\x82", 2); /* a character that lost its end */
	buf_clear(&out);
	requests_script(full, &out);
	assert_int_equal(out.len, sizeof(full) - 3 + 3);
	assert_string_equal(buf_cstr(&out) + sizeof(full) - 3, "...");
	memset(full, 0xff, sizeof(full)); /* nothing ends it */
	buf_clear(&out);
	requests_script(full, &out);
	assert_int_equal(out.error, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_its_own_program),
		cmocka_unit_test(what_is_used_stays),
		cmocka_unit_test(survives_failing_allocations),
		cmocka_unit_test(texts_are_safe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
