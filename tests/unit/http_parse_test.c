/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "net/http_parse.h"

static struct str guarded(const char *text)
{
	struct cur c = guard_page(text, strlen(text));

	return str_n((const char *)c.pos, strlen(text));
}

static void decodes(void **state)
{
	static const struct {
		const char *in;
		bool plus;
		int want;
		const char *out;
	} cases[] = {
		{ "", false, 0, "" },
		{ "a%20b", false, 0, "a b" },
		{ "a+b", true, 0, "a b" },
		{ "a+b", false, 0, "a+b" },
		{ "%2B%2b", true, 0, "++" },
		{ "%", false, -EBADMSG, NULL },
		{ "%4", false, -EBADMSG, NULL },
		{ "%zz", false, -EBADMSG, NULL },
		{ "a%", false, -EBADMSG, NULL },
		{ "%+1", false, -EBADMSG, NULL },
		{ "%252B", false, 0, "%2B" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(64);

		print_message("  %s\n", cases[i].in);
		assert_int_equal(http_decode(guarded(cases[i].in), cases[i].plus, &out), cases[i].want);
		if (cases[i].want == 0)
			assert_true(str_eq(buf_str(&out), str_of(cases[i].out)));
	}
}

static void reads_queries(void **state)
{
	struct http_query q;
	scoped(buf_release) struct buf many = BUF_INIT(KIB(4));

	(void)state;
	assert_int_equal(http_query_parse(guarded("a=1&b=x%20y&a=2&&c&=v&d=p%3Dq%26r"), &q), 0);
	assert_true(str_eq(http_query_get(&q, STR("a")), STR("1"))); /* the first counts */
	assert_true(str_eq(http_query_get(&q, STR("b")), STR("x y")));
	assert_true(http_query_get(&q, STR("c")).ptr && !http_query_get(&q, STR("c")).len);
	assert_true(str_eq(http_query_get(&q, STR("d")), STR("p=q&r")));
	assert_null(http_query_get(&q, STR("e")).ptr);
	http_query_release(&q);
	assert_int_equal(http_query_parse(guarded("a=%zz"), &q), -EBADMSG);
	for (int i = 0; i <= HTTP_QUERY_MAX; i++)
		buf_addf(&many, "%d=x&", i);
	assert_int_equal(http_query_parse(buf_str(&many), &q), -E2BIG);
	assert_int_equal(http_query_parse(STR(""), &q), 0);
	http_query_release(&q);
}

static void cleans_paths(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = { { "/", "/" },
		      { "/a/b", "/a/b" },
		      { "/a/b/", "/a/b/" },
		      { "//a///b", "/a/b" },
		      { "/a/./b/.", "/a/b/" },
		      { "/a/../b", "/b" },
		      { "/../../b", "/b" },
		      { "/a/..", "/" },
		      { "/a/b/..", "/a/" },
		      { "/a%2F..%2Fb", "/a%2F..%2Fb" },
		      { "", NULL },
		      { "a", NULL } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(64);
		int r = http_path_clean(guarded(cases[i].in), &out);

		print_message("  %s\n", cases[i].in);
		assert_int_equal(r, cases[i].out ? 0 : -EBADMSG);
		if (cases[i].out)
			assert_true(str_eq(buf_str(&out), str_of(cases[i].out)));
	}
}

static void reads_credentials(void **state)
{
	static const struct {
		const char *in;
		int want;
		const char *secret;
	} cases[] = {
		{ "Bearer abc", 0, "abc" },
		{ "bearer   abc ", 0, "abc" },
		{ "Basic YXBpOnNlY3JldA==", 0, "secret" },
		{ "Basic YXBpOnNlY3JldA", 0, "secret" },
		{ "Basic YTpiOmM=", 0, "b:c" }, /* a password may have colons */
		{ "Basic Og==", 0, "" },
		{ "Basic YXBp", -EBADMSG, NULL }, /* no colon */
		{ "Basic ???", -EBADMSG, NULL },
		{ "Basic YXBpO", -EBADMSG, NULL },
		{ "Basic YXBpOn==", -EBADMSG, NULL }, /* bits that stand for nothing */
		{ "Digest x", -ENOTSUP, NULL },
		{ "", -ENOTSUP, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(64);

		print_message("  %s\n", cases[i].in);
		assert_int_equal(http_credentials(guarded(cases[i].in), &out), cases[i].want);
		if (cases[i].want == 0)
			assert_true(str_eq(buf_str(&out), str_of(cases[i].secret)));
	}
}

static void splits_hosts(void **state)
{
	static const struct {
		const char *in;
		int want;
		const char *host;
		unsigned int port;
		bool loopback;
	} cases[] = {
		{ "localhost:80", 0, "localhost", 80, true },
		{ "LOCALHOST", 0, "LOCALHOST", 0, true },
		{ "127.1.2.3:1", 0, "127.1.2.3", 1, true },
		{ "[::1]:5", 0, "::1", 5, true },
		{ "[::1]", 0, "::1", 0, true },
		{ "[::ffff:127.0.0.1]:5", 0, "::ffff:127.0.0.1", 5, true },
		{ "[::FFFF:127.9.9.9]", 0, "::FFFF:127.9.9.9", 0, true },
		{ "[::ffff:192.0.2.1]", 0, "::ffff:192.0.2.1", 0, false },
		{ ":10100", 0, "", 10100, false },
		{ "127.0.0.1.x", 0, "127.0.0.1.x", 0, false },
		{ "127.0.0", 0, "127.0.0", 0, false },
		{ "127.0.0.256", 0, "127.0.0.256", 0, false },
		{ "0.0.0.0:1", 0, "0.0.0.0", 1, false },
		{ "a:b", -EBADMSG, NULL, 0, false },
		{ "::1", -EBADMSG, NULL, 0, false },
		{ "a:65536", -EBADMSG, NULL, 0, false },
		{ "[::1", -EBADMSG, NULL, 0, false },
		{ "[::1]x", -EBADMSG, NULL, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct str host;
		uint16_t port;
		int r = http_host_split(guarded(cases[i].in), &host, &port);

		print_message("  %s\n", cases[i].in);
		assert_int_equal(r, cases[i].want);
		if (r < 0)
			continue;
		assert_true(str_eq(host, str_of(cases[i].host)));
		assert_int_equal(port, cases[i].port);
		assert_int_equal(http_host_is_loopback(host), cases[i].loopback);
	}
}

static void finds_networks(void **state)
{
	static const struct {
		const char *in, *same, *other;
		size_t len;
	} cases[] = {
		{ "192.0.2.1", "192.0.2.1", "192.0.2.2", 4 },
		{ "2001:db8:1:2::1", "2001:db8:1:2:ffff:1:2:3", "2001:db8:1:3::1", 8 },
		{ "fe80::1%eth0", "fe80::2", "fe80:0:0:1::1", 8 },
		{ "", NULL, NULL, 0 },
		{ "somewhere", NULL, NULL, 0 },
		{ "2001:db8:1:2:3:4:5:6:7:8:9:a:b:c:d:e:f:0:1:2:3", NULL, NULL, 0 },
	};
	uint8_t a[16], b[16];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s\n", cases[i].in);
		assert_int_equal(http_network_of(guarded(cases[i].in), a), cases[i].len);
		if (!cases[i].len)
			continue;
		assert_int_equal(http_network_of(guarded(cases[i].same), b), cases[i].len);
		assert_memory_equal(a, b, cases[i].len);
		assert_int_equal(http_network_of(guarded(cases[i].other), b), cases[i].len);
		assert_memory_not_equal(a, b, cases[i].len);
	}
}

#define PART "--b\r\nContent-Disposition: form-data; name=\"profile\"; filename=\"p\"\r\nContent-Type: x/y\r\n\r\n"

static void reads_multipart(void **state)
{
	struct str rest =
		guarded(PART "BYTES\r\nMORE\r\n--b\r\ncontent-disposition: form-data; name=c\r\n\r\n\r\n--b--\r\n");
	struct http_part part;

	(void)state;
	assert_int_equal(http_multipart_next(&rest, STR("b"), &part), 1);
	assert_true(str_eq(part.name, STR("profile")) && str_eq(part.filename, STR("p")));
	assert_true(str_eq(part.content_type, STR("x/y")) && str_eq(part.body, STR("BYTES\r\nMORE")));
	assert_int_equal(http_multipart_next(&rest, STR("b"), &part), 1);
	assert_true(str_eq(part.name, STR("c")) && !part.body.len);
	assert_int_equal(http_multipart_next(&rest, STR("b"), &part), 0);
}

static void rejects_multipart(void **state)
{
	static const char *const cases[] = { "",
					     "--b",
					     "--b\r\n",
					     "--c--\r\n",
					     PART,
					     PART "x",
					     PART "x\r\n--c--",
					     "--b\r\nname: x",
					     "preamble\r\n--b--\r\n" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct str rest = guarded(cases[i]);
		struct http_part part = { .name = STR("untouched") };

		print_message("  %s\n", cases[i]);
		assert_int_equal(http_multipart_next(&rest, STR("b"), &part), -EBADMSG);
		assert_true(str_eq(part.name, STR("untouched")));
	}
}

static void reads_values(void **state)
{
	struct str out;

	(void)state;
	assert_int_equal(http_value_param(guarded("multipart/form-data; Boundary=\"x y\"; z=1"), STR("boundary"), &out),
			 0);
	assert_true(str_eq(out, STR("x y")));
	assert_int_equal(http_value_param(guarded("text/plain"), STR("boundary"), &out), -ENOENT);
	assert_true(http_value_is(guarded("Application/JSON ; charset=x"), STR("application/json")));
	assert_false(http_value_is(guarded("application/jsonx"), STR("application/json")));
}

static void reads_what_is_accepted(void **state)
{
	static const struct {
		const char *header;
		bool takes;
	} cases[] = {
		{ "", false },
		{ "gzip", true },
		{ "deflate, GZIP , br", true },
		{ "gzip;q=0.5", true },
		{ "gzip;q=0.001", true },
		{ "gzip ; Q=1.000", true },
		{ "gzip;q=0", false },
		{ "gzip; q=0", false },
		{ "gzip ;q=0.000, deflate", false },
		{ "deflate;q=0, gzip", true },
		{ "gzip;q=", false },
		{ "gzip;q=-1", false },
		{ "not-gzip", false },
		{ "gzipped, br;x=gzip", false },
		{ "*", true },
		{ "*;q=0", false },
		{ "*, gzip;q=0", false },
		{ "gzip, *;q=0", true },
		{ "identity;q=1, *; q=0", false },
		{ ",;,", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s\n", cases[i].header);
		assert_int_equal(http_accepts(guarded(cases[i].header), STR("gzip")), cases[i].takes);
	}
}

static int one_query(void *ctx)
{
	struct http_query q;
	int r = http_query_parse(STR("a=1&b=%20"), &q);

	(void)ctx;
	if (r == 0)
		http_query_release(&q);
	return r;
}

static void survives_no_memory(void **state)
{
	(void)state;
	for_each_failing_allocation(one_query, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decodes),
		cmocka_unit_test(reads_queries),
		cmocka_unit_test(cleans_paths),
		cmocka_unit_test(reads_credentials),
		cmocka_unit_test(splits_hosts),
		cmocka_unit_test(finds_networks),
		cmocka_unit_test(reads_multipart),
		cmocka_unit_test(rejects_multipart),
		cmocka_unit_test(reads_values),
		cmocka_unit_test(reads_what_is_accepted),
		cmocka_unit_test(survives_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
