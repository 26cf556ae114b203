/* SPDX-License-Identifier: Apache-2.0 */
/* Names of events, by themselves and by a made /sys. */
#include "support.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "sampler/event.h"

static char root[] = "/tmp/hearth-event-XXXXXX";

static const struct {
	const char *path, *text;
} files[] = {
	{ "/sys/kernel/tracing/events/sched/sched_switch/id", "316\n" },
	{ "/sys/kernel/tracing/events/odd/none/id", "x\n" },
	{ "/sys/kernel/tracing/events/cs/u/id", "17\n" },
	{ "/sys/bus/event_source/devices/cpu/type", "4\n" },
	{ "/sys/bus/event_source/devices/cpu/format/event", "config:0-7\n" },
	{ "/sys/bus/event_source/devices/cpu/format/umask", "config:8-15\n" },
	{ "/sys/bus/event_source/devices/cpu/format/edge", "config:18\n" },
	{ "/sys/bus/event_source/devices/cpu/format/split", "config1:0-1,62-63\n" },
	{ "/sys/bus/event_source/devices/cpu/format/broken", "config:9-200\n" },
	{ "/sys/bus/event_source/devices/cpu/format/other", "config7:0-1\n" },
	{ "/sys/bus/event_source/devices/cpu/events/mem-loads", "event=0xcd,umask=0x1\n" },
	{ "/sys/bus/event_source/devices/cpu/events/loop", "loop\n" },
	{ "/sys/bus/event_source/devices/cpu/events/asks", "event=?\n" },
	{ "/sys/bus/event_source/devices/odd/type", "many\n" },
};

static int make_files(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(root));
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		scoped(buf_release) struct buf path = BUF_INIT(KIB(1));

		buf_addf(&path, "%s%s", root, files[i].path);
		assert_int_equal(io_make_folders(buf_cstr(&path)), 0);
		assert_int_equal(io_replace_file(buf_cstr(&path), files[i].text, strlen(files[i].text)), 0);
	}
	return 0;
}

static int remove_files(void **state)
{
	char command[64];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static const struct {
	const char *name;
	int result;
	uint32_t type;
	uint64_t config, config1;
	uint8_t precise;
	bool without_user, without_kernel, is_clock;
} cases[] = {
	{ "cpu-clock", 0, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, .is_clock = true },
	{ "task-clock:u", 0, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, .is_clock = true, .without_kernel = true },
	{ "cs", 0, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
	{ " context-switches\n", 0, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
	{ "page-faults:k", 0, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, .without_user = true },
	{ "cycles:ppp", 0, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, .precise = 3 },
	{ "cycles:uk", 0, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
	{ "cycles:pppp", -ENOENT },
	{ "branches", 0, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
	{ "L1-dcache-load-misses", 0, PERF_TYPE_HW_CACHE, 0x10000 },
	{ "dTLB-stores", 0, PERF_TYPE_HW_CACHE, 0x103 },
	{ "LLC", -ENOENT },
	{ "LLC-", -ENOENT },
	{ "r01b7", 0, PERF_TYPE_RAW, 0x1b7 },
	{ "r01b7:p", 0, PERF_TYPE_RAW, 0x1b7, .precise = 1 },
	{ "r", -ENOENT },
	{ "r0123456789abcdef01", -ENOENT },
	{ "rogue", -ENOENT },
	{ "sched:sched_switch", 0, PERF_TYPE_TRACEPOINT, 316 },
	{ "sched:sched_switch:u", 0, PERF_TYPE_TRACEPOINT, 316, .without_kernel = true },
	{ "sched:none", -ENOENT },
	{ "odd:none", -ENOENT },
	{ "sched:../sched/sched_switch", -EBADMSG },
	{ "sched:", -EBADMSG },
	{ ":sched", -ENOENT },
	/* modifiers of an event go before a tracepoint of that name */
	{ "cs:u", 0, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, .without_kernel = true },
	{ "cpu/event=0x3c,umask=0x1,edge/", 0, 4, 0x4013c },
	{ "cpu/event=0x3c/u", -EBADMSG }, /* a slash ends it */
	{ "cpu/event=0x3c/:u", 0, 4, 0x3c, .without_kernel = true },
	{ "cpu/split=0xf/", 0, 4, 0, 0xc000000000000003 },
	{ "cpu/split=0x10/", -EBADMSG },
	{ "cpu/event=256/", -EBADMSG },
	{ "cpu/config=0x11,config1=3/", 0, 4, 0x11, 3 },
	{ "cpu/mem-loads/", 0, 4, 0x1cd },
	{ "cpu/mem-loads,edge=1/", 0, 4, 0x401cd },
	{ "mem-loads", 0, 4, 0x1cd },
	{ "mem-loads:p", -ENOENT }, /* a tracepoint's form: no such group */
	{ "cpu/broken=1/", -EBADMSG },
	{ "cpu/other=1/", -EBADMSG },
	{ "cpu/loop/", -ENOENT },
	{ "cpu/asks/", -EBADMSG },
	{ "cpu/nothing/", -ENOENT },
	{ "cpu/=3/", -EBADMSG },
	{ "cpu//", -EBADMSG },
	{ "cpu/event", -EBADMSG },
	{ "../cpu/event=1/", -ENOENT },
	{ "odd/event=1/", -ENOENT },
	{ "gone/event=1/", -ENOENT },
	{ "uncore_imc/x/", -ENOENT },
	{ "", -EBADMSG },
	{ "a_name_that_is_longer_than_what_a_sampler_can_keep_of_an_event_xx", -EBADMSG },
};

static void names(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sampler_event event = { .type = 999 };
		scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
		int r = event_parse(root, str_of(cases[i].name), &event, &why);

		print_message("  '%s': %d %s\n", cases[i].name, r, buf_cstr(&why));
		assert_int_equal(r, cases[i].result);
		assert_int_equal(str_find(buf_str(&why), '\n'), -1);
		if (r < 0) {
			assert_true(why.len > 0);
			assert_int_equal(event.type, 999);
			continue;
		}
		assert_int_equal(why.len, 0);
		assert_int_equal(event.type, cases[i].type);
		assert_int_equal(event.config, cases[i].config);
		assert_int_equal(event.config1, cases[i].config1);
		assert_int_equal(event.precise, cases[i].precise);
		assert_int_equal(event.without_user, cases[i].without_user);
		assert_int_equal(event.without_kernel, cases[i].without_kernel);
		assert_int_equal(event.is_clock, cases[i].is_clock);
		assert_int_equal(event.period, 0);
		assert_true(str_eq(str_of(event.name), str_trim(str_of(cases[i].name))));
		assert_int_equal(event_is_tracepoint(&event), cases[i].type == PERF_TYPE_TRACEPOINT);
	}
	assert_false(event_is_tracepoint(NULL));
}

static void attributes(void **state)
{
	struct sampler_event event = { .type = PERF_TYPE_RAW, .config = 7, .config2 = 9, .precise = 2, .period = 1000 };
	struct perf_event_attr attr;

	(void)state;
	event_attr(NULL, 49, &attr);
	assert_int_equal(attr.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(attr.config, PERF_COUNT_SW_CPU_CLOCK);
	assert_int_equal(attr.freq, 1);
	assert_int_equal(attr.sample_freq, 49);
	assert_int_equal(attr.disabled, 1);
	event_attr(&event, 49, &attr);
	assert_int_equal(attr.type, PERF_TYPE_RAW);
	assert_int_equal(attr.config, 7);
	assert_int_equal(attr.config2, 9);
	assert_int_equal(attr.precise_ip, 2);
	assert_int_equal(attr.freq, 0);
	assert_int_equal(attr.sample_period, 1000);
	event.period = 0;
	event_attr(&event, 49, &attr);
	assert_int_equal(attr.freq, 1);
	assert_int_equal(attr.sample_freq, 49);
}

static void explanations(void **state)
{
	static const struct {
		uint32_t type;
		uint8_t precise;
		int error, result;
		const char *says;
	} rows[] = {
		{ PERF_TYPE_HARDWARE, 0, -ENOENT, -ENOTSUP, "has no counter on this machine" },
		{ PERF_TYPE_RAW, 0, -EOPNOTSUPP, -ENOTSUP, "has no counter on this machine" },
		{ PERF_TYPE_HARDWARE, 2, -EINVAL, -ENOTSUP, "leave out :pp" },
		{ PERF_TYPE_SOFTWARE, 0, -EINVAL, -ENOTSUP, "not sampled by this kernel" },
		{ PERF_TYPE_SOFTWARE, 0, -EACCES, -EPERM, "may not be sampled" },
		{ PERF_TYPE_TRACEPOINT, 0, -EPERM, -EPERM, "may not be sampled" },
		{ PERF_TYPE_SOFTWARE, 0, -EMFILE, -ENOTSUP, "Too many open files" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct sampler_event event = { .type = rows[i].type, .precise = rows[i].precise, .name = "E" };
		scoped(buf_release) struct buf why = BUF_INIT(KIB(4));

		assert_int_equal(event_explain(&event, rows[i].error, &why), rows[i].result);
		print_message("  %s\n", buf_cstr(&why));
		assert_true(str_starts(buf_str(&why), STR("'E' ")));
		assert_true(str_search(buf_str(&why), str_of(rows[i].says)) >= 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(attributes),
		cmocka_unit_test(explanations),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
