/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proc/files.h"

static int temporary(const char *text, char path[32])
{
	int fd;

	memcpy(path, "/tmp/hearth-files-XXXXXX", sizeof("/tmp/hearth-files-XXXXXX"));
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

static int add(struct files *f, int fd, const char *path, uint32_t *id)
{
	struct file_key key;
	struct stat st;
	int copy = dup(fd), r;

	assert_int_equal(fstat(fd, &st), 0);
	file_key_of(&st, &key);
	r = files_add(f, copy, &key, str_of(path), id);
	if (r < 0)
		close(copy);
	return r;
}

static void same_file_same_id(void **state)
{
	char path[32];
	int fd = temporary("one", path);
	struct file_view view;
	struct files *f;
	uint32_t a, b;
	char text[4] = "";

	(void)state;
	assert_int_equal(files_open(4, &f), 0);
	assert_int_equal(add(f, fd, path, &a), 0);
	assert_int_equal(add(f, fd, path, &b), 0);
	assert_int_equal(a, 1);
	assert_int_equal(b, 1);
	unlink(path); /* an open file stays readable */
	assert_int_equal(files_view(f, a, &view), 0);
	assert_int_equal(pread(view.fd, text, 3, 0), 3);
	assert_string_equal(text, "one");
	assert_string_equal(view.path, path);
	file_view_release(&view);
	assert_int_equal(files_view(f, 2, &view), -ENOENT);
	assert_int_equal(files_view(f, 0, &view), -ENOENT);

	assert_int_equal(write(fd, "more", 4),
			 4); /* the content is another now: another file, and the old one is stale */
	assert_int_equal(add(f, fd, path, &b), 0);
	assert_int_equal(b, 2);
	assert_int_equal(files_view(f, a, &view), -ESTALE);
	assert_int_equal(files_count(f), 2);
	files_close(f);
	files_close(NULL);
	close(fd);
}

static void descriptors_are_bounded(void **state)
{
	char paths[5][32], *path = NULL;
	struct file_view view;
	struct files *f;
	uint32_t id;
	int fds[5];

	(void)state;
	assert_int_equal(files_open(2, &f), 0);
	for (int i = 0; i < 5; i++) {
		fds[i] = temporary("x", paths[i]);
		assert_int_equal(add(f, fds[i], paths[i], &id), 0);
	}
	for (uint32_t i = 1; i <= 5; i++)
		assert_int_equal(files_has_fd(f, i), i > 3);
	assert_int_equal(files_view(f, 4, &view), 0); /* used: 5 is the oldest now */
	file_view_release(&view);
	assert_int_equal(files_view(f, 1, &view), 0); /* by its path */
	file_view_release(&view);
	unlink(paths[1]);
	assert_int_equal(files_view(f, 2, &view), -ENOENT);
	assert_int_equal(files_path(f, 2, &path), 0);
	assert_string_equal(path, paths[1]);
	free(path);
	assert_int_equal(add(f, fds[1], paths[1], &id), 0); /* mapped again by somebody: open again */
	assert_int_equal(id, 2);
	assert_true(files_has_fd(f, 2) && files_has_fd(f, 4) && !files_has_fd(f, 5));
	for (int i = 0; i < 5; i++) {
		unlink(paths[i]);
		close(fds[i]);
	}
	files_close(f);
}

static void path_that_is_another_file_now(void **state)
{
	char path[32], other[32];
	int fd = temporary("x", path), other_fd = temporary("x", other);
	struct file_view view;
	struct files *f;
	uint32_t id;

	(void)state;
	assert_int_equal(files_open(0, &f), 0);
	assert_int_equal(add(f, fd, path, &id), 0);
	assert_int_equal(rename(other, path), 0);
	assert_int_equal(files_view(f, id, &view), -ESTALE);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0); /* must not block */
	assert_int_equal(files_view(f, id, &view), -ESTALE);
	unlink(path);
	close(fd);
	close(other_fd);
	files_close(f);
}

/* The library of a container: its path leads nowhere from here, or to another file, but a process has it mapped. */
static void a_mapped_file_is_opened_again(void **state)
{
	struct file_sight seen = { .pid = (uint32_t)getpid() };
	char path[32], other[32], text[6] = "";
	int fd = temporary("mapped", path), other_fd;
	struct file_view view;
	struct files *f;
	uint32_t id, second;
	void *at;

	(void)state;
	if (!opens_map_files())
		skip_because("needs CAP_CHECKPOINT_RESTORE");
	at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(at != MAP_FAILED);
	seen.start = (uintptr_t)at;
	seen.end = seen.start + 4096;
	assert_int_equal(files_open(1, &f), 0);
	assert_int_equal(add(f, fd, path, &id), 0);
	other_fd = temporary("other", other);
	assert_int_equal(add(f, other_fd, other, &second), 0); /* takes the only descriptor */
	assert_false(files_has_fd(f, id));
	assert_int_equal(rename(other, path), 0);
	assert_int_equal(files_view(f, id, &view), -ESTALE);
	files_saw(f, id, &seen);
	files_saw(f, second + 1, &seen); /* no such file */
	assert_int_equal(files_view(f, id, &view), 0);
	assert_int_equal(pread(view.fd, text, 6, 0), 6);
	assert_memory_equal(text, "mapped", 6);
	file_view_release(&view);
	unlink(path);
	assert_int_equal(files_view(f, id, &view), 0);
	file_view_release(&view);
	munmap(at, 4096);
	assert_int_equal(files_view(f, id, &view), -ENOENT); /* nobody has it any more */
	files_close(f);
	close(fd);
	close(other_fd);
}

static void paths_are_below_the_hosts_root(void **state)
{
	char root[] = "/tmp/hearth-root-XXXXXX", path[64];
	struct file_view view;
	struct files *f;
	uint32_t id;
	int fd;

	(void)state;
	if (syscall(SYS_openat2, AT_FDCWD, "/", NULL, 0) < 0 && errno == ENOSYS)
		skip(); /* qemu's emulation of a process lacks it */
	assert_non_null(mkdtemp(root));
	(void)snprintf(path, sizeof(path), "%s/lib.so", root);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(files_open(0, &f), 0);
	assert_int_equal(files_set_host_root(f, root), 0);
	assert_int_equal(add(f, fd, "/lib.so", &id), 0);
	assert_int_equal(files_view(f, id, &view), 0);
	file_view_release(&view);
	files_close(f);
	close(fd);
	unlink(path);
	rmdir(root);
}

static void images_are_told_apart_by_content(void **state)
{
	struct file_view view;
	struct files *f;
	uint32_t a, b, c;

	(void)state;
	assert_int_equal(files_open(1, &f), 0);
	assert_int_equal(files_add_image(f, "abc", 3, STR("[vdso]"), &a), 0);
	assert_int_equal(files_add_image(f, "abd", 3, STR("[vdso]"), &b), 0);
	assert_int_equal(files_add_image(f, "abc", 3, STR("[vdso]"), &c), 0);
	assert_int_equal(a, c);
	assert_int_not_equal(a, b);
	assert_int_equal(files_view(f, b, &view), 0);
	assert_int_equal(view.fd, -1);
	assert_memory_equal(view.image, "abd", 3);
	file_view_release(&view);
	files_close(f);
}

static int add_some(void *ctx)
{
	struct files *f = NULL;
	uint32_t id;
	int r = files_open(2, &f);

	for (uint64_t i = 0; i < 40 && r == 0; i++) {
		struct file_key key = { .device = 1, .inode = i };

		r = files_add(f, -1, &key, STR("/lib/x.so"), &id);
	}
	if (r == 0)
		r = files_add_image(f, "x", 1, STR("[vdso]"), &id);
	if (r == 0)
		r = add(f, *(int *)ctx, "/x", &id);
	files_close(f);
	return r;
}

static void survives_failing_allocations(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	for_each_failing_allocation(add_some, &fd);
	close(fd);
}

static void a_file_that_is_away_is_tried_ever_more_rarely(void **state)
{
	struct file_retry retry = { 0 };
	uint64_t now = NSEC_PER_SEC, wait = 30 * NSEC_PER_SEC;

	(void)state;
	assert_false(file_retry_waits(&retry, now));
	for (int i = 0; i < 8; i++) {
		file_retry_failed(&retry, -ENOENT, now);
		assert_true(file_retry_waits(&retry, now + wait - 1));
		now += wait;
		assert_false(file_retry_waits(&retry, now));
		wait = MIN(2 * wait, 480 * NSEC_PER_SEC);
	}
	file_retry_failed(&retry, -EBADMSG, now);
	assert_false(retry.is_away);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_file_same_id),
		cmocka_unit_test(descriptors_are_bounded),
		cmocka_unit_test(path_that_is_another_file_now),
		cmocka_unit_test(a_mapped_file_is_opened_again),
		cmocka_unit_test(paths_are_below_the_hosts_root),
		cmocka_unit_test(images_are_told_apart_by_content),
		cmocka_unit_test(survives_failing_allocations),
		cmocka_unit_test(a_file_that_is_away_is_tried_ever_more_rarely),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
