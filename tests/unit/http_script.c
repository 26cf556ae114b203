/* SPDX-License-Identifier: Apache-2.0 */
#include "http_script.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"

static ssize_t read_some(struct script *s, int fd, char *bytes, size_t size)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };

	while (poll(&wait, 1, 20) == 0)
		if (s->stop)
			return 0;
	return recv(fd, bytes, size, 0);
}

static size_t length_of(const char *head)
{
	const char *at = strcasestr(head, "\r\ncontent-length:");

	return at ? strtoul(at + strlen("\r\ncontent-length:"), NULL, 10) : 0;
}

static bool read_request(struct script *s, int fd, struct script_request *out)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(64));
	char *end = NULL;
	size_t want = SIZE_MAX;

	while (bytes.len < want) {
		char *room = buf_reserve(&bytes, KIB(64));
		ssize_t n = read_some(s, fd, room, KIB(64));

		if (n <= 0)
			return false;
		buf_commit(&bytes, (size_t)n);
		(void)buf_cstr(&bytes);
		end = end ? end : strstr(bytes.ptr, "\r\n\r\n");
		if (end && want == SIZE_MAX)
			want = (size_t)(end - bytes.ptr) + 4 + length_of(bytes.ptr);
		end = want == SIZE_MAX ? NULL : end;
	}
	end = strstr(bytes.ptr, "\r\n\r\n");
	out->head = strndup(bytes.ptr, (size_t)(end - bytes.ptr));
	out->body_size = bytes.len - (size_t)(end + 4 - bytes.ptr);
	out->body = malloc(out->body_size + 1);
	must(out->head && out->body);
	memcpy(out->body, end + 4, out->body_size);
	return true;
}

static const char *next_answer(struct script *s, const struct script_request *request)
{
	const char *answer;
	size_t at = 0;

	pthread_mutex_lock(&s->lock);
	while (at < s->count && s->answers[at + 1])
		at++;
	answer = s->answers[at];
	must(s->count < SCRIPT_REQUESTS_MAX);
	s->requests[s->count++] = *request;
	pthread_mutex_unlock(&s->lock);
	return answer;
}

/* One connection at a time; it stays open for the next request when the answer has a length. */
static void serve(struct script *s, int fd)
{
	struct script_request request;

	while (read_request(s, fd, &request)) {
		const char *answer = next_answer(s, &request);

		ignore(io_write_all(fd, answer, strlen(answer)));
		if (!strstr(answer, "Content-Length"))
			return;
	}
}

static void *run(void *ctx)
{
	struct script *s = ctx;

	while (!s->stop) {
		struct pollfd wait = { .fd = s->listener, .events = POLLIN };
		int fd;

		if (poll(&wait, 1, 20) <= 0)
			continue;
		fd = accept(s->listener, NULL, NULL);
		if (fd < 0)
			continue;
		serve(s, fd);
		close(fd);
	}
	return NULL;
}

void script_start(struct script *s, uint16_t port, const char *const *answers)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof(at);
	int one = 1;

	*s = (struct script){ .answers = answers };
	s->requests = calloc(SCRIPT_REQUESTS_MAX, sizeof(*s->requests));
	must(s->requests);
	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(s->listener >= 0);
	must(setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0);
	must(bind(s->listener, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(s->listener, 16) == 0);
	must(getsockname(s->listener, (struct sockaddr *)&at, &size) == 0);
	s->port = ntohs(at.sin_port);
	(void)snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%u", s->port);
	must(pthread_mutex_init(&s->lock, NULL) == 0);
	must(pthread_create(&s->thread, NULL, run, s) == 0);
}

void script_stop(struct script *s)
{
	s->stop = true;
	must(pthread_join(s->thread, NULL) == 0);
	close(s->listener);
	for (size_t i = 0; i < s->count; i++) {
		free(s->requests[i].head);
		free(s->requests[i].body);
	}
	free(s->requests);
	pthread_mutex_destroy(&s->lock);
}

size_t script_count(struct script *s)
{
	size_t count;

	pthread_mutex_lock(&s->lock);
	count = s->count;
	pthread_mutex_unlock(&s->lock);
	return count;
}

char *script_header(struct script *s, size_t index, const char *name)
{
	char pattern[64], *at;

	(void)snprintf(pattern, sizeof(pattern), "\r\n%s: ", name);
	at = strcasestr(s->requests[index].head, pattern);
	return at ? strndup(at + strlen(pattern), strcspn(at + strlen(pattern), "\r")) : NULL;
}
