/* SPDX-License-Identifier: Apache-2.0 */
/* Processes and threads of a request: what is read, what is refused, whose samples stay. */
#include "support.h"

#include "model_samples.h"
#include "query/whose.h"

static int parse(const char *text, struct http_query *query, struct query_whose *w)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
	int r;

	assert_int_equal(http_query_parse(str_of(text), query), 0);
	r = query_whose_read(query, w, &why);
	assert_int_equal(r<0, why.len> 0);
	return r;
}

static void reads(void **state)
{
	static const struct store_owner owner = {
		.pid = 12, .tid = 34, .start_ns = 56, .comm = STR("w\xff"), .thread = STR("pool-1")
	};
	static const struct {
		const char *text;
		int want; /* whether it fits; -EBADMSG */
	} cases[] = {
		{ "", 1 },
		{ "process=", 1 },
		{ "process=12", 1 },
		{ "process=12-56", 1 },
		{ "process=12-57", 0 },
		{ "process=12-0", 0 },
		{ "process=13", 0 },
		{ "thread=34", 1 },
		{ "thread=0", 0 },
		{ "thread-name=pool-1", 1 },
		{ "thread-name=pool-", 0 },
		{ "program=w%ff", 1 },
		{ "program=w%ef%bf%bd", 1 },
		{ "program=w", 0 },
		{ "program=w%ef%bf%bdx", 0 },
		{ "process=12&thread=34&thread-name=pool-1", 1 },
		{ "process=12&thread=35", 0 },
		{ "process=x", -EBADMSG },
		{ "process=-12", -EBADMSG },
		{ "process=12-", -EBADMSG },
		{ "process=12-1-1", -EBADMSG },
		{ "process=4294967296", -EBADMSG },
		{ "process=1-18446744073709551616", -EBADMSG },
		{ "thread=1x", -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct http_query query;
		struct query_whose w = { 0 };
		int r = parse(cases[i].text, &query, &w);

		print_message("  %s\n", cases[i].text);
		assert_int_equal(r < 0 ? r : query_whose_fits(&w, &owner), cases[i].want);
		if (i < 2)
			assert_true(query_whose_all(&w));
		http_query_release(&query);
	}
}

static void writes_what_it_reads(void **state)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(1));
	struct http_query query;
	struct query_whose w;

	(void)state;
	buf_adds(&text, STR("process="));
	query_whose_process(&text, UINT32_MAX, UINT64_MAX);
	assert_int_equal(parse(buf_cstr(&text), &query, &w), 0);
	assert_true(w.has_pid && w.has_start && w.pid == UINT32_MAX && w.start_ns == UINT64_MAX);
	http_query_release(&query);
}

/* Against a look at each sample. */
static void picks(void **state)
{
	static const char *const texts[] = { "process=1", "process=2-0", "thread=1", "program=x",
					     "process=1&thread=2" };
	size_t found = 0;

	(void)state;
	for (uint64_t seed = 1; seed < 40; seed++) {
		for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
			struct http_query query;
			struct query_whose w;
			struct model m;
			int64_t want = 0, got = 0;

			assert_int_equal(random_model(seed, &m), 0);
			assert_int_equal(parse(texts[i], &query, &w), 0);
			for (size_t s = 0; s < m.samples_count; s++) {
				const struct model_process *p = &m.processes[m.samples[s].process];
				const struct model_thread *t = &m.threads[m.samples[s].thread];
				bool fits = (!w.has_pid || p->pid == w.pid) && (!w.has_start || !p->start_ns) &&
					    (!w.has_tid || t->tid == w.tid) &&
					    (!w.program.len || str_eq(model_string(&m, p->comm), w.program));

				want += fits ? 1000003 + model_values(&m, &m.samples[s])[0] : 0;
			}
			assert_int_equal(query_whose_pick(&w, &m), 0);
			for (size_t s = 0; s < m.samples_count; s++)
				got += 1000003 + model_values(&m, &m.samples[s])[0];
			assert_int_equal(got, want);
			found += m.samples_count;
			http_query_release(&query);
			model_release(&m);
		}
	}
	assert_true(found > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads),
		cmocka_unit_test(writes_what_it_reads),
		cmocka_unit_test(picks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
