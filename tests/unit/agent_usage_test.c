/* SPDX-License-Identifier: Apache-2.0 */
/* What a container has used, of both versions of cgroups, in gProfiler's words. */
#include "support.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "cli/agent_usage.h"

static char root[] = "/tmp/hearth-usage-XXXXXX";
static char said[4096];

/* In place of the log. */
void log_write(enum log_level level, const char *message, const struct log_field *fields, size_t count)
{
	size_t len = strlen(said);

	(void)fields;
	assert_int_equal(level, LOG_DEBUG);
	assert_int_equal(count, 0);
	(void)snprintf(said + len, sizeof(said) - len, "%s\n", message);
}

static void put(const char *name, const char *text)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(1));

	buf_addf(&path, "%s/%s", root, name);
	assert_int_equal(io_make_folders(buf_cstr(&path)), 0);
	assert_int_equal(io_replace_file(buf_cstr(&path), text, strlen(text)), 0);
}

static void take_away(const char *name)
{
	char path[200];

	(void)snprintf(path, sizeof(path), "%s/%s", root, name);
	assert_int_equal(remove(path), 0);
}

static void version_1(void **state)
{
	struct agent_usage usage = { 0 };

	(void)state;
	put("cpuacct/cpuacct.usage", "1000000000\n");
	put("memory/memory.usage_in_bytes", "98304000\n");
	put("memory/memory.max_usage_in_bytes", "125829120\n");
	assert_int_equal(agent_usage_begin(root, &usage), 0);
	put("cpuacct/cpuacct.usage", "124400000000\n");
	put("memory/memory.usage_in_bytes", "99614720\n");
	said[0] = 0;
	usage.at_ns -= 6000 * NSEC_PER_SEC; /* so long that a slow test changes no digit */
	agent_usage_log(&usage);
	assert_string_equal(said, "CPU usage this cycle: 123.400 seconds 2.06% (124400000000 cgroup time)\n"
				  "Memory usage: 95.000 MB (diff +1.250 MB), watermark is 120.000 MB (no diff)\n");
	put("cpuacct/cpuacct.usage", "5\n"); /* another group's by now */
	put("memory/memory.usage_in_bytes", "1048576\n");
	said[0] = 0;
	agent_usage_log(&usage);
	assert_non_null(strstr(said, "0.000 seconds 0.00% (5 cgroup time)\nMemory usage: 1.000 MB (diff -94.000 MB)"));
	take_away("cpuacct/cpuacct.usage");
	said[0] = 0;
	agent_usage_log(&usage);
	assert_string_equal(said, "");
	take_away("memory/memory.usage_in_bytes");
	take_away("memory/memory.max_usage_in_bytes");
	take_away("memory");
	take_away("cpuacct");
}

static void version_2(void **state)
{
	struct agent_usage usage = { 0 };

	(void)state;
	put("cpu.stat", "usage_usec 1000\nuser_usec 600\nsystem_usec 400\n");
	assert_int_equal(agent_usage_begin(root, &usage), 0); /* the root group knows no memory */
	put("memory.current", "1048576\n");
	put("cpu.stat", "usage_usec 501000\nuser_usec 600\n");
	said[0] = 0;
	usage.at_ns -= NSEC_PER_SEC;
	agent_usage_log(&usage);
	assert_non_null(strstr(said, "CPU usage this cycle: 0.500 seconds "));
	assert_non_null(strstr(said,
			       "(501000000 cgroup time)\n"
			       "Memory usage: 1.000 MB (diff +1.000 MB), watermark is 1.000 MB (diff +1.000 MB)\n"));
	put("memory.peak", "2097152\n");
	said[0] = 0;
	agent_usage_log(&usage);
	assert_non_null(strstr(said, "Memory usage: 1.000 MB (no diff), watermark is 2.000 MB (diff +1.000 MB)\n"));
	take_away("memory.current");
	take_away("memory.peak");
	take_away("cpu.stat");
}

static void what_is_no_cgroup(void **state)
{
	static const char *const texts[] = { "", "usage_usec\n", "usage_usec x\n", "usage_usec 99999999999999999999\n",
					     "nr_periods 3\n" };
	struct agent_usage usage = { 0 };

	(void)state;
	assert_int_equal(agent_usage_begin(root, &usage), -ENOENT);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		put("cpu.stat", texts[i]);
		assert_int_equal(agent_usage_begin(root, &usage), -ENOENT);
	}
	take_away("cpu.stat");
	said[0] = 0;
	agent_usage_log(&usage); /* nobody asked */
	assert_string_equal(said, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_1),
		cmocka_unit_test(version_2),
		cmocka_unit_test(what_is_no_cgroup),
	};
	int failed;

	if (!mkdtemp(root))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	(void)rmdir(root);
	return failed;
}
