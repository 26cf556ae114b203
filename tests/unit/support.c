/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"

struct cur guard_page(const void *bytes, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), room = align_up(size, page);
	uint8_t *at = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(at != MAP_FAILED);
	must(mprotect(at + room, page, PROT_NONE) == 0);
	if (size)
		memcpy(at + room - size, bytes, size);
	return cur_of(at + room - size, size);
}

struct cur guard_page_hex(const char *hex)
{
	size_t size = strlen(hex) / 2;
	uint8_t bytes[2048];

	must(size <= sizeof(bytes) && strlen(hex) % 2 == 0);
	for (size_t i = 0; i < size; i++) {
		uint64_t value;

		must(str_to_hex64(str_n(hex + 2 * i, 2), &value) == 0);
		bytes[i] = (uint8_t)value;
	}
	return guard_page(bytes, size);
}

static _Atomic unsigned long fail_at, calls; /* workers of what is tested allocate, too */
static _Atomic bool failed;

void fail_allocation(unsigned long n)
{
	fail_at = n;
	calls = 0;
	failed = false;
}

bool allocation_failed(void)
{
	return failed;
}

static bool fails_now(void)
{
	if (!fail_at || ++calls != fail_at)
		return false;
	fail_at = 0;
	failed = true;
	return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
	return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails_now() ? NULL : __real_realloc(old, size);
}

void for_each_failing_allocation(int (*body)(void *ctx), void *ctx)
{
	for (unsigned long n = 1;; n++) {
		int r;

		fail_allocation(n);
		r = body(ctx);
		if (!allocation_failed()) {
			fail_allocation(0);
			assert_int_equal(r, 0);
			return;
		}
		assert_true(r == 0 || r == -ENOMEM);
	}
}

bool find_python(const char *version, char *path, size_t size)
{
	const char *home = getenv("HOME");
	char pattern[256];
	glob_t found;
	bool has;

	(void)snprintf(path, size, "/usr/bin/python%s", version);
	if (access(path, X_OK) == 0)
		return true;
	(void)snprintf(pattern, sizeof(pattern), "%s/.pyenv/versions/%s.*/bin/python%s", home ? home : "", version,
		       version);
	has = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc;
	if (has)
		(void)snprintf(path, size, "%s", found.gl_pathv[0]);
	globfree(&found);
	return has;
}

uint64_t simulated_ns(void *self)
{
	return *(const uint64_t *)self;
}

bool opens_map_files(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	char path[64];

	if (fd >= 0)
		close(fd);
	if (at == MAP_FAILED)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)(uintptr_t)at,
		       (unsigned long)(uintptr_t)at + 4096);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	munmap(at, 4096);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}
