/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include "base/io.h"
#include "base/reason.h"

#define SHARE_OF_TOTAL 4
#define LIMIT_LEAST MIB(128)
#define DEPTH_MAX ((UINT32_C(1) << 20) - 64) /* pages and tables take no deeper stacks: TREE_DEPTH_MAX */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SHADOW true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SHADOW true
#endif
#endif
#ifndef HAS_SHADOW
#define HAS_SHADOW false
#endif

static uint64_t read_number(const char *path)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(4));
	uint64_t value;

	if (io_read_file(path, &text) < 0 || str_to_u64(str_trim(buf_str(&text)), 0, UINT64_MAX, &value) < 0)
		return UINT64_MAX; /* "max", or another kind of system */
	return value;
}

/* The smallest memory.max from our control group (version 2) up to the root of what we can see. */
static uint64_t group_limit(void)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
	uint64_t least = UINT64_MAX;
	struct str lines, line, path = STR("");

	if (io_read_file("/proc/self/cgroup", &text) < 0)
		return least;
	for (lines = buf_str(&text); str_next(&lines, '\n', &line);)
		if (str_starts(line, STR("0::")))
			path = str_skip(line, 3);
	for (;;) {
		scoped(buf_release) struct buf name = BUF_INIT(KIB(8));

		buf_addf(&name, "/sys/fs/cgroup" STR_FMT "/memory.max", STR_ARG(path));
		least = MIN(least, read_number(buf_cstr(&name)));
		if (str_rfind(path, '/') < 0)
			return least;
		path = str_first(path, (size_t)str_rfind(path, '/'));
	}
}

uint64_t memory_total(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	uint64_t machine = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : GIB(4);

	return MIN(machine, group_limit());
}

/* RLIMIT_DATA counts private memory that can be written: the heap, and no mapped file. Source: setrlimit(2). */
void memory_limit(uint64_t bytes)
{
	struct rlimit limit;

	if (HAS_SHADOW || getrlimit(RLIMIT_DATA, &limit) < 0)
		return;
	bytes = bytes ? bytes : MAX(memory_total() / SHARE_OF_TOTAL, LIMIT_LEAST);
	limit.rlim_cur = MIN(limit.rlim_max, (rlim_t)bytes);
	ignore(setrlimit(RLIMIT_DATA, &limit)); /* lowering the soft limit cannot fail */
}

static uint64_t granted(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_DATA, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ? 0 : limit.rlim_cur;
}

struct codec_limits memory_codec_limits(void)
{
	return (struct codec_limits){ .depth_max = DEPTH_MAX, .memory_max = granted() / 2 };
}

const char *memory_reason(int r, char room[160])
{
	uint64_t bytes = granted();

	if ((r != -ENOMEM && r != -E2BIG) || !bytes)
		return reason_of(r);
	(void)snprintf(room, 160,
		       "it needs more memory than the %llu MiB that may be used; --memory-limit SIZE allows more",
		       (unsigned long long)(bytes >> 20));
	return room;
}
