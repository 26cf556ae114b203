/* SPDX-License-Identifier: Apache-2.0 */
/* What a process is, read from /proc while it lives. */
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "proc/proc_int.h"
#include "proc/proc_read.h"
#include "proc/workload.h"

#define SCRATCH_KEEP KIB(256) /* longer texts are rare: free their memory */
#define PERF_MAP_FDS_MAX 1024
#define PERF_MAP_CLOCK_SLACK_NS (50 * NSEC_PER_MSEC) /* mtimes are taken from the clock of the last tick */
#define ANCESTORS_MAX 8

/* A descriptor of /proc/PID (of a living thread when the leader is gone) that is certainly the process of @e. */
static int open_dir(struct proc_table *t, struct entry *e, struct proc_facts *facts)
{
	scoped(closep) int dir = proc_dir_open(t->host_root, e->pub.pid);
	int r;

	if (dir < 0)
		return dir == -ENOENT ? -ESRCH : dir;
	r = proc_facts_read(dir, e->pub.start_ns, &t->scratch, facts);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	if (facts->is_zombie)
		return proc_living_dir(t->host_root, dir, e->pub.pid, NULL);
	r = dir;
	dir = -1;
	return r;
}

static void set_container(struct proc_table *t, struct entry *e)
{
	char *name;
	int r;

	if (!t->containers && !t->containers_failed) {
		r = containers_open(t->host_root, t->container_socket, &t->containers);
		t->containers_failed = r < 0;
	}
	if (t->containers) {
		e->name_generation = containers_generation(t->containers);
		r = containers_name(t->containers, e->pub.container_id, &name);
		e->name_pending = r < 0;
		if (r == 0) {
			free(e->pub.container);
			e->pub.container = name;
			return;
		}
	}
	if (!e->pub.container) /* out of memory leaves it NULL, as if the process were in no container */
		e->pub.container = str_dup(str_n(e->pub.container_id, CONTAINER_SHORT_SIZE));
}

void entry_refresh_name(struct proc_table *t, struct entry *e)
{
	if (e->name_pending && containers_generation(t->containers) != e->name_generation)
		set_container(t, e);
}

static void read_container(struct proc_table *t, struct entry *e, int dir)
{
	struct str unit;

	buf_clear(&t->scratch);
	if (e->pub.container || io_read_file_at(dir, "cgroup", &t->scratch) < 0)
		return;
	if (container_id_parse(buf_str(&t->scratch), e->pub.container_id)) {
		set_container(t, e);
		return;
	}
	unit = workload_unit_parse(buf_str(&t->scratch));
	free(e->pub.unit);
	e->pub.unit = unit.len ? str_dup(unit) : NULL; /* out of memory: as if the process belonged to no unit */
}

static void read_mappings(struct proc_table *t, struct entry *e, int dir, int *r)
{
	uint64_t before = proc_clock_ns();

	*r = mappings_read(&t->reader, dir, &e->maps);
	entry_count_maps(t, e);
	e->scan_cost_ns = proc_clock_ns() - before;
	if (t->scratch.cap > SCRATCH_KEEP)
		buf_release(&t->scratch);
}

static int copy_mappings(struct proc_table *t, struct entry *e, const struct entry *origin)
{
	int r = mappings_copy(&e->maps, &origin->maps);

	entry_count_maps(t, e);
	return r;
}

/* @origin: whose memory it runs in, or NULL: then its own mappings are read. */
static int read_living(struct proc_table *t, struct entry *e, const struct entry *origin)
{
	struct proc_facts facts;
	scoped(closep) int dir = open_dir(t, e, &facts);
	int r = 0;

	if (dir < 0)
		return dir;
	if (!e->forked) /* else the fork record told it, and the process may have a new name since */
		e->pub.parent_pid = facts.parent_pid;
	e->pub.is_kernel = facts.is_kernel;
	if (!e->pub.comm[0])
		memcpy(e->pub.comm, facts.comm, sizeof(e->pub.comm));
	if (facts.is_kernel)
		return 0;
	if (!origin) /* first: a short program may be gone within the millisecond */
		read_mappings(t, e, dir, &r);
	free(e->pub.exe);
	e->pub.exe = proc_link_read(dir, "exe");
	read_container(t, e, dir);
	return origin ? copy_mappings(t, e, origin) : r;
}

/* A process that forked runs in its parent's memory, or a copy, until it execs: the nearest ancestor whose mappings are
 * known, or NULL. */
static const struct entry *find_origin(struct proc_table *t, const struct entry *e)
{
	for (int i = 0; i < ANCESTORS_MAX && e->forked; i++) {
		struct entry *parent = entry_newest(t, e->pub.parent_pid);

		/* the pid was taken again since, or its program has execed since */
		while (parent && (parent->pub.start_ns > e->pub.start_ns || parent->exec_ns > e->fork_ns))
			parent = parent->older;
		if (!parent || parent == e)
			return NULL;
		if (!parent->was_read && !parent->forked && !parent->pub.exited) {
			parent->was_read = true;
			parent->pub.unreadable = read_living(t, parent, NULL) < 0;
		}
		if (parent->maps.count)
			return parent;
		e = parent;
	}
	return NULL;
}

/* Copies what /proc would have shown of a process that is gone. */
static int take_over(struct proc_table *t, struct entry *e, const struct entry *origin)
{
	e->pub.is_kernel = origin->pub.is_kernel;
	if (!e->pub.container && origin->pub.container) {
		memcpy(e->pub.container_id, origin->pub.container_id, sizeof(e->pub.container_id));
		e->pub.container = str_dup(str_of(origin->pub.container));
	}
	if (!e->pub.unit && origin->pub.unit)
		e->pub.unit = str_dup(str_of(origin->pub.unit));
	if (!e->pub.exe && origin->pub.exe)
		e->pub.exe = str_dup(str_of(origin->pub.exe));
	return copy_mappings(t, e, origin);
}

void entry_read(struct proc_table *t, struct entry *e)
{
	const struct entry *origin = NULL;
	int r = -ESRCH;

	e->was_read = true;
	e->pub.unreadable = true;
	if (e->pub.pid == 0) { /* the idle tasks have no place in /proc */
		e->pub.is_kernel = true;
		e->pub.unreadable = false;
		return;
	}
	if (!t->recorded) {
		/* /proc may show the next program already, whose exec event is still to come: samples before it are not
		 * its. */
		origin = find_origin(t, e);
		r = read_living(t, e, origin);
		if (r == -ESRCH)
			entry_exited(e, proc_clock_ns());
	}
	if (r == -ESRCH && origin)
		r = take_over(t, e, origin);
	e->pub.unreadable = r < 0;
	entry_mapped(t, e);
}

bool entry_rescan(struct proc_table *t, struct entry *e)
{
	struct proc_facts facts;
	scoped(closep) int dir = open_dir(t, e, &facts);
	int r = dir;

	if (dir >= 0)
		read_mappings(t, e, dir, &r);
	else if (dir == -ESRCH)
		entry_exited(e, proc_clock_ns()); /* its exit record was lost, or is still to come */
	if (r < 0)
		return false;
	e->pub.unreadable = false;
	entry_mapped(t, e);
	return true;
}

/* When the running program began, on the wall clock. */
static uint64_t program_start_wall_ns(const struct entry *e)
{
	struct timespec wall, boot, mono;
	uint64_t wall_ns, age;

	clock_gettime(CLOCK_REALTIME, &wall);
	clock_gettime(CLOCK_BOOTTIME, &boot);
	clock_gettime(CLOCK_MONOTONIC, &mono);
	wall_ns = (uint64_t)wall.tv_sec * NSEC_PER_SEC + (uint64_t)wall.tv_nsec;
	if (e->exec_ns)
		age = (uint64_t)mono.tv_sec * NSEC_PER_SEC + (uint64_t)mono.tv_nsec - e->exec_ns;
	else
		age = (uint64_t)boot.tv_sec * NSEC_PER_SEC + (uint64_t)boot.tv_nsec - e->pub.start_ns;
	return age < wall_ns ? wall_ns - age : 0;
}

/* Anybody may write to /tmp: the map is the process's own, or root's, and not what an earlier process or program with
 * this pid left behind. */
static bool perf_map_fits(const struct entry *e, int fd)
{
	struct stat st;
	uint64_t mtime_ns;

	if (fstat(fd, &st) < 0 || (st.st_uid != 0 && st.st_uid != e->uid && st.st_uid != e->effective_uid))
		return false;
	mtime_ns = (uint64_t)st.st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
	return mtime_ns + PERF_MAP_CLOCK_SLACK_NS >= program_start_wall_ns(e);
}

/* The status file costs the kernel the most of all files, and only perf maps need its content. */
static void read_status(struct proc_table *t, struct entry *e, int dir, struct proc_facts *facts)
{
	facts->inner_pid = e->pub.pid;
	proc_status_read(dir, &t->scratch, facts);
	e->pub.inner_pid = facts->inner_pid;
	e->uid = facts->uid;
	e->effective_uid = facts->effective_uid;
}

int entry_open_perf_map(struct proc_table *t, struct entry *e)
{
	struct proc_facts facts;
	scoped(closep) int dir = -1, fd = -1;
	char name[64];
	int r;

	if (t->perf_map_fds >= PERF_MAP_FDS_MAX)
		return -EMFILE;
	dir = open_dir(t, e, &facts);
	if (dir < 0)
		return dir;
	read_status(t, e, dir, &facts);
	(void)snprintf(name, sizeof(name), "tmp/perf-%u.map", e->pub.inner_pid);
	fd = proc_open_below(dir, "root", name, false);
	if (fd < 0)
		return fd;
	if (!perf_map_fits(e, fd))
		return -EPERM;
	t->perf_map_fds++;
	r = fd;
	fd = -1;
	return r;
}
