/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/lines_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbol/lines_child.h"
#include "symbol/lines_wire.h"

#define PASSED_ON_MAX 8
#define END_TURNS 2000 /* of a millisecond */

/* The child's environment: where libdw lies, and how sanitizers are set up. Nothing else; never DEBUGINFOD_URLS. */
static void pick_environment(char *out[PASSED_ON_MAX])
{
	static const char *const names[] = { "LD_LIBRARY_PATH=", "ASAN_OPTIONS=", "UBSAN_OPTIONS=", "TSAN_OPTIONS=" };
	size_t count = 0;

	for (char **e = environ; *e; e++)
		for (size_t i = 0; i < ARRAY_SIZE(names) && count + 1 < PASSED_ON_MAX; i++)
			if (str_starts(str_of(*e), str_of(names[i])))
				out[count++] = *e;
	out[count] = NULL;
}

static int add_actions(posix_spawn_file_actions_t *actions, int fd)
{
	/* The socket first: it may be one of those that come after. */
	int r = posix_spawn_file_actions_adddup2(actions, fd, LINES_CHILD_FD);

	for (int i = 0; i < 2 && r == 0; i++)
		r = posix_spawn_file_actions_addopen(actions, i, "/dev/null", i ? O_WRONLY : O_RDONLY, 0);
	if (r == 0 && !LINES_SANITIZED)
		r = posix_spawn_file_actions_addopen(actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	return -r;
}

static int spawn(int fd, pid_t *pid)
{
	static char path[] = "/proc/self/exe"; /* this program, even if another lies in its place by now */
	char *argv[] = { path, LINES_CHILD_WORD, NULL }, *environment[PASSED_ON_MAX];
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions);

	if (r)
		return -r;
	pick_environment(environment);
	r = add_actions(&actions, fd);
	if (r == 0)
		r = -posix_spawn(pid, path, &actions, NULL, argv, environment);
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

/* The first packet says whether it is of use. */
static int await_ready(struct lines_process *p, uint64_t patience_ns, bool needs_libdw)
{
	scoped(freep) uint8_t *bytes = malloc(LINES_MESSAGE_MAX);
	struct lines_reply reply;
	int r = bytes ? lines_process_receive(p, bytes, patience_ns) : -ENOMEM;

	if (r >= 0)
		r = lines_reply_parse(cur_of(bytes, (size_t)r), &reply);
	if (r < 0)
		return r;
	if (reply.status == LINES_NO_LIBDW)
		return needs_libdw ? -ENOTSUP : 0;
	return reply.status == LINES_READY ? 0 : -EBADMSG;
}

int lines_process_start(struct lines_process *p, uint64_t patience_ns, bool needs_libdw)
{
	struct lines_process new = LINES_PROCESS_INIT;
	int fds[2];
	int r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	new.fd = fds[0];
	r = spawn(fds[1], &new.pid);
	close(fds[1]); /* nobody waits for this child's status: its death shows as the end of the stream */
	if (r == 0)
		r = await_ready(&new, patience_ns, needs_libdw);
	if (r < 0) {
		lines_process_stop(&new);
		return r;
	}
	*p = new;
	return 0;
}

int lines_process_send(struct lines_process *p, const struct buf *message, const int *fds, size_t fd_count)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct iovec part = { .iov_base = message->ptr, .iov_len = message->len };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t n;

	must(fd_count <= 2);
	if (message->error)
		return message->error;
	if (fd_count) {
		memset(&control, 0, sizeof(control));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, fd_count * sizeof(int));
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
	}
	do
		n = sendmsg(p->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int lines_process_receive(struct lines_process *p, void *bytes, uint64_t patience_ns)
{
	uint64_t now_ns = clock_monotonic_ns(&clock_system), end_ns = now_ns + patience_ns;

	for (; now_ns < end_ns; now_ns = clock_monotonic_ns(&clock_system)) {
		struct pollfd ready = { .fd = p->fd, .events = POLLIN };
		struct iovec part = { .iov_base = bytes, .iov_len = LINES_MESSAGE_MAX };
		struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 }; /* no room for descriptors: none are taken */
		ssize_t n;

		if (poll(&ready, 1, (int)((end_ns - now_ns) / NSEC_PER_MSEC + 1)) <= 0)
			continue; /* late, or interrupted */
		n = recvmsg(p->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return -EPIPE;
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (n > 0)
			return m.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -EBADMSG : (int)n;
	}
	return -ETIMEDOUT;
}

/* It may read from a file system that does not answer, where no signal ends it: then it is left behind. */
static void await_end(pid_t pid)
{
	const struct timespec pause = { .tv_nsec = NSEC_PER_MSEC };

	for (int turn = 0; turn < END_TURNS; turn++) {
		if (waitpid(pid, NULL, WNOHANG) != 0)
			return;
		ignore(nanosleep(&pause, NULL));
	}
}

void lines_process_stop(struct lines_process *p)
{
	closep(&p->fd);
	if (p->pid > 0) {
		kill(p->pid, SIGKILL);
		await_end(p->pid);
	}
	*p = (struct lines_process)LINES_PROCESS_INIT;
}
