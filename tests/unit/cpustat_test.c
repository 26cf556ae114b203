/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "proc/cpustat.h"

#define TICK (NSEC_PER_SEC / 100)

static void stat_texts(void **state)
{
	static const struct {
		const char *name, *text;
		int want;
		uint64_t busy, total, steal;
		uint32_t cpus;
	} cases[] = {
		{ "two CPUs", "cpu  1 2 3 40 50 6 7 8 100 100\ncpu0 1\ncpu1 1\nintr 5\ncpu9 1\n", 0, 19, 117, 8, 2 },
		{ "old kernel", "cpu  1 2 3 4\ncpu0 1 2 3 4\n", 0, 6, 10, 0, 1 },
		{ "too few", "cpu  1 2 3\n", -EBADMSG, 0, 0, 0, 0 },
		{ "no number", "cpu  1 2 3 x\n", -EBADMSG, 0, 0, 0, 0 },
		{ "huge", "cpu  18446744073709551615 2 3 4\n", -EBADMSG, 0, 0, 0, 0 },
		{ "twice", "cpu  1 2 3 4\ncpu  1 2 3 4\n", -EBADMSG, 0, 0, 0, 0 },
		{ "no total", "cpu0 1 2 3 4\n", -EBADMSG, 0, 0, 0, 0 },
		{ "empty", "", -EBADMSG, 0, 0, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cpustat got = { .busy_ns = 7 };

		print_message("  %s\n", cases[i].name);
		assert_int_equal(cpustat_parse(str_of(cases[i].text), &got), cases[i].want);
		if (cases[i].want < 0) {
			assert_int_equal(got.busy_ns, 7);
			continue;
		}
		assert_int_equal(got.busy_ns, cases[i].busy * TICK);
		assert_int_equal(got.total_ns, cases[i].total * TICK);
		assert_int_equal(got.steal_ns, cases[i].steal * TICK);
		assert_int_equal(got.cpu_count, cases[i].cpus);
	}
}

static void percent(void **state)
{
	struct cpustat from = { .busy_ns = 100, .total_ns = 1000 }, to = { .busy_ns = 350, .total_ns = 2000 },
		       none = { 0 };

	(void)state;
	assert_true(cpustat_busy_percent(&from, &to) == 25.0);
	assert_true(cpustat_busy_percent(&from, &from) < 0);
	assert_true(cpustat_busy_percent(&to, &from) < 0);
	assert_true(cpustat_busy_percent(&none, &to) < 0);
	assert_true(cpustat_busy_percent(&from, &none) < 0);
	assert_int_equal(cpustat_busy_ns(&from, &to), 250);
	assert_int_equal(cpustat_busy_ns(&to, &from), 0);
	assert_int_equal(cpustat_busy_ns(&none, &to), 0);
	assert_int_equal(cpustat_busy_ns(&from, &none), 0);
}

static void meminfo_texts(void **state)
{
	uint64_t total = 7, used = 7;

	(void)state;
	assert_int_equal(
		meminfo_parse(STR("MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable:  250 kB\n"), &total, &used), 0);
	assert_int_equal(total, 1000 << 10);
	assert_int_equal(used, 750 << 10);
	assert_int_equal(meminfo_parse(STR("MemTotal: 1 kB\nMemAvailable: 2 kB\n"), &total, &used), -EBADMSG);
	assert_int_equal(meminfo_parse(STR("MemTotal: 1 kB\n"), &total, &used), -EBADMSG);
	assert_int_equal(meminfo_parse(STR("MemTotal: 99999999999999999999 kB\nMemAvailable: 2 kB\n"), &total, &used),
			 -EBADMSG);
	assert_int_equal(used, 750 << 10);
}

static void this_machine(void **state)
{
	struct cpustat stat;
	double memory = cpustat_memory_percent("");

	(void)state;
	assert_int_equal(cpustat_read("", &stat), 0);
	assert_true(stat.cpu_count > 0 && stat.busy_ns > 0 && stat.busy_ns < stat.total_ns);
	assert_true(memory > 0 && memory < 100);
	assert_int_equal(cpustat_read("/nowhere", &stat), -ENOENT);
	assert_true(cpustat_memory_percent("/nowhere") < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_texts),
		cmocka_unit_test(percent),
		cmocka_unit_test(meminfo_texts),
		cmocka_unit_test(this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
