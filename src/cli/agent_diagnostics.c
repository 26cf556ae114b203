/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/agent_diagnostics.h"

#include <dirent.h>
#include <sys/klog.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "proc/container.h"

#define PROCESSES_MAX 2000 /* lines; the queue of the log has room for some thousand */
#define KERNEL_LINES 100
#define KERNEL_BYTES KIB(64)
#define SYSLOG_ACTION_READ_ALL 3 /* syslog(2) */

static void log_process(const char *host_root, const char *pid)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(8)), comm = BUF_INIT(KIB(1)), cgroup = BUF_INIT(KIB(64));
	char container[CONTAINER_ID_SIZE + 1];

	buf_addf(&path, "%s/proc/%s/comm", host_root, pid);
	if (io_read_file(buf_cstr(&path), &comm) < 0)
		return; /* it has ended */
	buf_clear(&path);
	buf_addf(&path, "%s/proc/%s/cgroup", host_root, pid);
	if (io_read_file(buf_cstr(&path), &cgroup) == 0 && container_id_parse(buf_str(&cgroup), container))
		log_debug("process", LOG_CSTR("pid", pid), LOG_STR("comm", str_trim(buf_str(&comm))),
			  LOG_CSTR("container", container));
	else
		log_debug("process", LOG_CSTR("pid", pid), LOG_STR("comm", str_trim(buf_str(&comm))));
}

/* @shown: log that many of them. */
static size_t walk_processes(const char *host_root, size_t shown)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(8));
	size_t count = 0;
	struct dirent *e;
	DIR *dir;

	buf_addf(&path, "%s/proc", host_root);
	dir = opendir(buf_cstr(&path));
	while (dir && (e = readdir(dir))) {
		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		if (count++ < shown)
			log_process(host_root, e->d_name);
	}
	if (dir)
		(void)closedir(dir);
	return count;
}

size_t agent_process_count(const char *host_root)
{
	return walk_processes(host_root, 0);
}

static void log_kernel(void)
{
	scoped(buf_release) struct buf text = BUF_INIT(KERNEL_BYTES);
	char *bytes = buf_reserve(&text, KERNEL_BYTES);
	int size = bytes ? klogctl(SYSLOG_ACTION_READ_ALL, bytes, (int)KERNEL_BYTES) : -1, lines = 0;
	struct str rest, line;

	if (size < 0)
		return; /* not permitted */
	rest = str_n(bytes, (size_t)size);
	for (size_t at = rest.len; at-- > 0;)
		if (bytes[at] == '\n' && ++lines > KERNEL_LINES) {
			rest = str_skip(rest, at + 1);
			break;
		}
	while (rest.len && str_next(&rest, '\n', &line))
		log_debug("kernel", LOG_STR("line", line));
}

void agent_diagnostics_log(const char *host_root, uint64_t *last_ns)
{
	uint64_t now = clock_monotonic_ns(&clock_system);

	if (*last_ns && now - *last_ns < AGENT_DIAGNOSTICS_NS)
		return;
	*last_ns = now;
	log_debug("processes", LOG_U64("count", walk_processes(host_root, PROCESSES_MAX)));
	log_kernel();
}
