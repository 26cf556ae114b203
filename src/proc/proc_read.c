/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/proc_read.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cur.h"
#include "base/io.h"

#define AUXV_MAX KIB(4)
#define TICKS_PER_SEC 100               /* USER_HZ, the same on every Linux architecture we build for */
#define PF_KTHREAD UINT64_C(0x00200000) /* linux, include/linux/sched.h; unchanged since 2.6 */

/* Field numbers of proc(5), /proc/PID/stat. */
enum { STAT_STATE = 3, STAT_PARENT = 4, STAT_FLAGS = 9, STAT_START = 22 };

int proc_stat_parse(struct str text, struct proc_facts *out)
{
	ptrdiff_t open = str_find(text, '('), close = str_rfind(text, ')'); /* the name may hold both */
	struct proc_facts facts = { 0 };
	uint64_t parent = 0, flags = 0;
	struct str comm, rest, word;

	if (open < 0 || close < open)
		return -EBADMSG;
	comm = str_first(str_skip(text, (size_t)open + 1), MIN((size_t)(close - open - 1), sizeof(facts.comm) - 1));
	if (comm.len)
		memcpy(facts.comm, comm.ptr, comm.len);
	rest = str_skip(text, (size_t)close + 2);
	for (int field = STAT_STATE; field <= STAT_START; field++) {
		int r = 0;

		if (!str_next(&rest, ' ', &word))
			return -EBADMSG;
		if (field == STAT_STATE)
			facts.is_zombie = str_eq(word, STR("Z")) || str_eq(word, STR("X"));
		else if (field == STAT_PARENT)
			r = str_to_u64(word, 0, UINT32_MAX, &parent);
		else if (field == STAT_FLAGS)
			r = str_to_u64(word, 0, UINT32_MAX, &flags);
		else if (field == STAT_START)
			r = str_to_u64(word, 0, UINT64_MAX, &facts.start_ticks);
		if (r < 0)
			return -EBADMSG;
	}
	facts.parent_pid = (uint32_t)parent;
	facts.is_kernel = flags & PF_KTHREAD;
	*out = facts;
	return 0;
}

/* The number in column @index of "Key:\ta\tb\tc", or the last one for index -1; @fallback when there is none. */
static uint32_t column(struct str values, int index, uint32_t fallback)
{
	struct str word;
	uint64_t value = fallback;

	for (int i = 0; str_next(&values, '\t', &word); i++)
		if (i == index || (index < 0 && !values.ptr))
			ignore(str_to_u64(str_trim(word), 0, UINT32_MAX, &value)); /* malformed: the fallback stays */
	return (uint32_t)value;
}

void proc_status_parse(struct str text, struct proc_facts *facts)
{
	struct str line;

	while (str_next(&text, '\n', &line)) {
		if (str_starts(line, STR("Uid:\t"))) {
			facts->uid = column(str_skip(line, 5), 0, facts->uid);
			facts->effective_uid = column(str_skip(line, 5), 1, facts->effective_uid);
		} else if (str_starts(line, STR("NSpid:\t"))) {
			facts->inner_pid = column(str_skip(line, 7), -1, facts->inner_pid);
			return; /* Uid stands before it */
		}
	}
}

int proc_dir_open(const char *host_root, uint32_t pid)
{
	char path[KIB(2)];
	int size = snprintf(path, sizeof(path), "%s/proc/%u", host_root, pid), fd;

	if (size < 0 || (size_t)size >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int proc_facts_read(int dir, uint64_t start_ns, struct buf *scratch, struct proc_facts *out)
{
	struct proc_facts facts;
	int r;

	buf_clear(scratch);
	r = io_read_file_at(dir, "stat", scratch);
	if (r == 0)
		r = proc_stat_parse(buf_str(scratch), &facts);
	if (r < 0)
		return r;
	if (start_ns && facts.start_ticks != start_ns / (NSEC_PER_SEC / TICKS_PER_SEC))
		return -ESRCH;
	*out = facts;
	return 0;
}

void proc_status_read(int dir, struct buf *scratch, struct proc_facts *facts)
{
	buf_clear(scratch);
	if (io_read_file_at(dir, "status", scratch) == 0)
		proc_status_parse(buf_str(scratch), facts);
}

static void closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}

int proc_living_dir(const char *host_root, int dir, uint32_t pid, uint32_t *out_tid)
{
	int fd = openat(dir, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	scoped(closedirp) DIR *tasks = fd < 0 ? NULL : fdopendir(fd);
	uint64_t tid;

	if (!tasks) {
		closep(&fd);
		return -ESRCH;
	}
	for (struct dirent *entry; (entry = readdir(tasks));) {
		int found;

		if (str_to_u64(str_of(entry->d_name), 1, UINT32_MAX, &tid) < 0 || tid == pid)
			continue;
		found = proc_dir_open(host_root, (uint32_t)tid); /* not listed in /proc, but there: map_files too */
		if (found >= 0 && faccessat(fd, entry->d_name, F_OK, 0) == 0) { /* still the thread of this process */
			if (out_tid)
				*out_tid = (uint32_t)tid;
			return found;
		}
		closep(&found);
	}
	return -ESRCH;
}

/* Pairs of words of the machine we run on, AT_NULL behind the last. */
int proc_auxv(int dir, uint64_t type, uint64_t *out)
{
	scoped(buf_release) struct buf text = BUF_INIT(AUXV_MAX);
	int r = io_read_file_at(dir, "auxv", &text);
	struct cur c;

	if (r < 0)
		return r;
	c = cur_of(text.ptr, text.len);
	while (cur_left(&c) >= 16) {
		uint64_t found = cur_le64(&c), value = cur_le64(&c);

		if (found == AT_NULL)
			break;
		if (found != type)
			continue;
		*out = value;
		return 0;
	}
	return -ENODATA;
}

char *proc_link_read(int dir, const char *name)
{
	char target[KIB(3)]; /* a longer one is cut: it is only shown */
	ssize_t size = readlinkat(dir, name, target, sizeof(target));
	struct str s;

	if (size <= 0)
		return NULL;
	s = str_n(target, (size_t)size);
	if (str_ends(s, STR(" (deleted)")))
		s.len -= sizeof(" (deleted)") - 1;
	return str_dup(s);
}

void proc_map_file(uint64_t start, uint64_t end, char out[PROC_MAP_FILE_SIZE])
{
	(void)snprintf(out, PROC_MAP_FILE_SIZE, "map_files/%" PRIx64 "-%" PRIx64, start, end);
}

int proc_open_below(int dir, const char *root, const char *path, bool follow_last)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | (follow_last ? 0U : O_NOFOLLOW),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	scoped(closep) int root_fd = openat(dir, root, O_PATH | O_DIRECTORY | O_CLOEXEC), found = -1;
	struct stat st;

	if (root_fd < 0)
		return -errno;
	found = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	return found < 0 ? -errno : io_open_regular(found, &st);
}
