/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

static void replaces_and_reads_back(void **state)
{
	char path[] = "/tmp/hearth-io-XXXXXX";
	int fd = mkstemp(path);
	scoped(buf_release) struct buf back = BUF_INIT(KIB(64));
	struct stat st;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(io_replace_file(path, "hello", 5), 0);
	assert_int_equal(io_read_file(path, &back), 0);
	assert_true(str_eq(buf_str(&back), STR("hello")));
	unlink(path);
	assert_int_equal(io_replace_file("/nonexistent-folder/file", "x", 1), -ENOENT);
	assert_int_equal(io_replace_file("/tmp", "x", 1), -EISDIR);
	assert_true(stat("/nonexistent-folder", &st) < 0);
}

static void expect_file(const char *path, const char *wanted)
{
	scoped(buf_release) struct buf back = BUF_INIT(KIB(4));

	assert_int_equal(io_read_file(path, &back), 0);
	assert_string_equal(buf_cstr(&back), wanted);
}

static void links_are_kept(void **state)
{
	char dir[] = "/tmp/hearth-io-XXXXXX", file[64], link[64], temporary[96], other[64], descriptor[64];
	struct stat st;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(file, sizeof(file), "%s/file", dir);
	(void)snprintf(link, sizeof(link), "%s/link", dir);
	(void)snprintf(other, sizeof(other), "%s/other", dir);
	assert_int_equal(io_replace_file(file, "old", 3), 0);
	assert_int_equal(symlink("file", link), 0);
	assert_int_equal(io_replace_file(link, "new", 3), 0);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	expect_file(file, "new");
	/* What /dev/stdout is when a shell has sent it into a file. */
	fd = open(file, O_WRONLY | O_TRUNC | O_CLOEXEC);
	(void)snprintf(descriptor, sizeof(descriptor), "/proc/self/fd/%d", fd);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(io_replace_file(descriptor, "in place", 8), 0);
	expect_file(file, "in place");
	close(fd);
	/* A stranger knows the name of the temporary file and laid a link to something precious there. */
	(void)snprintf(temporary, sizeof(temporary), "%s.tmp-%d", other, (int)getpid());
	assert_int_equal(symlink("file", temporary), 0);
	assert_int_equal(io_replace_file(other, "mine", 4), 0);
	expect_file(other, "mine");
	expect_file(file, "in place");
	assert_int_equal(lstat(other, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	unlink(file);
	unlink(link);
	unlink(other);
	assert_int_equal(rmdir(dir), 0);
}

static void full_disk_is_said(void **state)
{
	(void)state;
	assert_int_equal(io_replace_file("/dev/full", "x", 1), -ENOSPC);
}

static void a_file_at_the_limit_fits(void **state)
{
	char path[] = "/tmp/hearth-io-XXXXXX";
	int fd = mkstemp(path);
	scoped(buf_release) struct buf exact = BUF_INIT(5), tight = BUF_INIT(4);

	(void)state;
	assert_int_equal(io_write_all(fd, "hello", 5), 0);
	close(fd);
	assert_int_equal(io_read_file(path, &exact), 0);
	assert_int_equal(exact.len, 5);
	assert_int_equal(io_read_file(path, &tight), -E2BIG);
	unlink(path);
}

static void only_regular_files_are_opened(void **state)
{
	char path[] = "/tmp/hearth-io-XXXXXX";
	int made = mkstemp(path);
	scoped(closep) int file = open(path, O_PATH | O_CLOEXEC), device = open("/dev/zero", O_PATH | O_CLOEXEC),
			   opened = -1;
	scoped(buf_release) struct buf text = BUF_INIT(KIB(4));
	struct stat st;

	(void)state;
	assert_int_equal(io_write_all(made, "hello", 5), 0);
	close(made);
	opened = io_open_regular(file, &st);
	assert_true(opened >= 0);
	assert_int_equal(st.st_size, 5);
	assert_int_equal(io_read_fd(opened, &text), 0);
	assert_true(str_eq(buf_str(&text), STR("hello")));
	assert_int_equal(io_open_regular(device, &st), -ENODEV);
	buf_clear(&text);
	assert_int_equal(io_read_below("/tmp", path + strlen("/tmp"), &text), 0);
	assert_int_equal(io_read_below(NULL, path, &text), 0);
	assert_true(str_eq(buf_str(&text), STR("hellohello")));
	unlink(path);
	assert_int_equal(io_read_below("", path, &text), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replaces_and_reads_back),
		cmocka_unit_test(links_are_kept),
		cmocka_unit_test(full_disk_is_said),
		cmocka_unit_test(a_file_at_the_limit_fits),
		cmocka_unit_test(only_regular_files_are_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
