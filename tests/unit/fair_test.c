/* SPDX-License-Identifier: Apache-2.0 */
/* What the server knows of its senders: how fast their bytes come, what they have taken, which addresses are one. */
#include "support.h"

#include <arpa/inet.h>

#include "base/clock.h"
#include "net/http_int.h"

#define START (100 * NSEC_PER_SEC)
#define RATE 1024

static void a_head_start_buys_nothing(void **state)
{
	struct http_pace p;
	bool slow = false;

	(void)state;
	pace_begin(&p, START, 0);
	assert_false(pace_is_slow(&p, START + NSEC_PER_SEC, MIB(31), RATE));
	for (uint64_t s = 2; s <= 11 && !slow; s++)
		slow = pace_is_slow(&p, START + s * NSEC_PER_SEC, MIB(31) + s, RATE);
	assert_true(slow);
}

static void the_first_window_is_for_free(void **state)
{
	struct http_pace p;

	(void)state;
	pace_begin(&p, START, 0);
	assert_false(pace_is_slow(&p, START + 5 * NSEC_PER_SEC, 0, RATE));
	assert_false(pace_is_slow(&p, START + 9 * NSEC_PER_SEC, 0, RATE));
	assert_true(pace_is_slow(&p, START + 10 * NSEC_PER_SEC, 5 * RATE - 1, RATE));
	pace_begin(&p, START, 77);
	assert_false(pace_is_slow(&p, START + 5 * NSEC_PER_SEC, 77, RATE));
	assert_false(pace_is_slow(&p, START + 10 * NSEC_PER_SEC, 77 + 5 * RATE, RATE));
	assert_false(pace_is_slow(&p, START + 15 * NSEC_PER_SEC, 77 + 10 * RATE, RATE));
}

static uint64_t address(const char *text)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct sockaddr_in four = { .sin_family = AF_INET };

	if (inet_pton(AF_INET, text, &four.sin_addr) == 1)
		return sender_address((const struct sockaddr *)&four);
	assert_int_equal(inet_pton(AF_INET6, text, &six.sin6_addr), 1);
	return sender_address((const struct sockaddr *)&six);
}

static void addresses_of_one_network_are_one(void **state)
{
	(void)state;
	assert_true(address("2001:db8:1:2::1") == address("2001:db8:1:2:ffff:ffff:ffff:ffff"));
	assert_true(address("2001:db8:1:2::1") != address("2001:db8:1:3::1"));
	assert_true(address("::ffff:192.0.2.1") == address("192.0.2.1"));
	assert_true(address("192.0.2.2") != address("192.0.2.1"));
	assert_true(address("::1") != address("127.0.0.1"));
}

static void what_was_spent_drains_away(void **state)
{
	static struct http_senders all;
	struct http_sender *s = sender_get(&all, 7);

	(void)state;
	assert_ptr_equal(s, sender_get(&all, 7));
	sender_spend(s, START, NSEC_PER_SEC);
	assert_true(sender_spent(s, START) == NSEC_PER_SEC);
	assert_true(sender_spent(s, START + 10 * NSEC_PER_SEC) == NSEC_PER_SEC / 2);
	sender_put(&all, s, START);
	sender_put(&all, s, START);
	assert_int_equal(all.count, 1); /* it is not forgiven for leaving */
	s = sender_get(&all, 7);
	assert_true(sender_spent(s, START) == NSEC_PER_SEC);
	sender_put(&all, s, START + 20 * NSEC_PER_SEC);
	assert_int_equal(all.count, 0);
	sender_spend(sender_get(&all, 8), START, 100 * NSEC_PER_SEC);
	senders_tidy(&all, START);
	assert_int_equal(all.count, 1);
	senders_release(&all);
}

/* An attacker with many networks costs memory for as long as his connections stand. */
static void many_senders_are_forgotten(void **state)
{
	static struct http_senders all;

	(void)state;
	for (uint64_t id = 1; id <= 3 * HTTP_SENDERS_IDLE; id++) {
		struct http_sender *s = sender_get(&all, id);

		sender_spend(s, START, NSEC_PER_SEC);
		sender_put(&all, s, START);
	}
	assert_true(all.count <= HTTP_SENDERS_IDLE + 1);
	senders_release(&all);
	assert_int_equal(all.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_head_start_buys_nothing),        cmocka_unit_test(the_first_window_is_for_free),
		cmocka_unit_test(addresses_of_one_network_are_one), cmocka_unit_test(what_was_spent_drains_away),
		cmocka_unit_test(many_senders_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
