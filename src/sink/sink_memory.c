/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the encoded windows: the sink of tests, and the proof that a window survives its encoding. */
#include "base/array.h"
#include "codec/window_codec.h"
#include "sink/sinks.h"

#define WINDOWS_MAX 4096
#define WINDOW_MAX_BYTES MIB(256)

struct sink_state {
	struct buf *windows;
	size_t count, cap;
};

static int memory_open(const struct sink_config *cfg, struct buf *why, struct sink_state **out)
{
	struct sink_state *s = calloc(1, sizeof(*s));

	(void)cfg;
	(void)why;
	if (!s)
		return -ENOMEM;
	*out = s;
	return 0;
}

static int memory_write(struct sink_state *s, const struct window *w, struct buf *where)
{
	int r = array_grow(&s->windows, &s->cap, s->count, WINDOWS_MAX);
	struct buf encoded = BUF_INIT(WINDOW_MAX_BYTES);

	if (r == 0)
		r = codec_window.encode(w, &encoded);
	if (r < 0) {
		buf_release(&encoded);
		return r;
	}
	buf_addf(where, "memory:%zu", s->count);
	s->windows[s->count++] = encoded;
	return 0;
}

static int memory_flush(struct sink_state *s)
{
	(void)s;
	return 0;
}

static void memory_close(struct sink_state *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++)
		buf_release(&s->windows[i]);
	free(s->windows);
	free(s);
}

const struct buf *sink_memory_windows(const struct sink_state *s, size_t *count)
{
	*count = s->count;
	return s->windows;
}

const struct sink sink_memory = {
	.name = "memory",
	.open = memory_open,
	.write = memory_write,
	.flush = memory_flush,
	.close = memory_close,
};
