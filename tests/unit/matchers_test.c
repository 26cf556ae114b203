/* SPDX-License-Identifier: Apache-2.0 */
/* Selectors: what is read, what is refused, which series and columns fit. */
#include "support.h"

#include "query/matchers.h"

static const struct store_label labels[] = { { STR("region"), STR("eu") }, { STR("k8s.pod/name"), STR("web-1") } };
static const struct store_series series = { STR("shop"), STR("cpu"), labels, ARRAY_SIZE(labels) };

static int parse(const char *text, struct matchers *m)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
	int r = matchers_parse(str_of(text), m, &why);

	assert_int_equal(r<0, why.len> 0);
	return r;
}

static void fits_series(void **state)
{
	static const struct {
		const char *text;
		bool want;
	} cases[] = {
		{ "", true },
		{ "{}", true },
		{ "{ region = \"eu\" , }", true },
		{ "region=\"eu\"", true },
		{ "{region=\"us\"}", false },
		{ "{region!=\"us\"}", true },
		{ "{region=~\"e.|us\"}", true },
		{ "{region=~\"e\"}", false },
		{ "{region!~\"e\"}", true },
		{ "{region!~\"eu|us\"}", false },
		{ "{service_name=\"shop\",__name__=\"process_cpu\"}", true },
		{ "{service_name=\"sho\"}", false },
		{ "{__name__=\"memory\"}", false },
		{ "{zone=\"\"}", true },
		{ "{zone!=\"\"}", false },
		{ "{zone=~\"a*\"}", true },
		{ "{k8s_pod_name=~\"web-\\\\d\"}", true },
		{ "{\"k8s.pod/name\"='web-1'}", true },
		{ "{region=`e\\u`}", false },
		{ "{region=\"\\u0065\\x75\"}", true },
		{ "{__type__=\"none\"}", true }, /* a column's */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(matchers_release) struct matchers m = { 0 };

		print_message("  %s\n", cases[i].text);
		assert_int_equal(parse(cases[i].text, &m), 0);
		assert_int_equal(matchers_fit(&m, &series), cases[i].want);
	}
}

/* Names that are those of labels and nothing else. A label may have several values. */
static void fits_literally(void **state)
{
	static const struct store_label own[] = { { STR("host"), STR("a") },
						  { STR("host"), STR("b") },
						  { STR("k8s.pod/name"), STR("web-1") },
						  { STR("service_name"), STR("own") },
						  { STR("__type__"), STR("t") } };
	static const struct store_series one = { STR("shop"), STR("cpu"), own, ARRAY_SIZE(own) };
	static const struct {
		const char *text;
		bool want;
	} cases[] = {
		{ "{host=\"a\"}", true },
		{ "{host=\"b\"}", true },
		{ "{host=\"a\",host=\"b\"}", true },
		{ "{host=\"c\"}", false },
		{ "{host!=\"a\"}", false },
		{ "{host!=\"b\"}", false },
		{ "{host!=\"c\"}", true },
		{ "{host=~\"b|c\"}", true },
		{ "{host=~\"c|d\"}", false },
		{ "{host!~\"b|c\"}", false },
		{ "{host!~\"c|d\"}", true },
		{ "{host=\"\"}", false },
		{ "{zone=\"\"}", true },
		{ "{zone!=\"\"}", false },
		{ "{zone!=\"a\"}", true },
		{ "{zone=~\"|a\"}", true },
		{ "{service_name=\"own\"}", true },
		{ "{service_name=\"shop\"}", false },
		{ "{__name__=\"process_cpu\"}", false },
		{ "{__type__!=\"t\"}", false },
		{ "{k8s_pod_name=\"web-1\"}", false },
		{ "{\"k8s.pod/name\"=~\"web-\\\\d\"}", true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(matchers_release) struct matchers m = { .is_literal = true };

		print_message("  %s\n", cases[i].text);
		assert_int_equal(parse(cases[i].text, &m), 0);
		assert_int_equal(matchers_fit(&m, &one), cases[i].want);
	}
}

static void refuses(void **state)
{
	static const char *const texts[] = {
		"{",
		"}",
		"{a}",
		"{a=}",
		"{a=b}",
		"{a=\"b\"",
		"{a=\"b}",
		"{a=\"b\"}c",
		"{=\"b\"}",
		"{a==\"b\"}",
		"{a~\"b\"}",
		"{a=\"\\d\"}",
		"{a=\"\\x4\"}",
		"{a=\"b\" c=\"d\"}",
		"{a=~\"(\"}",
		"{a=\"b\\",
		"{1=\"b\"}",
		"{a=~\"((a{99}){99}){99}\"}",
	};
	struct buf many = BUF_INIT(KIB(4));

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		scoped(matchers_release) struct matchers m = { 0 };

		print_message("  %s\n", texts[i]);
		assert_true(parse(texts[i], &m) < 0);
	}
	for (int i = 0; i <= MATCHERS_MAX; i++)
		buf_adds(&many, STR("a=\"b\","));
	for (int i = 0; i < 2; i++) { /* the second time there is one fewer */
		scoped(matchers_release) struct matchers m = { 0 };

		assert_int_equal(parse(buf_cstr(&many), &m), i ? 0 : -E2BIG);
		many.len -= strlen("a=\"b\",");
	}
	buf_release(&many);
}

static void knows_columns(void **state)
{
	const struct query_column column = { STR("memory"), STR("inuse_space"), STR("bytes"), STR("space"),
					     STR("bytes") };
	static const struct {
		const char *text;
		bool want;
	} cases[] = {
		{ "{region=\"x\"}", true }, /* a series' */
		{ "{__profile_type__=\"memory:inuse_space:bytes:space:bytes\"}", true },
		{ "{__profile_type__=\"memory:inuse_space:bytes::\"}", true },
		{ "{__profile_type__=\"memory:inuse_space:count:space:bytes\"}", false },
		{ "{__profile_type__!=\"memory:inuse_space:bytes:space:bytes\"}", false },
		{ "{__profile_type__=~\"memory:.*\"}", true },
		{ "{__type__=~\"inuse_.*\",__unit__=\"bytes\"}", true },
		{ "{__period_type__=\"cpu\"}", false },
		{ "{__period_unit__!=\"bytes\"}", false },
	};
	scoped(matchers_release) struct matchers named = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(matchers_release) struct matchers m = { 0 };

		print_message("  %s\n", cases[i].text);
		assert_int_equal(parse(cases[i].text, &m), 0);
		assert_int_equal(matchers_fit_column(&m, &column), cases[i].want);
		assert_int_equal(matchers_have_columns(&m), i > 0);
	}
	assert_int_equal(parse("{service_name=\"a\",__profile_type__=\"process_cpu:cpu:ns:cpu:ns\"}", &named), 0);
	assert_true(str_eq(matchers_service(&named), STR("a")) && str_eq(matchers_type(&named), STR("cpu")));
}

/* A budget of work: beyond it nothing fits, which the caller tells. */
static void ends_what_takes_long(void **state)
{
	static char text[2048];
	const struct store_label label = { STR("a"), str_n(text, sizeof(text)) };
	const struct store_series one = { STR("s"), STR("cpu"), &label, 1 };

	(void)state;
	memset(text, 'a', sizeof(text));
	for (int literal = 0; literal < 2; literal++) {
		bool told = false;
		scoped(matchers_release) struct matchers m = { .is_literal = literal, .told = &told };
		size_t asked = 0;

		assert_int_equal(parse("{a!~\"(a?){900}b\"}", &m), 0);
		while (matchers_fit(&m, &one)) {
			assert_true(++asked < 100000 && !told);
			m.steps += UINT64_C(1) << 27;
		}
		assert_true(m.exhausted && told);
	}
}

static int parse_once(void *ctx)
{
	scoped(matchers_release) struct matchers m = { 0 };
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
	int r = matchers_parse(STR("{region=~\"e[a-z]|x\", zone!=\"b\"}"), &m, &why);

	(void)ctx;
	if (r == 0)
		assert_true(matchers_fit(&m, &series));
	return r;
}

static void survives_allocation_failure(void **state)
{
	(void)state;
	for_each_failing_allocation(parse_once, NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(fits_series),
		cmocka_unit_test(fits_literally),
		cmocka_unit_test(refuses),
		cmocka_unit_test(knows_columns),
		cmocka_unit_test(ends_what_takes_long),
		cmocka_unit_test(survives_allocation_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
