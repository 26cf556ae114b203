/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <netinet/in.h>
#include <unistd.h>

#include "base/clock.h"
#include "http_script.h"
#include "net/envelope.h"
#include "net/escape.h"
#include "net/http_client.h"
#include "net/retry_after.h"

#define NOW_NS (UINT64_C(1700000000) * NSEC_PER_SEC) /* Tue, 14 Nov 2023 22:13:20 GMT */

static void retry_after(void **state)
{
	static const struct {
		const char *name, *text;
		int want;
		uint64_t seconds;
	} cases[] = {
		{ "seconds", "120", 0, 120 },
		{ "blanks around", " 3 ", 0, 3 },
		{ "now", "0", 0, 0 },
		{ "more than fits", "99999999999999999999999", 0, 1000000000 },
		{ "a date", "Tue, 14 Nov 2023 22:15:20 GMT", 0, 120 },
		{ "a date of RFC 850", "Tuesday, 14-Nov-23 22:15:20 GMT", 0, 120 },
		{ "a past date", "Tue, 14 Nov 2022 22:15:20 GMT", 0, 0 },
		{ "empty", "", -EBADMSG, 0 },
		{ "a sign", "-1", -EBADMSG, 0 },
		{ "words", "soon", -EBADMSG, 0 },
		{ "a long tail", "1                                                                      x", -EBADMSG,
		  0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t got = 7;

		print_message("  %s\n", cases[i].name);
		assert_int_equal(retry_after_parse(str_of(cases[i].text), NOW_NS, &got), cases[i].want);
		assert_int_equal(got, cases[i].want ? 7 : cases[i].seconds * NSEC_PER_SEC);
	}
}

static void envelopes(void **state)
{
	static const struct {
		const char *text;
		int want;
		uint32_t code;
		const char *error, *id;
	} cases[] = {
		{ "{\"code\":200,\"body\":{\"id\":\"abc\"}}\n", 0, 200, "", "abc" },
		{ "{\"code\":400,\"error\":\"a \\u003c b\\n\"}", 0, 400, "a < b?", "" },
		{ "{\"code\":200,\"body\":[\"a\"]}", 0, 200, "", "" },
		{ "{\"code\":\"200\"}", 0, 0, "", "" },
		{ "{}", 0, 0, "", "" },
		{ "[]", -EBADMSG, 0, "", "" },
		{ "", -EBADMSG, 0, "", "" },
		{ "<html>", -EBADMSG, 0, "", "" },
		{ "{\"code\":200} x", -EBADMSG, 0, "", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct envelope got = { .code = 7 };

		print_message("  %s\n", cases[i].text);
		assert_int_equal(envelope_parse(str_of(cases[i].text), &got), cases[i].want);
		if (cases[i].want) {
			assert_int_equal(got.code, 7);
			continue;
		}
		assert_int_equal(got.code, cases[i].code);
		assert_string_equal(got.error, cases[i].error);
		assert_string_equal(got.id, cases[i].id);
	}
}

static void escapes(void **state)
{
	scoped(buf_release) struct buf out = BUF_INIT(KIB(1));

	(void)state;
	escape_query(&out, STR("a-b._~0Z/ +,=%&\xc3\xa9\n"));
	assert_string_equal(buf_cstr(&out), "a-b._~0Z%2F%20%2B%2C%3D%25%26%C3%A9%0A");
}

static void answers_are_bounded_and_judged(void **state)
{
	static const struct {
		const char *name, *answer;
		int want;
		uint32_t status;
		const char *body;
	} cases[] = {
		{ "whole", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 0, 200, "ok" },
		{ "up to the end", "HTTP/1.1 404 No\r\n\r\nnothing", 0, 404, "nothing" },
		{ "chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", 0,
		  200, "abc" },
		{ "a redirect is an answer",
		  "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", 0, 302, "" },
		{ "longer than allowed", "HTTP/1.1 200 OK\r\n\r\n0123456789012345678901234567890123", -E2BIG, 0, NULL },
		{ "shorter than said", "HTTP/1.1 200 OK\r\nContent-length: 9\r\n\r\nok", -EIO, 0, NULL },
		{ "closed at once", "", -EIO, 0, NULL },
		{ "no HTTP", "220 mail.example ESMTP\r\n", -EPROTO, 0, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *const answers[] = { cases[i].answer, NULL };
		scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
		scoped(http_answer_release) struct http_answer answer = { 0 };
		struct http_client *c;
		struct script s;
		int r;

		print_message("  %s\n", cases[i].name);
		script_start(&s, 0, answers);
		assert_int_equal(
			http_client_open(&(struct http_client_config){ .answer_max = 32, .total_ns = 5 * NSEC_PER_SEC },
					 &c),
			0);
		r = http_send(c, &(struct http_request){ .url = s.url }, &why, &answer);
		http_client_close(c);
		script_stop(&s);
		if (cases[i].want == -EIO)
			assert_true(r == -EIO || r == -EPROTO);
		else
			assert_int_equal(r, cases[i].want);
		assert_int_equal(why.len > 0, r < 0);
		if (cases[i].want)
			continue;
		assert_int_equal(answer.status, cases[i].status);
		assert_true(str_eq(buf_str(&answer.body), str_of(cases[i].body)));
	}
}

static void answers_tell_when_to_come_again(void **state)
{
	static const char *const answers[] = {
		"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n", NULL
	};
	scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
	scoped(http_answer_release) struct http_answer answer = { 0 };
	struct http_client *c;
	struct script s;

	(void)state;
	script_start(&s, 0, answers);
	assert_int_equal(http_client_open(&(struct http_client_config){ 0 }, &c), 0);
	assert_int_equal(http_send(c, &(struct http_request){ .url = s.url }, &why, &answer), 0);
	http_client_close(c);
	script_stop(&s);
	assert_int_equal(answer.status, 503);
	assert_true(answer.has_retry_after);
	assert_int_equal(answer.retry_after_ns, 7 * NSEC_PER_SEC);
	assert_string_equal(answer.content_type, "text/plain");
}

static void requests_carry_what_was_given(void **state)
{
	static const char *const answers[] = { SCRIPT_OK, NULL };
	const struct http_header headers[] = { { STR("X-Test"), STR("one two") }, { STR("X-Bad"), STR("a\r\nb: c") } };
	scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
	scoped(http_answer_release) struct http_answer answer = { 0 };
	struct http_request request = {
		.headers = headers, .header_count = 1, .bearer = STR("secret"), .body = "a\0b", .body_size = 3
	};
	scoped(freep) char *test = NULL, *token = NULL;
	struct http_client *c;
	struct script s;

	(void)state;
	script_start(&s, 0, answers);
	request.url = s.url;
	assert_int_equal(http_client_open(&(struct http_client_config){ 0 }, &c), 0);
	assert_int_equal(http_send(c, &request, &why, &answer), 0);
	test = script_header(&s, 0, "X-Test");
	token = script_header(&s, 0, "Authorization");
	assert_string_equal(test, "one two");
	assert_string_equal(token, "Bearer secret");
	assert_int_equal(s.requests[0].body_size, 3);
	assert_memory_equal(s.requests[0].body, "a\0b", 3);
	assert_true(str_starts(str_of(s.requests[0].head), STR("POST / ")));
	request.header_count = 2; /* no header can be smuggled in */
	assert_int_equal(http_send(c, &request, &why, &answer), -EINVAL);
	assert_int_equal(script_count(&s), 1);
	http_client_close(c);
	script_stop(&s);
}

static bool not_loopback(void *ctx, const struct sockaddr *address, socklen_t size)
{
	const struct sockaddr_in *in = (const void *)address;

	(void)size;
	++*(int *)ctx;
	return address->sa_family != AF_INET || ntohl(in->sin_addr.s_addr) >> 24 != 127;
}

static void failures_have_names(void **state)
{
	int asked = 0;
	const struct {
		const char *name, *url;
		struct http_client_config cfg;
		int want;
	} cases[] = {
		{ "nobody there", "http://127.0.0.1:1/", { 0 }, -ECONNREFUSED },
		{ "another protocol", "file:///etc/passwd", { 0 }, -EINVAL },
		{ "no URL", "http://", { 0 }, -EINVAL },
		{ "https refused", "https://127.0.0.1:1/", { .http_only = true }, -EINVAL },
		{ "no such name", "http://name.invalid/", { .no_proxy = true }, -EHOSTUNREACH },
		{ "address not allowed",
		  "http://127.0.0.1:1/",
		  { .address_allowed = not_loopback, .ctx = &asked, .no_proxy = true },
		  -EPERM },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
		struct http_answer answer = { .status = 7 };
		struct http_client *c;

		print_message("  %s\n", cases[i].name);
		assert_int_equal(http_client_open(&cases[i].cfg, &c), 0);
		assert_int_equal(http_send(c, &(struct http_request){ .url = cases[i].url }, &why, &answer),
				 cases[i].want);
		assert_false(http_was_sent(c));
		assert_int_equal(answer.status, 7);
		assert_true(why.len);
		http_client_close(c);
	}
	assert_int_equal(asked, 1);
}

/* A peer that takes the connection and says nothing. */
static void time_is_bounded(void **state)
{
	static const char *const answers[] = { "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", NULL };
	scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
	struct http_client_config cfg = { .total_ns = 200 * NSEC_PER_MSEC };
	struct http_answer answer = { 0 };
	struct http_client *c;
	atomic_bool cancel = true;
	uint64_t begin_ns;
	struct script s;

	(void)state;
	script_start(&s, 0, answers);
	assert_int_equal(http_client_open(&cfg, &c), 0);
	assert_int_equal(http_send(c, &(struct http_request){ .url = s.url }, &why, &answer), -ETIMEDOUT);
	assert_true(http_was_sent(c));
	begin_ns = clock_monotonic_ns(&clock_system);
	assert_int_equal(
		http_send(c, &(struct http_request){ .url = s.url, .more_ns = 300 * NSEC_PER_MSEC }, &why, &answer),
		-ETIMEDOUT);
	assert_true(clock_monotonic_ns(&clock_system) - begin_ns > 450 * NSEC_PER_MSEC);
	http_client_close(c);
	cfg = (struct http_client_config){ .cancel = &cancel };
	assert_int_equal(http_client_open(&cfg, &c), 0);
	assert_int_equal(http_send(c, &(struct http_request){ .url = s.url }, &why, &answer), -ECANCELED);
	http_client_close(c);
	script_stop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(retry_after),
		cmocka_unit_test(envelopes),
		cmocka_unit_test(escapes),
		cmocka_unit_test(answers_are_bounded_and_judged),
		cmocka_unit_test(answers_tell_when_to_come_again),
		cmocka_unit_test(requests_carry_what_was_given),
		cmocka_unit_test(failures_have_names),
		cmocka_unit_test(time_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
