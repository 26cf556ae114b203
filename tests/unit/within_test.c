/* SPDX-License-Identifier: Apache-2.0 */
/* Times of samples: what is read, where a sample lies, which ones stay. */
#include "support.h"

#include "model_samples.h"
#include "query/within.h"

#define MS NSEC_PER_MSEC
#define START (UINT64_C(1795000000) * NSEC_PER_SEC)

static void reads(void **state)
{
	static const struct {
		const char *text;
		uint64_t from_ms, to_ms; /* to_ms 0: refused */
		const char *why;         /* what the refusal says */
	} cases[] = {
		{ "0-1", 0, 1, "" },
		{ "1795000000000-1795000000020", 1795000000000, 1795000000020, "" },
		{ "5-600005", 5, 600005, "" },
		{ "5-600006", 0, 0, "at most ten minutes" },
		{ "9223372036853-9223372036854", 9223372036853, 9223372036854, "" },
		{ "9223372036853-9223372036855", 0, 0, "no time after April 2262" },
		{ "1-99999999999999", 0, 0, "at most ten minutes; from and to take more" },
		{ "1795000000000-18446744073709551615", 0, 0, "at most ten minutes" },
		{ "7-7", 0, 0, "FROM-TO in milliseconds" },
		{ "8-7", 0, 0, "FROM-TO in milliseconds" },
		{ "7", 0, 0, "FROM-TO in milliseconds" },
		{ "-7", 0, 0, "FROM-TO in milliseconds" },
		{ "7-", 0, 0, "FROM-TO in milliseconds" },
		{ "1-2-3", 0, 0, "FROM-TO in milliseconds" },
		{ "a-b", 0, 0, "FROM-TO in milliseconds" },
		{ "1.5-2", 0, 0, "FROM-TO in milliseconds" },
		{ "0-18446744073709551617", 0, 0, "FROM-TO in milliseconds" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
		struct query_within w = { 1, 1 };
		int r = query_within_read(str_of(cases[i].text), &w, &why);

		print_message("  %s\n", cases[i].text);
		assert_int_equal(r, cases[i].to_ms ? 0 : -EBADMSG);
		assert_int_equal(w.from_ns, cases[i].from_ms * MS);
		assert_int_equal(w.to_ns, cases[i].to_ms * MS);
		assert_int_equal(r<0, why.len> 0);
		assert_non_null(strstr(buf_cstr(&why), cases[i].why));
	}
}

static void no_time_is_all_times(void **state)
{
	struct query_within w = { 1, 1 };
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));

	(void)state;
	assert_int_equal(query_within_read((struct str){ 0 }, &w, &why), 0);
	assert_int_equal(w.to_ns, 0);
	assert_int_equal(why.len, 0);
}

static void places_samples(void **state)
{
	static const struct {
		struct query_moment p;
		uint64_t offset_ns, want_ns; /* 0: it has no time */
	} cases[] = {
		{ { START, START, 10 * NSEC_PER_SEC }, 20 * MS, START + 20 * MS },
		{ { START, 0, 10 * NSEC_PER_SEC }, 20 * MS, START + 20 * MS },
		{ { START, START + 300 * MS, 10 * NSEC_PER_SEC }, 20 * MS, START + 320 * MS }, /* more exact */
		{ { START, START - 300 * MS, 10 * NSEC_PER_SEC }, 20 * MS, START - 280 * MS },
		{ { START, 5, 10 * NSEC_PER_SEC }, 20 * MS, START + 20 * MS }, /* another clock */
		{ { START, UINT64_MAX, 10 * NSEC_PER_SEC }, 20 * MS, START + 20 * MS },
		{ { START, START, 10 * NSEC_PER_SEC }, MODEL_NO_TIME, 0 },
		{ { START, START, 10 * NSEC_PER_SEC }, MODEL_NO_TIME - 1, 0 },
		{ { START, START, 10 * NSEC_PER_SEC },
		  11 * NSEC_PER_SEC,
		  START + 11 * NSEC_PER_SEC }, /* a little late */
		{ { START, START, 10 * NSEC_PER_SEC }, 11 * NSEC_PER_SEC + 1, 0 },
		{ { START, START, UINT64_MAX }, 600 * NSEC_PER_SEC, START + 600 * NSEC_PER_SEC },
		{ { START, START, UINT64_MAX }, 600 * NSEC_PER_SEC + 1, 0 },
		{ { START, START, 0 }, 600 * NSEC_PER_SEC, START + 600 * NSEC_PER_SEC },
		{ { START, START, 0 }, 600 * NSEC_PER_SEC + 1, 0 },
		{ { UINT64_MAX - 5, 0, 0 }, 600 * NSEC_PER_SEC, UINT64_MAX },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t at = 0;

		assert_int_equal(query_within_time(&cases[i].p, cases[i].offset_ns, &at), cases[i].want_ns != 0);
		assert_int_equal(at, cases[i].want_ns);
	}
}

static void meets_what_it_may_have_samples_in(void **state)
{
	static const struct query_within w = { START, START + NSEC_PER_SEC };
	static const struct {
		struct query_moment p;
		bool want;
	} cases[] = {
		{ { START, 0, 0 }, true },
		{ { START + NSEC_PER_SEC - 1, 0, 0 }, true },
		{ { START + NSEC_PER_SEC, 0, 0 }, false },
		{ { START - 1, 0, 0 }, false },
		{ { START - NSEC_PER_SEC, 0, NSEC_PER_SEC }, false },
		{ { START - NSEC_PER_SEC, 0, NSEC_PER_SEC + 1 }, true },
		{ { START - 10 * NSEC_PER_SEC, 0, UINT64_MAX }, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(query_within_meets(&w, &cases[i].p), cases[i].want);
}

static void selects_what_began_before(void **state)
{
	static const struct query_within first = { 0, 1 }, last = { INT64_MAX - 1, INT64_MAX };
	struct store_selector sel = query_within_select(&first, (struct store_selector){ .from_ns = 7, .to_ns = 7 });

	(void)state;
	assert_int_equal(sel.from_ns, 0);
	assert_true(sel.to_ns >= 1);
	assert_int_equal(query_within_since(&first), 0);
	sel = query_within_select(&last, sel);
	assert_true(sel.from_ns < last.from_ns - 599 * NSEC_PER_SEC && sel.to_ns >= last.to_ns);
}

static void keeps_what_lies_in_it(void **state)
{
	const struct query_within w = { START + 40 * MS, START + 80 * MS };
	const struct query_moment p = { START, START, NSEC_PER_SEC };
	uint64_t untimed, want_untimed = 0;
	size_t want = 0;

	(void)state;
	for (uint64_t seed = 1; seed < 30; seed++) {
		struct model m;

		assert_int_equal(random_model(seed, &m), 0);
		want = want_untimed = 0;
		for (size_t i = 0; i < m.samples_count; i++) {
			int64_t value = model_values(&m, &m.samples[i])[1];

			m.samples[i].time_offset_ns = i % 4 == 3 ? MODEL_NO_TIME : (i % 7) * 20 * MS;
			if (i % 4 == 3)
				want_untimed += value > 0 ? (uint64_t)value : 0;
			else
				want += i % 7 == 2 || i % 7 == 3;
		}
		query_within_pick(&w, &p, 1, &m, &untimed);
		assert_int_equal(m.samples_count, want);
		assert_int_equal(untimed, want_untimed);
		for (size_t i = 0; i < m.samples_count; i++)
			assert_true(m.samples[i].time_offset_ns == 40 * MS || m.samples[i].time_offset_ns == 60 * MS);
		model_release(&m);
	}
}

static void profiles_without_values(void **state)
{
	const struct query_within w = { START, START + NSEC_PER_SEC };
	const struct query_moment p = { START, START, NSEC_PER_SEC };
	struct model_sample row = { .time_offset_ns = MODEL_NO_TIME };
	uint64_t untimed = 1;
	struct model m;

	(void)state;
	assert_int_equal(model_init(&m, KIB(4)), 0);
	assert_int_equal(model_add_sample(&m, &row, NULL), 0);
	row.time_offset_ns = 0;
	assert_int_equal(model_add_sample(&m, &row, NULL), 0);
	query_within_pick(&w, &p, 0, &m, &untimed);
	assert_int_equal(m.samples_count, 1);
	assert_int_equal(untimed, 0);
	model_release(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads),
		cmocka_unit_test(no_time_is_all_times),
		cmocka_unit_test(places_samples),
		cmocka_unit_test(meets_what_it_may_have_samples_in),
		cmocka_unit_test(selects_what_began_before),
		cmocka_unit_test(keeps_what_lies_in_it),
		cmocka_unit_test(profiles_without_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
