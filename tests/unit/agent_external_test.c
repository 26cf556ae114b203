/* SPDX-License-Identifier: Apache-2.0 */
/* What another program's file says, of the machine and of processes; and files that say nothing. */
#include "support.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "cli/agent_external.h"

static char path[] = "/tmp/hearth-external-XXXXXX";
static unsigned int warnings;
static char said[200]; /* the last of them */

/* In place of those that write. */
int command_fail(const struct command *c, const char *format, ...)
{
	(void)c;
	(void)format;
	return EXIT_FAILED;
}

void log_write(enum log_level level, const char *message, const struct log_field *fields, size_t count)
{
	(void)fields;
	(void)count;
	warnings += level == LOG_WARN;
	(void)snprintf(said, sizeof(said), "%s", message);
}

static void put(const char *text)
{
	assert_int_equal(io_replace_file(path, text, strlen(text)), 0);
}

static void static_part(void **state)
{
	static const struct {
		const char *text;
		int want;
		const char *found;
	} cases[] = {
		{ "{\"static\": {\"rack\": 7}, \"application\": {}}", EXIT_DONE, "{\"rack\": 7}" },
		{ " {} \n", EXIT_DONE, "" },
		{ "{\"static\": {\"a\": 1}, \"static\": {\"b\": 2}}", EXIT_DONE, "{\"b\": 2}" },
		{ "{\"static\": [1]}", EXIT_FAILED, "" },
		{ "{\"static\": {}", EXIT_FAILED, "" },
		{ "{} {}", EXIT_FAILED, "" },
		{ "[]", EXIT_FAILED, "" },
		{ "", EXIT_FAILED, "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(KIB(64));

		print_message("  %s\n", cases[i].text);
		put(cases[i].text);
		assert_int_equal(agent_external_read(NULL, path, &out), cases[i].want);
		assert_string_equal(buf_cstr(&out), cases[i].found);
	}
}

/* Process 10 has metadata, 11 none. */
static void make_window(struct window *w)
{
	struct model_process p = { .pid = 10 };
	uint32_t at;

	assert_int_equal(window_init(w, MIB(1)), 0);
	assert_int_equal(model_add_app_metadata(w->model, STR("{\"a\": 1, \"b\": {\"c\": 2}}"), &p.app_metadata), 0);
	assert_int_equal(model_add_process(w->model, &p, &at), 0);
	p = (struct model_process){ .pid = 11 };
	assert_int_equal(model_add_process(w->model, &p, &at), 0);
}

static void assert_metadata(const struct window *w, uint32_t pid, const char *want)
{
	const struct model *m = w->model;

	for (size_t i = 0; i < m->processes_count; i++) {
		if (m->processes[i].pid != pid)
			continue;
		assert_true(str_eq(model_string(m, m->app_metadata[m->processes[i].app_metadata]), str_of(want)));
		return;
	}
	fail();
}

#define OWN "{\"a\": 1, \"b\": {\"c\": 2}}"

static void of_processes(void **state)
{
	static const struct {
		const char *text, *ten, *eleven;
		unsigned int warnings;
	} cases[] = {
		{ "{\"application\": {\"10\": {\"b\": 3, \"d\": null}, \"12\": {}}}",
		  "{\"a\": 1, \"b\": 3, \"d\": null}", "", 0 },
		{ "{\"application\": {\"11\": {\"x\": [1]}}}", OWN, "{\"x\": [1]}", 0 },
		{ "{\"application\": {\"10\": {\"a\": 5}, \"10\": {\"e\": 6}}}",
		  "{\"a\": 1, \"b\": {\"c\": 2}, \"e\": 6}", "", 0 },
		{ "{\"application\": {\"10\": 5, \"x\": {}, \"-1\": {}, \"99999999999\": {}}}", OWN, "", 0 },
		{ "{\"application\": []}", OWN, "", 0 },
		{ "{\"static\": {}}", OWN, "", 0 },
		{ "{\"application\": {\"10\": {\"a\"", OWN, "", 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(window_release) struct window w;

		print_message("  %s\n", cases[i].text);
		make_window(&w);
		put(cases[i].text);
		warnings = 0;
		agent_external_add(path, &w);
		assert_int_equal(warnings, cases[i].warnings);
		assert_metadata(&w, 10, cases[i].ten);
		assert_metadata(&w, 11, cases[i].eleven);
	}
}

static void its_writer_is_gone(void **state)
{
	const struct timespec old[2] = { { .tv_sec = time(NULL) - 400 }, { .tv_sec = time(NULL) - 400 } };
	scoped(buf_release) struct buf out = BUF_INIT(KIB(64));
	scoped(window_release) struct window w;

	(void)state;
	make_window(&w);
	put("{\"static\": {}, \"application\": {\"10\": {\"a\": 9}}}");
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	assert_int_equal(agent_external_read(NULL, path, &out), EXIT_FAILED);
	warnings = 0;
	agent_external_add(path, &w);
	assert_int_equal(warnings, 1);
	assert_non_null(strstr(said, "not written for too long"));
	assert_metadata(&w, 10, OWN);
	assert_int_equal(unlink(path), 0);
	agent_external_add(path, &w);
	assert_int_equal(warnings, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(static_part),
		cmocka_unit_test(of_processes),
		cmocka_unit_test(its_writer_is_gone),
	};
	int fd = mkstemp(path);

	if (fd < 0)
		return 1;
	close(fd);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
