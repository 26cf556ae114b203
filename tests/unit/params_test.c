/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "query/flamebearer.h"
#include "query/range.h"
#include "query/render_query.h"

#define NOW (UINT64_C(1709208005) * NSEC_PER_SEC) /* 2024-02-29T12:00:05Z */

static struct str guarded(const char *text)
{
	struct cur c = guard_page(text, strlen(text));

	return str_n((const char *)c.pos, strlen(text));
}

static void reads_times(void **state)
{
	static const struct {
		const char *in;
		int want;
		uint64_t ns;
	} cases[] = {
		{ "2024-02-29T12:00:05", 0, NOW },
		{ "2024-02-29T12:00:05Z", 0, NOW },
		{ "2024-02-29T12:00:05.25", 0, NOW + 250000000 },
		{ "2024-02-29T12:00:05.1234567891", 0, NOW + 123456789 },
		{ "2024-02-29T13:30:05+01:30", 0, NOW },
		{ "2024-02-29T13:30:05 01:30", 0, NOW },
		{ "2024-02-29T10:00:05-02:00", 0, NOW },
		{ "1970-01-01T00:00:00", 0, 0 },
		{ "1960-01-01T00:00:00", 0, 0 },
		{ "9999-12-31T23:59:59", 0, INT64_MAX },
		{ "1709208005", 0, NOW },
		{ "1709208005123", 0, NOW + 123000000 },
		{ "1709208005123456", 0, NOW + 123456000 },
		{ "1709208005123456789", 0, NOW + 123456789 },
		{ "0", 0, 0 },
		{ "now", 0, NOW },
		{ "now-1h", 0, NOW - 3600 * NSEC_PER_SEC },
		{ "-15m", 0, NOW - 900 * NSEC_PER_SEC },
		{ "now+10s", 0, NOW + 10 * NSEC_PER_SEC },
		{ "-9999999999s", 0, 0 },
		{ "", -EBADMSG, 0 },
		{ "0001-01-01T00:00:00", -EBADMSG, 0 }, /* stands for no time */
		{ "2024-02-30T00:00:00", -EBADMSG, 0 },
		{ "2024-13-01T00:00:00", -EBADMSG, 0 },
		{ "2024-02-29T24:00:00", -EBADMSG, 0 },
		{ "2024-02-29 12:00:05", -EBADMSG, 0 },
		{ "2024-02-29", -EBADMSG, 0 },
		{ "2024-02-29T12:00:05.", -EBADMSG, 0 },
		{ "2024-02-29T12:00:05Zx", -EBADMSG, 0 },
		{ "2024-02-29T12:00:05+0100", -EBADMSG, 0 },
		{ "+5m", -EBADMSG, 0 },
		{ "nowish", -EBADMSG, 0 },
		{ "12x", -EBADMSG, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t ns = 7;

		print_message("  %s\n", cases[i].in);
		assert_int_equal(query_time(guarded(cases[i].in), NOW, &ns), cases[i].want);
		assert_int_equal(ns, cases[i].want ? 7 : cases[i].ns);
	}
}

static void assert_labels(const struct query_labels *l, const char *const *pairs)
{
	size_t count = 0;

	for (; pairs[2 * count]; count++) {
		assert_true(count < l->count);
		assert_true(str_eq(l->items[count].key, str_of(pairs[2 * count])));
		assert_true(str_eq(l->items[count].value, str_of(pairs[2 * count + 1])));
	}
	assert_int_equal(l->count, count);
}

static void reads_labels(void **state)
{
	static const struct {
		const char *in;
		const char *const pairs[9];
	} cases[] = {
		{ "", { NULL } },
		{ ",a=1", { "a", "1" } },
		{ "b=2,a=1", { "a", "1", "b", "2" } },
		{ "a=b=c", { "a", "b=c" } },
		{ "only", { "only", "" } },
		{ "=x,a=", { "a", "" } },
		{ " a = b ", { "a", "b" } },
		{ "team=a%2Cb", { "team", "a,b" } },
		{ "k%3D=v+w", { "k=", "v w" } },
		{ "a=2,a=1", { "a", "2", "a", "1" } },
	};
	struct query_labels l;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s\n", cases[i].in);
		assert_int_equal(query_labels_parse(guarded(cases[i].in), &l), 0);
		assert_labels(&l, cases[i].pairs);
		query_labels_release(&l);
	}
	assert_int_equal(query_labels_parse(guarded("a=%4"), &l), -EBADMSG);
}

static void limits_labels(void **state)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(8));
	struct query_labels l;

	(void)state;
	for (int i = 0; i < STORE_LABELS_MAX; i++)
		buf_addf(&text, "k%d=v,", i);
	assert_int_equal(query_labels_parse(buf_str(&text), &l), 0);
	assert_int_equal(l.count, STORE_LABELS_MAX);
	query_labels_release(&l);
	buf_adds(&text, STR("one=more"));
	assert_int_equal(query_labels_parse(buf_str(&text), &l), -E2BIG);
	buf_clear(&text);
	for (int i = 0; i <= STORE_LABEL_KEY_MAX; i++)
		buf_addc(&text, 'k');
	assert_int_equal(query_labels_parse(buf_str(&text), &l), -E2BIG);
}

static void reads_names(void **state)
{
	static const char *const pairs[] = { "a", "1", "region", "eu", NULL, NULL };
	struct query_labels l;
	struct str name;

	(void)state;
	assert_int_equal(query_name_parse(guarded("my.app.cpu{region=eu, a = 1}"), &name, &l), 0);
	assert_true(str_eq(name, STR("my.app.cpu")));
	assert_labels(&l, pairs);
	query_labels_release(&l);
	assert_int_equal(query_name_parse(guarded("plain"), &name, &l), 0);
	assert_true(str_eq(name, STR("plain")) && !l.count);
	query_labels_release(&l);
}

static void reads_render_queries(void **state)
{
	static const struct {
		const char *in;
		int want;
		const char *service, *type, *column;
	} cases[] = {
		{ "process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name=\"a\"}", 0, "a", "cpu", "cpu" },
		{ "memory:inuse_space:bytes:space:bytes{}", 0, "", "heap", "inuse_space" },
		{ "my.app.alloc_space{}", 0, "my.app", "heap", "alloc_space" },
		{ "cpu{service_name=\"q\\\"x\"}", 0, "q\"x", "cpu", "" },
		{ "cpu", 0, "", "cpu", "" },
		{ "cpu{service_name=~\"a|b\", a!=\"b\"}", 0, "", "cpu", "" },
		{ "cpu{a=~\"(\"}", -EBADMSG, NULL, NULL, NULL },
		{ "cpu{a=\"b\"", -EBADMSG, NULL, NULL, NULL },
		{ "cpu{a=b}", -EBADMSG, NULL, NULL, NULL },
		{ "cpu{a=\"b\\", -EBADMSG, NULL, NULL, NULL },
		{ "cpu{a=\"b\"}x", -EBADMSG, NULL, NULL, NULL },
		{ "nobody{}", -EBADMSG, NULL, NULL, NULL },
		{ "", -EBADMSG, NULL, NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(query_render_release) struct query_render q = { 0 };
		scoped(buf_release) struct buf why = BUF_INIT(KIB(1));

		print_message("  %s\n", cases[i].in);
		assert_int_equal(query_render_parse(guarded(cases[i].in), &q, &why), cases[i].want);
		assert_int_equal(why.len > 0, cases[i].want < 0);
		if (cases[i].want)
			continue;
		assert_true(str_eq(q.service, str_of(cases[i].service)) && str_eq(q.type, str_of(cases[i].type)));
		assert_true(str_eq(q.sample, str_of(cases[i].column)));
	}
}

static int write_bearer(const char *folded, uint32_t nodes, struct buf *out)
{
	scoped(tree_release) struct tree tree = { 0 };
	scoped(flamebearer_release) struct flamebearer b = { 0 };
	struct json_out json = { .out = out };
	uint64_t line;
	int r = tree_from_folded(str_of(folded), NULL, &tree, &line);

	r = r ? r : flamebearer_make(&tree, NULL, nodes, &b);
	return r ? r : flamebearer_json(&b, &json);
}

#define FOLDED "a;b;c 3\na;b 2\na;d 4\ne 1\n"

static void writes_flamebearers(void **state)
{
	scoped(buf_release) struct buf out = BUF_INIT(KIB(64));

	(void)state;
	assert_int_equal(write_bearer(FOLDED, 0, &out), 0);
	assert_string_equal(buf_cstr(&out),
			    "{\"names\": [\"total\", \"a\", \"b\", \"c\", \"d\", \"e\", \"other\"], \"levels\": ["
			    "[0, 10, 0, 0], [0, 9, 0, 1, 0, 1, 1, 5], [0, 5, 2, 2, 0, 4, 4, 4], [0, 3, 3, 3]], "
			    "\"numTicks\": 10, \"maxSelf\": 4}");
	buf_clear(&out);
	assert_int_equal(write_bearer(FOLDED, 3, &out), 0); /* the root, a, b: what is cut is "other" */
	assert_non_null(strstr(buf_cstr(&out), "\"numTicks\": 10"));
	assert_non_null(strstr(buf_cstr(&out), "\"levels\": [[0, 10, 0, 0], [0, 9, 0, 1, 0, 1, 1, "));
}

static int bearer_of(void *ctx)
{
	scoped(buf_release) struct buf out = BUF_INIT(KIB(64));

	(void)ctx;
	return write_bearer(FOLDED, 3, &out);
}

static int labels_of(void *ctx)
{
	struct query_labels l;
	int r = query_labels_parse(STR("a=b,c=d"), &l);

	(void)ctx;
	if (r == 0)
		query_labels_release(&l);
	return r;
}

static int selector_of(void *ctx)
{
	scoped(http_query_release) struct http_query q = { 0 };
	scoped(query_range_release) struct query_range range = { 0 };
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
	int r = http_query_parse(STR("labels={a=~%22b%7Cc%22,d!%3D%22e%22}"), &q);

	(void)ctx;
	return r ? r : query_range_read(&q, &query_range_view, NOW, &range, &why);
}

/* Labels as a selector in braces choose among series; others are labels as ever. */
static void reads_selectors(void **state)
{
	static const struct {
		const char *in;
		bool meant;
		size_t labels;
	} cases[] = {
		{ "labels={host=~%22a%7Cb%22,zone!%3D%22eu%22}", true, 0 },
		{ "labels={host=%22b%22}", false, 0 },
		{ "labels={}", true, 0 },
		{ "labels=host%3Da", true, 1 },
	};
	static const struct store_label label = { STR("host"), STR("a") };
	static const struct store_series series = { STR("s"), STR("cpu"), &label, 1 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(http_query_release) struct http_query q = { 0 };
		scoped(query_range_release) struct query_range range = { 0 };
		scoped(buf_release) struct buf why = BUF_INIT(KIB(8));
		struct store_selector sel;

		print_message("  %s\n", cases[i].in);
		assert_int_equal(http_query_parse(guarded(cases[i].in), &q), 0);
		assert_int_equal(query_range_read(&q, &query_range_view, NOW, &range, &why), 0);
		sel = query_range_select(&range);
		assert_int_equal(sel.label_count, cases[i].labels);
		assert_int_equal(!sel.fits, cases[i].labels > 0);
		assert_int_equal(!sel.fits || sel.fits(sel.fits_ctx, &series), cases[i].meant);
	}
}

static void survives_no_memory(void **state)
{
	(void)state;
	for_each_failing_allocation(labels_of, NULL);
	for_each_failing_allocation(bearer_of, NULL);
	for_each_failing_allocation(selector_of, NULL);
}

/* One reader for all APIs: what they call things, what they take without them, in what words they refuse. */
static void reads_ranges(void **state)
{
	static const struct {
		const struct query_range_rules *rules;
		const char *in, *why; /* NULL: read */
		uint64_t from_ns, to_ns;
		const char *service, *type;
	} cases[] = {
		{ &query_range_profefe, "service=a&from=0&to=now&type= cpu ", NULL, 0, NOW, "a", "cpu" },
		{ &query_range_profefe, "service=a&from=0&to=now&type=nope", NULL, 0, NOW, "a", "nope" },
		{ &query_range_profefe, "from=0&to=now", "missing \"service\"", 0, 0, "", "" },
		{ &query_range_profefe, "service=a&to=now", "missing \"from\"", 0, 0, "", "" },
		{ &query_range_profefe, "service=a&from=x&to=now",
		  "bad \"from\" timestamp \"x\": time in unsupported format \"x\"", 0, 0, "", "" },
		{ &query_range_profefe, "service=a&from=now&to=0",
		  "CreatedAtMin after CreatedAtMax: 2024-02-29T12:00:05, 1970-01-01T00:00:00", 0, 0, "", "" },
		{ &query_range_view, "from=now&to=0",
		  "\"from\" is after \"to\": 2024-02-29T12:00:05, 1970-01-01T00:00:00", 0, 0, "", "" },
		{ &query_range_base, "base-from=now&base-to=0",
		  "\"from\" is after \"to\": 2024-02-29T12:00:05, 1970-01-01T00:00:00", 0, 0, "", "" },
		{ &query_range_pyroscope, "from=now&until=0",
		  "\"from\" is after \"until\": 2024-02-29T12:00:05, 1970-01-01T00:00:00", 0, 0, "", "" },
		{ &query_range_profefe, "service=a&from=0&to=now&limit=1e3",
		  "bad \"limit\" \"1e3\": not a number of profiles", 0, 0, "", "" },
		{ &query_range_pyroscope, "until=-1h&from=-2h&service=x", NULL, NOW - 7200 * NSEC_PER_SEC,
		  NOW - 3600 * NSEC_PER_SEC, "", "" },
		{ &query_range_view, "", NULL, NOW - 3600 * NSEC_PER_SEC, NOW, "", "cpu" },
		{ &query_range_view, "type=nope", "bad \"type\" \"nope\": unknown profile type", 0, 0, "", "" },
		{ &query_range_view, "labels={a=%22b%22,c!%3D%22d%22}", NULL, NOW - 3600 * NSEC_PER_SEC, NOW, "",
		  "cpu" },
		{ &query_range_view, "labels= {a=%22b%22", "bad selector: a brace is missing at \"\"", 0, 0, "", "" },
		{ &query_range_view, "labels={a=~%22(((%22}",
		  "bad selector: the regular expression \"(((\" is malformed, or of a kind that is not understood", 0,
		  0, "", "" },
		{ &query_range_base, "base-labels={a}", "bad selector: =, !=, =~ or !~ is missing at \"}\"", 0, 0, "",
		  "" },
		{ &query_range_profefe, "service=a&from=0&to=now&labels={a}", NULL, 0, NOW, "a",
		  "" }, /* an odd label */
		{ &query_range_base, "service=a&base-service=b&from=-2h&base-to=-1h", NULL, NOW - 7200 * NSEC_PER_SEC,
		  NOW - 3600 * NSEC_PER_SEC, "b", "cpu" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(http_query_release) struct http_query q = { 0 };
		scoped(query_range_release) struct query_range range = { 0 };
		scoped(buf_release) struct buf why = BUF_INIT(KIB(8));

		print_message("  %s\n", cases[i].in);
		assert_int_equal(http_query_parse(guarded(cases[i].in), &q), 0);
		assert_int_equal(query_range_read(&q, cases[i].rules, NOW, &range, &why), cases[i].why ? -EBADMSG : 0);
		assert_string_equal(buf_cstr(&why), cases[i].why ? cases[i].why : "");
		if (cases[i].why)
			continue;
		assert_true(range.from_ns == cases[i].from_ns && range.to_ns == cases[i].to_ns);
		assert_true(str_eq(range.service, str_of(cases[i].service)) &&
			    str_eq(range.type, str_of(cases[i].type)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_times),          cmocka_unit_test(reads_ranges),
		cmocka_unit_test(reads_selectors),      cmocka_unit_test(reads_labels),
		cmocka_unit_test(limits_labels),        cmocka_unit_test(reads_names),
		cmocka_unit_test(reads_render_queries), cmocka_unit_test(writes_flamebearers),
		cmocka_unit_test(survives_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
