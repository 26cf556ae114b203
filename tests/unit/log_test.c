/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign text in lines, and a stderr that nobody reads. Each case has a process of its own: the queue is its. */
#include "support.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/log_file.h"
#include "base/safe.h"

static void text_is_made_safe(void **state)
{
	static const struct {
		const char *in, *out, *json;
	} cases[] = {
		{ "plain \xc3\xa9", "plain \xc3\xa9", "\"plain \xc3\xa9\"" },
		{ "a\xc2\x9b"
		  "31m",
		  "a\\u009b31m", "\"a\\u009b31m\"" },
		{ "a\xe2\x80\xae"
		  "b",
		  "a\\u202eb", "\"a\\u202eb\"" },
		{ "a\xe2\x81\xa6\xe2\x80\x8b", "a\\u2066\\u200b", "\"a\\u2066\\u200b\"" },
		{ "\xef\xbb\xbf\xd8\x9c", "\\ufeff\\u061c", "\"\\ufeff\\u061c\"" },
		{ "\xf3\xa0\x81\x81", "\\ue0041", "\"\\udb40\\udc41\"" },
		{ "\x1b[2J\n", "\\x1b[2J\\x0a", "\"\\u001b[2J\\u000a\"" },
		{ "\x9b"
		  "31m",
		  "\\x9b31m",
		  "\"\xef\xbf\xbd"
		  "31m\"" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(KIB(1)), json = BUF_INIT(KIB(1));

		safe_add(&out, str_of(cases[i].in));
		safe_add_json(&json, str_of(cases[i].in));
		assert_string_equal(buf_cstr(&out), cases[i].out);
		assert_string_equal(buf_cstr(&json), cases[i].json);
	}
}

static void passwords_are_left_out(void **state)
{
	static const char *const cases[][2] = {
		{ "http://host:1/a", "http://host:1/a" },
		{ "http://user:secret@host:1/a", "http://***@host:1/a" },
		{ "http://user:se/cr@et@host", "http://***@host" },
		{ "http://user:se cret@host", "http://***@host" },
		{ "user:secret@proxy:3128", "***@proxy:3128" },
		{ "Unsupported proxy syntax in 'user:secret@p': bad", "Unsupported proxy syntax in '***@p': bad" },
		{ "Unsupported proxy in 'x://u:p@h' now", "Unsupported proxy in 'x://***@h' now" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(KIB(1));

		safe_add_url(&out, str_of(cases[i][0]));
		assert_string_equal(buf_cstr(&out), cases[i][1]);
	}
}

/* Runs @body with stderr as a pipe and gives its status; what it wrote when @out. */
static int in_child(void (*body)(void), struct buf *out)
{
	int pipe_fds[2], status;
	pid_t pid;

	assert_int_equal(pipe(pipe_fds), 0);
	pid = fork();
	if (pid == 0) {
		(void)dup2(pipe_fds[1], STDERR_FILENO);
		(void)close(pipe_fds[0]);
		(void)close(pipe_fds[1]);
		alarm(30);
		body();
		log_finish();
		_exit(0);
	}
	assert_true(pid > 0);
	(void)close(pipe_fds[1]);
	if (out)
		assert_int_equal(io_read_fd(pipe_fds[0], out), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)close(pipe_fds[0]);
	return status;
}

static void write_many(void)
{
	uint64_t begin = clock_monotonic_ns(&clock_system);

	if (log_start() < 0)
		_exit(3);
	for (int i = 0; i < 20000; i++)
		log_info("a line that is long enough to fill a pipe in a moment, and then the queue", LOG_U64("n", i));
	if (clock_monotonic_ns(&clock_system) - begin > 5 * NSEC_PER_SEC)
		_exit(4);
	if (!log_dropped())
		_exit(5);
}

static void an_unread_pipe_stops_nobody(void **state)
{
	(void)state;
	assert_int_equal(in_child(write_many, NULL), 0);
}

static void *write_some(void *arg)
{
	for (int i = 0; i < 200; i++)
		log_info("line", LOG_U64("thread", (uintptr_t)arg), LOG_U64("n", i));
	return NULL;
}

static void write_from_threads(void)
{
	pthread_t threads[4];

	if (log_start() < 0 || log_start() < 0) /* twice is fine */
		_exit(3);
	for (uintptr_t i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, write_some, (void *)i))
			_exit(4);
	for (int i = 0; i < 4; i++)
		(void)pthread_join(threads[i], NULL);
}

static void lines_stay_in_order(void **state)
{
	scoped(buf_release) struct buf out = BUF_INIT(MIB(1));
	uint64_t next[4] = { 0 };
	struct str rest, line;

	(void)state;
	assert_int_equal(in_child(write_from_threads, &out), 0);
	rest = buf_str(&out);
	while (rest.len && str_next(&rest, '\n', &line)) {
		unsigned int thread, n;
		char text[128] = "";

		memcpy(text, line.ptr, MIN(line.len, sizeof(text) - 1));
		assert_int_equal(sscanf(text, "hearth: info: line thread=%u n=%u", &thread, &n), 2);
		assert_int_equal(next[thread], n);
		next[thread]++;
	}
	for (int i = 0; i < 4; i++)
		assert_int_equal(next[i], 200);
}

/* The child of a program that logs has no writer: its lines are written, and those of the parent once. */
static void write_and_fork(void)
{
	int status;
	pid_t pid;

	if (log_start() < 0)
		_exit(3);
	log_info("parent");
	pid = fork();
	if (pid == 0) {
		log_info("child");
		_exit(0);
	}
	(void)waitpid(pid, &status, 0);
	log_info("parent again");
}

static void forks_are_fine(void **state)
{
	scoped(buf_release) struct buf out = BUF_INIT(MIB(1));

	(void)state;
	for (int i = 0; i < 20; i++) {
		buf_clear(&out);
		assert_int_equal(in_child(write_and_fork, &out), 0);
		assert_int_equal(out.len,
				 strlen("hearth: info: parent\nhearth: info: child\nhearth: info: parent again\n"));
	}
}

static void read_one(const char *path, unsigned int number, struct buf *out)
{
	scoped(buf_release) struct buf name = BUF_INIT(KIB(1));

	buf_clear(out);
	buf_adds(&name, str_of(path));
	if (number)
		buf_addf(&name, ".%u", number);
	if (io_read_file(buf_cstr(&name), out) < 0)
		buf_clear(out);
}

/* The newest lines are there, in order and whole; the oldest are gone. */
static void a_file_takes_turns(void **state)
{
	char folder[] = "/tmp/hearth-log-XXXXXX", path[64], link[64], line[64];
	scoped(buf_release) struct buf all = BUF_INIT(KIB(4)), one = BUF_INIT(KIB(4));
	struct log_file f;

	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/a/b/log", folder);
	(void)snprintf(link, sizeof(link), "%s/a/link", folder);
	assert_int_equal(log_file_open(path, 100, 2, &f), 0);
	for (int i = 0; i < 20; i++) {
		int size = snprintf(line, sizeof(line), "line %02d of forty bytes, with its end...\n", i);

		assert_int_equal(size, 40);
		log_file_write(&f, line, (size_t)size);
	}
	log_file_release(&f);
	for (unsigned int i = 3; i < 4; i--) {
		read_one(path, i, &one);
		assert_true(one.len <= 100 && (i < 3 || !one.len));
		buf_adds(&all, buf_str(&one));
	}
	assert_int_equal(all.len, 40 * 6);
	for (uint64_t i = 0; i < 6; i++) {
		uint64_t number;

		assert_int_equal(str_to_u64(str_n(all.ptr + 40 * i + 5, 2), 0, 99, &number), 0);
		assert_int_equal(number, 14 + i);
	}
	assert_int_equal(log_file_open(path, 100, 2, &f), 0); /* goes on where it was */
	assert_int_equal(f.size, 80);
	log_file_release(&f);
	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(log_file_open(link, 100, 2, &f), -ELOOP);
	(void)unlink(link);
	for (unsigned int i = 0; i < 3; i++) {
		(void)snprintf(line, sizeof(line), i ? "%s.%u" : "%s", path, i);
		assert_int_equal(unlink(line), 0);
	}
	(void)snprintf(path, sizeof(path), "%s/a/b", folder);
	assert_int_equal(rmdir(path), 0);
	(void)snprintf(path, sizeof(path), "%s/a", folder);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

/* Somebody removes the file; a disk is full in the middle of a line. */
static void a_file_goes_on(void **state)
{
	char folder[] = "/tmp/hearth-log-XXXXXX", path[64], moved[64];
	scoped(buf_release) struct buf text = BUF_INIT(KIB(4));
	struct rlimit all, few = { .rlim_cur = 12 };
	struct log_file f;

	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/log", folder);
	(void)snprintf(moved, sizeof(moved), "%s/moved", folder);
	assert_int_equal(log_file_open(path, 20, 1, &f), 0);
	log_file_write(&f, "lost one\n", 9);
	assert_int_equal(unlink(path), 0);
	log_file_write(&f, "line two\n", 9);
	read_one(path, 0, &text);
	assert_string_equal(buf_cstr(&text), "line two\n");
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
	few.rlim_max = all.rlim_max;
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
	log_file_write(&f, "lost two\n", 9);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
	log_file_write(&f, "line 3\n", 7);
	read_one(path, 0, &text);
	assert_string_equal(buf_cstr(&text), "line two\nline 3\n");
	assert_int_equal(rename(path, moved), 0); /* written to until it is full */
	log_file_write(&f, "line four\n", 10);
	read_one(path, 0, &text);
	assert_string_equal(buf_cstr(&text), "line four\n");
	log_file_release(&f);
	assert_int_equal(unlink(path) | unlink(moved) | rmdir(folder), 0);
}

/* The disk is full for a while: what it cost is counted, and said in the file behind it. */
static void a_full_disk_is_said(void **state)
{
	char folder[] = "/tmp/hearth-log-test-XXXXXX", path[64];
	scoped(buf_release) struct buf text = BUF_INIT(KIB(4));
	struct rlimit all, few = { .rlim_cur = 8 };
	uint64_t before = log_dropped();

	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/log", folder);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
	few.rlim_max = all.rlim_max;
	(void)signal(SIGXFSZ, SIG_IGN);
	log_set_level(LOG_ERROR); /* of stderr */
	assert_int_equal(log_start_file(path, MIB(1), 1), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
	log_info("one that is lost");
	log_finish();
	log_info("another one");
	log_finish();
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
	log_info("one that is there");
	log_finish();
	log_set_level(LOG_INFO);
	assert_int_equal(log_dropped() - before, 2);
	read_one(path, 0, &text);
	assert_string_equal(buf_cstr(&text), "hearth: warning: lines of this log were lost: the file could not be "
					     "written count=2\nhearth: info: one that is there\n");
	assert_int_equal(unlink(path) | rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_made_safe),
		cmocka_unit_test(passwords_are_left_out),
		cmocka_unit_test(an_unread_pipe_stops_nobody),
		cmocka_unit_test(lines_stay_in_order),
		cmocka_unit_test(forks_are_fine),
		cmocka_unit_test(a_file_takes_turns),
		cmocka_unit_test(a_file_goes_on),
		cmocka_unit_test(a_full_disk_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
