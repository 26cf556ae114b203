/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/profile_live.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "cli/picture_frames.h"
#include "cli/profile_server.h"
#include "codec/window_codec.h"
#include "net/http_server.h"
#include "render/png.h"

#define SEND_PATIENCE_MS 5000 /* for a server that takes nothing; then it gets no more */
#define END_PATIENCE_MS 3000
#define WINDOW_BYTES_MAX MIB(512)

struct profile_live {
	const struct command *command;
	struct picture_frames *pictures; /* or NULL */
	pid_t child;                     /* of -T; 0: none */
	int feed;
	bool is_cut; /* the server is gone, or stands: nothing may follow */
};

static int complain(const struct command *c, const char *what)
{
	command_fail(c, "%s", what);
	return EXIT_USAGE;
}

/* Options */

static int open_pictures(const struct command *c, const struct profile_live_options *o, struct profile_live *l)
{
	struct picture_frames_config config = { .pattern = o->pattern, .shimmer = o->shimmer };

	if (!render_png_possible())
		return command_fail(c, "-E: this build has no pictures: it was made without cairo");
	if (picture_frames_check(o->pattern) < 0)
		return complain(c, "-g: the pattern needs exactly one %d, %4d or %04d, and no other %");
	if (str_to_u64(str_of(o->rate), 1, PICTURE_RATE_MAX, &config.rate) < 0)
		return complain(c, "--frame-rate: not a number from 1 to 60");
	if (o->max && str_to_u64(str_of(o->max), 1, UINT32_MAX, &config.max) < 0)
		return complain(c, "--frames-max: not a number from 1 on");
	if (picture_size_parse(str_of(o->size), &config.width, &config.height) < 0)
		return complain(c, "--frame-size: not WIDTHxHEIGHT, each from 64 to 8192");
	return picture_frames_open(c, &config, &l->pictures);
}

static int check_path(const struct command *c, const char *path)
{
	if (path[0] != '/')
		return complain(c, "-P: a path begins with /");
	for (const char *at = path; *at; at++)
		if (*at <= ' ' || *at >= 0x7f || strchr("?#%\"<>\\", *at))
			return complain(c, "-P: only letters, digits and - . _ ~ / may stand in it");
	return strlen(path) > 255 || strstr(path, "//") || strstr(path, "/.") ? complain(c, "-P: no such path")
									      : EXIT_DONE;
}

/* The server */

static int start_server(const struct command *c, const struct profile_server_config *config, struct profile_live *l)
{
	int feed[2] = { -1, -1 }, ready[2] = { -1, -1 };
	scoped(buf_release) struct buf line = BUF_INIT(KIB(64));
	struct profile_server_config mine = *config;
	bool is_child;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, feed) < 0 || pipe2(ready, O_CLOEXEC) < 0)
		return command_fail(c, "-T: %s", strerror(errno));
	l->child = fork();
	is_child = l->child == 0;
	closep(&feed[is_child ? 0 : 1]);
	closep(&ready[is_child ? 0 : 1]);
	if (is_child) {
		mine.feed_fd = feed[1];
		mine.ready_fd = ready[1];
		_exit(profile_server_run(c, &mine));
	}
	close(config->listen_fd);
	l->feed = feed[0];
	if (l->child < 0) {
		l->child = 0;
		closep(&ready[0]);
		return command_fail(c, "-T: %s", strerror(errno));
	}
	ignore(io_read_fd(ready[0], &line)); /* an empty one says that it ended, and has said why */
	closep(&ready[0]);
	return line.len ? EXIT_DONE : EXIT_FAILED;
}

static int open_stream(const struct command *c, const struct profile_live_options *o, struct profile_live *l)
{
	struct profile_server_config config = {
		.path = o->path, .host = o->addr, .user = o->user, .shimmer = o->shimmer
	};
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
	uint64_t port;
	int e = check_path(c, o->path);

	if (e != EXIT_DONE)
		return e;
	if (str_to_u64(str_of(o->port), 1, 65535, &port) < 0)
		return complain(c, "-R: not a port from 1 to 65535");
	if (picture_size_parse(str_of(o->size), &config.width, &config.height) < 0)
		return complain(c, "--frame-size: not WIDTHxHEIGHT, each from 64 to 8192");
	config.listen_fd = http_listen(str_of(o->addr), (uint16_t)port, &why);
	if (config.listen_fd < 0)
		return command_fail(c, "-T: %s", buf_cstr(&why));
	e = start_server(c, &config, l);
	if (e == EXIT_DONE)
		fprintf(stderr, "Starting flame graph stream on 'http://%s:%u%s'.\n",
			!strcmp(o->addr, "127.0.0.1") ? "localhost" : o->addr, (unsigned)port, o->path);
	return e;
}

int profile_live_open(const struct command *c, const struct profile_live_options *o, struct profile_live **out)
{
	struct profile_live *l;
	int e = EXIT_DONE;

	*out = NULL;
	if (!profile_live_wanted(o))
		return EXIT_DONE;
	l = calloc(1, sizeof(*l));
	if (!l)
		return command_fail(c, "out of memory");
	l->command = c;
	l->feed = -1;
	if (o->pictures)
		e = open_pictures(c, o, l);
	if (e == EXIT_DONE && o->stream)
		e = open_stream(c, o, l);
	if (e == EXIT_DONE && l->pictures)
		fprintf(stderr, "Generating flame graph frames.\n");
	if (e == EXIT_DONE)
		*out = l;
	else
		profile_live_free(l);
	return e;
}

/* Windows */

static int send_all(int fd, const void *bytes, size_t size)
{
	const char *at = bytes;

	while (size) {
		ssize_t n = send(fd, at, size, MSG_DONTWAIT | MSG_NOSIGNAL);
		struct pollfd p = { .fd = fd, .events = POLLOUT };

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (n < 0 && poll(&p, 1, SEND_PATIENCE_MS) == 0)
			return -ETIMEDOUT;
		at += MAX(n, 0);
		size -= (size_t)MAX(n, 0);
	}
	return 0;
}

/* What the server says of each window is of no interest, but must not fill its socket. */
static void drop_answers(int fd)
{
	char bytes[256];

	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

static void send_window(struct profile_live *l, const struct window *w)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(WINDOW_BYTES_MAX);
	uint8_t head[4];
	int r = codec_window.encode(w, &bytes);

	if (r < 0) {
		log_error("a window is missing in the live flame graph", LOG_ERR(r));
		return;
	}
	for (size_t i = 0; i < sizeof(head); i++)
		head[i] = (uint8_t)(bytes.len >> 8 * i);
	r = send_all(l->feed, head, sizeof(head));
	r = r ? r : send_all(l->feed, bytes.ptr, bytes.len);
	drop_answers(l->feed);
	l->is_cut = r < 0;
	if (r < 0)
		log_error("the live flame graph's server takes nothing any more; sampling goes on", LOG_ERR(r));
}

void profile_live_add(struct profile_live *l, const struct window *w)
{
	if (l->pictures)
		picture_frames_add(l->pictures, w);
	if (l->feed >= 0 && !l->is_cut)
		send_window(l, w);
}

/* The end of what it is fed with is the server's end. */
static void end_server(struct profile_live *l)
{
	const struct timespec pause = { 0, 10 * (long)NSEC_PER_MSEC };

	closep(&l->feed);
	for (int i = 0; l->child > 0 && i < END_PATIENCE_MS / 10; i++) {
		if (waitpid(l->child, NULL, WNOHANG) == l->child)
			l->child = 0;
		else
			(void)nanosleep(&pause, NULL);
	}
	if (l->child > 0) {
		ignore(kill(l->child, SIGKILL)); /* nobody else has waited for it: it is there */
		ignore(waitpid(l->child, NULL, 0));
		l->child = 0;
	}
}

int profile_live_finish(struct profile_live *l)
{
	end_server(l);
	return l->pictures ? picture_frames_finish(l->pictures) : EXIT_DONE;
}

void profile_live_free(struct profile_live *l)
{
	if (!l)
		return;
	end_server(l);
	picture_frames_free(l->pictures);
	free(l);
}
