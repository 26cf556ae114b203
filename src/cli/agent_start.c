/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/agent_start.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "sampler/probe.h"

#define LOCK_NAME "\0\0gprofiler_lock" /* gProfiler's helper puts another NUL before the one of an abstract name */

/* Checked by programs that start gProfiler: word for word. Source: gprofiler/main.py, verify_preconditions(). */
#define SAY_NO_ROOT "Not running as root, rerun with --rootless or as root.\n"
#define SAY_ROOTLESS_ROOT \
	"Conflict, running with --rootless and as root, rerun with --rootless or as root (but not both).\n"
#define SAY_PID_NAMESPACE                                                                                      \
	"Please run me in the init PID namespace! In Docker, make sure you pass '--pid=host'. In Kubernetes, " \
	"add 'hostPID: true' in the Pod spec.\nYou can disable this check with --disable-pidns-check.\n"
#define SAY_NO_LOCK                                                                                \
	"Could not acquire gProfiler's lock. Is it already running? Try 'sudo netstat -xp | grep " \
	"gprofiler_lock' to see which process holds the lock.\n"
#define SAY_LOCK_ERROR \
	"Could not acquire gProfiler's lock due to an error. Are you running gProfiler in privileged mode?\n"

#define SAY_NO_CONTAINER "--log-usage is available only when run as a container!\n"

static int say(const char *text)
{
	log_text(str_of(text), true);
	return EXIT_FAILED;
}

static int bind_lock(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), e;

	if (fd < 0)
		return -errno;
	memcpy(a.sun_path, LOCK_NAME, sizeof(LOCK_NAME) - 1);
	if (bind(fd, (const struct sockaddr *)(const void *)&a,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof(LOCK_NAME) - 1)) == 0)
		return fd;
	e = -errno;
	(void)close(fd);
	return e;
}

/* One on a machine, whatever container it runs in: names of abstract sockets are a network namespace's. Where the first
 * one cannot be entered, that of this one is better than none. */
static int take_lock(const char *host_root)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(8));
	scoped(closep) int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), first = -1;
	int r;

	buf_addf(&path, "%s/proc/1/ns/net", host_root);
	first = open(buf_cstr(&path), O_RDONLY | O_CLOEXEC);
	if (own < 0 || first < 0 || setns(first, CLONE_NEWNET) < 0) {
		log_warn("the lock holds in this network namespace only: the first one cannot be entered",
			 LOG_ERR(-errno));
		return bind_lock();
	}
	r = bind_lock();
	if (setns(own, CLONE_NEWNET) < 0) { /* it worked a moment ago */
		if (r >= 0)
			(void)close(r);
		return -errno;
	}
	return r;
}

int agent_start_check(const struct agent_options *o, int *lock)
{
	bool is_root = geteuid() == 0;

	if (!o->rootless && !is_root)
		return say(SAY_NO_ROOT);
	if (o->rootless && is_root)
		return say(SAY_ROOTLESS_ROOT);
	if (!o->without_pidns_check && !probe_pid_namespace(o->session.host_root))
		return say(SAY_PID_NAMESPACE);
	*lock = is_root ? take_lock(o->session.host_root) : bind_lock();
	if (*lock == -EADDRINUSE)
		return say(SAY_NO_LOCK);
	if (*lock < 0)
		return say(SAY_LOCK_ERROR);
	if (o->log_usage && !getenv("GPROFILER_IN_K8S") && !getenv("GPROFILER_IN_CONTAINER"))
		return say(SAY_NO_CONTAINER);
	return EXIT_DONE;
}

/* Written anew: another program's link in its place would have us write elsewhere, and its FIFO would have us wait. */
static void write_pid(const char *path)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(1));
	scoped(closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
	int r = fd < 0 ? -errno : 0;

	buf_addu64(&text, (uint64_t)getpid());
	if (r == 0)
		r = io_write_all(fd, text.ptr, text.len);
	if (r < 0)
		log_warn("the pid file cannot be written", LOG_CSTR("path", path), LOG_ERR(r));
}

static int make_output(const struct command *c, const char *path)
{
	struct stat st;
	int r = io_make_folders(path);

	if (r == 0 && ((mkdir(path, 0777) < 0 && errno != EEXIST) || stat(path, &st) < 0))
		r = -errno;
	if (r == 0 && !S_ISDIR(st.st_mode))
		return command_fail(c, "--output-dir: '%s' is no directory", path);
	return r < 0 ? command_fail(c, "--output-dir: cannot make '%s': %s", path, strerror(-r)) : EXIT_DONE;
}

int agent_start_prepare(const struct command *c, const struct agent_options *o)
{
	const struct rlimit none = { 0, 0 };

	(void)umask(022);
	if (!o->keep_core_files)
		ignore(setrlimit(RLIMIT_CORE, &none)); /* lowering it cannot fail */
	write_pid(o->pid_file);
	return o->output_dir ? make_output(c, o->output_dir) : EXIT_DONE;
}
