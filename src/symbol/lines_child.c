/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/lines_child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbol/lines_dwarf.h"
#include "symbol/source_map.h"

#define PATIENCE_NS (6 * NSEC_PER_SEC) /* for one request; the parent's is longer */
#define DESCRIPTORS_MAX 2

struct child {
	struct libdw libdw;
	bool has_libdw;
	struct lines_dwarf *file; /* one of these two, or none */
	struct source_map *map;
	int fds[DESCRIPTORS_MAX]; /* of file and its shared part, or -1 */
	struct buf reply;
	uint32_t first, count; /* of the answers in reply */
	uint8_t *request;      /* LINES_MESSAGE_MAX bytes */
	uint64_t addresses[LINES_ADDRESSES_MAX];
};

bool lines_child_wanted(int argc, char **argv)
{
	return argc == 2 && !strcmp(argv[1], LINES_CHILD_WORD);
}

static int send_reply(struct child *c)
{
	struct iovec part = { .iov_base = c->reply.ptr, .iov_len = c->reply.len };
	const struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t n;

	if (c->reply.error)
		return c->reply.error;
	do
		n = sendmsg(LINES_CHILD_FD, &message, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static int send_status(struct child *c, enum lines_status status)
{
	lines_reply_begin(&c->reply, status, 0);
	return send_reply(c);
}

/* Return: size of the request; 0 when the parent is gone; -errno. @fds: what came along, or -1. */
static ssize_t receive(struct child *c, int fds[DESCRIPTORS_MAX])
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
	} control;
	struct iovec part = { .iov_base = c->request, .iov_len = LINES_MESSAGE_MAX };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	struct cmsghdr *head;
	ssize_t n;

	do
		n = recvmsg(LINES_CHILD_FD, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return -EBADMSG;
	fds[0] = fds[1] = -1;
	head = CMSG_FIRSTHDR(&message);
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(head), MIN(head->cmsg_len - CMSG_LEN(0), sizeof(c->fds)));
	return n;
}

static void close_file(struct child *c)
{
	lines_dwarf_close(c->file);
	source_map_close(c->map);
	c->file = NULL;
	c->map = NULL;
	closep(&c->fds[0]);
	closep(&c->fds[1]);
}

/* Return: as lines_dwarf_open() and source_map_open(). */
static int open_file(struct child *c, uint32_t flags, const int fds[DESCRIPTORS_MAX], uint64_t deadline_ns)
{
	close_file(c);
	memcpy(c->fds, fds, sizeof(c->fds));
	if (c->fds[0] < 0)
		return -EBADMSG;
	if (flags & LINES_SOURCE_MAP)
		return source_map_open(c->fds[0], deadline_ns, &c->map);
	if (!c->has_libdw)
		return -EBADMSG;
	return lines_dwarf_open(&c->libdw, c->fds[0], c->fds[1], deadline_ns, &c->file);
}

static int on_answer(void *ctx, const struct lines_answer *answer)
{
	static const struct lines_answer nothing;
	struct child *c = ctx;
	int r = lines_reply_add(&c->reply, answer);

	if (r == -E2BIG) {
		if (c->count) {
			r = send_reply(c);
			if (r < 0)
				return r;
			c->first += c->count;
			c->count = 0;
			lines_reply_begin(&c->reply, LINES_ANSWERS, c->first);
		}
		r = lines_reply_add(&c->reply, answer);
		if (r == -E2BIG) /* more than a whole message: no compiler writes such names */
			r = lines_reply_add(&c->reply, &nothing);
	}
	c->count += r == 0;
	return r;
}

static int serve(struct child *c, struct cur request, const int fds[DESCRIPTORS_MAX])
{
	uint64_t deadline_ns = clock_monotonic_ns(&clock_system) + PATIENCE_NS;
	uint32_t flags = 0;
	int count = lines_request_parse(request, &flags, c->addresses);
	int r = 0;

	if (count < 0)
		return count;
	if (flags & LINES_NEW_FILE)
		r = open_file(c, flags, fds, deadline_ns);
	if (r == 0 && !c->file && !c->map)
		r = -EBADMSG;
	if (r == 0) {
		lines_reply_begin(&c->reply, LINES_ANSWERS, 0);
		c->first = c->count = 0;
		if (c->map)
			r = source_map_find(c->map, c->addresses, (size_t)count, deadline_ns, on_answer, c);
		else
			r = lines_dwarf_find(c->file, c->addresses, (size_t)count, deadline_ns, on_answer, c);
		if (r == 0)
			return send_reply(c);
	}
	close_file(c);
	if (r == -ETIMEDOUT || r == -EBADMSG)
		return send_status(c, r == -ETIMEDOUT ? LINES_TOO_LONG : LINES_BAD_FILE);
	return r;
}

static int serve_all(struct child *c)
{
	for (;;) {
		int fds[DESCRIPTORS_MAX] = { -1, -1 };
		ssize_t n = receive(c, fds);
		int r = n > 0 ? serve(c, cur_of(c->request, (size_t)n), fds) : (int)n;

		if (n == 0 || r < 0)
			return r;
	}
}

/* When memory is short this process goes, not hearth, in whose group of processes it counts. */
static void offer_memory(void)
{
	scoped(closep) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	ignore(fd < 0 || write(fd, "1000", 4) < 0); /* then it is as likely as others */
}

int lines_child_main(void)
{
	static struct child c; /* one a process */
	int r;

	prctl(PR_SET_NAME, "hearth-lines");
	offer_memory();
#ifdef SYS_close_range
	syscall(SYS_close_range, LINES_CHILD_FD + 1, ~0u, 0); /* all of ours are closed by exec anyway */
#endif
	c.fds[0] = c.fds[1] = -1;
	c.reply = (struct buf)BUF_INIT(LINES_MESSAGE_MAX);
	c.request = malloc(LINES_MESSAGE_MAX);
	r = c.request ? libdw_load(&c.libdw) : -ENOMEM; /* while files can be opened */
	c.has_libdw = r == 0;
	if (r == 0 || r == -ENOTSUP)
		r = lines_confine();
	if (r == 0)
		r = send_status(&c, c.has_libdw ? LINES_READY : LINES_NO_LIBDW);
	if (r == 0)
		r = serve_all(&c);
	_exit(r < 0 ? 1 : 0); /* without exit handlers: they may want what is forbidden by now */
}
