/* SPDX-License-Identifier: Apache-2.0 */
/* What runtimes without more to say tell of a process: of this one. */
#include "support.h"

#include <fcntl.h>
#include <unistd.h>

#include "runtime/process_info.h"

static int read_own(void *self, void *dst, uint32_t size, uint64_t at)
{
	(void)self;
	memcpy(dst, (const void *)(uintptr_t)at, size);
	return 0;
}

static bool has(const struct buf *json, const char *want)
{
	return str_search(buf_str(json), str_of(want)) >= 0;
}

static void tells_of_this_process(void **state)
{
	const struct process_info_words words = { STR("some_version"), STR("some \"1.2\""), STR("libsome_elfid"),
						  STR("libcmocka") };
	const struct process_info_words without = { STR("some_version"), STR(""), STR("libsome_elfid"),
						    STR("libsome") };
	scoped(buf_release) struct buf json = BUF_INIT(KIB(64));
	scoped(closep) int dir = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct runtime_target target = { .pid = (uint32_t)getpid(), .read = read_own, .proc_dir = dir };

	(void)state;
	assert_int_equal(process_info_metadata(&target, &words, &json), 0);
	print_message("  " STR_FMT "\n", STR_ARG(buf_str(&json)));
	assert_true(has(&json, "{\"some_version\": \"some \\\"1.2\\\"\", \"exe_elfid\": \""));
	assert_true(has(&json, "\"libsome_elfid\": \"buildid:"));
	assert_true(has(&json, "/process_info_test\", \"execfn\": \""));
	buf_clear(&json);
	assert_int_equal(process_info_metadata(&target, &without, &json), 0);
	assert_true(has(&json, "{\"some_version\": null, \"exe_elfid\""));
	assert_true(has(&json, "\"libsome_elfid\": null, \"exe\""));
}

static void tells_nothing_of_one_that_ended(void **state)
{
	const struct process_info_words words = { STR("some_version"), STR("1"), STR("libsome_elfid"), STR("libsome") };
	scoped(buf_release) struct buf json = BUF_INIT(KIB(64));
	scoped(closep) int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct runtime_target target = { .pid = 1, .read = read_own, .proc_dir = dir };

	(void)state;
	buf_addc(&json, '>');
	assert_int_equal(process_info_metadata(&target, &words, &json), -ESRCH);
	assert_string_equal(buf_cstr(&json), ">");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_of_this_process),
		cmocka_unit_test(tells_nothing_of_one_that_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
