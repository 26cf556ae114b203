/* SPDX-License-Identifier: Apache-2.0 */
/* The process table on living processes: children of this test that map and unmap what they are told to. */
#include "support.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "proc/mappings.h"
#include "proc/proc.h"
#include "proc/proc_read.h"

static const char comm[ABI_COMM_SIZE] = "proc_test";

#define PAGE 4096U
#define CHURN 10000
#define A64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

struct world {
	char dir[32];
	struct files *files;
	struct proc_table *table;
	uint64_t now_ns;
};

struct child {
	pid_t pid;
	uint64_t start_ns;
	int fd;
};

/* What a child does on request; the answer is an address. */
enum order {
	LOAD_FILE = 'f',
	LOAD_ANONYMOUS = 'a',
	LOAD_MEMFD = 'm',
	LOAD_MEMFD_ELF = 'e',
	LOAD_ZERO = 'z',
	EXEC = 'x',
	CHROOT = 'c',
	LEADER_EXIT = 'l'
};

static void *map(int fd, size_t size, int flags)
{
	return mmap(NULL, size, PROT_READ | PROT_EXEC, flags, fd, 0);
}

static void *map_memfd(const char *content)
{
	int fd = memfd_create("jit", MFD_CLOEXEC), from = open(content, O_RDONLY | O_CLOEXEC);
	char page[KIB(2)];
	ssize_t n = read(from, page, sizeof(page));

	if (ftruncate(fd, PAGE) < 0 || pwrite(fd, page, (size_t)n, 0) != n)
		_exit(1);
	return map(fd, PAGE, MAP_SHARED);
}

static int answer_fd;

static void *outlive_leader(void *unused)
{
	uint64_t address;

	(void)unused;
	usleep(50000); /* the leader is gone by then */
	address = (uint64_t)(uintptr_t)outlive_leader;
	if (write(answer_fd, &address, sizeof(address)) != sizeof(address))
		_exit(1);
	for (;;)
		pause();
	return NULL;
}

static void *obey(const struct world *w, char order)
{
	char path[64];
	pthread_t thread;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/lib.so", w->dir);
	switch (order) {
	case LOAD_FILE:
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			fd = open("/lib.so", O_RDONLY | O_CLOEXEC); /* in the chroot */
		return map(fd, 2 * PAGE, MAP_PRIVATE);
	case LOAD_ANONYMOUS:
		return map(-1, PAGE, MAP_PRIVATE | MAP_ANONYMOUS);
	case LOAD_MEMFD:
		return map_memfd("/proc/self/status");
	case LOAD_MEMFD_ELF:
		return map_memfd("/proc/self/exe");
	case LOAD_ZERO:
		return map(open("/dev/zero", O_RDWR | O_CLOEXEC), PAGE, MAP_SHARED);
	case CHROOT:
		if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount("none", w->dir, "tmpfs", 0, NULL) < 0 || chdir(w->dir) < 0)
			return NULL;
		fd = open("lib.so", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (write(fd, "\177ELFchroot", 10) != 10 || mkdir("tmp", 01777) < 0 || chroot(".") < 0 || close(fd) < 0)
			return NULL;
		return (void *)1;
	case LEADER_EXIT:
		pthread_create(&thread, NULL, outlive_leader, NULL);
		pthread_exit(NULL);
	case EXEC:
		execl("/bin/sleep", "sleep", "60", NULL);
	}
	_exit(1);
}

static void child_main(const struct world *w, int fd)
{
	char order;

	answer_fd = fd;
	while (read(fd, &order, 1) == 1) {
		uint64_t answer = (uint64_t)(uintptr_t)obey(w, order);

		if (write(fd, &answer, sizeof(answer)) != sizeof(answer))
			break;
	}
	_exit(0);
}

static uint64_t start_of(pid_t pid)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(4));
	struct proc_facts facts;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	assert_int_equal(io_read_file(path, &text), 0);
	assert_int_equal(proc_stat_parse(buf_str(&text), &facts), 0);
	return facts.start_ticks * (NSEC_PER_SEC / 100);
}

static struct child child_start(const struct world *w)
{
	struct child child;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (child.pid == 0) {
		close(ends[0]);
		child_main(w, ends[1]);
	}
	close(ends[1]);
	child.fd = ends[0];
	child.start_ns = start_of(child.pid);
	return child;
}

static void child_tell(const struct child *child, char order)
{
	assert_int_equal(write(child->fd, &order, 1), 1);
}

static uint64_t child_do(const struct child *child, char order)
{
	uint64_t answer = 0;

	child_tell(child, order);
	assert_int_equal(read(child->fd, &answer, sizeof(answer)), sizeof(answer));
	assert_true(answer && answer != (uint64_t)(uintptr_t)MAP_FAILED);
	return answer;
}

static void child_end(const struct child *child)
{
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
	close(child->fd);
}

static void write_lib(const struct world *w, const char *name, size_t size)
{
	scoped(freep) char *bytes = calloc(1, size);
	scoped(closep) int fd = -1;
	char path[64];

	memcpy(bytes, "\177ELF", 4);
	(void)snprintf(path, sizeof(path), "%s/%s", w->dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644); /* in place, as cp does */
	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, bytes, size), 0);
}

static int set_up(void **state)
{
	static const struct proc_config cfg = { .host_root = "", .container_socket = "/nowhere/engine.sock" };
	struct world *w = calloc(1, sizeof(*w));

	memcpy(w->dir, "/tmp/hearth-proc-XXXXXX", sizeof("/tmp/hearth-proc-XXXXXX"));
	assert_non_null(mkdtemp(w->dir));
	assert_int_equal(files_open(64, &w->files), 0);
	assert_int_equal(proc_table_open(&cfg, w->files, &w->table), 0);
	write_lib(w, "lib.so", 2 * PAGE);
	w->now_ns = 1000 * NSEC_PER_SEC;
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;
	char path[64];

	proc_table_close(w->table);
	files_close(w->files);
	(void)snprintf(path, sizeof(path), "%s/lib.so", w->dir);
	unlink(path);
	rmdir(w->dir);
	free(w);
	return 0;
}

static struct proc *get(struct world *w, const struct child *child)
{
	struct proc *p = proc_get(w->table, (uint32_t)child->pid, child->start_ns, 0, comm);

	assert_non_null(p);
	return p;
}

/* A minute later, so that no limit is in the way. */
static struct proc_place place(struct world *w, struct proc *p, uint64_t address)
{
	struct proc_place out;

	w->now_ns += 60 * NSEC_PER_SEC;
	proc_find_place(w->table, p, address, w->now_ns, &out);
	return out;
}

static void late_mappings(void **state)
{
	struct world *w = *state;
	struct child child = child_start(w);
	struct proc *p = get(w, &child);
	struct proc_place at;
	struct file_view view;
	uint64_t code;
	char path[64], *name;

	assert_false(p->unreadable);
	assert_int_equal(p->parent_pid, getpid());
	at = place(w, p, (uint64_t)(uintptr_t)late_mappings); /* forked: our own code stands at the same place */
	assert_int_equal(at.kind, PROC_PLACE_FILE);
	assert_int_equal(at.offset, (uint64_t)(uintptr_t)late_mappings - at.map_start + at.map_offset);

	code = child_do(&child, LOAD_FILE);
	at = place(w, p, code + 17);
	assert_int_equal(at.kind, PROC_PLACE_FILE);
	assert_int_equal(at.offset, 17);
	assert_int_equal(files_path(w->files, at.file_id, &name), 0);
	(void)snprintf(path, sizeof(path), "%s/lib.so", w->dir);
	assert_string_equal(name, path);
	free(name);

	unlink(path);
	assert_int_equal(files_view(w->files, at.file_id, &view), 0); /* opened while it was there */
	file_view_release(&view);
	at = place(w, p, getauxval(AT_SYSINFO_EHDR) + 5);
	assert_int_equal(at.kind, PROC_PLACE_VDSO);
	assert_int_equal(at.offset, 5);
	assert_int_equal(files_view(w->files, at.file_id, &view), 0);
	assert_memory_equal(view.image, "\177ELF", 4);
	file_view_release(&view);
	assert_int_equal(place(w, p, 0xffffffffff600400).kind, PROC_PLACE_VSYSCALL);
	assert_int_equal(place(w, p, 0x10).kind, PROC_PLACE_UNKNOWN);
	assert_int_equal(place(w, p, 0xffff888000000000).kind, PROC_PLACE_UNKNOWN);
	child_end(&child);
}

static void code_without_a_file(void **state)
{
	static const struct {
		const char *name;
		char order;
		enum proc_place_kind want;
	} cases[] = {
		{ "anonymous", LOAD_ANONYMOUS, PROC_PLACE_ANONYMOUS },
		{ "memfd", LOAD_MEMFD, PROC_PLACE_ANONYMOUS },
		{ "memfd that holds a library", LOAD_MEMFD_ELF, PROC_PLACE_FILE },
		{ "/dev/zero", LOAD_ZERO, PROC_PLACE_ANONYMOUS },
	};
	struct world *w = *state;
	struct child child = child_start(w);
	struct proc *p = get(w, &child);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t code = child_do(&child, cases[i].order);

		print_message("  %s\n", cases[i].name);
		assert_int_equal(place(w, p, code).kind, cases[i].want);
	}
	child_end(&child);
}

/* Opens more files than are kept open. */
static void evict_all(struct world *w)
{
	for (uint32_t i = 0; i < 64; i++) {
		struct file_key key = { .device = 1, .inode = i + 1 };
		int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		uint32_t id;

		assert_true(fd >= 0);
		assert_int_equal(files_add(w->files, fd, &key, STR("/many"), &id), 0);
	}
}

/* As a container's library, whose path leads nowhere on the host. */
static void deleted_and_evicted(void **state)
{
	struct world *w = *state;
	struct child first = child_start(w), second = child_start(w);
	struct proc_place at, again;
	struct file_view view;
	char path[64];
	uint64_t code;

	if (!opens_map_files())
		skip_because("needs CAP_CHECKPOINT_RESTORE");
	(void)snprintf(path, sizeof(path), "%s/lib.so", w->dir);
	code = child_do(&first, LOAD_FILE);
	at = place(w, get(w, &first), code);
	assert_int_equal(at.kind, PROC_PLACE_FILE);
	code = child_do(&second, LOAD_FILE);
	again = place(w, get(w, &second), code);
	assert_int_equal(again.file_id, at.file_id);
	unlink(path);
	child_end(&first);
	evict_all(w);
	assert_false(files_has_fd(w->files, at.file_id));
	assert_int_equal(files_view(w->files, at.file_id, &view), 0); /* the second one was seen with it last */
	assert_int_equal(view.key.size, 2 * PAGE);
	file_view_release(&view);
	child_end(&second);
	assert_int_equal(files_view(w->files, at.file_id, &view), -ENOENT);
}

static void deleted_and_replaced(void **state)
{
	struct world *w = *state;
	struct child first = child_start(w), second = child_start(w), third = child_start(w), fourth = child_start(w);
	struct proc_place deleted, renamed, written, old;
	char path[64], other[64];
	struct file_view view;

	(void)snprintf(path, sizeof(path), "%s/lib.so", w->dir);
	(void)snprintf(other, sizeof(other), "%s/new.so", w->dir);
	uint64_t code = child_do(&first, LOAD_FILE);

	unlink(path); /* before anybody looked */
	deleted = place(w, get(w, &first), code);
	assert_int_equal(deleted.kind, PROC_PLACE_FILE);
	assert_int_equal(files_view(w->files, deleted.file_id, &view), 0);
	assert_int_equal(view.key.size, 2 * PAGE);
	file_view_release(&view);

	write_lib(w, "lib.so", 2 * PAGE);
	code = child_do(&second, LOAD_FILE);
	old = place(w, get(w, &second), code);
	write_lib(w, "new.so", 3 * PAGE);
	assert_int_equal(rename(other, path), 0); /* as package managers do */
	code = child_do(&third, LOAD_FILE);
	renamed = place(w, get(w, &third), code);
	assert_int_equal(renamed.kind, PROC_PLACE_FILE);
	assert_true(renamed.file_id != old.file_id && old.file_id != deleted.file_id);
	assert_int_equal(files_view(w->files, old.file_id, &view), 0);
	assert_int_equal(view.key.size, 2 * PAGE);
	file_view_release(&view);

	write_lib(w, "lib.so", 5 * PAGE); /* the same inode */
	code = child_do(&fourth, LOAD_FILE);
	written = place(w, get(w, &fourth), code);
	assert_true(written.file_id != renamed.file_id);
	assert_int_equal(files_view(w->files, renamed.file_id, &view), -ESTALE); /* and not with wrong names */
	child_end(&first);
	child_end(&second);
	child_end(&third);
	child_end(&fourth);
}

static struct abi_process event_of(uint16_t type, const struct child *child, uint64_t time_ns)
{
	return (struct abi_process){
		.header = { .type = type,
			    .version = ABI_VERSION,
			    .size = sizeof(struct abi_process),
			    .time_ns = time_ns },
		.process_start_ns = child->start_ns,
		.pid = (uint32_t)child->pid,
		.parent_pid = (uint32_t)getpid(),
		.comm = "event",
	};
}

static void exec_drops_everything(void **state)
{
	struct world *w = *state;
	struct child child = child_start(w);
	struct proc *p = get(w, &child);
	struct abi_process exec = event_of(ABI_RECORD_EXEC, &child, w->now_ns);
	char exe[64] = "";
	char link[64];

	assert_int_equal(place(w, p, (uint64_t)(uintptr_t)exec_drops_everything).kind, PROC_PLACE_FILE);
	child_tell(&child, EXEC);
	(void)snprintf(link, sizeof(link), "/proc/%d/exe", (int)child.pid);
	for (int i = 0; i < 500 && !strstr(exe, "sleep"); i++) {
		memset(exe, 0, sizeof(exe));
		ignore(readlink(link, exe, sizeof(exe) - 1) < 0); /* looked at again */
		usleep(10000);
	}
	proc_event(w->table, &exec);
	assert_ptr_equal(get(w, &child), p);
	assert_int_equal(p->generation, 1);
	assert_non_null(strstr(p->exe, "sleep"));
	assert_int_equal(place(w, p, (uint64_t)(uintptr_t)exec_drops_everything).kind, PROC_PLACE_UNKNOWN);
	child_end(&child);
}

static void exit_keeps_until_expired(void **state)
{
	struct world *w = *state;
	struct child child = child_start(w);
	struct proc *p = get(w, &child);
	struct abi_process end = event_of(ABI_RECORD_EXIT, &child, 5000);

	child_end(&child);
	proc_event(w->table, &end);
	assert_true(p->exited);
	assert_int_equal(place(w, p, (uint64_t)(uintptr_t)exit_keeps_until_expired).kind, PROC_PLACE_FILE);
	proc_expire(w->table, 5000);
	assert_int_equal(proc_count(w->table), 1);
	proc_expire(w->table, 5001);
	assert_int_equal(proc_count(w->table), 0);
}

static void lost_exit_is_noticed(void **state)
{
	struct world *w = *state;
	struct child child = child_start(w);

	assert_false(get(w, &child)->unreadable);
	child_end(&child);
	proc_expire(w->table, UINT64_MAX);
	assert_int_equal(proc_count(w->table), 0);
}

static void forked_and_gone(void **state)
{
	struct world *w = *state;
	struct child parent = child_start(w), gone = child_start(w);
	struct abi_process fork_event = event_of(ABI_RECORD_FORK, &gone, w->now_ns);
	struct proc *p;

	assert_false(get(w, &parent)->unreadable);
	fork_event.parent_pid = (uint32_t)parent.pid;
	proc_event(w->table, &fork_event);
	child_end(&gone);
	p = get(w, &gone);
	assert_false(p->unreadable); /* it ran what its parent runs */
	assert_int_equal(place(w, p, (uint64_t)(uintptr_t)forked_and_gone).kind, PROC_PLACE_FILE);
	child_end(&parent);
}

static void reused_pid(void **state)
{
	struct world *w = *state;
	struct child old = child_start(w), now = { .pid = 0 };
	uint64_t old_start = old.start_ns;
	pid_t pid = old.pid;
	struct proc *p, *q;

	if (geteuid() != 0)
		skip_because("needs root");
	child_end(&old);
	usleep(20000); /* start times count in hundredths of a second */
	for (int i = 0; i < 200 && now.pid != pid; i++) {
		FILE *last = fopen("/proc/sys/kernel/ns_last_pid", "w");

		if (now.pid)
			child_end(&now);
		assert_non_null(last);
		fprintf(last, "%d", (int)pid - 1);
		fclose(last);
		now = child_start(w);
	}
	assert_int_equal(now.pid, pid);
	old.start_ns = old_start;
	p = get(w, &old); /* a late record of the old one */
	assert_true(p->unreadable && p->exited);
	assert_int_equal(place(w, p, (uint64_t)(uintptr_t)reused_pid).kind, PROC_PLACE_UNKNOWN);
	q = get(w, &now);
	assert_true(p != q && !q->unreadable && !q->exited);
	assert_int_equal(place(w, q, (uint64_t)(uintptr_t)reused_pid).kind, PROC_PLACE_FILE);
	proc_expire(w->table, UINT64_MAX);
	assert_int_equal(proc_count(w->table), 1);
	assert_ptr_equal(get(w, &now), q);
	child_end(&now);
}

/* Takes or gives back the right to open map_files. */
static void set_map_files_right(bool wanted)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2];
	uint32_t admin = 1U << CAP_SYS_ADMIN, restore = 1U << (CAP_CHECKPOINT_RESTORE - 32);

	assert_int_equal(syscall(SYS_capget, &header, caps), 0);
	caps[0].effective = wanted ? caps[0].effective | admin : caps[0].effective & ~admin;
	caps[1].effective = wanted ? caps[1].effective | restore : caps[1].effective & ~restore;
	assert_int_equal(syscall(SYS_capset, &header, caps), 0);
}

static void other_root(void **state)
{
	struct world *w = *state;
	struct child child = child_start(w);
	struct file_view view;
	struct proc_place at;
	char bytes[11] = "", path[128];
	uint64_t code;
	struct proc *p;
	int fd;

	if (geteuid() != 0 || !opens_map_files())
		skip_because("needs root with its capabilities");
	child_do(&child, CHROOT);
	code = child_do(&child, LOAD_FILE);
	set_map_files_right(false); /* the way through the process's root */
	p = get(w, &child);
	at = place(w, p, code);
	set_map_files_right(true);
	assert_int_equal(at.kind, PROC_PLACE_FILE);
	assert_int_equal(files_view(w->files, at.file_id, &view), 0);
	assert_int_equal(pread(view.fd, bytes, 10, 0), 10);
	assert_string_equal(bytes, "\177ELFchroot");
	file_view_release(&view);

	(void)snprintf(path, sizeof(path), "/proc/%d/root/tmp/perf-%d.map", (int)child.pid, (int)child.pid);
	assert_int_equal(symlink("/lib.so", path), 0);
	assert_int_equal(proc_perf_map_fd(w->table, p), -1); /* a link is not followed */
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	usleep(1100000); /* it is looked for once a second */
	assert_int_equal(proc_perf_map_fd(w->table, p), -1);
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(write(fd, "1 2 f\n", 6), 6);
	usleep(1100000);
	assert_int_equal(futimens(fd, (struct timespec[2]){ { .tv_sec = 1 }, { .tv_sec = 1 } }), 0);
	assert_int_equal(proc_perf_map_fd(w->table, p), -1); /* left behind by an earlier process of this pid */
	usleep(1100000);
	assert_int_equal(futimens(fd, NULL), 0);
	assert_true(proc_perf_map_fd(w->table, p) >= 0);
	close(fd);
	child_end(&child);
}

static void leader_exits(void **state)
{
	struct world *w = *state;
	struct child child = child_start(w);
	uint64_t code = child_do(&child, LEADER_EXIT);
	struct proc *p = get(w, &child);

	assert_false(p->unreadable || p->exited);
	assert_non_null(p->exe);
	assert_int_equal(place(w, p, code).kind, PROC_PLACE_FILE);
	child_end(&child);
}

static void rescans_are_limited(void **state)
{
	struct world *w = *state;
	struct child child = child_start(w);
	struct proc *p = get(w, &child);
	struct proc_place at;
	uint64_t code;

	(void)place(w, p, 0x10000); /* nothing there: one reading for nothing */
	code = child_do(&child, LOAD_FILE);
	proc_find_place(w->table, p, code, w->now_ns + 99 * NSEC_PER_MSEC, &at);
	assert_int_equal(at.kind, PROC_PLACE_UNKNOWN);
	/* Then it is read again, or later by twenty times what the first reading took (a sanitizer makes that long). */
	for (uint64_t ms = 101; ms < 4900 && at.kind != PROC_PLACE_FILE; ms += 100)
		proc_find_place(w->table, p, code, w->now_ns + ms * NSEC_PER_MSEC, &at);
	assert_int_equal(at.kind, PROC_PLACE_FILE);
	child_end(&child);
}

/* Of a program that frees code all the time: an address that is not mapped, each four seconds. Return: how many of them
 * it took until @code was known. */
static int misses_until(struct world *w, struct proc *p, uint64_t code)
{
	struct proc_place at = { 0 };
	int count = 0;

	while (at.kind == PROC_PLACE_UNKNOWN && count++ < 15) {
		w->now_ns += 4 * NSEC_PER_SEC;
		proc_find_place(w->table, p, code, w->now_ns, &at);
		if (at.kind == PROC_PLACE_UNKNOWN)
			proc_find_place(w->table, p, 0x10000, w->now_ns, &at);
	}
	return count;
}

static void useful_rescans_come_soon(void **state)
{
	struct world *w = *state;
	struct child child = child_start(w);
	struct proc *p = get(w, &child);
	uint64_t code;

	assert_int_equal(misses_until(w, p, 0x10000), 16);
	code = child_do(&child, LOAD_FILE);
	assert_true(misses_until(w, p, code) > 1);
	code = child_do(&child, LOAD_ANONYMOUS);
	w->now_ns += NSEC_PER_SEC; /* what was found last was worth it; a sanitizer's twenty readings are shorter */
	assert_int_equal(misses_until(w, p, code), 1);
	child_end(&child);
}

static void what_is_mapped_is_found_soon(void **state)
{
	struct world *w = *state;
	struct child child = child_start(w);
	struct proc *p = get(w, &child);
	uint64_t code;

	usleep(2100000); /* it is young no more */
	assert_int_equal(misses_until(w, p, 0x10000), 16);
	code = child_do(&child, LOAD_FILE);
	assert_false(proc_reread(w->table, p, code, false, w->now_ns + 4 * NSEC_PER_SEC));
	assert_true(proc_reread(w->table, p, code, true, w->now_ns + 4 * NSEC_PER_SEC));
	w->now_ns += 8 * NSEC_PER_SEC;
	for (int i = 0; i < 10; i++, w->now_ns += 2 * NSEC_PER_SEC) /* freed before it is looked for */
		assert_false(proc_reread(w->table, p, 0x10000, true, w->now_ns));
	code = child_do(&child, LOAD_ANONYMOUS);
	assert_true(proc_reread(w->table, p, code, true, w->now_ns + 2 * NSEC_PER_SEC));
	child_end(&child);
}

static void looks_sooner_when_asked(void **state)
{
	struct world *w = *state;
	struct child child = child_start(w);
	struct proc *p = get(w, &child);
	uint64_t soon_ns = 10 * NSEC_PER_SEC; /* longer than any sanitizer makes twenty readings */

	proc_look_soon(p, w->now_ns, soon_ns);
	proc_look_soon(p, w->now_ns, 2 * soon_ns); /* asks for less */
	assert_false(proc_refresh(w->table, p, w->now_ns + soon_ns - 1));
	assert_true(proc_refresh(w->table, p, w->now_ns + soon_ns));
	assert_false(proc_refresh(w->table, p, w->now_ns + 2 * soon_ns)); /* once; then each half a minute */
	proc_look_soon(p, w->now_ns + 2 * soon_ns, soon_ns);
	assert_true(proc_refresh(w->table, p, w->now_ns + 3 * soon_ns));
	assert_true(proc_refresh(w->table, p, w->now_ns + 6 * soon_ns));
	child_end(&child);
}

/* A listener without room is told after 1, 2, 4 ... 30 s; readings in between do not make that longer. */
static void listeners_without_room_look_ever_later(void **state)
{
	static const uint64_t delays_s[] = { 1, 2, 4, 8, 16, 30, 30 };
	const uint64_t late_ns = 10 * NSEC_PER_SEC; /* longer than any sanitizer makes twenty readings */
	struct world *w = *state;
	struct child child = child_start(w);
	struct proc *p = get(w, &child);
	struct proc_again again = { 0 };

	assert_false(proc_refresh(w->table, p, w->now_ns));
	for (size_t i = 0; i < ARRAY_SIZE(delays_s); i++) {
		proc_look_again(p, &again, w->now_ns);
		proc_look_again(p, &again, w->now_ns + NSEC_PER_MSEC);
		w->now_ns += delays_s[i] * NSEC_PER_SEC;
		assert_int_equal(again.due_ns, w->now_ns);
		if (delays_s[i] * NSEC_PER_SEC >= late_ns)
			assert_false(proc_refresh(w->table, p, w->now_ns - 1));
		assert_true(proc_refresh(w->table, p, w->now_ns + late_ns));
	}
	again = (struct proc_again){ 0 };
	proc_look_again(p, &again, w->now_ns);
	assert_int_equal(again.due_ns, w->now_ns + NSEC_PER_SEC);
	child_end(&child);
}

static void want_sooner(void *ctx, struct proc *p)
{
	const struct world *w = ctx;

	proc_look_soon(p, w->now_ns, 10 * NSEC_PER_SEC);
}

/* Whoever is told of the mappings may have no room for them. */
static void listeners_look_sooner(void **state)
{
	struct world w = *(struct world *)*state;
	const struct proc_config cfg = { .host_root = "", .mapped = want_sooner, .ctx = &w };
	struct child child = child_start(&w);
	struct proc *p;

	assert_int_equal(proc_table_open(&cfg, w.files, &w.table), 0);
	p = get(&w, &child);
	assert_false(proc_refresh(w.table, p, w.now_ns));
	for (int i = 0; i < 2; i++) {
		w.now_ns += 10 * NSEC_PER_SEC;
		assert_false(proc_refresh(w.table, p, w.now_ns - 1));
		assert_true(proc_refresh(w.table, p, w.now_ns));
	}
	proc_table_close(w.table);
	child_end(&child);
}

static size_t open_descriptors(void)
{
	size_t count = 0;

	for (int fd = 0; fd < 4096; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void churn_round(struct world *w)
{
	char name[] = "true", *argv[] = { name, NULL };
	struct child child = { .fd = -1 };
	struct abi_process event;

	assert_int_equal(posix_spawn(&child.pid, "/bin/true", NULL, NULL, argv, NULL), 0);
	child.start_ns = start_of(child.pid);
	event = event_of(ABI_RECORD_FORK, &child, w->now_ns);
	proc_event(w->table, &event);
	event = event_of(ABI_RECORD_EXEC, &child, w->now_ns);
	proc_event(w->table, &event);
	(void)place(w, get(w, &child), 0x400000);
	waitpid(child.pid, NULL, 0);
	event = event_of(ABI_RECORD_EXIT, &child, w->now_ns);
	proc_event(w->table, &event);
	proc_expire(w->table, w->now_ns);
}

static void churn(void **state)
{
	struct world *w = *state;
	size_t descriptors, files, processes, bytes;
	struct child copy = child_start(w);

	/* Until it has its own memory an exec shows its parent's: the libraries of this program are known from here on.
	 */
	(void)place(w, get(w, &copy), 0x400000);
	child_end(&copy);
	for (int i = 0; i < CHURN / 10; i++)
		churn_round(w);
	descriptors = open_descriptors();
	files = files_count(w->files);
	processes = proc_count(w->table);
	bytes = mallinfo2().uordblks;
	for (int i = 0; i < CHURN; i++)
		churn_round(w);
	/* What was read of a program that is gone by then stands there once more for each file, without its size. */
	assert_in_range(files_count(w->files), 0, 2 * files + 4);
	assert_true(open_descriptors() <= descriptors + (files_count(w->files) - files));
	assert_true(proc_count(w->table) <= processes + 1);
	assert_true(mallinfo2().uordblks <= bytes + KIB(64));
	print_message("  %zu processes, %zu files, %zu descriptors, %zu bytes; before %zu, %zu, %zu, %zu\n",
		      proc_count(w->table), files_count(w->files), open_descriptors(), (size_t)mallinfo2().uordblks,
		      processes, files, descriptors, bytes);
}

static void kernel_thread(void **state)
{
	struct world *w = *state;
	struct child kthreadd = { .pid = 2 }, idle = { .pid = 0 };
	struct proc *p = get(w, &kthreadd);

	if (strcmp(p->comm, "proc_test") || p->unreadable)
		skip_because("a pid namespace of its own has no kernel threads");
	assert_true(p->is_kernel);
	assert_true(get(w, &idle)->is_kernel);
}

/* A machine in a folder. */
static const char *const folder_files[] = { "stat", "status", "cgroup", "maps" };

static void write_at(const char *dir, int pid, const char *name, const char *text)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/proc/%d", dir, pid);
	assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
	(void)snprintf(path, sizeof(path), "%s/proc/%d/%s", dir, pid, name);
	assert_int_equal(io_replace_file(path, text, strlen(text)), 0);
}

static void folder_make(char *dir)
{
	char path[128];

	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/proc", dir);
	assert_int_equal(mkdir(path, 0755), 0);
}

static void folder_remove(const char *dir)
{
	char path[128];

	for (int pid = 76; pid <= 77; pid++) {
		for (size_t i = 0; i < ARRAY_SIZE(folder_files); i++) {
			(void)snprintf(path, sizeof(path), "%s/proc/%d/%s", dir, pid, folder_files[i]);
			unlink(path);
		}
		(void)snprintf(path, sizeof(path), "%s/proc/%d", dir, pid);
		rmdir(path);
	}
	(void)snprintf(path, sizeof(path), "%s/proc", dir);
	rmdir(path);
	rmdir(dir);
}

static int one_of_a_folder(void *ctx)
{
	struct proc_config cfg = { .host_root = ctx, .container_socket = "/nowhere.sock" };
	struct proc_table *t = NULL;
	struct files *f = NULL;
	struct proc_place at;
	struct proc *p;
	int r = files_open(4, &f);

	if (r == 0)
		r = proc_table_open(&cfg, f, &t);
	if (r == 0) {
		p = proc_get(t, 77, 50 * NSEC_PER_SEC, 0, comm);
		r = p ? 0 : -ENOMEM;
	}
	if (r == 0 && !allocation_failed()) {
		assert_string_equal(p->container_id, A64);
		assert_string_equal(p->container, "0123456789ab"); /* the engine does not answer */
		assert_int_equal(proc_perf_map_fd(t, p), -1);      /* there is none, but its name was asked for */
		assert_int_equal(p->inner_pid, 5);
		proc_find_place(t, p, 0x1800, NSEC_PER_SEC, &at);
		if (!allocation_failed()) {
			assert_int_equal(at.kind, PROC_PLACE_FILE);
			assert_int_equal(at.offset, 0x3800);
		}
	}
	proc_table_close(t);
	files_close(f);
	return allocation_failed() ? -ENOMEM : r;
}

static void container_and_failing_allocations(void **state)
{
	char dir[] = "/tmp/hearth-host-XXXXXX";

	(void)state;
	folder_make(dir);
	write_at(dir, 77, "stat", "77 (web) R 3 7 3 0 7 4 1 0 0 0 0 0 0 0 20 0 1 0 5000 1\n");
	write_at(dir, 77, "status", "NSpid:\t77\t5\n");
	write_at(dir, 77, "cgroup", "0::/docker/" A64 "\n");
	write_at(dir, 77, "maps", "1000-2000 r-xp 00003000 00:10 9 /lib/gone.so\n2000-3000 rw-p 0 00:00 0 \nrubbish\n");
	assert_int_equal(one_of_a_folder(dir), 0);
	for_each_failing_allocation(one_of_a_folder, dir);
	folder_remove(dir);
}

static void assert_placed_in(struct proc_table *t, struct files *f, struct proc *p, const char *wanted)
{
	struct proc_place at;
	char *path = NULL;

	proc_find_place(t, p, 0x1800, NSEC_PER_SEC, &at);
	assert_int_equal(at.kind, PROC_PLACE_FILE);
	assert_int_equal(files_path(f, at.file_id, &path), 0);
	assert_string_equal(path, wanted);
	free(path);
}

/* /proc shows the new program when a sample of the old one is read: the fork tells whose code that was. */
static void a_sample_from_before_the_exec(void **state)
{
	struct proc_config cfg = { .container_socket = "/nowhere.sock" };
	struct child child = { .pid = 77, .start_ns = 50 * NSEC_PER_SEC };
	struct abi_process fork_event = event_of(ABI_RECORD_FORK, &child, 10),
			   exec = event_of(ABI_RECORD_EXEC, &child, 20);
	char dir[] = "/tmp/hearth-host-XXXXXX";
	struct proc_table *t = NULL;
	struct files *f = NULL;
	struct proc *p;

	(void)state;
	folder_make(dir);
	write_at(dir, 76, "stat", "76 (make) R 3 7 3 0 7 4 1 0 0 0 0 0 0 0 20 0 1 0 4000 1\n");
	write_at(dir, 76, "maps", "1000-2000 r-xp 00003000 00:10 8 /bin/make\n");
	write_at(dir, 77, "stat", "77 (cc) R 76 7 3 0 7 4 1 0 0 0 0 0 0 0 20 0 1 0 5000 1\n");
	write_at(dir, 77, "maps", "1000-2000 r-xp 00003000 00:10 9 /bin/cc\n");
	cfg.host_root = dir;
	assert_int_equal(files_open(4, &f), 0);
	assert_int_equal(proc_table_open(&cfg, f, &t), 0);
	assert_placed_in(t, f, proc_get(t, 76, 40 * NSEC_PER_SEC, 0, comm), "/bin/make");
	fork_event.parent_pid = 76;
	proc_event(t, &fork_event);
	p = proc_get(t, 77, 50 * NSEC_PER_SEC, 0, comm);
	assert_placed_in(t, f, p, "/bin/make");
	proc_event(t, &exec);
	assert_ptr_equal(proc_get(t, 77, 50 * NSEC_PER_SEC, 0, comm), p);
	assert_placed_in(t, f, p, "/bin/cc");
	proc_table_close(t);
	files_close(f);
	folder_remove(dir);
}

/* Its mappings were read when its child was sampled; its own samples come later. */
static void a_parent_that_was_read_before(void **state)
{
	struct proc_config cfg = { .container_socket = "/nowhere.sock" };
	struct child parent = { .pid = 76, .start_ns = 40 * NSEC_PER_SEC },
		     child = { .pid = 77, .start_ns = 50 * NSEC_PER_SEC };
	struct abi_process exec = event_of(ABI_RECORD_EXEC, &parent, 5),
			   fork_event = event_of(ABI_RECORD_FORK, &child, 10);
	char dir[] = "/tmp/hearth-host-XXXXXX";
	struct proc_table *t = NULL;
	struct files *f = NULL;

	(void)state;
	folder_make(dir);
	write_at(dir, 76, "stat", "76 (make) R 3 7 3 0 7 4 1 0 0 0 0 0 0 0 20 0 1 0 4000 1\n");
	write_at(dir, 76, "maps", "1000-2000 r-xp 00003000 00:10 8 /bin/make\n");
	write_at(dir, 76, "cgroup", "0::/system.slice/build.service\n");
	cfg.host_root = dir;
	assert_int_equal(files_open(4, &f), 0);
	assert_int_equal(proc_table_open(&cfg, f, &t), 0);
	proc_event(t, &exec);
	fork_event.parent_pid = 76;
	proc_event(t, &fork_event);
	for (int i = 0; i < 2; i++) {
		const struct child *c = i ? &parent : &child;
		struct proc *p = proc_get(t, (uint32_t)c->pid, c->start_ns, 0, comm);

		assert_non_null(p);
		assert_string_equal(p->service ? p->service : "none", "build");
		assert_int_equal(p->service_kind, WORKLOAD_UNIT);
	}
	proc_table_close(t);
	files_close(f);
	folder_remove(dir);
}

/* The exit record of 76 was lost, and nobody samples what runs under its pid now. */
static void a_pid_that_was_taken_again(void **state)
{
	struct proc_config cfg = { .container_socket = "/nowhere.sock" };
	char dir[] = "/tmp/hearth-host-XXXXXX";
	struct proc_table *t = NULL;
	struct files *f = NULL;

	(void)state;
	folder_make(dir);
	write_at(dir, 76, "stat", "76 (make) R 3 7 3 0 7 4 1 0 0 0 0 0 0 0 20 0 1 0 4000 1\n");
	write_at(dir, 77, "stat", "77 (cc) R 76 7 3 0 7 4 1 0 0 0 0 0 0 0 20 0 1 0 5000 1\n");
	cfg.host_root = dir;
	assert_int_equal(files_open(4, &f), 0);
	assert_int_equal(proc_table_open(&cfg, f, &t), 0);
	assert_non_null(proc_get(t, 76, 40 * NSEC_PER_SEC, 0, comm));
	assert_non_null(proc_get(t, 77, 50 * NSEC_PER_SEC, 0, comm));
	write_at(dir, 76, "stat", "76 (ls) R 3 7 3 0 7 4 1 0 0 0 0 0 0 0 20 0 1 0 6000 1\n");
	proc_expire(t, UINT64_MAX);
	assert_int_equal(proc_count(t), 1);
	assert_false(proc_get(t, 77, 50 * NSEC_PER_SEC, 0, comm)->exited);
	proc_table_close(t);
	files_close(f);
	folder_remove(dir);
}

/* An entry that is kept through an exec, long after it was made. */
static void is_young_after_its_exec(void **state)
{
	struct proc_config cfg = { .container_socket = "/nowhere.sock" };
	struct child child = { .pid = 77, .start_ns = 50 * NSEC_PER_SEC };
	struct abi_process exec = event_of(ABI_RECORD_EXEC, &child, 20);
	char dir[] = "/tmp/hearth-host-XXXXXX";
	struct proc_table *t = NULL;
	struct files *f = NULL;
	struct proc *p;

	(void)state;
	folder_make(dir);
	write_at(dir, 77, "stat", "77 (cc) R 76 7 3 0 7 4 1 0 0 0 0 0 0 0 20 0 1 0 5000 1\n");
	write_at(dir, 77, "maps", "1000-2000 r-xp 00003000 00:10 9 /bin/cc\n");
	cfg.host_root = dir;
	assert_int_equal(files_open(4, &f), 0);
	assert_int_equal(proc_table_open(&cfg, f, &t), 0);
	p = proc_get(t, 77, child.start_ns, 0, comm);
	usleep(2100000); /* it is young no more */
	proc_event(t, &exec);
	assert_ptr_equal(proc_get(t, 77, child.start_ns, 0, comm), p);
	write_at(dir, 77, "maps", "1000-2000 r-xp 00003000 00:10 8 /bin/loaded\n");
	proc_reread_young(t, p, clock_monotonic_ns(&clock_system) + NSEC_PER_SEC);
	assert_placed_in(t, f, p, "/bin/loaded");
	proc_table_close(t);
	files_close(f);
	folder_remove(dir);
}

struct told {
	uint32_t pid;
	int count;
};

static void note_told(void *ctx, struct proc *p)
{
	struct told *told = ctx;

	told->count += p->pid == told->pid;
}

/* Whoever looks for runtimes hears of a parent at its own first sample, by its mappings of that moment. */
static void a_parent_is_told_at_its_own_sample(void **state)
{
	struct told told = { .pid = 76 };
	struct proc_config cfg = { .container_socket = "/nowhere.sock", .mapped = note_told, .ctx = &told };
	struct child parent = { .pid = 76, .start_ns = 40 * NSEC_PER_SEC },
		     child = { .pid = 77, .start_ns = 50 * NSEC_PER_SEC };
	struct abi_process exec = event_of(ABI_RECORD_EXEC, &parent, 5),
			   fork_event = event_of(ABI_RECORD_FORK, &child, 10);
	char dir[] = "/tmp/hearth-host-XXXXXX";
	struct proc_table *t = NULL;
	struct files *f = NULL;
	struct proc *p;

	(void)state;
	folder_make(dir);
	write_at(dir, 76, "stat", "76 (make) R 3 7 3 0 7 4 1 0 0 0 0 0 0 0 20 0 1 0 4000 1\n");
	write_at(dir, 76, "maps", "1000-2000 r-xp 00003000 00:10 8 /bin/old\n");
	cfg.host_root = dir;
	assert_int_equal(files_open(4, &f), 0);
	assert_int_equal(proc_table_open(&cfg, f, &t), 0);
	proc_event(t, &exec);
	fork_event.parent_pid = 76;
	proc_event(t, &fork_event);
	assert_placed_in(t, f, proc_get(t, 77, child.start_ns, 0, comm), "/bin/old"); /* reads the parent, too */
	write_at(dir, 76, "maps", "1000-2000 r-xp 00003000 00:10 9 /bin/new\n");
	told.count = 0;
	p = proc_get(t, 76, parent.start_ns, 0, comm);
	assert_int_equal(told.count, 1);
	assert_false(proc_refresh(t, p, 1)); /* nor is it read once more */
	assert_placed_in(t, f, p, "/bin/new");
	told.count = 0;
	assert_ptr_equal(proc_get(t, 76, parent.start_ns, 0, comm), p);
	assert_int_equal(told.count, 0);
	proc_table_close(t);
	files_close(f);
	folder_remove(dir);
}

/* A child that ended between the reading of its name and of its mappings: what was read first is not lost. */
static int one_half_gone(void *ctx)
{
	struct proc_config cfg = { .host_root = ctx };
	struct abi_process forked = { .header = { .type = ABI_RECORD_FORK, .time_ns = 9 },
				      .pid = 78,
				      .parent_pid = 77,
				      .process_start_ns = 50 * NSEC_PER_SEC };
	struct proc_table *t = NULL;
	struct files *f = NULL;
	struct proc *p;
	int r = files_open(4, &f);

	if (r == 0)
		r = proc_table_open(&cfg, f, &t);
	if (r == 0) {
		(void)proc_get(t, 77, 50 * NSEC_PER_SEC, 0, comm);
		proc_event(t, &forked);
		p = proc_get(t, 78, 50 * NSEC_PER_SEC, 0, comm);
		if (!allocation_failed()) {
			assert_false(p->unreadable);
			assert_string_equal(p->exe, "/child"); /* what it said of itself before it was gone */
			assert_string_equal(p->container, "0123456789ab");
		}
	}
	proc_table_close(t);
	files_close(f);
	return allocation_failed() ? -ENOMEM : r;
}

static void write_process(const char *dir, int pid, const char *maps, const char *exe)
{
	const char *const files[][2] = { { "stat", "77 (web) R 77 7 3 0 7 4 1 0 0 0 0 0 0 0 20 0 1 0 5000 1\n" },
					 { "status", "NSpid:\t77\t5\n" },
					 { "cgroup", "0::/docker/" A64 "\n" },
					 { "maps", maps } };
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/proc/%d", dir, pid);
	assert_int_equal(mkdir(path, 0755), 0);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		(void)snprintf(path, sizeof(path), "%s/proc/%d/%s", dir, pid, files[i][0]);
		assert_int_equal(io_replace_file(path, files[i][1], strlen(files[i][1])), 0);
	}
	(void)snprintf(path, sizeof(path), "%s/proc/%d/exe", dir, pid);
	assert_int_equal(symlink(exe, path), 0);
}

static void note_end(void *ctx, const struct proc *p)
{
	*(uint64_t *)ctx = p->exit_ns;
}

static void programs_begin_with_exec(void **state)
{
	uint64_t ended_ns = 0;
	const struct proc_config cfg = { .host_root = "", .recorded = true, .ended = note_end, .ctx = &ended_ns };
	struct abi_process event = {
		.header = { .type = ABI_RECORD_EXEC, .time_ns = 1000 }, .pid = 76, .exec_id = 2, .process_start_ns = 900
	};
	struct proc_table *t;
	struct files *f;

	(void)state;
	assert_int_equal(files_open(4, &f), 0);
	assert_int_equal(proc_table_open(&cfg, f, &t), 0);
	assert_int_equal(proc_get(t, 76, 900, 1, comm)->born_ns, 0);
	proc_event(t, &event);
	assert_int_equal(ended_ns, 1000); /* the program before, at the exec and not when its record is read */
	assert_int_equal(proc_get(t, 76, 900, 2, comm)->born_ns, 1000);
	event = (struct abi_process){ .header = { .type = ABI_RECORD_FORK, .time_ns = 2000 },
				      .pid = 77,
				      .exec_id = 2,
				      .parent_pid = 76,
				      .process_start_ns = 2000 };
	proc_event(t, &event);
	assert_int_equal(proc_get(t, 77, 2000, 2, comm)->born_ns, 1000); /* it runs the same program */
	event.parent_pid = 3;
	event.pid = 78;
	proc_event(t, &event);
	assert_int_equal(proc_get(t, 78, 2000, 2, comm)->born_ns, 0); /* nobody knows since when */
	event = (struct abi_process){ .header = { .type = ABI_RECORD_EXIT, .time_ns = 2500 },
				      .pid = 77,
				      .exec_id = 2,
				      .process_start_ns = 2000 };
	proc_event(t, &event);
	assert_int_equal(ended_ns, 2500);
	proc_table_close(t);
	files_close(f);
}

static void put_file(const char *dir, const char *name, struct str text)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/proc/77/%s", dir, name);
	assert_int_equal(io_replace_file(path, text.ptr, text.len), 0);
}

static void assert_service(const char *dir, const struct service_rules *rules, const char *name,
			   enum workload_kind kind)
{
	const struct proc_config cfg = { .host_root = dir,
					 .container_socket = "/nowhere.sock",
					 .service_rules = rules };
	struct proc_table *t;
	struct files *f;
	struct proc *p;

	assert_int_equal(files_open(4, &f), 0);
	assert_int_equal(proc_table_open(&cfg, f, &t), 0);
	p = proc_get(t, 77, 50 * NSEC_PER_SEC, 0, comm);
	assert_string_equal(p->service, name);
	assert_int_equal(p->service_kind, kind);
	proc_table_close(t);
	files_close(f);
}

/* What a container begins with ("runc init") has none of its environment; its program, after the exec, has. */
static void assert_pod_after_exec(const char *dir)
{
	const struct proc_config cfg = { .host_root = dir, .container_socket = "/nowhere.sock" };
	struct proc_table *t;
	struct files *f;

	put_file(dir, "environ", STR("PATH=/bin\0"));
	assert_int_equal(files_open(4, &f), 0);
	assert_int_equal(proc_table_open(&cfg, f, &t), 0);
	assert_null(proc_get(t, 77, 50 * NSEC_PER_SEC, 1, comm)->pod);
	put_file(dir, "environ", STR("PATH=/bin\0HOSTNAME=shop-1\0"));
	assert_string_equal(proc_get(t, 77, 50 * NSEC_PER_SEC, 2, comm)->pod, "shop-1");
	proc_table_close(t);
	files_close(f);
}

static void services_come_from_files(void **state)
{
	static const char *const names[] = { "stat", "status", "cgroup", "maps", "exe", "cmdline", "environ", "" };
	char dir[] = "/tmp/hearth-host-XXXXXX", path[128];
	scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
	struct service_rules *rules;

	(void)state;
	assert_int_equal(service_rules_parse(STR("cgroup /batch/* -> batch\ncommand * app.py -> shop"), &why, &rules),
			 0);
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/proc", dir);
	assert_int_equal(mkdir(path, 0755), 0);
	write_process(dir, 77, "1000-2000 r-xp 00003000 00:10 9 /lib/x.so\n", "/usr/bin/node");
	assert_service(dir, NULL, "0123456789ab", WORKLOAD_CONTAINER);
	put_file(dir, "cgroup", STR("0::/kubepods/burstable/podx/" A64 "\n"));
	put_file(dir, "environ", STR("PATH=/bin\0HOSTNAME=shop-1\0"));
	assert_service(dir, NULL, "shop-1", WORKLOAD_POD);
	assert_pod_after_exec(dir);
	put_file(dir, "cgroup", STR("0::/system.slice/db.service\n"));
	assert_service(dir, NULL, "db", WORKLOAD_UNIT);
	put_file(dir, "cgroup", STR("0::/batch/1\n"));
	put_file(dir, "cmdline", STR("node\0app.py\0"));
	assert_service(dir, NULL, "app.py", WORKLOAD_APPLICATION);
	assert_service(dir, rules, "batch", WORKLOAD_RULE);
	put_file(dir, "cgroup", STR("0::/\n"));
	assert_service(dir, rules, "shop", WORKLOAD_RULE);
	service_rules_free(rules);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/proc/77/%s", dir, names[i]);
		remove(path);
	}
	(void)snprintf(path, sizeof(path), "%s/proc", dir);
	rmdir(path);
	assert_int_equal(rmdir(dir), 0);
}

static void half_gone(void **state)
{
	static const char *const names[] = { "stat", "status", "cgroup", "maps", "exe", "" };
	char dir[] = "/tmp/hearth-host-XXXXXX", path[128];

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/proc", dir);
	assert_int_equal(mkdir(path, 0755), 0);
	write_process(dir, 77, "1000-2000 r-xp 00003000 00:10 9 /lib/gone.so\n", "/parent");
	write_process(dir, 78, "", "/child"); /* maps is empty once the memory is gone */
	assert_int_equal(one_half_gone(dir), 0);
	for_each_failing_allocation(one_half_gone, dir);
	for (int pid = 77; pid <= 78; pid++) {
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			(void)snprintf(path, sizeof(path), "%s/proc/%d/%s", dir, pid, names[i]);
			remove(path);
		}
	}
	(void)snprintf(path, sizeof(path), "%s/proc", dir);
	rmdir(path);
	assert_int_equal(rmdir(dir), 0);
}

static void tell(struct proc_table *t, uint64_t start, uint64_t end, const char *path)
{
	struct abi_mapping *m = calloc(1, sizeof(*m) + strlen(path) + 8);

	*m = (struct abi_mapping){
		.process_start_ns = 9, .start = start, .end = end, .file_offset = 0x100, .inode = start, .pid = 8
	};
	m->path_size = (uint32_t)strlen(path);
	memcpy(m->path, path, strlen(path));
	proc_mapping(t, m);
	free(m);
}

static void told_by_a_recording(void **state)
{
	struct proc_config cfg = { .host_root = "", .recorded = true };
	struct world *w = *state;
	struct proc_place at;
	struct proc_table *t;
	struct proc *p;
	char *name;

	assert_int_equal(proc_table_open(&cfg, w->files, &t), 0);
	p = proc_get(t, 8, 9, 0, comm);
	tell(t, 0x1000, 0x3000, "/lib/a.so");
	tell(t, 0x5000, 0x6000, "//anon");
	tell(t, 0x2000, 0x2800, "/lib/b.so"); /* mapped over the middle of the first */
	tell(t, 0x9000, 0x9000, "/lib/empty.so");
	proc_find_place(t, p, 0x2010, 1, &at);
	assert_int_equal(at.kind, PROC_PLACE_FILE);
	assert_int_equal(at.offset, 0x110);
	assert_int_equal(files_path(w->files, at.file_id, &name), 0);
	assert_string_equal(name, "/lib/b.so");
	free(name);
	proc_find_place(t, p, 0x1010, 1, &at);
	assert_int_equal(at.offset, 0x110);
	assert_int_equal(at.map_end, 0x2000);
	proc_find_place(t, p, 0x2810, 1, &at);
	assert_int_equal(at.kind, PROC_PLACE_FILE);
	assert_int_equal(at.offset, 0x1910);
	tell(t, 0x800, 0x2900, "[stack]"); /* over the first, the second and the beginning of the rest */
	proc_find_place(t, p, 0x2010, 1, &at);
	assert_int_equal(at.kind, PROC_PLACE_ANONYMOUS);
	proc_find_place(t, p, 0x2910, 1, &at);
	assert_int_equal(at.offset, 0x1a10);
	proc_find_place(t, p, 0x5010, 1, &at);
	assert_int_equal(at.kind, PROC_PLACE_ANONYMOUS);
	assert_ptr_equal(proc_get(t, 8, 9, 0, comm), p);
	assert_false(p->exited);
	proc_table_close(t);
}

/* When no other file can be known, what needs none still is. */
static void more_files_than_fit(void **state)
{
	struct world *w = *state;
	struct child child = child_start(w);
	uint64_t address = child_do(&child, LOAD_ANONYMOUS);
	uint32_t id;
	int r = 0;

	for (uint64_t i = 1; r == 0; i++) {
		struct file_key key = { .device = 1, .inode = i };

		assert_true(i < 1 << 20);
		r = files_add(w->files, -1, &key, STR("/many"), &id);
	}
	assert_int_equal(r, -E2BIG);
	assert_int_equal(place(w, get(w, &child), address).kind, PROC_PLACE_ANONYMOUS);
	child_end(&child);
}

/* Each process of a crowd has as many mappings as one may have: the first ones of each are kept, all of a few. */
static void a_crowd_with_many_mappings(void **state)
{
	enum { CROWD = 40, MAPPINGS = 40000, FEW = 512, MANY = 1 << 20 };
	struct proc_config cfg = { .host_root = "", .recorded = true };
	struct world *w = *state;
	struct proc_table *t;
	size_t kept = 0;

	assert_int_equal(proc_table_open(&cfg, w->files, &t), 0);
	for (uint32_t pid = 1; pid <= CROWD; pid++) {
		struct abi_mapping m = { .process_start_ns = 9, .pid = pid };
		size_t count;

		for (uint64_t i = 1; i <= MAPPINGS; i++) {
			m.start = i * 2 * PAGE;
			m.end = m.start + PAGE;
			proc_mapping(t, &m);
		}
		count = proc_mappings(proc_get(t, pid, 9, 0, comm))->count;
		assert_true(count >= FEW && count <= MAPPINGS);
		kept += count;
	}
	assert_true(kept > MANY / 2 && kept <= MANY + CROWD * FEW);
	proc_table_close(t);
}

int main(void)
{
#define LIVE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		LIVE(late_mappings),
		LIVE(code_without_a_file),
		LIVE(deleted_and_evicted),
		LIVE(deleted_and_replaced),
		LIVE(exec_drops_everything),
		LIVE(exit_keeps_until_expired),
		LIVE(lost_exit_is_noticed),
		LIVE(forked_and_gone),
		LIVE(reused_pid),
		LIVE(other_root),
		LIVE(leader_exits),
		LIVE(rescans_are_limited),
		LIVE(useful_rescans_come_soon),
		LIVE(what_is_mapped_is_found_soon),
		LIVE(looks_sooner_when_asked),
		LIVE(listeners_without_room_look_ever_later),
		LIVE(listeners_look_sooner),
		LIVE(kernel_thread),
		LIVE(told_by_a_recording),
		LIVE(more_files_than_fit),
		LIVE(a_crowd_with_many_mappings),
		LIVE(churn),
		cmocka_unit_test(container_and_failing_allocations),
		cmocka_unit_test(a_sample_from_before_the_exec),
		cmocka_unit_test(half_gone),
		cmocka_unit_test(programs_begin_with_exec),
		cmocka_unit_test(a_pid_that_was_taken_again),
		cmocka_unit_test(is_young_after_its_exec),
		cmocka_unit_test(a_parent_that_was_read_before),
		cmocka_unit_test(a_parent_is_told_at_its_own_sample),
		cmocka_unit_test(services_come_from_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
