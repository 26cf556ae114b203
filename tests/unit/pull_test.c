/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "collector/pull_delta.h"
#include "collector/pull_targets.h"
#include "model_samples.h"

static int parse(const char *json, struct pull_targets *out)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
	struct cur text = guard_page(json, strlen(json));
	int r = pull_targets_parse(cur_rest(&text), &why, out);

	assert_int_equal(r == -EBADMSG, why.len > 0);
	return r;
}

static void targets_are_read(void **state)
{
	scoped(pull_targets_release) struct pull_targets t = { 0 };

	(void)state;
	assert_int_equal(
		parse("[{\"targets\":[\"a:1\",\"https://[::1]:6060/x/"
		      "\"],\"service\":\"shop\",\"labels\":{\"env\":\"prod\"},"
		      "\"profiles\":[\"heap\",\"mutex\"],\"interval\":\"30s\",\"timeout\":5,\"allow\":[\"169.254.7.0/"
		      "24\"]},"
		      "{\"targets\":[\"b\"],\"service\":\"other\",\"path\":\"/base\",\"labels\":{\"instance\":\"i\"}}]",
		      &t),
		0);
	assert_int_equal(t.count, 3);
	assert_string_equal(t.items[0].url, "http://a:1/debug/pprof");
	assert_string_equal(t.items[0].host, "a");
	assert_string_equal(t.items[0].instance, "a:1");
	assert_string_equal(t.items[1].url, "https://[::1]:6060/x");
	assert_string_equal(t.items[1].host, "::1");
	assert_string_equal(t.items[2].url, "http://b/base");
	assert_int_equal(t.items[0].kinds, 1 << PULL_HEAP | 1 << PULL_MUTEX);
	assert_int_equal(t.items[0].interval_ns, 30 * NSEC_PER_SEC);
	assert_int_equal(t.items[0].jitter_ns, 3 * NSEC_PER_SEC);
	assert_int_equal(t.items[0].timeout_ns, 5 * NSEC_PER_SEC);
	assert_int_equal(t.items[0].label_count, 2);
	assert_int_equal(t.items[2].label_count, 1);
	assert_true(str_eq(t.items[2].labels[0].value, STR("i")));
	assert_int_equal(t.items[2].interval_ns, 60 * NSEC_PER_SEC);
	assert_int_equal(t.items[2].cpu_seconds, 10);
}

static void bad_targets_are_refused(void **state)
{
	static const char *const cases[] = {
		"",
		"{}",
		"[1]",
		"[{}]",
		"[{\"service\":\"s\"}]",
		"[{\"targets\":[],\"service\":\"s\"}]",
		"[{\"targets\":[1],\"service\":\"s\"}]",
		"[{\"targets\":[\"\"],\"service\":\"s\"}]",
		"[{\"targets\":[\"a:1\"],\"service\":\"\"}]",
		"[{\"targets\":[\"a:1\"],\"service\":1}]",
		"[{\"targets\":[\"u:p@a:1\"],\"service\":\"s\"}]",
		"[{\"targets\":[\"a:1?x\"],\"service\":\"s\"}]",
		"[{\"targets\":[\"a:1\\n\"],\"service\":\"s\"}]",
		"[{\"targets\":[\"a:1\",\"a:1\"],\"service\":\"s\"}]",
		"[{\"targets\":[\"a:1\"],\"service\":\"s\",\"x\":1}]",
		"[{\"targets\":[\"a:1\"],\"service\":\"s\",\"path\":\"x\"}]",
		"[{\"targets\":[\"a:1\"],\"service\":\"s\",\"labels\":[]}]",
		"[{\"targets\":[\"a:1\"],\"service\":\"s\",\"labels\":{\"a\":1}}]",
		"[{\"targets\":[\"a:1\"],\"service\":\"s\",\"labels\":{\"\":\"\"}}]",
		"[{\"targets\":[\"a:1\"],\"service\":\"s\",\"profiles\":[]}]",
		"[{\"targets\":[\"a:1\"],\"service\":\"s\",\"profiles\":\"cpu\"}]",
		"[{\"targets\":[\"a:1\"],\"service\":\"s\",\"interval\":\"0s\"}]",
		"[{\"targets\":[\"a:1\"],\"service\":\"s\",\"interval\":-1}]",
		"[{\"targets\":[\"a:1\"],\"service\":\"s\",\"interval\":1.5}]",
		"[{\"targets\":[\"a:1\"],\"service\":\"s\",\"cpu_seconds\":0}]",
		"[{\"targets\":[\"a:1\"],\"service\":\"s\",\"allow\":[\"a\"]}]",
		"[{\"targets\":[\"a:1\"],\"service\":\"s\",\"allow\":[\"1.2.3.4/33\"]}]",
		"[{\"targets\":[\"a:1\"],\"service\":\"s\",\"allow\":\"1.2.3.4\"}]",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pull_targets t = { 0 };

		print_message("  %s\n", cases[i]);
		assert_int_equal(parse(cases[i], &t), -EBADMSG);
		assert_null(t.items);
	}
}

static bool allowed(const char *host, const char *allow, const char *address)
{
	scoped(pull_targets_release) struct pull_targets t = { 0 };
	struct sockaddr_in four = { .sin_family = AF_INET };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	char json[256];

	(void)snprintf(json, sizeof(json), "[{\"targets\":[\"%s\"],\"service\":\"s\",\"allow\":[%s]}]", host, allow);
	assert_int_equal(parse(json, &t), 0);
	if (inet_pton(AF_INET, address, &four.sin_addr) == 1)
		return pull_address_allowed(&t.items[0], (const struct sockaddr *)&four, sizeof(four));
	assert_int_equal(inet_pton(AF_INET6, address, &six.sin6_addr), 1);
	return pull_address_allowed(&t.items[0], (const struct sockaddr *)&six, sizeof(six));
}

static void addresses_are_guarded(void **state)
{
	static const struct {
		const char *host, *allow, *address;
		bool want;
	} cases[] = {
		{ "a:1", "", "10.0.0.1", true },
		{ "a:1", "", "192.168.1.1", true },
		{ "a:1", "", "8.8.8.8", true },
		{ "a:1", "", "2001:db8::1", true },
		{ "a:1", "", "fd12::1", true },
		{ "a:1", "", "127.0.0.1", false },
		{ "a:1", "", "127.9.9.9", false },
		{ "a:1", "", "::1", false },
		{ "localhost:1", "", "127.0.0.1", true },
		{ "localhost:1", "", "::1", true },
		{ "127.0.0.1:1", "", "127.0.0.1", true },
		{ "[::1]:1", "", "::1", true },
		{ "localhost.example:1", "", "127.0.0.1", false },
		{ "a:1", "", "169.254.169.254", false },
		{ "169.254.169.254:1", "", "169.254.169.254", false },
		{ "a:1", "", "::ffff:169.254.169.254", false },
		{ "a:1", "", "::ffff:127.0.0.1", false },
		{ "a:1", "", "64:ff9b::a9fe:a9fe", false },
		{ "a:1", "", "2002:a9fe:a9fe::", false },
		{ "a:1", "", "0.0.0.0", false },
		{ "a:1", "", "::", false },
		{ "a:1", "", "255.255.255.255", false },
		{ "a:1", "", "224.0.0.1", false },
		{ "a:1", "", "fe80::1", false },
		{ "a:1", "", "ff02::1", false },
		{ "a:1", "", "fd00:ec2::254", false },
		{ "a:1", "", "100.100.100.200", false },
		{ "a:1", "\"169.254.169.254\"", "169.254.169.254", true },
		{ "a:1", "\"169.254.169.254\"", "169.254.169.253", false },
		{ "a:1", "\"169.254.0.0/16\"", "169.254.3.4", true },
		{ "a:1", "\"fe80::/10\"", "febf::1", true },
		{ "a:1", "\"fe80::/10\"", "169.254.3.4", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s %s %s\n", cases[i].host, cases[i].allow, cases[i].address);
		assert_int_equal(allowed(cases[i].host, cases[i].allow, cases[i].address), cases[i].want);
	}
}

/* Samples of a heap profile; stack i is a path of its own; zero allocations are left out when @sparse. */
static void make_heap(struct model *m, const int64_t (*rows)[4], size_t count, uint64_t base)
{
	static const char *const types[][2] = { { "alloc_objects", "count" },
						{ "alloc_space", "bytes" },
						{ "inuse_objects", "count" },
						{ "inuse_space", "bytes" } };

	assert_int_equal(model_init(m, MIB(1)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		assert_int_equal(model_add_value_type(m, str_of(types[i][0]), str_of(types[i][1])), 0);
	for (size_t i = 0; i < count; i++) {
		struct model_mapping mapping = { .start = base, .limit = base + 4096 };
		struct model_location location = { .address = base + 16 + i };
		struct model_sample sample = { .time_offset_ns = MODEL_NO_TIME };

		assert_int_equal(model_add_string(m, STR("/bin/a"), &mapping.filename), 0);
		assert_int_equal(model_add_mapping(m, &mapping, &location.mapping), 0);
		assert_int_equal(model_add_location(m, &location, NULL, &sample.stack), 0);
		assert_int_equal(model_add_stack(m, 0, sample.stack, &sample.stack), 0);
		assert_int_equal(model_add_sample(m, &sample, rows[i]), 0);
	}
}

static void differences_are_taken(void **state)
{
	static const int64_t first[][4] = { { 5, 50, 1, 10 }, { 3, 30, 0, 0 }, { 0, 0, 0, 0 } };
	static const int64_t second[][4] = { { 7, 70, 2, 20 }, { 3, 30, 0, 0 }, { 1, 8, 1, 8 } };
	static const int64_t third[][4] = { { 2, 20, 2, 20 } };
	static const int64_t fourth[][4] = { { 1, 70, 2, 20 } };
	static const struct {
		const char *name;
		const int64_t (*rows)[4];
		size_t count;
		enum pull_change how;
		int64_t want[3][4];
		size_t want_count;
	} cases[] = {
		{ "first: only what is in use", first, 3, PULL_FIRST, { { 0, 0, 1, 10 } }, 1 },
		{ "what was added", second, 3, PULL_DELTA, { { 2, 20, 2, 20 }, { 1, 8, 1, 8 } }, 2 },
		{ "the same again", second, 3, PULL_DELTA, { { 0, 0, 2, 20 }, { 0, 0, 1, 8 } }, 2 },
		{ "stacks are gone", third, 1, PULL_RESTARTED, { { 2, 20, 2, 20 } }, 1 },
		{ "less than before", fourth, 1, PULL_RESTARTED, { { 1, 70, 2, 20 } }, 1 },
	};
	scoped(pull_baseline_release) struct pull_baseline b = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(model_release) struct model m = { 0 };
		enum pull_change how;

		print_message("  %s\n", cases[i].name);
		make_heap(&m, cases[i].rows, cases[i].count, 0x1000 * (i + 1)); /* it lies elsewhere each time */
		assert_int_equal(pull_delta(&m, &b, &how), 0);
		assert_int_equal(how, cases[i].how);
		assert_int_equal(m.samples_count, cases[i].want_count);
		for (size_t s = 0; s < m.samples_count; s++)
			assert_memory_equal(model_values(&m, &m.samples[s]), cases[i].want[s],
					    sizeof(cases[i].want[s]));
	}
}

static void too_many_columns_are_refused(void **state)
{
	scoped(pull_baseline_release) struct pull_baseline b = { 0 };
	scoped(model_release) struct model m = { 0 };
	enum pull_change how;

	(void)state;
	make_heap(&m, NULL, 0, 0x1000);
	assert_int_equal(model_add_value_type(&m, STR("more"), STR("count")), 0);
	assert_int_equal(pull_delta(&m, &b, &how), -E2BIG);
	assert_false(b.is_known);
}

static int delta_once(void *ctx)
{
	scoped(pull_baseline_release) struct pull_baseline b = { 0 };
	enum pull_change how;

	return pull_delta(ctx, &b, &how);
}

static int parse_once(void *ctx)
{
	static const char json[] = "[{\"targets\":[\"a:1\",\"b:1\"],\"service\":\"s\",\"labels\":{\"a\":\"b\"}}]";
	scoped(pull_targets_release) struct pull_targets t = { 0 };
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));

	(void)ctx;
	return pull_targets_parse(str_of(json), &why, &t);
}

static void memory_can_run_out(void **state)
{
	static const int64_t rows[][4] = { { 5, 50, 1, 10 }, { 3, 30, 2, 8 } };
	scoped(model_release) struct model m = { 0 };

	(void)state;
	for_each_failing_allocation(parse_once, NULL);
	make_heap(&m, rows, 2, 0x1000);
	for_each_failing_allocation(delta_once, &m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(targets_are_read),
		cmocka_unit_test(bad_targets_are_refused),
		cmocka_unit_test(addresses_are_guarded),
		cmocka_unit_test(differences_are_taken),
		cmocka_unit_test(too_many_columns_are_refused),
		cmocka_unit_test(memory_can_run_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
