/* SPDX-License-Identifier: Apache-2.0 */
/* Windows to a collector: one profile per workload and window, compressed and handed to push.c. */
#include <inttypes.h>

#include "codec/pprof.h"
#include "model/split.h"
#include "sink/push.h"
#include "sink/sinks.h"

#define PROFILE_MAX GIB(1)
#define GZIP_LEVEL 3

struct sink_state {
	struct push *push;
	struct window_label *labels;
	size_t label_count;
};

static void http_close(struct sink_state *s)
{
	if (!s)
		return;
	push_close(s->push);
	for (size_t i = 0; i < s->label_count; i++) {
		free(s->labels[i].key);
		free(s->labels[i].value);
	}
	free(s->labels);
	free(s);
}

static void http_closep(struct sink_state **s)
{
	http_close(*s);
}

static int copy_labels(struct sink_state *s, const struct sink_http_config *cfg)
{
	s->labels = calloc(cfg->label_count + 1, sizeof(*s->labels));
	if (!s->labels)
		return -ENOMEM;
	for (size_t i = 0; i < cfg->label_count; i++) {
		struct window_label *label = &s->labels[s->label_count++];

		label->key = str_dup(str_of(cfg->labels[i].key));
		label->value = str_dup(str_of(cfg->labels[i].value));
		if (!label->key || !label->value)
			return -ENOMEM;
	}
	return 0;
}

static int http_open(const struct sink_config *cfg, struct buf *why, struct sink_state **out)
{
	scoped(http_closep) struct sink_state *s = calloc(1, sizeof(*s));
	int r;

	must(cfg->http);
	if (!s)
		return -ENOMEM;
	r = copy_labels(s, cfg->http);
	if (r == 0)
		r = push_open(&cfg->http->push, why, &s->push);
	if (r < 0)
		return r;
	*out = s;
	s = NULL;
	return 0;
}

struct writing {
	struct sink_state *sink;
	uint32_t part;
	uint32_t lost;
	int error;
};

static int add_labels(const struct sink_state *s, struct window *w)
{
	int r = 0;

	if (w->host && *w->host)
		r = window_add_label(w, STR("host"), str_of(w->host));
	for (size_t i = 0; i < s->label_count && r == 0; i++)
		r = window_add_label(w, str_of(s->labels[i].key), str_of(s->labels[i].value));
	return r;
}

/* Run and window are the same with every attempt, also by a later run that finds the profile in the spool. */
static void add_key(const struct window *w, uint32_t part, struct buf *out)
{
	buf_addf(out, "%016" PRIx64 "%016" PRIx64 "-%" PRIu64 "-%u", w->run_id[0], w->run_id[1], w->cycle_id, part);
}

static int send_part(struct writing *writing, const struct window_part *part)
{
	scoped(buf_release) struct buf query = BUF_INIT(UPLOAD_QUERY_MAX), key = BUF_INIT(UPLOAD_KEY_MAX),
				       body = BUF_INIT(PROFILE_MAX);
	struct window *w = part->window;
	struct upload u;
	int r = add_labels(writing->sink, w);

	if (r < 0)
		return r;
	upload_query(&query, part->workload, part->type, w->labels, w->label_count, w->start_ns);
	add_key(w, writing->part++, &key);
	r = pprof_encode_level(w, GZIP_LEVEL, &body);
	if (r == 0)
		r = query.error ? query.error : key.error;
	if (r < 0)
		return r;
	u = (struct upload){ .query = buf_str(&query), .key = buf_str(&key), .body = buf_str(&body) };
	return push_put(writing->sink->push, &u);
}

/* One profile that is lost does not take the others along. */
static int visit_part(void *ctx, const struct window_part *part)
{
	struct writing *writing = ctx;
	int r = send_part(writing, part);

	if (r < 0) {
		writing->lost++;
		writing->error = r;
	}
	return 0;
}

static int http_write(struct sink_state *s, const struct window *w, struct buf *where)
{
	struct writing writing = { .sink = s };
	int r = window_split(w, visit_part, &writing);

	if (r < 0)
		return r;
	if (writing.lost)
		return writing.error;
	buf_addf(where, "%u profiles", writing.part);
	return 0;
}

static int http_flush(struct sink_state *s)
{
	return push_flush(s->push, SINK_HTTP_FLUSH_NS);
}

void sink_http_stats(const struct sink_state *s, struct push_stats *out)
{
	push_stats(s->push, out);
}

const struct sink sink_http = {
	.name = "http",
	.open = http_open,
	.write = http_write,
	.flush = http_flush,
	.close = http_close,
};
