/* SPDX-License-Identifier: Apache-2.0 */
/* What a process is, read from /proc while it lives. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "proc/application.h"
#include "proc/maps.h"
#include "proc/proc_int.h"
#include "proc/proc_read.h"

#define SCRATCH_KEEP KIB(256) /* longer texts are rare: free their memory */
#define PERF_MAP_FDS_MAX 1024
#define PERF_MAP_CLOCK_SLACK_NS (50 * NSEC_PER_MSEC) /* mtimes are taken from the clock of the last tick */
#define ANCESTORS_MAX 8
#define ENVIRON_MAX KIB(16)

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

/* ---- its service ---- */

void entry_set_service(struct proc_table *t, struct entry *e)
{
	const struct workload_facts facts = { .is_kernel = e->pub.is_kernel,
					      .pod = str_of(e->pub.pod),
					      .container = str_of(e->pub.container ? e->pub.container : e->machine),
					      .unit = str_of(e->pub.unit),
					      .exe = str_of(e->pub.exe),
					      .comm = str_n(e->pub.comm, strnlen(e->pub.comm, ABI_COMM_SIZE)),
					      .argv = str_n(e->argv, e->argv_size),
					      .cgroup = str_of(e->cgroup) };
	scoped(buf_release) struct buf name = BUF_INIT(KIB(1));

	e->pub.service_kind = workload_name(&facts, t->service_rules, &name);
	free(e->pub.service);
	e->pub.service = name.error ? NULL : str_dup(buf_str(&name));
}

void entry_refresh_name(struct proc_table *t, struct entry *e)
{
	if (e->name_pending && containers_generation(t->containers) != e->name_generation) {
		set_container(t, e);
		entry_set_service(t, e);
	}
}

static void replace(char **text, struct str with)
{
	free(*text);
	*text = with.len ? str_dup(with) : NULL; /* out of memory: as if it were not known */
}

/* At most @max bytes of a file of /proc/PID. */
static struct str read_start(struct proc_table *t, int dir, const char *name, size_t max)
{
	scoped(closep) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	char *bytes;
	ssize_t n = -1;

	buf_clear(&t->scratch);
	bytes = fd < 0 ? NULL : buf_reserve(&t->scratch, max);
	if (bytes)
		n = read(fd, bytes, max);
	return n <= 0 ? STR("") : str_n(bytes, (size_t)n);
}

/* Kubernetes gives a container its pod's name as the host's. In the host's network it is the machine's: then there is
 * no name. */
static void read_pod(struct proc_table *t, struct entry *e, int dir)
{
	struct str name = workload_hostname(read_start(t, dir, "environ", ENVIRON_MAX));
	struct utsname machine;

	if (uname(&machine) < 0 || !str_eq(name, str_of(machine.nodename)))
		replace(&e->pub.pod, name);
}

static void read_group(struct proc_table *t, struct entry *e, int dir)
{
	bool want_path = service_rules_ask(t->service_rules, SERVICE_RULE_CGROUP);
	struct workload_group group;

	buf_clear(&t->scratch);
	if ((e->pub.container && e->pub.pod && !want_path) || io_read_file_at(dir, "cgroup", &t->scratch) < 0)
		return;
	workload_group_parse(buf_str(&t->scratch), &group);
	replace(&e->pub.unit, group.unit);
	replace(&e->machine, group.container);
	if (want_path)
		replace(&e->cgroup, group.path);
	if (!group.container_id[0])
		return;
	if (!e->pub.container) {
		memcpy(e->pub.container_id, group.container_id, sizeof(e->pub.container_id));
		set_container(t, e);
	}
	if (group.is_pod && !e->pub.pod) /* what starts a container is in it before it has its environment */
		read_pod(t, e, dir);
}

/* Only of a program whose own name says little, or when a rule asks for it. */
static void read_command(struct proc_table *t, struct entry *e, int dir)
{
	struct str argv;

	free(e->argv);
	e->argv = NULL;
	e->argv_size = 0;
	if (!application_is_launcher(str_of(e->pub.exe)) && !service_rules_ask(t->service_rules, SERVICE_RULE_COMMAND))
		return;
	argv = read_start(t, dir, "cmdline", APPLICATION_ARGV_MAX);
	e->argv = argv.len ? malloc(argv.len) : NULL;
	if (!e->argv)
		return;
	memcpy(e->argv, argv.ptr, argv.len);
	e->argv_size = argv.len;
}

/* ---- reading ---- */

static void read_mappings(struct proc_table *t, struct entry *e, int dir, int *r)
{
	uint64_t before = proc_clock_ns();

	*r = mappings_read(&t->reader, dir, e->pub.pid, &e->maps);
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
	read_group(t, e, dir);
	read_command(t, e, dir);
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
			parent->was_read = parent->not_told = true;
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
	entry_copy_group(e, origin);
	if (!e->argv && origin->argv) {
		e->argv = malloc(origin->argv_size);
		if (e->argv)
			memcpy(e->argv, origin->argv, origin->argv_size);
		e->argv_size = e->argv ? origin->argv_size : 0;
	}
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
		entry_set_service(t, e);
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
	entry_set_service(t, e);
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

bool entry_read_user(struct proc_table *t, struct entry *e)
{
	struct proc_facts facts = { .uid = UINT32_MAX };
	scoped(closep) int dir = t->recorded ? -1 : open_dir(t, e, &facts);

	if (dir < 0)
		return false;
	facts.uid = UINT32_MAX; /* of nobody: status may be unreadable */
	read_status(t, e, dir, &facts);
	return facts.uid != UINT32_MAX;
}

/* What writes a jitdump maps a page of it, executable, so that others find it. Source: linux 6.1,
 * tools/perf/Documentation/jitdump-specification.txt. Return: a descriptor, or -errno. */
static int open_jitdump(struct proc_table *t, const struct entry *e, int dir)
{
	scoped(freep) char *path = NULL;
	char name[64];
	struct maps_line line;
	struct str rest;
	int r;

	(void)snprintf(name, sizeof(name), "jit-%u.dump", e->pub.inner_pid);
	buf_clear(&t->scratch);
	r = io_read_file_at(dir, "maps", &t->scratch);
	if (r < 0)
		return r;
	rest = buf_str(&t->scratch);
	while (!path && (r = maps_next(&rest, &line)) != 0)
		if (r > 0 && line.executable && str_eq(str_base(line.path), str_of(name))) {
			path = str_dup(line.path);
			if (!path)
				return -ENOMEM;
		}
	return path ? proc_open_below(dir, "root", path, false) : -ENOENT;
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
	if (fd == -ENOENT)
		fd = open_jitdump(t, e, dir);
	if (fd < 0)
		return fd;
	if (!perf_map_fits(e, fd))
		return -EPERM;
	t->perf_map_fds++;
	r = fd;
	fd = -1;
	return r;
}
