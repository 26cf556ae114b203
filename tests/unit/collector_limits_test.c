/* SPDX-License-Identifier: Apache-2.0 */
/* Who may send how much, and how many series there may be. How the server's own limits are told. */
#include "support.h"

#include <jansson.h>

#include "collector/cardinality.h"
#include "collector/collector.h"
#include "collector/connect.h"
#include "collector/rate.h"

#define START (5 * NSEC_PER_SEC)

static void free_rate(struct rate **r)
{
	rate_free(*r);
}

static void a_bucket_fills_with_time(void **state)
{
	scoped(free_rate) struct rate *r = NULL;

	(void)state;
	assert_int_equal(rate_new(1000, &r), 0);
	assert_int_equal(rate_wait_s(r, 1, START), 0);
	rate_spend(r, 1, START, 1999); /* twice as much at once */
	assert_int_equal(rate_wait_s(r, 1, START), 0);
	rate_spend(r, 1, START, 1);
	assert_int_equal(rate_wait_s(r, 1, START), 1);
	assert_int_equal(rate_wait_s(r, 2, START), 0); /* somebody else */
	rate_spend(r, 1, START, 5000);
	assert_int_equal(rate_wait_s(r, 1, START), 6);
	assert_int_equal(rate_wait_s(r, 1, START + 4 * NSEC_PER_SEC), 2);
	assert_int_equal(rate_wait_s(r, 1, START + 6 * NSEC_PER_SEC), 0);
	rate_spend(r, 1, START + 1000 * NSEC_PER_SEC, 2001); /* it was full, not fuller */
	assert_true(rate_wait_s(r, 1, START + 1000 * NSEC_PER_SEC) > 0);
}

static void no_rate_is_no_limit(void **state)
{
	scoped(free_rate) struct rate *r = NULL;

	(void)state;
	assert_int_equal(rate_new(0, &r), 0);
	rate_spend(r, 1, START, UINT64_MAX);
	assert_int_equal(rate_wait_s(r, 1, START), 0);
}

/* More senders than are remembered cost nobody anything, and one that is over its rate is not forgotten for them at
 * once. */
static void many_senders(void **state)
{
	scoped(free_rate) struct rate *r = NULL;

	(void)state;
	assert_int_equal(rate_new(1000, &r), 0);
	for (uint64_t sender = 1; sender < 10 * RATE_SENDERS; sender++) {
		uint64_t at = START + sender * NSEC_PER_MSEC;

		assert_int_equal(rate_wait_s(r, sender * 2654435761, at), 0);
		rate_spend(r, sender * 2654435761, at, 2500);
		assert_true(rate_wait_s(r, sender * 2654435761, at) > 0);
	}
}

static void free_cardinality(struct cardinality **c)
{
	cardinality_free(*c);
}

static enum cardinality_verdict admit(struct cardinality *c, const char *service, const char *label, uint64_t now_ns)
{
	const struct store_label labels[] = { { STR("k"), str_of(label) }, { STR("z"), STR("1") } };
	const struct store_upload u = {
		.service = str_of(service), .type = STR("cpu"), .labels = labels, .label_count = *label ? 2 : 0
	};

	return cardinality_admit(c, &u, now_ns);
}

static enum cardinality_verdict admit_number(struct cardinality *c, const char *service, int number, uint64_t now_ns)
{
	char label[16];

	(void)snprintf(label, sizeof(label), "%d", number);
	return admit(c, service, label, now_ns);
}

static void too_many_series_are_folded(void **state)
{
	scoped(free_cardinality) struct cardinality *c = NULL;
	uint64_t later = START + 3601 * NSEC_PER_SEC, latest = later + 2 * 3601 * NSEC_PER_SEC;

	(void)state;
	assert_int_equal(cardinality_new(100, &c), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(admit_number(c, "a", i, START), CARDINALITY_FITS);
	assert_int_equal(cardinality_count(c), 100);
	assert_int_equal(admit_number(c, "a", 100, START), CARDINALITY_NO_LABELS);
	assert_int_equal(admit_number(c, "a", 5, START), CARDINALITY_FITS); /* those that are there go on */
	for (int i = 0; i < 10; i++) {
		char service[16];

		(void)snprintf(service, sizeof(service), "s%d", i);
		assert_int_equal(admit(c, service, "x", START), CARDINALITY_NO_LABELS);
	}
	assert_int_equal(admit(c, "another", "x", START), CARDINALITY_NO_SERVICE);
	assert_int_equal(admit_number(c, "a", 200, START), CARDINALITY_NO_LABELS);

	/* An hour later all still count; those met again for another one. */
	assert_int_equal(admit_number(c, "a", 5, later), CARDINALITY_FITS);
	assert_int_equal(admit_number(c, "a", 201, later), CARDINALITY_NO_LABELS);
	assert_int_equal(admit_number(c, "a", 202, latest), CARDINALITY_FITS);
	assert_int_equal(cardinality_count(c), 1);
}

static void labels_have_no_order(void **state)
{
	const struct store_label one[] = { { STR("a"), STR("1") }, { STR("b"), STR("2") } };
	const struct store_label other[] = { { STR("b"), STR("2") }, { STR("a"), STR("1") } };
	const struct store_label crossed[] = { { STR("a"), STR("2") }, { STR("b"), STR("1") } };
	struct store_upload u = { .service = STR("s"), .type = STR("cpu"), .labels = one, .label_count = 2 };
	scoped(free_cardinality) struct cardinality *c = NULL;

	(void)state;
	assert_int_equal(cardinality_new(10, &c), 0);
	assert_int_equal(cardinality_admit(c, &u, START), CARDINALITY_FITS);
	u.labels = other;
	assert_int_equal(cardinality_admit(c, &u, START), CARDINALITY_FITS);
	assert_int_equal(cardinality_count(c), 1);
	u.labels = crossed;
	assert_int_equal(cardinality_admit(c, &u, START), CARDINALITY_FITS);
	assert_int_equal(cardinality_count(c), 2);
}

#define QUERIER "/querier.v1.QuerierService/ProfileTypes"

/* What the server itself refuses is told as the path's protocol tells errors, wherever the request was by then. */
static void refusals_are_of_the_protocol(void **state)
{
	static const struct {
		const char *path, *method;
		unsigned int status;
		const char *code; /* NULL: a number */
		const char *text; /* the member that has the words */
	} cases[] = {
		{ QUERIER, "POST", 413, "resource_exhausted", "message" },
		{ QUERIER, "POST", 503, "unavailable", "message" },
		{ "//querier.v1.QuerierService/ProfileTypes", "POST", 503, "unavailable", "message" },
		{ QUERIER, "", 503, "unavailable", "message" },
		{ "/api/v1/services", "GET", 503, NULL, "error" },
		{ "/nothing", "GET", 413, NULL, "error" },
		{ "", "", 414, NULL, "error" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct http_request rq = { .path = str_of(cases[i].path), .method = str_of(cases[i].method) };
		struct http_response rs = { .body = BUF_INIT(KIB(64)) };
		json_t *body, *code;

		print_message("  %s\n", cases[i].path);
		collector_refuse(NULL, &rq, cases[i].status, "too \"much\"", &rs);
		if (cases[i].code)
			connect_error(&rs); /* a handler may refuse through the server, and its errors are told, too */
		body = json_loadb(rs.body.ptr, rs.body.len, 0, NULL);
		code = json_object_get(body, "code");
		assert_int_equal(rs.status, cases[i].status);
		if (cases[i].code)
			assert_string_equal(json_string_value(code), cases[i].code);
		else
			assert_int_equal(json_integer_value(code), cases[i].status);
		assert_string_equal(json_string_value(json_object_get(body, cases[i].text)), "too \"much\"");
		json_decref(body);
		buf_release(&rs.body);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bucket_fills_with_time),
		cmocka_unit_test(no_rate_is_no_limit),
		cmocka_unit_test(many_senders),
		cmocka_unit_test(too_many_series_are_folded),
		cmocka_unit_test(labels_have_no_order),
		cmocka_unit_test(refusals_are_of_the_protocol),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
