/* SPDX-License-Identifier: Apache-2.0 */
/* Reaching the server in a JVM. A child with the JVM's user looks for the socket, makes the file that asks for it, and
 * connects; the parent sends SIGQUIT, talks, and ends it when the time is over. Files may lie on something that never
 * answers: only the child waits for them. */
#include "runtime/java/server.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "proc/maps.h"
#include "proc/proc_read.h"
#include "runtime/java/java_int.h"

#define STATUS_MAX KIB(64)
#define MAPS_MAX MIB(16)
#define COMMAND_MAX MIB(2)
#define PAUSE_MIN_US 20000 /* between two looks for the socket */
#define PAUSE_MAX_US 200000

/* ---- the target ---- */

struct target {
	const struct java_server *server;
	struct java_owner owner;
	int dir, pidfd, root, cwd; /* /proc/PID; the process; its root and working directory */
	uint64_t until_ns;
	struct buf *why;
};

static void target_release(struct target *t)
{
	closep(&t->dir);
	closep(&t->pidfd);
	closep(&t->root);
	closep(&t->cwd);
}

static int fail(const struct target *t, int error, const char *text)
{
	buf_clear(t->why);
	buf_adds(t->why, str_of(text));
	return error;
}

static bool ends_with_name(struct str path, const char *name)
{
	return str_eq(str_base(path), str_of(name));
}

/* By its libraries. OpenJ9 has a libjvm.so, too, and another protocol. */
static int check_libraries(const struct target *t)
{
	scoped(buf_release) struct buf text = BUF_INIT(MAPS_MAX);
	struct maps_line line;
	struct str rest;
	bool is_jvm = false, is_j9 = false;
	int r = io_read_file_at(t->dir, "maps", &text), got;

	if (r < 0)
		return fail(t, r == -EACCES ? -EPERM : r, "its mappings cannot be read");
	rest = buf_str(&text);
	while ((got = maps_next(&rest, &line)) != 0) {
		if (got < 0)
			continue;
		is_jvm |= ends_with_name(line.path, "libjvm.so");
		is_j9 |= java_is_openj9(line.path);
	}
	if (is_j9)
		return fail(t, -ENOTSUP, "it is OpenJ9, which is asked another way: not supported");
	return is_jvm ? 0 : fail(t, -ENOTSUP, "it is no JVM: no libjvm.so is mapped");
}

static int check_arguments(const struct target *t)
{
	scoped(buf_release) struct buf text = BUF_INIT(COMMAND_MAX);
	bool is_off = false;
	struct str rest, word;
	int r = io_read_file_at(t->dir, "cmdline", &text);

	if (r < 0)
		return r == -E2BIG ? 0 : r;
	rest = buf_str(&text);
	while (str_next(&rest, '\0', &word)) {
		is_off |= str_eq(word, STR("-XX:+DisableAttachMechanism"));
		is_off &= !str_eq(word, STR("-XX:-DisableAttachMechanism"));
	}
	return is_off ? fail(t, -ENOTSUP, "it was started with -XX:+DisableAttachMechanism") : 0;
}

static int open_at(const struct target *t, const char *name)
{
	int fd = openat(t->dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int open_target(struct target *t)
{
	scoped(buf_release) struct buf text = BUF_INIT(STATUS_MAX);
	int r;

	t->dir = proc_dir_open("", t->server->pid);
	if (t->dir < 0)
		return fail(t, t->dir == -ENOENT ? -ESRCH : t->dir, "there is no such process");
	/* Both are of one process: it lives still when its status is read. */
	t->pidfd = (int)syscall(SYS_pidfd_open, t->server->pid, 0);
	if (t->pidfd < 0)
		return fail(t, -errno, "there is no such process");
	r = io_read_file_at(t->dir, "status", &text);
	r = r ? r : java_owner_parse(buf_str(&text), &t->owner);
	if (r < 0)
		return fail(t, r, "its status cannot be read");
	t->root = open_at(t, "root");
	t->cwd = t->root < 0 ? t->root : open_at(t, "cwd");
	if (t->root < 0 || t->cwd < 0)
		return fail(t, -EPERM, "its root directory may not be looked into: it is another user's");
	r = check_libraries(t);
	return r ? r : check_arguments(t);
}

/* ---- the child ---- */

enum said { SAID_SIGNAL, SAID_CONNECTED, SAID_FAILED };

struct message { /* of the child; SAID_CONNECTED brings a descriptor */
	uint32_t said;
	int32_t error;
	char why[96];
};

struct child {
	const struct target *t;
	int to_parent;
	char socket_path[64], attach_name[32];
};

static void say(const struct child *c, enum said said, int error, const char *why, int fd)
{
	struct message m = { .said = said, .error = error };
	struct iovec bytes = { &m, sizeof(m) };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr header = { .msg_iov = &bytes, .msg_iovlen = 1 };

	snprintf(m.why, sizeof(m.why), "%s", why);
	if (fd >= 0) {
		header.msg_control = &control;
		header.msg_controllen = sizeof(control.room);
		control.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)),
						 .cmsg_level = SOL_SOCKET,
						 .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	}
	ignore(sendmsg(c->to_parent, &header, MSG_NOSIGNAL) < 0); /* it has ended: so do we */
}

static int open_inside(int from, const char *path, uint64_t flags, uint64_t mode)
{
	struct open_how how = { .flags = flags | O_CLOEXEC | O_NOFOLLOW,
				.mode = mode,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int fd = (int)syscall(SYS_openat2, from, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/* The user's alone, as HotSpot makes it. */
static const char *reason_against(const struct child *c, const struct stat *st)
{
	if (!S_ISSOCK(st->st_mode))
		return "what lies where its socket should be is none";
	if (st->st_uid != c->t->owner.uid)
		return "the socket is another user's";
	return st->st_mode & 077 ? "others may write to the socket" : NULL;
}

/* Of connect(), which waits while the queue of who listens is full. */
static int limit_time(int fd, uint64_t until_ns)
{
	uint64_t now = clock_monotonic_ns(&clock_system), end = MAX(until_ns, now + NSEC_PER_MSEC); /* 0: no limit */
	const struct timeval limit = { .tv_sec = (time_t)((end - now) / NSEC_PER_SEC),
				       .tv_usec = (suseconds_t)((end - now) % NSEC_PER_SEC / 1000) };

	return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

/* Return: a connection; -ENOENT: there is no socket, or nobody listens there; -errno and *why. */
static int try_connect(const struct child *c, const char **why)
{
	scoped(closep) int found = open_inside(c->t->root, c->socket_path, O_PATH, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	scoped(closep) int fd = -1;
	struct stat st;
	int taken;

	*why = "its socket cannot be looked at";
	if (found < 0)
		return found;
	if (fstat(found, &st) < 0)
		return -errno;
	*why = reason_against(c, &st);
	if (*why)
		return -EBADMSG;
	*why = "it does not take connections";
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || limit_time(fd, c->t->until_ns) < 0)
		return -errno;
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", found); /* that one, wherever it is */
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return errno == ECONNREFUSED ? -ENOENT : errno == EAGAIN ? -ETIMEDOUT : -errno;
	taken = fd;
	fd = -1;
	return taken;
}

/* The file that makes a JVM open its socket at SIGQUIT. Return: the directory that it lies in; -errno. */
static int make_attach_file(const struct child *c)
{
	char path[sizeof(c->attach_name) + 8];
	int fd, own = open_inside(c->t->cwd, ".", O_PATH | O_DIRECTORY, 0);

	if (own >= 0) {
		fd = open_inside(own, c->attach_name, O_CREAT | O_EXCL | O_WRONLY, 0600);
		if (fd >= 0 || fd == -EEXIST) {
			closep(&fd);
			return own;
		}
		closep(&own);
	}
	snprintf(path, sizeof(path), "/tmp/%s", c->attach_name);
	fd = open_inside(c->t->root, path, O_CREAT | O_EXCL | O_WRONLY, 0600);
	if (fd < 0 && fd != -EEXIST)
		return fd;
	closep(&fd);
	return open_inside(c->t->root, "/tmp", O_PATH | O_DIRECTORY, 0);
}

static int wait_for_socket(const struct child *c, const char **why)
{
	useconds_t pause = PAUSE_MIN_US;
	int r;

	do {
		usleep(pause);
		pause = MIN(pause * 3 / 2, (useconds_t)PAUSE_MAX_US);
		r = try_connect(c, why);
	} while (r == -ENOENT && clock_monotonic_ns(&clock_system) < c->t->until_ns);
	if (r == -ENOENT)
		*why = "it has not opened its socket: is attaching switched off, or does it not come to a safepoint?";
	return r == -ENOENT ? -ETIMEDOUT : r;
}

/* Of the child, which a signal may end: a file that stays makes the JVM open its socket where SIGQUIT wants a list of
 * threads. */
static volatile sig_atomic_t left_in = -1;
static const char *left_name;

static void take_away(int number)
{
	(void)number;
	if (left_in >= 0)
		ignore(unlinkat(left_in, left_name, 0) < 0);
	_exit(1);
}

static void take_away_at(const int *numbers, size_t count)
{
	const struct sigaction action = { .sa_handler = take_away };

	for (size_t i = 0; i < count; i++)
		ignore(sigaction(numbers[i], &action, NULL) < 0);
}

static int ask_for_socket(const struct child *c, const char **why)
{
	scoped(closep) int folder = -1;
	int r;

	if (!c->t->owner.takes_quit) {
		*why = "it has no socket and does not take SIGQUIT (-Xrs, or it is just starting)";
		return -ENOTSUP;
	}
	folder = make_attach_file(c);
	if (folder < 0) {
		*why = "no file can be made in its working directory or /tmp";
		return folder;
	}
	left_name = c->attach_name;
	left_in = folder;
	say(c, SAID_SIGNAL, 0, "", -1);
	r = wait_for_socket(c, why);
	ignore(unlinkat(folder, c->attach_name, 0) < 0); /* the JVM may have done so */
	left_in = -1;
	return r;
}

/* Whoever was not root before keeps its capabilities through setresuid(), and root is root of this machine, not of a
 * container: the JVM's own rights over files have to do. */
static int drop_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[2] = { 0 };

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL)
		return -errno;
	return syscall(SYS_capset, &head, none) < 0 ? -errno : 0;
}

/* Without the right to be another one it must be us. */
static int become(const struct java_owner *owner)
{
	if (geteuid() == owner->uid && getegid() == owner->gid && geteuid() != 0)
		return drop_capabilities();
	if (setgroups(0, NULL) < 0 || setresgid(owner->gid, owner->gid, owner->gid) < 0 ||
	    setresuid(owner->uid, owner->uid, owner->uid) < 0)
		return -errno;
	return drop_capabilities();
}

_Noreturn static void child_main(struct child *c)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
	const char *why = "hearth cannot take its user: that needs root";
	int fd;

	take_away_at(ends, ARRAY_SIZE(ends));
	umask(077);
	snprintf(c->socket_path, sizeof(c->socket_path), "/tmp/.java_pid%u", c->t->owner.inner_pid);
	snprintf(c->attach_name, sizeof(c->attach_name), ".attach_pid%u", c->t->owner.inner_pid);
	fd = become(&c->t->owner);
	prctl(PR_SET_PDEATHSIG, SIGTERM); /* another user's is forgotten */
	fd = fd < 0 ? fd : try_connect(c, &why);
	if (fd == -ENOENT)
		fd = ask_for_socket(c, &why);
	if (fd < 0)
		say(c, SAID_FAILED, fd, why, -1);
	else
		say(c, SAID_CONNECTED, 0, "", fd);
	_exit(0);
}

/* ---- the parent ---- */

/* Return: 0; -ETIMEDOUT. */
static int wait_for(int fd, short events, uint64_t until_ns)
{
	struct pollfd one = { fd, events, 0 };

	for (;;) {
		uint64_t now = clock_monotonic_ns(&clock_system);
		int r = now < until_ns ? poll(&one, 1, (int)MIN((until_ns - now) / NSEC_PER_MSEC + 1, 3600000ULL)) : 0;

		if (r > 0)
			return 0;
		if (r == 0 && clock_monotonic_ns(&clock_system) >= until_ns)
			return -ETIMEDOUT;
		if (r < 0 && errno != EINTR)
			return -errno;
	}
}

/* Return: 0; -errno. *fd: what came with it, or -1. */
static int receive(int from, struct message *m, int *fd)
{
	struct iovec bytes = { m, sizeof(*m) };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr header = {
		.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.room)
	};
	const struct cmsghdr *got;
	ssize_t n = recvmsg(from, &header, MSG_CMSG_CLOEXEC);

	*fd = -1;
	if (n != (ssize_t)sizeof(*m))
		return n < 0 ? -errno : -ECHILD;
	got = CMSG_FIRSTHDR(&header);
	if (got && got->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(got), sizeof(*fd));
	m->why[sizeof(m->why) - 1] = '\0';
	return 0;
}

/* The child's files may have taken long, and an exec puts back what SIGQUIT does: ending the process. */
static int send_quit(const struct target *t)
{
	scoped(buf_release) struct buf text = BUF_INIT(STATUS_MAX);
	struct java_owner now;
	int r = io_read_file_at(t->dir, "status", &text);

	r = r ? r : java_owner_parse(buf_str(&text), &now);
	if (r < 0)
		return fail(t, r, "its status cannot be read");
	if (!now.takes_quit || now.uid != t->owner.uid)
		return fail(t, -ENOTSUP, "it runs another program by now");
	return syscall(SYS_pidfd_send_signal, t->pidfd, SIGQUIT, NULL, 0) < 0
		       ? fail(t, -errno, "it cannot be sent a signal")
		       : 0;
}

/* Return: a connection; -errno. */
static int hear_child(const struct target *t, int from)
{
	for (;;) {
		struct message m;
		int fd = -1, r = wait_for(from, POLLIN, t->until_ns + NSEC_PER_SEC);

		r = r ? r : receive(from, &m, &fd);
		if (r < 0)
			return fail(t, r,
				    r == -ETIMEDOUT ? "its files do not answer" : "the child that asks has ended");
		if (m.said == SAID_CONNECTED && fd >= 0)
			return fd;
		if (m.said == SAID_FAILED)
			return fail(t, m.error < 0 ? m.error : -EIO, m.why);
		r = m.said == SAID_SIGNAL ? send_quit(t) : 0;
		if (r < 0)
			return r;
	}
}

static int reach(const struct target *t)
{
	scoped(closep) int from = -1;
	int ends[2], fd, status;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return fail(t, -errno, "no socket can be made");
	from = ends[0];
	pid = fork();
	if (!pid)
		child_main(&(struct child){ .t = t, .to_parent = ends[1] });
	closep(&ends[1]);
	if (pid < 0)
		return fail(t, -errno, "no process can be made");
	fd = hear_child(t, from);
	kill(pid, SIGTERM); /* ours, not waited for yet; one that hangs in a file ends when that answers */
	for (int i = 0; i < 100 && waitpid(pid, &status, WNOHANG) == 0; i++) {
		usleep(10000);
		if (i == 50)
			kill(pid, SIGKILL);
	}
	return fd;
}

/* Who took the connection: the kernel says it of the moment when it began to listen. */
static int check_peer(const struct target *t, int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return fail(t, -errno, "nobody says who listens at its socket");
	if (peer.pid != (pid_t)t->server->pid || peer.uid != t->owner.uid)
		return fail(t, -EBADMSG, "another process listens at its socket");
	return 0;
}

static int send_all(const struct target *t, int fd, struct str bytes)
{
	while (bytes.len) {
		ssize_t n = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN) {
			if (wait_for(fd, POLLOUT, t->until_ns) < 0)
				return fail(t, -ETIMEDOUT, "it does not take the request");
			continue;
		}
		if (n < 0)
			return fail(t, -errno, "it does not take the request");
		bytes = str_skip(bytes, (size_t)n);
	}
	return 0;
}

static int read_all(const struct target *t, int fd, struct buf *out)
{
	for (;;) {
		char bytes[KIB(2)];
		int r = wait_for(fd, POLLIN, t->until_ns);
		ssize_t n = r < 0 ? 0 : recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

		if (r < 0)
			return fail(t, r, out->len ? "its answer does not end" : "it does not answer");
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n < 0)
			return fail(t, -errno, "its answer cannot be read");
		if (!n)
			return 0;
		if (out->len + (size_t)n > JAVA_ANSWER_MAX)
			return fail(t, -E2BIG, "its answer is too long");
		buf_add(out, bytes, (size_t)n);
		if (out->error)
			return fail(t, out->error, "its answer is too long");
	}
}

int java_server_ask(const struct java_server *server, const struct java_request *request, struct buf *out,
		    struct buf *why)
{
	scoped(target_release) struct target t = { .server = server,
						   .dir = -1,
						   .pidfd = -1,
						   .root = -1,
						   .cwd = -1,
						   .until_ns = clock_monotonic_ns(&clock_system) + server->timeout_ns,
						   .why = why };
	scoped(buf_release) struct buf bytes = BUF_INIT(KIB(16));
	scoped(closep) int fd = -1;
	int r = java_request_write(request, &bytes);

	if (r < 0)
		return fail(&t, r, "a word of the request is longer than a JVM takes: 1,024 bytes");
	r = open_target(&t);
	if (r < 0)
		return r;
	r = fd = reach(&t);
	r = r < 0 ? r : check_peer(&t, fd);
	r = r ? r : send_all(&t, fd, buf_str(&bytes));
	return r ? r : read_all(&t, fd, out);
}
