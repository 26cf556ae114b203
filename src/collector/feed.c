/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/feed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "codec/window_codec.h"
#include "collector/collector_int.h"
#include "collector/live.h"
#include "model/split.h"
#include "query/params.h"

struct feed {
	struct collector *collector;
	const struct feed_config *config;
	pthread_t thread;
	int fd, end_fd;
	atomic_bool ended;
	struct buf frame; /* the thread's */
};

/* Exactly @size bytes. Return: 0, -ENODATA at the end, -errno. */
static int take(int fd, void *at, size_t size)
{
	char *to = at;

	while (size) {
		ssize_t n = recv(fd, to, size, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		to += n;
		size -= (size_t)n;
	}
	return 0;
}

static int take_frame(struct feed *f)
{
	uint8_t head[4];
	size_t size;
	void *room;
	int r = take(f->fd, head, sizeof(head));

	if (r < 0)
		return r;
	size = (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
	buf_clear(&f->frame);
	if (size > FEED_FRAME_MAX)
		return -EMSGSIZE;
	room = buf_reserve(&f->frame, size);
	if (!room)
		return f->frame.error;
	r = take(f->fd, room, size);
	if (r == 0)
		buf_commit(&f->frame, size);
	return r;
}

struct storing {
	struct collector *collector;
	uint32_t stored, failed;
	int error;
};

static size_t labels_of(const struct window *w, struct store_label *out)
{
	size_t count = 0;

	if (w->host && *w->host)
		out[count++] = (struct store_label){ STR("host"), str_of(w->host) };
	for (size_t i = 0; i < w->label_count && count < STORE_LABELS_MAX; i++)
		out[count++] = (struct store_label){ str_of(w->labels[i].key), str_of(w->labels[i].value) };
	return count;
}

static int store_part(void *ctx, const struct window_part *part)
{
	struct storing *s = ctx;
	const struct collector_config *config = &s->collector->config;
	struct store_label labels[STORE_LABELS_MAX];
	struct store_upload up = { .service = part->workload,
				   .type = part->type,
				   .labels = labels,
				   .created_ns = part->window->start_ns,
				   .window = part->window };
	struct store_id id;
	int r;

	up.label_count = labels_of(part->window, labels);
	r = config->store->put(config->state, &up, &id);
	s->stored += r >= 0;
	s->failed += r < 0;
	s->error = r < 0 ? r : s->error;
	return 0; /* one that is lost does not take the others along */
}

/* Tells the agent that a frame is dealt with. One that does not look is not waited for. */
static void acknowledge(struct feed *f, bool is_stored)
{
	const char answer = is_stored ? FEED_STORED : FEED_FAILED;

	ignore(send(f->fd, &answer, sizeof(answer), MSG_DONTWAIT | MSG_NOSIGNAL) < 0);
}

/* Return: whether all of it is in the store. */
static bool store_frame(struct feed *f)
{
	scoped(window_release) struct window w = { 0 };
	struct storing s = { .collector = f->collector };
	struct codec_error error = { 0 };
	int r = codec_window.decode(buf_str(&f->frame), &w, &error);

	if (r == 0 && f->config->service.len)
		r = store_part(&s, &(struct window_part){ .workload = f->config->service,
							  .type = query_type_detect(w.model),
							  .window = &w });
	else
		r = r ? r : window_split(&w, store_part, &s);
	metrics_add(f->collector->metrics, COLLECTOR_PROFILES_STORED, s.stored);
	live_changed(f->collector->live, w.start_ns, &w);
	if (f->config->stored)
		f->config->stored(f->config->ctx);
	if (r < 0)
		log_error("a window of the agent is lost", LOG_ERR(r), LOG_CSTR("reason", error.reason));
	else if (s.failed)
		log_error("profiles of the agent's window could not be stored", LOG_ERR(s.error),
			  LOG_U64("lost", s.failed), LOG_U64("stored", s.stored));
	return r == 0 && !s.failed;
}

static void *run(void *arg)
{
	struct feed *f = arg;
	uint64_t one = 1;
	int r;

	while ((r = take_frame(f)) == 0)
		acknowledge(f, store_frame(f));
	if (r != -ENODATA)
		log_error("the agent's windows cannot be read any more", LOG_ERR(r));
	atomic_store(&f->ended, true);
	ignore(write(f->end_fd, &one, sizeof(one)) < 0); /* an eventfd takes it */
	return NULL;
}

int feed_open(struct collector *c, int fd, const struct feed_config *config, struct feed **out)
{
	struct feed *f = calloc(1, sizeof(*f));
	int r;

	if (!f) {
		(void)close(fd);
		return -ENOMEM;
	}
	*f = (struct feed){ .collector = c, .config = config, .fd = fd, .frame = BUF_INIT(FEED_FRAME_MAX) };
	f->end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = f->end_fd < 0 ? errno : pthread_create(&f->thread, NULL, run, f);
	if (r) {
		closep(&f->end_fd);
		closep(&f->fd);
		free(f);
		return -r;
	}
	*out = f;
	return 0;
}

bool feed_ended(const struct feed *f)
{
	return atomic_load(&f->ended);
}

int feed_end_fd(const struct feed *f)
{
	return f->end_fd;
}

void feed_close(struct feed *f)
{
	if (!f)
		return;
	(void)shutdown(f->fd, SHUT_RDWR);
	(void)pthread_join(f->thread, NULL);
	closep(&f->fd);
	closep(&f->end_fd);
	buf_release(&f->frame);
	free(f);
}
